//===- Trips.cpp: a while whose trips are bounded, as a scan ---------------===//
// Takes:    a while that carries no dims.
// Gives:    a scan of as many steps as the while can take, which changes nothing once the condition is false.
// Keeps:    the values: a step evaluates the condition first, and a condition that was false stays so.
// Does not: guess. The bound must show: the condition, or a part of an `and`, compares (lt, le) a carried integer that
//           begins as a literal and grows by a literal with a literal, a symbolic integer, or a carried value that no
//           step changes and that begins as one of these.
#include "Modes.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::autograd;
using llvm::SmallVector;

static std::optional<int64_t> literalOf(UOpRef x) {
  if (!x->isConst() || !isInt(x->dtype) || x->rank()) return std::nullopt;
  unsigned unused = 64 - bitWidth(x->dtype);
  return isSigned(x->dtype) ? int64_t(uint64_t(x->ints[0]) << unused) >> unused : x->ints[0];
}

static UOpRef bareExpand(UOpRef x) { // a scalar behind reshapes to no axes
  while (x->op == Op::Reshape && x->rank() == 0) x = x->src[0];
  return x;
}

namespace {
struct Bound {
  UOpRef n, condition, body;
  Context &c;

  bool isArgument(UOpRef x) const { return x->op == Op::Arg && x->rank() == 0 && isInt(x->dtype); }
  /// A scalar of the condition as a symbolic integer that is known before the loop.
  UOpRef known(UOpRef x) const {
    x = bareExpand(x);
    if (isArgument(x)) {
      UOpRef next = body->src[x->ints[0]];
      if (next != x) return nullptr;
      x = n->src[x->ints[0]];
    }
    while (x->op == Op::Cast && isInt(x->src[0]->dtype)) x = x->src[0];
    if (auto k = literalOf(x)) return c.index(*k);
    return x->op == Op::FromIndex ? x->src[0] : nullptr;
  }
  /// Trips while argument < limit.
  UOpRef trips(UOpRef argument, UOpRef limit) const {
    argument = bareExpand(argument);
    if (!isArgument(argument)) return nullptr;
    auto first = literalOf(n->src[argument->ints[0]]);
    UOpRef next = bareExpand(body->src[argument->ints[0]]);
    if (!first || next->op != Op::Add) return nullptr;
    for (unsigned i : {0, 1}) {
      auto step = literalOf(next->src[1 - i]);
      if (next->src[i] != argument || !step || *step < 1) continue;
      UOpRef distance = idxMax(c, idxSub(c, limit, c.index(*first)), c.index(0));
      return idxCeilDiv(c, distance, c.index(*step));
    }
    return nullptr;
  }
  UOpRef find() const {
    SmallVector<UOpRef, 8> parts{condition->src[0]};
    for (size_t i = 0; i < parts.size(); ++i) {
      UOpRef p = bareExpand(parts[i]);
      if (p->op == Op::And) parts.append(p->src.begin(), p->src.end());
      if (p->op != Op::Lt && p->op != Op::Le) continue;
      UOpRef limit = known(p->src[1]);
      if (!limit) continue;
      if (p->op == Op::Le) limit = idxAdd(c, limit, c.index(1));
      if (UOpRef t = trips(p->src[0], limit)) return t;
    }
    return nullptr;
  }
};
} // namespace

UOpRef autograd::tripBound(Context &c, UOpRef n) { return Bound{n, n->fns[0], n->fns[1], c}.find(); }

llvm::Expected<UOpRef> autograd::boundedScan(Graph &g, UOpRef n) {
  if (!n->indices().empty())
    return refuse(n, "reverse mode through a while that carries dims (values that change their shape)", g.origins);
  UOpRef length = tripBound(g.c, n);
  if (!length)
    return refuse(
        n,
        "reverse mode needs a bound of the trips, and the condition shows none: it should compare (lt, le) a "
        "carried integer that begins as a literal and grows by a literal with a literal or a symbolic integer",
        g.origins);
  Builder b(g.c);
  std::vector<UOpRef> args, results, src{n->fns[0]->src[0]};
  for (auto [i, x] : llvm::enumerate(n->tensors())) args.push_back(b.arg(i, x->dtype, x->shape));
  llvm::append_range(src, args);
  UOpRef stay = g.c.make(Op::Func, args, {int64_t(args.size())});
  UOpRef step = g.c.make(Op::Cond, src, {}, {}, DType::Void, {n->fns[1], stay});
  for (auto [i, a] : llvm::enumerate(args)) {
    std::vector<UOpRef> of{step};
    llvm::append_range(of, a->shape);
    results.push_back(g.c.make(Op::Proj, of, {int64_t(i)}, {}, a->dtype));
  }
  UOpRef body = g.c.make(Op::Func, results, {int64_t(args.size())});
  src.assign(n->tensors().begin(), n->tensors().end());
  src.push_back(length);
  return g.c.make(Op::Scan, src, {int64_t(args.size()), 0}, {}, DType::Void, body);
}
