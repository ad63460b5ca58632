//===- PoolTest.cpp: recycled memory ---------------------------------------===//
// Takes:    pools of a CPU.
// Checks:   best fit against brute force; splits and merges that never share a byte; what is wasted, held and counted;
//           limits and trims; blocks that a call uses, freed by other threads.
// Does not: time (bench/pool.cpp).
#include "Client.h"

#include <fstream>
#include <map>
#include <random>
#include <thread>

using namespace astra::test;

namespace {

struct Pools : testing::Test {
  Diag diag;
  Runtime runtime;
  Device device;
  Pool pool;
  Pools() {
    EXPECT_OK(astra_runtime_init(runtime.out(), nullptr, &diag));
    EXPECT_OK(astra_device_init(device.out(), runtime, "cpu", nullptr, &diag));
    EXPECT_OK(astra_pool_init(pool.out(), device, nullptr, &diag));
  }
  Buffer make(uint64_t bytes) {
    Buffer b;
    EXPECT_OK(astra_buffer_init(b.out(), pool, bytes, &diag));
    return b;
  }
  astra_pool_stats stats() {
    astra_pool_stats s = ASTRA_INIT(astra_pool_stats);
    EXPECT_OK(astra_pool_get_stats(pool, &s));
    return s;
  }
  static char *at(const Buffer &b) { return static_cast<char *>(astra_buffer_data(b)); }
};

TEST_F(Pools, TheSmallestThatFitsServes) {
  // Free parts of 4, 1 and 2 KiB between buffers that stay.
  Buffer segment = make(64 << 10);
  segment = Buffer();
  Buffer a = make(4096), x = make(64), b = make(1024), y = make(64), c = make(2048), z = make(64);
  char *places[] = {at(a), at(b), at(c)};
  EXPECT_EQ(stats().fresh, 1u) << "all from one segment";
  a = Buffer(), b = Buffer(), c = Buffer();
  Buffer two = make(2048), one = make(700), four = make(2049);
  EXPECT_EQ(at(two), places[2]);
  EXPECT_EQ(at(one), places[1]);
  EXPECT_EQ(at(four), places[0]);
  EXPECT_EQ(stats().fresh, 1u);
  EXPECT_EQ(stats().bytes_in_use, 2048u + 704 + 2112 + 3 * 64);
}

TEST_F(Pools, FreedNeighboursBecomeOne) {
  std::vector<Buffer> parts(16);
  {
    Buffer segment = make(16 << 10);
  }
  for (Buffer &p : parts) p = make(1024);
  char *first = at(parts[0]);
  std::mt19937 random(1);
  std::shuffle(parts.begin(), parts.end(), random);
  parts.clear();
  Buffer whole = make(16 << 10);
  EXPECT_EQ(at(whole), first);
  EXPECT_EQ(stats().fresh, 1u);
}

TEST_F(Pools, ALargeSegmentIsNotCarvedUpForLittle) {
  char *place;
  {
    Buffer large = make(64 << 20);
    place = at(large);
  }
  Buffer little = make(4096);
  EXPECT_EQ(stats().fresh, 2u);
  Buffer again = make(64 << 20);
  EXPECT_EQ(at(again), place);
  again = Buffer();
  Buffer quarter = make(16 << 20);
  EXPECT_EQ(at(quarter), place);
}

TEST_F(Pools, WhereTheLimitIsNearEverythingServes) {
  Pool limited;
  astra_pool_options o = ASTRA_INIT(astra_pool_options);
  o.max_bytes = 64 << 20;
  EXPECT_OK(astra_pool_init(limited.out(), device, &o, &diag));
  std::swap(pool, limited);
  {
    Buffer all = make(64 << 20);
  }
  Buffer little = make(4096);
  EXPECT_EQ(stats().fresh, 1u) << "carved, since new memory would be above the limit";
  EXPECT_EQ(stats().bytes_held, uint64_t(64) << 20);
  Buffer none;
  EXPECT_FAIL(ASTRA_OUT_OF_MEMORY, "no memory for", astra_buffer_init(none.out(), pool, 64 << 20, &diag));
  little = Buffer();
  {
    Buffer all = make(64 << 20);
  }
  EXPECT_EQ(astra_pool_trim(pool), ASTRA_OK);
  EXPECT_EQ(stats().bytes_held, 0u);
  std::swap(pool, limited);
}

/// Requests and frees that are drawn, in four manners, none recorded from a program: no two buffers share a byte, what
/// they hold stays, and the counters say what is.
TEST_F(Pools, RandomTraces) {
  struct Trace {
    const char *name;
    uint64_t (*size)(std::mt19937_64 &);
    size_t live;
    bool newestFirst;
  } traces[] = {
      {"activations", [](std::mt19937_64 &r) { return uint64_t(4096) << r() % 9; }, 30, true},
      {"any sizes", [](std::mt19937_64 &r) { return (uint64_t(1) << r() % 20) + r() % 4096; }, 100, false},
      {"batches", [](std::mt19937_64 &r) { return (1 + r() % 64) * 3000; }, 40, false},
      {"growing",
       [](std::mt19937_64 &r) {
         static uint64_t n;
         return 65536 + (n += r() % 512);
       },
       20, true},
  };
  for (const Trace &t : traces) {
    Pool own;
    EXPECT_OK(astra_pool_init(own.out(), device, nullptr, &diag));
    std::swap(pool, own);
    {
      std::mt19937_64 random(7);
      std::map<char *, std::pair<Buffer, uint64_t>> live;
      std::vector<char *> order;
      uint64_t held = 0, requested = 0;
      for (int i = 0; i < 5000; i++) {
        bool frees = !live.empty() && (live.size() >= t.live || random() % 3 == 0);
        if (frees) {
          size_t k = t.newestFirst && random() % 4 ? order.size() - 1 : random() % order.size();
          char *p = order[k];
          order.erase(order.begin() + long(k));
          auto &[buffer, bytes] = live[p];
          EXPECT_EQ(p[0], char(bytes)) << t.name;
          EXPECT_EQ(p[bytes - 1], char(bytes)) << t.name;
          requested -= bytes;
          live.erase(p);
          continue;
        }
        uint64_t bytes = t.size(random);
        Buffer b = make(bytes);
        char *p = at(b);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
        auto next = live.lower_bound(p);
        EXPECT_TRUE(next == live.end() || p + bytes <= next->first) << t.name;
        EXPECT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second.second <= p) << t.name;
        p[0] = p[bytes - 1] = char(bytes);
        live[p] = {std::move(b), bytes};
        order.push_back(p);
        requested += bytes;
        astra_pool_stats s = stats();
        held = std::max(held, s.bytes_held);
        EXPECT_LE(s.bytes_in_use, 2 * requested + live.size() * 64) << t.name;
      }
      astra_pool_stats s = stats();
      printf("%-12s peak %9llu held %9llu ratio %.3f fresh %llu recycled %llu\n", t.name,
             static_cast<unsigned long long>(s.peak_in_use), static_cast<unsigned long long>(held),
             double(held) / double(s.peak_in_use), static_cast<unsigned long long>(s.fresh),
             static_cast<unsigned long long>(s.recycled));
      EXPECT_LE(double(held), 1.25 * double(s.peak_in_use)) << t.name;
    }
    EXPECT_EQ(stats().bytes_in_use, 0u) << t.name;
    EXPECT_EQ(astra_pool_trim(pool), ASTRA_OK);
    EXPECT_EQ(stats().bytes_held, 0u) << t.name << ": every segment is whole again";
    std::swap(pool, own);
  }
}

