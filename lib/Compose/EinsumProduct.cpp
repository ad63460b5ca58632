//===- EinsumProduct.cpp: the contraction of two labelled operands ---------===//
// Takes:    two operands, of which tensor networks have many axes of extent 2.
// Gives:    labels that are stored together as one; an operand is permuted before where its labels are so scattered
//           that a kernel would have short rows.
// Keeps:    bits: permutations and merged labels change none (see mergeReduced).
#include "EinsumProduct.h"
#include "astra/IR/Contract.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

namespace astra::compose {

namespace {

/// By who has it: both operands and the result, the first and the result, the second and the result, both operands.
enum Group : unsigned { Batch, Rows, Columns, Summed, groups };

class Product {
public:
  Product(Composer &b, const Labelled &x, const Labelled &y, const EinsumLabels &kept) : b(b), x(x), y(y), kept(kept) {}
  Labelled build(const EinsumLabels *last);

private:
  Composer &b;
  Labelled x, y;
  EinsumLabels kept;

  bool isKept(unsigned l) const { return llvm::is_contained(kept, l); }
  Group groupOf(unsigned l) const {
    bool inX = llvm::is_contained(x.labels, l), inY = llvm::is_contained(y.labels, l);
    return !isKept(l) ? Summed : inX && inY ? Batch : inX ? Rows : Columns;
  }
  EinsumLabels of(const EinsumLabels &labels, llvm::ArrayRef<Group> wanted) const {
    EinsumLabels some;
    for (unsigned l : labels)
      if (llvm::is_contained(wanted, groupOf(l))) some.push_back(l);
    return some;
  }
  UOpRef extentOf(unsigned l) const {
    const Labelled &o = llvm::is_contained(x.labels, l) ? x : y;
    return o.value->shape[llvm::find(o.labels, l) - o.labels.begin()];
  }
  int64_t lengthOf(llvm::ArrayRef<unsigned> labels) const {
    int64_t n = 1;
    for (unsigned l : labels) n = std::min<int64_t>(n * std::clamp<int64_t>(extentOf(l)->hi, 1, 1 << 20), 1 << 30);
    return n;
  }

