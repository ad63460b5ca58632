//===- EmitKernel.cpp: linear kernels as functions of the llvm dialect -----===//
// Takes:    instructions in order (Linear.h) and how items are bound to threads.
// Gives:    a function: a loop is three blocks whose arguments are its counter and the accumulators that it changes; a
//           parallel range is a condition on the item's number. A vector of lanes is as many scalars; memory is read
//           and written by as many neighbours as its alignment allows, at most 16 bytes.
// Keeps:    an index has 32 bits where its bounds prove that they suffice, 64 otherwise.
// Does not: reorder or simplify; compute (Scalar.h).
#include "KernelEmitter.h"

using namespace astra;
using namespace astra::gpu;

/// Which accumulators begin outside of a loop and change in it.
llvm::Error KernelEmitter::findCarried() {
  std::vector<size_t> open;
  llvm::DenseSet<size_t> outer;         // loops inside of which another has begun
  llvm::DenseMap<UOpRef, size_t> depth; // of an accumulator's beginning
  for (size_t n = 0; n < k.linear.insts.size(); ++n) {
    const Inst &i = k.linear.insts[n];
    switch (i.kind) {
    case InstKind::LoopBegin:
      if (!open.empty()) outer.insert(open.back());
      open.push_back(n);
      break;
    case InstKind::LoopEnd: open.pop_back(); break;
    case InstKind::AccInit: depth[i.uop] = open.size(); break;
    case InstKind::AccUpdate:
      if (size_t d = depth.lookup(i.uop); k.spillSums && d < open.size() && outer.contains(open.back())) {
        spilled[i.uop] = nullptr;
        resumed[open[d]].push_back(i.uop);
        break;
      }
      for (size_t d = depth.lookup(i.uop); d < open.size(); ++d) carried[open[d]].push_back(i.uop);
      break;
    case InstKind::AccResume: depth[i.uop->src[0]] = open.size(); break;
    case InstKind::StagePut:
      if (i.uop->ntensors > 1) return fail("a stage of several values is for CPUs");
      break;
    default: break;
    }
  }
  return llvm::Error::success();
}

// ---- index arithmetic
V KernelEmitter::index(UOpRef x, unsigned width) {
  if (auto constant = x->constIndex()) return s.integer(width, uint64_t(*constant));
  if (x->op == Op::Dim) {
    const auto *it = llvm::find(dims, x);
    if (it == dims.end()) return refuse("dim '" + x->str + "' is not one of the module"), s.integer(width, 0);
    V v = dimValues.lookup(x);
    return s.resize(v, width, x->lo < 0);
  }
  auto it = values.find(x);
  if (it == values.end())
    return refuse(llvm::Twine("index ") + info(x->op).mnemonic + " is used before it is defined"), s.integer(width, 0);
  return s.resize(it->second[0], width, x->lo < 0);
}

V KernelEmitter::indexOp(UOpRef x) {
  unsigned width = widthOf(x);
  auto widest = [&] { return std::max({width, widthOf(x->src[0]), widthOf(x->src[1])}); };
  auto both = [&](unsigned w) { return llvm::SmallVector<V, 2>{index(x->src[0], w), index(x->src[1], w)}; };
  switch (x->op) {
  case Op::Add: return s.add(index(x->src[0], width), index(x->src[1], width));
  case Op::Mul: return s.mul(index(x->src[0], width), index(x->src[1], width));
  case Op::FloorDiv:
  case Op::Mod: {
    unsigned w = widest();
    auto xy = both(w);
    V r;
    if (x->src[0]->lo >= 0 && x->src[1]->lo >= 1)
      r = x->op == Op::FloorDiv ? s.udiv(xy[0], xy[1]) : s.urem(xy[0], xy[1]);
    else
      r = s.op(x->op, w == 32 ? DType::I32 : DType::I64, xy);
    return s.resize(r, width, true);
  }
  case Op::Min:
  case Op::Max: {
    unsigned w = widest();
    return s.resize(s.op(x->op, w == 32 ? DType::I32 : DType::I64, both(w)), width, true);
  }
  case Op::Select: return s.select(value(x->src[0])[0], index(x->src[1], width), index(x->src[2], width));
  case Op::Extent: return s.resize(value(x->src[0])[0], width, true);
  default: return refuse(llvm::Twine("index op ") + info(x->op).mnemonic + " has no GPU form");
  }
}

