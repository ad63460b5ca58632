//===- MetalTest.cpp: Metal's text against Eval -------------------------------===//
// Checks:   every op on every type, graphs of each kind of plan, random graphs and committed vectors: the text of their
//           kernels, compiled against a shim and run thread by thread on the host, gives the evaluator's bytes. What
//           needs f64 is refused with a sentence. A text without one of its barriers is noticed.
#include "../eval/VectorFile.h"
#include "OpCases.h"
#include "RandomGraph.h"
#include "RunMetal.h"
#include "RunSchedule.h"
#include "astra/IR/Text.h"
#include "astra/Numerics/EvalFunctions.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Rewrite/Rewrite.h"

using namespace astra;
using namespace astra::test;

namespace {

bool nightly() { return std::getenv("ASTRA_NIGHTLY"); }

/// Values around 0, or any bits of an integer, the same for one seed.
Tensor randomTensor(DType t, std::vector<int64_t> shape, uint64_t seed) {
  int64_t count = 1, size = byteSize(t);
  for (int64_t d : shape) count *= d;
  Tensor x{t, shape, std::vector<uint8_t>(count * size)};
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    float f = float(int64_t(seed >> 40) - (1 << 23)) * 0x1p-20f;
    uint64_t bits = seed >> 30;
    if (t == DType::F32) memcpy(&bits, &f, 4);
    if (t == DType::F16) bits = (bits & 0x83ff) | 0x3800;  // around 1
    if (t == DType::BF16) bits = (bits & 0x80ff) | 0x3f00; // likewise
    memcpy(&x.bytes[i * size], &bits, size);
  }
  return x;
}

llvm::Error prepare(Module &m) {
  if (auto e = runNumerics(m)) return e;
  RewriteOptions options;
  auto roots = rewrite(m.ctx(), m.roots(), graphRules, options);
  if (!roots) return roots.takeError();
  auto it = roots->begin();
  for (Entry &e : m.entries) {
    for (Value &v : e.outputs) v.value = *it++;
    for (StateUpdate &u : e.updates) u.value = *it++;
  }
  return llvm::Error::success();
}

/// A module scheduled, its kernels as text and that text compiled.
struct MetalModule {
  Module m;
  std::optional<Schedule> schedule;
  std::vector<Kernel> storage;
  std::optional<MetalText> text;
  std::optional<MetalLibrary> library;
  std::string refused, wrong; // the sentence for f64; why there is nothing to run

  explicit MetalModule(Module given) : m(std::move(given)) {
    if (auto e = make()) wrong = llvm::toString(std::move(e));
  }
  llvm::Error make() {
    if (auto e = prepare(m)) return e;
    auto s = astra::schedule(m);
    if (!s) return s.takeError();
    schedule = std::move(*s);
    auto kernels = gpuKernels(m.ctx(), *schedule, metalTarget(), storage);
    if (!kernels) return kernels.takeError();
    auto t = emitMetal(m.ctx(), *kernels, schedule->dims);
    if (!t) {
      std::string why = llvm::toString(t.takeError());
      if (llvm::StringRef(why).ends_with("f64 has no type in Metal")) return refused = why, llvm::Error::success();
      return llvm::createStringError(why);
    }
    text = std::move(*t);
    return compile();
  }
  llvm::Error compile() {
    auto l = MetalLibrary::build(*text);
    if (!l) return l.takeError();
    library.emplace(std::move(*l));
    return llvm::Error::success();
  }
  llvm::Expected<EvalResult> run(unsigned entry, const EvalInputs &in, uint64_t seed) {
    ScheduleRun scheduled(m, *schedule, *targetNamed("cpu:x86-64-v3"), true);
    scheduled.execute = [&](uint32_t k, llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> views,
                            llvm::ArrayRef<int64_t> dims,
                            int64_t items) { return library->launch(k, views, dims, items, seed); };
    scheduled.useKernels(storage);
    return scheduled.run(entry, in);
  }
};

