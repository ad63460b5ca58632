//===- DecoderTest.cpp: caches of keys and values, routing ------------------===//
// Keeps:    expected numbers were worked out by hand; attention is compared with that of Attention.h.
#include "astra/Compose/Decoder.h"
#include "Compose.h"
#include "astra/Compose/Attention.h"

namespace astra::compose {
namespace {

class Decoder : public testing::Test {
protected:
  Context c;
  Composer b{c};
  UOpRef integers(std::vector<double> v) { return tensor(b, {int64_t(v.size())}, v, DType::I32); }
  UOpRef counted(std::vector<int64_t> dims, double step) {
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    std::vector<double> v;
    for (int64_t i = 0; i < count; ++i) v.push_back(std::sin(step * double(i + 1)));
    return tensor(b, dims, v);
  }
};

TEST_F(Decoder, PutsRowsWhereTheyBelong) {
  // Two sequences, with 1 and 3 rows before, of a capacity of 4; of two new rows the second keeps one.
  CachePlace place = cachePlace(b, integers({1, 3}), integers({2, 1}), b.idx(2), 4);
  expectValues(b, place.positions, {2, 2}, {1, 2, 3, 4});
  expectValues(b, place.kept, {2, 2}, {1, 2, 3, -1});
  UOpRef x = tensor(b, {2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  RowCache half{tensor(b, {2, 1, 8}, std::vector<double>(16, 0.5)), nullptr};
  expectValues(b, withKeys(b, half, x, place).elements, {2, 1, 8},
               {0.5, 1, 3, 0.5, 0.5, 2, 4, 0.5, 0.5, 0.5, 0.5, 5, 0.5, 0.5, 0.5, 6});
  expectValues(b, withValues(b, half, x, place).elements, {2, 1, 8},
               {0.5, 0.5, 1, 2, 3, 4, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 5, 6});
  expectValues(b, withTokens(b, tensor(b, {2, 4}, std::vector<double>(8, 0)), tensor(b, {2, 2}, {1, 2, 3, 4}), place),
               {2, 4}, {0, 1, 2, 0, 0, 0, 0, 3});
  expectRefusal(b, withKeys(b, {tensor(b, {2, 1, 6}, std::vector<double>(12, 0)), nullptr}, x, place).elements,
                "extents 6 and 8 of the cache and its rows are not equal");
}

TEST_F(Decoder, AttendsAsWithoutACache) {
  constexpr int64_t heads = 4, keyHeads = 2, rows = 5, size = 4, capacity = 8;
  UOpRef q = counted({1, heads, rows, size}, 0.7), k = counted({1, keyHeads, rows, size}, 0.9),
         v = counted({1, keyHeads, rows, size}, 1.3);
  CachePlace place = cachePlace(b, integers({0}), integers({double(rows)}), b.idx(rows), capacity);
  UOpRef none = tensor(b, {1, keyHeads, capacity * size}, std::vector<double>(keyHeads * capacity * size, 0));
  RowCache keys = withKeys(b, {none, nullptr}, k, place), values = withValues(b, {none, nullptr}, v, place);
  for (auto [softcap, window] : {std::pair{0.0, int64_t(-1)}, {2.0, int64_t(-1)}, {0.0, int64_t(3)}}) {
    AttentionOperands operands;
    operands.query = q, operands.key = k, operands.value = v;
    AttentionOptions options;
    options.scale = 0.5, options.causal = true, options.softcap = softcap;
    options.left = window < 0 ? -1 : window - 1;
    UOpRef plain = attention(b, operands, options).result;
    plain = b.reshape(b.permute(plain, {0, 2, 1, 3}), {b.idx(rows), b.idx(heads * size)});
    UOpRef cached = cacheAttention(b, q, keys, values, place, {0.5, softcap, window});
    expectValues(b, cached, {rows, heads * size}, valuesOf(b, plain));
  }
}

TEST_F(Decoder, SkipsKeysThatNoWindowSees) {
  // 700 rows, of which a window of 5 sees those from 694 on: alone its call begins at 512. Beside a short sequence it
  // begins at 0, and the numbers are the same bits.
  constexpr int64_t size = 2, capacity = 1100, window = 5;
  UOpRef all = counted({1, 1, capacity * size}, 0.3), q = counted({1, 1, 2, size}, 0.7);
  auto attended = [&](std::vector<double> lengths) {
    int64_t batch = int64_t(lengths.size());
    CachePlace place =
        cachePlace(b, integers(lengths), integers(std::vector<double>(lengths.size(), 2)), b.idx(2), capacity);
    auto each = [&](UOpRef x, llvm::ArrayRef<UOpRef> dims) {
      Dims wide(dims.begin(), dims.end());
      wide[0] = b.idx(batch);
      return b.broadcastTo(x, wide);
    };
    RowCache cache{each(all, all->shape), nullptr};
    UOpRef y = cacheAttention(b, each(q, q->shape), cache, cache, place, {0.5, 0, window});
    std::vector<double> values = valuesOf(b, y);
    values.resize(2 * size);
    return values;
  };
  EXPECT_EQ(attended({698}), attended({698, 1}));
  EXPECT_EQ(attended({509}), attended({509, 1}));
  EXPECT_EQ(attended({516}), attended({516, 1})); // the first whose keys all lie behind 512
}

TEST_F(Decoder, KeepsRowsAsBytes) {
  CachePlace place = cachePlace(b, integers({1}), integers({2}), b.idx(2), 3);
  RowCache none{tensor(b, {1, 1, 6}, std::vector<double>(6, 0), DType::I8), tensor(b, {1, 1, 3}, {1, 1, 1})};
  // Scales of 2, and of 0: a row of zeros.
  UOpRef x = tensor(b, {1, 1, 2, 2}, {-254, 3, 0, 0});
  RowCache keys = withKeys(b, none, x, place), values = withValues(b, none, x, place);
  expectValues(b, keys.elements, {1, 1, 6}, {0, -127, 0, 0, 2, 0}); // 1.5 is rounded to even
  expectValues(b, values.elements, {1, 1, 6}, {0, 0, -127, 2, 0, 0});
  expectValues(b, keys.scales, {1, 1, 3}, {1, 2, 0});
  expectValues(b, values.scales, {1, 1, 3}, {1, 2, 0});
}

TEST_F(Decoder, AttendsToBytes) {
  // Rows of multiples of max / 127 are kept without loss, and both caches give the same.
  constexpr int64_t rows = 3, size = 2;
  CachePlace place = cachePlace(b, integers({0}), integers({double(rows)}), b.idx(rows), rows);
  UOpRef q = counted({1, 1, rows, size}, 0.7), k = tensor(b, {1, 1, rows, size}, {127, -3, 254, 4, 1, 63.5}),
         v = tensor(b, {1, 1, rows, size}, {12.7, 0, -127, 64, 381, -9});
  RowCache wide{tensor(b, {1, 1, rows * size}, std::vector<double>(rows * size, 0)), nullptr};
  RowCache narrow{tensor(b, {1, 1, rows * size}, std::vector<double>(rows * size, 0), DType::I8),
                  tensor(b, {1, 1, rows}, std::vector<double>(rows, 0))};
  auto attended = [&](const RowCache &cache) {
    return cacheAttention(b, q, withKeys(b, cache, k, place), withValues(b, cache, v, place), place, {0.01, 0, -1});
  };
  expectValues(b, attended(narrow), {rows, size}, valuesOf(b, attended(wide)));
}

TEST_F(Decoder, RoutesToTheGreatest) {
  std::vector<double> logs = {std::log(1.0), std::log(4.0), std::log(3.0), std::log(2.0)};
  std::vector<double> equal(4, 0), both = logs;
  both.insert(both.end(), equal.begin(), equal.end());
  UOpRef scores = tensor(b, {2, 4}, both);
  Routes r = routes(b, scores, {2, false});
  expectValues(b, r.weights, {2, 2}, {0.4, 0.3, 0.25, 0.25});
  expectValues(b, r.counts, {4}, {1, 2, 1, 0}); // the first token has the experts 1 and 2, the second 0 and 1
  expectValues(b, r.begins, {4}, {0, 1, 3, 4});
  expectValues(b, r.slots, {2, 2}, {1, 3, 0, 2});
  expectValues(b, r.tokens, {4}, {1, 0, 1, 0});
  expectValues(b, routes(b, scores, {2, true}).weights, {2, 2}, {4 / 7.0, 3 / 7.0, 0.5, 0.5});
  UOpRef x = tensor(b, {2, 1}, {1, 10});
  auto expert = [&](UOpRef rows, int64_t e) { return b.bin(Op::Add, rows, double(e)); };
  expectValues(b, mixedExperts(b, x, r, expert), {2, 1}, {0.4 * 2 + 0.3 * 3, 0.25 * 10 + 0.25 * 11});
  // NaNs go to the first experts.
  UOpRef nans = tensor(b, {1, 4}, std::vector<double>(4, NAN));
  expectValues(b, routes(b, nans, {2, false}).counts, {4}, {1, 1, 0, 0});
}

TEST_F(Decoder, TablesOfRotations) {
  RotaryTables t = rotaryTables(b, {1, 0.5}, 2, 2);
  expectValues(b, t.cosines, {2, 2}, {2, 2, 2 * std::cos(1.0), 2 * std::cos(0.5)});
  expectValues(b, t.sines, {2, 2}, {0, 0, 2 * std::sin(1.0), 2 * std::sin(0.5)});
}

} // namespace
} // namespace astra::compose
