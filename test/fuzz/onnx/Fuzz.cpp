//===- Fuzz.cpp: libFuzzer's view of the importer --------------------------===//
// Takes:    bytes of libFuzzer.
// Gives:    an abort where a promise is broken; sanitizers and libFuzzer's limits see the rest.
// Keeps:    with ASTRA_FUZZ_STRUCTURE, alterations of the parsed model; without, libFuzzer's own flips of bytes.
#include "Check.h"
#include "Mutate.h"
#include "onnx.pb.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

using astra::onnx::proto::Model;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string broken = astra::fuzz::brokenPromise({reinterpret_cast<const char *>(data), size});
  if (broken.empty()) return 0;
  std::fprintf(stderr, "broken promise: %s\n", broken.c_str());
  std::abort();
}

#ifdef ASTRA_FUZZ_STRUCTURE
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

static size_t altered(Model &model, const Model *donor, uint8_t *data, size_t size, size_t most, unsigned seed) {
  astra::fuzz::mutate(model, donor, seed);
  std::string bytes = model.SerializePartialAsString();
  if (bytes.size() > most) return size;
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  Model model;
  if (seed % 64 == 0 || !model.ParsePartialFromArray(data, int(size))) return LLVMFuzzerMutate(data, size, most);
  return altered(model, nullptr, data, size, most, seed);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t aSize, const uint8_t *b, size_t bSize,
                                            uint8_t *out, size_t most, unsigned seed) {
  Model model, donor;
  if (aSize > most || !model.ParsePartialFromArray(a, int(aSize)) || !donor.ParsePartialFromArray(b, int(bSize)))
    return 0;
  std::memcpy(out, a, aSize);
  return altered(model, &donor, out, aSize, most, seed);
}
#endif