  /// Labels that become one, in the order of the result and behind it the summed ones.
  using Runs = std::vector<EinsumLabels>;
  Runs runsOf(const EinsumLabels &result) const;
  void mergeReduced(Runs &runs) const;
  bool hasShortRows(const Runs &runs) const;
  bool isWorthMatrices(const Runs &runs) const;
  void permuteForMatrices();
  Labelled contracted(const Runs &runs, const EinsumLabels &result);
  UOpRef merged(const Labelled &o, const Runs &runs, llvm::SmallVectorImpl<AffineForm> &forms) const;
};

/// Whether m is stored right behind l in each list that has one of the two.
bool areNeighbours(unsigned l, unsigned m, llvm::ArrayRef<const EinsumLabels *> lists) {
  return llvm::all_of(lists, [&](const EinsumLabels *list) {
    auto at = llvm::find(*list, l);
    if (at == list->end()) return !llvm::is_contained(*list, m);
    return at + 1 != list->end() && at[1] == m;
  });
}

Product::Runs Product::runsOf(const EinsumLabels &result) const {
  EinsumLabels summed = of(x.labels, {Summed});
  llvm::sort(summed);
  Runs runs;
  for (auto [i, l] : llvm::enumerate(result)) {
    bool joins = i && groupOf(result[i - 1]) == groupOf(l) && extentOf(l)->isConst() &&
                 extentOf(result[i - 1])->isConst() && areNeighbours(result[i - 1], l, {&x.labels, &y.labels});
    if (!joins) runs.emplace_back();
    runs.back().push_back(l);
  }
  for (unsigned l : summed) runs.push_back({l});
  mergeReduced(runs);
  return runs;
}

/// Reduced labels become one where all of both are in one block of chain512: in a block points are visited in row-major
/// order.
void Product::mergeReduced(Runs &runs) const {
  constexpr int64_t innermostBlock = 512;
  size_t begin = 0;
  while (begin < runs.size() && groupOf(runs[begin][0]) != Summed) ++begin;
  for (size_t i = runs.size(); i-- > begin + 1;) {
    if (!areNeighbours(runs[i - 1].back(), runs[i].front(), {&x.labels, &y.labels})) continue;
    llvm::SmallVector<int64_t, 8> lengths;
    bool known = true;
    for (size_t k = begin; k < runs.size(); ++k) {
      known &= llvm::all_of(runs[k], [&](unsigned l) { return extentOf(l)->isConst(); });
      lengths.push_back(lengthOf(runs[k]));
    }
    if (!known) return;
    auto blocks = chain512Blocks(lengths);
    size_t at = i - begin;
    bool whole = blocks[at] == lengths[at] && blocks[at - 1] == lengths[at - 1];
    bool isInnermost = i + 1 == runs.size();
    if (!whole || (isInnermost && lengths[at] * lengths[at - 1] > innermostBlock)) continue;
    runs[i - 1].append(runs[i].begin(), runs[i].end());
    runs.erase(runs.begin() + i);
  }
}

/// Whether a group of many elements has no long run.
bool Product::hasShortRows(const Runs &runs) const {
  constexpr int64_t longRun = 16;
  int64_t longest[groups] = {1, 1, 1, 1}, all[groups] = {1, 1, 1, 1};
  unsigned count[groups] = {};
  for (const EinsumLabels &run : runs) {
    Group g = groupOf(run[0]);
    ++count[g];
    longest[g] = std::max(longest[g], lengthOf(run));
    all[g] = std::min<int64_t>(all[g] * lengthOf(run), 1 << 30);
  }
  return llvm::any_of(llvm::seq<unsigned>(groups),
                      [&](unsigned g) { return count[g] > 1 && longest[g] < std::min(longRun, all[g]); });
}

/// Whether labels of a group are apart in an operand, and each element is in so many products that a permutation, of a
/// few passes over memory, costs less than what a kernel loses (mera_open of strided-rs's suite: 2.6 s of 20 GFLOP).
bool Product::isWorthMatrices(const Runs &runs) const {
  constexpr int64_t manyProducts = 16; // of an element
  auto elements = [&](llvm::ArrayRef<unsigned> labels) {
    Cost n = 1;
    for (unsigned l : labels) n = costProduct(n, Cost(*extentOf(l)->constIndex()));
    return n;
  };
  EinsumLabels all = x.labels, summed = of(x.labels, {Summed}), columns = of(y.labels, {Columns});
  all.append(columns.begin(), columns.end());
  if (!llvm::all_of(all, [&](unsigned l) { return extentOf(l)->isConst(); })) return false;
  unsigned count[groups] = {};
  for (const EinsumLabels &run : runs) ++count[groupOf(run[0])];
  llvm::sort(summed);
  bool isApart = count[Rows] > 1 || count[Columns] > 1;
  for (size_t i = 1; i < summed.size(); ++i)
    isApart |= !areNeighbours(summed[i - 1], summed[i], {&x.labels, &y.labels});
  return isApart && elements(all) / manyProducts >= elements(x.labels) + elements(y.labels) + elements(kept);
}

/// Permutes what is not stored as matrices, in batches: the groups one behind another, each in one order.
void Product::permuteForMatrices() {
  const bool xIsLarger = lengthOf(x.labels) >= lengthOf(y.labels);
  EinsumLabels batch = of((xIsLarger ? x : y).labels, {Batch}), summed = of(x.labels, {Summed});
  llvm::sort(summed);
  auto arrange = [&](Labelled &o, Group own, bool ownLast) {
    EinsumLabels alone = of(o.labels, {own});
    Runs parts{batch, alone, summed};
    // Stored as it should be: each part is one piece, the parts in any order.
    bool ready = llvm::all_of(parts, [&](const EinsumLabels &part) {
      return part.empty() || llvm::all_of(llvm::seq<size_t>(part.size() - 1),
                                          [&](size_t i) { return areNeighbours(part[i], part[i + 1], {&o.labels}); });
    });
    if (ready) return;
    EinsumLabels order = batch;
    for (const EinsumLabels *part : {ownLast ? &summed : &alone, ownLast ? &alone : &summed})
      order.append(part->begin(), part->end());
    o = reordered(b, o, order);
  };
  int64_t rows = lengthOf(of(x.labels, {Rows})), columns = lengthOf(of(y.labels, {Columns}));
  bool lanesAreRows = columns < 8 && rows > columns;
  arrange(x, Rows, lanesAreRows);
  arrange(y, Columns, !lanesAreRows);
}

/// The operand with an axis for each run; its index lists.
UOpRef Product::merged(const Labelled &o, const Runs &runs, llvm::SmallVectorImpl<AffineForm> &forms) const {
  Dims dims;
  for (size_t axis = 0; axis < o.labels.size();) {
    size_t run = llvm::find_if(runs, [&](const EinsumLabels &r) { return r[0] == o.labels[axis]; }) - runs.begin();
    UOpRef extent = o.value->shape[axis];
    for (size_t i = 1; i < runs[run].size(); ++i)
      extent = b.idx(*extent->constIndex() * *o.value->shape[axis + i]->constIndex());
    dims.push_back(extent);
    forms.push_back(label(int64_t(run)));
    axis += runs[run].size();
  }
  return dims.size() == o.value->rank() ? o.value : b.reshape(o.value, dims);
}

Labelled Product::contracted(const Runs &runs, const EinsumLabels &result) {
  ContractSpec spec;
  Dims extents, shape;
  for (const EinsumLabels &run : runs) {
    UOpRef extent = extentOf(run[0]);
    for (unsigned l : llvm::drop_begin(run)) extent = b.idx(*extent->constIndex() * *extentOf(l)->constIndex());
    extents.push_back(extent);
    ++(groupOf(run[0]) == Summed ? spec.reduced : spec.kept);
  }
  for (unsigned l : result) shape.push_back(extentOf(l));
  UOpRef mx = merged(x, runs, spec.a), my = merged(y, runs, spec.b), z;
  if (!mx || !my) return {};
  if (spec.reduced) {
    z = b.contract(spec, mx, my, extents);
  } else { // elementwise
    auto spread = [&](UOpRef o, llvm::ArrayRef<AffineForm> forms) {
      Ints order;
      Dims dims(extents.size(), b.idx(1));
      for (size_t run = 0; run < extents.size(); ++run)
        for (auto [axis, f] : llvm::enumerate(forms))
          if (f.terms[0].first == int64_t(run)) order.push_back(axis), dims[run] = extents[run];
      return b.reshape(b.permute(o, order), dims);
    };
    z = b.bin(mx->dtype == DType::Bool ? Op::And : Op::Mul, spread(mx, spec.a), spread(my, spec.b));
  }
  return {result, z && shape.size() != z->rank() ? b.reshape(z, shape) : z};
}

Labelled Product::build(const EinsumLabels *last) {
  // The result as the larger operand is stored, with what the other one has before or behind.
  auto natural = [&] {
    EinsumLabels order;
    bool xIsLarger = lengthOf(x.labels) >= lengthOf(y.labels);
    EinsumLabels parts[] = {xIsLarger ? of(x.labels, {Batch, Rows}) : of(x.labels, {Rows}),
                            xIsLarger ? of(y.labels, {Columns}) : of(y.labels, {Batch, Columns})};
    for (const EinsumLabels &part : parts) order.append(part.begin(), part.end());
    return order;
  };
  if (last)
    if (Runs runs = runsOf(*last); !hasShortRows(runs) && !isWorthMatrices(runs)) return contracted(runs, *last);
  EinsumLabels order = natural();
  Runs runs = runsOf(order);
  if (hasShortRows(runs) || isWorthMatrices(runs)) {
    permuteForMatrices();
    EinsumLabels batch = of((lengthOf(x.labels) >= lengthOf(y.labels) ? x : y).labels, {Batch});
    EinsumLabels rows = of(x.labels, {Rows}), columns = of(y.labels, {Columns});
    order = batch;
    bool lanesAreRows = lengthOf(columns) < 8 && lengthOf(rows) > lengthOf(columns);
    for (const EinsumLabels *part : {lanesAreRows ? &columns : &rows, lanesAreRows ? &rows : &columns})
      order.append(part->begin(), part->end());
    runs = runsOf(order);
  }
  if (!x.value || !y.value) return {};
  Labelled z = contracted(runs, order);
  return last ? reordered(b, z, *last) : z;
}

} // namespace

Labelled reordered(Composer &b, const Labelled &x, const EinsumLabels &order) {
  if (!x.value || x.labels == order) return x;
  // Axes that stay together are one, so that a permutation of many short axes is one of few.
  Dims merged, shape;
  llvm::SmallVector<unsigned, 6> firsts;
  for (auto [axis, l] : llvm::enumerate(x.labels)) {
    UOpRef extent = x.value->shape[axis];
    bool joins =
        axis && extent->isConst() && merged.back()->isConst() && areNeighbours(x.labels[axis - 1], l, {&order});
    if (joins) {
      merged.back() = b.idx(*merged.back()->constIndex() * *extent->constIndex());
    } else {
      merged.push_back(extent);
      firsts.push_back(l);
    }
  }
  Ints perm;
  for (unsigned l : order) {
    shape.push_back(x.value->shape[llvm::find(x.labels, l) - x.labels.begin()]);
    if (auto at = llvm::find(firsts, l); at != firsts.end()) perm.push_back(at - firsts.begin());
  }
  UOpRef z = merged.size() == x.value->rank() ? x.value : b.reshape(x.value, merged);
  z = b.permute(z, perm);
  return {order, merged.size() == shape.size() ? z : b.reshape(z, shape)};
}

Labelled einsumProduct(Composer &b, const Labelled &x, const Labelled &y, const EinsumLabels &kept,
                       const EinsumLabels *last) {
  if (!x.value || !y.value) return {};
  return Product(b, x, y, kept).build(last);
}

} // namespace astra::compose
