//===- ViewTest.cpp: views, parts, and calls on them ----------------------===//
// Takes:    random views; the standard bundle.
// Gives:    disjointness as brute force finds it, refusals with their sentences, streams that write parts of one array.
// Keeps:    each random case is a function of its number. What is compared with NumPy is in test/abi/views.py.
// Does not: measure.
#include "Client.h"
#include "astra/tensor.h"

#include <barrier>
#include <random>
#include <thread>

using namespace astra::test;

namespace {

/// Rounds of a day, and of a night.
int rounds(int daily, int nightly) { return std::getenv("ASTRA_NIGHTLY") ? nightly : daily; }

astra_view viewOf(std::vector<float> &values, Shape shape) {
  astra_view v = ASTRA_INIT(astra_view);
  EXPECT_EQ(astra_view_init(&v, &tensor(values, std::move(shape)), nullptr), ASTRA_OK);
  return v;
}

//===- Index sets -----------------------------------------------------------===//

constexpr size_t kBytes = 4096;

struct Random {
  explicit Random(unsigned seed) : engine(seed) {}
  int64_t operator()(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(engine); }
  std::mt19937 engine;
};

/// Strides that nest as those of a tensor do, or any; false where the view does not fit into the memory.
bool randomView(Random &random, astra_view &v, uint8_t *memory) {
  static const int32_t dtypes[] = {ASTRA_U8, ASTRA_I16, ASTRA_F32, ASTRA_F64, ASTRA_C128};
  v = ASTRA_INIT(astra_view);
  v.data = memory, v.data_bytes = kBytes;
  v.dtype = dtypes[random(0, 4)], v.ndim = int32_t(random(0, 4));
  int64_t size = astra_dtype_bits(v.dtype) / 8, alignment = size > 8 ? 8 : size;
  bool isNested = random(0, 1);
  int64_t step = random(1, 3), low = 0, high = size;
  for (int32_t i = v.ndim; i-- > 0;) {
    v.shape[i] = random(1, 5);
    v.strides[i] = isNested ? step * (random(0, 3) ? 1 : -1) : random(-20, 20);
    step *= v.shape[i] + random(0, 2);
    (v.strides[i] < 0 ? low : high) += v.strides[i] * size * (v.shape[i] - 1);
  }
  int64_t room = int64_t(kBytes) - high + low;
  if (room < 0) return false;
  // Near the middle, so that ranges overlap.
  int64_t at = std::min(-low + room / 2 + random(0, 60), int64_t(kBytes) - high);
  v.byte_offset = uint64_t(std::max(at / alignment * alignment, (-low + alignment - 1) / alignment * alignment));
  return int64_t(v.byte_offset) + high <= int64_t(kBytes);
}

/// The bytes that a view touches, and whether it holds an element twice.
bool touched(const astra_view &v, std::vector<bool> &bytes) {
  bytes.assign(kBytes, false);
  bool isTwice = false;
  int64_t size = astra_dtype_bits(v.dtype) / 8, index[ASTRA_MAX_RANK] = {};
  for (;;) {
    int64_t at = int64_t(v.byte_offset);
    for (int32_t i = 0; i < v.ndim; i++) at += index[i] * v.strides[i] * size;
    isTwice |= bytes[size_t(at)];
    for (int64_t b = 0; b < size; b++) bytes[size_t(at + b)] = true;
    int32_t i = v.ndim;
    while (i-- > 0) {
      if (++index[i] < v.shape[i]) break;
      index[i] = 0;
    }
    if (i < 0) return isTwice;
  }
}

TEST(Views, DisjointnessIsThatOfBruteForce) {
  alignas(16) static uint8_t memory[kBytes];
  int count = rounds(3000, 1000000), disjoint = 0, interleaved = 0, twice = 0;
  std::vector<bool> inA, inB;
  for (int seed = 0; seed < count; seed++) {
    Random random{unsigned(seed)};
    astra_view a, b;
    while (!randomView(random, a, memory)) {
    }
    while (!randomView(random, b, memory)) {
    }
    bool isTwice = touched(a, inA);
    touched(b, inB);
    bool meets = false;
    for (size_t i = 0; i < kBytes; i++) meets |= inA[i] && inB[i];
    int32_t found = -1;
    Diag diag;
    ASSERT_EQ(astra_view_is_disjoint(&a, &b, &found, &diag), ASTRA_OK) << seed << ": " << diag.text;
    ASSERT_EQ(found, !meets) << seed;
    ASSERT_EQ(astra_view_check_parts(&a, 1, &diag), isTwice ? ASTRA_OVERLAP : ASTRA_OK) << seed << ": " << diag.text;
    disjoint += !meets, twice += isTwice;
    auto range = [](const std::vector<bool> &bytes) {
      size_t low = 0, high = kBytes;
      while (!bytes[low]) low++;
      while (!bytes[high - 1]) high--;
      return std::pair(low, high);
    };
    auto [lowA, highA] = range(inA);
    auto [lowB, highB] = range(inB);
    interleaved += !meets && lowA < highB && lowB < highA;
  }
  // The cases are of every kind.
  EXPECT_GT(disjoint, count / 10);
  EXPECT_GT(interleaved, count / 20);
  EXPECT_GT(count - disjoint, count / 10);
  EXPECT_GT(twice, count / 10);
}

TEST(Views, DisjointnessOfLargeArraysTakesFewSteps) {
  // No memory is touched: a claim of 2^40 bytes.
  astra_view all = ASTRA_INIT(astra_view);
  all.data = reinterpret_cast<void *>(uintptr_t(1) << 40), all.data_bytes = uint64_t(1) << 40, all.dtype = ASTRA_F32;
  all.ndim = 3, all.shape[0] = 1000, all.shape[1] = 2000, all.shape[2] = 3001;
  all.strides[0] = 2000 * 3001, all.strides[1] = 3001, all.strides[2] = 1;
  Diag diag;
  std::vector<astra_view> parts;
  for (int32_t axis = 0; axis < 3; axis++)
    for (int isInterleaved = 0; isInterleaved < 2; isInterleaved++) {
      parts.assign(64, ASTRA_INIT(astra_view));
      for (size_t i = 0; i < parts.size(); i++)
        EXPECT_OK(
            (isInterleaved ? astra_view_interleaved : astra_view_part)(&parts[i], &all, axis, int64_t(i), 64, &diag));
      EXPECT_OK(astra_view_check_parts(parts.data(), 64, &diag));
      EXPECT_OK(astra_view_part(&parts[1], &all, (axis + 1) % 3, 1, 64, &diag));
      EXPECT_FAIL(ASTRA_OVERLAP, "parts 0 and 1 share memory", astra_view_check_parts(parts.data(), 64, &diag));
    }
  parts.clear();
  for (int64_t i = 0; i < 4; i++)
    for (int64_t j = 0; j < 7; j++)
      for (int64_t k = 0; k < 7; k++) {
        int64_t tile[] = {250, 300, 500}, index[] = {i, j, k};
        parts.push_back(ASTRA_INIT(astra_view));
        EXPECT_OK(astra_view_tile(&parts.back(), &all, tile, index, &diag));
      }
  EXPECT_EQ(parts.back().shape[1], 200);
  EXPECT_EQ(parts.back().shape[2], 1);
  EXPECT_OK(astra_view_check_parts(parts.data(), uint32_t(parts.size()), &diag));
}

TEST(Views, WhatTakesTooLongIsNotShown) {
  // A sum of different steps near 2^30 that hits a given number: as hard as it gets.
  astra_view a = ASTRA_INIT(astra_view);
  a.data = reinterpret_cast<void *>(uintptr_t(1) << 40), a.data_bytes = uint64_t(1) << 40, a.dtype = ASTRA_U8;
  a.ndim = 16;
  for (int i = 0; i < 16; i++) a.shape[i] = 4, a.strides[i] = (1 << 28) + (i * 7919 * 7919) % 1000003;
  astra_view b = a;
  b.byte_offset = uint64_t(8) << 28;
  int32_t found = 7;
  Diag diag;
  EXPECT_FAIL(ASTRA_UNSUPPORTED, "not shown in 8192 steps", astra_view_is_disjoint(&a, &b, &found, &diag));
  EXPECT_EQ(found, 7);
  EXPECT_FAIL(ASTRA_OVERLAP, "an element twice", astra_view_check_parts(&a, 1, &diag)); // this is found soon
}

//===- Refusals -------------------------------------------------------------===//

TEST(Views, WrongOnesAreRefused) {
  std::vector<float> values(24);
  astra_view v = viewOf(values, {4, 6}), out = ASTRA_INIT(astra_view), w;
  Diag diag;
  auto altered = [&](auto change) {
    w = v;
    change(w);
    return astra_view_conjugate(&out, &w, &diag);
  };
  EXPECT_FAIL(ASTRA_CAPACITY, "needs", altered([](astra_view &x) { x.shape[0] = 5; }));
  EXPECT_FAIL(ASTRA_CAPACITY, "needs", altered([](astra_view &x) { x.strides[1] = -1; }));
  EXPECT_FAIL(ASTRA_CAPACITY, "needs", altered([](astra_view &x) { x.byte_offset = UINT64_MAX - 3; }));
  EXPECT_FAIL(ASTRA_CAPACITY, "needs", altered([](astra_view &x) { x.byte_offset = 4; }));
  EXPECT_FAIL(ASTRA_OVERFLOW, "64 bits", altered([](astra_view &x) { x.strides[0] = INT64_MIN; }));
  EXPECT_FAIL(ASTRA_OVERFLOW, "64 bits", altered([](astra_view &x) { x.strides[0] = INT64_MAX; }));
  EXPECT_FAIL(ASTRA_WRONG_SHAPE, "negative or too large", altered([](astra_view &x) { x.shape[0] = -1; }));
  EXPECT_FAIL(ASTRA_WRONG_SHAPE, "too large", altered([](astra_view &x) { x.shape[0] = x.shape[1] = INT64_MAX; }));
  EXPECT_FAIL(ASTRA_WRONG_RANK, "17 dims", altered([](astra_view &x) { x.ndim = 17; }));
  EXPECT_FAIL(ASTRA_WRONG_RANK, "-1 dims", altered([](astra_view &x) { x.ndim = -1; }));
  EXPECT_FAIL(ASTRA_WRONG_DTYPE, "unknown dtype 99", altered([](astra_view &x) { x.dtype = 99; }));
  EXPECT_FAIL(ASTRA_UNSUPPORTED, "packed (i4)", altered([](astra_view &x) {
                x.dtype = ASTRA_I4;
                x.strides[0] = 6;
              }));
  EXPECT_FAIL(ASTRA_WRONG_DTYPE, "only complex types", altered([](astra_view &x) { x.flags = 1; }));
  EXPECT_FAIL(ASTRA_NEWER_CLIENT, "flags", altered([](astra_view &x) { x.flags = 2; }));
  EXPECT_FAIL(ASTRA_NEWER_CLIENT, "flags", altered([](astra_view &x) { x.reserved = 1; }));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "the size of astra_view is 8", altered([](astra_view &x) { x.size = 8; }));
  for (int64_t many : {INT64_MAX, int64_t(1) << 61})
    EXPECT_FAIL(ASTRA_WRONG_SHAPE, "too large", astra_view_slice(&out, &v, 0, 0, many, 0, &diag));
  astra_view small = ASTRA_INIT(astra_view);
  small.size = 8;
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "size is not set", astra_view_slice(&small, &v, 0, 0, 1, 1, &diag));
  EXPECT_FAIL(ASTRA_OVERFLOW, "the 96 bytes of tensor of the view leave the address space",
              altered([](astra_view &x) { x.data = reinterpret_cast<void *>(UINTPTR_MAX - 63); }));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "storage", altered([](astra_view &x) { x.data = nullptr; }));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "aligned", altered([](astra_view &x) { x.byte_offset = 1, x.data_bytes++; }));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "out is NULL", astra_view_conjugate(nullptr, &v, &diag));

  int32_t twice[] = {1, 1}, far[] = {0, 2};
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "named twice", astra_view_permute(&out, &v, twice, &diag));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "no axis 2", astra_view_permute(&out, &v, far, &diag));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "axes is NULL", astra_view_permute(&out, &v, nullptr, &diag));
  struct {
    int64_t start, count, step;
  } slices[] = {{0, 7, 1},         {6, 1, 1},         {-1, 1, 1}, {5, 2, 1},         {0, 2, -1},       {0, 3, 3},
                {0, 3, INT64_MAX}, {0, INT64_MAX, 2}, {7, 0, 1},  {INT64_MAX, 2, 1}, {5, 2, INT64_MIN}};
  for (auto [start, count, step] : slices)
    EXPECT_FAIL(ASTRA_OUT_OF_BOUNDS, "leaves axis 1, which has 6",
                astra_view_slice(&out, &v, 1, start, count, step, &diag));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "-1 elements", astra_view_slice(&out, &v, 1, 0, -1, 1, &diag));
  EXPECT_FAIL(ASTRA_OUT_OF_BOUNDS, "leaves axis 0", astra_view_index(&out, &v, 0, 4, &diag));
  int64_t five[] = {5, 6}, rows[] = {6}, huge[] = {INT64_MAX, 4, 6}, odd[] = {5, 5}, flat[] = {12},
          negative[] = {-4, -6};
  EXPECT_FAIL(ASTRA_WRONG_SHAPE, "cannot be broadcast to 5", astra_view_expand(&out, &v, 2, five, &diag));
  EXPECT_FAIL(ASTRA_WRONG_RANK, "cannot be broadcast to 1", astra_view_expand(&out, &v, 1, rows, &diag));
  EXPECT_FAIL(ASTRA_WRONG_SHAPE, "too large", astra_view_expand(&out, &v, 3, huge, &diag));
  EXPECT_FAIL(ASTRA_WRONG_SHAPE, "as many elements", astra_view_reshape(&out, &v, 2, odd, &diag));
  EXPECT_FAIL(ASTRA_WRONG_SHAPE, "0 is the least", astra_view_reshape(&out, &v, 2, negative, &diag));
  EXPECT_FAIL(ASTRA_WRONG_RANK, "17 dims", astra_view_reshape(&out, &v, 17, five, &diag));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "two axes", astra_view_diagonal(&out, &v, 1, 1, 0, &diag));
  w = v;
  EXPECT_OK(astra_view_slice(&w, &w, 1, 0, 3, 1, &diag));
  EXPECT_FAIL(ASTRA_WRONG_STRIDES, "not one run; copy", astra_view_reshape(&out, &w, 1, flat, &diag));
  int64_t tile[] = {2, 4}, outside[] = {2, 0}, none[] = {0, 1}, inside[] = {1, 1};
  EXPECT_FAIL(ASTRA_OUT_OF_BOUNDS, "tile 2 of 2", astra_view_tile(&out, &v, tile, outside, &diag));
  EXPECT_FAIL(ASTRA_OUT_OF_BOUNDS, "of 0 elements", astra_view_tile(&out, &v, none, inside, &diag));
  EXPECT_FAIL(ASTRA_OUT_OF_BOUNDS, "part 3 of 3", astra_view_part(&out, &v, 0, 3, 3, &diag));
  EXPECT_FAIL(ASTRA_OUT_OF_BOUNDS, "part 0 of 0", astra_view_interleaved(&out, &v, 0, 0, 0, &diag));
  void *address = nullptr;
  w = v, w.shape[0] = 2;
  EXPECT_FAIL(ASTRA_OUT_OF_BOUNDS, "index 2 of axis 0", astra_view_address(&w, outside, &address, &diag));
  EXPECT_OK(astra_view_address(&v, inside, &address, &diag));
  EXPECT_EQ(address, &values[7]);
  EXPECT_EQ(out.ndim, 0) << "a refusal has written";
  EXPECT_FAIL(ASTRA_UNSUPPORTED, "at most 4096", astra_view_check_parts(&v, 4097, &diag));
}

