//===- GpuTest.cpp: bundles with GPUs, devices that are emulated -------------===//
// Checks:   what an emulator is given; that its refusal fails the call and loses the states; each rule of the format
//           about GPUs and host builds, by its sentence.
#include "Client.h"

using namespace astra;
using namespace astra::test;

namespace {

/// Calls the kernel as a CPU calls it, and keeps what it was given.
struct FakeEmulator {
  std::vector<astra_emulated_launch> launches;
  std::vector<int64_t> dims;
  std::vector<uint64_t> bytes;
  std::vector<uint8_t> writes;
  bool refuse = false;

  static astra_status launch(void *self, const astra_emulated_launch *l, astra_diag *diag) {
    auto &e = *static_cast<FakeEmulator *>(self);
    e.launches.push_back(*l);
    e.dims.assign(l->dims, l->dims + l->num_dims);
    e.bytes.assign(l->buffer_bytes, l->buffer_bytes + l->num_buffers);
    e.writes.assign(l->writes, l->writes + l->num_buffers);
    if (e.refuse) {
      diag->status = ASTRA_KERNEL_FAULT;
      snprintf(diag->text, sizeof diag->text, "a race");
      return ASTRA_KERNEL_FAULT;
    }
    const int64_t all[] = {l->dims[1], 0, 0, l->dims[0], 0};
    alignas(64) uint8_t scratch[64];
    auto *kernel = reinterpret_cast<void (*)(void *const *, const int64_t *, void *, int64_t, int64_t)>(
        const_cast<void *>(l->code));
    kernel(l->buffers, all, scratch, 0, l->items);
    return ASTRA_OK;
  }
};

struct Emulated : testing::Test {
  FakeEmulator fake;
  astra_emulator hooks = ASTRA_INIT(astra_emulator);
  ManifestMaker maker = gpuManifest();
  Aligned memory{assembleGpu(maker)};
  Diag diag;
  Runtime runtime;
  Device device;
  Bundle bundle;
  Loaded loaded;
  Stream stream;
  Session session;

  void SetUp() override {
    hooks.self = &fake, hooks.launch = FakeEmulator::launch;
    astra_device_options o = ASTRA_INIT(astra_device_options);
    o.emulator = &hooks;
    EXPECT_OK(astra_runtime_init(runtime.out(), nullptr, &diag));
    EXPECT_OK(astra_device_init(device.out(), runtime, "emu:cuda:sm_90", &o, &diag));
    EXPECT_OK(astra_bundle_init_memory(bundle.out(), runtime, memory.data, memory.size, nullptr, &diag));
    astra_device *devices[] = {device};
    EXPECT_OK(astra_loaded_init(loaded.out(), bundle, devices, 1, &diag));
    EXPECT_OK(astra_stream_init(stream.out(), device, &diag));
    astra_dim_value dims[] = {{"cap", 2}};
    astra_session_options so = ASTRA_INIT(astra_session_options);
    so.dims = dims, so.num_dims = 1;
    EXPECT_OK(astra_session_init(session.out(), loaded, &so, &diag));
  }
  astra_status run(const char *name, std::vector<astra_tensor> inputs, std::vector<astra_tensor> outputs) {
    astra_call call = ASTRA_INIT(astra_call);
    EXPECT_EQ(astra_bundle_find_entry(bundle, name, &call.entry, &diag), ASTRA_OK);
    call.inputs = inputs.data(), call.num_inputs = uint32_t(inputs.size());
    call.outputs = outputs.data(), call.num_outputs = uint32_t(outputs.size());
    Promise promise;
    diag = Diag();
    if (astra_status s = astra_session_submit(session, stream, &call, promise.out(), &diag)) return s;
    return astra_promise_wait(promise, &diag);
  }
};

TEST_F(Emulated, ALaunchSaysAllThatItIs) {
  EXPECT_STREQ(astra_loaded_target(loaded), "emu:cuda:sm_90");
  std::vector<float> x = {1, 2, 3}, y = {10, 20, 30}, z(3);
  EXPECT_OK(run("add", {tensor(x, {3}), tensor(y, {3})}, {tensor(z, {3})}));
  EXPECT_EQ(z, (std::vector<float>{11, 22, 33}));
  ASSERT_EQ(fake.launches.size(), 1u);
  const astra_emulated_launch &l = fake.launches[0];
  EXPECT_EQ(l.size, sizeof l);
  EXPECT_EQ(l.items, 3);
  EXPECT_EQ(l.threads, 64u);
  EXPECT_EQ(l.group, 2u);
  EXPECT_EQ(l.warp, 32u);
  EXPECT_EQ(l.shared_bytes, 48u);
  EXPECT_EQ(fake.dims, (std::vector<int64_t>{0, 3})) << "GpuCode.dims: the host's number, then n";
  EXPECT_EQ(fake.bytes, (std::vector<uint64_t>{12, 12, 12}));
  EXPECT_EQ(fake.writes, (std::vector<uint8_t>{0, 0, 1}));
}

TEST_F(Emulated, AFaultFailsTheCallAndLosesStates) {
  std::vector<float> x = {1}, y(1);
  EXPECT_OK(run("accumulate", {tensor(x, {})}, {tensor(y, {})}));
  fake.refuse = true;
  EXPECT_FAIL(ASTRA_KERNEL_FAULT, "a race", run("accumulate", {tensor(x, {})}, {tensor(y, {})}));
  fake.refuse = false;
  EXPECT_FAIL(ASTRA_STATE_LOST, "sum", run("accumulate", {tensor(x, {})}, {tensor(y, {})}));
}

TEST_F(Emulated, DevicesAreRefused) {
  Device other;
  EXPECT_FAIL(ASTRA_UNSUPPORTED, "no emulator is given",
              astra_device_init(other.out(), runtime, "emu:cuda:sm_90", nullptr, &diag));
  EXPECT_FAIL(ASTRA_UNSUPPORTED, "no device is named 'tpu:0'",
              astra_device_init(other.out(), runtime, "tpu:0", nullptr, &diag));
  astra_device_options o = ASTRA_INIT(astra_device_options);
  o.emulator = &hooks, o.level = "x86-64-v3";
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "has no level",
              astra_device_init(other.out(), runtime, "emu:cuda:sm_90", &o, &diag));
  o.level = nullptr;
  astra_emulator none = ASTRA_INIT(astra_emulator);
  o.emulator = &none;
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "no launch",
              astra_device_init(other.out(), runtime, "emu:cuda:sm_90", &o, &diag));
  o.emulator = &hooks;
  EXPECT_OK(astra_device_init(other.out(), runtime, "emu:hip:gfx942", &o, &diag));
  astra_device *devices[] = {other};
  Loaded refused;
  EXPECT_FAIL(ASTRA_NO_TARGET, "no target emu:hip:gfx942; compile it with --target=hip:gfx942,emu:hip:gfx942",
              astra_loaded_init(refused.out(), bundle, devices, 1, &diag));
}

