//===- GpuDeviceTest.cpp: devices cuda:N and hip:N --------------------------===//
// Takes:    the stand-in driver (test/driver), the standard bundle with code for its devices.
// Checks:   waits between streams and devices, no more and no fewer; the caller's context; memory that is not the
//           host's; each refusal by its sentence. Faults are FaultTest.cpp's.
#include "Client.h"

using namespace astra::test;
namespace fmt = astra::fmt;

extern "C" {
int cuDevicePrimaryCtxRetain(void **out, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **out);
int cuCtxGetCurrent(void **out);
int hipGetDevice(int *out);
int hipSetDevice(int device);
}

namespace {

struct OnGpu : testing::TestWithParam<const char *> {
  std::unique_ptr<Machine> machine = Machine::withGpu(GetParam());
  Diag &diag = machine->diag;

  /// Calls since the reset, by the name in CUDA's driver or in HIP's.
  int64_t calls(const char *cuda, const char *hip) { return standInCalls(GetParam()[0] == 'c' ? cuda : hip); }
  int64_t streamWaits() { return calls("cuStreamWaitEvent", "hipStreamWaitEvent"); }
  int64_t eventSyncs() { return calls("cuEventSynchronize", "hipEventSynchronize"); }
  int64_t streamSyncs() { return calls("cuStreamSynchronize", "hipStreamSynchronize"); }
  Buffer makeBuffer(uint64_t bytes) {
    Buffer b;
    EXPECT_OK(astra_buffer_init(b.out(), machine->pool, bytes, &diag));
    return b;
  }
  Stream makeStream() {
    Stream s;
    EXPECT_OK(astra_stream_init(s.out(), machine->device, &diag));
    return s;
  }
  Tensor at(astra_buffer *buffer, int64_t n, uint64_t offset = 0) {
    Tensor t{Shape{n}, ASTRA_INIT(astra_tensor)};
    t.t.buffer = buffer, t.t.byte_offset = offset, t.t.dtype = ASTRA_F32, t.t.ndim = 1, t.t.shape = t.shape.data();
    return t;
  }
  void write(astra_buffer *to, const std::vector<float> &values, uint64_t offset = 0) {
    Promise p;
    EXPECT_OK(astra_stream_write(machine->stream, to, offset, values.data(), values.size() * 4, p.out(), &diag));
    EXPECT_OK(astra_promise_wait(p, &diag));
  }
  std::vector<float> read(astra_buffer *from, size_t n, uint64_t offset = 0) {
    std::vector<float> values(n);
    Promise p;
    EXPECT_OK(astra_stream_read(machine->stream, values.data(), from, offset, n * 4, p.out(), &diag));
    EXPECT_OK(astra_promise_wait(p, &diag));
    return values;
  }
  ~OnGpu() override {
    machine.reset();
    EXPECT_EQ(standInLive(), 0);
  }
};

TEST_P(OnGpu, ACallRunsBehindSubmit) {
  Buffer x = makeBuffer(400), z = makeBuffer(400);
  EXPECT_EQ(astra_buffer_data(x), nullptr) << "no address of the host";
  write(x, std::vector<float>(100, 3));
  int64_t syncs = streamSyncs();
  standInHold(1);
  Promise p;
  EXPECT_OK(machine->submit(machine->session, machine->stream, "double", {at(x, 100)}, {at(z, 100)}, p.out()));
  EXPECT_EQ(astra_promise_poll(p, &diag), ASTRA_NOT_READY);
  EXPECT_EQ(streamSyncs(), syncs) << "nothing waits";
  standInGo();
  EXPECT_OK(astra_promise_wait(p, &diag));
  EXPECT_EQ(read(z, 100), std::vector<float>(100, 6));
}

TEST_P(OnGpu, TheSameStreamNeedsNoWait) {
  Session second = machine->makeSession();
  Buffer x = makeBuffer(400), y = makeBuffer(400), z = makeBuffer(400);
  write(x, std::vector<float>(100, 3));
  standInHold(1);
  int64_t before = eventSyncs();
  Promise a, b;
  EXPECT_OK(machine->submit(machine->session, machine->stream, "double", {at(x, 100)}, {at(y, 100)}, a.out()));
  EXPECT_OK(machine->submit(second, machine->stream, "double", {at(y, 100)}, {at(z, 100)}, b.out(), {a}));
  EXPECT_EQ(streamWaits(), 0);
  EXPECT_EQ(eventSyncs(), before);
  standInGo();
  EXPECT_OK(astra_promise_wait(b, &diag));
  EXPECT_EQ(read(z, 100), std::vector<float>(100, 12));
}

TEST_P(OnGpu, AnotherStreamWaitsForOneEvent) {
  Stream other = makeStream();
  Session second = machine->makeSession();
  Buffer x = makeBuffer(400), y = makeBuffer(400), z = makeBuffer(400);
  write(x, std::vector<float>(100, 3));
  standInHold(1);
  int64_t before = eventSyncs();
  Promise a, b, mark;
  EXPECT_OK(machine->submit(machine->session, machine->stream, "double", {at(x, 100)}, {at(y, 100)}, a.out()));
  EXPECT_OK(machine->submit(second, other, "double", {at(y, 100)}, {at(z, 100)}, b.out(), {a}));
  EXPECT_EQ(streamWaits(), 1);
  EXPECT_EQ(eventSyncs(), before) << "no thread waits";
  EXPECT_EQ(astra_promise_poll(b, &diag), ASTRA_NOT_READY);
  standInGo();
  EXPECT_OK(astra_promise_wait(b, &diag));
  // What has ended is waited for by nobody.
  EXPECT_OK(astra_stream_wait(machine->stream, b, &diag));
  EXPECT_EQ(streamWaits(), 1);
  EXPECT_EQ(read(z, 100), std::vector<float>(100, 12));
}

TEST_P(OnGpu, StreamsEndInAnyOrder) {
  Stream other = makeStream();
  Session second = machine->makeSession();
  Buffer x = makeBuffer(400), y = makeBuffer(400), z = makeBuffer(400);
  write(x, std::vector<float>(100, 3));
  standInHold(1);
  Promise a, b;
  EXPECT_OK(machine->submit(machine->session, machine->stream, "double", {at(x, 100)}, {at(y, 100)}, a.out()));
  EXPECT_OK(machine->submit(second, other, "double", {at(x, 100)}, {at(z, 100)}, b.out()));
  EXPECT_OK(astra_promise_wait(b, &diag)); // submitted later, on a stream that is free
  EXPECT_EQ(astra_promise_poll(a, &diag), ASTRA_NOT_READY);
  std::vector<float> sum = {1};
  EXPECT_FAIL(ASTRA_BUSY, "in flight", astra_session_set_state(machine->session, "sum", &tensor(sum, {}), &diag));
  EXPECT_OK(astra_session_set_state(second, "sum", &tensor(sum, {}), &diag));
  standInGo();
  EXPECT_OK(astra_promise_wait(a, &diag));
}

TEST_P(OnGpu, WhatEndsLateEnds) {
  standInDelay(2000);
  Stream other = makeStream();
  Session second = machine->makeSession();
  std::vector<float> x(100, 1), y(100), z(100);
  Promise a, b;
  EXPECT_OK(
      machine->submit(machine->session, machine->stream, "double", {tensor(x, {100})}, {tensor(y, {100})}, a.out()));
  EXPECT_OK(machine->submit(second, other, "double", {tensor(y, {100})}, {tensor(z, {100})}, b.out(), {a}));
  int polls = 0;
  while (astra_promise_poll(b, &diag) == ASTRA_NOT_READY) polls++;
  EXPECT_GT(polls, 0);
  EXPECT_EQ(z, std::vector<float>(100, 4));
  EXPECT_EQ(astra_promise_poll(a, &diag), ASTRA_OK);
}

/// Promises between a GPU, a CPU and a GPU of the other maker.
TEST_P(OnGpu, DevicesWaitForEachOther) {
  astra_device_options o = ASTRA_INIT(astra_device_options);
  o.num_threads = 2;
  Device device;
  Stream onCpu;
  Loaded loaded;
  Session session;
  EXPECT_OK(astra_device_init(device.out(), machine->runtime, "cpu", &o, &diag));
  EXPECT_OK(astra_stream_init(onCpu.out(), device, &diag));
  astra_device *devices[] = {device};
  EXPECT_OK(astra_loaded_init(loaded.out(), machine->bundle, devices, 1, &diag));
  astra_dim_value dims[] = {{"cap", 8}};
  astra_session_options so = ASTRA_INIT(astra_session_options);
  so.dims = dims, so.num_dims = 1;
  EXPECT_OK(astra_session_init(session.out(), loaded, &so, &diag));

  int64_t syncs = eventSyncs();
  std::vector<float> x(100, 1), y(100), z(100), w(100);
  standInHold(1);
  Promise a, b, c;
  EXPECT_OK(
      machine->submit(machine->session, machine->stream, "double", {tensor(x, {100})}, {tensor(y, {100})}, a.out()));
  EXPECT_OK(machine->submit(session, onCpu, "double", {tensor(y, {100})}, {tensor(z, {100})}, b.out(), {a}));
  Session third = machine->makeSession();
  EXPECT_OK(machine->submit(third, machine->stream, "double", {tensor(z, {100})}, {tensor(w, {100})}, c.out(), {b}));
  EXPECT_EQ(astra_promise_poll(b, &diag), ASTRA_NOT_READY);
  standInGo();
  EXPECT_OK(astra_promise_wait(c, &diag));
  EXPECT_EQ(w, std::vector<float>(100, 8));
  EXPECT_LE(eventSyncs(), syncs + 1) << "but for who waits for c, no thread waits";
  astra_stream_stats stats = ASTRA_INIT(astra_stream_stats);
  EXPECT_OK(astra_stream_get_stats(onCpu, &stats));
  EXPECT_EQ(stats.waits, 1u);
  EXPECT_OK(astra_stream_get_stats(machine->stream, &stats));
  EXPECT_EQ(stats.waits, 1u);
}

TEST_P(OnGpu, TheCallersContextStays) {
  bool isCuda = GetParam()[0] == 'c';
  void *mine = nullptr, *now = nullptr;
  int number = 0;
  if (isCuda) {
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&mine, 1), 0);
    ASSERT_EQ(cuCtxPushCurrent_v2(mine), 0);
  } else {
    ASSERT_EQ(hipSetDevice(1), 0);
  }
  auto trace = [](void *self, const astra_trace_event *) {
    void *context = nullptr;
    int device = 0;
    cuCtxGetCurrent(&context), hipGetDevice(&device);
    EXPECT_TRUE(*static_cast<void **>(self) ? context == *static_cast<void **>(self) : device == 1);
  };
  EXPECT_OK(astra_session_set_trace(machine->session, trace, &mine));
  std::vector<float> x = {3}, y(1);
  EXPECT_OK(machine->run("accumulate", {tensor(x, {})}, {tensor(y, {})}));
  EXPECT_EQ(y[0], 13);
  if (isCuda) {
    EXPECT_EQ(cuCtxGetCurrent(&now), 0);
    EXPECT_EQ(now, mine);
    EXPECT_EQ(cuCtxPopCurrent_v2(&now), 0);
    EXPECT_EQ(now, mine);
    EXPECT_EQ(cuCtxGetCurrent(&now), 0);
    EXPECT_EQ(now, nullptr) << "nothing else was left there";
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(1), 0);
  } else {
    EXPECT_EQ(hipGetDevice(&number), 0);
    EXPECT_EQ(number, 1);
    EXPECT_EQ(hipSetDevice(0), 0);
  }
}

