//===- Control.cpp: loops and branches -------------------------------------===//
// Takes:    cond, while and scan with their operands placed.
// Gives:    programs for their bodies; carried values alternate between two buffers that are swapped, never copied.
// Keeps:    bodies are inlined at their arguments' places, so a body's kernels are like any other.
#include "Captured.h"
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

UOpRef Scheduler::internalDim(llvm::StringRef stem, int64_t lo, int64_t hi) {
  std::string name;
  auto isTaken = [&](UOpRef d) { return d->str == name; };
  do name = ("%" + stem + std::to_string(internals++)).str();
  while (llvm::any_of(llvm::ArrayRef(out.dims).take_front(out.moduleDims), isTaken));
  UOpRef d = b.dim(name, lo, std::min(hi, int64_t(1) << 40));
  out.dims.push_back(d);
  return d;
}

uint32_t Scheduler::beginProgram() {
  routine->programs.emplace_back();
  return routine->programs.size() - 1;
}

std::vector<UOpRef> Scheduler::inlined(UOpRef fn, ArrayRef<UOpRef> args) {
  llvm::DenseMap<UOpRef, UOpRef> now;
  for (UOpRef n : topoSort(fn->src)) {
    if (n->op == Op::Arg) {
      now[n] = args[n->ints[0]];
      continue;
    }
    SmallVector<UOpRef, 4> src;
    for (UOpRef s : n->src) src.push_back(now[s]);
    now[n] = c.withSources(n, src);
    inheritOrigin(now[n], n);
  }
  std::vector<UOpRef> out;
  for (UOpRef r : fn->src) out.push_back(now[r]);
  return legalize(c, out, [&](UOpRef to, UOpRef from) { inheritOrigin(to, from); });
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

void Scheduler::whileLoop(UOpRef n) {
  std::vector<UOpRef> args = arguments(n->fns[1]), condArgs = arguments(n->fns[0]);
  SmallVector<llvm::StringRef> names;
  if (!n->str.empty()) n->str.split(names, ',');
  // Carried dims: `dim` nodes of the bodies, internal from now on.
  std::vector<UOpRef> dims, final, next;
  for (auto [name, init] : llvm::zip(names, n->indices())) {
    UOpRef d = nullptr;
    for (UOpRef fn : n->fns)
      for (UOpRef x : topoSort(fn->src))
        if (x->op == Op::Dim && x->str == name) d = x;
    if (!d) d = b.dim(name, 0, init->hi);
    if (llvm::is_contained(llvm::ArrayRef(out.dims).take_front(out.moduleDims), d))
      return fail("while: the carried dim " + name + " is also a dim of the module");
    if (!llvm::is_contained(out.dims, d)) out.dims.push_back(d);
    dims.push_back(d);
    final.push_back(internalDim(name, d->lo, d->hi));
    next.push_back(internalDim(name, d->lo, d->hi));
  }
  size_t count = n->ntensors;
  std::vector<Place> now(count), then(count);
  std::vector<UOpRef> leaves(count);
  // What the body gives back as it came stays where it is.
  auto stays = [&](size_t i) { return n->fns[1]->src[i] == args[i] && args[i]->shape == n->src[i]->shape; };
  for (size_t i = 0; i < count; ++i) {
    if (isReadInBody(n, unsigned(i))) { // its place, for who reads it behind the loop, is chosen there
      leaves[i] = n->src[i];
      continue;
    }
    if (args[i] && stays(i)) {
      now[i] = then[i] = *placeOf(n->src[i]);
      shared.insert(now[i].buffer);
      leaves[i] = leaf(n->src[i]->dtype, n->src[i]->shape, now[i]);
      continue;
    }
    UOpRef like = args[i] ? args[i] : condArgs[i] ? condArgs[i] : n->src[i];
    std::vector<UOpRef> allocated = bound(like->shape);
    if (like == n->src[i]) // nobody reads it in the loop, so nothing says which of its extents are carried
      for (auto [room, becomes] : llvm::zip(allocated, bound(n->fns[1]->src[i]->shape))) {
        if (room == becomes) continue;
        int64_t most = std::max(room->hi, becomes->hi);
        for (UOpRef d : dims) most = std::max(most, d->hi);
        room = c.index(most);
      }
    Layout l = Layout::rowMajor(like->rank());
    for (Place *p : {&now[i], &then[i]}) *p = {slotBuffer(like->dtype, allocated, l), l, allocated};
    partner[now[i].buffer] = then[i].buffer;
    partner[then[i].buffer] = now[i].buffer;
    leaves[i] = leaf(like->dtype, like->shape, now[i]);
  }
  for (size_t j = 0; j < dims.size(); ++j) emit(SetDimInstr{dims[j], closeIndex(n->indices()[j])});
  SmallVector<size_t> moving;
  for (size_t i = 0; i < count; ++i)
    if (!args[i] || !stays(i)) moving.push_back(i);
  for (size_t i : moving) copyTo(n->src[i], now[i]);
  Layout scalar = Layout::rowMajor(0);
  Place flag{slotBuffer(DType::Bool, {}, scalar), scalar, {}};
  beginLoop();
  enterBody();
  uint32_t outer = program, condProgram = program = beginProgram();
  std::vector<UOpRef> test = inlined(n->fns[0], leaves);
  values(test, {{test[0], flag}});
  if (failed()) return;
  copyTo(test[0], flag);
  uint32_t body = program = beginProgram();
  std::vector<UOpRef> roots = inlined(n->fns[1], leaves);
  // What the carried dims become, checked against their bounds before anything of that extent is written: where data
  // of the body say it, after they are read, and what has the extent is copied to its place then.
  auto ofData = [](UOpRef extent) {
    return llvm::any_of(topoSort(extent), [](UOpRef x) { return x->op == Op::Extent; });
  };
  std::vector<UOpRef> become(dims.size());
  for (size_t j = 0; j < dims.size(); ++j) {
    for (size_t i = 0; i < count; ++i)
      for (unsigned a = 0; args[i] && a < args[i]->rank(); ++a) {
        if (args[i]->shape[a] != dims[j]) continue;
        if (become[j] && become[j] != roots[i]->shape[a])
          return fail("while: carried values have the axis " + dims[j]->str + " and go on with different extents");
        become[j] = roots[i]->shape[a];
      }
    if (!become[j]) return fail("while: no carried value that the body reads has the axis " + dims[j]->str);
    if (!ofData(become[j])) emit(SetDimInstr{next[j], closeIndex(become[j])});
  }
  llvm::DenseMap<UOpRef, Place> to;
  SmallVector<UOpRef> wanted;
  for (size_t i : moving) {
    if (llvm::none_of(roots[i]->shape, ofData)) to.try_emplace(roots[i], then[i]);
    wanted.push_back(roots[i]);
  }
  values(wanted, to);
  if (failed()) return;
  for (size_t j = 0; j < dims.size(); ++j)
    if (ofData(become[j])) emit(SetDimInstr{next[j], closeIndex(become[j])});
  for (size_t i : moving)
    if (!failed()) copyTo(roots[i], then[i]);
  if (failed()) return;
  for (size_t j = 0; j < dims.size(); ++j) emit(SetDimInstr{dims[j], next[j]});
  for (size_t i : moving) {
    touch(now[i].buffer);
    emit(SwapInstr{now[i].buffer, then[i].buffer});
  }
  touch(flag.buffer);
  leaveBody();
  program = outer;
  endLoop();
  emit(WhileInstr{condProgram, flag.buffer, body});
  for (size_t j = 0; j < dims.size(); ++j) emit(SetDimInstr{final[j], dims[j]});
  std::vector<Place> all = now;
  for (size_t i = 0; i < count; ++i)
    if (isReadInBody(n, unsigned(i))) all[i] = *placeOf(n->src[i]);
  for (UOpRef d : final) { // as tensors, for whoever reads them as values
    KernelSpec spec;
    spec.outputs.push_back({b.fromIndex(d, DType::I64), scalar, {}});
    Place p{slotBuffer(DType::I64, {}, scalar), scalar, {}};
    emit(LaunchInstr{{{nullptr, nullptr, kernelNumber(std::move(spec))}}, {p.buffer}});
    all.push_back(p);
  }
  results.set(n, all);
  finalDims.set(n, final);
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