TEST(Views, CopiesThatWouldOverlapAreRefused) {
  std::vector<float> values(16), other(16);
  for (size_t i = 0; i < 16; i++) values[i] = float(i);
  astra_view v = viewOf(values, {4, 4}), t = v, to = v, from = v;
  int32_t swapped[] = {1, 0};
  Diag diag;
  EXPECT_OK(astra_view_permute(&t, &v, swapped, &diag));
  EXPECT_FAIL(ASTRA_OVERLAP, "shares memory with its source", astra_view_copy(&v, &t, &diag));
  EXPECT_OK(astra_view_part(&to, &v, 1, 0, 2, &diag));
  EXPECT_OK(astra_view_part(&from, &v, 1, 1, 2, &diag));
  EXPECT_OK(astra_view_copy(&to, &from, &diag)); // columns of one matrix
  EXPECT_EQ(values, (std::vector<float>{2, 3, 2, 3, 6, 7, 6, 7, 10, 11, 10, 11, 14, 15, 14, 15}));
  astra_view one = viewOf(other, {1, 4});
  int64_t four[] = {4, 4};
  EXPECT_OK(astra_view_expand(&one, &one, 2, four, &diag));
  EXPECT_FAIL(ASTRA_OVERLAP, "axis 0 has stride 0", astra_view_copy(&one, &v, &diag));
  EXPECT_OK(astra_view_copy(&v, &one, &diag));
  EXPECT_EQ(values, std::vector<float>(16));
  astra_view windows = viewOf(other, {4, 4});
  windows.strides[0] = 1;
  EXPECT_FAIL(ASTRA_OVERLAP, "an element twice", astra_view_copy(&windows, &v, &diag));
  EXPECT_FAIL(ASTRA_WRONG_SHAPE, "axis 1 of the source", astra_view_copy(&v, &to, &diag));
}

