//===- Partition.h: the parts of values that one shard has -----------------===//
// Takes:    a module of whole tensors, shardings of its leaves.
// Gives:    for each value how it is cut, which follows from its sources, and the op on parts that computes it.
// Keeps:    what a sum over a cut axis gives is one part of a sum until somebody reads it: whole, by an all_reduce, or
//           cut along an axis, by a reduce_scatter, with the same bits.
// Rules of ops are in PartitionOps.cpp and PartitionIndexing.cpp, control flow in PartitionControl.cpp, parts that go
// round in Ring.cpp, ways from one sharding to another in Reshard.cpp, the sweep in Partition.cpp.
#pragma once
#include "astra/IR/Builder.h"
#include "astra/IR/Contract.h"
#include "astra/IR/Module.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

namespace astra::distribute {
using llvm::ArrayRef;
using llvm::Twine;
using Axes = llvm::SmallVector<MeshAxes, 4>;
using List = llvm::SmallVector<UOpRef, 8>;
using Ints = llvm::SmallVector<int64_t, 8>;

/// A graph with other nodes in place of some.
struct Substitution {
  Context &c;
  Origins &origins;
  llvm::DenseMap<UOpRef, UOpRef> image = llvm::DenseMap<UOpRef, UOpRef>();
  std::function<UOpRef(UOpRef)> instead = nullptr; // null where a node stays what it is, over the images of its sources

  UOpRef function(UOpRef f);
  List of(ArrayRef<UOpRef> roots);
  /// All of a module.
  void all(Module &m);
};
using Nodes = llvm::DenseSet<UOpRef>;
/// What depends on one of the leaves, below roots; the leaves as well.
Nodes above(ArrayRef<UOpRef> roots, const Nodes &leaves);
/// An op for a sentence, with the place that it comes from.
std::string placeOf(const Module &m, UOpRef n);
/// A new dim of the module in place of d, which is so many times as large.
llvm::Expected<UOpRef> dimOfParts(Module &m, UOpRef d, int64_t parts);
/// extent / parts; null where that is not exact.
UOpRef divided(Context &c, UOpRef extent, int64_t parts);
/// Axis `from` moved to `to`.
UOpRef axisMoved(Builder &b, UOpRef x, unsigned from, unsigned to);
/// [n, shape]
List stacked(UOpRef n, Shape shape);
/// A batch as its microbatches, [count, rows of one, ..]: row r is row r / count of microbatch r % count.
UOpRef dealt(Builder &b, UOpRef batch, UOpRef rows, UOpRef count);
/// Axis `axis` as two, the first of extent n.
UOpRef axisSplit(Builder &b, UOpRef x, unsigned axis, int64_t n);
/// Axes `axis` and the next as one.
UOpRef axesJoined(Builder &b, UOpRef x, unsigned axis);
/// Makes every extent of a sharded input or state one that its shards divide: a dim n that says it becomes a multiple
/// of a dim n_shard.
llvm::Error divideDims(Module &m);

class Partition {
public:
  explicit Partition(Module &m) : m(m), c(m.ctx()), b(c), mesh(m.mesh) {}
  llvm::Error run();

private:
  /// What became of a value.
  struct Image {
    Axes axes;                                            // how it is cut; what is summed up whole
    llvm::SmallVector<std::pair<Axes, UOpRef>, 2> values; // parts that have been made, by how they are cut
    UOpRef part = nullptr;                                // of a sum over other shards: `values` come from it
    MeshAxes over = 0;                                    // which
    int64_t kind = 0;                                     // of all_reduce
    unsigned depth = 0;                                   // of values that are not computed yet
    std::string refused = "";                             // why there is none; a reader may know what else to compute
  };
  /// What became of a control op.
  struct Outcome {
    UOpRef now = nullptr;
    std::vector<Axes> axes; // of its results
  };
  /// Values of an entry or of a function.
  struct Frame {
    std::unordered_map<UOpRef, Image> images; // looked up, never iterated
    std::unordered_map<UOpRef, Outcome> outcomes;
    List extents, extentsNow; // data dims
  };

  // ---- the sweep (Partition.cpp)
  llvm::Error entry(Entry &e);
  bool leaves();
  bool sweep(ArrayRef<UOpRef> roots);
  bool visit(UOpRef n);
  UOpRef now(UOpRef index) const { return idxSubstitute(c, index, frame->extents, frame->extentsNow); }
  List now(ArrayRef<UOpRef> indices) const {
    List out;
    for (UOpRef i : indices) out.push_back(frame->extents.empty() ? i : now(i));
    return out;
  }
  const Axes &axesOf(UOpRef x) const { return frame->images.at(x).axes; }
  /// The shape of n's part; nothing, and an error, where shards do not divide an extent.
  std::optional<List> localShape(UOpRef n, Shape shape, ArrayRef<MeshAxes> axes);
  bool set(UOpRef n, Axes axes, UOpRef value);
  bool setLater(UOpRef n, Axes axes); // computed when somebody reads it, from what is wanted
  bool setPart(UOpRef n, Axes axes, UOpRef part, MeshAxes over, ReduceKind kind);
  UOpRef remade(UOpRef n, ArrayRef<UOpRef> tensors, ArrayRef<UOpRef> indices);
  static MeshAxes used(ArrayRef<MeshAxes> axes) {
    MeshAxes all = 0;
    for (MeshAxes a : axes) all |= a;
    return all;
  }

