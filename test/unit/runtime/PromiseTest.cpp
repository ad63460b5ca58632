//===- PromiseTest.cpp: who is told how calls end, and what waits for what --===//
// Takes:    the kinds of devices of Conformance.h; pairs of devices.
// Checks:   functions and descriptors of promises, cancelling, errors that reach all who wait; that waits between
//           streams and devices are inserted where they are needed and nowhere else.
#include "Conformance.h"

#include <condition_variable>
#include <functional>
#include <poll.h>
#include <random>
#include <set>
#include <unistd.h>

using namespace astra::test;

namespace {

/// Statuses in the order in which they came; whoever waits for them calls nothing of the runtime.
struct Heard {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<astra_status> statuses;
  static void hear(void *self, astra_status status) {
    auto *heard = static_cast<Heard *>(self);
    std::lock_guard lock(heard->mutex);
    heard->statuses.push_back(status);
    heard->changed.notify_all();
  }
  std::vector<astra_status> take(size_t count) {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return statuses.size() >= count; }))
        << statuses.size() << " of " << count;
    return std::exchange(statuses, {});
  }
};

using Statuses = std::vector<astra_status>;

struct Promises : Conformance {
  Heard heard;
  /// A CPU beside the machine's device, with a call at a gate: what comes after its promise cannot begin, wherever.
  struct Beside {
    Device device;
    Stream stream;
    Loaded loaded;
    Session session;
    int32_t gate = 0;
    std::vector<float> y = {0};
    Promise promise;
    explicit Beside(Machine &m) {
      Diag &diag = m.diag;
      astra_device_options o = ASTRA_INIT(astra_device_options);
      o.num_threads = 2;
      EXPECT_OK(astra_device_init(device.out(), m.runtime, "cpu", &o, &diag));
      EXPECT_OK(astra_stream_init(stream.out(), device, &diag));
      astra_device *devices[] = {device};
      EXPECT_OK(astra_loaded_init(loaded.out(), m.bundle, devices, 1, &diag));
      std::swap(m.loaded, loaded);
      session = m.makeSession();
      std::swap(m.loaded, loaded);
      Tensor t{Shape{}, ASTRA_INIT(astra_tensor)};
      t.t.data = &gate, t.t.data_bytes = 4, t.t.dtype = ASTRA_I32;
      EXPECT_OK(m.submit(session, stream, "gate", {t}, {tensor(y, {})}, promise.out()));
    }
    void open() { __atomic_store_n(&gate, 1, __ATOMIC_RELEASE); }
  };
};

TEST_P(Promises, FunctionsAreCalledOnceAndInOrder) {
  std::vector<float> x = {1}, y(1);
  std::vector<std::pair<int, float>> calls;
  struct Call {
    std::vector<std::pair<int, float>> *calls;
    const float *y;
    int number;
    Heard *heard;
  } numbered[] = {{&calls, y.data(), 0, &heard}, {&calls, y.data(), 1, &heard}, {&calls, y.data(), 2, &heard}};
  auto fn = [](void *self, astra_status status) {
    Call &c = *static_cast<Call *>(self);
    {
      std::lock_guard lock(c.heard->mutex);
      c.calls->push_back({c.number, *c.y}); // the result is there
    }
    Heard::hear(c.heard, status);
  };
  Beside beside(*machine);
  {
    Promise p;
    EXPECT_OK(machine->submit(machine->session, machine->stream, "accumulate", {tensor(x, {})}, {tensor(y, {})},
                              p.out(), {beside.promise}));
    for (Call &c : numbered) EXPECT_OK(astra_promise_on_ready(p, fn, &c, &diag));
  } // freed before it has ended
  {
    std::lock_guard lock(heard.mutex);
    EXPECT_TRUE(calls.empty());
  }
  beside.open();
  EXPECT_EQ(heard.take(3), Statuses(3, ASTRA_OK));
  EXPECT_EQ(calls, (std::vector<std::pair<int, float>>{{0, 11}, {1, 11}, {2, 11}}));
  Promise mark;
  EXPECT_OK(astra_stream_mark(machine->stream, mark.out(), &diag));
  EXPECT_OK(astra_promise_wait(mark, &diag));
  EXPECT_OK(astra_promise_on_ready(mark, Heard::hear, &heard, &diag));
  EXPECT_EQ(heard.statuses, Statuses{ASTRA_OK}) << "of what has ended, before it returns";
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "NULL", astra_promise_on_ready(mark, nullptr, nullptr, &diag));
}

