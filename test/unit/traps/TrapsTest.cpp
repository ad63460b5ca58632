//===- TrapsTest.cpp: what must not change bits, and once did elsewhere ----===//
// Takes:    small modules, one for each trap of the numeric contract's table that concerns tails, batches and plans.
// Gives:    bytes equal to the evaluator's and to each other, on every CPU level that this machine runs.
// Keeps:    nothing is read or written outside of a tensor: inputs and outputs lie against pages that may not be
//           touched.
#include "../KernelCache.h"
#include "RunBundle.h"
#include "astra/Bundle/Assemble.h"
#include "astra/IR/Text.h"
#include "astra/Numerics/EvalFunctions.h"
#include "astra/astra.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"
#include <sys/mman.h>

using namespace astra;
using namespace astra::test;

namespace {
/// Floats of all sizes around 1 with both zeros among them; bytes of every value.
Tensor numbers(DType t, std::vector<int64_t> shape, uint64_t state) {
  Tensor x{t, std::move(shape), {}};
  for (int64_t i = 0, n = x.count(); i < n; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint32_t r = state >> 32, bits = (r & 0x80000000) | (r % 97 ? 0x3c000000 + (r >> 4 & 0x3ffffff) : 0);
    for (unsigned k = 0; k < byteSize(t); ++k) x.bytes.push_back((t == DType::F32 ? bits : r) >> 8 * k);
  }
  return x;
}

/// Bytes whose last one lies `gap` bytes before a page that may not be touched; the gap is filled and checked.
class Guarded {
public:
  explicit Guarded(size_t most) : room((most + 64 + page - 1) / page * page) {
    base =
        static_cast<uint8_t *>(mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base == MAP_FAILED || mprotect(base + room, page, PROT_NONE)) std::abort();
  }
  ~Guarded() { munmap(base, room + page); }
  Guarded(const Guarded &) = delete;
  uint8_t *place(size_t bytes, size_t gap) {
    begin = base + room - gap - bytes, end = base + room - gap;
    memset(end, 0xa5, gap);
    memset(begin - 64, 0xa5, 64);
    return begin;
  }
  bool edgesStand() const {
    return std::all_of(begin - 64, begin, [](uint8_t b) { return b == 0xa5; }) &&
           std::all_of<const uint8_t *>(end, base + room, [](uint8_t b) { return b == 0xa5; });
  }

private:
  static constexpr size_t page = 4096;
  size_t room;
  uint8_t *base, *begin = nullptr, *end = nullptr;
};

/// A bundle open with so many threads, called with tensors where they lie.
class Machine {
public:
  Machine(const char *path, const Target &target, unsigned threads) {
    astra_device_options o = ASTRA_INIT(astra_device_options);
    o.num_threads = threads, o.level = llvm::StringRef(target.name).split(':').second.data();
    ok(astra_runtime_init(&runtime, nullptr, &diag));
    ok(astra_device_init(&device, runtime, "cpu", &o, &diag));
    ok(astra_stream_init(&stream, device, &diag));
    ok(astra_bundle_init_file(&bundle, runtime, path, nullptr, &diag));
    ok(astra_loaded_init(&loaded, bundle, &device, 1, &diag));
    ok(astra_session_init(&session, loaded, nullptr, &diag));
    ok(astra_bundle_find_entry(bundle, "main", &entry, &diag));
  }
  ~Machine() {
    astra_session_free(&session);
    astra_loaded_free(&loaded);
    astra_bundle_free(&bundle);
    astra_stream_free(&stream);
    astra_device_free(&device);
    astra_runtime_free(&runtime);
  }
  Machine(const Machine &) = delete;
  void call(llvm::ArrayRef<astra_tensor> inputs, llvm::MutableArrayRef<astra_tensor> outputs) {
    astra_call call = ASTRA_INIT(astra_call);
    call.entry = entry;
    call.inputs = inputs.data(), call.num_inputs = inputs.size();
    call.outputs = outputs.data(), call.num_outputs = outputs.size();
    astra_promise *promise = nullptr;
    ok(astra_session_submit(session, stream, &call, &promise, &diag));
    ok(astra_promise_wait(promise, &diag));
    astra_promise_free(&promise);
  }

private:
  void ok(astra_status status) { ASSERT_EQ(status, ASTRA_OK) << diag.text; }
  astra_diag diag = ASTRA_INIT(astra_diag);
  astra_runtime *runtime = nullptr;
  astra_device *device = nullptr;
  astra_stream *stream = nullptr;
  astra_bundle *bundle = nullptr;
  astra_loaded *loaded = nullptr;
  astra_session *session = nullptr;
  const astra_entry *entry = nullptr;
};

class Traps : public testing::TestWithParam<const char *> {
protected:
  llvm::SmallString<128> path;
  const Target &target = *targetNamed(GetParam());
  EvalOptions options;
  void SetUp() override {
    if (!canRun(target)) GTEST_SKIP() << "this machine does not run " << GetParam();
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("traps", "astra", path));
    options.function = evalFunction;
  }
  void TearDown() override { llvm::sys::fs::remove(path); }

