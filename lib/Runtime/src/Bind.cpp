//===- Bind.cpp: dims of a call -------------------------------------------===//
// Takes:    the shapes of the inputs, the session's values.
// Gives:    the vector of dims, checked against bounds and equations; shapes of inputs and outputs.
// Keeps:    a dim that the entry does not use is 0; an internal dim begins at its lo.
// Does not: touch memory of tensors.
#include "Session.h"

using namespace astra::rt;
using astra::fmt::DimSource;

/// The extent that a DimBind or a DimMultiple is about.
template <class Bind>
static Status extentOf(const fmt::Entry &entry, const View *inputs, const Bind &bind, int64_t &extent,
                       astra_diag *diag) {
  const View &view = inputs[bind.input()];
  const fmt::Tensor *input = entry.inputs()->Get(bind.input());
  if (view.rank != input->shape()->size())
    return fail(diag, ASTRA_WRONG_RANK, "input %.64s has %u dims; it must have %u", input->name()->c_str(), view.rank,
                input->shape()->size());
  extent = view.shape[bind.axis()];
  return ASTRA_OK;
}

static Status solve(const fmt::Manifest &m, const fmt::Entry &entry, const View *inputs, const fmt::DimMultiple &x,
                    int64_t *dims, astra_diag *diag) {
  int64_t extent = 0, rest;
  if (Status s = extentOf(entry, inputs, x, extent, diag)) return s;
  if (!__builtin_sub_overflow(extent, x.offset(), &rest) && rest % x.scale() == 0) {
    dims[x.dim()] = rest / x.scale();
    return ASTRA_OK;
  }
  const char *input = entry.inputs()->Get(x.input())->name()->c_str(), *dim = m.dims()->Get(x.dim())->name()->c_str();
  long long found = extent, scale = x.scale(), offset = x.offset();
  if (offset == 0)
    return fail(diag, ASTRA_OUT_OF_BOUNDS, "axis %u of input %.64s is %lld; it must be a multiple of %lld", x.axis(),
                input, found, scale);
  return fail(diag, ASTRA_OUT_OF_BOUNDS, "axis %u of input %.64s is %lld; it must be %lld * %.64s + %lld", x.axis(),
              input, found, scale, dim, offset);
}

Status astra::rt::bindDims(astra_session *session, const fmt::Entry &entry, const View *inputs, int64_t *dims,
                           astra_diag *diag) {
  const fmt::Manifest &m = session->loaded->bundle->manifest();
  for (uint32_t d = 0; d < m.dims()->size(); d++) {
    const fmt::Dim *dim = m.dims()->Get(d);
    dims[d] = dim->source() == DimSource::Internal ? dim->lo() : 0;
  }
  for (const fmt::DimBind *bind : *entry.binds())
    if (Status s = extentOf(entry, inputs, *bind, dims[bind->dim()], diag)) return s;
  uint32_t multiples = entry.multiples() ? entry.multiples()->size() : 0;
  for (uint32_t i = 0; i < multiples; i++)
    if (Status s = solve(m, entry, inputs, *entry.multiples()->Get(i), dims, diag)) return s;
  for (uint32_t d : *entry.host_dims()) {
    if (!session->isGiven[d])
      return fail(diag, ASTRA_MISSING_VALUE, "entry %.64s needs dim %.64s; %s", entry.name()->c_str(),
                  m.dims()->Get(d)->name()->c_str(),
                  m.dims()->Get(d)->source() == DimSource::Session ? "give it in astra_session_options.dims"
                                                                   : "set it with astra_session_set_dim");
    dims[d] = session->given[d];
  }
  for (const fmt::DimBind *bind : *entry.binds())
    if (Status s = checkDim(m, bind->dim(), dims[bind->dim()], dims, ASTRA_OUT_OF_BOUNDS, diag)) return s;
  for (uint32_t i = 0; i < multiples; i++) {
    uint32_t d = entry.multiples()->Get(i)->dim();
    if (Status s = checkDim(m, d, dims[d], dims, ASTRA_OUT_OF_BOUNDS, diag)) return s;
  }
  for (uint32_t d : *entry.host_dims())
    if (Status s = checkDim(m, d, dims[d], dims, ASTRA_OUT_OF_BOUNDS, diag)) return s;
  for (uint32_t i : *entry.equations()) {
    const fmt::Equation *equation = m.equations()->Get(i);
    int64_t lhs, rhs;
    if (Status s = evaluate(m, equation->lhs(), dims, lhs, diag)) return s;
    if (Status s = evaluate(m, equation->rhs(), dims, rhs, diag)) return s;
    if (lhs != rhs)
      return fail(diag, ASTRA_EQUATION, "the module states %.100s; here the left side is %lld and the right side %lld",
                  equation->text()->c_str(), static_cast<long long>(lhs), static_cast<long long>(rhs));
  }
  return ASTRA_OK;
}