/// The function's thread is nobody's who asks: of a GPU, whose ends are found when somebody asks, too.
TEST_P(Promises, NobodyNeedsToAsk) {
  int32_t gate = isInline(GetParam());
  std::vector<float> y(1), x = {1}, z(1);
  Session second = machine->makeSession(), third = machine->makeSession();
  Promise p, q;
  EXPECT_OK(machine->submit(machine->session, machine->stream, "gate", {gateTensor(gate)}, {tensor(y, {})}, p.out()));
  EXPECT_OK(machine->submit(second, machine->stream, "accumulate", {tensor(x, {})}, {tensor(z, {})}, q.out()));
  // The later one first: each is told of at its own time.
  EXPECT_OK(astra_promise_on_ready(q, Heard::hear, &heard, &diag));
  EXPECT_OK(astra_promise_on_ready(p, Heard::hear, &heard, &diag));
  open(gate, 1);
  EXPECT_EQ(heard.take(2), Statuses(2, ASTRA_OK));
  // A stream that is watched already.
  gate = isInline(GetParam());
  p = Promise();
  EXPECT_OK(machine->submit(third, machine->stream, "gate", {gateTensor(gate)}, {tensor(y, {})}, p.out()));
  EXPECT_OK(astra_promise_on_ready(p, Heard::hear, &heard, &diag));
  open(gate, 2);
  EXPECT_EQ(heard.take(1), Statuses{ASTRA_OK});
  EXPECT_EQ(y[0], isInline(GetParam()) ? 1 : 2);
}

TEST_P(Promises, AFunctionMaySubmit) {
  struct Chain {
    Promises &test;
    std::vector<float> x = {1}, y = {0};
    int left = 100;
    void next() {
      Promise p;
      EXPECT_EQ(test.machine->submit(test.machine->session, test.machine->stream, "accumulate", {tensor(x, {})},
                                     {tensor(y, {})}, p.out()),
                ASTRA_OK)
          << test.diag.text;
      EXPECT_EQ(astra_promise_on_ready(p, go, this, nullptr), ASTRA_OK);
    }
    static void go(void *self, astra_status status) {
      auto *chain = static_cast<Chain *>(self);
      EXPECT_EQ(status, ASTRA_OK);
      if (--chain->left)
        chain->next(); // the session is free again
      else
        Heard::hear(&chain->test.heard, status);
    }
  } chain{*this};
  chain.next();
  EXPECT_EQ(heard.take(1), Statuses{ASTRA_OK});
  EXPECT_EQ(chain.y[0], 110);
}

TEST_P(Promises, DescriptorsAreReadyWhenThePromiseIs) {
  std::vector<float> x = {1}, y(1);
  Beside beside(*machine);
  Promise p;
  EXPECT_OK(machine->submit(machine->session, machine->stream, "accumulate", {tensor(x, {})}, {tensor(y, {})}, p.out(),
                            {beside.promise}));
  int early = -1, late = -1, closed = -1;
  EXPECT_OK(astra_promise_fd(p, &early, &diag));
  EXPECT_OK(astra_promise_fd(p, &closed, &diag));
  pollfd wanted{early, POLLIN, 0};
  EXPECT_EQ(poll(&wanted, 1, 0), 0);
  EXPECT_EQ(close(closed), 0); // at any time
  beside.open();
  EXPECT_EQ(poll(&wanted, 1, 60000), 1);
  EXPECT_EQ(astra_promise_poll(p, &diag), ASTRA_OK);
  EXPECT_EQ(y[0], 11);
  EXPECT_OK(astra_promise_fd(p, &late, &diag));
  wanted = {late, POLLIN, 0};
  EXPECT_EQ(poll(&wanted, 1, 0), 1) << "ready from the beginning";
  for (int descriptor : {early, late}) EXPECT_EQ(close(descriptor), 0);
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "NULL", astra_promise_fd(p, nullptr, &diag));
}

