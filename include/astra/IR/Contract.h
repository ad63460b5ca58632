//===- Contract.h: the attribute of contract and reduce --------------------===//
// A contract's labels are numbered: kept labels first (they are the result's axes), then the reduced ones, outermost
// first. Operand dims are indexed by affine forms of the labels, optionally divided; an index outside reads +0.0 and
// takes part; an inexact quotient (a hole) takes no part. Index sources of the node: the extents of all labels, then
// one per domain inequality. A domain inequality is  sum(coefficient * label) + index source >= 0 ; a point that
// violates one takes no part. For reduce the labels are x's axes.
//
// A contract may have a third operand, which stands for taps that no label reaches: windows lose the taps that are
// outside of their operand for every result (lib/Schedule/Outside.cpp). The reduced labels but the last are the taps
// then. Axis j of the third operand has all taps of label j, of which the label runs over those from its form's
// constant on; the next axis has the blocks of 512 of the last label; the others are indexed by kept labels. Where the
// sum comes to a tap that its label does not reach, in row-major order of all taps in each block, it adds the element
// at this tap and block.
//
// A contract may name a matrix unit, a row of MatrixUnits.def, that adds in place of chain512 (N4.8): its operands
// become its types of input, a step takes a block along the last reduced label, the others are loops around it. A
// hole, or a point outside of the domain, is a +0 of the operand whose index, or labels, say so. Its operands may be
// words, both of u32: neighbours along what is summed in one, the first in the lowest bits. Then each index is a label,
// the last reduced label is the words of a step, and the result is of f32. This is how every target computes it.
#pragma once
#include "astra/IR/MatrixUnits.h"
#include "astra/IR/UOp.h"

namespace astra {

/// constant + sum(coefficient * label), divided by `divisor` (1: not divided).
struct AffineForm {
  llvm::SmallVector<std::pair<int64_t, int64_t>, 2> terms; // (label, coefficient), ascending label, no zero coefficient
  int64_t constant = 0, divisor = 1;
  bool isLabel() const { return terms.size() == 1 && terms[0].second == 1 && constant == 0 && divisor == 1; }
};

/// Whether one of these forms has the label.
bool hasLabel(llvm::ArrayRef<AffineForm> forms, int64_t label);

struct ContractSpec;
/// Whether a kept label is the groups of a grouped convolution, and the next one the channels of each of the result:
/// both operands have the group, one of them in a channel's number, and one has the channel.
bool isGroup(const ContractSpec &s, int64_t label);

struct ContractSpec {
  int64_t kept = 0, reduced = 0;            // numbers of labels
  llvm::SmallVector<AffineForm, 4> a, b;    // one per dim of the operand
  llvm::SmallVector<AffineForm, 1> domain;  // constant and divisor unused (0, 1)
  llvm::SmallVector<AffineForm, 4> outside; // one per dim of the third operand; empty: there is none
  const MatrixUnit *unit = nullptr;         // null: chain512
  MatrixInputs inputs;                      // of the unit
};
/// Packing into the node's integers: kept, reduced, ranks of a and b, number of inequalities, then each form as nterms,
/// (label, coefficient)..., constant, divisor; where there is a third operand, its rank and forms behind that; where
/// there is a matrix unit, a rank of 0 and the numbers of its row and of the types of both operands.
llvm::SmallVector<int64_t, 32> encode(const ContractSpec &s);
llvm::Expected<ContractSpec> decodeContract(llvm::ArrayRef<int64_t> ints);

/// What is wrong with a third operand, or "".
std::string checkOutside(const ContractSpec &s, llvm::ArrayRef<UOpRef> extents, UOpRef a, UOpRef b, UOpRef outside);

/// The operand that is +0 where an inequality is broken, of a contract that a matrix unit adds: the second one if all
/// labels of the inequality index it and not all of them the first, else the first.
int operandOf(const ContractSpec &s, const AffineForm &inequality);
/// What is wrong with a matrix unit that adds, or "".
std::string checkUnit(const ContractSpec &s, llvm::ArrayRef<UOpRef> extents, UOpRef a, UOpRef b);
/// Whether a matrix unit adds words.
inline bool isOfWords(const ContractSpec &s, UOpRef a) { return s.unit && a->dtype == DType::U32; }

/// reduce: kind, order, naxes, the axes (ascending), then the number of inequalities and their forms.
struct ReduceSpec {
  ReduceKind kind;
  ReduceOrder order;
  llvm::SmallVector<int64_t, 4> axes;
  llvm::SmallVector<AffineForm, 1> domain;
};
llvm::SmallVector<int64_t, 16> encode(const ReduceSpec &s);
llvm::Expected<ReduceSpec> decodeReduce(llvm::ArrayRef<int64_t> ints);

/// The literal that changes no result of a reduction of this kind: -0.0 for a sum of floats (N4).
uint64_t reduceIdentity(ReduceKind kind, DType t);

/// chain512 (N4): block lengths of reduced labels, for the actual extents.
llvm::SmallVector<int64_t, 4> chain512Blocks(llvm::ArrayRef<int64_t> lengths);

} // namespace astra
