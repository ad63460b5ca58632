//===- EmitRing.cpp: shared arrays that asynchronous copies fill -----------===//
// Takes:    a loop that begins by filling shared arrays and then uses them (Barriers.h), and of how many places a ring
//           has.
// Gives:    the loop in which each turn uses one place of the ring while copies fill the others: before the loop the
//           first turns' copies begin; a turn waits for its own, then for all threads, and begins those of the turn
//           that is to read from the place which the turn before has left.
// Keeps:    bits: what arrives is what would be put. A value that is no load is put by its thread, at the same place at
//           the same time.
// Does not: know what the loop computes.
//
// Each turn closes one group of copies, an empty one where no turn is left to copy for: so a turn waits for all groups
// but the last `stages - 2`, whatever its number. One barrier a turn serves both ends: what the copies of all threads
// brought is there, and nobody still reads the place that is filled next.
#include "KernelEmitter.h"

using namespace astra;
using namespace astra::gpu;

/// The lane values of a constant, or null.
static UOpRef constantOf(UOpRef x) {
  if (x->op == Op::Splat) x = x->src[0];
  return x->op == Op::Const ? x : nullptr;
}

KernelEmitter::Copy KernelEmitter::copyOf(UOpRef stage, size_t begin, size_t end) const {
  Copy copy;
  UOpRef x = stage->src[0];
  for (; x->op == Op::Select && constantOf(x->src[2]); x = x->src[1]) copy.unless.push_back({x->src[0], x->src[2]});
  bool asItIs = x->op == Op::Load && x->dtype == stage->dtype && x->dtype != DType::Bool &&
                llvm::any_of(llvm::ArrayRef(k.linear.insts).slice(begin, end - begin),
                             [&](const Inst &i) { return i.kind == InstKind::Define && i.uop == x; });
  if (asItIs) copy.load = x;
  return copy;
}

void KernelEmitter::copy(UOpRef stage, const Copy &from, const Inst &inst) {
  UOpRef x = from.load, index = x->indices()[0];
  size_t number = arrayOf(stage);
  const StageArray &a = k.linear.stages[number];
  int64_t slot = x->src[0]->ints[0], step = a.strides.empty() ? 1 : a.strides.back();
  unsigned lanes = lanesOf(stage), bytes = byteSize(x->dtype);
  mlir::Type element = s.memoryType(x->dtype);
  StagePlace place = stagePlace(number, stage->indices(), lanes);
  const Lanes gate = x->ntensors > 1 ? value(x->src[1]) : Lanes();
  llvm::SmallVector<std::pair<Lanes, Lanes>, 2> unless;
  bool zero = true, uniform = gate.empty() || llvm::all_equal(gate);
  for (auto [condition, literal] : from.unless) {
    Lanes when = value(condition), other = value(literal); // each before the next: the values move
    unless.push_back({std::move(when), std::move(other)});
    uniform &= llvm::all_equal(unless.back().first);
    zero &= constantOf(literal)->ints[0] == 0;
  }
  unsigned chunk = std::min<uint64_t>({lanes, 16 / bytes, alignmentOf(index), step == 1 ? place.alignment : 1});
  if (!uniform) chunk = 1;
  V first = this->index(index, 64);
  for (unsigned l = 0; l < lanes; l += chunk) {
    V to = at(arrays[number], element, place.element, place.plus + l * step), condition;
    auto also = [&](V c) { condition = condition ? s.band(condition, c) : c; };
    if (!gate.empty()) also(gate[l]);
    for (auto &[c, literal] : unless) also(c[c.size() == 1 ? 0 : l]);
    if (inst.speculative)
      if (V in = inside(index, l, chunk, k.kernel->buffers[slot].elements)) also(in);
    auto begin = [&](V taken) {
      V source = at(buffers[slot], element, first, l);
      if (chunk * bytes >= 4) return machine.copyAsync(to, source, chunk * bytes, taken);
      storeLanes(to, element, bytes, loadLanes(source, element, bytes * chunk, chunk)); // too few for a copy
    };
    if (zero && condition && chunk * bytes >= 4) {
      begin(s.select(condition, s.integer(32, chunk * bytes), s.integer(32, 0)));
      continue;
    }
    if (!condition) {
      begin(nullptr);
      continue;
    }
    mlir::Block *yes = newBlock(), *no = newBlock(), *join = newBlock();
    branch(condition, yes, no);
    enter(yes);
    begin(nullptr);
    jump(join);
    enter(no);
    Lanes other;
    for (unsigned e = l; e < l + chunk; ++e) {
      V out = s.literal(x->dtype, 0); // where the load's gate is shut
      for (auto &[c, literal] : llvm::reverse(unless))
        out = s.select(c[c.size() == 1 ? 0 : e], out, literal[literal.size() == 1 ? 0 : e]);
      other.push_back(out);
    }
    storeLanes(to, element, bytes, other);
    jump(join);
    enter(join);
  }
}

