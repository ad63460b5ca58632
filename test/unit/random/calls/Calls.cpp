//===- Calls.cpp: calls of a bundle's entries, through the C API -----------===//
// Does not: use the compiler's libraries; it also runs on machines that only run bundles.
#include "Calls.h"
#include "astra/astra.h"
#include <stdexcept>

using namespace astra::test;

namespace {
template <class Fn> void check(Fn fn) {
  astra_diag diag = ASTRA_INIT(astra_diag);
  if (astra_status status = fn(&diag))
    throw std::runtime_error(std::string(astra_status_name(status)) + ": " + diag.text);
}

/// A handle and what frees it.
template <class T, astra_status (*release)(T **)> struct Owned {
  T *handle = nullptr;
  ~Owned() { release(&handle); }
};

struct Described {
  std::vector<int64_t> shape;
  std::string data;
  astra_tensor tensor = ASTRA_INIT(astra_tensor);
  void describe(int32_t dtype) {
    tensor.data = data.data(), tensor.data_bytes = data.size();
    tensor.dtype = dtype, tensor.ndim = int32_t(shape.size()), tensor.shape = shape.data();
  }
  void allocate(int32_t dtype) {
    size_t bytes = (astra_dtype_bits(dtype) * (shape.empty() ? 1 : shape.back()) + 7) / 8;
    for (size_t i = 0; i + 1 < shape.size(); ++i) bytes *= shape[i];
    data.assign(bytes, char(0xcd));
    describe(dtype);
  }
};

std::vector<int64_t> words(ByteReader &in) {
  std::vector<int64_t> v(in.word());
  for (int64_t &x : v) x = in.word();
  return v;
}
void put(ByteWriter &out, const int64_t *extents, int32_t rank) {
  out.word(rank);
  for (int32_t i = 0; i < rank; ++i) out.word(extents[i]);
}

struct Machine {
  Owned<astra_runtime, astra_runtime_free> runtime;
  Owned<astra_device, astra_device_free> device;
  Owned<astra_stream, astra_stream_free> stream;
  Owned<astra_bundle, astra_bundle_free> bundle;
  Owned<astra_loaded, astra_loaded_free> loaded;

  void call(ByteReader &in, ByteWriter &out) {
    std::string entry = in.text();
    std::vector<std::string> names(in.word());
    std::vector<astra_dim_value> dims;
    for (std::string &name : names) {
      name = in.text();
      dims.push_back({name.c_str(), in.word()});
    }
    std::vector<Described> inputs(in.word());
    std::vector<astra_tensor> given, results;
    for (Described &t : inputs) {
      int32_t dtype = int32_t(in.word());
      t.shape = words(in);
      t.data = in.text();
      t.describe(dtype);
      given.push_back(t.tensor);
    }
    std::vector<std::pair<Described, std::vector<int64_t>>> outputs(in.word()); // with their actual extents
    std::vector<int32_t> types(outputs.size());
    for (int32_t &t : types) t = int32_t(in.word());
    std::vector<std::pair<std::string, Described>> states(in.word());
    for (auto &[name, t] : states) {
      name = in.text();
      int32_t dtype = int32_t(in.word());
      t.shape = words(in);
      t.allocate(dtype);
    }
    try {
      Owned<astra_session, astra_session_free> session;
      Owned<astra_promise, astra_promise_free> promise;
      astra_session_options o = ASTRA_INIT(astra_session_options);
      o.dims = dims.data(), o.num_dims = uint32_t(dims.size());
      check([&](auto *d) { return astra_session_init(&session.handle, loaded.handle, &o, d); });
      astra_call call = ASTRA_INIT(astra_call);
      check([&](auto *d) { return astra_bundle_find_entry(bundle.handle, entry.c_str(), &call.entry, d); });
      int64_t extents[ASTRA_MAX_RANK];
      int32_t rank = 0;
      for (uint32_t i = 0; i < outputs.size(); ++i) {
        check([&](auto *d) {
          return astra_entry_output_bound(call.entry, session.handle, given.data(), uint32_t(given.size()), i, extents,
                                          &rank, nullptr, d);
        });
        outputs[i].first.shape.assign(extents, extents + rank);
        outputs[i].first.allocate(types[i]);
        results.push_back(outputs[i].first.tensor);
      }
      call.inputs = given.data(), call.num_inputs = uint32_t(given.size());
      call.outputs = results.data(), call.num_outputs = uint32_t(results.size());
      check([&](auto *d) { return astra_session_submit(session.handle, stream.handle, &call, &promise.handle, d); });
      check([&](auto *d) { return astra_promise_wait(promise.handle, d); });
      for (uint32_t i = 0; i < outputs.size(); ++i) {
        check([&](auto *d) { return astra_promise_output_shape(promise.handle, i, extents, &rank, d); });
        outputs[i].second.assign(extents, extents + rank);
      }
      for (auto &[name, t] : states)
        check([&](auto *d) { return astra_session_get_state(session.handle, name.c_str(), &t.tensor, d); });
    } catch (const std::exception &e) {
      return out.text(std::string(e.what()));
    }
    out.text("");
    for (auto &[t, actual] : outputs) {
      put(out, actual.data(), int32_t(actual.size()));
      put(out, t.shape.data(), int32_t(t.shape.size()));
      out.text(t.data);
    }
    for (auto &[name, t] : states) out.text(t.data);
  }
};
} // namespace

std::string astra::test::serve(const std::string &path, const char *level, unsigned threads, const std::string &calls) {
  Machine m;
  astra_device_options o = ASTRA_INIT(astra_device_options);
  o.num_threads = threads, o.level = level;
  check([&](auto *d) { return astra_runtime_init(&m.runtime.handle, nullptr, d); });
  check([&](auto *d) { return astra_device_init(&m.device.handle, m.runtime.handle, "cpu", &o, d); });
  check([&](auto *d) { return astra_stream_init(&m.stream.handle, m.device.handle, d); });
  check([&](auto *d) { return astra_bundle_init_file(&m.bundle.handle, m.runtime.handle, path.c_str(), nullptr, d); });
  check([&](auto *d) { return astra_loaded_init(&m.loaded.handle, m.bundle.handle, &m.device.handle, 1, d); });
  ByteWriter out;
  for (ByteReader in(calls); !in.done();) m.call(in, out);
  return out.bytes;
}
