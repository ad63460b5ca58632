//===- Passes.cpp: the passes over modules, by name ------------------------===//
#include "astra/Pipeline/Passes.h"
#include "astra/Autograd/Autograd.h"
#include "astra/Distribute/Distribute.h"
#include "astra/IR/Text.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Schedule/ByteProducts.h"
#include "astra/Schedule/Holes.h"
#include "astra/Schedule/Outside.h"

using namespace astra;

static llvm::Error roundTrip(Module &m, PassOptions &) {
  std::string text = print(m);
  auto again = parse(text, "round-trip");
  if (!again) return again.takeError();
  if (print(*again) != text) return llvm::createStringError("the text of the module does not come back as it was");
  m = std::move(*again);
  return llvm::Error::success();
}

static llvm::Error rewriteModule(Module &m, PassOptions &options) {
  options.rewrite.origins = &m.origins;
  auto roots = rewrite(m.ctx(), m.roots(), graphRules, options.rewrite);
  if (!roots) return roots.takeError();
  auto next = roots->begin();
  for (Entry &e : m.entries) {
    for (Value &v : e.outputs) v.value = *next++;
    for (StateUpdate &u : e.updates) u.value = *next++;
  }
  return llvm::Error::success();
}

static llvm::Error takeKernels(Module &m, PassOptions &options) {
  auto used = useKernels(m, options.kernels);
  if (!used) return used.takeError();
  options.used = std::move(*used);
  return llvm::Error::success();
}

static constexpr Pass table[] = {
    {"round-trip", false, std::nullopt, roundTrip, nullptr, "prints the module and parses the text"},
    {"grad", true, std::nullopt, [](Module &m, PassOptions &) { return runDirectives(m); }, nullptr,
     "makes the entries that the directives grad, jvp and vmap ask for"},
    {"spmd", true, std::nullopt, [](Module &m, PassOptions &) { return partition(m); }, nullptr,
     "from a module of whole tensors with a mesh the program of one shard (docs/distributed.md)"},
    {"stack", true, std::nullopt, [](Module &m, PassOptions &o) { return stackShards(m, o.forGpus); }, nullptr,
     "from that the program of the shards that one rank has"},
    {"buckets", true, std::nullopt,
     [](Module &m, PassOptions &options) -> llvm::Error {
       joinCollectives(m, options.bucket);
       return llvm::Error::success();
     },
     nullptr, "joins small transfers between shards that do not wait for each other"},
    {"kernels", true, std::nullopt, takeKernels, nullptr,
     "puts kernels of the compiler's own, in the kernel language, where they are asked for (docs/kernels.md)"},
    {"numerics", true, Stage::Numbers, [](Module &m, PassOptions &) { return runNumerics(m); }, verifyNumerics,
     "decides the bits: function programs, narrow types, canonical NaNs"},
    {"rewrite", true, std::nullopt, rewriteModule, nullptr, "applies the rules that keep bits (docs/rules.md)"},
    {"bytes", true, std::nullopt,
     [](Module &m, PassOptions &) -> llvm::Error {
       joinBytes(m);
       return llvm::Error::success();
     },
     nullptr, "multiplies 8-bit integers four at a time"},
    {"holes", true, std::nullopt,
     [](Module &m, PassOptions &) -> llvm::Error {
       splitHoles(m);
       return llvm::Error::success();
     },
     nullptr, "transposed convolutions without the holes between their inputs"},
    {"outside", true, std::nullopt,
     [](Module &m, PassOptions &) -> llvm::Error {
       leaveOutside(m);
       return llvm::Error::success();
     },
     nullptr, "convolutions without the taps that lie in their padding"},
};

llvm::ArrayRef<Pass> astra::passes() { return table; }
const Pass *astra::passNamed(llvm::StringRef name) {
  for (const Pass &p : table)
    if (name == p.name) return &p;
  return nullptr;
}
