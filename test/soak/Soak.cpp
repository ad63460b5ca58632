//===- Soak.cpp: mixed calls for a long time ---------------------------------===//
// Takes:    --seconds=N (10; under ASTRA_NIGHTLY 600), --seed=N, --threads=N (4).
// Does:     threads that share a CPU, a GPU on the stand-in driver, their streams and their pools do, in random order:
//           calls waited for in every way, views and parts of arrays, chains over streams and devices, cancels,
//           failures and refusals, bundles loaded and unloaded, pools trimmed. Once a second all of them rest.
// Checks:   every result, every status. No wait takes more than a minute (a lost wake-up). Where all rest, the bytes
//           that the runtime has of its allocator are those of the beginning but for its lists of spare descriptions;
//           the process's resident memory in the last quarter is that of the second. At the end nothing is left.
// Gives:    a line a minute and a last one; exit code 1 and a sentence when something is wrong.
#include "StandIn.h"
#include "TestBundle.h"
#include "astra/astra.hpp"
#include "astra/tensor.hpp"

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <poll.h>
#include <random>
#include <thread>
#include <unistd.h>

using namespace astra;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kPatience = 60; // seconds that a wait may take

[[noreturn]] void wrong(const char *format, ...) {
  va_list args;
  va_start(args, format);
  std::fprintf(stderr, "soak: ");
  std::vfprintf(stderr, format, args);
  std::fprintf(stderr, "\n");
  std::fflush(stderr);
  std::_Exit(1);
}
void expect(bool holds, const char *what) {
  if (!holds) wrong("%s does not hold", what);
}
void expectStatus(astra_status is, astra_status should, const char *what) {
  if (is != should) wrong("%s gives %s in place of %s", what, astra_status_name(is), astra_status_name(should));
}

//===- Memory ----------------------------------------------------------------===//

std::atomic<int64_t> liveBytes{0};

void *take(void *, size_t bytes, size_t alignment) {
  void *memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory) liveBytes += int64_t(bytes);
  return memory;
}
void giveBack(void *, void *memory, size_t bytes, size_t) {
  liveBytes -= int64_t(bytes);
  std::free(memory);
}

int64_t residentBytes() {
  std::ifstream in("/proc/self/statm");
  int64_t all = 0, resident = 0;
  in >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t median(std::vector<int64_t> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

//===- What the threads share ------------------------------------------------===//

struct Side { // a device
  Device device;
  Pool pool;
  std::vector<Stream> streams;
  std::unique_ptr<Loaded> loaded;
};

struct Shared {
  std::vector<uint8_t> bytes; // of the bundle
  const uint8_t *aligned = nullptr;
  std::string path; // the same as a file
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<Bundle> bundle;
  Side sides[2];
  std::atomic<bool> stop{false};
  std::vector<std::atomic<int64_t>> progress;
  explicit Shared(size_t threads) : progress(threads) {}
};

/// Who is told by a function.
struct Told {
  std::mutex mutex;
  std::condition_variable changed;
  bool isTold = false;
  astra_status status = ASTRA_OK;
  static void tell(void *self, astra_status status) {
    auto *told = static_cast<Told *>(self);
    std::lock_guard lock(told->mutex); // notified under the lock: `told` may go away right after
    expect(!told->isTold, "that a function is called once");
    told->isTold = true, told->status = status;
    told->changed.notify_all();
  }
  astra_status wait() {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, std::chrono::seconds(kPatience), [&] { return isTold; }))
      wrong("a function of a promise is not called for %d seconds: a lost wake-up", kPatience);
    return status;
  }
};

class Worker {
public:
  Worker(Shared &shared, unsigned number, uint64_t seed)
      : shared(shared), number(number), random(seed * 1000003 + number) {}

  /// Random actions until it is time to rest; everything that they made is gone then.
  void round(Clock::time_point until) {
    do {
      static constexpr void (Worker::*actions[])() = {
          &Worker::call,   &Worker::call,     &Worker::call,    &Worker::views, &Worker::parts, &Worker::chain,
          &Worker::cancel, &Worker::failures, &Worker::refused, &Worker::load,  &Worker::trim,  &Worker::compact};
      size_t which = random() % std::size(actions);
      (this->*actions[which])();
      shared.progress[number].fetch_add(1, std::memory_order_relaxed);
    } while (Clock::now() < until);
  }

private:
  Side &side() { return shared.sides[random() % 2]; }
  static Stream &streamOf(Side &s, uint64_t n) { return s.streams[n % s.streams.size()]; }
  Session session(Side &s) { return Session(*s.loaded, {{"cap", 8}, {"count", 3}}); }
  std::vector<float> values(size_t n) {
    std::vector<float> v(n);
    for (float &x : v) x = float(int64_t(random() % 2001) - 1000);
    return v;
  }
  int64_t length() { return int64_t(random() % (random() % 4 ? 64 : 5001)); }

