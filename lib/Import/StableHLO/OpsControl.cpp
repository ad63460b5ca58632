//===- OpsControl.cpp: calls, branches, loops, what is for several devices --===//
// Takes:    regions and functions.
// Gives:    cond and while UOps; calls are inlined; a branch whose condition is known is taken while importing.
// Keeps:    regions are lowered once, in place, and closed over (Closure.h).
#include "Lowering.h"
#include "Shardings.h"
#include "astra/Compose/Closure.h"
#include "astra/Compose/Scan.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <functional>

namespace astra::stablehlo {

namespace {

void inlined(Statement &s, const std::string &name) {
  const Operation *f = s.b.failed() ? nullptr : s.b.function(name);
  if (!f) {
    s.fail("there is no function '" + name + "'");
    return;
  }
  std::vector<UOpRef> xs = s.inputs(0, s.numInputs());
  if (s.b.failed()) return;
  std::vector<UOpRef> results = s.b.call(*f, xs);
  if (!s.b.failed()) s.give(results);
}

void call(Statement &s) { inlined(s, s.stringAttr("callee")); }

/// An op of CHLO that has a row is that, its attributes those of the composite; any other is what it is composed of.
void composite(Statement &s) {
  std::string name = s.stringAttr("name");
  const Row *row = findRow(name);
  bool own = row && row->lower && llvm::StringRef(name).starts_with("chlo.") && s.numInputs() >= row->least &&
             s.numInputs() <= row->most &&
             llvm::none_of(s.inputs(0, s.numInputs()), [](UOpRef x) { return !x || isComplex(x->dtype); });
  if (s.b.failed()) return;
  if (!own) return inlined(s, s.stringAttr("decomposition"));
  Operation op = s.op;
  if (const Attribute *attributes = s.op.find("composite_attributes")) op.attributes = attributes->fields;
  Statement inner(s.b, op);
  row->lower(inner);
  if (!s.b.failed()) s.give(inner.outputs);
}

bool sameTypes(Statement &s, llvm::ArrayRef<UOpRef> a, llvm::ArrayRef<UOpRef> b, const char *what) {
  if (s.b.failed()) return false;
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) {
    same = a[i]->dtype == b[i]->dtype && a[i]->shape == b[i]->shape;
    if (!same)
      s.fail(llvm::Twine(what) + " give " + typeText(a[i]->dtype, a[i]->shape) + " and " +
             typeText(b[i]->dtype, b[i]->shape));
  }
  if (!same) s.fail(llvm::Twine(what) + " give different numbers of values");
  return same;
}

/// Region `first` where the condition holds, else what `rest` gives.
std::vector<UOpRef> branch(Statement &s, UOpRef condition, unsigned first,
                           llvm::function_ref<std::vector<UOpRef>()> rest) {
  Lowering &b = s.b;
  if (const auto *known = b.elements(condition); known && known->front()->constIndex())
    return *known->front()->constIndex() ? s.body(first, {}) : rest();
  compose::Closure closure(b);
  std::vector<UOpRef> yes = s.body(first, {}), no = rest();
  if (!sameTypes(s, yes, no, "the branches") || !closure.capture(yes) || !closure.capture(no)) return {};
  llvm::SmallVector<UOpRef, 8> src = {condition};
  src.append(closure.captured().begin(), closure.captured().end());
  UOpRef cond = compose::control(b, Op::Cond, src, {}, "", {closure.func(yes), closure.func(no)});
  std::vector<UOpRef> results;
  for (size_t i = 0; i < yes.size() && cond; ++i)
    results.push_back(compose::result(b, cond, int64_t(i), yes[i]->dtype, yes[i]->shape));
  return results;
}

UOpRef scalarOf(Statement &s, DType t) {
  UOpRef x = s.in(0);
  if (x && (x->dtype != t || x->rank()))
    return s.fail(llvm::Twine("the operand must be a scalar of type ") + info(t).text);
  return x;
}

void ifOp(Statement &s) {
  UOpRef condition = scalarOf(s, DType::Bool);
  if (condition) s.give(branch(s, condition, 0, [&] { return s.body(1, {}); }));
}

/// An index outside is the last branch. Two branches a time.
void caseOp(Statement &s) {
  UOpRef index = scalarOf(s, DType::I32);
  unsigned n = s.op.regions.size();
  if (n == 0) s.fail("the op has no branch");
  if (n > 48) s.unsupported("more than 48 branches are not supported");
  if (s.b.failed()) return;
  std::function<std::vector<UOpRef>(unsigned)> from = [&](unsigned i) {
    if (i + 1 == n) return s.body(i, {});
    UOpRef taken = s.b.bin(Op::Eq, index, double(i));
    return taken ? branch(s, taken, i, [&] { return from(i + 1); }) : std::vector<UOpRef>();
  };
  s.give(from(0));
}

void whileOp(Statement &s) {
  Lowering &b = s.b;
  std::vector<UOpRef> initial = s.inputs(0, s.numInputs()), carried;
  if (b.failed()) return;
  compose::Closure closure(b);
  for (UOpRef x : initial) carried.push_back(closure.own(x->dtype, x->shape));
  if (b.failed()) return;
  std::vector<UOpRef> goesOn = s.body(0, carried);
  if (!b.failed() && (goesOn.size() != 1 || goesOn[0]->dtype != DType::Bool || goesOn[0]->rank()))
    s.fail("the condition must be one scalar of type i1");
  std::vector<UOpRef> next = b.failed() ? std::vector<UOpRef>() : s.body(1, carried);
  if (!sameTypes(s, carried, next, "argument and result of the body")) return;
  if (!closure.capture(next) || !closure.capture(goesOn)) return;
  llvm::SmallVector<UOpRef, 8> src(initial.begin(), initial.end());
  src.append(closure.captured().begin(), closure.captured().end());
  UOpRef loop = compose::control(b, Op::While, src, {}, "", {closure.func(goesOn), closure.func(next, true)});
  for (size_t i = 0; i < initial.size() && !b.failed(); ++i)
    s.give(i, compose::result(b, loop, int64_t(i), initial[i]->dtype, initial[i]->shape));
}

void map(Statement &s) {
  std::vector<UOpRef> xs = s.inputs(0, s.numInputs());
  if (s.b.failed()) return;
  for (UOpRef x : xs)
    if (x->shape != xs[0]->shape) s.fail("the operands must be of one shape");
  std::vector<UOpRef> results = s.b.failed() ? std::vector<UOpRef>() : s.lifted(0, xs);
  for (UOpRef &r : results) r = s.b.broadcastTo(r, xs[0]->shape);
  if (!s.b.failed()) s.give(results);
}

// ---- custom calls

void same(Statement &s) {
  for (unsigned i = 0; i < s.outputs.size() && !s.b.failed(); ++i) s.give(i, s.in(i));
}

/// JAX's assertions on shapes: one that is known to hold says nothing.
void shapeAssertion(Statement &s) {
  UOpRef holds = scalarOf(s, DType::Bool);
  const std::vector<UOpRef> *known = holds ? s.b.elements(holds) : nullptr;
  if (!holds || (known && known->front()->lo == 1)) return;
  std::string message = "an assertion on shapes";
  if (const Attribute *m = s.op.find("error_message")) {
    llvm::StringRef text = m->string;
    message = text.take_front(text.find(" Using the following")).str();
    size_t place = 0;
    for (unsigned i = 1; i < s.numInputs(); ++i) { // {0} is the first value behind the condition
      UOpRef value = s.in(i);
      const std::vector<UOpRef> *e = value ? s.b.elements(value) : nullptr;
      std::string mark = "{" + std::to_string(i - 1) + "}", shown = e ? indexText(e->front()) : "?";
      while ((place = message.find(mark)) != std::string::npos) message.replace(place, mark.size(), shown);
    }
  }
  bool fails = known && known->front()->hi == 0;
  std::string sentence = (fails ? "does not hold: " : "is not known to hold: ") + message;
  fails ? s.fail(sentence) : s.unsupported(sentence + "; give other bounds, or say what a dim is, with --dim");
}

struct Target {
  const char *name;
  void (*lower)(Statement &);
};
constexpr Target targets[] = {
    {"shape_assertion", shapeAssertion},
    {"stablehlo.dynamic_reduce_window", dynamicReduceWindow},
    {"Sharding", same},
    {"SPMDFullToShardShape", same},
    {"SPMDShardToFullShape", same},
    {"LayoutConstraint", same},
    {"annotate_device_placement", same},
};

void customCall(Statement &s) {
  std::string name = s.stringAttr("call_target_name");
  for (const Target &t : targets)
    if (name == t.name) return t.lower(s);
  if (llvm::StringRef(name).starts_with("lapack_")) return lapackCall(s, name);
  s.unsupported("the target '" + name + "' is not supported");
}

/// A value in the middle, cut as it says from here on.
void shardingConstraint(Statement &s) {
  const Attribute *a = s.op.find("sharding");
  const Mesh &mesh = s.b.module.mesh;
  llvm::Expected<Sharding> sharding = a ? shardingOf(*a, mesh) : llvm::createStringError("it has no sharding");
  if (!sharding) {
    s.unsupported(llvm::toString(sharding.takeError()));
    return;
  }
  UOpRef x = s.in(0);
  if (s.b.failed()) return;
  Sharding to = *sharding;
  bool isOpen = !to.isDeclared() && a->text.contains('?'); // whatever follows from the rest
  to.axes.resize(x->shape.size());                         // of one that names no axis: whole
  bool isSame = mesh.isEmpty() || x->shape.empty() || isOpen;
  s.give(isSame ? x : s.b.module.ctx().make(Op::Reshard, {x}, {}, shardingText(mesh, to)));
}

// ---- tuples and tokens

void tuple(Statement &s) {
  if (s.outputs.size() == 1 && !s.b.failed()) s.b.tuples[s.op.results[0]] = s.inputs(0, s.numInputs());
}
void tupleElement(Statement &s) {
  auto found = s.b.tuples.find(s.op.operands[0]);
  int64_t i = s.intAttr("index");
  if (found == s.b.tuples.end() || i < 0 || i >= int64_t(found->second.size()))
    s.fail("the operand is no tuple, or has no such element");
  else
    s.give(found->second[i]);
}
void token(Statement &s) { s.give(s.b.b.lit(DType::Bool, 0)); }

// ---- one device

void zero(Statement &s) { s.give(s.b.b.litInt(DType::U32, 0)); }

/// Of one replica: what it is given.
void collective(Statement &s) {
  const Attribute *groups = s.op.find("replica_groups");
  if (groups && groups->kind == Attribute::Kind::Dense)
    for (int64_t d : groups->type.dims)
      if (d != 1) s.unsupported("replica_groups name several devices, one is supported");
  if (!s.b.failed()) same(s);
}

const char *outside = "this op speaks to something outside of the program, which is not supported";
const char *async = "asynchronous ops are not supported";

const Row rows[] = {
    {"sdy.sharding_constraint", shardingConstraint, "by names of axes of one mesh", 1, 1},
    {"func.call", call, "inlined", 0, ~0u, true},
    {"stablehlo.after_all", token, "a token says nothing: there are no side effects"},
    {"stablehlo.all_gather", collective, "of one replica"},
    {"stablehlo.all_reduce", collective, "of one replica"},
    {"stablehlo.all_to_all", collective, "of one replica"},
    {"stablehlo.async_done", nullptr, async},
    {"stablehlo.async_start", nullptr, async},
    {"stablehlo.case", caseOp, "up to 48 branches; results of one shape", 1, 1},
    {"stablehlo.collective_broadcast", collective, "of one replica"},
    {"stablehlo.collective_permute", nullptr, "this op is not supported: there is one device"},
    {"stablehlo.composite", composite, "chlo ops that have a row are that; others are their decomposition"},
    {"stablehlo.create_token", token, ""},
    {"stablehlo.cross-replica-sum", collective, "of one replica"},
    {"stablehlo.custom_call", customCall,
     "shape_assertion, where bounds show that it holds; dynamic_reduce_window; annotations of sharding and layout; of "
     "LAPACK "
     "on real matrices potrf, trsm, getrf, geqrf, orgqr, syevd, gesdd"},
    {"stablehlo.get_tuple_element", tupleElement, "", 1, 1},
    {"stablehlo.if", ifOp, "results of one shape", 1, 1},
    {"stablehlo.infeed", nullptr, outside},
    {"stablehlo.map", map, "regions that are element by element", 1},
    {"stablehlo.outfeed", nullptr, outside},
    {"stablehlo.partition_id", zero, "0", 0, 0},
    {"stablehlo.recv", nullptr, outside},
    {"stablehlo.reduce_scatter", collective, "of one replica"},
    {"stablehlo.replica_id", zero, "0", 0, 0},
    {"stablehlo.send", nullptr, outside},
    {"stablehlo.tuple", tuple, "not as an argument or a result of a function or a region"},
    {"stablehlo.while", whileOp, "shapes stay the same"},
};

} // namespace

llvm::ArrayRef<Row> controlRows() { return rows; }

} // namespace astra::stablehlo
