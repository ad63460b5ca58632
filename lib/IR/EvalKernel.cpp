//===- EvalKernel.cpp: running kernel UOps ---------------------------------===//
// Takes:    a sink of stores and the bytes of its buffers.
// Gives:    the buffers after the kernel: the meaning of ranges, folds, stages, loads and stores.
// Keeps:    each value is computed once for each point of the ranges it depends on; loops nest as folds and stages do,
//           64 deep at most. A load outside of its buffer is refused where a store needs it: what depends on no range
//           of a fold is computed before it, and nobody asks for it where the fold has no point (Linear.h).
// Does not: know of plans, vectors' widths or targets.
#include "EvalImpl.h"
#include "astra/IR/MatrixUnits.h"
#include "llvm/ADT/BitVector.h"

using namespace astra;
using namespace astra::eval;
using llvm::ArrayRef;
using llvm::Error;

namespace {
constexpr Op foldOps[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or, Op::Fma, Op::Dot4}; // by Combine

class KernelRun {
public:
  KernelRun(UOpRef sink, llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> buffers,
            const std::map<std::string, int64_t> &dims)
      : buffers(buffers), dims(dims), order(topoSort(sink)) {
    for (uint32_t i = 0; i < order.size(); ++i) at[order[i]] = i;
    for (UOpRef n : order)
      if (n->op == Op::Range) rangeNumber.try_emplace(n, rangeNumber.size());
    state.resize(order.size());
    for (uint32_t i = 0; i < order.size(); ++i) findFree(i);
  }
  Error run(UOpRef sink);

private:
  struct State {
    llvm::BitVector free;      // ranges that the value depends on
    uint64_t stamp = 0;        // when it was computed; 0: never
    int64_t index = 0;         // of a symbolic integer
    Tensor value;              // of a scalar or vector
    std::vector<Tensor> cells; // of a stage, row-major over `extents`; of what runs, one for each point of its lanes
    Dims extents;
    std::vector<uint32_t> body; // of what closes ranges: the nodes to compute at each point; of what runs: its lanes
    std::string outside;        // why there is no value: a load that it needs is outside of its buffer
  };

  /// Notes that the node of s has no value if one of these has none.
  bool lacks(State &s, ArrayRef<UOpRef> sources) {
    for (UOpRef x : sources)
      if (const std::string &why = of(x).outside; !why.empty()) {
        s.outside = why;
        return true;
      }
    return false;
  }
  static bool closes(UOpRef n) { return n->op == Op::Fold || n->op == Op::LaneFold || n->op == Op::Stage; }
  State &of(UOpRef n) { return state[at.lookup(n)]; }
  void findFree(uint32_t i);
  std::vector<uint32_t> nodesWithin(ArrayRef<UOpRef> roots, const llvm::BitVector &allowed,
                                    const llvm::BitVector *needed);
  bool fresh(const State &s) const {
    for (unsigned r : s.free.set_bits())
      if (s.stamp < rangeStamp[r]) return false;
    return s.stamp != 0;
  }
  Error compute(ArrayRef<uint32_t> list) {
    for (uint32_t i : list)
      if (!fresh(state[i])) {
        if (Error e = evaluate(i)) return e;
        state[i].stamp = ++now;
      }
    return Error::success();
  }
  llvm::Expected<int64_t> extentOf(UOpRef range);
  /// Calls body at every point of the ranges, row-major; an extent may depend on the ranges before it.
  Error each(ArrayRef<UOpRef> ranges, llvm::function_ref<Error()> body);
  Error evaluate(uint32_t i);
  Error evaluateIndex(UOpRef n, State &s);
  Error fold(UOpRef n, State &s);
  void stepOfUnit(const UnitStep &unit, Tensor &sum, ArrayRef<UOpRef> words);
  Error running(UOpRef n, State &s);
  Error laneFold(UOpRef n, State &s);
  Error stage(UOpRef n, State &s);
  Error readStage(UOpRef n, State &s);
  Error load(UOpRef n, State &s);
  Error store(UOpRef n);
  Error runGroup(ArrayRef<UOpRef> stores);
  Result combined(Op op, DType t, ArrayRef<const Tensor *> in) {
    UOp node{};
    node.op = op;
    node.dtype = t;
    return evalOp({&node, in, {}, in[0]->shape});
  }

  llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> buffers;
  const std::map<std::string, int64_t> &dims;
  std::vector<UOpRef> order;
  llvm::DenseMap<UOpRef, uint32_t> at;
  llvm::DenseMap<UOpRef, unsigned> rangeNumber;
  std::vector<State> state;
  llvm::SmallVector<uint64_t> rangeStamp;
  llvm::DenseMap<UOpRef, std::vector<uint32_t>> extentLists;
  uint64_t now = 0;
  unsigned depth = 0;
};
} // namespace

void KernelRun::findFree(uint32_t i) {
  UOpRef n = order[i];
  State &s = state[i];
  s.free.resize(rangeNumber.size());
  rangeStamp.resize(rangeNumber.size());
  for (UOpRef src : n->src) s.free |= of(src).free;
  if (n->op == Op::Range) s.free.set(rangeNumber[n]);
  if (n->op == Op::Running)
    for (auto [r, number] : rangeNumber)
      if (s.free.test(number) && r->ints[0] > n->indices()[0]->ints[0]) s.body.push_back(at.lookup(r));
  llvm::sort(s.body);
  if (!closes(n)) return;
  llvm::BitVector closed(rangeNumber.size());
  for (UOpRef r : n->indices()) closed.set(rangeNumber[r]);
  llvm::BitVector allowed = s.free;
  s.free.reset(closed);
  s.body = nodesWithin(n->op == Op::Fold ? n->tensors().drop_front() : n->tensors(), allowed, &closed);
}

/// Nodes that roots reach, which depend on `allowed` ranges alone and (if given) on one of `needed`; sources first.
std::vector<uint32_t> KernelRun::nodesWithin(ArrayRef<UOpRef> roots, const llvm::BitVector &allowed,
                                             const llvm::BitVector *needed) {
  std::vector<uint32_t> list, stack;
  llvm::DenseMap<uint32_t, bool> seen;
  auto visit = [&](UOpRef n) {
    uint32_t i = at.lookup(n);
    if (needed && !state[i].free.anyCommon(*needed)) return;
    if (seen.try_emplace(i, true).second) stack.push_back(i);
  };
  for (UOpRef r : roots) visit(r);
  while (!stack.empty()) {
    uint32_t i = stack.back();
    stack.pop_back();
    if (!state[i].free.test(allowed)) list.push_back(i); // no range outside `allowed`
    for (UOpRef src : order[i]->src) visit(src);
  }
  llvm::sort(list);
  return list;
}

llvm::Expected<int64_t> KernelRun::extentOf(UOpRef range) {
  UOpRef extent = range->src[0];
  auto [it, isNew] = extentLists.try_emplace(range);
  if (isNew) it->second = nodesWithin({extent}, llvm::BitVector(rangeNumber.size(), true), nullptr);
  if (Error e = compute(it->second)) return std::move(e);
  if (const std::string &why = of(extent).outside; !why.empty()) return llvm::createStringError(why);
  return of(extent).index;
}

Error KernelRun::each(ArrayRef<UOpRef> ranges, llvm::function_ref<Error()> body) {
  if (ranges.empty()) return body();
  Dims extent(ranges.size());
  size_t level = 0;
  auto enter = [&](int64_t v) {
    State &s = of(ranges[level]);
    s.index = v;
    s.stamp = rangeStamp[rangeNumber[ranges[level]]] = ++now;
  };
  auto begin = [&]() -> Error {
    auto v = extentOf(ranges[level]);
    if (!v) return v.takeError();
    extent[level] = *v;
    enter(-1);
    return Error::success();
  };
  if (Error e = begin()) return e;
  while (true) {
    int64_t next = of(ranges[level]).index + 1;
    if (next >= extent[level]) {
      if (level == 0) return Error::success();
      --level;
      continue;
    }
    enter(next);
    if (level + 1 < ranges.size()) {
      ++level;
      if (Error e = begin()) return e;
    } else if (Error e = body())
      return e;
  }
}