TEST_P(OnGpu, ProgramsDecideByWhatWasComputed) {
  std::vector<float> x = {3}, y(1), v(8), t(1);
  EXPECT_OK(machine->run("grow", {tensor(x, {})}, {tensor(y, {})})); // a while and a cond
  EXPECT_EQ(y[0], 192);
  EXPECT_OK(astra_session_set_dim(machine->session, "count", 4, &diag));
  EXPECT_OK(machine->run("loop", {tensor(x, {})}, {tensor(y, {})}));
  EXPECT_EQ(y[0], 59);
  std::vector<float> mixed = {1, -2, 3, -4, 5, -6, 7, -8};
  Shape extents;
  EXPECT_OK(machine->run("compact", {tensor(mixed, {8})}, {tensor(v, {8}), tensor(t, {})}, &extents)); // a data dim
  EXPECT_EQ(extents, Shape{4});
  EXPECT_EQ(t[0], 16);
}

TEST_P(OnGpu, StatesAndParamsLieThere) {
  std::vector<float> x = {1, 2, 3}, y(8), w(24), sum(1), a(8, 5), d(8, 1);
  for (size_t i = 0; i < 24; i++) w[i] = float(100 + i);
  EXPECT_OK(machine->run("apply", {tensor(x, {1, 3})}, {tensor(y, {1, 8})}));
  EXPECT_EQ(y[7], 134);
  EXPECT_OK(astra_loaded_set_param(machine->loaded, "w", &tensor(w, {8, 3}), &diag)); // prepared by a kernel
  EXPECT_OK(machine->run("apply", {tensor(x, {1, 3})}, {tensor(y, {1, 8})}));
  EXPECT_EQ(y[7], 121 + 2 * 122 + 3 * 123);
  // Column-major, of the session alone.
  std::vector<float> turned(24);
  for (size_t i = 0; i < 8; i++)
    for (size_t k = 0; k < 3; k++) turned[k * 8 + i] = float(i * 3 + k);
  Tensor t = tensor(turned, {8, 3});
  Shape strides = {1, 8};
  t.t.strides = strides.data();
  EXPECT_OK(astra_session_set_param(machine->session, "w", &t, &diag));
  EXPECT_OK(machine->run("apply", {tensor(x, {1, 3})}, {tensor(y, {1, 8})}));
  EXPECT_EQ(y[7], 134);
  EXPECT_OK(astra_session_set_param(machine->session, "a", &tensor(a, {8}), &diag)); // derived by a kernel
  EXPECT_OK(machine->run("derived", {tensor(d, {8})}, {tensor(y, {8})}));
  EXPECT_EQ(y[0], 1 + 5 + 2);

  sum[0] = 40;
  EXPECT_OK(astra_session_set_state(machine->session, "sum", &tensor(sum, {}), &diag));
  EXPECT_OK(machine->run("accumulate", {tensor(d, {})}, {tensor(y, {})}));
  EXPECT_OK(astra_session_get_state(machine->session, "sum", &tensor(sum, {}), &diag));
  EXPECT_EQ(sum[0], 41);
  const void *data;
  uint64_t bytes;
  EXPECT_OK(astra_session_lease_state(machine->session, "sum", &data, &bytes, &diag));
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(*static_cast<const float *>(data), 41);
  EXPECT_OK(astra_session_return_state(machine->session, "sum", &diag));
  EXPECT_OK(astra_session_reset(machine->session, &diag));
  EXPECT_OK(astra_session_get_state(machine->session, "sum", &tensor(sum, {}), &diag));
  EXPECT_EQ(sum[0], 10);
  // A NaN becomes canonical on its way there; a tensor in the GPU's memory serves as one of the host does.
  uint32_t nan = 0xffc12345, canonical = 0;
  memcpy(sum.data(), &nan, 4);
  Buffer there = makeBuffer(4);
  write(there, sum);
  Tensor state = at(there, 1);
  state.t.ndim = 0;
  EXPECT_OK(astra_session_set_state(machine->session, "sum", &state, &diag));
  EXPECT_OK(astra_session_get_state(machine->session, "sum", &state, &diag));
  memcpy(&canonical, read(there, 1).data(), 4);
  EXPECT_EQ(canonical, 0x7fc00000u);
}

