//===- Joint.cpp: a kernel and its followers, some rows at a time -----------===//
// Takes:    a kernel with followers (KernelSpec::followers) and a plan for each.
// Gives:    a kernel whose items are tiles of rows: of each, all that it computes and what the followers do with it.
// Keeps:    bits: a tile's elements are computed as those of the whole are, from the same operands.
#include "Joint.h"
#include "Rows.h"
#include "Value.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Contract.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/View.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

/// The rows that follower number k reads, which the one before it writes.
static UOpRef rowsRead(const KernelSpec &head, size_t k) {
  const Follower &f = head.followers[k];
  return f.spec.inputs[llvm::find(f.buffers, head.inputs.size() + k) - f.buffers.begin()].value;
}

/// The kept labels that run along the axes of the rows but their last; none of a kernel that goes by rows.
static SmallVector<int64_t, 4> rowLabels(const KernelSpec &spec, UOpRef rows, bool writes) {
  SmallVector<int64_t, 4> labels;
  if (spec.rootOp->op != Op::Contract) return labels;
  const ContractSpec &s = *spec.contract;
  for (unsigned axis = 0; axis + 1 < rows->rank(); ++axis)
    labels.push_back(writes ? int64_t(axis) : (spec.rootOp->src[0] == rows ? s.a : s.b)[axis].terms[0].first);
  return labels;
}

/// Up to where a domain lets the rows from `at` on go, of which the last goes farthest; null where it does not say.
static UOpRef endOfRows(Context &c, ArrayRef<AffineForm> domain, ArrayRef<UOpRef> limits, int64_t summed,
                        ArrayRef<int64_t> labels, ArrayRef<UOpRef> at, UOpRef height) {
  llvm::DenseMap<int64_t, UOpRef> places;
  for (auto [label, first] : llvm::zip(labels, at)) places[label] = first;
  places[labels.back()] = idxAdd(c, at.back(), idxSub(c, height, c.index(1)));
  int64_t most = summed;
  for (const AffineForm &f : domain)
    for (auto [label, k] : f.terms) {
      bool goesBack = label == labels.back() && k < 0;
      if (label != summed && (!places.count(label) || goesBack)) return nullptr; // not known of a row, or the other way
      most = std::max(most, label);
    }
  SmallVector<UOpRef, 8> point(most + 1);
  for (auto [label, place] : places)
    if (label <= most) point[label] = place;
  return domain.empty() ? nullptr : domainEnd(c, domain, limits, summed, point);
}

/// How many elements of the rows from `at` on anybody reads: the followers' reductions and the last sum, each of which
/// must have a domain that ends it.
static UOpRef neededColumns(Context &c, const KernelSpec &spec, ArrayRef<UOpRef> at, UOpRef height) {
  constexpr int64_t together = 64;
  UOpRef all = spec.outputs[0].value->shape.back(), end = c.index(0);
  SmallVector<int64_t, 4> axes;
  for (size_t axis = 0; axis < at.size(); ++axis) axes.push_back(int64_t(axis));
  for (size_t k = 0; k < spec.followers.size(); ++k) {
    const KernelSpec &f = spec.followers[k].spec;
    for (UOpRef n : topoSort(f.outputs[0].value)) {
      UOpRef own = nullptr;
      if (n->op == Op::Reduce) {
        ReduceSpec s = llvm::cantFail(decodeReduce(n->ints));
        own = endOfRows(c, s.domain, n->indices(), int64_t(at.size()), axes, at, height);
      } else if (n->op == Op::Contract) {
        ContractSpec s = llvm::cantFail(decodeContract(n->ints));
        UOpRef rows = rowsRead(spec, k);
        int64_t summed = (n->src[0] == rows ? s.a : s.b).back().terms[0].first;
        own = endOfRows(c, s.domain, n->indices().drop_front(s.kept + s.reduced), summed, rowLabels(f, rows, false), at,
                        height);
      } else
        continue;
      if (!own) return all;
      end = idxMax(c, end, own);
    }
  }
  UOpRef vectors = idxMul(c, idxCeilDiv(c, end, c.index(together)), c.index(together)),
         columns = simplifyIndex(c, idxMin(c, all, vectors));
  return columns->hi <= all->hi ? columns : all;
}

