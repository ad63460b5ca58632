//===- Scheduler.cpp: from entries to programs -----------------------------===//
// Takes:    a module past the numerics stage.
// Gives:    for each entry the launches in order, with every value placed in a buffer.
// Keeps:    the order of launches is the graph's topological order; output is a function of the graph alone.
#include "Legalize.h"
#include "PlaceFacts.h"
#include "Thresholds.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringMap.h"

using namespace astra;
using llvm::ArrayRef;

llvm::Expected<Schedule> astra::schedule(Module &m, const ScheduleOptions &options) {
  return Scheduler(m, options).run();
}

/// x was overwritten where it lies. No node at hand reads it again, but a body further on may hold the same one.
void Scheduler::forget(UOpRef x, uint32_t buffer) {
  for (;; x = x->src[0]) {
    if (const Place *p = places.find(x); p && p->buffer == buffer && !isStored(x)) places.erase(x);
    if (!has(x->op, Movement)) return;
  }
}

void Scheduler::scatter(UOpRef v, const Place *destination) {
  UOpRef x = v->src[0];
  const Place *from = placeOf(x);
  if (!from) return fail("internal error: a scatter into a value without a place");
  auto kindOf = [&](const Place &p) { return routine->buffers[p.buffer].kind; };
  bool becomes = uses[x] == 1 && destination && destination->buffer == from->buffer;
  Place at = *from;
  if (!dies(x, at) && !becomes) {
    Layout layout = at.layout.isPermuted() ? at.layout : Layout::rowMajor(x->rank());
    std::vector<UOpRef> allocated = bound(x->shape);
    bool direct = destination && destination->buffer != at.buffer && kindOf(*destination) != BufferKind::State &&
                  destination->layout == layout && destination->allocated == allocated;
    at = {direct ? destination->buffer : slotBuffer(v->dtype, allocated, layout), layout, allocated};
    copyTo(x, at);
  }
  // Argument 0 is what is written; index and update may read x too, where it was before.
  KernelSpec spec;
  std::vector<uint32_t> buffers{at.buffer};
  llvm::DenseMap<UOpRef, UOpRef> closed;
  llvm::SmallVector<UOpRef, 4> shape;
  for (UOpRef d : x->shape) shape.push_back(closeIndex(d));
  UOpRef into = b.arg(0, x->dtype, shape);
  spec.inputs.push_back({into, at.layout, at.allocated});
  UOpRef index = close(v->src[1], spec, buffers, closed, nullptr),
         update = close(v->src[2], spec, buffers, closed, nullptr);
  spec.outputs.push_back({c.withSources(v, {into, index, update}), at.layout, at.allocated});
  spec.inPlace = true;
  emitKernel(std::move(spec), std::move(buffers));
  forget(x, at.buffer);
  places.set(v, at);
}

