//===- CollectiveTest.cpp: collectives give the same bytes on any number of ranks ---===//
// Takes:    meshes of one to three axes, all operations, dtypes; ranks as threads.
// Checks:   each rank's result against a model that knows shards alone, byte for byte; how many bytes move; that names
//           are read as they should be and wrong ones refused.
#include "FakeGpu.h"
#include "Ranks.h"
#include <atomic>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace astra::ranks;
using Bytes = std::vector<char>;

namespace {

struct Mesh3 {
  std::vector<std::pair<std::string, int>> axes;
  int shards() const {
    int n = 1;
    for (auto &a : axes) n *= a.second;
    return n;
  }
  std::string text() const {
    std::string t;
    for (auto &a : axes) t += (t.empty() ? "" : ",") + a.first + "=" + std::to_string(a.second);
    return t;
  }
};

/// The groups of a mesh over some of its axes, members in order: by coordinates, without the library's arithmetic.
std::vector<std::vector<int>> groupsOf(const Mesh3 &m, const std::vector<bool> &over) {
  std::vector<std::pair<std::vector<int>, std::vector<int>>> groups; // fixed coordinates, shards
  for (int s = 0; s < m.shards(); s++) {
    std::vector<int> at(m.axes.size());
    for (int a = int(m.axes.size()) - 1, rest = s; a >= 0; --a)
      at[a] = rest % m.axes[a].second, rest /= m.axes[a].second;
    std::vector<int> fixed;
    for (size_t a = 0; a < at.size(); a++)
      if (!over[a]) fixed.push_back(at[a]);
    auto found = std::find_if(groups.begin(), groups.end(), [&](auto &g) { return g.first == fixed; });
    if (found == groups.end()) groups.push_back({fixed, {}}), found = groups.end() - 1;
    found->second.push_back(s);
  }
  std::vector<std::vector<int>> result;
  for (auto &g : groups) result.push_back(g.second);
  return result;
}

/// Neighbours are combined, what is left over stays, until one is left.
template <typename T> T pairs(std::vector<T> v, const std::function<T(T, T)> &f) {
  while (v.size() > 1) {
    std::vector<T> next;
    for (size_t i = 0; i + 1 < v.size(); i += 2) next.push_back(f(v[i], v[i + 1]));
    if (v.size() % 2) next.push_back(v.back());
    v = next;
  }
  return v[0];
}

struct Case {
  Mesh3 mesh;
  std::vector<bool> over;
  std::string op, kind;
  int elements;
};

std::string nameOf(const Case &c) {
  std::string over;
  for (size_t a = 0; a < c.over.size(); a++)
    if (c.over[a]) over += (over.empty() ? "" : "+") + c.mesh.axes[a].first;
  return "astra.mesh." + c.op + "/" + c.mesh.text() + "/" + over + "/" + c.kind;
}

template <typename T> struct DTypeOf;
template <> struct DTypeOf<float> {
  static constexpr int value = ASTRA_F32;
};
template <> struct DTypeOf<double> {
  static constexpr int value = ASTRA_F64;
};
template <> struct DTypeOf<int32_t> {
  static constexpr int value = ASTRA_I32;
};
template <> struct DTypeOf<uint8_t> {
  static constexpr int value = ASTRA_U8;
};

template <typename T> T combineModel(const std::string &kind, T a, T b) {
  if (kind.starts_with("sum")) return T(a + b);
  if (kind.starts_with("prod")) return T(a * b);
  return kind.starts_with("max") ? std::max(a, b) : std::min(a, b);
}

/// Results of all shards by the model: [shard][elements].
template <typename T> std::vector<std::vector<T>> model(const Case &c, const std::vector<std::vector<T>> &x, int G) {
  std::vector<std::vector<T>> y(c.mesh.shards());
  for (auto &group : groupsOf(c.mesh, c.over))
    for (int p = 0; p < G; p++) {
      auto &out = y[group[p]];
      auto folded = [&](int e) {
        std::vector<T> parts;
        for (int s : group) parts.push_back(x[s][e]);
        return pairs<T>(parts, [&](T a, T b) { return combineModel<T>(c.kind, a, b); });
      };
      if (c.op == "all_reduce")
        for (int e = 0; e < c.elements; e++) out.push_back(folded(e));
      if (c.op == "reduce_scatter")
        for (int e = 0; e < c.elements; e++) out.push_back(folded(p * c.elements + e));
      if (c.op == "all_gather")
        for (int s : group) out.insert(out.end(), x[s].begin(), x[s].end());
      if (c.op == "all_to_all")
        for (int s : group) out.insert(out.end(), x[s].begin() + p * c.elements, x[s].begin() + (p + 1) * c.elements);
      if (c.op == "permute") {
        int from = p - std::stoi(c.kind);
        if (c.kind.ends_with("wrap")) from = ((from % G) + G) % G;
        if (from < 0 || from >= G)
          out.assign(c.elements, T(0));
        else
          out = x[group[from]];
      }
    }
  return y;
}

/// Runs a function as each of R ranks.
void onRanks(int R, const std::function<void(astra_ranks *, int)> &fn, int timeout = 20000) {
  std::vector<astra_ranks *> ranks(R);
  astra_ranks_options o = ASTRA_INIT(astra_ranks_options);
  o.timeout = timeout;
  astra_diag diag = ASTRA_INIT(astra_diag);
  ASSERT_EQ(astra_ranks_init_threads(ranks.data(), R, &o, &diag), ASTRA_OK) << diag.text;
  std::vector<std::thread> threads;
  for (int r = 0; r < R; r++) threads.emplace_back([&, r] { fn(ranks[r], r); });
  for (auto &t : threads) t.join();
  for (auto &r : ranks) astra_ranks_free(&r);
}

astra_tensor tensor(int dtype, const void *data, const std::vector<int64_t> &shape, int width) {
  astra_tensor t = ASTRA_INIT(astra_tensor);
  t.data = const_cast<void *>(data), t.dtype = dtype, t.ndim = int32_t(shape.size()), t.shape = shape.data();
  t.data_bytes = uint64_t(width);
  for (int64_t n : shape) t.data_bytes *= uint64_t(n);
  return t;
}

template <typename T> void check(const Case &c, std::mt19937 &random) {
  int M = c.mesh.shards(), G = 1;
  for (size_t a = 0; a < c.over.size(); a++) G *= c.over[a] ? c.mesh.axes[a].second : 1;
  bool one = c.kind.ends_with("one"), in = c.op == "all_to_all" || c.op == "reduce_scatter",
       out = c.op == "all_to_all" || c.op == "all_gather";
  std::vector<std::vector<T>> x(M);
  for (auto &shard : x)
    for (int i = 0; i < c.elements * (in ? G : 1); i++) {
      // Of mixed magnitudes: the order of a sum shows.
      double v = std::ldexp(double(random() % 2001) - 1000, std::is_floating_point_v<T> ? int(random() % 40) - 20 : 0);
      shard.push_back(T(int64_t(v) == v || std::is_floating_point_v<T> ? v : 1));
    }
  auto want = model(c, x, G);
  for (int R = 1; R <= M; R++) {
    if (M % R) continue;
    int L = M / R;
    std::vector<std::string> problems(R);
    onRanks(R, [&](astra_ranks *ranks, int r) {
      Collective call;
      astra_diag diag = ASTRA_INIT(astra_diag);
      if (readName(&call, nameOf(c).c_str(), &diag)) return void(problems[r] = diag.text);
      call.ranks = ranks;
      std::vector<T> given, got, expected;
      for (int i = 0; i < L; i++) given.insert(given.end(), x[r * L + i].begin(), x[r * L + i].end());
      for (int i = 0; i < (one ? 1 : L); i++)
        expected.insert(expected.end(), want[r * L + i].begin(), want[r * L + i].end());
      got.resize(expected.size(), T(77));
      std::vector<int64_t> inShape{L}, outShape;
      if (!one) outShape.push_back(L);
      if (in) inShape.push_back(G);
      if (out) outShape.push_back(G);
      inShape.push_back(c.elements), outShape.push_back(c.elements);
      astra_tensor a = tensor(DTypeOf<T>::value, given.data(), inShape, sizeof(T));
      astra_tensor b = tensor(DTypeOf<T>::value, got.data(), outShape, sizeof(T));
      for (int again = 0; again < 2; again++)
        if (astra::ranks::call(&call, &a, 1, &b, 1, &diag)) return void(problems[r] = diag.text);
      if (memcmp(got.data(), expected.data(), got.size() * sizeof(T))) problems[r] = "other bytes";
      // The same in a GPU's memory, where nothing is done at once.
      std::fill(got.begin(), got.end(), T(77));
      FakeGpu gpu(ranks);
      a.data = FakeGpu::there(given.data()), b.data = FakeGpu::there(got.data());
      for (int again = 0; again < 2; again++)
        if (callOnGpu(&call, &gpu, &a, 1, &b, 1, &diag)) return void(problems[r] = diag.text);
      if (settleOnGpu(ranks, &gpu, &diag)) return void(problems[r] = diag.text);
      if (memcmp(got.data(), expected.data(), got.size() * sizeof(T))) problems[r] = "other bytes on a GPU";
      if (c.op.find("reduce") == std::string::npos && gpu.kernels) problems[r] = "kernels where nothing is folded";
    });
    for (int r = 0; r < R; r++) EXPECT_EQ(problems[r], "") << nameOf(c) << ", rank " << r << " of " << R;
  }
}

const std::vector<Mesh3> meshes = {{{{"data", 8}}},
                                   {{{"data", 4}, {"model", 2}}},
                                   {{{"data", 3}, {"model", 2}}},
                                   {{{"a", 2}, {"b", 3}, {"c", 2}}},
                                   {{{"data", 7}}},
                                   {{{"data", 1}}}};

std::vector<std::vector<bool>> choices(size_t axes) {
  std::vector<std::vector<bool>> all;
  for (unsigned bits = 1; bits < 1u << axes; bits++) {
    std::vector<bool> over;
    for (size_t a = 0; a < axes; a++) over.push_back(bits >> a & 1);
    all.push_back(over);
  }
  return all;
}

} // namespace

