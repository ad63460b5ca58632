//===- VerifyPrograms.cpp: no two programs of a kernel store one element ---===//
// Takes:    the kernels of a module whose results are places, tiles that begin somewhere, or scatters that set.
// Gives:    two programs and an element that both store; of a kernel that neither is shown to do that nor not to, a
//           sentence.
// Keeps:    a proof is one of two: places tell the program (TellPrograms.cpp), or all programs for all sizes were
//           looked at. Of programs that store one element the pair is named that the evaluator finds first for those
//           sizes, unless the grid is so large that some of its programs were looked at alone.
// Does not: look at what scatters combine: that is ordered; at indices that depend on data.
#include "TellPrograms.h"
#include "VerifyNode.h"
#include "astra/IR/Eval.h"
#include "astra/IR/IndexProgram.h"
#include "llvm/ADT/STLExtras.h"
#include <optional>

using namespace astra;
using namespace astra::verifier;
using llvm::SmallVector;
using Point = SmallVector<int64_t, 6>;
using W = __int128;

namespace {
constexpr int64_t mostPoints = int64_t(1) << 22;     // programs for all sizes
constexpr int64_t mostPrograms = int64_t(1) << 20;   // of one grid
constexpr int64_t mostSampled = int64_t(1) << 15;    // programs, where some sizes are looked at
constexpr int64_t mostCompared = int64_t(1) << 23;   // pairs of tiles
constexpr int64_t wholeGrid = 4096, sampledAxis = 8; // of a grid that is larger some programs are sampled
constexpr int64_t mostEvaluated = 1024, mostScattered = int64_t(1) << 20;
constexpr int64_t near[] = {0, 1, 2, 3, 4, 7, 8, 16, 17, 33, 100}; // sizes above the least one that are sampled

std::string pointText(llvm::ArrayRef<int64_t> at) {
  std::string s = "(";
  for (size_t i = 0; i < at.size(); ++i) s += (i ? ", " : "") + std::to_string(at[i]);
  return s + ")";
}

/// Two programs, the later one second, and an element that both store.
struct Meeting {
  Point first, second, element;
};
/// What was looked at: two programs meet, none do, or that cannot be told.
enum class Looked { Apart, Meet, Unknown };

/// Tiles that programs store, in the order of programs.
class Tiles {
public:
  explicit Tiles(size_t rank, size_t axes) : rank(rank), axes(axes), extents(rank, 1), last(rank), first(rank) {}

  void add(llvm::ArrayRef<int64_t> program, llvm::ArrayRef<int64_t> begin, llvm::ArrayRef<int64_t> size) {
    bool isFirst = data.empty();
    llvm::append_range(data, program);
    llvm::append_range(data, begin);
    llvm::append_range(data, size);
    for (size_t a = 0; a < rank; ++a) {
      extents[a] = std::max(extents[a], size[a]);
      first[a] = isFirst ? begin[a] : std::min(first[a], begin[a]);
      last[a] = isFirst ? begin[a] + size[a] : std::max(last[a], begin[a] + size[a]);
    }
  }
  size_t count() const { return data.size() / (axes + 2 * rank); }

