//===- Lowering.h: the ops of a StableHLO program --------------------------===//
// Takes:    the tree of the text (Text.h), values for the arguments of a region.
// Gives:    the values of its results, as UOps; the first failure, as a sentence with its place.
// Keeps:    functions are inlined where they are called. Calls and regions nest at most 64 deep, and at most 2,000,000
//           ops are lowered.
// Does not: know an op (Ops*.cpp), or main's arguments and results (Importer.cpp).
#pragma once
#include "Text.h"
#include "astra/Compose/Closure.h"
#include "astra/Compose/Composer.h"
#include "astra/Import/StableHLO.h"
#include "llvm/ADT/DenseMap.h"

namespace astra::stablehlo {

using compose::Dims;
using compose::Ints;
using compose::Payload;

class Lowering;

/// One op while it is lowered.
class Statement {
public:
  Statement(Lowering &b, const Operation &op) : b(b), op(op), outputs(op.results.size()) {}

  Lowering &b;
  const Operation &op;

  // ---- operands
  unsigned numInputs() const { return op.operands.size(); }
  UOpRef in(unsigned i);
  std::vector<UOpRef> inputs(unsigned begin, unsigned count);
  /// The elements of an operand that must be known while importing, as symbolic integers.
  Dims knownDims(unsigned i, const char *what);
  Ints knownInts(unsigned i, const char *what);

  // ---- attributes; after a failure each gives a harmless value
  bool has(llvm::StringRef name) const { return op.find(name); }
  int64_t intAttr(llvm::StringRef name);
  int64_t intAttr(llvm::StringRef name, int64_t otherwise) { return has(name) ? intAttr(name) : otherwise; }
  bool boolAttr(llvm::StringRef name, bool otherwise);
  double floatAttr(llvm::StringRef name);
  std::string stringAttr(llvm::StringRef name);
  /// A list of integers (or bools), as array<i64: ..> or dense<..>; `otherwise` repeated where it is absent.
  Ints intsAttr(llvm::StringRef name, size_t count, int64_t otherwise);
  Ints intsAttr(llvm::StringRef name);
  /// The word of an enumeration: "LT" of #stablehlo<comparison_direction LT>.
  std::string word(llvm::StringRef name, llvm::StringRef otherwise = "");
  Fields fields(llvm::StringRef name);

  // ---- results
  const Type &resultType(unsigned i = 0) const { return op.resultTypes[i]; }
  DType resultDType(unsigned i = 0);
  /// The extents of a result, which must be written.
  Dims resultDims(unsigned i = 0);
  void give(UOpRef x) { give(0, x); }
  void give(unsigned i, UOpRef x);
  void give(llvm::ArrayRef<UOpRef> xs);

  // ---- regions; of a custom call the functions that it names
  const Region &region(unsigned i);
  /// A region's results for these arguments; empty after a failure.
  std::vector<UOpRef> body(unsigned i, llvm::ArrayRef<UOpRef> arguments);
  /// The same of a region on scalars, for tensors of one shape: its ops must be element by element.
  std::vector<UOpRef> lifted(unsigned i, llvm::ArrayRef<UOpRef> arguments);
  /// Results for scalars that stand for the arguments, of the types that the region declares.
  std::vector<UOpRef> probe(unsigned i, std::vector<UOpRef> &scalars);

  UOpRef fail(const llvm::Twine &sentence);
  UOpRef unsupported(const llvm::Twine &sentence);

  std::vector<UOpRef> outputs;
};

struct Row {
  const char *op;
  void (*lower)(Statement &);     // null: refused
  const char *remarks = "";       // a short sentence for docs/stablehlo.md; of what is refused why
  unsigned least = 0, most = ~0u; // operands
  bool each = false;              // element by element: the op means the same on tensors as on scalars
};
llvm::ArrayRef<Row> elementwiseRows();
llvm::ArrayRef<Row> shapeRows();
llvm::ArrayRef<Row> indexingRows();
llvm::ArrayRef<Row> reductionRows();
llvm::ArrayRef<Row> productRows();
llvm::ArrayRef<Row> controlRows();
llvm::ArrayRef<Row> matrixRows();
llvm::ArrayRef<Row> otherRows();
std::vector<const Row *> allRows();
/// Null when there is none.
const Row *findRow(llvm::StringRef op);

class Lowering : public compose::Composer {
public:
  Lowering(Module &module, const File &file, const compose::Hints &hints);

  /// The values of what a block returns; empty after a failure.
  std::vector<UOpRef> block(const Region &region, llvm::ArrayRef<UOpRef> arguments, bool lifted = false);
  std::vector<UOpRef> call(const Operation &function, llvm::ArrayRef<UOpRef> arguments);
  const Operation *function(llvm::StringRef name) const { return functions.lookup(name); }
  /// Scalars for the arguments of a region that is looked at.
  UOpRef probe(unsigned i, DType t);
  /// Puts the place and the op's name before the sentence of a failure that has none.
  void locate(const Operation &op);

  Module &module;
  const File &file;
  std::vector<UOpRef> values;                           // by number; null: not defined yet
  llvm::DenseMap<unsigned, std::vector<UOpRef>> tuples; // values that are tuples
  bool isLifted = false;                                // a region on scalars is lowered for tensors

private:
  void statement(const Operation &op);
  bool check(const Operation &op, const Row &row);

  llvm::StringMap<const Operation *> functions;
  llvm::DenseMap<std::pair<unsigned, unsigned>, UOpRef> probes;
  unsigned depth = 0, lowered = 0;
  bool located = false;
};

/// What several files have: the custom call of JAX for windows of symbolic extent.
void dynamicReduceWindow(Statement &s);
/// A custom call of JAX for a function of LAPACK.
void lapackCall(Statement &s, llvm::StringRef target);

/// What is wrong with a value that the text says is of this type, or "".
std::string mismatch(UOpRef x, const Type &type);

} // namespace astra::stablehlo