TEST_P(OnGpu, TensorsBeginAnywhere) {
  Buffer memory = makeBuffer(4096);
  std::vector<float> x(100);
  for (size_t i = 0; i < 100; i++) x[i] = float(i);
  write(memory, x, 4); // not at a multiple of 16 bytes: copied, since kernels demand it
  EXPECT_OK(machine->run("double", {at(memory, 100, 4)}, {at(memory, 100, 1004)}));
  EXPECT_EQ(read(memory, 100, 1004)[99], 198);
  // Strides: on the host if a copy is allowed, on a GPU never.
  std::vector<float> y(50);
  Tensor t = tensor(x, {50});
  Shape strides = {2};
  t.t.strides = strides.data();
  EXPECT_FAIL(ASTRA_WRONG_STRIDES, "row-major", machine->run("double", {t}, {tensor(y, {50})}));
  EXPECT_OK(machine->run("double", {t}, {tensor(y, {50})}, nullptr, ASTRA_CALL_ALLOW_COPY));
  EXPECT_EQ(y[49], 196);
  Tensor strided = at(memory, 50);
  strided.t.strides = strides.data();
  EXPECT_FAIL(ASTRA_WRONG_STRIDES, "lies on a GPU",
              machine->run("double", {strided}, {tensor(y, {50})}, nullptr, ASTRA_CALL_ALLOW_COPY));
  std::vector<float> none;
  EXPECT_OK(machine->run("double", {tensor(none, {0})}, {tensor(none, {0})}));
}

