//===- TypeRules.cpp: dtype and shape of every op --------------------------===//
// Takes:    the parts of a node that may be wrong (parsers and importers pass user input here).
// Gives:    its type, or a sentence that names what was found and what was expected.
// Keeps:    one function per rule named in Ops.def; a missing one is a compile error. Those of kernel ops are in
//           TypeRulesKernel.cpp.
#include "TypeRules.h"
#include "astra/IR/Contract.h"
#include "astra/IR/External.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::typing;

llvm::Error typing::checkExtents(const In &in, llvm::ArrayRef<UOpRef> shape) {
  if (shape.size() > 64) return in.fail("rank " + num(shape.size()) + ", at most 64 is supported");
  __int128 most = 1;
  for (UOpRef d : shape) {
    if (!d->isIndex()) return in.fail("an extent is not a symbolic integer");
    if (d->lo < 0)
      return in.fail("extent " + indexText(d) + " may be negative (bounds " + num(d->lo) + ".." + num(d->hi) + ")");
    most *= std::max<int64_t>(d->hi, 1);
    if (most > (__int128(1) << 48)) return in.fail("more than 2^48 elements: " + typeText(in.dtype, shape));
  }
  return llvm::Error::success();
}

namespace {
// ---- leaves
R ruleConst(const In &in) {
  if (!attributes(in, 1) || in.dtype == DType::Void) return in.fail("needs a dtype and a literal");
  if (unsigned w = bitWidth(partOf(in.dtype)); w < 64 && (uint64_t(in.ints[0]) >> w))
    return in.fail("the literal does not fit " + llvm::Twine(info(in.dtype).text));
  if (in.dtype == DType::Bool && uint64_t(in.ints[0]) > 1) return in.fail("a bool is 0 or 1");
  return Type{in.dtype, {}};
}
R ruleArg(const In &in) {
  if (in.op == Op::Arg ? !attributes(in, 1) || in.ints[0] < 0 || in.ints[0] > 65535 : in.str.empty())
    return in.fail(in.op == Op::Arg ? "needs a number in 0..65535" : "needs a name");
  if (in.dtype == DType::Void || in.dtype == DType::Index) return in.fail("needs a dtype");
  if (auto e = checkExtents(in, in.src)) return std::move(e);
  return Type{in.dtype, {in.src.begin(), in.src.end()}};
}
R ruleDim(const In &in) {
  if (!attributes(in, 2) || in.str.empty()) return in.fail("needs a name and bounds");
  if (in.ints[0] < 0 || in.ints[1] < in.ints[0] || in.ints[1] > (int64_t(1) << 40))
    return in.fail("bounds " + num(in.ints[0]) + ".." + num(in.ints[1]) + " are not within 0..2^40");
  return Type{DType::Index, {}};
}
R ruleExtent(const In &in) {
  if (!attributes(in, 2) || in.ints[1] < in.ints[0]) return in.fail("needs bounds");
  if (!isScalar(in.src[0], DType::I64)) return in.fail("found " + describe(in.src[0]) + ", expected an i64 scalar");
  return Type{DType::Index, {}};
}
R ruleIota(const In &in) {
  if (!attributes(in, 1) || in.ints[0] < 0 || in.ints[0] >= int64_t(in.src.size()))
    return in.fail("axis outside the shape");
  if (!isInt(in.dtype) && !isFloat(in.dtype))
    return in.fail(llvm::Twine("of ") + info(in.dtype).text + ", expected an integer or float type");
  if (auto e = checkExtents(in, in.src)) return std::move(e);
  return Type{in.dtype, {in.src.begin(), in.src.end()}};
}
R ruleFromIndex(const In &in) {
  if (in.src.size() != 1 || !in.src[0]->isIndex() || (!isInt(in.dtype) && !isFloat(in.dtype)))
    return in.fail("takes one symbolic integer and an integer or float type");
  return Type{in.dtype, {}};
}

// ---- elementwise
llvm::Error same(const In &in, unsigned from = 0) {
  for (UOpRef s : in.src.drop_front(from))
    if (s->dtype != in.src[from]->dtype || !sameShape(s->shape, in.src[from]->shape))
      return in.fail("sources differ: " + describe(in.src[from]) + " and " + describe(s) + " (cast or expand one)");
  return llvm::Error::success();
}
template <class Pred> R elementwise(const In &in, Pred ok, const char *expected) {
  if (auto e = same(in)) return std::move(e);
  if (!ok(in.src[0]->dtype))
    return in.fail(llvm::Twine("not defined on ") + info(in.src[0]->dtype).text + ", expected " + expected);
  return typeOf(in.src[0]);
}
bool addable(DType t) { return isFloat(t) || isInt(t) || isComplex(t); } // sums and products are defined
R ruleNumber(const In &in) {
  return elementwise(in, [](DType t) { return addable(t) || t == DType::Index; }, "a float, integer or complex type");
}
R ruleMagnitude(const In &in) {
  auto t = elementwise(in, addable, "a float, integer or complex type");
  if (t) t->dtype = partOf(t->dtype);
  return t;
}
R ruleQuotient(const In &in) {
  return elementwise(in, [](DType t) { return isFloat(t) || isComplex(t); }, "a float or complex type");
}
R ruleFloat(const In &in) { return elementwise(in, isFloat, "a float type"); }
R ruleBits(const In &in) {
  return elementwise(in, [](DType t) { return isInt(t) || t == DType::Bool; }, "an integer type or bool");
}
R ruleInt(const In &in) {
  return elementwise(in, [](DType t) { return isInt(t) || t == DType::Index; }, "an integer type");
}
R ruleOrdered(const In &in) {
  return elementwise(in, [](DType t) { return isArithmetic(t) || t == DType::Index; }, "a type with an order");
}
R ruleCompare(const In &in) {
  auto t = ruleOrdered(in);
  if (t) t->dtype = DType::Bool;
  return t;
}
R ruleEqual(const In &in) {
  auto t = elementwise(
      in, [](DType t) { return isArithmetic(t) || isComplex(t) || t == DType::Index; },
      "an arithmetic or complex type");
  if (t) t->dtype = DType::Bool;
  return t;
}
R ruleScale2(const In &in) {
  if (!isFloat(in.src[0]->dtype) || in.src[1]->dtype != DType::I32 || !sameShape(in.src[0]->shape, in.src[1]->shape))
    return in.fail("found " + describe(in.src[0]) + " and " + describe(in.src[1]) +
                   ", expected a float type and i32 of one shape");
  return typeOf(in.src[0]);
}
R ruleDot4(const In &in) {
  if (auto e = same(in)) return std::move(e);
  if (in.src[0]->dtype != DType::I32) return in.fail("found " + describe(in.src[0]) + ", expected i32");
  return typeOf(in.src[0]);
}
R ruleSelect(const In &in) {
  if (in.src[0]->dtype != DType::Bool) return in.fail("the condition is " + describe(in.src[0]) + ", expected bool");
  if (auto e = same(in, 1)) return std::move(e);
  if (!sameShape(in.src[0]->shape, in.src[1]->shape))
    return in.fail("the condition is " + describe(in.src[0]) + ", the values are " + describe(in.src[1]));
  return typeOf(in.src[1]);
}
R ruleCast(const In &in) {
  auto ok = [](DType t) { return isArithmetic(t) || isComplex(t) || info(t).cls == DTypeClass::Storage; };
  if (isComplex(in.src[0]->dtype) && ok(in.dtype) && !isComplex(in.dtype) && in.dtype != DType::Bool)
    return in.fail(llvm::Twine("from ") + info(in.src[0]->dtype).text + " to " + info(in.dtype).text +
                   " would lose the imaginary part: take the real or the imag part first");
  if (!attributes(in, 1) || !ok(in.src[0]->dtype) || !ok(in.dtype))
    return in.fail(llvm::Twine("from ") + info(in.src[0]->dtype).text + " to " + info(in.dtype).text +
                   " is not defined");
  return Type{in.dtype, typeOf(in.src[0]).shape};
}
R ruleBitcast(const In &in) {
  if ((!isInt(in.dtype) && !isFloat(in.dtype)) || bitWidth(in.dtype) != bitWidth(in.src[0]->dtype) ||
      !isArithmetic(in.src[0]->dtype))
    return in.fail(llvm::Twine("from ") + info(in.src[0]->dtype).text + " to " + info(in.dtype).text +
                   ": widths differ or a type has no bits to give");
  return Type{in.dtype, typeOf(in.src[0]).shape};
}
R ruleLookup16(const In &in) {
  if (in.ints.size() != 16) return in.fail("the table has " + num(in.ints.size()) + " entries, expected 16");
  if (!isInt(in.src[0]->dtype) || (!isInt(in.dtype) && !isFloat(in.dtype)))
    return in.fail("needs an integer source and an integer or float result");
  return Type{in.dtype, typeOf(in.src[0]).shape};
}

// ---- complex values and their parts
R ruleComplex(const In &in) {
  if (auto e = same(in)) return std::move(e);
  DType t = in.src[0]->dtype;
  if (t != DType::F32 && t != DType::F64)
    return in.fail(llvm::Twine("of parts of ") + info(t).text + ", expected f32 or f64");
  return Type{t == DType::F32 ? DType::C64 : DType::C128, typeOf(in.src[0]).shape};
}
R rulePart(const In &in) {
  auto t = elementwise(in, isComplex, "a complex type");
  if (t) t->dtype = partOf(t->dtype);
  return t;
}

// ---- movement
R ruleReshape(const In &in) {
  if (auto e = checkExtents(in, in.indices())) return std::move(e);
  UOpRef to = idxProduct(in.c, in.indices()), from = idxProduct(in.c, in.src[0]->shape);
  if (to != from && !idxAreEqual(in.c, to, from, in.c.equations))
    return in.fail("from " + describe(in.src[0]) + " to " + typeText(in.src[0]->dtype, in.indices()) +
                   ": the numbers of elements are not the same expression");
  return Type{in.src[0]->dtype, {in.indices().begin(), in.indices().end()}};
}
R rulePermute(const In &in) {
  uint64_t seen = 0;
  Type t{in.src[0]->dtype, {}};
  if (in.ints.size() != in.src[0]->rank())
    return in.fail("perm has " + num(in.ints.size()) + " axes, the source has " + num(in.src[0]->rank()));
  for (int64_t a : in.ints) {
    if (!axisOf(a, in.src[0]) || (seen >> a & 1)) return in.fail("perm is not a permutation of the axes");
    seen |= 1ull << a;
    t.shape.push_back(in.src[0]->shape[a]);
  }
  return t;
}
R ruleExpand(const In &in) {
  Shape to = in.indices(), from = in.src[0]->shape;
  if (to.size() != from.size())
    return in.fail("from rank " + num(from.size()) + " to rank " + num(to.size()) + ": reshape first");
  for (auto [f, t] : llvm::zip(from, to))
    if (f != t && f->constIndex() != 1)
      return in.fail("from " + describe(in.src[0]) + " to " + typeText(in.src[0]->dtype, to) +
                     ": only an extent of 1 can be repeated");
  if (auto e = checkExtents(in, to)) return std::move(e);
  return Type{in.src[0]->dtype, {to.begin(), to.end()}};
}
R rulePad(const In &in) {
  unsigned rank = in.src[0]->rank();
  if (in.indices().size() != 2 * rank) return in.fail("needs lo and hi for each of " + num(rank) + " axes");
  if (!attributes(in, 1)) return in.fail("needs a value");
  Type t{in.src[0]->dtype, {}};
  for (unsigned i = 0; i < rank; ++i) {
    UOpRef lo = in.group(0, 2)[i], hi = in.group(1, 2)[i];
    if (lo->lo < 0 || hi->lo < 0) return in.fail("a negative amount; shrink cuts");
    t.shape.push_back(idxAdd(in.c, idxAdd(in.c, lo, in.src[0]->shape[i]), hi));
  }
  if (auto e = checkExtents(in, t.shape)) return std::move(e);
  return t;
}
/// Of an axis, elements begin ... + size may leave the extent: by the bounds of dims, and where they do.
llvm::Error leaves(const In &in, unsigned axis, UOpRef begin, UOpRef size, UOpRef extent) {
  std::string text = "axis " + num(axis) + ": elements " + indexText(begin) + " ... + " + indexText(size) +
                     " may leave the extent " + indexText(extent);
  constexpr unsigned most = 12;
  llvm::SmallVector<UOpRef, 4> dims;
  for (UOpRef x : topoSort({begin, size, extent}))
    if (x->src.empty() && !x->isConst()) dims.push_back(x);
  for (unsigned corner = 0; dims.size() <= most && corner < 1u << dims.size(); ++corner) {
    auto value = [&](UOpRef x) -> std::optional<int64_t> {
      size_t i = llvm::find(dims, x) - dims.begin();
      return i == dims.size() ? std::nullopt : std::optional(corner >> i & 1 ? x->hi : x->lo);
    };
    auto first = idxEvaluate(begin, value), count = idxEvaluate(size, value), whole = idxEvaluate(extent, value);
    int64_t end;
    if (!first || !count || !whole || *count < 1 || __builtin_add_overflow(*first, *count, &end)) continue;
    if (*first >= 0 && end <= *whole) continue;
    for (auto [i, d] : llvm::enumerate(dims)) text += (i ? ", " : ": where ") + indexText(d) + " = " + num(*value(d));
    text += ", they are " + num(*first) + " .. " + num(end - 1) + " of " + num(*whole);
    break;
  }
  return in.fail(text);
}
R ruleShrink(const In &in) {
  unsigned rank = in.src[0]->rank();
  if (in.indices().size() != 2 * rank) return in.fail("needs begin and size for each of " + num(rank) + " axes");
  Type t{in.src[0]->dtype, {}};
  for (unsigned i = 0; i < rank; ++i) {
    UOpRef begin = in.group(0, 2)[i], size = in.group(1, 2)[i], extent = in.src[0]->shape[i];
    UOpRef slack = idxSub(in.c, extent, idxAdd(in.c, begin, size));
    if (begin->lo < 0 || slack->lo < 0) return leaves(in, i, begin, size, extent);
    t.shape.push_back(size);
  }
  if (auto e = checkExtents(in, t.shape)) return std::move(e);
  return t;
}
R rulePlace(const In &in) {
  unsigned rank = in.src[0]->rank();
  if (in.indices().size() != 2 * rank) return in.fail("needs begin and extent for each of " + num(rank) + " axes");
  if (!attributes(in, 1)) return in.fail("needs a value");
  Type t{in.src[0]->dtype, {}};
  for (unsigned i = 0; i < rank; ++i) {
    UOpRef begin = in.group(0, 2)[i], extent = in.group(1, 2)[i], size = in.src[0]->shape[i];
    if (begin->lo < 0 || idxSub(in.c, extent, idxAdd(in.c, begin, size))->lo < 0)
      return leaves(in, i, begin, size, extent);
    t.shape.push_back(extent);
  }
  if (auto e = checkExtents(in, t.shape)) return std::move(e);
  return t;
}
R ruleFlip(const In &in) {
  for (int64_t a : in.ints)
    if (!axisOf(a, in.src[0])) return in.fail("axis " + num(a) + " outside " + describe(in.src[0]));
  return typeOf(in.src[0]);
}
R ruleWords(const In &in) {
  UOpRef x = in.src[0];
  auto n = x->rank() ? x->shape.back()->constIndex() : std::nullopt;
  if ((x->dtype != DType::U8 && x->dtype != DType::I8) || !n || *n % 4)
    return in.fail("of " + describe(x) + ", expected u8 or i8 and a last axis of a multiple of 4");
  Type t{x->dtype == DType::U8 ? DType::U32 : DType::I32, {x->shape.begin(), x->shape.end()}};
  t.shape.back() = in.c.index(*n / 4);
  return t;
}
R ruleWindow(const In &in) {
  if (!attributes(in, 4) || !axisOf(in.ints[0], in.src[0])) return in.fail("axis outside " + describe(in.src[0]));
  int64_t axis = in.ints[0], size = in.ints[1], stride = in.ints[2], dilation = in.ints[3];
  constexpr int64_t most = 1 << 24;
  if (size < 1 || stride < 1 || dilation < 1 || size > most || stride > most || dilation > most)
    return in.fail("size, stride and dilation must be in 1..2^24");
  Type t = typeOf(in.src[0]);
  UOpRef room = idxSub(in.c, t.shape[axis], in.c.index((size - 1) * dilation + 1));
  if (room->lo < 0)
    return in.fail("extent " + indexText(t.shape[axis]) + " may be smaller than the window of " +
                   num((size - 1) * dilation + 1));
  t.shape[axis] = idxAdd(in.c, idxDiv(in.c, room, in.c.index(stride)), in.c.index(1));
  t.shape.push_back(in.c.index(size));
  if (auto e = checkExtents(in, t.shape)) return std::move(e);
  return t;
}

// ---- reductions
llvm::Error checkDomain(const In &in, llvm::ArrayRef<AffineForm> domain, size_t labels, size_t found) {
  for (const AffineForm &f : domain)
    for (auto [label, k] : f.terms)
      if (label >= int64_t(labels)) return in.fail("a domain names label " + num(label) + " of " + num(labels));
  if (found != domain.size()) return in.fail("found " + num(found) + " domain bounds, expected " + num(domain.size()));
  return llvm::Error::success();
}
R ruleReduce(const In &in) {
  auto s = decodeReduce(in.ints);
  if (!s) return s.takeError();
  UOpRef x = in.src[0];
  if (s->axes.empty() || !axisOf(s->axes.back(), x)) return in.fail("axes outside " + describe(x));
  bool logical = s->kind == ReduceKind::And || s->kind == ReduceKind::Or,
       arithmetic = s->kind == ReduceKind::Sum || s->kind == ReduceKind::Prod;
  if (logical ? x->dtype != DType::Bool && !isInt(x->dtype) : arithmetic ? !addable(x->dtype) : !isArithmetic(x->dtype))
    return in.fail(llvm::Twine("this kind is not defined on ") + info(x->dtype).text);
  bool ordered = arithmetic && isFloat(partOf(x->dtype)), pairs = isComplex(x->dtype) && s->kind == ReduceKind::Prod;
  if (pairs != (s->order == ReduceOrder::Pairs))
    return in.fail(pairs ? "a complex product needs the order pairs" : "the order pairs is that of complex products");
  if (pairs && !s->domain.empty()) return in.fail("a complex product takes no domain");
  if (ordered == (s->order == ReduceOrder::Exact))
    return in.fail(ordered ? "a float sum or product needs the order lane64 or chain"
                           : "an exact reduction carries no order");
  if (auto e = checkDomain(in, s->domain, x->rank(), in.indices().size())) return std::move(e);
  Type t{x->dtype, {}};
  for (unsigned i = 0; i < x->rank(); ++i)
    if (!llvm::is_contained(s->axes, int64_t(i))) t.shape.push_back(x->shape[i]);
  return t;
}
R ruleArgReduce(const In &in) {
  if (!attributes(in, 2) || !axisOf(in.ints[1], in.src[0]) || !isArithmetic(in.src[0]->dtype))
    return in.fail("axis outside or type not ordered: " + describe(in.src[0]));
  Type t = typeOf(in.src[0]);
  t.dtype = DType::I64;
  t.shape.erase(t.shape.begin() + in.ints[1]);
  return t;
}
R ruleContract(const In &in) {
  auto s = decodeContract(in.ints);
  if (!s) return s.takeError();
  if (in.ntensors < 2) return in.fail("takes two operands, or three");
  UOpRef a = in.src[0], b = in.src[1];
  bool words = (a->dtype == DType::U32 && b->dtype == DType::I32) || (a->dtype == DType::I32 && b->dtype == DType::U32);
  if (!words && (a->dtype != b->dtype || !addable(a->dtype)))
    return in.fail("operands are " + describe(a) + " and " + describe(b) +
                   ", expected one float, integer or complex type, or u32 and i32");
  if (s->a.size() != a->rank() || s->b.size() != b->rank())
    return in.fail("ranks of the operands are " + num(a->rank()) + " and " + num(b->rank()) +
                   ", the index lists have " + num(s->a.size()) + " and " + num(s->b.size()));
  size_t labels = s->kept + s->reduced;
  if (in.indices().size() < labels) return in.fail("an extent for each of " + num(labels) + " labels is needed");
  if (auto e = checkDomain(in, s->domain, labels, in.indices().size() - labels)) return std::move(e);
  llvm::ArrayRef<UOpRef> extents = in.indices().take_front(labels);
  if (auto e = checkExtents(in, extents)) return std::move(e);
  if (in.ntensors != (s->outside.empty() ? 2 : 3)) return in.fail("takes two operands, or a third one and its indices");
  if (in.ntensors == 3)
    if (std::string why = checkOutside(*s, extents, a, b, in.src[2]); !why.empty()) return in.fail(why);
  if (s->unit)
    if (std::string why = checkUnit(*s, extents, a, b); !why.empty()) return in.fail(why);
  for (auto [forms, x] : {std::pair{&s->a, a}, std::pair{&s->b, b}})
    for (auto [f, d] : llvm::zip(*forms, x->shape))
      if (f.isLabel() && extents[f.terms[0].first] != d)
        return in.fail("label " + num(f.terms[0].first) + " has extent " + indexText(extents[f.terms[0].first]) +
                       " but indexes an axis of " + indexText(d));
  DType type = words ? DType::I32 : isOfWords(*s, a) ? DType::F32 : a->dtype;
  return Type{type, {extents.begin(), extents.begin() + s->kept}};
}
R ruleCumulate(const In &in) {
  if (!attributes(in, 2) || !axisOf(in.ints[1], in.src[0])) return in.fail("axis outside " + describe(in.src[0]));
  bool arithmetic = CumulateKind(in.ints[0]) == CumulateKind::Sum || CumulateKind(in.ints[0]) == CumulateKind::Prod;
  if (!addable(in.src[0]->dtype) || (isComplex(in.src[0]->dtype) && !arithmetic))
    return in.fail(llvm::Twine("this kind is not defined on ") + info(in.src[0]->dtype).text);
  return typeOf(in.src[0]);
}

// ---- indexing
llvm::Error checkIndexTensor(const In &in, UOpRef i) {
  if (i->dtype != DType::I64 && i->dtype != DType::I32)
    return in.fail("the index is " + describe(i) + ", expected i64 or i32");
  return llvm::Error::success();
}
llvm::Error checkAlong(const In &in, UOpRef i, UOpRef x) {
  if (!attributes(in, in.op == Op::Scatter ? 2 : 1) || !axisOf(in.ints[0], x))
    return in.fail("axis outside " + describe(x));
  if (i->rank() != x->rank()) return in.fail("the index has rank " + num(i->rank()) + ", the source " + num(x->rank()));
  for (unsigned k = 0; k < x->rank(); ++k)
    if (k != in.ints[0] && i->shape[k] != x->shape[k])
      return in.fail("axis " + num(k) + ": extents " + indexText(i->shape[k]) + " and " + indexText(x->shape[k]) +
                     " differ");
  return checkIndexTensor(in, i);
}
R ruleGather(const In &in) {
  UOpRef x = in.src[0], i = in.src[1];
  if (!attributes(in, 1) || !axisOf(in.ints[0], x)) return in.fail("axis outside " + describe(x));
  if (auto e = checkIndexTensor(in, i)) return std::move(e);
  Type t{x->dtype, {}};
  t.shape.append(x->shape.begin(), x->shape.begin() + in.ints[0]);
  t.shape.append(i->shape.begin(), i->shape.end());
  t.shape.append(x->shape.begin() + in.ints[0] + 1, x->shape.end());
  if (auto e = checkExtents(in, t.shape)) return std::move(e);
  return t;
}
R rulePick(const In &in) {
  if (auto e = checkAlong(in, in.src[1], in.src[0])) return std::move(e);
  return Type{in.src[0]->dtype, typeOf(in.src[1]).shape};
}
R ruleScatter(const In &in) {
  if (auto e = checkAlong(in, in.src[1], in.src[0])) return std::move(e);
  if (in.src[2]->dtype != in.src[0]->dtype || !sameShape(in.src[2]->shape, in.src[1]->shape))
    return in.fail("the update is " + describe(in.src[2]) + ", expected the source's type and the index's shape");
  auto kind = ScatterKind(in.ints[1]);
  DType t = in.src[0]->dtype;
  bool arithmetic = kind == ScatterKind::Add || kind == ScatterKind::Mul;
  if (kind != ScatterKind::Set &&
      (arithmetic ? !addable(t) || (isComplex(t) && kind == ScatterKind::Mul) : !isArithmetic(t)))
    return in.fail(llvm::Twine("this kind is not defined on ") + info(t).text);
  return typeOf(in.src[0]);
}
llvm::Error checkStarts(const In &in, llvm::ArrayRef<UOpRef> starts, UOpRef x, llvm::ArrayRef<UOpRef> size) {
  if (starts.size() != x->rank() || size.size() != x->rank())
    return in.fail("needs one start and one size per axis of " + describe(x));
  for (UOpRef s : starts)
    if (!isScalar(s, DType::I64)) return in.fail("a start is " + describe(s) + ", expected an i64 scalar");
  for (auto [extent, window] : llvm::zip(x->shape, size))
    if (idxSub(in.c, extent, window)->lo < 0)
      return in.fail("a window of " + indexText(window) + " may be larger than the extent " + indexText(extent));
  return llvm::Error::success();
}
R ruleSliceAt(const In &in) {
  if (in.ntensors < 1) return in.fail("needs a source");
  if (auto e = checkStarts(in, in.tensors().drop_front(), in.src[0], in.indices())) return std::move(e);
  return Type{in.src[0]->dtype, {in.indices().begin(), in.indices().end()}};
}
R ruleUpdateAt(const In &in) {
  if (in.ntensors < 2) return in.fail("needs a source and a new window");
  if (in.src[1]->dtype != in.src[0]->dtype || in.src[1]->rank() != in.src[0]->rank())
    return in.fail("the window is " + describe(in.src[1]) + ", the source " + describe(in.src[0]));
  if (auto e = checkStarts(in, in.tensors().drop_front(2), in.src[0], in.src[1]->shape)) return std::move(e);
  return typeOf(in.src[0]);
}
R ruleCompact(const In &in) {
  UOpRef x = in.src[0], mask = in.src[1];
  if (mask->dtype != DType::Bool || mask->rank() != 1 || x->rank() < 1 || mask->shape[0] != x->shape[0])
    return in.fail("the mask is " + describe(mask) + ", expected bool of the source's first extent: " + describe(x));
  if (in.indices().size() != 1 || in.indices()[0]->op != Op::Extent)
    return in.fail("the result's extent must be an `extent` of the mask's count");
  Type t = typeOf(x);
  t.shape[0] = in.indices()[0];
  return t;
}
R ruleArgSort(const In &in) {
  if (!attributes(in, 2) || !axisOf(in.ints[0], in.src[0]) || !isArithmetic(in.src[0]->dtype))
    return in.fail("axis outside or type not ordered: " + describe(in.src[0]));
  return Type{DType::I64, typeOf(in.src[0]).shape};
}
R ruleRandom(const In &in) {
  if (in.ntensors != 2 || !isScalar(in.src[0], DType::U32) || !isScalar(in.src[1], DType::U32))
    return in.fail("needs two u32 scalars, seed and stream id");
  if (auto e = checkExtents(in, in.indices())) return std::move(e);
  return Type{DType::U32, {in.indices().begin(), in.indices().end()}};
}

// ---- functions and control
R ruleSame(const In &in) { return typeOf(in.src[0]); }
R ruleAfter(const In &in) {
  if (in.ntensors < 2) return in.fail("needs a value and what comes before it");
  for (UOpRef s : in.src)
    if (!isArithmetic(s->dtype)) return in.fail("not defined on " + describe(s) + ", expected an arithmetic type");
  return typeOf(in.src[0]);
}
R ruleFunc(const In &in) {
  if (!attributes(in, 1) || in.ints[0] < 0 || in.ints[0] > 65535) return in.fail("needs the number of arguments");
  return Type{};
}
llvm::Error checkFns(const In &in, size_t count, size_t args) {
  if (in.fns.size() != count) return in.fail("needs " + num(count) + " functions, found " + num(in.fns.size()));
  for (UOpRef f : in.fns)
    if (f->op != Op::Func || f->ints[0] != int64_t(args))
      return in.fail("a function takes " + (f->op == Op::Func ? num(f->ints[0]) : std::string("no")) + " arguments, " +
                     num(args) + " are given");
  return llvm::Error::success();
}
R ruleWithGradient(const In &in) {
  if (in.ntensors < 2) return in.fail("needs a value, and what it is differentiated by");
  for (UOpRef s : in.src)
    if (!isFloat(s->dtype) && !isComplex(s->dtype))
      return in.fail("not defined on " + describe(s) + ", expected a float or complex type");
  if (auto e = checkFns(in, 1, in.ntensors + 1)) return std::move(e);
  llvm::ArrayRef<UOpRef> given = in.fns[0]->src;
  if (given.size() + 1 != in.ntensors)
    return in.fail("the function gives " + num(given.size()) + " cotangents, expected " + num(in.ntensors - 1) +
                   ": one for each source but the first");
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i]->dtype != in.src[i + 1]->dtype || !sameShape(given[i]->shape, in.src[i + 1]->shape))
      return in.fail("the function gives " + describe(given[i]) + " as the cotangent of " + describe(in.src[i + 1]));
  return typeOf(in.src[0]);
}
R ruleCond(const In &in) {
  if (in.src.empty() || !isScalar(in.src[0], DType::Bool)) return in.fail("the first source must be a bool scalar");
  if (auto e = checkFns(in, 2, in.src.size() - 1)) return std::move(e);
  if (in.fns[0]->src.size() != in.fns[1]->src.size())
    return in.fail("the branches give " + num(in.fns[0]->src.size()) + " and " + num(in.fns[1]->src.size()) +
                   " results");
  for (auto [a, b] : llvm::zip(in.fns[0]->src, in.fns[1]->src))
    if (a->dtype != b->dtype || !sameShape(a->shape, b->shape))
      return in.fail("results of the branches differ: " + describe(a) + " and " + describe(b));
  return Type{};
}
R ruleWhile(const In &in) {
  if (auto e = checkFns(in, 2, in.ntensors)) return std::move(e);
  if (in.fns[0]->src.size() != 1 || !isScalar(in.fns[0]->src[0], DType::Bool))
    return in.fail("the condition must give one bool scalar");
  if (in.fns[1]->src.size() != in.ntensors)
    return in.fail("the body gives " + num(in.fns[1]->src.size()) + " values, " + num(in.ntensors) + " are carried");
  llvm::SmallVector<llvm::StringRef> names;
  if (!in.str.empty()) in.str.split(names, ',');
  if (names.size() != in.indices().size())
    return in.fail("names " + num(names.size()) + " carried dims and starts " + num(in.indices().size()));
  for (auto [init, next] : llvm::zip(in.tensors(), in.fns[1]->src))
    if (init->dtype != next->dtype || init->rank() != next->rank())
      return in.fail("a carried value begins as " + describe(init) + " and goes on as " + describe(next));
  return Type{};
}
R ruleScan(const In &in) {
  if (!attributes(in, 2) || in.ints[0] < 0 || in.ints[1] < 0 || in.ints[0] + in.ints[1] > in.ntensors)
    return in.fail("numbers of carries and inputs do not fit the sources");
  if (in.indices().size() != 1) return in.fail("needs the length");
  if (auto e = checkFns(in, 1, in.ntensors)) return std::move(e);
  if (int64_t(in.fns[0]->src.size()) < in.ints[0])
    return in.fail("the function gives fewer results than there are carries");
  for (int64_t i = 0; i < in.ints[0]; ++i)
    if (in.src[i]->dtype != in.fns[0]->src[i]->dtype || !sameShape(in.src[i]->shape, in.fns[0]->src[i]->shape))
      return in.fail("carry " + num(i) + " begins as " + describe(in.src[i]) + " and goes on as " +
                     describe(in.fns[0]->src[i]));
  for (int64_t i = in.ints[0]; i < in.ints[0] + in.ints[1]; ++i)
    if (in.src[i]->rank() < 1 || in.src[i]->shape[0] != in.indices()[0])
      return in.fail("input " + describe(in.src[i]) + " is not as long as the scan: " + indexText(in.indices()[0]));
  return Type{};
}
R ruleCustom(const In &in) {
  if (auto e = checkFns(in, 1, in.ntensors)) return std::move(e);
  llvm::SmallVector<llvm::StringRef> names;
  in.str.split(names, ',');
  if (in.indices().empty() || in.indices().size() > 8 || in.str.empty() || names.size() != in.indices().size())
    return in.fail("a grid has 1 to 8 extents and a name for each; found " + num(in.indices().size()) +
                   " extents and names=\"" + in.str + "\"");
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i].empty() || llvm::is_contained(llvm::ArrayRef(names).take_front(i), names[i]))
      return in.fail("names=\"" + in.str + "\": each axis of the grid has a name of its own");
  if (auto e = checkExtents(in, in.indices())) return std::move(e);
  UOpRef programs = idxProduct(in.c, in.indices());
  if (programs->hi > INT32_MAX)
    return in.fail("a grid of up to " + num(programs->hi) + " programs, at most 2^31 - 1 are supported");
  if (in.fns[0]->src.empty()) return in.fail("the function stores nothing");
  for (UOpRef r : in.fns[0]->src)
    if (r->op != Op::Place && r->op != Op::Scatter)
      return in.fail("a result is " + describe(r) + " of " + info(r->op).mnemonic + ", expected a place or a scatter");
  return Type{};
}
R ruleProj(const In &in) {
  UOpRef c = in.src[0];
  if (!has(c->op, Control) || c->op == Op::Func || c->op == Op::Proj || !attributes(in, 1))
    return in.fail("takes a result of cond, while, scan, custom or external");
  if (c->op == Op::External) {
    ExternalSpec s = externalOf(c);
    if (in.ints[0] < 0 || in.ints[0] >= int64_t(s.results.size()))
      return in.fail("result " + num(in.ints[0]) + " of " + num(s.results.size()));
    const Type &t = s.results[in.ints[0]];
    if (t.dtype == in.dtype && in.indices() == Shape(t.shape)) return t;
    return in.fail("result " + num(in.ints[0]) + " is " + typeText(t.dtype, t.shape) + ", found " +
                   typeText(in.dtype, in.indices()));
  }
  int64_t i = in.ints[0], n = c->fns.back()->src.size(), extra = c->op == Op::While ? c->indices().size() : 0;
  if (i < 0 || i >= n + extra) return in.fail("result " + num(i) + " of " + num(n + extra));
  if (auto e = checkExtents(in, in.indices())) return std::move(e);
  if (i >= n) {
    if (in.dtype != DType::I64 || !in.indices().empty()) return in.fail("a carried dim is an i64 scalar");
    return Type{in.dtype, {}};
  }
  UOpRef r = c->fns.back()->src[i];
  size_t stacked = c->op == Op::Scan && i >= c->ints[0];
  if (r->dtype != in.dtype || r->rank() + stacked != in.indices().size())
    return in.fail("result " + num(i) + " is " + describe(r) + ", found " + typeText(in.dtype, in.indices()));
  if (stacked && in.indices()[0] != c->indices()[0]) return in.fail("a stacked result begins with the scan's length");
  if (c->op != Op::While && !sameShape(r->shape, in.indices().drop_front(stacked)))
    return in.fail("result " + num(i) + " is " + describe(r) + ", found " + typeText(in.dtype, in.indices()));
  return Type{in.dtype, {in.indices().begin(), in.indices().end()}};
}