  /// The module as the evaluator takes it, and prepared for schedules.
  void read(llvm::StringRef text, Module &source, Module &prepared) {
    auto m = parse(text, "trap.uop");
    ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
    source = std::move(*m);
    prepared = source;
    ASSERT_FALSE(bool(prepare(prepared)));
  }
  std::vector<Tensor> evaluate(const Module &m, size_t entry, const std::vector<Tensor> &inputs) {
    auto r = evalEntry(m, m.entries[entry], {inputs, {}, {}, {}}, options);
    EXPECT_TRUE(bool(r)) << llvm::toString(r.takeError());
    return r ? r->outputs : std::vector<Tensor>();
  }
};
INSTANTIATE_TEST_SUITE_P(Levels, Traps, testing::Values("cpu:x86-64-v3", "cpu:x86-64-v4"),
                         [](const auto &i) { return llvm::StringRef(i.param).take_back(2).str(); });

// ---- vector tails: n = 0 ... 4200, offsets 0 ... 63 bytes, 1, 2 and 7 threads. All 64 offsets of each n under
// ASTRA_NIGHTLY, else eight that change with n.
constexpr const char *tails = R"(module @tails {
  dim n in 0..4200
  entry @main(%x : f32[n], %s : u8[n]) -> (%y : f32[n], %t : u8[n], %sum : f32, %most : f32, %dot : f32) {
    %y = fma %x, %x, %x
    %t = add %s, %s
    %sum = reduce %x kind=sum order=lane64 axes=[0]
    %most = reduce %x kind=max order=exact axes=[0]
    %dot = contract %x[i], %y[i] -> [] sum [i]
  }
})";

void tensor(astra_tensor &d, DType t, void *data, const int64_t *n, int32_t rank) {
  d = ASTRA_INIT(astra_tensor);
  d.data = data, d.dtype = int32_t(t) - 1, d.ndim = rank, d.shape = n;
  d.data_bytes = (rank ? *n : 1) * byteSize(t);
}