  /// In one of the ways there are; also frees the promise at some time.
  astra_status wait(Promise promise) {
    astra_diag diag = ASTRA_INIT(astra_diag);
    switch (random() % 5) {
    case 0:
    case 1: return astra_promise_wait(promise.get(), &diag);
    case 2: {
      Told told;
      promise.onReady(Told::tell, &told);
      if (random() % 2) promise.free(); // before it has ended
      return told.wait();
    }
    case 3: {
      pollfd ready{promise.descriptor(), POLLIN, 0};
      if (poll(&ready, 1, kPatience * 1000) != 1)
        wrong("a descriptor of a promise is not ready for %d seconds: a lost wake-up", kPatience);
      close(ready.fd);
      astra_status s = astra_promise_poll(promise.get(), &diag);
      expect(s != ASTRA_NOT_READY, "that a promise has ended when its descriptor is ready");
      return s;
    }
    default: {
      auto begin = Clock::now();
      while (true) {
        astra_status s = astra_promise_poll(promise.get(), &diag);
        if (s != ASTRA_NOT_READY) return s;
        if (Clock::now() - begin > std::chrono::seconds(kPatience)) wrong("a promise does not end");
        std::this_thread::yield();
      }
    }
    }
  }
  void waitFor(Promise promise, astra_status should, const char *what) {
    expectStatus(wait(std::move(promise)), should, what);
  }

  void call() {
    Side &s = side();
    Session mine = session(s);
    Tensor<float> x({length()}), y(x.shape), z(x.shape);
    x.values = values(x.count()), y.values = values(y.count());
    waitFor(Call(mine, "add").input(x).input(y).output(z).submit(streamOf(s, random())), ASTRA_OK, "a call");
    for (size_t i = 0; i < x.count(); ++i) expect(z.values[i] == x.values[i] + y.values[i], "a sum");
  }

  /// Halves of a buffer, each read and written through views by calls that the streams order.
  void views() {
    Side &s = side();
    Stream &stream = streamOf(s, random());
    Session mine = session(s);
    int64_t n = 16 * (1 + length() % 4900 / 16);
    uint64_t bytes = uint64_t(n) * 4;
    Buffer both(s.pool, 2 * bytes), first(both, 0, bytes), second(both, bytes, bytes);
    if (random() % 2) both.free(); // its views keep the block
    std::vector<float> x = values(size_t(n)), got(x.size(), 0);
    Promise in = stream.write(first, 0, x.data(), bytes);
    Promise run = Call(mine, "double").input(first, ASTRA_F32, {n}).output(second, ASTRA_F32, {n}).submit(stream);
    Promise out = stream.read(got.data(), second, 0, bytes);
    first.free(), second.free(); // the calls keep them
    waitFor(std::move(out), ASTRA_OK, "a copy from a buffer");
    waitFor(std::move(run), ASTRA_OK, "a call on views");
    for (size_t i = 0; i < x.size(); ++i) expect(got[i] == 2 * x[i], "a double");
  }

  /// Interleaved parts of one array, written by calls on several streams at once.
  void parts() {
    Side &s = shared.sides[0];
    constexpr int64_t kParts = 3;
    int64_t n = 1 + length() % 5000;
    std::vector<float> all(size_t(n * kParts), -1), x = values(size_t(n));
    astra_tensor t = ASTRA_INIT(astra_tensor), in = t;
    int64_t shape = n * kParts;
    t.data = all.data(), t.data_bytes = all.size() * 4, t.dtype = ASTRA_F32, t.ndim = 1, t.shape = &shape;
    in.data = x.data(), in.data_bytes = x.size() * 4, in.dtype = ASTRA_F32, in.ndim = 1, in.shape = &n;
    astra_view whole = ASTRA_INIT(astra_view), part[kParts];
    expectStatus(astra_view_init(&whole, &t, nullptr), ASTRA_OK, "a view");
    std::vector<Session> sessions;
    std::vector<Promise> promises;
    for (int64_t p = 0; p < kParts; ++p) {
      part[p] = ASTRA_INIT(astra_view);
      expectStatus(astra_view_interleaved(&part[p], &whole, 0, p, kParts, nullptr), ASTRA_OK, "a part");
      sessions.push_back(session(s));
      astra_tensor out = ASTRA_INIT(astra_tensor);
      expectStatus(astra_view_describe(&part[p], &out, nullptr), ASTRA_OK, "a description");
      promises.push_back(
          Call(sessions.back(), "double").allowCopy().input(in).output(out).submit(streamOf(s, random())));
    }
    for (Promise &p : promises) waitFor(std::move(p), ASTRA_OK, "a call on a part");
    for (size_t i = 0; i < all.size(); ++i) expect(all[i] == 2 * x[i / kParts], "an element of a part");
  }

