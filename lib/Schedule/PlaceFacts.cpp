//===- PlaceFacts.cpp: where values are stored, for who chooses a layout ----===//
#include "PlaceFacts.h"
#include "Thresholds.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/View.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

static constexpr uint32_t toBeMade = ~0u; // a buffer

const Place *Scheduler::PlaceFacts::given(UOpRef x) const {
  auto assumed = places.find(x);
  return assumed != places.end() ? &assumed->second : scheduler.places.find(x);
}

std::optional<Layout> Scheduler::PlaceFacts::storedAs(UOpRef param) const {
  if (auto assumed = params.find(param); assumed != params.end()) return assumed->second;
  auto stored = scheduler.storedParams.find(param);
  if (stored == scheduler.storedParams.end()) return std::nullopt;
  return scheduler.out.params[stored->second].layout;
}

const Place *Scheduler::PlaceFacts::placeOf(UOpRef x) {
  if (x->op == Op::Param && !given(x)) add({LayoutStep::Keep, x, storedAs(x).value_or(Layout::rowMajor(x->rank()))});
  return given(x);
}

std::optional<int64_t> Scheduler::PlaceFacts::strideOf(UOpRef view, unsigned d) {
  SmallVector<UOpRef, 4> index;
  UOpRef axis = nullptr;
  for (unsigned i = 0; i < view->rank(); ++i) {
    UOpRef r = c.make(Op::Range, {scheduler.closeIndex(view->shape[i])}, {1000 + i, int64_t(RangeKind::Loop)});
    if (i == d) axis = r;
    index.push_back(r);
  }
  const Place *p;
  while (!(p = placeOf(view))) {
    if (!has(view->op, Movement) || view->op == Op::Pad) return std::nullopt;
    index = throughMovement(c, view, index);
    view = view->src[0];
  }
  for (UOpRef &i : index) i = scheduler.closeIndex(i);
  UOpRef a = address(c, p->layout, p->allocated, index);
  int64_t stride = 0;
  for (const IndexTerm &t : terms(a)) {
    if (t.atoms.size() == 1 && t.atoms[0] == axis)
      stride += t.coefficient;
    else
      for (UOpRef x : t.atoms)
        if (llvm::is_contained(topoSort(x), axis)) return std::nullopt;
  }
  return stride;
}

bool Scheduler::PlaceFacts::computedHere(UOpRef operand) const {
  return has(operand->op, Elementwise) && !given(operand);
}

bool Scheduler::PlaceFacts::runsAlong(UOpRef operand, unsigned axis) {
  if (!computedHere(operand)) return strideOf(operand, axis) == 1;
  if (axis + 1 == operand->rank()) return true; // of what lies as it is written
  std::vector<UOpRef> stack{operand};
  llvm::DenseSet<UOpRef> seen;
  while (!stack.empty()) {
    UOpRef n = stack.back();
    stack.pop_back();
    UOpRef base = n;
    while (has(base->op, Movement) && base->op != Op::Pad) base = base->src[0];
    if (!seen.insert(n).second || base->op == Op::Const) continue;
    if (computedHere(n) && n->shape == operand->shape) {
      stack.insert(stack.end(), n->tensors().begin(), n->tensors().end());
      continue;
    }
    auto stride = n->op == Op::Param ? std::nullopt : strideOf(n, axis); // whose layout may be still to choose
    if (!stride || (*stride != 1 && *stride != 0)) return false;
  }
  return true;
}

UOpRef Scheduler::PlaceFacts::paramOf(UOpRef operand) const {
  return operand->op == Op::Param ? operand : computedHere(operand) ? weightBehind(operand) : nullptr;
}

Layout astra::ofBytes(const Layout &words, ArrayRef<int64_t> axes) {
  Layout l;
  int64_t last = int64_t(axes.size()) - 1;
  for (const MemoryDim &d : words.dims) l.dims.push_back({axes[d.axis], d.div * (d.axis == last ? 4 : 1), d.modulus});
  l.dims.push_back({axes[last], 1, 4});
  return l;
}

bool Scheduler::PlaceFacts::canStore(UOpRef operand, const Layout &layout) const {
  SmallVector<int64_t, 6> axes;
  bool words = operand->op == Op::Words;
  UOpRef param = words ? paramOfWords(operand, axes) : paramOf(operand);
  if (!param) return false;
  std::optional<Layout> stored = storedAs(param);
  return !stored || *stored == (words ? ofBytes(layout, axes) : layout);
}