TEST_P(Promises, ErrorsReachAllWhoWait) {
  std::vector<float> x = {1}, y(1), z(1), w(1);
  Session second = machine->makeSession(), third = machine->makeSession();
  Stream other = makeStream();
  Beside beside(*machine);
  Promise bad, next, last;
  EXPECT_OK(machine->submit(machine->session, machine->stream, "overdraw", {tensor(x, {1})}, {tensor(y, {})}, bad.out(),
                            {beside.promise}));
  EXPECT_OK(machine->submit(second, other, "accumulate", {tensor(x, {})}, {tensor(z, {})}, next.out(), {bad}));
  EXPECT_OK(
      machine->submit(third, machine->stream, "accumulate", {tensor(x, {})}, {tensor(w, {})}, last.out(), {next}));
  int descriptor = -1;
  EXPECT_OK(astra_promise_fd(last, &descriptor, &diag));
  Heard ofNext, ofLast;
  EXPECT_OK(astra_promise_on_ready(bad, Heard::hear, &heard, &diag));
  EXPECT_OK(astra_promise_on_ready(next, Heard::hear, &ofNext, &diag));
  EXPECT_OK(astra_promise_on_ready(last, Heard::hear, &ofLast, &diag));
  beside.open();
  EXPECT_EQ(heard.take(1), Statuses{ASTRA_DATA_DIM});
  EXPECT_EQ(ofNext.take(1), Statuses{ASTRA_DEPENDENCY});
  EXPECT_EQ(ofLast.take(1), Statuses{ASTRA_DEPENDENCY}) << "also who waits for one that did not run";
  pollfd wanted{descriptor, POLLIN, 0};
  EXPECT_EQ(poll(&wanted, 1, 60000), 1);
  EXPECT_EQ(close(descriptor), 0);
  EXPECT_FAIL(ASTRA_DATA_DIM, "dim k is 2", astra_promise_poll(bad, &diag));
  EXPECT_FAIL(ASTRA_DEPENDENCY, "did not run", astra_promise_poll(last, &diag));
}

TEST_P(Promises, WhatHasNotBegunCanBeCancelled) {
  std::vector<float> x = {1}, y(1), z(1), w(1), sum(1);
  Session second = machine->makeSession(), third = machine->makeSession();
  Stream other = makeStream();
  Beside beside(*machine);
  Promise p, next, behind;
  EXPECT_OK(machine->submit(machine->session, machine->stream, "accumulate", {tensor(x, {})}, {tensor(y, {})}, p.out(),
                            {beside.promise}));
  EXPECT_OK(machine->submit(second, other, "accumulate", {tensor(x, {})}, {tensor(z, {})}, next.out(), {p}));
  EXPECT_OK(machine->submit(third, machine->stream, "accumulate", {tensor(x, {})}, {tensor(w, {})}, behind.out()));
  EXPECT_OK(astra_promise_on_ready(p, Heard::hear, &heard, &diag));
  EXPECT_OK(astra_promise_cancel(p, &diag));
  EXPECT_OK(astra_promise_cancel(p, &diag));
  EXPECT_EQ(astra_promise_poll(p, &diag), ASTRA_NOT_READY) << "it ends in its turn";
  beside.open();
  EXPECT_EQ(heard.take(1), Statuses{ASTRA_CANCELLED});
  EXPECT_FAIL(ASTRA_CANCELLED, "before it began", astra_promise_wait(p, &diag));
  EXPECT_FAIL(ASTRA_DEPENDENCY, "did not run", astra_promise_wait(next, &diag));
  EXPECT_OK(astra_promise_wait(behind, &diag)); // of its stream, and no dependant
  EXPECT_EQ(w[0], 11);
  EXPECT_FAIL(ASTRA_BUSY, "has begun", astra_promise_cancel(behind, &diag));
  // Nothing has changed, and the session goes on.
  Tensor state = tensor(sum, {});
  EXPECT_OK(astra_session_get_state(machine->session, "sum", &state, &diag));
  EXPECT_EQ(sum[0], 10);
  EXPECT_OK(machine->run("accumulate", {tensor(x, {})}, {tensor(y, {})}));
  EXPECT_EQ(y[0], 11);
}