TEST(Collectives, GiveTheSameBytesOnAnyNumberOfRanks) {
  std::mt19937 random(7);
  for (const Mesh3 &m : meshes)
    for (auto &over : choices(m.axes.size())) {
      bool all = std::all_of(over.begin(), over.end(), [](bool b) { return b; });
      for (int n : {1, 37, 6000}) { // the last: a sum in pieces
        check<float>({m, over, "all_reduce", "sum", n}, random);
        check<float>({m, over, "reduce_scatter", "sum", n}, random);
        check<float>({m, over, "all_gather", "", n}, random);
        check<float>({m, over, "all_to_all", "", n}, random);
        check<float>({m, over, "permute", "+1", n}, random);
        check<float>({m, over, "permute", "-2.wrap", n}, random);
        if (all) check<float>({m, over, "all_reduce", "sum.one", n}, random);
        if (all) check<float>({m, over, "all_gather", "one", n}, random);
      }
    }
}

TEST(Collectives, FoldAllKindsAndTypes) {
  std::mt19937 random(8);
  Mesh3 m{{{"data", 6}}};
  for (const char *kind : {"sum", "prod", "max", "min"}) {
    check<float>({m, {true}, "all_reduce", kind, 50}, random);
    check<double>({m, {true}, "all_reduce", kind, 5000}, random);
    check<int32_t>({m, {true}, "reduce_scatter", kind, 50}, random);
    check<uint8_t>({m, {true}, "all_reduce", kind, 50}, random);
  }
}

