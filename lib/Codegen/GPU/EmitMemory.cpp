//===- EmitMemory.cpp: loads, stores and arrays of a kernel ----------------===//
// Takes:    loads, stores, stages and their readers in a linear kernel.
// Gives:    accesses of as many neighbours as their alignment allows, at most 16 bytes; arrays that are a thread's own
//           or shared, the latter once or in several places that turns of a loop use one after the other.
// Keeps:    memory outside of the buffers untouched where an instruction is speculative or gated.
#include "KernelEmitter.h"

using namespace astra;
using namespace astra::gpu;

// ---- memory
Lanes KernelEmitter::guarded(V condition, llvm::ArrayRef<mlir::Type> types, llvm::function_ref<Lanes()> body) {
  if (!condition) return body();
  mlir::Block *yes = newBlock(), *join = newBlock();
  llvm::SmallVector<V> zeros;
  for (mlir::Type t : types) {
    join->addArgument(t, s.loc);
    zeros.push_back(mlir::isa<mlir::FloatType>(t) ? s.real(t.getIntOrFloatBitWidth(), 0)
                                                  : s.integer(t.getIntOrFloatBitWidth(), 0));
  }
  L::CondBrOp::create(s.b, s.loc, condition, yes, mlir::ValueRange{}, join, zeros);
  enter(yes);
  jump(join, body());
  enter(join);
  return Lanes(join->args_begin(), join->args_end());
}

/// The condition that elements at + first ... at + first + lanes - 1 exist; null when the bounds prove it.
V KernelEmitter::inside(UOpRef at, unsigned first, unsigned lanes, UOpRef count) {
  if (at->lo + first >= 0 && at->hi + first + lanes <= count->lo) return nullptr;
  V i = s.add(index(at, 64), uint64_t(first)), last = s.sub(index(count, 64), uint64_t(lanes));
  return s.band(s.cmp(ICmp::sge, i, 0), s.cmp(ICmp::sle, i, last));
}

/// Lanes of x's type from `at` on; gate: by lane; condition(first, count): what else must hold for some of the lanes.
Lanes KernelEmitter::read(UOpRef x, V pointer, UOpRef at, const Lanes *gate,
                          llvm::function_ref<V(unsigned, unsigned)> condition) {
  unsigned lanes = lanesOf(x), bytes = std::max(1u, byteSize(x->dtype));
  unsigned chunk = std::min<uint64_t>({lanes, 16 / bytes, alignmentOf(at)});
  if (gate && !llvm::all_equal(*gate)) chunk = 1;
  mlir::Type element = s.memoryType(x->dtype);
  V i = index(at, 64);
  Lanes out;
  for (unsigned l = 0; l < lanes; l += chunk) {
    V when = condition(l, chunk);
    if (gate) when = when ? s.band(when, (*gate)[l]) : (*gate)[l];
    Lanes part = guarded(when, llvm::SmallVector<mlir::Type>(chunk, element),
                         [&] { return loadLanes(this->at(pointer, element, i, l), element, bytes * chunk, chunk); });
    for (V v : part) out.push_back(x->dtype == DType::Bool ? s.cmp(ICmp::ne, v, 0) : v);
  }
  return out;
}

Lanes KernelEmitter::load(const Inst &i) {
  UOpRef x = i.uop, at = x->indices()[0];
  int64_t slot = x->src[0]->ints[0];
  UOpRef count = k.kernel->buffers[slot].elements;
  const Lanes gate = x->ntensors > 1 ? value(x->src[1]) : Lanes();
  return read(x, buffers[slot], at, gate.empty() ? nullptr : &gate, [&](unsigned first, unsigned lanes) -> V {
    if (!i.speculative) return nullptr;
    return inside(at, first, lanes, count);
  });
}

size_t KernelEmitter::arrayOf(UOpRef stage) const {
  return llvm::find_if(k.linear.stages, [&](const StageArray &a) { return a.stage == stage; }) -
         k.linear.stages.begin();
}

