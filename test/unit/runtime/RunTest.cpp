//===- RunTest.cpp: the standard bundle, run ------------------------------===//
// Takes:    hand-written kernels in a bundle.
// Gives:    every kind of instruction, buffer and dim, end to end through the C API.
// Keeps:    results compared exactly.
// Does not: break anything (RefusalTest.cpp).
#include "Client.h"

#include <fcntl.h>
#include <unistd.h>
#include <xmmintrin.h>

using namespace astra::test;

namespace {

struct Run : testing::TestWithParam<uint32_t> {
  Machine machine{GetParam()};
  Diag &diag = machine.diag;
};

std::vector<float> ramp(size_t n, float first = 0) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; i++) v[i] = first + float(i);
  return v;
}

TEST_P(Run, AddAtManySizes) {
  for (int64_t n : {0, 1, 2, 7, 64, 1000, 4999, 5000}) {
    auto x = ramp(size_t(n)), y = ramp(size_t(n), 100);
    std::vector<float> z(size_t(n), -1);
    Shape shape = {n}, extents;
    EXPECT_OK(machine.run("add", {tensor(x, shape), tensor(y, shape)}, {tensor(z, shape)}, &extents));
    EXPECT_EQ(extents, shape);
    for (size_t i = 0; i < size_t(n); i++) EXPECT_EQ(z[i], x[i] + y[i]);
  }
}

TEST_P(Run, VariantIsChosenByDim) {
  std::vector<std::string> names;
  auto trace = [](void *self, const astra_trace_event *event) {
    static_cast<std::vector<std::string> *>(self)->push_back(event->name);
    EXPECT_LE(event->begin_ns, event->end_ns);
    EXPECT_EQ(event->num_origins, 2u);
    for (uint32_t i = 0; i < event->num_origins; i++)
      static_cast<std::vector<std::string> *>(self)->push_back(event->origins[i]);
    EXPECT_EQ(event->more_origins, 3u);
  };
  EXPECT_EQ(astra_session_set_trace(machine.session, trace, &names), ASTRA_OK);
  for (int64_t n : {15, 16}) {
    auto x = ramp(size_t(n));
    std::vector<float> z(size_t(n), -1);
    EXPECT_OK(machine.run("double", {tensor(x, {n})}, {tensor(z, {n})}));
    for (size_t i = 0; i < size_t(n); i++) EXPECT_EQ(z[i], 2 * x[i]);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"add", "sum", "scale", "twice", "sum", "scale"}));
}

std::vector<float> applied(const std::vector<float> &x, const std::vector<float> &w) {
  std::vector<float> y;
  for (size_t n = 0; n < x.size() / 3; n++)
    for (size_t i = 0; i < 8; i++)
      y.push_back(x[n * 3] * w[i * 3] + x[n * 3 + 1] * w[i * 3 + 1] + x[n * 3 + 2] * w[i * 3 + 2]);
  return y;
}

TEST_P(Run, ParamsAreReplacedThroughPrepare) {
  auto x = ramp(100 * 3);
  std::vector<float> y(100 * 8);
  auto apply = [&] { EXPECT_OK(machine.run("apply", {tensor(x, {100, 3})}, {tensor(y, {100, 8})})); };
  auto stored = ramp(24), mine = ramp(24, 5), shared = ramp(24, -7);
  apply();
  EXPECT_EQ(y, applied(x, stored));
  EXPECT_OK(astra_session_set_param(machine.session, "w", &tensor(mine, {8, 3}), &diag));
  mine.assign(24, 0); // it was copied
  apply();
  EXPECT_EQ(y, applied(x, ramp(24, 5)));
  EXPECT_OK(astra_loaded_set_param(machine.loaded, "w", &tensor(shared, {8, 3}), &diag));
  apply();
  EXPECT_EQ(y, applied(x, ramp(24, 5))) << "the session's own comes first";
  machine.session = machine.makeSession();
  apply();
  EXPECT_EQ(y, applied(x, shared));
  // Columns of a larger matrix: strided, copied before it is packed.
  auto wide = ramp(8 * 10);
  Tensor t = tensor(wide, {8, 3});
  Shape strides = {10, 1};
  t.t.strides = strides.data(), t.t.byte_offset = 8;
  EXPECT_OK(astra_session_set_param(machine.session, "w", &t, &diag));
  std::vector<float> columns;
  for (size_t i = 0; i < 8; i++)
    for (size_t k = 0; k < 3; k++) columns.push_back(wide[i * 10 + k + 2]);
  apply();
  EXPECT_EQ(y, applied(x, columns));
}

