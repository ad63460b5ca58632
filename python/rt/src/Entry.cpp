//===- Entry.cpp: calling an entry ----------------------------------------===//
// See Entry.h.
#include "Calling.h"
#include "Exchange.h"
#include "Numpy.h"

#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

using namespace astra::python;

namespace {

using VectorCall = PyObject *(*)(PyObject *, PyObject *const *, size_t, PyObject *);
// Vectorcall is in the limited API from 3.12 on; CPython 3.10 and 3.11 have the same calling convention and numbers.
constexpr unsigned long kHasVectorCall = 1UL << 11;
constexpr size_t kArgumentsOffset = size_t(1) << (8 * sizeof(size_t) - 1);

PyObject *converter = nullptr;   ///< (object, dtype, what) -> array or tensor
PyObject *asyncCaller = nullptr; ///< (entry, args, kwargs) -> future
PyTypeObject *entryType = nullptr;
PyTypeObject *callableType = nullptr;

struct EntryObject {
  PyObject_HEAD VectorCall vectorCall;
  Core *core;
};

/// "x: f32, mask: bool", for sentences.
std::string listOf(const std::vector<Spec> &specs) {
  std::string text;
  for (const Spec &s : specs) text += (text.empty() ? "" : ", ") + s.name + ": " + astra_dtype_name(s.dtype);
  return text.empty() ? "none" : text;
}

/// The place of a keyword among the names; -1 if it is not there.
ptrdiff_t find(const std::vector<Spec> &specs, PyObject *key) {
  for (size_t i = 0; i < specs.size(); i++)
    if (specs[i].key == key) return ptrdiff_t(i);
  for (size_t i = 0; i < specs.size(); i++)
    if (PyUnicode_Compare(specs[i].key, key) == 0) return ptrdiff_t(i);
  return -1;
}

/// Sorts arguments to inputs, and keywords of host dims to `dims`. False with an exception.
bool sortArguments(const Core &c, PyObject *const *args, size_t numArgs, PyObject *names, Arguments &out, Dims &dims) {
  if (numArgs > out.count) {
    PyErr_Format(PyExc_TypeError, "%s() takes %zu inputs (%s) and %zu were given", c.name.c_str(), out.count,
                 listOf(c.inputs).c_str(), numArgs);
    return false;
  }
  for (size_t i = 0; i < numArgs; i++) out.given[i] = args[i];
  Py_ssize_t numNames = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t k = 0; k < numNames; k++) {
    PyObject *key = PyTuple_GetItem(names, k), *value = args[numArgs + size_t(k)];
    ptrdiff_t at = find(c.inputs, key);
    if (at >= 0) {
      if (out.given[size_t(at)]) {
        PyErr_Format(PyExc_TypeError, "%s() was given input '%U' twice", c.name.c_str(), key);
        return false;
      }
      out.given[size_t(at)] = value;
      continue;
    }
    at = find(c.hostDims, key);
    if (at < 0 && PyUnicode_CompareWithASCIIString(key, "out") == 0) {
      out.out = value;
      continue;
    }
    if (at < 0) {
      PyErr_Format(PyExc_TypeError, "%s() has no input or host dim '%U'; its inputs are: %s", c.name.c_str(), key,
                   listOf(c.inputs).c_str());
      return false;
    }
    long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred()) return false;
    dims.emplace_back(c.hostDims[size_t(at)].name.c_str(), number);
  }
  for (size_t i = 0; i < out.count; i++)
    if (!out.given[i]) {
      PyErr_Format(PyExc_TypeError, "%s() misses input '%s'; its inputs are: %s", c.name.c_str(),
                   c.inputs[i].name.c_str(), listOf(c.inputs).c_str());
      return false;
    }
  return true;
}

bool convert(const Core &c, Arguments &a) {
  for (size_t i = 0; i < a.count; i++) {
    if (describe(a.given[i], c.inputs[i].dtype, a.described[i])) {
      Py_INCREF(a.given[i]);
      a.held[i] = a.given[i];
      continue;
    }
    std::string what = "input " + c.inputs[i].name;
    a.held[i] = usable(a.given[i], c.inputs[i].dtype, what.c_str(), a.described[i]);
    if (!a.held[i]) return false;
  }
  return true;
}