/// Where an element is; the last index counts `lanes` elements. Of an array that each thread has for itself the digits
/// of its number are no dims.
KernelEmitter::StagePlace KernelEmitter::stagePlace(size_t number, llvm::ArrayRef<UOpRef> indices, unsigned lanes) {
  const StageArray &a = k.linear.stages[number];
  bool shared = threads.isShared(a.stage);
  UOpRef flat = c.index(0);
  V place;
  constexpr unsigned w = 32;
  int64_t stride = 1;
  for (size_t d = indices.size(); d-- > 0;) {
    bool digit = isThread(a.stage->indices()[d]), last = d + 1 == indices.size();
    if (digit && !shared) { // of a vector that is all of a point the lanes are there
      if (last) stride *= lanesOf(a.stage);
      continue;
    }
    int64_t step = (shared ? a.strides[d] : stride) * (last ? lanes : 1);
    stride *= a.extents[d];
    flat = idxAdd(c, flat, idxMul(c, indices[d], c.index(step)));
  }
  flat = simplifyIndex(c, flat);
  llvm::DenseSet<UOpRef> defined; // what the indices are made of is there
  for (UOpRef x : topoSort(indices)) defined.insert(x);
  llvm::SmallVector<IndexTerm, 4> sum = terms(flat);
  for (const IndexTerm &t : sum)
    for (UOpRef atom : t.atoms)
      if (!defined.contains(atom)) sum.clear(); // made by the simplification
  uint64_t alignment = alignmentOf(flat);
  if (sum.empty() && flat->constIndex() != 0) {
    stride = 1;
    for (size_t d = indices.size(); d-- > 0;) {
      if (isThread(a.stage->indices()[d]) && !shared) {
        if (d + 1 == indices.size()) stride *= lanesOf(a.stage);
        continue;
      }
      int64_t step = (shared ? a.strides[d] : stride) * (d + 1 == indices.size() ? lanes : 1);
      stride *= a.extents[d];
      V term = s.mul(index(indices[d], w), s.integer(w, uint64_t(step)));
      place = place ? s.add(place, term) : term;
    }
  }
  uint64_t plus = 0;
  for (const IndexTerm &t : sum) {
    if (t.atoms.empty() && t.coefficient > 0) {
      plus = uint64_t(t.coefficient);
      continue;
    }
    V term = s.integer(w, uint64_t(t.coefficient));
    for (UOpRef atom : t.atoms) term = s.mul(index(atom, w), term);
    place = place ? s.add(place, term) : term;
  }
  if (!place) place = s.integer(w, 0);
  if (unsigned line = k.lines.lookup(a.stage)) { // the order repeats itself after 8 lines; a part stays whole
    uint64_t far = plus / (8 * line) * (8 * line);
    place = swizzled(s.add(place, plus - far), line);
    plus = far, alignment = std::min<uint64_t>(alignment, 4);
  }
  if (V slot = slots.lookup(number)) place = s.add(place, slot);
  return {place, plus, alignment};
}

