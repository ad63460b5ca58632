//===- UOp.h: the one node type, from the front doors to the emitters ------===//
// Gives:    UOp (op, dtype, shape, sources, attribute) and Context, the arena that hash-conses them.
// Keeps:    a node is immutable and unique in its Context: equal op, attribute, sources and functions give the same
//           pointer. Parameters and states have a name as identity. Literals are compared by bits, so -0.0 and +0.0
//           differ.
// Does not: own tensors' data (Module.h), print (Text.h), simplify (Rewrite; Index.h keeps symbolic integers in
//           polynomial normal form). A Context belongs to one thread. Node ids are creation order: good as table keys,
//           never allowed to influence output.
#pragma once
#include "astra/IR/DType.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <utility>
#include <vector>

namespace astra {

enum class Op : uint8_t {
#define OP(Name, mnemonic, sources, groups, Type, attributes, traits, meaning) Name,
#include "astra/IR/Ops.def"
#undef OP
};
constexpr unsigned numOps = 0
#define OP(Name, mnemonic, sources, groups, Type, attributes, traits, meaning) +1
#include "astra/IR/Ops.def"
#undef OP
    ;

enum Trait : unsigned {
  Elementwise = 1,
  Commutes = 2,
  Function = 4,
  Movement = 8,
  Leaf = 16,
  Control = 32,
  KernelLevel = 64
};

/// One row of Ops.def.
struct OpInfo {
  const char *name;     // "Add"
  const char *mnemonic; // "add"
  int sources, groups;
  const char *attributes;
  unsigned traits;
  const char *meaning;
};
const OpInfo &info(Op op);
std::optional<Op> opNamed(llvm::StringRef mnemonic);
inline bool has(Op op, Trait t) { return info(op).traits & t; }
/// Whether it exchanges values between the shards of a mesh, or depends on which shard it is in.
inline bool isCollective(Op op) { return op >= Op::AllReduce && op <= Op::RankIndex; }

// Enumerations used in attributes; the order is that of the braces in Ops.def.
enum class ReduceKind : int64_t { Sum, Prod, Max, Min, And, Or };
enum class ReduceOrder : int64_t { Lane64, Chain, Exact, Pairs };
/// N4: elements of a chunk of lane64; of a block of chain512 along its innermost label, and in all.
inline constexpr int64_t laneChunk = 4096, chainBlock = 512, mostChainBlock = 8192;
enum class CumulateKind : int64_t { Sum, Prod, Max, Min };
enum class ScatterKind : int64_t { Set, Add, Mul, Max, Min };
enum class RangeKind : int64_t { Parallel, Loop, Vector, Unroll, Fold, Thread, Around };
/// From Unit on: a step of a matrix unit, in the order of unitSteps() (MatrixUnits.h).
enum class Combine : int64_t { Add, Mul, Max, Min, And, Or, Fma, Dot4, Unit };
/// How many values a fold combines with its accumulator at a time.
unsigned valuesOf(Combine c);

class UOp;
using UOpRef = const UOp *;
using Shape = llvm::ArrayRef<UOpRef>; // of symbolic integers (dtype index)

class UOp {
public:
  Op op;
  DType dtype;
  uint32_t id;    // creation order in the Context
  uint64_t hash;  // structural: the same in every run and Context
  int64_t lo, hi; // bounds, inclusive, of an index; 0, 0 otherwise
  Shape shape;    // interned: equal shapes of one Context have the same data()
  llvm::ArrayRef<UOpRef> src;
  llvm::ArrayRef<int64_t>
      ints; // the attribute's integers, in the order of the op's row (enumerations by number, literals by bits)
  llvm::StringRef str;        // the attribute's string
  llvm::ArrayRef<UOpRef> fns; // `func` nodes of a control op; walkers of values do not follow them

  unsigned rank() const { return shape.size(); }
  bool isIndex() const { return dtype == DType::Index; }
  bool is(Op o) const { return op == o; }
  /// Sources that are tensors (or kernel values), and those that are symbolic integers, which always follow.
  llvm::ArrayRef<UOpRef> tensors() const { return src.take_front(ntensors); }
  llvm::ArrayRef<UOpRef> indices() const { return src.drop_front(ntensors); }
  uint32_t ntensors;

  /// The value of an index or literal constant.
  bool isConst() const { return op == Op::Const; }
  std::optional<int64_t> constIndex() const {
    return isIndex() && isConst() ? std::optional<int64_t>(ints[0]) : std::nullopt;
  }
};

/// What a type rule gives.
struct Type {
  DType dtype = DType::Void;
  llvm::SmallVector<UOpRef, 4> shape;
};

/// Symbolic integers that are equal, of a module in every call, which is refused otherwise.
struct Equation {
  UOpRef left, right;
};

class Context {
public:
  Context();
  Context(const Context &) = delete;
  ~Context();

  /// The node with these parts, its type inferred by the op's rule; an error (a sentence that names what was found and
  /// expected) when the rule refuses. Index-typed arithmetic comes back in normal form (Index.h), so the result's op
  /// may differ.
  llvm::Expected<UOpRef> tryMake(Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints = {},
                                 llvm::StringRef str = {}, DType dtype = DType::Void, llvm::ArrayRef<UOpRef> fns = {});
  /// The same for parts known to be right: a refusal is a fatal internal error that prints the sentence.
  UOpRef make(Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints = {}, llvm::StringRef str = {},
              DType dtype = DType::Void, llvm::ArrayRef<UOpRef> fns = {});
  /// The node `like` with other sources (and its own attribute and functions); `like` itself when they are the same.
  UOpRef withSources(UOpRef like, llvm::ArrayRef<UOpRef> src);

  UOpRef index(int64_t value); // a constant symbolic integer
  /// Whether symbolic integers left their range since a node was last made; the next node that is made would be
  /// refused.
  bool takeOverflow() { return std::exchange(overflowed, false); }
  UOpRef literal(DType t, uint64_t bits);
  Shape internShape(llvm::ArrayRef<UOpRef> shape);

  size_t size() const { return nodes.size(); } // ids are 0 ... size() - 1
  UOpRef node(uint32_t id) const { return nodes[id]; }

  std::vector<Equation>
      equations;                  // facts for the type rules; the verifier asks those of the module (Module::equations)
  std::vector<UOpRef> simplified; // by id: the memo of simplifyIndex (Rewrite.h)

private:
  friend struct IndexMath;
  UOpRef intern(Op op, DType dtype, Shape shape, llvm::ArrayRef<UOpRef> src, uint32_t ntensors,
                llvm::ArrayRef<int64_t> ints, llvm::StringRef str, llvm::ArrayRef<UOpRef> fns);
  void grow();
  bool overflowed = false; // a symbolic integer left its range while a node was made
  llvm::BumpPtrAllocator arena;
  std::vector<UOpRef> nodes;
  std::vector<uint32_t> table; // open addressing, id + 1
  std::vector<std::pair<uint64_t, Shape>> shapes;
  std::vector<uint32_t> shapeTable;
};

/// The dtype and shape of a node with these parts (TypeRules.cpp).
llvm::Expected<Type> inferType(Context &ctx, Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints,
                               llvm::StringRef str, DType dtype, llvm::ArrayRef<UOpRef> fns);

/// All nodes that `roots` reach through sources (not functions), sources first; iterative, in a deterministic order.
std::vector<UOpRef> topoSort(llvm::ArrayRef<UOpRef> roots);

} // namespace astra