void Scheduler::realize(UOpRef v, UOpRef rootOp, const Place *destination, const Part *part) {
  const Place *whole = part ? std::exchange(destination, nullptr) : nullptr;
  if (v->op == Op::Scatter) return scatter(v, destination);
  KernelSpec spec;
  std::vector<uint32_t> buffers;
  llvm::DenseMap<UOpRef, UOpRef> closed;
  std::vector<UOpRef> allocated = bound(v->shape);

  // A window written into a value that nobody else reads, or into the state it becomes.
  if (v->op == Op::UpdateAt && uses[v->src[0]] == 1) {
    const Place *x = placeOf(v->src[0]);
    bool becomes = x && destination && destination->buffer == x->buffer;
    if (x && (becomes || dies(v->src[0], *x))) {
      Place at = *x;
      close(v->src[0], spec, buffers, closed, nullptr); // argument 0
      UOpRef value = close(v, spec, buffers, closed, v);
      spec.outputs.push_back({value, at.layout, at.allocated});
      spec.inPlace = true;
      emitKernel(std::move(spec), std::move(buffers));
      forget(v->src[0], at.buffer);
      places.set(v, at);
      return;
    }
  }

  // A state that nobody else reads any more becomes its new value where it lies.
  auto over = overwriting.find(v);
  auto isPlaceOf = [&](UOpRef state) { // of the two that it becomes, maybe, the one that may be overwritten
    const ProgramBuffer &to = routine->buffers[destination->buffer];
    return to.kind == BufferKind::State && to.index == states.lookup(state->str);
  };
  bool intoState =
      over != overwriting.end() && destination && destination->allocated == allocated && isPlaceOf(over->second.state);
  if (intoState && over->second.reads) {
    const Place *old = placeOf(over->second.state);
    if (old && old->buffer == destination->buffer) {
      Place at = *destination;
      close(over->second.state, spec, buffers, closed, nullptr); // argument 0
      spec.outputs.push_back({close(v, spec, buffers, closed, v), at.layout, at.allocated});
      spec.inPlace = true;
      emitKernel(std::move(spec), std::move(buffers));
      places.set(v, at);
      return;
    } // else it reads a copy that lies as a contract wants it
  }

  size_t lentBefore = lent.size(); // by a kernel whose operand this one computes
  LayoutChoice choice = layoutFor(v, rootOp);
  carryOut(choice.steps);
  int64_t lane = choice.vectorIndex;
  Layout layout = std::move(choice.result);
  if (destination && destination->layout.isStrided() && !(rootOp && rootOp->op == Op::Contract))
    layout = destination->layout;
  bool becomesState = destination && routine->buffers[destination->buffer].kind == BufferKind::State;
  if (becomesState && !rootOp) layout = destination->layout; // a copy that does not turn it, or none
  if (part && !rootOp)
    if (auto room = rooms.find(part->whole); room != rooms.end()) layout = room->second.place.layout;
  UOpRef value = close(v, spec, buffers, closed, v);
  bool direct = destination && destination->layout == layout && destination->allocated == allocated;
  if (becomesState && !intoState) direct = false; // other kernels may still read the old value
  bool inWhole = part && liesInWhole(v, *part, layout, whole);
  std::vector<UOpRef> begin;
  if (inWhole) begin = beginOf(*part), allocated = rooms[part->whole].place.allocated;
  uint32_t to = inWhole  ? rooms[part->whole].place.buffer
                : direct ? destination->buffer
                         : slotBuffer(v->dtype, allocated, layout);
  spec.outputs.push_back({value, layout, allocated, std::move(begin)});
  spec.rootOp = rootOp ? closed.lookup(rootOp) : nullptr;
  if (spec.rootOp && spec.rootOp->op == Op::Contract) spec.contract = llvm::cantFail(decodeContract(spec.rootOp->ints));
  spec.vectorIndex = lane;
  buffers.push_back(to);

  LaunchInstr launch;
  launch.buffers = buffers;
  if (spec.contract && lane >= 0) { // few rows at run time want another shape of tile
    const ContractSpec &s = *spec.contract;
    UOpRef rows = c.index(1);
    for (int64_t l = 0; l < s.kept; ++l)
      if (l != lane) rows = idxMul(c, rows, spec.rootOp->shape[l]);
    if (!rows->isConst() && rows->lo < threshold::smallRows && s.outside.empty()) {
      KernelSpec thin = spec;
      thin.mostRows = threshold::smallRows;
      launch.variants.push_back({rows, c.index(threshold::smallRows), kernelNumber(std::move(thin))});
    }
  }
  addVariants(std::move(spec), launch.variants);
  emit(std::move(launch));
  endRepacks(lentBefore);
  if (!inWhole) places.set(v, {to, layout, allocated}); // else nobody reads it by itself
}

bool Scheduler::placeWords(UOpRef words) {
  PlaceFacts facts(*this);
  std::optional<Place> at = facts.placeInBytes(words);
  carryOut(facts.steps);
  if (!at) return false;
  at->buffer = placeOf(facts.bytesOf(words))->buffer;
  shared.insert(at->buffer);
  places.set(words, *at);
  return true;
}

bool Scheduler::liesIn(UOpRef v, uint32_t buffer) {
  const Place *at = placeOf(v);
  const Place *home = packedFrom.find(v);
  return (at && at->buffer == buffer) || (home && home->buffer == buffer);
}

void Scheduler::copyTo(UOpRef v, const Place &to) {
  const Place *from = placeOf(v);
  if (!from) return fail("internal error: a value without a place");
  if (liesIn(v, to.buffer)) return;
  if (from->layout == to.layout && from->allocated == to.allocated &&
      llvm::all_of(to.allocated, [](UOpRef d) { return d->isConst(); })) {
    touch(from->buffer);
    touch(to.buffer);
    emit(CopyInstr{to.buffer, from->buffer, routine->buffers[to.buffer].bytes});
    return;
  }
  KernelSpec spec;
  std::vector<uint32_t> buffers;
  llvm::DenseMap<UOpRef, UOpRef> closed;
  std::vector<UOpRef> shape;
  for (UOpRef d : v->shape) shape.push_back(closeIndex(d));
  UOpRef x = b.arg(0, v->dtype, shape);
  spec.inputs.push_back({x, from->layout, from->allocated});
  spec.outputs.push_back({c.make(Op::Detach, {x}), to.layout, to.allocated});
  buffers = {from->buffer, to.buffer};
  emitKernel(std::move(spec), std::move(buffers));
}

