//===- MatrixTiles.cpp: steps of matrix units in GPU kernels ---------------===//
// Takes:    folds that are steps of a unit; where a tile's threads share the operands, in arrays of words.
// Gives:    the unit's own instruction, which a warp does together, for two rows and each 8 columns, where the machine
//           has it and the words lie so (findFragments); else a call of a function that is the step in primitives.
// Keeps:    which thread has which sums: a plan's choice. A thread's operands are those of others (unitInstruction): it
//           reads them from the shared arrays at the places that it knows from its own.
//
// The function is in the module in both cases: it is what the instruction means, for the emulator (Retarget.cpp). A
// back end drops what nobody calls.
#include "KernelEmitter.h"
#include "astra/Numerics/MatrixUnit.h"

using namespace astra;
using namespace astra::gpu;

/// unit.NAME(words, sum).
L::LLVMFuncOp KernelEmitter::unitFunction(Combine kind) {
  const UnitStep &step = *unitStepOf(kind);
  llvm::StringRef instruction = unitInstruction(target, step);
  std::string name = std::string("unit.") + step.unit->text + "." + textOf(step.inputs, '.');
  if (!instruction.empty()) name = ("unit." + instruction).str();
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
  return a[0]->op == Op::Splat ? UnitWords{a, b} : UnitWords{b, a};
}

/// Reads them at the places of the thread's own row and of another column than its own. False where its own words do
/// not lie at equal distances, or its columns not as digits of its number say.
bool KernelEmitter::findFragments(UOpRef fold, bool withColumns, Fragments &out) {
  const UnitStep &unit = *unitStepOf(Combine(fold->ints[0]));
  UnitWords of = wordsOf(fold);
  unsigned lanes = lanesOf(fold), words = unit.words;
  if (lanes % 2 || words % 4 || fold->ints[1] != 2 * words || k.group != k.threads) return false;
  unsigned arrayOfSide[2];
  int64_t apart[2]; // from word to word
  UOpRef first[2];  // the place of the first word
  for (bool isRow : {true, false})
    for (auto [w, word] : llvm::enumerate(isRow ? of.row : of.columns)) {
      if (isRow && word->op != Op::Splat) return false;
      UOpRef x = isRow ? word->src[0] : word;
      UOpRef place = lanesOf(x) == (isRow ? 1 : lanes) ? flatPlace(x, arrayOfSide[isRow]) : nullptr;
      if (!place) return false;
      if (!w) first[isRow] = place;
      auto distance = simplifyIndex(c, idxSub(c, place, first[isRow]))->constIndex();
      if (w == 1 && distance) apart[isRow] = *distance;
      if (!distance || (w && *distance != apart[isRow] * int64_t(w))) return false;
    }
  // The lowest two bits of a thread's number say which columns it has, the next three which row.
  UOpRef pair = nullptr;
  int64_t ofPair = 0;
  for (UOpRef place : first)
    for (const IndexTerm &t : terms(place))
      for (UOpRef atom : t.atoms) {
        if (!atom->isConst() && !values.contains(atom)) return false; // made by the simplification
        if (!(threads.bitsOf(atom) & 3)) continue;
        if (place == first[true] || !isThread(atom) || t.atoms.size() != 1 || bitsOfRange(atom) != 3 || pair)
          return false;
        pair = atom, ofPair = t.coefficient;
      }
  if (!pair || (threads.bitsOf(first[false]) & 28)) return false;
  auto placeOf = [&](UOpRef flat) {
    V sum = s.integer(32, 0);
    for (const IndexTerm &t : terms(flat)) {
      V term = s.integer(32, uint64_t(t.coefficient));
      for (UOpRef atom : t.atoms) term = s.mul(index(atom, 32), term);
      sum = s.add(sum, term);
    }
    return sum;
  };
  V number = machine.thread(), word = s.band(number, uint64_t(3)), column = s.band(s.lshr(number, 2u), uint64_t(7));
  auto load = [&](bool isRow, V place, uint64_t plus) {
    if (V slot = slots.lookup(arrayOfSide[isRow])) place = s.add(place, slot);
    return L::LoadOp::create(s.b, s.loc, s.i(32), at(arrays[arrayOfSide[isRow]], s.i(32), place, plus), 4).getResult();
  };
  auto times = [&](V x, int64_t n) { return s.mul(x, s.integer(32, uint64_t(n))); };
  out.fold = fold;
  V row = s.add(placeOf(first[true]), times(word, apart[true]));
  for (unsigned w = 0; w < words; w += 4) out.row.push_back(load(true, row, w * apart[true]));
  if (!withColumns) return true;
  int64_t ofLane = k.linear.stages[arrayOfSide[false]].strides.back();
  V from = s.add(placeOf(first[false]), times(word, apart[false]));
  from = s.add(from, times(s.sub(s.lshr(column, 1u), word), ofPair)); // the pair of another thread
  from = s.add(from, times(s.band(column, uint64_t(1)), ofLane));
  for (unsigned l = 0; l < lanes; l += 2) {
    Lanes &all = out.columns.emplace_back();
    for (unsigned w = 0; w < words; w += 4) all.push_back(load(false, from, w * apart[false] + l * ofLane));
  }
  return true;
}

