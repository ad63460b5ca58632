//===- MatrixUnits.h: sums of products as matrix units add them ------------===//
// Takes:    rows of MatrixUnits.def; operands as f32 that the unit's type of input has, or as words of them.
// Gives:    one step of a unit, bit for bit, and what an f32 becomes as an operand.
// Keeps:    integers, and of binary32 what IEEE 754 fixes: the same on every host.
// Does not: say in which order steps come (EvalContract.cpp), or emit code.
#pragma once
#include "astra/IR/UOp.h"
#include "llvm/ADT/ArrayRef.h"

namespace astra {

enum class MatrixInput : uint8_t {
#define MATRIX_INPUT(Name, text, mantissaBits, minExponent) Name,
#include "astra/IR/MatrixUnits.def"
};
struct MatrixInputInfo {
  const char *text;
  int mantissaBits, minExponent;
};
const MatrixInputInfo &info(MatrixInput t);
/// The input type named `text`, or nothing.
std::optional<MatrixInput> matrixInputNamed(llvm::StringRef text);
/// The input type that has the values of an element type; nothing for others.
std::optional<MatrixInput> matrixInputOf(DType t);

/// The types of both operands.
struct MatrixInputs {
  MatrixInput a = MatrixInput::BF16, b = MatrixInput::BF16;
  bool operator==(const MatrixInputs &) const = default;
};
/// "bf16" where both are of one type, else "f8e4m3fn f8e5m2"; the types named so, or nothing.
std::string textOf(MatrixInputs t, char between = ' ');
std::optional<MatrixInputs> matrixInputsNamed(llvm::StringRef text, char between = ' ');

struct MatrixUnit {
  const char *text;
  unsigned inputs; // bits by MatrixInput
  std::optional<MatrixInput> plain;
  int block;
  int bits, joint, result; // of an aligned unit; bits 0: a chained one
  bool nearest;
  int groups, chains;
  bool likeX86; // in what it flushes to zero; else like AMD
  uint32_t nan;
  bool takes(MatrixInput t) const { return inputs >> unsigned(t) & 1; }
  /// Both operands are of one type that it takes, or of two that it takes, of 8 bits.
  bool takes(MatrixInputs t) const;
  bool isAligned() const { return bits != 0; }
};
llvm::ArrayRef<MatrixUnit> matrixUnits();
/// The row named `text`, or null.
const MatrixUnit *matrixUnitNamed(llvm::StringRef text);
/// The names of all rows, with commas.
std::string matrixUnitNames();

/// How many values of this type are a word of 32 bits, the first in the lowest ones.
unsigned matrixInputsInWord(MatrixInput t);
inline unsigned matrixInputsInWord(MatrixInputs t) { return matrixInputsInWord(t.a); }
/// v as an operand of this type: rounded to nearest even, tf32 cut toward zero; NaNs are canonical.
float matrixInput(MatrixInput t, float v);

/// The addend and up to a block of products, as the unit adds them; bits of f32 all. The operands are of the types t.
uint32_t matrixStep(const MatrixUnit &u, MatrixInputs t, uint32_t addend, llvm::ArrayRef<uint32_t> a,
                    llvm::ArrayRef<uint32_t> b);

/// A unit and types that it takes: what a fold of a kernel names (Combine).
struct UnitStep {
  const MatrixUnit *unit;
  MatrixInputs inputs;
  unsigned words; // of each operand
};
/// All of them: by unit, then by the type of the first operand, then by that of the second.
llvm::ArrayRef<UnitStep> unitSteps();
Combine unitCombine(const MatrixUnit &u, MatrixInputs t);
/// What a fold of this kind does in a step, or null: it is of no unit.
const UnitStep *unitStepOf(Combine c);
/// The same as matrixStep, of words: those of the first operand, then those of the second.
uint32_t matrixStep(const UnitStep &s, uint32_t addend, llvm::ArrayRef<uint32_t> words);

} // namespace astra