void Scheduler::moveAll(ArrayRef<std::pair<UOpRef, Place>> wanted) {
  // Moves that happen at once: none may overwrite what another has still to read. In a ring one value steps aside.
  std::vector<std::pair<UOpRef, Place>> moves;
  llvm::DenseMap<uint32_t, llvm::SmallVector<UOpRef, 1>> reads; // the values that moves take from a buffer
  llvm::DenseMap<uint32_t, unsigned> readers;                   // how many such moves are to come
  llvm::DenseMap<uint32_t, unsigned> into;                      // the move that writes a buffer
  for (auto &[v, to] : llvm::reverse(wanted)) {
    const Place *from = placeOf(v);
    if (!from) return fail("internal error: a value without a place");
    if (liesIn(v, to.buffer)) continue;
    ++readers[from->buffer];
    reads[from->buffer].push_back(v);
    into[to.buffer] = moves.size();
    moves.push_back({v, to});
  }
  std::vector<bool> done(moves.size());
  auto runFrom = [&](unsigned i) { // this move, then those that waited for it alone
    while (!done[i] && !readers.lookup(moves[i].second.buffer) && !failed()) {
      auto &[v, to] = moves[i];
      uint32_t from = placeOf(v)->buffer;
      copyTo(v, to);
      done[i] = true;
      auto next = into.find(from);
      if (--readers[from] || next == into.end()) return;
      i = next->second;
    }
  };
  for (unsigned i = 0; i < moves.size(); ++i) runFrom(i);
  for (unsigned i = 0; i < moves.size(); ++i) {
    if (done[i] || failed()) continue;
    auto &[v, to] = moves[i];
    Place aside = *placeOf(v);
    uint32_t from = aside.buffer;
    aside.buffer = slotBuffer(v->dtype, aside.allocated, aside.layout);
    copyTo(v, aside);
    for (UOpRef other : reads[from]) places.find(other)->buffer = aside.buffer;
    readers[aside.buffer] = readers[from];
    readers[from] = 0;
    if (auto next = into.find(from); next != into.end()) runFrom(next->second);
    runFrom(i);
  }
}

void Scheduler::values(ArrayRef<UOpRef> wanted, const llvm::DenseMap<UOpRef, Place> &destinations,
                       ArrayRef<std::pair<UOpRef, UOpRef>> updates) {
  Fusion f = fuse(c, wanted);
  decltype(rooms) outer; // a body may join the same values
  std::swap(rooms, outer);
  llvm::scope_exit restore([&] { std::swap(rooms, outer); });
  std::vector<UOpRef> order = topoSort(wanted);
  if (o.overlap) order = shiftsEarly(sumsFirst(std::move(order)));
  spreadOrigins(order);
  overwriting = overwrites(order, f, wanted, updates);
  llvm::DenseSet<UOpRef> readAsWords; // by others than contracts, which say how they are packed
  for (UOpRef n : order)
    for (UOpRef s : n->src) {
      ++uses[s];
      if (s->op == Op::Words && n->op != Op::Contract) readAsWords.insert(s);
    }
  for (UOpRef r : wanted) {
    ++uses[r];
    if (r->op == Op::Words) readAsWords.insert(r);
  }
  for (UOpRef n : order) {
    if (failed()) return;
    if (n->op == Op::Custom)
      custom(n, destinations);
    else if (n->op == Op::External)
      external(n);
    else if (isControl(n))
      control(n);
    else if (n->op == Op::Proj) {
      std::vector<Place> *all = results.find(n->src[0]);
      if (all && n->ints[0] < int64_t(all->size())) places.set(n, (*all)[n->ints[0]]);
    } else if (n->op == Op::Extent) {
      UOpRef count = n->src[0], loop = count->op == Op::Proj ? count->src[0] : nullptr;
      if (const std::vector<UOpRef> *final = loop ? finalDims.find(loop) : nullptr) {
        int64_t first = int64_t(results.find(loop)->size() - final->size()); // the carried dims come last
        if (count->ints[0] >= first) {
          indexMap.set(n, (*final)[count->ints[0] - first]);
          continue;
        }
      }
      if (!placeOf(count)) return fail("internal error: a data dim whose count has no place");
      auto check = checks.find(count);
      UOpRef d = check != checks.end() ? checkDim(check->second)
                                       : internalDim("data", std::max<int64_t>(n->ints[0], 0), n->ints[1]);
      touch(placeOf(count)->buffer);
      emit(ReadDimInstr{d, placeOf(count)->buffer});
      indexMap.set(n, d);
    } else if (n->op == Op::After) {
      const Place *at = placeOf(n->src[0]);
      if (!at) return fail("internal error: a value without a place");
      shared.insert(at->buffer);
      places.set(n, Place(*at));
    } else if (n->op == Op::Words && f.realized.count(n) && !destinations.count(n) &&
               ((isPacked(n) && !readAsWords.contains(n)) || placeWords(n))) {
      continue; // packed ones get a place from the contract that reads them
    } else if (rooms.count(n)) {
      concatenate(n, f.concats[n]);
    } else if (f.realized.count(n)) {
      auto part = f.parts.find(n);
      const Part *of = part == f.parts.end() ? nullptr : &part->second;
      auto to = destinations.find(of ? of->whole : n);
      realize(n, f.rootOp.lookup(n), to == destinations.end() ? nullptr : &to->second, of);
    }
  }
}

