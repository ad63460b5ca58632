//===- Overlap.cpp: transfers beside kernels --------------------------------===//
// Takes:    values in an order; calls of collectives (docs/distributed.md), instruction by instruction.
// Gives:    an order in which a sum over shards begins as soon as what it adds is there, and what reads it comes late;
//           each such call as one that runs beside the instructions behind it, and a wait before the first of them that
//           reads its result or writes its operand.
// Keeps:    calls run one after another in the order of the program. Buffers of a call live until it is waited for. A
//           program ends with none.
// Does not: start calls earlier than where they stand, but for the order of values: a part that goes round a ring goes
//           on before it is computed with; a weight that is gathered is gathered where it is needed.
#include "Scheduler.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace astra;
using llvm::ArrayRef;

/// So many run or wait at once: what they hold cannot be used for anything else.
static constexpr size_t mostFlights = 4;

static bool isSum(UOpRef n) {
  return n->op == Op::External &&
         (n->str.starts_with("astra.mesh.all_reduce/") || n->str.starts_with("astra.mesh.reduce_scatter/"));
}

bool Scheduler::runsBeside(llvm::StringRef function) {
  return function.starts_with("astra.mesh.") && !function.starts_with("astra.mesh.index/");
}

/// What depends on the most sums comes last; else the order stays.
std::vector<UOpRef> Scheduler::sumsFirst(std::vector<UOpRef> order) {
  if (llvm::none_of(order, isSum)) return order;
  llvm::DenseMap<UOpRef, unsigned> sums; // on a way to it, at most
  std::vector<std::vector<UOpRef>> levels;
  for (UOpRef n : order) {
    unsigned most = 0;
    for (UOpRef s : n->src) most = std::max(most, sums.lookup(s) + isSum(s));
    sums[n] = most;
    levels.resize(std::max<size_t>(levels.size(), most + 1));
    levels[most].push_back(n);
  }
  order.clear();
  for (const std::vector<UOpRef> &level : levels) llvm::append_range(order, level);
  return order;
}

static bool isShift(UOpRef n) { return n->op == Op::External && n->str.starts_with("astra.mesh.permute/"); }
/// What a transfer is worth beginning before.
static bool isHeavy(UOpRef n) {
  return n->op == Op::Contract || n->op == Op::Reduce || n->op == Op::External || n->op == Op::Custom ||
         !n->fns.empty();
}

/// A part that goes round comes before the products of the part before it: as many have come to it as to them.
std::vector<UOpRef> Scheduler::shiftsEarly(std::vector<UOpRef> order) {
  if (llvm::none_of(order, isShift)) return order;
  struct Early {
    UOpRef call;
    std::vector<UOpRef> needs; // what is not heavy, sources first
    size_t missing;            // what is, and is not there
  };
  llvm::DenseMap<UOpRef, unsigned> shifts; // on a way to it, at most
  llvm::DenseMap<UOpRef, size_t> at;
  llvm::DenseMap<UOpRef, std::vector<size_t>> waiting;
  std::vector<Early> all;
  std::map<unsigned, std::vector<size_t>> ready; // by the shifts on a way to them
  constexpr size_t mostNeeded = 256;             // a part has a short way from one call to the next
  for (auto [i, n] : llvm::enumerate(order)) {
    unsigned most = 0;
    for (UOpRef s : n->src) most = std::max(most, shifts.lookup(s) + isShift(s));
    shifts[n] = most, at[n] = i;
    if (!isShift(n)) continue;
    Early e{n, {}, 0};
    llvm::DenseSet<UOpRef> seen;
    std::vector<UOpRef> open(n->src.begin(), n->src.end());
    while (!open.empty() && e.needs.size() < mostNeeded) {
      UOpRef s = open.back();
      open.pop_back();
      if (!at.count(s) || !seen.insert(s).second) continue;
      if (isHeavy(s)) {
        ++e.missing;
        waiting[s].push_back(all.size());
        continue;
      }
      e.needs.push_back(s);
      open.insert(open.end(), s->src.begin(), s->src.end());
    }
    if (!open.empty()) ++e.missing; // it stays where it is
    llvm::sort(e.needs, [&](UOpRef a, UOpRef b) { return at.lookup(a) < at.lookup(b); });
    if (!e.missing) ready[most].push_back(all.size());
    all.push_back(std::move(e));
  }
  std::vector<UOpRef> out;
  llvm::DenseSet<UOpRef> done;
  auto put = [&](UOpRef n) {
    if (!done.insert(n).second) return;
    out.push_back(n);
    if (auto it = waiting.find(n); it != waiting.end())
      for (size_t i : it->second)
        if (!--all[i].missing) ready[shifts.lookup(all[i].call)].push_back(i);
  };
  for (UOpRef n : order) {
    while (isHeavy(n) && !isShift(n) && !ready.empty() && ready.begin()->first <= shifts.lookup(n)) {
      auto next = ready.extract(ready.begin()); // `put` adds others
      for (size_t i : next.mapped()) {
        for (UOpRef s : all[i].needs) put(s);
        put(all[i].call);
      }
    }
    put(n);
  }
  return out;
}

