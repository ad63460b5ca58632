//===- Lapack.cpp: factorizations by a LAPACK of the host -------------------===//
// Takes:    tensors of a call, of which nothing is known but what astra.h says, so dtypes, shapes and their number are
//           checked; a LAPACK by Fortran's names, with 32-bit integers.
// Gives:    include/astra/lapack.h.
// Keeps:    matrices are row-major here and column-major there. A symmetric one is its own transpose, A' has the
//           factors of A the other way round; what is neither is copied. What is not finite gives NaNs.
// Does not: link a LAPACK, or make signs canonical.
#include "astra/lapack.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>
#include <pthread.h>

namespace {

using Int = int;               // of the LP64 interface
constexpr Int largest = 16384; // what LAPACK wants to work with, some n^2, fits its integers

// ---- the LAPACK

/// Each function of f32 and of f64, by its place in this table.
enum Routine { Potrf, Getrf, Getri, Gesv, Geqrf, Orgqr, Syevd, Gesdd, Geev, Routines };
constexpr const char *names[Routines] = {"potrf", "getrf", "getri", "gesv", "geqrf", "orgqr", "syevd", "gesdd", "geev"};
void *routines[Routines][2];
bool isOpen = false;
pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

astra_status fail(astra_diag *diag, astra_status status, const char *format, const char *a = "", const char *b = "") {
  if (diag) {
    diag->status = status;
    std::snprintf(diag->text, sizeof(diag->text), format, a, b);
  }
  return status;
}

astra_status openNow(const char *given, astra_diag *diag) {
  const char *asked = given ? given : std::getenv("ASTRA_LAPACK");
  const char *usual[] = {"libopenblas.so.0", "liblapack.so.3"};
  bool isNamed = asked && *asked;
  void *library = nullptr;
  if (isNamed)
    library = dlopen(asked, RTLD_NOW | RTLD_LOCAL);
  else
    for (const char *name : usual)
      if (!library) library = dlopen(asked = name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    if (isNamed) return fail(diag, ASTRA_UNSUPPORTED, "the LAPACK '%s' cannot be opened", asked);
    return fail(
        diag, ASTRA_UNSUPPORTED,
        "there is no LAPACK: neither libopenblas.so.0 nor liblapack.so.3 can be opened; install one, or name it "
        "in ASTRA_LAPACK");
  }
  for (int i = 0; i < Routines; ++i)
    for (int wide = 0; wide < 2; ++wide) {
      char symbol[16];
      std::snprintf(symbol, sizeof(symbol), "%c%s_", "sd"[wide], names[i]);
      routines[i][wide] = dlsym(library, symbol);
      if (!routines[i][wide]) {
        fail(diag, ASTRA_UNSUPPORTED, "the LAPACK '%s' has no function %s", asked, symbol);
        dlclose(library);
        return ASTRA_UNSUPPORTED;
      }
    }
  isOpen = true;
  return ASTRA_OK;
}

/// A routine of Fortran's: arguments by address, the lengths of strings behind them.
template <class T, class... Args> void call(Routine routine, Args... args) {
  reinterpret_cast<void (*)(Args...)>(routines[routine][sizeof(T) == 8])(args...);
}

// ---- tensors

struct Memory {
  void *bytes = nullptr;
  ~Memory() { std::free(bytes); }
  template <class T> T *of(size_t count) {
    std::free(bytes);
    return static_cast<T *>(bytes = std::malloc((count ? count : 1) * sizeof(T)));
  }
};

/// What a function is given: matrices [batch, m, n], and results that its shapes were checked for.
struct Call {
  const astra_tensor *inputs, *outputs;
  int64_t batch = 1;
  Int m = 0, n = 0;
  /// Matrix, or whatever has `size` elements, number b of operand (result) i.
  template <class T> const T *in(int i, int64_t size, int64_t b) const { return first<T>(inputs[i]) + size * b; }
  template <class T> T *out(int i, int64_t size, int64_t b) const { return first<T>(outputs[i]) + size * b; }
  int64_t &info(int i, int64_t b) const { return *out<int64_t>(i, 1, b); }

private:
  template <class T> static T *first(const astra_tensor &t) {
    return reinterpret_cast<T *>(static_cast<char *>(t.data) + t.byte_offset);
  }
};

bool isRowMajor(const astra_tensor &t) { return !t.buffer && !t.strides && !t.flags; }

/// Whether a tensor has the batch of x and then these extents, and this dtype.
bool isOf(const astra_tensor &t, const astra_tensor &x, int32_t dtype, std::initializer_list<int64_t> behind) {
  int32_t lead = x.ndim - 2;
  if (!isRowMajor(t) || t.dtype != dtype || t.ndim != lead + int32_t(behind.size())) return false;
  for (int32_t i = 0; i < lead; ++i)
    if (t.shape[i] != x.shape[i]) return false;
  for (int64_t extent : behind)
    if (t.shape[lead++] != extent) return false;
  return true;
}

template <class T> void fillNaN(T *x, int64_t size) {
  for (int64_t i = 0; i < size; ++i) x[i] = T(__builtin_nan(""));
}

/// How many rows of x [m, n] stand before the first with an element, `lower`: on or below the diagonal, that is not
/// finite. Such a matrix is never given to a LAPACK: some go round for ever, or find no pivot inside of it.
template <class T> Int finiteRows(const T *x, Int m, Int n, bool lower = false) {
  for (Int i = 0; i < m; ++i)
    for (Int k = 0; k < (lower ? i + 1 : n); ++k)
      if (T value = x[size_t(i) * n + k]; value - value != 0) return i;
  return m;
}

/// y [n, m] = the transpose of x [m, n], both row-major.
template <class T> void transpose(const T *x, T *y, Int m, Int n) {
  for (Int i = 0; i < m; ++i)
    for (Int k = 0; k < n; ++k) y[size_t(k) * m + i] = x[size_t(i) * n + k];
}

// ---- the functions, of one type and one matrix after the other: ASTRA_OUT_OF_MEMORY, or what is right

template <class T> astra_status cholesky(const Call &c) {
  Int n = c.n, info;
  int64_t size = int64_t(n) * n;
  for (int64_t b = 0; b < c.batch; ++b) {
    T *l = c.out<T>(0, size, b);
    std::memcpy(l, c.in<T>(0, size, b), size * sizeof(T));
    Int rows = finiteRows(l, n, n, true);
    call<T>(Potrf, "U", &rows, l, &n, &info, size_t(1)); // the lower triangle, seen by columns
    if (!info && rows < n) info = rows + 1;
    for (Int i = 0; i < n; ++i)
      for (Int k = i + 1; k < n; ++k) l[size_t(i) * n + k] = 0;
    if (info) fillNaN(l, size);
    c.info(1, b) = info;
  }
  return ASTRA_OK;
}

template <class T> astra_status luFactor(const Call &c) {
  Int m = c.m, n = c.n, k = m < n ? m : n, info;
  Memory turned, places;
  T *a = turned.of<T>(size_t(m) * n);
  Int *pivots = places.of<Int>(k);
  if (!a || !pivots) return ASTRA_OUT_OF_MEMORY;
  for (int64_t b = 0; b < c.batch; ++b) {
    const T *x = c.in<T>(0, int64_t(m) * n, b);
    if (finiteRows(x, m, n) < m) {
      fillNaN(c.out<T>(0, int64_t(m) * n, b), int64_t(m) * n);
      for (Int i = 0; i < k; ++i) c.out<int64_t>(1, k, b)[i] = i;
      c.info(2, b) = 0;
      continue;
    }
    transpose(x, a, m, n);
    call<T>(Getrf, &m, &n, a, &m, pivots, &info);
    transpose(a, c.out<T>(0, int64_t(m) * n, b), n, m);
    for (Int i = 0; i < k; ++i) c.out<int64_t>(1, k, b)[i] = pivots[i] - 1;
    c.info(2, b) = info;
  }
  return ASTRA_OK;
}

template <class T> astra_status solve(const Call &c) {
  Int n = c.n, k = Int(c.inputs[1].shape[c.inputs[1].ndim - 1]), info;
  Memory left, right, places;
  T *a = left.of<T>(size_t(n) * n), *y = right.of<T>(size_t(n) * k);
  Int *pivots = places.of<Int>(n);
  if (!a || !y || !pivots) return ASTRA_OUT_OF_MEMORY;
  for (int64_t b = 0; b < c.batch; ++b) {
    T *x = c.out<T>(0, int64_t(n) * k, b);
    bool isFinite = finiteRows(c.in<T>(0, int64_t(n) * n, b), n, n) == n;
    info = 0;
    if (isFinite) {
      transpose(c.in<T>(0, int64_t(n) * n, b), a, n, n);
      transpose(c.in<T>(1, int64_t(n) * k, b), y, n, k);
      call<T>(Gesv, &n, &k, a, &n, pivots, y, &n, &info);
      transpose(y, x, k, n);
    }
    if (!isFinite || info) fillNaN(x, int64_t(n) * k);
    c.info(1, b) = info;
  }
  return ASTRA_OK;
}

template <class T> astra_status inverse(const Call &c) {
  Int n = c.n, info, room = n * 64;
  int64_t size = int64_t(n) * n;
  Memory work, places;
  T *w = work.of<T>(room);
  Int *pivots = places.of<Int>(n);
  if (!w || !pivots) return ASTRA_OUT_OF_MEMORY;
  for (int64_t b = 0; b < c.batch; ++b) {
    T *x = c.out<T>(0, size, b); // the inverse of the transpose is that of the inverse
    std::memcpy(x, c.in<T>(0, size, b), size * sizeof(T));
    bool isFinite = finiteRows(x, n, n) == n;
    info = 0;
    if (isFinite) call<T>(Getrf, &n, &n, x, &n, pivots, &info);
    if (isFinite && !info) call<T>(Getri, &n, x, &n, pivots, w, &room, &info);
    if (!isFinite || info) fillNaN(x, size);
    c.info(1, b) = info;
  }
  return ASTRA_OK;
}

template <class T> astra_status qr(const Call &c) {
  Int m = c.m, n = c.n, k = m < n ? m : n, info, room = (m > n ? m : n) * 64;
  Memory turned, factors, work;
  T *a = turned.of<T>(size_t(m) * n), *tau = factors.of<T>(k), *w = work.of<T>(room);
  if (!a || !tau || !w) return ASTRA_OUT_OF_MEMORY;
  for (int64_t b = 0; b < c.batch; ++b) {
    T *r = c.out<T>(1, int64_t(k) * n, b);
    if (finiteRows(c.in<T>(0, int64_t(m) * n, b), m, n) < m) {
      fillNaN(c.out<T>(0, int64_t(m) * k, b), int64_t(m) * k);
      fillNaN(r, int64_t(k) * n);
      continue;
    }
    transpose(c.in<T>(0, int64_t(m) * n, b), a, m, n);
    call<T>(Geqrf, &m, &n, a, &m, tau, w, &room, &info);
    for (Int i = 0; i < k; ++i)
      for (Int j = 0; j < n; ++j) r[size_t(i) * n + j] = j < i ? T(0) : a[size_t(j) * m + i];
    call<T>(Orgqr, &m, &k, &k, a, &m, tau, w, &room, &info);
    transpose(a, c.out<T>(0, int64_t(m) * k, b), k, m);
  }
  return ASTRA_OK;
}

template <class T> astra_status eigh(const Call &c) {
  Int n = c.n, info, room = 1 + 6 * n + 2 * n * n, places = 3 + 5 * n;
  int64_t size = int64_t(n) * n;
  Memory turned, work, numbers;
  T *a = turned.of<T>(size), *w = work.of<T>(room);
  Int *iwork = numbers.of<Int>(places);
  if (!a || !w || !iwork) return ASTRA_OUT_OF_MEMORY;
  for (int64_t b = 0; b < c.batch; ++b) {
    std::memcpy(a, c.in<T>(0, size, b), size * sizeof(T));
    T *values = c.out<T>(0, n, b), *vectors = c.out<T>(1, size, b);
    info = 1;
    if (finiteRows(a, n, n, true) == n)
      call<T>(Syevd, "V", "U", &n, a, &n, values, w, &room, iwork, &places, &info, size_t(1), size_t(1));
    transpose(a, vectors, n, n);
    if (info) {
      fillNaN(values, n);
      fillNaN(vectors, size);
    }
    c.info(2, b) = info != 0;
  }
  return ASTRA_OK;
}

template <class T> astra_status svd(const Call &c) {
  Int m = c.m, n = c.n, k = m < n ? m : n, info;
  bool full = c.outputs[0].shape[c.outputs[0].ndim - 1] == m && c.outputs[2].shape[c.outputs[2].ndim - 2] == n;
  Int columns = full ? m : k, rows = full ? n : k;
  // A by columns is A' = V S U': its left vectors are the rows of V', its right ones U.
  Int room = 4 * k * k + 7 * k + (m > n ? m : n) + 64 * (m + n);
  Memory copy, work, numbers;
  T *a = copy.of<T>(size_t(m) * n), *w = work.of<T>(room);
  Int *iwork = numbers.of<Int>(size_t(8) * k);
  if (!a || !w || !iwork) return ASTRA_OUT_OF_MEMORY;
  for (int64_t b = 0; b < c.batch; ++b) {
    std::memcpy(a, c.in<T>(0, int64_t(m) * n, b), size_t(m) * n * sizeof(T));
    T *u = c.out<T>(0, int64_t(m) * columns, b), *s = c.out<T>(1, k, b), *v = c.out<T>(2, int64_t(rows) * n, b);
    info = 1;
    if (finiteRows(a, m, n) == m)
      call<T>(Gesdd, full ? "A" : "S", &n, &m, a, &n, s, v, &n, u, &columns, w, &room, iwork, &info, size_t(1));
    if (info) {
      fillNaN(u, int64_t(m) * columns);
      fillNaN(s, k);
      fillNaN(v, int64_t(rows) * n);
    }
    c.info(3, b) = info != 0;
  }
  return ASTRA_OK;
}

template <class T> astra_status eig(const Call &c) {
  Int n = c.n, info, room = 64 * n, one = 1;
  int64_t size = int64_t(n) * n;
  Memory turned, found, work;
  T *a = turned.of<T>(size), *v = found.of<T>(size), *w = work.of<T>(room), none = 0;
  if (!a || !v || !w) return ASTRA_OUT_OF_MEMORY;
  for (int64_t b = 0; b < c.batch; ++b) {
    T *re = c.out<T>(0, n, b), *im = c.out<T>(1, n, b), *x = c.out<T>(2, size, b), *y = c.out<T>(3, size, b);
    info = 1;
    transpose(c.in<T>(0, size, b), a, n, n);
    if (finiteRows(a, n, n) == n)
      call<T>(Geev, "N", "V", &n, a, &n, re, im, &none, &one, v, &n, w, &room, &info, size_t(1), size_t(1));
    c.info(4, b) = info != 0;
    if (info) {
      for (T *values : {re, im}) fillNaN(values, n);
      for (T *vectors : {x, y}) fillNaN(vectors, size);
      continue;
    }
    for (Int k = 0; k < n; ++k) { // of a pair one column has the real parts, the next one the imaginary ones
      bool first = im[k] > 0 && k + 1 < n, second = im[k] < 0 && k > 0;
      const T *real = v + size_t(second ? k - 1 : k) * n, *part = v + size_t(second ? k : k + 1) * n;
      for (Int i = 0; i < n; ++i) {
        x[size_t(i) * n + k] = real[i];
        y[size_t(i) * n + k] = first ? part[i] : second ? -part[i] : T(0);
      }
    }
  }
  return ASTRA_OK;
}

// ---- checks, and both types

struct Form {
  const char *name;
  uint32_t inputs, outputs;
  bool square;
  bool (*fits)(const Call &, int32_t dtype);
  astra_status (*narrow)(const Call &), (*wide)(const Call &);
};

astra_status run(const Form &f, const astra_tensor *inputs, uint32_t numInputs, const astra_tensor *outputs,
                 uint32_t numOutputs, astra_diag *diag) {
  pthread_mutex_lock(&opening);
  astra_status opened = isOpen ? ASTRA_OK : openNow(nullptr, diag);
  pthread_mutex_unlock(&opening);
  if (opened) return opened;
  if (numInputs != f.inputs || numOutputs != f.outputs)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "%s is called with other numbers of operands and results", f.name);
  const astra_tensor &x = inputs[0];
  if (x.dtype != ASTRA_F32 && x.dtype != ASTRA_F64)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "%s takes f32 or f64", f.name);
  if (!isRowMajor(x)) return fail(diag, ASTRA_INVALID_ARGUMENT, "%s takes row-major tensors in host memory", f.name);
  if (x.ndim < 2) return fail(diag, ASTRA_INVALID_ARGUMENT, "%s takes matrices", f.name);
  int64_t m = x.shape[x.ndim - 2], n = x.shape[x.ndim - 1];
  if (m < 1 || n < 1 || m > largest || n > largest)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "%s takes matrices of 1 to 16384 rows and columns", f.name);
  if (f.square && m != n) return fail(diag, ASTRA_INVALID_ARGUMENT, "%s takes square matrices", f.name);
  Call c{inputs, outputs, 1, Int(m), Int(n)};
  bool isTooLarge = false, isEmpty = false; // 0 whatever the other extents are
  for (int32_t i = 0; i < x.ndim - 2; ++i) {
    isEmpty |= x.shape[i] == 0;
    isTooLarge |= x.shape[i] < 0 || __builtin_mul_overflow(c.batch, x.shape[i], &c.batch);
  }
  if (isEmpty) c.batch = 0;
  if (isTooLarge && !isEmpty) return fail(diag, ASTRA_INVALID_ARGUMENT, "%s has a batch that is too large", f.name);
  if (!f.fits(c, x.dtype))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "%s has operands or results of other types or shapes than it takes",
                f.name);
  astra_status done = x.dtype == ASTRA_F32 ? f.narrow(c) : f.wide(c);
  return done ? fail(diag, done, "%s has no memory for its work", f.name) : ASTRA_OK;
}