TEST_P(OnGpu, MemoryOfAnotherDeviceIsRefused) {
  std::unique_ptr<Machine> cpu = std::make_unique<Machine>(1);
  Buffer there = makeBuffer(400);
  std::vector<float> y(100);
  EXPECT_EQ(cpu->run("double", {at(there, 100)}, {tensor(y, {100})}), ASTRA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(cpu->diag.text).find("memory of another device"), std::string::npos) << cpu->diag.text;
  Promise p;
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "of another device than the stream",
              astra_stream_write(cpu->stream, there, 0, y.data(), 400, p.out(), &diag));
}

TEST_P(OnGpu, APoolGivesBackWhatIsUnusedWhenMemoryIsShort) {
  {
    Buffer a = makeBuffer(1000), b = makeBuffer(1000);
  }
  standInFail(GetParam()[0] == 'c' ? "cuMemAlloc_v2" : "hipMalloc", 0, 2);
  Buffer larger = makeBuffer(5000);
  astra_pool_stats stats = ASTRA_INIT(astra_pool_stats);
  EXPECT_OK(astra_pool_get_stats(machine->pool, &stats));
  EXPECT_EQ(stats.bytes_held, 5056u);
  EXPECT_EQ(stats.fresh, 3u);
}

std::string gpuName(const testing::TestParamInfo<const char *> &info) { return info.param[0] == 'c' ? "Cuda" : "Hip"; }
INSTANTIATE_TEST_SUITE_P(Stand, OnGpu, testing::Values("cuda:0", "hip:0"), gpuName);

