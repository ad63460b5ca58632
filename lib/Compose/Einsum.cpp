//===- Einsum.cpp: Einstein sums -------------------------------------------===//
// Takes:    an equation over named axes, which may be wrong in every way, and operands.
// Gives:    what is done to each operand alone; then the pairs of the path, in a scan for each label that is sliced.
// Does not: choose the path (ContractionPath.cpp), or how a pair is contracted (EinsumProduct.cpp).
#include "astra/Compose/Einsum.h"
#include "EinsumProduct.h"
#include "astra/Compose/Scan.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

namespace {

/// The elements whose indices along two axes are equal, for every label that occurs twice.
Labelled diagonals(Composer &b, Labelled x) {
  for (size_t i = 0; i < x.labels.size() && x.value; ++i)
    for (size_t k = x.labels.size(); k-- > i + 1 && x.value;) {
      if (x.labels[i] != x.labels[k]) continue;
      Dims one(x.value->shape.begin(), x.value->shape.end());
      one[k] = b.idx(1);
      x.value = b.squeeze(b.make(Op::Pick, {x.value, b.iota(DType::I64, one, i)}, {int64_t(k)}), {int64_t(k)});
      x.labels.erase(x.labels.begin() + k);
    }
  return x;
}

/// An operand as the contraction has it: without diagonals, axes of extent 1 that are repeated, and labels that nobody
/// else has.
Labelled alone(Composer &b, const EinsumText &e, size_t i, UOpRef value) {
  Labelled x = diagonals(b, {e.operands[i], value});
  if (!x.value) return {};
  const auto &wanted = e.contraction.operands[i];
  Ints repeated, summed;
  EinsumLabels left;
  for (auto [axis, l] : llvm::enumerate(x.labels))
    if (llvm::is_contained(wanted, l))
      left.push_back(l);
    else
      (x.value->shape[axis] == e.extents[l] ? summed : repeated).push_back(axis);
  Ints gone = summed;
  gone.append(repeated.begin(), repeated.end());
  llvm::sort(gone);
  return {left, b.squeeze(b.reduce(ReduceKind::Sum, x.value, summed), gone)};
}

/// 0 or 1 of an integer: whether it is another than 0.
UOpRef truthOf(Composer &b, UOpRef x) { return x ? b.cast(b.bin(Op::Ne, x, 0.0), x->dtype) : nullptr; }

/// The steps of a path over operands.
class Contractor {
public:
  Contractor(Composer &b, const EinsumText &e, const ContractionPath &path, bool truths)
      : b(b), e(e), path(path), truths(truths) {}
  UOpRef contract(std::vector<Labelled> operands, llvm::ArrayRef<unsigned> slices, EinsumLabels result);

private:
  Composer &b;
  const EinsumText &e;
  const ContractionPath &path;
  const bool truths; // of bools as integers: each step gives 0 or 1, and no count overflows
  UOpRef steps(std::vector<Labelled> operands, const EinsumLabels &result);
};

UOpRef Contractor::steps(std::vector<Labelled> left, const EinsumLabels &result) {
  std::vector<unsigned> count(e.extents.size());
  for (const Labelled &o : left)
    for (unsigned l : o.labels) ++count[l];
  for (const PathStep &step : path.steps) {
    Labelled acc = left[step[0]];
    for (size_t i = 1; i < step.size() && acc.value; ++i) {
      const Labelled &y = left[step[i]];
      EinsumLabels kept;
      auto meet = [&](unsigned l) {
        if (llvm::is_contained(kept, l)) return;
        unsigned in = llvm::is_contained(acc.labels, l) + llvm::is_contained(y.labels, l);
        bool isKept = llvm::is_contained(result, l) || count[l] > in;
        if (isKept) kept.push_back(l);
        if (isKept && in == 2) --count[l];
      };
      for (unsigned l : acc.labels) meet(l);
      for (unsigned l : y.labels) meet(l);
      bool isLast = left.size() == step.size() && i + 1 == step.size();
      acc = einsumProduct(b, acc, y, kept, isLast ? &result : nullptr);
      if (truths) acc.value = truthOf(b, acc.value);
    }
    if (!acc.value) return nullptr;
    for (unsigned at : llvm::reverse(step)) left.erase(left.begin() + at);
    left.push_back(std::move(acc));
  }
  return reordered(b, left[0], result).value;
}

/// Slice by slice along the first label, from -0 where it is summed, and 0 where there is no slice (N4): each by the
/// rest.
UOpRef Contractor::contract(std::vector<Labelled> operands, llvm::ArrayRef<unsigned> slices, EinsumLabels result) {
  if (slices.empty()) return steps(std::move(operands), result);
  unsigned l = slices[0];
  auto at = llvm::find(result, l);
  const bool isSummed = at == result.end();
  const int64_t axis = at - result.begin();
  EinsumLabels inside = result;
  llvm::erase(inside, l);
  ScanMaker scan(b, e.extents[l]);
  UOpRef sum = nullptr;
  if (isSummed) {
    Dims shape;
    for (unsigned r : result) shape.push_back(e.extents[r]);
    DType t = operands[0].value->dtype;
    bool isFromNegative = (isFloat(t) || isComplex(t)) && e.extents[l]->hi > 0; // the extent of a slice is known
    UOpRef zero = b.b.lit(t, isFromNegative ? -0.0 : 0.0);
    sum = scan.carry(b.broadcastTo(zero, shape));
  }
  std::vector<Labelled> parts(operands.size());
  for (bool sliced : {true, false})
    for (auto [o, part] : llvm::zip(operands, parts)) {
      if (llvm::is_contained(o.labels, l) != sliced) continue;
      EinsumLabels order{l};
      for (unsigned other : o.labels)
        if (other != l) order.push_back(other);
      if (sliced)
        part = {EinsumLabels(order.begin() + 1, order.end()), scan.slice(reordered(b, o, order).value)};
      else
        part = {o.labels, scan.close(o.value)};
    }
  if (b.failed()) return nullptr;
  UOpRef given = contract(std::move(parts), slices.drop_front(), inside);
  if (!given) return nullptr;
  if (isSummed) return scan.finish({b.bin(Op::Add, sum, given)}, {})[0];
  UOpRef stacked = scan.finish({}, {given})[0];
  EinsumLabels order{l};
  order.append(inside.begin(), inside.end());
  return axis ? reordered(b, {order, stacked}, result).value : stacked;
}

} // namespace