constexpr Form forms[] = {
    {"lapack.cholesky", 1, 2, true,
     [](const Call &c, int32_t t) {
       return isOf(c.outputs[0], c.inputs[0], t, {c.n, c.n}) && isOf(c.outputs[1], c.inputs[0], ASTRA_I64, {});
     },
     cholesky<float>, cholesky<double>},
    {"lapack.lu_factor", 1, 3, false,
     [](const Call &c, int32_t t) {
       return isOf(c.outputs[0], c.inputs[0], t, {c.m, c.n}) &&
              isOf(c.outputs[1], c.inputs[0], ASTRA_I64, {c.m < c.n ? c.m : c.n}) &&
              isOf(c.outputs[2], c.inputs[0], ASTRA_I64, {});
     },
     luFactor<float>, luFactor<double>},
    {"lapack.solve", 2, 2, true,
     [](const Call &c, int32_t t) {
       const astra_tensor &y = c.inputs[1];
       int64_t k = y.ndim ? y.shape[y.ndim - 1] : 0;
       return k >= 0 && k <= largest && isOf(y, c.inputs[0], t, {c.n, k}) &&
              isOf(c.outputs[0], c.inputs[0], t, {c.n, k}) && isOf(c.outputs[1], c.inputs[0], ASTRA_I64, {});
     },
     solve<float>, solve<double>},
    {"lapack.inverse", 1, 2, true,
     [](const Call &c, int32_t t) {
       return isOf(c.outputs[0], c.inputs[0], t, {c.n, c.n}) && isOf(c.outputs[1], c.inputs[0], ASTRA_I64, {});
     },
     inverse<float>, inverse<double>},
    {"lapack.qr", 1, 2, false,
     [](const Call &c, int32_t t) {
       Int k = c.m < c.n ? c.m : c.n;
       return isOf(c.outputs[0], c.inputs[0], t, {c.m, k}) && isOf(c.outputs[1], c.inputs[0], t, {k, c.n});
     },
     qr<float>, qr<double>},
    {"lapack.eigh", 1, 3, true,
     [](const Call &c, int32_t t) {
       return isOf(c.outputs[0], c.inputs[0], t, {c.n}) && isOf(c.outputs[1], c.inputs[0], t, {c.n, c.n}) &&
              isOf(c.outputs[2], c.inputs[0], ASTRA_I64, {});
     },
     eigh<float>, eigh<double>},
    {"lapack.svd", 1, 4, false,
     [](const Call &c, int32_t t) {
       Int k = c.m < c.n ? c.m : c.n;
       const astra_tensor &x = c.inputs[0];
       bool thin = isOf(c.outputs[0], x, t, {c.m, k}) && isOf(c.outputs[2], x, t, {k, c.n}),
            full = isOf(c.outputs[0], x, t, {c.m, c.m}) && isOf(c.outputs[2], x, t, {c.n, c.n});
       return (thin || full) && isOf(c.outputs[1], x, t, {k}) && isOf(c.outputs[3], x, ASTRA_I64, {});
     },
     svd<float>, svd<double>},
    {"lapack.eig", 1, 5, true,
     [](const Call &c, int32_t t) {
       for (int i = 0; i < 2; ++i)
         if (!isOf(c.outputs[i], c.inputs[0], t, {c.n}) || !isOf(c.outputs[2 + i], c.inputs[0], t, {c.n, c.n}))
           return false;
       return isOf(c.outputs[4], c.inputs[0], ASTRA_I64, {});
     },
     eig<float>, eig<double>},
};

} // namespace

