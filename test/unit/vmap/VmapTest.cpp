//===- VmapTest.cpp: a batch is a loop -------------------------------------===//
// Takes:    modules as text, and random ones; inputs that differ from element to element of a batch.
// Gives:    equal bytes, by the reference evaluator, of the batched entry and of a loop over the batch.
// Keeps:    batches of 0, 1 and more elements, axes in front and elsewhere, shared inputs.
#include "astra/Autograd/Vmap.h"
#include "RandomGraph.h"
#include "astra/IR/Text.h"
#include "astra/IR/Verify.h"
#include "astra/Numerics/EvalFunctions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "gtest/gtest.h"
#include <random>

using namespace astra;
using namespace astra::test;

namespace {
using Axes = std::vector<std::optional<int64_t>>;

/// A tensor of whole bytes as [before, axis extent, inside] for stacking and slicing.
int64_t product(llvm::ArrayRef<int64_t> extents) {
  int64_t p = 1;
  for (int64_t e : extents) p *= e;
  return p;
}
Tensor stack(llvm::ArrayRef<Tensor> parts, const Tensor &like, int64_t axis) {
  Tensor t{like.dtype, like.shape, {}};
  t.shape.insert(t.shape.begin() + axis, parts.size());
  int64_t outer = product(llvm::ArrayRef(like.shape).take_front(axis)),
          inner = product(llvm::ArrayRef(like.shape).drop_front(axis)) * byteSize(like.dtype);
  for (int64_t o = 0; o < outer; ++o)
    for (const Tensor &p : parts)
      t.bytes.insert(t.bytes.end(), p.bytes.begin() + o * inner, p.bytes.begin() + (o + 1) * inner);
  return t;
}
Tensor part(const Tensor &t, int64_t axis, int64_t i) {
  Tensor p{t.dtype, t.shape, {}};
  int64_t extent = t.shape[axis];
  p.shape.erase(p.shape.begin() + axis);
  int64_t outer = product(llvm::ArrayRef(t.shape).take_front(axis)),
          inner = product(llvm::ArrayRef(t.shape).drop_front(axis + 1)) * byteSize(t.dtype);
  for (int64_t o = 0; o < outer; ++o) {
    auto from = t.bytes.begin() + (o * extent + i) * inner;
    p.bytes.insert(p.bytes.end(), from, from + inner);
  }
  return p;
}

/// The same elements, turned round by i: other values of the same type, special ones among them.
Tensor turned(Tensor t, int64_t i) {
  int64_t count = t.count();
  if (count > 1) std::rotate(t.bytes.begin(), t.bytes.begin() + i % count * byteSize(t.dtype), t.bytes.end());
  return t;
}

llvm::Expected<EvalResult> evaluated(const Module &m, const Entry &e, const EvalInputs &in) {
  EvalOptions options;
  options.function = evalFunction;
  options.maxTrips = 10000;
  return evalEntry(m, e, in, options);
}

enum class Outcome { Equal, Refused, LoopRefused, Different };

/// Compares the batched entry with the loop. `elements[i]` are the inputs of element i; shared ones are element 0's.
Outcome compare(Module m, const Entry &e, llvm::ArrayRef<EvalInputs> elements, const EvalInputs &like, UOpRef size,
                const Axes &in, llvm::ArrayRef<int64_t> out, std::string &why) {
  auto batched = vmapEntry(m, e, "batched", size, in, out);
  if (!batched) {
    why = llvm::toString(batched.takeError());
    return Outcome::Refused;
  }
  std::vector<EvalResult> loop;
  for (const EvalInputs &one : elements) {
    auto r = evaluated(m, e, one);
    if (!r) {
      why = llvm::toString(r.takeError());
      return Outcome::LoopRefused;
    }
    loop.push_back(std::move(*r));
  }
  m.entries.push_back(*batched);
  if (auto error = verify(m, Stage::Graph)) {
    why = "the batched entry does not verify: " + llvm::toString(std::move(error));
    return Outcome::Different;
  }
  EvalInputs all = like;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i]) continue;
    std::vector<Tensor> parts;
    for (const EvalInputs &one : elements) parts.push_back(one.inputs[i]);
    all.inputs[i] = stack(parts, like.inputs[i], *in[i]);
  }
  auto r = evaluated(m, m.entries.back(), all);
  if (!r) {
    why = "the batched entry is refused: " + llvm::toString(r.takeError());
    return Outcome::Different;
  }
  for (size_t o = 0; o < out.size(); ++o) {
    if (r->outputs[o].shape.size() <= size_t(out[o]) || r->outputs[o].shape[out[o]] != int64_t(elements.size())) {
      why = "output " + std::to_string(o) + " has not the batch's extent";
      return Outcome::Different;
    }
    for (size_t i = 0; i < elements.size(); ++i)
      if (part(r->outputs[o], out[o], i) != loop[i].outputs[o]) {
        why = "output " + std::to_string(o) + " differs in element " + std::to_string(i);
        return Outcome::Different;
      }
  }
  return Outcome::Equal;
}