Lanes KernelEmitter::stageRead(const Inst &i) {
  UOpRef x = i.uop;
  if (x->src[0] == groups.sums) {
    auto row = x->indices()[0]->constIndex(), column = x->indices()[1]->constIndex();
    if (!row || !column) return refuse("a sum of a warp group is read at no fixed place"), Lanes();
    const Lanes &all = groups.result[*row];
    return Lanes(all.begin() + *column, all.begin() + *column + lanesOf(x));
  }
  size_t number = arrayOf(x->src[0]);
  const StageArray &a = k.linear.stages[number];
  unsigned lanes = lanesOf(x), bytes = std::max(1u, byteSize(x->dtype));
  V condition;
  for (size_t d = 0; i.speculative && d < x->indices().size(); ++d) {
    unsigned count = d + 1 == x->indices().size() ? lanes : 1;
    V in = inside(x->indices()[d], 0, count, c.index(a.extents[d]));
    if (in) condition = condition ? s.band(condition, in) : in;
  }
  mlir::Type element = s.memoryType(x->dtype);
  StagePlace place = stagePlace(number, x->indices(), 1);
  bool shared = threads.isShared(a.stage);
  int64_t step = shared && !a.strides.empty() ? a.strides.back() : 1;
  unsigned chunk = shared && step == 1 ? std::min<uint64_t>({lanes, 16 / bytes, place.alignment}) : 1;
  if (x->ntensors > 1) { // each lane where its gate is true
    Lanes out;
    for (auto [l, gate] : llvm::enumerate(value(x->src[1]))) {
      V when = condition ? s.band(condition, gate) : gate;
      Lanes one = guarded(when, {element}, [&] {
        return loadLanes(at(arrays[number], element, place.element, place.plus + l * step), element, bytes, 1);
      });
      out.push_back(x->dtype == DType::Bool ? s.cmp(ICmp::ne, one[0], 0) : one[0]);
    }
    return out;
  }
  uint64_t aligned = shared ? std::min<uint64_t>(bytes * place.alignment, 64) : bytes; // LLVM joins what it can
  Lanes out = guarded(condition, llvm::SmallVector<mlir::Type>(lanes, element), [&] {
    Lanes each;
    for (unsigned l = 0; l < lanes; l += chunk)
      llvm::append_range(each, loadLanes(at(arrays[number], element, place.element, place.plus + l * step), element,
                                         chunk == lanes ? aligned : bytes * chunk, chunk));
    return each;
  });
  if (x->dtype == DType::Bool)
    for (V &v : out) v = s.cmp(ICmp::ne, v, 0);
  return out;
}

/// `count` neighbours at a place whose bytes are so aligned.
Lanes KernelEmitter::loadLanes(V place, mlir::Type element, uint64_t alignment, unsigned count) {
  if (count == 1) return {L::LoadOp::create(s.b, s.loc, element, place, alignment)};
  V all = L::LoadOp::create(s.b, s.loc, mlir::VectorType::get(count, element), place, alignment);
  Lanes each;
  for (unsigned e = 0; e < count; ++e) each.push_back(L::ExtractElementOp::create(s.b, s.loc, all, s.integer(32, e)));
  return each;
}

void KernelEmitter::storeLanes(V place, mlir::Type element, unsigned bytes, llvm::ArrayRef<V> xs) {
  V out = xs[0];
  if (xs.size() > 1) {
    auto type = mlir::VectorType::get(xs.size(), element);
    out = L::UndefOp::create(s.b, s.loc, type);
    for (auto [e, x] : llvm::enumerate(xs)) out = L::InsertElementOp::create(s.b, s.loc, out, x, s.integer(32, e));
  }
  L::StoreOp::create(s.b, s.loc, out, place, bytes * xs.size());
}

/// What is in a stage's array at its own ranges.
Lanes KernelEmitter::restOf(UOpRef stage) {
  size_t number = arrayOf(stage);
  const StageArray &a = k.linear.stages[number];
  mlir::Type element = s.memoryType(stage->dtype);
  StagePlace place = stagePlace(number, stage->indices(), lanesOf(stage));
  int64_t step = threads.isShared(stage) && !a.strides.empty() ? a.strides.back() : 1;
  Lanes out;
  for (int64_t l = 0; l < lanesOf(stage); ++l)
    llvm::append_range(out, loadLanes(at(arrays[number], element, place.element, place.plus + l * step), element,
                                      std::max(1u, byteSize(stage->dtype)), 1));
  if (stage->dtype == DType::Bool)
    for (V &v : out) v = s.cmp(ICmp::ne, v, 0);
  return out;
}

