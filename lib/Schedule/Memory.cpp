//===- Memory.cpp: lifetimes and slots -------------------------------------===//
// Takes:    buffers of the routine at hand with the instructions that touch them.
// Gives:    slots: values of disjoint lifetime share one; a slot is as large as the largest value it ever holds. Of two
//           ways to share them the one that needs less.
// Keeps:    linear time in the number of buffers (times a logarithm).
#include "Scheduler.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace astra;
using llvm::ArrayRef;

UOpRef Scheduler::bound(UOpRef x) const {
  llvm::SmallVector<UOpRef, 4> from, to;
  for (UOpRef n : topoSort(x))
    if (n->op == Op::Extent ||
        (n->op == Op::Dim && llvm::is_contained(llvm::ArrayRef(out.dims).drop_front(out.moduleDims), n)))
      from.push_back(n), to.push_back(c.index(n->hi));
  return from.empty() ? x : idxSubstitute(c, x, from, to);
}
std::vector<UOpRef> Scheduler::bound(llvm::ArrayRef<UOpRef> shape) const {
  std::vector<UOpRef> r;
  for (UOpRef d : shape) r.push_back(bound(closeIndex(d)));
  return r;
}

uint32_t Scheduler::addBuffer(BufferKind kind, uint32_t index, DType t, llvm::ArrayRef<UOpRef> allocated,
                              const Layout &l) {
  routine->buffers.push_back({kind, index, idxMul(c, elementCount(c, l, allocated), c.index(byteSize(t)))});
  lives.push_back({clock, clock});
  return routine->buffers.size() - 1;
}
uint32_t Scheduler::slotBuffer(DType t, llvm::ArrayRef<UOpRef> allocated, const Layout &l) {
  return addBuffer(BufferKind::Slot, 0, t, allocated, l);
}

void Scheduler::touch(uint32_t buffer) {
  auto one = [&](uint32_t x) {
    lives[x].last = std::max(lives[x].last, clock);
    for (OpenLoop &l : loops)
      if (x < l.buffers) l.outer.push_back(x);
  };
  one(buffer);
  if (auto it = partner.find(buffer); it != partner.end()) one(it->second);
}

void Scheduler::endLoop() {
  for (uint32_t x : loops.back().outer) lives[x].last = std::max(lives[x].last, clock);
  loops.pop_back();
}

void Scheduler::emit(Instr i) {
  landFor(i);
  if (auto *l = std::get_if<LaunchInstr>(&i)) {
    for (uint32_t x : l->buffers) touch(x);
    l->origins = takeOrigins();
  }
  if (auto *x = std::get_if<ExternalInstr>(&i))
    for (auto *list : {&x->operands, &x->results})
      for (const ExternalInstr::Tensor &t : *list) touch(t.buffer);
  routine->programs[program].push_back(std::move(i));
  if (auto *x = std::get_if<ExternalInstr>(&routine->programs[program].back())) takeOff(*x);
  ++clock;
}

/// Whether a <= b whatever the dims are: each term of a has one of its own in b that is a multiple of it.
static bool neverAbove(UOpRef a, UOpRef b) {
  if (a->hi <= b->lo) return true;
  auto left = terms(b);
  for (const IndexTerm &t : terms(a)) {
    auto covers = [&](const IndexTerm &u) {
      llvm::SmallVector<UOpRef, 2> rest = u.atoms;
      for (UOpRef atom : t.atoms) {
        auto *same = llvm::find(rest, atom);
        if (same == rest.end()) return false;
        rest.erase(same);
      }
      return u.coefficient >= t.coefficient && llvm::all_of(rest, [](UOpRef atom) { return atom->lo >= 1; });
    };
    if (t.coefficient < 0 || llvm::any_of(t.atoms, [](UOpRef atom) { return atom->lo < 0; })) return false;
    auto *cover = llvm::find_if(left, covers);
    if (cover == left.end()) return false;
    left.erase(cover);
  }
  return llvm::all_of(left, [](const IndexTerm &t) {
    return t.coefficient >= 0 && llvm::all_of(t.atoms, [](UOpRef atom) { return atom->lo >= 0; });
  });
}

/// The greatest of them, nested no deeper than the logarithm of their number.
static UOpRef greatest(Context &c, std::vector<UOpRef> sizes) {
  for (; sizes.size() > 1; sizes.resize((sizes.size() + 1) / 2))
    for (size_t i = 0; 2 * i < sizes.size(); ++i)
      sizes[i] = 2 * i + 1 < sizes.size() ? idxMax(c, sizes[2 * i], sizes[2 * i + 1]) : sizes[2 * i];
  return sizes.front();
}