  /// Each tile is entered into the cells, of the greatest extents, that its corners touch; those of one cell are
  /// compared.
  Looked look(std::optional<Meeting> &found) const {
    SmallVector<size_t, 8> cut; // axes along which there are several cells
    for (size_t a = 0; a < rank; ++a)
      if (last[a] - first[a] > extents[a]) cut.push_back(a);
    if (cut.size() > 4) cut.resize(4);
    std::vector<std::pair<uint64_t, uint32_t>> cells; // two cells of one number cost comparisons alone
    for (uint32_t tile = 0; tile < count(); ++tile)
      for (unsigned corner = 0; corner < 1u << cut.size(); ++corner) {
        uint64_t cell = 0;
        for (auto [i, a] : llvm::enumerate(cut)) {
          int64_t at = begin(tile)[a] - first[a] + (corner >> i & 1 ? size(tile)[a] - 1 : 0);
          cell = (cell + uint64_t(at / extents[a]) + 1) * 0x9e3779b97f4a7c15u;
          cell ^= cell >> 29;
        }
        cells.push_back({cell, tile});
      }
    llvm::sort(cells);
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
    uint32_t second = count();
    int64_t compared = 0;
    for (size_t from = 0, to; from < cells.size(); from = to) {
      for (to = from; to < cells.size() && cells[to].first == cells[from].first;) ++to;
      for (size_t k = from + 1; k < to && cells[k].second < second; ++k)
        for (size_t i = from; i < k; ++i) {
          if (++compared > mostCompared) return Looked::Unknown;
          if (!meet(cells[i].second, cells[k].second)) continue;
          second = cells[k].second;
          break;
        }
    }
    if (second == count()) return Looked::Apart;
    for (uint32_t tile = 0; tile < second; ++tile) { // of its elements the first that a program before it stores
      if (!meet(tile, second)) continue;
      Point element;
      for (size_t a = 0; a < rank; ++a) element.push_back(std::max(begin(tile)[a], begin(second)[a]));
      if (!found || element < found->element) found = Meeting{program(tile), program(second), element};
    }
    return Looked::Meet;
  }

private:
  const int64_t *at(uint32_t tile) const { return &data[tile * (axes + 2 * rank)]; }
  Point program(uint32_t tile) const { return Point(at(tile), at(tile) + axes); }
  const int64_t *begin(uint32_t tile) const { return at(tile) + axes; }
  const int64_t *size(uint32_t tile) const { return at(tile) + axes + rank; }
  bool meet(uint32_t p, uint32_t q) const {
    for (size_t a = 0; a < rank; ++a)
      if (begin(p)[a] >= begin(q)[a] + size(q)[a] || begin(q)[a] >= begin(p)[a] + size(p)[a]) return false;
    return true;
  }

  size_t rank, axes;
  std::vector<int64_t> data; // of each: the program, where the tile begins, its extents
  Point extents, last, first;
};

/// Values of dims, while combinations of them are looked at.
class Dims {
public:
  void add(UOpRef dim) { slots.try_emplace(dim, slots.size()); }
  bool has(UOpRef dim) const { return slots.contains(dim); }
  void set(UOpRef dim, int64_t v) { values[slots.lookup(dim)] = v; }
  void clear() { values.assign(slots.size(), std::nullopt); }
  std::optional<int64_t> operator()(UOpRef x) const {
    auto it = slots.find(x);
    return it == slots.end() ? std::nullopt : values[it->second];
  }

private:
  llvm::DenseMap<UOpRef, size_t> slots;
  std::vector<std::optional<int64_t>> values;
};

using Choices = std::vector<SmallVector<int64_t, 12>>;
/// Calls f with each combination, the last varying fastest, until it gives false.
template <class F> bool each(const Choices &choices, F f) {
  if (llvm::any_of(choices, [](auto &v) { return v.empty(); })) return true;
  SmallVector<size_t, 8> at(choices.size(), 0);
  Point now(choices.size());
  for (;;) {
    for (size_t i = 0; i < at.size(); ++i) now[i] = choices[i][at[i]];
    if (!f(llvm::ArrayRef<int64_t>(now))) return false;
    size_t i = at.size();
    while (i > 0 && ++at[i - 1] == choices[i - 1].size()) at[--i] = 0;
    if (i == 0) return true;
  }
}

/// One result of one kernel.
class Programs {
public:
  Programs(Context &c, UOpRef custom, size_t result, llvm::ArrayRef<Equation> equations)
      : c(c), grid(custom->indices()), stored(custom->fns[0]->src[result]), result(result) {
    custom->str.split(names, ',');
    for (const Equation &e : equations) conditions.push_back(e);
  }

