//===- Partition.cpp: from whole tensors to the program of one shard -------===//
// Takes:    a module in the form Whole, with shardings.
// Gives:    the module in the form PerShard: one sweep over each entry, sources first.
#include "Partition.h"
#include "astra/Distribute/Distribute.h"
#include "astra/IR/Text.h"

using namespace astra;
using namespace astra::distribute;
using llvm::Error;

UOpRef distribute::divided(Context &c, UOpRef extent, int64_t parts) {
  llvm::SmallVector<IndexTerm, 4> out;
  for (IndexTerm t : terms(extent)) {
    if (t.coefficient % parts) return nullptr;
    t.coefficient /= parts;
    out.push_back(t);
  }
  return fromTerms(c, out);
}

// ---- what is wrong
std::string Partition::placeOf(UOpRef n) const {
  std::string text = info(n->op).mnemonic;
  const Origin *from = m.origins.find(n);
  if (from && !from->names.empty()) text += " (" + from->names[0] + (from->count > 1 ? " and others" : "") + ")";
  return text;
}

std::string Partition::said(UOpRef x) const {
  std::string name;
  if (x->is(Op::Param) || x->is(Op::State))
    name = "@" + quoted(x->str);
  else if (x->is(Op::Arg) && current && size_t(x->ints[0]) < current->inputs.size() &&
           current->inputs[x->ints[0]].value == x)
    name = "%" + quoted(current->inputs[x->ints[0]].name);
  else
    name = "the value of " + placeOf(x);
  auto it = frame->images.find(x);
  std::string cut = it == frame->images.end() || !x->rank()
                        ? ""
                        : ", cut as " + shardingText(mesh, {{it->second.axes.begin(), it->second.axes.end()}, false});
  return name + " (" + typeText(x->dtype, x->shape) + cut + ")";
}

bool Partition::fail(UOpRef n, const Twine &what) {
  if (error.empty())
    error = ((current ? "entry @" + current->name + ": at " : std::string("at ")) + placeOf(n) + ": " + what).str();
  return false;
}

bool Partition::disagree(UOpRef n, UOpRef x, UOpRef y) {
  return fail(n, "two shardings meet that do not agree: " + said(x) + " and " + said(y) +
                     "; write a reshard of one of them before this, %v = reshard %u to=\"(...)\", or give one another "
                     "--shard; a weight that is stored cut and read whole is \"(...) gathered\"");
}

bool Partition::isCutThere(UOpRef n, UOpRef x, unsigned axis, const Twine &why) {
  return fail(n, why + " goes along axis " + Twine(axis) + " of " + said(x) +
                     ", which is cut: write a reshard before it that leaves this axis whole");
}

// ---- results
std::optional<List> Partition::localShape(UOpRef n, Shape shape, ArrayRef<MeshAxes> axes) {
  List out = now(shape);
  for (unsigned i = 0; i < out.size(); ++i) {
    if (!axes[i]) continue;
    UOpRef part = divided(c, out[i], mesh.count(axes[i]));
    if (!part) {
      fail(n, "axis " + Twine(i) + " of " + typeText(n->dtype, shape) + " is cut into " + Twine(mesh.count(axes[i])) +
                  " parts, which do not divide its extent " + indexText(out[i]));
      return std::nullopt;
    }
    out[i] = part;
  }
  return out;
}

bool Partition::set(UOpRef n, Axes axes, UOpRef value) {
  if (!value) return false;
  m.origins.inherit(value, n);
  frame->images[n] = {axes, {{axes, value}}};
  return true;
}

bool Partition::setLater(UOpRef n, Axes axes) {
  constexpr unsigned deepest = 64; // what is not computed yet is computed by recursion
  if (!localShape(n, n->shape, axes)) return false;
  unsigned depth = 0;
  for (UOpRef s : n->tensors())
    if (const Image &im = frame->images.at(s); im.values.empty() && !im.part) depth = std::max(depth, im.depth + 1);
  Image &im = frame->images[n];
  im.axes = axes;
  im.depth = depth;
  return depth < deepest || natural(n);
}

bool Partition::setPart(UOpRef n, Axes axes, UOpRef part, MeshAxes over, ReduceKind kind) {
  if (!part) return false;
  if (!over) return set(n, axes, part);
  if (used(axes) & over)
    return fail(n, "an axis of the mesh cuts both what is summed and what is kept of " + typeText(n->dtype, n->shape) +
                       ": write a reshard of an operand before it");
  m.origins.inherit(part, n);
  int64_t number = kind == ReduceKind::Or ? 2 : kind == ReduceKind::And ? 3 : int64_t(kind); // of bools
  if ((kind == ReduceKind::Or || kind == ReduceKind::And) && n->dtype != DType::Bool)
    return fail(n, "bits of integers are not combined between shards");
  frame->images[n] = {axes, {}, part, over, number};
  return true;
}

UOpRef Partition::remade(UOpRef n, ArrayRef<UOpRef> tensors, ArrayRef<UOpRef> indices) {
  List src(tensors.begin(), tensors.end());
  src.append(indices.begin(), indices.end());
  auto made = c.tryMake(n->op, src, n->ints, n->str, n->dtype, n->fns);
  if (made) return *made;
  fail(n, "on parts: " + llvm::toString(made.takeError()));
  return nullptr;
}

