//===- VerifyPrograms.cpp: no two programs of a kernel store one element ---===//
// Takes:    the kernels of a module whose results are places: boxes that begin somewhere and have extents.
// Gives:    nothing, or two programs and an element that both store, or that neither is shown.
// Keeps:    a proof is one of two. Places tell programs: boxes that meet are of one program, as an axis is a sum of
//           which each number is no less than what the smaller ones reach beside the size of the box (digits of mixed
//           radix), or a quotient and a remainder of one integer are told. Or all programs for all sizes are looked
//           at. A box that the end of an axis cuts, at min(n, x), is at x where it has elements.
// Does not: look at what programs scatter: that is ordered, and by data.
#include "astra/IR/Index.h"
#include "astra/IR/IndexProgram.h"
#include "astra/IR/Verify.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include <optional>

using namespace astra;
using llvm::SmallVector;
using W = __int128;

namespace {
constexpr int64_t mostPoints = int64_t(1) << 20; // programs times corners of their boxes
constexpr int64_t mostCompared = int64_t(1) << 22, sampledOfAxis = 8;

class Programs {
public:
  Programs(UOpRef custom, UOpRef place, size_t result, llvm::ArrayRef<Equation> equations)
      : extents(custom->indices()), place(place), result(result), equations(equations) {
    custom->str.split(names, ',');
    for (auto [begin, extent, size] :
         llvm::zip_equal(place->indices().take_front(place->rank()), place->shape, place->src[0]->shape)) {
      bool cut = begin->is(Op::Min) && llvm::is_contained(begin->src, extent);
      begins.push_back(!cut ? begin : begin->src[begin->src[0] == extent]);
      sizes.push_back(size);
    }
    order = topoSort(begins);
  }

  llvm::Error check() {
    if (llvm::any_of(sizes, [](UOpRef s) { return s->hi <= 0; }) || toldByPlaces()) return llvm::Error::success();
    std::optional<bool> apart;
    std::string why;
    if (findLeaves()) {
      apart = allApart(/*sampled=*/true, why);
      if (apart != false) apart = isFew() ? allApart(/*sampled=*/false, why) : std::nullopt;
    }
    if (apart == true) return llvm::Error::success();
    if (apart == false) return llvm::createStringError("custom: " + why);
    return llvm::createStringError(
        "custom: that no two programs store one element of result " + std::to_string(result) +
        " is not shown: let a place be a sum of dims of the grid times numbers, each no less "
        "than what the smaller ones reach beside the size of the tile");
  }

private:
  std::optional<size_t> axisOf(UOpRef x) const { // of the grid
    auto it = x->is(Op::Dim) ? llvm::find(names, x->str) : names.end();
    return it == names.end() ? std::nullopt : std::optional<size_t>(it - names.begin());
  }
  static bool isArithmetic(UOpRef x) {
    return x->is(Op::Add) || x->is(Op::Mul) || x->is(Op::FloorDiv) || x->is(Op::Mod) || x->is(Op::Min) ||
           x->is(Op::Max);
  }

  // ---- the place tells the program

  /// Marks what has one value in all programs whose boxes meet, as `known` says.
  void mark() {
    for (UOpRef x : order)
      if (x->isConst() || (x->is(Op::Dim) && !axisOf(x)) ||
          (isArithmetic(x) && llvm::all_of(x->src, [&](UOpRef s) { return known.contains(s); })))
        known.insert(x);
  }
  /// Of x it is told what is less than `reach` times `unit`: that tells its atoms where they are digits.
  void tell(UOpRef x, W reach, const IndexTerm &unit) {
    SmallVector<std::pair<W, UOpRef>, 4> open;
    for (IndexTerm &t : terms(x)) {
      if (llvm::all_of(t.atoms, [&](UOpRef a) { return known.contains(a); })) continue;
      std::optional<IndexTerm> part = divideTerm(t, unit);
      if (!part || part->atoms.size() != 1) return;
      open.push_back({part->coefficient < 0 ? -W(part->coefficient) : W(part->coefficient), part->atoms[0]});
    }
    llvm::sort(open, [](auto &a, auto &b) { return a.first < b.first; });
    for (auto [times, atom] : open) {
      if (times < reach) return;
      reach += times * (W(atom->hi) - atom->lo); // times is an int64, and so was the reach: 128 bits hold it
    }
    for (auto [times, atom] : open) known.insert(atom);
  }

