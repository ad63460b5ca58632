//===- Executed.cpp: how many kernels the emulator has executed ----------------===//
#include "Executed.h"
#include "gtest/gtest.h"
#include <map>

using namespace astra;

namespace {

struct Count {
  uint64_t kernels = 0, launches = 0, threads = 0;
};
std::map<std::pair<std::string, std::string>, Count> &counts() {
  static std::map<std::pair<std::string, std::string>, Count> all;
  return all;
}

struct Show : testing::Environment {
  void TearDown() override {
    for (auto &[where, n] : counts())
      printf("executed: %s on %s: %llu kernels, %llu launches, %llu threads\n", where.first.c_str(),
             where.second.c_str(), (unsigned long long)n.kernels, (unsigned long long)n.launches,
             (unsigned long long)n.threads);
  }
};
const testing::Environment *const show = testing::AddGlobalTestEnvironment(new Show);

} // namespace

void astra::test::noteExecuted(const GpuTarget &target, uint64_t kernels, uint64_t launches, uint64_t threads) {
  llvm::StringRef suite = testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
  Count &n = counts()[{suite.split('/').second.empty() ? suite.str() : suite.split('/').second.str(), target.name}];
  n.kernels += kernels, n.launches += launches, n.threads += threads;
}
