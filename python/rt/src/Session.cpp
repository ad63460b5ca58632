//===- Session.cpp: bundles, what they hold, and sessions -----------------===//
// Takes:    a path or bytes, a device's name, values of dims, names of states and params.
// Gives:    the Python types `_rt.Bundle`, `_rt.Loaded` and `_rt.SessionHandle`, close to astra.h.
// Keeps:    a session is locked while it is looked at or changed.
// Does not: say more than astra.h says; astra_rt/_module.py does.
#include "Session.h"
#include "Entry.h"
#include "Holder.h"

#include <cstring>

using namespace astra::python;

namespace {

//===- What a bundle says of itself -----------------------------------------===//

/// (name, dtype, lower, upper, is_tap)
PyObject *tensorInfo(const astra_tensor_info &info) {
  PyObject *lower = PyTuple_New(info.ndim), *upper = PyTuple_New(info.ndim);
  for (int32_t i = 0; lower && upper && i < info.ndim; i++) {
    PyTuple_SetItem(lower, i, PyLong_FromLongLong(info.lower[i]));
    PyTuple_SetItem(upper, i, PyLong_FromLongLong(info.upper[i]));
  }
  if (!lower || !upper) return nullptr;
  return Py_BuildValue("ssNNN", info.name, astra_dtype_name(info.dtype), lower, upper, PyBool_FromLong(info.is_tap));
}

/// A list of one(i) for each i below n.
template <typename One> PyObject *listOf(uint32_t n, One one) {
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list && i < n; i++) {
    PyObject *item = one(i);
    if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

template <auto ask> PyObject *infosOf(const astra_bundle *bundle, uint32_t n) {
  return listOf(n, [&](uint32_t i) {
    astra_tensor_info info = ASTRA_INIT(astra_tensor_info);
    ask(bundle, i, &info);
    return tensorInfo(info);
  });
}

template <auto ask> PyObject *infosOf(const astra_entry *entry, uint32_t n) {
  return listOf(n, [&](uint32_t i) {
    astra_tensor_info info = ASTRA_INIT(astra_tensor_info);
    ask(entry, i, &info);
    return tensorInfo(info);
  });
}

PyObject *entryInfo(const astra_bundle *bundle, uint32_t index, uint32_t numStates) {
  const astra_entry *entry = nullptr;
  astra_bundle_get_entry(bundle, index, &entry);
  astra_entry_info info = ASTRA_INIT(astra_entry_info);
  astra_entry_get_info(entry, &info);
  PyObject *states = PyList_New(0);
  for (uint32_t s = 0; states && s < numStates; s++) {
    if (astra_entry_uses_state(entry, s) != 1) continue;
    astra_tensor_info state = ASTRA_INIT(astra_tensor_info);
    astra_bundle_get_state(bundle, s, &state);
    PyObject *name = PyUnicode_FromString(state.name);
    if (!name || PyList_Append(states, name) < 0) Py_CLEAR(states);
    Py_XDECREF(name);
  }
  if (!states) return nullptr;
  return Py_BuildValue("sNNNN", info.name, infosOf<astra_entry_get_input>(entry, info.num_inputs),
                       infosOf<astra_entry_get_output>(entry, info.num_outputs), states,
                       PyBool_FromLong(info.waits_on_host));
}

/// `describe()`: all of it as a dict of lists of tuples.
PyObject *describeBundle(PyObject *self, PyObject *) {
  const astra_bundle *bundle = boxOf<BundleBox>(self).bundle;
  astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
  if (astra_status s = astra_bundle_get_info(bundle, &info)) return raise(s, "the bundle cannot be asked");
  PyObject *targets = listOf(info.num_targets, [&](uint32_t i) {
    astra_target_info t = ASTRA_INIT(astra_target_info);
    astra_bundle_get_target(bundle, i, &t);
    return Py_BuildValue("sz", t.name, t.lacks);
  });
  PyObject *dims = listOf(info.num_dims, [&](uint32_t i) {
    astra_dim_info d = ASTRA_INIT(astra_dim_info);
    astra_bundle_get_dim(bundle, i, &d);
    return Py_BuildValue("sLLNN", d.name, static_cast<long long>(d.lower), static_cast<long long>(d.upper),
                         PyBool_FromLong(d.is_host), PyBool_FromLong(d.is_session));
  });
  PyObject *entries = listOf(info.num_entries, [&](uint32_t i) { return entryInfo(bundle, i, info.num_states); });
  return Py_BuildValue("{s:s,s:s,s:s,s:I,s:N,s:N,s:N,s:N,s:N}", "module", info.module, "contract", info.contract,
                       "numerics", info.numerics, "num_kernels", info.num_kernels, "targets", targets, "dims", dims,
                       "entries", entries, "params", infosOf<astra_bundle_get_param>(bundle, info.num_params), "states",
                       infosOf<astra_bundle_get_state>(bundle, info.num_states));
}

/// `asset(name)`: a file that came with the model, as bytes.
PyObject *assetOf(PyObject *self, PyObject *args) {
  const char *name;
  const void *data;
  uint64_t size;
  Diag diag;
  if (!PyArg_ParseTuple(args, "s", &name)) return nullptr;
  const astra_bundle *bundle = boxOf<BundleBox>(self).bundle;
  astra_status s = withoutGil([&] { return astra_bundle_find_asset(bundle, name, &data, &size, &diag); });
  if (s) return raise(s, diag.text);
  return PyBytes_FromStringAndSize(static_cast<const char *>(data), Py_ssize_t(size));
}

//===- Loaded ---------------------------------------------------------------===//

/// `bundle.load(device, threads, level or None)`
PyObject *loadBundle(PyObject *self, PyObject *args) {
  const char *name, *level;
  unsigned threads;
  if (!PyArg_ParseTuple(args, "sIz", &name, &threads, &level)) return nullptr;
  auto box = std::make_shared<LoadedBox>();
  box->bundle = shared<BundleBox>(self);
  joinJob(*box->bundle);
  if (!(box->device = openDevice(name, threads, level))) return nullptr;
  Diag diag;
  astra_status s =
      withoutGil([&] { return astra_loaded_init(&box->loaded, box->bundle->bundle, &box->device->device, 1, &diag); });
  return s ? raise(s, diag.text) : hold(std::move(box));
}

PyObject *targetOf(PyObject *self, void *) {
  return PyUnicode_FromString(astra_loaded_target(boxOf<LoadedBox>(self).loaded));
}

/// `set_param(name, dtype, value)` of a loaded bundle, for all sessions.
PyObject *setLoadedParam(PyObject *self, PyObject *args) {
  const char *name, *dtype;
  PyObject *value;
  if (!PyArg_ParseTuple(args, "ssO", &name, &dtype, &value)) return nullptr;
  Described d;
  std::string what = std::string("param ") + name;
  PyObject *held = usable(value, rowOf(dtype)->dtype, what.c_str(), d);
  if (!held) return nullptr;
  LoadedBox &box = boxOf<LoadedBox>(self);
  Diag diag;
  astra_status s = withoutGil([&] { return astra_loaded_set_param(box.loaded, name, &d.tensor, &diag); });
  Py_DECREF(held);
  if (s) return raise(s, diag.text);
  Py_RETURN_NONE;
}

/// `session({dim: value})`
PyObject *makeSession(PyObject *self, PyObject *dims) {
  std::vector<astra_dim_value> values;
  PyObject *key, *value;
  Py_ssize_t place = 0;
  std::vector<std::string> names;
  if (!PyDict_Check(dims)) return PyErr_Format(PyExc_TypeError, "dims must be a dict of names and numbers");
  names.reserve(size_t(PyDict_Size(dims)));
  while (PyDict_Next(dims, &place, &key, &value)) {
    PyObject *bytes = PyUnicode_AsUTF8String(key);
    if (!bytes) return nullptr;
    names.emplace_back(PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred()) return nullptr;
    values.push_back({names.back().c_str(), number});
  }
  auto box = std::make_shared<SessionBox>();
  box->loaded = shared<LoadedBox>(self);
  astra_session_options o = ASTRA_INIT(astra_session_options);
  o.dims = values.data(), o.num_dims = uint32_t(values.size());
  Diag diag;
  astra_status s = withoutGil([&] { return astra_session_init(&box->session, box->loaded->loaded, &o, &diag); });
  if (!s) s = astra_stream_init(&box->stream, box->loaded->device->device, &diag);
  return s ? raise(s, diag.text) : hold(std::move(box));
}

//===- Session --------------------------------------------------------------===//

/// Runs fn(diag) with the session locked and without the GIL.
template <typename Fn> PyObject *locked(PyObject *self, Fn fn) {
  SessionBox &box = boxOf<SessionBox>(self);
  Diag diag;
  astra_status s;
  {
    SessionLock lock(box);
    if (!lock) return nullptr;
    s = withoutGil([&] { return fn(box, &diag); });
  }
  if (s) return raise(s, diag.text);
  Py_RETURN_NONE;
}

PyObject *close(PyObject *self, PyObject *) {
  SessionBox &box = boxOf<SessionBox>(self);
  if (box.generation != forkGeneration() || !box.session) Py_RETURN_NONE;
  SessionLock lock(box);
  if (lock) withoutGil([&] { return box.close(), 0; });
  PyErr_Clear(); // closed by another thread meanwhile
  Py_RETURN_NONE;
}

PyObject *isClosed(PyObject *self, void *) { return PyBool_FromLong(!boxOf<SessionBox>(self).session); }

PyObject *reset(PyObject *self, PyObject *) {
  return locked(self, [](SessionBox &box, astra_diag *diag) { return astra_session_reset(box.session, diag); });
}

/// `set_dim(name, value)`
PyObject *setDim(PyObject *self, PyObject *args) {
  const char *name;
  long long value;
  if (!PyArg_ParseTuple(args, "sL", &name, &value)) return nullptr;
  return locked(self, [&](SessionBox &box, astra_diag *diag) {
    box.dimsVersion++;
    return astra_session_set_dim(box.session, name, value, diag);
  });
}

/// `set_param(name, dtype, value)`
PyObject *setParam(PyObject *self, PyObject *args) {
  const char *name, *dtype;
  PyObject *value;
  if (!PyArg_ParseTuple(args, "ssO", &name, &dtype, &value)) return nullptr;
  Described d;
  PyObject *held = usable(value, rowOf(dtype)->dtype, name, d);
  if (!held) return nullptr;
  PyObject *result = locked(self, [&](SessionBox &box, astra_diag *diag) {
    return astra_session_set_param(box.session, name, &d.tensor, diag);
  });
  Py_DECREF(held);
  return result;
}

/// A state and a reference to its tensor.
struct StateValue {
  std::string name;
  PyObject *object = nullptr;
  Described described;
  StateValue() = default;
  StateValue(const StateValue &) = delete;
  ~StateValue() { Py_XDECREF(object); }
};

/// One StateValue for each tuple of a list, filled by read(tuple, value). False with an exception.
template <typename Read> bool readStates(PyObject *rows, std::vector<std::unique_ptr<StateValue>> &out, Read read) {
  if (!PyList_Check(rows)) return PyErr_Format(PyExc_TypeError, "a list of tuples is needed"), false;
  for (Py_ssize_t i = 0; i < PyList_Size(rows); i++) {
    out.push_back(std::make_unique<StateValue>());
    if (!read(PyList_GetItem(rows, i), *out.back())) return false;
  }
  return true;
}

/// `set_states([(name, dtype, value), ...])`: no call of another thread comes between.
PyObject *setStates(PyObject *self, PyObject *rows) {
  std::vector<std::unique_ptr<StateValue>> values;
  if (!readStates(rows, values, [](PyObject *row, StateValue &v) {
        const char *name, *dtype;
        PyObject *value;
        if (!PyArg_ParseTuple(row, "ssO", &name, &dtype, &value)) return false;
        v.name = name;
        v.object = usable(value, rowOf(dtype)->dtype, name, v.described);
        return v.object != nullptr;
      }))
    return nullptr;
  return locked(self, [&](SessionBox &box, astra_diag *diag) {
    astra_status s = ASTRA_OK;
    for (size_t i = 0; !s && i < values.size(); i++)
      s = astra_session_set_state(box.session, values[i]->name.c_str(), &values[i]->described.tensor, diag);
    return s;
  });
}

/// `state_bytes(name)`: how large a state is.
PyObject *stateBytes(PyObject *self, PyObject *args) {
  const char *name;
  uint64_t bytes = 0;
  if (!PyArg_ParseTuple(args, "s", &name)) return nullptr;
  PyObject *done = locked(self, [&](SessionBox &box, astra_diag *diag) {
    const void *data;
    astra_status s = astra_session_lease_state(box.session, name, &data, &bytes, diag);
    return s ? s : astra_session_return_state(box.session, name, diag);
  });
  Py_XDECREF(done);
  return done ? PyLong_FromUnsignedLongLong(bytes) : nullptr;
}

/// A tensor without memory for a tuple (name, dtype, shape).
bool readShape(PyObject *row, StateValue &v) {
  const char *name, *dtype;
  PyObject *extents;
  if (!PyArg_ParseTuple(row, "ssO!", &name, &dtype, &PyTuple_Type, &extents)) return false;
  int64_t shape[ASTRA_MAX_RANK];
  Py_ssize_t ndim = PyTuple_Size(extents);
  if (ndim > ASTRA_MAX_RANK) return PyErr_Format(PyExc_ValueError, "a shape has %zd extents", ndim), false;
  for (Py_ssize_t i = 0; i < ndim; i++) shape[i] = PyLong_AsLongLong(PyTuple_GetItem(extents, i));
  if (PyErr_Occurred()) return false;
  v.name = name;
  v.object = reinterpret_cast<PyObject *>(newTensor(rowOf(dtype)->dtype, int32_t(ndim), shape));
  return v.object;
}

/// `get_states([(name, dtype, shape), ...])`: copies, all of one moment.
PyObject *getStates(PyObject *self, PyObject *rows) {
  std::vector<std::unique_ptr<StateValue>> values;
  if (!readStates(rows, values, readShape)) return nullptr;
  PyObject *done = locked(self, [&](SessionBox &box, astra_diag *diag) {
    for (auto &v : values) {
      auto *t = reinterpret_cast<TensorObject *>(v->object);
      t->device = box.loaded->device;
      if (astra_status s = astra_buffer_init(&t->buffer, t->device->pool, t->bytes, diag)) return s;
      t->data = astra_buffer_data(t->buffer);
      astra_tensor out = ASTRA_INIT(astra_tensor);
      out.data = t->data, out.data_bytes = t->bytes, out.dtype = t->dtype, out.ndim = t->ndim, out.shape = t->shape;
      if (astra_status s = astra_session_get_state(box.session, v->name.c_str(), &out, diag)) return s;
    }
    return astra_status(ASTRA_OK);
  });
  if (!done) return nullptr;
  Py_DECREF(done);
  return listOf(uint32_t(values.size()), [&](uint32_t i) {
    Py_INCREF(values[i]->object);
    return values[i]->object;
  });
}

/// On whatever thread ran the kernel, without the GIL.
void record(void *self, const astra_trace_event *e) {
  auto &box = *static_cast<SessionBox *>(self);
  TraceEvent event{e->name, e->begin_ns, e->end_ns, e->items, e->bytes, e->flops, {}, e->more_origins};
  for (uint32_t i = 0; i < e->num_origins; i++) event.origins.emplace_back(e->origins[i]);
  std::lock_guard guard(box.traceMutex);
  box.trace.push_back(std::move(event));
}

/// `set_trace(on)`
PyObject *setTrace(PyObject *self, PyObject *on) {
  int wanted = PyObject_IsTrue(on);
  return locked(self, [&](SessionBox &box, astra_diag *) {
    return astra_session_set_trace(box.session, wanted ? record : nullptr, &box);
  });
}

/// `take_trace()`: what was recorded since the last time.
PyObject *takeTrace(PyObject *self, PyObject *) {
  SessionBox &box = boxOf<SessionBox>(self);
  std::vector<TraceEvent> events;
  {
    std::lock_guard guard(box.traceMutex);
    events.swap(box.trace);
  }
  return listOf(uint32_t(events.size()), [&](uint32_t i) {
    const TraceEvent &e = events[i];
    PyObject *origins =
        listOf(uint32_t(e.origins.size()), [&](uint32_t k) { return PyUnicode_FromString(e.origins[k].c_str()); });
    return Py_BuildValue("sKKLLLNI", e.name.c_str(), static_cast<unsigned long long>(e.begin),
                         static_cast<unsigned long long>(e.end), static_cast<long long>(e.items),
                         static_cast<long long>(e.bytes), static_cast<long long>(e.flops), origins, e.moreOrigins);
  });
}

/// `entry(index)`
PyObject *makeEntry(PyObject *self, PyObject *index) {
  long i = PyLong_AsLong(index);
  if (i == -1 && PyErr_Occurred()) return nullptr;
  return newEntry(shared<SessionBox>(self), uint32_t(i));
}

//===- The module's part ----------------------------------------------------===//

/// `open(path as bytes or None, content or None, flags)`
PyObject *open(PyObject *, PyObject *args) {
  PyObject *path;
  const char *data;
  Py_ssize_t bytes;
  unsigned flags;
  if (!PyArg_ParseTuple(args, "Oz#I", &path, &data, &bytes, &flags)) return nullptr;
  const char *name = path == Py_None ? nullptr : PyBytes_AsString(path);
  return PyErr_Occurred() ? nullptr : hold(openBundle(name, data, size_t(bytes), flags));
}

/// `pool_stats()`, of the pool that outputs come from.
PyObject *poolStats(PyObject *self, PyObject *) {
  astra_pool_stats s = ASTRA_INIT(astra_pool_stats);
  if (astra_status status = astra_pool_get_stats(boxOf<LoadedBox>(self).device->pool, &s))
    return raise(status, "the pool cannot be asked");
  using Number = unsigned long long;
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K}", "bytes_held", Number(s.bytes_held), "bytes_in_use",
                       Number(s.bytes_in_use), "peak_in_use", Number(s.peak_in_use), "fresh", Number(s.fresh),
                       "recycled", Number(s.recycled), "in_order", Number(s.in_order));
}