//===- Refusals ---------------------------------------------------------------===//

struct OnGpuRefused : testing::Test {
  Diag diag;
  Runtime runtime;
  Device device;
  Bundle bundle;
  Loaded loaded;
  astra_device_options o = ASTRA_INIT(astra_device_options);
  std::unique_ptr<Aligned> memory;

  void SetUp() override {
    standInReset();
    o.driver = ASTRA_STAND_IN;
    EXPECT_OK(astra_runtime_init(runtime.out(), nullptr, &diag));
  }
  astra_status open(const char *name) {
    loaded = Loaded();
    device = Device();
    diag = Diag();
    return astra_device_init(device.out(), runtime, name, &o, &diag);
  }
  astra_status load(const Bytes &bytes) {
    standInBundle(bytes.data(), bytes.size(), true);
    loaded = Loaded();
    bundle = Bundle();
    memory = std::make_unique<Aligned>(bytes);
    EXPECT_OK(astra_bundle_init_memory(bundle.out(), runtime, memory->data, memory->size, nullptr, &diag));
    astra_device *devices[] = {device};
    diag = Diag();
    return astra_loaded_init(loaded.out(), bundle, devices, 1, &diag);
  }
  void TearDown() override {
    loaded = Loaded();
    device = Device();
    EXPECT_EQ(standInLive(), 0);
  }
};
#define REFUSED(wanted, part, call)                                                                                    \
  do {                                                                                                                 \
    EXPECT_STREQ(astra_status_name(call), astra_status_name(wanted)) << diag.text;                                     \
    EXPECT_NE(std::string(diag.text).find(part), std::string::npos) << diag.text;                                      \
  } while (0)

