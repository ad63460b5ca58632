//===- Shared.cpp: blocks of operands that threads share -------------------===//
// Takes:    a block of `kc` steps of a sum by so many points, and how any element of it is made.
// Gives:    an element of it, read from a stage that closes the digits of the threads: each thread makes some of the
//           block's elements, in vectors, so that neighbouring threads read neighbouring memory.
//           Also loads of a tile that is turned.
// Keeps:    bits: a stage has the values that would be made again.
//
// In fast memory a block lies step by step, the points of a step side by side. An operand whose neighbours in memory
// are points goes there as it comes. One whose neighbours are steps is turned: each vector is written across, and the
// steps lie some vectors further apart than they are long, so that no more than two threads of a warp that write
// together meet in one bank. What is copied asynchronously cannot be written across: it stays as it is, point by point,
// the steps of a point side by side, so that a thread reads several steps of a point together, if it has the registers;
// else it is turned element by element. So do the lines of a matrix unit whose instruction reads them by ldmatrix; the
// emitter lets the parts of 16 bytes of a line change places (KernelEmitter::swizzled).
#include "Value.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::SmallVector;

uint64_t astra::alignmentOf(UOpRef x) {
  auto low = [](int64_t v) { return v ? std::min<uint64_t>(uint64_t(v) & -uint64_t(v), 64) : 64; };
  uint64_t all = 64;
  for (const IndexTerm &t : terms(x)) {
    uint64_t one = low(t.coefficient);
    for (UOpRef a : t.atoms) { // a remainder or the lesser of two is as aligned as both are
      if (a->op != Op::Mod && a->op != Op::Min && a->op != Op::Max) continue;
      uint64_t both = 64;
      for (UOpRef s : a->src)
        for (const IndexTerm &u : terms(s)) both = std::min(both, low(u.coefficient));
      one = std::min<uint64_t>(one * both, 64);
    }
    all = std::min(all, one);
  }
  return all;
}

/// Whether every load of `element` whose address depends on `along` goes by neighbours there, `lanes` of them from a
/// multiple of that on. Without one there is nothing to read.
static bool readsAlong(Context &c, UOpRef element, UOpRef along, unsigned lanes) {
  for (UOpRef n : topoSort(element)) {
    if (n->op != Op::Load) continue;
    UOpRef at = n->src.back();
    if (!dependsOn(at, along)) continue;
    for (const IndexTerm &t : terms(at))
      if (t.atoms.size() == 1 && t.atoms[0] == along ? t.coefficient != 1 : llvm::any_of(t.atoms, [&](UOpRef a) {
            return dependsOn(a, along);
          }))
        return false;
    if (alignmentOf(idxSubstitute(c, at, {along}, {c.index(0)})) < lanes) return false;
  }
  return true;
}

/// Of 32 threads that write together, `inner` neighbours `step` bytes apart and others behind each other: most words of
/// 4 bytes that lie in one of 32 banks.
static unsigned wordsInOneBank(int64_t inner, int64_t outer, int64_t step, int64_t bytes) {
  unsigned banks[32] = {}, most = 0;
  for (int64_t t = 0; t < std::min<int64_t>(32, inner * outer); ++t)
    for (int64_t b = 0; b < bytes; b += 4) {
      int64_t place = t % inner * step + t / inner * bytes + b;
      if (bytes >= 4 || place % 4 == 0) most = std::max(most, ++banks[place / 4 % 32]);
    }
  return most;
}

/// How far apart the steps of an operand lie that is turned: by multiples of vectors, so that points are read as such,
/// or of less where too many threads that put together would meet.
static int64_t turnedRow(int64_t points, int64_t bytes, llvm::function_ref<unsigned(int64_t)> meet) {
  for (int64_t step : {std::max<int64_t>(16 / bytes, 1), int64_t(2), int64_t(1)})
    for (int64_t row = points + step; row <= points + 8 * step; row += step)
      if (meet(row) <= 2) return row;
  return points + 1;
}

