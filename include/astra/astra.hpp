//===- astra.hpp: a thin C++17 wrapper over astra.h -----------------------===//
// Takes:    the C API.
// Gives:    owning handles, errors as exceptions, tensors from std::vector. Header-only: nothing of C++ crosses the
//           ABI.
// Keeps:    one class per handle, one method per function of astra.h (scripts/check_style.py looks). A handle that was
//           made with the C API goes in through a constructor and out through release().
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

#include <array>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace astra {

/// A status that is not ASTRA_OK, with its sentence where there is one.
class Error : public std::runtime_error {
public:
  explicit Error(astra_status status) : std::runtime_error(astra_status_name(status)), code(status) {}
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

/// The same of a function without a sentence, which fills a struct.
template <typename Info, typename Fn> Info ask(Fn fn) {
  Info info = ASTRA_INIT(Info);
  if (astra_status status = fn(&info)) throw Error(status);
  return info;
}

/// major << 16 | minor of the library that is running.
inline uint32_t version() { return astra_version(); }
inline const char *dtypeName(int32_t dtype) { return astra_dtype_name(dtype); }
inline uint32_t dtypeBits(int32_t dtype) { return astra_dtype_bits(dtype); }

/// Owns a handle. A free that is refused (ASTRA_IN_USE) leaks it rather than throw: free in the reverse order of
/// making, or call free().
template <typename T, astra_status (*freeOf)(T **)> class Handle {
public:
  Handle() = default;
  /// Takes over a handle of the C API.
  explicit Handle(T *raw) : handle(raw) {}
  Handle(Handle &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Handle &operator=(Handle &&other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Handle() { freeOf(&handle); }
  T *get() const { return handle; }
  /// Gives the handle up: whoever gets it frees it.
  T *release() { return std::exchange(handle, nullptr); }
  /// Frees it now and throws what a destructor cannot say.
  void free() {
    if (astra_status status = freeOf(&handle)) throw Error(status);
  }
  explicit operator bool() const { return handle; }

protected:
  T *handle = nullptr;
};

/// Calls a function object of C++ from C: what it throws is the sentence of ASTRA_FUNCTION_FAILED.
template <typename Fn>
astra_status callFunction(void *self, const astra_tensor *inputs, uint32_t num_inputs, const astra_tensor *outputs,
                          uint32_t num_outputs, astra_diag *diag) {
  try {
    (*static_cast<Fn *>(self))(inputs, num_inputs, outputs, num_outputs);
    return ASTRA_OK;
  } catch (const std::exception &e) {
    std::snprintf(diag->text, sizeof(diag->text), "%s", e.what());
  } catch (...) {
  }
  return ASTRA_FUNCTION_FAILED;
}

struct Runtime : Handle<astra_runtime, astra_runtime_free> {
  using Handle::Handle;
  Runtime() : Runtime(static_cast<const astra_runtime_options *>(nullptr)) {}
  explicit Runtime(const astra_runtime_options *options) {
    check([&](astra_diag *d) { return astra_runtime_init(&handle, options, d); });
  }
  /// What bundles call by this name: fn(inputs, num_inputs, outputs, num_outputs), which may throw and must outlive the
  /// bundles that are loaded. flags: ASTRA_FUNCTION_DETERMINISTIC, ASTRA_FUNCTION_EFFECTS.
  template <typename Fn> void registerFunction(const char *name, Fn &fn, uint32_t flags = 0) const {
    check([&](astra_diag *d) { return astra_runtime_register(handle, name, callFunction<Fn>, &fn, flags, d); });
  }
};

struct Device : Handle<astra_device, astra_device_free> {
  using Handle::Handle;
  /// The fields of astra_device_options.
  struct Options {
    uint32_t threads = 1;
    const char *level = nullptr;
    const astra_executor *executor = nullptr;
    int64_t spin_ns = 0;
    const astra_emulator *emulator = nullptr;
    const char *driver = nullptr;
    uint32_t flags = 0;
    uint32_t node = 0; ///< with ASTRA_DEVICE_ON_NODE in flags
    const char *sysfs = nullptr;
  };
  Device(const Runtime &runtime, const char *name, const astra_device_options *options = nullptr) {
    check([&](astra_diag *d) { return astra_device_init(&handle, runtime.get(), name, options, d); });
  }
  Device(const Runtime &runtime, const char *name, const Options &options) {
    astra_device_options o = ASTRA_INIT(astra_device_options);
    o.num_threads = options.threads, o.level = options.level, o.executor = options.executor;
    o.spin_ns = options.spin_ns, o.emulator = options.emulator, o.driver = options.driver, o.flags = options.flags,
    o.node = options.node, o.sysfs = options.sysfs;
    check([&](astra_diag *d) { return astra_device_init(&handle, runtime.get(), name, &o, d); });
  }
  /// 1, 0, or -1 for a name that is not known.
  int32_t hasFeature(const char *feature) const { return astra_device_has_feature(handle, feature); }
};

/// The NUMA nodes that have memory; sysfs: where the system describes them, null for /sys.
inline std::vector<uint32_t> nodes(const char *sysfs = nullptr) {
  std::vector<uint32_t> out(1024); // as many as the library knows
  auto count = uint32_t(out.size());
  check([&](astra_diag *d) { return astra_nodes(sysfs, out.data(), &count, d); });
  out.resize(count);
  return out;
}

struct Pool : Handle<astra_pool, astra_pool_free> {
  using Handle::Handle;
  explicit Pool(const Device &device, const astra_pool_options *options = nullptr) {
    check([&](astra_diag *d) { return astra_pool_init(&handle, device.get(), options, d); });
  }
  astra_pool_stats stats() const {
    return ask<astra_pool_stats>([&](astra_pool_stats *out) { return astra_pool_get_stats(handle, out); });
  }
  void trim() {
    if (astra_status status = astra_pool_trim(handle)) throw Error(status);
  }
};

struct Buffer : Handle<astra_buffer, astra_buffer_free> {
  using Handle::Handle;
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

//===- Bundle ---------------------------------------------------------------===//

/// A function of a bundle, which it belongs to.
class Entry {
public:
  Entry(const astra_entry *entry = nullptr) : handle(entry) {}
  operator const astra_entry *() const { return handle; }
  astra_entry_info info() const {
    return ask<astra_entry_info>([&](astra_entry_info *out) { return astra_entry_get_info(handle, out); });
  }
  astra_tensor_info input(uint32_t index) const {
    return ask<astra_tensor_info>([&](astra_tensor_info *out) { return astra_entry_get_input(handle, index, out); });
  }
  astra_tensor_info output(uint32_t index) const {
    return ask<astra_tensor_info>([&](astra_tensor_info *out) { return astra_entry_get_output(handle, index, out); });
  }
  uint32_t findInput(const char *name) const {
    uint32_t index = 0;
    check([&](astra_diag *d) { return astra_entry_find_input(handle, name, &index, d); });
    return index;
  }
  uint32_t findOutput(const char *name) const {
    uint32_t index = 0;
    check([&](astra_diag *d) { return astra_entry_find_output(handle, name, &index, d); });
    return index;
  }
  /// 1, 0, or -1 for an index that there is not.
  int32_t usesState(uint32_t state) const { return astra_entry_uses_state(handle, state); }

private:
  const astra_entry *handle;
};

struct Bundle : Handle<astra_bundle, astra_bundle_free> {
  using Handle::Handle;
  Bundle(const Runtime &runtime, const std::string &path, const astra_bundle_options *options = nullptr) {
    check([&](astra_diag *d) { return astra_bundle_init_file(&handle, runtime.get(), path.c_str(), options, d); });
  }
  /// From memory, 64-byte aligned, which must outlive the bundle.
  Bundle(const Runtime &runtime, const void *data, size_t bytes, const astra_bundle_options *options = nullptr) {
    check([&](astra_diag *d) { return astra_bundle_init_memory(&handle, runtime.get(), data, bytes, options, d); });
  }
  astra_bundle_info info() const {
    return ask<astra_bundle_info>([&](astra_bundle_info *out) { return astra_bundle_get_info(handle, out); });
  }
  astra_target_info target(uint32_t index) const {
    return ask<astra_target_info>([&](astra_target_info *out) { return astra_bundle_get_target(handle, index, out); });
  }
  astra_dim_info dim(uint32_t index) const {
    return ask<astra_dim_info>([&](astra_dim_info *out) { return astra_bundle_get_dim(handle, index, out); });
  }
  astra_tensor_info param(uint32_t index) const {
    return ask<astra_tensor_info>([&](astra_tensor_info *out) { return astra_bundle_get_param(handle, index, out); });
  }
  astra_tensor_info state(uint32_t index) const {
    return ask<astra_tensor_info>([&](astra_tensor_info *out) { return astra_bundle_get_state(handle, index, out); });
  }
  Entry entry(uint32_t index) const {
    const astra_entry *found = nullptr;
    if (astra_status status = astra_bundle_get_entry(handle, index, &found)) throw Error(status);
    return found;
  }
  Entry entry(const char *name) const {
    const astra_entry *found = nullptr;
    check([&](astra_diag *d) { return astra_bundle_find_entry(handle, name, &found, d); });
    return found;
  }
  /// Of a function of the program that it calls; null for an index that there is not.
  const char *functionName(uint32_t index) const { return astra_bundle_function_name(handle, index); }
  /// Tells bundles apart.
  std::array<uint8_t, 32> digest() const {
    std::array<uint8_t, 32> bytes;
    check([&](astra_diag *) { return astra_bundle_get_digest(handle, bytes.data()); });
    return bytes;
  }
  uint32_t assets() const { return astra_bundle_num_assets(handle); }
  /// NULL: there is none of this index.
  const char *assetName(uint32_t index) const { return astra_bundle_asset_name(handle, index); }
  /// The bytes live as long as the bundle; their hash is checked.
  std::pair<const void *, uint64_t> asset(const char *name) const {
    std::pair<const void *, uint64_t> found;
    check([&](astra_diag *d) { return astra_bundle_find_asset(handle, name, &found.first, &found.second, d); });
    return found;
  }
};

struct Loaded : Handle<astra_loaded, astra_loaded_free> {
  Loaded(const Bundle &bundle, const Device &device) : bundle(bundle.get()) {
    astra_device *devices[] = {device.get()};
    check([&](astra_diag *d) { return astra_loaded_init(&handle, bundle.get(), devices, 1, d); });
  }
  /// Takes over what the C API made of a bundle.
  Loaded(astra_loaded *raw, const astra_bundle *bundle) : Handle(raw), bundle(bundle) {}
  const char *target() const { return astra_loaded_target(handle); }
  void setParam(const char *name, const astra_tensor &value) {
    check([&](astra_diag *d) { return astra_loaded_set_param(handle, name, &value, d); });
  }
  const astra_bundle *bundle;
};

//===- Session --------------------------------------------------------------===//

/// The memory of a state, lent for reading: the session is busy until this is gone.
class StateLease {
public:
  StateLease(astra_session *session, const char *name) : session(session), name(name) {
    check([&](astra_diag *d) { return astra_session_lease_state(session, name, &memory, &size, d); });
  }
  StateLease(StateLease &&other) noexcept
      : session(std::exchange(other.session, nullptr)), name(std::move(other.name)), memory(other.memory),
        size(other.size) {}
  StateLease &operator=(StateLease &&) = delete;
  ~StateLease() {
    if (session) astra_session_return_state(session, name.c_str(), nullptr);
  }
  const void *data() const { return memory; }
  uint64_t bytes() const { return size; }

private:
  astra_session *session;
  std::string name;
  const void *memory = nullptr;
  uint64_t size = 0;
};

struct Session : Handle<astra_session, astra_session_free> {
  explicit Session(const Loaded &loaded, const std::vector<astra_dim_value> &dims = {}) : bundle(loaded.bundle) {
    astra_session_options o = ASTRA_INIT(astra_session_options);
    o.dims = dims.data(), o.num_dims = uint32_t(dims.size());
    check([&](astra_diag *d) { return astra_session_init(&handle, loaded.get(), &o, d); });
  }
  /// Takes over what the C API made of a bundle.
  Session(astra_session *raw, const astra_bundle *bundle) : Handle(raw), bundle(bundle) {}
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
  StateLease leaseState(const char *name) { return StateLease(handle, name); }
  void reset() {
    check([&](astra_diag *d) { return astra_session_reset(handle, d); });
  }
  /// fn(self, event) after each launch; null: no trace.
  void setTrace(astra_trace_fn fn, void *self) {
    if (astra_status status = astra_session_set_trace(handle, fn, self)) throw Error(status);
  }
  const astra_bundle *bundle;
};

//===- Tensors --------------------------------------------------------------===//

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
template <> inline constexpr int32_t dtypeOf<std::complex<float>> = ASTRA_C64;
template <> inline constexpr int32_t dtypeOf<std::complex<double>> = ASTRA_C128;

/// A row-major tensor that owns its elements. A bool is a byte, 0 or 1.
template <typename T> class Tensor {
  static_assert(dtypeOf<T> != 0, "no dtype for this type");

public:
  using Element = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>; // std::vector<bool> holds bits
  explicit Tensor(std::vector<int64_t> extents = {}) : shape(std::move(extents)), values(count()) {}
  Tensor(std::vector<int64_t> extents, std::vector<Element> elements)
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
    t.data = const_cast<Element *>(values.data()), t.data_bytes = values.size() * sizeof(Element);
    t.dtype = dtype, t.ndim = int32_t(shape.size()), t.shape = shape.data();
    return t;
  }
  std::vector<int64_t> shape;
  std::vector<Element> values;
  int32_t dtype = dtypeOf<T>; ///< what else the elements may stand for: ASTRA_F16 of uint16_t
};

/// A buffer as a row-major tensor. `shape` must live as long as the description.
inline astra_tensor describe(const Buffer &buffer, int32_t dtype, const std::vector<int64_t> &shape) {
  astra_tensor t = ASTRA_INIT(astra_tensor);
  t.buffer = buffer.get(), t.dtype = dtype, t.ndim = int32_t(shape.size()), t.shape = shape.data();
  return t;
}

//===- Stream, call, promise ------------------------------------------------===//

struct Promise : Handle<astra_promise, astra_promise_free> {
  using Handle::Handle;
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
  /// Calls fn(self, status) once, when it has ended; astra.h says on which thread. astra/async.hpp has what is built on
  /// it.
  void onReady(astra_ready_fn fn, void *self) const {
    check([&](astra_diag *d) { return astra_promise_on_ready(handle, fn, self, d); });
  }
  /// A descriptor for poll and its like, which the caller closes.
  int descriptor() const {
    int out = -1;
    check([&](astra_diag *d) { return astra_promise_fd(handle, &out, d); });
    return out;
  }
  /// Takes the call back; false if it has begun.
  bool cancel() const {
    astra_diag diag = ASTRA_INIT(astra_diag);
    astra_status status = astra_promise_cancel(handle, &diag);
    if (status && status != ASTRA_BUSY) throw Error(status, diag);
    return status == ASTRA_OK;
  }
  astra_promise **out() { return &handle; }
};

struct Stream : Handle<astra_stream, astra_stream_free> {
  using Handle::Handle;
  explicit Stream(const Device &device) {
    check([&](astra_diag *d) { return astra_stream_init(&handle, device.get(), d); });
  }
  /// A promise for everything submitted so far.
  Promise mark() const {
    Promise promise;
    check([&](astra_diag *d) { return astra_stream_mark(handle, promise.out(), d); });
    return promise;
  }
  /// What is submitted from now on starts after the promise.
  void wait(const Promise &promise) const {
    check([&](astra_diag *d) { return astra_stream_wait(handle, promise.get(), d); });
  }
  /// What it was submitted and what it had to wait for.
  astra_stream_stats stats() const {
    return ask<astra_stream_stats>([&](astra_stream_stats *out) { return astra_stream_get_stats(handle, out); });
  }
  /// Memory for what is submitted from now on: see astra_buffer_init_on.
  Buffer buffer(const Pool &pool, uint64_t bytes) const {
    astra_buffer *buffer = nullptr;
    check([&](astra_diag *d) { return astra_buffer_init_on(&buffer, pool.get(), handle, bytes, d); });
    return Buffer(buffer);
  }
  /// Queue a copy to or from a buffer; the memory must stay until it has ended.
  Promise write(const Buffer &to, uint64_t offset, const void *from, uint64_t bytes) const {
    Promise promise;
    check([&](astra_diag *d) { return astra_stream_write(handle, to.get(), offset, from, bytes, promise.out(), d); });
    return promise;
  }
  Promise read(void *to, const Buffer &from, uint64_t offset, uint64_t bytes) const {
    Promise promise;
    check([&](astra_diag *d) { return astra_stream_read(handle, to, from.get(), offset, bytes, promise.out(), d); });
    return promise;
  }
};

/// One call, put together argument by argument. The tensors must live until it has ended.
class Call {
public:
  Call(Session &session, const char *entry) : session(session) {
    check([&](astra_diag *d) { return astra_bundle_find_entry(session.bundle, entry, &call.entry, d); });
  }
  Call(Session &session, const Entry &entry) : session(session) { call.entry = entry; }
  Call &input(const astra_tensor &t) { return inputs.push_back(t), *this; }
  Call &output(const astra_tensor &t) { return outputs.push_back(t), *this; }
  template <typename T> Call &input(const Tensor<T> &t) { return input(t.describe()); }
  template <typename T> Call &output(Tensor<T> &t) { return output(t.describe()); }
  Call &input(const Buffer &b, int32_t dtype, std::vector<int64_t> shape) {
    return input(describe(b, dtype, keep(std::move(shape))));
  }
  Call &output(const Buffer &b, int32_t dtype, std::vector<int64_t> shape) {
    return output(describe(b, dtype, keep(std::move(shape))));
  }
  /// An input whose memory the program may use. The buffer is freed with the call if submit succeeds.
  Call &donate(Buffer &&b, int32_t dtype, std::vector<int64_t> shape) {
    donated.push_back(std::move(b));
    input(describe(donated.back(), dtype, keep(std::move(shape))));
    inputs.back().flags |= ASTRA_TENSOR_DONATED;
    return *this;
  }
  /// Starts after another call has ended.
  Call &after(const Promise &p) { return promises.push_back(p.get()), *this; }
  Call &allowCopy() { return call.flags |= ASTRA_CALL_ALLOW_COPY, *this; }
  /// Starts after the calls in flight that it may not run beside.
  Call &order() { return call.flags |= ASTRA_CALL_ORDER, *this; }

  /// The bound of an output for the inputs so far: what to allocate, and its bytes.
  std::vector<int64_t> bound(uint32_t output, uint64_t *bytes = nullptr) const {
    int64_t extents[ASTRA_MAX_RANK];
    int32_t rank = 0;
    check([&](astra_diag *d) {
      return astra_entry_output_bound(call.entry, session.get(), inputs.data(), uint32_t(inputs.size()), output,
                                      extents, &rank, bytes, d);
    });
    return {extents, extents + rank};
  }
  Promise submit(const Stream &stream) {
    call.inputs = inputs.data(), call.num_inputs = uint32_t(inputs.size());
    call.outputs = outputs.data(), call.num_outputs = uint32_t(outputs.size());
    call.after = promises.data(), call.num_after = uint32_t(promises.size());
    Promise promise;
    check([&](astra_diag *d) { return astra_session_submit(session.get(), stream.get(), &call, promise.out(), d); });
    for (Buffer &b : donated) b.release();
    donated.clear();
    return promise;
  }
  /// Submits and waits.
  Promise run(const Stream &stream) {
    Promise promise = submit(stream);
    promise.wait();
    return promise;
  }

private:
  const std::vector<int64_t> &keep(std::vector<int64_t> shape) { return shapes.emplace_back(std::move(shape)); }

  Session &session;
  astra_call call = ASTRA_INIT(astra_call);
  std::vector<astra_tensor> inputs, outputs;
  std::vector<astra_promise *> promises;
  std::deque<std::vector<int64_t>> shapes;
  std::vector<Buffer> donated;
};

} // namespace astra
