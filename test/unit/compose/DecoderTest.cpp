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
  expectValues(b, withKeys(b, tensor(b, {2, 1, 8}, std::vector<double>(16, 0.5)), x, place), {2, 1, 8},
               {0.5, 1, 3, 0.5, 0.5, 2, 4, 0.5, 0.5, 0.5, 0.5, 5, 0.5, 0.5, 0.5, 6});
  expectValues(b, withValues(b, tensor(b, {2, 1, 8}, std::vector<double>(16, 0.5)), x, place), {2, 1, 8},
               {0.5, 0.5, 1, 2, 3, 4, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 5, 6});
  expectValues(b, withTokens(b, tensor(b, {2, 4}, std::vector<double>(8, 0)), tensor(b, {2, 2}, {1, 2, 3, 4}), place),
               {2, 4}, {0, 1, 2, 0, 0, 0, 0, 3});
  expectRefusal(b, withKeys(b, tensor(b, {2, 1, 6}, std::vector<double>(12, 0)), x, place),
                "extents 6 and 8 of the cache and its rows are not equal");
}

TEST_F(Decoder, AttendsAsWithoutACache) {
  constexpr int64_t heads = 4, keyHeads = 2, rows = 5, size = 4, capacity = 8;
  UOpRef q = counted({1, heads, rows, size}, 0.7), k = counted({1, keyHeads, rows, size}, 0.9),
         v = counted({1, keyHeads, rows, size}, 1.3);
  CachePlace place = cachePlace(b, integers({0}), integers({double(rows)}), b.idx(rows), capacity);
  UOpRef none = tensor(b, {1, keyHeads, capacity * size}, std::vector<double>(keyHeads * capacity * size, 0));
  UOpRef keys = withKeys(b, none, k, place), values = withValues(b, none, v, place);
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

TEST_F(Decoder, RoutesToTheGreatest) {
  std::vector<double> logs = {std::log(1.0), std::log(4.0), std::log(3.0), std::log(2.0)};
  std::vector<double> equal(4, 0), both = logs;
  both.insert(both.end(), equal.begin(), equal.end());
  UOpRef scores = tensor(b, {2, 4}, both);
  expectValues(b, routingWeights(b, scores, {2, false}), {2, 4}, {0, 0.4, 0.3, 0, 0.25, 0.25, 0, 0});
  expectValues(b, routingWeights(b, scores, {2, true}), {2, 4}, {0, 4 / 7.0, 3 / 7.0, 0, 0.5, 0.5, 0, 0});
  UOpRef y = tensor(b, {2, 2, 1}, {1, 2, 10, 20});
  expectValues(b, mixedExperts(b, tensor(b, {2, 2}, {1, 0, 0.5, 0.25}), y), {2, 1}, {1, 6});
}

TEST_F(Decoder, TablesOfRotations) {
  RotaryTables t = rotaryTables(b, {1, 0.5}, 2, 2);
  expectValues(b, t.cosines, {2, 2}, {2, 2, 2 * std::cos(1.0), 2 * std::cos(0.5)});
  expectValues(b, t.sines, {2, 2}, {0, 0, 2 * std::sin(1.0), 2 * std::sin(0.5)});
}

} // namespace
} // namespace astra::compose
