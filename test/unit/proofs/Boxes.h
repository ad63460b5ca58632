//===- Boxes.h: where procedures are run -----------------------------------===//
#pragma once
#include "Samples.h"
#include "astra/Rewrite/Rewrite.h"

namespace astra::proofs {

using Valuation = llvm::function_ref<std::optional<int64_t>(UOpRef)>;
/// A symbolic integer, or a comparison of two, where dims and ranges are given.
std::optional<int64_t> valueOf(UOpRef x, Valuation v);

using BoxRun = std::string (*)(const Rule &);

std::string movementBox(
    const Rule &); // every pair of movement ops of every argument, ranks 1 to 3, extents 0 to 3, a symbolic one too
std::string splatBox(const Rule &); // every movement op of a literal expanded
std::string foldBox(const Rule &);  // every reduction of every type along extents of 1
std::string castBox(const Rule &);  // every pair of conversions; sources of 8 and 16 bits at every value, others at
                                    // edges and random ones
std::string iotaBox(const Rule &);
std::string gateBox(const Rule &);    // every gate of loads and stores, scalar and vector
std::string literalBox(const Rule &); // every elementwise op of every type at edge literals

/// Applies one procedure to nodes and compares what it gives with the evaluator.
class Run {
public:
  explicit Run(const Rule &r) : rule(r) {}
  void on(Context &c, UOpRef n, const EvalInputs &in, Level level = Level::Graph);
  std::string verdict() const;

private:
  const Rule &rule;
  std::string wrong;
  uint64_t fired = 0;
};

} // namespace astra::proofs
