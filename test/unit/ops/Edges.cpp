//===- Edges.cpp: what is long, what is many, what is wrong ----------------===//
#include "Ops.h"
#include <algorithm>
#include <numeric>
#include <thread>

using namespace astra;
using namespace astra::test;

namespace {

astra_op opOf(const char *name, std::vector<const astra_view *> &inputs, std::vector<int32_t> *axes = nullptr) {
  astra_op op = ASTRA_INIT(astra_op);
  op.name = name, op.inputs = inputs.data(), op.num_inputs = uint32_t(inputs.size());
  if (axes) op.axes = axes->data(), op.num_axes = uint32_t(axes->size());
  return op;
}

template <typename T> Strided counted(int32_t dtype, const Extents &shape, int64_t modulus) {
  Strided s;
  int64_t n = 1;
  s.view.ndim = int32_t(shape.size()), s.view.dtype = dtype;
  for (size_t i = shape.size(); i-- > 0; n *= shape[i]) s.view.shape[i] = shape[i], s.view.strides[i] = n;
  s.memory.resize(size_t(n) * sizeof(T));
  s.view.data = s.memory.data(), s.view.data_bytes = s.memory.size();
  auto *at = reinterpret_cast<T *>(s.memory.data());
  for (size_t i = 0; i < s.memory.size() / sizeof(T); i++) at[i] = T(int64_t(i) % modulus);
  return s;
}

template <typename T> std::vector<T> numbersOf(const Tensor &t) {
  std::vector<T> out(t.bytes.size() / sizeof(T));
  if (!out.empty()) memcpy(out.data(), t.bytes.data(), t.bytes.size());
  return out;
}

/// Dims of forms have limits (Table.h): operands beyond them go by parts.
class Long : public test::Ops {};

TEST_F(Long, ElementwiseBeyondColumns) {
  int64_t n = (int64_t(1) << 23) + 1000;
  Strided a = counted<uint8_t>(ASTRA_U8, {n}, 251), all = counted<int32_t>(ASTRA_I32, {n}, 1000),
          one = counted<int32_t>(ASTRA_I32, {1}, 2);
  reinterpret_cast<int32_t *>(one.memory.data())[0] = 7;
  std::vector<const astra_view *> copied = {&a.view}, added = {&all.view, &one.view};
  EXPECT_EQ(call(opOf("copy", copied)).bytes, a.memory);
  std::vector<int32_t> sums = numbersOf<int32_t>(call(opOf("add", added)));
  for (int64_t i = 0; i < n; i++) ASSERT_EQ(sums[size_t(i)], i % 1000 + 7);
}

TEST_F(Long, RowsOfSumsAndProducts) {
  for (Extents shape : {Extents{70000, 3}, Extents{9000, 2, 3}, Extents{2, 3, 17000}, Extents{1, (1 << 20) + 5, 2}}) {
    Strided a = counted<int32_t>(ASTRA_I32, shape, 97);
    for (int32_t axis = 0; axis < int32_t(shape.size()); axis++) {
      std::vector<const astra_view *> in = {&a.view};
      std::vector<int32_t> axes = {axis};
      Tensor dense = denseOf(a.view), got = call(opOf("sum", in, &axes));
      std::vector<int32_t> x = numbersOf<int32_t>(dense), want(size_t(got.count()), 0);
      int64_t inner = 1, n = shape[size_t(axis)];
      for (size_t i = size_t(axis) + 1; i < shape.size(); i++) inner *= shape[i];
      for (int64_t i = 0; i < dense.count(); i++) want[size_t(i / (inner * n) * inner + i % inner)] += x[size_t(i)];
      EXPECT_EQ(numbersOf<int32_t>(got), want);
    }
  }
  for (auto [m, n] : {std::pair<int64_t, int64_t>(9000, 3), {3, 17000}}) {
    Strided a = counted<int32_t>(ASTRA_I32, {m, 2}, 89), b = counted<int32_t>(ASTRA_I32, {2, n}, 83);
    std::vector<const astra_view *> in = {&a.view, &b.view};
    std::vector<int32_t> got = numbersOf<int32_t>(call(opOf("matmul", in)));
    const auto *x = reinterpret_cast<int32_t *>(a.memory.data()), *y = reinterpret_cast<int32_t *>(b.memory.data());
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) ASSERT_EQ(got[size_t(i * n + j)], x[2 * i] * y[j] + x[2 * i + 1] * y[n + j]);
  }
}