// ---- values
const Lanes &KernelEmitter::value(UOpRef x) {
  auto [it, fresh] = values.try_emplace(x);
  if (x->op == Op::Const)
    it->second = {s.literal(x->dtype, uint64_t(x->ints[0]))}; // where it is used
  else if (fresh) {
    refuse(llvm::Twine(info(x->op).mnemonic) + " is used before it is defined");
    it->second.assign(lanesOf(x), s.literal(x->dtype, 0));
  }
  return it->second;
}

Lanes KernelEmitter::elementwise(UOpRef x) {
  Lanes out;
  if (x->src[0]->isIndex()) { // a comparison of symbolic integers
    unsigned w = std::max(widthOf(x->src[0]), widthOf(x->src[1]));
    return {s.op(x->op, w == 32 ? DType::I32 : DType::I64, {index(x->src[0], w), index(x->src[1], w)})};
  }
  std::vector<Lanes> src;
  for (UOpRef y : x->src) src.push_back(value(y));
  DType from = x->src[0]->dtype;
  for (unsigned l = 0; l < lanesOf(x); ++l) {
    llvm::SmallVector<V, 3> in;
    for (const Lanes &y : src) in.push_back(y[l]);
    switch (x->op) {
    case Op::Cast: out.push_back(s.cast(from, x->dtype, in[0], x->ints[0])); break;
    case Op::Bitcast: out.push_back(s.bitcast(from, x->dtype, in[0])); break;
    case Op::Lookup16: out.push_back(s.lookup(x->dtype, x->ints, in[0])); break;
    default: out.push_back(s.op(x->op, x->op == Op::Select ? x->dtype : from, in));
    }
  }
  return out;
}

Lanes KernelEmitter::compute(const Inst &i) {
  UOpRef x = i.uop;
  switch (x->op) {
  case Op::Load: return load(i);
  case Op::At: return stageRead(i);
  case Op::Splat: return Lanes(lanesOf(x), value(x->src[0])[0]);
  case Op::Stack: {
    Lanes out;
    for (UOpRef y : x->src) llvm::append_range(out, value(y));
    return out;
  }
  case Op::Lanes: {
    const Lanes &from = value(x->src[0]);
    return Lanes(from.begin() + x->ints[0], from.begin() + x->ints[0] + lanesOf(x));
  }
  case Op::LaneFold: return laneFold(x);
  case Op::FromIndex: return {s.cast(DType::I64, x->dtype, index(x->src[0], 64), false)};
  default: break;
  }
  if (x->isIndex()) return {indexOp(x)};
  if (has(x->op, Elementwise) && !has(x->op, Function)) return elementwise(x);
  refuse(std::string(info(x->op).mnemonic) +
         (has(x->op, Function) ? " is a function: the numerics stage replaces it by a program" : " has no GPU form"));
  return {};
}

// ---- control
void KernelEmitter::update(UOpRef fold) {
  static constexpr Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or, Op::Fma, Op::Dot4};
  Combine kind = Combine(fold->ints[0]);
  bool isUnit = unitStepOf(kind);
  Op op = isUnit ? Op::Fma : ops[fold->ints[0]];
  unsigned each = valuesOf(kind);
  Lanes acc = value(fold);
  if (isUnit) return updateUnit(fold);
  for (unsigned i = 1; i < fold->ntensors; i += each) {
    Lanes x = value(fold->src[i]), y = each == 2 ? value(fold->src[i + 1]) : Lanes();
    for (unsigned l = 0; l < lanesOf(fold); ++l)
      acc[l] = each == 2 ? s.op(op, fold->dtype, {x[l], y[l], acc[l]}) : s.op(op, fold->dtype, {acc[l], x[l]});
  }
  values[fold] = acc;
}