TEST(Metal, EveryOpOnEveryType) {
  for (int64_t lanes : {1, 4}) {
    Cases all;
    all.addAll(lanes);
    std::vector<GpuKernel> kernels;
    std::vector<size_t> numbers; // of the cases that have a text
    size_t withF64 = 0;
    for (size_t i = 0; i < all.cases.size(); ++i) {
      Case &k = all.cases[i];
      auto l = linearize(all.c, k.job.kernel);
      ASSERT_TRUE(bool(l)) << llvm::toString(l.takeError());
      GpuKernel kernel{"kernel" + std::to_string(i), &k.job.kernel, std::move(*l), 64, 1};
      bool f64 = llvm::any_of(k.job.kernel.buffers, [](const KernelBuffer &b) { return b.dtype == DType::F64; });
      withF64 += f64;
      if (!f64) {
        kernels.push_back(std::move(kernel)), numbers.push_back(i);
        continue;
      }
      auto text = emitMetal(all.c, kernel, {});
      ASSERT_FALSE(bool(text)) << k.name;
      EXPECT_EQ(llvm::toString(text.takeError()), "kernel '" + kernel.name + "': f64 has no type in Metal");
    }
    EXPECT_GT(withF64, 30u);
    EXPECT_GT(kernels.size(), 300u);
    auto text = emitMetal(all.c, kernels, {});
    ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
    auto library = MetalLibrary::build(*text);
    ASSERT_TRUE(bool(library)) << llvm::toString(library.takeError());
    for (size_t n = 0; n < numbers.size(); ++n) {
      Case &k = all.cases[numbers[n]];
      Job reference = k.job;
      ASSERT_EQ(evaluate(reference, {}), "") << k.name;
      auto want = std::move(reference.buffers.back());
      std::vector<llvm::MutableArrayRef<uint8_t>> views(k.job.buffers.begin(), k.job.buffers.end());
      int64_t items = *itemCount(all.c, k.job.kernel.sink)->constIndex();
      auto e = library->launch(n, views, {}, items, 1);
      ASSERT_FALSE(bool(e)) << llvm::toString(std::move(e));
      canonicalize(want, k.result), canonicalize(k.job.buffers.back(), k.result);
      EXPECT_EQ(k.job.buffers.back() == want, true) << k.name;
    }
  }
}

struct GraphCase {
  const char *name, *text;
  std::vector<std::vector<int64_t>> dims;
  const char *has; // what its text has
};
const GraphCase graphs[] = {
    {"maps",
     R"(dim n in 0..5000
      entry @main(%x : f32[n], %h : f16[n], %b : bf16[n], %i : i64[n], %j : i32[n]) -> (%y : f32[n], %z : f16[n], %u : bf16[n], %v : i64[n], %w : bf16[n]) {
        %0 = tanh %x
        %y = mul %0, %x
        %z = exp %h
        %u = sqrt %b
        %v = floordiv %i, 7
        %w = cast %j : bf16[n]
      })",
     {{0}, {1}, {255}, {4097}},
     "floordiv_i64"},
    {"rows",
     R"(dim n in 0..9000
      dim m in 0..5
      entry @main(%x : f32[m, n], %h : f16[m, n], %i : i64[m, n], %b : i8[m, n]) -> (%s : f32[m], %u : f16[m], %w : i64[m], %k : i8[m], %y : f32[m, n], %c : f32[n]) {
        %s = reduce %x kind=sum order=lane64 axes=[1]
        %u = reduce %h kind=sum order=lane64 axes=[1]
        %w = reduce %i kind=sum order=exact axes=[1]
        %k = reduce %b kind=min order=exact axes=[1]
        %v = reduce %x kind=max order=exact axes=[1]
        %v0 = detach %v
        %v1 = reshape %v0 [m, 1]
        %v2 = expand %v1 [m, n]
        %e = sub %x, %v2
        %f = exp %e
        %g = reduce %f kind=sum order=lane64 axes=[1]
        %g1 = reshape %g [m, 1]
        %g2 = expand %g1 [m, n]
        %y = div %f, %g2
        %c = reduce %x kind=sum order=lane64 axes=[0]
      })",
     {{0, 3}, {1, 2}, {63, 5}, {4097, 2}, {9000, 1}},
     "simd_shuffle_xor"},
    {"short rows",
     R"(dim n in 0..31
      entry @main(%x : f32[5, n]) -> (%a : i64[5], %y : f32[5, n]) {
        %a = argreduce %x kind=argmin axis=1
        %m = reduce %x kind=max order=exact axes=[1]
        %m1 = reshape %m [5, 1]
        %m2 = expand %m1 [5, n]
        %y = sub %x, %m2
      })",
     {{0}, {1}, {17}, {31}},
     "exchange_"},
    {"product",
     R"(dim n in 0..200
      entry @main(%x : f32[n, 96], %w : f32[96, 80], %b : f32[80]) -> (%y : f32[n, 80]) {
        %0 = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
        %1 = reshape %b [1, 80]
        %2 = expand %1 [n, 80]
        %y = add %0, %2
      })",
     {{0}, {1}, {65}, {200}},
     "threadgroup_barrier"},
    {"long product",
     R"(dim n in 1..8
      entry @main(%x : f32[n, 3000], %w : f32[3000, 8]) -> (%y : f32[n, 8]) {
        %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
      })",
     {{1}, {8}},
     "threadgroup"},
    {"half product",
     R"(dim n in 0..70
      entry @main(%x : f16[n, 40], %w : f16[40, 33]) -> (%y : f16[n, 33]) {
        %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
      })",
     {{3}, {70}},
     "fma"},
    {"convolution",
     R"(entry @main(%x : f32[2, 9, 10, 4], %w : f32[3, 3, 4, 8]) -> (%y : f32[2, 7, 8, 8]) {
        %y = contract %x[n, h + r, w + s, c], %w[r, s, c, o] -> [n, h: 7, w: 8, o] sum [r, s, c]
      })",
     {{}},
     "fma_f32"},
    {"transpose",
     R"(entry @main(%x : f32[300, 200]) -> (%y : f32[200, 300]) {
        %0 = permute %x perm=[1, 0]
        %y = neg %0
      })",
     {{}},
     "threadgroup"},
    {"order",
     R"(dim n in 0..100
      entry @main(%x : f32[3, n], %i : i64[7], %d : f32[n]) -> (%p : i64[3, n], %c : f32[3, n], %g : f32[3, 7]) {
        %p = argsort %x axis=1 descending=0
        %c = cumulate %x kind=sum axis=1
        %g = gather %x, %i axis=1
      })",
     {{1}, {64}, {100}},
     ""},
};