/// The sizes of the outputs, asked anew when a shape or a host dim has changed. The session is locked.
astra_status findBounds(Core &c, Arguments &a, const astra_tensor *inputs, Diag &diag) {
  size_t n = 0;
  bool same = c.dimsVersion == c.session->dimsVersion;
  for (size_t i = 0; i < a.count; i++) {
    const astra_tensor &t = a.described[i].tensor;
    if (n + size_t(t.ndim) + 2 > c.shapes.size()) c.shapes.resize(n + size_t(t.ndim) + 2), same = false;
    int64_t *at = &c.shapes[n];
    same = same && at[0] == t.dtype && at[1] == t.ndim && std::memcmp(at + 2, t.shape, size_t(t.ndim) * 8) == 0;
    at[0] = t.dtype, at[1] = t.ndim;
    std::memcpy(at + 2, t.shape, size_t(t.ndim) * 8);
    n += size_t(t.ndim) + 2;
  }
  if (same) return ASTRA_OK;
  c.dimsVersion = ~uint64_t(0); // until all are known
  for (size_t i = 0; i < c.outputs.size(); i++) {
    Output &o = c.bounds[i];
    if (astra_status s = astra_entry_output_bound(c.entry, c.session->session, inputs, uint32_t(a.count), uint32_t(i),
                                                  o.bound, &o.ndim, &o.bytes, &diag))
      return s;
  }
  c.dimsVersion = c.session->dimsVersion;
  return ASTRA_OK;
}

/// An output whose actual extents are smaller than its bound lies in rows that are apart: moves them together.
void compact(char *data, uint32_t bits, int32_t ndim, const int64_t *bound, const int64_t *shape) {
  if (std::memcmp(bound, shape, size_t(ndim) * 8) == 0 || ndim == 0) return;
  auto rowBytes = [&](int64_t extent) { return size_t(uint64_t(extent) * bits + 7) / 8; };
  size_t row = rowBytes(shape[ndim - 1]), step = rowBytes(bound[ndim - 1]);
  int64_t at[ASTRA_MAX_RANK] = {};
  uint64_t rows = 1;
  for (int32_t i = 0; i + 1 < ndim; i++) rows *= uint64_t(shape[i]);
  for (uint64_t r = 0; r < rows; r++) {
    uint64_t place = 0;
    for (int32_t i = 0; i + 1 < ndim; i++) place = place * uint64_t(bound[i]) + uint64_t(at[i]);
    std::memmove(data + r * row, data + place * step, row);
    for (int32_t i = ndim - 1; i-- > 0 && ++at[i] == shape[i];) at[i] = 0;
  }
}

} // namespace

Core &astra::python::coreOf(PyObject *entry) { return *reinterpret_cast<EntryObject *>(entry)->core; }
bool astra::python::isEntry(PyObject *object) { return Py_TYPE(object) == entryType; }

astra_status Running::prepare(const Dims &dims) {
  for (const auto &[name, value] : dims) {
    core.session->dimsVersion++;
    if (astra_status s = astra_session_set_dim(core.session->session, name, value, &diag)) return s;
  }
  for (size_t i = 0; i < arguments.count; i++) inputs[i] = arguments.described[i].tensor;
  if (astra_status s = findBounds(core, arguments, inputs.data(), diag)) return s;
  for (size_t i = 0; i < core.outputs.size(); i++) {
    const Output &o = core.bounds[i];
    if (targets && targets->has(i)) { // the runtime looks at its shape
      outputs[i] = targets->tensor(i);
      continue;
    }
    if (astra_status s = astra_buffer_init(&buffers[i], core.session->loaded->device->pool, o.bytes, &diag)) return s;
    outputs[i] = ASTRA_INIT(astra_tensor);
    outputs[i].dtype = core.outputs[i].dtype, outputs[i].ndim = o.ndim, outputs[i].shape = o.bound;
    if (core.session->loaded->device->host == core.session->loaded->device->device)
      outputs[i].buffer = buffers[i];
    else
      outputs[i].data = astra_buffer_data(buffers[i]), outputs[i].data_bytes = o.bytes;
  }
  return ASTRA_OK;
}

astra_status Running::submit() {
  astra_call call = ASTRA_INIT(astra_call);
  call.entry = core.entry;
  call.inputs = inputs.data(), call.num_inputs = uint32_t(arguments.count);
  call.outputs = outputs.data(), call.num_outputs = uint32_t(core.outputs.size());
  call.flags = ASTRA_CALL_ALLOW_COPY;
  return astra_session_submit(core.session->session, core.session->stream, &call, &promise, &diag);
}