TEST_F(Long, TakesFromManyRows) {
  Strided a = counted<int32_t>(ASTRA_I32, {9000, 4, 3}, 1 << 30), at = counted<int64_t>(ASTRA_I64, {5}, 5);
  std::vector<const astra_view *> in = {&a.view, &at.view};
  std::vector<int32_t> axes = {1}, got = numbersOf<int32_t>(call(opOf("take", in, &axes)));
  for (int32_t i = 0; i < 9000 * 15; i++) ASSERT_EQ(got[size_t(i)], i % 15 < 12 ? i / 15 * 12 + i % 15 : 0);
}

TEST_F(Long, RowsThatAreSorted) {
  Random random(5);
  for (int64_t n : {64, 65, 128, 129, 300, 1024, 5000}) {
    Strided a = tensorOf(random, ASTRA_F32, {3, n}, false);
    std::vector<const astra_view *> in = {&a.view};
    std::vector<int32_t> axes = {1};
    for (bool descending : {false, true}) {
      astra_op op = opOf("argsort", in, &axes);
      op.flags = descending ? uint32_t(ASTRA_OPS_DESCENDING) : 0u;
      std::vector<int64_t> got = numbersOf<int64_t>(call(op));
      const auto *x = reinterpret_cast<float *>(a.memory.data());
      for (int64_t row = 0; row < 3; row++) {
        auto key = [&](int64_t i) {
          float v = x[row * n + i];
          return std::make_tuple(v != v, v != v ? 0.0f : v, v != v ? 0 : int(!std::signbit(v)));
        };
        std::vector<int64_t> want(static_cast<size_t>(n));
        std::iota(want.begin(), want.end(), 0);
        std::sort(want.begin(), want.end(), [&](int64_t i, int64_t k) {
          return key(i) == key(k) ? i < k : descending ? key(k) < key(i) : key(i) < key(k);
        });
        EXPECT_EQ(std::vector<int64_t>(got.begin() + row * n, got.begin() + (row + 1) * n), want) << n << descending;
      }
    }
  }
}

TEST_F(Long, ManyRowsThatAreSorted) {
  if (!getenv("ASTRA_NIGHTLY")) GTEST_SKIP() << "a minute; at night";
  int64_t rows = 70000, n = 200;
  Strided a = counted<int32_t>(ASTRA_I32, {rows, n}, 777);
  std::vector<const astra_view *> in = {&a.view};
  std::vector<int32_t> axes = {1}, got = numbersOf<int32_t>(call(opOf("sort", in, &axes)));
  auto *x = reinterpret_cast<int32_t *>(a.memory.data());
  for (int64_t r = 0; r < rows; r++) std::sort(x + r * n, x + (r + 1) * n);
  EXPECT_EQ(memcmp(got.data(), x, a.memory.size()), 0);
}

TEST_F(Long, CopiesOfSixteenAxes) {
  Random random(6);
  for (int round = 0; round < 20; round++) {
    Extents shape(16, 1);
    for (int i = 0; i < 9; i++) shape[random() % 16] = 2;
    Strided a = tensorOf(random, ASTRA_U16, shape, true), b = tensorOf(random, ASTRA_U16, shape, true);
    std::vector<const astra_view *> in = {&a.view};
    EXPECT_EQ(call(opOf("copy", in), &b).bytes, denseOf(a.view).bytes);
  }
}

//===- Many at once --------------------------------------------------------===//

class Threads : public test::Ops {
protected:
  Threads() : Ops(3) {}
};