/// Steps n/2 ... 1 of the tree, each an exchange between lanes; all of them get the result.
Lanes KernelEmitter::laneFold(UOpRef fold) {
  static constexpr Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or};
  Lanes out = value(fold->src[0]);
  unsigned lanes = *fold->indices()[0]->src[0]->constIndex();
  for (V &x : out)
    for (unsigned distance = lanes / 2; distance; distance /= 2) {
      V bits = s.bits(x), other;
      unsigned width = s.width(bits);
      if (width <= 32) {
        other = s.trunc(machine.folded(s.zext(bits, 32), distance, lanes), width);
      } else {
        V low = machine.folded(s.trunc(bits, 32), distance, lanes),
          high = machine.folded(s.trunc(s.lshr(bits, 32u), 32), distance, lanes);
        other = s.bor(s.zext(low, 64), s.shl(s.zext(high, 64), 32u));
      }
      x = s.op(ops[fold->ints[0]], fold->dtype, {x, s.isReal(x) ? s.asReal(other) : other});
      if (!x) return {};
    }
  return out;
}

void KernelEmitter::beginLoop(size_t at) {
  UOpRef range = k.linear.insts[at].uop, extent = range->src[0];
  // Warps may part in a loop in which none of them waits for another; the lanes of one stay together.
  if (uint32_t bits = threads.bitsOf(extent); bits && ((bits & (warp - 1)) || barriers.within(at)))
    refuse("the threads of an item go through a loop different numbers of times");
  Loop loop{range, nullptr, nullptr, {}, {}};
  loop.begin = at;
  if (isParallel(range)) {
    unsigned w = s.width(item);
    V n = index(extent, w), r = base ? s.sub(item, base) : item;
    base = base ? s.add(base, n) : n;
    values[range] = {s.resize(r, widthOf(range), true)};
    mlir::Block *body = newBlock();
    loop.exit = newBlock();
    branch(s.cmp(ICmp::ult, r, n), body, loop.exit);
    enter(body);
    loops.push_back(std::move(loop));
    return;
  }
  unsigned w = widthOf(extent);
  V n = index(extent, w);
  loop.carried = carried[at];
  bool sums = !loop.carried.empty() && extent->isConst(), shares = false; // of operands that are in shared arrays
  bool few = extent->isConst() && extent->ints[0] <= 32;
  for (size_t n = at + 1; n < barriers.endOf[at]; ++n) {
    const Inst &i = k.linear.insts[n];
    bool own = i.kind == InstKind::StagePut || i.kind == InstKind::StageFill || i.kind == InstKind::AccResume;
    UOpRef stage = own ? i.uop : i.kind == InstKind::Define && i.uop->op == Op::At ? i.uop->src[0] : nullptr;
    loop.outer |= i.kind == InstKind::LoopBegin;
    loop.kept |= few && stage && !threads.isShared(stage);
    shares |= stage && threads.isShared(stage);
    sums &= i.kind != InstKind::StagePut;
  }
  constexpr int64_t mostUnrolled = 16384; // instructions, of all turns: ptxas takes minutes for more
  bool isLong = loop.kept && int64_t(barriers.endOf[at] - at) * extent->ints[0] > mostUnrolled;
  if (isLong) loop.kept = false, loop.outer = true; // its arrays are in local memory
  if (sums && shares && !loop.outer && !loop.kept) loop.steps = k.unrollK;
  bool ahead = barriers.ahead.count(at), ring = ahead && k.stages;
  Lanes first;
  if (ring)
    beginRing(at, n), first = {s.integer(32, 0)};
  else if (ahead)
    first = fetch(at, s.integer(w, 0), n);
  loop.header = newBlock();
  llvm::SmallVector<V> begin{s.integer(w, 0)};
  for (UOpRef acc : loop.carried) llvm::append_range(begin, value(acc));
  size_t fetched = begin.size();
  llvm::append_range(begin, first);
  jump(loop.header, begin);
  for (V v : begin) loop.header->addArgument(v.getType(), s.loc);
  enter(loop.header);
  mlir::Block *body = newBlock();
  loop.exit = newBlock();
  unsigned next = 1;
  for (UOpRef acc : loop.carried)
    for (V &v : values[acc]) v = loop.header->getArgument(next++);
  V turn = loop.header->getArgument(0);
  values[range] = {s.resize(turn, widthOf(range), true)};
  branch(s.cmp(ICmp::slt, turn, n), body, loop.exit);
  enter(body);
  if (ring) {
    loop.next = {turnRing(at, turn, n, loop.header->getArgument(fetched))};
    again(at, turn);
  } else if (ahead) { // what was fetched goes into this turn's half of the arrays; then the next turn's is fetched
    size_t end = barriers.ahead[at], next = fetched;
    fill(
        at + 1, end, [](UOpRef) { return false; },
        [&](UOpRef stage) {
          size_t number = arrayOf(stage);
          V odd = s.band(s.resize(turn, 32, false), 1);
          slots[number] = s.mul(odd, s.integer(32, slotElements(number)));
          llvm::ArrayRef<mlir::BlockArgument> all = loop.header->getArguments().slice(next, lanesOf(stage));
          next += all.size();
          put(stage, Lanes(all.begin(), all.end()));
        });
    machine.barrier();
    loop.next = fetch(at, s.add(turn, uint64_t(1)), n);
    again(at, turn);
  }
  loops.push_back(std::move(loop));
}