/// What a manifest may not say, one change at a time.
TEST(GpuFormat, EachRuleHasItsSentence) {
  using Change = void (*)(fmt::ManifestT &);
  const std::pair<const char *, Change> rows[] = {
      {"unknown architecture", [](auto &m) { m.targets[4]->arch = fmt::Arch(9); }},
      {"another kind of machine", [](auto &m) { m.targets[4]->arch = fmt::Arch::X86_64; }},
      {"another kind of machine", [](auto &m) { m.targets[0]->arch = fmt::Arch::AMD; }},
      {"another kind of machine", [](auto &m) { m.targets[4]->section = 1; }},
      {"no code section", [](auto &m) { m.targets[0]->section = 3; }},
      {"no code section", [](auto &m) { m.targets[4]->section = 99; }},
      {"no warps of 32 or 64", [](auto &m) { m.targets[4]->gpu->warp = 33; }},
      {"no warps of 32 or 64", [](auto &m) { m.targets[5]->gpu = nullptr; }},
      {"a text that is not there", [](auto &m) { m.targets[4]->gpu->text = 3; }},
      {"a text that is not there", [](auto &m) { m.targets[4]->gpu->text = 4000000000; }},
      {"which is no GPU", [](auto &m) { m.targets[5]->gpu->of = 0; }},
      {"which is no GPU", [](auto &m) { m.targets[5]->gpu->of = 5; }},
      {"which is no GPU", [](auto &m) { m.targets[5]->gpu->of = fmt::kNone; }},
      {"host build of other code than that of cuda:sm_90", [](auto &m) { m.targets[5]->gpu->of_sha256[31] ^= 1; }},
      {"host build of other code than that of cuda:sm_90", [](auto &m) { m.targets[5]->gpu->of_sha256.clear(); }},
      {"does not say how it is launched", [](auto &m) { m.kernels[1]->code[4]->gpu = nullptr; }},
      {"blocks of 0 threads", [](auto &m) { m.kernels[1]->code[5]->gpu->threads = 0; }},
      {"blocks of 2048 threads", [](auto &m) { m.kernels[1]->code[5]->gpu->threads = 2048; }},
      {"blocks of 48 threads", [](auto &m) { m.kernels[1]->code[5]->gpu->threads = 48; }},
      {"64 threads, 3 an item", [](auto &m) { m.kernels[1]->code[5]->gpu->group = 3; }},
      {"bytes of shared memory", [](auto &m) { m.kernels[1]->code[5]->gpu->shared = 1ull << 40; }},
      {"takes dim 77 of", [](auto &m) { m.kernels[1]->code[5]->gpu->dims[1] = 77; }},
      {"takes 257 dims", [](auto &m) { m.kernels[1]->code[5]->gpu->dims.resize(257); }},
      {"begins outside the code of emu:cuda:sm_90", [](auto &m) { m.kernels[1]->code[5]->offset = 1 << 30; }},
  };
  Runtime runtime;
  Diag diag;
  ASSERT_EQ(astra_runtime_init(runtime.out(), nullptr, &diag), ASTRA_OK);
  for (auto [sentence, change] : rows) {
    ManifestMaker k = gpuManifest();
    change(k.m);
    Aligned memory(assembleGpu(k));
    Bundle bundle;
    EXPECT_FAIL(ASTRA_MALFORMED, sentence,
                astra_bundle_init_memory(bundle.out(), runtime, memory.data, memory.size, nullptr, &diag));
  }
}

} // namespace