TEST_F(Threads, SubmitToStreamsOfTheirOwn) {
  Strided a = counted<float>(ASTRA_F32, {40, 300}, 1000), b = counted<float>(ASTRA_F32, {300, 20}, 77);
  std::vector<const astra_view *> product = {&a.view, &b.view};
  Tensor want = call(opOf("matmul", product));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      astra_stream *own = nullptr;
      ASSERT_EQ(astra_stream_init(&own, device, nullptr), ASTRA_OK);
      for (int i = 0; i < 100; i++) {
        astra_view c = ASTRA_INIT(astra_view), d = ASTRA_INIT(astra_view), e = ASTRA_INIT(astra_view);
        astra_promise *end = nullptr;
        // What the next call reads is freed before it has run: calls keep it.
        ASSERT_EQ(astra_op_matmul(library, own, &a.view, &b.view, &c, nullptr), ASTRA_OK);
        ASSERT_EQ(astra_op_neg(library, own, &c, &d, nullptr), ASTRA_OK);
        std::vector<const astra_view *> in = {&d};
        astra_op op = opOf("neg", in);
        ASSERT_EQ(astra_ops_call(library, own, &op, &e, &end, nullptr), ASTRA_OK);
        astra_buffer_free(&c.buffer), astra_buffer_free(&d.buffer);
        if (i % 7 == t) ASSERT_EQ(astra_ops_trim(library), ASTRA_OK);
        ASSERT_EQ(astra_promise_wait(end, nullptr), ASTRA_OK);
        ASSERT_EQ(denseOf(e).bytes, want.bytes);
        astra_promise_free(&end), astra_buffer_free(&e.buffer);
      }
      EXPECT_EQ(astra_stream_free(&own), ASTRA_OK);
    });
  for (std::thread &t : threads) t.join();
}

TEST_F(Threads, MoreCallsThanSessions) {
  Strided a = counted<float>(ASTRA_F32, {1000}, 1000);
  astra_view x = a.view;
  std::vector<astra_view> all;
  for (int i = 0; i < 300; i++) {
    astra_view next = ASTRA_INIT(astra_view);
    ASSERT_EQ(astra_op_add(library, stream, &x, &a.view, &next, &diag), ASTRA_OK) << diag.text;
    all.push_back(x = next);
  }
  astra_promise *mark = nullptr;
  ASSERT_EQ(astra_stream_mark(stream, &mark, nullptr), ASTRA_OK);
  ASSERT_EQ(astra_promise_wait(mark, nullptr), ASTRA_OK);
  astra_promise_free(&mark);
  std::vector<float> got = numbersOf<float>(denseOf(x));
  for (size_t i = 0; i < 1000; i++) ASSERT_EQ(got[i], float(i) * 301);
  for (astra_view &v : all) astra_buffer_free(&v.buffer);
}

TEST_F(Threads, AFailedPromiseStopsWhatWaitsForIt) {
  // A call that was cancelled: its dependants do not run.
  astra_stream *other = nullptr;
  ASSERT_EQ(astra_stream_init(&other, device, nullptr), ASTRA_OK);
  Strided a = counted<float>(ASTRA_F32, {512, 512}, 3), small = counted<float>(ASTRA_F32, {3}, 3);
  astra_view c = ASTRA_INIT(astra_view), d = ASTRA_INIT(astra_view), e = ASTRA_INIT(astra_view);
  std::vector<const astra_view *> in = {&a.view, &a.view}, one = {&small.view};
  astra_promise *first = nullptr, *second = nullptr, *third = nullptr;
  astra_op product = opOf("matmul", in), exp = opOf("exp", one), neg = opOf("neg", one);
  ASSERT_EQ(astra_ops_call(library, stream, &product, &c, &first, &diag), ASTRA_OK) << diag.text;
  exp.after = &first, exp.num_after = 1;
  ASSERT_EQ(astra_ops_call(library, other, &exp, &d, &second, &diag), ASTRA_OK) << diag.text;
  astra_status cancelled = astra_promise_cancel(second, nullptr);
  neg.after = &second, neg.num_after = 1;
  ASSERT_EQ(astra_ops_call(library, stream, &neg, &e, &third, &diag), ASTRA_OK) << diag.text;
  EXPECT_EQ(astra_promise_wait(third, nullptr), cancelled ? ASTRA_OK : ASTRA_DEPENDENCY);
  for (astra_promise *p : {first, second, third}) astra_promise_free(&p);
  for (astra_view *v : {&c, &d, &e}) astra_buffer_free(&v->buffer);
  EXPECT_EQ(astra_stream_free(&other), ASTRA_OK);
}