Error KernelRun::evaluateIndex(UOpRef n, State &s) {
  if (n->op == Op::Range) return Error::success(); // set by its loop
  if (n->op == Op::Extent) {
    s.index = Native<int64_t>::load(of(n->src[0]).value.bytes.data(), 0);
    return Error::success();
  }
  if (n->isConst()) {
    s.index = n->ints[0];
  } else if (n->op == Op::Dim) {
    auto it = dims.find(n->str.str());
    if (it == dims.end()) return llvm::createStringError("kernel: dim " + n->str + " is not given");
    s.index = it->second;
  } else {
    // 64 bits that wrap, x/0 = 0: what a gate excludes may compute anything, what is accessed is checked there.
    uint64_t x = of(n->src[0]).index, y = of(n->src[1]).index;
    switch (n->op) {
    case Op::Add: s.index = int64_t(x + y); break;
    case Op::Mul: s.index = int64_t(x * y); break;
    case Op::FloorDiv: s.index = floorDiv(int64_t(x), int64_t(y)); break;
    case Op::Mod: s.index = int64_t(x - uint64_t(floorDiv(int64_t(x), int64_t(y))) * y); break;
    case Op::Min: s.index = std::min(int64_t(x), int64_t(y)); break;
    case Op::Max: s.index = std::max(int64_t(x), int64_t(y)); break;
    default: return llvm::createStringError("kernel: %s of indices has no value", info(n->op).mnemonic);
    }
  }
  return Error::success();
}

/// The addend, of f32, becomes the sum.
void KernelRun::stepOfUnit(const UnitStep &unit, Tensor &sum, ArrayRef<UOpRef> words) {
  llvm::SmallVector<uint32_t, 32> w(words.size());
  for (int64_t lane = 0; lane < sum.count(); ++lane) {
    for (auto [to, x] : llvm::zip_equal(w, words)) to = Native<uint32_t>::load(of(x).value.bytes.data(), lane);
    uint32_t addend = Native<uint32_t>::load(sum.bytes.data(), lane);
    Native<uint32_t>::store(sum.bytes.data(), lane, matrixStep(unit, addend, w));
  }
}

Error KernelRun::fold(UOpRef n, State &s) {
  if (!lacks(s, n->src[0])) s.value = of(n->src[0]).value;
  const UnitStep *unit = unitStepOf(Combine(n->ints[0]));
  Op op = unit ? Op::Fma : foldOps[n->ints[0]];
  return each(n->indices(), [&]() -> Error {
    if (Error e = compute(s.body)) return e;
    if (!s.outside.empty() || lacks(s, n->tensors().drop_front())) return Error::success();
    unsigned each = valuesOf(Combine(n->ints[0]));
    for (unsigned i = 1; i < n->ntensors; i += each) {
      if (unit) {
        stepOfUnit(*unit, s.value, n->tensors().slice(i, each));
        continue;
      }
      const Tensor *in[3] = {&s.value, &of(n->src[i]).value, nullptr};
      if (each == 2) in[2] = &s.value, in[0] = &of(n->src[i]).value, in[1] = &of(n->src[i + 1]).value;
      auto v = combined(op, n->dtype, ArrayRef(in, each + 1));
      if (!v) return v.takeError();
      s.value = std::move(*v);
    }
    return Error::success();
  });
}

/// Once for each point of its range, in order; a cell holds what came before.
Error KernelRun::running(UOpRef n, State &s) {
  int64_t cell = 0, cells = 1;
  for (uint32_t r : s.body) { // lanes
    int64_t lanes = order[r]->src[0]->constIndex().value_or(1);
    cell = cell * lanes + state[r].index, cells *= lanes;
  }
  s.cells.resize(cells);
  if (of(n->indices()[0]).index == 0) s.cells[cell] = of(n->src[0]).value;
  auto v = combined(foldOps[n->ints[0]], n->dtype, {&s.cells[cell], &of(n->src[1]).value});
  if (!v) return v.takeError();
  s.value = s.cells[cell] = std::move(*v);
  return Error::success();
}

Error KernelRun::laneFold(UOpRef n, State &s) {
  std::vector<Tensor> lane;
  if (Error e = each(n->indices(), [&]() -> Error {
        if (Error e = compute(s.body)) return e;
        lacks(s, n->src[0]);
        lane.push_back(of(n->src[0]).value);
        return Error::success();
      }))
    return e;
  if (lane.size() > 64 || (lane.size() & (lane.size() - 1)))
    return llvm::createStringError("lanefold: %zu lanes, expected a power of two up to 64", lane.size());
  if (!s.outside.empty()) return Error::success();
  for (unsigned step = lane.size() / 2; step; step /= 2)
    for (unsigned j = 0; j < step; ++j) {
      auto v = combined(foldOps[n->ints[0]], n->dtype, {&lane[j], &lane[j + step]});
      if (!v) return v.takeError();
      lane[j] = std::move(*v);
    }
  s.value = std::move(lane[0]);
  return Error::success();
}