/// What a turn's use shares with what fills the arrays of another turn; a fetched value it does not.
void KernelEmitter::again(size_t loop, V turn) {
  UOpRef range = k.linear.insts[loop].uop;
  values[range] = {s.resize(turn, widthOf(range), true)};
  for (size_t i = loop + 1; i < barriers.ahead[loop]; ++i)
    if (k.linear.insts[i].kind == InstKind::LoopBegin)
      i = barriers.endOf[i];
    else if (k.linear.insts[i].kind == InstKind::Define && !barriers.fetched.contains(k.linear.insts[i].uop))
      emit(k.linear.insts[i]);
}

/// Goes through what fills the arrays of a turn, its loops unrolled; atPut is called in place of each put, with its
/// ranges set. define: whether a value is computed.
void KernelEmitter::fill(size_t begin, size_t end, llvm::function_ref<bool(UOpRef)> define,
                         llvm::function_ref<void(UOpRef)> atPut) {
  struct Turn {
    size_t begin;
    int64_t number, count;
  };
  llvm::SmallVector<Turn, 3> open;
  auto set = [&] {
    UOpRef range = k.linear.insts[open.back().begin].uop;
    values[range] = {s.integer(widthOf(range), uint64_t(open.back().number))};
  };
  for (size_t n = begin; n < end; ++n) {
    const Inst &i = k.linear.insts[n];
    if (i.kind == InstKind::LoopBegin) {
      open.push_back({n, 0, *i.uop->src[0]->constIndex()});
      set();
    } else if (i.kind == InstKind::LoopEnd) {
      if (++open.back().number < open.back().count) {
        n = open.back().begin;
        set();
      } else {
        open.pop_back();
      }
    } else if (i.kind == InstKind::StagePut) {
      atPut(i.uop);
    } else if (define(i.uop)) {
      emit(i);
    }
  }
}

/// The values that the loop's turn number `turn` will put, where there is such a turn.
Lanes KernelEmitter::fetch(size_t loop, V turn, V count) {
  UOpRef range = k.linear.insts[loop].uop;
  size_t end = barriers.ahead[loop];
  llvm::SmallVector<mlir::Type> types;
  llvm::SmallVector<int64_t, 3> times{1};
  for (size_t n = loop + 1; n < end; ++n) {
    const Inst &i = k.linear.insts[n];
    if (i.kind == InstKind::LoopBegin) times.push_back(times.back() * *i.uop->src[0]->constIndex());
    if (i.kind == InstKind::LoopEnd) times.pop_back();
    if (i.kind == InstKind::StagePut) types.append(times.back() * lanesOf(i.uop), s.type(i.uop->dtype));
  }
  return guarded(s.cmp(ICmp::slt, turn, count), types, [&] {
    Lanes all;
    values[range] = {s.resize(turn, widthOf(range), true)};
    fill(
        loop + 1, end, [](UOpRef) { return true; },
        [&](UOpRef stage) { llvm::append_range(all, value(stage->src[0])); });
    return all;
  });
}