/// The graph with params of our own where they stand for what is computed.
void Scheduler::fold() {
  folded = foldParams(m, o.fold);
  if (folded.empty()) return;
  for (const FoldedParam &f : folded) unfolded[f.value] = f.param;
  standIn(m.roots());
}

void Scheduler::standIn(ArrayRef<UOpRef> roots) {
  for (UOpRef n : topoSort(roots)) {
    if (unfolded.count(n)) continue;
    llvm::SmallVector<UOpRef, 4> src;
    for (UOpRef s : n->src) src.push_back(unfolded.lookup(s));
    UOpRef now = unfolded[n] = c.withSources(n, src);
    if (now != n) m.origins.inherit(now, n);
  }
}

void Scheduler::begin(Routine &r) {
  routine = &r;
  routine->programs.emplace_back();
  program = 0;
  clock = 0;
  internals = 0;
  places.clear();
  packedFrom.clear();
  shared.clear();
  uses.clear();
  indexMap.clear();
  lives.clear();
  partner.clear();
  results.clear();
  finalDims.clear();
  flights.clear();
}

/// Whether x is what a kernel computes, under another shape: in row-major order the same bytes.
bool Scheduler::isRenamed(UOpRef x) {
  if (x->op != Op::Reshape) return false;
  UOpRef from = x->src[0];
  auto isExact = [&](UOpRef d) { return bound(closeIndex(d)) == closeIndex(d); }; // not a bound of a data dim
  return !has(from->op, Leaf) && !has(from->op, Control) && from->op != Op::Proj &&
         llvm::all_of(from->shape, isExact) && llvm::all_of(x->shape, isExact);
}

/// The roots, of which the new values of states are the last, those by the length of the way that leads to each, which
/// goes on to whoever else reads the old one: so the gradient of a weight is computed when the sweep comes by it, and
/// what it is made of dies.
static std::vector<UOpRef> inOrderOfDepth(ArrayRef<UOpRef> roots, ArrayRef<std::pair<UOpRef, UOpRef>> updates) {
  llvm::DenseMap<UOpRef, unsigned> depth, lastRead; // lastRead: of a state, the depth of what reads it
  for (UOpRef n : topoSort(roots)) {
    unsigned mine = 0;
    for (UOpRef s : n->src) mine = std::max(mine, depth[s] + 1);
    depth[n] = mine;
    for (UOpRef s : n->src)
      if (s->op == Op::State) lastRead[s] = std::max(lastRead[s], mine);
  }
  std::vector<std::pair<unsigned, size_t>> order;
  for (auto [i, u] : llvm::enumerate(updates))
    order.push_back({std::max(depth[u.first], lastRead.lookup(u.second) + 1), i});
  llvm::sort(order);
  std::vector<UOpRef> sorted = roots.drop_back(updates.size()).vec();
  for (auto [key, i] : order) sorted.push_back(updates[i].first);
  return sorted;
}