/// A bucket: each tensor as if it were alone, at the bytes of a ring.
TEST(Collectives, OfSeveralTensorsGiveWhatEachGives) {
  constexpr int M = 8;
  struct Of {
    int dtype, width;
    int64_t n;
  };
  const std::vector<Of> items{{ASTRA_F32, 4, 37}, {ASTRA_F64, 8, 3},    {ASTRA_F32, 4, 300001}, {ASTRA_F32, 4, 0},
                              {ASTRA_I8, 1, 5},   {ASTRA_F32, 4, 5000}, {ASTRA_F64, 8, 40001}};
  for (std::string name :
       {"all_reduce/data=8/data/sum.one", "all_reduce/data=4,model=2/data/sum",
        "reduce_scatter/data=4,model=2/model/sum", "all_gather/data=8/data/one", "all_gather/data=4,model=2/model/",
        "all_to_all/data=8/data/", "permute/data=4,model=2/data/+1"})
    for (int R : {1, 2, 4, 8}) {
      std::vector<std::string> problems(R);
      std::atomic<uint64_t> sentAlone = 0, sentTogether = 0;
      onRanks(R, [&](astra_ranks *ranks, int r) {
        Collective c;
        if (readName(&c, ("astra.mesh." + name).c_str(), nullptr)) return void(problems[r] = "no name");
        c.ranks = ranks;
        int64_t L = M / R, G = c.group;
        bool in = c.op == Op::AllToAll || c.op == Op::ReduceScatter,
             out = c.op == Op::AllToAll || c.op == Op::AllGather;
        std::vector<std::vector<char>> x, alone, together;
        std::vector<std::vector<int64_t>> shapes;
        std::vector<astra_tensor> given, each, all;
        for (const Of &o : items) {
          std::vector<int64_t> from{L}, to;
          if (!c.one) to.push_back(L);
          if (in) from.push_back(G);
          if (out) to.push_back(G);
          from.push_back(o.n), to.push_back(o.n);
          auto count = [](auto &s) { return std::accumulate(s.begin(), s.end(), int64_t(1), std::multiplies<>()); };
          std::mt19937 random(unsigned(r * 100 + o.n));
          std::vector<char> bytes(size_t(count(from) * o.width) + 1);
          for (int64_t i = 0; i < count(from); i++) {
            double v = std::ldexp(double(random() % 2001) - 1000, int(random() % 40) - 20);
            float f = float(v);
            int8_t k = int8_t(random());
            memcpy(&bytes[size_t(i * o.width)],
                   o.width == 8   ? (void *)&v
                   : o.width == 4 ? (void *)&f
                                  : (void *)&k,
                   size_t(o.width));
          }
          x.push_back(std::move(bytes));
          alone.push_back(std::vector<char>(size_t(count(to) * o.width) + 1)), together.push_back(alone.back());
          shapes.push_back(from), shapes.push_back(to);
        }
        for (size_t i = 0; i < items.size(); i++) {
          given.push_back(tensor(items[i].dtype, x[i].data(), shapes[2 * i], items[i].width));
          each.push_back(tensor(items[i].dtype, alone[i].data(), shapes[2 * i + 1], items[i].width));
          all.push_back(tensor(items[i].dtype, together[i].data(), shapes[2 * i + 1], items[i].width));
        }
        astra_diag diag = ASTRA_INIT(astra_diag);
        for (size_t i = 0; i < items.size(); i++)
          if (astra::ranks::call(&c, &given[i], 1, &each[i], 1, &diag)) return void(problems[r] = diag.text);
        astra_ranks_counters before = ASTRA_INIT(astra_ranks_counters), after = before;
        astra_ranks_get_counters(ranks, &before);
        if (astra::ranks::call(&c, given.data(), uint32_t(items.size()), all.data(), uint32_t(items.size()), &diag))
          return void(problems[r] = diag.text);
        astra_ranks_get_counters(ranks, &after);
        sentAlone += before.sent, sentTogether += after.sent - before.sent;
        if (after.collectives != before.collectives + 1) problems[r] = "not one collective";
        if (alone != together) problems[r] = "other bytes";
      });
      for (int r = 0; r < R; r++) EXPECT_EQ(problems[r], "") << name << ", rank " << r << " of " << R;
      EXPECT_LE(sentTogether, sentAlone) << name << ", " << R << " ranks";
    }
}

