//===- FunctionTest.cpp: functions of the program that bundles call ---------===//
// Takes:    the standard bundle with an entry more, @call(x[n]) -> z[n], n[]: t = x + x, (u, n) = f(t), z = u + x;
//           it adds to a state too. CPUs, GPUs of the stand-in driver.
// Checks:   what a function sees and gives, in the order of the kernels; how it fails; what is refused, and when.
#include "Client.h"
#include "astra/astra.hpp"
#include "astra/gpu.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

using namespace astra::test;
namespace fmt = astra::fmt;

namespace {

uint32_t addExpr(fmt::ManifestT &m, std::vector<fmt::ExprOp> code) {
  m.exprs.push_back(std::make_unique<fmt::ExprT>());
  m.exprs.back()->code = std::move(code);
  return uint32_t(m.exprs.size() - 1);
}

void addOperand(fmt::ExternalT &call, uint32_t buffer, std::vector<uint32_t> shape) {
  call.tensors.push_back(std::make_unique<fmt::HostTensorT>());
  call.tensors.back()->buffer = buffer, call.tensors.back()->dtype = fmt::DType::F32;
  call.tensors.back()->shape = std::move(shape);
}

void addCall(fmt::ManifestT &m) {
  using fmt::BufferKind;
  uint32_t n = addExpr(m, {{fmt::ExprCode::Dim, 0}}), four = addExpr(m, {{fmt::ExprCode::Const, 4}});
  uint32_t bytes = addExpr(m, {{fmt::ExprCode::Dim, 0}, {fmt::ExprCode::Const, 4}, {fmt::ExprCode::Mul, 0}});
  m.functions.push_back(std::make_unique<fmt::HostFunctionT>());
  m.functions[0]->name = "f", m.functions[0]->deterministic = true, m.functions[0]->effects = false;
  m.entries.push_back(std::make_unique<fmt::EntryT>());
  fmt::EntryT &e = *m.entries.back();
  e.name = "call";
  e.routine = std::make_unique<fmt::RoutineT>();
  e.binds.push_back({0, 0, 0});
  addTensor(e.inputs, "x", {n});
  addTensor(e.outputs, "z", {n});
  addTensor(e.outputs, "n", {});
  uint32_t state = 0; // "sum", of @accumulate
  e.reads = e.writes = {state};
  fmt::RoutineT &r = *e.routine;
  addProgram(r);
  r.slots = {bytes, bytes};
  uint32_t x = addBuffer(r, BufferKind::Input, 0, bytes), z = addBuffer(r, BufferKind::Output, 0, bytes),
           count = addBuffer(r, BufferKind::Output, 1, four), t = addBuffer(r, BufferKind::Slot, 0, bytes),
           u = addBuffer(r, BufferKind::Slot, 1, bytes), sum = addBuffer(r, BufferKind::State, state, four);
  fmt::ExternalT call;
  call.function = 0, call.inputs = 1;
  addOperand(call, t, {n});
  addOperand(call, u, {n});
  addOperand(call, count, {});
  addLaunch(r, 0, 0, {x, x, t});
  addInstr(r, 0, std::move(call));
  addLaunch(r, 0, 0, {u, x, z});
  auto accumulate = [&] {
    for (uint32_t k = 0; k < m.kernels.size(); k++)
      if (m.kernels[k]->name == "accumulate") return k;
    return ~0u;
  }();
  r.slots.push_back(four);
  addLaunch(r, 0, accumulate, {sum, count, addBuffer(r, BufferKind::Slot, 2, four)});
}

Bytes bundle(const std::function<void(fmt::ManifestT &)> &change = {}, uint64_t features = fmt::kFeatureExternal) {
  ManifestMaker maker = standardManifest();
  addCall(maker.m);
  if (change) change(maker.m);
  return assemble(maker, features);
}
fmt::ExternalT &callOf(fmt::ManifestT &m) { return *m.entries.back()->routine->programs[0]->code[1].AsExternal(); }

/// u = 10 t, n = the number of elements; what it saw.
struct Ten {
  std::atomic<int> calls = 0;
  std::atomic<int64_t> elements = -1;
  const char *fails = nullptr;
  astra_status status = ASTRA_NOT_READY; // then: any
  void *more = nullptr;                  // of a test
  static astra_status run(void *self, const astra_tensor *in, uint32_t inputs, const astra_tensor *out,
                          uint32_t outputs, astra_diag *diag) {
    auto &ten = *static_cast<Ten *>(self);
    ten.calls++;
    EXPECT_EQ(inputs, 1u);
    EXPECT_EQ(outputs, 2u);
    for (const astra_tensor *t : {in, out, out + 1}) {
      EXPECT_EQ(t->size, sizeof(astra_tensor));
      EXPECT_EQ(t->dtype, ASTRA_F32);
      EXPECT_EQ(t->strides, nullptr);
      EXPECT_EQ(t->buffer, nullptr);
    }
    EXPECT_EQ(in->ndim, 1);
    EXPECT_EQ(out[1].ndim, 0);
    EXPECT_EQ(out[1].data_bytes, 4u);
    int64_t n = in->shape[0];
    EXPECT_EQ(in->data_bytes, uint64_t(n) * 4);
    ten.elements = n;
    if (ten.fails) {
      std::snprintf(diag->text, sizeof(diag->text), "%s", ten.fails);
      return ten.status;
    }
    for (int64_t i = 0; i < n; i++) static_cast<float *>(out->data)[i] = 10 * static_cast<const float *>(in->data)[i];
    *static_cast<float *>(out[1].data) = float(n);
    return ASTRA_OK;
  }
};

std::function<void(astra_runtime *)> with(Ten &ten, uint32_t flags = ASTRA_FUNCTION_DETERMINISTIC) {
  return [&ten, flags](astra_runtime *runtime) {
    Diag diag;
    EXPECT_OK(astra_runtime_register(runtime, "f", Ten::run, &ten, flags, &diag));
  };
}

/// Runs @call on 1, 2, ..., n and checks what it gives: 2 x 10 + x.
void expectTwentyOne(Machine &m, size_t n) {
  Diag &diag = m.diag;
  std::vector<float> x(n), z(n, -1), count(1, -1), expected(n);
  for (size_t i = 0; i < n; i++) x[i] = float(i + 1), expected[i] = 21 * x[i];
  EXPECT_OK(m.run("call", {tensor(x, {int64_t(n)})}, {tensor(z, {int64_t(n)}), tensor(count, {})}));
  EXPECT_EQ(z, expected);
  EXPECT_EQ(count[0], float(n));
}

float sumOf(Machine &m) {
  Diag &diag = m.diag;
  std::vector<float> sum(1);
  Tensor t = tensor(sum, {});
  EXPECT_OK(astra_session_get_state(m.session, "sum", &t, &diag));
  return sum[0];
}

TEST(Functions, AreCalledBetweenKernels) {
  for (uint32_t threads : {1u, 4u}) {
    Ten ten;
    Machine m(threads, nullptr, bundle(), "cpu", with(ten));
    for (size_t n : {size_t(5), size_t(0), size_t(1000), size_t(5)}) {
      expectTwentyOne(m, n);
      EXPECT_EQ(ten.elements, int64_t(n));
    }
    EXPECT_EQ(ten.calls, 4);
    EXPECT_EQ(sumOf(m), 10 + 1010);
  }
}

TEST(Functions, AreInTraces) {
  Ten ten;
  Machine m(1, nullptr, bundle(), "cpu", with(ten));
  Diag &diag = m.diag;
  std::vector<std::pair<std::string, int64_t>> seen;
  EXPECT_OK(astra_session_set_trace(
      m.session,
      [](void *self, const astra_trace_event *e) {
        EXPECT_LE(e->begin_ns, e->end_ns);
        static_cast<decltype(seen) *>(self)->push_back({e->name, e->bytes});
      },
      &seen));
  expectTwentyOne(m, 16);
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[1], std::pair(std::string("f"), int64_t(64 + 64 + 64))); // at multiples of 64
}