UOpRef einsum(Composer &b, llvm::StringRef text, llvm::ArrayRef<UOpRef> values) {
  std::vector<Dims> shapes;
  for (UOpRef v : values) {
    if (!v) return nullptr;
    shapes.emplace_back(v->shape.begin(), v->shape.end());
    if (v->dtype != values[0]->dtype)
      return b.fail("the operands of an einsum are of one type, these are of " +
                    llvm::Twine(info(values[0]->dtype).text) + " and " + info(v->dtype).text);
  }
  std::optional<EinsumText> e = readEinsum(b, text, shapes);
  std::optional<ContractionPath> path = e ? pathOf(b, *e) : std::nullopt;
  if (!path) return nullptr;
  for (unsigned l : path->slices)
    if (llvm::none_of(e->contraction.operands, [&](auto &o) { return llvm::is_contained(o, l); }))
      return b.fail("axis '" + llvm::Twine(e->names[l]) +
                    "' is sliced, and only one operand has it, which is summed ahead");
  constexpr Cost mostElements = Cost(1) << 48;
  ContractionCost cost = costOf(e->contraction, *path);
  bool known = llvm::all_of(e->extents, [](UOpRef x) { return x->isConst(); });
  if (known && cost.largest > mostElements)
    return b.fail("an intermediate of the einsum has " + llvm::Twine(costText(cost.largest)) +
                  " elements, and a tensor has 2^48 at most; give another path, or a bound on memory");
  // Narrow floats are rounded once: a single contract does so by itself, more steps are taken in f32.
  const DType t = values[0]->dtype;
  std::vector<Labelled> operands;
  bool several = values.size() > 2;
  for (size_t i = 0; i < values.size(); ++i) several |= e->contraction.operands[i].size() < e->operands[i].size();
  several |= !path->slices.empty();
  const bool truths = t == DType::Bool;
  for (size_t i = 0; i < values.size(); ++i) {
    UOpRef value = truths ? b.cast(values[i], DType::I64) : several ? b.widen(values[i]) : values[i];
    operands.push_back(alone(b, *e, i, value));
    if (truths) operands.back().value = truthOf(b, operands.back().value);
  }
  if (b.failed()) return nullptr;
  UOpRef z = Contractor(b, *e, *path, truths).contract(std::move(operands), path->slices, e->result);
  return !z ? nullptr : truths ? b.bin(Op::Ne, z, 0.0) : b.cast(z, t);
}

UOpRef einsumAndCost(Composer &b, llvm::StringRef text, llvm::ArrayRef<UOpRef> operands, std::string &cost) {
  std::vector<Dims> shapes;
  for (UOpRef x : operands) {
    if (!x) return nullptr;
    shapes.emplace_back(x->shape.begin(), x->shape.end());
  }
  std::optional<EinsumPlan> plan = einsumPlan(b, text, shapes);
  if (!plan) return nullptr;
  if (operands.size() > 2)
    cost = plan->text + ": products " + costText(plan->cost.flops) + " (at once " + costText(plan->naive) +
           "), largest intermediate or result " + costText(plan->cost.largest);
  return einsum(b, plan->text, operands);
}

} // namespace astra::compose
