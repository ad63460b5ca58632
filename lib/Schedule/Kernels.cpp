//===- Kernels.cpp: closing kernels, choosing layouts ----------------------===//
// Takes:    a realized value and where the values below it lie.
// Gives:    a closed graph over args, so that equal kernels are one, and a layout for the result.
// Keeps:    layouts are a matter of speed alone: every kernel can read every layout. Those of contracts: see
//           ContractLayout.cpp.
#include "PlaceFacts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <limits>

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

void Scheduler::store(UOpRef param, Layout layout) {
  storedParams[param] = out.params.size();
  out.params.push_back({param, std::move(layout), -1});
}

const Place *Scheduler::placeOf(UOpRef x) {
  if (const Place *p = places.find(x)) return p;
  if (x->op != Op::Param) return nullptr;
  if (!storedParams.count(x)) store(x, Layout::rowMajor(x->rank()));
  uint32_t number = storedParams[x];
  std::vector<UOpRef> shape(x->shape);
  const Layout &layout = out.params[number].layout;
  places.setForGood(x, {addBuffer(BufferKind::Param, number, x->dtype, shape, layout), layout, shape});
  return places.find(x);
}

UOpRef Scheduler::closeIndex(UOpRef x) const {
  SmallVector<UOpRef, 4> from, to;
  for (UOpRef n : topoSort(x))
    if (const UOpRef *now = indexMap.find(n)) from.push_back(n), to.push_back(*now);
  return from.empty() ? x : idxSubstitute(c, x, from, to);
}

UOpRef Scheduler::close(UOpRef v, KernelSpec &spec, std::vector<uint32_t> &buffers,
                        llvm::DenseMap<UOpRef, UOpRef> &closed, UOpRef computed) {
  std::vector<std::pair<UOpRef, unsigned>> stack{{v, 0}};
  while (!stack.empty()) {
    auto &[n, next] = stack.back();
    if (closed.count(n)) {
      stack.pop_back();
      continue;
    }
    if (n->isIndex()) {
      closed[n] = closeIndex(n);
      stack.pop_back();
      continue;
    }
    if (const Place *p = n == computed ? nullptr : placeOf(n)) {
      SmallVector<UOpRef, 4> shape;
      for (UOpRef d : n->shape) shape.push_back(closeIndex(d));
      UOpRef a = b.arg(spec.inputs.size(), n->dtype, shape);
      spec.inputs.push_back({a, p->layout, p->allocated});
      buffers.push_back(p->buffer);
      closed[n] = a;
      stack.pop_back();
      continue;
    }
    if (next < n->src.size()) {
      UOpRef s = n->src[next++];
      if (!closed.count(s)) stack.push_back({s, 0});
      continue;
    }
    SmallVector<UOpRef, 4> src;
    for (UOpRef s : n->src) src.push_back(closed[s]);
    closed[n] = c.withSources(n, src);
    if (const Origin *from = origin.lookup(n)) computing.insert(from->names.begin(), from->names.end());
    stack.pop_back();
  }
  return closed[v];
}

uint32_t Scheduler::kernelNumber(KernelSpec spec) {
  auto same = [](const Placed &a, const Placed &b) {
    return a.value == b.value && a.layout == b.layout && a.allocated == b.allocated && a.begin == b.begin;
  };
  std::vector<uint64_t> key{spec.outputs[0].value->hash, spec.inputs.size()};
  for (uint32_t k : kernelsByHash[key]) {
    const KernelSpec &o = out.kernels[k];
    auto sameFollower = [](const Follower &a, const Follower &b) {
      return a.spec.name == b.spec.name && a.buffers == b.buffers;
    };
    if (o.inPlace == spec.inPlace && o.grid == spec.grid && o.follows == spec.follows &&
        llvm::equal(o.followers, spec.followers, sameFollower) && o.vectorIndex == spec.vectorIndex &&
        o.mostRows == spec.mostRows && same(o.outputs[0], spec.outputs[0]) && llvm::equal(o.inputs, spec.inputs, same))
      return k;
  }
  UOpRef named = spec.rootOp ? spec.rootOp : spec.outputs[0].value;
  spec.name = "k" + std::to_string(out.kernels.size()) + "_" +
              (spec.grid.empty() ? info(named->op).mnemonic : "custom") + (spec.mostRows ? "_thin" : "") +
              (spec.followers.empty() ? "" : "_joined");
  kernelsByHash[key].push_back(out.kernels.size());
  out.kernels.push_back(std::move(spec));
  return out.kernels.size() - 1;
}

void Scheduler::emitKernel(KernelSpec spec, std::vector<uint32_t> buffers) {
  LaunchInstr launch;
  launch.buffers = std::move(buffers);
  addVariants(std::move(spec), launch.variants);
  emit(std::move(launch));
}

void Scheduler::dropKernels() {
  constexpr uint32_t unused = ~0u;
  std::vector<uint32_t> number(out.kernels.size(), unused);
  auto visitLaunches = [&](auto visit) {
    auto routine = [&](Routine &r) {
      for (std::vector<Instr> &program : r.programs)
        for (Instr &i : program)
          if (auto *l = std::get_if<LaunchInstr>(&i))
            for (LaunchInstr::Variant &v : l->variants) visit(v.kernel);
    };
    for (ScheduledEntry &e : out.entries) {
      routine(e.routine);
      if (e.strided) routine(e.strided->routine);
    }
    llvm::for_each(out.prepares, routine);
    llvm::for_each(out.derives, routine);
  };
  visitLaunches([&](uint32_t &k) { number[k] = 0; });
  uint32_t count = 0;
  for (size_t k = 0; k < number.size(); ++k)
    if (number[k] != unused) {
      if (count != k) out.kernels[count] = std::move(out.kernels[k]);
      number[k] = count++;
    }
  out.kernels.resize(count);
  visitLaunches([&](uint32_t &k) { k = number[k]; });
}

