//===- Samples.h: values that break things ---------------------------------===//
#pragma once
#include "astra/IR/Eval.h"

namespace astra::proofs {

/// Zeros, ones, extremes, ties, subnormals, infinities, NaNs, as bits.
std::vector<uint64_t> edges(DType t);

/// n values for argument k: mixed counters through the edges first, then random bits of a fixed seed; with
/// `everyPattern` argument 0 counts through all bits and the others take one edge a round, then random bits.
Tensor samples(DType t, unsigned k, int64_t n, bool everyPattern, unsigned round);

uint64_t bitsAt(const Tensor &t, int64_t at);
/// Where two tensors differ, NaNs canonical; -1: nowhere.
int64_t firstDifference(Tensor a, Tensor b);

} // namespace astra::proofs