TEST(Functions, FailTheCallWithTheirSentence) {
  Ten ten;
  Machine m(2, nullptr, bundle(), "cpu", with(ten));
  Diag &diag = m.diag;
  std::vector<float> x(3, 1), z(3), count(1);
  auto run = [&] { return m.run("call", {tensor(x, {3})}, {tensor(z, {3}), tensor(count, {})}); };
  ten.fails = "the tokenizer has no word 7";
  EXPECT_EQ(run(), ASTRA_FUNCTION_FAILED);
  EXPECT_STREQ(m.diag.text, "function 'f' failed: the tokenizer has no word 7");
  EXPECT_EQ(run(), ASTRA_STATE_LOST) << "the call writes it";
  EXPECT_OK(astra_session_reset(m.session, &diag));
  ten.fails = "";
  EXPECT_EQ(run(), ASTRA_FUNCTION_FAILED);
  EXPECT_STREQ(m.diag.text, "function 'f' failed: it does not say why");
  EXPECT_OK(astra_session_reset(m.session, &diag));
  for (astra_status own : {ASTRA_PEER_LOST, ASTRA_PEER_DIFFERS}) { // of a collective: what the program does about it
    ten.status = own;
    EXPECT_EQ(run(), own);
    EXPECT_OK(astra_session_reset(m.session, &diag));
  }
  ten.fails = nullptr;
  expectTwentyOne(m, 3);
  EXPECT_STREQ(astra_status_name(ASTRA_FUNCTION_FAILED), "ASTRA_FUNCTION_FAILED");
}

