//===- Matrices.h: what initializers draw beside plain distributions -------===//
#pragma once
#include "astra/IR/Builder.h"

namespace astra::nn {

/// The inverse of erf, of x in (-1, 1), within 4e-7 of its value: polynomials in log(1 - x^2) (Giles 2010).
UOpRef inverseErf(Builder &b, UOpRef x);

/// Q of A = L Q, for A [p, q] with p <= q and independent rows: orthonormal rows, a positive diagonal of L. By Gram and
/// Schmidt, each row twice, which is orthogonal to the working precision (Giraud, Langou, Rozloznik 2005); a scan.
UOpRef orthonormalRows(Builder &b, UOpRef a);

} // namespace astra::nn