astra_status Running::collect() {
  for (size_t i = 0; i < core.outputs.size(); i++) {
    if (astra_status s = astra_promise_output_shape(promise, uint32_t(i), actual[i].bound, &actual[i].ndim, &diag))
      return s;
    if (!outputs[i].strides)
      compact(static_cast<char *>(buffers[i] ? astra_buffer_data(buffers[i]) : outputs[i].data),
              astra_dtype_bits(core.outputs[i].dtype), actual[i].ndim, core.bounds[i].bound, actual[i].bound);
  }
  return ASTRA_OK;
}

PyObject *Running::result(size_t i) {
  if (targets && targets->has(i)) return targets->result(i, actual[i].ndim, actual[i].bound);
  astra_buffer *buffer = buffers[i];
  buffers[i] = nullptr;
  return tensorOf(core.session->loaded->device, buffer, core.outputs[i].dtype, actual[i].ndim, actual[i].bound);
}

PyObject *Running::results() {
  if (core.outputs.empty()) Py_RETURN_NONE;
  if (core.outputs.size() == 1) return result(0);
  PyObject *all = PyTuple_New(Py_ssize_t(core.outputs.size()));
  for (size_t i = 0; all && i < core.outputs.size(); i++) {
    PyObject *one = result(i);
    if (!one) Py_CLEAR(all);
    if (all) PyTuple_SetItem(all, Py_ssize_t(i), one);
  }
  if (!all || !core.resultClass) return all;
  PyObject *named = PyObject_CallFunctionObjArgs(core.resultClass, all, nullptr);
  Py_DECREF(all);
  return named;
}

bool astra::python::takeArguments(Core &c, PyObject *const *args, size_t numArgs, PyObject *names, Arguments &out,
                                  std::optional<Targets> &targets, Dims &dims) {
  if (!sortArguments(c, args, numArgs, names, out, dims) || !convert(c, out)) return false;
  if (!out.out || out.out == Py_None) return true;
  targets.emplace(c.outputs.size());
  for (size_t i = 0; i < c.outputs.size(); i++) targets->name(i, c.outputs[i].key, c.outputs[i].dtype);
  return targets->take(out.out, c.name.c_str());
}

bool astra::python::spread(PyObject *args, PyObject *kwargs, Few<PyObject *> &room, PyObject *&names) {
  Py_ssize_t numArgs = PyTuple_Size(args), numNames = kwargs ? PyDict_Size(kwargs) : 0;
  for (Py_ssize_t i = 0; i < numArgs; i++) room[size_t(i)] = PyTuple_GetItem(args, i);
  names = nullptr;
  PyObject *key, *value;
  if (!numNames) return true;
  if (!(names = PyTuple_New(numNames))) return false;
  Py_ssize_t place = 0, k = 0;
  while (PyDict_Next(kwargs, &place, &key, &value)) {
    if (!PyUnicode_Check(key)) {
      Py_CLEAR(names);
      PyErr_Format(PyExc_TypeError, "keywords must be strings");
      return false;
    }
    Py_INCREF(key);
    PyTuple_SetItem(names, k, key);
    room[size_t(numArgs + k++)] = value;
  }
  return true;
}

namespace {

PyObject *call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names) {
  freeOrphans();
  Core &c = coreOf(self);
  Arguments arguments(c.inputs.size());
  Dims dims;
  std::optional<Targets> targets;
  if (!takeArguments(c, args, flags & ~kArgumentsOffset, names, arguments, targets, dims)) return nullptr;
  // Converting may run Python code, which may call this very entry: from here on nothing does.
  Running running(c, arguments, targets ? &*targets : nullptr);
  {
    SessionLock lock(*c.session);
    if (!lock) return nullptr;
    astra_status s = running.prepare(dims);
    if (!s)
      s = withoutGil([&] {
        if (astra_status failed = running.submit()) return failed;
        if (astra_status failed = astra_promise_wait(running.promise, &running.diag)) return failed;
        astra_status failed = running.collect();
        astra_promise_free(&running.promise); // for the next call
        return failed;
      });
    if (s) return raise(s, running.diag.text);
  }
  return running.results();
}

