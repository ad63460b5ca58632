//===- IndexSets.cpp: whether strided views share memory ------------------===//
// Takes:    see IndexSets.h.
// Gives:    the search for a solution of one bounded linear equation.
// Keeps:    exact: No and Yes are proved, and what takes too long is Unknown.
// Does not: allocate; nest deeper than there are axes.
//
// Note [One equation]
// A view with steps c_i (in bytes, made positive by counting an axis from its other end) and extents m_i + 1 touches
// the bytes low + sum c_i x_i with 0 <= x_i <= m_i; the bytes of an element are one more axis, of step 1. Another view
// touches high - 1 - sum d_j y_j. They meet where sum c_i x_i + sum d_j y_j = high - 1 - low: one equation with
// positive steps. To decide such equations is NP-complete, but steps of tensors nest. Where a step is a multiple of
// another one whose axis fills the gap, the two are one axis; what is left is searched from the largest step down. Of
// each step only those multiples are tried whose rest the smaller steps can reach: by its size, and by its remainder
// modulo their greatest common divisor.
#include "IndexSets.h"

using namespace astra::rt;

namespace {

constexpr uint32_t kMostTerms = 2 * (ASTRA_MAX_RANK + 1);
/// Sums of terms stay below this; memory is smaller.
constexpr uint64_t kLargest = uint64_t(1) << 62;

uint64_t gcd(uint64_t a, uint64_t b) {
  while (b) a = std::exchange(b, a % b);
  return a;
}

/// x with a * x = 1 modulo m, for coprime a and m.
uint64_t inverse(uint64_t a, uint64_t m) {
  int64_t x = 0, next = 1;
  uint64_t r = m, rest = a % m;
  while (rest) {
    int64_t quotient = int64_t(r / rest);
    x = std::exchange(next, x - quotient * next);
    r = std::exchange(rest, r % rest);
  }
  return x < 0 ? uint64_t(x + int64_t(m)) : uint64_t(x);
}

/// sum step_i z_i = target, 0 <= z_i <= most_i.
class Equation {
public:
  explicit Equation(uint32_t &steps) : steps(steps) {}

  void add(uint64_t step, uint64_t most) {
    uint64_t reach;
    if (step == 0 || most == 0) return;
    if (!mul(step, most, reach) || reach > kLargest - total) {
      isTooLarge = true;
      return;
    }
    total += reach;
    terms[count++] = {step, most};
  }

  Meeting solve(uint64_t target) {
    if (isTooLarge) return Meeting::Unknown;
    merge();
    sums[count] = gcds[count] = 0;
    for (uint32_t i = count; i-- > 0;) {
      sums[i] = sums[i + 1] + terms[i].step * terms[i].most;
      gcds[i] = gcd(terms[i].step, gcds[i + 1]);
    }
    return search(0, target);
  }

private:
  struct Term {
    uint64_t step, most;
  };

  /// Makes one term of two wherever that is the same set of sums; then the largest step comes first.
  void merge() {
    for (uint32_t i = 1; i < count; i++)
      for (uint32_t k = i; k > 0 && terms[k].step < terms[k - 1].step; k--) std::swap(terms[k], terms[k - 1]);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
      Term term = terms[i];
      uint32_t k = 0;
      while (k < kept && (term.step % terms[k].step || terms[k].most < term.step / terms[k].step - 1)) k++;
      if (k < kept)
        terms[k].most += term.step / terms[k].step * term.most;
      else
        terms[kept++] = term;
    }
    count = kept;
    for (uint32_t i = 0; i < count / 2; i++) std::swap(terms[i], terms[count - 1 - i]);
  }

  /// Whether the terms from the i-th on reach the target.
  Meeting search(uint32_t i, uint64_t target) {
    if (target == 0 || target == sums[i]) return Meeting::Yes;
    if (target > sums[i] || target % gcds[i]) return Meeting::No;
    const Term &term = terms[i];
    uint64_t low = target > sums[i + 1] ? (target - sums[i + 1] + term.step - 1) / term.step : 0;
    uint64_t high = target / term.step < term.most ? target / term.step : term.most;
    // target - step * z must be a multiple of the rest's divisor: z is known modulo `period`.
    uint64_t period = i + 1 < count ? gcds[i + 1] / gcds[i] : 1;
    uint64_t rest = 0;
    if (period > 1)
      rest = uint64_t(static_cast<unsigned __int128>(target / gcds[i] % period) * inverse(term.step / gcds[i], period) %
                      period);
    for (uint64_t z = low + (rest + period - low % period) % period; z <= high; z += period) {
      if (steps == 0) return Meeting::Unknown;
      steps--;
      Meeting found = search(i + 1, target - z * term.step);
      if (found != Meeting::No) return found;
    }
    return Meeting::No;
  }