  bool toldByPlaces() {
    const IndexTerm one{1, {}};
    llvm::DenseMap<std::pair<UOpRef, UOpRef>, UOpRef> quotients;
    for (UOpRef x : order)
      if (x->is(Op::FloorDiv)) quotients[{x->src[0], x->src[1]}] = x;
    for (size_t before = size_t(-1); before != known.size();) {
      before = known.size();
      mark();
      for (auto [begin, size] : llvm::zip_equal(begins, sizes)) {
        tell(begin, size->hi, one);
        auto unit = terms(size); // n*i of n elements is i of one
        if (unit.size() == 1 && unit[0].coefficient > 0) tell(begin, 1, unit[0]);
      }
      for (UOpRef x : order) {
        if (!x->is(Op::Mod) || !known.contains(x) || !known.contains(x->src[1])) continue;
        UOpRef quotient = quotients.lookup({x->src[0], x->src[1]});
        if (quotient && known.contains(quotient)) tell(x->src[0], 1, one);
      }
    }
    llvm::DenseSet<size_t> told;
    for (UOpRef x : order)
      if (auto axis = axisOf(x); axis && known.contains(x)) told.insert(*axis);
    for (size_t axis = 0; axis < extents.size(); ++axis)
      if (extents[axis]->hi > 1 && !told.contains(axis)) return false;
    return true;
  }

  // ---- all programs for all sizes

  /// The dims that sizes and places are of; false where they are of values that are computed.
  bool findLeaves() {
    SmallVector<UOpRef, 16> of(begins.begin(), begins.end());
    of.append(sizes.begin(), sizes.end());
    of.append(extents.begin(), extents.end());
    for (const Equation &e : equations) of.append({e.left, e.right});
    for (UOpRef x : topoSort(of)) {
      if (x->isConst() || isArithmetic(x) || axisOf(x)) continue;
      if (!x->is(Op::Dim)) return false;
      leaves.push_back(x);
    }
    return true;
  }
  bool varies(size_t axis) const { return !begins[axis]->isConst() || !sizes[axis]->isConst(); }
  bool isFew() const {
    W points = 1;
    for (UOpRef d : leaves)
      if ((points *= W(d->hi) - d->lo + 1) > mostPoints) return false;
    for (UOpRef n : extents)
      if ((points *= std::max<int64_t>(1, n->hi)) > mostPoints) return false;
    for (size_t axis = 0; axis < begins.size(); ++axis)
      if (varies(axis) && (points *= 2) > mostPoints) return false;
    return true;
  }
  /// The values of a dim in lo .. hi that are looked at.
  static SmallVector<int64_t, 8> valuesOf(int64_t lo, int64_t hi, bool sampled, int64_t most) {
    SmallVector<int64_t, 8> out;
    for (int64_t v = lo; v <= hi && (!sampled || v < lo + most); ++v) out.push_back(v);
    if (!out.empty() && out.back() < hi) out.push_back(hi);
    return out;
  }

  using Values = std::vector<SmallVector<int64_t, 8>>;
  /// Calls f with each combination, the last varying fastest, until it gives false.
  template <class F> static void each(const Values &values, F f) {
    SmallVector<size_t, 8> at(values.size(), 0);
    SmallVector<int64_t, 8> now(values.size());
    if (llvm::any_of(values, [](auto &v) { return v.empty(); })) return;
    for (bool more = true; more;) {
      for (size_t i = 0; i < at.size(); ++i) now[i] = values[i][at[i]];
      if (!f(now)) return;
      more = false;
      for (size_t i = at.size(); i-- > 0 && !more;)
        if (++at[i] < values[i].size())
          more = true;
        else
          at[i] = 0;
    }
  }

  struct Box {
    SmallVector<int64_t, 4> program, begin, size;
  };

  /// true: no two boxes of those looked at meet; false: two do, as `why` says; nothing: that cannot be told.
  std::optional<bool> allApart(bool sampled, std::string &why) const {
    SmallVector<IndexProgram, 8> counts, starts, spans;
    for (UOpRef x : extents) counts.emplace_back(x);
    for (UOpRef x : begins) starts.emplace_back(x);
    for (UOpRef x : sizes) spans.emplace_back(x);
    std::optional<bool> apart = true;
    int64_t points = 0;
    Values choices;
    for (UOpRef d : leaves) choices.push_back(valuesOf(d->lo, d->hi, sampled, 3));
    each(choices, [&](llvm::ArrayRef<int64_t> dims) {
      llvm::ArrayRef<int64_t> program;
      auto value = [&](UOpRef x) -> std::optional<int64_t> {
        if (auto axis = axisOf(x)) return *axis < program.size() ? std::optional(program[*axis]) : std::nullopt;
        size_t leaf = llvm::find(leaves, x) - leaves.begin();
        return leaf < dims.size() ? std::optional(dims[leaf]) : std::nullopt;
      };
      for (const Equation &e : equations)
        if (idxEvaluate(e.left, value) != idxEvaluate(e.right, value)) return true;
      Values grid;
      for (const IndexProgram &n : counts) {
        std::optional<int64_t> count = n.at(value);
        if (!count) return true; // the kernel is refused there
        grid.push_back(valuesOf(0, *count - 1, sampled, sampledOfAxis));
      }
      std::vector<Box> boxes;
      each(grid, [&](llvm::ArrayRef<int64_t> now) {
        program = now;
        Box box{SmallVector<int64_t, 4>(now), {}, {}};
        for (auto [start, span, whole] : llvm::zip_equal(starts, spans, place->shape)) {
          std::optional<int64_t> begin = start.at(value), size = span.at(value);
          if (!begin || !size || *size <= 0) return ++points < mostPoints;
          box.begin.push_back(*begin), box.size.push_back(*size);
        }
        boxes.push_back(std::move(box));
        return ++points < mostPoints;
      });
      if (std::optional<bool> here = apartAll(boxes, dims, why); here != true) apart = here;
      return apart != false && points < mostPoints;
    });
    return apart;
  }

