//===- Recompute.h: values that are computed again instead of kept ---------===//
// Takes:    the active nodes of a graph in the order of the sweep, a number of segments.
// Gives:    the nodes of a segment once more, for its derivatives; their inputs are marked (`after`) to come behind the
//           cotangents that have arrived, so that interning does not merge them with the first ones.
// Keeps:    bits: a mark is no arithmetic, and random numbers are a function of key and stream.
//
// Note [Segments]. Chen et al. 2016 (arXiv:1604.06174): the graph, in its depth-first order, is cut into segments; what
// a later segment reads is kept, what lies inside of one is computed again when the sweep comes to it. The last segment
// is not: its derivatives come first. Segments hold about equally many bytes; a cut moves by up to a quarter of a
// segment to where the fewest bytes cross it. Leaves are not marked, so what depends on weights alone is computed once;
// results of control ops are kept.
#pragma once
#include "astra/IR/Module.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace astra::autograd {

class Recompute {
public:
  Recompute(Context &c, Origins *origins, unsigned segments) : c(c), origins(origins), segments(segments) {}

  /// The nodes that the sweep visits, sources first: once, before anything else.
  void cut(llvm::ArrayRef<UOpRef> active);

  /// Whether n lies in a segment before the one at hand; the sweep goes from the last to the first.
  bool begins(UOpRef n) const { return segment.lookup(n) < current; }
  /// Enters n's segment: what is computed again comes after these.
  void begin(UOpRef n, llvm::ArrayRef<UOpRef> before);
  /// Whether n lies behind the segment at hand, or begins() is about to leave n's.
  bool isPast(UOpRef n) const { return segment.lookup(n) >= current; }
  /// n over sources that are computed again.
  UOpRef of(UOpRef n);

private:
  UOpRef marked(UOpRef n);
  bool isKept(UOpRef n) const;
  UOpRef remade(UOpRef n);

  Context &c;
  Origins *origins;
  unsigned segments, last = 0, current = 0;
  UOpRef token = nullptr;
  llvm::DenseMap<UOpRef, unsigned> segment; // of each node; leaves have none
  llvm::DenseSet<UOpRef> crossing;          // read by a later segment
  llvm::DenseMap<UOpRef, UOpRef> now;       // of the segment at hand
};

} // namespace astra::autograd
