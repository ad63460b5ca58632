/*===- lapack.h: factorizations by a LAPACK of the host ------------------------===
 * Takes:    a LAPACK with Fortran's names and 32-bit integers: OpenBLAS, the reference, MKL, BLIS with libflame.
 * Gives:    functions that bundles call by the names "lapack.cholesky", "lapack.solve" ... (docs/linalg.md), as astra.h
 *           wants them.
 * Keeps:    a failure of a matrix is data, as LAPACK's info; one with an element that is not finite gives NaNs, and no
 *           LAPACK sees it. Any number of threads may call.
 * Does not: promise bits: those of a LAPACK change with its version, the CPU and the number of its threads. No function
 *           is declared deterministic, so ASTRA_REQUIRE_STRICT refuses bundles that call them. The library needs libc
 *           alone; the LAPACK is opened when it is asked for.
 */
#ifndef ASTRA_LAPACK_H
#define ASTRA_LAPACK_H

#include "astra/astra.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a LAPACK: `library`, or with NULL the one that the environment variable ASTRA_LAPACK names, or
 * libopenblas.so.0, or liblapack.so.3. ASTRA_UNSUPPORTED, with a sentence: there is none, or it lacks a function. Once
 * it has succeeded it does nothing more. A function that is called before opens with NULL. */
ASTRA_API astra_status astra_lapack_open(const char *library, astra_diag *diag);

/* A function and the name that bundles call it by. */
typedef struct astra_lapack_function {
  const char *name;
  astra_function_fn fn;
} astra_lapack_function;
/* All of them; they are there for ever. */
ASTRA_API const astra_lapack_function *astra_lapack_functions(uint32_t *count);

/* Opens a LAPACK and registers all functions. */
static inline astra_status astra_lapack_register(astra_runtime *runtime, const char *library, astra_diag *diag) {
  uint32_t count, i;
  const astra_lapack_function *rows = astra_lapack_functions(&count);
  astra_status status = astra_lapack_open(library, diag);
  for (i = 0; i < count && !status; i++)
    status = astra_runtime_register(runtime, rows[i].name, rows[i].fn, NULL, 0, diag);
  return status;
}

/* Operands are [.., n, n] or [.., m, n] of f32 or f64, k is min(m, n); infos are i64 [..].
 *   cholesky   x               L, info; the lower triangle is read
 *   lu_factor  x               packed, pivots i64 [.., k] counted from 0, info
 *   solve      a, y [.., n, k] x, info
 *   inverse    x               inverse, info
 *   qr         x               Q [.., m, k], R [.., k, n]
 *   eigh       x               values [.., n], vectors in columns, info; the lower triangle is read
 *   svd        x               U, S, V', info; thin or full, as the results' shapes say
 *   eig        x               real and imaginary parts of values [.., n] and of vectors in columns, info */
ASTRA_API astra_status astra_lapack_cholesky(void *, const astra_tensor *, uint32_t, const astra_tensor *, uint32_t,
                                             astra_diag *);
ASTRA_API astra_status astra_lapack_lu_factor(void *, const astra_tensor *, uint32_t, const astra_tensor *, uint32_t,
                                              astra_diag *);
ASTRA_API astra_status astra_lapack_solve(void *, const astra_tensor *, uint32_t, const astra_tensor *, uint32_t,
                                          astra_diag *);
ASTRA_API astra_status astra_lapack_inverse(void *, const astra_tensor *, uint32_t, const astra_tensor *, uint32_t,
                                            astra_diag *);
ASTRA_API astra_status astra_lapack_qr(void *, const astra_tensor *, uint32_t, const astra_tensor *, uint32_t,
                                       astra_diag *);
ASTRA_API astra_status astra_lapack_eigh(void *, const astra_tensor *, uint32_t, const astra_tensor *, uint32_t,
                                         astra_diag *);
ASTRA_API astra_status astra_lapack_svd(void *, const astra_tensor *, uint32_t, const astra_tensor *, uint32_t,
                                        astra_diag *);
ASTRA_API astra_status astra_lapack_eig(void *, const astra_tensor *, uint32_t, const astra_tensor *, uint32_t,
                                        astra_diag *);

#ifdef __cplusplus
}
#endif
#endif
