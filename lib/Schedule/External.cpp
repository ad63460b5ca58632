//===- External.cpp: calls of functions of the program ---------------------===//
// Takes:    an external op with its operands placed.
// Gives:    one instruction, between the kernels that compute its operands and those that read its results.
// Keeps:    the function sees row-major tensors one element behind another: what lies otherwise is copied.
// Does not: know what the function does: a result never lies where an operand does.
#include "astra/IR/External.h"
#include "Scheduler.h"

using namespace astra;

void Scheduler::external(UOpRef n) {
  ExternalSpec s = externalOf(n);
  ExternalInstr call{n->str.str(), s.deterministic, s.effects, {}, {}, o.overlap && runsBeside(n->str)};
  // Elements of data dims lie at the strides of the dims' bounds; only the outermost axis has no say in them.
  auto view = [&](const llvm::Twine &what, const Place &at, DType t, llvm::ArrayRef<UOpRef> shape) {
    ExternalInstr::Tensor out{at.buffer, t, {}};
    for (UOpRef d : shape) out.shape.push_back(closeIndex(d));
    for (size_t axis = 1; axis < out.shape.size(); ++axis)
      if (out.shape[axis] != at.allocated[axis])
        fail("external: axis " + llvm::Twine(axis) + " of " + what + " of '" + n->str +
             "' has an extent that data decide; of what a function takes and gives only axis 0 may have one: permute "
             "it there, or give the bound's extent");
    return out;
  };
  for (auto [i, x] : llvm::enumerate(operandsOf(n))) {
    const Place *at = placeOf(x), *home = packedFrom.find(x);
    if (!at) return fail("internal error: an operand of external has no place");
    if (home && home->layout.isRowMajor()) at = home;
    Place from = *at;
    if (!from.layout.isRowMajor()) {
      from = {slotBuffer(x->dtype, bound(x->shape), Layout::rowMajor(x->rank())), Layout::rowMajor(x->rank()),
              bound(x->shape)};
      copyTo(x, from);
    }
    call.operands.push_back(view("operand " + llvm::Twine(i), from, x->dtype, x->shape));
  }
  std::vector<Place> places;
  for (auto [i, t] : llvm::enumerate(s.results)) {
    Layout layout = Layout::rowMajor(t.shape.size());
    std::vector<UOpRef> allocated = bound(t.shape);
    places.push_back({slotBuffer(t.dtype, allocated, layout), layout, allocated});
    call.results.push_back(view("result " + llvm::Twine(i), places.back(), t.dtype, t.shape));
  }
  emit(std::move(call));
  results.set(n, places);
}
