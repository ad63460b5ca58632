//===- Client.h: short names for tests of the C API -----------------------===//
// Takes:    the C API.
// Gives:    owning wrappers for handles, tensors from vectors, a fixture that holds the standard bundle.
// Keeps:    every handle freed, every free checked.
// Does not: hide a status.
#pragma once

#include "StandIn.h"
#include "TestBundle.h"
#include "astra/astra.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <memory>

namespace astra::test {

/// 64-byte aligned memory, as astra_bundle_init_memory wants it.
class Aligned {
public:
  explicit Aligned(const Bytes &bytes)
      : size(bytes.size()), data(static_cast<uint8_t *>(aligned_alloc(64, (size + 127) / 64 * 64))) {
    memcpy(data, bytes.data(), size);
  }
  Aligned(const Aligned &) = delete;
  ~Aligned() { free(data); }
  size_t size;
  uint8_t *data;
};

/// A handle that is freed, and whose free must succeed.
template <typename T, astra_status (*release)(T **)> class Handle {
public:
  Handle() = default;
  Handle(Handle &&other) : pointer(std::exchange(other.pointer, nullptr)) {}
  Handle &operator=(Handle &&other) {
    std::swap(pointer, other.pointer);
    return *this;
  }
  ~Handle() { EXPECT_EQ(release(&pointer), ASTRA_OK); }
  T **out() { return &pointer; }
  operator T *() const { return pointer; }

private:
  T *pointer = nullptr;
};
using Runtime = Handle<astra_runtime, astra_runtime_free>;
using Device = Handle<astra_device, astra_device_free>;
using Pool = Handle<astra_pool, astra_pool_free>;
using Buffer = Handle<astra_buffer, astra_buffer_free>;
using Stream = Handle<astra_stream, astra_stream_free>;
using Bundle = Handle<astra_bundle, astra_bundle_free>;
using Loaded = Handle<astra_loaded, astra_loaded_free>;
using Session = Handle<astra_session, astra_session_free>;
using Promise = Handle<astra_promise, astra_promise_free>;

struct Diag : astra_diag {
  Diag() : astra_diag(ASTRA_INIT(astra_diag)) {}
};
#define EXPECT_OK(call)                                                                                                \
  do {                                                                                                                 \
    diag = Diag();                                                                                                     \
    EXPECT_EQ(call, ASTRA_OK) << diag.text;                                                                            \
  } while (0)
/// The status is `wanted` and the sentence holds `part`.
#define EXPECT_FAIL(wanted, part, call)                                                                                \
  do {                                                                                                                 \
    diag = Diag();                                                                                                     \
    EXPECT_STREQ(astra_status_name(call), astra_status_name(wanted)) << diag.text;                                     \
    EXPECT_EQ(diag.status, wanted);                                                                                    \
    EXPECT_NE(std::string(diag.text).find(part), std::string::npos) << diag.text;                                      \
  } while (0)

using Shape = std::vector<int64_t>;

/// A tensor that keeps its shape.
struct Tensor {
  Tensor(Shape &&s, const astra_tensor &t) : shape(std::move(s)), t(t) {}
  Tensor(Tensor &&) = default;
  operator const astra_tensor &() const { return t; }
  const astra_tensor *operator&() const { return &t; }
  Shape shape;
  astra_tensor t;
};
/// A row-major f32 tensor in the caller's memory.
inline Tensor tensor(std::vector<float> &values, Shape shape) {
  Tensor out{std::move(shape), ASTRA_INIT(astra_tensor)};
  out.t.data = values.data(), out.t.data_bytes = values.size() * 4;
  out.t.dtype = ASTRA_F32, out.t.ndim = int32_t(out.shape.size()), out.t.shape = out.shape.data();
  return out;
}

/// A runtime, a device, a stream, and the standard bundle loaded in a session.
struct Machine {
  explicit Machine(uint32_t threads = 1, const char *level = nullptr, Bytes file = standard(), const char *name = "cpu",
                   std::function<void(astra_runtime *)> before = {})
      : memory(file) {
    astra_device_options o = ASTRA_INIT(astra_device_options);
    o.num_threads = threads, o.level = level;
    if (strcmp(name, "cpu") != 0) o.driver = ASTRA_STAND_IN;
    EXPECT_OK(astra_runtime_init(runtime.out(), nullptr, &diag));
    if (before) before(runtime);
    EXPECT_OK(astra_device_init(device.out(), runtime, name, &o, &diag));
    EXPECT_OK(astra_pool_init(pool.out(), device, nullptr, &diag));
    EXPECT_OK(astra_stream_init(stream.out(), device, &diag));
    EXPECT_OK(astra_bundle_init_memory(bundle.out(), runtime, memory.data, memory.size, nullptr, &diag));
    astra_device *devices[] = {device};
    EXPECT_OK(astra_loaded_init(loaded.out(), bundle, devices, 1, &diag));
    session = makeSession();
  }
  static const Bytes &standard() {
    static const Bytes bytes = [] {
      ManifestMaker maker = standardManifest();
      return assemble(maker);
    }();
    return bytes;
  }
  /// A machine with a GPU: the stand-in driver's.
  static std::unique_ptr<Machine> withGpu(const char *name, uint32_t threads = 1) {
    static const Bytes bytes = deviceBundle();
    standInReset();
    standInBundle(bytes.data(), bytes.size(), true);
    return std::make_unique<Machine>(threads, nullptr, bytes, name);
  }
  Session makeSession(int64_t cap = 8) {
    Session s;
    astra_dim_value dims[] = {{"cap", cap}};
    astra_session_options o = ASTRA_INIT(astra_session_options);
    o.dims = dims, o.num_dims = 1;
    EXPECT_OK(astra_session_init(s.out(), loaded, &o, &diag));
    return s;
  }
  const astra_entry *entry(const char *name) {
    const astra_entry *e = nullptr;
    EXPECT_OK(astra_bundle_find_entry(bundle, name, &e, &diag));
    return e;
  }
  astra_status submit(astra_session *s, astra_stream *on, const char *name, std::vector<astra_tensor> inputs,
                      std::vector<astra_tensor> outputs, astra_promise **promise,
                      std::vector<astra_promise *> after = {}, uint32_t flags = 0) {
    astra_call call = ASTRA_INIT(astra_call);
    call.entry = entry(name);
    call.inputs = inputs.data(), call.num_inputs = uint32_t(inputs.size());
    call.outputs = outputs.data(), call.num_outputs = uint32_t(outputs.size());
    call.after = after.data(), call.num_after = uint32_t(after.size());
    call.flags = flags;
    diag = Diag();
    return astra_session_submit(s, on, &call, promise, &diag);
  }
  /// Submits and waits; the first refusal or error.
  astra_status run(const char *name, std::vector<astra_tensor> inputs, std::vector<astra_tensor> outputs,
                   Shape *extents = nullptr, uint32_t flags = 0) {
    Promise promise;
    if (astra_status s = submit(session, stream, name, inputs, outputs, promise.out(), {}, flags)) return s;
    if (astra_status s = astra_promise_wait(promise, &diag)) return s;
    if (extents) {
      int32_t ndim = 0;
      extents->resize(ASTRA_MAX_RANK);
      EXPECT_EQ(astra_promise_output_shape(promise, 0, extents->data(), &ndim, &diag), ASTRA_OK);
      extents->resize(size_t(ndim));
    }
    return ASTRA_OK;
  }

  Diag diag;
  Aligned memory;
  Runtime runtime;
  Device device;
  Pool pool;
  Stream stream;
  Bundle bundle;
  Loaded loaded;
  Session session;
};

} // namespace astra::test