  /// Whether it is shown; two programs that meet are an error.
  llvm::Expected<bool> shown() {
    bool isPlace = stored->is(Op::Place);
    if (llvm::all_of(grid, [](UOpRef n) { return n->hi <= 1; })) return true;
    if (isPlace && (llvm::any_of(sizes(), [](UOpRef s) { return s->hi <= 0; }) || isTold())) return true;
    if (!findDims(isPlace)) return false;
    Looked looked = look(/*sampled=*/true);
    if (looked != Looked::Meet) looked = isFew() ? look(/*sampled=*/false) : Looked::Unknown;
    if (looked == Looked::Meet) return llvm::createStringError(said);
    return looked == Looked::Apart;
  }

private:
  llvm::ArrayRef<UOpRef> begins() const { return stored->indices().take_front(stored->rank()); }
  llvm::ArrayRef<UOpRef> sizes() const { return stored->src[0]->shape; }

  /// A tile that the end of an axis cuts, at min(n, x), is at x where it has elements.
  bool isTold() {
    TellPrograms places(c, names, grid);
    SmallVector<UOpRef, 6> at;
    for (auto [begin, extent] : llvm::zip_equal(begins(), stored->shape)) {
      UOpRef x = places.decided(begin);
      bool isCut = x->is(Op::Min) && llvm::is_contained(x->src, extent);
      at.push_back(isCut ? places.decided(x->src[x->src[0] == extent]) : x);
    }
    return places.told(at, sizes());
  }

  // ---- programs for sizes

  /// The dims that sizes and stored elements are of; false where these are of values that are computed.
  bool findDims(bool isPlace) {
    std::vector<UOpRef> of(grid.begin(), grid.end());
    llvm::append_range(of, stored->shape);
    if (isPlace) {
      llvm::append_range(of, begins());
      llvm::append_range(of, sizes());
    } else {
      for (UOpRef x : topoSort({stored->src[1]})) { // what it needs are dims and constants alone
        if (!x->fns.empty() || x->is(Op::Arg) || x->is(Op::Param) || x->is(Op::State) || x->is(Op::External) ||
            x->is(Op::Extent) || has(x->op, Function))
          return false;
        if (x->isIndex()) of.push_back(x);
        llvm::append_range(of, x->shape);
      }
    }
    for (bool more = true; more;) {
      more = false;
      for (UOpRef x : computed(of)) {
        if (isArithmetic(x) || x->isConst()) continue;
        if (!x->is(Op::Dim)) return false;
        if (dims.has(x)) continue;
        dims.add(x), more = true;
        if (!llvm::is_contained(names, x->str)) leaves.push_back(x);
      }
      for (const Equation &e : conditions)
        if (llvm::any_of(computed({e.left, e.right}), [&](UOpRef x) { return dims.has(x); }))
          of.push_back(e.left), of.push_back(e.right);
    }
    for (llvm::StringRef name : names) {
      auto order = computed(of);
      auto it = llvm::find_if(order, [&](UOpRef x) { return x->is(Op::Dim) && x->str == name; });
      axes.push_back(it == order.end() ? nullptr : *it);
    }
    return true;
  }
  bool isFew() const {
    W points = 1, programs = 1;
    for (UOpRef n : grid)
      if ((programs *= std::max<int64_t>(1, n->hi)) > mostPrograms) return false;
    for (UOpRef d : leaves)
      if ((points *= W(d->hi) - d->lo + 1) > mostPoints) return false;
    return points * programs <= (stored->is(Op::Place) ? mostPoints : mostEvaluated);
  }
  static SmallVector<int64_t, 12> values(UOpRef dim, bool sampled) {
    SmallVector<int64_t, 12> out;
    if (!sampled || dim->hi - dim->lo <= near[2]) {
      for (int64_t v = dim->lo; v <= dim->hi; ++v) out.push_back(v);
      return out;
    }
    for (int64_t more : near)
      if (more <= dim->hi - dim->lo) out.push_back(dim->lo + more);
    if (out.back() != dim->hi) out.push_back(dim->hi);
    return out;
  }