TEST(Collectives, OnAGpuGoInPiecesToo) {
  // More than a kernel folds at once; the second part begins where no kernel may.
  std::mt19937 random(9);
  check<double>({{{{"data", 2}}}, {true}, "all_reduce", "sum.one", (1 << 20) + 3}, random);
}

TEST(Collectives, OnAGpuKnowTheirPlaces) {
  onRanks(2, [&](astra_ranks *ranks, int r) {
    Collective c;
    ASSERT_EQ(readName(&c, "astra.mesh.index/data=2,model=4/model/", nullptr), ASTRA_OK);
    c.ranks = ranks;
    FakeGpu gpu(ranks);
    std::vector<int64_t> any(4, -1), got(4, -1), shape{4};
    astra_tensor a = tensor(ASTRA_I64, FakeGpu::there(any.data()), shape, 8),
                 b = tensor(ASTRA_I64, FakeGpu::there(got.data()), shape, 8);
    EXPECT_EQ(callOnGpu(&c, &gpu, &a, 1, &b, 1, nullptr), ASTRA_OK);
    EXPECT_EQ(got[0], -1) << "not yet";
    EXPECT_EQ(settleOnGpu(ranks, &gpu, nullptr), ASTRA_OK);
    EXPECT_EQ(got, (std::vector<int64_t>{0, 1, 2, 3})) << r;
    free(c.places);
  });
}