TEST_P(Traps, VectorTails) {
  Module source, m;
  read(tails, source, m);
  ASSERT_FALSE(bool(writeBundleOf(m, target, path)));
  constexpr int64_t most = 4200;
  Tensor x = numbers(DType::F32, {most}, 1), s = numbers(DType::U8, {most}, 2);
  Machine machines[] = {{path.c_str(), target, 1}, {path.c_str(), target, 2}, {path.c_str(), target, 7}};
  Guarded xs(most * 4), ss(most), ys(most * 4), ts(most), scalars[3] = {Guarded(4), Guarded(4), Guarded(4)};
  unsigned step = std::getenv("ASTRA_NIGHTLY") ? 1 : 8;
  for (int64_t n = 0; n <= most; ++n) {
    std::vector<Tensor> in{x, s};
    for (Tensor &t : in) t.shape = {n}, t.bytes.resize(n * byteSize(t.dtype));
    std::vector<Tensor> want = evaluate(source, 0, in);
    ASSERT_EQ(want.size(), 5u);
    for (unsigned k = 0; k < 64; k += step) {
      unsigned gap = (k + n * 5) % 64, wide = gap / 4 * 4; // f32 lies at multiples of 4 bytes
      for (Machine &machine : machines) {
        std::vector<astra_tensor> inputs(2), outputs(5);
        uint8_t *places[] = {ys.place(n * 4, wide), ts.place(n, gap), scalars[0].place(4, wide),
                             scalars[1].place(4, wide), scalars[2].place(4, wide)};
        tensor(inputs[0], DType::F32, memcpy(xs.place(n * 4, wide), in[0].bytes.data(), n * 4), &n, 1);
        tensor(inputs[1], DType::U8, memcpy(ss.place(n, gap), in[1].bytes.data(), n), &n, 1);
        for (int i = 0; i < 5; ++i) tensor(outputs[i], want[i].dtype, places[i], &n, i < 2);
        machine.call(inputs, outputs);
        for (int i = 0; i < 5; ++i)
          ASSERT_EQ(memcmp(places[i], want[i].bytes.data(), want[i].bytes.size()), 0)
              << "output " << i << ", n " << n << ", offset " << gap;
        ASSERT_TRUE(xs.edgesStand() && ss.edgesStand() && ys.edgesStand() && ts.edgesStand()) << n << " " << gap;
        for (Guarded &g : scalars) ASSERT_TRUE(g.edgesStand()) << n << " " << gap;
      }
    }
  }
}

// ---- batch dependence: row k of a batch is the solo row, batch 1 ... 257; a batch axis of extent 1 or none at all.
constexpr const char *batches = R"(module @batches {
  dim b in 1..257
  param @w : f32[36, 48] = hex "$w"
  param @f : f32[4, 1, 3, 3] = hex "$f"
  entry @batch(%x : f32[b, 600], %p : f32[b, 1, 6, 6], %q : f32[b, 5, 7]) -> (%y : f32[b, 600], %z : f32[b, 48], %s : f32[b], %g : f32[b, 5, 5]) {
    %m0 = reduce %x kind=max order=exact axes=[1]
    %m1 = reshape %m0 [b, 1]
    %m2 = expand %m1 [b, 600]
    %d = sub %x, %m2
    %e = exp %d
    %t0 = reduce %e kind=sum order=lane64 axes=[1]
    %t1 = reshape %t0 [b, 1]
    %t2 = expand %t1 [b, 600]
    %y = div %e, %t2
    %c = contract %p[n, c, oh + kh - 1, ow + kw - 1], @f[o, c, kh, kw] -> [n, o, oh: 6, ow: 6] sum [kh, kw, c]
    %c0 = reduce %c kind=sum order=lane64 axes=[1]
    %r = reshape %c0 [b, 36]
    %z = contract %r[n, k], @w[k, j] -> [n, j] sum [k]
    %s = reduce %c kind=sum order=lane64 axes=[1, 2, 3]
    %g = contract %q[n, i, k], %q[n, j, k] -> [n, i, j] sum [k]
  }
  entry @solo(%x : f32[600], %p : f32[1, 6, 6], %q : f32[5, 7]) -> (%y : f32[600], %z : f32[48], %s : f32, %g : f32[5, 5]) {
    %m0 = reduce %x kind=max order=exact axes=[0]
    %m1 = reshape %m0 [1]
    %m2 = expand %m1 [600]
    %d = sub %x, %m2
    %e = exp %d
    %t0 = reduce %e kind=sum order=lane64 axes=[0]
    %t1 = reshape %t0 [1]
    %t2 = expand %t1 [600]
    %y = div %e, %t2
    %c = contract %p[c, oh + kh - 1, ow + kw - 1], @f[o, c, kh, kw] -> [o, oh: 6, ow: 6] sum [kh, kw, c]
    %c0 = reduce %c kind=sum order=lane64 axes=[0]
    %r = reshape %c0 [36]
    %z = contract %r[k], @w[k, j] -> [j] sum [k]
    %s = reduce %c kind=sum order=lane64 axes=[0, 1, 2]
    %g = contract %q[i, k], %q[j, k] -> [i, j] sum [k]
  }
})";

