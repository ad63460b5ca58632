//===- Control.cpp: loops and branches -------------------------------------===//
// Takes:    cond, while and scan with their operands placed.
// Gives:    programs for their bodies; carried values alternate between two buffers that are swapped, never copied.
// Keeps:    bodies are inlined at their arguments' places, so a body's kernels are like any other.
#include "Captured.h"
#include "Inline.h"
#include "Legalize.h"
#include "Scheduler.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

UOpRef Scheduler::leaf(DType t, ArrayRef<UOpRef> shape,
                       Place p) { // by value: `places` moves its elements when it grows
  UOpRef x = c.make(Op::State, shape, {}, "%" + std::to_string(leaves++), t);
  places.set(x, std::move(p));
  return x;
}

UOpRef Scheduler::checkDim(const KernelChecks &k) {
  UOpRef d = b.dim("%check" + std::to_string(out.checks.size()), 0, 1);
  out.dims.push_back(d);
  DimCheck check{d, k.says, {}};
  for (UOpRef extent : k.grid) check.grid.push_back(closeIndex(extent));
  out.checks.push_back(std::move(check));
  return d;
}

/// A routine numbers its dims from 0. Those of several routines that have one name and the same bounds are one: what
/// they compute alike is one kernel then, and a session runs one call at a time.
UOpRef Scheduler::internalDim(llvm::StringRef stem, int64_t lo, int64_t hi) {
  for (;;) {
    std::string name = ("%" + stem + std::to_string(internals++)).str();
    auto other = llvm::find_if(out.dims, [&](UOpRef d) { return d->str == name; });
    UOpRef known = other == out.dims.end() ? nullptr : *other;
    if (known && other - out.dims.begin() < int64_t(out.moduleDims)) continue;
    UOpRef d = b.dim(name, lo, std::min(hi, int64_t(1) << 40));
    if (!known) out.dims.push_back(d);
    if (!known || known == d) return d;
  }
}

uint32_t Scheduler::beginProgram() {
  landAll();
  routine->programs.emplace_back();
  return routine->programs.size() - 1;
}

std::vector<UOpRef> Scheduler::inlined(UOpRef fn, ArrayRef<UOpRef> args) {
  auto inherit = [&](UOpRef now, UOpRef was) { inheritOrigin(now, was); };
  std::vector<KernelChecks> lifted;
  std::vector<UOpRef> out = legal(inlineFunction(c, fn, args, inherit), o.checks ? &lifted : nullptr);
  if (!lifted.empty()) fail("--check: a kernel with tests in a loop or a branch of the model is not tested yet");
  return out;
}

std::vector<UOpRef> Scheduler::legal(ArrayRef<UOpRef> roots, std::vector<KernelChecks> *lifted) {
  auto inherit = [&](UOpRef to, UOpRef from) { inheritOrigin(to, from); };
  std::vector<KernelChecks> found;
  std::string why;
  std::vector<UOpRef> now = liftChecks(c, roots, lifted, found, why, inherit);
  if (!why.empty()) fail(why);
  if (lifted) {
    for (const KernelChecks &k : found) now.push_back(k.failed);
    *lifted = std::move(found);
  }
  return legalize(c, now, inherit);
}

/// The argument nodes of a function, by number; null where the body does not use one.
static std::vector<UOpRef> arguments(UOpRef fn) {
  std::vector<UOpRef> args(fn->ints[0]);
  for (UOpRef n : topoSort(fn->src))
    if (n->op == Op::Arg && n->ints[0] < int64_t(args.size())) args[n->ints[0]] = n;
  return args;
}

void Scheduler::control(UOpRef n) {
  for (auto [i, s] : llvm::enumerate(n->tensors()))
    if (!isReadInBody(n, unsigned(i)) && !placeOf(s))
      return fail(llvm::Twine("internal error: an operand of ") + info(n->op).mnemonic + " has no place");
  switch (n->op) {
  case Op::Cond: return cond(n);
  case Op::While: return whileLoop(n);
  default: return scan(n);
  }
}