  Looked look(bool sampled) {
    Choices choices;
    for (UOpRef d : leaves) choices.push_back(values(d, sampled));
    SmallVector<IndexProgram, 8> counts;
    for (UOpRef n : grid) counts.emplace_back(n);
    Looked all = Looked::Apart;
    int64_t points = 0, most = !stored->is(Op::Place) ? mostEvaluated : sampled ? mostSampled : mostPoints;
    bool isAll = each(choices, [&](llvm::ArrayRef<int64_t> sizes) {
      dims.clear();
      for (auto [d, v] : llvm::zip_equal(leaves, sizes)) dims.set(d, v);
      for (const Equation &e : conditions) {
        auto left = idxEvaluate(e.left, dims), right = idxEvaluate(e.right, dims);
        if (left && right && *left != *right) return true;
      }
      Point extents;
      W whole = 1;
      for (const IndexProgram &n : counts) {
        std::optional<int64_t> count = n.at(dims);
        if (!count || *count <= 0) return true; // the kernel is refused there, or has no program
        extents.push_back(*count), whole = std::min<W>(whole * *count, W(1) << 62);
      }
      bool isWhole = sampled ? whole <= std::min(wholeGrid, most) : whole <= mostPrograms;
      if (!isWhole) all = Looked::Unknown;
      Choices programs;
      for (int64_t n : extents) {
        programs.emplace_back();
        for (int64_t v = 0; v < n && (isWhole || v < sampledAxis); ++v) programs.back().push_back(v);
        if (programs.back().back() != n - 1) programs.back().push_back(n - 1);
      }
      std::optional<Meeting> found;
      Looked here = stored->is(Op::Place) ? tiles(programs, points, found) : scattered(programs, points, found);
      if (here != Looked::Apart) all = here;
      if (found) say(*found, sizes);
      return all != Looked::Meet && points < most;
    });
    return all == Looked::Apart && !isAll ? Looked::Unknown : all;
  }

  void setProgram(llvm::ArrayRef<int64_t> program) {
    for (auto [axis, v] : llvm::zip_equal(axes, program))
      if (axis) dims.set(axis, v);
  }

  Looked tiles(const Choices &programs, int64_t &points, std::optional<Meeting> &found) {
    SmallVector<IndexProgram, 8> starts, spans;
    for (UOpRef x : begins()) starts.emplace_back(x);
    for (UOpRef x : sizes()) spans.emplace_back(x);
    Tiles all(starts.size(), axes.size());
    bool isKnown = true;
    each(programs, [&](llvm::ArrayRef<int64_t> program) {
      setProgram(program), ++points;
      Point begin, size;
      for (auto [start, span] : llvm::zip_equal(starts, spans)) {
        std::optional<int64_t> b = start.at(dims), s = span.at(dims);
        constexpr int64_t far = int64_t(1) << 48; // elements of a tensor
        if (!b || !s || *b < 0 || *b > far || *s > far) return isKnown = false;
        begin.push_back(*b), size.push_back(*s);
      }
      if (llvm::all_of(size, [](int64_t s) { return s > 0; })) all.add(program, begin, size);
      return true;
    });
    return isKnown ? all.look(found) : Looked::Unknown;
  }