  /// Each box is entered into the cells, of the greatest size, that its corners touch; those of one cell are compared.
  std::optional<bool> apartAll(llvm::ArrayRef<Box> boxes, llvm::ArrayRef<int64_t> dims, std::string &why) const {
    SmallVector<size_t, 8> axes;
    SmallVector<int64_t, 8> width;
    for (size_t a = 0; a < begins.size(); ++a) {
      if (!varies(a)) continue;
      axes.push_back(a), width.push_back(1);
      for (const Box &b : boxes) width.back() = std::max(width.back(), b.size[a]);
    }
    std::vector<std::pair<uint64_t, size_t>> cells; // two cells of one number cost comparisons alone
    for (auto [number, b] : llvm::enumerate(boxes))
      for (unsigned corner = 0; corner < 1u << axes.size(); ++corner) {
        uint64_t cell = 0;
        for (auto [i, a] : llvm::enumerate(axes)) {
          int64_t at = corner >> i & 1 ? b.begin[a] + b.size[a] - 1 : b.begin[a];
          cell = (cell + uint64_t(at / width[i]) + 1) * 0x9e3779b97f4a7c15u;
          cell ^= cell >> 29;
        }
        cells.push_back({cell, number});
      }
    llvm::sort(cells);
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
    std::optional<std::pair<size_t, size_t>> found;
    int64_t compared = 0;
    for (size_t i = 0; i < cells.size(); ++i)
      for (size_t k = i + 1; k < cells.size() && cells[k].first == cells[i].first; ++k) {
        if (++compared > mostCompared)
          return found ? (describe(boxes, *found, dims, why), std::optional(false)) : std::nullopt;
        const Box &p = boxes[cells[i].second], &q = boxes[cells[k].second];
        if (!llvm::all_of(axes, [&](size_t a) {
              return p.begin[a] < q.begin[a] + q.size[a] && q.begin[a] < p.begin[a] + p.size[a];
            }))
          continue;
        std::pair<size_t, size_t> pair(cells[i].second, cells[k].second);
        if (!found || pair < *found) found = pair;
        break;
      }
    if (!found) return true;
    describe(boxes, *found, dims, why);
    return false;
  }

  void describe(llvm::ArrayRef<Box> boxes, std::pair<size_t, size_t> pair, llvm::ArrayRef<int64_t> dims,
                std::string &why) const {
    const Box &p = boxes[pair.first], &q = boxes[pair.second];
    auto point = [](llvm::ArrayRef<int64_t> at) {
      std::string s = "(";
      for (size_t i = 0; i < at.size(); ++i) s += (i ? ", " : "") + std::to_string(at[i]);
      return s + ")";
    };
    SmallVector<int64_t, 4> element;
    for (auto [a, b] : llvm::zip_equal(p.begin, q.begin)) element.push_back(std::max(a, b));
    why = "programs " + point(p.program) + " and " + point(q.program) + " both store element " + point(element) +
          " of result " + std::to_string(result);
    for (auto [i, d] : llvm::enumerate(leaves))
      why += (i ? ", " : " where ") + d->str.str() + " = " + std::to_string(dims[i]);
  }

  llvm::ArrayRef<UOpRef> extents; // of the grid
  UOpRef place;
  size_t result;
  llvm::ArrayRef<Equation> equations;
  SmallVector<llvm::StringRef, 4> names;
  SmallVector<UOpRef, 8> begins, sizes; // by axis of the place
  std::vector<UOpRef> order, leaves;
  llvm::DenseSet<UOpRef> known;
};
} // namespace

llvm::Error astra::verifyPrograms(const Module &m) {
  std::vector<UOpRef> roots = m.roots();
  llvm::DenseSet<UOpRef> seen;
  for (size_t at = 0; at < roots.size(); ++at) { // those of entries, then of the functions that are found
    if (at && seen.contains(roots[at])) continue;
    for (UOpRef n : topoSort(at ? llvm::ArrayRef(roots[at]) : llvm::ArrayRef<UOpRef>(roots))) {
      if (!seen.insert(n).second) continue;
      for (UOpRef f : n->fns) roots.insert(roots.end(), f->src.begin(), f->src.end());
      if (n->is(Op::Custom))
        for (auto [result, place] : llvm::enumerate(n->fns[0]->src))
          if (place->is(Op::Place))
            if (auto e = Programs(n, place, result, m.equations).check()) return e;
    }
  }
  return llvm::Error::success();
}
