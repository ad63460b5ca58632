//===- KernelMode.cpp: astra-opt at the level of kernels -------------------===//
// Takes:    a module past the numerics stage, or the listing of one kernel.
// Gives:    listings, linear code or C.
#include "KernelMode.h"
#include "astra/Codegen/EmitC.h"
#include "astra/Codegen/Lower.h"
#include "astra/IR/Text.h"
#include "astra/IR/Verify.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::StringRef;

llvm::Expected<std::string> astra::kernelListings(Module &m, const Target &target) {
  auto s = schedule(m);
  if (!s) return s.takeError();
  std::string out;
  for (const KernelSpec &spec : s->kernels) {
    Plan plan = choosePlan(m.ctx(), spec, target);
    Kernel k = lowerKernel(m.ctx(), spec, plan);
    if (auto e = verifyKernel(k.sink, Stage::Kernel))
      return llvm::createStringError(spec.name + ": " + llvm::toString(std::move(e)));
    out += "// kernel " + spec.name + ", plan: " + text(plan) + "\n" + print(k.sink);
  }
  return out;
}

/// The kernel around a sink: its buffers as they are used.
static llvm::Expected<Kernel> kernelOf(UOpRef sink) {
  Kernel k;
  k.name = "kernel";
  k.sink = sink;
  for (UOpRef n : topoSort(sink)) {
    if (n->op != Op::Buffer) continue;
    int64_t slot = n->ints[0];
    if (slot < 0 || slot > 255) return llvm::createStringError("a buffer's slot is outside 0..255");
    if (size_t(slot) >= k.buffers.size()) k.buffers.resize(slot + 1);
    k.buffers[slot].dtype = n->dtype;
    k.buffers[slot].elements = n->src[0];
  }
  for (UOpRef n : topoSort(sink)) {
    if (n->op == Op::Load) k.buffers[n->src[0]->ints[0]].read = true;
    if (n->op == Op::Store) k.buffers[n->src[0]->ints[0]].write = true;
  }
  for (const KernelBuffer &b : k.buffers)
    if (!b.elements) return llvm::createStringError("the slots of the buffers are not 0, 1, 2 ...");
  return k;
}

namespace {
struct KernelPass {
  StringRef name;
  Stage gives;
  llvm::Error (*run)(Context &c, Kernel &k, KernelRequest &r);
};
} // namespace
static const KernelPass kernelPasses[] = {
    {"rewrite", Stage::Kernel,
     [](Context &c, Kernel &k, KernelRequest &r) -> llvm::Error {
       r.rewrite.level = Level::Kernel;
       auto roots = rewrite(c, k.sink, kernelRules, r.rewrite);
       if (!roots) return roots.takeError();
       k.sink = (*roots)[0];
       return llvm::Error::success();
     }},
    {"expand", Stage::Expanded,
     [](Context &c, Kernel &k, KernelRequest &) -> llvm::Error {
       k = expandKernel(c, k);
       return llvm::Error::success();
     }},
};

llvm::Expected<std::string> astra::runKernel(StringRef text, StringRef fileName, KernelRequest &r) {
  Context c;
  auto nodes = parseListing(c, text, fileName);
  if (!nodes) return nodes.takeError();
  if (nodes->empty() || nodes->back()->op != Op::Sink)
    return llvm::createStringError(fileName + ": the listing of a kernel ends in a sink");
  if (r.roundTrip) {
    nodes = parseListing(c, print(nodes->back()), "round-trip");
    if (!nodes) return nodes.takeError();
  }
  Stage stage = Stage::Kernel;
  if (auto e = verifyKernel(nodes->back(), stage)) return e;
  auto k = kernelOf(nodes->back());
  if (!k) return k.takeError();
  for (const std::string &name : r.passes) {
    auto pass = llvm::find_if(kernelPasses, [&](const KernelPass &p) { return p.name == name; });
    if (pass == std::end(kernelPasses))
      return llvm::createStringError("no pass over kernels is called %s: rewrite and expand are", name.c_str());
    if (auto e = pass->run(c, *k, r)) return e;
    stage = std::max(stage, pass->gives);
    if (r.verifyEach)
      if (auto e = verifyKernel(k->sink, stage))
        return llvm::createStringError("after " + name + ": " + llvm::toString(std::move(e)));
  }
  if (r.emit == "listing") return print(k->sink);
  auto linear = linearize(c, *k);
  if (!linear) return linear.takeError();
  if (r.emit == "linear") return print(*linear);
  std::vector<UOpRef> dims;
  for (UOpRef n : topoSort(k->sink))
    if (n->op == Op::Dim) dims.push_back(n);
  LinearKernel one{k->name, &*k, std::move(*linear)};
  return emitC(c, one, *r.target, dims);
}