PyObject *trim(PyObject *self, PyObject *) {
  if (astra_status s = astra_pool_trim(boxOf<LoadedBox>(self).device->pool))
    return raise(s, "the pool cannot be trimmed");
  Py_RETURN_NONE;
}

PyMethodDef bundleMethods[] = {{"asset", assetOf, METH_VARARGS, "A file that came with the model."},
                               {"describe", describeBundle, METH_NOARGS, "What the bundle says of itself."},
                               {"load", loadBundle, METH_VARARGS, "Puts it on a device: (name, threads, level)."},
                               {nullptr, nullptr, 0, nullptr}};
PyMethodDef loadedMethods[] = {{"session", makeSession, METH_O, "A session: ({dim: value})."},
                               {"set_param", setLoadedParam, METH_VARARGS, "For all sessions: (name, dtype, value)."},
                               {"pool_stats", poolStats, METH_NOARGS, "Of the pool of outputs."},
                               {"trim", trim, METH_NOARGS, "Gives unused memory of the pool back."},
                               {nullptr, nullptr, 0, nullptr}};
PyGetSetDef loadedProperties[] = {{"target", targetOf, nullptr, "The target that was chosen.", nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef sessionMethods[] = {{"close", close, METH_NOARGS, "Frees it, after a call in flight."},
                                {"reset", reset, METH_NOARGS, "Every state gets its first value."},
                                {"set_dim", setDim, METH_VARARGS, "(name, value)"},
                                {"set_states", setStates, METH_O, "At once: [(name, dtype, value), ...]."},
                                {"set_param", setParam, METH_VARARGS, "(name, dtype, value)"},
                                {"get_states", getStates, METH_O, "Copies of one moment: [(name, dtype, shape), ...]."},
                                {"state_bytes", stateBytes, METH_VARARGS, "The size of a state: (name)."},
                                {"set_trace", setTrace, METH_O, "Begins or ends to record."},
                                {"take_trace", takeTrace, METH_NOARGS, "What was recorded."},
                                {"entry", makeEntry, METH_O, "The entry of a number."},
                                {nullptr, nullptr, 0, nullptr}};
PyGetSetDef sessionProperties[] = {{"closed", isClosed, nullptr, "Whether it was closed.", nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyGetSetDef noProperties[] = {{nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef functions[] = {{"open", open, METH_VARARGS, "A bundle: (path or None, bytes or None, flags)."},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

bool astra::python::addSession(PyObject *module) {
  return addType<BundleBox>(module, "astra_rt._rt.Bundle", "Bundle", bundleMethods, noProperties) &&
         addType<LoadedBox>(module, "astra_rt._rt.Loaded", "Loaded", loadedMethods, loadedProperties) &&
         addType<SessionBox>(module, "astra_rt._rt.SessionHandle", "SessionHandle", sessionMethods,
                             sessionProperties) &&
         PyModule_AddFunctions(module, functions) == 0;
}