TEST(Fold, HalvesAreRoundedOncePerNode) {
  // All pairs of 600 f16 and bf16 values, beside arithmetic in double: the sum of two is exact there.
  for (int32_t dtype : {ASTRA_F16, ASTRA_BF16}) {
    CombineFn add = combineOf(Kind::Sum, dtype);
    auto wide = [&](uint16_t v) -> double {
      if (dtype == ASTRA_BF16) return std::bit_cast<float>(uint32_t(v) << 16);
      int e = (v >> 10) & 31, m = v & 1023;
      double r = e == 31 ? (m ? NAN : INFINITY) : e ? std::ldexp(1024 + m, e - 25) : std::ldexp(m, -24);
      return v & 0x8000 ? -r : r;
    };
    std::mt19937 random(3);
    std::vector<uint16_t> values;
    for (int i = 0; i < 600; i++) values.push_back(uint16_t(random()));
    values.insert(values.end(), {0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x7bff, 0xfbff, 0x7c00, 0x7f80, 0x7f7f});
    for (uint16_t a : values)
      for (uint16_t b : values) {
        uint16_t got;
        add(&got, &a, &b, 1);
        double exact = wide(a) + wide(b);
        if (std::isnan(exact)) {
          ASSERT_EQ(got, dtype == ASTRA_F16 ? 0x7e00 : 0x7fc0);
          continue;
        }
        // The nearest of the 65,536: not farther than its neighbours; ties have an even last bit.
        double value = wide(got);
        if (std::isinf(value)) {
          double most = wide(dtype == ASTRA_F16 ? 0x7bff : 0x7f7f),
                 step = most - wide(dtype == ASTRA_F16 ? 0x7bfe : 0x7f7e);
          ASSERT_TRUE(std::isinf(exact) || std::abs(exact) >= most + step / 2) << a << " " << b;
          continue;
        }
        double distance = std::abs(value - exact);
        for (int d : {-1, 1}) {
          double other = wide(uint16_t(got + d));
          if (std::isnan(other) || std::isinf(other)) continue;
          double far = std::abs(other - exact);
          ASSERT_TRUE(distance < far || (distance == far && got % 2 == 0)) << a << " + " << b << " = " << got;
        }
      }
  }
}

