//===- Kernels.cpp: closing kernels, choosing layouts ----------------------===//
// Takes:    a realized value and where the values below it lie.
// Gives:    a closed graph over args, so that equal kernels are one, and a layout for the result.
// Keeps:    layouts are a matter of speed alone: every kernel can read every layout.
#include "Scheduler.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/View.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <limits>

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

void Scheduler::store(UOpRef param, Layout layout) {
  storedParams[param] = out.params.size();
  out.params.push_back({param, std::move(layout), -1});
}

const Place *Scheduler::placeOf(UOpRef x) {
  if (const Place *p = places.find(x)) return p;
  if (x->op != Op::Param) return nullptr;
  if (!storedParams.count(x)) store(x, Layout::rowMajor(x->rank()));
  uint32_t number = storedParams[x];
  std::vector<UOpRef> shape(x->shape);
  const Layout &layout = out.params[number].layout;
  places.setForGood(x, {addBuffer(BufferKind::Param, number, x->dtype, shape, layout), layout, shape});
  return places.find(x);
}

UOpRef Scheduler::closeIndex(UOpRef x) {
  SmallVector<UOpRef, 4> from, to;
  for (UOpRef n : topoSort(x))
    if (UOpRef *now = indexMap.find(n)) from.push_back(n), to.push_back(*now);
  return from.empty() ? x : idxSubstitute(c, x, from, to);
}

UOpRef Scheduler::close(UOpRef v, KernelSpec &spec, std::vector<uint32_t> &buffers,
                        llvm::DenseMap<UOpRef, UOpRef> &closed, UOpRef computed) {
  std::vector<std::pair<UOpRef, unsigned>> stack{{v, 0}};
  while (!stack.empty()) {
    auto &[n, next] = stack.back();
    if (closed.count(n)) {
      stack.pop_back();
      continue;
    }
    if (n->isIndex()) {
      closed[n] = closeIndex(n);
      stack.pop_back();
      continue;
    }
    if (const Place *p = n == computed ? nullptr : placeOf(n)) {
      SmallVector<UOpRef, 4> shape;
      for (UOpRef d : n->shape) shape.push_back(closeIndex(d));
      UOpRef a = b.arg(spec.inputs.size(), n->dtype, shape);
      spec.inputs.push_back({a, p->layout, p->allocated});
      buffers.push_back(p->buffer);
      closed[n] = a;
      stack.pop_back();
      continue;
    }
    if (next < n->src.size()) {
      UOpRef s = n->src[next++];
      if (!closed.count(s)) stack.push_back({s, 0});
      continue;
    }
    SmallVector<UOpRef, 4> src;
    for (UOpRef s : n->src) src.push_back(closed[s]);
    closed[n] = c.withSources(n, src);
    if (const Origin *from = origin.lookup(n)) computing.insert(from->names.begin(), from->names.end());
    stack.pop_back();
  }
  return closed[v];
}

uint32_t Scheduler::kernelNumber(KernelSpec spec) {
  auto same = [](const Placed &a, const Placed &b) {
    return a.value == b.value && a.layout == b.layout && a.allocated == b.allocated && a.begin == b.begin;
  };
  std::vector<uint64_t> key{spec.outputs[0].value->hash, spec.inputs.size()};
  for (uint32_t k : kernelsByHash[key]) {
    const KernelSpec &o = out.kernels[k];
    auto sameFollower = [](const Follower &a, const Follower &b) {
      return a.spec.name == b.spec.name && a.buffers == b.buffers;
    };
    if (o.inPlace == spec.inPlace && o.follows == spec.follows &&
        llvm::equal(o.followers, spec.followers, sameFollower) && o.vectorIndex == spec.vectorIndex &&
        o.mostRows == spec.mostRows && same(o.outputs[0], spec.outputs[0]) && llvm::equal(o.inputs, spec.inputs, same))
      return k;
  }
  UOpRef named = spec.rootOp ? spec.rootOp : spec.outputs[0].value;
  spec.name = "k" + std::to_string(out.kernels.size()) + "_" + info(named->op).mnemonic +
              (spec.mostRows ? "_thin" : "") + (spec.followers.empty() ? "" : "_joined");
  kernelsByHash[key].push_back(out.kernels.size());
  out.kernels.push_back(std::move(spec));
  return out.kernels.size() - 1;
}

