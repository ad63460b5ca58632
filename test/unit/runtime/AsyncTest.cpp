//===- AsyncTest.cpp: promises that C++ awaits -----------------------------===//
// Takes:    async.hpp, the kinds of devices of Conformance.h.
// Checks:   futures, coroutines and senders get values, errors and the end of what was cancelled.
//           Coroutines and futures may be destroyed before.
#include "astra/async.hpp"

#include "Conformance.h"

#include <condition_variable>

using namespace astra::test;

namespace {

/// A thread that is not the runtime's sleeps here until somebody says done.
struct Latch {
  std::mutex mutex;
  std::condition_variable changed;
  bool isDone = false;
  void done() {
    std::lock_guard lock(mutex);
    isDone = true;
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return isDone; }));
  }
};

struct Awaited : Conformance {
  std::vector<float> x = {1}, y = {0};
  /// A promise of the C++ API.
  astra::Promise submit(const char *entry, astra_session *session, std::vector<float> &to,
                        astra_promise *after = nullptr) {
    astra::Promise p;
    std::vector<astra_promise *> before;
    if (after) before = {after};
    Shape shape = strcmp(entry, "overdraw") == 0 ? Shape{1} : Shape{};
    EXPECT_EQ(machine->submit(session, machine->stream, entry, {tensor(x, shape)}, {tensor(to, {})}, p.out(), before),
              ASTRA_OK)
        << diag.text;
    return p;
  }
};

TEST_P(Awaited, Futures) {
  Session second = machine->makeSession();
  std::vector<float> z(1);
  std::future<astra::Promise> good = astra::toFuture(submit("accumulate", machine->session, y)),
                              bad = astra::toFuture(submit("overdraw", second, z));
  astra::Promise p = good.get();
  EXPECT_EQ(y[0], 11);
  EXPECT_EQ(p.shape(0), std::vector<int64_t>{});
  try {
    bad.get();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const astra::Error &e) {
    EXPECT_EQ(e.status(), ASTRA_DATA_DIM);
    EXPECT_NE(std::string(e.what()).find("dim k is 2"), std::string::npos) << e.what();
  }
}

/// A coroutine that nobody waits for; its last line says that it is done.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

TEST_P(Awaited, Coroutines) {
  Latch latch;
  astra_status failure = ASTRA_OK, dependant = ASTRA_OK;
  int calls = 0;
  const int many = isGpu(GetParam()) ? 50 : 1000;
  auto work = [&]() -> Detached {
    for (; calls < many; calls++) co_await submit("accumulate", machine->session, y);
    {
      Session second = machine->makeSession(), third = machine->makeSession();
      std::vector<float> z(1), w(1);
      astra::Promise bad = submit("overdraw", second, z), next = submit("accumulate", third, w, bad.get());
      try {
        co_await bad;
      } catch (const astra::Error &e) {
        failure = e.status();
      }
      try {
        co_await next;
      } catch (const astra::Error &e) {
        dependant = e.status();
      }
    }
    latch.done();
  };
  work();
  latch.wait();
  EXPECT_EQ(calls, many);
  EXPECT_EQ(y[0], float(10 + many));
  EXPECT_EQ(failure, ASTRA_DATA_DIM);
  EXPECT_EQ(dependant, ASTRA_DEPENDENCY);
}