  /// What the evaluator does, without the values that are stored.
  Looked scattered(const Choices &programs, int64_t &points, std::optional<Meeting> &found) {
    Point shape;
    for (UOpRef n : stored->shape) {
      std::optional<int64_t> v = idxEvaluate(n, dims);
      if (!v) return Looked::Unknown;
      shape.push_back(*v);
    }
    size_t along = stored->ints[0];
    llvm::DenseMap<int64_t, uint32_t> storedBy; // of elements, row-major
    std::vector<Point> ran;
    int64_t elements = 0;
    bool isKnown = each(programs, [&](llvm::ArrayRef<int64_t> program) {
      setProgram(program), ++points;
      ran.push_back(Point(program));
      EvalInputs in;
      for (UOpRef d : leaves) in.dims[d->str.str()] = *dims(d);
      for (auto [name, v] : llvm::zip_equal(names, program)) in.dims[name.str()] = v;
      auto values = evalNodes({stored->src[1]}, in);
      if (!values) {
        llvm::consumeError(values.takeError());
        return false;
      }
      const Tensor &index = values->front();
      if ((elements += index.count()) > mostScattered) return false;
      for (int64_t i = 0; i < index.count() && !found; ++i) {
        int64_t at = 0;
        if (index.dtype == DType::I32) {
          int32_t narrow;
          memcpy(&narrow, &index.bytes[i * sizeof narrow], sizeof narrow), at = narrow;
        } else {
          memcpy(&at, &index.bytes[i * sizeof at], sizeof at);
        }
        if (at < 0 || at >= shape[along]) continue;
        Point element(shape.size());
        for (int64_t left = i, a = int64_t(shape.size()); a-- > 0; left /= index.shape[a])
          element[a] = left % index.shape[a];
        element[along] = at;
        int64_t number = 0;
        for (auto [place, extent] : llvm::zip_equal(element, shape)) number = number * extent + place;
        auto [it, isNew] = storedBy.try_emplace(number, ran.size() - 1);
        if (!isNew && it->second != ran.size() - 1) found = Meeting{ran[it->second], ran.back(), element};
      }
      return !found && points < mostEvaluated;
    });
    return found ? Looked::Meet : isKnown ? Looked::Apart : Looked::Unknown;
  }

  void say(const Meeting &m, llvm::ArrayRef<int64_t> sizes) {
    said = "programs " + pointText(m.first) + " and " + pointText(m.second) + " both store element " +
           pointText(m.element) + " of result " + std::to_string(result);
    for (auto [i, d] : llvm::enumerate(leaves))
      said += (i ? ", " : " where ") + d->str.str() + " = " + std::to_string(sizes[i]);
  }

  Context &c;
  llvm::ArrayRef<UOpRef> grid;
  UOpRef stored;
  size_t result;
  SmallVector<Equation, 4> conditions;
  SmallVector<llvm::StringRef, 4> names;
  SmallVector<UOpRef, 4> axes; // the dims of the grid that are used, by axis
  std::vector<UOpRef> leaves;  // other dims
  Dims dims;
  std::string said;
};
} // namespace

llvm::Expected<std::vector<std::string>> astra::verifyPrograms(const Module &m) {
  std::vector<std::string> unshown;
  std::vector<UOpRef> roots = m.roots();
  llvm::DenseSet<UOpRef> seen;
  std::vector<UOpRef> next = roots;
  while (!next.empty()) { // those of entries, then of the functions that are found
    std::vector<UOpRef> functions;
    for (UOpRef n : topoSort(next)) {
      if (!seen.insert(n).second) continue;
      for (UOpRef f : n->fns) functions.push_back(f);
      if (!n->is(Op::Custom)) continue;
      std::string where = "at " + placeOf(n, &m.origins) + ": ";
      for (auto [result, stored] : llvm::enumerate(n->fns[0]->src)) {
        if (!stored->is(Op::Place) && !(stored->is(Op::Scatter) && stored->ints[1] == int64_t(ScatterKind::Set)))
          continue;
        llvm::Expected<bool> shown = Programs(m.ctx(), n, result, m.equations).shown();
        if (!shown) return llvm::createStringError(where + llvm::toString(shown.takeError()));
        if (!*shown)
          unshown.push_back(where + "that no two programs store one element of result " + std::to_string(result) +
                            " is not shown; where two do, either may stand");
      }
    }
    next = std::move(functions);
  }
  return unshown;
}
