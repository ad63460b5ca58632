//===- Occasions.cpp -------------------------------------------------------===//
#include "astra/Search/Occasions.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace astra;

namespace {

constexpr double points[] = {0.5, 1, 0, 0.75, 0.25}; // from the lower bounds, 0, to the upper ones, 1

/// The entries at one point of the dims' bounds.
class Walk {
public:
  Walk(const Module &m, const Schedule &s, std::vector<Occasion> &found) : m(m), s(s), found(found) {}
  void run(double point) {
    ours.assign(s.kernels.size(), false);
    for (const ScheduledEntry &e : s.entries) {
      for (UOpRef d : s.dims) dims[d] = between(d->lo, d->hi, point);
      bool holds = llvm::all_of(m.equations, [&](const Equation &q) {
        auto left = value(q.left), right = value(q.right);
        return left && left == right;
      });
      if (holds) program(e.routine, 0, 1);
    }
  }

private:
  const Module &m;
  const Schedule &s;
  std::vector<Occasion> &found;
  std::vector<bool> ours; // kernels whose occasion this walk found
  llvm::DenseMap<UOpRef, int64_t> dims;

  static int64_t between(int64_t lo, int64_t hi, double point) {
    double least = std::max<int64_t>(lo, 1), most = std::max<int64_t>(hi, 1);
    return std::clamp<int64_t>(std::llround(least * std::pow(most / least, point)), lo, hi);
  }
  std::optional<int64_t> value(UOpRef x) {
    return idxEvaluate(x, [&](UOpRef d) -> std::optional<int64_t> {
      auto it = dims.find(d);
      return it == dims.end() ? std::nullopt : std::optional<int64_t>(it->second);
    });
  }
  /// Whether data dims were made up so that every value fits its buffer.
  bool fits(const KernelSpec &spec) {
    auto inside = [&](const Placed &p) {
      for (auto [axis, room] : llvm::enumerate(p.allocated)) {
        UOpRef extent = p.value->shape[axis];
        auto n = value(extent), most = value(room),
             begin = p.begin.empty() ? std::optional<int64_t>(0) : value(p.begin[axis]);
        if (!n || !most || !begin || *n < 0 || *begin < 0 || *n > *most - *begin) return false;
      }
      return true;
    };
    return llvm::all_of(spec.inputs, inside) && llvm::all_of(spec.outputs, inside);
  }
  void launch(const LaunchInstr &l, double times) {
    for (const LaunchInstr::Variant &v : l.variants) {
      if (v.left) {
        auto left = value(v.left), right = value(v.right);
        if (!left || !right) return;
        if (*left > *right) continue;
      }
      Occasion &o = found[v.kernel];
      if (o.launches && !ours[v.kernel]) return;
      if (!o.launches) {
        if (!fits(s.kernels[v.kernel])) return;
        for (UOpRef d : s.dims) o.dims.push_back(dims.lookup(d));
        ours[v.kernel] = true;
      }
      o.launches += times;
      return;
    }
  }
  void program(const Routine &r, uint32_t number, double times) {
    for (const Instr &i : r.programs[number]) {
      if (auto *x = std::get_if<LaunchInstr>(&i)) {
        launch(*x, times);
      } else if (auto *x = std::get_if<SetDimInstr>(&i)) {
        if (auto v = value(x->value)) dims[x->dim] = std::clamp(*v, x->dim->lo, x->dim->hi);
      } else if (auto *x = std::get_if<WhileInstr>(&i)) {
        program(r, x->cond, times);
        program(r, x->body, times);
      } else if (auto *x = std::get_if<LoopInstr>(&i)) {
        int64_t n = value(x->count).value_or(0);
        dims[x->counter] = 0;
        if (n > 0) program(r, x->body, times * n);
      } else if (auto *x = std::get_if<CondInstr>(&i)) {
        program(r, x->then, times);
        program(r, x->otherwise, times);
      }
    }
  }
};

} // namespace

std::vector<Occasion> astra::findOccasions(const Module &m, const Schedule &s) {
  std::vector<Occasion> found(s.kernels.size());
  Walk walk(m, s, found);
  for (double point : points) walk.run(point);
  return found;
}