/// One of the two entries on rows begin ... begin + count of the inputs.
std::vector<Tensor> rows(const std::vector<Tensor> &all, int64_t begin, int64_t count, bool axis) {
  std::vector<Tensor> some;
  for (const Tensor &t : all) {
    Tensor r{t.dtype, t.shape, {}};
    size_t row = t.bytes.size() / t.shape[0];
    r.bytes.assign(t.bytes.begin() + begin * row, t.bytes.begin() + (begin + count) * row);
    r.shape[0] = count;
    if (!axis) r.shape.erase(r.shape.begin());
    some.push_back(std::move(r));
  }
  return some;
}

TEST_P(Traps, BatchDependence) {
  Module source, m;
  std::string text = batches;
  text.replace(text.find("$w"), 2, llvm::toHex(numbers(DType::F32, {36, 48}, 1).bytes));
  text.replace(text.find("$f"), 2, llvm::toHex(numbers(DType::F32, {36}, 2).bytes));
  read(text, source, m);
  ASSERT_FALSE(bool(writeBundleOf(m, target, path)));
  constexpr int64_t most = 257;
  std::vector<Tensor> all = {numbers(DType::F32, {most, 600}, 3), numbers(DType::F32, {most, 1, 6, 6}, 4),
                             numbers(DType::F32, {most, 5, 7}, 5)};
  std::vector<std::vector<Tensor>> want;
  for (int64_t k = 0; k < most; ++k) want.push_back(evaluate(source, 1, rows(all, k, 1, false)));
  std::vector<EvalInputs> inputs;
  for (int64_t k = 0; k < most; ++k) inputs.push_back({rows(all, k, 1, false), {}, {}, {}});
  for (int64_t b = 1; b <= most; ++b) inputs.push_back({rows(all, most - b, b, true), {}, {}, {}});
  std::vector<BundleCall> calls;
  for (const EvalInputs &in : inputs) calls.push_back({&m.entries[calls.size() < most ? 1 : 0], &in});
  for (unsigned threads : {1u, 2u, 7u}) {
    auto got = runCalls(path, target, threads, m, calls);
    ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError());
    for (const BundleResult &r : *got) ASSERT_EQ(r.refusal, "");
    for (int64_t k = 0; k < most; ++k) ASSERT_EQ((*got)[k].result.outputs, want[k]) << "row " << k << " alone";
    for (int64_t b = 1; b <= most; ++b)
      for (int64_t k = 0; k < b; ++k)
        ASSERT_EQ(rows((*got)[most + b - 1].result.outputs, k, 1, false), want[most - b + k])
            << "row " << k << " of a batch of " << b << ", " << threads << " threads";
  }
}

// ---- tuning: whatever a plan says, bits stay.
constexpr const char *planned = R"(module @planned {
  dim n in 0..70
  param @w : f32[130, 90] = splat 0.75
  entry @main(%a : f32[n, 130], %b : f32[n, 90], %c : f32[37, 3, 50], %d : f32[2, 5, 601, 3], %e : f32[2, 4, 600, 35]) -> (%p : f32[n, 90], %q : f32[n, n], %s : f32[37, 3], %t : f32[37, 50], %u : f32[50, 37], %v : f32[130, 90], %w : f32[35, 3, 2, 2]) {
    %0 = contract %a[i, k], @w[k, j] -> [i, j] sum [k]
    %p = add %0, %b
    %q = contract %b[i, k], %b[j, k] -> [i, j] sum [k]
    %s = reduce %c kind=sum order=lane64 axes=[2]
    %t = reduce %c kind=max order=exact axes=[1]
    %1 = shrink %c [0, 0, 0] [37, 1, 50]
    %2 = reshape %1 [37, 50]
    %3 = permute %2 perm=[1, 0]
    %u = exp %3
    %v = contract %a[i, k], %b[i, j] -> [k, j] sum [i]
    %w = contract %d[s, y + ky, x + kx, i], %e[s, y, x, o] -> [o, i, ky: 2, kx: 2] sum [s, y, x]
  }
})";

