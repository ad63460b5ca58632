//===- EvalCustom.cpp: kernels that users write ----------------------------===//
// Takes:    a custom op with its sources evaluated.
// Gives:    what its programs store, one after another in row-major order of the grid.
// Keeps:    two programs that store one element, by places or by scatters of kind set, are an error that names both.
// What
//           all programs scatter into one output is one scatter: narrow floats are rounded once (N4).
#include "EvalImpl.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::eval;
using Values = Evaluator::Values;

namespace {
std::string pointText(llvm::ArrayRef<int64_t> at) {
  std::string s = "(";
  for (size_t i = 0; i < at.size(); ++i) s += (i ? ", " : "") + std::to_string(at[i]);
  return s + ")";
}

/// An output while the programs run, and which of them has stored each element.
class Output {
public:
  explicit Output(Tensor begin) : t(std::move(begin)), storedBy(t.count(), -1), strides(rowMajor(t.shape)) {}

  /// The number of the program that has stored the element before; -1: none.
  int64_t claim(int64_t element, int64_t program) { return std::exchange(storedBy[element], program); }

  Tensor t;
  std::vector<int64_t> storedBy;
  Dims strides;
  std::vector<TensorPtr> indices, updates; // of a scatter, by program
};

/// Tensors one behind another along an axis.
Tensor joined(llvm::ArrayRef<TensorPtr> parts, int64_t axis) {
  Dims shape(parts[0]->shape.begin(), parts[0]->shape.end());
  shape[axis] = 0;
  for (const TensorPtr &p : parts) shape[axis] += p->shape[axis];
  Tensor out = zeros(parts[0]->dtype, shape);
  int64_t outer = product(llvm::ArrayRef(shape).take_front(axis));
  uint8_t *to = out.bytes.data();
  for (int64_t o = 0; o < outer; ++o)
    for (const TensorPtr &p : parts) {
      size_t row = p->bytes.size() / size_t(outer);
      if (row) memcpy(to, &p->bytes[size_t(o) * row], row);
      to += row;
    }
  return out;
}

/// The elements of an output that a store writes, in order.
template <class F> void eachStored(UOpRef r, const Output &o, llvm::ArrayRef<int64_t> begin, const Values &in, F f) {
  if (r->op == Op::Place) {
    int64_t base = 0;
    for (size_t i = 0; i < begin.size(); ++i) base += begin[i] * o.strides[i];
    for (Odometer at(in[0]->shape); !at.done(); at.next()) f(base + at.offset(o.strides));
    return;
  }
  along(o.t, *in[1], r->ints[0], [&](int64_t element, int64_t) { f(element); });
}
} // namespace

llvm::Expected<Values> Evaluator::evalCustom(UOpRef n, Scope &scope, llvm::ArrayRef<TensorPtr> in) {
  auto grid = scope.values(n->indices());
  if (!grid) return grid.takeError();
  llvm::SmallVector<llvm::StringRef, 3> names;
  n->str.split(names, ',');
  llvm::ArrayRef<UOpRef> results = n->fns[0]->src;
  std::vector<UOpRef> roots; // of each result: the tile, or what it is scattered into, the index and the update
  for (UOpRef r : results) roots.insert(roots.end(), r->tensors().begin(), r->tensors().end());
  std::vector<std::optional<Output>> outputs(results.size());
  auto shapeOf = [&](Scope &s, UOpRef r) { return s.values(r->shape); };
  Odometer at(*grid);
  bool none = at.done();
  for (int64_t program = 0; none || !at.done(); at.next(), ++program) {
    Scope inner = scope.inner();
    for (auto [name, v] : llvm::zip(names, at.index)) inner.dims[name] = v;
    auto ran = run(n, roots, inner, in);
    if (!ran) return llvm::createStringError(llvm::toString(ran.takeError()) + ": program " + pointText(at.index));
    Values values = std::move(*ran);
    size_t next = 0;
    for (auto [r, o] : llvm::zip(results, outputs)) {
      Values parts(values.begin() + next, values.begin() + next + r->ntensors);
      next += r->ntensors;
      if (!o) {
        auto shape = shapeOf(inner, r);
        if (!shape) return shape.takeError();
        Tensor begin = r->op == Op::Scatter ? *parts[0] : zeros(r->dtype, *shape);
        unsigned w = elementBytes(r->dtype);
        if (r->op == Op::Place)
          for (size_t i = 0; i < begin.bytes.size(); i += w) memcpy(&begin.bytes[i], &r->ints[0], std::min(w, 8u));
        o.emplace(std::move(begin));
      }
      if (none) continue;
      auto begin = inner.values(r->op == Op::Place ? r->indices().take_front(r->rank()) : llvm::ArrayRef<UOpRef>());
      if (!begin) return begin.takeError();
      if (r->op == Op::Place || r->ints[1] == int64_t(ScatterKind::Set)) {
        std::string twice;
        eachStored(r, *o, *begin, parts, [&](int64_t element) {
          int64_t before = o->claim(element, program);
          if (before < 0 || before == program || !twice.empty()) return;
          Dims place, first;
          for (int64_t left = element; int64_t s : o->strides) place.push_back(left / s), left %= s;
          for (int64_t left = before; int64_t s : rowMajor(*grid)) first.push_back(left / s), left %= s;
          twice = "custom: programs " + pointText(first) + " and " + pointText(at.index) + " both store element " +
                  pointText(place) + " of an output";
        });
        if (!twice.empty()) return llvm::createStringError(twice);
      }
      if (r->op == Op::Place) {
        unsigned w = elementBytes(r->dtype);
        int64_t i = 0;
        eachStored(r, *o, *begin, parts,
                   [&](int64_t element) { memcpy(&o->t.bytes[element * w], &parts[0]->bytes[i++ * w], w); });
      } else {
        o->indices.push_back(parts[1]);
        o->updates.push_back(parts[2]);
      }
    }
    if (none) break;
  }
  Values out;
  for (auto [r, o] : llvm::zip_equal(results, outputs)) {
    if (o->indices.empty()) continue;
    Tensor index = joined(o->indices, r->ints[0]), update = joined(o->updates, r->ints[0]);
    auto stored = evalOp({r, {&o->t, &index, &update}, {}, o->t.shape});
    if (!stored) return stored.takeError();
    o->t = std::move(*stored);
  }
  for (auto &o : outputs) out.push_back(std::make_shared<Tensor>(std::move(o->t)));
  return out;
}
