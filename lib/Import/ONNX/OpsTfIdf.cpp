//===- OpsTfIdf.cpp: n-grams counted in sequences of integers --------------===//
// Takes:    TfIdfVectorizer with a pool of integers.
// Gives:    for each length of an n-gram and each skip distance, comparisons of shifted rows with the pool, added up
//           along the row as exact integers; one scatter to the columns of the output.
// Keeps:    n-grams of length 1 counted once, whatever the skips.
// Does not: read strings.
#include "OpTable.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"
#include <cstring>
#include <set>

namespace astra::onnx {

namespace {

/// The n-grams of one length: tokens[k] is their k-th tokens.
struct Grams {
  int64_t length;
  std::vector<std::vector<int64_t>> tokens;
  std::vector<int64_t> columns; // of the output
};

struct Vectorizer {
  int64_t skips, columns = 0;
  std::vector<Grams> grams; // those that are counted, in the order of the pool
  Ints indexes;             // of all n-grams
};

/// The slices of the pool by length; those outside of the lengths that are asked for are passed over.
std::optional<Vectorizer> readVectorizer(Node &n) {
  Vectorizer v;
  Ints pool = n.intsAttr("pool_int64s"), counts = n.intsAttr("ngram_counts");
  int64_t least = n.intAttr("min_gram_length", 0), most = n.intAttr("max_gram_length", 0);
  v.skips = n.intAttr("max_skip_count", -1);
  v.indexes = n.intsAttr("ngram_indexes");
  if (n.hasAttr("pool_strings")) n.unsupported("n-grams of strings (attribute 'pool_strings') are not supported");
  if (least < 1 || most < least)
    n.fail("min_gram_length " + llvm::Twine(least) + " and max_gram_length " + llvm::Twine(most) +
           " are not lengths of n-grams");
  if (v.skips < 0) n.fail("attribute 'max_skip_count' is missing or negative");
  if (pool.empty() || counts.empty() || v.indexes.empty())
    n.fail("attribute 'pool_int64s', 'ngram_counts' or 'ngram_indexes' is missing or empty");
  for (int64_t column : v.indexes) {
    if (column < 0 || column >= int64_t(1) << 31)
      n.fail("attribute 'ngram_indexes' holds " + llvm::Twine(column) + ", expected 0 up to 2^31");
    else
      v.columns = std::max(v.columns, column + 1);
  }
  int64_t number = 0; // of the n-gram in the pool
  for (size_t i = 0; i < counts.size() && !n.failed(); ++i) {
    int64_t length = int64_t(i) + 1, begin = counts[i], end = int64_t(pool.size());
    if (i + 1 < counts.size()) end = counts[i + 1];
    if (begin < 0 || end < begin || end > int64_t(pool.size()) || (end - begin) % length)
      n.fail("attribute 'ngram_counts' gives n-grams of length " + llvm::Twine(length) + " the elements " +
             llvm::Twine(begin) + " up to " + llvm::Twine(end) + " of a pool of " + llvm::Twine(pool.size()));
    int64_t size = n.failed() ? 0 : (end - begin) / length;
    if (number + size > int64_t(v.indexes.size()))
      n.fail("attribute 'ngram_indexes' has " + llvm::Twine(v.indexes.size()) + " elements, the pool more n-grams");
    if (n.failed()) break;
    if (size && length >= least && length <= most) {
      Grams g{length, std::vector<std::vector<int64_t>>(length), {}};
      std::set<llvm::ArrayRef<int64_t>, bool (*)(llvm::ArrayRef<int64_t>, llvm::ArrayRef<int64_t>)> seen(
          [](llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
            return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
          });
      for (int64_t j = 0; j < size; ++j) {
        llvm::ArrayRef<int64_t> gram = llvm::ArrayRef<int64_t>(pool).slice(begin + j * length, length);
        if (!seen.insert(gram).second)
          n.fail("attribute 'pool_int64s' has an n-gram of length " + llvm::Twine(length) + " twice");
        for (int64_t k = 0; k < length; ++k) g.tokens[k].push_back(gram[k]);
        g.columns.push_back(v.indexes[number + j]);
      }
      v.grams.push_back(std::move(g));
    }
    number += size;
  }
  if (!n.failed() && number != int64_t(v.indexes.size()))
    n.fail("attribute 'ngram_indexes' has " + llvm::Twine(v.indexes.size()) + " elements, the pool " +
           llvm::Twine(number) + " n-grams");
  if (n.failed()) return std::nullopt;
  return v;
}

UOpRef integers(Node &n, llvm::ArrayRef<int64_t> values) {
  Payload p{DType::I64, {int64_t(values.size())}, {}};
  p.bytes.resize(values.size() * 8);
  std::memcpy(p.bytes.data(), values.data(), p.bytes.size());
  return n.parameter(std::move(p));
}

/// How often each n-gram of one length stands in each row of x [rows, tokens] with `distance` from a token to the next:
/// i64 [rows, n-grams].
UOpRef occurrences(Node &n, UOpRef x, const Grams &g, llvm::ArrayRef<UOpRef> tokens, int64_t distance) {
  UOpRef rows = x->shape[0], length = x->shape[1], zero = n.c.index(0);
  UOpRef reach = n.c.index(distance * (g.length - 1)), places = idxSub(n.c, length, reach);
  bool fits = places->lo >= 0;
  if (!fits) { // places without room are looked at beyond the row, and dropped
    x = n.pad(x, {zero, zero}, {zero, reach}, 0);
    places = length;
    if (n.failed()) return nullptr;
  }
  UOpRef found = nullptr;
  for (int64_t k = 0; k < g.length; ++k) {
    UOpRef seen = n.shrink(x, {zero, n.c.index(k * distance)}, {rows, places});
    UOpRef same = n.bin(Op::Eq, n.unsqueeze(seen, {2}), tokens[k]);
    found = found ? n.bin(Op::And, found, same) : same;
  }
  if (!fits) {
    UOpRef last = n.bin(Op::Add, n.iota(DType::I64, {places, n.c.index(1)}, 0), double(distance * (g.length - 1)));
    found = n.bin(Op::And, found, n.bin(Op::Lt, last, n.fromIndex(length, DType::I64)));
  }
  return n.squeeze(n.reduce(ReduceKind::Sum, n.cast(found, DType::I64), {1}), {1});
}

void tfIdf(Node &n) {
  std::string mode = n.stringAttr("mode", "");
  auto weights = n.floatsAttr("weights");
  std::optional<Vectorizer> v = readVectorizer(n);
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    n.fail("attribute 'mode' is '" + mode + "', expected TF, IDF or TFIDF");
  UOpRef x = n.cast(n.in(0), DType::I64);
  if (!n.requireRank(x, 0, 2) || n.failed()) return;
  bool single = x->rank() < 2;
  if (!weights.empty() && weights.size() != v->indexes.size())
    n.fail("attribute 'weights' has " + llvm::Twine(weights.size()) + " elements, 'ngram_indexes' " +
           llvm::Twine(v->indexes.size()));
  if (single) x = n.reshape(x, {n.c.index(1), x->rank() ? x->shape[0] : n.c.index(1)});
  if (n.failed()) return;
  UOpRef rows = x->shape[0], width = n.c.index(v->columns), zero = n.b.litInt(DType::I64, 0);
  UOpRef counts = n.broadcastTo(zero, {rows, width});
  constexpr int64_t mostWork = 1024;
  int64_t work = 0;
  for (const Grams &g : v->grams) {
    llvm::SmallVector<UOpRef, 4> tokens;
    for (const std::vector<int64_t> &t : g.tokens) tokens.push_back(integers(n, t));
    // A distance at which no row has room for the n-gram, and every larger one, finds nothing.
    int64_t room = g.length == 1 ? (x->shape[1]->hi > 0) : (x->shape[1]->hi - 1) / (g.length - 1);
    int64_t distances = std::min(room, g.length == 1 ? 1 : std::min(v->skips, int64_t(1) << 40) + 1);
    if (distances > mostWork || (work += distances * g.length) > mostWork)
      n.unsupported("a max_skip_count of " + llvm::Twine(v->skips) + " for n-grams of length " + llvm::Twine(g.length) +
                    " is not supported: more than " + llvm::Twine(mostWork) + " comparisons");
    if (n.failed()) return;
    UOpRef sum = nullptr;
    for (int64_t d = 1; d <= distances; ++d) {
      UOpRef found = occurrences(n, x, g, tokens, d);
      sum = sum ? n.bin(Op::Add, sum, found) : found;
    }
    if (!sum) continue;
    UOpRef at = n.broadcastTo(integers(n, g.columns), sum->shape);
    counts = n.make(Op::Scatter, {counts, at, sum}, {1, int64_t(ScatterKind::Add)});
  }
  UOpRef y = n.cast(counts, DType::F32), none = n.b.lit(DType::F32, 0), weight = n.b.lit(DType::F32, 1);
  if (!weights.empty()) {
    std::vector<float> ofColumn(v->columns, 0);
    for (size_t i = 0; i < weights.size(); ++i) ofColumn[v->indexes[i]] = weights[i];
    Payload p{DType::F32, {v->columns}, {}};
    p.bytes.resize(ofColumn.size() * 4);
    std::memcpy(p.bytes.data(), ofColumn.data(), p.bytes.size());
    weight = n.parameter(std::move(p));
  }
  if (mode == "IDF") y = n.select(n.bin(Op::Lt, zero, counts), weight, none);
  if (mode == "TFIDF") y = n.bin(Op::Mul, y, weight);
  n.give(single ? n.squeeze(y, {0}) : y);
}

constexpr Row rows[] = {
    {"TfIdfVectorizer", 9, latest, 1, 1, tfIdf, only(DType::I32) | only(DType::I64), "no strings"},
};

} // namespace

llvm::ArrayRef<Row> tfIdfRows() { return rows; }

} // namespace astra::onnx
