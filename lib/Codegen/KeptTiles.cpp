//===- KeptTiles.cpp: what a program of a user's kernel keeps ----------------===//
// Takes:    the tile that a program stores, as a graph over tiles.
// Gives:    which tiles are computed once and kept in fast memory, since several elements or several passes read them,
//           and along which axis their lanes run.
// Keeps:    bits: a value that is kept is the value that would be computed again.
// Does not: know which axes an element shares with its reader: along those nothing is kept (Value.cpp).
#include "KeptTiles.h"
#include "Value.h"
#include "astra/IR/Contract.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/View.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace astra;
using llvm::SmallVector;

static constexpr unsigned dear = 8; // more than storing and loading an element costs

static bool moves(UOpRef n) {
  switch (n->op) {
  case Op::Reshape:
  case Op::Permute:
  case Op::Expand:
  case Op::Flip:
  case Op::Shrink:
  case Op::SliceAt:
  case Op::Pad:
  case Op::Detach:
  case Op::Tap: return true;
  default: return false;
  }
}

/// Operations for an element, those that are computed with it; not what all of a row share.
static llvm::DenseMap<UOpRef, unsigned> costs(llvm::ArrayRef<UOpRef> order) {
  constexpr unsigned most = 1000;
  llvm::DenseMap<UOpRef, unsigned> cost;
  for (UOpRef n : order) {
    unsigned k = 0;
    bool ofRow = n->op == Op::Expand && n->src[0]->shape.back()->constIndex() == 1;
    if (n->op == Op::Div || n->op == Op::Sqrt)
      k = 8;
    else if (n->ntensors && !moves(n))
      k = has(n->op, Elementwise) ? 1 : 64;
    for (UOpRef s : n->tensors()) k += ofRow ? 0 : cost.lookup(s);
    cost[n] = std::min(k, most);
  }
  return cost;
}

/// Whether an axis is repeated before another that has several elements: neighbours in memory are computed again.
static bool repeatsRows(UOpRef expand) {
  bool inner = false;
  for (unsigned a = expand->rank(); a-- > 0;) {
    UOpRef from = expand->src[0]->shape[a];
    if (from != expand->shape[a] && inner) return true;
    inner |= from->constIndex() != 1;
  }
  return false;
}

/// Whether elements along an axis are neighbours in memory, or one, as far as one can say.
static bool areNeighbours(const KernelSpec &spec, UOpRef x, unsigned axis) {
  AxisOfView of = axisBehind(x, axis);
  if (of.axis < 0 || of.base->ntensors) return true;
  const Placed *p = spec.input(of.base);
  if (!p || !p->layout.isPermuted()) return of.axis + 1 == int(of.base->rank());
  return !p->layout.dims.empty() && p->layout.dims.back().axis == of.axis;
}

/// Whether lines of memory that a sum over an axis reads meet in the same few places of a cache of 4 KiB a way, while
/// other elements along the lanes' axis are read.
static bool meetInCache(const KernelSpec &spec, UOpRef x, unsigned axis) {
  constexpr int64_t way = 4096, ways = 8;
  AxisOfView of = axisBehind(x, axis);
  const Placed *p = spec.input(of.base);
  if (of.axis < 0 || !p || !p->layout.isRowMajor()) return false;
  int64_t bytes = byteSize(of.base->dtype);
  for (UOpRef d : llvm::ArrayRef(p->allocated).drop_front(of.axis + 1)) {
    auto n = d->constIndex();
    if (!n || __builtin_mul_overflow(bytes, *n, &bytes)) return false;
  }
  return bytes && x->shape[axis]->hi > ways * (way / std::gcd(bytes, way));
}

static bool alongLast(UOpRef reduce) {
  ReduceSpec s = llvm::cantFail(decodeReduce(reduce->ints));
  return s.axes.size() == 1 && s.axes[0] + 1 == int64_t(reduce->src[0]->rank()) && s.order != ReduceOrder::Chain;
}

/// The greatest power of two up to `most` that divides an extent.
static unsigned dividing(UOpRef extent, unsigned most) {
  auto n = extent->constIndex();
  if (!n || *n < 1) return 1;
  return std::min<uint64_t>(llvm::bit_floor(most), uint64_t(*n) & -uint64_t(*n));
}