UOpRef ValueAt::fromBlock(int64_t kc, int64_t points, UOpRef k, UOpRef own, unsigned bytes, MakeElement make) {
  struct Way {
    bool alongPoints;
    int64_t lanes;
  };
  SmallVector<Way, 8> ways;
  constexpr int64_t large = 128; // results of a thread, whose registers hold four steps of its points too
  const bool staysAsItIs =
      shared.lines || (shared.copied && !spec.contract->unit &&
                       shared.side[0].points * shared.side[1].points >= large * int64_t(shared.threads));
  for (int64_t lanes = std::max<int64_t>(16 / bytes, 1); lanes >= 1; lanes /= 2)
    for (bool alongPoints : {true, false})
      if ((alongPoints ? points : kc) % lanes == 0 && (alongPoints || lanes == 1 || !shared.copied || staysAsItIs))
        ways.push_back({alongPoints, lanes});
  ways.push_back({true, 1}); // neither goes by neighbours
  const int64_t threads = shared.threads;
  for (auto [number, way] : llvm::enumerate(ways)) {
    auto [alongPoints, lanes] = way;
    int64_t inner = (alongPoints ? points : kc) / lanes, outer = alongPoints ? kc : points; // in vectors
    int64_t tInner = std::min(inner, threads), tOuter = std::min(outer, threads / tInner);
    const bool asItIs = !alongPoints && staysAsItIs && (lanes > 1 || shared.lines);
    int64_t row = asItIs ? kc : points;
    if (!alongPoints && !asItIs)
      row = turnedRow(points, bytes,
                      [&](int64_t row) { return wordsInOneBank(tInner, tOuter, lanes * row * bytes, bytes); });
    int64_t innerStep = alongPoints || asItIs ? 1 : row, outerStep = alongPoints || asItIs ? row : 1; // in memory
    SmallVector<UOpRef, 5> ranges, at;
    SmallVector<int64_t, 5> strides;
    auto add = [&](UOpRef r, UOpRef index, int64_t stride) {
      if (r->isConst()) return;
      ranges.push_back(r), at.push_back(index), strides.push_back(stride);
    };
    auto loop = [&](int64_t n) { return n == 1 ? c.index(0) : range(c.index(n), RangeKind::Fold); };
    UOpRef jo = loop(outer / tOuter), dO = digit(tOuter, tInner), ji = loop(inner / tInner), di = digit(tInner, 1);
    UOpRef l = lanes > 1 ? range(c.index(lanes), RangeKind::Vector) : c.index(0);
    // Lanes count as elements of the range before theirs, which must go by vectors.
    bool alone = lanes > 1 && ji->isConst() && di->isConst();
    if (alone && ((jo->isConst() && dO->isConst()) || outerStep != lanes * innerStep)) continue;
    UOpRef i = alongPoints ? own : k, o = alongPoints ? k : own;
    auto quotient = [&](UOpRef x, int64_t d, bool whole) {
      return whole ? x : simplifyIndex(c, idxDiv(c, x, c.index(d)));
    };
    auto rest = [&](UOpRef x, int64_t d, bool whole) { return whole ? x : simplifyIndex(c, idxMod(c, x, c.index(d))); };
    UOpRef v = quotient(i, lanes, lanes == 1);
    add(jo, quotient(o, tOuter, false), tOuter * outerStep);
    add(dO, rest(o, tOuter, jo->isConst()), outerStep);
    add(ji, quotient(v, tInner, false), tInner * lanes * innerStep);
    add(di, rest(v, tInner, ji->isConst()), lanes * innerStep);
    add(l, rest(i, lanes, false), innerStep);
    auto sum = [&](UOpRef a, UOpRef b, int64_t times) { return idxAdd(c, idxMul(c, a, c.index(times)), b); };
    UOpRef first = sum(sum(ji, di, tInner), c.index(0), lanes), each = idxAdd(c, first, l), other = sum(jo, dO, tOuter);
    UOpRef element = alongPoints ? make(other, each, other, first) : make(each, other, first, other);
    UOpRef along = lanes > 1 ? l : di;
    if (number + 1 < ways.size() && !along->isConst() && !readsAlong(c, element, along, lanes)) continue;
    SmallVector<UOpRef, 6> source{element};
    source.append(ranges.begin(), ranges.end());
    SmallVector<UOpRef, 6> read{c.make(Op::Stage, source, strides)};
    read.append(at.begin(), at.end());
    return c.make(Op::At, read, {1});
  }
  llvm_unreachable("the last way is taken");
}

/// The load from an array that the threads fill along its neighbours, or null where it has none across or is not known
/// before other loads.
UOpRef ValueAt::transposedLoad(UOpRef buffer, UOpRef gate, UOpRef at) {
  bool apart = false, neighbours = false;
  for (const IndexTerm &t : terms(at)) {
    bool alone = t.atoms.size() == 1;
    if (alone && t.atoms[0] == transpose.across)
      neighbours = t.coefficient == 1;
    else if (llvm::any_of(t.atoms, [&](UOpRef a) { return dependsOn(a, transpose.across); }))
      return nullptr;
    else if (llvm::any_of(t.atoms, [&](UOpRef a) { return dependsOn(a, transpose.along); }))
      apart |= !alone || t.atoms[0] != transpose.along || t.coefficient != 1;
  }
  if (!apart || !neighbours) return nullptr;
  std::vector<UOpRef> roots{at};
  if (gate) roots.push_back(gate);
  std::vector<UOpRef> order = topoSort(roots);
  if (llvm::any_of(order, [](UOpRef n) { return n->op == Op::Load || n->op == Op::Extent || n->op == Op::At; }))
    return nullptr;
  UOpRef along = digit(transpose.wide, transpose.high), across = digit(transpose.high, 1);
  llvm::DenseMap<UOpRef, UOpRef> mine; // the gate at the element that a thread reads
  for (UOpRef n : order) {
    if (n->isIndex()) {
      mine[n] = idxSubstitute(c, n, {transpose.along, transpose.across}, {along, across});
      continue;
    }
    SmallVector<UOpRef, 3> src;
    for (UOpRef s : n->src) src.push_back(mine[s]);
    mine[n] = c.withSources(n, src);
  }
  UOpRef x = gate ? c.make(Op::Load, {buffer, mine[gate], mine[at]}, {1}) : c.make(Op::Load, {buffer, mine[at]}, {1});
  int64_t between =
      std::max<int64_t>(32 / transpose.wide, 1); // so that no two of those that read together meet in a bank
  UOpRef stage = c.make(Op::Stage, {x, along, across}, {transpose.high + between, 1});
  return c.make(Op::At, {stage, transpose.along, transpose.across}, {1});
}
