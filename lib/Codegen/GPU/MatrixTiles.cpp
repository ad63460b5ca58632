//===- MatrixTiles.cpp: steps of matrix units in GPU kernels ---------------===//
// Takes:    folds that are steps of a unit; where a tile's threads share the operands, in arrays of words.
// Gives:    the unit's own instruction, which a warp does together for some rows of each thread and one vector of their
//           columns, where the machine has it and the words lie so (Mma.cpp, multiplyMfma); else a call of a function
//           that is the step in primitives.
// Keeps:    which thread has which sums: a plan's choice. A thread's operands are those of others (UnitInstruction): it
//           reads them from the shared arrays at the places that it knows from its own.
//
// The function is in the module in both cases: it is what the instruction means, for the emulator (Retarget.cpp). A
// back end drops what nobody calls.
#include "KernelEmitter.h"
#include "astra/Numerics/MatrixUnit.h"

using namespace astra;
using namespace astra::gpu;

/// unit.NAME(words, sum), or by the name given.
L::LLVMFuncOp KernelEmitter::unitFunction(Combine kind, std::string name) {
  const UnitStep &step = *unitStepOf(kind);
  auto *instruction = unitInstruction(target, step);
  if (name.empty() && instruction) name = std::string("unit.") + instruction->intrinsic;
  if (name.empty()) name = std::string("unit.") + step.unit->text + "." + textOf(step.inputs, '.');
  if (auto made = module.lookupSymbol<L::LLVMFuncOp>(name)) return made;
  mlir::OpBuilder::InsertionGuard guard(s.b);
  s.b.setInsertionPointToStart(module.getBody());
  llvm::SmallVector<mlir::Type> types(2 * step.words, s.i(32));
  types.push_back(s.f(32));
  auto f = L::LLVMFuncOp::create(s.b, s.loc, name, L::LLVMFunctionType::get(s.f(32), types), L::Linkage::Internal);
  f.setPassthroughAttr(s.b.getArrayAttr({s.b.getStringAttr("alwaysinline")}));
  enter(f.addEntryBlock(s.b));
  Context own;
  Builder b(own);
  llvm::SmallVector<UOpRef, 32> words;
  llvm::DenseMap<UOpRef, V> made;
  for (unsigned w = 0; w < 2 * step.words; ++w) {
    words.push_back(b.arg(w, DType::U32, {}));
    made[words[w]] = f.getArgument(w);
  }
  UOpRef sum = b.arg(words.size(), DType::F32, {}), result = unitStepGraph(b, step, sum, words);
  made[sum] = f.getArgument(words.size());
  for (UOpRef n : topoSort(result)) {
    if (made.contains(n) || n->isIndex()) continue;
    llvm::SmallVector<V, 3> in;
    for (UOpRef x : n->src) in.push_back(made.lookup(x));
    DType from = n->src.empty() ? n->dtype : n->src[0]->dtype;
    made[n] = n->op == Op::Const     ? s.literal(n->dtype, uint64_t(n->ints[0]))
              : n->op == Op::Cast    ? s.cast(from, n->dtype, in[0], n->ints[0])
              : n->op == Op::Bitcast ? s.bitcast(from, n->dtype, in[0])
                                     : s.op(n->op, n->op == Op::Select ? n->dtype : from, in);
  }
  L::ReturnOp::create(s.b, s.loc, made.lookup(result));
  return f;
}

/// Where the word is that `at` reads from a shared array, as one index; null where it is none.
UOpRef KernelEmitter::flatPlace(UOpRef at, unsigned &number) {
  if (at->op != Op::At || !threads.isShared(at->src[0])) return nullptr;
  number = arrayOf(at->src[0]);
  const StageArray &a = k.linear.stages[number];
  UOpRef flat = c.index(0);
  for (auto [i, stride] : llvm::zip_equal(at->indices(), a.strides))
    flat = idxAdd(c, flat, idxMul(c, i, c.index(stride)));
  return simplifyIndex(c, flat);
}

KernelEmitter::UnitWords KernelEmitter::wordsOf(UOpRef fold) const {
  size_t words = unitStepOf(Combine(fold->ints[0]))->words;
  llvm::ArrayRef<UOpRef> a = fold->tensors().slice(1, words), b = fold->tensors().slice(1 + words, words);
  bool rowFirst = lanesOf(fold) > 1 ? a[0]->op == Op::Splat : !(threads.bitsOf(a[0]) & 1);
  return rowFirst ? UnitWords{a, b} : UnitWords{b, a};
}