TEST_P(Traps, Plans) {
  Module source, m;
  read(planned, source, m);
  auto s = schedule(m);
  ASSERT_TRUE(bool(s)) << llvm::toString(s.takeError());
  std::vector<Plan> chosen;
  for (const KernelSpec &spec : s->kernels) chosen.push_back(choosePlan(m.ctx(), spec, target));
  std::vector<EvalInputs> inputs;
  std::vector<std::vector<Tensor>> want;
  std::vector<BundleCall> calls;
  for (int64_t n : {0, 1, 6, 7, 64, 70}) {
    inputs.push_back(
        {{numbers(DType::F32, {n, 130}, 6), numbers(DType::F32, {n, 90}, 7), numbers(DType::F32, {37, 3, 50}, 8),
          numbers(DType::F32, {2, 5, 601, 3}, 9), numbers(DType::F32, {2, 4, 600, 35}, 10)},
         {},
         {},
         {}});
    want.push_back(evaluate(source, 0, inputs.back().inputs));
  }
  for (const EvalInputs &in : inputs) calls.push_back({&m.entries[0], &in});
  std::map<std::string, unsigned> different; // plans tried, by kernel
  for (unsigned round = 0; round < 24; ++round) {
    CompileOptions o;
    o.verify = true;
    o.cache = kernelCache();
    for (size_t i = 0; i < chosen.size(); ++i) {
      Plan p = chosen[i];
      unsigned rank = s->kernels[i].outputs[0].layout.dims.size();
      p.lanes = std::min(chosen[i].lanes, 1u << round % 5);
      p.unroll = 1 + round % 3;
      p.prefetch = round % 4 * 5;
      if (p.kind == PlanKind::Contract) {
        p.mr = 1 + round % 7, p.packB = chosen[i].packB ? round % 4 * 16 : 0;
        p.mc = p.packB ? 0 : round % 6, p.kc = p.mc ? 1 + round * 97 % 640 : 0; // sums rest, or do not
      }
      if (p.kind != PlanKind::Contract && p.kind != PlanKind::Rows) p.merge = 1 + round / 5 % std::max(rank, 1u);
      auto with = [&](unsigned Plan::*step, unsigned value) { // where a kernel takes it
        Plan q = p;
        q.*step = value;
        if (llvm::Error refused = checkPlan(s->kernels[i], q))
          llvm::consumeError(std::move(refused));
        else
          p = q;
      };
      with(&Plan::tail, round / 2 % 2);
      with(&Plan::prefetchPanel, round / 3 % 2);
      with(&Plan::nonTemporal, round / 4 % 2);
      for (unsigned Plan::*block : {&Plan::mapTile, &Plan::rowBlock, &Plan::columnSteps, &Plan::chainBlocks})
        with(block, round % 5 * 3);
      different[s->kernels[i].name] += text(p) != text(chosen[i]);
      o.plans[s->kernels[i].name] = p;
    }
    auto code = compileKernels(m.ctx(), *s, target, o);
    ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
    std::vector<CompiledTarget> one;
    one.push_back(std::move(*code));
    auto parts = assemble(m, *s, std::move(one));
    ASSERT_TRUE(bool(parts)) << llvm::toString(parts.takeError());
    ASSERT_FALSE(bool(writeBundleTo(*parts, path)));
    auto got = runCalls(path, target, 2, m, calls);
    ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError());
    for (size_t i = 0; i < calls.size(); ++i) {
      ASSERT_EQ((*got)[i].refusal, "");
      ASSERT_EQ((*got)[i].result.outputs, want[i]) << "case " << i << ", round " << round;
    }
  }
  for (auto &[name, count] : different) EXPECT_GE(count, 12u) << name;
}
} // namespace
