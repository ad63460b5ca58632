//===- Rows.cpp: the table of derivatives ----------------------------------===//
// Gives:    for each op of graphs how it is differentiated: formulas (Formulas.h), functions, nothing, or a refusal.
// Keeps:    every op is in the table: one that is not is a compile error.
#include "Rows.h"
#include "Formulas.h"
#include "astra/IR/External.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::autograd;
using Kind = DerivativeKind;

// clang-format off
#define LINEAR(Name, text) {Op::Name, Kind::Linear, tangent##Name, transpose##Name, text, ""}
static constexpr Row rows[] = {
  // ---- movement
  LINEAR(Reshape,  "reshaped back"),
  LINEAR(Permute,  "the inverse permutation"),
  LINEAR(Expand,   "summed over the axes that were repeated"),
  LINEAR(Pad,      "what was padded is cut off; the padding has no gradient"),
  LINEAR(Shrink,   "padded with zeros"),
  LINEAR(Flip,     "flipped"),
  LINEAR(Window,   "overlap-add, a plain chain over the window (N4)"),
  LINEAR(Cast,     "cast back, between float types"),
  LINEAR(Tap,      "passed on, without the name"),
  LINEAR(After,    "passed on, at once"),
  // ---- complex values: the cotangent of a + b i is that of a, plus i times that of b
  LINEAR(Complex,  "its parts"),
  LINEAR(Real,     "the real part of the cotangent"),
  LINEAR(Imag,     "the imaginary part of the cotangent"),
  // ---- sums and extremes
  {Op::Reduce,   Kind::Tangent, tangentReduce,   transposeReduce,   "sum: repeated along the axes; prod: times the product of all other elements, so that zeros are right in all derivatives; max, min: where the element is the extreme", "elements that share the extreme share its gradient in equal parts (amax)"},
  {Op::Cumulate, Kind::Tangent, tangentCumulate, transposeCumulate, "sum: the running sum from the end; prod: by its recurrence, a scan; max, min: to the element that is the extreme so far", "the last of equal elements has it (cummax)"},
  LINEAR(Contract, "a contract of the cotangent and the other operand, of a complex one its conjugate (N4 has the order)"),
  // ---- indexing
  LINEAR(Gather,   "added into zeros at the indices"),
  LINEAR(Pick,     "added into zeros at the indices"),
  {Op::Scatter,  Kind::Tangent, tangentScatter,  transposeScatter,  "add: passed on, and read at the indices; set: 0 where x was overwritten, and read where the update was the last; mul: times the product of all other factors, zeros among them, in two derivatives; max, min: where x or the update is the extreme", "max, min: equal parts to all that share the extreme; mul: third derivatives among three zeros of one product are 0"},
  LINEAR(SliceAt,  "written into zeros at the start"),
  LINEAR(UpdateAt, "0 in the window, and the window"),
  LINEAR(Compact,  "rows brought back to where the mask is true, zeros elsewhere"),
  // ---- between the shards of a mesh: of the sum of what all shards give
  LINEAR(AllReduce,     "sum: an all_reduce"),
  LINEAR(ReduceScatter, "sum: an all_gather"),
  LINEAR(AllGather,     "a reduce_scatter"),
  LINEAR(AllToAll,      "an all_to_all"),
  LINEAR(Shift,         "shifted back"),
  LINEAR(Reshard,       "cut as the value is"),
  // ---- control
  {Op::Func,  Kind::Control, nullptr, nullptr, "the results differentiated by the arguments"},
  {Op::Cond,  Kind::Control, nullptr, nullptr, "a cond of the differentiated functions"},
  {Op::While, Kind::Control, nullptr, nullptr, "forward mode: tangents are carried; reverse mode: as a scan over the bound of the trips that the condition shows, refused where it shows none"},
  {Op::Scan,  Kind::Control, nullptr, nullptr, "forward mode: tangents are carried; reverse mode: the carried values of each step are stacked, then a scan from the end"},
  {Op::Proj,  Kind::Control, nullptr, nullptr, "a result of these"},
  {Op::WithGradient, Kind::Control, nullptr, nullptr, "reverse mode: what its function gives; forward mode: that function transposed, which must be linear in the cotangent"},
  // ---- constant wherever they are smooth
  {Op::RoundEven, Kind::Zero, nullptr, nullptr, "", "0 at the steps too"},
  {Op::Floor,     Kind::Zero, nullptr, nullptr, "", "0 at the steps too"},
  {Op::Ceil,      Kind::Zero, nullptr, nullptr, "", "0 at the steps too"},
  {Op::Trunc,     Kind::Zero, nullptr, nullptr, "", "0 at the steps too"},
  {Op::Detach,    Kind::Zero, nullptr, nullptr, "", "gradients stop here"},
  // ---- floats by other means
  {Op::Bitcast, Kind::Refused, nullptr, nullptr, "", "to another float type; to integers nothing flows"},
  // ---- kernels that users write
  {Op::Custom, Kind::Refused, nullptr, nullptr, "", "kernels, but for the derivative that is declared around one (with_gradient)"},
  {Op::Place,  Kind::Refused, nullptr, nullptr, "", "what a program of a kernel stores"},
  // ---- functions of the program that runs a bundle
  {Op::External, Kind::Refused, nullptr, nullptr, "", "calls, but for the derivative that is declared around one (with_gradient)"},
  // ---- no floats go in, or none come out
  {Op::Const, Kind::Nothing}, {Op::Arg, Kind::Nothing}, {Op::Param, Kind::Nothing}, {Op::State, Kind::Nothing},
  {Op::Dim, Kind::Nothing}, {Op::Extent, Kind::Nothing}, {Op::Iota, Kind::Nothing}, {Op::FromIndex, Kind::Nothing},
  {Op::Not, Kind::Nothing}, {Op::PopCount, Kind::Nothing}, {Op::FloorDiv, Kind::Nothing}, {Op::Mod, Kind::Nothing},
  {Op::TruncDiv, Kind::Nothing}, {Op::Rem, Kind::Nothing}, {Op::And, Kind::Nothing}, {Op::Or, Kind::Nothing},
  {Op::Xor, Kind::Nothing}, {Op::Shl, Kind::Nothing}, {Op::Shr, Kind::Nothing}, {Op::Lt, Kind::Nothing},
  {Op::Le, Kind::Nothing}, {Op::Eq, Kind::Nothing}, {Op::Ne, Kind::Nothing}, {Op::Lookup16, Kind::Nothing},
  {Op::Dot4, Kind::Nothing}, {Op::Words, Kind::Nothing},
  {Op::ArgReduce, Kind::Nothing}, {Op::ArgSort, Kind::Nothing}, {Op::Random, Kind::Nothing},
  {Op::RankIndex, Kind::Nothing},
};
// clang-format on

