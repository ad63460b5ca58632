//===- Handles.cpp: making and freeing the runtime's handles --------------===//
// See Handles.h.
#include "Function.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <pthread.h>
#include <tuple>

using namespace astra::python;

PyObject *astra::python::exceptionMaker = nullptr;

namespace {

std::atomic<unsigned> forks{0};
const int registered = pthread_atfork(nullptr, nullptr, [] { forks++; });

} // namespace

astra_runtime *astra::python::theRuntime() {
  static astra_runtime *runtime = nullptr;
  static unsigned generation = 0;
  if (runtime && generation == forkGeneration()) return runtime;
  Diag diag;
  astra_runtime *fresh = nullptr;
  astra_status s = astra_runtime_init(&fresh, nullptr, &diag);
  if (!s) s = registerAgain(fresh, &diag);
  if (s) {
    raise(s, diag.text);
    return nullptr;
  }
  runtime = fresh, generation = forkGeneration();
  return runtime;
}

unsigned astra::python::forkGeneration() { return forks.load(std::memory_order_relaxed); }

PyObject *astra::python::raise(int32_t status, const char *text) {
  // A sentence is cut where its room ends, which may be inside of a character.
  PyObject *sentence = PyUnicode_DecodeUTF8(text, Py_ssize_t(std::strlen(text)), "replace");
  PyObject *error = sentence ? PyObject_CallFunction(exceptionMaker, "iN", int(status), sentence) : nullptr;
  if (!error) return nullptr;
  PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error)), error);
  Py_DECREF(error);
  return nullptr;
}

DeviceBox::~DeviceBox() {
  if (generation != forkGeneration()) return;
  astra_pool_free(&pool);
  if (host != device) astra_device_free(&host);
  astra_device_free(&device);
}

BundleBox::~BundleBox() {
  if (generation == forkGeneration()) astra_bundle_free(&bundle);
  if (!bundle) std::free(memory);
}

LoadedBox::~LoadedBox() {
  if (generation == forkGeneration()) astra_loaded_free(&loaded);
}

void SessionBox::close() {
  if (generation != forkGeneration()) return;
  astra_stream_free(&stream);
  astra_session_free(&session);
}

std::shared_ptr<DeviceBox> astra::python::openDevice(const char *name, uint32_t threads, const char *level) {
  using Key = std::tuple<std::string, uint32_t, std::string>;
  static std::map<Key, std::weak_ptr<DeviceBox>> known; // used with the GIL
  Key key{name, threads, level ? level : ""};
  std::shared_ptr<DeviceBox> box = known[key].lock();
  if (box && box->generation == forkGeneration()) return box;
  astra_runtime *runtime = theRuntime();
  if (!runtime) return nullptr;
  box = std::make_shared<DeviceBox>();
  box->name = name, box->threads = threads, box->level = level ? level : "";
  Diag diag;
  astra_device_options o = ASTRA_INIT(astra_device_options);
  o.num_threads = threads, o.level = level;
  astra_status s = withoutGil([&] { return astra_device_init(&box->device, runtime, name, &o, &diag); });
  if (!s) {
    if (std::strncmp(name, "cpu", 3) == 0)
      box->host = box->device;
    else
      s = astra_device_init(&box->host, runtime, "cpu", nullptr, &diag);
  }
  if (!s) s = astra_pool_init(&box->pool, box->host, nullptr, &diag);
  if (s) {
    raise(s, diag.text);
    return nullptr;
  }
  known[key] = box;
  return box;
}

std::shared_ptr<BundleBox> astra::python::openBundle(const char *path, const void *data, size_t bytes, uint32_t flags) {
  astra_runtime *runtime = theRuntime();
  if (!runtime) return nullptr;
  auto box = std::make_shared<BundleBox>();
  Diag diag;
  astra_bundle_options o = ASTRA_INIT(astra_bundle_options);
  o.flags = flags;
  if (!path) {
    constexpr size_t kAlign = 64;
    box->memory = std::aligned_alloc(kAlign, (bytes / kAlign + 1) * kAlign);
    if (!box->memory) {
      PyErr_NoMemory();
      return nullptr;
    }
    std::memcpy(box->memory, data, bytes);
  }
  astra_status s = withoutGil([&] {
    return path ? astra_bundle_init_file(&box->bundle, runtime, path, &o, &diag)
                : astra_bundle_init_memory(&box->bundle, runtime, box->memory, bytes, &o, &diag);
  });
  if (!s) return box;
  raise(s, diag.text);
  return nullptr;
}
