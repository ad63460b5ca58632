//===- SplitTest.cpp: the parts of a launch -------------------------------===//
// Takes:    kernels that say which ranges of items they were called for, and which wait for each other.
// Gives:    every item is done once, whatever a launch costs; ranges are not smaller than worth a call; a launch has
//           the workers it was split for, sleeping or not; workers look for work as long as the host says.
// Does not: check results of kernels (RunTest.cpp).
#include "Client.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <unistd.h>

using namespace astra;
using namespace astra::test;

namespace {

/// One entry with one launch, `kernel` of n items, that costs `flops` in all (0: the bundle does not say); and one that
/// does not end before the caller writes to its input, of so many steps and bytes (0: the bundle does not say).
Bytes bundleOf(const char *kernel, int64_t flops, int64_t gateSteps = 0, int64_t gateBytes = 0) {
  using fmt::Access;
  using fmt::BufferKind;
  ManifestMaker k;
  uint32_t n = k.dim("n", fmt::DimSource::Shape, 1, 100000), items = k.expr({{fmt::ExprCode::Dim, n}}),
           bytes = k.dimValue(n, 4);
  uint32_t number = k.kernel(kernel, {Access::ReadWrite, Access::ReadWrite}, items, k.number(0));
  if (flops) k.m.kernels[number]->flops = k.m.kernels[number]->steps = k.number(flops);
  fmt::EntryT &e = k.entry("main");
  e.binds.push_back({n, 0, 0});
  addTensor(e.inputs, "x", {items});
  for (const char *name : {"first", "second"}) addTensor(e.outputs, name, {items});
  fmt::RoutineT &r = *e.routine;
  uint32_t first = addBuffer(r, BufferKind::Output, 0, bytes), second = addBuffer(r, BufferKind::Output, 1, bytes);
  addLaunch(r, 0, number, {first, second});
  uint32_t gate = k.kernel("gate", {Access::Read, Access::Write}, k.number(1), k.number(0)), four = k.number(4);
  if (gateSteps) k.m.kernels[gate]->steps = k.number(gateSteps);
  if (gateBytes) k.m.kernels[gate]->bytes = k.number(gateBytes);
  fmt::EntryT &g = k.entry("gate");
  addTensor(g.inputs, "g", {}, {}, fmt::DType::I32);
  addTensor(g.outputs, "y", {});
  uint32_t in = addBuffer(*g.routine, BufferKind::Input, 0, four),
           out = addBuffer(*g.routine, BufferKind::Output, 0, four);
  addLaunch(*g.routine, 0, gate, {in, out});
  return assemble(k);
}

struct Caller {
  Caller(const Bytes &bundleBytes, uint32_t threads, int64_t spinNs = 0) : file(bundleBytes) {
    astra_device_options o = ASTRA_INIT(astra_device_options);
    o.num_threads = threads, o.spin_ns = spinNs;
    astra_device *devices[1];
    EXPECT_OK(astra_runtime_init(runtime.out(), nullptr, &diag));
    EXPECT_OK(astra_device_init(device.out(), runtime, "cpu", &o, &diag));
    EXPECT_OK(astra_stream_init(stream.out(), device, &diag));
    EXPECT_OK(astra_bundle_init_memory(bundle.out(), runtime, file.data, file.size, nullptr, &diag));
    devices[0] = device;
    EXPECT_OK(astra_loaded_init(loaded.out(), bundle, devices, 1, &diag));
    EXPECT_OK(astra_session_init(session.out(), loaded, nullptr, &diag));
    EXPECT_OK(astra_bundle_find_entry(bundle, "main", &entry, &diag));
  }
  /// The two outputs, which begin as zeros.
  Promise submit(int64_t n) {
    x.assign(n, 0), first.assign(n, 0), second.assign(n, 0);
    Tensor in = tensor(x, {n}), out[] = {tensor(first, {n}), tensor(second, {n})};
    astra_tensor outputs[] = {out[0].t, out[1].t};
    astra_call c = ASTRA_INIT(astra_call);
    c.entry = entry, c.inputs = &in.t, c.num_inputs = 1, c.outputs = outputs, c.num_outputs = 2;
    Promise promise;
    EXPECT_OK(astra_session_submit(session, stream, &c, promise.out(), &diag));
    return promise;
  }
  void call(int64_t n) { EXPECT_OK(astra_promise_wait(submit(n), &diag)); }