void Scheduler::cond(UOpRef n) {
  std::vector<Place> out;
  for (UOpRef r : n->fns[0]->src) {
    std::vector<UOpRef> allocated = bound(r->shape);
    Layout l = Layout::rowMajor(r->rank());
    out.push_back({slotBuffer(r->dtype, allocated, l), l, allocated});
  }
  beginLoop(); // both branches: what they read lives to their end
  uint32_t outer = program, branch[2];
  for (unsigned k : {0u, 1u}) {
    branch[k] = program = beginProgram();
    enterBody();
    std::vector<UOpRef> args;
    for (auto [i, s] : llvm::enumerate(n->tensors().drop_front())) {
      if (isReadInBody(n, unsigned(i) + 1)) {
        args.push_back(s);
        continue;
      }
      args.push_back(leaf(s->dtype, s->shape, *placeOf(s)));
      shared.insert(placeOf(s)->buffer);
    }
    std::vector<UOpRef> roots = inlined(n->fns[k], args);
    llvm::DenseMap<UOpRef, Place> to;
    for (size_t i = 0; i < roots.size(); ++i) to.try_emplace(roots[i], out[i]);
    values(roots, to);
    for (size_t i = 0; i < roots.size() && !failed(); ++i) copyTo(roots[i], out[i]);
    for (const Place &p : out) touch(p.buffer);
    leaveBody();
  }
  program = outer;
  uint32_t flag = placeOf(n->src[0])->buffer;
  touch(flag);
  endLoop();
  emit(CondInstr{flag, branch[0], branch[1]});
  results.set(n, out);
}

/// A while loop between the parts of its lowering.
struct Scheduler::While {
  UOpRef n;
  std::vector<UOpRef> args, condArgs; // the argument nodes of body and test; null: not used
  /// Carried dims: in the bodies, after the loop, after the turn at hand.
  std::vector<UOpRef> dims, final, next;
  std::vector<Place> now, then;    // where carried values are and where a turn writes them: swapped after it
  std::vector<UOpRef> leaves;      // what the bodies read in place of their arguments
  SmallVector<size_t, 4> moving{}; // carried values that a turn writes

  explicit While(UOpRef n)
      : n(n), args(arguments(n->fns[1])), condArgs(arguments(n->fns[0])), now(n->ntensors), then(n->ntensors),
        leaves(n->ntensors) {
    for (size_t i = 0; i < n->ntensors; ++i)
      if (!stays(i)) moving.push_back(i);
  }
  /// What the body gives back as it came stays where it is.
  bool stays(size_t i) const { return args[i] && n->fns[1]->src[i] == args[i] && args[i]->shape == n->src[i]->shape; }
};

/// The `dim` nodes of the bodies, internal from now on.
void Scheduler::carryDims(While &w) {
  SmallVector<llvm::StringRef> names;
  if (!w.n->str.empty()) w.n->str.split(names, ',');
  for (auto [name, init] : llvm::zip(names, w.n->indices())) {
    UOpRef d = nullptr;
    for (UOpRef fn : w.n->fns)
      for (UOpRef x : topoSort(fn->src))
        if (x->op == Op::Dim && x->str == name) d = x;
    if (!d) d = b.dim(name, 0, init->hi);
    if (llvm::is_contained(llvm::ArrayRef(out.dims).take_front(out.moduleDims), d))
      return fail("while: the carried dim " + name + " is also a dim of the module");
    if (!llvm::is_contained(out.dims, d)) out.dims.push_back(d);
    w.dims.push_back(d);
    w.final.push_back(internalDim(name, d->lo, d->hi));
    w.next.push_back(internalDim(name, d->lo, d->hi));
  }
}

void Scheduler::placeCarried(While &w) {
  UOpRef n = w.n;
  for (size_t i = 0; i < n->ntensors; ++i) {
    if (isReadInBody(n, unsigned(i))) { // its place, for who reads it behind the loop, is chosen there
      w.leaves[i] = n->src[i];
      continue;
    }
    if (w.stays(i)) {
      w.now[i] = w.then[i] = *placeOf(n->src[i]);
      shared.insert(w.now[i].buffer);
      w.leaves[i] = leaf(n->src[i]->dtype, n->src[i]->shape, w.now[i]);
      continue;
    }
    UOpRef like = w.args[i] ? w.args[i] : w.condArgs[i] ? w.condArgs[i] : n->src[i];
    std::vector<UOpRef> allocated = bound(like->shape);
    if (like == n->src[i]) // nobody reads it in the loop, so nothing says which of its extents are carried
      for (auto [room, becomes] : llvm::zip(allocated, bound(n->fns[1]->src[i]->shape))) {
        if (room == becomes) continue;
        int64_t most = std::max(room->hi, becomes->hi);
        for (UOpRef d : w.dims) most = std::max(most, d->hi);
        room = c.index(most);
      }
    Layout l = Layout::rowMajor(like->rank());
    for (Place *p : {&w.now[i], &w.then[i]}) *p = {slotBuffer(like->dtype, allocated, l), l, allocated};
    partner[w.now[i].buffer] = w.then[i].buffer;
    partner[w.then[i].buffer] = w.now[i].buffer;
    w.leaves[i] = leaf(like->dtype, like->shape, w.now[i]);
  }
}