/// One instruction for each 8 columns. lower: of no fold where there is no other row.
void KernelEmitter::multiplyTiles(const Fragments &upper, const Fragments &lower) {
  const UnitStep &unit = *unitStepOf(Combine(upper.fold->ints[0]));
  mlir::StringAttr instruction = s.b.getStringAttr(unitInstruction(target, unit));
  auto operand = [&](V word) -> V {
    if (unit.inputs.a != MatrixInput::F16) return word;
    return L::BitcastOp::create(s.b, s.loc, mlir::VectorType::get(2, s.b.getF16Type()), word);
  };
  auto type = L::LLVMStructType::getLiteral(s.b.getContext(), llvm::SmallVector<mlir::Type>(4, s.f(32)));
  Lanes sums = value(upper.fold), below = lower.fold ? value(lower.fold) : Lanes(sums.size(), s.real(32, 0));
  for (unsigned l = 0; l < sums.size(); l += 2) {
    llvm::SmallVector<V, 10> in;
    for (size_t q = 0; q < upper.row.size(); ++q) {
      in.push_back(operand(upper.row[q]));
      in.push_back(operand(lower.fold ? lower.row[q] : s.integer(32, 0)));
    }
    for (V w : upper.columns[l / 2]) in.push_back(operand(w));
    in.append({sums[l], sums[l + 1], below[l], below[l + 1]});
    V out = L::CallIntrinsicOp::create(s.b, s.loc, type, instruction, in).getResult(0);
    auto part = [&](int64_t i) -> V { return L::ExtractValueOp::create(s.b, s.loc, out, i); };
    sums[l] = part(0), sums[l + 1] = part(1), below[l] = part(2), below[l + 1] = part(3);
  }
  values[upper.fold] = sums;
  if (lower.fold) values[lower.fold] = below;
}

/// What waits for another row goes without one.
void KernelEmitter::flushUnit() {
  if (pendingUnit.fold) multiplyTiles(pendingUnit, {});
  pendingUnit = {};
}

void KernelEmitter::updateUnit(UOpRef fold) {
  Combine kind = Combine(fold->ints[0]);
  L::LLVMFuncOp step = unitFunction(kind);
  if (!unitInstruction(target, *unitStepOf(kind)).empty()) {
    bool second = pendingUnit.fold && pendingUnit.fold->ints == fold->ints &&
                  wordsOf(pendingUnit.fold).columns == wordsOf(fold).columns;
    if (!second) flushUnit();
    Fragments own;
    if (findFragments(fold, !second, own)) {
      if (second)
        multiplyTiles(std::exchange(pendingUnit, {}), own);
      else
        pendingUnit = std::move(own);
      return;
    }
  }
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