void Scheduler::dropKernels() {
  constexpr uint32_t unused = ~0u;
  std::vector<uint32_t> number(out.kernels.size(), unused);
  auto visitLaunches = [&](auto visit) {
    auto routine = [&](Routine &r) {
      for (std::vector<Instr> &program : r.programs)
        for (Instr &i : program)
          if (auto *l = std::get_if<LaunchInstr>(&i))
            for (LaunchInstr::Variant &v : l->variants) visit(v.kernel);
    };
    for (ScheduledEntry &e : out.entries) routine(e.routine);
    llvm::for_each(out.prepares, routine);
    llvm::for_each(out.derives, routine);
  };
  visitLaunches([&](uint32_t &k) { number[k] = 0; });
  uint32_t count = 0;
  for (size_t k = 0; k < number.size(); ++k)
    if (number[k] != unused) {
      if (count != k) out.kernels[count] = std::move(out.kernels[k]);
      number[k] = count++;
    }
  out.kernels.resize(count);
  visitLaunches([&](uint32_t &k) { k = number[k]; });
}

std::optional<int64_t> Scheduler::strideOf(UOpRef view, unsigned d) {
  SmallVector<UOpRef, 4> index;
  UOpRef axis = nullptr;
  for (unsigned i = 0; i < view->rank(); ++i) {
    UOpRef r = c.make(Op::Range, {closeIndex(view->shape[i])}, {1000 + i, int64_t(RangeKind::Loop)});
    if (i == d) axis = r;
    index.push_back(r);
  }
  while (!placeOf(view) || (has(view->op, Movement) && view->op != Op::Pad && !places.count(view))) {
    if (!has(view->op, Movement) || view->op == Op::Pad) return std::nullopt;
    index = throughMovement(c, view, index);
    view = view->src[0];
  }
  const Place *p = placeOf(view);
  for (UOpRef &i : index) i = closeIndex(i);
  UOpRef a = address(c, p->layout, p->allocated, index);
  int64_t stride = 0;
  for (const IndexTerm &t : terms(a)) {
    if (t.atoms.size() == 1 && t.atoms[0] == axis)
      stride += t.coefficient;
    else
      for (UOpRef x : t.atoms)
        if (llvm::is_contained(topoSort(x), axis)) return std::nullopt;
  }
  return stride;
}

