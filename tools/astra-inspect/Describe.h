//===- Describe.h: a bundle as text and JSON --------------------------------===//
#pragma once
#include "astra/Bundle/Reader.h"
#include "llvm/Support/raw_ostream.h"

namespace astra::tool {

void printSummary(llvm::raw_ostream &out, const BundleFile &b);
void printKernels(llvm::raw_ostream &out, const BundleFile &b);
void printJSON(llvm::raw_ostream &out, const BundleFile &b);

/// What takes a kernel's cycles: "arithmetic", "memory" ...
llvm::StringRef boundText(fmt::CostTerm t);

/// "manifest", "code" ...: a section's kind.
const char *kindName(uint32_t kind);

/// The nodes of the user's model that a kernel computes some of, in all of its launches: some names, in order, and how
/// many there are beside them, at least.
struct Computes {
  std::vector<std::string> names;
  size_t more = 0;
};
/// Of each kernel.
std::vector<Computes> computedBy(const fmt::ManifestT &m);

/// The value of expression number `index`, of so many values as there are dims.
int64_t valueOf(const fmt::ManifestT &m, uint32_t index, llvm::ArrayRef<int64_t> dims);

/// Expression number `index` with the dims' names: "4*n + 1".
std::string exprText(const fmt::ManifestT &m, uint32_t index);

} // namespace astra::tool
