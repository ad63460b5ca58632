//===- Tiles.cpp: the order of a register tile -----------------------------===//
// Takes:    instructions in order.
// Gives:    the same with each product tile (a straight piece of a loop in which every x of a set is multiplied with
//           every y of another and added to an accumulator of its own) arranged: the smaller set stays in registers,
//           the values of the larger pass by one after another. Where accumulators, the smaller set and one passing
//           value still need more registers than there are, the values that have none are read again at each use: an
//           fma of x86 takes one operand from memory. Prefetches come first: the C compiler moves no load across one,
//           so that values loaded before it would wait for it in registers that a narrow target has not. Loads of a
//           step whose place is found by division each have a pointer of their own, made before the loop: LLVM's loop
//           strength reduction, which is to find them, gives up where there are many, and computes each address in each
//           step (a 3x3 convolution of 128 channels, stride 2, for x86-64-v3: 5.9 and 2.7 ms).
//           Where a tile's sums begin anew in each step of a loop around it, and those of that loop want registers too,
//           these are told to be spilled: left to itself LLVM keeps some of them, and has one of the tile's come
//           and go in each step instead (768 steps and erf for x86-64-v3: 13.8 and 6.9 ms).
// Keeps:    dependences; bits, as no accumulator's own order changes.
#include "Tiles.h"
#include "../Value.h"
#include "Names.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using namespace astra::cemit;

namespace {

bool isProduct(const Inst &i) { // of one step
  return i.kind == InstKind::AccUpdate && valuesOf(Combine(i.uop->ints[0])) == 2 && i.uop->ints[1] == 2;
}

class Segment {
public:
  Segment(llvm::ArrayRef<Inst> insts, const Target &t) : insts(insts), target(t) {}
  bool arrange(Arranged &out); // whether it is a tile
  /// What an innermost loop over this range, whose body the segment is, reads at places found by division.
  llvm::SmallVector<RowRead> rowsOf(UOpRef range) const;
  /// Whether so many registers hold the tile's sums twice, and what a step needs beside them.
  bool haveRoomForTwo() const { return (2 * update.size() + y.size() + 1) * units() <= target.vectorRegisters; }

private:
  bool isTile();
  unsigned units() const;
  void emit(size_t i, Arranged &out);
  void chooseReread(Arranged &out);