  Aligned file;
  Runtime runtime;
  Device device;
  Stream stream;
  Bundle bundle;
  Loaded loaded;
  Session session;
  const astra_entry *entry = nullptr;
  std::vector<float> x, first, second;
  Diag diag;
};

TEST(Split, EveryItemOnce) {
  for (uint32_t threads : {1u, 2u, 3u, 7u})
    for (int64_t flops : {0, 1000, 500000, 2000000, 50000000}) {
      Caller caller(bundleOf("visit", flops), threads);
      for (int64_t n : {1, 2, 5, 64, 1000, 10007}) {
        int64_t grain = flops ? n * 100000 / flops : 0; // items that cost as much as a call is worth
        for (int again = 0; again < 20; again++) {
          caller.call(n);
          ASSERT_EQ(caller.first, std::vector<float>(n, 1)) << threads << " threads, cost " << flops;
          int64_t calls = 0, small = 0;
          for (float range : caller.second) calls += range > 0, small += range > 0 && int64_t(range) < grain;
          if (threads == 1 || (flops && flops < 400000)) {
            ASSERT_EQ(calls, 1);
          }
          ASSERT_LE(small, threads) << n << " items"; // at most the end of each part
        }
      }
    }
}

TEST(Split, WorkersComeWhetherTheySleepOrNot) {
  for (uint32_t threads : {2u, 4u}) {
    Caller caller(bundleOf("meet", 0), threads);
    for (int i = 0; i < 20; i++) {
      if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      caller.call(threads);
      ASSERT_EQ(caller.second, std::vector<float>(threads, 1)) << "call " << i;
    }
  }
}

TEST(Split, ASmallCallRunsInSubmit) {
  Caller caller(bundleOf("visit", 89999), 3);
  for (int again = 0; again < 100; again++) {
    Promise p = caller.submit(10);
    EXPECT_EQ(astra_promise_poll(p, nullptr), ASTRA_OK);
    ASSERT_EQ(caller.first, std::vector<float>(10, 1));
  }
}

/// A call of the entry that waits for `gate`.
Promise submitGate(Caller &caller, astra_session *session, astra_stream *stream, int32_t &gate, float &y) {
  Diag diag;
  astra_call c = ASTRA_INIT(astra_call);
  EXPECT_OK(astra_bundle_find_entry(caller.bundle, "gate", &c.entry, &diag));
  astra_tensor in = ASTRA_INIT(astra_tensor), out = ASTRA_INIT(astra_tensor);
  in.data = &gate, in.data_bytes = 4, in.dtype = ASTRA_I32;
  out.data = &y, out.data_bytes = 4, out.dtype = ASTRA_F32;
  c.inputs = &in, c.num_inputs = 1, c.outputs = &out, c.num_outputs = 1;
  Promise promise;
  EXPECT_OK(astra_session_submit(session, stream, &c, promise.out(), &diag));
  return promise;
}

TEST(Split, ASmallCallWaitsForItsTurn) {
  Caller caller(bundleOf("visit", 1000), 2);
  Diag diag;
  for (bool byPromise : {false, true}) { // behind the gate in its stream; behind its promise in another
    int32_t gate = 0;
    float y = 0;
    Session session;
    Stream other;
    EXPECT_OK(astra_session_init(session.out(), caller.loaded, nullptr, &diag));
    EXPECT_OK(astra_stream_init(other.out(), caller.device, &diag));
    Promise before = submitGate(caller, session, byPromise ? other : caller.stream, gate, y);
    if (byPromise) EXPECT_OK(astra_stream_wait(caller.stream, before, &diag));
    Promise small = caller.submit(10);
    EXPECT_EQ(astra_promise_poll(small, nullptr), ASTRA_NOT_READY);
    EXPECT_EQ(caller.first, std::vector<float>(10, 0));
    __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
    EXPECT_OK(astra_promise_wait(small, &diag));
    EXPECT_EQ(caller.first, std::vector<float>(10, 1));
    EXPECT_OK(astra_promise_wait(before, &diag));
  }
}

TEST(Split, ALargeCallDoesNotRunInSubmit) { // submit would never return
  struct {
    int64_t steps, bytes;
  } costs[] = {{95000, 0}, {1, 95000}, {0, 1}, {0, 0}};
  for (auto [steps, bytes] : costs) {
    Caller caller(bundleOf("visit", 0, steps, bytes), 2);
    Diag diag;
    int32_t gate = 0;
    float y = 0;
    Promise p = submitGate(caller, caller.session, caller.stream, gate, y);
    EXPECT_EQ(astra_promise_poll(p, nullptr), ASTRA_NOT_READY);
    __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
    EXPECT_OK(astra_promise_wait(p, &diag));
  }
}

/// Whether some other thread of this process has a CPU or waits for one, rather than sleeps.
bool anyAwake() {
  for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(gettid())) continue;
    std::ifstream file(task.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    size_t name = text.rfind(") "); // proc(5): "pid (name) state ..."
    if (name != std::string::npos && text[name + 2] == 'R') return true;
  }
  return false;
}

/// Whether workers look some time after a call: as long as `expected`, or until it is no use to wait for that.
bool awakeAfterCall(int64_t spinNs, bool expected) {
  Caller caller(bundleOf("visit", 0), 2, spinNs);
  caller.call(100);
  bool awake = !expected;
  for (int i = 0; i < 50 && awake != expected; i++) { // whoever is to sleep may not have had a CPU yet
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    awake = anyAwake();
  }
  return awake;
}

TEST(Split, WorkersLookAsLongAsTheHostSays) {
  EXPECT_FALSE(awakeAfterCall(-1, false));
  EXPECT_FALSE(awakeAfterCall(0, false));
  EXPECT_TRUE(awakeAfterCall(int64_t(60e9), true));
}

} // namespace
