//===- DocsTest.cpp: docs/autograd.md is what the table says ---------------===//
// After a change of rows or cases: ASTRA_UPDATE_DOCS=1 build/bin/unit-autograd --gtest_filter=AutogradDocs.*
// The errors are those of the cases of this folder: the page shows what was measured.
#include "Check.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace astra;
using namespace astra::test;

static const char *head =
    R"(# Derivatives

<!-- generated from lib/Autograd by unit-autograd; do not edit -->

Each op is differentiated by one row, in `lib/Autograd/Formulas.h` (mathematics) or `lib/Autograd/Rows.cpp` (functions).
Forward mode (`jvp`) reads a row as it stands; reverse mode (`vjp`, `grad`) transposes it. What comes out is an ordinary
graph: differentiated again it gives second derivatives.

    grad @loss_grad = @loss wrt %x, @w     an entry with the outputs of @loss and x.grad, w.grad (docs/text.md)
    jvp @loss_jvp = @loss wrt @w           an entry with a further input w.dot, and OUTPUT.dot for each output

- The graph may be at any stage before `numerics`; `astra-opt --passes=grad` prints what the directives make, and
  `astra-compile` makes it.
- Where an op is not smooth the row does what PyTorch does; the column says what.
  Composites follow from their parts: of an ONNX model relu and Sign have the gradient 0 at 0, a clip, hard sigmoid, ReduceL2 and
  LpPool have 0 at the bounds and in a row of zeros, leaky relu, PRelu, ELU, SELU the lower branch's at 0, softplus 1/2, Mod 1 by
  the dividend wherever it is and -trunc(x / y) or -floor(x / y) by the divisor, GridSample by its grid and DeformConv by its
  offsets what stands to the right at whole coordinates and, where a linear mode clamps or reflects, 0 at a border, as in PyTorch.
- Otherwise than there: MaxPool and GlobalMaxPool share the gradient among equals, and so does ReduceMax that was `max(dim)`, where
  PyTorch takes the first; of equal elements TopK and Sort take the one that stands first, PyTorch does not say which; `clamp` that
  is exported as Max and Min has half at its bounds; a row of zeros has the gradient 0 in LpNormalization, where PyTorch's
  normalize has the cotangent over its epsilon (1e12 times it), and in MeanVarianceNormalization one of equal elements, where the
  same ops in PyTorch have NaN; Det of a singular matrix has its adjugate, where PyTorch has zeros; a CTC row that has no
  alignment has the gradient 0, where PyTorch has NaN. ReduceLogSumExp of nothing but -inf has NaN in both.
- The gradient of a real loss by a complex value a + b i is that by a, plus i times that by b, as in PyTorch: a step against it goes
  downhill. A cotangent u and a tangent v meet as the real part of conj(u) v: what multiplies a tangent is conjugated in a cotangent.
  Of a function that is holomorphic the gradient is the cotangent times the conjugate of its derivative.
- Integers and bools carry no derivative. Casts between float types pass them on. `detach` stops them.
- Contributions to one gradient are added from left to right in the order in which the sweep meets the uses of a value:
  the reverse of the depth-first order of the graph from the outputs. So bits do not depend on names or addresses.
- Gradients of a `contract` are contracts, their labels in the order of clause N4 of `docs/numerics.md`. An index outside reads +0
  there and takes part, as in every contract: an infinite weight makes NaNs at the border of an input's gradient.
- Residuals are not stored beside the graph: a gradient uses the values of the forward pass as nodes. A `scan` stacks
  what its steps began with and computes the rest again, backwards; a `cond` computes its branch again.
- A derivative of your own: `with_gradient(@g) %y, %x` is %y, and its gradient goes to %x alone, as the function says: @g is
  given %y, %x and the cotangent, and gives that of %x (of several, in their order). So a straight-through estimator is
  `with_gradient(@pass) %rounded, %x`. Forward mode transposes @g, which must be linear in the cotangent for that.
- Under a bound of memory (`astra-compile --checkpoint-memory`) the sweep reads values that are computed again: copies whose inputs
  are marked with `after` to come behind the cotangents that have arrived. A mark is no arithmetic.