/// LLVM unrolls such a loop, or none of its turns, or so many. Unrolled, what a thread keeps for itself is in
/// registers. But where there is a loop inside, a tile's loads are all made before their values are used: AMDGPU's back
/// end then has thousands of values for hundreds of registers.
L::LoopAnnotationAttr gpu::unrolled(mlir::OpBuilder &b, bool all, unsigned times) {
  mlir::BoolAttr yes = b.getBoolAttr(true), none, never = all || times ? none : yes;
  mlir::IntegerAttr count = times ? b.getI32IntegerAttr(int32_t(times)) : mlir::IntegerAttr();
  auto unroll = L::LoopUnrollAttr::get(b.getContext(), never, count, {}, all ? yes : none, {}, {}, {});
  return L::LoopAnnotationAttr::get(b.getContext(), {}, {}, {}, unroll, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {});
}

void KernelEmitter::endLoop() {
  Loop loop = std::move(loops.back());
  loops.pop_back();
  if (loop.header) {
    llvm::SmallVector<V> next{s.add(loop.header->getArgument(0), uint64_t(1))};
    for (UOpRef acc : loop.carried) llvm::append_range(next, value(acc));
    llvm::append_range(next, loop.next);
    L::BrOp back = jump(loop.header, next);
    if (loop.steps)
      back.setLoopAnnotationAttr(unrolled(s.b, false, loop.steps));
    else if (loop.outer || loop.kept)
      back.setLoopAnnotationAttr(unrolled(s.b, loop.kept && !loop.outer));
    unsigned at = 1;
    for (UOpRef acc : loop.carried)
      for (V &v : values[acc]) v = loop.header->getArgument(at++);
  } else {
    jump(loop.exit);
  }
  enter(loop.exit);
  if (auto it = resumed.find(loop.begin); it != resumed.end())
    for (UOpRef acc : it->second) values[acc] = loadSum(acc);
}

llvm::Error KernelEmitter::signature(GpuLaunch &launch) {
  llvm::SmallVector<UOpRef> reads; // dims, in the order of their numbers
  llvm::DenseMap<UOpRef, bool> seen;
  auto note = [&](UOpRef x) {
    for (UOpRef d : topoSort({x}))
      if (d->op == Op::Dim) seen[d] = true;
  };
  if (k.steps.empty()) note(k.kernel->sink);
  for (const GpuKernel &part : k.steps) note(part.kernel->sink);
  seen.erase(k.tile);
  for (const KernelBuffer &b : k.kernel->buffers) note(b.elements);
  for (auto [i, d] : llvm::enumerate(dims))
    if (seen.erase(d)) reads.push_back(d), launch.dims.push_back(i);
  if (!seen.empty()) return fail("dim '" + seen.begin()->first->str + "' is not one of the module");

  auto global = L::LLVMPointerType::get(s.b.getContext(), Machine::globalSpace);
  llvm::SmallVector<mlir::Type> types(k.kernel->buffers.size(), global);
  types.append(reads.size(), s.i(64));
  if (k.kernel->warpGroups) types.append(2, L::LLVMPointerType::get(s.b.getContext()));
  s.b.setInsertionPointToEnd(module.getBody());
  function = L::LLVMFuncOp::create(s.b, s.loc, k.name,
                                   L::LLVMFunctionType::get(L::LLVMVoidType::get(s.b.getContext()), types));
  machine.markKernel(function, k.threads);
  enter(function.addEntryBlock(s.b));
  for (auto [i, buffer] : llvm::enumerate(k.kernel->buffers)) {
    if (!isArithmetic(buffer.dtype) && !isSmall(buffer.dtype))
      return fail(llvm::Twine("a buffer of ") + info(buffer.dtype).text + " has no GPU form");
    function.setArgAttr(i, "llvm.align", s.b.getI64IntegerAttr(16));
    function.setArgAttr(i, "llvm.noundef", s.b.getUnitAttr());
    if (!(buffer.read && buffer.write)) function.setArgAttr(i, "llvm.noalias", s.b.getUnitAttr());
    if (!buffer.write) function.setArgAttr(i, "llvm.readonly", s.b.getUnitAttr());
    buffers.push_back(function.getArgument(i));
  }
  for (auto [i, d] : llvm::enumerate(reads)) dimValues[d] = function.getArgument(k.kernel->buffers.size() + i);

  return llvm::Error::success();
}

