//===- astra.hpp: a thin C++17 wrapper over astra.h -----------------------===//
// Takes:    the C API.
// Gives:    owning handles, errors as exceptions, tensors from std::vector. Header-only: nothing of C++ crosses the
// ABI. Keeps:    one class per handle, one method per function; everything that is not here is reached through get().
// Does not: hide streams, promises or ownership.
//
//   astra::Runtime runtime;
//   astra::Device device(runtime, "cpu", {4});
//   astra::Stream stream(device);
//   astra::Bundle bundle(runtime, "digits.astra");
//   astra::Loaded loaded(bundle, device);
//   astra::Session session(loaded);
//   astra::Call(session, "main").input(image).output(scores).run(stream);
#pragma once

#include "astra/astra.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace astra {

/// A status that is not ASTRA_OK, with its sentence.
class Error : public std::runtime_error {
public:
  Error(astra_status status, const astra_diag &diag)
      : std::runtime_error(std::string(astra_status_name(status)) + ": " + diag.text), code(status) {}
  astra_status status() const { return code; }

private:
  astra_status code;
};

/// Calls fn(diag) and throws what it refuses.
template <typename Fn> void check(Fn fn) {
  astra_diag diag = ASTRA_INIT(astra_diag);
  if (astra_status status = fn(&diag)) throw Error(status, diag);
}

