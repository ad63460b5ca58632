//===- TellPrograms.cpp: places that tell which program stores --------------===//
// Takes:    symbolic integers of dims of the grid, of sizes and of values that a program computes.
// Gives:    what is equal in all programs whose tiles meet, found step by step: where that is every dim of
//           the grid, tiles that meet are of one program.
// Keeps:    a step is one of these. What is computed of known values is known. An axis is a sum of numbers times known
//           values (digits of mixed radix): each value is no less than what the smaller digits reach beside the size of
//           the tile. Quotient and remainder of a known divisor tell what was divided, and a remainder alone does where
//           that is less than the divisor.
// Does not: look at single programs (VerifyPrograms.cpp).
#include "TellPrograms.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::verifier;
using llvm::SmallVector;

static constexpr size_t mostNodes = 4096, mostTerms = 64;
static constexpr unsigned mostSteps = 1 << 14, deepest = 6; // of `most`

bool verifier::isArithmetic(UOpRef x) {
  return x->is(Op::Add) || x->is(Op::Mul) || x->is(Op::FloorDiv) || x->is(Op::Mod) || x->is(Op::Min) || x->is(Op::Max);
}

std::vector<UOpRef> verifier::computed(llvm::ArrayRef<UOpRef> roots) {
  std::vector<UOpRef> order;
  llvm::DenseSet<UOpRef> seen;
  std::vector<std::pair<UOpRef, unsigned>> open; // a node, how many of its operands were visited
  for (UOpRef root : roots)
    for (open.push_back({root, 0}); !open.empty();) {
      auto &[x, next] = open.back();
      if (next == 0 && seen.contains(x)) {
        open.pop_back();
      } else if (isArithmetic(x) && next < x->src.size()) {
        UOpRef operand = x->src[next++];
        if (!seen.contains(operand)) open.push_back({operand, 0});
      } else {
        if (seen.insert(x).second) order.push_back(x);
        open.pop_back();
      }
    }
  return order;
}

std::optional<size_t> TellPrograms::axisOf(UOpRef x) const {
  auto it = x->is(Op::Dim) ? llvm::find(names, x->str) : names.end();
  return it == names.end() ? std::nullopt : std::optional<size_t>(it - names.begin());
}

/// A leaf of a symbolic integer that no dim of the grid has a part in.
bool TellPrograms::isUniform(UOpRef leaf) {
  if (leaf->isConst()) return true;
  if (leaf->is(Op::Dim)) return !axisOf(leaf);
  auto [it, isNew] = uniform.try_emplace(leaf, true);
  if (isNew)
    for (UOpRef x : topoSort({leaf})) // functions may use dims of the grid
      if (axisOf(x) || !x->fns.empty() || x->is(Op::External)) uniform[leaf] = false;
  return uniform[leaf];
}

bool TellPrograms::isFixed(UOpRef x) {
  for (UOpRef n : computed({x})) {
    if (fixed.contains(n)) continue;
    bool is = known.contains(n) ||
              (isArithmetic(n) ? llvm::all_of(n->src, [&](UOpRef s) { return fixed.lookup(s); }) : isUniform(n));
    fixed[n] = is;
  }
  return fixed.lookup(x);
}

void TellPrograms::learn(UOpRef x) {
  if (known.insert(x).second) fixed.clear();
}

/// op of two symbolic integers.
static UOpRef idxMake(Context &c, Op op, UOpRef a, UOpRef b) {
  return op == Op::Add        ? idxAdd(c, a, b)
         : op == Op::Mul      ? idxMul(c, a, b)
         : op == Op::FloorDiv ? idxDiv(c, a, b)
         : op == Op::Mod      ? idxMod(c, a, b)
         : op == Op::Min      ? idxMin(c, a, b)
                              : idxMax(c, a, b);
}

/// What x is at most, in sizes and values that are fixed.
std::optional<UOpRef> TellPrograms::most(UOpRef x, unsigned deep) {
  if (isFixed(x)) return x;
  if (deep == deepest || ++steps > mostSteps) return c.index(x->hi);
  if (auto axis = axisOf(x)) return idxSub(c, extents[*axis], c.index(1));
  if (x->is(Op::Mod) && isFixed(x->src[1])) return idxSub(c, x->src[1], c.index(1));
  if (x->is(Op::FloorDiv) && isFixed(x->src[1])) {
    auto whole = most(x->src[0], deep + 1);
    if (whole && x->src[1]->lo > 0) return idxDiv(c, *whole, x->src[1]);
    return c.index(x->hi);
  }
  if (!x->is(Op::Add) && !x->is(Op::Mul)) return c.index(x->hi);
  UOpRef sum = c.index(0);
  for (const IndexTerm &t : terms(x)) {
    UOpRef product = c.index(t.coefficient);
    for (UOpRef a : t.atoms) {
      if (isFixed(a)) {
        product = idxMul(c, product, a);
        continue;
      }
      if (llvm::any_of(t.atoms, [](UOpRef other) { return other->lo < 0; })) return std::nullopt;
      auto end = t.coefficient > 0 ? most(a, deep + 1) : c.index(a->lo);
      if (!end) return std::nullopt;
      product = idxMul(c, product, *end);
      if (terms(product).size() > mostTerms) return std::nullopt;
    }
    sum = idxAdd(c, sum, product);
    if (terms(sum).size() > mostTerms) return std::nullopt;
  }
  return sum;
}