/// What calls with a tuple and a dict come through: the same as vectorcall. (PyVectorcall_Call is in the limited API
/// from 3.12 on.)
PyObject *callWithTuple(PyObject *self, PyObject *args, PyObject *kwargs, VectorCall target) {
  Few<PyObject *> all(size_t(PyTuple_Size(args) + (kwargs ? PyDict_Size(kwargs) : 0)));
  PyObject *names = nullptr;
  if (!spread(args, kwargs, all, names)) return nullptr;
  PyObject *result = target(self, all.data(), size_t(PyTuple_Size(args)), names);
  Py_XDECREF(names);
  return result;
}

//===- The types ------------------------------------------------------------===//

PyObject *callEntry(PyObject *self, PyObject *args, PyObject *kwargs) {
  return callWithTuple(self, args, kwargs, call);
}

void deallocEntry(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  delete reinterpret_cast<EntryObject *>(object)->core;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

PyObject *getName(PyObject *object, void *) { return PyUnicode_FromString(coreOf(object).name.c_str()); }
PyObject *getInfo(PyObject *object, void *) {
  PyObject *info = coreOf(object).info ? coreOf(object).info : Py_None;
  Py_INCREF(info);
  return info;
}
int setInfo(PyObject *object, PyObject *info, void *) {
  Py_XINCREF(info);
  Py_XDECREF(coreOf(object).info);
  coreOf(object).info = info;
  return 0;
}
int setResultClass(PyObject *object, PyObject *type, void *) {
  Py_XINCREF(type);
  Py_XDECREF(coreOf(object).resultClass);
  coreOf(object).resultClass = type;
  return 0;
}
/// A part of `_info`, which has inputs, outputs, text and so on as attributes.
PyObject *getPart(PyObject *object, void *name) {
  PyObject *info = coreOf(object).info;
  return info ? PyObject_GetAttrString(info, static_cast<const char *>(name))
              : raise(kClosed, "the entry has no module");
}
PyObject *reprEntry(PyObject *object) {
  PyObject *text = getPart(object, const_cast<char *>("text"));
  PyObject *repr = text ? PyUnicode_FromFormat("<astra_rt.Entry %U>", text) : nullptr;
  Py_XDECREF(text);
  return repr;
}
PyObject *callAsync(PyObject *self, PyObject *args, PyObject *kwargs) {
  return PyObject_CallFunctionObjArgs(asyncCaller, self, args, kwargs ? kwargs : Py_None, nullptr);
}
PyObject *noNew(PyTypeObject *, PyObject *, PyObject *) {
  PyErr_SetString(PyExc_TypeError, "entries come from a module: astra_rt.load(path)['main']");
  return nullptr;
}

char inputsPart[] = "inputs", outputsPart[] = "outputs", statesPart[] = "states", signaturePart[] = "signature";
PyGetSetDef entryProperties[] = {
    {"name", getName, nullptr, "The entry's name.", nullptr},
    {"__name__", getName, nullptr, "The entry's name.", nullptr},
    {"inputs", getPart, nullptr, "A TensorInfo for each input, in the order of the arguments.", inputsPart},
    {"outputs", getPart, nullptr, "A TensorInfo for each output.", outputsPart},
    {"states", getPart, nullptr, "The names of the states that the entry reads or writes.", statesPart},
    {"__signature__", getPart, nullptr, "What inspect.signature gives.", signaturePart},
    {"_info", getInfo, setInfo, "What Python keeps with the entry.", nullptr},
    {"_result_class", nullptr, setResultClass, "Makes the result out of a tuple of several outputs.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef entryMethods[] = {{"async_call", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(callAsync)),
                               METH_VARARGS | METH_KEYWORDS,
                               "async_call(*inputs, **inputs)\n--\n\nBegins a call and gives a Future at once; "
                               "`await` it, or ask for its result()."},
                              {nullptr, nullptr, 0, nullptr}};
PyMemberDef entryMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(EntryObject, vectorCall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

/// What calls another object: a module or session, whose `_target` is its main entry.
struct CallableObject {
  PyObject_HEAD VectorCall vectorCall;
  PyObject *target;
};

PyObject *forward(PyObject *self, PyObject *const *args, size_t flags, PyObject *names) {
  PyObject *target = reinterpret_cast<CallableObject *>(self)->target;
  if (target && Py_TYPE(target) == entryType) {
    Py_INCREF(target); // the call may close what holds it
    PyObject *result = call(target, args, flags, names);
    Py_DECREF(target);
    return result;
  }
  PyErr_SetString(PyExc_TypeError, "there is no entry 'main', and not just one entry; name it: module['entry'](...)");
  return nullptr;
}

PyObject *callCallable(PyObject *self, PyObject *args, PyObject *kwargs) {
  return callWithTuple(self, args, kwargs, forward);
}

PyObject *newCallable(PyTypeObject *type, PyObject *, PyObject *) {
  PyObject *object = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (object) reinterpret_cast<CallableObject *>(object)->vectorCall = forward;
  return object;
}

void deallocCallable(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  Py_CLEAR(reinterpret_cast<CallableObject *>(object)->target);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

PyMemberDef callableMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CallableObject, vectorCall), READONLY, nullptr},
    {"_target", T_OBJECT, offsetof(CallableObject, target), 0, "The entry that a call calls."},
    {nullptr, 0, 0, 0, nullptr}};

