//===- Conformance.h: the devices that the conformance suite runs on ------===//
// Takes:    a kind of device: a CPU (inline, threads of ours, threads of the host), a GPU of the stand-in driver
//           (inline, with threads on which calls wait).
// Gives:    a machine with that device; buffers, streams, and gates that hold up what is submitted.
// Keeps:    each test the same for each kind.
// Does not: test anything itself.
#pragma once

#include "Client.h"

#include <mutex>
#include <thread>

namespace astra::test {

/// Threads of the host, as an embedding program would give them.
struct HostThreads {
  std::mutex mutex;
  std::vector<std::thread> started;
  astra_executor executor(bool queues) {
    astra_executor e = ASTRA_INIT(astra_executor);
    e.self = this, e.num_workers = 3;
    e.parallel_for = [](void *, size_t n, void (*fn)(void *, size_t), void *arg) {
      std::vector<std::thread> helpers;
      for (size_t i = 1; i < n; i++) helpers.emplace_back(fn, arg, i);
      if (n) fn(arg, 0);
      for (auto &t : helpers) t.join();
    };
    if (queues)
      e.enqueue = [](void *self, void (*fn)(void *), void *arg) {
        auto *host = static_cast<HostThreads *>(self);
        std::lock_guard lock(host->mutex);
        host->started.emplace_back(fn, arg);
        return 0;
      };
    return e;
  }
  ~HostThreads() {
    for (auto &t : started) t.join();
  }
};

enum Kind { Inline, Two, Seven, Host, HostQueues, Cuda, Hip, CudaThreads };
inline bool isGpu(Kind kind) { return kind >= Cuda; }
/// Calls end inside submit.
inline bool isInline(Kind kind) { return kind == Inline || kind == Host; }

struct Conformance : testing::TestWithParam<Kind> {
  HostThreads host;
  std::unique_ptr<Machine> machine = make();
  Diag &diag = machine->diag;

  std::unique_ptr<Machine> make() {
    Kind kind = GetParam();
    if (isGpu(kind)) return Machine::withGpu(kind == Hip ? "hip:0" : "cuda:1", kind == CudaThreads ? 2 : 1);
    auto m = std::make_unique<Machine>(kind == Two ? 2 : kind == Seven ? 7 : 1);
    if (kind != Host && kind != HostQueues) return m;
    // The same machine on a device with the host's threads.
    m->session = Session();
    m->loaded = Loaded();
    m->stream = Stream();
    m->pool = Pool();
    m->device = Device();
    astra_executor e = host.executor(kind == HostQueues);
    astra_device_options o = ASTRA_INIT(astra_device_options);
    o.executor = &e;
    EXPECT_EQ(astra_device_init(m->device.out(), m->runtime, "cpu", &o, &m->diag), ASTRA_OK) << m->diag.text;
    EXPECT_EQ(astra_pool_init(m->pool.out(), m->device, nullptr, nullptr), ASTRA_OK);
    EXPECT_EQ(astra_stream_init(m->stream.out(), m->device, nullptr), ASTRA_OK);
    astra_device *devices[] = {m->device};
    EXPECT_EQ(astra_loaded_init(m->loaded.out(), m->bundle, devices, 1, nullptr), ASTRA_OK);
    m->session = m->makeSession();
    return m;
  }
  Stream makeStream() {
    Stream s;
    EXPECT_OK(astra_stream_init(s.out(), machine->device, &diag));
    return s;
  }
  Buffer makeBuffer(uint64_t bytes) {
    Buffer b;
    EXPECT_OK(astra_buffer_init(b.out(), machine->pool, bytes, &diag));
    return b;
  }
  /// A tensor of n floats in a buffer.
  Tensor in(astra_buffer *buffer, int64_t n, uint64_t offset = 0) {
    Tensor t{Shape{n}, ASTRA_INIT(astra_tensor)};
    t.t.buffer = buffer, t.t.byte_offset = offset, t.t.dtype = ASTRA_F32, t.t.ndim = 1, t.t.shape = t.shape.data();
    return t;
  }
  void write(astra_buffer *to, const std::vector<float> &values) {
    Promise p;
    EXPECT_OK(astra_stream_write(machine->stream, to, 0, values.data(), values.size() * 4, p.out(), &diag));
    EXPECT_OK(astra_promise_wait(p, &diag));
  }
  std::vector<float> read(astra_buffer *from) {
    std::vector<float> values(astra_buffer_bytes(from) / 4);
    Promise p;
    EXPECT_OK(astra_stream_read(machine->stream, values.data(), from, 0, values.size() * 4, p.out(), &diag));
    EXPECT_OK(astra_promise_wait(p, &diag));
    return values;
  }
  /// What "gate" waits for. A GPU reads it when its stream begins: that is held.
  Tensor gateTensor(int32_t &gate) {
    hold();
    Tensor t{Shape{}, ASTRA_INIT(astra_tensor)};
    t.t.data = &gate, t.t.data_bytes = 4, t.t.dtype = ASTRA_I32;
    return t;
  }
  void hold() {
    constexpr int64_t kFirstStream = 1; // number 0 is the device's own
    if (isGpu(GetParam())) standInHold(kFirstStream);
  }
  void open(int32_t &gate, int32_t value) {
    __atomic_store_n(&gate, value, __ATOMIC_RELEASE);
    if (isGpu(GetParam())) standInGo();
  }
  ~Conformance() override {
    machine.reset();
    if (isGpu(GetParam())) {
      EXPECT_EQ(standInLive(), 0);
    }
  }
};

inline std::string kindName(const testing::TestParamInfo<Kind> &info) {
  const char *names[] = {"Inline",     "TwoThreads", "SevenThreads", "HostThreads",
                         "HostQueues", "Cuda",       "Hip",          "CudaThreads"};
  return names[info.param];
}

} // namespace astra::test
