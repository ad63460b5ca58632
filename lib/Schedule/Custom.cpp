//===- Custom.cpp: kernels that users write --------------------------------===//
// Takes:    a custom op with its operands placed.
// Gives:    for each result a launch whose items are the programs of the grid; before it one that writes the value of
//           elements which no program stores, unless the programs certainly store all.
// Keeps:    a body is one kernel: nothing in it gets a buffer.
// Does not: know data dims in a body, and loops that carry tiles through other arithmetic than sums, products and
//           extremes for a symbolic number of trips: they are refused. What scatters was split before
//           (LegalizeCustom.cpp).
#include "Scheduler.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::SmallVector;

static constexpr int64_t fewTrips = 4;          // that are rather written out
static constexpr int64_t mostTrips = 256;       // of a loop that is unrolled
static constexpr size_t mostUnrolled = 1 << 18; // nodes of a body

namespace {
/// A body without control ops: loops that add up as folds, others of a constant number of trips written out, both sides
/// of branches; integers that are known computed.
class Straight {
public:
  Straight(Builder &b, std::string &error) : b(b), error(error) {}

  SmallVector<UOpRef, 4> run(llvm::ArrayRef<UOpRef> roots, llvm::ArrayRef<UOpRef> args) {
    llvm::DenseMap<UOpRef, UOpRef> now;
    llvm::DenseMap<UOpRef, SmallVector<UOpRef, 4>> results;
    for (UOpRef n : topoSort(roots)) {
      if (!error.empty()) return {};
      SmallVector<UOpRef, 8> src;
      for (UOpRef s : n->src) src.push_back(now.lookup(s));
      if (n->op == Op::Arg && !args.empty())
        now[n] = args[n->ints[0]];
      else if (n->op == Op::Scan)
        results[n] = scan(n, src);
      else if (n->op == Op::Cond)
        results[n] = cond(n, src);
      else if (n->op == Op::Proj && results.count(n->src[0]))
        now[n] = results[n->src[0]][n->ints[0]];
      else if (has(n->op, Control))
        error =
            (llvm::Twine("custom: ") + info(n->op).mnemonic + " in a kernel is not compiled yet; the evaluator runs it")
                .str();
      else
        now[n] = known(n, src);
    }
    if (!error.empty()) return {};
    return llvm::to_vector<4>(llvm::map_range(roots, [&](UOpRef r) { return now.lookup(r); }));
  }

private:
  SmallVector<UOpRef, 4> scan(UOpRef n, llvm::ArrayRef<UOpRef> src) {
    auto trips = src.back()->constIndex();
    size_t carries = n->ints[0], slices = n->ints[1];
    if (n->fns[0]->src.size() > carries)
      error = "custom: a scan with stacked results in a kernel is not compiled yet; the evaluator runs it";
    else if (!trips || *trips >= fewTrips)
      if (auto all = folds(n, src); !all.empty() || !error.empty()) return all;
    if (error.empty() && (!trips || *trips > mostTrips))
      error = "custom: a loop in a kernel of " +
              (trips ? std::to_string(*trips) : std::string("a symbolic number of")) +
              " trips whose values are no sums, products or extremes is not compiled yet: loops of up to " +
              std::to_string(mostTrips) + " known trips are written out; the evaluator runs it";
    if (!error.empty()) return {};
    SmallVector<UOpRef, 4> args(src.begin(), src.begin() + n->ntensors);
    for (int64_t t = 0; t < *trips && error.empty(); ++t) {
      for (size_t s = carries; s < carries + slices; ++s) args[s] = slice(src[s], b.idx(t));
      SmallVector<UOpRef, 4> next = run(n->fns[0]->src, args);
      llvm::copy(next, args.begin());
      if (b.c.size() > before + mostUnrolled)
        error = "custom: a kernel has more than " + std::to_string(mostUnrolled) + " nodes with its loops written out";
    }
    return {args.begin(), args.begin() + carries};
  }
  /// Of a loop whose carried values are counters, stay, or are folded with what does not depend on any of them: these
  /// folds. Nothing where it is another.
  SmallVector<UOpRef, 4> folds(UOpRef n, llvm::ArrayRef<UOpRef> src) {
    UOpRef trips = src.back(), r = b.c.make(Op::Range, {trips}, {ours + number++, int64_t(RangeKind::Fold)});
    llvm::ArrayRef<UOpRef> next = n->fns[0]->src;
    SmallVector<UOpRef, 4> args(src.begin(), src.begin() + n->ntensors), last(args), carried(args.size());
    auto isArg = [](UOpRef x, size_t j) { return x->op == Op::Arg && x->ints[0] == int64_t(j); };
    size_t carries = n->ints[0], slices = n->ints[1];
    for (size_t j = carries; j < carries + slices; ++j) args[j] = slice(src[j], r);
    for (size_t j = 0; j < carries; ++j) {
      UOpRef x = next[j], step = nullptr;
      if (isArg(x, j)) continue;
      if (x->op == Op::Add && x->dtype == DType::I64 && !x->rank())
        step = isArg(x->src[0], j) ? x->src[1] : isArg(x->src[1], j) ? x->src[0] : nullptr;
      if (step && step->isConst() && std::abs(int64_t(step->ints[0])) <= INT32_MAX) {
        auto after = [&](UOpRef count) {
          UOpRef way = b.fromIndex(idxMul(b.c, count, b.idx(step->ints[0])), DType::I64),
                 z = asIndex(Op::Add, src[j], way);
          return z ? z : b.add(src[j], way);
        };
        last[j] = after(trips), args[j] = after(r);
      } else
        args[j] = carried[j] = b.c.make(Op::Param, x->shape, {}, "%carried" + std::to_string(number++), x->dtype);
    }
    SmallVector<UOpRef, 4> values = run(next, args);
    if (!error.empty()) return {};
    last.truncate(carries);
    for (size_t j = 0; j < carries; ++j) {
      if (!carried[j]) continue;
      static const std::pair<Op, Combine> ways[] = {
          {Op::Add, Combine::Add}, {Op::Mul, Combine::Mul}, {Op::Max, Combine::Max}, {Op::Min, Combine::Min}};
      auto way = llvm::find_if(ways, [&](auto &w) { return w.first == values[j]->op; });
      SmallVector<UOpRef, 4> parts; // the last first
      UOpRef x = values[j];
      auto dependsOn = [](UOpRef v, UOpRef on) { return llvm::is_contained(topoSort(v), on); };
      for (; way != std::end(ways) && x->op == way->first;) {
        bool first = dependsOn(x->src[0], carried[j]);
        parts.push_back(x->src[first]);
        x = x->src[!first];
      }
      if (x != carried[j] || isComplex(x->dtype)) return {};
      for (UOpRef p : parts)
        for (UOpRef other : carried)
          if (other && dependsOn(p, other)) return {};
      parts.push_back(src[j]);
      std::reverse(parts.begin(), parts.end());
      int64_t steps = int64_t(parts.size()) - 1;
      parts.push_back(r);
      last[j] = b.c.make(Op::Fold, parts, {int64_t(way->second), steps});
    }
    return last;
  }
  /// Arithmetic of i64 scalars, as a symbolic integer where both are; else null.
  UOpRef asIndex(Op op, UOpRef a, UOpRef y) {
    auto index = [&](UOpRef x) {
      return x->op == Op::FromIndex ? x->src[0] : x->isConst() ? b.idx(x->ints[0]) : nullptr;
    };
    UOpRef i = index(a), k = index(y);
    if (!i || !k) return nullptr;
    UOpRef z = op == Op::Add ? idxAdd(b.c, i, k) : op == Op::Sub ? idxSub(b.c, i, k) : idxMul(b.c, i, k);
    constexpr int64_t most = int64_t(1) << 61; // what wraps is no symbolic integer
    return z->lo > -most && z->hi < most ? b.fromIndex(z, DType::I64) : nullptr;
  }
  /// What a trip sees of what a loop goes through: element r along axis 0.
  UOpRef slice(UOpRef x, UOpRef r) {
    if (x->op == Op::Iota && x->dtype == DType::I64 && x->rank() == 1) return b.fromIndex(r, DType::I64);
    IndexBlock one = idxBlock(b.c, x->shape[0], r, 1);
    SmallVector<UOpRef, 6> begin(x->rank(), b.idx(0)), size(x->shape.begin(), x->shape.end()), none = begin,
                                                                                               missing = begin;
    begin[0] = one.begin, size[0] = one.size, missing[0] = idxSub(b.c, b.idx(1), one.size);
    UOpRef part = b.shrink(x, begin, size);
    if (one.size->constIndex() != 1) part = b.pad(part, none, missing);
    return b.reshape(part, x->shape.drop_front());
  }
  /// Both branches: values have no effects.
  SmallVector<UOpRef, 4> cond(UOpRef n, llvm::ArrayRef<UOpRef> src) {
    llvm::ArrayRef<UOpRef> args = src.slice(1, n->ntensors - 1);
    SmallVector<UOpRef, 4> yes = run(n->fns[0]->src, args), no = run(n->fns[1]->src, args);
    if (!error.empty()) return {};
    for (auto [y, x] : llvm::zip_equal(yes, no)) y = b.select(b.splat(src[0], y->shape), y, x);
    return yes;
  }
  /// The node on these sources; a literal, or a symbolic integer, where they say its value.
  UOpRef known(UOpRef n, llvm::ArrayRef<UOpRef> src) {
    if (n->dtype == DType::I64 && !n->rank() && (n->op == Op::Add || n->op == Op::Sub || n->op == Op::Mul))
      if (UOpRef z = asIndex(n->op, src[0], src[1])) return z;
    if (n->op != Op::Extent) return b.c.withSources(n, src);
    UOpRef i = src[0]->isConst() ? b.idx(src[0]->ints[0]) : src[0]->op == Op::FromIndex ? src[0]->src[0] : nullptr;
    if (!i) return b.c.withSources(n, src);
    if (i->lo < n->ints[0])
      i = idxMax(b.c, i, b.idx(n->ints[0])); // what is outside is refused: whoever reads it relies on that
    if (i->hi > n->ints[1]) i = idxMin(b.c, i, b.idx(n->ints[1]));
    return i;
  }