bool Scheduler::PlaceFacts::unpacks(UOpRef view, unsigned axis) {
  const Place *home = scheduler.packedFrom.find(view);
  if (!home || !given(view)) return false;
  PlaceFacts unpacked = *this;
  unpacked.places[view] = *home;
  return unpacked.strideOf(view, axis) == 1;
}

UOpRef Scheduler::PlaceFacts::bytesOf(UOpRef words) const {
  UOpRef x = words->src[0];
  while (x->op == Op::Permute && !given(x)) x = x->src[0];
  return x;
}

std::optional<Place> Scheduler::PlaceFacts::placeInBytes(UOpRef words) {
  UOpRef x = words->src[0], bytes = bytesOf(words);
  SmallVector<int64_t, 6> axes(x->rank()); // of the bytes, by those of the words
  std::iota(axes.begin(), axes.end(), 0);
  for (; x != bytes; x = x->src[0])
    for (int64_t &axis : axes) axis = x->ints[axis];
  const Place *p = placeOf(bytes);
  if (!p || !p->layout.isPermuted() || p->layout.dims.back().axis != axes.back() ||
      p->allocated[axes.back()] != bytes->shape[axes.back()] ||
      (p->buffer != toBeMade && scheduler.routine->buffers[p->buffer].kind == BufferKind::State))
    return std::nullopt;
  Place at{p->buffer, {}, {}};
  for (const MemoryDim &d : p->layout.dims) at.layout.dims.push_back({llvm::find(axes, d.axis) - axes.begin()});
  for (int64_t axis : axes) at.allocated.push_back(p->allocated[axis]);
  at.allocated.back() = words->shape.back();
  return at;
}

std::optional<Layout> Scheduler::PlaceFacts::inputOrder(UOpRef v, bool placed) {
  struct Visit {
    UOpRef n;
    bool aligned; // its axes are those of v
  };
  std::vector<Visit> stack{{v, true}};
  llvm::DenseSet<UOpRef> seen;
  while (!stack.empty()) {
    auto [n, aligned] = stack.back();
    stack.pop_back();
    if (n->isIndex() || !seen.insert(n).second) continue;
    const Place *p = n == v && !placed ? nullptr : given(n);
    if (p && n->rank() == v->rank() && p->layout.isPermuted() && !p->layout.isRowMajor() && !p->layout.isStrided())
      return p->layout;
    if (p || isStored(n) || n->op == Op::Permute) continue;
    if (int64_t axis = aligned ? innermostOfView(n) : -1; axis >= 0) return lastAxis(n->rank(), axis);
    aligned &= has(n->op, Elementwise);
    for (UOpRef s : llvm::reverse(n->src)) stack.push_back({s, aligned});
  }
  return std::nullopt;
}

int64_t Scheduler::PlaceFacts::innermostOfView(UOpRef view) {
  UOpRef base = view;
  while (has(base->op, Movement) && base->op != Op::Pad && !given(base)) base = base->src[0];
  const Place *p = base == view ? nullptr : given(base);
  if (!p || !p->layout.isPermuted() || p->layout.isRowMajor() || p->layout.isStrided()) return -1;
  for (unsigned axis = 0; axis + 1 < view->rank(); ++axis)
    if (view->shape[axis]->hi >= threshold::viewLanes && strideOf(view, axis) == 1) return axis;
  return -1;
}

void Scheduler::PlaceFacts::add(LayoutStep step) {
  UOpRef x = step.value;
  switch (step.kind) {
  case LayoutStep::Store: params[x] = step.layout; break;
  case LayoutStep::Keep:
    params[x] = step.layout;
    places[x] = {toBeMade, step.layout, std::vector<UOpRef>(x->shape)};
    break;
  case LayoutStep::StoreWords: places[x] = {toBeMade, step.layout, std::vector<UOpRef>(x->shape)}; break;
  case LayoutStep::ShareBytes: places[x] = *placeInBytes(x); break;
  case LayoutStep::Unpack: places[x] = *scheduler.packedFrom.find(x); break;
  case LayoutStep::Compute:
  case LayoutStep::Pack:
  case LayoutStep::Repack: places[x] = {toBeMade, step.layout, scheduler.bound(x->shape)}; break;
  }
  steps.push_back(std::move(step));
}