  /// Calls on random streams of both devices, each after the one before; the promises between are freed at once.
  void chain() {
    std::vector<Session> sessions;
    std::vector<Tensor<float>> ends;
    size_t length = 2 + random() % 4;
    ends.emplace_back(std::vector<int64_t>{8}, values(8));
    for (size_t i = 0; i < length; ++i) ends.emplace_back(std::vector<int64_t>{8});
    Promise last;
    for (size_t i = 0; i < length; ++i) {
      Side &s = side();
      sessions.push_back(session(s));
      Call c(sessions.back(), "derived"); // x + 3
      c.input(ends[i]).output(ends[i + 1]);
      if (i) c.after(last);
      last = c.submit(streamOf(s, random()));
    }
    waitFor(std::move(last), ASTRA_OK, "a chain");
    for (Session &each : sessions) each.free(); // who has waited for the last finds none in flight
    for (size_t i = 0; i < 8; ++i)
      expect(ends[length].values[i] == ends[0].values[i] + 3 * float(length), "a chain's sum");
  }

  /// What is behind a gate is taken back: it does not run, who waits for it fails, what is behind it goes on.
  void cancel() {
    Side &s = shared.sides[0];
    Stream own(s.device);
    Session gated = session(s), taken = session(s), behind = session(s), other = session(s);
    Tensor<int32_t> gate;
    Tensor<float> y, x({4}, values(4)), a({4}, {-1, -1, -1, -1}), b({4}), c({4}, {-1, -1, -1, -1});
    Promise first = Call(gated, "gate").input(gate).output(y).submit(own);
    Promise second = Call(taken, "double").input(x).output(a).submit(own);
    Promise third = Call(behind, "double").input(x).output(b).submit(own);
    Promise fourth = Call(other, "double").input(x).output(c).after(second).submit(streamOf(s, random()));
    expect(second.cancel(), "that what is behind a gate can be cancelled");
    __atomic_store_n(&gate.values[0], 7, __ATOMIC_RELEASE);
    waitFor(std::move(fourth), ASTRA_DEPENDENCY, "what waits for a cancelled call");
    waitFor(std::move(third), ASTRA_OK, "what is behind a cancelled call");
    waitFor(std::move(second), ASTRA_CANCELLED, "a cancelled call");
    waitFor(std::move(first), ASTRA_OK, "a gate");
    expect(y.values[0] == 7 && a.values[0] == -1 && c.values[3] == -1 && b.values[3] == 2 * x.values[3],
           "what a cancel leaves");
  }

  /// A size that leaves its bounds: who waits fails, the state is lost until it is set.
  void failures() {
    Side &s = side();
    Session mine = session(s), other = session(s);
    Tensor<float> x({5}, values(5)), y, z(x.shape), sum, one({}, {1});
    Promise failed = Call(mine, "overdraw").input(x).output(y).submit(streamOf(s, random()));
    Promise after = Call(other, "double").input(x).output(z).after(failed).submit(streamOf(s, random()));
    waitFor(std::move(after), ASTRA_DEPENDENCY, "what waits for a failure");
    waitFor(std::move(failed), ASTRA_DATA_DIM, "a size beyond its bounds");
    try {
      Call(mine, "accumulate").input(one).output(sum).run(streamOf(s, random()));
      wrong("a lost state is used");
    } catch (const Error &e) {
      expectStatus(e.status(), ASTRA_STATE_LOST, "a lost state");
    }
    mine.reset();
    Call(mine, "accumulate").input(one).output(sum).run(streamOf(s, random()));
    expect(sum.values[0] == 11, "a state that was reset");
  }

