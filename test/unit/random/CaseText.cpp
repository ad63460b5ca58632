//===- CaseText.cpp: a random module and its inputs as text -----------------===//
// Takes:    a case.
// Gives:    what a bug report needs: the module, then each input and dim.
#include "RandomGraph.h"
#include "astra/IR/Fields.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>

using namespace astra;
using namespace astra::test;

static std::string bitsText(const Tensor &t) {
  std::string s = info(t.dtype).text;
  for (size_t i = 0; i < t.shape.size(); ++i) s += (i ? ", " : "[") + std::to_string(t.shape[i]);
  s += t.shape.empty() ? " =" : "] =";
  DType part = partOf(t.dtype);
  unsigned w = byteSize(part);
  int64_t count = t.count() * (isComplex(t.dtype) ? 2 : 1);
  for (int64_t i = 0, n = std::min<int64_t>(count, 64); w && i < n; ++i) {
    uint64_t bits = 0;
    memcpy(&bits, &t.bytes[i * w], w);
    s += " " + (isArithmetic(part) ? literalText(part, bits) : llvm::utohexstr(bits));
  }
  return s + (count > 64 ? " ..." : "");
}

std::string test::text(const RandomCase &c) {
  std::string s = print(c.module);
  for (auto [v, t] : llvm::zip(c.entry().inputs, c.inputs.inputs)) s += "input %" + v.name + " : " + bitsText(t) + "\n";
  for (auto &[name, v] : c.inputs.dims) s += "dim " + name + " = " + std::to_string(v) + "\n";
  return s;
}
