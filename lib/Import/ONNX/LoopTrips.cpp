//===- LoopTrips.cpp: how often a loop with counters runs ------------------===//
//
// Note [Trips from counters]
// A carried integer c that goes on as c + s is begin + s*t in trip t. The condition that the body gives is a
// conjunction of comparisons, each D >= 1 with a D that is a - b*t, b > 0: it is true in the first ceil(a / b) trips.
// Trip t runs if all of them are true in the trips before it and the first condition is; that one is, in what exporters
// write, the same conjunction for t = -1, so that each comparison allows ceil((a + b) / b) trips, or none.
#include "LoopTrips.h"
#include "Lowering.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace astra::onnx {

namespace {

constexpr int64_t mostCount = int64_t(1) << 23; // of a counter and of trips: f32, in which some compare, holds it
constexpr size_t mostNodes = 64;                // that a condition follows from

bool isSimple(const proto::Node &node) {
  static const llvm::StringSet<> ops = {"And",       "Less",    "LessOrEqual", "Greater", "GreaterOrEqual", "Not",
                                        "Identity",  "Cast",    "Add",         "Sub",     "Constant",       "Squeeze",
                                        "Unsqueeze", "Reshape", "Shape",       "Gather",  "Slice",          "Min"};
  return node.domain().empty() && ops.contains(node.op_type());
}

class Trips {
public:
  Trips(Node &n, const proto::Graph &body, llvm::ArrayRef<UOpRef> initial)
      : n(n), c(n.c), body(body), initial(initial), known(c, [&n](UOpRef param) { return n.bytes(param); }) {}

  std::optional<TripCount> count(UOpRef limit, UOpRef start);

private:
  bool slice(const std::string &output, std::vector<int> &nodes);
  bool findCounters();
  std::optional<Dims> comparisons(UOpRef condition);
  UOpRef one(UOpRef x) {
    const auto *elements = !x ? nullptr : isFloat(x->dtype) ? known.required(x) : known.elements(x);
    return elements && elements->size() == 1 ? elements->front() : nullptr;
  }
  UOpRef symbol(int64_t lo);