void Scheduler::entry(const Entry &e, StridedRoutine *strided) {
  begin(strided ? strided->routine : out.entries.back().routine);
  auto rowMajor = [](UOpRef v) { return Layout::rowMajor(v->rank()); };
  for (uint32_t i = 0; i < e.inputs.size(); ++i) {
    UOpRef v = inMemory(c, e.inputs[i].value);
    std::vector<UOpRef> shape(v->shape);
    Layout layout = strided ? stridedLayout(e.inputs[i].value, false, i, *strided) : rowMajor(v);
    places.set(v, {addBuffer(BufferKind::Input, i, v->dtype, shape, layout), layout, shape});
  }
  std::vector<UOpRef> roots;
  for (const Value &v : e.outputs) roots.push_back(v.value);
  for (const StateUpdate &u : e.updates) roots.push_back(u.value);
  // Whoever calls sees elements, not the bytes that rows of a sub-byte type take: their number goes with the roots.
  for (const Value &v : e.outputs)
    if (isSubByte(v.value->dtype) && v.value->rank()) roots.push_back(v.value->shape.back());
  if (!folded.empty()) {
    standIn(roots); // those numbers of elements are no sources of any node
    for (UOpRef &r : roots) r = unfolded.lookup(r);
  }
  std::vector<KernelChecks> lifted;
  roots = legal(roots, o.checks ? &lifted : nullptr);
  if (failed()) return;
  roots = canonicalParts(c, roots);
  std::vector<UOpRef> tests;
  for (auto [failing, check] : llvm::zip_equal(ArrayRef(roots).take_back(lifted.size()), lifted)) {
    tests.push_back(b.fromIndex(b.extent(failing, 0, 1), DType::I64));
    checks.try_emplace(failing, check);
  }
  roots.resize(roots.size() - lifted.size());
  std::vector<UOpRef> rows(roots.begin() + e.outputs.size() + e.updates.size(), roots.end());
  roots.resize(e.outputs.size() + e.updates.size());
  carryOut(layoutsOfTables(roots));
  if (strided) copyWhole(roots);
  for (UOpRef n : topoSort(roots))
    if (n->op == Op::State) {
      std::vector<UOpRef> shape(n->shape);
      uint32_t index = states.lookup(n->str);
      places.set(n, {addBuffer(BufferKind::State, index, n->dtype, shape, rowMajor(n)), rowMajor(n), shape});
    }
  llvm::DenseMap<UOpRef, Place> destinations;
  std::vector<std::pair<UOpRef, Place>> copies;
  std::vector<std::pair<UOpRef, UOpRef>> updates; // values and the states that they become
  // State first: an output that is also the new state is computed once, into the state where it can be.
  auto want = [&](UOpRef v, Place p) {
    copies.push_back({v, p});
    destinations.try_emplace(v, p);
  };
  for (uint32_t i = 0; i < e.updates.size(); ++i) {
    auto s = states.find(e.updates[i].state);
    if (s == states.end()) return fail("entry " + e.name + " updates an unknown state " + e.updates[i].state);
    UOpRef value = inMemory(c, out.states[s->second]);
    if (!places.count(value)) {
      std::vector<UOpRef> shape(value->shape);
      places.set(value, {addBuffer(BufferKind::State, s->second, value->dtype, shape, rowMajor(value)), rowMajor(value),
                         shape});
    }
    want(roots[e.outputs.size() + i], *places.find(value));
    updates.push_back({roots[e.outputs.size() + i], value});
  }
  std::vector<Place> outputs;
  std::vector<UOpRef> computed = roots;
  for (uint32_t i = 0; i < e.outputs.size(); ++i) {
    UOpRef &v = computed[i];
    Layout layout = strided ? stridedLayout(e.outputs[i].value, true, i, *strided) : rowMajor(v);
    while (!layout.isStrided() && isRenamed(v)) v = v->src[0]; // the kernel that computes it writes the output
    std::vector<UOpRef> allocated = bound(v->shape);
    if (!layout.isStrided()) layout = rowMajor(v);
    outputs.push_back({addBuffer(BufferKind::Output, i, v->dtype, allocated, layout), layout, allocated});
    want(v, outputs.back());
  }
  computed.insert(computed.end(), tests.begin(), tests.end());
  values(inOrderOfDepth(computed, updates), destinations, updates);
  if (failed()) return;
  moveAll(copies);
  landAll();
  join();
  layOutSlots();
  if (strided) return;
  ScheduledEntry &se = out.entries.back();
  auto row = rows.begin();
  for (uint32_t i = 0; i < e.outputs.size(); ++i) {
    UOpRef declared = e.outputs[i].value;
    std::vector<UOpRef> shape(roots[i]->shape);
    if (isComplex(declared->dtype) || (isSubByte(declared->dtype) && !declared->rank()))
      shape.pop_back(); // the axis of the two parts, or of the byte
    else if (isSubByte(declared->dtype))
      shape.back() = *row++;
    se.outputBounds.push_back(bound(shape));
    for (UOpRef &d : shape) d = closeIndex(d);
    se.outputShapes.push_back(shape);
  }
}

