//===- EmitKernel.cpp: linear kernels as functions of the llvm dialect -----===//
// Takes:    instructions in order (Linear.h) and how items are bound to threads.
// Gives:    a function: a loop is three blocks whose arguments are its counter and the accumulators that it changes; a
//           parallel range is a condition on the item's number. A vector of lanes is as many scalars; memory is read
//           and written by as many neighbours as its alignment allows, at most 16 bytes.
// Keeps:    an index has 32 bits where its bounds prove that they suffice, 64 otherwise.
// Does not: reorder or simplify; compute (Scalar.h).
#include "EmitKernel.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace astra;
using namespace astra::gpu;
namespace L = mlir::LLVM;

namespace {

using Lanes = llvm::SmallVector<V, 4>;

bool isParallel(UOpRef range) { return RangeKind(range->ints[1]) == RangeKind::Parallel; }
unsigned lanesOf(UOpRef x) { return x->rank() ? unsigned(x->shape[0]->constIndex().value_or(0)) : 1; }
bool fits32(int64_t lo, int64_t hi) { return lo >= INT32_MIN && hi <= INT32_MAX; }
unsigned widthOf(UOpRef index) { return fits32(index->lo, index->hi) ? 32 : 64; }

/// A power of two, 64 at most, that divides every value of an index.
uint64_t alignmentOf(UOpRef x, unsigned depth = 0) {
  auto low = [](int64_t v) { return v ? std::min<uint64_t>(uint64_t(v) & -uint64_t(v), 64) : 64; };
  if (auto c = x->constIndex()) return low(*c);
  if (depth == 8) return 1;
  auto of = [&](unsigned i) { return alignmentOf(x->src[i], depth + 1); };
  switch (x->op) {
  case Op::Add:
  case Op::Min:
  case Op::Max: return std::min(of(0), of(1));
  case Op::Mul: return std::min<uint64_t>(of(0) * of(1), 64);
  case Op::Mod: return std::min(of(0), of(1));
  default: return 1;
  }
}

class KernelEmitter {
public:
  KernelEmitter(Context &c, Scalar &s, Machine &machine, mlir::ModuleOp module, const GpuKernel &k,
                llvm::ArrayRef<UOpRef> dims)
      : c(c), s(s), machine(machine), module(module), k(k), dims(dims) {}
  llvm::Expected<GpuLaunch> run();

private:
  struct Loop {
    UOpRef range;
    mlir::Block *header, *exit;
    std::vector<UOpRef> carried; // accumulators
  };

  llvm::Error fail(const llvm::Twine &what) const {
    return llvm::createStringError(std::errc::not_supported, "kernel '%s': %s", k.name.c_str(), what.str().c_str());
  }
  V refuse(const llvm::Twine &what) { return s.refuse(what.str()); }
  llvm::Error findCarried();
  llvm::Error prologue(GpuLaunch &launch);
  mlir::Block *newBlock() {
    auto *block = new mlir::Block;
    function.getBody().push_back(block);
    return block;
  }
  void enter(mlir::Block *block) { s.b.setInsertionPointToEnd(block); }
  void jump(mlir::Block *to, llvm::ArrayRef<V> with = {}) { L::BrOp::create(s.b, s.loc, with, to); }
  void branch(V condition, mlir::Block *yes, mlir::Block *no) { L::CondBrOp::create(s.b, s.loc, condition, yes, no); }

  V index(UOpRef x, unsigned width);
  /// The place of an element and `plus` more.
  V at(V pointer, mlir::Type element, V number, uint64_t plus) {
    return s.offset(pointer, element, plus ? s.add(number, plus) : number);
  }
  V indexOp(UOpRef x);
  const Lanes &value(UOpRef x);
  Lanes compute(const Inst &i);
  Lanes elementwise(UOpRef x);
  /// `body` where `condition` holds (null: everywhere); elsewhere zeros of its types.
  Lanes guarded(V condition, llvm::ArrayRef<mlir::Type> types, llvm::function_ref<Lanes()> body);
  V inside(UOpRef at, unsigned first, unsigned lanes, UOpRef count);
  Lanes read(UOpRef x, V pointer, UOpRef at, const Lanes *gate, llvm::function_ref<V(unsigned, unsigned)> condition);
  Lanes load(const Inst &i);
  Lanes stageRead(const Inst &i);
  V stagePlace(const StageArray &a, llvm::ArrayRef<UOpRef> indices, unsigned lanes);
  size_t arrayOf(UOpRef stage) const;
  void put(UOpRef stage);
  void write(UOpRef store);
  void update(UOpRef fold);
  Lanes laneFold(UOpRef fold);
  void findThreads();
  void beginLoop(size_t at);
  void endLoop();