/// What a thread has for all items: its number in one, arrays.
llvm::Error KernelEmitter::bindThreads(GpuLaunch &launch) {
  V thread = machine.thread();
  within = thread;
  if (k.kernel->warpGroups) { // a block has one item, whatever the threads that bring its operands are called
    within = s.integer(32, 0), lane = thread;
  } else if (k.group > 1) {
    within = s.udiv(thread, s.integer(32, k.group));
    lane = s.urem(thread, s.integer(32, k.group));
  }
  if (std::string why = threads.find(k, warp); !why.empty()) return fail(why);
  for (UOpRef x : topoSort({k.kernel->sink}))
    if (isThread(x)) {
      V number = strideOf(x) > 1 ? s.lshr(lane, unsigned(llvm::Log2_64(strideOf(x)))) : lane;
      values[x] = {s.band(number, uint64_t(*x->src[0]->constIndex() - 1))};
    }
  barriers.find(k, threads);
  findWarpGroups();
  if (auto e = makeArrays(launch)) return e;
  makeSums(launch);
  if (groups.sums) makeTileRing(launch);
  return llvm::Error::success();
}

/// The items at hand are those of this block.
void KernelEmitter::setItem(V block) {
  UOpRef items = itemCount(c, k.kernel->sink);
  unsigned w = fits32(0, items->hi + k.threads) ? 32 : 64, perBlock = k.kernel->warpGroups ? 1 : k.threads / k.group;
  item = s.add(s.mul(s.zext(block, w), s.integer(w, perBlock)), s.zext(within, w));
}

void KernelEmitter::emit(const Inst &i) {
  switch (i.kind) {
  case InstKind::Define: values[i.uop] = compute(i); break;
  case InstKind::LoopBegin: break;
  case InstKind::LoopEnd: endLoop(); break;
  case InstKind::AccInit: {
    Lanes init = value(i.uop->src[0]);
    values[i.uop] = std::move(init);
    if (spilled.contains(i.uop)) storeSum(i.uop);
    break;
  }
  case InstKind::AccUpdate:
    if (spilled.contains(i.uop)) values[i.uop] = loadSum(i.uop);
    update(i.uop);
    if (spilled.contains(i.uop)) storeSum(i.uop);
    break;
  case InstKind::StagePut: put(i.uop, value(i.uop->src[0])); break;
  case InstKind::Write: write(i.uop); break;
  case InstKind::StageFill: put(i.uop, value(i.uop->src[0]->src[0])); break;
  case InstKind::AccResume: values[i.uop->src[0]] = restOf(i.uop); break;
  case InstKind::Call: llvm_unreachable("a GPU launches followers by themselves");
  case InstKind::Prefetch: break; // hints; plans of GPUs have none
  }
}

llvm::Error KernelEmitter::body() {
  for (size_t n = 0; n < k.linear.insts.size(); ++n) {
    const Inst &i = k.linear.insts[n];
    if (i.kind != InstKind::Define && i.kind != InstKind::AccUpdate) flushUnit();
    if (barriers.before.contains(n)) flushUnit(), machine.barrier();
    if (groups.sums && n == groups.begin) {
      multiplyByGroups();
      n = barriers.endOf[n];
    } else if (i.kind == InstKind::LoopBegin) {
      beginLoop(n);
      if (auto it = barriers.ahead.find(n); it != barriers.ahead.end()) n = it->second - 1;
    } else {
      emit(i);
    }
    if (!s.refused().empty()) return fail(s.refused());
  }
  return llvm::Error::success();
}

