//===- FailureTest.cpp: ranks that are lost, late or elsewhere ---------------===//
// Takes:    ranks as threads, and as processes of shared memory that are killed.
// Checks:   nobody hangs; the sentence says which rank, and in which collective each is.
#include "Ranks.h"
#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace astra::ranks;
using Clock = std::chrono::steady_clock;

namespace {

double secondsSince(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

struct Threads {
  explicit Threads(int R, int timeout = 2000) : ranks(R) {
    astra_ranks_options o = ASTRA_INIT(astra_ranks_options);
    o.timeout = timeout;
    EXPECT_EQ(astra_ranks_init_threads(ranks.data(), R, &o, nullptr), ASTRA_OK);
  }
  ~Threads() {
    for (auto &r : ranks) astra_ranks_free(&r);
  }
  std::vector<astra_ranks *> ranks;
};

Status reduce(astra_ranks *ranks, const char *name, int64_t shards, int64_t n, astra_diag *diag) {
  Collective c;
  if (Status s = readName(&c, name, diag)) return s;
  c.ranks = ranks;
  std::vector<float> x(size_t(shards * n), 1), y(size_t(shards * n), 0);
  std::vector<int64_t> shape{shards, n};
  astra_tensor a = ASTRA_INIT(astra_tensor), b;
  a.data = x.data(), a.data_bytes = x.size() * 4, a.dtype = ASTRA_F32, a.ndim = 2, a.shape = shape.data();
  b = a, b.data = y.data();
  return astra::ranks::call(&c, &a, 1, &b, 1, diag);
}
constexpr char kSum[] = "astra.mesh.all_reduce/data=2/data/sum", kMost[] = "astra.mesh.all_reduce/data=2/data/max";

} // namespace

TEST(Failures, ARankThatLeaves) {
  Threads t(2);
  astra_diag diag = ASTRA_INIT(astra_diag);
  auto begun = Clock::now();
  std::thread other([&] { astra_ranks_free(&t.ranks[1]); });
  EXPECT_EQ(reduce(t.ranks[0], kSum, 1, 10, &diag), ASTRA_PEER_LOST);
  other.join();
  EXPECT_LT(secondsSince(begun), 1.5);
  EXPECT_NE(std::string(diag.text).find("rank 1 has ended"), std::string::npos) << diag.text;
  EXPECT_NE(std::string(diag.text).find("collective 1, 'astra.mesh.all_reduce/data=2/data/sum', on rank 0"),
            std::string::npos);
  // From now on nothing is tried.
  EXPECT_EQ(reduce(t.ranks[0], kSum, 1, 10, &diag), ASTRA_PEER_LOST);
  EXPECT_NE(std::string(diag.text).find("earlier"), std::string::npos);
}

TEST(Failures, ARankThatDoesNotMove) {
  for (int64_t n : {10, 100000, 10000000}) { // in the ring, and read where it is
    Threads t(2, 300);
    astra_diag diag = ASTRA_INIT(astra_diag);
    auto begun = Clock::now();
    EXPECT_EQ(reduce(t.ranks[0], kSum, 1, n, &diag), ASTRA_PEER_LOST);
    EXPECT_LT(secondsSince(begun), 2);
    EXPECT_NE(std::string(diag.text).find("rank 1 has not moved for 300 ms"), std::string::npos) << diag.text;
  }
}

TEST(Failures, AFailureReachesTheOthers) {
  Threads t(3, 5000);
  auto begun = Clock::now();
  std::vector<Status> status(3);
  std::vector<std::thread> threads;
  // Rank 2 never comes; rank 0 gives up at once, since it is told to; rank 1 hears of it.
  threads.emplace_back([&] {
    t.ranks[0]->engine.stop(t.ranks[0]->engine.self);
    status[0] = ASTRA_PEER_LOST;
  });
  astra_diag diag = ASTRA_INIT(astra_diag);
  status[1] = reduce(t.ranks[1], "astra.mesh.all_reduce/data=3/data/sum", 1, 10, &diag);
  threads[0].join();
  EXPECT_EQ(status[1], ASTRA_PEER_LOST);
  EXPECT_NE(std::string(diag.text).find("rank 0 has failed"), std::string::npos) << diag.text;
  EXPECT_LT(secondsSince(begun), 2);
}

TEST(Failures, RanksInDifferentCollectives) {
  struct {
    const char *names[2];
    int64_t n[2];
  } rows[] = {{{kSum, kMost}, {10, 10}}, {{kSum, kSum}, {10, 20}}, {{kSum, kSum}, {100000, 20}}};
  for (auto &row : rows) {
    Threads t(2, 1000);
    astra_diag diags[2] = {ASTRA_INIT(astra_diag), ASTRA_INIT(astra_diag)};
    Status status[2];
    std::thread other([&] { status[1] = reduce(t.ranks[1], row.names[1], 1, row.n[1], &diags[1]); });
    status[0] = reduce(t.ranks[0], row.names[0], 1, row.n[0], &diags[0]);
    other.join();
    EXPECT_TRUE(status[0] == ASTRA_PEER_DIFFERS || status[1] == ASTRA_PEER_DIFFERS);
    for (int r : {0, 1}) {
      ASSERT_NE(status[r], ASTRA_OK);
      if (status[r] != ASTRA_PEER_DIFFERS) continue;
      std::string text = diags[r].text;
      EXPECT_NE(text.find("rank 0 is in collective 1"), std::string::npos + (r == 0 ? 0 : 1)) << text;
      EXPECT_NE(text.find(std::string("'") + row.names[1 - r] + "', of " + std::to_string(row.n[1 - r] * 4) + " bytes"),
                std::string::npos)
          << text;
    }
  }
}

TEST(Failures, TwoCallsAtOnce) {
  Threads t(2, 500);
  std::thread waits([&] { reduce(t.ranks[0], kSum, 1, 10, nullptr); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  astra_diag diag = ASTRA_INIT(astra_diag);
  EXPECT_EQ(reduce(t.ranks[0], kSum, 1, 10, &diag), ASTRA_BUSY);
  waits.join();
}

TEST(Failures, KilledProcessesEndTheOthers) {
  // 12 jobs of three processes; one is killed, or stopped, at a random moment.
  std::mt19937 random(5);
  for (int job = 0; job < 12; job++) {
    constexpr int R = 3;
    bool hang = job % 4 == 3;
    std::string key = "test-" + std::to_string(getpid()) + "-" + std::to_string(job);
    std::vector<pid_t> children;
    int64_t n = job % 2 ? 2000000 : 100;
    for (int r = 0; r < R; r++) {
      pid_t pid = fork();
      if (pid == 0) {
        setenv("ASTRA_RANK", std::to_string(r).c_str(), 1);
        setenv("ASTRA_RANKS", std::to_string(R).c_str(), 1);
        setenv("ASTRA_JOB", key.c_str(), 1);
        astra_ranks *ranks;
        astra_ranks_options o = ASTRA_INIT(astra_ranks_options);
        o.timeout = 700;
        astra_diag diag = ASTRA_INIT(astra_diag);
        if (astra_ranks_init(&ranks, &o, &diag)) _exit(99);
        for (;;)
          if (Status s = reduce(ranks, "astra.mesh.all_reduce/data=3/data/sum", 1, n, &diag))
            _exit(s == ASTRA_PEER_LOST ? 55 : 98);
      }
      children.push_back(pid);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100000 + random() % 100000));
    int victim = int(random() % R);
    kill(children[victim], hang ? SIGSTOP : SIGKILL);
    auto begun = Clock::now();
    for (int r = 0; r < R; r++) {
      if (r == victim) continue;
      int status = 0;
      waitpid(children[r], &status, 0);
      EXPECT_TRUE(WIFEXITED(status)) << status;
      EXPECT_EQ(WEXITSTATUS(status), 55) << "job " << job << " rank " << r;
    }
    EXPECT_LT(secondsSince(begun), 5);
    kill(children[victim], SIGKILL);
    waitpid(children[victim], nullptr, 0);
  }
}