  Node &n;
  Context &c;
  const proto::Graph &body;
  llvm::ArrayRef<UOpRef> initial;
  llvm::StringMap<int> maker, carried; // by name: the node, the carried value
  compose::Known known;                // of values in the body, by symbols for the counters
  std::vector<Counter> counters;
  std::vector<UOpRef> symbols; // of the counters, then of the trip
  bool readsTrip = false;
  UOpRef condition = nullptr;
};

/// An integer that stands for no other.
UOpRef Trips::symbol(int64_t lo) {
  std::optional<int64_t> number = n.lowering.placeholder();
  UOpRef x = number ? n.make(Op::Arg, {}, {*number}, DType::I64) : nullptr;
  return x ? n.make(Op::Extent, {x}, {lo, mostCount}) : nullptr;
}

/// The nodes that an output follows from, sources first, joined to `nodes`; the carried values that they read, joined
/// to the counters. False where one is not simple, or there are too many.
bool Trips::slice(const std::string &output, std::vector<int> &nodes) {
  std::vector<std::pair<std::string, bool>> stack = {{output, false}}; // whether what it follows from is there
  while (!stack.empty()) {
    auto [name, isReady] = stack.back();
    stack.pop_back();
    if (auto value = carried.find(name); value != carried.end()) {
      if (llvm::none_of(counters, [&](const Counter &k) { return k.value == size_t(value->second); }))
        counters.push_back({size_t(value->second), nullptr, 0});
      continue;
    }
    readsTrip |= name == body.input(0).name();
    auto made = maker.find(name);
    if (made == maker.end() || llvm::is_contained(nodes, made->second)) continue; // from around, or there already
    const proto::Node &node = body.node(made->second);
    if (isReady) {
      nodes.push_back(made->second);
      continue;
    }
    if (!isSimple(node) || nodes.size() + stack.size() > mostNodes) return false;
    stack.push_back({name, true});
    for (const std::string &input : node.input()) stack.push_back({input, false});
  }
  return true;
}

/// Lowers what the condition and the counters follow from.
bool Trips::findCounters() {
  for (int i = 0; i < body.node_size(); ++i)
    for (const std::string &name : body.node(i).output()) maker[name] = i;
  for (size_t i = 0; i < initial.size(); ++i) carried[body.input(2 + int(i)).name()] = int(i);
  std::vector<int> nodes;
  std::vector<std::string> wanted = {body.output(0).name()};
  if (!slice(wanted[0], nodes)) return false;
  for (size_t k = 0; k < counters.size(); ++k) { // slices find more
    size_t i = counters[k].value;
    if (!isInt(initial[i]->dtype)) return false;
    const auto *begin = n.elements(initial[i]);
    if (!begin || begin->size() != 1 || begin->front()->lo < -mostCount || begin->front()->hi > mostCount) return false;
    counters[k].begin = begin->front();
    wanted.push_back(body.output(1 + int(i)).name());
    if (!slice(wanted.back(), nodes)) return false;
  }
  if (counters.empty() && !readsTrip) return false;
  std::vector<UOpRef> inputs;
  for (size_t i = 0; i < 2 + initial.size(); ++i) {
    std::optional<int64_t> number = n.lowering.placeholder();
    if (!number) return false;
    UOpRef like = i < 2 ? nullptr : initial[i - 2];
    inputs.push_back(i == 1
                         ? n.b.lit(DType::Bool, 1)
                         : n.make(Op::Arg, like ? like->shape : Shape(), {*number}, like ? like->dtype : DType::I64));
    if (!inputs.back()) return false;
  }
  std::vector<UOpRef> values = n.lowering.part(body, inputs, n.scope, nodes, wanted);
  if (values.empty() || llvm::is_contained(values, nullptr)) return false;
  while (symbols.size() < counters.size()) symbols.push_back(symbol(-mostCount));
  symbols.push_back(symbol(0));
  if (llvm::is_contained(symbols, nullptr)) return false;
  known.define(inputs[0], symbols.back());
  for (auto [k, counter] : llvm::enumerate(counters)) known.define(inputs[2 + counter.value], symbols[k]);
  for (auto [k, counter] : llvm::enumerate(counters)) {
    UOpRef next = one(values[1 + k]);
    auto step = next ? idxSub(c, next, symbols[k])->constIndex() : std::nullopt;
    if (!step || *step < -mostCount || *step > mostCount) return false;
    counter.step = *step;
  }
  condition = values[0];
  return true;
}

/// What must be 1 or more for the condition to be true; nothing where it is no conjunction of comparisons.
std::optional<Dims> Trips::comparisons(UOpRef condition) {
  Dims found;
  std::vector<UOpRef> stack = {condition};
  while (!stack.empty()) {
    UOpRef x = stack.back();
    stack.pop_back();
    while (x->is(Op::Reshape) || x->is(Op::Expand) || x->is(Op::Detach) ||
           (x->is(Op::Cast) && x->src[0]->dtype == DType::Bool))
      x = x->src[0];
    if (UOpRef value = one(x); value && value->constIndex() == 1) continue;
    bool isNot = x->is(Op::Not);
    if (isNot) x = x->src[0];
    if (x->is(Op::And) && !isNot) {
      stack.push_back(x->src[1]);
      stack.push_back(x->src[0]);
      continue;
    }
    UOpRef a = x->is(Op::Lt) || x->is(Op::Le) ? one(x->src[0]) : nullptr, b = a ? one(x->src[1]) : nullptr;
    if (!b) return std::nullopt;
    if (isNot) std::swap(a, b);
    bool orEqual = x->is(Op::Le) != isNot;
    found.push_back(idxAdd(c, idxSub(c, b, a), c.index(orEqual)));
  }
  return found;
}

std::optional<TripCount> Trips::count(UOpRef limit, UOpRef start) {
  UOpRef most = nullptr;
  if (limit) {
    const auto *elements = n.elements(limit);
    if (!elements) return std::nullopt;
    most = idxMax(c, c.index(0), elements->front());
  }
  if (!findCounters()) return std::nullopt;
  std::optional<Dims> later = comparisons(condition), first = start ? comparisons(start) : Dims();
  if (!later || !first) return std::nullopt;
  llvm::erase_if(*first, [](UOpRef d) { return d->lo >= 1; });
  bool starts = first->empty();

  UOpRef trip = symbols.back(), one = c.index(1), zero = c.index(0), all = most;
  Dims atFirst; // of the later ones, at trip -1
  auto at = [&](UOpRef d, UOpRef t) {
    Dims now;
    for (const Counter &k : counters) now.push_back(idxAdd(c, k.begin, idxMul(c, t, c.index(k.step))));
    now.push_back(t);
    return idxSubstitute(c, d, symbols, now);
  };
  struct Bound {
    UOpRef a;
    int64_t b;
  };
  std::vector<Bound> bounds;
  for (UOpRef d : *later) {
    UOpRef a = at(d, zero), general = at(d, trip);
    auto b = idxSub(c, a, at(d, one))->constIndex();
    if (!b || idxSub(c, general, idxSub(c, a, idxMul(c, trip, c.index(*b))))->constIndex() != 0) return std::nullopt;
    UOpRef before = idxAdd(c, a, c.index(*b));
    if (before->lo < 1) atFirst.push_back(before);
    if (*b <= 0 && a->lo >= 1) continue; // it stays true
    if (*b <= 0) return std::nullopt;
    bounds.push_back({a, *b});
  }
  // The first condition is what the body gives, one trip earlier, or known to be true.
  auto isIn = [](llvm::ArrayRef<UOpRef> xs) { return [=](UOpRef x) { return llvm::is_contained(xs, x); }; };
  bool same = llvm::all_of(*first, isIn(atFirst)) && llvm::all_of(atFirst, isIn(*first));
  if (!starts && !same) return std::nullopt;
  for (auto [a, b] : bounds) {
    UOpRef by = c.index(b), shifted = idxCeilDiv(c, idxAdd(c, a, by), by);
    bool once = starts && idxAdd(c, a, by)->lo < 1;
    UOpRef here = once ? idxAdd(c, one, idxMax(c, zero, idxCeilDiv(c, a, by))) : idxMax(c, zero, shifted);
    all = all ? idxMin(c, all, here) : here;
  }
  if (!all || all->hi > mostCount) return std::nullopt;
  for (const Counter &k : counters) // the symbols' bounds hold
    for (int64_t end : {k.begin->lo, k.begin->hi})
      if (std::abs(end + k.step * all->hi) > mostCount) return std::nullopt;
  return TripCount{all, counters};
}

} // namespace

std::optional<TripCount> tripCount(Node &n, const proto::Graph &body, llvm::ArrayRef<UOpRef> initial, UOpRef limit,
                                   UOpRef start) {
  return Trips(n, body, initial).count(limit, start);
}

} // namespace astra::onnx