  Builder &b;
  std::string &error;
  size_t before = b.c.size();
  static constexpr int64_t ours = int64_t(1) << 20; // numbers of ranges that no lowering has
  int64_t number = 0;
};
} // namespace

/// Of a dim of a grid: the step with which a place's begin along an axis grows, cut at the axis' end: min(extent, d *
/// step) or d * step. 0: it is something else.
static int64_t stepOf(Context &c, UOpRef begin, UOpRef extent, UOpRef dim) {
  if (begin->op == Op::Min) {
    UOpRef other = begin->src[0] == extent ? begin->src[1] : begin->src[1] == extent ? begin->src[0] : nullptr;
    if (!other) return 0;
    begin = other;
  }
  auto ts = terms(begin);
  bool one = ts.size() == 1 && ts[0].atoms.size() == 1 && ts[0].atoms[0] == dim && ts[0].coefficient > 0;
  return one && begin == idxMul(c, dim, c.index(ts[0].coefficient)) ? ts[0].coefficient : 0;
}

/// Whether the programs certainly store every element: along each axis the whole of it, or blocks one behind another,
/// each by a dim of the grid of its own.
static bool coversAll(Context &c, UOpRef place, llvm::ArrayRef<std::pair<UOpRef, UOpRef>> grid) {
  SmallVector<UOpRef, 3> used;
  for (unsigned a = 0; a < place->rank(); ++a) {
    UOpRef begin = place->indices()[a], extent = place->shape[a], size = place->src[0]->shape[a];
    if (begin->constIndex() == 0 && size == extent) continue;
    bool covered = false;
    for (auto [dim, count] : grid) {
      int64_t step = llvm::is_contained(used, dim) ? 0 : stepOf(c, begin, extent, dim);
      UOpRef n = c.index(step);
      bool whole = step && (size == n || size == idxMin(c, n, idxSub(c, extent, begin)));
      bool enough = step && (count == idxCeilDiv(c, extent, n) || idxSub(c, idxMul(c, count, n), extent)->lo >= 0);
      if (!whole || !enough) continue;
      used.push_back(dim);
      covered = true;
      break;
    }
    if (!covered) return false;
  }
  // The other dims of the grid would store the same once more, or nothing.
  return llvm::all_of(grid, [&](auto &g) { return llvm::is_contained(used, g.first) || g.second->constIndex() == 1; });
}