using Rule = R (*)(const In &);
constexpr Rule rules[] = {
#define OP(Name, mnemonic, sources, groups, Type, attributes, traits, meaning) rule##Type,
#include "astra/IR/Ops.def"
#undef OP
};
} // namespace

R astra::inferType(Context &c, Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints, llvm::StringRef str,
                   DType dtype, llvm::ArrayRef<UOpRef> fns) {
  In in{c, op, src, ints, str, dtype, fns, 0};
  while (in.ntensors < src.size() && !src[in.ntensors]->isIndex()) ++in.ntensors;
  for (UOpRef s : in.indices())
    if (!s->isIndex()) return in.fail("symbolic integers must follow the tensors");
  const OpInfo &row = info(op);
  bool onIndices = has(op, Elementwise) && in.ntensors == 0 && !src.empty();
  if (row.sources >= 0 && (onIndices ? src.size() : in.ntensors) != size_t(row.sources))
    return in.fail("takes " + num(row.sources) + " sources, found " + num(in.ntensors));
  if (row.groups == 0 && !onIndices && !in.indices().empty()) return in.fail("takes no symbolic integers");
  if (row.groups > 0 && in.indices().size() % row.groups)
    return in.fail("takes " + num(row.groups) + " equally long lists of symbolic integers");
  if (!has(op, KernelLevel) && !has(op, Control))
    for (UOpRef s : in.tensors())
      if (s->dtype == DType::Void) return in.fail("a source has no value");
  auto t = rules[unsigned(op)](in);
  if (t && onIndices && t->dtype == DType::Index && src.size() != 2) return in.fail("not defined on symbolic integers");
  return t;
}
