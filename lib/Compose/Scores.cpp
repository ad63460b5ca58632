//===- Scores.cpp: scores of classes, and linear and kernel machines -------===//
// Takes:    numbers of models that may be wrong in every way.
// Gives:    what Scores.h says.
#include "astra/Compose/Scores.h"
#include "astra/Compose/Features.h"
#include "astra/Compose/Indexing.h"
#include "astra/Compose/Product.h"
#include "astra/Compose/Reduction.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace astra::compose {

namespace {

constexpr int64_t mostCount = int64_t(1) << 24;

/// sqrt(2) erfinv(2 v - 1), by the approximation that ONNX Runtime has, with its constants.
UOpRef probit(Composer &b, UOpRef v) {
  UOpRef x = b.bin(Op::Sub, b.bin(Op::Mul, v, 2), 1), one = b.literal(x, 1);
  UOpRef log = b.un(Op::Log, b.bin(Op::Mul, b.bin(Op::Sub, one, x), b.bin(Op::Add, one, x)));
  constexpr float part = 0.147f, pi = 3.14159f;
  UOpRef half = b.bin(Op::Add, b.bin(Op::Mul, log, 0.5), double(2 / (pi * part)));
  UOpRef root = b.un(Op::Sqrt, b.bin(Op::Sub, b.bin(Op::Mul, half, half), b.bin(Op::Mul, log, double(1 / part))));
  UOpRef size = b.un(Op::Sqrt, b.bin(Op::Sub, root, half));
  size = b.select(b.bin(Op::Lt, x, 0.0), b.un(Op::Neg, size), size);
  return b.bin(Op::Mul, size, double(1.41421356f));
}

/// A softmax of what is not about 0; the rest is scaled down with it.
UOpRef softmaxOfNonzero(Composer &b, UOpRef s) {
  Ints last = {int64_t(s->rank()) - 1};
  UOpRef most = b.reduce(ReduceKind::Max, s, last), tiny = b.literal(s, double(0.0000001f));
  UOpRef counts = b.bin(Op::Lt, tiny, b.un(Op::Abs, s)), e = b.un(Op::Exp, b.bin(Op::Sub, s, most));
  UOpRef kept = b.select(counts, e, b.literal(s, 0));
  UOpRef rest = b.bin(Op::Mul, s, b.un(Op::Exp, b.un(Op::Neg, most)));
  return b.bin(Op::Div, b.select(counts, e, rest), b.reduce(ReduceKind::Sum, kept, last));
}

} // namespace

UOpRef plusBase(Composer &b, UOpRef s, llvm::ArrayRef<double> base) {
  if (!b.requireRank(s, 2, 2) || base.empty()) return b.failed() ? nullptr : s;
  if (base.size() > 1 && s->shape[1]->constIndex() != int64_t(base.size()))
    return b.fail(llvm::Twine(base.size()) + " base values do not fit " + dimsText(s->shape[1]) + " targets");
  return b.bin(Op::Add, s, b.cast(numbersOf<double>(b, DType::F64, base, {int64_t(base.size())}), s->dtype));
}

UOpRef transformed(Composer &b, UOpRef s, ScoreTransform transform) {
  if (!b.requireRank(s, 2, 2)) return nullptr;
  switch (transform) {
  case ScoreTransform::None: return s;
  case ScoreTransform::Softmax: return softmax(b, s, {1});
  case ScoreTransform::Logistic: return b.un(Op::Sigmoid, s);
  case ScoreTransform::SoftmaxZero: return softmaxOfNonzero(b, s);
  case ScoreTransform::Probit: return probit(b, s);
  }
  return nullptr;
}

UOpRef bothClasses(Composer &b, UOpRef s, bool isSigned, ScoreTransform transform) {
  if (!b.requireRank(s, 2, 2)) return nullptr;
  bool logistic = transform == ScoreTransform::Logistic;
  UOpRef other = isSigned || logistic ? b.un(Op::Neg, s) : b.bin(Op::Sub, b.literal(s, 1), s);
  UOpRef both = b.concat({other, s}, 1);
  return logistic ? b.un(Op::Sigmoid, both) : both;
}

UOpRef bestLabel(Composer &b, UOpRef scores, llvm::ArrayRef<int64_t> labels) {
  if (!b.requireRank(scores, 2, 2)) return nullptr;
  if (!b.requireEqual(scores->shape[1], b.idx(labels.size()), "the scores and the labels")) return nullptr;
  UOpRef best = b.squeeze(argReduce(b, scores, 1, true), {1});
  return gather(b, numbersOf(b, labels, {int64_t(labels.size())}), best, 0);
}

UOpRef signLabel(Composer &b, UOpRef score, double threshold, llvm::ArrayRef<int64_t> labels) {
  if (!b.requireRank(score, 2, 2)) return nullptr;
  int64_t yes = labels.size() == 2 ? labels[1] : 1, no = labels.size() == 2 ? labels[0] : 0;
  UOpRef above = b.bin(Op::Lt, b.literal(score, threshold), score);
  UOpRef label = b.select(above, b.b.litInt(DType::I64, yes), b.b.litInt(DType::I64, no));
  return b.squeeze(label, {1});
}

Classified classified(Composer &b, UOpRef s, llvm::ArrayRef<int64_t> labels, ScoreTransform transform) {
  if (!b.requireRank(s, 2, 2)) return {};
  if (s->shape[1]->constIndex() != 1) return {bestLabel(b, s, labels), transformed(b, s, transform)};
  bool both = labels.size() == 2 && transform != ScoreTransform::Probit;
  return {signLabel(b, s, 0, labels), both ? bothClasses(b, s, false, transform) : transformed(b, s, transform)};
}

