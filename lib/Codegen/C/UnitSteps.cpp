//===- UnitSteps.cpp: a step of a matrix unit as a C function --------------===//
// Takes:    a kind of fold that is a step of a unit, a number of lanes.
// Gives:    the function (words of the first operand, words of the second, sum): one instruction where the compiler has
//           it for the machine, else the step's primitives (unitStepGraph), lane by lane.
// Keeps:    one table of instructions; which of both is taken is decided by the flags of the target.
#include "Helpers.h"
#include "astra/IR/Builder.h"
#include "astra/Numerics/MatrixUnit.h"
#include "llvm/ADT/DenseMap.h"

using namespace astra;
using namespace astra::cemit;

namespace {
/// Macros of the prelude that are a step, (r, a, b, c), and the unit whose step it is.
struct Instruction {
  const char *unit, *macro;
};
} // namespace
static constexpr Instruction instructions[] = {{"dpbf16-2", "DPBF16"}};

/// The graph of a step, each node a line.
std::string Helpers::unitBody(const UnitStep &step, unsigned lanes) {
  Context c;
  Builder b(c);
  llvm::SmallVector<UOpRef, 32> words;
  llvm::DenseMap<UOpRef, std::string> names;
  llvm::DenseMap<UOpRef, unsigned> widths; // of masks
  for (unsigned w = 0; w < 2 * step.words; ++w) {
    words.push_back(b.arg(w, DType::U32, {}));
    names[words.back()] = "w" + std::to_string(w);
  }
  UOpRef sum = b.arg(2 * step.words, DType::F32, {}), result = unitStepGraph(b, step, sum, words);
  names[sum] = "c";
  std::string body;
  unsigned number = 0;
  auto wide = [&](UOpRef x, unsigned bits) { return widthOf(widths.lookup(x), bits, lanes, names.lookup(x)); };
  for (UOpRef n : topoSort(result)) {
    if (names.count(n) || n->isIndex()) continue;
    DType from = n->src.empty() ? n->dtype : n->src[0]->dtype;
    bool isMask = n->dtype == DType::Bool && lanes > 1;
    std::string x, T = isMask ? "" : type(n->dtype, lanes);
    switch (n->op) {
    case Op::Const:
      x = literal(n->dtype, uint64_t(n->ints[0]));
      if (lanes > 1) x = "SPLAT(" + T + ", " + x + ")";
      names[n] = x;
      continue;
    case Op::Cast: x = cast(from, n->dtype, lanes, n->ints[0]) + "(" + names[n->src[0]] + ")"; break;
    case Op::Bitcast: x = bitcast(from, n->dtype, lanes) + "(" + names[n->src[0]] + ")"; break;
    case Op::Select:
      x = op(Op::Select, n->dtype, lanes) + "(" + wide(n->src[0], bitWidth(n->dtype)) + ", " + names[n->src[1]] + ", " +
          names[n->src[2]] + ")";
      break;
    default:
      if (isMask && from == DType::Bool) {
        widths[n] = widths[n->src[0]];
        x = names[n->src[0]] + (n->op == Op::And ? " & " : " | ") + wide(n->src[1], widths[n]);
        break;
      }
      if (isMask) widths[n] = maskBits(from);
      x = op(n->op, from, lanes) + "(";
      for (size_t i = 0; i < n->src.size(); ++i) x += (i ? ", " : "") + names[n->src[i]];
      x += ")";
    }
    if (isMask) T = mask(widths[n], lanes);
    std::string name = "x" + std::to_string(number++);
    body += "  " + T + " " + name + " = " + x + ";\n";
    names[n] = name;
  }
  return body + "  return " + names[result] + ";\n";
}

std::string Helpers::unitStep(Combine kind, unsigned lanes) {
  const UnitStep &step = *unitStepOf(kind);
  std::string T = type(DType::F32, lanes), W = type(DType::U32, lanes), name = step.unit->text, params;
  for (char &ch : name)
    if (ch == '-') ch = '_';
  name += "_" + textOf(step.inputs, '_') + "_" + T;
  if (!begin(name)) return name;
  for (unsigned w = 0; w < 2 * step.words; ++w) params += W + " w" + std::to_string(w) + ", ";
  std::string body = unitBody(step, lanes), head = "\n";
  for (const Instruction &i : instructions)
    if (step.unit->text == llvm::StringRef(i.unit))
      head = std::string("\n#if defined(") + i.macro + ")\n  " + T + " r;\n  " + i.macro +
             "(r, w0, w1, c);\n  return r;\n#else\n",
      body += "#endif\n";
  // A call costs little beside a step of so many words, whose body is long.
  const char *how = step.words > 8 ? "static __attribute__((noinline, unused)) " : "INLINE ";
  functions += how + T + " " + name + "(" + params + T + " c) {" + head + body + "}\n";
  return name;
}