  Term terms[kMostTerms];
  uint32_t count = 0;
  uint64_t sums[kMostTerms + 1], gcds[kMostTerms + 1]; ///< of the terms from an index on
  uint64_t total = 0;
  bool isTooLarge = false;
  uint32_t &steps; ///< that may still be taken
};

uint64_t stepOf(const View &v, uint32_t axis) {
  int64_t stride = v.strides[axis];
  return stride < 0 ? -uint64_t(stride) : uint64_t(stride);
}

void addBytes(Equation &equation, const View &v) {
  if (v.dense) return equation.add(1, v.bytes - 1);
  uint64_t size = v.dtype->bits / 8;
  equation.add(1, size - 1);
  for (uint32_t i = 0; i < v.rank; i++) equation.add(stepOf(v, i) * size, uint64_t(v.shape[i]) - 1);
}

} // namespace

Meeting astra::rt::meet(const View &a, const View &b) {
  if (a.low == a.high || b.low == b.high || a.low >= b.high || b.low >= a.high) return Meeting::No;
  if (a.dense && b.dense) return Meeting::Yes;
  uint32_t steps = kMostSteps;
  Equation equation(steps);
  addBytes(equation, a);
  addBytes(equation, b);
  return equation.solve(uint64_t(b.high - 1 - a.low));
}

Meeting astra::rt::meetsItself(const View &v) {
  if (v.dense || v.low == v.high) return Meeting::No;
  uint64_t steps[ASTRA_MAX_RANK], most[ASTRA_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t i = 0; i < v.rank; i++) {
    if (v.shape[i] == 1) continue;
    uint32_t k = count++;
    uint64_t step = stepOf(v, i);
    if (step == 0) return Meeting::Yes;
    for (; k > 0 && steps[k - 1] > step; k--) steps[k] = steps[k - 1], most[k] = most[k - 1];
    steps[k] = step, most[k] = uint64_t(v.shape[i]) - 1;
  }
  // Each step larger than what all smaller ones reach together: the usual case.
  uint64_t reach = 0;
  bool nests = true;
  for (uint32_t i = 0; i < count; i++) {
    nests &= steps[i] > reach;
    reach += steps[i] * most[i]; // below the size of memory
  }
  if (nests) return Meeting::No;
  // Two indices of one element differ by d with sum steps_i d_i = 0. The largest i of which d_i is not 0 may be taken
  // to have d_i >= 1; of those below it -most_k <= d_k <= most_k.
  uint32_t left = kMostSteps;
  for (uint32_t i = 0; i < count; i++) {
    Equation equation(left);
    uint64_t target = 0;
    equation.add(steps[i], most[i] - 1);
    for (uint32_t k = 0; k < i; k++) {
      equation.add(steps[k], 2 * most[k]);
      target += steps[k] * most[k];
    }
    if (target < steps[i]) continue;
    Meeting found = equation.solve(target - steps[i]);
    if (found != Meeting::No) return found;
  }
  return Meeting::No;
}

Status astra::rt::checkWritable(const View &v, const char *what, const char *name, astra_diag *diag) {
  if (!v.dense && v.low != v.high)
    for (uint32_t i = 0; i < v.rank; i++)
      if (v.shape[i] > 1 && v.strides[i] == 0)
        return fail(diag, ASTRA_OVERLAP,
                    "%s %.64s cannot be written: axis %u has stride 0, so that its %lld elements are one; copy it",
                    what, name, i, static_cast<long long>(v.shape[i]));
  switch (meetsItself(v)) {
  case Meeting::No: return ASTRA_OK;
  case Meeting::Yes:
    return fail(diag, ASTRA_OVERLAP, "%s %.64s cannot be written: its strides lead to an element twice; copy it", what,
                name);
  default:
    return fail(diag, ASTRA_OVERLAP,
                "%s %.64s cannot be written: that its strides lead to no element twice was not shown in %u steps; "
                "copy it",
                what, name, kMostSteps);
  }
}