template <PyObject **place> PyObject *keep(PyObject *, PyObject *object) {
  Py_INCREF(object);
  Py_XDECREF(*place);
  *place = object;
  Py_RETURN_NONE;
}
PyMethodDef functions[] = {
    {"set_converter", keep<&converter>, METH_O, "What makes arrays of arguments: (object, dtype, what)."},
    {"set_async_caller", keep<&asyncCaller>, METH_O, "What Entry.async_call does: (entry, args, kwargs or None)."},
    {"set_exception_maker", keep<&exceptionMaker>, METH_O, "What makes exceptions of statuses: (status, text)."},
    {nullptr, nullptr, 0, nullptr}};

/// Names, dtypes and ranks of inputs or outputs. False with an exception.
template <typename Ask> bool readSpecs(const astra_entry *entry, uint32_t count, std::vector<Spec> &out, Ask ask) {
  for (uint32_t i = 0; i < count; i++) {
    astra_tensor_info info = ASTRA_INIT(astra_tensor_info);
    ask(entry, i, &info);
    out.push_back({info.name, PyUnicode_InternFromString(info.name), info.dtype, info.ndim});
    if (!out.back().key) return false;
  }
  return true;
}

} // namespace

bool astra::python::setStrided(Described &out, char *first, const Py_ssize_t *bytes, uint64_t elementBytes) {
  astra_tensor &t = out.tensor;
  auto size = int64_t(elementBytes);
  int64_t low = 0, high = size; // what is reached: somebody's memory, so that no sum leaves 64 bits
  for (int32_t i = 0; i < t.ndim; i++) {
    if (out.shape[i] > 1 && bytes[i] % size) return false;
    out.strides[i] = out.shape[i] > 1 ? bytes[i] / size : 0;
    (bytes[i] < 0 ? low : high) += out.strides[i] * size * (out.shape[i] - 1);
  }
  t.data = first + low, t.data_bytes = uint64_t(high - low), t.byte_offset = uint64_t(-low), t.strides = out.strides;
  return true;
}

bool astra::python::describe(PyObject *object, int32_t wanted, Described &out) {
  out.tensor = ASTRA_INIT(astra_tensor);
  astra_tensor &t = out.tensor;
  t.shape = out.shape;
  if (isTensor(object)) {
    auto *from = reinterpret_cast<TensorObject *>(object);
    t.dtype = from->dtype, t.ndim = from->ndim;
    std::memcpy(out.shape, from->shape, size_t(t.ndim) * 8);
    // A tensor from before a fork is memory like any other: its buffer is the parent's.
    if (from->buffer && from->device->host == from->device->device && from->device->generation == forkGeneration())
      t.buffer = from->buffer;
    else if (from->isStrided)
      return setStrided(out, static_cast<char *>(from->data), from->strides, astra_dtype_bits(from->dtype) / 8);
    else
      t.data = from->data, t.data_bytes = from->bytes;
    return true;
  }
  if (!PyArray_Check(object)) return describeExchanged(object, out);
  auto *array = reinterpret_cast<PyArrayObject *>(object);
  int type = PyArray_TYPE(array);
  const DTypeRow &row = *rowOf(wanted);
  if (row.numpy < 0) return false; // the converter packs it
  t.dtype = row.isCodes && row.numpy == type ? wanted : dtypeOfNumpy(type);
  t.ndim = PyArray_NDIM(array);
  if (!t.dtype || !PyArray_ISBEHAVED_RO(array) || t.ndim > ASTRA_MAX_RANK) return false;
  static_assert(sizeof(npy_intp) == sizeof(int64_t));
  std::copy_n(PyArray_DIMS(array), t.ndim, out.shape); // of a scalar's there is none
  if (!PyArray_ISCARRAY_RO(array))
    return setStrided(out, static_cast<char *>(PyArray_DATA(array)), PyArray_STRIDES(array),
                      astra_dtype_bits(t.dtype) / 8);
  t.data = PyArray_DATA(array), t.data_bytes = uint64_t(PyArray_NBYTES(array));
  return true;
}