TEST_F(OnGpuRefused, Drivers) {
  o.driver = "/nowhere/libcuda.so.1";
  REFUSED(ASTRA_UNSUPPORTED, "driver of NVIDIA GPUs cannot be opened (/nowhere/libcuda.so.1", open("cuda:0"));
  o.driver = "/nowhere/libamdhip64.so";
  REFUSED(ASTRA_UNSUPPORTED, "driver of AMD GPUs cannot be opened", open("hip:0"));
  o.driver = "libm.so.6";
  REFUSED(ASTRA_UNSUPPORTED, "libm.so.6 has no function cuInit; version 11.0 or newer is needed", open("cuda:0"));
  o.driver = ASTRA_STAND_IN;
  standInMachine(0, 0, nullptr, 10020, 50000000);
  REFUSED(ASTRA_UNSUPPORTED, "of version 10020, and 11000 (11.0) or newer is needed", open("cuda:0"));
  REFUSED(ASTRA_UNSUPPORTED, "of version 50000000, and 60000000 (6.0) or newer is needed", open("hip:0"));
  standInMachine(1, 0, nullptr, 13000, 60300000);
  REFUSED(ASTRA_UNKNOWN_NAME, "no device 'cuda:1'; this machine has cuda:0 to cuda:0", open("cuda:1"));
  REFUSED(ASTRA_UNKNOWN_NAME, "no device 'hip:-1'", open("hip:-1"));
  REFUSED(ASTRA_UNKNOWN_NAME, "no device 'cuda:x'", open("cuda:x"));
  REFUSED(ASTRA_UNKNOWN_NAME, "no device 'cuda:'", open("cuda:"));
  standInNoDevice();
  REFUSED(ASTRA_UNSUPPORTED, "driver of NVIDIA GPUs finds none in this machine", open("cuda:0"));
  REFUSED(ASTRA_UNSUPPORTED, "driver of AMD GPUs finds none in this machine", open("hip:0"));
}

TEST_F(OnGpuRefused, Options) {
  o.level = "sm_90";
  REFUSED(ASTRA_INVALID_ARGUMENT, "takes no level", open("cuda:0"));
  o.level = nullptr, o.flags = 8;
  REFUSED(ASTRA_NEWER_CLIENT, "flags 0x8", open("cuda:0"));
  o.flags = 0;
  REFUSED(ASTRA_INVALID_ARGUMENT, "'cpu' has no driver", open("cpu"));
}

TEST_F(OnGpuRefused, Architectures) {
  Bytes both = deviceBundle();
  standInMachine(0, 80, "gfx1100", 0, 0);
  EXPECT_EQ(open("cuda:0"), ASTRA_OK);
  REFUSED(ASTRA_NO_TARGET, "has code for cuda:sm_90 and this GPU is cuda:sm_80; compile it with --target=cuda:sm_80",
          load(both));
  EXPECT_EQ(open("hip:0"), ASTRA_OK);
  REFUSED(ASTRA_NO_TARGET, "has code for hip:gfx942 and this GPU is hip:gfx1100; compile it with --target=hip:gfx1100",
          load(both));
  ManifestMaker cpus = standardManifest();
  Bytes none = assemble(cpus);
  bundle = Bundle();
  memory = std::make_unique<Aligned>(none);
  EXPECT_OK(astra_bundle_init_memory(bundle.out(), runtime, memory->data, memory->size, nullptr, &diag));
  astra_device *devices[] = {device};
  REFUSED(ASTRA_NO_TARGET, "no code for AMD GPUs; compile it with --target=hip:gfx1100",
          astra_loaded_init(loaded.out(), bundle, devices, 1, &diag));
  // Settings of a chip behind its name do not matter.
  standInMachine(0, 0, "gfx942:sramecc-:xnack+", 0, 0);
  EXPECT_EQ(open("hip:0"), ASTRA_OK);
  EXPECT_EQ(load(both), ASTRA_OK) << diag.text;
  EXPECT_STREQ(astra_loaded_target(loaded), "hip:gfx942");
}