  void refused() {
    Side &s = side();
    Session mine = session(s);
    Tensor<float> x({3}, values(3)), y({4}, values(4)), z({3});
    try {
      Call(mine, "add").input(x).input(y).output(z).submit(streamOf(s, random()));
      wrong("unequal shapes are taken");
    } catch (const Error &e) {
      expectStatus(e.status(), ASTRA_WRONG_SHAPE, "unequal shapes");
    }
    Call(mine, "add").input(x).input(x).output(z).run(streamOf(s, random()));
    expect(z.values[2] == 2 * x.values[2], "a call after a refusal");
  }

  /// A bundle from memory or from its file, on a device, with a param of its own, called, and all of it freed.
  void load() {
    Side &s = side();
    Bundle bundle = random() % 2 ? Bundle(*shared.runtime, shared.path)
                                 : Bundle(*shared.runtime, shared.aligned, shared.bytes.size() - 64);
    Loaded loaded(bundle, s.device);
    Tensor<float> w({8, 3}, values(24)), x({2, 3}, values(6)), y({2, 8});
    loaded.setParam("w", w.describe());
    Session mine(loaded, {{"cap", 8}, {"count", 3}});
    waitFor(Call(mine, "apply").input(x).output(y).submit(streamOf(s, random())), ASTRA_OK, "a call of a new bundle");
    for (size_t i = 0; i < 16; ++i) {
      float sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += x.values[i / 8 * 3 + k] * w.values[i % 8 * 3 + k];
      expect(sum == y.values[i], "a product with a param that was set");
    }
  }

  void trim() {
    Side &s = side();
    s.pool.trim();
    astra_pool_stats stats = s.pool.stats();
    expect(stats.bytes_in_use <= stats.bytes_held, "that a pool holds what is in use");
  }

  void compact() {
    Side &s = side();
    Session mine = session(s);
    int64_t n = 1 + length() % 5000;
    Tensor<float> x({n}, values(size_t(n))), v({n}), t;
    Promise p = Call(mine, "compact").input(x).output(v).output(t).submit(streamOf(s, random()));
    astra_status status = astra_promise_wait(p.get(), nullptr);
    expectStatus(status, ASTRA_OK, "a call of a size that it computes");
    std::vector<float> want;
    for (float e : x.values)
      if (e > 0) want.push_back(e);
    expect(p.shape(0) == std::vector<int64_t>{int64_t(want.size())}, "a computed size");
    expect(std::equal(want.begin(), want.end(), v.values.begin()), "what was kept");
  }

  Shared &shared;
  unsigned number;
  std::mt19937_64 random;
};

uint64_t option(int argc, char **argv, const char *name, uint64_t otherwise) {
  size_t length = std::strlen(name);
  for (int i = 1; i < argc; ++i)
    if (!std::strncmp(argv[i], name, length)) return std::strtoull(argv[i] + length, nullptr, 10);
  return otherwise;
}

void prepare(Shared &shared) {
  std::vector<uint8_t> bytes = test::deviceBundle();
  standInBundle(bytes.data(), bytes.size(), true);
  shared.bytes.resize(bytes.size() + 64);
  uint8_t *at = shared.bytes.data() + (64 - reinterpret_cast<uintptr_t>(shared.bytes.data()) % 64) % 64;
  std::copy(bytes.begin(), bytes.end(), at);
  shared.aligned = at;
  char path[] = "/tmp/astra-soak-XXXXXX";
  int file = mkstemp(path);
  expect(file >= 0 && write(file, bytes.data(), bytes.size()) == ssize_t(bytes.size()), "a temporary file");
  close(file);
  shared.path = path;
  astra_allocator allocator = ASTRA_INIT(astra_allocator);
  allocator.allocate = take, allocator.release = giveBack;
  astra_runtime_options options = ASTRA_INIT(astra_runtime_options);
  options.allocator = &allocator;
  shared.runtime = std::make_unique<Runtime>(&options);
  shared.bundle = std::make_unique<Bundle>(*shared.runtime, at, bytes.size());
  const char *names[] = {"cpu", "cuda:0"};
  for (int i = 0; i < 2; ++i) {
    Device::Options o;
    o.threads = i ? 1 : 2;
    if (i) o.driver = ASTRA_STAND_IN;
    shared.sides[i].device = Device(*shared.runtime, names[i], o);
    shared.sides[i].pool = Pool(shared.sides[i].device);
    for (int n = 0; n < 3; ++n) shared.sides[i].streams.emplace_back(shared.sides[i].device);
    shared.sides[i].loaded = std::make_unique<Loaded>(*shared.bundle, shared.sides[i].device);
  }
}

} // namespace