PyObject *astra::python::usable(PyObject *object, int32_t wanted, const char *what, Described &out) {
  if (describe(object, wanted, out)) {
    Py_INCREF(object);
    return object;
  }
  PyObject *converted = PyObject_CallFunction(converter, "Oss", object, astra_dtype_name(wanted), what);
  if (!converted || describe(converted, wanted, out)) return converted;
  PyErr_Format(PyExc_TypeError, "%s cannot be made a tensor of %s", what, astra_dtype_name(wanted));
  Py_DECREF(converted);
  return nullptr;
}

PyObject *astra::python::newEntry(std::shared_ptr<SessionBox> session, uint32_t index) {
  auto core = std::make_unique<Core>();
  const astra_bundle *bundle = session->loaded->bundle->bundle;
  if (astra_status s = astra_bundle_get_entry(bundle, index, &core->entry)) return raise(s, "there is no such entry");
  astra_entry_info info = ASTRA_INIT(astra_entry_info);
  astra_entry_get_info(core->entry, &info);
  core->name = info.name;
  if (!readSpecs(core->entry, info.num_inputs, core->inputs, astra_entry_get_input) ||
      !readSpecs(core->entry, info.num_outputs, core->outputs, astra_entry_get_output))
    return nullptr;
  core->bounds.resize(core->outputs.size());
  astra_bundle_info all = ASTRA_INIT(astra_bundle_info);
  astra_bundle_get_info(bundle, &all);
  for (uint32_t i = 0; i < all.num_dims; i++) {
    astra_dim_info dim = ASTRA_INIT(astra_dim_info);
    astra_bundle_get_dim(bundle, i, &dim);
    if (!dim.is_host) continue;
    core->hostDims.push_back({dim.name, PyUnicode_InternFromString(dim.name), ASTRA_I64, 0});
    if (!core->hostDims.back().key) return nullptr;
  }
  core->session = std::move(session);
  PyObject *object = reinterpret_cast<allocfunc>(PyType_GetSlot(entryType, Py_tp_alloc))(entryType, 0);
  if (!object) return nullptr;
  auto *entry = reinterpret_cast<EntryObject *>(object);
  entry->vectorCall = call, entry->core = core.release();
  return object;
}

bool astra::python::addEntry(PyObject *module) {
  PyType_Slot entrySlots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(deallocEntry)},
                              {Py_tp_new, reinterpret_cast<void *>(noNew)},
                              {Py_tp_repr, reinterpret_cast<void *>(reprEntry)},
                              {Py_tp_call, reinterpret_cast<void *>(callEntry)},
                              {Py_tp_getset, entryProperties},
                              {Py_tp_methods, entryMethods},
                              {Py_tp_members, entryMembers},
                              {0, nullptr}};
  PyType_Spec entrySpec = {"astra_rt._rt.Entry", sizeof(EntryObject), 0, Py_TPFLAGS_DEFAULT | kHasVectorCall,
                           entrySlots};
  PyType_Slot callableSlots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(deallocCallable)},
                                 {Py_tp_new, reinterpret_cast<void *>(newCallable)},
                                 {Py_tp_call, reinterpret_cast<void *>(callCallable)},
                                 {Py_tp_members, callableMembers},
                                 {0, nullptr}};
  PyType_Spec callableSpec = {"astra_rt._rt.Callable", sizeof(CallableObject), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | kHasVectorCall, callableSlots};
  PyObject *entry = PyType_FromSpec(&entrySpec), *callable = PyType_FromSpec(&callableSpec);
  if (!entry || !callable) return false;
  entryType = reinterpret_cast<PyTypeObject *>(entry), callableType = reinterpret_cast<PyTypeObject *>(callable);
  Py_INCREF(entry);
  Py_INCREF(callable);
  return PyModule_AddObject(module, "Entry", entry) == 0 && PyModule_AddObject(module, "Callable", callable) == 0 &&
         PyModule_AddFunctions(module, functions) == 0 && addTargets(module);
}
