//===- Contract.cpp: the gradients of a contract are contracts -------------===//
// Takes:    a contract y[kept] = sum over the reduced labels of a[forms] * b[forms].
// Gives:    the contract of the cotangent with the other operand, of a complex one its conjugate, that is the cotangent
//           of a or b.
// Keeps:    clause N4: the reduced labels are the forward's remaining reduced ones, then its remaining kept ones, each
//           in order. An axis u of the operand is solved for one label of its form: its own where it is bare, else the
//           kept one (an input gradient's oh = (ih + 1 - kh)/2); an axis that counts two labels, l*size(m) + m, stands
//           for both, as two axes (groups of a convolution). What cannot be solved exactly stays: the label is summed
//           under the condition that form and axis are equal.
// Does not: care for indices outside: the cotangent reads +0 there and takes part, as in any contract.
#include "Rows.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <numeric>

using namespace astra;
using namespace astra::autograd;
using llvm::SmallVector;

namespace {
/// The forms of a gradient over labels that have their numbers only at the end: forward label l is l, axis i of the
/// gradient is axes + i.
class Transposition {
public:
  Transposition(Builder &b, UOpRef n, UOpRef g, unsigned which)
      : b(b), n(n), g(g), s(llvm::cantFail(decodeContract(n->ints))), labels(s.kept + s.reduced), which(which),
        x(n->src[which]), other(conjugate(b, n->src[1 - which])), solution(labels) {}

  UOpRef run() {
    const auto &mine = which == 0 ? s.a : s.b;
    SmallVector<std::pair<AffineForm, int64_t>, 6> open; // forms of several labels and their axes
    for (auto [i, f] : llvm::enumerate(mine)) {
      if (auto digits = twoLabels(f, x->shape[i])) {
        for (int64_t l : *digits) bare(l, addAxis(n->indices()[l]));
        continue;
      }
      int64_t axis = addAxis(x->shape[i]);
      if (f.isLabel() && !solution[f.terms[0].first])
        bare(f.terms[0].first, axis);
      else
        open.push_back({f, axis});
    }
    for (auto &[f, axis] : open) solve(f, axis);
    return build();
  }

private:
  Builder &b;
  UOpRef n, g;
  ContractSpec s;
  int64_t labels;
  unsigned which;
  UOpRef x, other;
  SmallVector<std::optional<AffineForm>, 8> solution; // by forward label
  SmallVector<UOpRef, 6> axes;                        // extents of the gradient's axes
  SmallVector<AffineForm, 2> conditions;              // >= 0

  int64_t addAxis(UOpRef extent) {
    axes.push_back(extent);
    return labels + axes.size() - 1;
  }
  void bare(int64_t label, int64_t axis) { solution[label] = AffineForm{{{axis, 1}}, 0, 1}; }

  /// Labels l and m of a form l*size(m) + m over an axis of size(l)*size(m), neither of them solved.
  std::optional<std::array<int64_t, 2>> twoLabels(const AffineForm &f, UOpRef extent) const {
    if (f.terms.size() != 2 || f.constant || f.divisor != 1) return std::nullopt;
    for (unsigned high : {0, 1}) {
      auto [l, k] = f.terms[high];
      auto [m, one] = f.terms[1 - high];
      if (one != 1 || n->indices()[m]->constIndex() != k || solution[l] || solution[m]) continue;
      if (idxMul(b.c, n->indices()[l], n->indices()[m]) == extent) return std::array{l, m};
    }
    return std::nullopt;
  }

  /// k * (form) + rest, over a common divisor.
  static AffineForm sum(const AffineForm &l, int64_t k, const AffineForm &r) {
    int64_t d = std::lcm(l.divisor, r.divisor), p = d / l.divisor * k, q = d / r.divisor;
    std::map<int64_t, int64_t> terms;
    for (auto [label, c] : l.terms) terms[label] += c * p;
    for (auto [label, c] : r.terms) terms[label] += c * q;
    AffineForm out{{}, l.constant * p + r.constant * q, d};
    int64_t common = std::gcd(d, out.constant);
    for (auto [label, c] : terms)
      if (c) common = std::gcd(common, c);
    for (auto [label, c] : terms)
      if (c) out.terms.push_back({label, c / common});
    out.constant /= common, out.divisor /= common;
    return out;
  }
  /// A form with the labels that are solved replaced. An inexact quotient is a hole either way: the label that is the
  /// quotient indexes the cotangent or the other operand by itself.
  AffineForm replaced(const AffineForm &f) const {
    AffineForm out{{}, f.constant, 1};
    for (auto [l, k] : f.terms)
      out = sum(l < labels && solution[l] ? *solution[l] : AffineForm{{{l, 1}}, 0, 1}, k, out);
    int64_t common = std::gcd(out.constant, f.divisor);
    for (auto [l, k] : out.terms) common = std::gcd(common, k);
    for (auto &[l, k] : out.terms) k /= common;
    out.constant /= common;
    out.divisor *= f.divisor / common;
    return out;
  }
  /// Whether a label is the bare index of something: then a quotient in its place makes a hole where it is inexact and
  /// reads +0 where it leaves the label's range, and no condition has to say so.
  bool indexesAlone(int64_t label) const {
    if (label < s.kept) return true; // the cotangent
    return llvm::any_of(which == 0 ? s.b : s.a,
                        [&](const AffineForm &f) { return f.isLabel() && f.terms[0].first == label; });
  }