/// Larger than the tiles that a transposition goes over.
TEST(Views, LargePermutations) {
  Diag diag;
  for (auto [dtype, size] :
       {std::pair(ASTRA_U8, 1), {ASTRA_I16, 2}, {ASTRA_F32, 4}, {ASTRA_I64, 8}, {ASTRA_C64, 8}, {ASTRA_C128, 16}}) {
    int64_t extents[] = {3, 300, 270};
    std::vector<uint8_t> from(size_t(3 * 300 * 270 * size)), to(from.size());
    for (size_t i = 0; i < from.size(); i++) from[i] = uint8_t(i * 2654435761u >> 13);
    int32_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (auto &order : orders) {
      astra_tensor t = ASTRA_INIT(astra_tensor);
      t.data = from.data(), t.data_bytes = from.size(), t.dtype = dtype, t.ndim = 3, t.shape = extents;
      astra_view source = ASTRA_INIT(astra_view), target = source;
      EXPECT_OK(astra_view_init(&source, &t, &diag));
      EXPECT_OK(astra_view_permute(&source, &source, order, &diag));
      t.data = to.data(), t.shape = source.shape;
      EXPECT_OK(astra_view_init(&target, &t, &diag));
      bool isConjugated = dtype == ASTRA_C64 || dtype == ASTRA_C128;
      EXPECT_OK(astra_view_conjugate(&source, &source, &diag));
      EXPECT_OK(astra_view_copy(&target, &source, &diag));
      size_t place = 0, wrong = 0;
      for (int64_t i = 0; i < source.shape[0]; i++)
        for (int64_t j = 0; j < source.shape[1]; j++)
          for (int64_t k = 0; k < source.shape[2]; k++, place += size_t(size)) {
            uint8_t element[16];
            memcpy(element,
                   &from[size_t(i * source.strides[0] + j * source.strides[1] + k * source.strides[2]) * size_t(size)],
                   size_t(size));
            if (isConjugated) element[size - 1] ^= 0x80;
            wrong += memcmp(element, &to[place], size_t(size)) != 0;
          }
      EXPECT_EQ(wrong, 0u) << astra_dtype_name(dtype) << order[0] << order[1] << order[2];
    }
  }
}

