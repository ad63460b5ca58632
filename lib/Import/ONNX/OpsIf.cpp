//===- OpsIf.cpp: If -------------------------------------------------------===//
// Takes:    a node with a condition and two graphs.
// Gives:    the branch taken where the condition is known while importing; else a `cond`, of which one branch runs.
// Keeps:    both branches give one type and one rank. An extent that differs between them, or that data of a branch
//           decide, is a data dim of the result: each branch pads its value to what both need and says the extent.
// Does not: run both branches and select: a branch is there to save work.
#include "Control.h"
#include "Deciding.h"
#include "Lowering.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "onnx.pb.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::onnx {

namespace {

using Values = std::vector<UOpRef>;

/// The results of both branches, made equal in shape.
class Joined {
public:
  Joined(Node &n, const Values &yes, const Values &no) : n(n), yes(yes), no(no), values(yes.size()) {}

  /// What the branches hand out: values in their rooms, then the extents that differ. False after a failure.
  bool place();
  llvm::ArrayRef<UOpRef> ofThen() const { return yes; }
  llvm::ArrayRef<UOpRef> ofElse() const { return no; }
  /// The results of the node.
  Values of(UOpRef cond);

private:
  UOpRef room(UOpRef a, UOpRef b);

  Node &n;
  Values yes, no;
  size_t values;
  llvm::MapVector<std::pair<UOpRef, UOpRef>, size_t> differing; // and the number of the result that says which
  std::vector<std::pair<Dims, Dims>> shapes;                    // of each value, in the two branches
};

/// What holds both extents; null where they have no bound. Of one that the run reports only the bounds are known.
UOpRef Joined::room(UOpRef a, UOpRef b) {
  UOpRef x = roomFor(n.c, a), y = roomFor(n.c, b);
  return !x || !y || a == b ? x : n.c.index(std::max({x->hi, y->hi, a->hi, b->hi}));
}

bool Joined::place() {
  for (size_t i = 0; i < values; ++i) {
    Dims a(yes[i]->shape.begin(), yes[i]->shape.end()), b(no[i]->shape.begin(), no[i]->shape.end()), rooms;
    for (auto [x, y] : llvm::zip(a, b)) {
      rooms.push_back(x == y && !isDataDim(x) ? x : room(x, y));
      if (!rooms.back()) {
        n.unsupported("result " + llvm::Twine(i) + " of a branch is " + typeText(yes[i]->dtype, a) + " or " +
                      typeText(no[i]->dtype, b) + ", and its size has no bound");
        return false;
      }
      if (x != y) differing.insert({{x, y}, values + differing.size()});
    }
    yes[i] = padTo(n, yes[i], rooms), no[i] = padTo(n, no[i], rooms);
    if (n.failed()) return false;
    shapes.push_back({a, b});
  }
  for (const auto &[extents, number] : differing) {
    yes.push_back(n.fromIndex(extents.first, DType::I64));
    no.push_back(n.fromIndex(extents.second, DType::I64));
  }
  return !n.failed();
}

Values Joined::of(UOpRef cond) {
  llvm::DenseMap<std::pair<UOpRef, UOpRef>, UOpRef> extents;
  for (const auto &[pair, number] : differing) {
    auto [a, b] = pair;
    extents[pair] = n.make(Op::Extent, {result(n, cond, int64_t(number), DType::I64, {})},
                           {std::min(a->lo, b->lo), std::max(a->hi, b->hi)});
  }
  Values results;
  for (size_t i = 0; i < values && !n.failed(); ++i) {
    Dims size;
    for (auto [a, b] : llvm::zip(shapes[i].first, shapes[i].second))
      size.push_back(a == b ? a : extents.lookup({a, b}));
    UOpRef whole = result(n, cond, int64_t(i), yes[i]->dtype, yes[i]->shape);
    results.push_back(n.shrink(whole, Dims(size.size(), n.c.index(0)), size));
  }
  return results;
}

/// What a branch gives: the tensors that it is made of, and how many each value has.
struct Form {
  Values tensors;
  std::vector<size_t> counts;
  std::vector<std::string> words;
};

std::optional<Form> formOf(Node &n, llvm::ArrayRef<Held> values) {
  Form form;
  for (const Held &v : values) {
    Values elements;
    if (v.tensor) elements = {v.tensor};
    if (v.list) {
      std::optional<Values> all = elementsOf(n, *v.list);
      if (!all) return std::nullopt;
      elements = std::move(*all);
    }
    form.tensors.insert(form.tensors.end(), elements.begin(), elements.end());
    form.counts.push_back(elements.size());
    form.words.push_back(v.tensor ? "a tensor"
                         : v.list ? "a sequence of " + std::to_string(elements.size()) + " elements"
                                  : "an optional value without an element");
  }
  return form;
}

/// What stands for a branch that cannot run, of the types of the other one: values that a data dim gives which is 0
/// where its bounds begin at 1, so that a call that takes the branch stops with a sentence of the runtime.
std::vector<Held> stopping(Node &n, UOpRef condition, bool taken, llvm::ArrayRef<Held> like) {
  UOpRef number = n.cast(condition, DType::I64);
  if (taken) number = n.bin(Op::Sub, n.literal(number, 1), number);
  UOpRef none = n.failed() ? nullptr : n.make(Op::Extent, {number}, {1, 2});
  UOpRef value = none ? n.fromIndex(none, DType::I64) : nullptr;
  std::vector<Held> values;
  for (const Held &h : like) {
    UOpRef x = h.tensor, one = value && x->dtype != DType::I64 ? n.cast(value, x->dtype) : value;
    values.push_back({one ? n.broadcastTo(one, x->shape) : nullptr});
    if (!values.back().tensor) return {};
  }
  return values;
}

} // namespace