/// What a block does with the tile of rows that has its number, one step after another. Rows that a step writes for the
/// next one are in shared memory, there when all threads have passed the barrier between.
llvm::Error KernelEmitter::steps(GpuLaunch &launch) {
  V rows = L::AddressOfOp::create(s.b, s.loc, sharedArray(0, s.i(8), k.rowBytes));
  launch.shared += llvm::alignTo(k.rowBytes, 64);
  std::vector<UOpRef> known(dims.begin(), dims.end());
  known.push_back(k.tile);
  dimValues[k.tile] = s.zext(machine.block(), 64);
  for (const GpuKernel &part : k.steps) {
    KernelEmitter own(c, s, machine, module, part, known, target);
    own.function = function, own.dimValues = dimValues;
    for (const GpuKernel::Argument &a : part.arguments)
      own.buffers.push_back(a.local ? s.offset(rows, s.i(8), s.integer(32, a.number)) : buffers[a.number]);
    if (auto e = own.step(launch, &part == &k.steps.back())) return e;
  }
  return llvm::Error::success();
}

/// All items of a step, as many at once as a block has. Threads wait for each other before arrays that they share are
/// filled again, and, if another step follows, before it reads the rows.
llvm::Error KernelEmitter::step(GpuLaunch &launch, bool last) {
  if (auto e = findCarried()) return e;
  if (auto e = bindThreads(launch)) return e;
  auto items = itemCount(c, k.kernel->sink)->constIndex();
  if (!items) return fail("a tile of rows has no known number of items");
  uint64_t turns = llvm::divideCeil(uint64_t(*items), uint64_t(k.threads / k.group));
  bool shares = llvm::any_of(k.linear.stages, [&](const StageArray &a) { return threads.isShared(a.stage); });
  mlir::Block *header = newBlock(), *each = newBlock(), *exit = newBlock();
  jump(header, {s.integer(32, 0)});
  V turn = header->addArgument(s.i(32), s.loc);
  enter(header);
  branch(s.cmp(ICmp::slt, turn, s.integer(32, turns)), each, exit);
  enter(each);
  setItem(turn);
  if (auto e = body()) return e;
  bool waits = shares && turns > 1;
  if (waits) machine.barrier();
  jump(header, {s.add(turn, uint64_t(1))});
  enter(exit);
  if (!waits && !last) machine.barrier();
  return llvm::Error::success();
}

llvm::Expected<GpuLaunch> KernelEmitter::run() {
  GpuLaunch launch{k.name, k.threads, k.group, {}, 0, 0};
  if (auto e = signature(launch)) return e;
  if (!k.steps.empty()) {
    if (auto e = steps(launch)) return e;
  } else {
    if (auto e = findCarried()) return e;
    if (auto e = bindThreads(launch)) return e;
    if (groups.sums) {
      if (auto e = beginGroups()) return e;
      if (auto e = eachTile([&](V tile) { return groups.tile = tile, body(); })) return e;
      jump(groups.end), enter(groups.end);
    } else {
      setItem(machine.block());
      if (auto e = body()) return e;
    }
  }
  L::ReturnOp::create(s.b, s.loc, mlir::ValueRange{});
  if (k.kernel->warpGroups) launch.group = launch.threads / k.perBlock; // a launch has a block for so many items
  return launch;
}

llvm::Expected<GpuLaunch> astra::gpu::emitKernel(Context &c, Scalar &s, Machine &machine, mlir::ModuleOp module,
                                                 const GpuKernel &k, llvm::ArrayRef<UOpRef> dims,
                                                 const GpuTarget &target) {
  return KernelEmitter(c, s, machine, module, k, dims, target).run();
}
