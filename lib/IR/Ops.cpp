//===- Ops.cpp: the rows of Ops.def ----------------------------------------===//
#include "astra/IR/UOp.h"
#include "llvm/ADT/StringMap.h"

using namespace astra;

static constexpr unsigned Kernel = KernelLevel; // the trait by its name in the rows
static constexpr OpInfo rows[] = {
#define OP(Name, mnemonic, sources, groups, Type, attributes, traits, meaning)                                         \
  {#Name, mnemonic, sources, groups, attributes, traits, meaning},
#include "astra/IR/Ops.def"
#undef OP
};

const OpInfo &astra::info(Op op) { return rows[unsigned(op)]; }

std::optional<Op> astra::opNamed(llvm::StringRef mnemonic) {
  static const llvm::StringMap<unsigned> byName = [] {
    llvm::StringMap<unsigned> m;
    for (unsigned i = 0; i < numOps; ++i) m[rows[i].mnemonic] = i;
    return m;
  }();
  auto it = byName.find(mnemonic);
  return it == byName.end() ? std::nullopt : std::optional<Op>(Op(it->second));
}
