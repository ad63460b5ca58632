//===- speeds.cpp: first speeds of a GPU --------------------------------------===//
// Takes:    speeds.uop compiled, a device, its driver, how many calls; whether the clock means anything.
// Gives:    a line for each work: what it took, as a cell of the table in docs/gpu-status.md; beside the product cuBLAS
//           in f32 where libcublas can be opened by name. product, softmax: of these alone, without
//           cuBLAS. unit, ampere, attention: the only entry of a bundle; `cublas-bf16` cuBLAS on bf16 alone. A file
//           gets a number that the bits of the results make, so that plans can be compared.
// Keeps:    results checked: some elements of the products computed again in their order (of matrix units by the model
//           of docs/numerics.md, N4.8), all of the copy, the sums of the rows of the softmax and of attention. Memory
//           of the GPU, several sessions on one stream: calls follow each other without a gap.
// Does not: link a driver or cuBLAS.
#include "astra/astra.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <vector>

namespace {

astra_diag diag = ASTRA_INIT(astra_diag);

void ask(astra_status s, const char *what) {
  if (s == ASTRA_OK) return;
  std::printf("speeds: %s: %s: %s\n", what, astra_status_name(s), diag.text);
  std::exit(1);
}
#define ASK(call) ask(call, #call)

[[noreturn]] void wrong(const std::string &what) {
  std::printf("speeds: %s\n", what.c_str());
  std::exit(1);
}

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::vector<float> numbers(size_t n, uint64_t seed) {
  std::vector<float> out(n);
  for (float &x : out) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    x = float(int64_t(seed >> 40) - (1 << 23)) * 0x1p-22f;
  }
  return out;
}

struct Machine {
  astra_runtime *runtime = nullptr;
  astra_device *device = nullptr;
  astra_pool *pool = nullptr;
  astra_stream *stream = nullptr;
  astra_bundle *bundle = nullptr;
  astra_loaded *loaded = nullptr;
};

/// Seconds of a call of an entry with these inputs; `result` gets the output of one.
template <class T>
double time(Machine &m, const char *name, const std::vector<const std::vector<T> *> &inputs, unsigned calls,
            std::vector<float> &result) {
  constexpr unsigned sessions = 4;
  const astra_entry *entry;
  ASK(astra_bundle_find_entry(m.bundle, name, &entry, &diag));
  auto tensor = [&](const astra_tensor_info &info, astra_buffer *&buffer) {
    size_t bytes = info.dtype == ASTRA_BF16 ? 2 : 4;
    for (int32_t i = 0; i < info.ndim; ++i) bytes *= size_t(info.upper[i]);
    ASK(astra_buffer_init(&buffer, m.pool, bytes, &diag));
    astra_tensor t = ASTRA_INIT(astra_tensor);
    t.buffer = buffer, t.dtype = info.dtype, t.ndim = info.ndim, t.shape = info.upper;
    return t;
  };
  std::vector<astra_buffer *> buffers(inputs.size());
  std::vector<astra_tensor> in;
  astra_tensor_info info = ASTRA_INIT(astra_tensor_info);
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    ASK(astra_entry_get_input(entry, i, &info));
    in.push_back(tensor(info, buffers[i]));
    size_t bytes = inputs[i]->size() * sizeof(T);
    if (bytes != astra_buffer_bytes(buffers[i])) wrong("an input has another size");
    ASK(astra_stream_write(m.stream, buffers[i], 0, inputs[i]->data(), bytes, nullptr, &diag));
  }
  ASK(astra_entry_get_output(entry, 0, &info));
  astra_session *session[sessions];
  astra_buffer *out[sessions];
  astra_tensor outputs[sessions];
  astra_promise *promise[sessions] = {};
  for (unsigned i = 0; i < sessions; ++i) {
    ASK(astra_session_init(&session[i], m.loaded, nullptr, &diag));
    outputs[i] = tensor(info, out[i]);
  }
  auto wait = [&](unsigned i) {
    if (!promise[i]) return;
    ASK(astra_promise_wait(promise[i], &diag));
    ASK(astra_promise_free(&promise[i]));
    promise[i] = nullptr;
  };
  auto run = [&](unsigned times) {
    for (unsigned n = 0; n < times; ++n) {
      unsigned i = n % sessions;
      wait(i);
      astra_call call = ASTRA_INIT(astra_call);
      call.entry = entry, call.inputs = in.data(), call.num_inputs = uint32_t(in.size());
      call.outputs = &outputs[i], call.num_outputs = 1;
      ASK(astra_session_submit(session[i], m.stream, &call, &promise[i], &diag));
    }
    for (unsigned i = 0; i < sessions; ++i) wait(i);
  };
  run(sessions); // clocks rise, memory is there
  auto begin = Clock::now();
  run(calls);
  double seconds = since(begin) / calls;
  result.resize(astra_buffer_bytes(out[0]) / 4);
  astra_promise *read;
  ASK(astra_stream_read(m.stream, result.data(), out[0], 0, result.size() * 4, &read, &diag));
  ASK(astra_promise_wait(read, &diag));
  ASK(astra_promise_free(&read));
  for (unsigned i = 0; i < sessions; ++i) {
    ASK(astra_session_free(&session[i]));
    ASK(astra_buffer_free(&out[i]));
  }
  for (astra_buffer *&b : buffers) ASK(astra_buffer_free(&b));
  return seconds;
}