/// The call runs beside the program, which waits for it or not.
Bytes besideBundle(bool waits) {
  auto change = [&](fmt::ManifestT &m) {
    callOf(m).beside = true;
    auto &code = m.entries.back()->routine->programs[0]->code;
    fmt::InstrUnion wait;
    wait.Set(fmt::WaitT());
    if (waits) code.insert(code.begin() + 2, std::move(wait));
  };
  return bundle(change, fmt::kFeatureExternal | fmt::kFeatureBeside);
}
/// Takes a while, and notes on which thread.
struct Slow : Ten {
  std::thread::id thread;
  std::atomic<bool> hasEnded = false;
  static astra_status run(void *self, const astra_tensor *in, uint32_t inputs, const astra_tensor *out,
                          uint32_t outputs, astra_diag *diag) {
    auto &slow = *static_cast<Slow *>(self);
    slow.thread = std::this_thread::get_id();
    slow.hasEnded = false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    astra_status s = Ten::run(static_cast<Ten *>(&slow), in, inputs, out, outputs, diag);
    slow.hasEnded = true;
    return s;
  }
};
std::function<void(astra_runtime *)> with(Slow &slow) {
  return [&slow](astra_runtime *runtime) {
    Diag diag;
    EXPECT_OK(astra_runtime_register(runtime, "f", Slow::run, &slow, ASTRA_FUNCTION_DETERMINISTIC, &diag));
  };
}

TEST(Functions, RunBesideTheProgramUntilItWaits) {
  Slow slow;
  Machine m(1, nullptr, besideBundle(true), "cpu", with(slow));
  Diag &diag = m.diag;
  for (size_t n : {size_t(5), size_t(0), size_t(1000)}) expectTwentyOne(m, n);
  EXPECT_EQ(slow.calls, 3);
  EXPECT_NE(slow.thread, std::this_thread::get_id());
  std::vector<float> x(3, 1), z(3), count(1);
  slow.fails = "the other side is gone", slow.status = ASTRA_PEER_LOST;
  EXPECT_EQ(m.run("call", {tensor(x, {3})}, {tensor(z, {3}), tensor(count, {})}), ASTRA_PEER_LOST);
  EXPECT_STREQ(m.diag.text, "function 'f' failed: the other side is gone");
  EXPECT_OK(astra_session_reset(m.session, &diag));
  slow.fails = nullptr;
  expectTwentyOne(m, 3);
}

TEST(Functions, BesideAProgramEndWithIt) {
  Slow slow;
  Machine m(1, nullptr, besideBundle(false), "cpu", with(slow));
  Diag &diag = m.diag;
  std::vector<float> x(3, 1), z(3), count(1);
  auto run = [&] { return m.run("call", {tensor(x, {3})}, {tensor(z, {3}), tensor(count, {})}); };
  EXPECT_OK(run());
  EXPECT_TRUE(slow.hasEnded);
  EXPECT_EQ(count[0], 3.0f);
  slow.fails = "no";
  EXPECT_EQ(run(), ASTRA_FUNCTION_FAILED) << "though nothing waits for it";
  EXPECT_STREQ(m.diag.text, "function 'f' failed: no");
}

