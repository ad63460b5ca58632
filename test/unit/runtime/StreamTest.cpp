//===- StreamTest.cpp: the conformance suite of streams, promises, pools --===//
// Takes:    the kinds of devices of Conformance.h.
// Gives:    the same behaviour on each.
// Keeps:    every order that astra.h promises is observed, not assumed.
// Does not: measure.
#include "Conformance.h"

#include <cmath>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace astra::test;

namespace {

/// Where calls do not end inside submit.
struct Queued : Conformance {};
struct OnGpus : Conformance {};
/// Where those that work are the CPU's.
struct Workers : Conformance {};

TEST_P(Conformance, AStreamIsFifo) {
  std::vector<Session> sessions;
  std::vector<std::vector<float>> values(51, std::vector<float>(1000, 1));
  std::vector<Promise> promises(50);
  for (size_t i = 0; i < 50; i++) {
    sessions.push_back(machine->makeSession());
    EXPECT_OK(machine->submit(sessions[i], machine->stream, "add",
                              {tensor(values[i], {1000}), tensor(values[i], {1000})}, {tensor(values[i + 1], {1000})},
                              i % 2 ? promises[i].out() : nullptr));
    if (i == 23) values[0][7] = 1; // nobody else reads the first one any more, or it has the same value
  }
  Promise mark;
  EXPECT_OK(astra_stream_mark(machine->stream, mark.out(), &diag));
  EXPECT_OK(astra_promise_wait(mark, &diag));
  for (size_t i = 1; i < 50; i += 2) EXPECT_OK(astra_promise_poll(promises[i], &diag));
  EXPECT_EQ(values[50][7], std::ldexp(1.0f, 50));
}

TEST_P(Queued, OneCallInFlightPerSession) {
  int32_t gate = 0;
  std::vector<float> y(1), x = {1};
  Promise p;
  EXPECT_OK(machine->submit(machine->session, machine->stream, "gate", {gateTensor(gate)}, {tensor(y, {})}, p.out()));
  EXPECT_EQ(astra_promise_poll(p, nullptr), ASTRA_NOT_READY);
  EXPECT_FAIL(
      ASTRA_BUSY, "in flight",
      machine->submit(machine->session, machine->stream, "accumulate", {tensor(x, {})}, {tensor(x, {})}, nullptr));
  EXPECT_FAIL(ASTRA_BUSY, "in flight", astra_session_set_dim(machine->session, "count", 1, &diag));
  std::vector<float> w(24);
  EXPECT_FAIL(ASTRA_BUSY, "in flight", astra_loaded_set_param(machine->loaded, "w", &tensor(w, {8, 3}), &diag));
  astra_session *again = machine->session;
  EXPECT_EQ(astra_session_free(&again), ASTRA_BUSY);
  int64_t extent;
  EXPECT_FAIL(ASTRA_NOT_READY, "wait", astra_promise_output_shape(p, 0, &extent, nullptr, &diag));
  open(gate, 42);
  EXPECT_OK(astra_promise_wait(p, &diag));
  EXPECT_EQ(y[0], 42);
  EXPECT_OK(astra_session_set_dim(machine->session, "count", 1, &diag));
}

TEST_P(Queued, ACallWithoutAPromiseEndsAtAMark) {
  int32_t gate = 0;
  std::vector<float> y(1);
  Promise mark;
  EXPECT_OK(machine->submit(machine->session, machine->stream, "gate", {gateTensor(gate)}, {tensor(y, {})}, nullptr));
  EXPECT_FAIL(ASTRA_BUSY, "for a mark of its stream (astra_stream_mark)", astra_session_reset(machine->session, &diag));
  EXPECT_OK(astra_stream_mark(machine->stream, mark.out(), &diag));
  open(gate, 42);
  EXPECT_OK(astra_promise_wait(mark, &diag));
  EXPECT_EQ(y[0], 42);
  EXPECT_OK(astra_session_reset(machine->session, &diag));
}

TEST_P(Queued, AfterOrdersAcrossStreams) {
  Stream other = makeStream();
  Session second = machine->makeSession();
  int32_t gate = 0;
  std::vector<float> y(1), z(1);
  Promise first, last;
  EXPECT_OK(
      machine->submit(machine->session, machine->stream, "gate", {gateTensor(gate)}, {tensor(y, {})}, first.out()));
  // It reads what the first one writes: without the promise that is refused, with it the call waits.
  EXPECT_FAIL(ASTRA_OVERLAP, "another stream",
              machine->submit(second, other, "accumulate", {tensor(y, {})}, {tensor(z, {})}, nullptr));
  EXPECT_OK(machine->submit(second, other, "accumulate", {tensor(y, {})}, {tensor(z, {})}, last.out(), {first}));
  EXPECT_EQ(astra_promise_poll(last, nullptr), ASTRA_NOT_READY);
  open(gate, 7);
  EXPECT_OK(astra_promise_wait(last, &diag));
  EXPECT_EQ(z[0], 17);
}

TEST_P(Queued, APromiseOrdersNothingThatCameBehindIt) {
  Stream other = makeStream();
  Session second = machine->makeSession();
  int32_t gate = 0;
  std::vector<float> y(1), z(1);
  Promise before, first, last;
  EXPECT_OK(astra_stream_mark(machine->stream, before.out(), &diag));
  EXPECT_OK(astra_promise_wait(before, &diag));
  EXPECT_OK(
      machine->submit(machine->session, machine->stream, "gate", {gateTensor(gate)}, {tensor(y, {})}, first.out()));
  EXPECT_FAIL(ASTRA_OVERLAP, "another stream",
              machine->submit(second, other, "accumulate", {tensor(y, {})}, {tensor(z, {})}, nullptr, {before}));
  EXPECT_OK(
      machine->submit(second, other, "accumulate", {tensor(y, {})}, {tensor(z, {})}, last.out(), {before, first}));
  open(gate, 7);
  EXPECT_OK(astra_promise_wait(last, &diag));
  EXPECT_EQ(z[0], 17);
}

TEST_P(Queued, OrderIsTransitive) {
  Stream b = makeStream(), c = makeStream();
  Session second = machine->makeSession();
  int32_t gate = 0;
  std::vector<float> y(1), z(1);
  Promise first, viaB, last;
  EXPECT_OK(
      machine->submit(machine->session, machine->stream, "gate", {gateTensor(gate)}, {tensor(y, {})}, first.out()));
  EXPECT_OK(astra_stream_wait(b, first, &diag));
  EXPECT_OK(astra_stream_mark(b, viaB.out(), &diag));
  EXPECT_OK(astra_stream_wait(c, viaB, &diag));
  EXPECT_OK(machine->submit(second, c, "accumulate", {tensor(y, {})}, {tensor(z, {})}, last.out()));
  EXPECT_EQ(astra_promise_poll(viaB, nullptr), ASTRA_NOT_READY);
  open(gate, 1);
  EXPECT_OK(astra_promise_wait(last, &diag));
  EXPECT_EQ(z[0], 11);
}

TEST_P(Workers, WhoeverWaitsRunsWhatNoWorkerTakes) {
  constexpr size_t many = 7; // at least as many as any of these devices has workers
  std::vector<int32_t> gates(many + 1);
  std::vector<std::vector<float>> y(many + 1, std::vector<float>(1));
  std::vector<Stream> streams;
  std::vector<Session> sessions;
  std::vector<Promise> promises(many + 1);
  auto submitGate = [&](size_t i, astra_stream *stream) {
    sessions.push_back(machine->makeSession());
    EXPECT_OK(
        machine->submit(sessions[i], stream, "gate", {gateTensor(gates[i])}, {tensor(y[i], {})}, promises[i].out()));
  };
  for (size_t i = 0; i < many; i++) {
    streams.push_back(makeStream());
    submitGate(i, streams[i]);
  }
  std::vector<float> x = {1}, z(1);
  Promise p;
  EXPECT_OK(
      machine->submit(machine->session, machine->stream, "accumulate", {tensor(x, {})}, {tensor(z, {})}, p.out()));
  submitGate(many, machine->stream);
  EXPECT_OK(astra_promise_wait(p, &diag)); // every worker is at a gate; what is behind the call is left to them
  EXPECT_EQ(z[0], 11);
  EXPECT_EQ(astra_promise_poll(promises[many], nullptr), ASTRA_NOT_READY);
  for (int32_t &gate : gates) __atomic_store_n(&gate, 5, __ATOMIC_RELEASE);
  for (Promise &promise : promises) EXPECT_OK(astra_promise_wait(promise, &diag));
  EXPECT_EQ(y[many][0], 5);
}

TEST_P(Queued, ManyThreadsWaitForOnePromise) {
  int32_t gate = 0;
  std::vector<float> y(1);
  Promise p;
  EXPECT_OK(machine->submit(machine->session, machine->stream, "gate", {gateTensor(gate)}, {tensor(y, {})}, p.out()));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 8; i++) threads.emplace_back([&] { wrong += astra_promise_wait(p, nullptr) != ASTRA_OK; });
  open(gate, 3);
  for (std::thread &t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(y[0], 3);
}

TEST_P(Conformance, LongChainsOfStreamsDoNotNest) {
  std::vector<Stream> streams;
  size_t count = isGpu(GetParam()) ? 200 : 2000; // the stand-in has a thread for each
  std::vector<Promise> promises(count);
  for (size_t i = 0; i < count; i++) {
    streams.push_back(makeStream());
    if (i) EXPECT_OK(astra_stream_wait(streams[i], promises[i - 1], &diag));
    EXPECT_OK(astra_stream_mark(streams[i], promises[i].out(), &diag));
  }
  EXPECT_OK(astra_promise_wait(promises.back(), &diag));
}

TEST_P(Conformance, DisjointViewsAreWrittenByTwoStreams) {
  Stream other = makeStream();
  Session second = machine->makeSession();
  Buffer x = makeBuffer(4000), out = makeBuffer(8000), low, high;
  std::vector<float> values(1000);
  for (int i = 0; i < 1000; i++) values[size_t(i)] = float(i);
  write(x, values);
  EXPECT_OK(astra_buffer_init_view(low.out(), out, 0, 4000, &diag));
  EXPECT_OK(astra_buffer_init_view(high.out(), out, 4000, 4000, &diag));
  for (int round = 0; round < 20; round++) {
    Promise a, b;
    EXPECT_OK(machine->submit(machine->session, machine->stream, "add", {in(x, 1000), in(x, 1000)}, {in(low, 1000)},
                              a.out()));
    EXPECT_OK(machine->submit(second, other, "double", {in(x, 1000)}, {in(high, 1000)}, b.out()));
    EXPECT_OK(astra_promise_wait(a, &diag));
    EXPECT_OK(astra_promise_wait(b, &diag));
  }
  EXPECT_EQ(read(low), read(high));
  EXPECT_EQ(read(low)[999], 1998);
}

TEST_P(Conformance, ErrorsSurfaceAtTheWaitAndPassToThoseWhoWaitForThem) {
  Stream other = makeStream();
  Session second = machine->makeSession();
  std::vector<float> x = {1}, y(1), z(1);
  Promise bad, next;
  EXPECT_OK(
      machine->submit(machine->session, machine->stream, "overdraw", {tensor(x, {1})}, {tensor(y, {})}, bad.out()));
  EXPECT_OK(machine->submit(second, other, "accumulate", {tensor(x, {})}, {tensor(z, {})}, next.out(), {bad}));
  EXPECT_FAIL(ASTRA_DATA_DIM, "dim k is 2; it must be in 0 .. 1", astra_promise_wait(bad, &diag));
  EXPECT_FAIL(ASTRA_DATA_DIM, "dim k is 2", astra_promise_wait(bad, &diag));
  EXPECT_FAIL(ASTRA_DEPENDENCY, "did not run", astra_promise_wait(next, &diag));
  // The first session lost the state that the call wrote; the second's is as it was.
  EXPECT_FAIL(ASTRA_STATE_LOST, "sum", machine->run("accumulate", {tensor(x, {})}, {tensor(y, {})}));
  std::vector<float> value(1);
  Tensor t = tensor(value, {});
  EXPECT_FAIL(ASTRA_STATE_LOST, "sum", astra_session_get_state(machine->session, "sum", &t, &diag));
  EXPECT_OK(machine->run("add", {tensor(x, {1}), tensor(x, {1})}, {tensor(y, {1})}));
  value[0] = 3;
  EXPECT_OK(astra_session_set_state(machine->session, "sum", &t, &diag));
  EXPECT_OK(machine->run("accumulate", {tensor(x, {})}, {tensor(y, {})}));
  EXPECT_EQ(y[0], 4);
  EXPECT_OK(astra_session_get_state(second, "sum", &t, &diag));
  EXPECT_EQ(value[0], 10);
}

TEST_P(Conformance, PoolRecyclesWhenTheCallHasEnded) {
  astra_pool_stats stats = ASTRA_INIT(astra_pool_stats);
  std::vector<float> y(1);
  int32_t there, *gate;
  Promise p;
  {
    Buffer g = makeBuffer(4096);
    gate = static_cast<int32_t *>(astra_buffer_data(g));
    EXPECT_EQ(gate == nullptr, isGpu(GetParam()));
    if (!gate) {
      write(g, {1});
      hold();
      gate = &there;
    }
    *gate = isInline(GetParam());
    Tensor t{Shape{}, ASTRA_INIT(astra_tensor)};
    t.t.buffer = g, t.t.dtype = ASTRA_I32;
    EXPECT_OK(machine->submit(machine->session, machine->stream, "gate", {t}, {tensor(y, {})}, p.out()));
  } // freed by the caller
  if (!isInline(GetParam())) {
    EXPECT_EQ(astra_pool_get_stats(machine->pool, &stats), ASTRA_OK);
    EXPECT_EQ(stats.bytes_in_use, 4096u);
    Buffer another = makeBuffer(4096);
    EXPECT_EQ(astra_pool_get_stats(machine->pool, &stats), ASTRA_OK);
    EXPECT_EQ(stats.fresh, 2u) << "still locked";
    astra_pool *pool = machine->pool;
    EXPECT_EQ(astra_pool_free(&pool), ASTRA_IN_USE);
    open(*gate, 1);
  }
  EXPECT_OK(astra_promise_wait(p, &diag));
  Buffer larger = makeBuffer(100);
  EXPECT_OK(astra_pool_get_stats(machine->pool, &stats));
  EXPECT_GE(stats.recycled, 1u) << "a larger block serves a smaller request";
  EXPECT_EQ(stats.bytes_in_use, 128u) << "and keeps no more than that";
  larger = Buffer();
  EXPECT_OK(astra_pool_trim(machine->pool));
  EXPECT_OK(astra_pool_get_stats(machine->pool, &stats));
  EXPECT_EQ(stats.bytes_held, 0u);
}

TEST_P(Conformance, DonatedBuffersAreFreedByTheCall) {
  astra_pool_stats stats = ASTRA_INIT(astra_pool_stats);
  astra_buffer *x = nullptr;
  EXPECT_OK(astra_buffer_init(&x, machine->pool, 4000, &diag));
  Buffer z = makeBuffer(4000);
  Tensor t = in(x, 1000);
  t.t.flags = ASTRA_TENSOR_DONATED;
  EXPECT_FAIL(ASTRA_WRONG_SHAPE, "output z",
              machine->submit(machine->session, machine->stream, "double", {t}, {in(z, 999)}, nullptr));
  EXPECT_EQ(astra_buffer_bytes(x), 4000u) << "a refusal leaves it to the caller";
  Promise p;
  EXPECT_OK(machine->submit(machine->session, machine->stream, "double", {t}, {in(z, 1000)}, p.out()));
  EXPECT_OK(astra_promise_wait(p, &diag));
  EXPECT_OK(astra_pool_get_stats(machine->pool, &stats));
  EXPECT_EQ(stats.bytes_in_use, 4032u);
}

TEST_P(Conformance, CopiesAreInTheOrderOfTheStream) {
  Buffer x = makeBuffer(40), z = makeBuffer(40);
  std::vector<std::vector<float>> in(20, std::vector<float>(10)), out = in;
  std::vector<Session> sessions;
  for (size_t i = 0; i < in.size(); i++) {
    in[i].assign(10, float(i));
    sessions.push_back(machine->makeSession());
    EXPECT_OK(astra_stream_write(machine->stream, x, 0, in[i].data(), 40, nullptr, &diag));
    EXPECT_OK(machine->submit(sessions[i], machine->stream, "double", {this->in(x, 10)}, {this->in(z, 10)}, nullptr));
    EXPECT_OK(astra_stream_read(machine->stream, out[i].data(), z, 0, 40, nullptr, &diag));
  }
  Promise mark;
  EXPECT_OK(astra_stream_mark(machine->stream, mark.out(), &diag));
  EXPECT_OK(astra_promise_wait(mark, &diag));
  for (size_t i = 0; i < in.size(); i++) EXPECT_EQ(out[i], std::vector<float>(10, float(2 * i)));
  EXPECT_FAIL(ASTRA_CAPACITY, "does not fit",
              astra_stream_write(machine->stream, x, 4, in[0].data(), 40, nullptr, &diag));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "NULL", astra_stream_read(machine->stream, nullptr, x, 0, 40, nullptr, &diag));
}

