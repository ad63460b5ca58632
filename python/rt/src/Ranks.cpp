//===- Ranks.cpp: this process among the ranks of a job --------------------===//
// See Ranks.h.
#include "Ranks.h"
#include "DType.h"
#include "Holder.h"
#include "astra/ranks.h"

#include <cstring>

using namespace astra::python;

struct astra::python::JobBox {
  astra_ranks *ranks = nullptr; ///< null: the process has left
  std::mutex mutex;
  std::vector<astra_mesh *> meshes; ///< they go with the job, since the runtime has their functions
  std::vector<std::string> names;   ///< of these
  unsigned generation = forkGeneration();

  /// With the mutex.
  void leave() {
    if (generation != forkGeneration() || !ranks) return;
    for (const std::string &name : names) astra_runtime_register(runtime, name.c_str(), nullptr, nullptr, 0, nullptr);
    for (astra_mesh *&mesh : meshes) astra_mesh_free(&mesh);
    astra_ranks_free(&ranks);
  }
  astra_runtime *runtime = nullptr;
};

namespace {

constexpr char kPrefix[] = "astra.mesh.";

/// The process's own; used with the GIL. One of before a fork is not joined any more.
std::shared_ptr<JobBox> theJob;

/// Of a bundle; its memory is the job's.
struct MeshBox {
  std::shared_ptr<JobBox> job;
  astra_mesh *mesh = nullptr;
};

/// Holds the job while it is used. False with an exception.
class JobLock {
public:
  explicit JobLock(std::shared_ptr<JobBox> given) : job(std::move(given)) {
    if (job && job->generation == forkGeneration()) lockJob(*job), locked = true;
    if (!locked || !job->ranks)
      raise(kClosed, "this process is not among the ranks of a job; call astra_rt.ranks.init");
  }
  JobLock(const JobLock &) = delete;
  ~JobLock() {
    if (locked) unlockJob(*job);
  }
  explicit operator bool() const { return locked && job->ranks; }

private:
  std::shared_ptr<JobBox> job;
  bool locked = false;
};

/// Runs fn(diag) without the GIL; null with an exception.
template <typename Fn> bool done(Fn fn) {
  Diag diag;
  astra_status s = withoutGil([&] { return fn(&diag); });
  if (s) raise(s, diag.text);
  return !s;
}

/// `job_join(engine or None, milliseconds)`: (rank, ranks, engine's name). A process joins once.
PyObject *join(PyObject *, PyObject *args) {
  const char *engine;
  int timeout;
  if (!PyArg_ParseTuple(args, "zi", &engine, &timeout)) return nullptr;
  bool joined = theJob && theJob->generation == forkGeneration() && theJob->ranks;
  if (!joined) {
    auto job = std::make_shared<JobBox>();
    if (!(job->runtime = theRuntime())) return nullptr;
    astra_ranks_options o = ASTRA_INIT(astra_ranks_options);
    o.engine = engine, o.timeout = timeout;
    if (!done([&](astra_diag *diag) { return astra_ranks_init(&job->ranks, &o, diag); })) return nullptr;
    theJob = std::move(job);
  }
  return Py_BuildValue("iis", int(astra_ranks_rank(theJob->ranks)), int(astra_ranks_size(theJob->ranks)),
                       astra_ranks_engine(theJob->ranks));
}

PyObject *leave(PyObject *, PyObject *) {
  if (std::shared_ptr<JobBox> job = theJob; job && job->generation == forkGeneration()) {
    lockJob(*job);
    withoutGil([&] { return job->leave(), 0; });
    unlockJob(*job);
  }
  Py_RETURN_NONE;
}

PyObject *barrier(PyObject *, PyObject *) {
  JobLock lock(theJob);
  if (!lock || !done([&](astra_diag *diag) { return astra_ranks_barrier(theJob->ranks, diag); })) return nullptr;
  Py_RETURN_NONE;
}

/// `job_gather(bytes)`: those of all ranks behind one another; each gives as many.
PyObject *gather(PyObject *, PyObject *given) {
  char *data;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(given, &data, &size) < 0) return nullptr;
  JobLock lock(theJob);
  if (!lock) return nullptr;
  std::vector<char> all(size_t(size) * size_t(astra_ranks_size(theJob->ranks)));
  if (!done(
          [&](astra_diag *diag) { return astra_ranks_gather(theJob->ranks, data, uint64_t(size), all.data(), diag); }))
    return nullptr;
  return PyBytes_FromStringAndSize(all.data(), Py_ssize_t(all.size()));
}