/// False where a fold's words do not lie at equal distances in shared arrays.
bool KernelEmitter::findPlaces(UOpRef fold, UnitPlaces &out) {
  UnitWords of = wordsOf(fold);
  unsigned lanes = lanesOf(fold);
  if (fold->ints[1] != int64_t(2 * of.row.size()) || k.group != k.threads) return false;
  for (bool isRow : {true, false})
    for (auto [w, word] : llvm::enumerate(isRow ? of.row : of.columns)) {
      if (isRow && lanes > 1 && word->op != Op::Splat) return false;
      UOpRef x = isRow && lanes > 1 ? word->src[0] : word, place = nullptr;
      if (x->op == Op::Stack && x->src.size() == lanes) { // columns that are no neighbours
        unsigned other;
        place = flatPlace(x->src[0], out.array[isRow]);
        for (auto [l, one] : llvm::enumerate(x->src)) {
          UOpRef of = place ? flatPlace(one, other) : nullptr;
          auto distance = of ? simplifyIndex(c, idxSub(c, of, place))->constIndex() : std::nullopt;
          if (l == 1 && distance) out.lane = *distance;
          if (!distance || other != out.array[isRow] || *distance != out.lane * int64_t(l)) return false;
        }
      } else if (lanesOf(x) == (isRow ? 1 : lanes)) {
        place = flatPlace(x, out.array[isRow]);
        if (place && !isRow) out.lane = k.linear.stages[out.array[isRow]].strides.back();
      }
      if (!place) return false;
      if (!w) out.first[isRow] = place;
      auto distance = simplifyIndex(c, idxSub(c, place, out.first[isRow]))->constIndex();
      if (w == 1 && distance) out.apart[isRow] = *distance;
      if (!distance || (w && *distance != out.apart[isRow] * int64_t(w))) return false;
      for (const IndexTerm &t : terms(place))
        for (UOpRef atom : t.atoms)
          if (!atom->isConst() && !values.contains(atom)) return false; // made by the simplification
    }
  return true;
}

V KernelEmitter::valueOf(UOpRef flat) {
  V sum = s.integer(32, 0);
  for (const IndexTerm &t : terms(flat)) {
    V term = s.integer(32, uint64_t(t.coefficient));
    for (UOpRef atom : t.atoms) term = s.mul(index(atom, 32), term);
    sum = s.add(sum, term);
  }
  return sum;
}

V KernelEmitter::loadWord(unsigned array, V place, uint64_t plus) {
  if (V slot = slots.lookup(array)) place = s.add(place, slot);
  return L::LoadOp::create(s.b, s.loc, s.i(32), at(arrays[array], s.i(32), place, plus), 4);
}

std::pair<UOpRef, int64_t> gpu::digitIn(UOpRef place, uint32_t bits, const Threads &threads) {
  std::pair<UOpRef, int64_t> found{nullptr, 0};
  for (const IndexTerm &t : terms(place))
    for (UOpRef atom : t.atoms) {
      if (!(threads.bitsOf(atom) & bits)) continue;
      if (!isThread(atom) || t.atoms.size() != 1 || found.first) return {nullptr, 0};
      found = {atom, t.coefficient};
    }
  return found;
}
bool gpu::dependsOnBits(UOpRef place, uint32_t bits, const Threads &threads) {
  return llvm::any_of(terms(place), [&](const IndexTerm &t) {
    return llvm::any_of(t.atoms, [&](UOpRef a) { return threads.bitsOf(a) & bits; });
  });
}