TEST_P(Conformance, ManyThreadsSubmitToOneStream) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      astra_session *session = nullptr;
      astra_dim_value dims[] = {{"cap", 8}};
      astra_session_options o = ASTRA_INIT(astra_session_options);
      o.dims = dims, o.num_dims = 1;
      wrong += astra_session_init(&session, machine->loaded, &o, nullptr) != ASTRA_OK;
      const astra_entry *entry = nullptr;
      wrong += astra_bundle_find_entry(machine->bundle, "add", &entry, nullptr) != ASTRA_OK;
      for (int i = 0; i < 100; i++) {
        std::vector<float> x(500, float(t)), z(500);
        Tensor a = tensor(x, {500}), c = tensor(z, {500});
        astra_tensor inputs[] = {a, a};
        astra_call call = ASTRA_INIT(astra_call);
        call.entry = entry, call.inputs = inputs, call.num_inputs = 2, call.outputs = &c, call.num_outputs = 1;
        astra_promise *p = nullptr;
        wrong += astra_session_submit(session, machine->stream, &call, &p, nullptr) != ASTRA_OK;
        wrong += astra_promise_wait(p, nullptr) != ASTRA_OK;
        wrong += astra_promise_free(&p) != ASTRA_OK;
        for (float v : z) wrong += v != float(2 * t);
      }
      wrong += astra_session_free(&session) != ASTRA_OK;
    });
  for (auto &t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

// Whoever waits may end the tasks of others: a mark has not ended before calls of its stream that somebody else ends.
TEST_P(OnGpus, ManyThreadsMarkTheirOwnStreams) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; t++)
    threads.emplace_back([&] {
      astra_session *session = nullptr;
      astra_dim_value dims[] = {{"cap", 8}};
      astra_session_options o = ASTRA_INIT(astra_session_options);
      o.dims = dims, o.num_dims = 1;
      wrong += astra_session_init(&session, machine->loaded, &o, nullptr) != ASTRA_OK;
      astra_stream *stream = nullptr;
      wrong += astra_stream_init(&stream, machine->device, nullptr) != ASTRA_OK;
      const astra_entry *entry = nullptr;
      wrong += astra_bundle_find_entry(machine->bundle, "add", &entry, nullptr) != ASTRA_OK;
      std::vector<float> x(8, 1), z(8);
      Tensor a = tensor(x, {8}), c = tensor(z, {8});
      astra_tensor inputs[] = {a, a};
      astra_call call = ASTRA_INIT(astra_call);
      call.entry = entry, call.inputs = inputs, call.num_inputs = 2, call.outputs = &c, call.num_outputs = 1;
      for (int i = 0; i < 400; i++) {
        astra_promise *mark = nullptr;
        wrong += astra_session_submit(session, stream, &call, nullptr, nullptr) != ASTRA_OK;
        wrong += astra_stream_mark(stream, &mark, nullptr) != ASTRA_OK;
        wrong += astra_promise_wait(mark, nullptr) != ASTRA_OK;
        wrong += astra_promise_free(&mark) != ASTRA_OK;
      }
      for (float v : z) wrong += v != 2;
      wrong += astra_stream_free(&stream) != ASTRA_OK;
      wrong += astra_session_free(&session) != ASTRA_OK;
    });
  for (auto &t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(Conformance, AForkedChildIsRefused) {
  std::vector<float> x = {1}, y(1);
  const astra_entry *entry = machine->entry("accumulate");
  pid_t child = fork();
  if (child == 0) {
    astra_call call = ASTRA_INIT(astra_call);
    call.entry = entry;
    Diag d;
    bool refused = astra_session_submit(machine->session, machine->stream, &call, nullptr, &d) == ASTRA_FORKED;
    astra_session *s = machine->session;
    refused &= astra_session_free(&s) == ASTRA_FORKED && astra_session_set_dim(s, "count", 1, &d) == ASTRA_FORKED;
    _exit(refused ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_OK(machine->run("accumulate", {tensor(x, {})}, {tensor(y, {})}));
}

INSTANTIATE_TEST_SUITE_P(On, Conformance, testing::Values(Inline, Two, Seven, Host, HostQueues, Cuda, Hip, CudaThreads),
                         kindName);
INSTANTIATE_TEST_SUITE_P(On, Workers, testing::Values(Two, Seven, HostQueues), kindName);
INSTANTIATE_TEST_SUITE_P(On, OnGpus, testing::Values(Cuda, Hip), kindName);
INSTANTIATE_TEST_SUITE_P(On, Queued, testing::Values(Two, Seven, HostQueues, Cuda, Hip, CudaThreads), kindName);

TEST(TwoRuntimes, DoNotMeet) {
  Machine a(2), b(3);
  Diag &diag = a.diag;
  std::vector<float> x = {1}, y(1);
  EXPECT_OK(a.run("accumulate", {tensor(x, {})}, {tensor(y, {})}));
  EXPECT_OK(b.run("accumulate", {tensor(x, {})}, {tensor(y, {})}));
  EXPECT_EQ(y[0], 11);
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "another device",
              a.submit(a.session, b.stream, "accumulate", {tensor(x, {})}, {tensor(y, {})}, nullptr));
  astra_loaded *loaded = nullptr;
  astra_device *devices[] = {b.device};
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "different runtimes", astra_loaded_init(&loaded, a.bundle, devices, 1, &diag));
}

/// Whoever sees that a call has ended may free its device, while another thread is still on its way out of the wait.
TEST(InUse, ADeviceIsFreedWhileAWaitReturns) {
  for (int round = 0; round < 50; round++) {
    Machine m(2);
    std::vector<float> x = {1}, y(1);
    Promise p;
    EXPECT_EQ(m.submit(m.session, m.stream, "accumulate", {tensor(x, {})}, {tensor(y, {})}, p.out()), ASTRA_OK);
    std::thread other([&] { EXPECT_EQ(astra_promise_wait(p, nullptr), ASTRA_OK); });
    EXPECT_EQ(astra_promise_wait(p, nullptr), ASTRA_OK);
    m.session = Session();
    m.loaded = Loaded();
    m.stream = Stream();
    m.pool = Pool();
    m.device = Device();
    other.join();
    EXPECT_EQ(y[0], 11);
  }
}

TEST(InUse, ParentsOutliveTheirChildren) {
  Machine m(2);
  astra_runtime *runtime = m.runtime;
  astra_device *device = m.device;
  astra_bundle *bundle = m.bundle;
  astra_loaded *loaded = m.loaded;
  EXPECT_EQ(astra_runtime_free(&runtime), ASTRA_IN_USE);
  EXPECT_EQ(astra_device_free(&device), ASTRA_IN_USE);
  EXPECT_EQ(astra_bundle_free(&bundle), ASTRA_IN_USE);
  EXPECT_EQ(astra_loaded_free(&loaded), ASTRA_IN_USE);
  EXPECT_TRUE(runtime && device && bundle && loaded);
  astra_buffer *none = nullptr;
  EXPECT_EQ(astra_buffer_free(&none), ASTRA_OK);
}

} // namespace