void KernelEmitter::put(UOpRef stage, Lanes all) {
  size_t number = arrayOf(stage);
  const StageArray &a = k.linear.stages[number];
  DType t = stage->dtype;
  mlir::Type element = s.memoryType(t);
  unsigned bytes = std::max(1u, byteSize(t));
  bool shared = threads.isShared(stage);
  StagePlace place = stagePlace(number, stage->indices(), lanesOf(stage));
  int64_t step = shared && !a.strides.empty() ? a.strides.back() : 1;
  unsigned chunk = shared && step == 1 ? std::min<uint64_t>({all.size(), 16 / bytes, place.alignment}) : 1;
  if (t == DType::Bool)
    for (V &x : all) x = s.zext(x, 8);
  guarded(shared ? putsAlone(stage) : V(), {}, [&]() -> Lanes {
    for (unsigned l = 0; l < all.size(); l += chunk)
      storeLanes(at(arrays[number], element, place.element, place.plus + l * step), element, bytes,
                 llvm::ArrayRef(all).slice(l, chunk));
    return {};
  });
}

/// What is the same for several threads one of them puts.
V KernelEmitter::putsAlone(UOpRef stage) {
  uint32_t closed = 0;
  for (UOpRef r : stage->indices())
    if (isThread(r)) closed |= bitsOfRange(r);
  return firstOf(closed);
}

/// Of the threads whose numbers differ in other bits than these alone: the first. Null where there is only one.
V KernelEmitter::firstOf(uint32_t bits) {
  uint32_t others = uint32_t(k.group - 1) & ~bits;
  return others ? s.cmp(ICmp::eq, s.band(lane, others), 0) : V();
}

void KernelEmitter::write(UOpRef x) {
  UOpRef v = x->src[1], at = x->indices()[0];
  unsigned lanes = lanesOf(v), bytes = std::max(1u, byteSize(v->dtype));
  const Lanes gate = x->ntensors > 2 ? value(x->src[2]) : Lanes();
  Lanes all = value(v);
  unsigned chunk = std::min<uint64_t>({lanes, 16 / bytes, alignmentOf(at)});
  if (!gate.empty() && !llvm::all_equal(gate)) chunk = 1;
  mlir::Type element = s.memoryType(v->dtype);
  V pointer = buffers[x->src[0]->ints[0]], i = index(at, 64);
  if (v->dtype == DType::Bool)
    for (V &b : all) b = s.zext(b, 8);
  V first = firstOf(threads.bitsOf(x)); // one of them stores what several have
  for (unsigned l = 0; l < lanes; l += chunk) {
    V when = gate.empty() ? V() : gate[l];
    guarded(!first ? when
            : when ? s.band(when, first)
                   : first,
            {}, [&]() -> Lanes {
              storeLanes(this->at(pointer, element, i, l), element, bytes, llvm::ArrayRef(all).slice(l, chunk));
              return {};
            });
  }
}

/// Elements from one place of a shared array to the next.
uint64_t KernelEmitter::slotElements(size_t number) {
  const StageArray &a = k.linear.stages[number];
  uint64_t bytes = std::max(1u, byteSize(a.stage->dtype));
  return llvm::alignTo(uint64_t(std::max<int64_t>(a.elements, 1)) * bytes, 64) / bytes;
}

L::GlobalOp KernelEmitter::sharedArray(size_t number, mlir::Type element, uint64_t count, unsigned alignment) {
  auto type = L::LLVMArrayType::get(element, count);
  mlir::OpBuilder::InsertionGuard guard(s.b);
  s.b.setInsertionPointToStart(module.getBody());
  auto global =
      L::GlobalOp::create(s.b, s.loc, type, false, L::Linkage::Internal, k.name + ".shared" + std::to_string(number),
                          mlir::Attribute(), alignment, Machine::sharedSpace);
  s.b.createBlock(&global.getInitializerRegion());
  L::ReturnOp::create(s.b, s.loc, V(L::UndefOp::create(s.b, s.loc, type)));
  return global;
}