TEST(Functions, RunInSeveralSessionsAtOnce) {
  Ten ten;
  Machine m(4, nullptr, bundle(), "cpu", with(ten));
  Machine *machine = &m;
  std::vector<std::thread> threads;
  std::vector<Session> sessions;
  for (int i = 0; i < 3; i++) sessions.push_back(m.makeSession());
  for (Session &s : sessions)
    threads.emplace_back([&s, machine] {
      Diag diag;
      Stream stream;
      EXPECT_OK(astra_stream_init(stream.out(), machine->device, &diag));
      const astra_entry *entry = nullptr;
      EXPECT_OK(astra_bundle_find_entry(machine->bundle, "call", &entry, &diag));
      for (int k = 0; k < 50; k++) {
        std::vector<float> x(8, 1), z(8), count(1);
        Tensor in = tensor(x, {8}), out[] = {tensor(z, {8}), tensor(count, {})};
        astra_tensor outs[] = {out[0], out[1]};
        astra_call call = ASTRA_INIT(astra_call);
        call.entry = entry, call.inputs = &in, call.num_inputs = 1, call.outputs = outs, call.num_outputs = 2;
        Promise p;
        EXPECT_OK(astra_session_submit(s, stream, &call, p.out(), &diag));
        EXPECT_OK(astra_promise_wait(p, &diag));
        EXPECT_EQ(z, std::vector<float>(8, 21));
      }
    });
  for (std::thread &t : threads) t.join();
  EXPECT_EQ(ten.calls, 150);
}

//===- What is refused ------------------------------------------------------===//

/// A runtime, a CPU and a bundle that is opened and not loaded.
struct Opened {
  Diag diag;
  Runtime runtime;
  Device device;
  Aligned memory;
  Bundle opened;
  explicit Opened(const Bytes &bytes) : memory(bytes) {
    EXPECT_OK(astra_runtime_init(runtime.out(), nullptr, &diag));
    EXPECT_OK(astra_device_init(device.out(), runtime, "cpu", nullptr, &diag));
    EXPECT_OK(astra_bundle_init_memory(opened.out(), runtime, memory.data, memory.size, nullptr, &diag));
  }
  astra_status load(astra_diag *d) {
    Loaded loaded;
    astra_device *devices[] = {device};
    return astra_loaded_init(loaded.out(), opened, devices, 1, d);
  }
  astra_status put(uint32_t flags, const char *name = "f", bool none = false) {
    return astra_runtime_register(runtime, name, none ? nullptr : Ten::run, &ten, flags, &diag);
  }
  Ten ten;
};

TEST(Functions, MustBeRegisteredWhenABundleIsLoaded) {
  Opened o(bundle());
  Diag &diag = o.diag;
  const char *sentence = "the bundle calls the function 'f', which is not registered; register it with "
                         "astra_runtime_register before the bundle is loaded";
  EXPECT_FAIL(ASTRA_UNKNOWN_NAME, sentence, o.load(&diag));
  EXPECT_OK(o.put(ASTRA_FUNCTION_DETERMINISTIC, "F"));
  EXPECT_FAIL(ASTRA_UNKNOWN_NAME, sentence, o.load(&diag));
  EXPECT_OK(o.put(ASTRA_FUNCTION_DETERMINISTIC));
  EXPECT_OK(o.load(&diag));
  EXPECT_OK(o.put(0, "f", true));
  EXPECT_FAIL(ASTRA_UNKNOWN_NAME, sentence, o.load(&diag));
}

TEST(Functions, AreDeclaredAsTheBundleNeedsThem) {
  Opened o(bundle());
  Diag &diag = o.diag;
  EXPECT_OK(o.put(0));
  EXPECT_FAIL(ASTRA_WRONG_CONTRACT,
              "the bundle calls the function 'f' as a deterministic one, and it is registered without "
              "ASTRA_FUNCTION_DETERMINISTIC",
              o.load(&diag));
  EXPECT_OK(o.put(ASTRA_FUNCTION_DETERMINISTIC | ASTRA_FUNCTION_EFFECTS));
  EXPECT_FAIL(ASTRA_WRONG_CONTRACT,
              "the function 'f' is registered with effects, and the bundle calls it as one without", o.load(&diag));
  Opened loose(
      bundle([](fmt::ManifestT &m) { m.functions[0]->deterministic = false, m.functions[0]->effects = true; }));
  for (uint32_t flags : {0u, 1u, 2u, 3u}) {
    EXPECT_EQ(loose.put(flags), ASTRA_OK);
    EXPECT_EQ(loose.load(&loose.diag), ASTRA_OK) << flags;
  }
}