Error KernelRun::stage(UOpRef n, State &s) {
  s.extents.clear();
  for (UOpRef r : n->indices()) {
    auto v = extentOf(r);
    if (!v) return v.takeError();
    s.extents.push_back(*v);
  }
  s.cells.assign(product(s.extents), {});
  Dims strides = rowMajor(s.extents);
  return each(n->indices(), [&]() -> Error {
    if (Error e = compute(s.body)) return e;
    if (lacks(s, n->tensors())) return Error::success();
    int64_t cell = 0;
    for (auto [r, stride] : llvm::zip(n->indices(), strides)) cell += of(r).index * stride;
    s.cells[cell] = of(n->src[0]).value;
    for (UOpRef x : n->tensors().drop_front()) llvm::append_range(s.cells[cell].bytes, of(x).value.bytes);
    return Error::success();
  });
}

Error KernelRun::readStage(UOpRef n, State &s) {
  const State &from = of(n->src[0]);
  const Tensor *gate = n->ntensors == 2 ? &of(n->src[1]).value : nullptr;
  Dims strides = rowMajor(from.extents);
  s.value = zeros(n->dtype, {});
  std::vector<uint8_t> bytes;
  // Of a stage of vectors, or of several values, the last index counts elements.
  int64_t wide = int64_t(n->src[0]->ntensors) * (n->src[0]->rank() ? *n->src[0]->shape[0]->constIndex() : 1),
          w = elementBytes(n->dtype);
  for (int64_t lane = 0; lane < n->ints[0]; ++lane) {
    if (gate && !gate->bytes[lane]) {
      bytes.resize(bytes.size() + w);
      continue;
    }
    int64_t cell = 0, element = 0;
    for (size_t i = 0; i < strides.size(); ++i) {
      int64_t v = of(n->indices()[i]).index;
      if (i + 1 == strides.size()) {
        element = v + lane;
        v = element >= 0 ? element / wide : -1;
        element %= wide;
      }
      if (v < 0 || v >= from.extents[i])
        return llvm::createStringError("at: index %lld of a stage of extent %lld", (long long)v,
                                       (long long)from.extents[i]);
      cell += v * strides[i];
    }
    llvm::append_range(bytes, llvm::ArrayRef(from.cells[cell].bytes).slice(element * w, w));
  }
  if (n->ints[0] > 1) s.value.shape = {n->ints[0]};
  s.value.bytes = std::move(bytes);
  return Error::success();
}

Error KernelRun::load(UOpRef n, State &s) {
  llvm::ArrayRef<uint8_t> buffer = buffers[n->src[0]->ints[0]];
  const Tensor *gate = n->ntensors == 2 ? &of(n->src[1]).value : nullptr;
  int64_t lanes = n->ints[0], w = elementBytes(n->dtype), first = of(n->indices()[0]).index;
  s.value = zeros(n->dtype, lanes > 1 ? ArrayRef(lanes) : ArrayRef<int64_t>());
  for (int64_t l = 0; l < lanes; ++l) {
    if (gate && !gate->bytes[l]) continue;
    if (first + l < 0 || first + l >= int64_t(buffer.size()) / w) {
      s.outside = "load: element " + std::to_string(first + l) + " of buffer " + std::to_string(n->src[0]->ints[0]) +
                  ", which has " + std::to_string(buffer.size() / w);
      return Error::success();
    }
    memcpy(&s.value.bytes[l * w], &buffer[(first + l) * w], w);
  }
  return Error::success();
}

Error KernelRun::store(UOpRef n) {
  if (State &s = of(n); lacks(s, n->src)) return llvm::createStringError(s.outside);
  llvm::MutableArrayRef<uint8_t> buffer = buffers[n->src[0]->ints[0]];
  const Tensor &value = of(n->src[1]).value, *gate = n->ntensors == 3 ? &of(n->src[2]).value : nullptr;
  int64_t lanes = n->ints[0], w = elementBytes(value.dtype), first = of(n->indices()[0]).index;
  for (int64_t l = 0; l < lanes; ++l) {
    if (gate && !gate->bytes[l]) continue;
    if (first + l < 0 || first + l >= int64_t(buffer.size()) / w)
      return llvm::createStringError("store: element %lld of buffer %lld, which has %lld", (long long)(first + l),
                                     (long long)n->src[0]->ints[0], (long long)(buffer.size() / w));
    memcpy(&buffer[(first + l) * w], &value.bytes[l * w], w);
  }
  return Error::success();
}

