//===- Describe.h: a bundle as text and JSON --------------------------------===//
#pragma once
#include "astra/Bundle/Reader.h"
#include "llvm/Support/raw_ostream.h"

namespace astra::tool {

void printSummary(llvm::raw_ostream &out, const BundleFile &b);
void printKernels(llvm::raw_ostream &out, const BundleFile &b);
void printJSON(llvm::raw_ostream &out, const BundleFile &b);

/// Expression number `index` with the dims' names: "4*n + 1".
std::string exprText(const fmt::ManifestT &m, uint32_t index);

} // namespace astra::tool