/// Where a driver tells nobody: a lost context calls no function of the host.
struct LostPromises : Promises {};
TEST_P(LostPromises, ALossReachesWhoIsCalled) {
  std::vector<float> x(8, 1), y(8);
  Promise p;
  hold();
  standInFail("kernel", 0, 700);
  EXPECT_OK(machine->submit(machine->session, machine->stream, "double", {tensor(x, {8})}, {tensor(y, {8})}, p.out()));
  EXPECT_OK(astra_promise_on_ready(p, Heard::hear, &heard, &diag));
  standInGo();
  EXPECT_EQ(heard.take(1), Statuses{ASTRA_DEVICE_LOST});
  EXPECT_FAIL(ASTRA_DEVICE_LOST, "is lost", astra_promise_wait(p, &diag));
}
INSTANTIATE_TEST_SUITE_P(On, LostPromises, testing::Values(Cuda, Hip, CudaThreads), kindName);

TEST_P(Promises, ManyThreadsAreTold) {
  constexpr int kThreads = 4, kCalls = 200;
  std::atomic<int> told{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++)
    threads.emplace_back([&, t] {
      astra_stream *stream = nullptr;
      wrong += astra_stream_init(&stream, machine->device, nullptr) != ASTRA_OK;
      for (int i = 0; i < kCalls; i++) {
        astra_promise *mark = nullptr;
        wrong += astra_stream_mark(t % 2 ? stream : machine->stream, &mark, nullptr) != ASTRA_OK;
        auto count = [](void *self, astra_status s) { *static_cast<std::atomic<int> *>(self) += s == ASTRA_OK; };
        wrong += astra_promise_on_ready(mark, count, &told, nullptr) != ASTRA_OK;
        if (i % 3 == 0) wrong += astra_promise_wait(mark, nullptr) != ASTRA_OK;
        wrong += astra_promise_free(&mark) != ASTRA_OK;
      }
      wrong += astra_stream_free(&stream) != ASTRA_OK;
    });
  for (auto &t : threads) t.join();
  for (int i = 0; i < 6000 && told < kThreads * kCalls; i++) usleep(10000);
  EXPECT_EQ(told, kThreads * kCalls);
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(On, Promises, testing::Values(Inline, Two, Seven, Host, HostQueues, Cuda, Hip, CudaThreads),
                         kindName);

//===- Waits between streams and devices -----------------------------------===//

/// How many random graphs: a sample by day.
unsigned few(unsigned byDay, unsigned byNight) { return getenv("ASTRA_NIGHTLY") ? byNight : byDay; }

/// Four streams, two on each of two devices, that do nothing before they are let go.
struct Waits : testing::TestWithParam<std::pair<const char *, const char *>> {
  static constexpr int64_t kElements = 100;
  static constexpr size_t kStreams = 4;
  std::unique_ptr<Machine> machine = makeMachine();
  Diag &diag = machine->diag;
  Heard heard;
  int32_t gate = 0;
  Device devices[2];
  Loaded loaded[2];
  Stream streams[kStreams];
  std::vector<Session> sessions;
  std::vector<Promise> gates;
  std::vector<std::vector<float>> seen = std::vector<std::vector<float>>(kStreams, std::vector<float>(1));

  static std::unique_ptr<Machine> makeMachine() {
    static const Bytes bytes = deviceBundle();
    standInReset();
    standInBundle(bytes.data(), bytes.size(), true);
    return std::make_unique<Machine>(1, nullptr, bytes);
  }
  Waits() {
    const char *names[] = {GetParam().first, GetParam().second};
    for (size_t d = 0; d < 2; d++) {
      astra_device_options o = ASTRA_INIT(astra_device_options);
      bool isCpu = strcmp(names[d], "cpu") == 0;
      if (isCpu)
        o.num_threads = 2;
      else
        o.driver = ASTRA_STAND_IN;
      EXPECT_OK(astra_device_init(devices[d].out(), machine->runtime, names[d], &o, &diag));
      astra_device *on[] = {devices[d]};
      EXPECT_OK(astra_loaded_init(loaded[d].out(), machine->bundle, on, 1, &diag));
      for (size_t s : {2 * d, 2 * d + 1}) EXPECT_OK(astra_stream_init(streams[s].out(), devices[d], &diag));
    }
  }
  size_t makeSession(size_t stream) {
    std::swap(machine->loaded, loaded[stream / 2]);
    sessions.push_back(machine->makeSession());
    std::swap(machine->loaded, loaded[stream / 2]);
    return sessions.size() - 1;
  }
  void hold() {
    // Each GPU has made a queue of its own first, then those of two streams.
    for (int64_t queue : {1, 2, 4, 5}) standInHold(queue);
    __atomic_store_n(&gate, 0, __ATOMIC_RELEASE);
    gates.clear();
    gates.resize(kStreams);
    for (size_t s = 0; s < kStreams; s++) {
      if (strcmp(s < 2 ? GetParam().first : GetParam().second, "cpu") != 0) continue;
      Tensor t{Shape{}, ASTRA_INIT(astra_tensor)};
      t.t.data = &gate, t.t.data_bytes = 4, t.t.dtype = ASTRA_I32;
      EXPECT_OK(
          machine->submit(sessions[makeSession(s)], streams[s], "gate", {t}, {tensor(seen[s], {})}, gates[s].out()));
    }
  }
  void go() {
    __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
    standInGo();
  }
  astra_stream_stats stats() {
    astra_stream_stats all = ASTRA_INIT(astra_stream_stats), one = all;
    for (Stream &s : streams) {
      EXPECT_EQ(astra_stream_get_stats(s, &one), ASTRA_OK);
      all.tasks += one.tasks, all.dependencies += one.dependencies, all.waits += one.waits;
    }
    return all;
  }
  /// Random calls on the streams that say nothing of each other: the runtime orders them by the memory they share.
  void randomGraph(unsigned seed, bool held);
};

void Waits::randomGraph(unsigned seed, bool held) {
  constexpr size_t kCalls = 40, kArrays = 8;
  std::mt19937 random(seed);
  std::vector<std::vector<float>> arrays(kArrays, std::vector<float>(kElements)), wanted;
  for (size_t a = 0; a < kArrays; a++)
    for (size_t i = 0; i < kElements; i++) arrays[a][i] = float(a * kElements + i) / 8;
  wanted = arrays;
  struct Node {
    size_t stream, x, y, z;
    std::set<size_t> before; ///< all that ends before it
  };
  std::vector<Node> nodes;
  astra_stream_stats start = stats();
  size_t least = 0;
  if (held) hold();
  for (size_t i = 0; i < kCalls; i++) {
    Node n{random() % kStreams, random() % kArrays, random() % kArrays, 0, {}};
    do n.z = random() % kArrays;
    while (n.z == n.x || n.z == n.y);
    // By brute force: what it needs to wait for, given what its stream's last call has waited for.
    std::set<size_t> needs, ordered;
    for (size_t k = 0; k < i; k++) {
      const Node &o = nodes[k];
      if (o.z == n.x || o.z == n.y || o.z == n.z || o.x == n.z || o.y == n.z) needs.insert(k);
      if (o.stream == n.stream) ordered = o.before, ordered.insert(k);
    }
    n.before = ordered;
    for (size_t k : needs) {
      bool implied = ordered.count(k);
      for (size_t other : needs) implied |= nodes[other].before.count(k) != 0;
      least += !implied;
    }
    for (size_t k : needs) n.before.insert(k), n.before.insert(nodes[k].before.begin(), nodes[k].before.end());
    for (size_t e = 0; e < kElements; e++) wanted[n.z][e] = wanted[n.x][e] + wanted[n.y][e];
    Promise p;
    EXPECT_OK(machine->submit(sessions[makeSession(n.stream)], streams[n.stream], "add",
                              {tensor(arrays[n.x], {kElements}), tensor(arrays[n.y], {kElements})},
                              {tensor(arrays[n.z], {kElements})}, p.out(), {}, ASTRA_CALL_ORDER));
    EXPECT_OK(astra_promise_on_ready(p, Heard::hear, &heard, &diag));
    nodes.push_back(std::move(n));
  }
  if (held) {
    EXPECT_EQ(stats().waits - start.waits, least);
    EXPECT_GT(least, 5u);
    go();
  }
  EXPECT_EQ(heard.take(kCalls), Statuses(kCalls, ASTRA_OK));
  for (size_t a = 0; a < kArrays; a++) EXPECT_EQ(memcmp(arrays[a].data(), wanted[a].data(), 4 * kElements), 0) << a;
  if (!held) {
    EXPECT_LE(stats().waits - start.waits, least);
  }
  for (Promise &p : gates)
    if (p) EXPECT_OK(astra_promise_wait(p, &diag));
  sessions.clear();
}

TEST_P(Waits, AsFewAsTheOrderNeeds) {
  for (unsigned seed = 0; seed < few(2, 50); seed++) randomGraph(seed, true);
}

TEST_P(Waits, RandomGraphsGiveEqualBytes) {
  for (unsigned seed = 1000; seed < 1000 + few(3, 100); seed++) randomGraph(seed, false);
}

TEST_P(Waits, OnlyWhatNothingElseOrders) {
  hold();
  auto mark = [&](size_t stream) {
    Promise p;
    EXPECT_OK(astra_stream_mark(streams[stream], p.out(), &diag));
    return p;
  };
  auto wait = [&](size_t stream, const Promise &p) { EXPECT_OK(astra_stream_wait(streams[stream], p, &diag)); };
  uint64_t before = stats().waits;
  auto inserted = [&] { return stats().waits - before; };
  Promise a = mark(0), b = mark(0);
  wait(0, a); // its own
  EXPECT_EQ(inserted(), 0u);
  wait(1, b);
  EXPECT_EQ(inserted(), 1u);
  wait(1, a), wait(1, b); // before what it waits for, and that
  EXPECT_EQ(inserted(), 1u);
  Promise c = mark(1);
  wait(2, c);
  wait(2, b); // behind c
  EXPECT_EQ(inserted(), 2u);
  Promise d = mark(2), e = mark(0);
  std::vector<float> x(kElements), y(kElements);
  // d is behind c, b and a; e is not.
  EXPECT_OK(machine->submit(sessions[makeSession(3)], streams[3], "double", {tensor(x, {kElements})},
                            {tensor(y, {kElements})}, nullptr, {a, c, e, d, b, e}));
  EXPECT_EQ(inserted(), 4u);
  EXPECT_EQ(stats().dependencies, 12u);
  Promise last = mark(3);
  go();
  EXPECT_OK(astra_promise_wait(last, &diag));
  wait(0, last); // has ended
  EXPECT_EQ(inserted(), 4u);
  for (Promise &p : gates)
    if (p) EXPECT_OK(astra_promise_wait(p, &diag));
}

/// A call on one device fails; who waits for it on the other does not run.
TEST_P(Waits, ErrorsPassBetweenDevices) {
  hold();
  std::vector<float> x = {1}, y(1), z(1);
  Promise bad, next;
  EXPECT_OK(
      machine->submit(sessions[makeSession(0)], streams[0], "accumulate", {tensor(x, {})}, {tensor(y, {})}, nullptr));
  EXPECT_OK(machine->submit(sessions[makeSession(2)], streams[2], "accumulate", {tensor(x, {})}, {tensor(z, {})},
                            next.out()));
  go();
  EXPECT_OK(astra_promise_wait(next, &diag));
  next = Promise();
  EXPECT_OK(
      machine->submit(sessions[makeSession(0)], streams[0], "overdraw", {tensor(x, {1})}, {tensor(y, {})}, bad.out()));
  EXPECT_OK(machine->submit(sessions[makeSession(2)], streams[2], "accumulate", {tensor(x, {})}, {tensor(z, {})},
                            next.out(), {bad}));
  EXPECT_OK(astra_promise_on_ready(next, Heard::hear, &heard, &diag));
  EXPECT_EQ(heard.take(1), Statuses{ASTRA_DEPENDENCY});
  EXPECT_FAIL(ASTRA_DATA_DIM, "dim k is 2", astra_promise_wait(bad, &diag));
  for (Promise &p : gates)
    if (p) EXPECT_OK(astra_promise_wait(p, &diag));
}

std::string pairName(const testing::TestParamInfo<std::pair<const char *, const char *>> &info) {
  std::string name = std::string(info.param.first) + "And" + info.param.second;
  name.erase(std::remove(name.begin(), name.end(), ':'), name.end());
  return name;
}
INSTANTIATE_TEST_SUITE_P(Between, Waits,
                         testing::Values(std::pair("cpu", "cpu"), std::pair("cuda:0", "cuda:1"),
                                         std::pair("hip:0", "hip:1"), std::pair("cpu", "cuda:0"),
                                         std::pair("cuda:0", "hip:0")),
                         pairName);

} // namespace