Layout astra::lastAxis(unsigned rank, int64_t axis) {
  SmallVector<int64_t, 6> order;
  for (unsigned i = 0; i < rank; ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  return Layout::permuted(order);
}

void Scheduler::copyView(UOpRef view, const Place &to, std::vector<UOpRef> begin) {
  KernelSpec spec;
  std::vector<uint32_t> buffers;
  llvm::DenseMap<UOpRef, UOpRef> closed;
  UOpRef v = c.make(Op::Detach, {close(view, spec, buffers, closed, nullptr)});
  spec.outputs.push_back({v, to.layout, to.allocated, std::move(begin)});
  buffers.push_back(to.buffer);
  emitKernel(std::move(spec), std::move(buffers));
}

Place Scheduler::copied(UOpRef view, const Layout &layout) {
  std::vector<UOpRef> allocated = bound(view->shape);
  Place to{slotBuffer(view->dtype, allocated, layout), layout, allocated};
  copyView(view, to);
  return to;
}

void Scheduler::carryOut(ArrayRef<LayoutStep> steps) {
  for (const auto &[kind, value, layout] : steps) switch (kind) {
    case LayoutStep::Store: store(value, layout); break;
    case LayoutStep::Keep: placeOf(value); break;
    case LayoutStep::StoreWords: {
      SmallVector<int64_t, 6> axes;
      uint32_t buffer = placeOf(paramOfWords(value, axes))->buffer;
      places.setForGood(value, {buffer, layout, std::vector<UOpRef>(value->shape)});
      break;
    }
    case LayoutStep::ShareBytes: placeWords(value); break;
    case LayoutStep::Compute: realize(value, nullptr, nullptr); break;
    case LayoutStep::Pack: {
      Place to = copied(value, layout);
      if (const Place *own = places.find(value); own && !packedFrom.count(value)) packedFrom.set(value, Place(*own));
      places.set(value, to);
      break;
    }
    case LayoutStep::Unpack:
      places.set(value, Place(*packedFrom.find(value)));
      packedFrom.erase(value);
      break;
    case LayoutStep::Repack: {
      Place to = copied(value, layout);
      const Place *own = places.find(value);
      lent.push_back({value, own ? std::optional(*own) : std::nullopt});
      places.set(value, to);
      break;
    }
    }
}

void Scheduler::endRepacks(size_t from) {
  for (; lent.size() > from; lent.pop_back()) {
    auto &[view, own] = lent.back();
    if (own)
      places.set(view, *own);
    else
      places.erase(view);
  }
}

std::vector<UOpRef> Scheduler::beginOf(const Part &part) {
  std::vector<UOpRef> begin(part.whole->rank(), c.index(0));
  begin[part.axis] = closeIndex(part.begin);
  return begin;
}

bool Scheduler::liesInWhole(UOpRef v, const Part &part, const Layout &layout, const Place *destination) {
  auto [it, isFirst] = rooms.try_emplace(part.whole);
  Room &room = it->second;
  if (isFirst) {
    std::vector<UOpRef> allocated = bound(part.whole->shape);
    bool direct = destination && routine->buffers[destination->buffer].kind != BufferKind::State &&
                  destination->layout == layout && destination->allocated == allocated;
    room.place = {direct ? destination->buffer : slotBuffer(v->dtype, allocated, layout), layout, allocated};
  }
  return room.place.layout == layout && room.parts.insert(v).second;
}

void Scheduler::concatenate(UOpRef v, const Concat &concat) {
  Room room = std::move(rooms[v]);
  rooms.erase(v);
  for (auto [part, begin] : llvm::zip_equal(concat.parts, concat.begins))
    if (!room.parts.contains(part)) copyView(part, room.place, beginOf({v, concat.axis, begin}));
  places.set(v, room.place);
}

LayoutChoice Scheduler::layoutFor(UOpRef v, UOpRef rootOp) const {
  if (rootOp && rootOp->op == Op::Contract) return contractLayout(rootOp);
  PlaceFacts facts(*this);
  // A kernel that writes rows has them as neighbours.
  if (rootOp && rootOp->op == Op::Reduce && v->shape == rootOp->src[0]->shape) return {Layout::rowMajor(v->rank())};
  // A sum lies in its operand's order: then it goes along what are neighbours in both.
  if (rootOp && rootOp->op == Op::Reduce && v->shape == rootOp->shape && v->rank())
    if (auto order = facts.inputOrder(rootOp->src[0], true); order && order->isPermuted()) {
      ReduceSpec s = llvm::cantFail(decodeReduce(rootOp->ints));
      SmallVector<int64_t, 6> kept;
      for (const MemoryDim &d : order->dims)
        if (!llvm::is_contained(s.axes, d.axis))
          kept.push_back(d.axis - llvm::count_if(s.axes, [&](int64_t axis) { return axis < d.axis; }));
      return {Layout::permuted(kept)};
    }
  return {facts.inputOrder(v, false).value_or(Layout::rowMajor(v->rank()))};
}
