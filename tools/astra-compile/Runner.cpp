//===- Runner.cpp: a module, compiled for this machine and called -----------===//
#include "Runner.h"
#include "astra/Search/Search.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include <chrono>

using namespace astra;
using namespace llvm;
using tool::Npy;

Runner::~Runner() = default;

/// The bundle as a file that is gone when it is mapped.
static Error open(BundleParts &parts, tool::Handles &h, tool::Checked &check) {
  SmallString<128> path;
  int descriptor;
  if (std::error_code e = sys::fs::createTemporaryFile("astra", "astra", descriptor, path))
    return createFileError("a temporary file", e);
  FileRemover remover(path);
  {
    raw_fd_ostream out(descriptor, /*shouldClose=*/true);
    Error failed = writeBundle(parts, out);
    out.flush();
    if (out.has_error()) {
      failed = joinErrors(std::move(failed), createFileError(path, out.error()));
      out.clear_error();
    }
    if (failed) return failed;
  }
  check(astra_bundle_init_file(&h.bundle, h.runtime, path.c_str(), nullptr, check));
  return Error::success();
}

Expected<std::unique_ptr<Runner>> Runner::make(Module m, const PipelineOptions &like) {
  const Target *target = nativeTarget();
  if (!target) return createStringError(std::errc::not_supported, "this machine runs none of the CPU targets");
  PipelineOptions o;
  o.targets = {target};
  o.jobs = like.jobs, o.cache = like.cache, o.fold = like.fold;
  PipelineReport report;
  Expected<Compilation> done = compileModule(std::move(m), o, report);
  if (!done) return done.takeError();
  auto runner = std::make_unique<Runner>();
  tool::Handles &h = runner->handles;
  tool::Checked &check = runner->check;
  try {
    check(astra_runtime_init(&h.runtime, nullptr, check));
    astra_device_options device = ASTRA_INIT(astra_device_options);
    device.num_threads = like.jobs;
    check(astra_device_init(&h.device, h.runtime, "cpu", &device, check));
    if (Error e = open(*done->bundle, h, check)) return std::move(e);
    check(astra_loaded_init(&h.loaded, h.bundle, &h.device, 1, check));
    astra_session_options session = ASTRA_INIT(astra_session_options);
    check(astra_session_init(&h.session, h.loaded, &session, check));
    check(astra_stream_init(&h.stream, h.device, check));
  } catch (const tool::Refusal &r) {
    return createStringError(r.text);
  }
  return runner;
}

/// The actual elements of an output that lies in the shape of its bounds.
static void compact(Npy &a, ArrayRef<int64_t> actual) {
  size_t each = astra_dtype_bits(a.dtype) / 8, count = 1;
  for (int64_t d : actual) count *= size_t(d);
  if (ArrayRef(a.shape) != actual && each) {
    std::vector<uint8_t> rows(count * each);
    for (size_t i = 0; i < count; ++i) {
      size_t rest = i, at = 0, step = 1;
      for (size_t d = actual.size(); d-- > 0;) {
        at += rest % size_t(actual[d]) * step;
        rest /= size_t(actual[d]), step *= size_t(a.shape[d]);
      }
      std::copy_n(a.data.begin() + ptrdiff_t(at * each), each, rows.begin() + ptrdiff_t(i * each));
    }
    a.data = std::move(rows);
  }
  a.shape.assign(actual.begin(), actual.end());
  if (each) a.data.resize(count * each);
}

static astra_tensor tensorOf(const Npy &a) {
  astra_tensor t = ASTRA_INIT(astra_tensor);
  t.data = const_cast<uint8_t *>(a.data.data()), t.data_bytes = a.data.size();
  t.dtype = a.dtype, t.ndim = int32_t(a.shape.size()), t.shape = a.shape.data();
  return t;
}

Expected<Runner::Result> Runner::call(StringRef name, ArrayRef<const Npy *> given) {
  Result result;
  try {
    const astra_entry *entry = nullptr;
    check(astra_bundle_find_entry(handles.bundle, name.str().c_str(), &entry, check));
    astra_entry_info info = ASTRA_INIT(astra_entry_info);
    check(astra_entry_get_info(entry, &info));
    std::vector<astra_tensor> inputs, outputs;
    for (const Npy *a : given) inputs.push_back(tensorOf(*a));
    result.outputs.resize(info.num_outputs);
    for (auto [i, out] : enumerate(result.outputs)) {
      astra_tensor_info o = ASTRA_INIT(astra_tensor_info);
      check(astra_entry_get_output(entry, uint32_t(i), &o));
      int64_t shape[ASTRA_MAX_RANK];
      int32_t rank;
      uint64_t bytes;
      check(astra_entry_output_bound(entry, handles.session, inputs.data(), uint32_t(inputs.size()), uint32_t(i), shape,
                                     &rank, &bytes, check));
      out.dtype = o.dtype;
      out.shape.assign(shape, shape + rank);
      out.data.resize(bytes);
      outputs.push_back(tensorOf(out));
    }
    astra_call c = ASTRA_INIT(astra_call);
    c.entry = entry;
    c.inputs = inputs.data(), c.num_inputs = uint32_t(inputs.size());
    c.outputs = outputs.data(), c.num_outputs = uint32_t(outputs.size());
    auto begin = std::chrono::steady_clock::now();
    astra_promise *promise = nullptr;
    check(astra_session_submit(handles.session, handles.stream, &c, &promise, check));
    astra_status status = astra_promise_wait(promise, check);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    for (uint32_t i = 0; status == ASTRA_OK && i < outputs.size(); ++i) {
      int64_t shape[ASTRA_MAX_RANK];
      int32_t rank;
      status = astra_promise_output_shape(promise, i, shape, &rank, check);
      if (status == ASTRA_OK) compact(result.outputs[i], {shape, size_t(rank)});
    }
    astra_promise_free(&promise);
    check(status);
  } catch (const tool::Refusal &r) {
    return createStringError(r.text);
  }
  return result;
}
