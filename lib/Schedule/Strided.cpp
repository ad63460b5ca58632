//===- Strided.cpp: entries for tensors at any strides ----------------------===//
// Takes:    an entry, at whose inputs and outputs the caller may have any strides that are not negative.
// Gives:    layouts whose strides are dims, which the runtime sets; copies of inputs for what does not read element by
//           element; kernels of their own for tensors whose last axis is contiguous.
// Keeps:    bits: only addresses differ from those of the entry's other routine.
// Does not: know which strides a call will have.
#include "Legalize.h"
#include "Scheduler.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

bool Scheduler::hasDataExtent(Shape shape) {
  return llvm::any_of(topoSort(shape), [](UOpRef n) { return n->op == Op::Extent; });
}

Layout Scheduler::stridedLayout(UOpRef declared, bool isOutput, uint32_t index, StridedRoutine &to) {
  constexpr int64_t most = int64_t(1) << 40;
  Layout layout = Layout::rowMajor(declared->rank());
  if (!declared->rank() || isSubByte(declared->dtype)) return layout;
  int64_t parts = isComplex(declared->dtype) ? 2 : 1;
  StridedTensor t{isOutput, index, internalDim("span", 0, most), {}};
  for (unsigned axis = 0; axis < declared->rank(); ++axis) {
    t.strides.push_back(internalDim("stride", 0, most));
    layout.strides.push_back(idxMul(c, t.strides.back(), c.index(parts)));
  }
  layout.span = idxMul(c, t.span, c.index(parts));
  if (parts == 2) { // the last axis is that of the two parts
    layout.dims.push_back({int64_t(declared->rank())});
    layout.strides.push_back(c.index(1));
  }
  to.tensors.push_back(std::move(t));
  return layout;
}

/// Whether an op takes each element of its sources where a kernel asks for it, so that strides cost no more than an
/// address.
static bool readsElements(UOpRef n) {
  return has(n->op, Elementwise) || has(n->op, Movement) || n->op == Op::Detach || n->op == Op::Tap ||
         n->op == Op::Reduce || n->op == Op::Cumulate || n->op == Op::Gather || n->op == Op::Pick ||
         n->op == Op::SliceAt || n->op == Op::UpdateAt;
}

void Scheduler::copyWhole(ArrayRef<UOpRef> roots) {
  auto passes = [](UOpRef n) {
    return has(n->op, Elementwise) || has(n->op, Movement) || n->op == Op::Detach || n->op == Op::Tap ||
           n->op == Op::Words;
  };
  llvm::DenseSet<UOpRef> whole; // what is read by other ways
  std::vector<UOpRef> order = topoSort(roots);
  for (UOpRef n : llvm::reverse(order)) {
    if (n->isIndex() || (readsElements(n) && !(passes(n) && whole.contains(n)))) continue;
    for (UOpRef s : n->tensors()) whole.insert(s);
  }
  for (UOpRef n : order)
    if (const Place *p = whole.contains(n) ? places.find(n) : nullptr; p && p->layout.isStrided())
      places.set(n, copied(n, Layout::rowMajor(n->rank())));
}

void Scheduler::addVariants(KernelSpec spec, std::vector<LaunchInstr::Variant> &to) {
  SmallVector<UOpRef, 4> last, ones;
  UOpRef farthest = nullptr; // of the last strides from 1
  KernelSpec contiguous = spec;
  for (std::vector<Placed> *list : {&contiguous.inputs, &contiguous.outputs})
    for (Placed &p : *list)
      for (UOpRef stride : llvm::reverse(p.layout.strides)) {
        if (stride->isConst()) continue;
        UOpRef dim = *llvm::find_if(topoSort(stride), [](UOpRef n) { return n->op == Op::Dim; });
        UOpRef far = idxMax(c, dim, idxSub(c, c.index(2), dim));
        farthest = farthest ? idxMax(c, farthest, far) : far;
        last.push_back(dim), ones.push_back(c.index(1));
        break;
      }
  if (farthest) {
    for (std::vector<Placed> *list : {&contiguous.inputs, &contiguous.outputs})
      for (Placed &p : *list)
        for (UOpRef &stride : p.layout.strides) stride = idxSubstitute(c, stride, last, ones);
    to.push_back({farthest, c.index(1), kernelNumber(std::move(contiguous))});
  }
  to.push_back({nullptr, nullptr, kernelNumber(std::move(spec))});
}