//===- Calls ----------------------------------------------------------------===//

struct Trace {
  std::vector<std::string> names;
  static void add(void *self, const astra_trace_event *event) {
    std::string name = event->name;
    if (event->num_origins && (name == "gather" || name == "scatter")) name += std::string(" ") + event->origins[0];
    static_cast<Trace *>(self)->names.push_back(name);
  }
};

/// On a CPU, and on a GPU of the stand-in driver.
struct StridedCalls : testing::TestWithParam<const char *> {
  std::unique_ptr<Machine> machine =
      strcmp(GetParam(), "cpu") ? Machine::withGpu(GetParam()) : std::make_unique<Machine>(1);
  Diag &diag = machine->diag;
  astra_tensor described(const astra_view &v) {
    astra_tensor t = ASTRA_INIT(astra_tensor);
    EXPECT_OK(astra_view_describe(&v, &t, &diag));
    return t;
  }
};

TEST_P(StridedCalls, TakeAndGiveViews) {
  // Column 2 of x plus the reversed row 1 of x, into every other element of column 0 of z.
  std::vector<float> x(5 * 5), z(10 * 3, -1);
  for (size_t i = 0; i < x.size(); i++) x[i] = float(i);
  astra_view all = viewOf(x, {5, 5}), column = all, row = all, to = viewOf(z, {10, 3});
  EXPECT_OK(astra_view_index(&column, &all, 1, 2, &diag));
  EXPECT_OK(astra_view_index(&row, &all, 0, 1, &diag));
  EXPECT_OK(astra_view_slice(&row, &row, 0, 4, 5, -1, &diag));
  EXPECT_OK(astra_view_index(&to, &to, 1, 0, &diag));
  EXPECT_OK(astra_view_interleaved(&to, &to, 0, 1, 2, &diag));
  EXPECT_FAIL(ASTRA_WRONG_STRIDES, "output z is not row-major",
              machine->run("add", {tensor(x, {5}), tensor(x, {5})}, {described(to)}));
  Trace trace;
  EXPECT_EQ(astra_session_set_trace(machine->session, Trace::add, &trace), ASTRA_OK);
  EXPECT_OK(machine->run("add", {described(column), described(row)}, {described(to)}, nullptr, ASTRA_CALL_ALLOW_COPY));
  for (size_t i = 0; i < 30; i++) {
    size_t k = i / 6;
    EXPECT_EQ(z[i], i % 6 == 3 ? x[k * 5 + 2] + x[5 + 4 - k] : -1) << i;
  }
  EXPECT_EQ(trace.names, (std::vector<std::string>{"gather x", "gather y", "add", "scatter z"}));

  // A row is row-major: it is used where it is.
  trace.names.clear();
  EXPECT_OK(astra_view_index(&row, &all, 0, 3, &diag));
  EXPECT_EQ(astra_view_is_row_major(&row), 1);
  EXPECT_EQ(astra_view_is_row_major(&column), 0);
  EXPECT_OK(machine->run("add", {described(row), described(row)}, {tensor(z, {5})}));
  EXPECT_EQ(z[4], 38);
  EXPECT_EQ(trace.names, (std::vector<std::string>{"add"}));
}

