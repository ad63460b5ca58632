//===- RunBundle.cpp: a bundle run through the C API -----------------------===//
// Takes:    inputs as the evaluator's tensors.
// Gives:    outputs at their actual extents, new states; a refusal of the runtime as an error with its sentence.
#include "RunBundle.h"
#include "astra/Bundle/Assemble.h"
#include "astra/Codegen/Compile.h"
#include "astra/astra.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::test;

static_assert(numDTypes == ASTRA_F8E8M0 + 2); // the C ABI numbers the same list, without void and index

llvm::Error test::writeBundleOf(Module &m, const Target &target, llvm::StringRef path) {
  auto s = schedule(m);
  if (!s) return s.takeError();
  CompileOptions options;
  options.verify = true;
  auto code = compileKernels(m.ctx(), *s, target, options);
  if (!code) return code.takeError();
  std::vector<CompiledTarget> all;
  all.push_back(std::move(*code));
  auto parts = assemble(m, *s, std::move(all));
  if (!parts) return parts.takeError();
  return writeBundle(*parts, path);
}

namespace {
llvm::Error check(llvm::function_ref<astra_status(astra_diag *)> call) {
  astra_diag diag = ASTRA_INIT(astra_diag);
  if (astra_status status = call(&diag)) return llvm::createStringError("%s: %s", astra_status_name(status), diag.text);
  return llvm::Error::success();
}
astra_tensor describe(const Tensor &t) {
  astra_tensor d = ASTRA_INIT(astra_tensor);
  d.data = const_cast<uint8_t *>(t.bytes.data());
  d.data_bytes = t.bytes.size();
  d.dtype = int32_t(t.dtype) - 1;
  d.ndim = int32_t(t.shape.size());
  d.shape = t.shape.data();
  return d;
}
/// The first extents of a tensor that lies at the strides of its bound.
Tensor cut(const Tensor &bound, std::vector<int64_t> shape) {
  Tensor t{bound.dtype, std::move(shape), {}};
  int64_t size = byteSize(t.dtype);
  for (int64_t k = 0, n = t.count(); k < n; ++k) {
    int64_t at = 0, step = 1, rest = k;
    for (size_t a = t.shape.size(); a-- > 0; rest /= t.shape[a], step *= bound.shape[a]) at += rest % t.shape[a] * step;
    t.bytes.insert(t.bytes.end(), bound.bytes.begin() + at * size, bound.bytes.begin() + (at + 1) * size);
  }
  return t;
}
struct Session {
  astra_session *handle = nullptr;
  astra_promise *promise = nullptr;
  ~Session() {
    astra_promise_free(&promise);
    astra_session_free(&handle);
  }
};
} // namespace

llvm::Expected<std::unique_ptr<BundleRun>> BundleRun::open(llvm::StringRef path, const Target &target,
                                                           unsigned threads) {
  std::unique_ptr<BundleRun> r(new BundleRun());
  astra_device_options o = ASTRA_INIT(astra_device_options);
  o.num_threads = threads;
  std::string level = llvm::StringRef(target.name).split(':').second.str();
  o.level = level.c_str();
  if (auto e = check([&](auto *d) { return astra_runtime_init(&r->runtime, nullptr, d); })) return std::move(e);
  if (auto e = check([&](auto *d) { return astra_device_init(&r->device, r->runtime, "cpu", &o, d); }))
    return std::move(e);
  if (auto e = check([&](auto *d) { return astra_stream_init(&r->stream, r->device, d); })) return std::move(e);
  if (auto e = check(
          [&](auto *d) { return astra_bundle_init_file(&r->bundle, r->runtime, path.str().c_str(), nullptr, d); }))
    return std::move(e);
  if (auto e = check([&](auto *d) { return astra_loaded_init(&r->loaded, r->bundle, &r->device, 1, d); }))
    return std::move(e);
  return r;
}

BundleRun::~BundleRun() {
  astra_loaded_free(&loaded);
  astra_bundle_free(&bundle);
  astra_stream_free(&stream);
  astra_device_free(&device);
  astra_runtime_free(&runtime);
}

llvm::Expected<EvalResult> BundleRun::run(const Module &m, const Entry &e, const EvalInputs &in) {
  Session s;
  astra_session_options o = ASTRA_INIT(astra_session_options);
  std::vector<astra_dim_value> dims;
  for (auto &[name, v] : in.dims) dims.push_back({name.c_str(), v});
  o.dims = dims.data();
  o.num_dims = dims.size();
  if (auto err = check([&](auto *d) { return astra_session_init(&s.handle, loaded, &o, d); })) return std::move(err);
  astra_call call = ASTRA_INIT(astra_call);
  if (auto err = check([&](auto *d) { return astra_bundle_find_entry(bundle, e.name.c_str(), &call.entry, d); }))
    return std::move(err);
  std::vector<astra_tensor> inputs, outputs;
  for (const Tensor &t : in.inputs) inputs.push_back(describe(t));
  std::vector<Tensor> bounds(e.outputs.size());
  for (uint32_t i = 0; i < e.outputs.size(); ++i) {
    int64_t extents[ASTRA_MAX_RANK];
    int32_t rank = 0;
    if (auto err = check([&](auto *d) {
          return astra_entry_output_bound(call.entry, s.handle, inputs.data(), inputs.size(), i, extents, &rank,
                                          nullptr, d);
        }))
      return std::move(err);
    bounds[i] = {e.outputs[i].value->dtype, {extents, extents + rank}, {}};
    bounds[i].bytes.assign(tensorBytes(bounds[i].dtype, bounds[i].shape), 0xcd);
  }
  for (const Tensor &t : bounds) outputs.push_back(describe(t));
  call.inputs = inputs.data(), call.num_inputs = inputs.size();
  call.outputs = outputs.data(), call.num_outputs = outputs.size();
  if (auto err = check([&](auto *d) { return astra_session_submit(s.handle, stream, &call, &s.promise, d); }))
    return std::move(err);
  if (auto err = check([&](auto *d) { return astra_promise_wait(s.promise, d); })) return std::move(err);
  EvalResult r;
  for (uint32_t i = 0; i < bounds.size(); ++i) {
    int64_t extents[ASTRA_MAX_RANK];
    int32_t rank = 0;
    if (auto err = check([&](auto *d) { return astra_promise_output_shape(s.promise, i, extents, &rank, d); }))
      return std::move(err);
    r.outputs.push_back(cut(bounds[i], {extents, extents + rank}));
  }
  for (const StateUpdate &u : e.updates) { // constant shapes: that is what random modules have
    Tensor t{m.state(u.state)->value->dtype, {}, {}};
    for (UOpRef d : m.state(u.state)->value->shape) t.shape.push_back(*d->constIndex());
    t.bytes.resize(tensorBytes(t.dtype, t.shape));
    astra_tensor out = describe(t);
    if (auto err = check([&](auto *d) { return astra_session_get_state(s.handle, u.state.c_str(), &out, d); }))
      return std::move(err);
    r.states[u.state] = std::move(t);
  }
  return r;
}