void Scheduler::custom(UOpRef n, const llvm::DenseMap<UOpRef, Place> &destinations) {
  std::vector<UOpRef> args;
  for (UOpRef s : n->tensors()) {
    if (!placeOf(s)) return fail("internal error: an operand of custom has no place");
    args.push_back(leaf(s->dtype, s->shape, *placeOf(s)));
    shared.insert(placeOf(s)->buffer);
  }
  SmallVector<llvm::StringRef, 4> names;
  n->str.split(names, ',');
  std::vector<std::pair<UOpRef, UOpRef>> grid;
  for (auto [name, extent] : llvm::zip_equal(names, n->indices()))
    grid.push_back({b.dim(name, 0, std::max<int64_t>(0, extent->hi - 1)), closeIndex(extent)});
  std::vector<const Place *> wanted(n->fns[0]->src.size());
  for (auto &[value, to] : destinations)
    if (value->op == Op::Proj && value->src[0] == n) wanted[value->ints[0]] = &to;
  std::string why;
  SmallVector<UOpRef, 4> plain = Straight(b, why).run(n->fns[0]->src, {});
  if (!why.empty()) return fail(why);
  std::vector<Place> out;
  for (UOpRef r : inlined(c.make(Op::Func, plain, n->fns[0]->ints), args)) {
    for (UOpRef x : topoSort(r))
      if (has(x->op, Control) || x->op == Op::Extent || x->op == Op::Compact)
        return fail(llvm::Twine("custom: ") + info(x->op).mnemonic +
                    " in a kernel is not compiled yet; the evaluator runs it");
    std::vector<UOpRef> allocated = bound(r->shape);
    Layout layout = Layout::rowMajor(r->rank());
    const Place *own = wanted[out.size()];
    bool direct = own && own->layout == layout && own->allocated == allocated &&
                  routine->buffers[own->buffer].kind == BufferKind::Output;
    Place to{direct ? own->buffer : slotBuffer(r->dtype, allocated, layout), layout, allocated};
    SmallVector<UOpRef, 4> shape, ones(r->rank(), c.index(1));
    for (UOpRef d : r->shape) shape.push_back(closeIndex(d));
    if (!coversAll(c, r, grid)) {
      KernelSpec fill;
      UOpRef value = c.literal(r->dtype, uint64_t(r->ints[0]));
      fill.outputs.push_back({b.expand(b.reshape(value, ones), shape), layout, allocated});
      emit(LaunchInstr{{{nullptr, nullptr, kernelNumber(std::move(fill))}}, {to.buffer}});
    }
    KernelSpec spec;
    std::vector<uint32_t> buffers;
    llvm::DenseMap<UOpRef, UOpRef> closed;
    spec.outputs.push_back({close(r, spec, buffers, closed, r), layout, allocated});
    spec.grid = grid;
    buffers.push_back(to.buffer);
    emit(LaunchInstr{{{nullptr, nullptr, kernelNumber(std::move(spec))}}, buffers});
    out.push_back(std::move(to));
  }
  results.set(n, out);
}