TEST_P(StridedCalls, WriteNoElementTwice) {
  std::vector<float> x(4), z(4);
  astra_view to = viewOf(z, {1});
  int64_t four[] = {4};
  EXPECT_OK(astra_view_expand(&to, &to, 1, four, &diag));
  EXPECT_FAIL(ASTRA_OVERLAP, "output z cannot be written: axis 0 has stride 0",
              machine->run("add", {tensor(x, {4}), tensor(x, {4})}, {described(to)}, nullptr, ASTRA_CALL_ALLOW_COPY));
  astra_view even = viewOf(z, {4});
  EXPECT_OK(astra_view_slice(&even, &even, 0, 0, 2, 2, &diag));
  EXPECT_FAIL(ASTRA_OVERLAP, "overlaps another tensor",
              machine->run("add", {tensor(z, {2}), tensor(x, {2})}, {described(even)}, nullptr, ASTRA_CALL_ALLOW_COPY));
  // What it reads lies between what it writes.
  astra_view odd = viewOf(z, {4});
  EXPECT_OK(astra_view_slice(&odd, &odd, 0, 1, 2, 2, &diag));
  z = {1, 2, 3, 4};
  EXPECT_OK(machine->run("add", {described(odd), described(odd)}, {described(even)}, nullptr, ASTRA_CALL_ALLOW_COPY));
  EXPECT_EQ(z, (std::vector<float>{4, 2, 8, 4}));
  std::vector<float> c(4);
  Tensor t = tensor(c, {4});
  t.t.flags = ASTRA_TENSOR_CONJUGATE;
  EXPECT_FAIL(ASTRA_WRONG_DTYPE, "only complex types", machine->run("add", {t, t}, {tensor(z, {4})}));
}

