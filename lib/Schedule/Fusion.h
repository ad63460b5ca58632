//===- Fusion.h: which values get a buffer ---------------------------------===//
#pragma once
#include "Concat.h"
#include "astra/IR/UOp.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace astra {

/// Which part of what.
struct Part {
  UOpRef whole = nullptr;
  int64_t axis = 0;
  UOpRef begin = nullptr;
};

struct Fusion {
  std::vector<UOpRef> order;             // realized values, producers first
  llvm::DenseSet<UOpRef> realized;       // computed into a buffer of their own
  llvm::DenseMap<UOpRef, UOpRef> rootOp; // realized value -> the contract or reduce computed inside its kernel
  // Realized values that are made of their parts, each of which is realized or a view of what lies in memory.
  llvm::DenseMap<UOpRef, Concat> concats;
  llvm::DenseMap<UOpRef, Part> parts; // realized parts that nobody else reads
};

/// Leaves that already lie in buffers (arg, param, state), or values made by instructions (results of control ops).
bool isStored(UOpRef x);
/// The parameter whose bytes a `words` joins, and which of its axes each axis of the words is: what lies between them
/// is a layout in blocks of 4 bytes. null: the bytes of another value, or in a way that is none.
UOpRef paramOfWords(UOpRef words, llvm::SmallVectorImpl<int64_t> &axes);
/// Whether words are a parameter's, whose layout their readers choose.
bool isPacked(UOpRef words);
/// An op that calls functions, of the graph or of the program.
inline bool isControl(UOpRef x) {
  return x->op == Op::Cond || x->op == Op::While || x->op == Op::Scan || x->op == Op::Custom || x->op == Op::External;
}
/// Decides for everything that `roots` reach. Every root is realized unless it is stored already.
Fusion fuse(Context &c, llvm::ArrayRef<UOpRef> roots);

/// Of elementwise arithmetic that a contract's kernel does on an operand (a weight that is unpacked): the one parameter
/// of its shape that it reads, or, where it has none, of packed codes the one of the most bytes; null: none, or
/// several.
UOpRef weightBehind(UOpRef x);
/// Parameters that it reads an element of for several neighbours of a row: packed codes, the scales of blocks. Their
/// last extent divides x's, the others are x's.
llvm::SmallVector<UOpRef, 4> planesBehind(UOpRef x);

/// Whether a contract unpacks such an operand element by element: few rows read each, now or in some calls, or a tile's
/// columns can be unpacked once for all rows (a plan's `pack-b`: 512 rows of f16 weights 30.0 and 25.4 ms).
bool unpacksWhereRead(UOpRef contract, unsigned operand);

// Rows: what lies along the last axis of a shape.
/// A reduction along the last axis, in lanes or in any order, of rows that fit the L1.
bool isRowReduce(UOpRef n);
/// Whether `x` is the shape of one value for each row.
bool isOfRows(Shape x, Shape rows);
/// Whether a reshape only adds or drops a last axis of 1.
bool keepsRows(UOpRef n);

} // namespace astra