llvm::Expected<Joint> astra::joinRows(Context &c, const KernelSpec &spec, ArrayRef<Plan> plans, ArrayRef<UOpRef> dims,
                                      LowerTile lower) {
  Joint joint;
  const size_t count = spec.followers.size(), inputs = spec.inputs.size();
  Shape shape = spec.outputs[0].value->shape;
  ArrayRef<UOpRef> outer = shape.drop_back(2);
  UOpRef rows = shape[shape.size() - 2], most = c.index(plans[0].rowBlock),
         whole = simplifyIndex(c, idxDiv(c, rows, most)),
         rest = simplifyIndex(c, idxSub(c, rows, idxMul(c, whole, most))), all = idxProduct(c, outer);

  // What passes between them, one behind another in a worker's memory.
  std::vector<uint64_t> places;
  uint64_t bytes = 0;
  for (const Placed &p : ArrayRef(spec.outputs).drop_back()) {
    places.push_back(bytes);
    bytes += llvm::alignTo(plans[0].rowBlock * rowBytes(p), 64);
  }
  auto isLocal = [&](uint32_t buffer) { return buffer >= inputs && buffer < inputs + count; };

  llvm::DenseSet<UOpRef> defined;
  /// So many tiles of `height` rows: from row `first` on, one for each point of the outer axes; or one below another.
  auto add = [&](UOpRef tiles, UOpRef first, UOpRef height) -> llvm::Error {
    if (tiles->hi <= 0 || height->hi <= 0) return llvm::Error::success();
    size_t number = joint.regions.size();
    TileRegion region;
    std::string name = "%tile" + std::to_string(number);
    while (llvm::any_of(dims, [&](UOpRef d) { return d->str == name; })) name += "'";
    region.tile = Builder(c).dim(name, 0, tiles->hi - 1);
    region.tiles = tiles;
    region.scratch = bytes;
    SmallVector<UOpRef, 4> extents(outer.begin(), outer.end());
    if (!first) extents.push_back(whole);
    SmallVector<UOpRef, 4> at = unflatten(c, region.tile, extents);
    if (!first)
      at.back() = idxMul(c, at.back(), most);
    else
      at.push_back(first);
    UOpRef columns = neededColumns(c, spec, at, height);
    uint64_t scratch = 0;
    for (size_t k = 0; k <= count; ++k) {
      KernelSpec part = k ? spec.followers[k - 1].spec : spec;
      RowTile tile{at, height, plans[0].rowBlock, columns, k == 0, {}, {}};
      std::vector<TileRegion::Argument> arguments;
      for (uint32_t i = 0; i < part.inputs.size() + part.outputs.size(); ++i) {
        uint32_t buffer = k ? spec.followers[k - 1].buffers[i] : i;
        bool local = isLocal(buffer);
        if (local) tile.local.push_back(i);
        arguments.push_back({local, local ? places[buffer - inputs] : buffer});
      }
      tile.labels = rowLabels(part, k ? rowsRead(spec, k - 1) : spec.outputs[0].value, k == 0);
      auto step = lower(part, plans[k], tile);
      if (!step) return step.takeError();
      scratch = std::max(scratch, step->linear.scratchBytes);
      step->name = spec.name + "_" + std::to_string(number) + "_" + std::to_string(k);
      step->arguments = std::move(arguments);
      region.steps.push_back(std::move(*step));
    }
    joint.linear.scratchBytes = std::max(joint.linear.scratchBytes, bytes + scratch);
    // The loop over these tiles.
    for (UOpRef n : topoSort(tiles))
      if (!n->isConst() && n->op != Op::Dim && defined.insert(n).second)
        joint.linear.insts.push_back({InstKind::Define, n});
    UOpRef range = c.make(Op::Range, {tiles}, {int64_t(number), int64_t(RangeKind::Parallel)});
    for (InstKind kind : {InstKind::LoopBegin, InstKind::Call, InstKind::LoopEnd})
      joint.linear.insts.push_back({kind, range, false, int64_t(number)});
    joint.items = joint.items ? idxAdd(c, joint.items, tiles) : tiles;
    joint.regions.push_back(std::move(region));
    return llvm::Error::success();
  };
  if (auto e = add(simplifyIndex(c, idxMul(c, all, whole)), nullptr, most)) return e;
  if (auto e = add(all, simplifyIndex(c, idxMul(c, whole, most)), rest)) return e;
  if (!joint.items) joint.items = c.index(0);
  return joint;
}