TEST(Functions, ThatAreNotDeterministicAreNotStrict) {
  Opened o(bundle());
  Diag &diag = o.diag;
  astra_bundle_options strict = ASTRA_INIT(astra_bundle_options);
  strict.flags = ASTRA_REQUIRE_STRICT;
  Bundle fine, refused;
  EXPECT_OK(astra_bundle_init_memory(fine.out(), o.runtime, o.memory.data, o.memory.size, &strict, &diag));
  Aligned other(bundle([](fmt::ManifestT &m) { m.functions[0]->deterministic = false; }));
  EXPECT_FAIL(ASTRA_WRONG_CONTRACT,
              "the bundle calls the function 'f', which is not declared deterministic, and strict is demanded",
              astra_bundle_init_memory(refused.out(), o.runtime, other.data, other.size, &strict, &diag));
  EXPECT_OK(astra_bundle_init_memory(refused.out(), o.runtime, other.data, other.size, nullptr, &diag));
}

TEST(Functions, HaveNamesAndKnownFlags) {
  Opened o(bundle());
  Diag &diag = o.diag;
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "the runtime is NULL",
              astra_runtime_register(nullptr, "f", Ten::run, 0, 0, &diag));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "a function has no name", o.put(0, nullptr));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "a function has no name", o.put(0, ""));
  EXPECT_FAIL(ASTRA_NEWER_CLIENT, "the flags 0x4 are not known", o.put(4));
}

TEST(Functions, NeedMemoryToBeRegistered) {
  static bool none;
  astra_allocator allocator = ASTRA_INIT(astra_allocator);
  allocator.allocate = [](void *, size_t bytes, size_t alignment) {
    return none ? nullptr : aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  };
  allocator.release = [](void *, void *memory, size_t, size_t) { free(memory); };
  astra_runtime_options options = ASTRA_INIT(astra_runtime_options);
  options.allocator = &allocator;
  Diag diag;
  Runtime runtime;
  EXPECT_OK(astra_runtime_init(runtime.out(), &options, &diag));
  none = true;
  EXPECT_FAIL(ASTRA_OUT_OF_MEMORY, "no memory to register the function 'f'",
              astra_runtime_register(runtime, "f", Ten::run, nullptr, 0, &diag));
  none = false;
  EXPECT_OK(astra_runtime_register(runtime, "f", Ten::run, nullptr, 0, &diag));
}

struct Malformed {
  const char *name;
  void (*breaks)(fmt::ManifestT &);
  const char *says;
};
const Malformed malformedCalls[] = {
    {"function", [](fmt::ManifestT &m) { callOf(m).function = 1; },
     "a program that may not, or of 1 functions, calls function 1"},
    {"noFunctions", [](fmt::ManifestT &m) { m.functions.clear(); },
     "a program that may not, or of 0 functions, calls function 0"},
    {"inputs", [](fmt::ManifestT &m) { callOf(m).inputs = 4; }, "a function is given 3 tensors, 4 of them inputs"},
    {"many",
     [](fmt::ManifestT &m) {
       for (int i = 0; i < 62; i++) addOperand(callOf(m), 4, {});
     },
     "a function is given 65 tensors"},
    {"buffer", [](fmt::ManifestT &m) { callOf(m).tensors[0]->buffer = 99; }, "a function is buffer 99 of"},
    {"writesInput", [](fmt::ManifestT &m) { callOf(m).tensors[1]->buffer = 0; },
     "a function writes Input 0, which is not writable there"},
    {"dtype", [](fmt::ManifestT &m) { callOf(m).tensors[0]->dtype = fmt::DType::None; }, "unknown dtype"},
    {"rank", [](fmt::ManifestT &m) { callOf(m).tensors[0]->shape.assign(17, 0); }, "of 17 axes"},
    {"shape", [](fmt::ManifestT &m) { callOf(m).tensors[0]->shape = {9999}; }, "the shape of a tensor"},
    {"prepare",
     [](fmt::ManifestT &m) {
       fmt::ExternalT call;
       addInstr(*m.prepares[0], 0, std::move(call));
     },
     "a program that may not, or of 1 functions, calls function 0"},
};
struct MalformedCall : testing::TestWithParam<Malformed> {};
TEST_P(MalformedCall, IsRefused) {
  Diag diag;
  Runtime runtime;
  EXPECT_OK(astra_runtime_init(runtime.out(), nullptr, &diag));
  Aligned memory(bundle(GetParam().breaks));
  Bundle b;
  EXPECT_FAIL(ASTRA_MALFORMED, GetParam().says,
              astra_bundle_init_memory(b.out(), runtime, memory.data, memory.size, nullptr, &diag));
}
INSTANTIATE_TEST_SUITE_P(Functions, MalformedCall, testing::ValuesIn(malformedCalls),
                         [](const auto &i) { return std::string(i.param.name); });

