//===- OpsReduction.cpp: folds of axes and of windows ----------------------===//
// Takes:    operands, initial values, regions on scalars.
// Gives:    reduce, cumulate and argreduce UOps where the region is a fold that they have; a scan over the elements
//           else, which folds them in their order.
#include "Folds.h"
#include "astra/Compose/AxisWindows.h"
#include "astra/Compose/Order.h"
#include "astra/Compose/Reduction.h"
#include "astra/Compose/Scan.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::stablehlo {

namespace {

/// The results of a fold over axis 0 of each operand, one element after another: the region on whatever else they have.
std::vector<UOpRef> foldInSteps(Statement &s, llvm::ArrayRef<UOpRef> xs, llvm::ArrayRef<UOpRef> inits) {
  return compose::foldInOrder(s.b, xs, inits, [&](llvm::ArrayRef<UOpRef> arguments) { return s.lifted(0, arguments); });
}

/// The region that jax.numpy.argmax and argmin have, as a graph: the greater value (a NaN wins), and of equal ones the
/// lower index. `greatest` is set; false where the region is another one.
bool isArgReduce(Statement &s, bool &greatest) {
  std::vector<UOpRef> a;
  std::vector<UOpRef> results = s.probe(0, a);
  if (s.b.failed() || a.size() != 4 || results.size() != 2) return false;
  Lowering &b = s.b;
  for (bool most : {true, false}) {
    UOpRef wins = most ? b.bin(Op::Lt, a[2], a[0]) : b.bin(Op::Lt, a[0], a[2]);
    UOpRef value = b.bin(Op::Or, wins, b.bin(Op::Ne, a[0], a[0]));
    UOpRef first = b.bin(Op::And, b.bin(Op::Eq, a[0], a[2]), b.bin(Op::Lt, a[1], a[3]));
    if (results[0] != b.select(value, a[0], a[2]) || results[1] != b.select(b.bin(Op::Or, value, first), a[1], a[3]))
      continue;
    greatest = most;
    return true;
  }
  return false;
}

/// Where indices are the ramp along the one axis that is reduced.
bool argReduced(Statement &s, llvm::ArrayRef<UOpRef> xs, const Ints &axes) {
  bool greatest = false;
  if (xs.size() != 2 || axes.size() != 1 || !xs[1]->is(Op::Iota) || xs[1]->ints.back() != axes[0] ||
      !isInt(xs[1]->dtype) || !isArithmetic(xs[0]->dtype) || xs[0]->shape[axes[0]]->lo < 1 || !isArgReduce(s, greatest))
    return false;
  UOpRef value = s.b.reduce(greatest ? ReduceKind::Max : ReduceKind::Min, xs[0], axes);
  s.give(0, s.b.squeeze(value, axes));
  s.give(1, s.b.cast(s.b.squeeze(argReduce(s.b, xs[0], axes[0], greatest), axes), xs[1]->dtype));
  return true;
}

/// The operands and initial values, which come first of `count` operands; empty after a failure.
std::pair<std::vector<UOpRef>, std::vector<UOpRef>> operandsOf(Statement &s, unsigned count) {
  if (count % 2 || count == 0) s.fail("the op has an odd number of operands");
  unsigned n = count / 2;
  std::vector<UOpRef> xs = s.inputs(0, n), inits = s.inputs(n, n);
  for (unsigned i = 0; i < n && !s.b.failed(); ++i) {
    if (inits[i]->rank() || inits[i]->dtype != xs[i]->dtype)
      s.fail("initial value " + llvm::Twine(i) + " must be a scalar of its operand's type");
    if (xs[i]->shape != xs[0]->shape) s.fail("the operands must be of one shape");
  }
  if (!s.b.failed() && s.outputs.size() != n)
    s.fail("the op has " + llvm::Twine(s.outputs.size()) + " results, expected " + llvm::Twine(n));
  return {std::move(xs), std::move(inits)};
}

bool reduces(ReduceKind kind, DType t) {
  bool logical = kind == ReduceKind::And || kind == ReduceKind::Or;
  return logical ? isInt(t) || t == DType::Bool
                 : t != DType::Bool && (!isComplex(t) || kind == ReduceKind::Sum || kind == ReduceKind::Prod);
}

void reduce(Statement &s) {
  auto [xs, inits] = operandsOf(s, s.numInputs());
  if (s.b.failed()) return;
  Ints given = s.intsAttr("dimensions"), axes = s.b.axes(given, xs[0]->rank());
  for (int64_t axis : given)
    if (axis < 0) s.fail("attribute 'dimensions' names axis " + llvm::Twine(axis));
  if (s.b.failed()) return;
  std::vector<Fold> folds = foldsOf(s, 0, xs.size());
  if (s.b.failed()) return;
  bool plain = true;
  for (size_t i = 0; i < xs.size(); ++i) {
    auto kind = reduceKind(folds[i]);
    plain = plain && kind && reduces(*kind, xs[i]->dtype);
  }
  if (plain) {
    for (size_t i = 0; i < xs.size(); ++i) {
      ReduceKind kind = *reduceKind(folds[i]);
      UOpRef r = axes.empty() ? xs[i] : s.b.squeeze(s.b.reduce(kind, xs[i], axes), axes);
      s.give(i, changesNothing(s.b, kind, inits[i]) ? r : s.b.bin(opOf(kind), r, inits[i]));
    }
    return;
  }
  if (argReduced(s, xs, axes)) return;
  // The axes that are reduced become the first one.
  Ints perm(axes);
  Dims dims, reduced;
  for (int64_t axis : axes) reduced.push_back(xs[0]->shape[axis]);
  dims.push_back(idxProduct(s.b.c, reduced));
  for (int64_t axis = 0; axis < int64_t(xs[0]->rank()); ++axis)
    if (!llvm::is_contained(axes, axis)) {
      perm.push_back(axis);
      dims.push_back(xs[0]->shape[axis]);
    }
  for (UOpRef &x : xs) x = s.b.reshape(s.b.permute(x, perm), dims);
  if (!s.b.failed()) s.give(foldInSteps(s, xs, inits));
}

compose::AxisWindows windowsOf(Statement &s, size_t rank) {
  compose::AxisWindows w;
  w.size = s.intsAttr("window_dimensions", rank, 1);
  w.stride = s.intsAttr("window_strides", rank, 1);
  w.between = s.intsAttr("base_dilations", rank, 1);
  for (int64_t &d : w.between) d -= 1;
  w.dilation = s.intsAttr("window_dilations", rank, 1);
  Ints pads = s.intsAttr("padding", 2 * rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    w.before.push_back(pads[2 * i]);
    w.after.push_back(pads[2 * i + 1]);
  }
  return w;
}

std::optional<CumulateKind> cumulateKind(ReduceKind kind, DType t) {
  if (t == DType::Bool || isComplex(t)) return std::nullopt;
  switch (kind) {
  case ReduceKind::Sum: return CumulateKind::Sum;
  case ReduceKind::Prod: return CumulateKind::Prod;
  case ReduceKind::Max: return CumulateKind::Max;
  case ReduceKind::Min: return CumulateKind::Min;
  default: return std::nullopt;
  }
}

/// Windows along axis |running| - 1 that reach from one of its ends are running folds (runningAxis); others are `w`.
void foldWindows(Statement &s, llvm::ArrayRef<UOpRef> xs, llvm::ArrayRef<UOpRef> inits,
                 const std::optional<compose::AxisWindows> &w, int64_t running) {
  std::vector<Fold> folds = foldsOf(s, 0, xs.size());
  if (s.b.failed()) return;
  bool plain = true;
  for (size_t i = 0; i < xs.size(); ++i) {
    auto kind = reduceKind(folds[i]);
    plain = plain && kind && reduces(*kind, xs[i]->dtype);
  }
  std::vector<UOpRef> seen;
  unsigned windows = 0;
  for (size_t i = 0; i < xs.size() && !s.b.failed(); ++i) {
    auto kind = plain ? reduceKind(folds[i]) : std::nullopt;
    bool nothing = kind && changesNothing(s.b, *kind, inits[i]);
    auto cumulated = kind && running && nothing ? cumulateKind(*kind, xs[i]->dtype) : std::nullopt;
    if (cumulated) {
      compose::CumulateOptions options;
      options.reverse = running < 0;
      s.give(i, cumulate(s.b, *cumulated, xs[i], std::abs(running) - 1, options));
      continue;
    }
    if (!w) {
      s.unsupported(
          "windows of symbolic extent that are not running sums, products, maxima or minima are not supported");
      return;
    }
    compose::Seen view = seenThrough(s.b, xs[i], *w, inits[i]);
    if (!view.value) return;
    windows = view.windows;
    if (!plain) {
      seen.push_back(view.value);
      continue;
    }
    ReduceKind fold = kind.value_or(ReduceKind::Sum); // is there where all folds are plain
    Ints axes = compose::axesBetween(view.value->rank() - windows, view.value->rank());
    UOpRef r = axes.empty() ? view.value : s.b.squeeze(s.b.reduce(fold, view.value, axes, /*chain=*/true), axes);
    s.give(i, nothing ? r : s.b.bin(opOf(fold), r, inits[i]));
  }
  if (plain || s.b.failed()) return;
  // The windows' axes become the first one.
  unsigned rank = seen[0]->rank();
  Ints perm = compose::axesBetween(rank - windows, rank), rest = compose::axesBetween(0, rank - windows);
  perm.append(rest);
  Dims dims = {idxProduct(s.b.c, seen[0]->shape.take_back(windows))};
  dims.append(seen[0]->shape.begin(), seen[0]->shape.end() - windows);
  for (UOpRef &x : seen) x = s.b.reshape(s.b.permute(x, perm), dims);
  if (!s.b.failed()) s.give(foldInSteps(s, seen, inits));
}

bool areOnes(llvm::ArrayRef<int64_t> values) {
  return llvm::all_of(values, [](int64_t v) { return v == 1; });
}

void reduceWindow(Statement &s) {
  auto [xs, inits] = operandsOf(s, s.numInputs());
  if (s.b.failed()) return;
  compose::AxisWindows w = windowsOf(s, xs[0]->rank());
  bool steps = areOnes(w.stride) && areOnes(w.dilation) && llvm::all_of(w.between, [](int64_t v) { return v == 0; });
  auto indices = [&](const Ints &list) {
    Dims dims;
    for (int64_t v : list) dims.push_back(s.b.idx(v));
    return dims;
  };
  int64_t running = steps ? runningAxis(s.b, xs[0], indices(w.size), indices(w.before), indices(w.after)) : 0;
  if (!s.b.failed()) foldWindows(s, xs, inits, w, running);
}

/// The gradient of a pool: what a window takes is its first element that is GE (LE) all others.
void selectAndScatter(Statement &s) {
  UOpRef x = s.in(0), source = s.in(1), init = s.in(2);
  if (s.b.failed()) return;
  std::vector<UOpRef> a;
  std::vector<UOpRef> selected = s.probe(0, a);
  if (s.b.failed()) return;
  std::vector<Fold> folds = foldsOf(s, 1, 1);
  if (s.b.failed()) return;
  bool fits = a.size() == 2 && selected.size() == 1 && folds[0] == Fold::Sum;
  bool greatest = fits && selected[0] == s.b.bin(Op::Le, a[1], a[0]),
       least = fits && selected[0] == s.b.bin(Op::Le, a[0], a[1]);
  if (!greatest && !least) {
    s.unsupported("the regions are not supported: the first must compare by GE or LE, the second add");
    return;
  }
  s.give(scatterToExtremes(s.b, x, source, init, windowsOf(s, x->rank()), greatest));
}

} // namespace