void conditional(Node &n) {
  const proto::Graph *graphs[] = {n.graphAttr("then_branch"), n.graphAttr("else_branch")};
  UOpRef condition = controlScalar(n, n.in(0), DType::Bool, "the condition");
  if (n.failed()) return;
  auto branch = [&](bool taken) {
    return n.lowering.heldBody(*graphs[taken ? 0 : 1], {}, n.scope,
                               n.title() + (taken ? ", then_branch" : ", else_branch"));
  };
  if (const auto *known = n.elements(condition); known && known->front()->constIndex()) {
    auto results = branch(*known->front()->constIndex() != 0);
    if (!results) return n.failReported();
    for (auto [i, value] : llvm::enumerate(*results)) n.give(i, value);
    return;
  }
  Closure closure(n);
  std::optional<std::vector<Held>> yes, no;
  Failures &failures = n.lowering.failures, before = failures;
  // Each by itself: a branch whose shapes do not fit, whatever the dims are, cannot run, and the other one may.
  auto isImpossible = [&](bool taken, std::optional<std::vector<Held>> &results) {
    failures = Failures();
    results = branch(taken);
    return !results && failures.isImpossible();
  };
  bool never = isImpossible(true, yes);
  Failures ofThen = std::exchange(failures, Failures());
  bool neverElse = isImpossible(false, no);
  const std::string first = (never ? ofThen : failures).first();
  failures = std::move(before);
  auto &possible = never ? no : yes;
  bool areTensors = possible && llvm::all_of(*possible, [](const Held &h) { return h.tensor; });
  if (never != neverElse && areTensors) {
    std::optional<std::vector<Held>> &missing = never ? yes : no;
    missing = stopping(n, condition, never, *possible);
    if (n.failed() || missing->empty()) return;
    if (n.lowering.options.notes)
      n.lowering.options.notes->push_back(n.scope.where + n.title() + ": a call whose condition is " +
                                          (never ? "true" : "false") + " is refused when it runs: " + first);
  } else if (!yes || !no) {
    bool wrong = failures.isWrong();
    if (never == neverElse || !never) yes = branch(true); // once more, to keep what it says
    if (never == neverElse || !neverElse) no = branch(false);
    // The graph that does not fit may be one that is never taken.
    if (std::string hint = decidingHint(n, condition); !hint.empty()) {
      failures.setWrong(wrong);
      failures.add(n.scope.where + n.title() + ": both branches are compiled, because its condition is not " + "known" +
                       hint,
                   true);
    }
    return n.failReported();
  }
  if (yes->size() != no->size()) {
    n.fail("the branches give " + llvm::Twine(yes->size()) + " and " + llvm::Twine(no->size()) + " values");
    return;
  }
  std::optional<Form> formOfYes = formOf(n, *yes), formOfNo = formOf(n, *no);
  if (!formOfYes || !formOfNo) return;
  for (auto [a, b] : llvm::zip(formOfYes->words, formOfNo->words))
    if (a != b) {
      n.unsupported("the branches give " + a + " and " + b +
                    ": both must be of one form where the condition is not known" + decidingHint(n, condition));
      return;
    }
  for (auto [a, b] : llvm::zip(formOfYes->tensors, formOfNo->tensors))
    if (a->dtype != b->dtype || a->rank() != b->rank()) {
      n.unsupported("the branches give " + typeText(a->dtype, a->shape) + " and " + typeText(b->dtype, b->shape) +
                    ": types and ranks must be equal where the condition is not known" + decidingHint(n, condition));
      return;
    }
  Joined joined(n, formOfYes->tensors, formOfNo->tensors);
  if (!joined.place() || !closure.capture(joined.ofThen()) || !closure.capture(joined.ofElse())) return;
  llvm::SmallVector<UOpRef, 8> src = {condition};
  src.append(closure.captured().begin(), closure.captured().end());
  UOpRef cond = control(n, Op::Cond, src, {}, "", {closure.func(joined.ofThen()), closure.func(joined.ofElse())});
  if (!cond) return;
  Values results = joined.of(cond);
  if (n.failed()) return;
  auto next = results.begin();
  for (auto [i, count] : llvm::enumerate(formOfYes->counts)) {
    Values its(next, next + count);
    next += count;
    n.give(i, (*yes)[i].list ? Held{nullptr, listOf(its)} : count ? Held{its.front()} : Held{});
  }
}

} // namespace astra::onnx