TEST(Functions, SeeNothingBehindTheirBuffers) {
  Ten ten;
  Machine m(1, nullptr, bundle([](fmt::ManifestT &m) {
              uint32_t more = addExpr(m, {{fmt::ExprCode::Dim, 0}, {fmt::ExprCode::Const, 1}, {fmt::ExprCode::Add, 0}});
              callOf(m).tensors[0]->shape = {more};
            }),
            "cpu", with(ten));
  std::vector<float> x(3, 1), z(3), count(1);
  EXPECT_EQ(m.run("call", {tensor(x, {3})}, {tensor(z, {3}), tensor(count, {})}), ASTRA_MALFORMED);
  EXPECT_NE(std::string(m.diag.text).find("a tensor of the function 'f' leaves its buffer"), std::string::npos);
  EXPECT_EQ(ten.calls, 0);
}

//===- GPUs, C++ ------------------------------------------------------------===//

struct FunctionsOnGpu : testing::TestWithParam<const char *> {};
TEST_P(FunctionsOnGpu, AreGivenCopiesInTheOrderOfTheStream) {
  Bytes bytes = deviceBundle(addCall);
  standInReset();
  standInBundle(bytes.data(), bytes.size(), true);
  {
    Ten ten;
    Machine m(1, nullptr, bytes, GetParam(), with(ten));
    for (size_t n : {size_t(5), size_t(0), size_t(300)}) expectTwentyOne(m, n);
    EXPECT_EQ(ten.calls, 3);
    EXPECT_EQ(sumOf(m), 10 + 305);
    ten.fails = "no";
    std::vector<float> x(3, 1), z(3), count(1);
    EXPECT_EQ(m.run("call", {tensor(x, {3})}, {tensor(z, {3}), tensor(count, {})}), ASTRA_FUNCTION_FAILED);
    EXPECT_STREQ(m.diag.text, "function 'f' failed: no");
    astra_entry_info info = ASTRA_INIT(astra_entry_info);
    EXPECT_EQ(astra_entry_get_info(m.entry("call"), &info), ASTRA_OK);
    EXPECT_EQ(info.waits_on_host, 1);
  }
  EXPECT_EQ(standInLive(), 0);
}
/// u = 10 t by the bundle's own kernels, n by a copy from the host, with a copy and zeros between. It waits for
/// nothing.
struct TenOnGpu {
  int calls = 0, settled = 0;
  const char *fails = nullptr, *settleFails = nullptr;
  astra_status status = ASTRA_PEER_LOST;
  void *mark = nullptr;
  float count = 0;
  static astra_status run(void *self, const astra_gpu_call *gpu, const astra_tensor *in, uint32_t,
                          const astra_tensor *out, uint32_t, astra_diag *diag) {
    auto &ten = *static_cast<TenOnGpu *>(static_cast<Ten *>(self)->more);
    if (ten.calls++ == 0) EXPECT_FALSE(standInPlace(&ten, 1));
    if (ten.fails) return std::snprintf(diag->text, sizeof(diag->text), "%s", ten.fails), ten.status;
    EXPECT_TRUE(!in->data_bytes || standInPlace(in->data, in->data_bytes));
    EXPECT_EQ(standInDevice(), (strcmp(gpu->driver, "hip") ? 0 : 4) + gpu->number);
    int64_t n = in->shape[0];
    uint64_t bytes = (in->data_bytes + 255) / 256 * 256;
    void *at = nullptr;
    EXPECT_EQ(gpu->room(gpu, 4 * bytes + 1, &at, diag), ASTRA_OK) << diag->text;
    char *two = static_cast<char *>(at), *four = two + bytes, *eight = four + bytes, *same = eight + bytes;
    auto add = [&](void *a, void *b, void *to) {
      void *vectors[] = {a, b, to};
      if (n) EXPECT_EQ(gpu->run(gpu, "add", vectors, 3, n, diag), ASTRA_OK) << diag->text;
    };
    EXPECT_EQ(gpu->zero(gpu, same, in->data_bytes, diag), ASTRA_OK);
    add(in->data, same, two); // t + 0
    EXPECT_EQ(gpu->copy(gpu, same, two, in->data_bytes, diag), ASTRA_OK);
    add(in->data, same, two), add(two, two, four);
    EXPECT_EQ(gpu->copy(gpu, same, four, in->data_bytes, diag), ASTRA_OK);
    add(four, same, eight), add(eight, two, out[0].data);
    ten.count = float(n);
    EXPECT_EQ(gpu->write(gpu, out[1].data, &ten.count, 4, diag), ASTRA_OK);
    if (!ten.mark) EXPECT_EQ(gpu->mark(gpu, &ten.mark, diag), ASTRA_OK);
    return ASTRA_OK;
  }
  static astra_status settle(void *self, const astra_gpu_call *gpu, astra_diag *diag) {
    auto &ten = *static_cast<TenOnGpu *>(self);
    ten.settled++;
    while (ten.mark && gpu->reached(gpu, ten.mark) == ASTRA_NOT_READY) std::this_thread::yield();
    if (ten.mark) gpu->unmark(gpu, std::exchange(ten.mark, nullptr));
    if (!ten.settleFails) return ASTRA_OK;
    return std::snprintf(diag->text, sizeof(diag->text), "%s", ten.settleFails), ten.status;
  }
};

