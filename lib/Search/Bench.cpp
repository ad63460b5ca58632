//===- Bench.cpp: kernels run and timed ------------------------------------===//
#include "Bench.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <sys/mman.h>
#include <time.h>

using namespace astra;

llvm::Expected<LoadedCode> LoadedCode::load(const Image &image) {
  size_t bytes = image.bytes.size();
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return llvm::createStringError("cannot map %zu bytes for code", bytes);
  LoadedCode code(static_cast<uint8_t *>(p), bytes);
  memcpy(p, image.bytes.data(), bytes);
  if (mprotect(p, bytes, PROT_READ | PROT_EXEC))
    return llvm::createStringError("this system does not let a program run code that it has written");
  return code;
}

LoadedCode::~LoadedCode() {
  if (base) munmap(base, bytes);
}

/// Number i of a sequence without a pattern (splitmix64).
static uint64_t mixed(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/// Made-up elements: floats of either sign in 1/4 .. 1, so that no sum leaves the normal numbers; integers in 0..15,
/// which are indices as well as numbers; both bools.
static void fill(uint8_t *data, size_t bytes, DType t) {
  const DTypeInfo &type = info(partOf(t));
  size_t size = std::max(1u, type.bits / 8), period = std::min<size_t>(bytes / size, 65537);
  uint64_t bias = (uint64_t(1) << (type.exponentBits ? type.exponentBits - 1 : 0)) - 1;
  for (size_t i = 0; i < period; ++i) {
    uint64_t r = mixed(i), v = r % 16;
    if (t == DType::Bool)
      v = r & 1;
    else if (type.exponentBits)
      v = (r >> 63) << (type.bits - 1) | (bias - 1 - (r & 1)) << type.mantissaBits |
          (r >> 8 & ((uint64_t(1) << type.mantissaBits) - 1));
    memcpy(data + i * size, &v, size);
  }
  for (size_t done = period * size; done && done < bytes; done *= 2)
    memcpy(data + done, data, std::min(done, bytes - done));
}

/// Equal, or both a NaN.
static bool sameElements(DType t, const uint8_t *a, const uint8_t *b, size_t bytes) {
  if (memcmp(a, b, bytes) == 0) return true;
  const DTypeInfo &type = info(partOf(t));
  if (type.cls != DTypeClass::Float) return false;
  size_t size = type.bits / 8;
  uint64_t magnitude = (uint64_t(1) << (type.bits - 1)) - 1, infinity = ((uint64_t(1) << type.exponentBits) - 1)
                                                                        << type.mantissaBits;
  for (size_t i = 0; i < bytes; i += size) {
    uint64_t x = 0, y = 0;
    memcpy(&x, a + i, size), memcpy(&y, b + i, size);
    if (x != y && ((x & magnitude) <= infinity || (y & magnitude) <= infinity)) return false;
  }
  return true;
}

/// What is large lies in huge pages, as the runtime's memory does.
Bench::Buffer Bench::allocate(DType t, size_t bytes) {
  constexpr size_t huge = 2 << 20;
  size_t unit = bytes < 2 * huge ? 64 : huge, all = llvm::alignTo(bytes + 1, unit);
  std::unique_ptr<uint8_t, Free> memory(static_cast<uint8_t *>(aligned_alloc(unit, all)));
  if (memory && unit == huge) madvise(memory.get(), all, MADV_HUGEPAGE);
  return {std::move(memory), bytes, t};
}

std::unique_ptr<Bench> Bench::make(const KernelSpec &spec, const Kernel &kernel, llvm::ArrayRef<UOpRef> dims,
                                   llvm::ArrayRef<int64_t> values, uint64_t most) {
  std::unique_ptr<Bench> b(new Bench());
  b->dims.assign(values.begin(), values.end());
  b->result = spec.inPlace ? 0 : kernel.buffers.size() - 1;
  std::vector<size_t> sizes;
  uint64_t all = 0;
  for (const KernelBuffer &k : kernel.buffers) {
    auto elements = idxEvaluate(k.elements, [&](UOpRef d) -> std::optional<int64_t> {
      auto it = llvm::find(dims, d);
      return it == dims.end() ? std::nullopt : std::optional<int64_t>(values[it - dims.begin()]);
    });
    if (!elements || *elements < 0 || uint64_t(*elements) > most) return nullptr;
    sizes.push_back(*elements * std::max(1u, byteSize(k.dtype)));
    all += sizes.back();
  }
  if (all > most) return nullptr;
  for (auto [i, k] : llvm::enumerate(kernel.buffers)) {
    b->buffers.push_back(allocate(k.dtype, sizes[i]));
    if (!b->buffers.back().data) return nullptr;
    fill(b->buffers.back().data.get(), sizes[i], k.dtype);
  }
  for (const Buffer &each : b->buffers) b->places.push_back(each.data.get());
  const Buffer &to = b->buffers[b->result];
  if (spec.inPlace) b->first.assign(to.data.get(), to.data.get() + to.bytes);
  return b;
}

void Bench::restore() {
  if (!first.empty()) memcpy(buffers[0].data.get(), first.data(), first.size());
}

/// Seconds that this thread has had a CPU: what other programs take in between is none of it.
static double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

void Bench::prepare(const Runnable &r) {
  if (scratch.bytes < r.scratch || !scratch.data) scratch = allocate(DType::U8, r.scratch);
}

double Bench::launch(const Runnable &r, unsigned times) {
  prepare(r);
  double start = now();
  for (unsigned i = 0; i < times && r.items > 0; ++i)
    r.function(places.data(), dims.data(), scratch.data.get(), 0, r.items);
  return now() - start;
}

/// One launch, in parts, so that it can be given up.
bool Bench::runWithin(const Runnable &r, double seconds) {
  constexpr int64_t parts = 64;
  prepare(r);
  double start = now();
  for (int64_t p = 0; p < parts; ++p) {
    int64_t begin = r.items / parts * p + r.items % parts * p / parts,
            end = r.items / parts * (p + 1) + r.items % parts * (p + 1) / parts;
    if (begin < end) r.function(places.data(), dims.data(), scratch.data.get(), begin, end);
    if (end < r.items && now() - start > seconds) return false;
  }
  return true;
}

Bench::Verdict Bench::tryOut(const Runnable &r, double patience) {
  constexpr double cold = 0.02; // seconds that a first launch may take beside
  const Buffer &to = buffers[result];
  if (first.empty()) memset(to.data.get(), 0x11, to.bytes); // what no plan stores stays as it is
  restore();
  if (!expected.empty() || !to.bytes) {
    if (!runWithin(r, patience * once + cold)) return Verdict::Slow;
    bool same = sameElements(to.dtype, to.data.get(), expected.data(), to.bytes);
    return same ? Verdict::Same : Verdict::Different;
  }
  launch(r, 1);
  expected.assign(to.data.get(), to.data.get() + to.bytes);
  restore();
  constexpr double least = 5e-4; // seconds
  constexpr unsigned most = 1000;
  once = launch(r, 1);
  if (first.empty()) calls = unsigned(std::clamp(least / std::max(once, 1e-9), 1.0, double(most)));
  return Verdict::Same;
}

double Bench::time(const Runnable &r) {
  restore();
  return launch(r, calls) / calls;
}