/// Computes into `flag` whether there is another turn.
void Scheduler::whileTest(const While &w, const Place &flag) {
  std::vector<UOpRef> test = inlined(w.n->fns[0], w.leaves);
  values(test, {{test[0], flag}});
  if (!failed()) copyTo(test[0], flag);
}

static bool isOfData(UOpRef extent) {
  return llvm::any_of(topoSort(extent), [](UOpRef x) { return x->op == Op::Extent; });
}

/// What a turn makes of the carried dims, by the axes of the carried values.
std::vector<UOpRef> Scheduler::extentsAfter(const While &w, ArrayRef<UOpRef> roots) {
  std::vector<UOpRef> become(w.dims.size());
  for (auto [dim, extent] : llvm::zip(w.dims, become)) {
    for (auto [arg, root] : llvm::zip(w.args, roots))
      for (unsigned a = 0; arg && a < arg->rank(); ++a) {
        if (arg->shape[a] != dim) continue;
        if (extent && extent != root->shape[a]) {
          fail("while: carried values have the axis " + dim->str + " and go on with different extents");
          return become;
        }
        extent = root->shape[a];
      }
    if (!extent) {
      fail("while: no carried value that the body reads has the axis " + dim->str);
      return become;
    }
  }
  return become;
}

/// A turn. What the carried dims become is checked against their bounds before anything of that extent is written:
/// where data of the body say it, after they are read, and what has the extent is copied to its place then.
void Scheduler::whileBody(const While &w) {
  std::vector<UOpRef> roots = inlined(w.n->fns[1], w.leaves), become = extentsAfter(w, roots);
  if (failed()) return;
  auto setNext = [&](bool ofData) {
    for (auto [next, extent] : llvm::zip(w.next, become))
      if (isOfData(extent) == ofData) emit(SetDimInstr{next, closeIndex(extent)});
  };
  setNext(false);
  llvm::DenseMap<UOpRef, Place> to;
  SmallVector<UOpRef> wanted;
  for (size_t i : w.moving) {
    if (llvm::none_of(roots[i]->shape, isOfData)) to.try_emplace(roots[i], w.then[i]);
    wanted.push_back(roots[i]);
  }
  values(wanted, to);
  if (failed()) return;
  setNext(true);
  for (size_t i : w.moving)
    if (!failed()) copyTo(roots[i], w.then[i]);
  if (failed()) return;
  for (auto [dim, next] : llvm::zip(w.dims, w.next)) emit(SetDimInstr{dim, next});
  for (size_t i : w.moving) {
    touch(w.now[i].buffer);
    emit(SwapInstr{w.now[i].buffer, w.then[i].buffer});
  }
}

/// The carried values, then the carried dims as tensors, for whoever reads them as values.
std::vector<Place> Scheduler::whileResults(const While &w) {
  std::vector<Place> all = w.now;
  for (size_t i = 0; i < w.n->ntensors; ++i)
    if (isReadInBody(w.n, unsigned(i))) all[i] = *placeOf(w.n->src[i]);
  Layout scalar = Layout::rowMajor(0);
  for (UOpRef d : w.final) {
    KernelSpec spec;
    spec.outputs.push_back({b.fromIndex(d, DType::I64), scalar, {}});
    Place p{slotBuffer(DType::I64, {}, scalar), scalar, {}};
    emit(LaunchInstr{{{nullptr, nullptr, kernelNumber(std::move(spec))}}, {p.buffer}});
    all.push_back(p);
  }
  return all;
}

