//===- FoldParams.cpp: what depends on parameters alone is computed once ---===//
// Takes:    a module past the numerics stage.
// Gives:    the values, computed from parameters with data and from constants alone, that are worth a parameter of
//           their own, with their bytes as the evaluator gives them: scale and shift of a batch norm, masks, tables.
// Keeps:    bits; linear time in the nodes; a bundle that grows by little (Note [What is folded]).
// Does not: look into the bodies of control ops, but for which of their weights contracts read, or at states and
//           arguments.
//
// Note [What is folded]. Views of a parameter are folded only where a contract multiplies by them, so that they get the
// layout that it reads best (it knows permuted ones by itself); other kernels read through them for nothing. Arithmetic
// is folded where its result is wanted by something that depends on a call, if the result takes at most `room` more
// bytes than the largest parameter it is made of: an 8-bit weight stays one and is unpacked where it is read. What no
// parameter goes into must save `fewOps` operations an element to be worth memory that is read. What is too large in
// this sense is looked through: its own sources may be folded. All together take at most as much again as the
// parameters, and `room` bytes each. Work beyond `mostWork` steps stays where it is.
#include "FoldParams.h"
#include "Captured.h"
#include "Fusion.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Eval.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;

static constexpr int64_t room = 16384, fewOps = 3, mostWork = int64_t(1) << 28;

namespace {
struct Facts {
  bool closed = false;     // depends on parameters with data and constants alone, and its shape is constant
  bool fromParams = false; // on a parameter at all
  bool cheap = true;       // no step costs more than mostWork
  int64_t largest = 0;     // bytes of the largest parameter in it
  int64_t ops = 0;         // operations for an element, one after the other; 0: a view or a leaf
};

/// The product of constant extents, or 2^50 where it is more.
int64_t product(llvm::ArrayRef<UOpRef> extents) {
  uint64_t n = 1;
  for (UOpRef d : extents) n = llvm::SaturatingMultiply(n, uint64_t(std::max<int64_t>(*d->constIndex(), 0)));
  return int64_t(std::min(n, uint64_t(1) << 50));
}
bool constant(llvm::ArrayRef<UOpRef> extents) {
  for (UOpRef d : extents)
    if (!d->constIndex()) return false;
  return true;
}
int64_t bytesOf(UOpRef x) { return product(x->shape) * std::max(1u, byteSize(x->dtype)); }

/// Reads elsewhere, computes nothing.
bool isView(UOpRef x) {
  return (has(x->op, Movement) && x->op != Op::Pad) || x->op == Op::Detach || x->op == Op::Tap || x->op == Op::Real ||
         x->op == Op::Imag;
}

/// Steps that the evaluator takes for this node alone.
int64_t workOf(UOpRef x) {
  switch (x->op) {
  case Op::Contract: return product(x->indices().take_front(x->ints[0] + x->ints[1])); // all labels
  case Op::Reduce:
  case Op::ArgReduce:
  case Op::Scatter: return product(x->src[0]->shape);
  case Op::ArgSort: return product(x->shape) * 32;
  default: return product(x->shape);
  }
}

class Folder {
public:
  Folder(const Module &m, FoldLevel level) : m(m), level(level), order(topoSort(m.roots())) {
    for (const Param &p : m.params) byName[p.value->str] = &p;
  }
  std::vector<FoldedParam> run();

private:
  const Module &m;
  FoldLevel level;
  std::vector<UOpRef> order;
  llvm::StringMap<const Param *> byName;
  llvm::DenseMap<UOpRef, Facts> facts;