TEST(Fold, NaNsAreCanonicalAndZerosHaveASign) {
  CombineFn most = combineOf(Kind::Max, ASTRA_F32), least = combineOf(Kind::Min, ASTRA_F32),
            add = combineOf(Kind::Sum, ASTRA_F32);
  auto of = [](CombineFn f, float a, float b) {
    float r;
    f(&r, &a, &b, 1);
    return std::bit_cast<uint32_t>(r);
  };
  EXPECT_EQ(of(add, INFINITY, -INFINITY), 0x7fc00000u);
  EXPECT_EQ(of(add, std::bit_cast<float>(0xffc12345u), 1), 0x7fc00000u);
  EXPECT_EQ(of(most, 1, std::bit_cast<float>(0xffc12345u)), 0x7fc00000u);
  for (auto [a, b] : {std::pair(0.0f, -0.0f), std::pair(-0.0f, 0.0f)}) {
    EXPECT_EQ(of(most, a, b), 0u);
    EXPECT_EQ(of(least, a, b), 0x80000000u);
  }
}

TEST(Collectives, MoveNoMoreThanARing) {
  // One partial a rank: 2 S (R - 1) / R bytes, for a power of two.
  for (int R : {2, 4, 8}) {
    onRanks(R, [&](astra_ranks *ranks, int) {
      Collective c;
      ASSERT_EQ(readName(&c, "astra.mesh.all_reduce/data=8/data/sum.one", nullptr), ASTRA_OK);
      c.ranks = ranks;
      int64_t n = 1 << 16;
      std::vector<float> x(size_t(8 / R * n), 1.0f), y(n);
      std::vector<int64_t> in{8 / R, n}, out{n};
      astra_tensor a = tensor(ASTRA_F32, x.data(), in, 4), b = tensor(ASTRA_F32, y.data(), out, 4);
      ASSERT_EQ(astra::ranks::call(&c, &a, 1, &b, 1, nullptr), ASTRA_OK);
      EXPECT_EQ(y[123], 8.0f);
      astra_ranks_counters counters = ASTRA_INIT(astra_ranks_counters);
      astra_ranks_get_counters(ranks, &counters);
      EXPECT_EQ(counters.collectives, 1u);
      EXPECT_EQ(counters.sent, uint64_t(2 * n * 4 * (R - 1) / R));
      EXPECT_EQ(counters.received, counters.sent);
    });
  }
}

TEST(Names, AreRefusedIfTheyAreNotKnown) {
  Collective c;
  EXPECT_EQ(readName(&c, "astra.mesh.permute/data=4,model=2/model/-1.wrap", nullptr), ASTRA_OK);
  EXPECT_EQ(c.shift, -1);
  EXPECT_TRUE(c.wrap);
  EXPECT_EQ(c.group, 2);
  for (const char *name : {"astra.mesh.",
                           "astra.mesh.sum/data=8/data/sum",
                           "astra.mesh.all_reduce/data=8/data/",
                           "astra.mesh.all_reduce/data=8//sum",
                           "astra.mesh.all_reduce/data=0/data/sum",
                           "astra.mesh.all_reduce/data=-8/data/sum",
                           "astra.mesh.all_reduce/data/data/sum",
                           "astra.mesh.all_reduce/=8/data/sum",
                           "astra.mesh.all_reduce/data=8/model/sum",
                           "astra.mesh.all_reduce/a=2,b=2/b+a/sum",
                           "astra.mesh.all_reduce/a=2,b=2/a+a/sum",
                           "astra.mesh.all_reduce/a=2,b=2/a/sum.one",
                           "astra.mesh.index/a=2/a/one",
                           "astra.mesh.all_reduce/a=999999,b=999999/a/sum",
                           "astra.mesh.permute/a=2/a/1",
                           "astra.mesh.permute/a=2/a/+",
                           "astra.mesh.permute/a=2/a/+1.wrap.wrap",
                           "astra.mesh.all_gather/a=2/a/sum",
                           "astra.mesh.all_reduce/a=2/a/sum/sum",
                           "astra.mesh.all_reduce/a=2,b=2,c=2,d=2,e=2,f=2,g=2,h=2,i=2/a/sum"}) {
    astra_diag diag = ASTRA_INIT(astra_diag);
    EXPECT_EQ(readName(&c, name, &diag), ASTRA_UNKNOWN_NAME) << name;
    EXPECT_NE(std::string(diag.text).find(name), std::string::npos);
  }
}