void Scheduler::whileLoop(UOpRef n) {
  While w(n);
  carryDims(w);
  if (failed()) return;
  placeCarried(w);
  for (auto [dim, init] : llvm::zip(w.dims, n->indices())) emit(SetDimInstr{dim, closeIndex(init)});
  for (size_t i : w.moving) copyTo(n->src[i], w.now[i]);
  Layout scalar = Layout::rowMajor(0);
  Place flag{slotBuffer(DType::Bool, {}, scalar), scalar, {}};
  beginLoop();
  enterBody();
  uint32_t outer = program, test = program = beginProgram();
  whileTest(w, flag);
  if (failed()) return;
  uint32_t body = program = beginProgram();
  whileBody(w);
  if (failed()) return;
  touch(flag.buffer);
  leaveBody();
  program = outer;
  endLoop();
  emit(WhileInstr{test, flag.buffer, body});
  for (auto [final, dim] : llvm::zip(w.final, w.dims)) emit(SetDimInstr{final, dim});
  results.set(n, whileResults(w));
  finalDims.set(n, w.final);
}

void Scheduler::scan(UOpRef n) {
  int64_t carries = n->ints[0], inputs = n->ints[1];
  UOpRef length = closeIndex(n->indices()[0]), counter = internalDim("step", 0, std::max<int64_t>(length->hi - 1, 0)),
         step = b.fromIndex(counter, DType::I64);
  UOpRef fn = n->fns[0];
  std::vector<Place> now, then, stacked;
  for (int64_t i = 0; i < carries; ++i) {
    UOpRef s = n->src[i];
    std::vector<UOpRef> allocated = bound(s->shape);
    Layout l = Layout::rowMajor(s->rank());
    now.push_back({slotBuffer(s->dtype, allocated, l), l, allocated});
    then.push_back({slotBuffer(s->dtype, allocated, l), l, allocated});
    partner[now[i].buffer] = then[i].buffer;
    partner[then[i].buffer] = now[i].buffer;
    copyTo(s, now[i]);
  }
  for (size_t i = carries; i < fn->src.size(); ++i) {
    UOpRef y = fn->src[i];
    SmallVector<UOpRef, 4> shape{length};
    shape.append(y->shape.begin(), y->shape.end());
    std::vector<UOpRef> allocated = bound(shape);
    Layout l = Layout::rowMajor(shape.size());
    stacked.push_back({slotBuffer(y->dtype, allocated, l), l, allocated});
  }
  beginLoop();
  enterBody();
  uint32_t outer = program, body = program = beginProgram();
  std::vector<UOpRef> args;
  for (unsigned i = 0; i < n->ntensors; ++i) {
    UOpRef s = n->src[i];
    if (isReadInBody(n, i)) {
      args.push_back(s);
      continue;
    }
    UOpRef x = leaf(s->dtype, s->shape, i < carries ? now[i] : *placeOf(s));
    if (i >= carries) shared.insert(placeOf(s)->buffer);
    args.push_back(i >= carries && i < carries + inputs ? b.gather(x, step, 0) : x);
  }
  std::vector<UOpRef> roots = inlined(fn, args);
  llvm::DenseMap<UOpRef, Place> to;
  for (int64_t i = 0; i < carries; ++i) to.try_emplace(roots[i], then[i]);
  for (size_t i = carries; i < roots.size(); ++i) { // a stacked output: its window of the whole, written in place
    UOpRef y = roots[i], one = c.index(1);
    const Place &p = stacked[i - carries];
    SmallVector<UOpRef, 4> shape{idxMax(c, length, one)}, window{one};
    shape.append(y->shape.begin(), y->shape.end());
    window.append(y->shape.begin(), y->shape.end());
    SmallVector<UOpRef, 4> start{step};
    start.append(y->rank(), b.litInt(DType::I64, 0));
    roots[i] = b.updateAt(leaf(y->dtype, shape, p), b.reshape(y, window), start);
  }
  values(roots, to);
  for (int64_t i = 0; i < carries && !failed(); ++i) copyTo(roots[i], then[i]);
  if (failed()) return;
  for (int64_t i = 0; i < carries; ++i) {
    touch(now[i].buffer);
    emit(SwapInstr{now[i].buffer, then[i].buffer});
  }
  for (const Place &p : stacked) touch(p.buffer);
  leaveBody();
  program = outer;
  endLoop();
  emit(LoopInstr{counter, length, body});
  now.insert(now.end(), stacked.begin(), stacked.end());
  results.set(n, now);
}