/// `job_sum(dtype, bytes)`: the sum of all ranks' elements.
PyObject *sum(PyObject *, PyObject *args) {
  const char *dtype, *data;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "sy#", &dtype, &data, &size)) return nullptr;
  const DTypeRow *row = rowOf(dtype);
  uint32_t width = row ? astra_dtype_bits(row->dtype) / 8 : 0;
  if (!width) return raise(ASTRA_WRONG_DTYPE, "elements of this type are not summed over ranks");
  JobLock lock(theJob);
  if (!lock) return nullptr;
  std::vector<char> out(static_cast<size_t>(size));
  if (!done([&](astra_diag *diag) {
        return astra_ranks_sum(theJob->ranks, row->dtype, uint64_t(size) / width, data, out.data(), diag);
      }))
    return nullptr;
  return PyBytes_FromStringAndSize(out.data(), size);
}

PyObject *counters(PyObject *, PyObject *) {
  JobLock lock(theJob);
  if (!lock) return nullptr;
  astra_ranks_counters c = ASTRA_INIT(astra_ranks_counters);
  if (astra_status s = astra_ranks_get_counters(theJob->ranks, &c)) return raise(s, "the ranks cannot be asked");
  using Number = unsigned long long;
  return Py_BuildValue("{s:K,s:K,s:K,s:K}", "collectives", Number(c.collectives), "sent", Number(c.sent), "received",
                       Number(c.received), "nanoseconds", Number(c.nanoseconds));
}

//===- A bundle's mesh ------------------------------------------------------===//

/// `mesh(bundle)`: registers its collectives. All ranks call it.
PyObject *makeMesh(PyObject *, PyObject *object) {
  if (Py_TYPE(object) != typeOf<BundleBox>) return PyErr_Format(PyExc_TypeError, "mesh takes a bundle");
  JobLock lock(theJob);
  if (!lock) return nullptr;
  auto box = std::make_shared<MeshBox>();
  box->job = theJob;
  const astra_bundle *bundle = boxOf<BundleBox>(object).bundle;
  if (!done(
          [&](astra_diag *diag) { return astra_mesh_init(&box->mesh, theJob->ranks, theJob->runtime, bundle, diag); }))
    return nullptr;
  theJob->meshes.push_back(box->mesh);
  for (uint32_t i = 0; const char *name = astra_bundle_function_name(bundle, i); i++)
    if (!std::strncmp(name, kPrefix, sizeof(kPrefix) - 1)) theJob->names.emplace_back(name);
  return hold(std::move(box));
}

/// `describe()`: (axes, shards, shards of this rank).
PyObject *describeMesh(PyObject *self, PyObject *) {
  MeshBox &box = boxOf<MeshBox>(self);
  JobLock lock(box.job);
  if (!lock) return nullptr;
  return Py_BuildValue("sLL", astra_mesh_axes(box.mesh), static_cast<long long>(astra_mesh_shards(box.mesh)),
                       static_cast<long long>(astra_mesh_local_shards(box.mesh)));
}

