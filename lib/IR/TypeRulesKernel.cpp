//===- TypeRulesKernel.cpp: dtype and shape of kernel ops -------------------===//
// Takes:    the parts of a node below a sink: ranges, loads and stores, folds, stages, vectors.
// Gives:    its type, or a sentence that names what was found and what was expected.
// Does not: check what holds between nodes, as which range closes where (VerifyKernel.cpp).
#include "TypeRules.h"
#include "astra/IR/MatrixUnits.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::typing;

static Type vectorType(In const &in, DType t, int64_t lanes) {
  Type r{t, {}};
  if (lanes > 1) r.shape.push_back(in.c.index(lanes));
  return r;
}
static int64_t lanesOf(UOpRef x) { return x->rank() == 0 ? 1 : x->shape[0]->constIndex().value_or(1); }
R typing::ruleRange(const In &in) {
  bool digit = attributes(in, 3) && RangeKind(in.ints[1]) == RangeKind::Thread && in.ints[2] >= 1;
  if ((!attributes(in, 2) && !digit) || in.src.size() != 1 || !in.src[0]->isIndex())
    return in.fail("needs an extent, an axis number and a kind; a thread range may have a stride");
  return Type{DType::Index, {}};
}
R typing::ruleBuffer(const In &in) {
  if (!attributes(in, 1) || in.dtype == DType::Void) return in.fail("needs a slot, a dtype and a number of elements");
  return Type{in.dtype, {}};
}
R typing::ruleLoad(const In &in) {
  if (!attributes(in, 1) || in.ints[0] < 1 || in.ntensors < 1 || in.ntensors > 2 || in.src[0]->op != Op::Buffer ||
      in.indices().size() != 1)
    return in.fail("takes a buffer, a gate or none, one index");
  if (in.ntensors == 2 && (in.src[1]->dtype != DType::Bool || lanesOf(in.src[1]) != in.ints[0]))
    return in.fail("the gate is " + describe(in.src[1]));
  return vectorType(in, in.src[0]->dtype, in.ints[0]);
}
R typing::ruleStore(const In &in) {
  if (!attributes(in, 1) || in.ntensors < 2 || in.ntensors > 3 || in.src[0]->op != Op::Buffer || in.indices().empty())
    return in.fail("takes a buffer, a value, a gate or none, one index, the ranges that it is inside of besides");
  for (UOpRef r : in.indices().drop_front())
    if (r->op != Op::Range) return in.fail("is inside of something that is not a range");
  if (in.src[1]->dtype != in.src[0]->dtype || lanesOf(in.src[1]) != in.ints[0])
    return in.fail("the value is " + describe(in.src[1]) + ", the buffer holds " + info(in.src[0]->dtype).text);
  if (in.ntensors == 3 && (in.src[2]->dtype != DType::Bool || lanesOf(in.src[2]) != in.ints[0]))
    return in.fail("the gate is " + describe(in.src[2]));
  return Type{};
}
static llvm::Error checkRanges(const In &in) {
  for (UOpRef r : in.indices())
    if (r->op != Op::Range) return in.fail("closes something that is not a range");
  return llvm::Error::success();
}
R typing::ruleFold(const In &in) {
  const UnitStep *unit = attributes(in, 2) ? unitStepOf(Combine(in.ints[0])) : nullptr;
  if (!attributes(in, 2) || in.ntensors != 1 + in.ints[1] || in.ints[1] < 1 ||
      in.ints[1] % valuesOf(Combine(in.ints[0])))
    return in.fail("takes an initial value and one value a step (fma, dot4: two; a matrix unit: its words)");
  if (Combine(in.ints[0]) == Combine::Dot4 && in.src[0]->dtype != DType::I32)
    return in.fail("dot4 of " + describe(in.src[0]) + ", expected i32");
  if (unit && in.src[0]->dtype != DType::F32)
    return in.fail("a step of a matrix unit from " + describe(in.src[0]) + ", expected f32");
  if (auto e = checkRanges(in)) return std::move(e);
  for (UOpRef s : in.tensors().drop_front())
    if (s->dtype != (unit ? DType::U32 : in.src[0]->dtype) || !sameShape(s->shape, in.src[0]->shape))
      return in.fail((unit ? "words are of u32 and of one shape: " : "sources differ: ") + describe(in.src[0]) +
                     " and " + describe(s));
  return typeOf(in.src[0]);
}
R typing::ruleRunning(const In &in) {
  auto goes = [](UOpRef r) {
    return r->op == Op::Range && (RangeKind(r->ints[1]) == RangeKind::Loop || RangeKind(r->ints[1]) == RangeKind::Fold);
  };
  if (!attributes(in, 1) || in.ints[0] < 0 || valuesOf(Combine(in.ints[0])) != 1 || in.indices().size() != 1 ||
      !goes(in.indices()[0]))
    return in.fail("takes an initial value, a value and one range, a loop or a fold");
  for (UOpRef s : in.tensors())
    if (s->dtype != in.src[0]->dtype || !sameShape(s->shape, in.src[0]->shape))
      return in.fail("sources differ: " + describe(in.src[0]) + " and " + describe(s));
  return typeOf(in.src[0]);
}
R typing::ruleLaneFold(const In &in) {
  if (!attributes(in, 1) || in.ntensors != 1) return in.fail("takes a value and ranges of up to 64 lanes together");
  if (auto e = checkRanges(in)) return std::move(e);
  llvm::SmallVector<UOpRef, 2> extents;
  for (UOpRef r : in.indices()) extents.push_back(r->src[0]);
  auto lanes = idxProduct(in.c, extents)->constIndex();
  if (!lanes || *lanes < 2 || *lanes > 64 || (*lanes & (*lanes - 1)))
    return in.fail("the ranges must have 2, 4, 8, 16, 32 or 64 points together");
  return typeOf(in.src[0]);
}
R typing::ruleStage(const In &in) {
  if (in.ntensors < 1) return in.fail("takes values and ranges");
  for (UOpRef s : in.tensors())
    if (s->dtype != in.src[0]->dtype || lanesOf(s) != lanesOf(in.src[0])) return in.fail("its values differ in type");
  if (!attributes(in, 0) &&
      (!attributes(in, in.indices().size()) || llvm::any_of(in.ints, [](int64_t s) { return s < 1; })))
    return in.fail("takes one stride for each range, or none");
  if (auto e = checkRanges(in)) return std::move(e);
  return typeOf(in.src[0]);
}
R typing::ruleAt(const In &in) {
  if (!attributes(in, 1) || in.ints[0] < 1 || in.ntensors < 1 || in.ntensors > 2 || in.src[0]->op != Op::Stage ||
      in.src[0]->indices().size() != in.indices().size())
    return in.fail("takes a stage, a gate or none, and one index per range of it");
  if (in.ntensors == 2 && (in.src[1]->dtype != DType::Bool || lanesOf(in.src[1]) != in.ints[0]))
    return in.fail("the gate is " + describe(in.src[1]));
  return vectorType(in, in.src[0]->dtype, in.ints[0]);
}
R typing::ruleSplat(const In &in) {
  if (!attributes(in, 1) || in.ints[0] < 2 || in.src[0]->rank() != 0)
    return in.fail("takes a scalar and a number of lanes");
  return vectorType(in, in.src[0]->dtype, in.ints[0]);
}
R typing::ruleStack(const In &in) {
  int64_t lanes = 0;
  for (UOpRef s : in.src) {
    if (s->dtype != in.src[0]->dtype) return in.fail("sources differ in type");
    lanes += lanesOf(s);
  }
  if (lanes < 2 || in.ntensors != in.src.size()) return in.fail("takes two values or more");
  return vectorType(in, in.src[0]->dtype, lanes);
}
R typing::ruleLanes(const In &in) {
  if (!attributes(in, 2) || in.ints[0] < 0 || in.ints[1] < 1 || in.ints[0] + in.ints[1] > lanesOf(in.src[0]))
    return in.fail("lanes outside " + describe(in.src[0]));
  return vectorType(in, in.src[0]->dtype, in.ints[1]);
}
R typing::ruleSink(const In &in) {
  for (UOpRef s : in.src)
    if (s->op != Op::Store) return in.fail("takes stores");
  return Type{};
}