/// What programs asked of a pool (traces/README.md): numbers are requests of so many bytes, -k frees the k-th last one.
TEST_F(Pools, RecordedTraces) {
  for (const char *name : {"cartpole", "tabular", "digits", "batches"}) {
    std::ifstream file(ASTRA_TRACES + std::string("/") + name + ".txt");
    Pool own;
    EXPECT_OK(astra_pool_init(own.out(), device, nullptr, &diag));
    std::swap(pool, own);
    std::vector<Buffer> made;
    uint64_t held = 0;
    for (long long event; file >> event;) {
      if (event < 0) {
        ASSERT_LE(uint64_t(-event), made.size()) << name;
        Buffer &b = made[made.size() - uint64_t(-event)];
        ASSERT_TRUE(b) << name << " frees a buffer twice";
        b = Buffer();
        continue;
      }
      made.push_back(make(uint64_t(event)));
      held = std::max(held, stats().bytes_held);
    }
    EXPECT_TRUE(file.eof()) << name;
    EXPECT_GE(made.size(), 1000u) << name;
    astra_pool_stats s = stats();
    printf("%-12s peak %9llu held %9llu ratio %.3f fresh %llu recycled %llu\n", name,
           static_cast<unsigned long long>(s.peak_in_use), static_cast<unsigned long long>(held),
           double(held) / double(s.peak_in_use), static_cast<unsigned long long>(s.fresh),
           static_cast<unsigned long long>(s.recycled));
    EXPECT_LE(double(held), 1.25 * double(s.peak_in_use)) << name;
    made.clear();
    EXPECT_EQ(stats().bytes_in_use, 0u) << name;
    std::swap(pool, own);
  }
}

/// Buffers that one thread makes and another frees.
TEST_F(Pools, FreedByOtherThreads) {
  const int rounds = getenv("ASTRA_NIGHTLY") ? 250000 : 5000;
  std::vector<std::atomic<astra_buffer *>> slots(64);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      std::mt19937 random(unsigned(t) + 1);
      for (int i = 0; i < rounds; i++) {
        astra_buffer *b = nullptr;
        wrong += astra_buffer_init(&b, pool, 1 + random() % 5000, nullptr) != ASTRA_OK;
        b = slots[random() % slots.size()].exchange(b);
        wrong += astra_buffer_free(&b) != ASTRA_OK;
      }
    });
  for (std::thread &t : threads) t.join();
  for (auto &slot : slots) {
    astra_buffer *b = slot.exchange(nullptr);
    EXPECT_EQ(astra_buffer_free(&b), ASTRA_OK);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(stats().bytes_in_use, 0u);
  EXPECT_LE(stats().bytes_held, stats().peak_in_use + stats().peak_in_use / 4);
}

} // namespace