/// `cut(kind, entry or None, name)`: into how many parts each axis is cut; None of a tensor that is whole.
PyObject *cutOf(PyObject *self, PyObject *args) {
  int kind;
  const char *entry, *name;
  if (!PyArg_ParseTuple(args, "izs", &kind, &entry, &name)) return nullptr;
  MeshBox &box = boxOf<MeshBox>(self);
  JobLock lock(box.job);
  if (!lock) return nullptr;
  astra_mesh_cut cut = ASTRA_INIT(astra_mesh_cut);
  if (astra_status s = astra_mesh_get_cut(box.mesh, kind, entry, name, &cut)) return raise(s, "it cannot be asked");
  if (cut.is_whole) Py_RETURN_NONE;
  PyObject *parts = PyTuple_New(cut.ndim);
  for (int32_t i = 0; parts && i < cut.ndim; i++) PyTuple_SetItem(parts, i, PyLong_FromLongLong(cut.parts[i]));
  return parts;
}

/// `take(kind, entry, name, element bytes, shape, address of the logical tensor, address and bytes of the part)`, and
/// `join`, the way back, which all ranks call: `shape` is the logical one, and the last two are of the logical tensor.
template <bool isJoin> PyObject *move(PyObject *self, PyObject *args) {
  int kind;
  const char *entry, *name;
  unsigned element;
  PyObject *extents;
  unsigned long long from, to, bytes;
  if (!PyArg_ParseTuple(args, "izsIO!KKK", &kind, &entry, &name, &element, &PyTuple_Type, &extents, &from, &to, &bytes))
    return nullptr;
  std::vector<int64_t> shape;
  for (Py_ssize_t i = 0; i < PyTuple_Size(extents); i++)
    shape.push_back(PyLong_AsLongLong(PyTuple_GetItem(extents, i)));
  if (PyErr_Occurred()) return nullptr;
  const void *in = reinterpret_cast<const void *>(uintptr_t(from));
  void *out = reinterpret_cast<void *>(uintptr_t(to));
  MeshBox &box = boxOf<MeshBox>(self);
  JobLock lock(box.job);
  if (!lock || !done([&](astra_diag *diag) {
        const int32_t ndim = int32_t(shape.size());
        return isJoin ? astra_mesh_join(box.mesh, kind, entry, name, element, ndim, shape.data(), in, out, bytes, diag)
                      : astra_mesh_take(box.mesh, kind, entry, name, element, ndim, shape.data(), in, out, bytes, diag);
      }))
    return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"describe", describeMesh, METH_NOARGS, "Axes, shards, shards of this rank."},
                         {"cut", cutOf, METH_VARARGS, "The parts of each axis, or None: (kind, entry, name)."},
                         {"take", move<false>, METH_VARARGS, "The part of this rank."},
                         {"join", move<true>, METH_VARARGS, "The logical tensor of all parts."},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef noProperties[] = {{nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef functions[] = {
    {"job_join", join, METH_VARARGS, "Joins the job of a launcher: (engine or None, milliseconds)."},
    {"job_leave", leave, METH_NOARGS, "Leaves it."},
    {"job_barrier", barrier, METH_NOARGS, "Returns when all ranks have called it."},
    {"job_gather", gather, METH_O, "Bytes of all ranks."},
    {"job_sum", sum, METH_VARARGS, "The sum over the ranks: (dtype, bytes)."},
    {"job_counters", counters, METH_NOARGS, "What has moved."},
    {"mesh", makeMesh, METH_O, "A bundle's mesh, whose collectives are registered."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

void astra::python::lockJob(JobBox &job) {
  if (!job.mutex.try_lock()) withoutGil([&] { return job.mutex.lock(), 0; });
}
void astra::python::unlockJob(JobBox &job) { job.mutex.unlock(); }
bool astra::python::hasLeft(const JobBox &job) { return job.generation != forkGeneration() || !job.ranks; }

void astra::python::joinJob(BundleBox &bundle) {
  if (!theJob || hasLeft(*theJob)) return;
  for (uint32_t i = 0; const char *name = astra_bundle_function_name(bundle.bundle, i); i++)
    for (const std::string &own : theJob->names)
      if (own == name) bundle.job = theJob;
}

bool astra::python::addRanks(PyObject *module) {
  return addType<MeshBox>(module, "astra_rt._rt.Mesh", "Mesh", methods, noProperties) &&
         PyModule_AddFunctions(module, functions) == 0;
}