UOpRef featureRows(Composer &b, UOpRef x) {
  if (!b.requireRank(x, 1, 2)) return nullptr;
  x = b.cast(x, DType::F32);
  return x && x->rank() == 1 ? b.unsqueeze(x, {0}) : x;
}

UOpRef linearScores(Composer &b, UOpRef x, llvm::ArrayRef<float> coefficients, llvm::ArrayRef<float> intercepts,
                    int64_t targets) {
  if (!b.requireRank(x, 2, 2)) return nullptr;
  int64_t features = b.constExtent(x, 1, "the number of features");
  if (b.failed()) return nullptr;
  if (targets < 1 || targets > mostCount || features < 1 || features > mostCount ||
      int64_t(coefficients.size()) != targets * features)
    return b.fail(llvm::Twine(coefficients.size()) + " coefficients do not fit " + llvm::Twine(targets) +
                  " targets and " + llvm::Twine(features) + " features");
  if (!intercepts.empty() && int64_t(intercepts.size()) != targets)
    return b.fail(llvm::Twine(intercepts.size()) + " intercepts do not fit " + llvm::Twine(targets) + " targets");
  AffineProductOptions options;
  options.transposeY = true;
  UOpRef bias = intercepts.empty() ? nullptr : numbersOf(b, intercepts, {targets});
  return affineProduct(b, x, numbersOf(b, coefficients, {targets, features}), bias, options);
}

UOpRef kernelValues(Composer &b, UOpRef x, llvm::ArrayRef<float> vectors, int64_t count, const KernelOptions &options) {
  if (!b.requireRank(x, 2, 2)) return nullptr;
  int64_t features = b.constExtent(x, 1, "the number of features");
  if (b.failed()) return nullptr;
  if (count < 1 || count > mostCount || features < 1 || features > mostCount ||
      int64_t(vectors.size()) != count * features)
    return b.fail(llvm::Twine(vectors.size()) + " numbers of support vectors do not fit " + llvm::Twine(count) +
                  " vectors and " + llvm::Twine(features) + " features");
  if (options.function == KernelFunction::Radial) {
    UOpRef squares = distances(b, x, numbersOf(b, vectors, {count, features}), true);
    return b.un(Op::Exp, b.bin(Op::Mul, squares, -options.gamma));
  }
  UOpRef y = linearScores(b, x, vectors, {}, count);
  if (options.function == KernelFunction::Linear) return y;
  y = b.bin(Op::Add, b.bin(Op::Mul, y, options.gamma), options.offset);
  if (options.function == KernelFunction::Sigmoid) return b.un(Op::Tanh, y);
  if (options.degree == 2) return b.bin(Op::Mul, y, y);
  if (options.degree == 3) return b.bin(Op::Mul, b.bin(Op::Mul, y, y), y);
  return b.bin(Op::Pow, y, options.degree);
}

/// The sums of all pairs are one product with a matrix that has the pair's coefficients where its two classes have
/// vectors, else zeros.
PairwiseScores pairwiseScores(Composer &b, UOpRef kernels, llvm::ArrayRef<int64_t> vectorsOfClass,
                              llvm::ArrayRef<float> coefficients, llvm::ArrayRef<float> offsets) {
  if (!b.requireRank(kernels, 2, 2)) return {};
  int64_t classes = vectorsOfClass.size(), pairs = classes * (classes - 1) / 2, count = 0;
  std::vector<int64_t> first;
  for (int64_t n : vectorsOfClass) {
    if (n < 0 || n > mostCount) b.fail("a class has " + llvm::Twine(n) + " support vectors");
    first.push_back(count);
    count += n;
    if (b.failed()) return {};
  }
  if (classes < 2 || classes > 1024 || int64_t(coefficients.size()) != (classes - 1) * count ||
      int64_t(offsets.size()) < pairs || pairs * count > mostCount * 4) {
    b.fail(llvm::Twine(coefficients.size()) + " coefficients and " + llvm::Twine(offsets.size()) +
           " offsets do not fit " + llvm::Twine(classes) + " classes with " + llvm::Twine(count) + " support vectors");
    return {};
  }
  std::vector<float> matrix(pairs * count, 0.0f), votes(pairs * classes, 0.0f), against(pairs * classes, 0.0f);
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      auto copy = [&](int64_t of, int64_t row) {
        for (int64_t v = first[of]; v < first[of] + vectorsOfClass[of]; ++v)
          matrix[pair * count + v] = coefficients[row * count + v];
      };
      copy(i, j - 1);
      copy(j, i);
      votes[pair * classes + i] = 1;
      against[pair * classes + j] = 1;
    }
  PairwiseScores result;
  result.scores = linearScores(b, kernels, matrix, offsets.take_front(pairs), pairs);
  UOpRef won = b.cast(b.bin(Op::Lt, b.literal(result.scores, 0), result.scores), DType::F32);
  UOpRef lost = b.bin(Op::Sub, b.literal(won, 1), won);
  UOpRef total = b.bin(Op::Add, product(b, won, numbersOf(b, votes, {pairs, classes})),
                       product(b, lost, numbersOf(b, against, {pairs, classes})));
  if (total) result.best = b.squeeze(argReduce(b, total, 1, true), {1});
  return result;
}

Classified classifiedByPairs(Composer &b, const PairwiseScores &pairs, llvm::ArrayRef<int64_t> labels,
                             ScoreTransform transform) {
  Classified r{labelsAt(b, pairs.best, labels)};
  if (b.failed()) return {};
  if (labels.size() > 2)
    r.scores = transformed(b, pairs.scores, transform);
  else
    r.scores =
        transform == ScoreTransform::None ? mirrored(b, pairs.scores) : bothClasses(b, pairs.scores, false, transform);
  return r;
}

} // namespace astra::compose