/// Puts a size into the list of those of which the greatest counts, unless another is never below it.
static void addSize(Context &c, std::vector<UOpRef> &sizes, UOpRef x) {
  constexpr size_t most = 64; // comparing with each must not cost more
  for (UOpRef s : sizes)
    if (neverAbove(x, s)) return;
  llvm::erase_if(sizes, [&](UOpRef s) { return neverAbove(s, x); });
  if (sizes.size() == most) sizes = {greatest(c, std::move(sizes))};
  sizes.push_back(x);
}

namespace {
/// A value that needs a slot while instructions first ... last run.
struct Tenant {
  uint32_t buffer, first, last;
  int64_t bytes; // at the bounds of the dims
};
/// Which slot each tenant gets, and what the slots take together.
struct Assignment {
  std::vector<uint32_t> slots;
  std::vector<int64_t> bytes; // of each slot
  int64_t total() const { return std::accumulate(bytes.begin(), bytes.end(), int64_t(0)); }
  void put(uint32_t slot, int64_t size) {
    slots.push_back(slot);
    if (slot == bytes.size()) bytes.push_back(0);
    bytes[slot] = std::max(bytes[slot], size);
  }
};

/// In the order of the instructions: the least free slot that is large enough, else the largest one.
Assignment byTime(ArrayRef<Tenant> tenants) {
  Assignment a;
  std::multimap<uint32_t, uint32_t> ending; // last instruction -> slot
  std::multimap<int64_t, uint32_t> unused;  // size -> slot
  for (const Tenant &t : tenants) {
    while (!ending.empty() && ending.begin()->first < t.first) {
      unused.emplace(a.bytes[ending.begin()->second], ending.begin()->second);
      ending.erase(ending.begin());
    }
    auto fit = unused.lower_bound(t.bytes);
    if (fit == unused.end() && !unused.empty()) fit = std::prev(unused.end());
    uint32_t slot = fit == unused.end() ? a.bytes.size() : fit->second;
    if (fit != unused.end()) unused.erase(fit);
    a.put(slot, t.bytes);
    ending.emplace(t.last, slot);
  }
  return a;
}

/// The largest first: the least of the slots that are free all the while (Pisarchyk and Lee 2020, greedy by size).
Assignment bySize(ArrayRef<Tenant> tenants) {
  constexpr size_t tried = 256; // slots a tenant: the time is linear
  std::vector<uint32_t> order(tenants.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](uint32_t x, uint32_t y) {
    return tenants[x].bytes != tenants[y].bytes ? tenants[x].bytes > tenants[y].bytes : x < y;
  });
  Assignment a;
  std::vector<std::map<uint32_t, uint32_t>> taken; // by slot: first -> last
  std::vector<uint32_t> slots(tenants.size());
  for (uint32_t i : order) {
    const Tenant &t = tenants[i];
    auto isFree = [&](const std::map<uint32_t, uint32_t> &times) {
      auto next = times.upper_bound(t.last);
      return next == times.begin() || std::prev(next)->second < t.first;
    };
    size_t slot = taken.size(), least = slot > tried ? slot - tried : 0;
    for (size_t s = slot; s-- > least;) // they were made the largest first
      if (isFree(taken[s])) {
        slot = s;
        break;
      }
    if (slot == taken.size()) taken.emplace_back();
    taken[slot].emplace(t.first, t.last);
    a.put(slot, t.bytes);
    slots[i] = slot;
  }
  a.slots = std::move(slots);
  return a;
}
} // namespace

void Scheduler::layOutSlots() {
  std::vector<Tenant> tenants;
  for (uint32_t i = 0; i < routine->buffers.size(); ++i)
    if (const ProgramBuffer &p = routine->buffers[i]; p.kind == BufferKind::Slot)
      tenants.push_back({i, lives[i].first, lives[i].last, p.bytes->hi});
  llvm::sort(tenants, [](const Tenant &x, const Tenant &y) {
    return std::pair(x.first, x.buffer) < std::pair(y.first, y.buffer);
  });
  Assignment best = byTime(tenants), other = bySize(tenants);
  if (other.total() < best.total()) best = std::move(other);
  std::vector<std::vector<UOpRef>> sizes(best.bytes.size()); // of the values that a slot holds
  for (auto [t, slot] : llvm::zip(tenants, best.slots)) {
    routine->buffers[t.buffer].index = slot;
    addSize(c, sizes[slot], routine->buffers[t.buffer].bytes);
  }
  for (std::vector<UOpRef> &list : sizes) routine->slots.push_back(greatest(c, std::move(list)));
}
