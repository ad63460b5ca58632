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

void Scheduler::layOutSlots() {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < routine->buffers.size(); ++i)
    if (routine->buffers[i].kind == BufferKind::Slot) order.push_back(i);
  llvm::sort(order,
             [&](uint32_t x, uint32_t y) { return std::pair(lives[x].first, x) < std::pair(lives[y].first, y); });
  std::multimap<uint32_t, uint32_t> ending; // last instruction -> slot
  std::multimap<int64_t, uint32_t> unused;  // size at its bound -> slot
  for (uint32_t i : order) {
    while (!ending.empty() && ending.begin()->first < lives[i].first) {
      unused.emplace(routine->slots[ending.begin()->second]->hi, ending.begin()->second);
      ending.erase(ending.begin());
    }
    ProgramBuffer &p = routine->buffers[i];
    auto fit = unused.lower_bound(p.bytes->hi); // the least that is large enough, else the largest
    if (fit == unused.end() && !unused.empty()) fit = std::prev(unused.end());
    if (fit == unused.end()) {
      p.index = routine->slots.size();
      routine->slots.push_back(p.bytes);
    } else {
      p.index = fit->second;
      routine->slots[p.index] = idxMax(c, routine->slots[p.index], p.bytes);
      unused.erase(fit);
    }
    ending.emplace(lives[i].last, p.index);
  }
}