/// Reductions that are computed with a tile's elements.
struct Reductions {
  bool alongLast = true; // lanes may run along what each reduces
  bool shared = true;    // the tile's own lanes share each one's value
  int64_t longest = 1;   // of the last axes of what is reduced
  bool products = false;
};
static Reductions reductionsOf(UOpRef root, const llvm::DenseMap<UOpRef, TileLanes> &kept) {
  SmallVector<std::pair<UOpRef, bool>, 16> open{{root, true}}; // whether the lanes are along its last axis
  llvm::DenseSet<std::pair<UOpRef, int>> seen;
  Reductions all;
  while (!open.empty()) {
    auto [n, lanes] = open.pop_back_val();
    if (n->isIndex() || !seen.insert({n, lanes}).second || (n != root && kept.contains(n))) continue;
    bool below = lanes;
    all.products |= n->op == Op::Contract;
    if (n->op == Op::Reduce) {
      all.alongLast &= alongLast(n);
      all.shared &= !lanes;
      all.longest = std::max(all.longest, n->src[0]->shape.back()->hi);
      below = true;
    } else if (n->op == Op::Permute) {
      if (lanes && n->ints.back() + 1 != int64_t(n->rank())) all.alongLast = false; // they run along another axis
    } else if (n->op == Op::Expand)
      below &= n->src[0]->shape.back()->constIndex() != 1;
    else if (n->op == Op::Reshape) {
      Shape to = n->shape, from = n->src[0]->shape;
      if (to.size() == from.size() + 1 && to.back()->constIndex() == 1 && to.drop_back() == from) below = false;
      if (from.empty()) below = false;
      bool keepsLast =
          from.size() <= to.size() || (!to.empty() && from.back() == to.back() && to.back()->constIndex() != 1);
      if (lanes && !keepsLast) all.alongLast = false; // lanes may run along another axis than the last
    }
    for (UOpRef s : n->tensors()) open.push_back({s, below && s->rank() > 0});
  }
  return all;
}

bool astra::keepsInStep(UOpRef loop, const llvm::DenseMap<UOpRef, TileLanes> &kept) {
  UOpRef r = loop->indices()[0];
  SmallVector<UOpRef, 16> open(loop->tensors().begin() + 1, loop->tensors().end());
  llvm::DenseSet<UOpRef> seen;
  while (!open.empty()) {
    UOpRef x = open.pop_back_val();
    if (x->isIndex() || !seen.insert(x).second || !dependsOn(x, r)) continue;
    auto it = kept.find(x);
    if (it != kept.end() && it->second.step) continue; // of all steps
    if (it != kept.end()) return true;
    open.append(x->tensors().begin(), x->tensors().end());
  }
  return false;
}

TileLanes astra::lanesOfTile(UOpRef root, const llvm::DenseMap<UOpRef, TileLanes> &kept, const TileSizes &sizes) {
  int64_t n = root->rank() ? std::max<int64_t>(root->shape.back()->hi, 1) : 1;
  auto lanesFor = [&](int64_t n) -> unsigned {
    return sizes.all ? sizes.lanes : std::min<uint64_t>(sizes.lanes, llvm::PowerOf2Ceil(n));
  };
  Reductions inside = reductionsOf(root, kept);
  TileLanes how{-1, inside.alongLast && !inside.shared ? 1 : lanesFor(n),
                inside.alongLast ? lanesFor(inside.longest) : 0};
  if (inside.products && root->rank() > 1) {
    how.copyAxis = int(root->rank()) - 2;
    UOpRef wide = root->shape.back();
    if (how.lanes == sizes.lanes && dividing(wide, how.lanes * sizes.vectors) == how.lanes * sizes.vectors)
      how.vectors = sizes.vectors;
    how.copies = dividing(root->shape[how.copyAxis], how.vectors > 1 ? sizes.rows : sizes.alone);
  }
  return how;
}

