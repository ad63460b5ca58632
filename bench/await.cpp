//===- await.cpp: how soon a coroutine goes on ------------------------------===//
// Takes:    a number of rounds (10000 where none is given). Build and run, after `scripts/build AstraRuntimeStatic`:
//             clang++-22 -std=c++20 -O2 -Iinclude bench/await.cpp build/lib/libastra_rt.a -lpthread -o build/await &&
//             build/await
// Gives:    nanoseconds from the moment when a promise has ended, as the first function of astra_promise_on_ready sees
//           it, until the coroutine that awaits it runs again: median, 90th and 99th percentile; of the same promise
//           the time until a thread in astra_promise_wait, and one in poll(2) on its descriptor, goes on.
// Keeps:    the promise ends on a worker, after a copy of 256 KiB, so that who waits does so before it ends.
// Does not: measure a kernel.
#include "astra/async.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <poll.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

struct Round {
  Clock::time_point ended, resumed;
  std::mutex mutex;
  std::condition_variable changed;
  bool isDone = false;
};

void note(void *self, astra_status) { static_cast<Round *>(self)->ended = Clock::now(); }

Detached await(astra::Promise &promise, Round &round) {
  co_await promise;
  round.resumed = Clock::now();
  std::lock_guard lock(round.mutex);
  round.isDone = true;
  round.changed.notify_all();
}

void report(const char *what, std::vector<double> &ns) {
  std::sort(ns.begin(), ns.end());
  std::printf("%-28s %9.0f %9.0f %9.0f\n", what, ns[ns.size() / 2], ns[ns.size() * 9 / 10], ns[ns.size() * 99 / 100]);
}

} // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 10000;
  if (rounds < 1) return std::fprintf(stderr, "the number of rounds is not above 0\n"), 2;
  constexpr uint64_t kBytes = 256 << 10;
  astra::Runtime runtime;
  astra_device_options options = ASTRA_INIT(astra_device_options);
  options.num_threads = 2;
  astra::Device device(runtime, "cpu", &options);
  astra::Pool pool(device);
  astra::Buffer buffer(pool, kBytes);
  astra::Stream stream(device);
  std::vector<char> from(kBytes);
  std::vector<double> coroutine, waiting, polling;
  auto since = [](Clock::time_point begin, Clock::time_point end) {
    return std::chrono::duration<double, std::nano>(end - begin).count();
  };
  for (int i = 0; i < rounds; i++) {
    astra::Promise promise = stream.write(buffer, 0, from.data(), kBytes);
    Round round;
    promise.onReady(note, &round);
    if (i % 3 == 0) {
      await(promise, round);
      std::unique_lock lock(round.mutex);
      round.changed.wait(lock, [&] { return round.isDone; });
      coroutine.push_back(since(round.ended, round.resumed));
    } else if (i % 3 == 1) {
      promise.wait();
      Clock::time_point now = Clock::now();
      stream.mark().wait(); // who ends the call has called its functions before what follows
      waiting.push_back(since(round.ended, now));
    } else {
      pollfd wanted{promise.descriptor(), POLLIN, 0};
      poll(&wanted, 1, -1);
      polling.push_back(since(round.ended, Clock::now()));
      close(wanted.fd);
    }
  }
  std::printf("%-28s %9s %9s %9s\n", "ns after the end", "median", "90 %", "99 %");
  report("coroutine resumed", coroutine);
  if (rounds >= 2) report("astra_promise_wait returned", waiting);
  if (rounds >= 3) report("poll of its descriptor", polling);
}
