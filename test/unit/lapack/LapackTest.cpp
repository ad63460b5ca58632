//===- LapackTest.cpp: what libastra_lapack is given, and refuses ----------===//
// Takes:    a LAPACK that the library opens by itself; without one the tests are skipped.
// Keeps:    what a call may not write is compared byte for byte. Values of factorizations:
// python/tests/astra/test_lapack.py.
#include "astra/lapack.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

/// A tensor and its memory, behind which stand bytes that nobody may write.
struct Tensor {
  int32_t dtype;
  std::vector<int64_t> shape;
  std::vector<unsigned char> bytes;
  astra_tensor t{};

  static constexpr size_t guard = 64;
  static constexpr unsigned char mark = 0xa5;

  Tensor(int32_t dtype, std::vector<int64_t> dims) : dtype(dtype), shape(std::move(dims)) {
    t.size = sizeof t;
    t.dtype = dtype;
    t.ndim = int32_t(shape.size());
    t.shape = shape.data();
    allocate();
  }
  /// Memory for the shape, as far as a test may want it.
  void allocate() {
    size_t count = 1, most = 1 << 16;
    for (int64_t extent : shape) count = std::min(count * size_t(std::clamp<int64_t>(extent, 0, most)), most);
    bytes.assign(count * 8 + guard, mark);
    t.data = bytes.data();
    t.data_bytes = bytes.size() - guard;
  }
  Tensor(const Tensor &) = delete;
  Tensor(Tensor &&) = default;
  double *numbers() { return reinterpret_cast<double *>(bytes.data()); }
  int64_t *integers() { return reinterpret_cast<int64_t *>(bytes.data()); }
  size_t count() const { return (bytes.size() - guard) / 8; }
  bool isMarked(size_t from) const {
    for (size_t i = from; i < bytes.size(); ++i)
      if (bytes[i] != mark) return false;
    return true;
  }
};

enum { F32 = ASTRA_F32, F64 = ASTRA_F64, I64 = ASTRA_I64 };

/// The operands and results of each function, of [batch, m, n] and right sides of k columns.
struct Form {
  const char *name;
  astra_function_fn fn;
  bool isSquare;
};
const Form forms[] = {{"cholesky", astra_lapack_cholesky, true},
                      {"lu_factor", astra_lapack_lu_factor, false},
                      {"solve", astra_lapack_solve, true},
                      {"inverse", astra_lapack_inverse, true},
                      {"qr", astra_lapack_qr, false},
                      {"eigh", astra_lapack_eigh, true},
                      {"svd", astra_lapack_svd, false},
                      {"eig", astra_lapack_eig, true}};

struct Call {
  std::vector<Tensor> in, out;

  Call(const Form &f, int32_t t, int64_t batch, int64_t m, int64_t n, int64_t k = 2) {
    if (f.isSquare) m = n;
    int64_t least = std::min(m, n);
    auto add = [&](std::vector<Tensor> &to, int32_t dtype, std::vector<int64_t> behind) {
      behind.insert(behind.begin(), batch);
      to.emplace_back(dtype, behind);
    };
    std::string name = f.name;
    add(in, t, {m, n});
    if (name == "solve") add(in, t, {n, k});
    if (name == "cholesky" || name == "inverse" || name == "lu_factor") add(out, t, {m, n});
    if (name == "solve") add(out, t, {n, k});
    if (name == "lu_factor") add(out, I64, {least});
    if (name == "qr" || name == "svd") add(out, t, {m, least});
    if (name == "svd" || name == "eigh" || name == "eig") add(out, t, {least});
    if (name == "qr" || name == "svd") add(out, t, {least, n});
    if (name == "eigh") add(out, t, {n, n});
    if (name == "eig") {
      add(out, t, {n});
      for (int part = 0; part < 2; ++part) add(out, t, {n, n});
    }
    if (name != "qr") add(out, I64, {});
  }

  astra_status run(const Form &f, astra_diag *diag, int fewer = 0) {
    std::vector<astra_tensor> x, y;
    for (Tensor &t : in) x.push_back(t.t);
    for (Tensor &t : out) y.push_back(t.t);
    return f.fn(nullptr, x.data(), uint32_t(x.size()), y.data(), uint32_t(y.size()) - fewer, diag);
  }
  /// Fills f64 operands: matrix number b of the batch is the identity plus what `more` says.
  void fill(double more) {
    for (Tensor &t : in)
      for (size_t i = 0; i < t.count(); ++i) t.numbers()[i] = 0.25;
    int64_t m = in[0].shape[1], n = in[0].shape[2];
    for (int64_t b = 0; b < in[0].shape[0]; ++b)
      for (int64_t i = 0; i < std::min(m, n); ++i) in[0].numbers()[(b * m + i) * n + i] += 2 + double(i) + more;
  }
};