/// Begins to fill place number `place` with what turn number `turn` reads, where there is such a turn.
void KernelEmitter::issue(size_t loop, V turn, V isTurn, V place) {
  const std::vector<Inst> &insts = k.linear.insts;
  size_t end = barriers.ahead[loop];
  llvm::DenseMap<UOpRef, const Inst *> loads;
  llvm::DenseSet<UOpRef> skipped; // what only copies take, instead of them
  for (size_t n = loop + 1; n < end; ++n) {
    const Inst &i = insts[n];
    if (i.kind == InstKind::Define && i.uop->op == Op::Load) loads[i.uop] = &i;
    if (i.kind != InstKind::StagePut || !copyOf(i.uop, loop + 1, end).load) continue;
    for (UOpRef x = i.uop->src[0];; x = x->src[1]) {
      skipped.insert(x);
      if (x->op == Op::Load) break;
    }
  }
  for (size_t n = end; n-- > loop + 1;) {
    const Inst &i = insts[n];
    bool puts = i.kind == InstKind::StagePut && !copyOf(i.uop, loop + 1, end).load;
    if (puts || (i.kind == InstKind::Define && !skipped.contains(i.uop)))
      for (UOpRef x : i.uop->src) skipped.erase(x);
  }
  UOpRef range = insts[loop].uop;
  guarded(isTurn, {}, [&]() -> Lanes {
    values[range] = {s.resize(turn, widthOf(range), true)};
    fill(
        loop + 1, end, [&](UOpRef x) { return !skipped.contains(x); },
        [&](UOpRef stage) {
          size_t number = arrayOf(stage);
          slots[number] = s.mul(place, s.integer(32, slotElements(number)));
          Copy from = copyOf(stage, loop + 1, end);
          if (from.load)
            guarded(putsAlone(stage), {}, [&]() -> Lanes { return copy(stage, from, *loads[from.load]), Lanes(); });
          else
            put(stage, value(stage->src[0]));
        });
    return {};
  });
  machine.closeCopies();
}

void KernelEmitter::beginRing(size_t loop, V count) {
  for (unsigned turn = 0; turn + 1 < k.stages; ++turn) {
    V number = s.like(count, turn);
    issue(loop, number, s.cmp(ICmp::slt, number, count), s.integer(32, turn));
  }
}

/// The beginning of a turn, which uses place number `place`; gives that of the next turn.
V KernelEmitter::turnRing(size_t loop, V turn, V count, V place) {
  uint64_t before = k.stages - 1;
  machine.awaitCopies(k.stages - 2);
  machine.barrier();
  V left = s.select(s.cmp(ICmp::eq, place, 0), s.integer(32, before), s.sub(place, uint64_t(1)));
  issue(loop, s.add(turn, before), s.cmp(ICmp::slt, turn, s.sub(count, before)), left);
  for (size_t n = loop + 1; n < barriers.ahead[loop]; ++n)
    if (k.linear.insts[n].kind == InstKind::StagePut) {
      size_t number = arrayOf(k.linear.insts[n].uop);
      slots[number] = s.mul(place, s.integer(32, slotElements(number)));
    }
  return s.select(s.cmp(ICmp::eq, place, before), s.integer(32, 0), s.add(place, uint64_t(1)));
}
