//===- OpsTfIdf.cpp: n-grams counted in sequences of integers --------------===//
// Takes:    TfIdfVectorizer with a pool of integers.
// Gives:    the composite of NGrams.h.
// Does not: read strings.
#include "OpTable.h"
#include "astra/Compose/NGrams.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

namespace astra::onnx {

namespace {

using compose::NGramPool;
using compose::NGramScore;

struct Vectorizer {
  NGramPool pool; // of those that are counted, in their order
  Ints indexes;   // of all n-grams
};

/// The slices of the pool by length; those outside of the lengths that are asked for are passed over.
std::optional<Vectorizer> readVectorizer(Node &n) {
  Vectorizer v;
  Ints pool = n.intsAttr("pool_int64s"), counts = n.intsAttr("ngram_counts");
  int64_t least = n.intAttr("min_gram_length", 0), most = n.intAttr("max_gram_length", 0);
  v.pool.skips = n.intAttr("max_skip_count", -1);
  v.indexes = n.intsAttr("ngram_indexes");
  if (n.hasAttr("pool_strings")) n.unsupported("n-grams of strings (attribute 'pool_strings') are not supported");
  if (least < 1 || most < least)
    n.fail("min_gram_length " + llvm::Twine(least) + " and max_gram_length " + llvm::Twine(most) +
           " are not lengths of n-grams");
  if (v.pool.skips < 0) n.fail("attribute 'max_skip_count' is missing or negative");
  if (pool.empty() || counts.empty() || v.indexes.empty())
    n.fail("attribute 'pool_int64s', 'ngram_counts' or 'ngram_indexes' is missing or empty");
  for (int64_t column : v.indexes) {
    if (column < 0 || column >= int64_t(1) << 31)
      n.fail("attribute 'ngram_indexes' holds " + llvm::Twine(column) + ", expected 0 up to 2^31");
    else
      v.pool.columns = std::max(v.pool.columns, column + 1);
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
      NGramPool::OfLength g{length, std::vector<std::vector<int64_t>>(length), {}};
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
      v.pool.grams.push_back(std::move(g));
    }
    number += size;
  }
  if (!n.failed() && number != int64_t(v.indexes.size()))
    n.fail("attribute 'ngram_indexes' has " + llvm::Twine(v.indexes.size()) + " elements, the pool " +
           llvm::Twine(number) + " n-grams");
  if (n.failed()) return std::nullopt;
  return v;
}

void tfIdf(Node &n) {
  constexpr std::pair<const char *, NGramScore> modes[] = {
      {"TF", NGramScore::Count}, {"IDF", NGramScore::WeightIfThere}, {"TFIDF", NGramScore::WeightedCount}};
  std::string mode = n.stringAttr("mode", "");
  auto weights = n.floatsAttr("weights");
  std::optional<Vectorizer> v = readVectorizer(n);
  const auto *found = llvm::find_if(modes, [&](auto m) { return mode == m.first; });
  if (found == std::end(modes)) n.fail("attribute 'mode' is '" + mode + "', expected TF, IDF or TFIDF");
  if (v && !weights.empty() && weights.size() != v->indexes.size())
    n.fail("attribute 'weights' has " + llvm::Twine(weights.size()) + " elements, 'ngram_indexes' " +
           llvm::Twine(v->indexes.size()));
  if (n.failed()) return;
  std::vector<float> ofColumn(weights.empty() ? 0 : v->pool.columns, 0);
  for (size_t i = 0; i < weights.size(); ++i) ofColumn[v->indexes[i]] = weights[i];
  n.give(nGramScores(n, n.in(0), v->pool, found->second, ofColumn));
}

constexpr Row rows[] = {
    {"TfIdfVectorizer", 9, latest, 1, 1, tfIdf, only(DType::I32) | only(DType::I64), "no strings"},
};

} // namespace

llvm::ArrayRef<Row> tfIdfRows() { return rows; }

} // namespace astra::onnx