class Lapack : public testing::Test {
protected:
  void SetUp() override {
    diag.size = sizeof diag;
    if (astra_lapack_open(nullptr, &diag)) GTEST_SKIP() << diag.text;
  }
  void expectRefusal(Call &call, const Form &f, const std::string &sentence, int fewer = 0) {
    diag.text[0] = 0;
    EXPECT_EQ(call.run(f, &diag, fewer), ASTRA_INVALID_ARGUMENT) << f.name;
    EXPECT_EQ(diag.text, "lapack." + std::string(f.name) + sentence);
    for (Tensor &t : call.out) EXPECT_TRUE(t.isMarked(0)) << f.name;
  }
  astra_diag diag{};
};

TEST_F(Lapack, Refusals) {
  const std::string others = " has operands or results of other types or shapes than it takes";
  for (const Form &f : forms) {
    {
      Call c(f, F64, 2, 3, 3);
      expectRefusal(c, f, " is called with other numbers of operands and results", 1);
    }
    {
      Call c(f, I64, 2, 3, 3);
      expectRefusal(c, f, " takes f32 or f64");
    }
    {
      Call c(f, ASTRA_C128, 2, 3, 3);
      expectRefusal(c, f, " takes f32 or f64");
    }
    {
      Call c(f, F64, 2, 0, 0);
      expectRefusal(c, f, " takes matrices of 1 to 16384 rows and columns");
    }
    {
      Call c(f, F64, 1, 16385, 16385);
      expectRefusal(c, f, " takes matrices of 1 to 16384 rows and columns");
    }
    Call vector(f, F64, 2, 3, 3);
    vector.in[0].t.ndim = 1;
    expectRefusal(vector, f, " takes matrices");
    Call strided(f, F64, 2, 3, 3);
    int64_t strides[] = {9, 1, 3};
    strided.in[0].t.strides = strides;
    expectRefusal(strided, f, " takes row-major tensors in host memory");
    Call wide(f, F64, 2, 3, 3);
    wide.in[0].shape[2] = 4;
    expectRefusal(wide, f, f.isSquare ? " takes square matrices" : others);
    Call batch(f, F64, 2, 3, 3);
    batch.out[0].shape[0] = 3;
    expectRefusal(batch, f, others);
    Call type(f, F64, 2, 3, 3);
    type.out.back().t.dtype = F32;
    expectRefusal(type, f, others);
    Call large(f, F64, 2, 3, 3);
    std::vector<int64_t> shape = {int64_t(1) << 40, int64_t(1) << 40, 3, 3};
    large.in[0].t.shape = shape.data();
    large.in[0].t.ndim = 4;
    expectRefusal(large, f, " has a batch that is too large");
    shape[0] = -1;
    expectRefusal(large, f, " has a batch that is too large");
  }
}

TEST_F(Lapack, EmptyBatches) {
  for (const Form &f : forms) {
    Call c(f, F64, 0, 3, 3);
    EXPECT_EQ(c.run(f, &diag), ASTRA_OK) << f.name << ": " << diag.text;
    for (Tensor &t : c.out) EXPECT_TRUE(t.isMarked(0)) << f.name;
  }
  Call none(forms[2], F64, 2, 3, 3, 0); // no right sides
  none.fill(0);
  EXPECT_EQ(none.run(forms[2], &diag), ASTRA_OK) << diag.text;
  EXPECT_EQ(none.out[1].integers()[1], 0);
}

