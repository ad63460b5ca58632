//===- OrderedPoolTest.cpp: memory that calls in flight still use -------------===//
// Takes:    the kinds of devices of Conformance.h whose calls do not end inside submit.
// Checks:   which stream gets a freed block at once, and which does not; that what the calls before compute is what it
//           would be otherwise; counters; what is refused.
// Does not: look into the pool.
#include "Conformance.h"

#include <random>

using namespace astra::test;

namespace {

struct OrderedPool : Conformance {
  static constexpr int64_t n = 1000;
  static constexpr uint64_t bytes = n * 4;

  astra_pool_stats stats() {
    astra_pool_stats s = ASTRA_INIT(astra_pool_stats);
    EXPECT_OK(astra_pool_get_stats(machine->pool, &s));
    return s;
  }
  Buffer on(astra_stream *stream, uint64_t size = bytes) {
    Buffer b;
    EXPECT_OK(astra_buffer_init_on(b.out(), machine->pool, stream, size, &diag));
    return b;
  }
  /// Whether the stream gets memory that calls in flight have.
  bool reuses(astra_stream *stream, uint64_t size = bytes) {
    uint64_t before = stats().in_order;
    Buffer b = on(stream, size);
    return stats().in_order > before;
  }
  std::vector<float> ramp(float from) {
    std::vector<float> v(n);
    for (int64_t i = 0; i < n; i++) v[size_t(i)] = from + float(i);
    return v;
  }
  /// Holds up what is submitted to the stream from now on, until the gate opens.
  void close(astra_session *session, astra_stream *stream, int32_t &gate, std::vector<float> &y) {
    if (isGpu(GetParam())) return hold();
    EXPECT_OK(machine->submit(session, stream, "gate", {gateTensor(gate)}, {tensor(y, {})}, nullptr));
  }
};

TEST_P(OrderedPool, ItsOwnStreamUsesItAtOnce) {
  Stream other = makeStream();
  Session second = machine->makeSession(), third = machine->makeSession();
  int32_t gate = 0;
  std::vector<float> held(1), x = ramp(1), y(n), z = ramp(5000), w(n);
  Buffer first = makeBuffer(bytes);
  write(first, x);
  uint64_t fresh = stats().fresh;
  close(machine->session, machine->stream, gate, held);
  Promise p, q;
  EXPECT_OK(machine->submit(second, machine->stream, "double", {in(first, n)}, {tensor(y, {n})}, p.out()));
  EXPECT_FALSE(reuses(machine->stream)) << "it has a buffer";
  first = Buffer();
  EXPECT_FALSE(reuses(other)) << "the other stream does not come after the call";
  EXPECT_FALSE(reuses(machine->stream, 4 * bytes)) << "too small";
  EXPECT_FALSE(reuses(machine->stream, bytes / 4)) << "too large";
  fresh = stats().fresh;
  Buffer again = on(machine->stream);
  EXPECT_EQ(stats().fresh, fresh);
  EXPECT_EQ(stats().in_order, 1u);
  EXPECT_EQ(astra_promise_poll(p, nullptr), ASTRA_NOT_READY) << "nobody waited";
  EXPECT_FALSE(reuses(machine->stream)) << "it has a buffer again";
  // What is written there comes after the call that reads x.
  EXPECT_OK(astra_stream_write(machine->stream, again, 0, z.data(), bytes, nullptr, &diag));
  EXPECT_OK(machine->submit(third, machine->stream, "double", {in(again, n)}, {tensor(w, {n})}, q.out()));
  open(gate, 1);
  EXPECT_OK(astra_promise_wait(q, &diag));
  EXPECT_OK(astra_promise_wait(p, &diag));
  for (int64_t i = 0; i < n; i++) {
    ASSERT_EQ(y[size_t(i)], 2 * x[size_t(i)]);
    ASSERT_EQ(w[size_t(i)], 2 * z[size_t(i)]);
  }
  again = Buffer();
  EXPECT_EQ(stats().bytes_in_use, 0u);
  EXPECT_OK(astra_pool_trim(machine->pool));
  EXPECT_EQ(stats().bytes_held, 0u);
}

TEST_P(OrderedPool, AThirdStreamUsesItAfterTheEventsOfTwo) {
  Stream b = makeStream(), c = makeStream();
  Session second = machine->makeSession(), third = machine->makeSession(), fourth = machine->makeSession(),
          fifth = machine->makeSession();
  int32_t gates[2] = {0, 0};
  std::vector<float> held(1), other(1), x = ramp(1), y(n), u(n), z = ramp(7000), w(n);
  Buffer shared = makeBuffer(bytes);
  write(shared, x);
  close(machine->session, machine->stream, gates[0], held);
  if (!isGpu(GetParam())) close(second, b, gates[1], other);
  Promise p, q, r;
  EXPECT_OK(machine->submit(third, machine->stream, "double", {in(shared, n)}, {tensor(y, {n})}, p.out()));
  EXPECT_OK(machine->submit(fourth, b, "double", {in(shared, n)}, {tensor(u, {n})}, q.out()));
  shared = Buffer();
  for (astra_stream *s :
       {static_cast<astra_stream *>(machine->stream), static_cast<astra_stream *>(b), static_cast<astra_stream *>(c)})
    EXPECT_FALSE(reuses(s)) << "two streams have it";
  EXPECT_OK(astra_stream_wait(c, p, &diag));
  EXPECT_FALSE(reuses(c)) << "it comes after one of them";
  EXPECT_OK(astra_stream_wait(c, q, &diag));
  Buffer again = on(c);
  EXPECT_EQ(stats().in_order, 1u);
  EXPECT_EQ(astra_promise_poll(p, nullptr), ASTRA_NOT_READY);
  if (!isGpu(GetParam())) { // of a GPU the first stream alone is held
    EXPECT_EQ(astra_promise_poll(q, nullptr), ASTRA_NOT_READY);
  }
  // Who uses it elsewhere is held to the order of calls.
  if (!isGpu(GetParam()))
    EXPECT_FAIL(ASTRA_OVERLAP, "another stream",
                machine->submit(fifth, b, "double", {tensor(z, {n})}, {in(again, n)}, nullptr));
  EXPECT_OK(astra_stream_write(c, again, 0, z.data(), bytes, nullptr, &diag));
  EXPECT_OK(machine->submit(fifth, c, "double", {in(again, n)}, {tensor(w, {n})}, r.out()));
  open(gates[1], 1);
  open(gates[0], 1);
  for (const Promise *each : {&r, &q, &p}) EXPECT_OK(astra_promise_wait(*each, &diag));
  for (int64_t i = 0; i < n; i++) {
    ASSERT_EQ(y[size_t(i)], 2 * x[size_t(i)]);
    ASSERT_EQ(u[size_t(i)], 2 * x[size_t(i)]);
    ASSERT_EQ(w[size_t(i)], 2 * z[size_t(i)]);
  }
}

/// Chains on three streams whose buffers come and go while calls are in flight, all of which a gate holds up; each
/// value is what it would be with memory of its own, and in each round some have none.
TEST_P(OrderedPool, RandomChains) {
  Stream streams[3] = {makeStream(), makeStream(), makeStream()};
  std::mt19937 random(7);
  std::vector<float> x = ramp(1);
  const int rounds = isGpu(GetParam()) || GetParam() == HostQueues ? 3 : 20; // those have a thread for each task
  for (int round = 0; round < rounds; round++) {
    std::vector<Session> sessions;
    std::vector<Promise> promises;
    struct Link {
      Buffer values;
      float factor;
      size_t on; // stream
    };
    std::vector<Link> links;
    std::vector<std::pair<std::vector<float>, float>> results;
    results.reserve(40);
    int32_t gate = 0;
    std::vector<float> held(1);
    close(machine->session, machine->stream, gate, held);
    Promise first;
    EXPECT_OK(astra_stream_mark(machine->stream, first.out(), &diag));
    const uint64_t before = stats().in_order;
    for (size_t s = 0; s < 3; s++) {
      EXPECT_OK(astra_stream_wait(streams[s], first, &diag));
      links.push_back({on(streams[s]), 1, s});
      EXPECT_OK(astra_stream_write(streams[s], links[s].values, 0, x.data(), bytes, nullptr, &diag));
    }
    for (int step = 0; step < 30; step++) {
      Link &from = links[random() % 3];
      size_t to = random() % 3;
      if (to != from.on) {
        Promise mark;
        EXPECT_OK(astra_stream_mark(streams[from.on], mark.out(), &diag));
        EXPECT_OK(astra_stream_wait(streams[to], mark, &diag));
        promises.push_back(std::move(mark));
      }
      Buffer out = on(streams[to]);
      sessions.push_back(machine->makeSession());
      Promise p;
      EXPECT_OK(machine->submit(sessions.back(), streams[to], "double", {in(from.values, n)}, {in(out, n)}, p.out()));
      promises.push_back(std::move(p));
      from.values = std::move(out), from.factor *= 2, from.on = to; // the old buffer is freed
      if (random() % 4 == 0) {
        results.push_back({std::vector<float>(n), from.factor});
        EXPECT_OK(astra_stream_read(streams[to], results.back().first.data(), from.values, 0, bytes, nullptr, &diag));
      }
    }
    for (Stream &s : streams) {
      Promise mark;
      EXPECT_OK(astra_stream_mark(s, mark.out(), &diag));
      promises.push_back(std::move(mark));
    }
    EXPECT_GT(stats().in_order, before) << round;
    EXPECT_EQ(astra_promise_poll(promises.back(), nullptr), ASTRA_NOT_READY);
    open(gate, 1);
    for (Promise &p : promises) EXPECT_OK(astra_promise_wait(p, &diag));
    for (auto &[values, factor] : results)
      for (int64_t i = 0; i < n; i++) ASSERT_EQ(values[size_t(i)], factor * x[size_t(i)]) << round;
  }
}

TEST_P(OrderedPool, WhatIsRefused) {
  Machine another;
  astra_buffer *b = nullptr;
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "the stream is of another device than the pool",
              astra_buffer_init_on(&b, machine->pool, another.stream, bytes, &diag));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "the stream is NULL",
              astra_buffer_init_on(&b, machine->pool, nullptr, bytes, &diag));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "out is NULL",
              astra_buffer_init_on(nullptr, machine->pool, machine->stream, bytes, &diag));
  EXPECT_EQ(b, nullptr);
  Buffer none = on(machine->stream, 0);
  EXPECT_EQ(astra_buffer_bytes(none), 0u);
}

INSTANTIATE_TEST_SUITE_P(On, OrderedPool, testing::Values(Two, Seven, HostQueues, Cuda, Hip, CudaThreads), kindName);

} // namespace
