//===- Random.h: random numbers by the contract's generator ----------------===//
// Takes:    a generator, and a shape of at most 2^40 elements, which may be symbolic.
// Gives:    graphs over the `random` op (numeric contract, N13): the same numbers in every run of one generator.
// Keeps:    narrow types are drawn in f32 and rounded once.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

struct Generator {
  UOpRef seed, stream; // u32 scalars; may be data
};
Generator generatorOf(Composer &b, uint32_t seed, uint32_t stream = 0);
/// Seed 0 and a stream of its own (Composer::nextRandomStream).
Generator nextGenerator(Composer &b);

/// Numbers of a float type from low up to high.
UOpRef uniform(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type, double low = 0,
               double high = 1);
UOpRef normal(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type, double mean = 0,
              double scale = 1);
/// The same where the two numbers are data, which broadcast to the shape; they are taken as of drawnType(type).
UOpRef uniformBetween(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type, UOpRef low,
                      UOpRef high);
UOpRef normalAround(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type, UOpRef mean,
                    UOpRef deviation);
/// Of a uniform number u, of a float type: exponential numbers of rate 1, -log(1 - u); Cauchy's distribution, tan(pi (u
/// - 1/2)); Gumbel's, -log(-log v), and the logistic one, log(v / (1 - v)), where v is the middle of the interval that
/// u begins, never 0 or 1.
UOpRef exponential(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type);
UOpRef cauchy(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type);
UOpRef gumbel(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type);
UOpRef logistic(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type);
/// 1 where a uniform number is below the probability, of a float type, else 0.
UOpRef bernoulli(Composer &b, const Generator &g, UOpRef p, DType type);
/// Classes drawn by x [batch, classes], logarithms of weights: [batch, samples], of an integer type. By the number of
/// running sums of the weights that a uniform part of the whole sum has reached; the last class takes what is left.
UOpRef multinomial(Composer &b, const Generator &g, UOpRef x, int64_t samples, DType type);

struct Dropped {
  UOpRef value = nullptr, keep = nullptr; // the mask, bool
};
/// The type that numbers for values of type t are drawn in.
DType drawnType(DType t);
/// x / (1 - ratio) where a uniform number is not below the ratio, else 0. The ratio is a scalar of drawnType(x's type).
Dropped dropout(Composer &b, const Generator &g, UOpRef x, UOpRef ratio);

} // namespace astra::compose