/// Owns a handle. A free that is refused (ASTRA_IN_USE) leaks it rather than throw: free in the reverse order of
/// making.
template <typename T, astra_status (*release)(T **)> class Handle {
public:
  Handle() = default;
  Handle(Handle &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Handle &operator=(Handle &&other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Handle() { release(&handle); }
  T *get() const { return handle; }
  explicit operator bool() const { return handle; }

protected:
  T *handle = nullptr;
};

struct Runtime : Handle<astra_runtime, astra_runtime_free> {
  explicit Runtime(const astra_runtime_options *options = nullptr) {
    check([&](astra_diag *d) { return astra_runtime_init(&handle, options, d); });
  }
};

struct Device : Handle<astra_device, astra_device_free> {
  struct Options {
    uint32_t threads = 1;
    const char *level = nullptr;
    const astra_executor *executor = nullptr;
    int64_t spin_ns = 0;
  };
  Device(const Runtime &runtime, const char *name, const Options &options) {
    astra_device_options o = ASTRA_INIT(astra_device_options);
    o.num_threads = options.threads, o.level = options.level, o.executor = options.executor;
    o.spin_ns = options.spin_ns;
    check([&](astra_diag *d) { return astra_device_init(&handle, runtime.get(), name, &o, d); });
  }
};

struct Stream : Handle<astra_stream, astra_stream_free> {
  explicit Stream(const Device &device) {
    check([&](astra_diag *d) { return astra_stream_init(&handle, device.get(), d); });
  }
};

struct Pool : Handle<astra_pool, astra_pool_free> {
  explicit Pool(const Device &device, const astra_pool_options *options = nullptr) {
    check([&](astra_diag *d) { return astra_pool_init(&handle, device.get(), options, d); });
  }
};

struct Buffer : Handle<astra_buffer, astra_buffer_free> {
  Buffer(const Pool &pool, uint64_t bytes) {
    check([&](astra_diag *d) { return astra_buffer_init(&handle, pool.get(), bytes, d); });
  }
  /// A view of bytes offset .. offset + bytes.
  Buffer(const Buffer &parent, uint64_t offset, uint64_t bytes) {
    check([&](astra_diag *d) { return astra_buffer_init_view(&handle, parent.get(), offset, bytes, d); });
  }
  void *data() const { return astra_buffer_data(handle); }
  uint64_t bytes() const { return astra_buffer_bytes(handle); }
};

struct Bundle : Handle<astra_bundle, astra_bundle_free> {
  Bundle(const Runtime &runtime, const std::string &path, const astra_bundle_options *options = nullptr) {
    check([&](astra_diag *d) { return astra_bundle_init_file(&handle, runtime.get(), path.c_str(), options, d); });
  }
  const astra_entry *entry(const char *name) const {
    const astra_entry *found = nullptr;
    check([&](astra_diag *d) { return astra_bundle_find_entry(handle, name, &found, d); });
    return found;
  }
};

struct Loaded : Handle<astra_loaded, astra_loaded_free> {
  Loaded(const Bundle &bundle, const Device &device) : bundle(bundle.get()) {
    astra_device *devices[] = {device.get()};
    check([&](astra_diag *d) { return astra_loaded_init(&handle, bundle.get(), devices, 1, d); });
  }
  const char *target() const { return astra_loaded_target(handle); }
  void setParam(const char *name, const astra_tensor &value) {
    check([&](astra_diag *d) { return astra_loaded_set_param(handle, name, &value, d); });
  }
  const astra_bundle *bundle;
};

struct Session : Handle<astra_session, astra_session_free> {
  explicit Session(const Loaded &loaded, const std::vector<astra_dim_value> &dims = {}) : bundle(loaded.bundle) {
    astra_session_options o = ASTRA_INIT(astra_session_options);
    o.dims = dims.data(), o.num_dims = uint32_t(dims.size());
    check([&](astra_diag *d) { return astra_session_init(&handle, loaded.get(), &o, d); });
  }
  void setDim(const char *name, int64_t value) {
    check([&](astra_diag *d) { return astra_session_set_dim(handle, name, value, d); });
  }
  void setParam(const char *name, const astra_tensor &value) {
    check([&](astra_diag *d) { return astra_session_set_param(handle, name, &value, d); });
  }
  void setState(const char *name, const astra_tensor &value) {
    check([&](astra_diag *d) { return astra_session_set_state(handle, name, &value, d); });
  }
  void getState(const char *name, const astra_tensor &out) const {
    check([&](astra_diag *d) { return astra_session_get_state(handle, name, &out, d); });
  }
  void reset() {
    check([&](astra_diag *d) { return astra_session_reset(handle, d); });
  }
  const astra_bundle *bundle;
};

/// The dtype of a C++ type.
template <typename T> inline constexpr int32_t dtypeOf = 0;
template <> inline constexpr int32_t dtypeOf<bool> = ASTRA_BOOL;
template <> inline constexpr int32_t dtypeOf<int8_t> = ASTRA_I8;
template <> inline constexpr int32_t dtypeOf<int16_t> = ASTRA_I16;
template <> inline constexpr int32_t dtypeOf<int32_t> = ASTRA_I32;
template <> inline constexpr int32_t dtypeOf<int64_t> = ASTRA_I64;
template <> inline constexpr int32_t dtypeOf<uint8_t> = ASTRA_U8;
template <> inline constexpr int32_t dtypeOf<uint16_t> = ASTRA_U16;
template <> inline constexpr int32_t dtypeOf<uint32_t> = ASTRA_U32;
template <> inline constexpr int32_t dtypeOf<uint64_t> = ASTRA_U64;
template <> inline constexpr int32_t dtypeOf<float> = ASTRA_F32;
template <> inline constexpr int32_t dtypeOf<double> = ASTRA_F64;

/// A row-major tensor that owns its elements.
template <typename T> class Tensor {
  static_assert(dtypeOf<T> != 0, "no dtype for this type");

public:
  explicit Tensor(std::vector<int64_t> extents = {}) : shape(std::move(extents)), values(count()) {}
  Tensor(std::vector<int64_t> extents, std::vector<T> elements)
      : shape(std::move(extents)), values(std::move(elements)) {
    if (values.size() != count()) throw std::invalid_argument("a tensor has not as many elements as its shape says");
  }
  size_t count() const {
    size_t n = 1;
    for (int64_t extent : shape) n *= size_t(extent);
    return n;
  }
  /// A description that is good as long as this tensor lives and is not changed.
  astra_tensor describe() const {
    astra_tensor t = ASTRA_INIT(astra_tensor);
    t.data = const_cast<T *>(values.data()), t.data_bytes = values.size() * sizeof(T);
    t.dtype = dtypeOf<T>, t.ndim = int32_t(shape.size()), t.shape = shape.data();
    return t;
  }
  std::vector<int64_t> shape;
  std::vector<T> values;
};

struct Promise : Handle<astra_promise, astra_promise_free> {
  void wait() const {
    check([&](astra_diag *d) { return astra_promise_wait(handle, d); });
  }
  bool ready() const {
    astra_diag diag = ASTRA_INIT(astra_diag);
    astra_status status = astra_promise_poll(handle, &diag);
    if (status && status != ASTRA_NOT_READY) throw Error(status, diag);
    return status == ASTRA_OK;
  }
  /// Actual extents of an output.
  std::vector<int64_t> shape(uint32_t output) const {
    int64_t extents[ASTRA_MAX_RANK];
    int32_t rank = 0;
    check([&](astra_diag *d) { return astra_promise_output_shape(handle, output, extents, &rank, d); });
    return {extents, extents + rank};
  }
  astra_promise **out() { return &handle; }
};

/// One call, put together argument by argument. The tensors must live until it has ended.
class Call {
public:
  Call(Session &session, const char *entry) : session(session) {
    check([&](astra_diag *d) { return astra_bundle_find_entry(session.bundle, entry, &call.entry, d); });
  }
  Call &input(const astra_tensor &t) { return inputs.push_back(t), *this; }
  Call &output(const astra_tensor &t) { return outputs.push_back(t), *this; }
  template <typename T> Call &input(const Tensor<T> &t) { return input(t.describe()); }
  template <typename T> Call &output(Tensor<T> &t) { return output(t.describe()); }
  /// Starts after another call has ended.
  Call &after(const Promise &p) { return promises.push_back(p.get()), *this; }
  Call &allowCopy() { return call.flags |= ASTRA_CALL_ALLOW_COPY, *this; }

  /// The bound of an output for the inputs so far: what to allocate.
  std::vector<int64_t> bound(uint32_t output) const {
    int64_t extents[ASTRA_MAX_RANK];
    int32_t rank = 0;
    check([&](astra_diag *d) {
      return astra_entry_output_bound(call.entry, session.get(), inputs.data(), uint32_t(inputs.size()), output,
                                      extents, &rank, nullptr, d);
    });
    return {extents, extents + rank};
  }
  Promise submit(const Stream &stream) {
    call.inputs = inputs.data(), call.num_inputs = uint32_t(inputs.size());
    call.outputs = outputs.data(), call.num_outputs = uint32_t(outputs.size());
    call.after = promises.data(), call.num_after = uint32_t(promises.size());
    Promise promise;
    check([&](astra_diag *d) { return astra_session_submit(session.get(), stream.get(), &call, promise.out(), d); });
    return promise;
  }
  /// Submits and waits.
  Promise run(const Stream &stream) {
    Promise promise = submit(stream);
    promise.wait();
    return promise;
  }

private:
  Session &session;
  astra_call call = ASTRA_INIT(astra_call);
  std::vector<astra_tensor> inputs, outputs;
  std::vector<astra_promise *> promises;
};

} // namespace astra