/// 16 rows and one column, which the lowest five bits of a thread's number say. Threads that differ in the next bit
/// have other rows of it: which of them a thread reads is said by its column's number, as the instruction deals rows.
bool KernelEmitter::multiplyMfma(llvm::ArrayRef<UOpRef> folds, const UnitInstruction &unit) {
  const UnitStep &step = *unitStepOf(Combine(folds[0]->ints[0]));
  llvm::SmallVector<UnitPlaces, 16> places(folds.size());
  if (folds.size() != unit.rows() || lanesOf(folds[0]) != 1 || step.words != 4) return false;
  for (auto [fold, p] : llvm::zip_equal(folds, places))
    if (!findPlaces(fold, p) || p.array[true] != places[0].array[true] || p.apart[true] != places[0].apart[true])
      return false;
  const UnitPlaces &of = places[0];
  int64_t rowStep = 0;
  for (auto [r, p] : llvm::enumerate(places)) {
    auto distance = simplifyIndex(c, idxSub(c, p.first[true], of.first[true]))->constIndex();
    if (r == 1 && distance) rowStep = *distance;
    if (!distance || *distance != int64_t(r) * rowStep) return false;
  }
  auto [below, ofBelow] = digitIn(of.first[true], 63, threads);
  if (!below || strideOf(below) != 32 || dependsOnBits(of.first[false], 32, threads)) return false;
  V number = machine.thread(), half = s.band(s.lshr(number, 5u), uint64_t(1)), i = s.band(number, uint64_t(31));
  V others = s.band(s.lshr(i, 2u), uint64_t(1)), row = s.add(times(s.lshr(i, 3u), 4), s.band(i, uint64_t(3)));
  V from = s.add(valueOf(of.first[true]), times(row, rowStep));
  from = s.add(from, times(s.sub(others, half), ofBelow));
  from = s.add(from, times(half, 2 * of.apart[true]));
  V column = s.add(valueOf(of.first[false]), times(half, 2 * of.apart[false]));
  auto operand = [&](bool isRow, V place) -> V {
    V both = L::PoisonOp::create(s.b, s.loc, mlir::VectorType::get(2, s.i(32)));
    for (uint64_t w : {0, 1}) {
      V word = loadWord(of.array[isRow], place, w * of.apart[isRow]);
      both = L::InsertElementOp::create(s.b, s.loc, both, word, s.integer(32, w));
    }
    mlir::Type half = step.inputs.a == MatrixInput::F16 ? mlir::Type(s.b.getF16Type()) : s.i(16);
    return L::BitcastOp::create(s.b, s.loc, mlir::VectorType::get(4, half), both);
  };
  auto type = mlir::VectorType::get(unit.rows(), s.f(32));
  V sums = L::PoisonOp::create(s.b, s.loc, type);
  for (auto [r, fold] : llvm::enumerate(folds))
    sums = L::InsertElementOp::create(s.b, s.loc, sums, value(fold)[0], s.integer(32, r));
  V none = s.integer(32, 0);
  llvm::SmallVector<V, 6> in{operand(true, from), operand(false, column), sums, none, none, none};
  V out = L::CallIntrinsicOp::create(s.b, s.loc, type, s.b.getStringAttr(unit.intrinsic), in).getResult(0);
  for (auto [r, fold] : llvm::enumerate(folds))
    values[fold] = {L::ExtractElementOp::create(s.b, s.loc, out, s.integer(32, r)).getResult()};
  return true;
}

void KernelEmitter::callStep(UOpRef fold) {
  Combine kind = Combine(fold->ints[0]);
  L::LLVMFuncOp step = unitFunction(kind);
  Lanes acc = value(fold);
  unsigned each = valuesOf(kind);
  for (unsigned i = 1; i < fold->ntensors; i += each)
    for (unsigned l = 0; l < lanesOf(fold); ++l) {
      Lanes in;
      for (UOpRef w : fold->tensors().slice(i, each)) in.push_back(value(w)[l]);
      in.push_back(acc[l]);
      acc[l] = L::CallOp::create(s.b, s.loc, step, in).getResult();
    }
  values[fold] = acc;
}

/// What waits for other rows or columns goes without them.
void KernelEmitter::flushUnit() {
  if (pendingUnit.empty()) return;
  std::vector<UOpRef> folds = std::exchange(pendingUnit, {});
  Combine kind = Combine(folds[0]->ints[0]);
  const UnitInstruction &unit = *unitInstruction(target, *unitStepOf(kind));
  unitFunction(kind);
  if (unit.form == UnitInstruction::Mma ? multiplyMma(folds, unit) : multiplyMfma(folds, unit)) return;
  for (UOpRef fold : folds) callStep(fold);
}

void KernelEmitter::updateUnit(UOpRef fold) {
  const UnitInstruction *unit = unitInstruction(target, *unitStepOf(Combine(fold->ints[0])));
  if (!unit) return callStep(fold);
  const bool together = unit->form == UnitInstruction::Mma; // all of a thread's tile
  if (!pendingUnit.empty() && (pendingUnit[0]->ints != fold->ints || lanesOf(pendingUnit[0]) != lanesOf(fold) ||
                               (!together && wordsOf(pendingUnit[0]).columns != wordsOf(fold).columns)))
    flushUnit();
  pendingUnit.push_back(fold);
  if (!together && pendingUnit.size() == unit->rows()) flushUnit();
}