  Facts factsOf(UOpRef n) const;
  bool worth(UOpRef n, const Facts &f, bool operand) const;
};

Facts Folder::factsOf(UOpRef n) const {
  Facts f;
  if (n->isIndex() || n->op == Op::Arg || n->op == Op::State || n->op == Op::Proj || has(n->op, Control) ||
      has(n->op, Function) || has(n->op, KernelLevel) || !constant(n->shape) || !constant(n->indices()))
    return f;
  if (n->op == Op::Param) {
    const Param *p = byName.lookup(n->str);
    f.closed = f.fromParams = p && p->data;
    f.largest = bytesOf(n) * bitWidth(partOf(n->dtype)) / (8 * std::max(1u, byteSize(partOf(n->dtype))));
    return f;
  }
  for (UOpRef s : n->tensors()) {
    auto it = facts.find(s);
    if (it == facts.end() || !it->second.closed) return f;
    const Facts &g = it->second;
    f.fromParams |= g.fromParams;
    f.cheap &= g.cheap;
    f.largest = std::max(f.largest, g.largest);
    f.ops = std::max(f.ops, g.ops);
  }
  f.closed = true;
  f.cheap &= workOf(n) <= mostWork;
  if (!has(n->op, Leaf) && !isView(n)) f.ops += has(n->op, Elementwise) ? 1 : fewOps;
  return f;
}

/// See Note [What is folded].
bool Folder::worth(UOpRef n, const Facts &f, bool operand) const {
  if (!f.cheap || isComplex(n->dtype) || !byteSize(n->dtype)) return false;
  if (level != FoldLevel::All && bytesOf(n) > f.largest + room) return false;
  if (isView(n)) return operand && f.fromParams && has(n->op, Movement) && n->op != Op::Permute && n->op != Op::Expand;
  return f.ops && (f.fromParams || (f.ops >= fewOps && bytesOf(n) <= room));
}

std::vector<FoldedParam> Folder::run() {
  for (UOpRef n : order) facts[n] = factsOf(n);
  // By something that stays; of that, by a contract as an operand; by something that is folded.
  llvm::DenseMap<UOpRef, bool> wanted, operand, needed;
  for (UOpRef r : m.roots()) wanted[r] = true;
  std::vector<UOpRef> folded;
  EvalInputs in;
  int64_t growth = 0, mostGrowth = 0;
  for (const Param &p : m.params) mostGrowth += p.data ? int64_t(p.data->size()) : 0;
  for (UOpRef n : llvm::reverse(order)) {
    const Facts &f = facts[n];
    bool packed = isPacked(n); // the layout of a parameter
    bool fold = wanted.lookup(n) && f.closed && !packed && worth(n, f, operand.lookup(n));
    if (int64_t more = fold ? std::max<int64_t>(bytesOf(n) - room, 0) : 0) {
      fold = level == FoldLevel::All || growth + more <= mostGrowth;
      growth += fold ? more : 0;
    }
    if (fold) folded.push_back(n);
    bool stays = !f.closed || (wanted.lookup(n) && !fold), under = fold || needed.lookup(n);
    for (auto [i, s] : llvm::enumerate(n->src)) {
      if (stays && !packed) wanted[s] = true;
      if (stays && (n->op == Op::Contract || (isControl(n) && isReadInBody(n, unsigned(i))) ||
                    (n->op == Op::Permute && operand.lookup(n))))
        operand[s] = true;
      if (under) needed[s] = true;
    }
    if (under && n->op == Op::Param) {
      Tensor &t = in.params[n->str.str()];
      t.dtype = n->dtype;
      for (UOpRef d : n->shape) t.shape.push_back(*d->constIndex());
      t.bytes = *byName.lookup(n->str)->data;
    }
  }
  std::reverse(folded.begin(), folded.end());
  std::vector<FoldedParam> out;
  llvm::Expected<std::vector<Tensor>> values = evalNodes(folded, in);
  if (!values) { // what the evaluator refuses is refused when it is run, if it is
    llvm::consumeError(values.takeError());
    return out;
  }
  Builder b(*m.context);
  unsigned number = 0;
  for (auto [n, t] : llvm::zip_equal(folded, *values)) {
    canonicalizeNaN(t);
    std::string name;
    do name = "%folded" + std::to_string(number++);
    while (byName.contains(name));
    UOpRef p = b.param(name, n->dtype, n->shape);
    out.push_back({n, p, std::make_shared<std::vector<uint8_t>>(std::move(t.bytes)), facts[n].fromParams});
  }
  return out;
}
} // namespace

std::vector<FoldedParam> astra::foldParams(const Module &m, FoldLevel level) {
  return level == FoldLevel::None ? std::vector<FoldedParam>() : Folder(m, level).run();
}