Status astra::rt::outputShape(const astra_bundle &bundle, const fmt::Tensor &output, bool bound, const int64_t *dims,
                              int64_t *shape, astra_diag *diag) {
  const auto *exprs = bound && output.bound() && output.bound()->size() ? output.bound() : output.shape();
  for (uint32_t i = 0; exprs && i < exprs->size(); i++)
    if (Status s = evaluate(bundle, exprs->Get(i), dims, shape[i], diag)) return s;
  return ASTRA_OK;
}

Status astra::rt::checkInput(const astra_bundle &bundle, const fmt::Tensor &input, const View &view,
                             const int64_t *dims, astra_diag *diag) {
  int64_t shape[ASTRA_MAX_RANK];
  if (Status s = outputShape(bundle, input, false, dims, shape, diag)) return s;
  return expect(view, int32_t(input.dtype()), input.shape() ? input.shape()->size() : 0, shape, "input",
                input.name()->c_str(), diag);
}

astra_status astra_entry_output_bound(const astra_entry *entry, astra_session *session, const astra_tensor *inputs,
                                      uint32_t num_inputs, uint32_t output, int64_t *shape, int32_t *ndim,
                                      uint64_t *bytes, astra_diag *diag) {
  if (Status s = checkHandle(session, "the session", diag)) return s;
  if (!entry || entry->bundle != session->loaded->bundle)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the entry is NULL or of another bundle than the session");
  const fmt::Entry &e = *entry->table;
  const fmt::Manifest &m = entry->bundle->manifest();
  if (num_inputs != e.inputs()->size())
    return fail(diag, ASTRA_INVALID_ARGUMENT, "%u inputs; entry %.64s takes %u", num_inputs, e.name()->c_str(),
                e.inputs()->size());
  if (output >= e.outputs()->size())
    return fail(diag, ASTRA_UNKNOWN_NAME, "entry %.64s has %u outputs and no output %u", e.name()->c_str(),
                e.outputs()->size(), output);
  Heap &heap = session->runtime->heap;
  Array<View> views;
  Array<int64_t> dims;
  if (!views.init(heap, num_inputs) || !dims.init(heap, m.dims()->size()))
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to evaluate a shape");
  for (uint32_t i = 0; i < num_inputs; i++) {
    astra_tensor tensor;
    const char *name = e.inputs()->Get(i)->name()->c_str();
    if (Status s = readTensor(tensor, inputs, i, "astra_tensor", diag)) return s;
    View &v = views[i];
    v.dtype = dtypeOf(tensor.dtype);
    if (!v.dtype) return fail(diag, ASTRA_WRONG_DTYPE, "tensor %.64s has the unknown dtype %d", name, tensor.dtype);
    if (tensor.ndim < 0 || tensor.ndim > ASTRA_MAX_RANK || (tensor.ndim && !tensor.shape))
      return fail(diag, ASTRA_WRONG_RANK, "tensor %.64s has %d dims or no shape; 0 to %d dims are allowed", name,
                  tensor.ndim, ASTRA_MAX_RANK);
    v.rank = uint32_t(tensor.ndim);
    if (v.rank) memcpy(v.shape, tensor.shape, v.rank * sizeof(int64_t));
  }
  if (Status s = bindDims(session, e, views.data(), dims.data(), diag)) return s;
  for (uint32_t i = 0; i < num_inputs; i++)
    if (Status s = checkInput(*entry->bundle, *e.inputs()->Get(i), views[i], dims.data(), diag)) return s;
  const fmt::Tensor *t = e.outputs()->Get(output);
  uint32_t rank = t->shape() ? t->shape()->size() : 0;
  int64_t found[ASTRA_MAX_RANK];
  uint64_t size;
  if (Status s = outputShape(*entry->bundle, *t, true, dims.data(), found, diag)) return s;
  if (!denseBytes(*dtypeOf(int32_t(t->dtype())), found, rank, size))
    return fail(diag, ASTRA_OVERFLOW, "the shape of output %.64s is negative or too large", t->name()->c_str());
  if (shape && rank) memcpy(shape, found, rank * sizeof(int64_t));
  if (ndim) *ndim = int32_t(rank);
  if (bytes) *bytes = size;
  return ASTRA_OK;
}