TEST_P(StridedCalls, GiveAsManyElementsAsThereAre) {
  // "compact" keeps some elements: k of n. Those are spread, and nothing behind them is touched.
  std::vector<float> x = {1, -1, 2, -2, 3, -3}, dense(6), total(1), spread(18, -7);
  Shape kept;
  EXPECT_OK(machine->run("compact", {tensor(x, {6})}, {tensor(dense, {6}), tensor(total, {})}, &kept));
  astra_view to = viewOf(spread, {6, 3});
  EXPECT_OK(astra_view_index(&to, &to, 1, 1, &diag));
  Shape again;
  EXPECT_OK(
      machine->run("compact", {tensor(x, {6})}, {described(to), tensor(total, {})}, &again, ASTRA_CALL_ALLOW_COPY));
  EXPECT_EQ(kept, again);
  ASSERT_GT(kept[0], 0);
  ASSERT_LT(kept[0], 6);
  for (size_t i = 0; i < 18; i++) EXPECT_EQ(spread[i], i % 3 == 1 && int64_t(i / 3) < kept[0] ? dense[i / 3] : -7) << i;
}
INSTANTIATE_TEST_SUITE_P(, StridedCalls, testing::Values("cpu", "cuda:0"));

//===- Parts ----------------------------------------------------------------===//