  /// axis * divisor = the form: solved for its kept label, or kept as a condition.
  void solve(const AffineForm &f, int64_t axis) {
    AffineForm whole = replaced(AffineForm{f.terms, f.constant, 1});
    AffineForm equation = sum(AffineForm{{{axis, 1}}, 0, 1}, f.divisor * whole.divisor, AffineForm{});
    whole.divisor = 1;
    AffineForm rest = sum(whole, -1, equation); // axis * divisor - form = 0
    const auto *term = llvm::find_if(whole.terms, [&](auto t) { return t.first < labels && indexesAlone(t.first); });
    if (term == whole.terms.end()) {
      conditions.push_back(rest);
      conditions.push_back(sum(rest, -1, AffineForm{}));
      return;
    }
    auto [label, factor] = *term; // kept labels come first
    llvm::erase_if(rest.terms, [label = label](auto t) { return t.first == label; });
    rest = sum(rest, factor < 0 ? -1 : 1, AffineForm{});
    rest.divisor *= std::abs(factor);
    solution[label] = sum(rest, 1, AffineForm{});
    for (auto &before : solution) // of labels solved before, in terms of this one
      if (before && llvm::any_of(before->terms, [label = label](auto t) { return t.first == label; }))
        before = replaced(*before);
  }

  UOpRef build() {
    ContractSpec out;
    out.kept = axes.size();
    SmallVector<int64_t, 16> number(labels + axes.size(), -1);
    SmallVector<UOpRef, 8> extents(axes.begin(), axes.end());
    for (size_t i = 0; i < axes.size(); ++i) number[labels + i] = i;
    for (auto [from, to] : {std::pair{s.kept, labels}, std::pair{int64_t(0), s.kept}})
      for (int64_t l = from; l < to; ++l)
        if (!solution[l]) number[l] = out.kept + out.reduced++, extents.push_back(n->indices()[l]);
    auto numbered = [&](AffineForm f) {
      for (auto &[l, k] : f.terms) l = number[l];
      llvm::sort(f.terms);
      return f;
    };
    auto index = [&](const AffineForm &f, UOpRef extent) {
      AffineForm r = numbered(replaced(f));
      if (r.isLabel() && extents[r.terms[0].first] != extent) r.terms[0].second = r.divisor = 2; // (l*2)/2 may leave it
      return r;
    };
    SmallVector<AffineForm, 4> ofG, ofOther;
    for (int64_t l = 0; l < s.kept; ++l) ofG.push_back(index(AffineForm{{{l, 1}}, 0, 1}, g->shape[l]));
    for (auto [f, extent] : llvm::zip(which == 0 ? s.b : s.a, other->shape)) ofOther.push_back(index(f, extent));
    SmallVector<UOpRef, 4> bounds;
    auto condition = [&](AffineForm f, UOpRef bound) { // the bound's multiple where a label is a quotient
      bounds.push_back(idxAdd(b.c, idxMul(b.c, bound, b.idx(f.divisor)), b.idx(f.constant)));
      f.constant = 0, f.divisor = 1;
      out.domain.push_back(numbered(f));
    };
    for (auto [f, bound] : llvm::zip(s.domain, n->indices().drop_front(labels))) condition(replaced(f), bound);
    for (const AffineForm &f : conditions) condition(replaced(f), b.idx(0));
    out.a = which == 0 ? ofG : ofOther;
    out.b = which == 0 ? ofOther : ofG;
    out.unit = s.unit, out.inputs = s.inputs;
    UOpRef y = b.contract(out, which == 0 ? g : other, which == 0 ? other : g, extents, bounds);
    return b.reshape(y, x->shape); // where one axis was two
  }
};
} // namespace

UOpRef autograd::tangentContract(Builder &b, UOpRef n, Tangents d) {
  UOpRef sum = nullptr;
  for (unsigned i : {0, 1}) {
    if (!d[i]) continue;
    SmallVector<UOpRef, 12> src(n->src);
    src[i] = d[i];
    UOpRef part = b.c.withSources(n, src);
    sum = sum ? b.add(sum, part) : part;
  }
  return sum;
}
UOpRef autograd::transposeContract(Builder &b, UOpRef n, UOpRef g, unsigned i) {
  return Transposition(b, n, g, i).run();
}
