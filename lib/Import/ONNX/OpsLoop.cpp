//===- OpsLoop.cpp: Loop ---------------------------------------------------===//
// Takes:    a Loop node: an optional limit, an optional condition, carried values, a body.
// Gives:    in this order of preference: a `scan`, where the number of trips is known (LoopTrips.h) and no shape
//           changes or has a data dim; a `while`, whose carried dims are the extents that change and data dims of what
//           is around; the body once for each trip, where neither can be and the limit is a small constant.
// Keeps:    the condition is true whenever the body runs: the body sees a literal.
//
// Note [Extents that change]
// A carried value whose extent the body changes gets a dim of its own there, and the body is lowered again, until no
// other extent changes. Its bounds are those that --dim gives, or follow from a constant step and the limit, or from
// the extents of other values, where the new extent is made of these alone; those are widened from round to round, and
// asked for where that does not end. Extents share a dim if they begin and go on alike; where they turn out to part,
// the later one gets another. What the body does not read at all needs no dim there: its extents are numbers that the
// loop carries. A dim has two names: that of its flag, the same whenever the body is lowered, and the node's, which no
// other lowering has, so that what is left of an earlier one is not taken for something around the loop.
#include "Control.h"
#include "LoopTrips.h"
#include "Lowering.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace astra::onnx {

namespace {

constexpr int64_t mostUnrolled = 64, mostTrips = int64_t(1) << 40;
constexpr unsigned mostRounds = 8; // ways through a body until every extent that changes is found

/// The names that a graph and those inside of it take from somewhere.
llvm::StringSet<> namesRead(const proto::Graph &graph) {
  llvm::StringSet<> names;
  std::vector<const proto::Graph *> stack{&graph};
  while (!stack.empty()) {
    const proto::Graph &g = *stack.back();
    stack.pop_back();
    for (const proto::Value &v : g.output()) names.insert(v.name());
    for (const proto::Node &node : g.node()) {
      for (const std::string &name : node.input()) names.insert(name);
      for (const proto::Attribute &a : node.attribute()) {
        if (a.has_g()) stack.push_back(&a.g());
        for (const proto::Graph &inner : a.graphs()) stack.push_back(&inner);
      }
    }
  }
  return names;
}

/// What the bounds of a carried dim are taken from.
enum class Bounds { Given, Step, Others };

bool isPart(UOpRef part, UOpRef whole) { return llvm::is_contained(topoSort(whole), part); }

class Loop {
public:
  explicit Loop(Node &n) : n(n), c(n.c) {}
  void lower();

private:
  using Values = std::vector<UOpRef>;
  struct Carried {
    UOpRef dim, from, begin, next; // from: what it replaced; next: what it became there
    std::string flag;
    unsigned round;
    Bounds by;
    int64_t step;             // of Bounds::Step
    UOpRef becomes = nullptr; // in the round at hand
  };
  std::optional<int64_t> constant(UOpRef x);
  std::optional<Values> run(llvm::ArrayRef<UOpRef> inputs);
  bool place(Values &results, bool &changed);
  UOpRef carriedDim(size_t value, unsigned axis, UOpRef next);
  bool boundsOf(UOpRef from, UOpRef begin, UOpRef next, const std::string &flag, const std::string &declared,
                int64_t &lo, int64_t &hi, Bounds &by);
  UOpRef makeDim(const std::string &flag, int64_t lo, int64_t hi);
  bool widen(Carried &d, UOpRef here);
  bool isOfModel(llvm::StringRef name);
  UOpRef needsBounds(size_t value, unsigned axis, llvm::StringRef name, int64_t least);
  bool keepsShapes(const Values &results);
  std::vector<UOpRef> dataDims(const Values &results, size_t begin);
  void asScan(Closure &closure, const Values &results, UOpRef iteration);
  int64_t roomOfTrips();
  void asWhile(Closure &closure, const Values &results, UOpRef iteration, llvm::ArrayRef<UOpRef> ofData);
  bool unrolled();
  UOpRef truth() { return n.b.lit(DType::Bool, 1); }