/// An element of the product in the order of the contract: chains of 512 that are added.
float element(const std::vector<float> &a, const std::vector<float> &b, size_t n, size_t i, size_t j) {
  float sum = 0;
  for (size_t block = 0; block < n; block += 512) {
    float chain = -0.0f;
    for (size_t k = block; k < std::min(n, block + 512); ++k) chain = std::fma(a[i * n + k], b[k * n + j], chain);
    sum = block ? sum + chain : chain;
  }
  return sum;
}

float ofBf16(uint16_t x) {
  uint32_t bits = uint32_t(x) << 16;
  float v;
  std::memcpy(&v, &bits, 4);
  return v;
}

/// bf16 between 2^-4 and 2^4, of both signs.
std::vector<uint16_t> halves(size_t n, uint64_t seed) {
  std::vector<uint16_t> out(n);
  for (uint16_t &x : out) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    uint32_t r = uint32_t(seed >> 33);
    x = uint16_t((r & 0x8000) | (123 + (r >> 16) % 8) << 7 | (r & 0x7f));
  }
  return out;
}

/// An element of the product of rows of a and rows of b as a matrix unit adds it: of each block the products and the
/// sum so far, cut toward zero at `bits` below the greatest exponent, added exactly, cut toward zero to f32.
float unitElement(const std::vector<uint16_t> &a, const std::vector<uint16_t> &b, size_t n, size_t i, size_t j,
                  size_t block, int bits) {
  float sum = 0;
  for (size_t first = 0; first < n; first += block) {
    std::vector<double> terms;
    int most = sum == 0 ? -1000 : std::ilogb(sum);
    for (size_t k = first; k < std::min(n, first + block); ++k) {
      float x = ofBf16(a[i * n + k]), y = ofBf16(b[j * n + k]);
      most = std::max(most, std::ilogb(x) + std::ilogb(y));
      terms.push_back(double(x) * y);
    }
    terms.push_back(sum);
    int64_t all = 0;
    for (double t : terms) all += int64_t(std::ldexp(t, bits - most));
    uint64_t size = uint64_t(all < 0 ? -all : all), cut = size;
    for (int low = 0; size >> low >= 1u << 24; ++low) cut = size >> (low + 1) << (low + 1);
    sum = float(std::ldexp(all < 0 ? -double(cut) : double(cut), most - bits));
  }
  return sum;
}

/// Writes what the bits of the results make (FNV-1a) to a file.
void note(const char *file, const std::vector<float> &results) {
  uint64_t sum = 14695981039346656037ull;
  for (float x : results) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    sum = (sum ^ bits) * 1099511628211ull;
  }
  FILE *out = file ? std::fopen(file, "w") : nullptr;
  if (!file) return;
  if (!out || std::fprintf(out, "%016llx\n", static_cast<unsigned long long>(sum)) < 0 || std::fclose(out))
    wrong("a file cannot be written");
}