extern "C" {

astra_status astra_lapack_open(const char *library, astra_diag *diag) {
  pthread_mutex_lock(&opening);
  astra_status status = isOpen ? ASTRA_OK : openNow(library, diag);
  pthread_mutex_unlock(&opening);
  return status;
}

#define FUNCTION(name, form)                                                                                           \
  astra_status astra_lapack_##name(void *, const astra_tensor *in, uint32_t ins, const astra_tensor *out,              \
                                   uint32_t outs, astra_diag *diag) {                                                  \
    return run(forms[form], in, ins, out, outs, diag);                                                                 \
  }
FUNCTION(cholesky, 0)
FUNCTION(lu_factor, 1)
FUNCTION(solve, 2)
FUNCTION(inverse, 3)
FUNCTION(qr, 4)
FUNCTION(eigh, 5)
FUNCTION(svd, 6)
FUNCTION(eig, 7)

const astra_lapack_function *astra_lapack_functions(uint32_t *count) {
  static const astra_lapack_function rows[] = {
      {forms[0].name, astra_lapack_cholesky}, {forms[1].name, astra_lapack_lu_factor},
      {forms[2].name, astra_lapack_solve},    {forms[3].name, astra_lapack_inverse},
      {forms[4].name, astra_lapack_qr},       {forms[5].name, astra_lapack_eigh},
      {forms[6].name, astra_lapack_svd},      {forms[7].name, astra_lapack_eig}};
  *count = sizeof(rows) / sizeof(rows[0]);
  return rows;
}

} // extern "C"