/// Bodies of `entry @main`, what is before it, which inputs are batched at which axis, where outputs get it.
struct Case {
  const char *name, *before, *entry;
  Axes in;
  std::vector<int64_t> out;
};
constexpr std::nullopt_t shared = std::nullopt;

const Case cases[] = {
    {"elementwise", "", "(%x : f32[3], %s : f32[3]) -> (%y : f32[3]) { %y = mul %x, %s }", {1, shared}, {1}},
    {"an_output_that_does_not_depend",
     "",
     "(%x : f32[3], %s : f32) -> (%y : f32[3], %z : f32) { %y = neg %x %z = neg %s }",
     {0, shared},
     {1, 0}},
    {"movement",
     "",
     "(%x : f32[2, 3, 4]) -> (%y : f32[4, 9]) { %0 = permute %x perm=[2,0,1] %1 = flip %0 axes=[0,2] %2 = reshape %1 "
     "[4, "
     "6] %3 = pad %2 [0, 2] [0, 3] value=1.5 %4 = shrink %3 [0, 1] [4, 9] %y = neg %4 }",
     {2},
     {0}},
    {"windows",
     "",
     "(%x : f32[2, 9]) -> (%y : f32[2, 3, 2]) { %y = window %x axis=1 size=2 stride=3 dilation=2 }",
     {0},
     {1}},
    {"sums",
     "",
     "(%x : f32[5, 70]) -> (%a : f32[5], %b : f32[70], %c : f32, %d : f32[5, 70], %e : f32[5, 70]) { %a = "
     "reduce %x kind=sum order=lane64 axes=[1] %b = reduce %x kind=sum order=chain axes=[0] %c = reduce %x kind=prod "
     "order=lane64 axes=[0,1] %d = cumulate %x kind=sum axis=1 %e = cumulate %x kind=sum axis=0 }",
     {1},
     {0, 1, 0, 0, 0}},
    {"a_triangle",
     "",
     "(%x : f32[5, 5]) -> (%y : f32[5]) { %y = reduce %x kind=sum order=chain axes=[1] where i1 <= i0 }",
     {0},
     {0}},
    {"products",
     "",
     "(%a : f32[4, 600], %b : f32[600, 3]) -> (%y : f32[4, 3]) { %y = contract %a[i, k], %b[k, j] -> [i, j] sum [k] }",
     {0, shared},
     {0}},
    {"products_the_other_way",
     "",
     "(%a : f32[4, 600], %b : f32[600, 3]) -> (%y : f32[4, 3]) { %y = contract %a[i, k], %b[k, j] -> [i, j] sum [k] }",
     {shared, 2},
     {1}},
    {"products_of_both",
     "",
     "(%a : f32[4, 30], %b : f32[30, 3]) -> (%y : f32[4, 3]) { %y = contract %a[i, k], %b[k, j] -> [i, j] sum [k] }",
     {0, 0},
     {2}},
    {"a_convolution",
     "",
     "(%x : f32[2, 7, 7], %w : f32[3, 2, 3, 3]) -> (%y : f32[3, 4, 4]) { %y = contract %x[c, oh*2 + kh - 1, ow*2 + kw "
     "- 1], %w[o, c, kh, kw] -> [o, oh: 4, ow: 4] sum [kh, kw, c] }",
     {0, 1},
     {0}},
    {"a_transposed_convolution_with_a_domain",
     "",
     "(%x : f32[2, 5], %w : f32[2, 3]) -> (%y : f32[9]) { %y = contract %x[c, (o + 1 - k)/2], %w[c, k] -> [o: 9] sum "
     "[k, c] where c <= k }",
     {1, shared},
     {0}},
    {"gather_shared_index",
     "",
     "(%x : f32[4, 5], %i : i32[2, 3]) -> (%y : f32[4, 2, 3]) { %y = gather %x, %i axis=1 }",
     {0, shared},
     {0}},
    {"gather_shared_table",
     "",
     "(%x : f32[4, 5], %i : i32[2, 3]) -> (%y : f32[4, 2, 3]) { %y = gather %x, %i axis=1 }",
     {shared, 1},
     {0}},
    {"gather_both",
     "",
     "(%x : f32[4, 5, 2], %i : i32[2, 3]) -> (%y : f32[4, 2, 3, 2]) { %y = gather %x, %i axis=1 }",
     {0, 0},
     {3}},
    {"gather_a_scalar", "", "(%x : f32[4, 5], %i : i32) -> (%y : f32[5]) { %y = gather %x, %i axis=0 }", {0, 0}, {0}},
    {"pick", "", "(%x : f32[4, 5], %i : i64[4, 2]) -> (%y : f32[4, 2]) { %y = pick %x, %i axis=1 }", {shared, 0}, {1}},
    {"scatter",
     "",
     "(%x : f32[4, 5], %i : i64[4, 7], %u : f32[4, 7]) -> (%y : f32[4, 5], %z : f32[4, 5]) { %y = scatter %x, %i, %u "
     "axis=1 kind=add %z = scatter %x, %i, %u axis=1 kind=set }",
     {shared, 0, 1},
     {0, 0}},
    {"order",
     "",
     "(%x : f32[4, 5]) -> (%y : i64[4, 5], %z : i64[4]) { %y = argsort %x axis=1 descending=1 %z = argreduce %x "
     "kind=argmax axis=1 }",
     {2},
     {0, 0}},
    {"slices_at_places_of_their_own",
     "",
     "(%x : f32[6, 5], %i : i64) -> (%y : f32[2, 3]) { %0 = const 1 : i64 %y = slice_at %x, %i, %0 [2, 3] }",
     {shared, 0},
     {0}},
    {"updates_at_places_of_their_own",
     "",
     "(%x : f32[6, 5], %u : f32[2, 3], %i : i64, %j : i64) -> (%y : f32[6, 5]) { %y = update_at %x, %u, %i, %j }",
     {shared, 0, 0, shared},
     {1}},
    {"random_numbers_of_seeds",
     "",
     "(%s : u32, %t : u32) -> (%y : u32[7]) { %y = random %s, %t [7] }",
     {0, shared},
     {1}},
    {"cond_shared",
     "func @yes(%a : f32[3], %b : f32[3]) { %0 = add %a, %b return %0, %b } func @no(%a : f32[3], %b : f32[3]) { %0 = "
     "neg %a return %0, %b }",
     "(%p : bool, %x : f32[3], %s : f32[3]) -> (%y : f32[3], %z : f32[3]) { %c = cond(@yes, @no) %p, %x, %s %y = proj "
     "%c [3] index=0 : f32[3] %z = proj %c [3] index=1 : f32[3] }",
     {shared, 0, shared},
     {0, 0}},
    {"cond_of_each",
     "func @yes(%a : f32[3], %b : f32[3]) { %0 = add %a, %b return %0 } func @no(%a : f32[3], %b : f32[3]) { %0 = neg "
     "%b return %0 }",
     "(%p : bool, %x : f32[3], %s : f32[3]) -> (%y : f32[3]) { %c = cond(@yes, @no) %p, %x, %s %y = proj %c [3] "
     "index=0 : f32[3] }",
     {0, shared, shared},
     {0}},
    {"while_together",
     "func @go(%i : i64, _) { %0 = const 5 : i64 %1 = lt %i, %0 return %1 } func @step(%i : i64, %v : f32[3]) { %0 = "
     "const 1 : i64 %1 = add %i, %0 %2 = mul %v, %v return %1, %2 }",
     "(%n : i64, %x : f32[3]) -> (%y : f32[3], %k : i64) { %w = while(@go, @step) %n, %x [] names=\"\" %y = proj %w "
     "[3] index=1 : f32[3] %k = proj %w [] index=0 : i64 }",
     {shared, 0},
     {0, 0}},
    {"while_of_each",
     "func @go(%i : i64, _, %m : i64) { %1 = lt %i, %m return %1 } func @step(%i : i64, %v : f32[3], %m : i64) { %0 = "
     "const 1 : i64 %1 = add %i, %0 %2 = add %v, %v return %1, %2, %m }",
     "(%n : i64, %x : f32[3]) -> (%y : f32[3], %k : i64) { %0 = const 0 : i64 %w = while(@go, @step) %0, %x, %n [] "
     "names=\"\" %y = proj %w [3] index=1 : f32[3] %k = proj %w [] index=0 : i64 }",
     {0, shared},
     {0, 0}},
    {"scan_whose_carry_becomes_batched",
     "func @step(%c : f32[2], %r : f32[2], %s : f32[2]) { %0 = add %c, %r %1 = mul %0, %s return %0, %1, %s }",
     "(%x : f32[4, 2], %s : f32[2], %z : f32[2]) -> (%a : f32[2], %b : f32[4, 2], %d : f32[4, 2]) { %w = scan(@step) "
     "%z, %x, %s [4] ncarry=1 nxs=1 %a = proj %w [2] index=0 : f32[2] %b = proj %w [4, 2] index=1 : f32[4, 2] %d = "
     "proj %w [4, 2] index=2 : f32[4, 2] }",
     {0, shared, shared},
     {0, 1, 0}},
};