TEST_P(Run, WhatIsComputedFromParamsFollowsThem) {
  std::vector<float> x(8, 100), y(8);
  auto result = [&](Session &session) {
    Promise promise;
    EXPECT_OK(machine.submit(session, machine.stream, "derived", {tensor(x, {8})}, {tensor(y, {8})}, promise.out()));
    EXPECT_OK(astra_promise_wait(promise, &diag));
    EXPECT_EQ(y, std::vector<float>(8, y[0]));
    return y[0];
  };
  auto all = [](float value) { return std::vector<float>(8, value); };
  Session other = machine.makeSession();
  EXPECT_EQ(result(machine.session), 103);
  auto ten = all(10), twenty = all(20), thirty = all(30), forty = all(40);
  EXPECT_OK(astra_session_set_param(machine.session, "a", &tensor(ten, {8}), &diag));
  EXPECT_EQ(result(machine.session), 112);
  EXPECT_EQ(result(other), 103) << "it was set for one session";
  EXPECT_OK(astra_loaded_set_param(machine.loaded, "b", &tensor(twenty, {8}), &diag));
  EXPECT_EQ(result(machine.session), 130) << "its own a, the loaded bundle's b";
  EXPECT_EQ(result(other), 121);
  EXPECT_OK(astra_loaded_set_param(machine.loaded, "a", &tensor(thirty, {8}), &diag));
  EXPECT_EQ(result(machine.session), 130) << "the session's own comes first";
  EXPECT_EQ(result(other), 150);
  EXPECT_OK(astra_session_set_param(other, "b", &tensor(forty, {8}), &diag));
  EXPECT_EQ(result(other), 170);
  EXPECT_EQ(result(machine.session), 130);
  Session late = machine.makeSession();
  EXPECT_EQ(result(late), 150);
  EXPECT_EQ(astra_loaded_set_param(machine.loaded, "d", &tensor(ten, {8}), &diag), ASTRA_UNKNOWN_NAME);
}

TEST_P(Run, StateLivesInItsSession) {
  std::vector<float> x = {5}, y(1);
  auto step = [&] {
    EXPECT_OK(machine.run("accumulate", {tensor(x, {})}, {tensor(y, {})}));
    return y[0];
  };
  EXPECT_EQ(step(), 15);
  EXPECT_EQ(step(), 20);
  Session other = machine.makeSession();
  std::swap(machine.session, other);
  EXPECT_EQ(step(), 15);
  std::swap(machine.session, other);
  EXPECT_EQ(step(), 25);
  std::vector<float> value = {1000};
  Tensor t = tensor(value, {});
  EXPECT_OK(astra_session_set_state(machine.session, "sum", &t, &diag));
  EXPECT_EQ(step(), 1005);
  EXPECT_OK(astra_session_get_state(machine.session, "sum", &t, &diag));
  EXPECT_EQ(value[0], 1005);
  const void *lent;
  uint64_t bytes;
  EXPECT_OK(astra_session_lease_state(machine.session, "sum", &lent, &bytes, &diag));
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(*static_cast<const float *>(lent), 1005);
  EXPECT_FAIL(ASTRA_BUSY, "leased", machine.run("accumulate", {tensor(x, {})}, {tensor(y, {})}));
  EXPECT_OK(astra_session_return_state(machine.session, "sum", &diag));
  EXPECT_OK(astra_session_reset(machine.session, &diag));
  EXPECT_EQ(step(), 15);
  uint32_t quiet = 0xffc12345, canonical = 0x7fc00000;
  memcpy(value.data(), &quiet, 4);
  EXPECT_OK(astra_session_set_state(machine.session, "sum", &t, &diag));
  EXPECT_OK(astra_session_get_state(machine.session, "sum", &t, &diag));
  EXPECT_EQ(memcmp(value.data(), &canonical, 4), 0);
}

TEST(State, EntriesSayWhichTheyUse) {
  Machine m;
  Diag &diag = m.diag;
  auto uses = [&](const char *name, uint32_t state) {
    const astra_entry *entry = nullptr;
    EXPECT_OK(astra_bundle_find_entry(m.bundle, name, &entry, &diag));
    return astra_entry_uses_state(entry, state);
  };
  astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
  EXPECT_OK(astra_bundle_get_info(m.bundle, &info));
  for (uint32_t i = 0; i < info.num_states; ++i) {
    astra_tensor_info t = ASTRA_INIT(astra_tensor_info);
    EXPECT_OK(astra_bundle_get_state(m.bundle, i, &t));
    EXPECT_EQ(uses("accumulate", i), t.name == std::string("sum"));
    EXPECT_EQ(uses("decode", i), t.name == std::string("cache"));
    EXPECT_EQ(uses("add", i), 0);
  }
  EXPECT_EQ(uses("add", info.num_states), -1);
  EXPECT_EQ(astra_entry_uses_state(nullptr, 0), -1);
}