/// Arrays of the accumulators that are not in registers: of all threads, one behind another. Each thread touches its
/// own elements alone, 16 bytes side by side where there are so many.
void KernelEmitter::makeSums(GpuLaunch &launch) {
  for (auto [n, sum] : llvm::enumerate(spilled)) {
    uint64_t bytes = std::max(1u, byteSize(sum.first->dtype)), count = uint64_t(lanesOf(sum.first)) * k.group;
    launch.shared += llvm::alignTo(count * bytes, 64);
    L::GlobalOp global = sharedArray(k.linear.stages.size() + n, s.memoryType(sum.first->dtype), count);
    sum.second = L::AddressOfOp::create(s.b, s.loc, global);
  }
}

/// So many lanes of an accumulator are side by side: they are read together.
static unsigned together(UOpRef fold) {
  return std::gcd(lanesOf(fold), std::max(16 / std::max(1u, byteSize(fold->dtype)), 1u));
}

V KernelEmitter::sumPlace(UOpRef fold, unsigned l) {
  mlir::Type element = s.memoryType(fold->dtype);
  return at(spilled[fold], element, s.mul(lane, s.integer(32, together(fold))), uint64_t(l) * k.group);
}

Lanes KernelEmitter::loadSum(UOpRef fold) {
  Lanes all;
  unsigned each = together(fold), bytes = std::max(1u, byteSize(fold->dtype));
  for (unsigned l = 0; l < lanesOf(fold); l += each)
    llvm::append_range(all, loadLanes(sumPlace(fold, l), s.memoryType(fold->dtype), bytes * each, each));
  return all;
}

void KernelEmitter::storeSum(UOpRef fold) {
  unsigned each = together(fold), bytes = std::max(1u, byteSize(fold->dtype));
  Lanes all = value(fold);
  for (unsigned l = 0; l < all.size(); l += each)
    storeLanes(sumPlace(fold, l), s.memoryType(fold->dtype), bytes, llvm::ArrayRef(all).slice(l, each));
}

llvm::Error KernelEmitter::makeArrays(GpuLaunch &launch) {
  constexpr uint64_t most = 16384; // bytes of a thread's own arrays
  auto own = L::LLVMPointerType::get(s.b.getContext(), machine.privateSpace());
  llvm::DenseSet<UOpRef> turns; // filled by a loop that goes ahead: several at once
  for (auto [begin, end] : barriers.ahead)
    for (size_t n = begin; n < end; ++n)
      if (k.linear.insts[n].kind == InstKind::StagePut) turns.insert(k.linear.insts[n].uop);
  for (auto [number, a] : llvm::enumerate(k.linear.stages)) {
    mlir::Type element = s.memoryType(a.stage->dtype);
    uint64_t bytes = std::max(1u, byteSize(a.stage->dtype));
    if (a.stage == groups.sums) { // registers
      arrays.push_back(nullptr);
      continue;
    }
    if (threads.isShared(a.stage)) {
      uint64_t count = slotElements(number) * (turns.contains(a.stage) ? std::max(k.stages, 2u) : 1);
      launch.shared += llvm::alignTo(count * bytes, 64);
      arrays.push_back(L::AddressOfOp::create(s.b, s.loc, sharedArray(number, element, count)));
      continue;
    }
    int64_t count = 1;
    for (auto [r, n] :
         llvm::zip_equal(a.stage->indices(), llvm::ArrayRef(a.extents).take_front(a.stage->indices().size())))
      if (!isThread(r))
        count *= n;
      else if (r == a.stage->indices().back())
        count *= lanesOf(a.stage);
    if (a.stage->indices().empty()) count = a.elements;
    count = std::max<int64_t>(count, 1);
    launch.privateBytes += llvm::alignTo(uint64_t(count) * bytes, 64);
    if (launch.privateBytes > most)
      return fail("its arrays take " + std::to_string(launch.privateBytes) + " bytes of each thread; at most " +
                  std::to_string(most) + " have a GPU form");
    mlir::OpBuilder::InsertionGuard guard(s.b); // where LLVM makes registers of it
    s.b.setInsertionPointToStart(&function.getBody().front());
    arrays.push_back(L::AllocaOp::create(s.b, s.loc, own, L::LLVMArrayType::get(element, count), s.integer(32, 1), 16));
  }
  return llvm::Error::success();
}