  // ---- what is wrong
  bool fail(UOpRef n, const Twine &what);
  bool disagree(UOpRef n, UOpRef x, UOpRef y);
  bool isCutThere(UOpRef n, UOpRef x, unsigned axis, const Twine &why);
  std::string said(UOpRef x) const;
  std::string placeOf(UOpRef n) const;

  // ---- ways from one sharding to another (Reshard.cpp)
  UOpRef as(UOpRef n, ArrayRef<MeshAxes> want, bool asked = false, unsigned depth = 0);
  UOpRef whole(UOpRef n) { return as(n, Axes(n->rank(), 0)); }
  UOpRef natural(UOpRef n);
  static bool isPulled(UOpRef n) { return n->is(Op::Iota) || n->is(Op::Expand) || has(n->op, Elementwise); }
  UOpRef pulled(UOpRef n, ArrayRef<MeshAxes> want, unsigned depth);
  UOpRef sliced(UOpRef v, unsigned axis, MeshAxes by);
  UOpRef gathered(UOpRef v, unsigned axis, MeshAxes by, bool same);
  UOpRef exchanged(UOpRef v, unsigned from, unsigned to, MeshAxes by);
  UOpRef scattered(const Image &im, unsigned axis);
  UOpRef rankIndex(MeshAxes over) { return c.make(Op::RankIndex, {}, {}, groupText(mesh, over)); }

  // ---- ops (PartitionOps.cpp, PartitionIndexing.cpp)
  using Rule = bool (Partition::*)(UOpRef);
  static Rule ruleOf(Op op);
  std::optional<Axes> merged(UOpRef n, ArrayRef<UOpRef> xs, llvm::function_ref<bool(unsigned)> skip = nullptr);
  bool replicated(UOpRef n);
  bool elementwise(UOpRef n);
  bool together(UOpRef n);
  bool passes(UOpRef n); // the value of source 0
  bool become(UOpRef n, UOpRef same);
  bool reshard(UOpRef n);
  bool tap(UOpRef n);
  bool moved(UOpRef n, Axes axes, ArrayRef<UOpRef> indices);
  /// Elements of a source, from `begin` on, that stand from `before` on among `whole`; the others are `fill`.
  struct Slide {
    UOpRef begin, count, before, whole;
    uint64_t fill;
  };
  UOpRef slid(UOpRef n, UOpRef x, unsigned axis, const Slide &s, MeshAxes by);
  UOpRef slidAlike(UOpRef x, unsigned axis, int64_t first, MeshAxes by);
  UOpRef slidApart(UOpRef x, unsigned axis, int64_t first, int64_t part, MeshAxes by);
  UOpRef from(int64_t by, UOpRef x, MeshAxes axes);
  bool translated(UOpRef n, unsigned axis);
  bool reshape(UOpRef n);
  bool permute(UOpRef n);
  bool expand(UOpRef n);
  bool pad(UOpRef n);
  bool shrink(UOpRef n);
  std::optional<unsigned> slicedAxis(UOpRef n, bool &isOne);
  UOpRef shrunk(UOpRef n, std::optional<unsigned> along);
  bool flip(UOpRef n);
  bool window(UOpRef n);
  bool reduce(UOpRef n);
  template <unsigned Place> bool along(UOpRef n); // an integer of the attribute is an axis that stays whole
  bool contract(UOpRef n);
  std::optional<unsigned> carrierOf(UOpRef n, const AffineForm &f, UOpRef extent);
  /// Two labels of a contract that one axis of the mesh cuts, each through another operand (Ring.cpp).
  struct Ring {
    unsigned stays, moves; // labels
    unsigned operand;      // whose parts go round; 2: none, the label that moves is whole, and taken part by part
    MeshAxes by;
  };
  std::optional<Ring> ringOf(const ContractSpec &s, ArrayRef<MeshAxes> cut, ArrayRef<unsigned> through, unsigned stays,
                             unsigned moves) const;
  static std::optional<Ring> inParts(const ContractSpec &s, ArrayRef<MeshAxes> cut);
  bool ring(UOpRef n, const ContractSpec &s, const Ring &r, ArrayRef<MeshAxes> cut);
  UOpRef withNeighbours(UOpRef n, unsigned label, UOpRef x, unsigned axis, AffineForm &f, MeshAxes by);
  bool gather(UOpRef n);
  bool pick(UOpRef n);
  bool scatter(UOpRef n);
  bool sliceAt(UOpRef n);
  bool updateAt(UOpRef n);
  UOpRef offset(UOpRef index, UOpRef rows, MeshAxes by);

  // ---- control flow (PartitionControl.cpp)
  bool control(UOpRef n);
  bool proj(UOpRef n);
  bool withGradient(UOpRef n);
  bool outside(UOpRef n);
  bool cond(UOpRef n);
  bool loop(UOpRef n);
  std::unique_ptr<Frame> body(UOpRef function, ArrayRef<Axes> args);
  UOpRef made(Frame &f, UOpRef function, ArrayRef<Axes> want);
  bool settle(UOpRef n, UOpRef function, std::vector<Axes> &args, size_t carried, std::unique_ptr<Frame> &frame);

  Module &m;
  Context &c;
  Builder b;
  const Mesh &mesh;
  Frame *frame = nullptr;
  const Entry *current = nullptr;
  std::string error;
};

} // namespace astra::distribute
