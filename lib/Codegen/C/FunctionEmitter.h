//===- FunctionEmitter.h: a kernel as a C function -------------------------===//
// Takes:    instructions in order, names of helpers.
// Gives:    statements, values by name. What a kernel does is in EmitC.cpp, what it reads and writes in EmitMemory.cpp.
#pragma once
#include "Helpers.h"
#include "Outline.h"
#include "Tiles.h"
#include "astra/Codegen/EmitC.h"
#include "llvm/ADT/DenseMap.h"

namespace astra::cemit {

inline std::string num(int64_t v) { return std::to_string(v); }
inline bool isParallel(UOpRef range) { return RangeKind(range->ints[1]) == RangeKind::Parallel; }
inline bool isVectorOfBools(UOpRef x) { return x->dtype == DType::Bool && x->rank(); }

class FunctionEmitter {
public:
  /// isStep: the function is called by another one, for all of its items.
  FunctionEmitter(Context &c, Helpers &h, const LinearKernel &k, const Target &t, llvm::ArrayRef<UOpRef> dims,
                  bool isStep = false)
      : context(c), h(h), k(k), target(t), dims(dims), isStep(isStep), arranged(arrangeTiles(k.linear, t)) {}
  /// The function, behind those that it calls.
  llvm::Expected<std::string> run();
  llvm::ArrayRef<std::string> outlinedNames() const { return outlined; }

private:
  llvm::Error fail(const llvm::Twine &what) const {
    return llvm::createStringError(llvm::Twine("kernel '") + k.name + "': " + what);
  }
  void line(const std::string &s) { body.append(indent * 2, ' ').append(s).append("\n"); }
  void countUses();
  llvm::Error prologue(std::string &out);
  llvm::Error check(UOpRef x) const;

  std::string typeOf(UOpRef x) {
    return isVectorOfBools(x) ? h.mask(maskOf(x), lanesOf(x)) : h.type(x->dtype, lanesOf(x));
  }
  unsigned maskOf(UOpRef x) const { return masks.lookup(x); }
  std::string value(UOpRef x);                 // a value that is defined, or a leaf
  std::string operand(UOpRef x);               // the same as part of an expression
  std::string maskAs(UOpRef x, unsigned bits); // a vector of bools with lanes of this width
  std::string memory(UOpRef x);                // a vector of bools as bytes, others as they are
  void define(const Inst &i);
  std::string outlinedFunction(size_t number);
  std::string expression(const Inst &i);
  std::string index(UOpRef x);
  std::string elementwise(UOpRef x);
  bool dividesByOne(UOpRef x) const;
  bool isCanonical(UOpRef select) const;
  std::string boolVector(UOpRef x);
  std::string compose(UOpRef x);
  std::string read(UOpRef x, const std::string &pointer, const std::string &at, UOpRef gate, const std::string &inside,
                   const std::string &count);
  std::string load(const Inst &i);
  void pointToRows(llvm::ArrayRef<RowRead> rows, UOpRef range);
  std::string at(const Inst &i);
  std::string bounds(const std::string &at, UOpRef index, unsigned lanes, UOpRef count);
  void beginLoop(UOpRef range);
  void endLoop(UOpRef range);
  void countItems();
  void update(UOpRef fold);
  std::string element(UOpRef stage, size_t number = 0); // of its values // of its array, at its ranges
  void put(UOpRef stage) {
    for (auto [i, v] : llvm::enumerate(stage->tensors())) line(element(stage, i) + " = " + memory(v) + ";");
  }
  void write(UOpRef store);
  void prefetch(const Inst &i);
  void call(const Inst &i);
  size_t arrayOf(UOpRef stage) const; // its number
  // Matrix units on tiles (UnitTiles.cpp).
  using Words = llvm::SmallVector<UOpRef, 16>; // loads
  struct UnitTile {                            // a tile of sums
    std::vector<UOpRef> folds;
    Words rows;    // the first word of each
    Words columns; // all words
    UOpRef rowStep, columnStep;
    unsigned rowTile, columnTile;
  };
  UOpRef apart(UOpRef from, UOpRef to);
  UOpRef stepOf(llvm::ArrayRef<UOpRef> loads);
  bool wordsOf(UOpRef fold, Words &row, Words &columns);
  std::vector<UnitTile> tilesOf(size_t begin);
  void tileLoop(size_t begin, llvm::ArrayRef<UnitTile> tiles);

  Context &context;
  Helpers &h;
  const LinearKernel &k;
  const Target &target;
  llvm::ArrayRef<UOpRef> dims;
  bool isStep;
  Arranged arranged;
  Outlines outlines;
  std::vector<std::string> outlined; // their names
  std::string body;
  unsigned indent = 1;
  llvm::DenseMap<UOpRef, unsigned> uses, masks, numbers;
  llvm::DenseMap<UOpRef, unsigned> sums;                      // that the loop of a range and those inside of it add to
  llvm::DenseMap<UOpRef, std::pair<unsigned, unsigned>> home; // regions of definition and of the last use
  llvm::DenseMap<UOpRef, std::string> inlined;
  llvm::DenseMap<UOpRef, std::pair<std::string, std::string>> rowOf; // in this loop: a load's pointer, what is added
  unsigned rowPointers = 0;
  std::vector<UOpRef> loops; // by region, without the first, which is the function
  std::vector<unsigned> usedDims;
  llvm::DenseSet<UOpRef> speculative; // loads of the loop whose tiles are asked for
  std::vector<UOpRef> tiled;          // ranges of loops that stand behind their form by tiles
  std::string error;
  unsigned parallelLoops = 0;
};

} // namespace astra::cemit