Error KernelRun::evaluate(uint32_t i) {
  UOpRef n = order[i];
  State &s = state[i];
  if (n->op != Op::Running || of(n->indices()[0]).index == 0) s.outside.clear();
  if (!closes(n) && lacks(s, n->src)) return Error::success();
  if (n->isIndex()) return evaluateIndex(n, s);
  if (closes(n)) {
    if (depth == 64) return llvm::createStringError("kernel: loops nest deeper than 64");
    ++depth;
    Error e = n->op == Op::Fold ? fold(n, s) : n->op == Op::LaneFold ? laneFold(n, s) : stage(n, s);
    --depth;
    return e;
  }
  switch (n->op) {
  case Op::Buffer:
    if (n->ints[0] < 0 || n->ints[0] >= int64_t(buffers.size()))
      return llvm::createStringError("buffer: slot %lld of %zu", (long long)n->ints[0], buffers.size());
    return Error::success();
  case Op::Store:
  case Op::Sink: return Error::success(); // done at the end of a point
  case Op::Running: return running(n, s);
  case Op::Load: return load(n, s);
  case Op::At: return readStage(n, s);
  case Op::Splat:
  case Op::Stack:
  case Op::Lanes: {
    std::vector<uint8_t> bytes;
    for (UOpRef src : n->src) llvm::append_range(bytes, of(src).value.bytes);
    size_t w = elementBytes(n->dtype);
    if (n->op == Op::Lanes) bytes = {bytes.begin() + n->ints[0] * w, bytes.begin() + (n->ints[0] + n->ints[1]) * w};
    if (n->op == Op::Splat)
      while (bytes.size() < n->ints[0] * w) bytes.insert(bytes.end(), bytes.begin(), bytes.begin() + w);
    s.value = {n->dtype, {}, std::move(bytes)};
    if (n->rank()) s.value.shape = {int64_t(s.value.bytes.size() / w)};
    return Error::success();
  }
  default: break;
  }
  llvm::SmallVector<const Tensor *, 3> in;
  for (UOpRef src : n->tensors()) in.push_back(&of(src).value);
  Dims indices, shape;
  for (UOpRef src : n->indices()) indices.push_back(of(src).index);
  for (UOpRef d : n->shape) shape.push_back(d->constIndex().value_or(1));
  auto v = evalOp({n, in, indices, shape});
  if (!v) return v.takeError();
  s.value = std::move(*v);
  return Error::success();
}

/// Stores with the same open ranges: one loop nest, parallel ranges outermost, then by axis number.
Error KernelRun::runGroup(ArrayRef<UOpRef> stores) {
  llvm::BitVector open = of(stores[0]).free;
  std::vector<UOpRef> left, ranges;
  for (UOpRef n : order)
    if (n->op == Op::Range && open.test(rangeNumber[n])) left.push_back(n);
  llvm::sort(left, [](UOpRef a, UOpRef b) {
    bool p = RangeKind(a->ints[1]) != RangeKind::Parallel, q = RangeKind(b->ints[1]) != RangeKind::Parallel;
    return std::pair(p, a->ints[0]) < std::pair(q, b->ints[0]);
  });
  llvm::BitVector have(rangeNumber.size());
  while (!left.empty()) { // an extent may depend on another range, which must come first
    auto it = llvm::find_if(left, [&](UOpRef r) { return !of(r->src[0]).free.test(have); });
    if (it == left.end()) return llvm::createStringError("kernel: extents of ranges depend on each other");
    have.set(rangeNumber[*it]);
    ranges.push_back(*it);
    left.erase(it);
  }
  auto list = nodesWithin(stores, open, nullptr);
  return each(ranges, [&]() -> Error {
    if (Error e = compute(list)) return e;
    for (UOpRef s : stores)
      if (Error e = store(s)) return e;
    return Error::success();
  });
}

Error KernelRun::run(UOpRef sink) {
  std::vector<UOpRef> left(sink->src.begin(), sink->src.end());
  while (!left.empty()) {
    std::vector<UOpRef> group, rest;
    for (UOpRef s : left) (of(s).free == of(left[0]).free ? group : rest).push_back(s);
    if (Error e = runGroup(group)) return e;
    left = std::move(rest);
  }
  return Error::success();
}

Error astra::evalKernel(UOpRef sink, llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> buffers,
                        const std::map<std::string, int64_t> &dims) {
  if (sink->op != Op::Sink)
    return llvm::createStringError("kernel: found %s, expected a sink", info(sink->op).mnemonic);
  return KernelRun(sink, buffers, dims).run(sink);
}