TEST(Metal, GraphsKeepTheirBits) {
  for (const GraphCase &g : graphs) {
    auto parsed = parse("module @m {\n" + std::string(g.text) + "\n}", "graph.uop");
    ASSERT_TRUE(bool(parsed)) << g.name << llvm::toString(parsed.takeError());
    MetalModule metal(*parsed);
    ASSERT_EQ(metal.wrong + metal.refused, "") << g.name;
    EXPECT_NE(metal.text->source.find(g.has), std::string::npos) << g.name;
    uint64_t seed = 1;
    for (const std::vector<int64_t> &dims : g.dims)
      for (int again = 0; again < 2; ++again) {
        EvalInputs in;
        for (const Value &v : parsed->entries[0].inputs) {
          std::vector<int64_t> shape;
          for (UOpRef e : v.value->shape)
            shape.push_back(*idxEvaluate(e, [&](UOpRef d) -> std::optional<int64_t> {
              for (size_t i = 0; i < dims.size(); ++i)
                if (metal.schedule->dims[i] == d) return dims[i];
              return std::nullopt;
            }));
          in.inputs.push_back(randomTensor(v.value->dtype, shape, ++seed));
        }
        EvalOptions options;
        options.function = evalFunction;
        auto want = evalEntry(*parsed, parsed->entries[0], in, options);
        ASSERT_TRUE(bool(want)) << g.name << llvm::toString(want.takeError());
        auto got = metal.run(0, in, seed);
        ASSERT_TRUE(bool(got)) << g.name << ": " << llvm::toString(got.takeError());
        for (size_t i = 0; i < want->outputs.size(); ++i)
          EXPECT_TRUE(got->outputs[i] == want->outputs[i]) << g.name << ": output " << i;
      }
    EXPECT_GT(metal.library->threads, 0u);
  }
}

