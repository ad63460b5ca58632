//===- Emulator.cpp: launches, thread by thread ----------------------------===//
// Takes:    the host build of a kernel and what a launch is given.
// Gives:    its effect, or a sentence.
// Keeps:    one block after the other, in an order that the seed gives; in a block each warp runs until a barrier, its
//           lanes together from exchange to exchange.
#include "astra/Emulator/Emulator.h"
#include "Memory.h"
#include <algorithm>
#include <numeric>
#include <utility>

using namespace astra;
using namespace astra::emulator;

namespace {
using HostKernel = void *(*)(Thread *, void **);
using Resume = void (*)(void *);

/// A sequence of numbers from a seed, the same on every machine.
struct Random {
  uint64_t state;
  uint32_t operator()() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return uint32_t(state >> 33);
  }
  void shuffle(std::vector<uint32_t> &xs) {
    for (size_t i = xs.size(); i > 1; --i) std::swap(xs[i - 1], xs[(*this)() % i]);
  }
};
} // namespace

namespace {

/// A block of threads, used for one block of the grid after the other.
class Block {
public:
  Block(Launch &launch, HostKernel kernel, void **arguments, unsigned threads, unsigned warp)
      : launch(launch), kernel(kernel), arguments(arguments), warp(warp), threads(threads), memory(threads),
        handles(threads) {}

  /// Runs all threads; false after a fault.
  bool run(uint32_t number, Random &random) {
    launch.beginBlock();
    for (uint32_t t = 0; t < threads.size(); ++t) {
      threads[t] = {};
      threads[t].number = t, threads[t].block = number;
      launch.attach(threads[t]);
      threads[t].allocate = [](Thread *x, uint64_t bytes) {
        return static_cast<Block *>(static_cast<Launch *>(x->self)->block)->allocate(x->number, bytes);
      };
      threads[t].received = [](Thread *x) {
        auto &all = static_cast<Block *>(static_cast<Launch *>(x->self)->block)->threads;
        return x->from < all.size() ? all[x->from].word[x->parity] : 0;
      };
      threads[t].fragmentOf = [](Thread *x, uint32_t lane, uint32_t i) {
        auto &all = static_cast<Block *>(static_cast<Launch *>(x->self)->block)->threads;
        return lane < all.size() && i < 8 ? all[lane].fragment[x->parity][i] : 0;
      };
      handles[t] = nullptr;
    }
    launch.block = this;
    started.assign(threads.size(), 0), ready.assign(threads.size(), 1);
    std::vector<uint32_t> warps(threads.size() / warp);
    std::iota(warps.begin(), warps.end(), 0);
    while (true) {
      ran = false;
      random.shuffle(warps);
      for (uint32_t w : warps)
        if (!runWarp(w * warp, random)) return false;
      bool came = random() & 1 && launch.deliver(random());
      auto waits = [&](Wait why) { return std::ranges::all_of(threads, [&](auto &t) { return t.wait == why; }); };
      if (waits(Wait::None)) return mayEnd();
      Thread &some = threads[0];
      if (waits(Wait::Barrier) && std::ranges::all_of(threads, [&](auto &t) { return together(t, some); })) {
        launch.passBarrier();
        ready.assign(threads.size(), 1);
      } else if (!ran && !came && !launch.deliver(random()))
        return stuck();
    }
  }

private:
  /// Whether both have ended, or wait at the same place.
  static bool together(const Thread &a, const Thread &b) {
    return a.wait == b.wait && (a.wait == Wait::None || a.site == b.site);
  }
  /// All lanes of a warp until a barrier, a phase that is not over, or the end.
  bool runWarp(uint32_t begin, Random &random) {
    std::vector<uint32_t> lanes(warp);
    std::iota(lanes.begin(), lanes.end(), begin);
    while (true) {
      random.shuffle(lanes);
      for (uint32_t t : lanes) {
        if (!std::exchange(ready[t], 0)) continue;
        ran = true;
        if (!std::exchange(started[t], 1))
          handles[t] = kernel(&threads[t], arguments);
        else
          (*static_cast<Resume *>(handles[t]))(handles[t]);
        if (launch.failed()) return false;
      }
      bool goesOn = false, waitsForPhase = false;
      for (uint32_t t : lanes) {
        if (threads[t].wait != Wait::Phase) continue;
        waitsForPhase = true;
        if (launch.isOver(threads[t])) ready[t] = goesOn = true;
      }
      if (goesOn) continue;
      if (waitsForPhase) return true; // lanes go their own ways until it is over
      Thread &some = threads[begin];
      if (std::ranges::all_of(lanes, [&](uint32_t t) { return threads[t].wait == Wait::None; })) return true;
      for (uint32_t t : lanes)
        if (!together(threads[t], some)) return launch.fault(threads[t], "waits where other lanes of its warp do not");
      if (some.wait != Wait::Exchange) return true;
      for (uint32_t t : lanes) {
        if (threads[t].from / warp != t / warp) return launch.fault(threads[t], "reads a lane of another warp");
        ready[t] = 1;
      }
    }
  }
  bool mayEnd() {
    return std::ranges::all_of(threads, [&](const Thread &t) { return launch.mayEnd(t); }) &&
           launch.mayEndBlock(threads[0]);
  }
  /// Nobody can go on.
  bool stuck() {
    for (Thread &t : threads)
      if (t.wait == Wait::Phase) return launch.fault(t, "waits for a phase of a barrier that nobody ends");
    for (Thread &t : threads)
      if (!together(t, threads[0])) return launch.fault(t, "waits where other threads do not");
    return launch.fault(threads[0], "waits for nothing");
  }
  void *allocate(uint32_t thread, uint64_t bytes) {
    memory[thread].resize((bytes + 15) / 16);
    return memory[thread].data();
  }

  struct alignas(16) Sixteen {
    uint8_t bytes[16];
  };
  Launch &launch;
  HostKernel kernel;
  void **arguments;
  unsigned warp;
  std::vector<Thread> threads;
  std::vector<std::vector<Sixteen>> memory;
  std::vector<void *> handles;
  std::vector<uint8_t> started, ready; // whether a thread has begun, may go on
  bool ran = false;                    // some thread, since it was last asked
};

} // namespace

std::string astra::emulate(const EmulatedKernel &k, std::span<const EmulatedBuffer> buffers,
                           std::span<const int64_t> numbers, int64_t items, EmulatedRun &run,
                           std::span<const EmulatedMap> maps) {
  uint64_t perBlock = k.threads / k.group, blocks = (uint64_t(items) + perBlock - 1) / perBlock;
  if (blocks > INT32_MAX)
    return "kernel '" + k.name + "': " + std::to_string(blocks) + " blocks; a launch has at most 2147483647";
  Launch launch(k.name, buffers, k.shared);
  std::vector<void *> pointers, arguments;
  for (const EmulatedBuffer &b : buffers) pointers.push_back(launch.placeOf(b));
  for (void *&p : pointers) arguments.push_back(&p);
  for (const int64_t &n : numbers) arguments.push_back(const_cast<int64_t *>(&n));
  for (const EmulatedMap &m : maps) arguments.push_back(const_cast<EmulatedMap *>(&m));
  launch.setMaps(maps);
  Random random{run.seed};
  std::vector<uint32_t> order(blocks);
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(order);
  Block block(launch, reinterpret_cast<HostKernel>(const_cast<void *>(k.code)), arguments.data(), k.threads, k.warp);
  for (uint32_t b : order) {
    run.threads += k.threads;
    if (!block.run(b, random)) return launch.sentence();
  }
  return "";
}