// Numerics clause N6: state is canonical from the moment it has a value.
TEST(State, FirstValuesAreCanonical) {
  const uint32_t odd[] = {0xffc12345, 0x7f800001, 0xff800000, 0x80000000}, // NaNs, an infinity, a zero
      want[] = {0x7fc00000, 0x7fc00000, 0xff800000, 0x80000000};
  ManifestMaker maker = standardManifest();
  std::vector<float> first(4);
  uint32_t state = maker.state("odd", {maker.number(4)}, &first);
  memcpy(&maker.weights[maker.m.states[state]->init->offset], odd, sizeof odd);
  Machine machine(1, nullptr, assemble(maker));
  Diag &diag = machine.diag;
  const void *lent;
  uint64_t bytes;
  for (int round = 0; round < 2; round++) {
    EXPECT_OK(astra_session_lease_state(machine.session, "odd", &lent, &bytes, &diag));
    ASSERT_EQ(bytes, sizeof want);
    EXPECT_EQ(memcmp(lent, want, sizeof want), 0) << "round " << round;
    EXPECT_OK(astra_session_return_state(machine.session, "odd", &diag));
    EXPECT_OK(astra_session_reset(machine.session, &diag));
  }
}

TEST_P(Run, DataDim) {
  std::vector<float> x = {1, -2, 3, 0, 5}, v(5, -1), t(1);
  Shape extents;
  EXPECT_OK(machine.run("compact", {tensor(x, {5})}, {tensor(v, {5}), tensor(t, {})}, &extents));
  EXPECT_EQ(extents, (Shape{3}));
  EXPECT_EQ(std::vector<float>(v.begin(), v.begin() + 3), (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(t[0], 9);
  std::vector<float> none;
  EXPECT_OK(machine.run("compact", {tensor(none, {0})}, {tensor(none, {0}), tensor(t, {})}, &extents));
  EXPECT_EQ(extents, (Shape{0}));
  EXPECT_EQ(t[0], 0);
}

TEST_P(Run, LoopsAndBranches) {
  std::vector<float> x = {1}, y(1);
  for (int64_t count : {0, 1, 2, 5}) {
    EXPECT_OK(astra_session_set_dim(machine.session, "count", count, &diag));
    EXPECT_OK(machine.run("loop", {tensor(x, {})}, {tensor(y, {})}));
    float expected = 1;
    for (int64_t i = 0; i < count; i++) expected = 2 * expected + float(i);
    EXPECT_EQ(y[0], expected);
  }
  for (float first : {1.0f, 3.0f, 99.0f, 100.0f, 1e6f}) {
    x[0] = first;
    EXPECT_OK(machine.run("grow", {tensor(x, {})}, {tensor(y, {})}));
    while (first < 100) first = 2 * first;
    EXPECT_EQ(y[0], first);
  }
}

TEST_P(Run, DecodeAppendsToACacheInPlace) {
  machine.session = machine.makeSession(3);
  int64_t copied = 0;
  auto trace = [](void *self, const astra_trace_event *event) {
    *static_cast<int64_t *>(self) += strcmp(event->name, "copy") == 0;
  };
  EXPECT_EQ(astra_session_set_trace(machine.session, trace, &copied), ASTRA_OK);
  std::vector<float> x = {1, 2, 3, 4}, y(4), cache(12);
  for (int64_t len = 0; len < 3; len++) {
    EXPECT_OK(astra_session_set_dim(machine.session, "count", len, &diag));
    EXPECT_OK(machine.run("decode", {tensor(x, {4})}, {tensor(y, {4})}));
    for (size_t i = 0; i < 4; i++) EXPECT_EQ(y[i], x[i] * float(len + 1));
  }
  EXPECT_EQ(copied, 0);
  Tensor t = tensor(cache, {3, 4});
  EXPECT_OK(astra_session_get_state(machine.session, "cache", &t, &diag));
  EXPECT_EQ(cache, (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_OK(astra_session_set_dim(machine.session, "count", 3, &diag));
  EXPECT_FAIL(ASTRA_EQUATION, "min(count, cap - 1)", machine.run("decode", {tensor(x, {4})}, {tensor(y, {4})}));
}

TEST_P(Run, StridedInputIsCopiedOnlyIfAllowed) {
  auto grid = ramp(6 * 4);
  std::vector<float> y(6), z(6);
  Tensor column = tensor(grid, {6});
  Shape stride = {-4};
  column.t.strides = stride.data(), column.t.byte_offset = (5 * 4 + 1) * 4;
  EXPECT_FAIL(ASTRA_WRONG_STRIDES, "ASTRA_CALL_ALLOW_COPY",
              machine.run("add", {column, tensor(y, {6})}, {tensor(z, {6})}));
  EXPECT_OK(machine.run("add", {column, tensor(y, {6})}, {tensor(z, {6})}, nullptr, ASTRA_CALL_ALLOW_COPY));
  EXPECT_EQ(z, (std::vector<float>{21, 17, 13, 9, 5, 1}));
}

TEST_P(Run, OutputBoundNeedsShapesOnly) {
  astra_tensor x = ASTRA_INIT(astra_tensor);
  Shape shape = {77}, bound(ASTRA_MAX_RANK);
  x.dtype = ASTRA_F32, x.ndim = 1, x.shape = shape.data();
  int32_t ndim;
  uint64_t bytes;
  EXPECT_OK(astra_entry_output_bound(machine.entry("compact"), machine.session, &x, 1, 0, bound.data(), &ndim, &bytes,
                                     &diag));
  EXPECT_EQ(ndim, 1);
  EXPECT_EQ(bound[0], 77);
  EXPECT_EQ(bytes, 77u * 4);
}

TEST_P(Run, KernelsHaveTheirFloatEnvironmentAndTheCallerKeepsHis) {
  unsigned before = _mm_getcsr();
  _mm_setcsr(0xffc0); // round to zero, flush to zero, subnormals are zero
  std::vector<float> y(1);
  EXPECT_OK(machine.run("environment", {}, {tensor(y, {})}));
  unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(after & 0xffc0, 0xffc0u);
}

TEST_P(Run, FromAFile) {
  std::string path = testing::TempDir() + "astra-runtime-test-XXXXXX";
  int fd = mkstemp(path.data());
  ASSERT_EQ(write(fd, machine.memory.data, machine.memory.size), ssize_t(machine.memory.size));
  close(fd);
  Bundle bundle;
  Loaded loaded;
  astra_bundle_options o = ASTRA_INIT(astra_bundle_options);
  o.flags = ASTRA_VERIFY_ALL | ASTRA_REQUIRE_STRICT;
  EXPECT_OK(astra_bundle_init_file(bundle.out(), machine.runtime, path.c_str(), &o, &diag));
  unlink(path.c_str());
  astra_device *devices[] = {machine.device};
  EXPECT_OK(astra_loaded_init(loaded.out(), bundle, devices, 1, &diag));
  std::swap(machine.bundle, bundle);
  std::swap(machine.loaded, loaded);
  Session session = machine.makeSession();
  std::swap(machine.session, session);
  auto x = ramp(300);
  std::vector<float> z(300);
  EXPECT_OK(machine.run("add", {tensor(x, {300}), tensor(x, {300})}, {tensor(z, {300})}));
  EXPECT_EQ(z[299], 598);
  session = Session();
  loaded = Loaded();
}

INSTANTIATE_TEST_SUITE_P(Threads, Run, testing::Values(1u, 2u, 7u));

TEST(Level, IsTheBestThatRunsOrTheOneAskedFor) {
  Machine best;
  EXPECT_STREQ(astra_loaded_target(best.loaded),
               __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "cpu:x86-64-v3" : "cpu:x86-64");
  Machine low(1, "x86-64");
  EXPECT_STREQ(astra_loaded_target(low.loaded), "cpu:x86-64");
}

TEST(Log, SaysWhichLevelWasChosen) {
  std::string text;
  astra_logger logger = ASTRA_INIT(astra_logger);
  logger.self = &text;
  logger.log = [](void *self, int32_t level, const char *line) {
    *static_cast<std::string *>(self) += (level == ASTRA_LOG_INFO ? "info: " : "warning: ") + std::string(line) + "\n";
  };
  astra_runtime_options o = ASTRA_INIT(astra_runtime_options);
  o.logger = &logger;
  Aligned memory(Machine::standard());
  Diag diag;
  Runtime runtime;
  Device device;
  Bundle bundle;
  Loaded loaded;
  astra_device_options level = ASTRA_INIT(astra_device_options);
  level.level = "x86-64";
  EXPECT_OK(astra_runtime_init(runtime.out(), &o, &diag));
  EXPECT_OK(astra_device_init(device.out(), runtime, "cpu", &level, &diag));
  EXPECT_OK(astra_bundle_init_memory(bundle.out(), runtime, memory.data, memory.size, nullptr, &diag));
  astra_device *devices[] = {device};
  EXPECT_OK(astra_loaded_init(loaded.out(), bundle, devices, 1, &diag));
  EXPECT_EQ(text, "info: module test runs its code for cpu:x86-64\n");
}

TEST(Features, AgreeWithTheCompiler) {
  Machine m;
#define SAME(name) EXPECT_EQ(astra_device_has_feature(m.device, name) == 1, __builtin_cpu_supports(name) != 0) << name
  SAME("sse4.2");
  SAME("avx");
  SAME("avx2");
  SAME("fma");
  SAME("bmi2");
  SAME("popcnt");
  SAME("avx512f");
  SAME("avx512vl");
  SAME("avx512vnni");
  SAME("avx512bf16");
  SAME("gfni");
#undef SAME
  EXPECT_EQ(astra_device_has_feature(m.device, "quantum"), -1);
}

/// A large buffer begins where a huge page can, and asks for such; a small one takes no more than it is.
TEST(Memory, LargeBuffersAskForHugePages) {
  constexpr uint64_t huge = 2 << 20;
  Diag diag;
  Runtime runtime;
  Device device;
  Pool pool;
  Buffer large, small;
  ASSERT_EQ(astra_runtime_init(runtime.out(), nullptr, &diag), ASTRA_OK);
  ASSERT_EQ(astra_device_init(device.out(), runtime, "cpu", nullptr, &diag), ASTRA_OK);
  ASSERT_EQ(astra_pool_init(pool.out(), device, nullptr, &diag), ASTRA_OK);
  ASSERT_EQ(astra_buffer_init(large.out(), pool, 5 * huge + 100, &diag), ASTRA_OK);
  ASSERT_EQ(astra_buffer_init(small.out(), pool, 100, &diag), ASTRA_OK);
  auto at = reinterpret_cast<uintptr_t>(astra_buffer_data(large));
  EXPECT_EQ(at % huge, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(astra_buffer_data(small)) % 64, 0u);
  // The flag "hg" of its mapping (proc(5)), where the system has huge pages.
  FILE *maps = fopen("/proc/self/smaps", "r"), *has = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
  ASSERT_TRUE(maps);
  bool inside = false, asked = false;
  for (char line[512]; fgets(line, sizeof line, maps);) {
    unsigned long begin, end;
    if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) inside = begin <= at && at < end;
    asked |= inside && !strncmp(line, "VmFlags:", 8) && strstr(line, " hg");
  }
  fclose(maps);
  if (!has) GTEST_SKIP() << "this system has no huge pages";
  fclose(has);
  EXPECT_TRUE(asked);
}

TEST(Queries, DescribeTheBundle) {
  Machine m;
  astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
  EXPECT_EQ(astra_bundle_get_info(m.bundle, &info), ASTRA_OK);
  EXPECT_STREQ(info.contract, "astra-num/1");
  EXPECT_EQ(info.num_states, 2u);
  EXPECT_EQ(info.num_params, 3u); // not what is computed from them
  astra_tensor_info t = ASTRA_INIT(astra_tensor_info);
  EXPECT_EQ(astra_entry_get_output(m.entry("apply"), 0, &t), ASTRA_OK);
  EXPECT_STREQ(t.name, "y");
  EXPECT_EQ(t.ndim, 2);
  EXPECT_EQ(t.lower[0], 0);
  EXPECT_EQ(t.upper[0], 5000);
  EXPECT_EQ(t.lower[1], 8);
  EXPECT_EQ(t.upper[1], 8);
  astra_entry_info e = ASTRA_INIT(astra_entry_info);
  EXPECT_EQ(astra_entry_get_info(m.entry("grow"), &e), ASTRA_OK);
  EXPECT_EQ(e.waits_on_host, 1);
  EXPECT_EQ(e.num_inputs, 1u);
  uint32_t index = 9;
  EXPECT_EQ(astra_entry_find_input(m.entry("add"), "y", &index, nullptr), ASTRA_OK);
  EXPECT_EQ(index, 1u);
  astra_target_info target = ASTRA_INIT(astra_target_info);
  EXPECT_EQ(astra_bundle_get_target(m.bundle, 2, &target), ASTRA_OK);
  EXPECT_STREQ(target.lacks, "quantum");
}

} // namespace