/// Waits for the oldest `count` of the calls that run.
void Scheduler::land(size_t count) {
  if (!count) return;
  std::vector<Instr> &to = routine->programs[flightProgram];
  uint32_t left = uint32_t(flights.size() - count);
  // Nothing came between: it is an ordinary call, before which all others are waited for.
  if (!left && flights.back().at + 1 == to.size())
    std::get<ExternalInstr>(to.back()).beside = false;
  else
    to.push_back(WaitInstr{left});
  for (const Flight &f : llvm::ArrayRef(flights).take_front(count))
    for (auto *list : {&f.operands, &f.results})
      for (uint32_t buffer : *list) touch(buffer);
  ++clock;
  flights.erase(flights.begin(), flights.begin() + count);
}

/// Before an instruction: the calls that it needs have ended.
void Scheduler::landFor(const Instr &i) {
  if (flights.empty()) return;
  if (flightProgram != program) return landAll();
  llvm::SmallVector<uint32_t, 8> reads, writes;
  if (auto *l = std::get_if<LaunchInstr>(&i)) {
    llvm::append_range(reads, l->buffers);
    const KernelSpec &k = out.kernels[l->variants[0].kernel];
    ArrayRef<uint32_t> all = l->buffers;
    llvm::append_range(writes, k.inPlace ? all.take_front() : all.take_back(k.outputs.size()));
  } else if (auto *x = std::get_if<CopyInstr>(&i)) {
    reads = {x->src}, writes = {x->dst};
  } else if (auto *x = std::get_if<ReadDimInstr>(&i)) {
    reads = {x->buffer};
  } else if (auto *x = std::get_if<ExternalInstr>(&i)) {
    for (const ExternalInstr::Tensor &t : x->operands) reads.push_back(t.buffer);
    for (const ExternalInstr::Tensor &t : x->results) writes.push_back(t.buffer);
    if (!x->beside) return landAll();
  } else if (!std::get_if<SetDimInstr>(&i)) { // loops, branches and swaps
    return landAll();
  }
  size_t needed = 0;
  for (auto [k, f] : llvm::enumerate(flights)) {
    auto names = [](ArrayRef<uint32_t> list) {
      return [list](uint32_t buffer) { return llvm::is_contained(list, buffer); };
    };
    if (llvm::any_of(f.results, names(reads)) || llvm::any_of(f.results, names(writes)) ||
        llvm::any_of(f.operands, names(writes)))
      needed = k + 1;
  }
  if (!needed && std::get_if<ExternalInstr>(&i) && flights.size() == mostFlights) needed = 1;
  land(needed);
}

/// Behind an instruction that was put at the end of the program at hand.
void Scheduler::takeOff(const ExternalInstr &call) {
  if (!call.beside) return;
  Flight f{routine->programs[program].size() - 1, {}, {}};
  for (const ExternalInstr::Tensor &t : call.operands) f.operands.push_back(t.buffer);
  for (const ExternalInstr::Tensor &t : call.results) f.results.push_back(t.buffer);
  flights.push_back(std::move(f));
  flightProgram = program;
}