/// Eight threads, each with its stream, write parts of one array at once: columns, tiles, interleaved columns. "apply"
/// gives [n, 8]: so large is each part.
TEST(PartsOfWorkers, AreWrittenAtOnce) {
  constexpr size_t kStreams = 8, kElements = 1024;
  Machine machine(3);
  Diag &diag = machine.diag;
  astra_buffer *owned = nullptr;
  int64_t wide[] = {16, 64}, square[] = {32, 32}, tile[] = {16, 8};
  astra_view columns = ASTRA_INIT(astra_view), tiles = columns;
  EXPECT_OK(astra_view_init_pool(&columns, &owned, machine.pool, ASTRA_F32, 2, wide, &diag));
  EXPECT_OK(astra_view_reshape(&tiles, &columns, 2, square, &diag));
  auto *values = static_cast<float *>(astra_buffer_data(owned));
  std::vector<std::vector<astra_view>> kinds(3, std::vector<astra_view>(kStreams, ASTRA_INIT(astra_view)));
  for (size_t i = 0; i < kStreams; i++) {
    int64_t place[] = {int64_t(i / 4), int64_t(i % 4)};
    EXPECT_OK(astra_view_part(&kinds[0][i], &columns, 1, int64_t(i), kStreams, &diag));
    EXPECT_OK(astra_view_tile(&kinds[1][i], &tiles, tile, place, &diag));
    EXPECT_OK(astra_view_interleaved(&kinds[2][i], &columns, 1, int64_t(i), kStreams, &diag));
  }
  struct Writer {
    Session session;
    Stream stream;
    std::vector<float> x;
    std::string failure;
    void write(Machine &machine, const astra_view &to) {
      Diag diag;
      Promise promise;
      astra_tensor t = ASTRA_INIT(astra_tensor);
      Tensor in = tensor(x, {16, 3});
      astra_call call = ASTRA_INIT(astra_call);
      if (astra_view_describe(&to, &t, &diag) || astra_bundle_find_entry(machine.bundle, "apply", &call.entry, &diag)) {
        failure = diag.text;
        return;
      }
      call.inputs = &in, call.num_inputs = 1, call.outputs = &t, call.num_outputs = 1,
      call.flags = ASTRA_CALL_ALLOW_COPY;
      if (astra_session_submit(session, stream, &call, promise.out(), &diag) || astra_promise_wait(promise, &diag))
        failure = diag.text;
    }
  };
  std::vector<Writer> writers(kStreams);
  for (size_t i = 0; i < kStreams; i++) {
    EXPECT_OK(astra_stream_init(writers[i].stream.out(), machine.device, &diag));
    writers[i].session = machine.makeSession();
    for (size_t k = 0; k < 48; k++) writers[i].x.push_back(float(i * 100 + k));
  }
  // What one after another gives, by kind and by the number of places that the writers are moved on.
  std::vector<std::vector<float>> expected;
  for (size_t c = 0; c < 3 * kStreams; c++) {
    memset(values, 0, kElements * sizeof(float));
    for (size_t i = 0; i < kStreams; i++) writers[i].write(machine, kinds[c % 3][(i + c) % kStreams]);
    expected.emplace_back(values, values + kElements);
    for (size_t i = 0; i < kElements; i++) ASSERT_NE(values[i], 0) << "an element that nobody has written";
    memset(values, 0, kElements * sizeof(float));
  }
  int count = rounds(200, 10000), wrong = 0;
  size_t round = 0;
  std::barrier ends(kStreams, [&]() noexcept {
    wrong += memcmp(values, expected[round % (3 * kStreams)].data(), kElements * sizeof(float)) != 0;
    memset(values, 0, kElements * sizeof(float));
    round++;
  });
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kStreams; i++)
    threads.emplace_back([&, i] {
      for (size_t r = 0; r < size_t(count); r++) {
        writers[i].write(machine, kinds[r % 3][(i + r) % kStreams]);
        ends.arrive_and_wait();
      }
    });
  for (auto &t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  for (auto &w : writers) EXPECT_EQ(w.failure, "");
  EXPECT_EQ(round, size_t(count));
  EXPECT_OK(astra_buffer_free(&owned));
}

