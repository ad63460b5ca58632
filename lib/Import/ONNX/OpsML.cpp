//===- OpsML.cpp: ai.onnx.ml on numbers ------------------------------------===//
// Takes:    nodes that prepare features and encode labels, and linear and kernel machines.
// Gives:    the composites of Features.h and Scores.h.
// Does not: know strings and maps, which have no tensors; trees (OpsTrees.cpp).
#include "Lowering.h"
#include "MLAttributes.h"
#include "OpTable.h"
#include "astra/Compose/Creation.h"
#include "astra/Compose/Features.h"
#include "astra/Compose/Indexing.h"
#include "astra/Import/ONNX.h"

namespace astra::onnx {

using compose::ScoreTransform;

ScoreTransform scoreTransform(Node &n, const std::string &name) {
  constexpr std::pair<const char *, ScoreTransform> names[] = {{"NONE", ScoreTransform::None},
                                                               {"SOFTMAX", ScoreTransform::Softmax},
                                                               {"LOGISTIC", ScoreTransform::Logistic},
                                                               {"SOFTMAX_ZERO", ScoreTransform::SoftmaxZero},
                                                               {"PROBIT", ScoreTransform::Probit}};
  for (auto [text, transform] : names)
    if (name == text) return transform;
  n.fail("attribute 'post_transform' is '" + name + "', which is not one of ONNX's");
  return ScoreTransform::None;
}

Ints classLabels(Node &n, const char *integers, const char *strings) {
  if (n.hasAttr(strings) && !n.stringsAttr(strings).empty())
    n.unsupported(llvm::Twine("attribute '") + strings +
                  "' is given: labels that are strings are not supported, give numbers in attribute '" + integers +
                  "'");
  Ints labels = n.intsAttr(integers);
  if (labels.empty()) n.fail(llvm::Twine("attribute '") + integers + "' is missing");
  return labels;
}

namespace {

// ---- features

void scaler(Node &n) { n.give(compose::scaledFeatures(n, n.in(0), n.floatsAttr("offset"), n.floatsAttr("scale"))); }

void normalizer(Node &n) {
  using compose::RowNorm;
  constexpr std::pair<const char *, RowNorm> names[] = {
      {"MAX", RowNorm::Max}, {"L1", RowNorm::Magnitudes}, {"L2", RowNorm::Euclidean}};
  std::string given = n.stringAttr("norm", "MAX");
  for (auto [name, norm] : names)
    if (given == name) return n.give(compose::normalizedRows(n, n.in(0), norm));
  n.fail("attribute 'norm' is '" + given + "', expected MAX, L1 or L2");
}

void binarizer(Node &n) { n.give(compose::binarized(n, n.in(0), n.floatAttr("threshold", 0))); }

void imputer(Node &n) {
  UOpRef x = n.in(0);
  if (!x) return;
  std::vector<double> values;
  double replaced;
  if (isFloat(x->dtype)) {
    for (float v : n.floatsAttr("imputed_value_floats")) values.push_back(v);
    replaced = n.floatAttr("replaced_value_float", 0);
    n.ignoreAttr("imputed_value_int64s");
    n.ignoreAttr("replaced_value_int64");
    n.give(compose::imputed(n, x, values, replaced));
  } else {
    Ints integers = n.intsAttr("imputed_value_int64s");
    int64_t old = n.intAttr("replaced_value_int64", 0);
    n.ignoreAttr("imputed_value_floats");
    n.ignoreAttr("replaced_value_float");
    n.give(compose::imputedIntegers(n, x, integers, old));
  }
}

void oneHotEncoder(Node &n) {
  n.intAttr("zeros", 1); // what is unknown gives zeros
  n.give(compose::oneHotRows(n, n.in(0), classLabels(n, "cats_int64s", "cats_strings")));
}

void featureVectorizer(Node &n) {
  Ints widths = n.intsAttr("inputdimensions");
  std::vector<UOpRef> parts;
  for (unsigned i = 0; i < n.numInputs(); ++i) parts.push_back(compose::featureRows(n, n.in(i)));
  if (!n.failed()) n.give(n.concat(parts, 1));
}

void arrayFeatureExtractor(Node &n) { n.give(compose::pickedFeatures(n, n.in(0), n.in(1))); }

/// The keys or values of a label encoder.
std::optional<compose::Payload> encoderNumbers(Node &n, const char *role) {
  std::string begin = std::string(role) + "_";
  if (n.hasAttr(begin + "strings")) {
    n.unsupported("attribute '" + begin + "strings' is given: strings are not supported");
    return std::nullopt;
  }
  if (n.hasAttr(begin + "int64s")) {
    Ints values = n.intsAttr(begin + "int64s");
    return compose::payloadOf<int64_t>(DType::I64, values, {int64_t(values.size())});
  }
  if (n.hasAttr(begin + "floats")) {
    auto values = n.floatsAttr(begin + "floats");
    return compose::payloadOf<float>(DType::F32, values, {int64_t(values.size())});
  }
  if (n.hasAttr(begin + "tensor")) return n.tensorAttr(begin + "tensor");
  n.fail(llvm::Twine("none of the attributes ") + begin + "int64s, " + begin + "floats and " + begin +
         "tensor is given");
  return std::nullopt;
}

void labelEncoder(Node &n) {
  if (n.hasAttr("classes_strings"))
    return void(n.unsupported("attribute 'classes_strings' is given: strings are not supported"));
  std::optional<compose::Payload> keys = encoderNumbers(n, "keys"), values = encoderNumbers(n, "values");
  n.ignoreAttr("default_string");
  if (!keys || !values || n.failed()) return;
  int64_t integer = n.intAttr("default_int64", -1);
  double number = n.floatAttr("default_float", -0.0);
  UOpRef otherwise = nullptr;
  if (n.hasAttr("default_tensor")) {
    std::optional<compose::Payload> p = n.tensorAttr("default_tensor");
    if (!p) return;
    if (p->bytes.size() != byteSize(values->dtype) || p->dtype != values->dtype)
      return void(n.fail("attribute 'default_tensor' is not one element of the type of the values"));
    p->dims.clear();
    otherwise = n.constant(std::move(*p));
  } else {
    otherwise = isFloat(values->dtype) ? n.b.lit(values->dtype, number) : n.b.litInt(values->dtype, integer);
  }
  n.give(compose::encodedLabels(n, n.in(0), *keys, *values, otherwise));
}

/// The tensor itself: rows in place of maps, columns in the order of the labels.
void zipMap(Node &n) {
  n.ignoreAttr("classlabels_int64s");
  n.ignoreAttr("classlabels_strings");
  if (n.lowering.options.notes)
    n.lowering.options.notes->push_back(
        n.title() + " gives its tensor of scores, a column for each label in order: " + "maps are no tensors");
  n.give(n.in(0));
}

// ---- linear models

void linearRegressor(Node &n) {
  ScoreTransform transform = scoreTransform(n, n.stringAttr("post_transform", "NONE"));
  int64_t targets = n.intAttr("targets", 1);
  UOpRef y = linearScores(n, compose::featureRows(n, n.in(0)), n.floatsAttr("coefficients"), n.floatsAttr("intercepts"),
                          targets);
  if (targets == 1 && transform != ScoreTransform::Probit) transform = ScoreTransform::None; // as ONNX Runtime has it
  n.give(transformed(n, y, transform));
}

void linearClassifier(Node &n) {
  ScoreTransform transform = scoreTransform(n, n.stringAttr("post_transform", "NONE"));
  n.ignoreAttr("multi_class"); // how it was trained
  Ints labels = classLabels(n, "classlabels_ints", "classlabels_strings");
  auto coefficients = n.floatsAttr("coefficients"), intercepts = n.floatsAttr("intercepts");
  UOpRef x = compose::featureRows(n, n.in(0));
  int64_t features = x ? n.constExtent(x, 1, "the number of features") : 1;
  if (n.failed()) return;
  int64_t targets =
      intercepts.empty() ? int64_t(coefficients.size()) / std::max<int64_t>(features, 1) : int64_t(intercepts.size());
  compose::Classified r = classified(n, linearScores(n, x, coefficients, intercepts, targets), labels, transform);
  n.give(r.label);
  if (n.wants(1)) n.give(1, r.scores);
}

// ---- kernel machines

compose::KernelOptions kernelAttributes(Node &n) {
  using compose::KernelFunction;
  constexpr std::pair<const char *, KernelFunction> names[] = {{"LINEAR", KernelFunction::Linear},
                                                               {"POLY", KernelFunction::Polynomial},
                                                               {"RBF", KernelFunction::Radial},
                                                               {"SIGMOID", KernelFunction::Sigmoid}};
  compose::KernelOptions options;
  std::string given = n.stringAttr("kernel_type", "LINEAR");
  bool known = false;
  for (auto [name, function] : names)
    if (given == name) options.function = function, known = true;
  if (!known) n.fail("attribute 'kernel_type' is '" + given + "', expected LINEAR, POLY, RBF or SIGMOID");
  auto numbers = n.floatsAttr("kernel_params");
  if (!numbers.empty() && numbers.size() != 3)
    n.fail("attribute 'kernel_params' has " + llvm::Twine(numbers.size()) + " numbers, expected 3");
  if (numbers.size() == 3) options.gamma = numbers[0], options.offset = numbers[1], options.degree = numbers[2];
  return options;
}

void svmRegressor(Node &n) {
  compose::KernelOptions kernel = kernelAttributes(n);
  n.ignoreAttr("post_transform"); // of one score nothing is changed
  int64_t count = n.intAttr("n_supports", 0);
  bool oneClass = n.intAttr("one_class", 0) != 0;
  auto vectors = n.floatsAttr("support_vectors"), coefficients = n.floatsAttr("coefficients"),
       offsets = n.floatsAttr("rho");
  UOpRef x = compose::featureRows(n, n.in(0));
  if (offsets.empty()) n.fail("attribute 'rho' is missing");
  if (n.failed()) return;
  if (count > 0) x = kernelValues(n, x, vectors, count, kernel);
  UOpRef y = linearScores(n, x, coefficients, llvm::ArrayRef(offsets).take_front(1), 1);
  n.give(oneClass ? compose::signs(n, y) : y);
}

void svmClassifier(Node &n) {
  compose::KernelOptions kernel = kernelAttributes(n);
  ScoreTransform transform = scoreTransform(n, n.stringAttr("post_transform", "NONE"));
  Ints labels = classLabels(n, "classlabels_ints", "classlabels_strings"), each = n.intsAttr("vectors_per_class");
  auto vectors = n.floatsAttr("support_vectors"), coefficients = n.floatsAttr("coefficients"),
       offsets = n.floatsAttr("rho");
  for (const char *name : {"prob_a", "prob_b"})
    if (!n.floatsAttr(name).empty())
      n.unsupported(llvm::Twine("attribute '") + name +
                    "' is given: probabilities, which are found in rounds, are not supported; scores are");
  UOpRef x = compose::featureRows(n, n.in(0));
  if (offsets.empty()) n.fail("attribute 'rho' is missing");
  if (n.failed()) return;
  int64_t count = 0, classes = labels.size();
  for (int64_t k : each) count = std::min<int64_t>(count + std::max<int64_t>(k, 0), int64_t(1) << 32);
  if (count == 0) { // linear: one score for each class, one offset for all
    llvm::SmallVector<float> same(classes, offsets[0]);
    UOpRef s = linearScores(n, x, coefficients, same, classes);
    n.give(bestLabel(n, s, labels));
    if (n.wants(1)) n.give(1, transformed(n, s, transform));
    return;
  }
  if (int64_t(each.size()) != classes)
    return void(n.fail("attribute 'vectors_per_class' has " + llvm::Twine(each.size()) + " numbers for " +
                       llvm::Twine(classes) + " labels"));
  UOpRef kernels = kernelValues(n, x, vectors, count, kernel);
  compose::PairwiseScores pairs = pairwiseScores(n, kernels, each, coefficients, offsets);
  if (n.failed()) return;
  compose::Classified r = classifiedByPairs(n, pairs, labels, transform);
  n.give(r.label);
  if (n.wants(1)) n.give(1, r.scores);
}

constexpr Types numbers = only(DType::F32) | only(DType::F64) | only(DType::I64) | only(DType::I32);
constexpr const char *labelRemark = "labels are integers";

constexpr Row rows[] = {
    {"ai.onnx.ml::Scaler", 1, latest, 1, 1, scaler, numbers},
    {"ai.onnx.ml::Normalizer", 1, latest, 1, 1, normalizer, numbers},
    {"ai.onnx.ml::Binarizer", 1, latest, 1, 1, binarizer, numbers},
    {"ai.onnx.ml::Imputer", 1, latest, 1, 1, imputer, numbers},
    {"ai.onnx.ml::OneHotEncoder", 1, latest, 1, 1, oneHotEncoder, numbers,
     "categories are integers; one that is unknown gives zeros, whatever 'zeros' says"},
    {"ai.onnx.ml::LabelEncoder", 2, latest, 1, 1, labelEncoder, realTypes, "keys and values are numbers"},
    {"ai.onnx.ml::FeatureVectorizer", 1, latest, 1, anyNumber, featureVectorizer, numbers},
    {"ai.onnx.ml::ArrayFeatureExtractor", 1, latest, 2, 2, arrayFeatureExtractor, numbers},
    {"ai.onnx.ml::LinearRegressor", 1, latest, 1, 1, linearRegressor, numbers,
     "of one target PROBIT alone changes a score, as in ONNX Runtime"},
    {"ai.onnx.ml::LinearClassifier", 1, latest, 1, 1, linearClassifier, numbers, labelRemark},
    {"ai.onnx.ml::SVMRegressor", 1, latest, 1, 1, svmRegressor, numbers},
    {"ai.onnx.ml::SVMClassifier", 1, latest, 1, 1, svmClassifier, numbers,
     "labels are integers; scores, no probabilities (prob_a, prob_b)"},
    {"ai.onnx.ml::ZipMap", 1, latest, 1, 1, zipMap, only(DType::F32), "gives its tensor, with a note: maps are none"},
};

} // namespace

llvm::ArrayRef<Row> mlRows() { return rows; }

} // namespace astra::onnx