//===- What is wrong -------------------------------------------------------===//

class Refused : public test::Ops {
protected:
  void refuses(const astra_op &op, astra_status status, const char *sentence, Strided *into = nullptr) {
    astra_view out = into ? into->view : ASTRA_INIT(astra_view), before = out;
    astra_promise *promise = nullptr;
    EXPECT_EQ(astra_ops_call(library, stream, &op, &out, &promise, &diag), status) << sentence;
    EXPECT_STREQ(diag.text, sentence);
    EXPECT_EQ(memcmp(&out, &before, sizeof(out)), 0);
    EXPECT_EQ(promise, nullptr);
  }
  Random random{9};
  Strided f = tensorOf(random, ASTRA_F32, {2, 3}, false), g = tensorOf(random, ASTRA_F32, {4}, false),
          i = tensorOf(random, ASTRA_I32, {2, 3}, false), m = tensorOf(random, ASTRA_BOOL, {2, 3}, false);
};

TEST_F(Refused, WithASentence) {
  std::vector<const astra_view *> one = {&f.view}, two = {&f.view, &g.view}, mixed = {&f.view, &i.view},
                                  bools = {&m.view}, none = {nullptr}, square = {&f.view, &f.view},
                                  masked = {&f.view, &m.view};
  std::vector<int32_t> outside = {2}, twice = {1, -1}, first = {0};
  refuses(opOf("addd", two), ASTRA_UNKNOWN_NAME, "there is no operation addd");
  refuses(opOf("transpose", one), ASTRA_UNKNOWN_NAME, "there is no operation transpose");
  refuses(opOf("add", one), ASTRA_INVALID_ARGUMENT, "add: 1 operands; it takes 2");
  refuses(opOf("neg", none), ASTRA_INVALID_ARGUMENT, "neg: operand 0 is NULL or its size is not set");
  refuses(opOf("add", mixed), ASTRA_WRONG_DTYPE, "add: the operands are f32 and i32; cast one of them");
  refuses(opOf("exp", bools), ASTRA_WRONG_DTYPE, "exp: it takes no bool; cast it");
  refuses(opOf("add", two), ASTRA_WRONG_SHAPE, "add: axis 1 from the back has 3 and 4 elements; they do not broadcast");
  refuses(opOf("matmul", square), ASTRA_WRONG_SHAPE, "matmul: 3 columns and 2 rows; they must be equal");
  refuses(opOf("sum", one, &outside), ASTRA_INVALID_ARGUMENT, "sum: there is no axis 2; the tensor has 2");
  refuses(opOf("sum", one, &twice), ASTRA_INVALID_ARGUMENT, "sum: axis 1 is named twice");
  refuses(opOf("neg", one, &first), ASTRA_INVALID_ARGUMENT, "neg: it takes no axes");
  refuses(opOf("sort", one), ASTRA_INVALID_ARGUMENT, "sort: 0 axes; it takes one");
  refuses(opOf("take", masked, &first), ASTRA_WRONG_DTYPE, "take: the places are bool; they must be i64 or i32");
  astra_op cast = opOf("cast", one);
  cast.dtype = ASTRA_I4;
  refuses(cast, ASTRA_WRONG_DTYPE, "cast: there is no way to i4");
  astra_op sum = opOf("sum", one);
  sum.flags = 64;
  refuses(sum, ASTRA_INVALID_ARGUMENT, "sum: it takes no flag 0x40");
  std::vector<const astra_view *> nothing;
  astra_op drawn = opOf("uniform", nothing);
  drawn.dtype = ASTRA_I32;
  refuses(drawn, ASTRA_WRONG_DTYPE, "uniform: it gives no i32");
  int64_t wrong[] = {-1};
  drawn.dtype = ASTRA_F32, drawn.ndim = 1, drawn.shape = wrong;
  refuses(drawn, ASTRA_WRONG_SHAPE, "uniform: axis 0 has -1 elements");
  int64_t huge[] = {int64_t(1) << 40, int64_t(1) << 40};
  drawn.ndim = 2, drawn.shape = huge;
  refuses(drawn, ASTRA_OVERFLOW, "uniform: the result has too many elements");
}