/// What steps of several loops have, of loops of one length: it is kept for all steps. So the scores of an attention,
/// whose greatest one loop looks for before another adds up their exponentials, are computed once.
static void keepForAllSteps(Context &c, llvm::ArrayRef<UOpRef> order, const llvm::DenseMap<UOpRef, unsigned> &cost,
                            llvm::DenseMap<UOpRef, TileLanes> &kept) {
  struct Loop {
    UOpRef range = nullptr, any = nullptr;
    SmallVector<UOpRef, 4> values;
    llvm::DenseMap<UOpRef, UOpRef> ofAny; // nodes of a step as a step of any such loop has them
  };
  constexpr int64_t anyAxis = int64_t(1) << 40; // a number that no range of a kernel has
  SmallVector<Loop, 4> loops;
  llvm::DenseSet<UOpRef> ranges;
  for (UOpRef n : order) {
    if (n->op != Op::Fold || n->indices().size() != 1) continue;
    UOpRef r = n->indices()[0];
    if (ranges.insert(r).second) loops.emplace_back().range = r;
    Loop &l = *llvm::find_if(loops, [&](const Loop &l) { return l.range == r; });
    l.values.append(n->tensors().begin() + 1, n->tensors().end());
  }
  if (loops.size() < 2) return;
  llvm::DenseMap<UOpRef, unsigned> have; // how many loops
  for (Loop &l : loops) {
    l.any = c.make(Op::Range, {l.range->src[0]}, {anyAxis, int64_t(RangeKind::Fold)});
    l.ofAny = withIndices(c, l.values, {l.range}, {l.any});
    for (auto [x, any] : l.ofAny)
      if (x != any) ++have[any];
  }
  for (Loop &l : loops) {
    SmallVector<UOpRef, 16> open(l.values.rbegin(), l.values.rend());
    llvm::DenseSet<UOpRef> seen;
    while (!open.empty()) {
      UOpRef x = open.pop_back_val(), any = l.ofAny.lookup(x);
      if (x->isIndex() || x == any || !seen.insert(x).second) continue;
      std::vector<UOpRef> below = topoSort(x);
      bool alone = llvm::none_of(below, [&](UOpRef n) { return n != l.range && ranges.contains(n); });
      if (have.lookup(any) < 2 || cost.lookup(x) <= dear || moves(x) || !alone) {
        for (UOpRef s : llvm::reverse(x->tensors())) open.push_back(s);
        continue;
      }
      for (UOpRef n : below)
        if (auto it = kept.find(n); it != kept.end() && n != x && (it->second.axis >= 0 || n->op != Op::Contract)) {
          TileLanes how = it->second; // before the map grows
          kept.try_emplace(l.ofAny.lookup(n), how);
        }
      kept[x] = {.ofAnyStep = any, .anyStep = l.any, .step = l.range};
    }
  }
}