## Rows

The errors are the greatest found by `unit-autograd`, relative to the greatest magnitude in a tensor or to 1, in f64:
first derivatives against central differences of values (step 0.001, extrapolated once), second ones against such
differences of the gradient. Every case is also held by <x', v> = <u, y'> between the modes, by the three orders of
differentiating twice, and, but for `compact`, by `vmap` of the first and second derivatives, which has the bits of a
loop; the gradient of `vmap` agrees with that loop within 1e-13.

| op | derivative (x y z sources, f result, dx dy dz tangents), or gradient in words | where it is not smooth, limits | cases | first | second |
|---|---|---|---|---|---|
)";

static std::string cell(const std::string &s) {
  std::string out;
  for (char ch : s) out += ch == '|' ? "\\|" : std::string(1, ch);
  return out;
}
/// One digit, rounded up.
static std::string errorText(double e) {
  if (e == 0) return "0";
  int exponent = int(std::floor(std::log10(e)));
  int digit = int(std::ceil(e / std::pow(10, exponent)));
  return digit == 10 ? "1e" + std::to_string(exponent + 1) : std::to_string(digit) + "e" + std::to_string(exponent);
}

static std::string page() {
  struct Sum {
    unsigned cases = 0;
    bool smooth = false, twice = false;
    Errors errors;
  };
  std::map<Op, Sum> sums;
  for (const Case &c : allCases()) {
    Sum &s = sums[c.row];
    Errors e = check(c);
    ++s.cases;
    s.smooth |= c.smooth, s.twice |= c.smooth && c.twice;
    s.errors.first = std::max(s.errors.first, e.first), s.errors.second = std::max(s.errors.second, e.second);
  }
  std::string out = head;
  unsigned rows = 0;
  auto list = [&](DerivativeKind kind, const char *title) {
    std::string names;
    for (const DerivativeRow &r : derivativeRows())
      if (r.kind == kind)
        names += (names.empty() ? "`" : ", `") + std::string(info(r.op).mnemonic) + "`" +
                 (r.note.empty() || kind == DerivativeKind::Nothing ? "" : " (" + r.note + ")");
    out += "\n## " + std::string(title) + "\n\n" + names + ".\n";
  };
  for (const DerivativeRow &r : derivativeRows()) {
    if (r.kind > DerivativeKind::Control) continue;
    ++rows;
    const Sum &s = sums[r.op];
    std::string text = r.kind == DerivativeKind::Formula ? "`" + r.text + "`" : r.text;
    out += "| `" + std::string(info(r.op).mnemonic) + "` | " + cell(text) + " | " + cell(r.note) + " | " +
           (s.cases ? std::to_string(s.cases) : "") + " | " + (s.smooth ? errorText(s.errors.first) : "") + " | " +
           (s.twice ? errorText(s.errors.second) : "") + " |\n";
  }
  out += "\n" + std::to_string(rows) +
         " rows. `cast` is held by exact values (its differences in f64 are none), `func` and "
         "`proj` by the cases of the other control ops.\n";
  list(DerivativeKind::Zero, "Zero everywhere, with no gradient to their sources");
  list(DerivativeKind::Refused, "Refused where a gradient would have to pass");
  out +=
      "\nRefused too: a cast to a float type for storage alone (`f8e4m3fn` ...), and in "
      "reverse "
      "mode a `while` that carries dims or whose condition shows no bound of its trips. The sentence names the op, its "
      "type and where it came from.\n";
  list(DerivativeKind::Nothing, "No floats go in, or none come out");
  return out;
}

TEST(AutogradDocs, AreFresh) {
  std::string path = ASTRA_SOURCE_DIR "/docs/autograd.md", now = page();
  if (std::getenv("ASTRA_UPDATE_DOCS")) std::ofstream(path) << now;
  std::ifstream file(path);
  std::stringstream committed;
  committed << file.rdbuf();
  EXPECT_EQ(committed.str() == now, true) << "docs/autograd.md is stale; run this test with ASTRA_UPDATE_DOCS=1";
}