TEST_P(FunctionsOnGpu, MayWorkOnItsMemory) {
  Bytes bytes = deviceBundle(addCall);
  standInReset();
  standInBundle(bytes.data(), bytes.size(), true);
  {
    Ten ten;
    TenOnGpu own;
    ten.more = &own;
    Machine m(1, nullptr, bytes, GetParam(), [&](astra_runtime *runtime) {
      Diag diag;
      EXPECT_FAIL(ASTRA_UNKNOWN_NAME, "no function 'f' is registered; register the one of the host first",
                  astra_runtime_register_gpu(runtime, "f", TenOnGpu::run, TenOnGpu::settle, &own, &diag));
      with(ten)(runtime);
      EXPECT_OK(astra_runtime_register_gpu(runtime, "f", TenOnGpu::run, TenOnGpu::settle, &own, &diag));
    });
    Diag &diag = m.diag;
    std::string copyOut = strcmp(GetParam(), "cuda:0") ? "hipMemcpyDtoHAsync" : "cuMemcpyDtoHAsync_v2";
    int calls = 0;
    for (size_t n : {size_t(5), size_t(0), size_t(300), size_t(5)}) {
      int64_t before = standInCalls(copyOut.c_str());
      standInDelay(100); // what is queued is not done at once
      expectTwentyOne(m, n);
      EXPECT_EQ(own.calls, ++calls);
      EXPECT_EQ(own.settled, calls);
      EXPECT_EQ(standInCalls(copyOut.c_str()) - before, n ? 2 : 1) << "the outputs, and nothing for the function";
    }
    EXPECT_EQ(ten.calls, 0);
    std::vector<float> x(3, 1), z(3), count(1);
    auto run = [&] { return m.run("call", {tensor(x, {3})}, {tensor(z, {3}), tensor(count, {})}); };
    own.settleFails = "rank 1 has died";
    EXPECT_EQ(run(), ASTRA_PEER_LOST);
    EXPECT_STREQ(m.diag.text, "rank 1 has died");
    EXPECT_EQ(run(), ASTRA_STATE_LOST);
    EXPECT_OK(astra_session_reset(m.session, &diag));
    own.settleFails = nullptr, own.fails = "no";
    EXPECT_EQ(run(), ASTRA_PEER_LOST);
    EXPECT_STREQ(m.diag.text, "function 'f' failed: no");
    EXPECT_EQ(own.settled, own.calls) << "after a failure too";
    own.status = ASTRA_INVALID_ARGUMENT;
    EXPECT_OK(astra_session_reset(m.session, &diag));
    EXPECT_EQ(run(), ASTRA_FUNCTION_FAILED);
    EXPECT_OK(astra_session_reset(m.session, &diag));
    own.fails = nullptr;
    expectTwentyOne(m, 3);
    // With a trace each event has ended when it is told.
    std::vector<std::string> seen;
    EXPECT_OK(astra_session_set_trace(
        m.session,
        [](void *self, const astra_trace_event *e) { static_cast<decltype(seen) *>(self)->push_back(e->name); },
        &seen));
    expectTwentyOne(m, 3);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), "f"), 1);
  }
  EXPECT_EQ(standInLive(), 0);
}