int main(int argc, char **argv) {
  uint64_t seconds = option(argc, argv, "--seconds=", std::getenv("ASTRA_NIGHTLY") ? 600 : 10);
  uint64_t seed = option(argc, argv, "--seed=", 1), threads = option(argc, argv, "--threads=", 4);
  Shared shared(threads);
  prepare(shared);
  auto begin = Clock::now(), until = begin;
  std::vector<int64_t> resident, live;
  std::atomic<uint64_t> rounds{0};
  // All rest, one thread at a time measures; the barrier's function runs while nobody goes on.
  auto rest = [&]() noexcept {
    for (Side &s : shared.sides) {
      for (Stream &stream : s.streams) stream.mark().wait();
      s.pool.trim();
    }
    resident.push_back(residentBytes()), live.push_back(liveBytes.load());
    auto now = Clock::now();
    uint64_t at = uint64_t(std::chrono::duration_cast<std::chrono::seconds>(now - begin).count());
    if (rounds++ % 60 == 0)
      std::printf("%llu s: %.2f MiB resident, %lld bytes of the allocator\n", (unsigned long long)at,
                  double(resident.back()) / 1048576, (long long)live.back()),
          std::fflush(stdout);
    shared.stop = at >= seconds;
    until = now + std::chrono::seconds(1);
  };
  std::barrier gather(ptrdiff_t(threads), rest);
  std::vector<std::thread> running;
  for (unsigned t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      try {
        Worker worker(shared, t, seed);
        for (gather.arrive_and_wait(); !shared.stop; gather.arrive_and_wait()) worker.round(until);
      } catch (const std::exception &e) {
        wrong("%s", e.what());
      }
    });
  std::thread watch([&] { // a thread that blocks in the library is noticed here
    uint64_t seen = 0;
    for (auto last = Clock::now(); !shared.stop; std::this_thread::sleep_for(std::chrono::milliseconds(200))) {
      if (rounds != seen) seen = rounds, last = Clock::now();
      if (Clock::now() - last > std::chrono::seconds(2 * kPatience))
        wrong("no round ends for %d seconds: some thread waits in vain", 2 * kPatience);
    }
  });
  for (std::thread &t : running) t.join();
  watch.join();

  int64_t actions = 0;
  for (auto &p : shared.progress) actions += p;
  size_t quarter = resident.size() / 4;
  auto part = [&](const std::vector<int64_t> &all, size_t q) {
    return median({all.begin() + ptrdiff_t(q * quarter), all.begin() + ptrdiff_t((q + 1) * quarter)});
  };
  int64_t before = quarter ? part(resident, 1) : 0, after = quarter ? part(resident, 3) : 0;
  int64_t liveBefore = quarter ? part(live, 1) : 0, liveAfter = quarter ? part(live, 3) : 0;
  std::printf("%llu s, seed %llu, %llu threads: %lld actions; second and last quarter: %.2f and %.2f MiB resident, "
              "%lld and %lld bytes of the allocator\n",
              (unsigned long long)seconds, (unsigned long long)seed, (unsigned long long)threads, (long long)actions,
              double(before) / 1048576, double(after) / 1048576, (long long)liveBefore, (long long)liveAfter);
  auto free = [](const char *what, auto &&release) {
    try {
      release();
    } catch (const Error &e) {
      wrong("%s cannot be freed at the end: %s", what, e.what());
    }
  };
  for (Side &s : shared.sides) {
    free("a loaded bundle", [&] { s.loaded.reset(); });
    free("streams", [&] { s.streams.clear(); });
    free("a pool", [&] { s.pool.free(); });
    free("a device", [&] { s.device.free(); });
  }
  free("the bundle", [&] { shared.bundle.reset(); });
  free("the runtime", [&] { shared.runtime.reset(); });
  unlink(shared.path.c_str());
  if (liveBytes) wrong("%lld bytes are left at the end", (long long)liveBytes.load());
  if (standInLive()) wrong("%lld things of the driver are left at the end", (long long)standInLive());
  if (quarter && after > before + before / 50 + (1 << 20)) wrong("resident memory grows");
  if (quarter && liveAfter > liveBefore + (64 << 10)) wrong("memory of the allocator grows");
}