/// A layout with this axis innermost, the others in logical order.
static Layout lastAxis(unsigned rank, int64_t axis) {
  SmallVector<int64_t, 6> order;
  for (unsigned i = 0; i < rank; ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  return Layout::permuted(order);
}

void Scheduler::copyView(UOpRef view, const Place &to, std::vector<UOpRef> begin) {
  KernelSpec spec;
  std::vector<uint32_t> buffers;
  llvm::DenseMap<UOpRef, UOpRef> closed;
  UOpRef v = c.make(Op::Detach, {close(view, spec, buffers, closed, nullptr)});
  spec.outputs.push_back({v, to.layout, to.allocated, std::move(begin)});
  buffers.push_back(to.buffer);
  emit(LaunchInstr{{{nullptr, nullptr, kernelNumber(std::move(spec))}}, buffers});
}

Place Scheduler::copied(UOpRef view, const Layout &layout) {
  std::vector<UOpRef> allocated = bound(view->shape);
  Place to{slotBuffer(view->dtype, allocated, layout), layout, allocated};
  copyView(view, to);
  return to;
}

void Scheduler::pack(UOpRef view, unsigned axis) {
  Place to = copied(view, lastAxis(view->rank(), axis));
  if (const Place *own = places.find(view); own && !packedFrom.count(view)) packedFrom.set(view, *own);
  places.set(view, to);
}

bool Scheduler::unpack(UOpRef view, unsigned axis) {
  const Place *own = packedFrom.find(view), *at = places.find(view);
  if (!own || !at) return false;
  Place home = *own, copy = *at;
  places.set(view, home);
  if (strideOf(view, axis) == 1) {
    packedFrom.erase(view);
    return true;
  }
  places.set(view, copy);
  return false;
}

void Scheduler::repackHere(UOpRef view, const Layout &layout) {
  Place to = copied(view, layout);
  const Place *own = places.find(view);
  lent.push_back({view, own ? std::optional(*own) : std::nullopt});
  places.set(view, to);
}

void Scheduler::endRepacks() {
  for (auto &[view, own] : llvm::reverse(lent)) {
    if (own)
      places.set(view, *own);
    else
      places.erase(view);
  }
  lent.clear();
}

std::vector<UOpRef> Scheduler::beginOf(const Part &part) {
  std::vector<UOpRef> begin(part.whole->rank(), c.index(0));
  begin[part.axis] = closeIndex(part.begin);
  return begin;
}

bool Scheduler::liesInWhole(UOpRef v, const Part &part, const Layout &layout, const Place *destination) {
  auto [it, isFirst] = rooms.try_emplace(part.whole);
  Room &room = it->second;
  if (isFirst) {
    std::vector<UOpRef> allocated = bound(part.whole->shape);
    bool direct = destination && routine->buffers[destination->buffer].kind != BufferKind::State &&
                  destination->layout == layout && destination->allocated == allocated;
    room.place = {direct ? destination->buffer : slotBuffer(v->dtype, allocated, layout), layout, allocated};
  }
  return room.place.layout == layout && room.parts.insert(v).second;
}

void Scheduler::concatenate(UOpRef v, const Concat &concat) {
  Room room = std::move(rooms[v]);
  rooms.erase(v);
  for (auto [part, begin] : llvm::zip_equal(concat.parts, concat.begins))
    if (!room.parts.contains(part)) copyView(part, room.place, beginOf({v, concat.axis, begin}));
  places.set(v, room.place);
}

static constexpr int64_t panel = 16; // elements: one AVX-512 register of f32, two of AVX2, four of NEON

/// Panels of an operand along an axis: lane blocks, then the reduced axes in the order of the loops, then what is left,
/// then the lane.
static Layout panels(const ContractSpec &s, llvm::ArrayRef<AffineForm> forms, unsigned axis) {
  Layout l;
  l.dims.push_back({int64_t(axis), panel, 0});
  SmallVector<bool> taken(forms.size());
  taken[axis] = true;
  auto take = [&](unsigned d) {
    if (!taken[d]) l.dims.push_back({int64_t(d)}), taken[d] = true;
  };
  for (unsigned d = 0; d < forms.size(); ++d) // kept labels outside
    if (llvm::any_of(forms[d].terms, [&](auto t) { return t.first < s.kept; })) take(d);
  for (int64_t label = s.kept; label < s.kept + s.reduced; ++label)
    for (unsigned d = 0; d < forms.size(); ++d)
      if (llvm::any_of(forms[d].terms, [&](auto t) { return t.first == label; })) take(d);
  for (unsigned d = 0; d < forms.size(); ++d) take(d);
  l.dims.push_back({int64_t(axis), 1, panel});
  return l;
}

/// Panels along an axis, the other axes in their order.
static Layout panelsAlong(unsigned rank, unsigned axis) {
  Layout l;
  l.dims.push_back({int64_t(axis), panel, 0});
  for (unsigned d = 0; d < rank; ++d)
    if (d != axis) l.dims.push_back({int64_t(d)});
  l.dims.push_back({int64_t(axis), 1, panel});
  return l;
}

static bool reads(const AffineForm &f, int64_t label) {
  return llvm::any_of(f.terms, [&](auto &t) { return t.first == label; });
}

static int64_t countReads(ArrayRef<AffineForm> forms, int64_t label) {
  return llvm::count_if(forms, [&](const AffineForm &f) { return reads(f, label); });
}

/// Whether a label is kept, and one axis of an operand and no other reads it.
static bool isOwn(int64_t label, const ContractSpec &s, ArrayRef<AffineForm> forms, ArrayRef<AffineForm> other) {
  return label < s.kept && !countReads(other, label) && countReads(forms, label) == 1;
}

/// How often an element of an operand is read in which lanes run along a label: by rows that have other labels alone,
/// and by the taps of a window along that one.
static int64_t readsOf(UOpRef r, const ContractSpec &s, ArrayRef<AffineForm> forms, int64_t lanes) {
  constexpr int64_t large = int64_t(1) << 20;
  auto isTap = [&](int64_t l) {
    return llvm::any_of(forms, [&](const AffineForm &f) { return reads(f, l) && reads(f, lanes); });
  };
  int64_t times = 1;
  for (int64_t l = 0; l < s.kept + s.reduced; ++l)
    if (l != lanes && (l < s.kept ? !countReads(forms, l) : isTap(l)))
      times = std::min(times * std::max<int64_t>(r->indices()[l]->hi, 1), large);
  return times;
}

void Scheduler::layOutTables(llvm::ArrayRef<UOpRef> roots) {
  llvm::DenseSet<UOpRef> tables;
  auto order = topoSort(roots);
  for (UOpRef n : order)
    if (n->op == Op::Gather && n->src[0]->op == Op::Param && !storedParams.count(n->src[0])) tables.insert(n->src[0]);
  for (UOpRef n : order) {
    if (n->op != Op::Contract || n->src[0] == n->src[1]) continue;
    ContractSpec s = llvm::cantFail(decodeContract(n->ints));
    for (unsigned o : {0u, 1u}) {
      if (!tables.contains(n->src[o])) continue;
      auto &forms = o ? s.b : s.a, &other = o ? s.a : s.b;
      int64_t best = -1, most = panel - 1;
      for (unsigned axis = 0; axis < forms.size(); ++axis) {
        if (!forms[axis].isLabel()) continue;
        int64_t label = forms[axis].terms[0].first, extent = n->src[o]->shape[axis]->hi;
        if (isOwn(label, s, forms, other) && extent > most) best = axis, most = extent;
      }
      if (best < 0) continue;
      store(n->src[o], panels(s, forms, unsigned(best)));
      tables.erase(n->src[o]);
    }
  }
}

/// A layout of words as one of their bytes.
static Layout ofBytes(const Layout &words, ArrayRef<int64_t> axes) {
  Layout l;
  int64_t last = int64_t(axes.size()) - 1;
  for (const MemoryDim &d : words.dims) l.dims.push_back({axes[d.axis], d.div * (d.axis == last ? 4 : 1), d.modulus});
  l.dims.push_back({axes[last], 1, 4});
  return l;
}

/// Whether an operand of a contract is arithmetic that its kernel does, as Fusion decided.
bool Scheduler::computedHere(UOpRef operand) { return has(operand->op, Elementwise) && !places.count(operand); }

/// Whether lanes may run along this axis of an operand: they are neighbours in it, or in all that it is computed of, or
/// read the same there.
bool Scheduler::runsAlong(UOpRef operand, unsigned axis) {
  if (!computedHere(operand)) return strideOf(operand, axis) == 1;
  if (axis + 1 == operand->rank()) return true; // of what lies as it is written
  std::vector<UOpRef> stack{operand};
  llvm::DenseSet<UOpRef> seen;
  while (!stack.empty()) {
    UOpRef n = stack.back();
    stack.pop_back();
    UOpRef base = n;
    while (has(base->op, Movement) && base->op != Op::Pad) base = base->src[0];
    if (!seen.insert(n).second || base->op == Op::Const) continue;
    if (computedHere(n) && n->shape == operand->shape) {
      stack.insert(stack.end(), n->tensors().begin(), n->tensors().end());
      continue;
    }
    auto stride = n->op == Op::Param ? std::nullopt : strideOf(n, axis); // whose layout may be still to choose
    if (!stride || (*stride != 1 && *stride != 0)) return false;
  }
  return true;
}

/// The parameter that is an operand of a contract, or that the contract's kernel makes it of; null: none.
UOpRef Scheduler::paramOf(UOpRef operand) {
  return operand->op == Op::Param ? operand : computedHere(operand) ? weightBehind(operand) : nullptr;
}

bool Scheduler::canStore(UOpRef operand, const Layout &layout) {
  SmallVector<int64_t, 6> axes;
  bool words = operand->op == Op::Words;
  UOpRef param = words ? paramOfWords(operand, axes) : paramOf(operand);
  if (!param) return false;
  auto stored = storedParams.find(param);
  return stored == storedParams.end() || out.params[stored->second].layout == (words ? ofBytes(layout, axes) : layout);
}

void Scheduler::storeOperand(UOpRef operand, const Layout &layout) {
  if (operand->op != Op::Words) {
    if (UOpRef param = paramOf(operand); !storedParams.count(param)) store(param, layout);
    return;
  }
  SmallVector<int64_t, 6> axes;
  UOpRef param = paramOfWords(operand, axes);
  if (!storedParams.count(param)) store(param, ofBytes(layout, axes));
  uint32_t buffer = placeOf(param)->buffer;
  places.setForGood(operand, {buffer, layout, std::vector<UOpRef>(operand->shape)});
}

std::optional<std::array<unsigned, 2>> Scheduler::ownAxes(UOpRef r, const ContractSpec &s) {
  constexpr int64_t fewest = 2 * panel, longSum = 256, large = int64_t(1) << 20;
  constexpr uint64_t productsOfCopy = 128;
  if (s.reduced < 2 || !s.domain.empty() || r->src[0] == r->src[1]) return std::nullopt;
  int64_t steps = 1;
  for (UOpRef e : r->indices().slice(s.kept, s.reduced))
    steps = std::min(steps * std::clamp<int64_t>(e->lo, 0, large), large);
  if (steps < longSum) return std::nullopt;
  // Of a step of one product (of many, each copies its own), elements that have to be worth their copy.
  uint64_t products = 1, copied = 0;
  for (int64_t l = 0; l < s.kept; ++l)
    if (!countReads(s.a, l) || !countReads(s.b, l))
      products = llvm::SaturatingMultiply<uint64_t>(products, std::max<int64_t>(r->shape[l]->lo, 1));
  std::array<unsigned, 2> axes;
  for (unsigned o : {0u, 1u}) {
    UOpRef x = r->src[o];
    auto &forms = o ? s.b : s.a, &other = o ? s.a : s.b;
    bool found = false;
    if (computedHere(x) || canStore(x, Layout::rowMajor(x->rank()))) return std::nullopt;
    for (unsigned d = 0; d < forms.size(); ++d) {
      auto extent = x->shape[d]->constIndex();
      if (!forms[d].isLabel() || !extent || *extent < fewest || *extent % panel) continue;
      int64_t label = forms[d].terms[0].first;
      if (!isOwn(label, s, forms, other) || strideOf(x, d) != 1) continue;
      axes[o] = d;
      found = true;
    }
    if (!found) return std::nullopt;
    copied += x->shape[axes[o]]->ints[0];
  }
  if (products / productsOfCopy < copied) return std::nullopt;
  return axes;
}

std::optional<unsigned> Scheduler::summedAcross(UOpRef r, const ContractSpec &s, unsigned o, int64_t lanes) {
  constexpr int64_t line = 16, longSum = 128, manyLanes = 128; // elements
  UOpRef x = r->src[o];
  auto &forms = o ? s.b : s.a;
  if (computedHere(x) || paramOf(x) || x->op == Op::Words || countReads(forms, lanes) ||
      std::min(r->shape[lanes]->hi, manyLanes) * readsOf(r, s, forms, lanes) < manyLanes)
    return std::nullopt;
  std::optional<unsigned> longest;
  for (unsigned d = 0; d < forms.size(); ++d) {
    if (!forms[d].isLabel() || forms[d].terms[0].first < s.kept || x->shape[d]->lo < longSum) continue;
    auto stride = strideOf(x, d);
    if (!stride || *stride < line) return std::nullopt;
    if (!longest || x->shape[d]->lo > x->shape[*longest]->lo) longest = d;
  }
  return longest;
}

Layout Scheduler::contractLayout(UOpRef r, int64_t &vectorIndex) {
  ContractSpec s = llvm::cantFail(decodeContract(r->ints));
  struct Use {
    unsigned axis = 0, count = 0;
    bool plain = false;
  };
  auto useOf = [](llvm::ArrayRef<AffineForm> forms, int64_t label) {
    Use u;
    for (unsigned d = 0; d < forms.size(); ++d)
      for (auto [l, k] : forms[d].terms)
        if (l == label) u = {d, u.count + 1, forms[d].divisor == 1 && k == 1};
    return u;
  };
  UOpRef operands[] = {r->src[0], r->src[1]};
  auto inPanels = [&](unsigned o, unsigned axis) { return canStore(operands[o], panels(s, o ? s.b : s.a, axis)); };
  // Panels of whole registers, several of them, for a sum over more than one label: a tile would read columns of every
  // place of the other axes, each in another page.
  auto lendable = [&](unsigned o, unsigned axis) {
    auto extent = operands[o]->shape[axis]->constIndex();
    return s.reduced > 1 && extent && *extent >= 2 * panel && *extent % panel == 0;
  };
  // Of weights, which have one kept label, they are worth more than lanes along an image that need no copy.
  auto isWeight = [&](unsigned o) {
    auto isOther = [&](const AffineForm &f) { return !f.isLabel() || f.terms[0].first < s.kept; };
    return llvm::count_if(o ? s.b : s.a, isOther) == 1;
  };
  bool changes = llvm::none_of(operands, [&](UOpRef x) { return isPacked(x) || paramOf(x); });
  auto own = ownAxes(r, s);
  auto keptLabels = [&](unsigned o) {
    return llvm::count_if(llvm::seq(s.kept), [&](int64_t l) { return useOf(o ? s.b : s.a, l).count; });
  };
  // Of many products whose operands both change, as attention's, two panels are as good as more.
  bool isBatched = llvm::any_of(
      llvm::seq(s.kept), [&](int64_t l) { return r->shape[l]->hi > 1 && useOf(s.a, l).count && useOf(s.b, l).count; });
  const int64_t enough = changes && isBatched ? 2 * panel : std::numeric_limits<int64_t>::max();
  // A copy that few reads pay for is worse than one of an operand that is much smaller (8 rows times a transposed 4096
  // x 4096: 20.2 and 4.9 ms, 64 rows 37.4 and 20.6); not so of short sums, as attention's, whose rows a softmax passes.
  auto turnsOther = [&](unsigned o, int64_t reads) {
    constexpr int64_t few = 64, larger = 16, longSum = 512;
    int64_t steps = 1;
    for (int64_t l = s.kept; l < s.kept + s.reduced; ++l)
      steps = std::min(steps * std::max<int64_t>(r->indices()[l]->lo, 1), longSum);
    auto elements = [&](unsigned o) { return idxProduct(c, operands[o]->shape)->hi; };
    return changes && steps == longSum && reads <= few && elements(o) / larger >= elements(!o);
  };
  int64_t best = -1;
  std::pair<int64_t, int64_t> bestScore{100, 0};
  for (int64_t l = 0; l < s.kept; ++l) {
    int64_t extent = r->shape[l]->hi, cost = 0;
    Use u[] = {useOf(s.a, l), useOf(s.b, l)};
    if (extent < 2 || (u[0].count && u[1].count && operands[0] == operands[1])) continue;
    bool possible = true;
    for (unsigned o : {0u, 1u}) {
      if (!u[o].count) continue;
      possible &= u[o].count == 1 && u[o].plain;
      if (!possible) break;
      if (inPanels(o, u[o].axis) || runsAlong(operands[o], u[o].axis)) continue;
      auto reads = readsOf(r, s, o ? s.b : s.a, l);
      possible &= reads >= 8; // a copy with this axis innermost is worth it
      cost += isWeight(o) && lendable(o, u[o].axis) ? -1 : 4;
      cost += turnsOther(o, reads);
    }
    if (!possible) continue;
    if (u[0].count && u[1].count) cost += 2;
    if (extent < 8) cost += 8;
    // A copy is worth more than lanes of a register or less, where no weight has its layout chosen for it.
    if (extent <= panel && s.reduced > 1 && changes) cost += 5;
    // Along the operand that has the taps, which then are places of one tile after another and not rows of it.
    for (unsigned o : {0u, 1u})
      if (own && u[o].count && u[o].axis == (*own)[o] && keptLabels(o) > keptLabels(!o)) --cost;
    // Of equals the innermost: reductions go along it, and the result lies in the order of its axes.
    std::pair<int64_t, int64_t> score{cost, -std::min(extent, enough)};
    if (score <= bestScore) bestScore = score, best = l;
  }
  vectorIndex = best;
  // A weight that its kernel does not unpack is unpacked before it, where it is wanted.
  auto unpacksBefore = [&](unsigned o) {
    return computedHere(operands[o]) && weightBehind(operands[o]) && !unpacksWhereRead(r, o);
  };
  for (unsigned o : {0u, 1u}) { // words of a parameter, or a weight, along which no lanes run
    auto lanes = best < 0 ? Use() : useOf(o ? s.b : s.a, best);
    UOpRef x = operands[o];
    if (!lanes.count && unpacksBefore(o)) repackHere(x, Layout::rowMajor(x->rank()));
    if (x->op != Op::Words || places.find(x) || (lanes.count && inPanels(o, lanes.axis))) continue;
    Layout plain = Layout::rowMajor(x->rank());
    if (canStore(x, plain))
      storeOperand(x, plain);
    else if (!placeWords(x))
      realize(x, nullptr, nullptr);
  }
  if (best < 0) return Layout::rowMajor(r->rank());
  for (unsigned o : {0u, 1u}) {
    auto &forms = o ? s.b : s.a;
    Use u = useOf(forms, best);
    if (!u.count) continue;
    UOpRef x = operands[o];
    bool before = unpacksBefore(o), stored = inPanels(o, u.axis);
    if (stored) storeOperand(x, panels(s, forms, u.axis));
    if (!before && (stored || runsAlong(x, u.axis) || unpack(x, u.axis))) continue;
    if (before || lendable(o, u.axis))
      repackHere(x, panels(s, forms, u.axis));
    else
      pack(x, u.axis);
  }
  for (unsigned o : {0u, 1u}) {
    if (own)
      repackHere(operands[o], panelsAlong(operands[o]->rank(), (*own)[o]));
    else if (auto axis = summedAcross(r, s, o, best))
      repackHere(operands[o], lastAxis(operands[o]->rank(), *axis));
  }
  // Channels of a grouped convolution are all together: group by group, where lanes run along those of one.
  Layout l = lastAxis(r->rank(), best);
  if (best > 0 && isGroup(s, best - 1)) std::rotate(l.dims.begin() + best - 1, l.dims.begin() + best, l.dims.end() - 1);
  return l;
}

Layout Scheduler::layoutFor(UOpRef v, UOpRef rootOp, int64_t &vectorIndex) {
  vectorIndex = -1;
  if (rootOp && rootOp->op == Op::Contract) return contractLayout(rootOp, vectorIndex);
  // A kernel that writes rows has them as neighbours.
  if (rootOp && rootOp->op == Op::Reduce && v->shape == rootOp->src[0]->shape) return Layout::rowMajor(v->rank());
  // A sum lies in its operand's order: then it goes along what are neighbours in both.
  if (rootOp && rootOp->op == Op::Reduce && v->shape == rootOp->shape && v->rank())
    if (auto order = inputOrder(rootOp->src[0], true); order && order->isPermuted()) {
      ReduceSpec s = llvm::cantFail(decodeReduce(rootOp->ints));
      SmallVector<int64_t, 6> kept;
      for (const MemoryDim &d : order->dims)
        if (!llvm::is_contained(s.axes, d.axis))
          kept.push_back(d.axis - llvm::count_if(s.axes, [&](int64_t axis) { return axis < d.axis; }));
      return Layout::permuted(kept);
    }
  return inputOrder(v, false).value_or(Layout::rowMajor(v->rank()));
}

/// The order of the first input of this rank that is not row-major; of windows and other views of such an input, its
/// innermost axis stays so.
std::optional<Layout> Scheduler::inputOrder(UOpRef v, bool placed) {
  struct Visit {
    UOpRef n;
    bool aligned; // its axes are those of v
  };
  std::vector<Visit> stack{{v, true}};
  llvm::DenseSet<UOpRef> seen;
  while (!stack.empty()) {
    auto [n, aligned] = stack.back();
    stack.pop_back();
    if (n->isIndex() || !seen.insert(n).second) continue;
    const Place *p = n == v && !placed ? nullptr : places.find(n);
    if (p && n->rank() == v->rank() && p->layout.isPermuted() && !p->layout.isRowMajor()) return p->layout;
    if (p || isStored(n) || n->op == Op::Permute) continue;
    if (int64_t axis = aligned ? innermostOfView(n) : -1; axis >= 0) return lastAxis(n->rank(), axis);
    aligned &= has(n->op, Elementwise);
    for (UOpRef s : llvm::reverse(n->src)) stack.push_back({s, aligned});
  }
  return std::nullopt;
}

int64_t Scheduler::innermostOfView(UOpRef view) {
  constexpr int64_t leastLanes = 8;
  UOpRef base = view;
  while (has(base->op, Movement) && base->op != Op::Pad && !places.find(base)) base = base->src[0];
  const Place *p = base == view ? nullptr : places.find(base);
  if (!p || !p->layout.isPermuted() || p->layout.isRowMajor()) return -1;
  for (unsigned axis = 0; axis + 1 < view->rank(); ++axis)
    if (view->shape[axis]->hi >= leastLanes && strideOf(view, axis) == 1) return axis;
  return -1;
}