/// One routine per parameter that is not stored as the user gives it.
void Scheduler::prepare() {
  for (StoredParam &p : out.params) {
    if (p.layout.isRowMajor() || p.fixed) continue;
    p.prepare = out.prepares.size();
    Routine r;
    routine = &r;
    lives.clear();
    std::vector<UOpRef> shape(p.param->shape);
    Layout plain = Layout::rowMajor(shape.size());
    uint32_t from = addBuffer(BufferKind::Input, 0, p.param->dtype, shape, plain),
             to = addBuffer(BufferKind::Output, 0, p.param->dtype, shape, p.layout);
    KernelSpec spec;
    UOpRef x = b.arg(0, p.param->dtype, p.param->shape);
    spec.inputs.push_back({x, plain, shape});
    spec.outputs.push_back({c.make(Op::Detach, {x}), p.layout, shape});
    r.programs.push_back({LaunchInstr{{{nullptr, nullptr, kernelNumber(std::move(spec))}}, {from, to}}});
    out.prepares.push_back(std::move(r));
  }
}

/// One routine per folded param that depends on the user's: it computes it again when one of those is replaced.
void Scheduler::derive() {
  llvm::DenseMap<UOpRef, UOpRef> valueOf;
  for (const FoldedParam &f : folded)
    if (f.fromParams) valueOf[f.param] = f.value;
  for (size_t i = 0; i < out.params.size() && !failed(); ++i) {
    UOpRef value = valueOf.lookup(out.params[i].param);
    if (!value) continue;
    out.params[i].derive = int32_t(out.derives.size());
    Routine r;
    begin(r);
    Layout layout = out.params[i].layout;
    std::vector<UOpRef> shape(value->shape), roots = legal({value}, nullptr);
    Place to{addBuffer(BufferKind::Output, 0, value->dtype, shape, layout), layout, shape};
    llvm::DenseMap<UOpRef, Place> destinations;
    destinations.try_emplace(roots[0], to);
    values(roots, destinations);
    if (failed()) return;
    moveAll({std::pair(roots[0], to)});
    layOutSlots();
    out.derives.push_back(std::move(r));
  }
}

/// What the module and the folding know of the params that routines use.
void Scheduler::describeParams() {
  llvm::StringMap<const Param *> declared;
  for (const Param &p : m.params) declared[p.value->str] = &p;
  llvm::DenseMap<UOpRef, const FoldedParam *> ours;
  for (const FoldedParam &f : folded) ours[f.param] = &f;
  for (StoredParam &p : out.params) {
    if (const FoldedParam *f = ours.lookup(p.param)) {
      p.declared = f->param;
      p.data = f->data;
      p.fixed = true;
    } else if (const Param *q = declared.lookup(p.param->str)) {
      p.declared = q->value;
      p.data = q->data;
    }
  }
}

llvm::Expected<Schedule> Scheduler::run() {
  fold();
  out.dims = m.dims;
  out.moduleDims = m.dims.size();
  for (const StateVar &s : m.states) {
    states[s.value->str] = out.states.size();
    out.states.push_back(s.value);
  }
  out.entries.reserve(m.entries.size());
  for (const Entry &e : m.entries) {
    out.entries.push_back({&e, {}, {}, {}});
    entry(e, nullptr);
    // Each routine has data dims of its own, and the runtime reads an output's extents from the first one's.
    bool isData = llvm::any_of(e.outputs, [](const Value &out) { return hasDataExtent(out.value->shape); });
    if (o.strides && !isData && !failed()) {
      StridedRoutine strided;
      entry(e, &strided);
      if (!strided.tensors.empty()) out.entries.back().strided = std::move(strided);
    }
    if (failed()) return llvm::createStringError("entry " + e.name + ": " + error);
  }
  derive();
  if (failed()) return llvm::createStringError("internal error: a folded parameter: " + error);
  describeParams();
  prepare();
  dropKernels();
  noteKnown(m, out);
  return std::move(out);
}