// Code with the instructions of warp groups is of 9.0 alone, and is preferred there, whichever comes first.
TEST_F(OnGpuRefused, WarpGroupsOfOneArchitecture) {
  auto name = [](fmt::ManifestT &m, int of, const char *arch) {
    m.targets[of]->name = std::string("cuda:") + arch, m.targets[of]->arch = fmt::Arch::NVIDIA;
    m.targets[of + 2]->name = std::string("emu:cuda:") + arch;
  };
  static auto rename = name;
  Bytes behind = deviceBundle([](fmt::ManifestT &m) { rename(m, 5, "sm_90a"); });
  Bytes before = deviceBundle([](fmt::ManifestT &m) { rename(m, 4, "sm_90a"), rename(m, 5, "sm_90"); });
  Bytes other = deviceBundle([](fmt::ManifestT &m) { rename(m, 4, "sm_90a"), rename(m, 5, "sm_80"); });
  standInMachine(0, 90, nullptr, 0, 0); // as H100 and H200 say
  EXPECT_EQ(open("cuda:0"), ASTRA_OK);
  for (const Bytes &b : {behind, before, other}) {
    EXPECT_EQ(load(b), ASTRA_OK) << diag.text;
    EXPECT_STREQ(astra_loaded_target(loaded), "cuda:sm_90a");
  }
  standInMachine(0, 80, nullptr, 0, 0);
  EXPECT_EQ(open("cuda:0"), ASTRA_OK);
  EXPECT_EQ(load(other), ASTRA_OK) << diag.text;
  EXPECT_STREQ(astra_loaded_target(loaded), "cuda:sm_80");
  standInMachine(0, 100, nullptr, 0, 0);
  EXPECT_EQ(open("cuda:0"), ASTRA_OK);
  REFUSED(ASTRA_NO_TARGET, "and this GPU is cuda:sm_100; compile it with --target=cuda:sm_100", load(other));
}

TEST_F(OnGpuRefused, PtxWithoutConsent) {
  Bytes both = deviceBundle();
  Bytes alone = deviceBundle([](fmt::ManifestT &m) {
    m.targets[4]->section = 4;
    m.targets[6]->gpu->of_sha256 = textHash();
  });
  standInMachine(0, 100, nullptr, 0, 0);
  EXPECT_EQ(open("cuda:0"), ASTRA_OK);
  REFUSED(ASTRA_NO_TARGET, "has PTX of cuda:sm_90 and no code for cuda:sm_100", load(both));
  standInMachine(0, 90, nullptr, 0, 0);
  EXPECT_EQ(open("cuda:0"), ASTRA_OK);
  REFUSED(ASTRA_NO_TARGET, "has PTX of cuda:sm_90 and no code for cuda:sm_90", load(alone));
  o.flags = ASTRA_DEVICE_ALLOW_PTX;
  EXPECT_EQ(open("cuda:0"), ASTRA_OK);
  EXPECT_EQ(load(alone), ASTRA_OK) << diag.text;
  standInMachine(0, 100, nullptr, 0, 0);
  EXPECT_EQ(open("cuda:0"), ASTRA_OK);
  EXPECT_EQ(load(both), ASTRA_OK) << diag.text;
  EXPECT_STREQ(astra_loaded_target(loaded), "cuda:sm_90");
  standInMachine(0, 80, nullptr, 0, 0);
  EXPECT_EQ(open("cuda:0"), ASTRA_OK);
  REFUSED(ASTRA_NO_TARGET, "has code for cuda:sm_90 and this GPU is cuda:sm_80", load(both)); // PTX of a newer one
}