TEST(Metal, AMissingBarrierIsNoticed) {
  auto parsed = parse(R"(module @m {
    entry @main(%x : f32[64, 96], %w : f32[96, 80]) -> (%y : f32[64, 80]) {
      %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
    }
  })",
                      "graph.uop");
  ASSERT_TRUE(bool(parsed));
  MetalModule metal(*parsed);
  ASSERT_EQ(metal.wrong + metal.refused, "");
  EvalInputs in;
  in.inputs = {randomTensor(DType::F32, {64, 96}, 1), randomTensor(DType::F32, {96, 80}, 2)};
  auto want = evalEntry(*parsed, parsed->entries[0], in, {});
  ASSERT_TRUE(bool(want));
  const std::string whole = metal.text->source, line = "threadgroup_barrier(mem_flags::mem_threadgroup);";
  unsigned barriers = 0;
  for (size_t at = whole.find(line); at != std::string::npos; at = whole.find(line, at + 1), ++barriers) {
    metal.text->source = whole;
    metal.text->source.erase(at, line.size());
    auto e = metal.compile();
    ASSERT_FALSE(bool(e)) << llvm::toString(std::move(e));
    auto got = metal.run(0, in, 1);
    ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError());
    EXPECT_FALSE(got->outputs[0] == want->outputs[0]) << "without barrier " << barriers;
  }
  EXPECT_GE(barriers, 2u);
}

TEST(Metal, RandomGraphsKeepTheirBits) {
  uint64_t count = nightly() ? 500 : 16, executed = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    RandomCase r = randomCase(seed, {.units = false}); // their steps are in f64, which Metal lacks
    EvalOptions options;
    options.function = evalFunction;
    auto want = evalEntry(r.module, r.entry(), r.inputs, options);
    ASSERT_TRUE(bool(want)) << llvm::toString(want.takeError());
    MetalModule metal(r.module);
    ASSERT_EQ(metal.wrong, "") << "seed " << seed;
    if (!metal.refused.empty()) continue;
    auto got = metal.run(0, r.inputs, seed);
    ASSERT_TRUE(bool(got)) << "seed " << seed << ": " << llvm::toString(got.takeError());
    for (size_t i = 0; i < want->outputs.size(); ++i)
      EXPECT_TRUE(got->outputs[i] == want->outputs[i]) << "seed " << seed << ": output " << i;
    executed += metal.library->threads;
  }
  EXPECT_GT(executed, 0u);
}

/// Of 100 cases a module; daily one case in eight.
TEST(Metal, VectorsAreGivenByteForByte) {
  unsigned checked = 0, refused = 0;
  for (const char *name : {"floats", "integers", "conversions", "leaves", "movement", "reductions", "cumulations",
                           "contractions", "indexing", "random", "complexes"}) {
    VectorFile file(std::string(ASTRA_VECTORS "/") + name + ".vec");
    std::vector<VectorCase> batch;
    unsigned number = 0;
    for (bool more = true; more;) {
      auto v = file.next();
      more = v.has_value();
      auto wide = [](DType t) { return t == DType::F64 || t == DType::C128; };
      if (v) {
        bool f64 = wide(v->to) || wide(v->want.dtype) ||
                   llvm::any_of(v->inputs, [&](const Tensor &t) { return wide(t.dtype); });
        refused += f64;
        if (f64 || (!nightly() && number++ % 8)) continue;
        batch.push_back(std::move(*v));
      }
      if (batch.empty() || (more && batch.size() < 100)) continue;
      Module m;
      for (const VectorCase &c : batch) {
        auto node = c.node(m.ctx());
        ASSERT_TRUE(bool(node)) << llvm::toString(node.takeError());
        Entry e{"e" + std::to_string(m.entries.size()), {}, {{"y", *node}}, {}};
        Builder b(m.ctx());
        for (const Tensor &t : c.inputs) {
          llvm::SmallVector<UOpRef> shape;
          for (int64_t d : t.shape) shape.push_back(b.idx(d));
          e.inputs.push_back({"x" + std::to_string(e.inputs.size()), b.arg(e.inputs.size(), t.dtype, shape)});
        }
        m.entries.push_back(std::move(e));
      }
      MetalModule metal(std::move(m));
      ASSERT_EQ(metal.wrong + metal.refused, "") << batch[0].line;
      for (size_t i = 0; i < batch.size(); ++i) {
        auto got = metal.run(i, {batch[i].inputs, {}, {}, {}}, 1);
        ASSERT_TRUE(bool(got)) << batch[i].line << llvm::toString(got.takeError());
        Tensor want = batch[i].want, found = got->outputs[0];
        canonicalizeNaN(want), canonicalizeNaN(found);
        EXPECT_TRUE(found == want) << batch[i].line << "\n" << VectorFile::difference(found, want, batch[i].inputs);
        ++checked;
      }
      batch.clear();
    }
  }
  EXPECT_GT(checked, 300u);
  EXPECT_GT(refused, 300u);
}

} // namespace