/// A coroutine that its caller destroys.
struct Owned {
  struct promise_type {
    Owned get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

/// Sees that it is destroyed.
struct Guard {
  int &count;
  ~Guard() { count++; }
};

/// The end of a call neither resumes nor writes to a coroutine that was destroyed meanwhile (AddressSanitizer looks);
/// the others that wait for it go on.
TEST_P(Awaited, CoroutinesThatAreDestroyed) {
  if (isInline(GetParam())) GTEST_SKIP() << "its calls end inside submit";
  int32_t gate = 0;
  astra::Promise p, mark;
  EXPECT_OK(machine->submit(machine->session, machine->stream, "gate", {gateTensor(gate)}, {tensor(y, {})}, p.out()));
  EXPECT_OK(astra_stream_mark(machine->stream, mark.out(), &diag));
  int resumed = 0, destroyed = 0;
  auto work = [&](int by) -> Owned {
    Guard guard{destroyed};
    co_await p;
    resumed += by;
  };
  std::vector<Owned> waiting;
  for (int i = 0; i < 8; i++) waiting.push_back(work(1 << i));
  for (size_t i = 0; i < 8; i += 2) waiting[i].handle.destroy();
  EXPECT_EQ(destroyed, 4);
  EXPECT_EQ(resumed, 0);
  {
    std::future<astra::Promise> nobody = astra::toFuture(std::move(mark));
  } // which does not wait
  Latch latch;
  p.onReady([](void *self, astra_status) { static_cast<Latch *>(self)->done(); }, &latch); // the last of them
  open(gate, 1);
  EXPECT_OK(astra_promise_wait(p.get(), &diag));
  latch.wait();
  EXPECT_EQ(resumed, 2 + 8 + 32 + 128);
  EXPECT_EQ(destroyed, 8);
  for (size_t i = 1; i < 8; i += 2) {
    EXPECT_TRUE(waiting[i].handle.done());
    waiting[i].handle.destroy();
  }
}

/// The smallest receiver.
struct Outcome {
  Latch latch;
  int values = 0, stops = 0;
  std::exception_ptr error;
  std::stop_source source;
};
struct Receiver {
  Outcome *outcome;
  void set_value(astra::Promise p) && noexcept {
    outcome->values += p.ready();
    outcome->latch.done();
  }
  void set_error(std::exception_ptr e) && noexcept {
    outcome->error = e;
    outcome->latch.done();
  }
  void set_stopped() && noexcept {
    outcome->stops++;
    outcome->latch.done();
  }
};
struct StoppableReceiver : Receiver {
  std::stop_token get_stop_token() const noexcept { return outcome->source.get_token(); }
};
using Submit = astra::Promise (*)();
static_assert(astra::receiver<Receiver> && !astra::stoppable_receiver<Receiver>);
static_assert(astra::stoppable_receiver<StoppableReceiver>);
static_assert(astra::sender_to<astra::PromiseSender<Submit>, Receiver>);
static_assert(!astra::receiver<Outcome *> && !astra::sender_to<astra::Promise, Receiver>);

TEST_P(Awaited, Senders) {
  Outcome good, bad, refused;
  Session second = machine->makeSession();
  std::vector<float> z(1);
  auto operation = astra::sender([&] { return submit("accumulate", machine->session, y); }).connect(Receiver{&good});
  EXPECT_EQ(y[0], 0) << "nothing is submitted before it is started";
  operation.start();
  good.latch.wait();
  EXPECT_EQ(good.values, 1);
  EXPECT_EQ(y[0], 11);

  auto failing = astra::sender(submit("overdraw", second, z)).connect(Receiver{&bad});
  failing.start();
  bad.latch.wait();
  EXPECT_EQ(bad.values + bad.stops, 0);
  EXPECT_THROW(std::rethrow_exception(bad.error), astra::Error);

  auto never = astra::sender([]() -> astra::Promise { throw astra::Error(ASTRA_BUSY); }).connect(Receiver{&refused});
  never.start();
  refused.latch.wait();
  EXPECT_THROW(std::rethrow_exception(refused.error), astra::Error);
}

TEST_P(Awaited, SendersThatAreStopped) {
  // A call at a gate on another device, so that nothing of what follows begins.
  astra_device_options o = ASTRA_INIT(astra_device_options);
  o.num_threads = 2;
  Device device;
  Stream gateStream;
  Loaded loaded;
  Session gateSession;
  Promise atGate;
  int32_t gate = 0;
  std::vector<float> w(1);
  EXPECT_OK(astra_device_init(device.out(), machine->runtime, "cpu", &o, &diag));
  EXPECT_OK(astra_stream_init(gateStream.out(), device, &diag));
  astra_device *devices[] = {device};
  EXPECT_OK(astra_loaded_init(loaded.out(), machine->bundle, devices, 1, &diag));
  std::swap(machine->loaded, loaded);
  gateSession = machine->makeSession();
  std::swap(machine->loaded, loaded);
  Tensor t{Shape{}, ASTRA_INIT(astra_tensor)};
  t.t.data = &gate, t.t.data_bytes = 4, t.t.dtype = ASTRA_I32;
  EXPECT_OK(machine->submit(gateSession, gateStream, "gate", {t}, {tensor(w, {})}, atGate.out()));

  Outcome stopped, ended;
  auto operation = astra::sender([&] {
                     return submit("accumulate", machine->session, y, atGate);
                   }).connect(StoppableReceiver{{&stopped}});
  operation.start();
  stopped.source.request_stop();
  __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
  stopped.latch.wait();
  EXPECT_EQ(stopped.stops, 1);
  EXPECT_EQ(stopped.values, 0);
  EXPECT_EQ(y[0], 0);
  // What has ended is not stopped any more.
  auto other =
      astra::sender([&] { return submit("accumulate", machine->session, y); }).connect(StoppableReceiver{{&ended}});
  other.start();
  ended.latch.wait();
  ended.source.request_stop();
  EXPECT_EQ(ended.values, 1);
  EXPECT_EQ(y[0], 11);
}

INSTANTIATE_TEST_SUITE_P(On, Awaited, testing::Values(Inline, Two, Host, HostQueues, Cuda, Hip, CudaThreads), kindName);

} // namespace