  Node &n;
  Context &c;
  const proto::Graph *body = nullptr;
  UOpRef limit = nullptr, start = nullptr; // i64 and bool scalars; null: none
  UOpRef trips = nullptr;                  // the limit as a symbolic integer, where it is one
  Values initial;
  std::vector<Held> begun;  // the same, sequences and optional values too, of which `initial` has none
  std::vector<Dims> shapes; // of the carried values in the body
  std::vector<bool> isRead; // by the body; what is not keeps its first shape in `shapes`
  size_t stacked = 0;
  std::vector<Carried> dims;
  unsigned round = 0;
};

std::optional<int64_t> Loop::constant(UOpRef x) {
  const auto *known = x ? n.elements(x) : nullptr;
  return known && known->size() == 1 ? known->front()->constIndex() : std::nullopt;
}

std::optional<Loop::Values> Loop::run(llvm::ArrayRef<UOpRef> inputs) {
  auto results = n.lowering.body(*body, inputs, n.scope, n.title() + ", body");
  if (results) results->front() = controlScalar(n, results->front(), DType::Bool, "the condition that the body gives");
  return results && results->front() ? results : std::nullopt;
}

UOpRef Loop::needsBounds(size_t value, unsigned axis, llvm::StringRef name, int64_t least) {
  return n.unsupported("carried value " + llvm::Twine(value) + " changes its extent along axis " + llvm::Twine(axis) +
                       " from trip to trip, and needs bounds: give --dim " +
                       shellWord(name.str() + (least == 0 ? "=0..64" : "=1..64")) + " or the like");
}

/// Whether an input of the model has a dim of this name, fixed or not: its bounds are not those of what grows.
bool Loop::isOfModel(llvm::StringRef name) {
  for (const proto::Value &input : n.lowering.file.model().graph().input())
    for (const proto::Type::Dim &dim : input.type().tensor().shape().dim())
      if (dim.name() == name) return true;
  return llvm::any_of(n.lowering.module.dims, [&](UOpRef d) { return d->str == name; });
}

bool Loop::boundsOf(UOpRef from, UOpRef begin, UOpRef next, const std::string &flag, const std::string &declared,
                    int64_t &lo, int64_t &hi, Bounds &by) {
  const DimBound *bound = n.lowering.bound(flag);
  if (!bound && !isOfModel(declared)) bound = n.lowering.bound(declared);
  std::optional<int64_t> step = idxSub(c, next, from)->constIndex();
  constexpr int64_t most = int64_t(1) << 30;
  if (bound && bound->value.empty()) {
    by = Bounds::Given, lo = bound->lo, hi = bound->hi;
  } else if (step && std::abs(*step) <= most && trips && trips->hi <= most) {
    int64_t distance = *step * std::max<int64_t>(0, trips->hi);
    by = Bounds::Step;
    lo = std::max<int64_t>(0, begin->lo + std::min<int64_t>(0, distance));
    hi = begin->hi + std::max<int64_t>(0, distance);
  } else if (!next->constIndex() && (from->constIndex() || !isPart(from, next))) {
    by = Bounds::Others; // of a constant it is seen in the next round whether it went into what it becomes
    lo = std::min(begin->lo, std::max<int64_t>(0, next->lo)), hi = std::max(begin->hi, next->hi);
  } else {
    return false;
  }
  return true;
}

UOpRef Loop::makeDim(const std::string &flag, int64_t lo, int64_t hi) {
  std::string name = flag;
  for (unsigned suffix = 2; n.lowering.loopDims.contains(name) || isOfModel(name); ++suffix)
    name = flag + "_" + std::to_string(suffix);
  n.lowering.loopDims.insert(name);
  llvm::Expected<UOpRef> dim = c.tryMake(Op::Dim, {}, {lo, hi}, name);
  return dim ? *dim : n.fail(llvm::toString(dim.takeError()));
}

/// The dim of an extent that changes from trip to trip, under the name that the body's input declares or one made from
/// that; null, and a failure, when nothing gives its bounds. See Note [Extents that change].
UOpRef Loop::carriedDim(size_t value, unsigned axis, UOpRef next) {
  UOpRef begin = initial[value]->shape[axis], from = shapes[value][axis];
  for (const Carried &d : dims)
    if (d.round == round && d.begin == begin && d.from == from && d.next == next) return d.dim;
  std::string declared = n.name() + "_" + std::to_string(value) + "_" + std::to_string(axis);
  const auto &shape = body->input(2 + int(value)).type().tensor().shape();
  if (int(axis) < shape.dim_size()) {
    llvm::StringRef name = shape.dim(int(axis)).name();
    if (!name.empty() && name.find_first_of("=,") == name.npos) declared = name.str(); // else no flag can name it
  }
  std::string flag = declared;
  for (unsigned suffix = 2; n.lowering.loopFlags.contains(flag) || isOfModel(flag); ++suffix)
    flag = declared + "_" + std::to_string(suffix);
  int64_t lo, hi;
  Bounds by;
  if (!boundsOf(from, begin, next, flag, declared, lo, hi, by)) return needsBounds(value, axis, flag, begin->lo);
  UOpRef dim = makeDim(flag, lo, hi);
  if (!dim) return nullptr;
  n.lowering.loopFlags.insert(flag);
  int64_t step = by == Bounds::Step ? *idxSub(c, next, from)->constIndex() : 0;
  dims.push_back({dim, from, begin, next, flag, round, by, step});
  return dim;
}

/// Bounds that follow from extents which turn out to have wider ones. False after a failure.
bool Loop::widen(Carried &d, UOpRef here) {
  UOpRef wider = makeDim(d.flag, std::min(d.dim->lo, std::max<int64_t>(0, here->lo)), std::max(d.dim->hi, here->hi));
  if (!wider) return false;
  for (Dims &shape : shapes) std::replace(shape.begin(), shape.end(), d.dim, wider);
  d.dim = wider;
  return true;
}

/// Compares what the body gives with what it takes; `changed` when an extent became a carried dim, and the body must be
/// lowered again. False after a failure.
bool Loop::place(Values &results, bool &changed) {
  changed = false;
  for (Carried &d : dims) d.becomes = nullptr;
  for (size_t i = 0; i < initial.size(); ++i) {
    UOpRef next = results[1 + i];
    if (next->dtype != initial[i]->dtype || next->rank() != initial[i]->rank()) {
      n.fail("carried value " + llvm::Twine(i) + " begins as " + typeText(initial[i]->dtype, initial[i]->shape) +
             " and goes on as " + typeText(next->dtype, next->shape));
      return false;
    }
    for (unsigned axis = 0; isRead[i] && axis < next->rank(); ++axis) {
      UOpRef here = next->shape[axis];
      auto carried = llvm::find_if(dims, [&](const Carried &d) { return d.dim == shapes[i][axis]; });
      if (carried != dims.end()) {
        if (!carried->becomes) carried->becomes = here;
        if (carried->becomes == here) {
          // The first trip began at a constant, maybe: its step may not be that of all.
          bool others = carried->by == Bounds::Others;
          bool isWider = others && (here->lo < carried->dim->lo || here->hi > carried->dim->hi);
          if ((carried->by == Bounds::Step && idxSub(c, here, carried->dim)->constIndex() != carried->step) ||
              (others && isPart(carried->dim, here)) || (isWider && round + 2 >= mostRounds))
            return needsBounds(i, axis, carried->flag, carried->begin->lo);
          if (isWider && !widen(*carried, here)) return false;
          changed |= isWider;
          continue;
        }
      } else if (here == shapes[i][axis]) {
        continue;
      }
      UOpRef dim = carriedDim(i, axis, here);
      if (!dim) return false;
      shapes[i][axis] = dim;
      changed = true;
    }
  }
  return true;
}

/// Whether every carried value goes on in the shape in which it began.
bool Loop::keepsShapes(const Values &results) {
  for (size_t i = 0; i < initial.size(); ++i)
    if (!llvm::equal(initial[i]->shape, results[1 + i]->shape)) return false;
  return true;
}

/// The data dims from around that carried values and stacked outputs have.
std::vector<UOpRef> Loop::dataDims(const Values &results, size_t begin) {
  llvm::SetVector<UOpRef> found;
  auto look = [&](llvm::ArrayRef<UOpRef> shape) {
    for (UOpRef extent : shape)
      for (UOpRef part : indexParts(extent))
        if (part->is(Op::Extent) && part->id < begin) found.insert(part);
  };
  for (UOpRef value : initial) look(value->shape);
  for (const Dims &shape : shapes) look(shape);
  for (size_t i = 1 + initial.size(); i < results.size(); ++i) look(results[i]->shape);
  return {found.begin(), found.end()};
}

void Loop::asScan(Closure &closure, const Values &results, UOpRef iteration) {
  llvm::SmallVector<UOpRef, 8> values = {n.bin(Op::Add, iteration, n.b.litInt(DType::I64, 1))};
  values.append(results.begin() + 1, results.end());
  if (!closure.capture(values)) return;
  UOpRef length = idxMax(c, c.index(0), trips);
  llvm::SmallVector<UOpRef, 8> src = {n.b.litInt(DType::I64, 0)};
  src.append(initial.begin(), initial.end());
  src.append(closure.captured().begin(), closure.captured().end());
  src.push_back(length);
  int64_t carries = 1 + int64_t(initial.size());
  UOpRef scan = control(n, Op::Scan, src, {carries, 0}, "", {closure.func(values)});
  for (size_t i = 1; scan && i < values.size(); ++i) {
    Dims shape(values[i]->shape.begin(), values[i]->shape.end());
    if (int64_t(i) >= carries) shape.insert(shape.begin(), length);
    n.give(i - 1, result(n, scan, i, values[i]->dtype, shape));
  }
}

/// How many trips a buffer of stacked rows has room for: a bound that the user or the graph gives.
int64_t Loop::roomOfTrips() {
  std::string name = n.name() + "_trips";
  const DimBound *bound = n.lowering.bound(name);
  if (bound && !bound->value.empty()) bound = nullptr;
  int64_t room = bound ? bound->hi : trips ? std::max<int64_t>(0, trips->hi) : 0;
  if ((!bound && !trips) || room > mostTrips)
    n.unsupported("its stacked outputs need a bound of the number of trips: give --dim " + shellWord(name + "=0..100") +
                  " or the like" + n.cause(limit));
  return room;
}

/// Carried: the number of the trip, the values, the condition, a buffer for each stacked output, for each data dim from
/// around a value of that extent, which says that it stays, then what the body takes from around, unchanged.
void Loop::asWhile(Closure &closure, const Values &results, UOpRef iteration, llvm::ArrayRef<UOpRef> ofData) {
  int64_t room = stacked ? roomOfTrips() : 0;
  if (n.failed()) return;
  UOpRef one = n.b.litInt(DType::I64, 1), zero = n.b.litInt(DType::I64, 0);
  UOpRef go = closure.own(DType::Bool, {});
  llvm::SmallVector<UOpRef, 8> next = {n.bin(Op::Add, iteration, one)}, src = {zero};
  next.append(results.begin() + 1, results.begin() + 1 + initial.size());
  next.push_back(results[0]);
  src.append(initial.begin(), initial.end());
  src.push_back(start ? start : truth());
  for (size_t i = 0; i < stacked && !n.failed(); ++i) {
    UOpRef row = results[1 + initial.size() + i];
    for (const Carried &d : dims)
      for (UOpRef extent : row->shape)
        for (UOpRef part : topoSort(extent))
          if (part == d.dim) n.unsupported("stacked output " + llvm::Twine(i) + " changes its shape from trip to trip");
    Dims shape(row->shape.begin(), row->shape.end());
    shape.insert(shape.begin(), c.index(std::max<int64_t>(room, 1)));
    UOpRef buffer = closure.own(row->dtype, shape);
    if (n.failed()) return;
    llvm::SmallVector<UOpRef, 6> update = {buffer, n.unsqueeze(row, {0}), iteration};
    update.append(row->rank(), zero);
    next.push_back(n.make(Op::UpdateAt, update));
    src.push_back(n.broadcastTo(c.literal(row->dtype, 0), shape));
  }
  // The extents of what the body does not read.
  struct Extent {
    size_t value, axis, place;
    UOpRef begin, next;
  };
  std::vector<Extent> extents;
  for (size_t i = 0; i < initial.size(); ++i)
    for (size_t axis = 0; !isRead[i] && axis < initial[i]->rank(); ++axis) {
      UOpRef begin = initial[i]->shape[axis], becomes = results[1 + i]->shape[axis];
      if (begin == becomes) continue;
      extents.push_back({i, axis, next.size(), begin, becomes});
      closure.own(DType::I64, {});
      next.push_back(n.b.fromIndex(becomes, DType::I64));
      src.push_back(n.b.fromIndex(begin, DType::I64));
    }
  std::vector<std::string> names;
  Dims begins;
  for (const Carried &d : dims) names.push_back(d.dim->str.str()), begins.push_back(d.begin);
  for (UOpRef extent : ofData) {
    UOpRef dim = makeDim(n.name() + "_size", std::max<int64_t>(0, extent->lo), extent->hi);
    if (!dim) return;
    closure.carry(extent, dim);
    names.push_back(dim->str.str());
    begins.push_back(extent);
    next.push_back(closure.own(DType::Bool, {extent}));
    src.push_back(n.broadcastTo(truth(), {extent}));
  }
  UOpRef goesOn = limit ? n.bin(Op::And, go, n.bin(Op::Lt, iteration, limit)) : go;
  if (n.failed() || !closure.capture(next) || !closure.capture({goesOn})) return;
  src.append(closure.captured().begin(), closure.captured().end());
  // What a dim becomes is seen at a value of that extent that the body reads.
  std::vector<UOpRef> read = topoSort(next);
  for (const Carried &d : dims)
    if (llvm::none_of(read, [&](UOpRef x) { return x->is(Op::Arg) && llvm::is_contained(x->shape, d.dim); })) {
      n.unsupported("a carried value changes its extent '" + d.flag +
                    "' from trip to trip, and the body reads none of its elements, only its shape");
      return;
    }
  src.append(begins.begin(), begins.end());
  UOpRef condition = closure.func({goesOn});
  UOpRef loop = control(n, Op::While, src, {}, llvm::join(names, ","), {condition, closure.func(next, true)});
  if (!loop) return;
  size_t carried = next.size() + closure.captured().size();
  auto extent = [&](UOpRef count, int64_t lo, int64_t hi) { return n.make(Op::Extent, {count}, {lo, hi}); };
  Dims final;
  for (size_t d = 0; d < dims.size(); ++d)
    final.push_back(extent(result(n, loop, carried + d, DType::I64, {}), dims[d].dim->lo, dims[d].dim->hi));
  for (size_t i = 0; i < initial.size() && !n.failed(); ++i) {
    Dims shape = shapes[i];
    for (UOpRef &axis : shape)
      for (size_t d = 0; d < dims.size(); ++d)
        if (axis == dims[d].dim) axis = final[d];
    for (const Extent &e : extents)
      if (e.value == i)
        shape[e.axis] = extent(result(n, loop, e.place, DType::I64, {}), std::min(e.begin->lo, e.next->lo),
                               std::max(e.begin->hi, e.next->hi));
    n.give(i, result(n, loop, 1 + i, initial[i]->dtype, shape));
  }
  UOpRef count = stacked ? extent(result(n, loop, 0, DType::I64, {}), 0, room) : nullptr;
  for (size_t i = 0; i < stacked && !n.failed(); ++i) {
    UOpRef like = next[2 + initial.size() + i];
    UOpRef all = result(n, loop, 2 + initial.size() + i, like->dtype, like->shape);
    Dims size(like->shape.begin(), like->shape.end());
    size[0] = count;
    n.give(initial.size() + i, n.shrink(all, Dims(size.size(), c.index(0)), size));
  }
}

/// The body once for each trip. False when the limit is not a small constant or a condition is not known.
bool Loop::unrolled() {
  std::optional<int64_t> count = limit ? constant(limit) : std::nullopt;
  if (!count || *count > mostUnrolled || (*count < 1 && stacked)) return false;
  std::vector<Held> values = begun;
  std::vector<llvm::SmallVector<UOpRef, 4>> rows(stacked);
  bool go = true;
  for (int64_t trip = 0; go && trip < *count; ++trip) {
    std::vector<Held> inputs = {{n.b.litInt(DType::I64, trip)}, {truth()}};
    inputs.insert(inputs.end(), values.begin(), values.end());
    auto results = n.lowering.heldBody(*body, inputs, n.scope, n.title() + ", body");
    if (!results) return n.failReported(), false;
    UOpRef goesOn = controlScalar(n, results->front().tensor, DType::Bool, "the condition that the body gives");
    std::optional<int64_t> condition = goesOn ? constant(goesOn) : std::nullopt;
    if (!condition) return false;
    go = *condition != 0;
    std::copy_n(results->begin() + 1, values.size(), values.begin());
    for (size_t i = 0; i < stacked; ++i) {
      UOpRef row = (*results)[1 + values.size() + i].tensor;
      if (!row) return n.unsupported("stacked output " + llvm::Twine(i) + " is no tensor"), false;
      rows[i].push_back(n.unsqueeze(row, {0}));
    }
  }
  for (size_t i = 0; i < values.size(); ++i) n.give(i, values[i]);
  for (size_t i = 0; i < stacked; ++i) n.give(values.size() + i, n.concat(rows[i], 0));
  return !n.failed();
}

void Loop::lower() {
  body = n.graphAttr("body");
  if (n.has(0)) limit = controlScalar(n, n.in(0), DType::I64, "the limit (input 0)");
  if (n.has(1)) start = controlScalar(n, n.in(1), DType::Bool, "the condition (input 1)");
  for (unsigned i = 2; i < n.numInputs(); ++i) begun.push_back(n.held(i));
  if (n.failed()) return;
  if (body->input_size() != int(2 + begun.size()) || body->output_size() < int(1 + begun.size())) {
    n.fail("the body takes " + llvm::Twine(body->input_size()) + " values and gives " +
           llvm::Twine(body->output_size()) + ", which does not fit " + llvm::Twine(begun.size()) + " carried values");
    return;
  }
  stacked = body->output_size() - 1 - begun.size();
  for (const Held &value : begun)
    if (value.tensor) initial.push_back(value.tensor);
  if (initial.size() != begun.size()) {
    if ((start && constant(start) != 1) || (!unrolled() && !n.failed()))
      n.unsupported("it carries a sequence or an optional value: its limit must be known and at most " +
                    llvm::Twine(mostUnrolled) + ", its conditions known" + n.cause(limit) + n.cause(start));
    return;
  }
  for (UOpRef value : initial) shapes.push_back(Dims(value->shape.begin(), value->shape.end()));
  if (const auto *known = limit ? n.elements(limit) : nullptr) trips = known->front();
  bool starts = !start || constant(start) == 1;
  std::optional<TripCount> counted = tripCount(n, *body, initial, limit, start);
  if (counted) trips = counted->trips;

  llvm::StringSet<> read = namesRead(*body);
  for (size_t i = 0; i < initial.size(); ++i) isRead.push_back(read.contains(body->input(2 + int(i)).name()));

  Failures before = n.lowering.failures;
  const llvm::StringSet<> flags = n.lowering.loopFlags;
  const size_t begin = c.size();
  for (;; ++round) {
    Closure closure(n, begin);
    UOpRef iteration = closure.own(DType::I64, {});
    llvm::SmallVector<UOpRef, 8> inputs = {iteration, truth()};
    for (auto [value, shape] : llvm::zip(initial, shapes)) inputs.push_back(closure.own(value->dtype, shape));
    if (n.failed()) return;
    // Where the number of trips has a bound, so has the number of the trip: slices that begin there are seen to stay
    // inside.
    if (trips && trips->hi >= 1 && trips->hi <= mostTrips) {
      UOpRef number = n.make(Op::Extent, {iteration}, {0, trips->hi - 1});
      n.lowering.shared.known.define(iteration, number);
      for (size_t k = 0; counted && k < counted->counters.size(); ++k) {
        auto [value, begin, step] = counted->counters[k];
        n.lowering.shared.known.define(inputs[2 + value], idxAdd(c, begin, idxMul(c, number, c.index(step))));
      }
    }
    // The flags of loops inside, which are lowered once more, are free again.
    n.lowering.loopFlags = flags;
    for (const Carried &d : dims) n.lowering.loopFlags.insert(d.flag);
    std::optional<Values> results = run(inputs);
    bool changed = false;
    if (!results && !n.failed()) n.failReported();
    if (n.failed() || !place(*results, changed)) break;
    if (changed && round + 1 < mostRounds) continue;
    std::vector<UOpRef> ofData = dataDims(*results, begin);
    if (changed)
      n.unsupported("extents of carried values follow from one another in more than " + llvm::Twine(mostRounds) +
                    " steps");
    else if (dims.empty() && ofData.empty() && trips && (counted || (starts && constant(results->front()) == 1)) &&
             keepsShapes(*results))
      asScan(closure, *results, iteration);
    else
      asWhile(closure, *results, iteration, ofData);
    if (!n.failed()) return;
    break;
  }
  // What a function of the number of the trip cannot say (a size that follows from it), its constant may.
  Failures asLoop = std::exchange(n.lowering.failures, before);
  Node::Failure why = n.takeFailure();
  if (starts && unrolled()) return;
  n.lowering.failures = std::move(asLoop);
  n.setFailure(why);
  std::string hint;
  if (limit && !constant(limit)) hint = n.cause(limit);
  if (hint.empty() && !starts) hint = n.cause(start);
  if (n.wasReported() && !hint.empty())
    n.lowering.failures.add(n.scope.where + n.title() +
                                ": a body like this needs a limit and a first condition that are "
                                "known" +
                                hint,
                            true);
}

} // namespace

void loop(Node &n) { Loop(n).lower(); }

} // namespace astra::onnx