  llvm::ArrayRef<Inst> insts;
  const Target &target;
  llvm::SetVector<UOpRef> x, y;
  llvm::DenseMap<std::pair<UOpRef, UOpRef>, size_t> update;
  llvm::DenseMap<UOpRef, size_t> definition;
  std::vector<bool> emitted;
};

bool Segment::isTile() {
  size_t count = 0;
  for (size_t i = 0; i < insts.size(); ++i) {
    if (insts[i].kind == InstKind::Define) definition[insts[i].uop] = i;
    if (!isProduct(insts[i])) continue;
    UOpRef a = insts[i].uop->src[1], b = insts[i].uop->src[2];
    x.insert(a), y.insert(b);
    update[{a, b}] = i;
    ++count;
  }
  return count >= 4 && x.size() * y.size() == count && update.size() == count;
}

/// Instruction i after the definitions of the segment that it needs.
void Segment::emit(size_t i, Arranged &out) {
  std::vector<std::pair<size_t, size_t>> stack{{i, 0}};
  emitted[i] = true;
  while (!stack.empty()) {
    auto &[at, next] = stack.back();
    llvm::ArrayRef<UOpRef> src = insts[at].uop->src;
    if (next == src.size()) {
      out.insts.push_back(insts[at]);
      stack.pop_back();
      continue;
    }
    auto it = definition.find(src[next++]);
    if (it == definition.end() || emitted[it->second]) continue;
    emitted[it->second] = true;
    stack.push_back({it->second, 0});
  }
}

/// Registers of a sum.
unsigned Segment::units() const {
  UOpRef acc = insts[update.begin()->second].uop;
  return llvm::divideCeil(lanesOf(acc) * byteSize(acc->dtype), target.vectorBytes);
}

/// `y` stays, `x` passes.
void Segment::chooseReread(Arranged &out) {
  size_t needed = (update.size() + y.size() + 1) * units();
  if (target.arch != Arch::X86_64 || units() != 1 || needed <= target.vectorRegisters) return;
  size_t excess = needed - target.vectorRegisters;
  if (excess * 2 > y.size()) return; // too large a tile for that
  for (size_t k = 0; k < excess; ++k) {
    UOpRef v = y[y.size() - 1 - k];
    bool plain = (v->op == Op::Load || v->op == Op::At) && v->ntensors == 1;
    auto it = definition.find(v);
    if (!plain || it == definition.end() || insts[it->second].speculative) return;
    out.again.insert(v);
  }
}

llvm::SmallVector<RowRead> Segment::rowsOf(UOpRef range) const {
  llvm::SmallVector<RowRead> found;
  auto divides = [](UOpRef x) { return x->op == Op::FloorDiv || x->op == Op::Mod; };
  for (const Inst &i : insts) {
    UOpRef x = i.uop;
    if (i.kind != InstKind::Define || x->op != Op::Load || x->ntensors != 1 || i.speculative) continue;
    RowRead row{x, {}};
    bool plain = true, divided = false;
    for (const IndexTerm &t : terms(x->indices()[0])) {
      if (t.atoms.empty())
        row.constant = t.coefficient;
      else if (t.atoms.size() == 1 && t.atoms[0] == range)
        row.stride = t.coefficient;
      else
        row.place.push_back(t);
      for (UOpRef a : t.atoms) {
        divided |= divides(a);
        plain &= a == range ? t.atoms.size() == 1 : !dependsOn(a, range);
      }
    }
    if (plain && divided) found.push_back(std::move(row));
  }
  return found;
}

bool Segment::arrange(Arranged &out) {
  emitted.assign(insts.size(), false);
  bool tile = isTile();
  if (tile) {
    bool swapped = x.size() < y.size();
    if (swapped) std::swap(x, y);
    chooseReread(out);
    for (size_t i = 0; i < insts.size(); ++i)
      if (insts[i].kind == InstKind::Prefetch) emit(i, out);
    for (UOpRef a : x)
      for (UOpRef b : y) emit(update[swapped ? std::pair(b, a) : std::pair(a, b)], out);
  }
  for (size_t i = 0; i < insts.size(); ++i)
    if (!emitted[i]) out.insts.push_back(insts[i]);
  return tile;
}

} // namespace

/// The loop around an innermost one that begins the sums inside it, by its number; 0 if none does.
static size_t beginsSums(llvm::ArrayRef<Inst> insts, size_t innermost) {
  bool begins = false;
  for (size_t i = innermost; i-- > 0 && insts[i].kind != InstKind::LoopEnd;) {
    begins |= insts[i].kind == InstKind::AccInit;
    if (insts[i].kind == InstKind::LoopBegin)
      return begins && RangeKind(insts[i].uop->ints[1]) == RangeKind::Fold ? i : 0;
  }
  return 0;
}

Arranged cemit::arrangeTiles(const Linear &l, const Target &t) {
  Arranged out;
  auto isLoop = [](const Inst &i) { return i.kind == InstKind::LoopBegin || i.kind == InstKind::LoopEnd; };
  llvm::ArrayRef<Inst> rest = l.insts;
  while (!rest.empty()) {
    size_t n = 0;
    while (n < rest.size() && !isLoop(rest[n])) ++n;
    if (n) {
      Segment segment(rest.take_front(n), t);
      bool innermost = n < rest.size() && rest[n].kind == InstKind::LoopEnd && !out.insts.empty() &&
                       out.insts.back().kind == InstKind::LoopBegin;
      size_t begin = out.insts.size() - 1;
      if (segment.arrange(out) && innermost) {
        if (auto rows = segment.rowsOf(out.insts[begin].uop); !rows.empty()) out.rows[begin] = std::move(rows);
        if (size_t around = beginsSums(out.insts, begin); around && !segment.haveRoomForTwo())
          out.spilling.insert(around);
      }
    }
    if (n < rest.size()) out.insts.push_back(rest[n++]);
    rest = rest.drop_front(n);
  }
  return out;
}