  Context &c;
  Scalar &s;
  Machine &machine;
  mlir::ModuleOp module;
  const GpuKernel &k;
  llvm::ArrayRef<UOpRef> dims;
  L::LLVMFuncOp function;
  llvm::DenseMap<UOpRef, Lanes> values;
  llvm::DenseMap<UOpRef, V> dimValues;
  std::vector<V> buffers, arrays;
  std::vector<uint32_t> usedDims;
  llvm::DenseMap<size_t, std::vector<UOpRef>> carried; // by the number of a LoopBegin
  std::vector<Loop> loops;
  llvm::DenseSet<UOpRef> byThread; // what depends on a thread range that nothing closes
  V lane;                          // the thread's number among those of its item; null where each has its own
  V item, base;                    // the item's number; where those of the next parallel range begin
};

/// Which accumulators begin outside of a loop and change in it.
llvm::Error KernelEmitter::findCarried() {
  std::vector<size_t> open;
  llvm::DenseMap<UOpRef, size_t> depth; // of an accumulator's beginning
  for (size_t n = 0; n < k.linear.insts.size(); ++n) {
    const Inst &i = k.linear.insts[n];
    switch (i.kind) {
    case InstKind::LoopBegin: open.push_back(n); break;
    case InstKind::LoopEnd: open.pop_back(); break;
    case InstKind::AccInit: depth[i.uop] = open.size(); break;
    case InstKind::AccUpdate:
      for (size_t d = depth.lookup(i.uop); d < open.size(); ++d) carried[open[d]].push_back(i.uop);
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
    Lanes part = guarded(when, llvm::SmallVector<mlir::Type>(chunk, element), [&]() -> Lanes {
      V place = this->at(pointer, element, i, l);
      if (chunk == 1) return {L::LoadOp::create(s.b, s.loc, element, place, bytes)};
      V all = L::LoadOp::create(s.b, s.loc, mlir::VectorType::get(chunk, element), place, bytes * chunk);
      Lanes each;
      for (unsigned e = 0; e < chunk; ++e)
        each.push_back(L::ExtractElementOp::create(s.b, s.loc, all, s.integer(32, e)));
      return each;
    });
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

/// The number of an element of an array, i64; the last index counts `lanes` elements.
V KernelEmitter::stagePlace(const StageArray &a, llvm::ArrayRef<UOpRef> indices, unsigned lanes) {
  V place;
  for (size_t d = 0; d < indices.size(); ++d) {
    V i = index(indices[d], 64);
    if (d + 1 == indices.size() && lanes > 1) i = s.mul(i, s.integer(64, lanes));
    place = place ? s.add(s.mul(place, s.integer(64, a.extents[d])), i) : i;
  }
  return place ? place : s.integer(64, 0);
}

Lanes KernelEmitter::stageRead(const Inst &i) {
  UOpRef x = i.uop;
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
  V place = stagePlace(a, x->indices(), 1);
  Lanes out = guarded(condition, llvm::SmallVector<mlir::Type>(lanes, element), [&] {
    Lanes each;
    for (unsigned l = 0; l < lanes; ++l)
      each.push_back(L::LoadOp::create(s.b, s.loc, element, at(arrays[number], element, place, l), bytes));
    return each;
  });
  if (x->dtype == DType::Bool)
    for (V &v : out) v = s.cmp(ICmp::ne, v, 0);
  return out;
}

void KernelEmitter::put(UOpRef stage) {
  size_t number = arrayOf(stage);
  UOpRef v = stage->src[0];
  mlir::Type element = s.memoryType(v->dtype);
  V place = stagePlace(k.linear.stages[number], stage->indices(), lanesOf(v));
  const Lanes all = value(v);
  for (auto [l, x] : llvm::enumerate(all))
    L::StoreOp::create(s.b, s.loc, v->dtype == DType::Bool ? s.zext(x, 8) : x, at(arrays[number], element, place, l),
                       std::max(1u, byteSize(v->dtype)));
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
  V first = lane && !byThread.contains(x) ? s.cmp(ICmp::eq, lane, 0) : V(); // one of them stores what all have
  for (unsigned l = 0; l < lanes; l += chunk) {
    V when = gate.empty() ? V() : gate[l];
    guarded(!first ? when
            : when ? s.band(when, first)
                   : first,
            {}, [&]() -> Lanes {
              V place = this->at(pointer, element, i, l), out = all[l];
              if (chunk > 1) {
                auto type = mlir::VectorType::get(chunk, element);
                out = L::UndefOp::create(s.b, s.loc, type);
                for (unsigned e = 0; e < chunk; ++e)
                  out = L::InsertElementOp::create(s.b, s.loc, out, all[l + e], s.integer(32, e));
              }
              L::StoreOp::create(s.b, s.loc, out, place, bytes * chunk);
              return {};
            });
  }
}

// ---- control
void KernelEmitter::update(UOpRef fold) {
  static constexpr Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or, Op::Fma};
  Op op = ops[fold->ints[0]];
  Lanes x = value(fold->src[1]), y = op == Op::Fma ? value(fold->src[2]) : Lanes(), acc = value(fold);
  for (unsigned l = 0; l < lanesOf(fold); ++l)
    acc[l] = op == Op::Fma ? s.op(op, fold->dtype, {x[l], y[l], acc[l]}) : s.op(op, fold->dtype, {acc[l], x[l]});
  values[fold] = acc;
}

/// What depends on which thread of its item computes it.
void KernelEmitter::findThreads() {
  llvm::DenseMap<UOpRef, UOpRef> of; // the open thread range that a value depends on
  for (UOpRef x : topoSort({k.kernel->sink})) {
    UOpRef range = nullptr;
    for (UOpRef y : x->op == Op::LaneFold ? x->tensors() : x->src)
      if (UOpRef r = of.lookup(y)) {
        if (range && range != r && x->op != Op::Sink) refuse("a value depends on two thread ranges");
        range = r;
      }
    if (x->op == Op::Range && RangeKind(x->ints[1]) == RangeKind::Thread) {
      if (x->src[0]->constIndex() != int64_t(k.group)) refuse("a thread range is not as long as an item has threads");
      values[x] = {lane};
      range = x;
    }
    if (x->op == Op::LaneFold) {
      if (range && range != x->indices()[0]) refuse("a lanefold depends on another thread range than its own");
      range = nullptr;
    }
    if (range) of[x] = range, byThread.insert(x);
  }
}

/// Steps n/2 ... 1 of the tree, each an exchange between lanes; all of them get the result.
Lanes KernelEmitter::laneFold(UOpRef fold) {
  static constexpr Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or};
  Lanes out = value(fold->src[0]);
  for (V &x : out)
    for (unsigned distance = k.group / 2; distance; distance /= 2) {
      V bits = s.bits(x), other;
      unsigned width = s.width(bits);
      if (width <= 32) {
        other = s.trunc(machine.folded(s.zext(bits, 32), distance), width);
      } else {
        V low = machine.folded(s.trunc(bits, 32), distance),
          high = machine.folded(s.trunc(s.lshr(bits, 32u), 32), distance);
        other = s.bor(s.zext(low, 64), s.shl(s.zext(high, 64), 32u));
      }
      x = s.op(ops[fold->ints[0]], fold->dtype, {x, s.isReal(x) ? s.asReal(other) : other});
      if (!x) return {};
    }
  return out;
}

void KernelEmitter::beginLoop(size_t at) {
  UOpRef range = k.linear.insts[at].uop, extent = range->src[0];
  if (byThread.contains(extent)) refuse("the threads of an item go through a loop different numbers of times");
  Loop loop{range, nullptr, nullptr, {}};
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
  loop.header = newBlock();
  llvm::SmallVector<V> begin{s.integer(w, 0)};
  for (UOpRef acc : loop.carried) llvm::append_range(begin, value(acc));
  jump(loop.header, begin);
  for (V v : begin) loop.header->addArgument(v.getType(), s.loc);
  enter(loop.header);
  mlir::Block *body = newBlock();
  loop.exit = newBlock();
  unsigned next = 1;
  for (UOpRef acc : loop.carried)
    for (V &v : values[acc]) v = loop.header->getArgument(next++);
  values[range] = {s.resize(loop.header->getArgument(0), widthOf(range), true)};
  branch(s.cmp(ICmp::slt, loop.header->getArgument(0), n), body, loop.exit);
  enter(body);
  loops.push_back(std::move(loop));
}

void KernelEmitter::endLoop() {
  Loop loop = std::move(loops.back());
  loops.pop_back();
  if (loop.header) {
    llvm::SmallVector<V> next{s.add(loop.header->getArgument(0), uint64_t(1))};
    for (UOpRef acc : loop.carried) llvm::append_range(next, value(acc));
    jump(loop.header, next);
    unsigned at = 1;
    for (UOpRef acc : loop.carried)
      for (V &v : values[acc]) v = loop.header->getArgument(at++);
  } else {
    jump(loop.exit);
  }
  enter(loop.exit);
}

llvm::Error KernelEmitter::prologue(GpuLaunch &launch) {
  llvm::SmallVector<UOpRef> reads; // dims, in the order of their numbers
  llvm::DenseMap<UOpRef, bool> seen;
  auto note = [&](UOpRef x) {
    for (UOpRef d : topoSort({x}))
      if (d->op == Op::Dim) seen[d] = true;
  };
  note(k.kernel->sink);
  for (const KernelBuffer &b : k.kernel->buffers) note(b.elements);
  for (auto [i, d] : llvm::enumerate(dims))
    if (seen.erase(d)) reads.push_back(d), launch.dims.push_back(i);
  if (!seen.empty()) return fail("dim '" + seen.begin()->first->str + "' is not one of the module");

  auto global = L::LLVMPointerType::get(s.b.getContext(), Machine::globalSpace);
  llvm::SmallVector<mlir::Type> types(k.kernel->buffers.size(), global);
  types.append(reads.size(), s.i(64));
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

  constexpr uint64_t most = 16384; // bytes of a thread's own arrays
  if (k.linear.scratchBytes > most)
    return fail("its arrays take " + std::to_string(k.linear.scratchBytes) + " bytes of each thread; at most " +
                std::to_string(most) + " have a GPU form");
  auto own = L::LLVMPointerType::get(s.b.getContext(), machine.privateSpace());
  for (const StageArray &a : k.linear.stages) {
    int64_t count = 1;
    for (int64_t n : a.extents) count *= n;
    auto array = L::LLVMArrayType::get(s.memoryType(a.stage->dtype), std::max<int64_t>(count, 1));
    arrays.push_back(L::AllocaOp::create(s.b, s.loc, own, array, s.integer(32, 1), 16));
  }
  launch.privateBytes = k.linear.scratchBytes;

  UOpRef items = itemCount(c, k.kernel->sink);
  unsigned w = fits32(0, items->hi + k.threads) ? 32 : 64, perBlock = k.threads / k.group;
  V thread = machine.thread(), within = thread;
  if (k.group > 1) {
    within = s.udiv(thread, s.integer(32, k.group));
    lane = s.urem(thread, s.integer(32, k.group));
  }
  findThreads();
  item = s.add(s.mul(s.zext(machine.block(), w), s.integer(w, perBlock)), s.zext(within, w));
  return llvm::Error::success();
}

llvm::Expected<GpuLaunch> KernelEmitter::run() {
  GpuLaunch launch{k.name, k.threads, k.group, {}, 0, 0};
  if (auto e = findCarried()) return e;
  if (auto e = prologue(launch)) return e;
  for (auto [n, i] : llvm::enumerate(k.linear.insts)) {
    switch (i.kind) {
    case InstKind::Define: values[i.uop] = compute(i); break;
    case InstKind::LoopBegin: beginLoop(n); break;
    case InstKind::LoopEnd: endLoop(); break;
    case InstKind::AccInit: {
      Lanes init = value(i.uop->src[0]);
      values[i.uop] = std::move(init);
      break;
    }
    case InstKind::AccUpdate: update(i.uop); break;
    case InstKind::StagePut: put(i.uop); break;
    case InstKind::Write: write(i.uop); break;
    }
    if (!s.refused().empty()) return fail(s.refused());
  }
  L::ReturnOp::create(s.b, s.loc, mlir::ValueRange{});
  return launch;
}

} // namespace

llvm::Expected<GpuLaunch> astra::gpu::emitKernel(Context &c, Scalar &s, Machine &machine, mlir::ModuleOp module,
                                                 const GpuKernel &k, llvm::ArrayRef<UOpRef> dims) {
  return KernelEmitter(c, s, machine, module, k, dims).run();
}
