//===- Pickle.h: what torch.save's pickles say ------------------------------===//
// Takes:    the bytes of a pickle (Python's pickletools describe the opcodes), untrusted.
// Gives:    the values that it builds: numbers, strings, lists, dicts, tensors as places in storages.
// Keeps:    nothing is executed: of all globals those are known that torch.save writes for tensors, and they are data
//           here: torch._utils._rebuild_tensor_v2, torch.*Storage, collections.OrderedDict. Any other one is refused by
//           name. Time and memory are linear in the pickle.
// Does not: follow values: they may be shared, or contain themselves.
#pragma once
#include "astra/Compose/WeightFormat.h"
#include "llvm/Support/Error.h"
#include <string>
#include <utility>
#include <vector>

namespace astra {

struct PickleValue {
  enum class Kind : uint8_t { None, Bool, Integer, Real, Text, List, Dict, Tensor, Global, Storage, Mark };
  Kind kind = Kind::None;
  int64_t integer = 0; // of a global its number, of a storage its elements
  double real = 0;
  std::string text;                        // of a storage its name
  std::vector<uint32_t> items;             // numbers of values; of a dict keys and values in turn
  WeightFormat format = WeightFormat::F32; // of storages and tensors
  uint32_t storage = 0;                    // of a tensor: its number, and in elements where it begins,
  int64_t offset = 0;                      // how long it is and how far steps are
  std::vector<int64_t> dims, strides;
};

struct Pickle {
  std::vector<PickleValue> values;
  uint32_t root = 0;
};

/// A sentence without the file's name where it is malformed, or needs what is not known.
llvm::Expected<Pickle> readPickle(llvm::ArrayRef<uint8_t> bytes);

} // namespace astra