std::string textOf(const Case &c) {
  return std::string("module @m {\n") + c.before + "\nentry @main" + c.entry + "\n}\n";
}

/// Small values: indices of both signs and beyond the ends, floats of all kinds.
Tensor valuesOf(UOpRef like, std::mt19937_64 &random) {
  Tensor t{like->dtype, {}, {}};
  for (UOpRef d : like->shape) t.shape.push_back(*d->constIndex());
  for (int64_t i = 0; i < t.count(); ++i) {
    int64_t v = int64_t(random() % 9) - 1;
    if (like->dtype == DType::F32) {
      float f = i % 7 == 3 ? -0.0f : float(int64_t(random() % 2001) - 1000) / 37;
      auto *bytes = reinterpret_cast<const uint8_t *>(&f);
      t.bytes.insert(t.bytes.end(), bytes, bytes + 4);
    } else {
      if (like->dtype == DType::Bool) v &= 1;
      auto *bytes = reinterpret_cast<const uint8_t *>(&v);
      t.bytes.insert(t.bytes.end(), bytes, bytes + byteSize(like->dtype));
    }
  }
  return t;
}

class Vmap : public testing::TestWithParam<Case> {};

TEST_P(Vmap, IsALoop) {
  const Case &c = GetParam();
  for (int64_t extent : {3, 1, 0}) {
    auto m = parse(textOf(c), "case.uop");
    ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
    const Entry e = m->entries[0];
    std::mt19937_64 random(extent);
    EvalInputs like;
    for (const Value &v : e.inputs) like.inputs.push_back(valuesOf(v.value, random));
    std::vector<EvalInputs> elements(extent, like);
    for (int64_t i = 1; i < extent; ++i)
      for (size_t k = 0; k < e.inputs.size(); ++k)
        if (c.in[k]) elements[i].inputs[k] = valuesOf(e.inputs[k].value, random);
    std::string why;
    for (bool symbolic : {false, true}) {
      if (symbolic) m->dims.push_back(m->ctx().make(Op::Dim, {}, {0, 8}, "batch"));
      UOpRef size = symbolic ? m->dims.back() : m->ctx().index(extent);
      ASSERT_EQ(compare(*m, e, elements, like, size, c.in, c.out, why), Outcome::Equal)
          << why << ", a batch of " << extent << (symbolic ? ", symbolic" : "");
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, Vmap, testing::ValuesIn(cases),
                         [](const auto &i) { return std::string(i.param.name); });

TEST(VmapTest, NestsAndGoesBothWays) {
  const Case &c = *llvm::find_if(cases, [](const Case &k) { return llvm::StringRef(k.name) == "products_of_both"; });
  auto m = parse(textOf(c), "case.uop");
  ASSERT_TRUE(bool(m));
  UOpRef two = m->ctx().index(2), three = m->ctx().index(3);
  auto once = vmapEntry(*m, m->entries[0], "once", two, {0, std::nullopt}, {0});
  ASSERT_TRUE(bool(once));
  const Entry e = *once;
  std::mt19937_64 random(1);
  EvalInputs like;
  for (const Value &v : e.inputs) like.inputs.push_back(valuesOf(v.value, random));
  std::vector<EvalInputs> elements(3, like);
  for (EvalInputs &one : elements) one.inputs[1] = valuesOf(e.inputs[1].value, random);
  std::string why;
  EXPECT_EQ(compare(*m, e, elements, like, three, {std::nullopt, 1}, {2}, why), Outcome::Equal) << why;
}

std::string refusal(const char *text, Axes in, std::vector<int64_t> out) {
  auto m = parse(text, "case.uop");
  if (!m) return llvm::toString(m.takeError());
  auto e = vmapEntry(*m, m->entries[0], "batched", m->ctx().index(2), in, out);
  return e ? "" : llvm::toString(e.takeError());
}

TEST(VmapTest, RefusesWhatHasAnotherShapeForEachElement) {
  EXPECT_EQ(
      refusal(
          "module @m { entry @main(%x : f32[4], %k : bool[4]) -> (%y : f32[4]) { %0 = cast %k : i64[4] %1 = reduce %0 "
          "kind=sum order=exact axes=[0] %2 = reshape %1 [] %3 = extent %2 in 0..4 %4 = compact %x, %k [%3] %5 = pad "
          "%4 "
          "[0] [4 - %3] value=0.0 %y = reshape %5 [4] } }",
          {std::nullopt, 0}, {0}),
      "at extent : index: its extent would differ from element to element of the batch");
  EXPECT_EQ(
      refusal(
          "module @m { state @s : f32[3] entry @main(%x : f32[3]) -> (%y : f32[3]) { %y = add %x, @s set @s = %y } }",
          {0}, {0}),
      "state @s would get a value for every element");
  EXPECT_EQ(refusal("module @m { entry @main(%x : f32[3]) -> (%y : f32[3]) { %y = neg %x } }", {2}, {0}),
            "input %x has no place for an axis 2, its rank is 1");
  EXPECT_EQ(refusal("module @m { entry @main(%x : f32[3]) -> (%y : f32[3]) { %y = neg %x } }", {0}, {2}),
            "output %y has no place for an axis 2, its rank is 1");
  EXPECT_EQ(refusal("module @m { entry @main(%x : f32[3]) -> (%y : f32[3]) { %y = neg %x } }", {}, {0}),
            "axes are given for 0 inputs and 1 outputs, it has 1 and 1");
}

TEST(VmapTest, HasARowForEveryOpOfGraphs) {
  for (unsigned i = 0; i < numOps; ++i) {
    Op op = Op(i);
    bool takesTensors = info(op).sources != 0 && !has(op, KernelLevel) && !has(op, Leaf);
    EXPECT_EQ(isBatchable(op), takesTensors && op != Op::Compact && op != Op::Place) << info(op).mnemonic;
  }
}

TEST(VmapTest, RandomModulesAreLoops) {
  llvm::EnablePrettyStackTrace();
  const char *count = std::getenv("ASTRA_RANDOM_COUNT");
  unsigned seeds = count                          ? std::atoi(count)
                   : std::getenv("ASTRA_NIGHTLY") ? 10000
                                                  : 600,
           equal = 0, refused = 0, failures = 0;
  RandomOptions options;
  options.subByte = options.states = false;
  for (uint64_t seed = 0; seed < seeds && failures < 3; ++seed) {
    llvm::PrettyStackTraceFormat crash("seed %llu", (unsigned long long)seed);
    RandomCase c = randomCase(seed, options);
    std::mt19937_64 random(seed);
    const Entry e = c.entry();
    Axes in;
    for (const Value &v : e.inputs)
      in.push_back(random() % 3 ? std::optional<int64_t>(random() % (v.value->rank() + 1)) : std::nullopt);
    std::vector<int64_t> out;
    for (const Value &v : e.outputs) out.push_back(random() % (v.value->rank() + 1));
    std::vector<EvalInputs> elements(1 + random() % 3, c.inputs);
    for (size_t i = 1; i < elements.size(); ++i)
      for (size_t k = 0; k < in.size(); ++k)
        if (in[k]) elements[i].inputs[k] = turned(c.inputs.inputs[k], i);
    std::string why;
    Outcome o = compare(c.module, e, elements, c.inputs, c.module.ctx().index(elements.size()), in, out, why);
    equal += o == Outcome::Equal;
    refused += o == Outcome::Refused;
    if (o != Outcome::Different) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed << ": " << why << "\n" << text(c);
  }
  EXPECT_GT(equal, seeds / 2) << refused << " were refused";
}
} // namespace
