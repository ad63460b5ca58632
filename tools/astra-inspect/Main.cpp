//===- astra-inspect: what is in a bundle, or in a file of weights ----------===//
// Takes:    a bundle, or a weight file (WeightFile.h).
// Gives:    its entries, weights, kernels and provenance, or tensors and metadata, as text or JSON.
// Keeps:    a file that the runtime refuses is refused here, with the same sentence.
// Does not: run anything.
#include "Comm.h"
#include "Describe.h"
#include "Options.h"
#include "StandardOutput.h"
#include "Weights.h"
#include "astra/Bundle/Reader.h"
#include "astra/Bundle/Spdx.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace astra;
using namespace astra::tool;

namespace {

struct Settings {
  bool json = false, deps = false, kernels = false, verify = false, comm = false;
  CommSettings ranks;
};

Program describeProgram(Settings &s) {
  Program p;
  p.name = "astra-inspect";
  p.synopsis = "FILE [options]";
  p.summary = "show what is in a bundle, or in a file of weights";
  p.description =
      "Checks a bundle and prints its entries with the shapes they take and give, its dims, weights, states, "
      "targets and sections. Of a file of weights (.safetensors, .gguf, .pt, .pth, .bin, or a folder with "
      "model.safetensors, pytorch_model.bin or an index of their shards) it prints the metadata, and each tensor with "
      "format, dims and "
      "size.";
  p.options = {
      {"json", "", "prints everything, plans and programs included, as JSON; of weights all metadata", flag(s.json)},
      {"deps", "", "prints the toolchain and dependency list as an SPDX 2.3 document", flag(s.deps)},
      {"kernels", "",
       "prints each kernel: buffers, and for each target work items, plan and place, of GPUs launch and resources",
       flag(s.kernels)},
      {"comm", "",
       "of a bundle with a mesh: what a call of each entry sends between ranks, beside the least that a ring needs; of "
       "a cond the function that moves more, of a loop that data end one turn",
       flag(s.comm)},
      {"ranks", "N", "with --comm: for so many ranks; all that divide the shards if not given",
       number(s.ranks.ranks, 1, 1 << 16)},
      {"machine", "NAME",
       "with --comm: how long that takes on " + machineNames() + ", or MICROSECONDS,GB/S of a transfer",
       text(s.ranks.machine)},
      {"call", "ENTRY=FIXED+SHARD",
       "with --machine: how long a call of the entry takes, transfers and kernels: of these milliseconds that kernels "
       "take on a rank, FIXED whatever its shards and SHARD for each; once for each entry",
       pairs(s.ranks.calls)},
      {"dim", "NAME=N", "with --comm: the value of a dim, once for each; its upper bound if not given",
       pairs(s.ranks.dims)},
      {"verify", "", "checks the hash of every section and weight too, and says so", flag(s.verify)},
  };
  p.operands = {".astra", ".gguf", ".safetensors", ".pt"};
  p.examples = "  astra-inspect digits.astra\n  astra-inspect digits.astra --deps > digits.spdx.json\n"
               "  astra-inspect model.gguf\n";
  return p;
}

constexpr const char *needsComm = " says what --comm is asked about: give --comm too";

/// An option that was given of those which say something of --comm, where that was not given; or null.
const char *withoutComm(const Settings &s) {
  if (s.comm) return nullptr;
  if (!s.ranks.machine.empty()) return "--machine";
  if (!s.ranks.calls.empty()) return "--call";
  if (!s.ranks.dims.empty()) return "--dim";
  return s.ranks.ranks ? "--ranks" : nullptr;
}

int inspectWeights(const Program &program, const Settings &s, const std::string &path) {
  if (s.deps || s.kernels || s.verify || s.comm)
    return complain(program, Usage,
                    "--deps, --kernels, --verify and --comm are about bundles, and " + path + " has weights");
  llvm::Expected<WeightFile> file = WeightFile::open(path);
  if (!file) return complain(program, Failure, llvm::toString(file.takeError()));
  (s.json ? printWeightsJSON : printWeights)(llvm::outs(), *file);
  return finished(program, Ok);
}

} // namespace

int main(int argc, char **argv) {
  Settings settings;
  Program program = describeProgram(settings);
  std::vector<std::string> files;
  if (int code = parse(program, argc, argv, files); code >= 0) return code;
  if (files.size() != 1) return complain(program, Usage, "give one file (see astra-inspect --help)");
  if (const char *option = withoutComm(settings)) return complain(program, Usage, option + std::string(needsComm));
  if (WeightFile::isLikely(files[0])) return inspectWeights(program, settings, files[0]);
  llvm::Expected<BundleFile> bundle = BundleFile::open(files[0], settings.verify);
  if (!bundle) {
    int code = Failure;
    std::string text;
    llvm::handleAllErrors(bundle.takeError(), [&](const llvm::ErrorInfoBase &e) {
      if (e.convertToErrorCode() == std::errc::not_supported) code = Unsupported;
      text += e.message();
    });
    return complain(program, code, text);
  }
  llvm::raw_ostream &out = llvm::outs();
  if (settings.comm) {
    if (llvm::Error e = printComm(out, *bundle, settings.ranks))
      return complain(program, Usage, llvm::toString(std::move(e)));
    return finished(program, Ok);
  }
  if (settings.deps)
    out << spdx(bundle->manifest, llvm::toHex(bundle->header().digest, /*LowerCase=*/true));
  else if (settings.json)
    printJSON(out, *bundle);
  else if (settings.kernels)
    printKernels(out, *bundle);
  else
    printSummary(out, *bundle);
  if (settings.verify && !settings.json && !settings.deps) out << "verified: every section and weight has its hash\n";
  return finished(program, Ok);
}