/// Seconds of cuBLAS: cublasSgemm, or of bf16 with f32 sums cublasGemmEx, on its own matrices of this size in the GPU's
/// primary context, or a negative number and why.
double timeCublas(const char *driverName, int device, int n, unsigned calls, bool bf16, std::string &why) {
  void *driver = dlopen(driverName, RTLD_NOW), *blas = nullptr;
  for (const char *name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"})
    if (!blas) blas = dlopen(name, RTLD_NOW);
  if (!blas || !driver) return why = "libcublas cannot be opened", -1;
  auto function = [](void *from, const char *name) { return dlsym(from, name); };
  using Context = void *;
  auto retain = reinterpret_cast<int (*)(Context *, int)>(function(driver, "cuDevicePrimaryCtxRetain"));
  auto current = reinterpret_cast<int (*)(Context)>(function(driver, "cuCtxSetCurrent"));
  auto synchronize = reinterpret_cast<int (*)()>(function(driver, "cuCtxSynchronize"));
  auto allocate = reinterpret_cast<int (*)(uint64_t *, size_t)>(function(driver, "cuMemAlloc_v2"));
  auto fill = reinterpret_cast<int (*)(uint64_t, unsigned, size_t)>(function(driver, "cuMemsetD32_v2"));
  auto release = reinterpret_cast<int (*)(uint64_t)>(function(driver, "cuMemFree_v2"));
  auto create = reinterpret_cast<int (*)(void **)>(function(blas, "cublasCreate_v2"));
  auto mode = reinterpret_cast<int (*)(void *, int)>(function(blas, "cublasSetMathMode"));
  auto gemm = reinterpret_cast<int (*)(void *, int, int, int, int, int, const float *, uint64_t, int, uint64_t, int,
                                       const float *, uint64_t, int)>(function(blas, "cublasSgemm_v2"));
  auto gemmOf =
      reinterpret_cast<int (*)(void *, int, int, int, int, int, const float *, uint64_t, int, int, uint64_t, int, int,
                               const float *, uint64_t, int, int, int, int)>(function(blas, "cublasGemmEx"));
  if (!retain || !current || !synchronize || !allocate || !fill || !release || !create || !mode || !gemm || !gemmOf)
    return why = "libcublas lacks a function", -1;
  Context context;
  void *handle;
  uint64_t memory[3];
  constexpr int defaultMath = 0; // f32 as it stands: no TF32
  if (retain(&context, device) || current(context) || create(&handle) || mode(handle, defaultMath))
    return why = "cuBLAS does not start", -1;
  for (uint64_t &at : memory)
    if (allocate(&at, size_t(n) * n * 4) || fill(at, bf16 ? 0x3f803f80 : 0x3f800000, size_t(n) * n))
      return why = "no memory for cuBLAS", -1;
  float one = 1, zero = 0;
  auto run = [&](unsigned times) {
    int bad = 0;
    constexpr int isBf16 = 14, isF32 = 0, sumsF32 = 68,
                  turned = 1; // of cudaDataType, cublasComputeType_t, cublasOperation_t
    while (times--)
      bad |= bf16 ? gemmOf(handle, turned, 0, n, n, n, &one, memory[0], isBf16, n, memory[1], isBf16, n, &zero,
                           memory[2], isF32, n, sumsF32, -1)
                  : gemm(handle, 0, 0, n, n, n, &one, memory[0], n, memory[1], n, &zero, memory[2], n);
    return bad | synchronize();
  };
  if (run(3)) return why = "cuBLAS fails", -1;
  auto begin = Clock::now();
  if (run(calls)) return why = "cuBLAS fails", -1;
  double seconds = since(begin) / calls;
  for (uint64_t at : memory) release(at);
  return seconds;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 6 && argc != 7)
    return std::printf(
               "usage: speeds BUNDLE DEVICE DRIVER|- CALLS [no-]speeds|product|softmax|unit|ampere|attention [FILE]\n"
               "       speeds - DEVICE DRIVER|- CALLS cublas-bf16\n"),
           2;
  const char *driver = std::strcmp(argv[3], "-") ? argv[3] : nullptr;
  unsigned calls = unsigned(std::atoi(argv[4]));
  std::string what = argv[5];
  bool speeds = what.rfind("no-", 0) != 0;
  auto alone = [&](const char *work) { return what == work || what == std::string("no-") + work; };
  auto endWith = [&](const char *format, double speed) { // the process ends, and what it holds with it
    return speeds ? std::printf(format, speed) : std::printf("stand-in: no speed; its results are right\n"), 0;
  };
  const char *number = std::strchr(argv[2], ':');
  const int ordinal = number ? std::atoi(number + 1) : 0;
  if (what == "cublas-bf16") {
    std::string why;
    double seconds = timeCublas(driver ? driver : "libcuda.so.1", ordinal, 4096, calls, true, why);
    return seconds > 0 ? std::printf("%.1f\n", 2.0 * 4096 * 4096 * 4096 / seconds * 1e-12)
                       : std::printf("%s\n", why.c_str()),
           0;
  }
  const char *file = argc > 6 ? argv[6] : nullptr;
  Machine m;
  astra_device_options options = ASTRA_INIT(astra_device_options);
  options.driver = driver;
  ASK(astra_runtime_init(&m.runtime, nullptr, &diag));
  ASK(astra_device_init(&m.device, m.runtime, argv[2], &options, &diag));
  ASK(astra_bundle_init_file(&m.bundle, m.runtime, argv[1], nullptr, &diag));
  ASK(astra_loaded_init(&m.loaded, m.bundle, &m.device, 1, &diag));
  ASK(astra_pool_init(&m.pool, m.device, nullptr, &diag));
  ASK(astra_stream_init(&m.stream, m.device, &diag));

  auto sizeOf = [&](const char *name) {
    const astra_entry *entry;
    astra_tensor_info info = ASTRA_INIT(astra_tensor_info);
    ASK(astra_bundle_find_entry(m.bundle, name, &entry, &diag));
    ASK(astra_entry_get_output(entry, 0, &info));
    return std::vector<size_t>(info.upper, info.upper + info.ndim);
  };
  std::vector<float> got;
  if (alone("unit") || alone("ampere")) {
    size_t n = sizeOf("main")[0];
    std::vector<uint16_t> a = halves(n * n, 1), b = halves(n * n, 2);
    double seconds = time<uint16_t>(m, "main", {&a, &b}, calls, got);
    for (size_t s = 0; s < 64; ++s) {
      size_t i = s * 7919 % n, j = s * 104729 % n;
      float expected = alone("unit") ? unitElement(a, b, n, i, j, 16, 25) : unitElement(a, b, n, i, j, 8, 24);
      if (got[i * n + j] != expected) wrong("an element of the product is not what the matrix unit's model gives");
    }
    note(file, got);
    return endWith("%.1f TFLOP/s\n", 2.0 * double(n) * double(n) * double(n) / seconds * 1e-12);
  }
  if (alone("attention")) {
    std::vector<size_t> shape = sizeOf("main");
    size_t count = shape[0] * shape[1] * shape[2];
    std::vector<float> q = numbers(count, 1), k = numbers(count, 2), v(count, 1.0f);
    double seconds = time<float>(m, "main", {&q, &k, &v}, calls, got);
    for (float x : got)
      if (!(std::fabs(x - 1) < 1e-4)) wrong("a row of probabilities does not sum to 1");
    note(file, got);
    return endWith("%.1f TFLOP/s\n", 4.0 * double(count) * double(shape[1]) / seconds * 1e-12);
  }
  size_t n = sizeOf("matmul")[0];
  std::vector<float> a = numbers(n * n, 1), b = numbers(n * n, 2);
  double flops = 2.0 * double(n) * double(n) * double(n), product = 0, copy = 0;
  if (!alone("softmax")) {
    product = time<float>(m, "matmul", {&a, &b}, calls, got);
    for (size_t s = 0; s < 64; ++s) {
      size_t i = s * 7919 % n, j = s * 104729 % n;
      if (got[i * n + j] != element(a, b, n, i, j)) wrong("an element of the product is wrong");
    }
    if (alone("product")) return note(file, got), endWith("%.1f TFLOP/s\n", flops / product * 1e-12);
    std::vector<float> x = numbers(sizeOf("copy")[0], 3);
    copy = time<float>(m, "copy", {&x}, calls, got);
    for (size_t i = 0; i < x.size(); ++i)
      if (got[i] != -x[i]) wrong("an element of the copy is wrong");
  }
  size_t count = sizeOf("copy")[0], rows = sizeOf("softmax")[0], columns = sizeOf("softmax")[1];
  std::vector<float> x = numbers(rows * columns, 4);
  double softmax = time<float>(m, "softmax", {&x}, calls, got);
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (size_t i = 0; i < columns; ++i) sum += got[r * columns + i];
    if (!(std::fabs(sum - 1) < 1e-4)) wrong("a row of the softmax does not sum to 1");
  }
  if (alone("softmax")) return note(file, got), endWith("%.0f GB/s\n", 8.0 * double(rows * columns) / softmax * 1e-9);
  ASK(astra_stream_free(&m.stream));
  ASK(astra_pool_free(&m.pool));
  ASK(astra_loaded_free(&m.loaded));
  ASK(astra_bundle_free(&m.bundle));
  ASK(astra_device_free(&m.device));
  ASK(astra_runtime_free(&m.runtime));
  if (!speeds) return std::printf("stand-in: no speeds; its results are right\n"), 0;
  std::string why, beside;
  double blas = timeCublas(driver ? driver : "libcuda.so.1", ordinal, int(n), calls, false, why);
  char text[64];
  if (blas > 0) std::snprintf(text, sizeof text, "%.1f", flops / blas * 1e-12), why = text;
  std::printf("%.1f TFLOP/s, cuBLAS %s | %.0f GB/s | %.0f GB/s\n", flops / product * 1e-12, why.c_str(),
              8.0 * double(count) / copy * 1e-9, 8.0 * double(rows * columns) / softmax * 1e-9);
  return 0;
}