TEST_P(FunctionsOnGpu, RunOnlyEntriesOfVectors) {
  Bytes bytes = deviceBundle(addCall);
  standInReset();
  standInBundle(bytes.data(), bytes.size(), true);
  Ten ten;
  static const char *entry;
  static uint32_t vectors;
  auto fn = [](void *, const astra_gpu_call *gpu, const astra_tensor *, uint32_t, const astra_tensor *out, uint32_t,
               astra_diag *diag) {
    void *all[] = {out->data, out->data, out->data, out->data};
    return gpu->run(gpu, entry, all, vectors, 1, diag);
  };
  Machine m(1, nullptr, bytes, GetParam(), [&](astra_runtime *runtime) {
    Diag diag;
    with(ten)(runtime);
    EXPECT_OK(astra_runtime_register_gpu(runtime, "f", fn, nullptr, nullptr, &diag));
  });
  std::vector<float> x(3, 1), z(3), count(1);
  for (auto [name, number] :
       {std::pair("none", 3u), std::pair("add", 2u), std::pair("accumulate", 2u), std::pair("call", 3u)}) {
    entry = name, vectors = number;
    EXPECT_EQ(m.run("call", {tensor(x, {3})}, {tensor(z, {3}), tensor(count, {})}), ASTRA_FUNCTION_FAILED);
    EXPECT_NE(
        std::string(m.diag.text)
            .find("the bundle has no entry '" + std::string(name) + "' of " + std::to_string(number) + " vectors"),
        std::string::npos)
        << m.diag.text;
    EXPECT_EQ(astra_session_reset(m.session, &m.diag), ASTRA_OK);
  }
}
INSTANTIATE_TEST_SUITE_P(Kinds, FunctionsOnGpu, testing::Values("cuda:0", "hip:0"),
                         [](const auto &i) { return std::string(i.param, 3) == "hip" ? "Hip" : "Cuda"; });

TEST(Functions, OfCppMayThrow) {
  bool throws = false;
  auto f = [&](const astra_tensor *in, uint32_t, const astra_tensor *out, uint32_t) {
    if (throws) throw std::runtime_error("out of range");
    for (int64_t i = 0; i < in->shape[0]; i++)
      static_cast<float *>(out->data)[i] = -static_cast<const float *>(in->data)[i];
    *static_cast<float *>(out[1].data) = 0;
  };
  Aligned memory(bundle());
  astra::Runtime runtime;
  runtime.registerFunction("f", f, ASTRA_FUNCTION_DETERMINISTIC);
  astra::Device device(runtime, "cpu");
  astra::Stream stream(device);
  astra::Bundle opened(runtime, memory.data, memory.size);
  astra::Loaded loaded(opened, device);
  astra::Session session(loaded, {{"cap", 8}});
  astra::Tensor<float> x({2}, {1, 2}), z({2}), count;
  auto call = [&] { astra::Call(session, "call").input(x).output(z).output(count).run(stream); };
  call();
  EXPECT_EQ(z.values, (std::vector<float>{-1, -2})) << "-2 x + x";
  throws = true;
  try {
    call();
    ADD_FAILURE() << "it fails";
  } catch (const astra::Error &e) {
    EXPECT_EQ(e.status(), ASTRA_FUNCTION_FAILED);
    EXPECT_STREQ(e.what(), "ASTRA_FUNCTION_FAILED: function 'f' failed: out of range");
  }
}

} // namespace
