//===- Metrics.cpp: what eval says beside the loss -------------------------===//
// Takes:    a prediction and a target that fit (`metric` sees to it).
// Gives:    a value for each element of the target, then the mean of those that count.
// Keeps:    one row a metric: what the loss must be of, its parameters, its formula.
#include "Elements.h"
#include "astra/Compose/ElementLoss.h"
#include "astra/NN/Loss.h"
#include "astra/NN/Metric.h"

using namespace astra;
using namespace astra::nn;

namespace {
constexpr Parameter topParameters[] = {
    {"k", 5, Bounds{.least = 1, .most = 1e6, .whole = true}, "how many classes may be ahead of it, and itself"}};

using Elements = UOpRef (*)(Builder &, const Recipe &, UOpRef x, UOpRef target);

UOpRef hits(Builder &b, const Recipe &, UOpRef x, UOpRef target) {
  return b.cast(b.eq(b.argReduce(true, x, 1), b.cast(target, DType::I64)), DType::F32);
}
/// Ahead of the target's class are those that are greater, equal ones of a lower number, and all if its own is no
/// number.
UOpRef topHits(Builder &b, const Recipe &r, UOpRef x, UOpRef target) {
  llvm::SmallVector<UOpRef, 6> one(x->shape);
  one[1] = b.idx(1);
  UOpRef index = b.expand(b.reshape(b.cast(target, DType::I64), one), x->shape);
  UOpRef number = b.iota(DType::I64, x->shape, 1);
  // The score of the target's class, by a sum with one summand: the number of an ignored class is none.
  UOpRef own = b.reduce(ReduceKind::Sum, b.select(b.eq(index, number), x, num(b, x, 0)), {1});
  UOpRef spread = b.expand(b.reshape(own, one), x->shape);
  UOpRef ties = b.bin(Op::And, b.eq(x, spread), b.lt(number, index));
  UOpRef behind = b.bin(Op::And, b.bin(Op::Le, x, spread), b.un(Op::Not, ties));
  UOpRef ahead = b.reduce(ReduceKind::Sum, b.cast(b.un(Op::Not, behind), DType::I64), {1});
  return b.cast(b.lt(ahead, b.litInt(DType::I64, int64_t(r["k"]))), DType::F32);
}
UOpRef squares(Builder &b, const Recipe &, UOpRef x, UOpRef y) {
  return composed(b, [&](auto &c) { return compose::squaredError(c, x, y); });
}
UOpRef distances(Builder &b, const Recipe &, UOpRef x, UOpRef y) {
  return composed(b, [&](auto &c) { return compose::absoluteError(c, x, y); });
}

struct Row {
  Signature signature;
  bool ofClasses;
  Elements make;
};
const Row rows[] = {
    {{"accuracy", {}, "the part of the targets whose class has the greatest number"}, true, hits},
    {{"top", topParameters, "the part of the targets whose class is among the k greatest"}, true, topHits},
    {{"squared_error", {}, "(x - y)^2"}, false, squares},
    {{"absolute_error", {}, "|x - y|"}, false, distances},
};
} // namespace

llvm::ArrayRef<Signature> nn::metrics() {
  static const std::vector<Signature> all = signaturesOf(rows);
  return all;
}
llvm::Expected<Recipe> nn::parseMetric(llvm::StringRef text) { return Recipe::parse(text, metrics(), "metric"); }

std::string nn::nameOf(const Recipe &metric) {
  std::string name = metric.signature->name;
  if (metric.signature->parameters.empty()) return name;
  return name + std::to_string(int64_t(metric[metric.signature->parameters[0].name]));
}

llvm::Expected<UOpRef> nn::metric(Builder &b, const Recipe &metric, const Recipe &loss, UOpRef x, UOpRef target) {
  const Row &row = rows[metric.row];
  if (row.ofClasses ? !isOfClasses(loss) : isInt(target->dtype))
    return llvm::createStringError("metric " + llvm::Twine(row.signature.name) + ": is of " +
                                   (row.ofClasses ? "classes" : "numbers") + ", the loss " + loss.signature->name +
                                   " is not");
  if (llvm::Error e = checkTarget(b, loss, "metric " + llvm::Twine(row.signature.name), x, target)) return e;
  UOpRef elements = row.make(b, metric, x, target), counts = countedTargets(b, loss, target);
  if (!counts) return mean(b, elements);
  UOpRef counted = b.select(counts, elements, num(b, elements, 0));
  return b.div(sumOf(b, counted), sumOf(b, b.cast(counts, elements->dtype)));
}