namespace astra::autograd {
void opHasNoDerivativeRow(); // not constexpr: reaching a call is the compile error
}
namespace {
struct Index {
  int8_t row[numOps], formula[numOps];
};
constexpr Index position = [] {
  Index at{};
  constexpr unsigned traits[] = {
#define OP(Name, mnemonic, sources, groups, Type, attributes, traits, meaning) traits,
#define Kernel KernelLevel
#include "astra/IR/Ops.def"
#undef Kernel
#undef OP
  };
  for (unsigned i = 0; i < numOps; ++i) at.row[i] = at.formula[i] = -1;
  for (unsigned i = 0; i < std::size(rows); ++i) at.row[unsigned(rows[i].op)] = i;
  for (unsigned i = 0; i < std::size(rules::formulas); ++i) at.formula[unsigned(rules::formulas[i].op())] = i;
  for (unsigned i = 0; i < numOps; ++i)
    if (!(traits[i] & KernelLevel) && (at.row[i] < 0) == (at.formula[i] < 0)) opHasNoDerivativeRow();
  return at;
}();
} // namespace

const Formula *autograd::formulaOf(Op op) {
  int i = position.formula[unsigned(op)];
  return i < 0 ? nullptr : &rules::formulas[i];
}
const Row &autograd::rowOf(Op op) {
  static constexpr Row formula{Op::Const, Kind::Formula}, none{Op::Const, Kind::Refused};
  int i = position.row[unsigned(op)];
  return i >= 0 ? rows[i] : formulaOf(op) ? formula : none;
}

const char *autograd::refusal(UOpRef n) {
  auto floatingStorage = [](DType t) {
    return info(t).cls == DTypeClass::Storage && llvm::StringRef(info(t).text).starts_with("f");
  };
  if (n->op == Op::Contract && n->ntensors > 2) return "a contract that leaves out taps has none; take it before that";
  if (n->op == Op::Custom && llvm::any_of(n->fns[0]->src, [](UOpRef r) { return isDifferentiable(r->dtype); }))
    return "a kernel has the derivative that is declared around it (with_gradient), and none is";
  if (n->op == Op::External &&
      llvm::any_of(externalOf(n).results, [](const Type &t) { return isDifferentiable(t.dtype); }))
    return "a call of a function of the program has the derivative that is declared around it (with_gradient), and "
           "none is";
  if ((n->op == Op::AllReduce || n->op == Op::ReduceScatter) && ReduceKind(n->ints[0]) != ReduceKind::Sum &&
      isDifferentiable(n->dtype))
    return "between shards only sums have a derivative";
  if (n->op == Op::Cast && floatingStorage(n->dtype)) return "a type for storage alone carries no derivative";
  if (rowOf(n->op).kind == Kind::Refused && isDifferentiable(n->dtype)) return "it has no derivative";
  return nullptr;
}

bool autograd::isLinear(UOpRef n) {
  switch (n->op) {
  case Op::Reduce: return ReduceKind(n->ints[0]) == ReduceKind::Sum;
  case Op::Cumulate: return CumulateKind(n->ints[0]) == CumulateKind::Sum;
  case Op::Scatter: return ScatterKind(n->ints[1]) == ScatterKind::Add || ScatterKind(n->ints[1]) == ScatterKind::Set;
  default: return rowOf(n->op).kind == Kind::Linear;
  }
}

std::vector<DerivativeRow> astra::derivativeRows() {
  std::vector<DerivativeRow> out;
  for (unsigned i = 0; i < numOps; ++i) {
    Op op = Op(i);
    if (has(op, KernelLevel)) continue;
    if (const Formula *f = formulaOf(op))
      out.push_back({op, Kind::Formula, termText(f->tangent), f->note});
    else
      out.push_back({op, rowOf(op).kind, rowOf(op).text, rowOf(op).note});
  }
  return out;
}