TEST_F(Refused, ResultsThatDoNotFit) {
  std::vector<const astra_view *> one = {&f.view};
  refuses(opOf("neg", one), ASTRA_WRONG_DTYPE, "neg: the result is i32; it must be f32", &i);
  refuses(opOf("neg", one), ASTRA_WRONG_RANK, "neg: the result has 1 axes; it must have 2", &g);
  refuses(opOf("neg", one), ASTRA_OVERLAP, "neg: the result overlaps operand 0; give it memory of its own", &f);
  Strided other = tensorOf(random, ASTRA_F32, {2, 4}, false);
  refuses(opOf("neg", one), ASTRA_WRONG_SHAPE, "neg: axis 1 of the result has 4 elements; it must have 3", &other);
  other.view.shape[1] = 3, other.view.strides[0] = 0;
  astra_view out = other.view;
  astra_op op = opOf("neg", one);
  EXPECT_EQ(astra_ops_call(library, stream, &op, &out, nullptr, &diag), ASTRA_OVERLAP) << diag.text;
  EXPECT_STREQ(diag.text, "neg: elements of the result share memory; give it strides that hold each of them once");
  Strided away = tensorOf(random, ASTRA_F32, {2, 3}, false);
  away.view.byte_offset = 1 << 20;
  std::vector<const astra_view *> far = {&away.view};
  op = opOf("neg", far), out = ASTRA_INIT(astra_view);
  EXPECT_NE(astra_ops_call(library, stream, &op, &out, nullptr, &diag), ASTRA_OK);
}

TEST_F(Refused, Bundles) {
  astra_ops *ops = nullptr;
  astra_ops_options where = ASTRA_INIT(astra_ops_options);
  where.path = "/nowhere/libastra_ops.astra";
  EXPECT_EQ(astra_ops_init(&ops, runtime, device, &where, &diag), ASTRA_IO) << diag.text;
  EXPECT_EQ(astra_ops_init(&ops, nullptr, device, &where, &diag), ASTRA_INVALID_ARGUMENT);
  where.size = 1;
  EXPECT_EQ(astra_ops_init(&ops, runtime, device, &where, &diag), ASTRA_INVALID_ARGUMENT);
  EXPECT_EQ(ops, nullptr);
  EXPECT_EQ(astra_ops_free(&ops), ASTRA_OK);
}

TEST_F(Refused, NoFreeWhileResultsLive) {
  astra_view out = ASTRA_INIT(astra_view);
  ASSERT_EQ(astra_op_neg(library, stream, &f.view, &out, &diag), ASTRA_OK) << diag.text;
  EXPECT_EQ(astra_ops_free(&library), ASTRA_IN_USE);
  ASSERT_NE(library, nullptr);
  astra_view again = ASTRA_INIT(astra_view);
  ASSERT_EQ(astra_op_neg(library, stream, &out, &again, &diag), ASTRA_OK) << diag.text;
  EXPECT_EQ(denseOf(again).bytes, f.memory);
  astra_buffer_free(&out.buffer), astra_buffer_free(&again.buffer);
}

TEST_F(Refused, Names) {
  EXPECT_STREQ(astra_ops_name(0), "neg");
  EXPECT_EQ(astra_ops_name(100000), nullptr);
  EXPECT_EQ(astra_ops_takes("exp", ASTRA_F16), 1);
  EXPECT_EQ(astra_ops_takes("exp", ASTRA_I8), 0);
  EXPECT_EQ(astra_ops_takes("exp", ASTRA_F8E5M2), 0);
  EXPECT_EQ(astra_ops_takes("sort_key", ASTRA_F32), -1);
}

} // namespace
