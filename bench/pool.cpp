//===- pool.cpp: how long a pool takes --------------------------------------===//
// Takes:    nothing. Build and run, after `scripts/build AstraRuntimeStatic`:
//             clang++-22 -std=c++20 -O2 -Iinclude bench/pool.cpp build/lib/libastra_rt.a -lpthread -o build/pool &&
//             build/pool
// Gives:    nanoseconds of astra_buffer_init that is served by one of 10,000 free blocks of different sizes, and of
//           astra_buffer_free that gives it back: least and median of 100 rounds of 1,000 calls. Beside it malloc
//           and free.
// Keeps:    no two free blocks touch, so none becomes one with another; every request is a hit.
// Does not: touch the memory.
#include "astra/astra.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kFree = 10000, kRounds = 100, kCalls = 1000;

void report(const char *what, std::vector<double> &values) {
  std::sort(values.begin(), values.end());
  std::printf(" %s %4.0f ns, median %4.0f ns", what, values[0], values[values.size() / 2]);
}

/// Times `make` and `drop`, round by round.
template <typename Make, typename Drop>
void time(const char *what, const std::vector<uint64_t> &sizes, Make make, Drop drop) {
  std::mt19937_64 random(3);
  std::vector<double> making, dropping;
  for (size_t round = 0; round < kRounds; round++) {
    std::vector<uint64_t> wanted(kCalls);
    for (uint64_t &bytes : wanted) bytes = sizes[random() % sizes.size()];
    Clock::time_point begin = Clock::now();
    for (size_t i = 0; i < kCalls; i++) make(i, wanted[i]);
    Clock::time_point made = Clock::now();
    for (size_t i = 0; i < kCalls; i++) drop(i);
    Clock::time_point end = Clock::now();
    auto each = [](Clock::duration d) { return std::chrono::duration<double, std::nano>(d).count() / kCalls; };
    making.push_back(each(made - begin)), dropping.push_back(each(end - made));
  }
  std::printf("%-12s", what);
  report("make", making);
  report("  free", dropping);
  std::printf("\n");
}

} // namespace

int main() {
  astra::Runtime runtime;
  astra::Device device(runtime, "cpu");
  astra::Pool pool(device);
  std::mt19937_64 random(1);
  std::vector<uint64_t> sizes(kFree);
  for (uint64_t &bytes : sizes) bytes = 64 + random() % 100000 / 64 * 64;
  std::vector<astra::Buffer> kept, freed;
  for (uint64_t bytes : sizes) freed.emplace_back(pool, bytes), kept.emplace_back(pool, 64);
  freed.clear();
  astra_pool_stats before = ASTRA_INIT(astra_pool_stats), after = before;
  astra_pool_get_stats(pool.get(), &before);
  std::vector<astra_buffer *> buffers(kCalls);
  time(
      "pool", sizes, [&](size_t i, uint64_t bytes) { astra_buffer_init(&buffers[i], pool.get(), bytes, nullptr); },
      [&](size_t i) { astra_buffer_free(&buffers[i]); });
  astra_pool_get_stats(pool.get(), &after);
  std::printf("             %llu of %zu requests were hits\n",
              static_cast<unsigned long long>(after.recycled - before.recycled), kRounds * kCalls);
  std::vector<void *> memory(kCalls);
  time(
      "malloc", sizes, [&](size_t i, uint64_t bytes) { memory[i] = std::malloc(bytes); },
      [&](size_t i) { std::free(memory[i]); });
}