llvm::DenseMap<UOpRef, TileLanes> astra::keptTiles(Context &c, const KernelSpec &spec, UOpRef root,
                                                   const TileSizes &sizes) {
  std::vector<UOpRef> order = topoSort(root);
  llvm::DenseMap<UOpRef, unsigned> cost = costs(order);
  // Which passes read a node: one number, or `several`.
  constexpr unsigned none = 0, several = ~0u;
  unsigned passes = 1;
  llvm::DenseMap<UOpRef, unsigned> readBy{{root, passes}};
  auto read = [&](UOpRef s, unsigned pass) {
    unsigned &by = readBy[s];
    by = by == none || by == pass ? pass : several;
  };
  llvm::DenseMap<UOpRef, TileLanes> kept;
  llvm::DenseMap<UOpRef, unsigned> loops;                        // passes by the range of a loop
  llvm::DenseSet<unsigned> ofReductions;                         // passes
  llvm::DenseMap<UOpRef, llvm::SmallSetVector<UOpRef, 2>> steps; // ranges of the loops in whose steps a node is read
  for (UOpRef n : llvm::reverse(order)) {
    unsigned by = readBy.lookup(n);
    if (by == none || n->isIndex()) continue;
    auto one = [](UOpRef d) { return d->constIndex() == 1; };
    // A product that a reduction reads: its rows are computed together.
    if (n->op == Op::Contract && ofReductions.contains(by) && sizes.rows > 1) by = several;
    // What is one for all steps of a loop.
    if (n->op == Op::Cumulate) by = several; // each element is made of those before
    llvm::SmallSetVector<UOpRef, 2> within = steps.lookup(n);
    if (cost[n] > dear && within.remove_if([&](UOpRef r) { return !dependsOn(n, r); })) by = several;
    for (auto [i, s] : llvm::enumerate(n->tensors())) {
      steps[s].insert(within.begin(), within.end());
      if (n->op == Op::Fold && i) steps[s].insert(n->indices()[0]);
    }
    if (by == several && cost[n] > dear && !moves(n) && !llvm::all_of(n->shape, one))
      kept.try_emplace(n), by = ++passes;
    auto readAll = [&](unsigned pass) {
      for (UOpRef s : n->tensors()) read(s, pass);
    };
    switch (n->op) {
    case Op::Expand: readAll(repeatsRows(n) ? several : by); break;
    case Op::Reduce:
      ofReductions.insert(++passes);
      readAll(passes);
      break;
    case Op::Contract: {
      readAll(several);
      ContractSpec product = llvm::cantFail(decodeContract(n->ints)); // what lanes would gather is turned once
      auto readByRows = [&](unsigned rows) {
        return sizes.rows > 1 && n->rank() > 1 && n->shape[n->rank() - 2]->hi >= int64_t(rows);
      };
      for (auto [x, forms] : {std::pair(n->src[0], product.a), {n->src[1], product.b}})
        for (auto [axis, f] : llvm::enumerate(forms))
          if (f.isLabel() && f.terms[0].first + 1 == product.kept) {
            bool turned = !areNeighbours(spec, x, axis), meets = false;
            for (unsigned other = 0; other < x->rank(); ++other) meets |= other != axis && meetInCache(spec, x, other);
            bool again = meets && readByRows(4 * sizes.alone); // read again by many rows
            // What is computed for each few rows, as codes times their scale (64 x 512 x 512 by tiles of 16 x 64 for
            // x86-64-v3: 499 and 409 us).
            again |= !sizes.all && cost[x] > 1 && readByRows(4 * sizes.rows);
            if (!turned && !again) continue;
            TileLanes &how = kept[x] = {int(axis)};
            for (unsigned other = 0; turned && other < x->rank(); ++other)
              if (other != axis && areNeighbours(spec, x, other)) how.copyAxis = int(other);
          }
      break;
    }
    case Op::Fold: {
      read(n->src[0], by);
      unsigned &own = loops[n->indices()[0]]; // values of several folds are computed in one loop
      if (!own) own = ++passes;
      for (UOpRef s : n->tensors().drop_front()) read(s, own);
      break;
    }
    case Op::Shrink:
    case Op::SliceAt:
    case Op::Pad:
    case Op::Flip: readAll(by == several ? by : ++passes); break; // at other points
    default: readAll(moves(n) || has(n->op, Elementwise) ? by : several);
    }
  }
  // What a step of a loop keeps would be computed again for each element that the loop adds up: these rest from step to
  // step.
  keepForAllSteps(c, order, cost, kept);
  for (UOpRef n : order)
    if (n->op == Op::Fold && !kept.contains(n) && keepsInStep(n, kept)) kept[n] = {};
  for (auto &[n, how] : kept) {
    if (how.axis < 0) {
      TileLanes own = lanesOfTile(how.step ? how.ofAnyStep : n, kept, sizes); // one for all loops that have it
      own.ofAnyStep = how.ofAnyStep, own.anyStep = how.anyStep, own.step = how.step;
      how = own;
      continue;
    }
    int64_t length = std::max<int64_t>(n->shape[how.axis]->hi, 1); // what is turned: squares
    how.lanes = sizes.all ? sizes.lanes : std::min<uint64_t>(sizes.lanes, llvm::PowerOf2Ceil(length));
    if (how.copyAxis >= 0) how.copies = sizes.rows > 1 ? dividing(n->shape[how.copyAxis], how.lanes) : 1;
  }
  return kept;
}