/// Of two calls in flight, one that would write what the other one does is refused, and one beside it is not.
TEST(PartsOfWorkers, ThatMeetAreRefused) {
  Machine machine(3);
  Diag &diag = machine.diag;
  std::vector<float> array(64), x(8);
  astra_view all = viewOf(array, {8, 8}), column = all, row = all, other = all;
  EXPECT_OK(astra_view_index(&column, &all, 1, 3, &diag));
  EXPECT_OK(astra_view_index(&other, &all, 1, 4, &diag));
  EXPECT_OK(astra_view_index(&row, &all, 0, 5, &diag));
  Stream second;
  EXPECT_OK(astra_stream_init(second.out(), machine.device, &diag));
  Session gate = machine.makeSession(), first = machine.makeSession(), next = machine.makeSession();
  int32_t open = 0;
  std::vector<float> y(1);
  Tensor g{Shape{}, ASTRA_INIT(astra_tensor)};
  g.t.data = &open, g.t.data_bytes = 4, g.t.dtype = ASTRA_I32;
  Promise held, a, b, c;
  EXPECT_OK(machine.submit(gate, machine.stream, "gate", {g}, {tensor(y, {})}, held.out()));
  auto to = [&](const astra_view &v) {
    astra_tensor t = ASTRA_INIT(astra_tensor);
    EXPECT_OK(astra_view_describe(&v, &t, &diag));
    return t;
  };
  auto submit = [&](astra_session *session, astra_stream *stream, const astra_view &v, astra_promise **promise) {
    return machine.submit(session, stream, "add", {tensor(x, {8}), tensor(x, {8})}, {to(v)}, promise, {},
                          ASTRA_CALL_ALLOW_COPY);
  };
  EXPECT_OK(submit(first, machine.stream, column, a.out())); // behind the gate
  EXPECT_FAIL(ASTRA_OVERLAP, "shares memory with a call in flight", submit(next, second, row, b.out()));
  EXPECT_OK(submit(next, second, other, c.out()));
  EXPECT_OK(astra_promise_wait(c, &diag));
  __atomic_store_n(&open, 1, __ATOMIC_RELEASE);
  EXPECT_OK(astra_promise_wait(a, &diag));
  EXPECT_OK(submit(next, second, row, b.out()));
  EXPECT_OK(astra_promise_wait(b, &diag));
}

} // namespace
