//===- Custom.cpp: kernels that users write --------------------------------===//
// Takes:    a custom op with its operands placed.
// Gives:    for each result a launch whose items are the programs of the grid; before it one that writes the value of
//           elements which no program stores, unless the programs certainly store all.
// Keeps:    a body is one kernel: nothing in it gets a buffer.
// Does not: scatter, or loop otherwise than a kernel can: that was split before (LegalizeCustom.cpp, CustomLoops.cpp).
#include "Legalize.h"
#include "Scheduler.h"
#include "StraightKernel.h"
#include "Thresholds.h"
#include "astra/IR/Contract.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/View.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::SmallVector;

/// Of a dim of a grid: the step with which a place's begin along an axis grows, cut at the axis' end: min(extent, d *
/// step), min(extent - size, d * step) or d * step. 0: it is something else.
static int64_t stepOf(Context &c, UOpRef begin, UOpRef extent, UOpRef size, UOpRef dim) {
  if (begin->op == Op::Min) {
    auto isEnd = [&](UOpRef x) { return x == extent || x == idxSub(c, extent, size); };
    UOpRef other = isEnd(begin->src[0]) ? begin->src[1] : isEnd(begin->src[1]) ? begin->src[0] : nullptr;
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
      int64_t step = llvm::is_contained(used, dim) ? 0 : stepOf(c, begin, extent, size, dim);
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

/// Whether a data dim is read from a tensor, or is another in each step of a loop.
static bool isData(UOpRef x) {
  return llvm::any_of(topoSort(x), [](UOpRef n) {
    return n->op == Op::Range || n->op == Op::State || n->op == Op::Param || n->op == Op::Arg;
  });
}

/// The results of a kernel with sorts by counting: a network's steps are kernels, each of which reads the one before.
static SmallVector<UOpRef, 4> withoutNetworks(Builder &b, llvm::ArrayRef<UOpRef> roots) {
  llvm::DenseMap<UOpRef, UOpRef> now;
  llvm::DenseSet<UOpRef> sorts;
  for (UOpRef n : topoSort(roots))
    for (UOpRef s : n->tensors())
      if (s->op == Op::ArgSort && !readsByMinima(n)) sorts.insert(s);
  for (UOpRef n : topoSort(roots)) {
    SmallVector<UOpRef, 6> src;
    for (UOpRef s : n->src) src.push_back(now.lookup(s));
    UOpRef x = b.c.withSources(n, src);
    now[n] = sorts.contains(n) ? argSortByRank(b, x) : x;
  }
  return llvm::to_vector<4>(llvm::map_range(roots, [&](UOpRef r) { return now.lookup(r); }));
}

/// Of tensors that a kernel reads as operands of products alone, the axis along which their lanes run, where it is one.
static llvm::DenseMap<UOpRef, unsigned> axesOfLanes(llvm::ArrayRef<UOpRef> roots) {
  llvm::DenseMap<UOpRef, unsigned> found;
  llvm::DenseSet<UOpRef> views, other; // between the products and these; tensors that are read otherwise
  std::vector<UOpRef> order = topoSort(roots);
  for (UOpRef n : order) {
    if (n->op != Op::Contract) continue;
    ContractSpec spec = llvm::cantFail(decodeContract(n->ints));
    for (auto [x, forms] : {std::pair(n->src[0], spec.a), {n->src[1], spec.b}})
      for (auto [axis, f] : llvm::enumerate(forms)) {
        if (!f.isLabel() || f.terms[0].first + 1 != spec.kept) continue;
        AxisOfView of = axisBehind(x, axis);
        if (of.axis < 0 || of.base->op != Op::State) continue;
        for (UOpRef v = x; v != of.base; v = v->src[0]) views.insert(v);
        if (!found.try_emplace(of.base, of.axis).second && found[of.base] != unsigned(of.axis)) other.insert(of.base);
      }
  }
  for (UOpRef n : order)
    for (UOpRef s : n->tensors()) {
      bool isView = views.contains(s) || found.contains(s);
      if (!isView || views.contains(n) || n->op == Op::Contract) continue;
      while (views.contains(s)) s = s->src[0];
      other.insert(s);
    }
  for (UOpRef x : other) found.erase(x);
  return found;
}

/// The user's line of a node, before a sentence about it.
static std::string lineOf(const Module &m, UOpRef n) {
  const Origin *o = n ? m.origins.find(n) : nullptr;
  return o && !o->names.empty() ? o->names.front() + ": " : std::string();
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
  StraightKernel plain = straighten(b, n->fns[0]->src);
  if (!plain.why.empty()) return fail(lineOf(m, plain.blocked) + plain.why);
  std::vector<UOpRef> values = inlined(c.make(Op::Func, withoutNetworks(b, plain.roots), n->fns[0]->ints), args);
  // What each program would turn is turned once for all of them.
  if (idxProduct(c, n->indices())->hi >= threshold::turnPrograms)
    for (auto axes = axesOfLanes(values); UOpRef x : args)
      if (auto it = axes.find(x); it != axes.end() && placeOf(x)->layout.isRowMajor() && it->second + 1 != x->rank())
        places.set(x, copied(x, lastAxis(x->rank(), it->second)));
  std::vector<Place> out;
  for (UOpRef r : values) {
    for (UOpRef x : topoSort(r))
      if (has(x->op, Control) || x->op == Op::Compact || (x->op == Op::Extent && isData(x)))
        return fail(lineOf(m, x) + "custom: " + info(x->op).mnemonic + (x->op == Op::Extent ? " of data" : "") +
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