/// Whatever element is not finite, the matrix gives NaNs, its info says so where LAPACK's would, and its neighbour in
/// the batch has what it has alone.
TEST_F(Lapack, WhatIsNotFinite) {
  for (const Form &f : forms)
    for (double bad : {nan, infinity, -infinity})
      for (int place = 0; place < 9; ++place) {
        std::string name = f.name;
        bool isUpper = place % 3 > place / 3, readsLower = name == "cholesky" || name == "eigh";
        Call c(f, F64, 2, 3, 3), alone(f, F64, 1, 3, 3);
        c.fill(0);
        alone.fill(0);
        c.in[0].numbers()[place] = bad;
        ASSERT_EQ(c.run(f, &diag), ASTRA_OK) << diag.text;
        ASSERT_EQ(alone.run(f, &diag), ASTRA_OK) << diag.text;
        for (size_t o = 0; o < c.out.size(); ++o) {
          size_t half = c.out[o].count() / 2;
          EXPECT_TRUE(c.out[o].isMarked(c.out[o].bytes.size() - Tensor::guard)) << name;
          EXPECT_EQ(std::memcmp(c.out[o].numbers() + half, alone.out[o].numbers(), half * 8), 0)
              << name << " " << place;
          if (c.out[o].dtype == I64) continue;
          for (size_t i = 0; i < half; ++i)
            EXPECT_EQ(std::isnan(c.out[o].numbers()[i]), !(readsLower && isUpper)) << name << " " << place;
        }
        int64_t info = name == "qr" ? 0 : c.out.back().integers()[0];
        bool isFound = !isUpper || !readsLower;
        if (name == "cholesky") EXPECT_EQ(info, isFound ? place / 3 + 1 : 0);
        if (name == "eigh" || name == "svd" || name == "eig") EXPECT_EQ(info, isFound);
        if (name == "lu_factor" || name == "solve" || name == "inverse") EXPECT_EQ(info, 0);
      }
}

TEST_F(Lapack, FailuresAreData) {
  Call factor(forms[0], F64, 1, 3, 3), lu(forms[1], F64, 1, 3, 3), system(forms[2], F64, 1, 3, 3),
      inverse(forms[3], F64, 1, 3, 3);
  for (Call *c : {&factor, &lu, &system, &inverse}) {
    c->fill(0);
    double x[] = {1, 0, 0, 0, 0, 0, 0, 0, 1};
    std::memcpy(c->in[0].numbers(), x, sizeof x);
  }
  for (auto [call, form] : {std::pair(&factor, 0), {&lu, 1}, {&system, 2}, {&inverse, 3}}) {
    ASSERT_EQ(call->run(forms[form], &diag), ASTRA_OK);
    EXPECT_EQ(call->out.back().integers()[0], 2) << forms[form].name;
    EXPECT_EQ(std::isnan(call->out[0].numbers()[0]), form != 1) << forms[form].name;
  }
}

/// Calls of any types and shapes, most of them wrong in one place: whatever is refused is left as it was.
TEST_F(Lapack, DrawnCalls) {
  std::mt19937 r(1);
  auto draw = [&](int n) { return int(r() % unsigned(n)); };
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    const Form &f = forms[draw(8)];
    Call c(f, F64, draw(3), 1 + draw(5), 1 + draw(5), draw(4));
    c.fill(1);
    Tensor &t = draw(2) ? c.in[size_t(draw(int(c.in.size())))] : c.out[size_t(draw(int(c.out.size())))];
    const int64_t extents[] = {-1, 0, 1, 2, 3, 4, 5, 16385, std::numeric_limits<int64_t>::max()};
    switch (draw(5)) {
    case 0:
      t.shape[size_t(draw(int(t.shape.size())))] = extents[draw(9)];
      t.allocate(); // of svd, whose results may be thin or full, it may be right
      std::fill_n(t.numbers(), t.count(), 0.5);
      break;
    case 1: t.t.ndim = draw(int(t.shape.size()) + 1); break;
    case 2: t.t.dtype = draw(24); break;
    case 3: t.t.flags = ASTRA_TENSOR_CONJUGATE; break;
    default: break; // nothing wrong
    }
    std::vector<std::vector<unsigned char>> before;
    for (Tensor &o : c.out) before.push_back(o.bytes);
    astra_status status = c.run(f, &diag);
    if (status == ASTRA_OK) {
      ++accepted;
      for (Tensor &o : c.out) EXPECT_TRUE(o.isMarked(o.bytes.size() - Tensor::guard));
      continue;
    }
    ASSERT_EQ(status, ASTRA_INVALID_ARGUMENT) << f.name;
    EXPECT_EQ(std::string(diag.text).rfind("lapack.", 0), 0u);
    for (size_t o = 0; o < before.size(); ++o) EXPECT_EQ(c.out[o].bytes, before[o]) << f.name;
  }
  EXPECT_GT(accepted, 4000);
}

TEST_F(Lapack, OpensOneThatIsThere) {
  uint32_t count = 0;
  const astra_lapack_function *rows = astra_lapack_functions(&count);
  ASSERT_EQ(count, 8u);
  for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(rows[i].fn, forms[i].fn);
  EXPECT_EQ(astra_lapack_open("no-such-library.so", &diag), ASTRA_OK); // one is open, and stays
}

} // namespace
