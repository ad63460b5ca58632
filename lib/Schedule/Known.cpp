//===- Known.cpp: what is known of dims where a kernel runs ------------------===//
// Takes:    a schedule.
// Gives:    in each kernel, symbolic integers that are not negative wherever it is launched.
// Keeps:    what the runtime checks or decides before the launch: a dim that is set lies within its bounds, a variant
//           runs where its condition holds and those before it do not, a loop's body runs where the counter is below
//           the count, the equations of an entry hold, a caller's tensor lies within its span.
#include "astra/IR/Index.h"
#include "astra/Schedule/Program.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using Facts = std::vector<UOpRef>;

namespace {
class Knowing {
public:
  Knowing(Context &c, Schedule &s) : c(c), s(s), seen(s.kernels.size()) {}

  void run(const Routine &r, Facts facts = {}) {
    routine = &r;
    walk(0, std::move(facts));
  }

private:
  /// The dims that a program sets, itself and in what it runs.
  llvm::DenseSet<UOpRef> setBy(llvm::SmallVector<uint32_t, 4> programs) {
    llvm::DenseSet<UOpRef> dims;
    while (!programs.empty())
      for (const Instr &i : routine->programs[programs.pop_back_val()]) {
        if (auto *set = std::get_if<SetDimInstr>(&i)) dims.insert(set->dim);
        if (auto *read = std::get_if<ReadDimInstr>(&i)) dims.insert(read->dim);
        if (auto *w = std::get_if<WhileInstr>(&i)) programs.append({w->cond, w->body});
        if (auto *l = std::get_if<LoopInstr>(&i)) programs.push_back(l->body), dims.insert(l->counter);
        if (auto *d = std::get_if<CondInstr>(&i)) programs.append({d->then, d->otherwise});
      }
    return dims;
  }
  static void forget(Facts &facts, const llvm::DenseSet<UOpRef> &dims) {
    llvm::erase_if(facts,
                   [&](UOpRef f) { return llvm::any_of(topoSort(f), [&](UOpRef n) { return dims.contains(n); }); });
  }

  /// A caller's tensor with elements has the last one within its span.
  UOpRef lastInside(const Placed &p) {
    UOpRef room = idxSub(c, p.layout.span, c.index(1));
    for (auto [extent, stride] : llvm::zip_equal(p.allocated, p.layout.strides))
      room = idxSub(c, room, idxMul(c, idxSub(c, extent, c.index(1)), stride));
    return room;
  }

  void launch(const LaunchInstr &l, const Facts &facts) {
    Facts here(facts);
    for (const LaunchInstr::Variant &v : l.variants) {
      Facts own(here);
      if (v.left) {
        own.push_back(idxSub(c, v.right, v.left));
        here.push_back(idxSub(c, idxSub(c, v.left, v.right), c.index(1)));
      }
      const KernelSpec &spec = s.kernels[v.kernel];
      for (const std::vector<Placed> *list : {&spec.inputs, &spec.outputs})
        for (const Placed &p : *list)
          if (p.layout.isStrided()) own.push_back(lastInside(p));
      Facts &known = s.kernels[v.kernel].known;
      if (!seen[v.kernel])
        known = own;
      else
        llvm::erase_if(known, [&](UOpRef f) { return !llvm::is_contained(own, f); });
      seen[v.kernel] = true;
    }
  }

  void walk(uint32_t program, Facts facts) {
    for (const Instr &i : routine->programs[program]) {
      if (auto *l = std::get_if<LaunchInstr>(&i)) launch(*l, facts);
      if (auto *set = std::get_if<SetDimInstr>(&i)) {
        forget(facts, {set->dim});
        if (set->value->isConst() || llvm::is_contained(topoSort(set->value), set->dim)) continue;
        facts.push_back(idxSub(c, c.index(set->dim->hi), set->value));
        facts.push_back(idxSub(c, set->value, c.index(set->dim->lo)));
      }
      if (auto *read = std::get_if<ReadDimInstr>(&i)) forget(facts, {read->dim});
      if (auto *w = std::get_if<WhileInstr>(&i)) {
        forget(facts, setBy({w->cond, w->body}));
        walk(w->cond, facts);
        walk(w->body, facts);
      }
      if (auto *l = std::get_if<LoopInstr>(&i)) {
        llvm::DenseSet<UOpRef> set = setBy({l->body});
        set.insert(l->counter);
        forget(facts, set);
        Facts inside(facts);
        UOpRef last = idxSub(c, l->count, c.index(1));
        inside.push_back(last);
        inside.push_back(idxSub(c, last, l->counter));
        walk(l->body, std::move(inside));
      }
      if (auto *d = std::get_if<CondInstr>(&i)) {
        walk(d->then, facts);
        walk(d->otherwise, facts);
        forget(facts, setBy({d->then, d->otherwise}));
      }
    }
  }

  Context &c;
  Schedule &s;
  const Routine *routine = nullptr;
  std::vector<bool> seen;
};
} // namespace

void astra::noteKnown(Module &m, Schedule &s) {
  Context &c = m.ctx();
  Knowing knowing(c, s);
  for (const ScheduledEntry &e : s.entries) {
    Facts equal; // checked when the entry is called
    for (const EntryEquation &q : m.equationsOf(*e.entry)) {
      equal.push_back(idxSub(c, q.left, q.right));
      equal.push_back(idxSub(c, q.right, q.left));
    }
    if (e.strided) knowing.run(e.strided->routine, equal);
    knowing.run(e.routine, std::move(equal));
  }
  for (const Routine &r : s.prepares) knowing.run(r);
  for (const Routine &r : s.derives) knowing.run(r);
}