UOpRef TellPrograms::decided(UOpRef x) {
  llvm::DenseMap<UOpRef, UOpRef> map;
  std::vector<UOpRef> order = computed({x});
  if (order.size() > mostNodes) return x;
  for (UOpRef n : order) {
    if (!isArithmetic(n)) {
      map[n] = n;
      continue;
    }
    UOpRef a = map.lookup(n->src[0]), b = map.lookup(n->src[1]);
    bool isMin = n->is(Op::Min);
    if (isMin || n->is(Op::Max)) {
      auto isNeverAbove = [&](UOpRef low, UOpRef high) {
        auto end = most(idxSub(c, low, high));
        return end && (*end)->hi <= 0;
      };
      map[n] = isNeverAbove(a, b) ? (isMin ? a : b) : isNeverAbove(b, a) ? (isMin ? b : a) : nullptr;
    }
    if (!map.lookup(n)) map[n] = idxMake(c, n->op, a, b);
  }
  return c.takeOverflow() ? x : map.lookup(x);
}

/// Of x it is told what is less than `reach`: that tells the digits of which it is a sum, but for the least ones.
/// symbolic: what a digit is at most may be a size, else it is a number.
void TellPrograms::tell(UOpRef x, UOpRef reach, bool symbolic) {
  SmallVector<std::pair<UOpRef, UOpRef>, 4> digits; // what it is multiplied by, and the digit
  for (const IndexTerm &t : terms(x)) {
    UOpRef digit = nullptr, times = c.index(t.coefficient);
    for (UOpRef a : t.atoms) {
      if (isFixed(a))
        times = idxMul(c, times, a);
      else if (digit)
        return;
      else
        digit = a;
    }
    if (!digit) continue;
    auto it = llvm::find_if(digits, [&](auto &d) { return d.second == digit; });
    if (it == digits.end())
      digits.push_back({times, digit});
    else
      it->first = idxAdd(c, it->first, times);
  }
  for (auto &[times, digit] : digits)
    if (times->hi <= 0) times = idxMul(c, times, c.index(-1));
  llvm::sort(digits, [](auto &a, auto &b) {
    return std::tuple(a.first->lo, a.first->hi, a.second->hash) < std::tuple(b.first->lo, b.first->hi, b.second->hash);
  });
  SmallVector<UOpRef, 4> told; // those above all that are not
  for (auto [times, digit] : digits) {
    auto end = symbolic ? most(digit) : c.index(digit->hi);
    if (times->lo < 0 || !end || !isFixed(*end)) return;
    if (idxSub(c, times, reach)->lo < 0)
      told.clear();
    else
      told.push_back(digit);
    reach = idxAdd(c, reach, idxMul(c, times, idxSub(c, *end, c.index(digit->lo))));
  }
  if (c.takeOverflow()) return;
  for (UOpRef digit : told) learn(digit);
}

bool TellPrograms::told(llvm::ArrayRef<UOpRef> begins, llvm::ArrayRef<UOpRef> sizes) {
  known.clear(), fixed.clear();
  std::vector<UOpRef> order = computed(begins);
  if (order.size() > mostNodes) return false;
  UOpRef one = c.index(1);
  for (size_t before = size_t(-1); before != known.size();) {
    before = known.size();
    for (bool symbolic : {false, true}) {
      for (auto [begin, size] : llvm::zip_equal(begins, sizes)) {
        tell(begin, c.index(size->hi), symbolic);
        if (isFixed(size)) tell(begin, size, symbolic);
      }
      for (UOpRef x : order) {
        if (!x->is(Op::Mod) || !isFixed(x) || x->src[1]->lo <= 0 || !isFixed(x->src[1])) continue;
        UOpRef divided = x->src[0];
        auto end = most(divided);
        bool isBelow = divided->lo >= 0 && end && idxSub(c, x->src[1], *end)->lo > 0;
        bool isTold = isBelow || isFixed(idxDiv(c, divided, x->src[1]));
        if (c.takeOverflow()) return false;
        if (isTold) learn(divided), tell(divided, one, symbolic);
      }
    }
    if (c.takeOverflow()) return false;
  }
  llvm::DenseSet<size_t> axes;
  for (UOpRef x : order)
    if (auto axis = axisOf(x); axis && isFixed(x)) axes.insert(*axis);
  for (size_t axis = 0; axis < extents.size(); ++axis)
    if (extents[axis]->hi > 1 && !axes.contains(axis)) return false;
  return true;
}
