//===- Memory.cpp: lifetimes and slots -------------------------------------===//
// Takes:    buffers of the routine at hand with the instructions that touch them.
// Gives:    slots: values of disjoint lifetime share one; a slot is as large as the largest value it ever holds.
// Keeps:    linear time in the number of buffers (times a logarithm): free slots are kept by size.
#include "Scheduler.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;

UOpRef Scheduler::bound(UOpRef x) {
  llvm::SmallVector<UOpRef, 4> from, to;
  for (UOpRef n : topoSort(x))
    if (n->op == Op::Extent ||
        (n->op == Op::Dim && llvm::is_contained(llvm::ArrayRef(out.dims).drop_front(out.moduleDims), n)))
      from.push_back(n), to.push_back(c.index(n->hi));
  return from.empty() ? x : idxSubstitute(c, x, from, to);
}
std::vector<UOpRef> Scheduler::bound(llvm::ArrayRef<UOpRef> shape) {
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
  if (auto *l = std::get_if<LaunchInstr>(&i))
    for (uint32_t x : l->buffers) touch(x);
  routine->programs[program].push_back(std::move(i));
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

void Scheduler::layOutSlots() {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < routine->buffers.size(); ++i)
    if (routine->buffers[i].kind == BufferKind::Slot) order.push_back(i);
  llvm::sort(order,
             [&](uint32_t x, uint32_t y) { return std::pair(lives[x].first, x) < std::pair(lives[y].first, y); });
  std::multimap<uint32_t, uint32_t> ending; // last instruction -> slot
  std::multimap<int64_t, uint32_t> unused;  // size at its bound -> slot
  std::vector<std::vector<UOpRef>> sizes;   // of the values that a slot holds
  std::vector<int64_t> most;                // the greatest of them at their bounds
  for (uint32_t i : order) {
    while (!ending.empty() && ending.begin()->first < lives[i].first) {
      unused.emplace(most[ending.begin()->second], ending.begin()->second);
      ending.erase(ending.begin());
    }
    ProgramBuffer &p = routine->buffers[i];
    auto fit = unused.lower_bound(p.bytes->hi); // the least that is large enough, else the largest
    if (fit == unused.end() && !unused.empty()) fit = std::prev(unused.end());
    if (fit == unused.end()) {
      p.index = sizes.size();
      sizes.emplace_back();
      most.push_back(0);
    } else {
      p.index = fit->second;
      unused.erase(fit);
    }
    addSize(c, sizes[p.index], p.bytes);
    most[p.index] = std::max(most[p.index], p.bytes->hi);
    ending.emplace(lives[i].last, p.index);
  }
  for (std::vector<UOpRef> &list : sizes) routine->slots.push_back(greatest(c, std::move(list)));
}