/// Extents and pads are operands, and a function stands for the region.
void dynamicReduceWindow(Statement &s) {
  if (s.numInputs() < 7) {
    s.fail("the op has " + llvm::Twine(s.numInputs()) + " operands, expected 7 or more");
    return;
  }
  unsigned count = s.numInputs() - 5;
  auto [xs, inits] = operandsOf(s, count);
  Dims sizes = s.knownDims(count, "a window's extent"), pads = s.knownDims(count + 4, "the padding");
  Ints strides = s.knownInts(count + 1, "a stride"), base = s.knownInts(count + 2, "a dilation"),
       dilations = s.knownInts(count + 3, "a dilation");
  if (s.b.failed()) return;
  size_t rank = xs[0]->rank();
  if (sizes.size() != rank || pads.size() != 2 * rank || strides.size() != rank || base.size() != rank ||
      dilations.size() != rank) {
    s.fail("the windows do not fit rank " + llvm::Twine(rank));
    return;
  }
  Dims before, after;
  compose::AxisWindows w{{}, strides, base, dilations, {}, {}};
  bool constant = true;
  for (size_t i = 0; i < rank; ++i) {
    w.between[i] -= 1;
    before.push_back(pads[2 * i]);
    after.push_back(pads[2 * i + 1]);
    for (auto [extent, list] : {std::pair(sizes[i], &w.size), {before[i], &w.before}, {after[i], &w.after}}) {
      constant = constant && extent->constIndex();
      list->push_back(extent->constIndex().value_or(0));
    }
  }
  int64_t running =
      areOnes(strides) && areOnes(base) && areOnes(dilations) ? runningAxis(s.b, xs[0], sizes, before, after) : 0;
  foldWindows(s, xs, inits, constant ? std::optional(w) : std::nullopt, running);
}

namespace {

const Row rows[] = {
    {"stablehlo.reduce", reduce,
     "sums and the like are one reduction, argmax and argmin too; any other elementwise region folds one element after "
     "another",
     2},
    {"stablehlo.reduce_window", reduceWindow,
     "as reduce; windows that reach from one end of an axis are running sums, maxima ...", 2},
    {"stablehlo.select_and_scatter", selectAndScatter, "GE or LE, and a sum", 3, 3},
};

} // namespace

llvm::ArrayRef<Row> reductionRows() { return rows; }

} // namespace astra::stablehlo
