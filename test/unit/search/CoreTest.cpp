//===- CoreTest.cpp: kinds of cores and what is planned for them --------------===//
#include "astra/Codegen/Cost.h"
#include "astra/Codegen/Target.h"
#include "astra/Search/Search.h"
#include "format/Cores.h"
#include "gtest/gtest.h"

using namespace astra;

namespace {

struct Row {
  const char *core;
  fmt::CpuModel first, last;
};
const Row models[] = {
#define MODELS(name, vendor, family, first, last)                                                                      \
  {name, {fmt::Vendor::vendor, family, first}, {fmt::Vendor::vendor, family, last}},
#include "format/MachineTable.def"
};

TEST(Cores, ACpuHasOneKindOfCore) {
  for (const Row &r : models)
    for (unsigned model : {r.first.model, r.last.model})
      for (const Core &c : allCores())
        EXPECT_EQ(fmt::isCore(c.name, {r.first.vendor, r.first.family, model}), r.core == std::string(c.name))
            << c.name << " " << model;
}

TEST(Cores, OthersHaveNone) {
  EXPECT_EQ(fmt::isCore("zen3", {fmt::Vendor::INTEL, 0x19, 1}), 0);
  EXPECT_EQ(fmt::isCore("zen3", {fmt::Vendor::AMD, 0x19, 0x10}), 0); // Zen 4
  EXPECT_EQ(fmt::isCore("zen4", {fmt::Vendor::AMD, 0x19, 0x11}), 1);
  EXPECT_EQ(fmt::isCore("zen3", {}), 0);
  EXPECT_EQ(fmt::isCore("zen9", {fmt::Vendor::AMD, 0x19, 1}), -1);
  EXPECT_EQ(fmt::isCore("", {fmt::Vendor::AMD, 0x19, 1}), -1);
}

TEST(Cores, EachHasSpeeds) {
  for (const Speeds &s : allSpeeds())
    for (double v : {s.fma, s.loads, s.stores, s.latency, s.issue, s.masked, s.l2, s.l3, s.memory})
      EXPECT_GT(v, 0) << s.name;
  for (const Core &c : allCores()) {
    const Target *t = targetNamed(std::string(c.level) + "@" + c.name);
    ASSERT_TRUE(t) << c.name;
    EXPECT_EQ(std::string(speedsOf(*t).name), c.name);
  }
  for (const Target &t : allTargets())
    EXPECT_EQ(std::string(speedsOf(t).name), std::string(t.name).substr(0, std::string(t.name).find('+'))) << t.name;
}

TEST(Cores, ATargetIsALevelWithACoresCaches) {
  for (const Core &c : allCores()) {
    const Target *most = targetNamed(c.level);
    ASSERT_TRUE(most) << c.name;
    for (const Target &level : allTargets()) {
      const Target *t = tunedTarget(level, c);
      ASSERT_EQ(t != nullptr, level.arch == c.arch && level.rank <= most->rank) << level.name << " " << c.name;
      if (!t) continue;
      EXPECT_EQ(t, targetNamed(std::string(level.name) + "@" + c.name)); // made once
      EXPECT_EQ(t->level, &level);
      EXPECT_EQ(t->l2Bytes, c.l2Bytes);
      EXPECT_EQ(t->vectorBytes, level.vectorBytes);
      ASSERT_EQ(t->features.size(), level.features.size() + 1);
      EXPECT_EQ(std::string(t->features.back()), std::string("core:") + c.name);
      for (const Target &other : allTargets()) EXPECT_GT(t->rank, other.rank);
    }
  }
  EXPECT_FALSE(targetNamed("cpu:x86-64-v3@"));
  EXPECT_FALSE(targetNamed("cpu:x86-64-v3@zen"));
  EXPECT_FALSE(targetNamed("cpu:x86-64-v9@zen3"));
  EXPECT_FALSE(targetNamed("cpu:x86-64-v3@zen3@zen3"));
}

TEST(Cores, ThisMachineRunsWhatIsPlannedForIt) {
  const Core *here = nativeCore();
  if (!here) GTEST_SKIP() << "the table has no row of this machine";
  const Target *native = nativeTarget();
  ASSERT_TRUE(native);
  const Target *tuned = tunedTarget(*native, *here);
  ASSERT_TRUE(tuned) << here->name << " runs " << native->name << ", its row says " << here->level;
  EXPECT_TRUE(hostRuns(*tuned));
  for (const Core &other : allCores())
    if (const Target *t = &other == here ? nullptr : tunedTarget(*native, other)) EXPECT_FALSE(hostRuns(*t));
}

} // namespace
