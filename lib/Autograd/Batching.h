//===- Batching.h: what vmap does to a graph -------------------------------===//
// Takes:    a graph, and which of its leaves have a batch axis.
// Gives:    the image of each node that depends on one of them: the batch axis is in front.
// Keeps:    attributes: the order of a sum is the one that is stamped. Functions are batched once for each set of
//           batched arguments.
// The rows of ops are in BatchedOps.cpp, control flow is in BatchedControl.cpp, the sweep in Vmap.cpp.
#pragma once
#include "astra/Autograd/Vmap.h"
#include "astra/IR/Builder.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include <map>

namespace astra::vmapping {
using llvm::ArrayRef;
using Ints = llvm::SmallVector<int64_t, 8>;
using List = llvm::SmallVector<UOpRef, 8>;
using Flags = llvm::SmallBitVector;

/// Whether a collective stands in a function, or in one that it calls.
bool exchanges(UOpRef function);

class Batching {
public:
  Batching(Context &c, UOpRef size, const Origins *origins, const CollectiveImage *collective = nullptr)
      : c(c), b(c), size(size), origins(origins), collective(collective) {}

  /// What became of the nodes of a graph that depend on the batch.
  struct Images;

  /// Adds the images of all nodes that `roots` reach.
  llvm::Error add(ArrayRef<UOpRef> roots, Images &images);

  /// x for every element of the batch.
  UOpRef spread(UOpRef x) {
    List one{c.index(1)}, shape = withSize(x->shape);
    one.append(x->shape.begin(), x->shape.end());
    return b.expand(b.reshape(x, one), shape);
  }
  UOpRef whole(UOpRef x, const Images &images);
  List withSize(Shape shape) {
    List all{size};
    all.append(shape.begin(), shape.end());
    return all;
  }

  static bool hasRow(Op op) { return rowOf(op); }
  UOpRef front(UOpRef x, unsigned axis); // the axis moved to the front
  UOpRef second(UOpRef x);               // the first two axes exchanged
  llvm::Error fits(UOpRef n) const;      // whether a tensor may be as large as n with the batch axis

private:
  llvm::Error refuse(UOpRef n, const llvm::Twine &why) const;
  /// One node that has a batched source.
  struct Node {
    UOpRef n;
    Images &images;
    List indices, shape; // of n, as they are now
    bool batched(unsigned i) const;
    UOpRef source(unsigned i) const; // batched or not
  };
  using Row = UOpRef (Batching::*)(const Node &);

  UOpRef whole(const Node &at, unsigned i) { return whole(at.n->src[i], at.images); }
  /// The node on whole sources, with other indices and integers.
  UOpRef remade(const Node &at, ArrayRef<UOpRef> indices, ArrayRef<int64_t> ints) {
    List src;
    for (unsigned i = 0; i < at.n->ntensors; ++i) src.push_back(whole(at, i));
    src.append(indices.begin(), indices.end());
    return c.make(at.n->op, src, ints, at.n->str, at.n->dtype);
  }
  UOpRef same(const Node &at) { return remade(at, at.indices, at.n->ints); }
  template <unsigned Place> UOpRef axis(const Node &at) { // an integer of the attribute is an axis
    Ints ints(at.n->ints);
    ++ints[Place];
    return remade(at, at.indices, ints);
  }
  UOpRef axes(const Node &at) { // all of them are
    Ints ints;
    for (int64_t a : at.n->ints) ints.push_back(a + 1);
    return remade(at, at.indices, ints);
  }
  UOpRef permute(const Node &at) {
    Ints ints{0};
    for (int64_t a : at.n->ints) ints.push_back(a + 1);
    return remade(at, {}, ints);
  }
  UOpRef shape(const Node &at) { return remade(at, withSize(at.indices), at.n->ints); }
  UOpRef pad(const Node &at) { return twoLists(at, c.index(0)); }
  UOpRef shrink(const Node &at) { return twoLists(at, size); }
  UOpRef twoLists(const Node &at, UOpRef second) {
    ArrayRef<UOpRef> lists = at.indices;
    List indices{c.index(0)};
    indices.append(lists.begin(), lists.begin() + lists.size() / 2);
    indices.push_back(second);
    indices.append(lists.begin() + lists.size() / 2, lists.end());
    return remade(at, indices, at.n->ints);
  }
  static void shift(AffineForm &form) {
    for (auto &[label, coefficient] : form.terms) ++label;
  }
  UOpRef reduce(const Node &at);
  UOpRef contract(const Node &at);
  UOpRef gather(const Node &at);
  UOpRef reduceScatter(const Node &at);
  UOpRef allGather(const Node &at);
  UOpRef allToAll(const Node &at);
  UOpRef reshard(const Node &at);
  UOpRef place(const Node &at, unsigned source, UOpRef extent, UOpRef size, unsigned rank);
  UOpRef sliceAt(const Node &at);
  UOpRef updateAt(const Node &at);
  UOpRef loop(const Node &at);
  static Row rowOf(Op op);

  // ---- control flow
  struct Results {
    std::vector<UOpRef> values;
    Flags batched; // which of them depend on the batch
    UOpRef whole(Batching &v, size_t i) const { return batched[i] ? values[i] : v.spread(values[i]); }
  };
  /// What became of a control op: either another one, or values that stand for its results.
  struct Outcome {
    UOpRef now = nullptr;
    List values;
    Flags batched;              // which results depend on the batch
    size_t stackedFrom = ~0ull; // results of a scan whose first axis is its length
  };
  llvm::Expected<Outcome> cond(const Node &at);
  llvm::Expected<Outcome> choice(const Node &at);
  llvm::Expected<Outcome> whileLoop(const Node &at);
  llvm::Expected<Outcome> scan(const Node &at);
  llvm::Expected<Outcome> custom(const Node &at);
  UOpRef scattered(UOpRef r, UOpRef all, UOpRef element);
  UOpRef apart(UOpRef x, UOpRef n, int64_t axis);
  llvm::Expected<Outcome> external(const Node &at);
  void proj(const Node &at);
  llvm::Expected<UOpRef> withGradient(const Node &at);
  /// predicate [size] chooses between whole values.
  UOpRef chosen(UOpRef predicate, UOpRef yes, UOpRef no) {
    List one(yes->rank(), c.index(1));
    one[0] = size;
    return c.make(Op::Select, {b.expand(b.reshape(predicate, one), yes->shape), yes, no});
  }
  /// The results of a function whose arguments are batched where `flags` says so.
  llvm::Expected<Results> body(UOpRef function, const Flags &flags);
  llvm::Expected<Results> settle(UOpRef function, Flags &flags, unsigned carried);

  Context &c;
  Builder b;
  UOpRef size;
  const Origins *origins;
  const CollectiveImage *collective; // null: a collective is batched as any other op
  std::map<std::pair<uint32_t, std::vector<bool>>, Results> bodies;
};

struct Batching::Images {
  llvm::DenseMap<UOpRef, UOpRef> batched; // the batch axis is in front
  llvm::DenseMap<UOpRef, UOpRef> moved;   // does not depend on the batch, but comes from a control op that was remade
  List extents, extentsNow;               // data dims of such values
  llvm::DenseMap<UOpRef, Outcome> outcomes;

  UOpRef of(UOpRef x) const {
    UOpRef image = batched.lookup(x);
    if (!image) image = moved.lookup(x);
    return image ? image : x;
  }
  List now(Context &c, ArrayRef<UOpRef> indices) const {
    List result;
    for (UOpRef i : indices) result.push_back(extents.empty() ? i : idxSubstitute(c, i, extents, extentsNow));
    return result;
  }
};

} // namespace astra::vmapping
