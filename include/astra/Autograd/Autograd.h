//===- Autograd.h: derivatives of graphs -----------------------------------===//
// Takes:    values of a graph, before the numerics stage, and the values that they are differentiated by.
// Gives:    reverse mode (vjp), forward mode (jvp), and the entries that the directives of a module ask for. What comes
//           out is an ordinary graph: differentiated again it gives second derivatives.
// Keeps:    one table of derivatives for both modes (docs/autograd.md). Contributions to one cotangent are added from
//           left to right in the order in which the sweep meets the uses of a value: the reverse of the depth-first
//           order of the graph from the outputs, in the order given. Time linear in the graph; no recursion over it.
// Does not: simplify (Rewrite), or choose the orders of sums: those of the numeric contract (N4) are stamped as ops are
//           built.
#pragma once
#include "astra/IR/Module.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/Error.h"

namespace astra {

struct Derivatives {
  /// What the outputs, and then the values `beside` them, are now: the same values. They are other nodes where a loop
  /// now gives its residuals or tangents too.
  std::vector<UOpRef> values;
  std::vector<UOpRef> derivatives; // in reverse mode one per `wrt`, in forward mode one per output
};

/// Reverse mode: for each of `wrt` the sum over outputs of its cotangent times the derivative. Outputs and `wrt` are of
/// float or complex types; the cotangent of a complex value a + b i is that of a, plus i times that of b: of a loss it
/// points uphill (twice the derivative by the conjugate). A cotangent has its output's type and shape; a value of `wrt`
/// is taken as independent of the others. What no output depends on gets zeros. An error names the first op on a path
/// between them that has no derivative, and where it came from. `beside`: values of the same graph that are not
/// differentiated, of any type. `segments`: in how many parts of the graph what lies inside of a part is computed again
/// for its derivatives (lib/Autograd/Recompute.h); 1: nothing is. Bits do not depend on it.
llvm::Expected<Derivatives> vjp(Context &c, llvm::ArrayRef<UOpRef> outputs, llvm::ArrayRef<UOpRef> cotangents,
                                llvm::ArrayRef<UOpRef> wrt, Origins *origins = nullptr,
                                llvm::ArrayRef<UOpRef> beside = {}, unsigned segments = 1);

/// Forward mode: for each output the derivative along the tangents, which have the types and shapes of `wrt`.
llvm::Expected<Derivatives> jvp(Context &c, llvm::ArrayRef<UOpRef> outputs, llvm::ArrayRef<UOpRef> wrt,
                                llvm::ArrayRef<UOpRef> tangents, Origins *origins = nullptr,
                                llvm::ArrayRef<UOpRef> beside = {});

/// The leaves (parameters, states, arguments) that a gradient of the outputs reaches, be it 0 everywhere: those behind
/// a comparison or an index alone are not among them. What a control op takes counts as reached.
llvm::DenseSet<UOpRef> reachedByGradients(llvm::ArrayRef<UOpRef> outputs);

/// Carries out the module's directives (Module.h), in order, each an entry more. No directive is left; an error leaves
/// the module as it was before the directive that it names.
llvm::Error runDirectives(Module &m);

/// Whether values of this type carry derivatives.
inline bool isDifferentiable(DType t) { return isFloat(t) || isComplex(t); }

/// How the derivative of an op is known; in the order of the documentation.
enum class DerivativeKind : uint8_t {
  Formula, // a row of mathematics
  Linear,  // the op itself on tangents; transposed by a function
  Tangent, // a graph of other ops that is linear in the tangents
  Control, // its functions are differentiated
  Zero,    // constant wherever it is smooth, or it stops gradients
  Nothing, // takes or gives no floats: no derivative flows
  Refused  // a derivative would be needed and there is none
};
struct DerivativeRow {
  Op op;
  DerivativeKind kind;
  std::string text; // the formula, or what the functions do
  std::string note; // what holds where the op is not smooth
};
/// One row for every op of graphs, in the order of Ops.def.
std::vector<DerivativeRow> derivativeRows();

} // namespace astra