// ---- the sweep
bool Partition::visit(UOpRef n) {
  if (n->is(Op::Extent)) {
    UOpRef x = whole(n->src[0]);
    if (!x) return false;
    UOpRef made = c.make(Op::Extent, {x}, n->ints);
    if (made != n) frame->extents.push_back(n), frame->extentsNow.push_back(made);
    return true;
  }
  if (has(n->op, Control) || n->is(Op::WithGradient)) return control(n);
  if (has(n->op, Elementwise)) return elementwise(n);
  if (Rule rule = ruleOf(n->op)) return (this->*rule)(n);
  return fail(n, "there is no rule how it is computed on parts");
}

bool Partition::sweep(ArrayRef<UOpRef> roots) {
  for (UOpRef n : topoSort(roots)) {
    if (n->isIndex() && !n->is(Op::Extent)) continue;
    if (frame->images.count(n) || frame->outcomes.count(n)) continue;
    if (!visit(n)) return false;
  }
  return true;
}

bool Partition::leaves() {
  auto leaf = [&](UOpRef x, const Sharding &s) {
    Axes axes = s.isDeclared() ? s.axes : Axes(x->rank(), 0);
    auto shape = localShape(x, x->shape, axes);
    if (!shape) return false;
    UOpRef part = c.make(x->op, *shape, x->ints, x->str, x->dtype);
    frame->images[x] = {s.gathered ? Axes(x->rank(), 0) : axes, {{axes, part}}};
    return true;
  };
  for (const Param &p : m.params)
    if (!leaf(p.value, p.sharding)) return false;
  for (const StateVar &s : m.states)
    if (!leaf(s.value, s.sharding)) return false;
  for (const Value &v : current->inputs)
    if (!leaf(v.value, v.sharding)) return false;
  return true;
}

Error Partition::entry(Entry &e) {
  Frame mine;
  frame = &mine;
  current = &e;
  std::vector<UOpRef> roots;
  for (const Value &v : e.outputs) roots.push_back(v.value);
  for (const StateUpdate &u : e.updates) roots.push_back(u.value);
  Entry now{e.name, {}, {}, {}};
  bool ok = leaves() && sweep(roots);
  if (ok)
    for (const Value &v : e.outputs) {
      Axes axes = v.sharding.isDeclared() ? v.sharding.axes : axesOf(v.value);
      UOpRef x = as(v.value, axes, true);
      if (!(ok = x)) break;
      now.outputs.push_back({v.name, x, used(axes) ? Sharding{axes, false} : Sharding()});
    }
  if (ok)
    for (const StateUpdate &u : e.updates) {
      const StateVar *s = m.state(u.state);
      Axes axes = s->sharding.isDeclared() ? s->sharding.axes : Axes(s->value->rank(), 0);
      UOpRef x = as(u.value, axes, true);
      if (!(ok = x)) break;
      now.updates.push_back({u.state, x});
    }
  if (ok)
    for (const Value &v : e.inputs)
      now.inputs.push_back({v.name, frame->images.at(v.value).values[0].second, v.sharding});
  frame = nullptr;
  current = nullptr;
  if (!ok) return llvm::createStringError(error);
  e = std::move(now);
  return Error::success();
}

/// What an optimizer keeps of a weight is cut as the weight is, unless something else is said of it.
static void followWeights(Module &m) {
  for (StateVar &slot : m.states) {
    if (slot.sharding.isDeclared()) continue;
    llvm::StringRef name = slot.value->str;
    for (const StateVar &w : m.states) {
      llvm::StringRef rest = name;
      if (w.sharding.isDeclared() && rest.consume_front(w.value->str) && rest.starts_with(".") &&
          !rest.drop_front().contains('.') && w.value->shape == slot.value->shape)
        slot.sharding = {w.sharding.axes, false};
    }
  }
}

Error Partition::run() {
  followWeights(m);
  if (Error e = divideDims(m)) return e;
  for (Entry &e : m.entries)
    if (Error error = entry(e)) return error;
  auto local = [&](UOpRef &value, Sharding &s) -> Error {
    if (!s.isDeclared()) return Error::success();
    Frame none;
    frame = &none;
    auto shape = localShape(value, value->shape, s.axes);
    frame = nullptr;
    if (!shape) return llvm::createStringError("@" + value->str + ": " + error);
    value = c.make(value->op, *shape, value->ints, value->str, value->dtype);
    s.gathered = false;
    return Error::success();
  };
  for (Param &p : m.params)
    if (Error e = local(p.value, p.sharding)) return e;
  for (StateVar &s : m.states)
    if (Error e = local(s.value, s.sharding)) return e;
  m.mesh.form = MeshForm::PerShard;
  return Error::success();
}

Error astra::partition(Module &m) {
  if (m.mesh.isEmpty() || m.mesh.form != MeshForm::Whole) return Error::success();
  if (!m.directives.empty())
    return llvm::createStringError("the directives grad, jvp and vmap come before it (the pass grad)");
  return Partition(m).run();
}