static void madeWith(fmt::ManifestT &m, const char *version) {
  auto ptxas = std::make_unique<fmt::ComponentT>();
  ptxas->name = "ptxas", ptxas->version = version, ptxas->license = "NOASSERTION";
  m.toolchain.push_back(std::move(ptxas));
}
TEST_F(OnGpuRefused, DriverOlderThanTheCode) {
  Bytes newer = deviceBundle([](fmt::ManifestT &m) { madeWith(m, "13.0.88"); });
  Bytes same = deviceBundle([](fmt::ManifestT &m) { madeWith(m, "12.9.41"); });
  standInMachine(0, 0, nullptr, 12040, 0);
  EXPECT_EQ(open("cuda:0"), ASTRA_OK);
  REFUSED(ASTRA_UNSUPPORTED,
          "code for cuda:sm_90 was made with CUDA 13 and the driver is of CUDA 12.4; install a driver of CUDA 13.0 or "
          "newer, or compile the bundle with the ptxas of CUDA 12",
          load(newer));
  EXPECT_EQ(load(same), ASTRA_OK) << diag.text; // of the same major version
  EXPECT_EQ(open("hip:0"), ASTRA_OK);
  EXPECT_EQ(load(newer), ASTRA_OK) << diag.text;
  o.flags = ASTRA_DEVICE_ALLOW_PTX; // which the driver compiles
  EXPECT_EQ(open("cuda:0"), ASTRA_OK);
  EXPECT_EQ(load(newer), ASTRA_OK) << diag.text;
  standInFail("cuModuleLoadData", 0, 222);
  REFUSED(ASTRA_DRIVER, "to compile the bundle's PTX", load(newer));
}

TEST_F(OnGpuRefused, CodeThatIsDamaged) {
  auto damaged = [](uint32_t section) {
    Bytes b = deviceBundle();
    b[reinterpret_cast<const fmt::Section *>(b.data() + sizeof(fmt::Header))[section].offset] ^= 1;
    return b;
  };
  constexpr uint32_t cubin = 3, text = 4, hsaco = 5; // sections of TestBundle.cpp
  EXPECT_EQ(open("cuda:0"), ASTRA_OK);
  REFUSED(ASTRA_CORRUPT, "the hash of section 3 (code) is wrong", load(damaged(cubin)));
  EXPECT_EQ(load(damaged(text)), ASTRA_OK) << diag.text; // which it does not load
  EXPECT_EQ(load(damaged(hsaco)), ASTRA_OK) << diag.text;
  EXPECT_EQ(open("hip:0"), ASTRA_OK);
  REFUSED(ASTRA_CORRUPT, "the hash of section 5 (code) is wrong", load(damaged(hsaco)));
  o.flags = ASTRA_DEVICE_ALLOW_PTX;
  standInMachine(0, 100, nullptr, 0, 0);
  EXPECT_EQ(open("cuda:0"), ASTRA_OK);
  REFUSED(ASTRA_CORRUPT, "the hash of section 4 (code) is wrong", load(damaged(text)));
}

TEST_F(OnGpuRefused, CodeThatTheDriverDoesNotTake) {
  EXPECT_EQ(open("cuda:0"), ASTRA_OK);
  standInFail("cuModuleLoadData", 0, 222);
  REFUSED(ASTRA_DRIVER, "refuses: to load the bundle's code (ERROR_UNSUPPORTED_PTX_VERSION, 222)",
          load(deviceBundle()));
  standInFail("cuModuleGetFunction", 2, 500);
  REFUSED(ASTRA_DRIVER, "refuses: a kernel of the bundle (ERROR_NOT_FOUND, 500)", load(deviceBundle()));
}

} // namespace
