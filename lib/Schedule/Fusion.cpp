//===- Fusion.cpp: which values get a buffer -------------------------------===//
// Takes:    a legalized graph.
// Gives:    the set of realized values; everything else is computed inside the kernels of its consumers.
// Keeps:    linear time: two passes from the consumers to the producers. A kernel holds at most `mostOfGroup`
//           elementwise nodes; recomputation, in more than one kernel or at more than one place of a kernel, is allowed
//           only for values cheaper than `recomputeCap`. It reads at most `mostInputs` buffers (a kernel of the runtime
//           has at most 256): the few groups that would read more are cut, and all is decided again.
//
// Note [Groups]. A group is a realized value and the unrealized nodes below it. A node whose consumers all lie in one
// group is computed once there. A contract or reduce is absorbed by the group of its consumers when they are
// elementwise on its own shape up to the group's root (an epilogue), and the group has no other. A contract's root may
// also be the padding of all that: the kernel stores results behind it and writes what is around them (a convolution
// after a convolution; decision 0071).
//
// Note [Rows]. Reductions along the last axis of one shape, its rows, share a group: a kernel's item then is a row,
// which it passes over once for each of them, and once to write it where the root has that shape too (softmax, layer
// norm and their gradients). A node of such a group is read as an element of the row at hand, or as one value for the
// whole row, behind an expand along it. Neither is computed again for each of its readers: what is dear is kept beside
// the row (Codegen/Rows.cpp), and a value of the row is computed once.
//
// Note [Reread]. Nothing is computed in more than `fewGroups` groups, but arithmetic on one value that lies in memory
// and on small ones beside it, which expand along axes of it: whoever reads it reads as many bytes where it is computed
// again, and nobody writes it or keeps it (a norm, which its gradient reads too). What lies in memory is known when all
// is decided: then it is looked for, and all is decided again. Not what is narrower than that one value. Two readers
// may compute more: a function of it costs less than to write it and to read it twice. Not behind a contract, whose
// tile has its sums in the registers that the function would take.
// Note [Sums of blocks]. A contract of f32 whose operands are the integer sums of blocks and scales for each (products
// of weights by blocks with activations of 8 bits) reads each of them once: its kernel computes them, a block's sum in
// registers, and nobody writes as many as the result has elements times blocks. Lanes run where they run in the sum of
// a block.
//
// Note [Single live values]. A group of `groupCap` elementwise nodes ends where one value is all that its nodes still
// need that is computed: the result of a function, not what lies within it, each of whose values would be an array. A
// kernel of more has no registers for their constants (1.6 million floats, a sine of a sine by one kernel 6.9 ms, by
// two 5.3, by the ten that any values of its second half are 10.6).
#include "Fusion.h"
#include "Captured.h"
#include "Thresholds.h"
#include "astra/IR/Contract.h"
#include "astra/IR/Index.h"
#include "astra/Schedule/Program.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <numeric>

using namespace astra;
using llvm::SmallVector;

static constexpr unsigned mostOfGroup = 512; // elementwise nodes
static constexpr unsigned mostInputs = 240;  // of a group
static constexpr unsigned mostDepth = 512;   // of nodes below a group's root: who computes them goes down by recursion
static constexpr unsigned manyGroups = 16;   // beyond these nobody counts

bool astra::isStored(UOpRef x) {
  return x->op == Op::Arg || x->op == Op::Param || x->op == Op::State || x->op == Op::Proj || x->op == Op::After;
}

UOpRef astra::paramOfWords(UOpRef words, llvm::SmallVectorImpl<int64_t> &axes) {
  UOpRef x = words->src[0];
  axes.assign(x->rank(), 0);
  std::iota(axes.begin(), axes.end(), 0);
  for (; x->op == Op::Permute || x->op == Op::Pad; x = x->src[0]) {
    if (x->op == Op::Permute)
      for (int64_t &axis : axes) axis = x->ints[axis];
    else if (x->ints[0])
      return nullptr;
    else
      for (auto [i, e] : llvm::enumerate(x->indices())) { // only up to a whole block
        int64_t most = int64_t(i) == int64_t(x->rank()) + axes.back() ? 3 : 0;
        if (!e->isConst() || e->ints[0] > most) return nullptr;
      }
  }
  return x->op == Op::Param ? x : nullptr;
}

bool astra::isPacked(UOpRef words) {
  llvm::SmallVector<int64_t, 6> axes;
  return words->op == Op::Words && paramOfWords(words, axes);
}

/// Whether what follows x has lanes beside each other in x's loop: of what runs along an axis, those behind the axis.
static bool hasLanes(Context &c, UOpRef x) {
  return x->op != Op::Cumulate || idxProduct(c, x->shape.drop_front(x->ints[1] + 1))->hi >= threshold::runningLanes;
}

static bool isRootOp(UOpRef x) { return x->op == Op::Reduce || x->op == Op::Contract || x->op == Op::Cumulate; }

namespace {
/// How the nodes of a group lie to its rows (Note [Rows]). Root: as the root does, elements or one value a row.
enum PlaceInRow : uint8_t { Root = 1, ValueOfRow = 2, ElementOfRow = 4, Elsewhere = 8 };

struct Facts {
  SmallVector<UOpRef, 2> groups; // roots of the groups it is in, the first few
  uint8_t places = 0;            // how its readers read it
  bool straight = false;         // elementwise on one shape up to the only group's root
  bool expanded = false;         // read through an expand, gather or window: one element is used many times
  bool mustRealize = false;
  bool inBodies = false;        // of control ops: read there, Captured.h
  unsigned uses = 0, depth = 0; // depth: below its group's root
  // By how many different addresses one element of its group reads it: consumers on one shape share one, each movement
  // may need another. A bound from above.
  unsigned inPlace = 0, moved = 0;
  unsigned ways() const { return std::min(inPlace + moved, 1000u); }
};

unsigned costOf(Op op) {
  return op == Op::Div || op == Op::Sqrt || op == Op::FloorDiv || op == Op::Mod || op == Op::TruncDiv || op == Op::Rem
             ? 8
             : 1;
}

/// What lies in memory when x is read at any place: x without the movement that only changes addresses.
UOpRef baseOf(UOpRef x) {
  while (has(x->op, Movement) && x->op != Op::Pad) x = x->src[0];
  return x;
}
bool isView(UOpRef x) { return isStored(baseOf(x)) || baseOf(x)->op == Op::Const; }

/// Whether x is cheap arithmetic on stored values, a weight of two bytes an element or less among them, and takes twice
/// the memory or more.
bool isUnpacked(UOpRef x) {
  constexpr size_t most = 80; // nodes: blocks with two kinds of scales have 60
  SmallVector<UOpRef, 16> stack{x};
  llvm::DenseSet<UOpRef> seen;
  bool weight = false;
  while (!stack.empty()) {
    UOpRef n = stack.pop_back_val();
    if (n->isIndex() || !seen.insert(n).second) continue;
    if (seen.size() > most) return false;
    weight |= n->op == Op::Param && byteSize(n->dtype) <= 2;
    if (isStored(n) || has(n->op, Leaf)) continue;
    bool moves = n->op == Op::Reshape || n->op == Op::Expand || n->op == Op::Shrink;
    if (!moves && (!has(n->op, Elementwise) || costOf(n->op) > 1)) return false;
    for (UOpRef s : n->tensors()) stack.push_back(s);
  }
  return weight && byteSize(x->dtype) >= 4;
}

/// Whether the contract reads its operand `i` so that computing it there beats a buffer: lanes may run along its last
/// axis, or along any where the weight can lie in panels; and what is unpacked where it is read is no weight or few
/// rows'. A weight that many rows read is unpacked by their kernel (unpacksWhereRead) or by one before it.
bool computesOperand(UOpRef contract, unsigned i) {
  UOpRef x = contract->src[i];
  if (i > 1 || !has(x->op, Elementwise) || !x->rank() || !isUnpacked(x)) return false;
  ContractSpec s = llvm::cantFail(decodeContract(contract->ints));
  auto &forms = i ? s.b : s.a;
  auto takesLanes = [&](size_t d) {
    return forms[d].isLabel() && forms[d].terms[0].first < s.kept && x->shape[d]->hi >= threshold::unpackLanes;
  };
  bool anywhere = weightBehind(x) && llvm::any_of(llvm::seq(forms.size()), takesLanes);
  return anywhere || (takesLanes(forms.size() - 1) && unpacksWhereRead(contract, i));
}

/// Whether an operand of a contract that these forms index has each element read once: an element tells the labels that
/// read it, each form one, given those that others tell.
bool readsOnce(UOpRef contract, const ContractSpec &s, llvm::ArrayRef<AffineForm> forms) {
  llvm::DenseSet<int64_t> told;
  for (int64_t l = 0; l < s.kept + s.reduced; ++l)
    if (contract->indices()[l]->hi <= 1) told.insert(l);
  for (bool more = true; more;) {
    more = false;
    for (const AffineForm &f : forms) {
      auto isOpen = [&](auto &t) { return !told.contains(t.first); };
      if (llvm::count_if(f.terms, isOpen) == 1) more |= told.insert(llvm::find_if(f.terms, isOpen)->first).second;
    }
  }
  return int64_t(told.size()) == s.kept + s.reduced;
}

/// Whether a contract adds up its operand `i` alone and reads each element of it once, as the gradient of a window does
/// with what overlaps: then it computes them as well as a kernel of their own would, which writes every window. Not of
/// a weight, which would be laid out for the lanes.
bool addsOnce(UOpRef contract, unsigned i) {
  UOpRef x = contract->src[i];
  if (i > 1 || !has(x->op, Elementwise) || baseOf(contract->src[!i])->op != Op::Const || weightBehind(x)) return false;
  ContractSpec s = llvm::cantFail(decodeContract(contract->ints));
  return readsOnce(contract, s, i ? s.b : s.a);
}
} // namespace

UOpRef astra::sumOfBlock(UOpRef contract) {
  if (contract->op != Op::Contract || !isFloat(contract->dtype) || contract->ntensors > 2) return nullptr;
  ContractSpec s = llvm::cantFail(decodeContract(contract->ints));
  if (s.reduced != 1 || !s.domain.empty()) return nullptr;
  auto isLabel = [](const AffineForm &f) { return f.isLabel(); };
  UOpRef found = nullptr;
  for (unsigned i : {0u, 1u}) {
    auto &forms = i ? s.b : s.a;
    if (!llvm::all_of(forms, isLabel) || !readsOnce(contract, s, forms) || !has(contract->src[i]->op, Elementwise))
      return nullptr;
    SmallVector<UOpRef, 8> stack{contract->src[i]};
    for (llvm::DenseSet<UOpRef> seen; !stack.empty();) {
      UOpRef n = stack.pop_back_val();
      if (n->shape != contract->src[i]->shape || !seen.insert(n).second) continue;
      if (n->op == Op::Contract) {
        if (i || found) return nullptr; // one sum, behind the first operand
        found = n;
      } else if (has(n->op, Elementwise)) {
        if (costOf(n->op) > 1) return nullptr;
        stack.append(n->tensors().begin(), n->tensors().end());
      }
    }
  }
  if (!found || found->dtype != DType::I32 || found->ntensors > 2) return nullptr;
  ContractSpec inner = llvm::cantFail(decodeContract(found->ints));
  auto steps = found->indices()[inner.kept]->constIndex();
  return inner.reduced == 1 && inner.domain.empty() && steps && *steps <= threshold::blockSum ? found : nullptr;
}

bool astra::unpacksWhereRead(UOpRef contract, unsigned i) {
  constexpr int64_t many = 1 << 20;
  ContractSpec s = llvm::cantFail(decodeContract(contract->ints));
  auto &forms = i ? s.b : s.a;
  bool staged =
      s.reduced == 1 && s.domain.empty() && llvm::all_of(forms, [](const AffineForm &f) { return f.isLabel(); });
  if (staged && weightBehind(contract->src[i])) return true;
  llvm::DenseSet<int64_t> own;
  for (const AffineForm &f : forms)
    for (auto [l, k] : f.terms) own.insert(l);
  int64_t least = 1, rows = 1;
  for (int64_t l = 0; l < s.kept; ++l)
    if (!own.count(l)) {
      rows = std::min(rows * std::max<int64_t>(contract->shape[l]->hi, 1), many);
      least = std::min(least * std::max<int64_t>(contract->shape[l]->lo, 1), many);
    }
  return rows <= threshold::unpackRows || least < threshold::smallRows;
}

/// The parameter of x's own shape that x is elementwise arithmetic on; null where there is none, or several.
static UOpRef weightOfShape(UOpRef x, bool &several) {
  UOpRef found = nullptr;
  SmallVector<UOpRef, 8> stack{x};
  llvm::DenseSet<UOpRef> seen;
  while (!stack.empty()) {
    UOpRef n = stack.pop_back_val();
    if (n->shape != x->shape || !seen.insert(n).second) continue;
    if (n->op == Op::Param) {
      several |= found != nullptr;
      found = n;
    } else if (has(n->op, Elementwise))
      stack.append(n->tensors().begin(), n->tensors().end());
  }
  return several ? nullptr : found;
}

llvm::SmallVector<UOpRef, 4> astra::planesBehind(UOpRef x) {
  SmallVector<UOpRef, 4> found;
  SmallVector<UOpRef, 16> stack{x};
  llvm::DenseSet<UOpRef> seen;
  while (!stack.empty()) {
    UOpRef n = stack.pop_back_val();
    if (n->isIndex() || !seen.insert(n).second) continue;
    if (n->op == Op::Param) {
      bool rows = n->rank() == x->rank() && n->rank() > 1 && n->shape.drop_back() == x->shape.drop_back();
      auto own = rows ? n->shape.back()->constIndex() : std::nullopt, all = x->shape.back()->constIndex();
      if (own && all && *own > 0 && *own < *all && *all % *own == 0) found.push_back(n);
    } else if (has(n->op, Elementwise) || n->op == Op::Reshape || n->op == Op::Expand)
      stack.append(n->tensors().begin(), n->tensors().end());
  }
  return found;
}

UOpRef astra::weightBehind(UOpRef x) {
  bool several = false;
  UOpRef found = weightOfShape(x, several);
  if (found || several) return found;
  constexpr int64_t mostOfByte = 8; // elements: a bit each
  for (UOpRef p : planesBehind(x))  // of packed codes that of the most bytes
    if (p->dtype == DType::U8 && x->shape.back()->ints[0] / p->shape.back()->ints[0] <= mostOfByte &&
        (!found || p->shape.back()->ints[0] > found->shape.back()->ints[0]))
      found = p;
  return found;
}

bool astra::isRowReduce(UOpRef n) {
  if (n->op != Op::Reduce || !n->src[0]->rank()) return false;
  ReduceSpec s = llvm::cantFail(decodeReduce(n->ints));
  Shape row = n->src[0]->shape;
  return s.axes.size() == 1 && s.axes[0] + 1 == int64_t(row.size()) && s.order != ReduceOrder::Chain &&
         row.back()->hi <= threshold::rowLength;
}
bool astra::isOfRows(Shape x, Shape rows) {
  if (x.size() == rows.size() && x.back()->constIndex() == 1) x = x.drop_back();
  return x == rows.drop_back();
}
bool astra::keepsRows(UOpRef n) {
  Shape a = n->shape, b = n->src[0]->shape;
  if (a.size() < b.size()) std::swap(a, b);
  return a.size() == b.size() + 1 && a.back()->constIndex() == 1 && a.drop_back() == b;
}

namespace {
/// The groups whose kernels go by rows (Note [Rows]).
class RowGroups {
public:
  /// The place of n by all its readers, Elsewhere where they differ.
  PlaceInRow placeOf(UOpRef n, const Facts &x) const {
    if (x.groups.size() != 1) return Elsewhere;
    auto g = groups.find(x.groups[0]);
    uint8_t p = x.places;
    if (g == groups.end()) return p == Root || p == ValueOfRow ? PlaceInRow(p) : Elsewhere;
    if (p & Root) p = (p & ~Root) | (g->second.rootIsRow ? ElementOfRow : ValueOfRow);
    bool fits =
        p == ElementOfRow ? n->shape == g->second.shape : p == ValueOfRow && isOfRows(n->shape, g->second.shape);
    return fits ? PlaceInRow(p) : Elsewhere;
  }
  /// Whether reduction n can be computed in the group of its readers; then it is.
  bool absorb(UOpRef n, PlaceInRow place, UOpRef root, bool hasRootOp) {
    if (!isRowReduce(n)) return false;
    Shape rows = n->src[0]->shape;
    auto g = groups.find(root);
    if (g != groups.end()) return place == ValueOfRow && g->second.shape == rows;
    if (hasRootOp || (place == ValueOfRow && root->shape != rows) || place > ValueOfRow) return false;
    groups.insert({root, {rows, place == ValueOfRow}});
    return true;
  }
  bool contains(UOpRef root) const { return groups.count(root); }
  /// The place of source s of a node at `place`; `reduces`: the node is a reduction of the group.
  static PlaceInRow below(UOpRef n, PlaceInRow place, UOpRef s, bool reduces) {
    if (reduces) return ElementOfRow;
    if (place == Elsewhere) return Elsewhere;
    if (has(n->op, Elementwise)) return s->shape == n->shape ? place : Elsewhere;
    if (n->op == Op::Reshape) return place != ElementOfRow && keepsRows(n) ? place : Elsewhere;
    bool alongRows = n->op == Op::Expand && place != ValueOfRow && s->shape.back()->constIndex() == 1 &&
                     s->shape.drop_back() == n->shape.drop_back();
    return alongRows ? ValueOfRow : Elsewhere;
  }

private:
  struct Group {
    Shape shape;
    bool rootIsRow;
  };
  llvm::DenseMap<UOpRef, Group> groups;
};
} // namespace

/// Has the parts of a realized concatenation computed where the whole lies, and copied there where they lie elsewhere
/// (decision 0076): if some are kernels of their own, which nobody else reads, and the others are not so many that
/// their launches count. Gives the parts that get buffers.
static SmallVector<UOpRef, 4> joinInMemory(Fusion &f, UOpRef whole, Concat concat,
                                           const llvm::DenseMap<UOpRef, unsigned> &readers) {
  constexpr size_t mostParts = 32; // with their masks less than a group may hold, so that no inner select is realized
  SmallVector<UOpRef, 4> computed;
  SmallVector<std::pair<UOpRef, Part>, 4> alone;
  size_t own = 0;
  auto isShared = [&](UOpRef n) { return readers.lookup(n) != 1; };
  if (llvm::any_of(concat.inner, isShared)) return {}; // another whole has the same last parts
  for (auto [part, begin, pad] : llvm::zip_equal(concat.parts, concat.begins, concat.pads)) {
    if (isView(part)) continue;
    computed.push_back(part);
    if (isShared(part) || isShared(pad)) continue;
    alone.push_back({part, {whole, concat.axis, begin}});
    own += isEpilogue(part);
  }
  if (!own || concat.parts.size() > std::min(2 * own + 1, mostParts)) return {};
  f.parts.insert(alone.begin(), alone.end());
  f.concats[whole] = std::move(concat);
  return computed;
}

namespace {
/// What is known from deciding before.
struct Known {
  llvm::DenseSet<UOpRef> cut;             // is realized
  llvm::DenseMap<UOpRef, unsigned> again; // what its readers may compute (Note [Reread]) -> in how many groups
};
/// What deciding tells beside the result.
struct Told {
  llvm::DenseMap<UOpRef, unsigned> groupSize; // root -> elementwise nodes of its group
  llvm::DenseMap<UOpRef, SmallVector<UOpRef, 2>>
      spread; // realized because several groups read it, and for nothing else
};
} // namespace

namespace {
/// Which values get buffers, decided from the roots down: a node when all its readers are.
class Decision {
public:
  Decision(Context &c, llvm::ArrayRef<UOpRef> roots, const Known &known, Told &told)
      : c(c), known(known), told(told), order(topoSort(roots)) {
    for (UOpRef n : order) measure(n);
    for (UOpRef r : roots) facts[r].mustRealize = true, ++readers[r];
    for (UOpRef r : known.cut) facts[r].mustRealize = true;
  }
  Fusion run() {
    for (UOpRef n : llvm::reverse(order))
      if (!readsOnly(n)) tellSources(n, decide(n));
    for (UOpRef n : order)
      if (f.realized.count(n)) f.order.push_back(n);
    return std::move(f);
  }

private:
  /// A node that is decided, for what it reads.
  struct Decided {
    SmallVector<UOpRef, 2> groups;
    bool straight, expanded;
    unsigned ways, depth;
    PlaceInRow place;
    bool realize = false;
    bool reduces = false; // in a group of rows
  };
  void measure(UOpRef n);
  bool readsOnly(UOpRef n);
  Decided decide(UOpRef n);
  void decideComputed(UOpRef n, const Facts &x, Decided &d);
  void realize(UOpRef n, Decided &d);
  void tellSources(UOpRef n, const Decided &d);
  void tellSource(UOpRef n, unsigned i, const Decided &d, UOpRef rootOp);
  bool isComputed(UOpRef n) const { return cost.lookup(n) > 0 && !ofIndices.count(n); }

  Context &c;
  const Known &known;
  Told &told;
  std::vector<UOpRef> order;
  Fusion f;
  RowGroups rows;
  llvm::DenseSet<UOpRef> ofBlocks;         // sums that the kernel of a sum over them computes (sumOfBlock)
  llvm::DenseMap<UOpRef, UOpRef> ofReduce; // reductions of rows and arithmetic on their results -> the reduction
  llvm::DenseMap<UOpRef, Facts> facts;
  llvm::DenseMap<UOpRef, unsigned> cost; // of computing one element, stored values and those of root ops free
  llvm::DenseSet<UOpRef> ofIndices;      // read nothing: what says where an element lies, masks of concatenations
  llvm::DenseMap<UOpRef, unsigned> readers;
  llvm::DenseMap<UOpRef, unsigned> needs; // root -> computed values that its group reads and that are not decided yet
};
} // namespace

/// Notes what follows from n and its sources alone.
void Decision::measure(UOpRef n) {
  for (UOpRef s : n->src) ++readers[s];
  if ((info(n->op).traits & (Elementwise | Movement | Leaf)) && !isStored(n) && !n->isIndex() &&
      llvm::all_of(n->src, [&](UOpRef s) { return s->isIndex() || ofIndices.count(s); }))
    ofIndices.insert(n);
  unsigned k = 0;
  if (has(n->op, Elementwise) || n->op == Op::Gather || n->op == Op::Pick) k = costOf(n->op);
  if (!isRootOp(n) && !isStored(n) && !(n->op == Op::Expand && n->src[0]->rank())) // what is small is computed once
    for (UOpRef s : n->src) k = std::min(10000u, k + cost[s]);
  cost[n] = k;
  bool passes = has(n->op, Elementwise) || (n->op == Op::Reshape && keepsRows(n));
  if (isRowReduce(n)) ofReduce[n] = n;
  if (passes)
    for (UOpRef s : n->tensors())
      if (UOpRef r = ofReduce.lookup(s)) ofReduce[n] = r;
}

/// Whether n is no value of a kernel of this graph; then its sources have been told what they need.
bool Decision::readsOnly(UOpRef n) {
  if (n->isIndex() || isControl(n)) { // an extent's count, a control op's operands: they need buffers
    for (auto [i, s] : llvm::enumerate(n->tensors()))
      if (isControl(n) && isReadInBody(n, unsigned(i)))
        facts[s].inBodies = true;
      else if (!isControl(s))
        facts[s].mustRealize = true;
    return true;
  }
  if (const Facts &x = facts[n]; x.inBodies && !x.mustRealize && x.groups.empty()) { // nobody else reads it
    for (UOpRef s : llvm::to_vector<1>(n->tensors())) facts[s].inBodies = true;
    return true;
  }
  if (n->op == Op::After) { // it lies where its source does; what comes before it must have been computed
    if (!isStored(n->src[0])) facts[n->src[0]].mustRealize = true;
    for (UOpRef s : n->tensors().drop_front())
      if (!isView(s)) facts[baseOf(s)].mustRealize = true;
    return true;
  }
  return false;
}

/// Whether a computed value gets a buffer, or which group computes it and how.
void Decision::decideComputed(UOpRef n, const Facts &x, Decided &d) {
  UOpRef group = x.groups.size() == 1 ? x.groups[0] : nullptr;
  bool hasRootOp = group && f.rootOp.count(group);
  bool must = x.mustRealize || x.groups.empty() || x.depth >= mostDepth;
  bool absorb = group && !must &&
                ((n->op != Op::Cumulate && rows.absorb(n, d.place, group, hasRootOp)) ||
                 (x.straight && !hasRootOp && (group->op != Op::Pad || n->op == Op::Contract) && hasLanes(c, n)));
  d.reduces = absorb && rows.contains(group);
  absorb |= group && !must && ofBlocks.contains(n) && x.ways() == 1;
  UOpRef below = d.place == ValueOfRow && !hasRootOp ? ofReduce.lookup(n) : nullptr; // which the group may take
  bool once = group && ((below && below->src[0]->shape == group->shape) ||
                        (rows.contains(group) && (d.place == ValueOfRow || d.place == ElementOfRow)));
  bool isFree = ofIndices.count(n) && cost[n] < threshold::recomputeCap;
  bool spread = x.groups.size() > 1 &&
                (cost[n] > threshold::recomputeCap || (x.groups.size() > threshold::fewGroups && !isFree)) &&
                x.groups.size() > known.again.lookup(n);
  bool dear = (x.expanded && cost[n] > threshold::expandCap) ||
              (x.ways() > 1 && cost[n] * (x.ways() - 1) > threshold::recomputeCap);
  unsigned size = x.groups.empty() ? 0 : told.groupSize[x.groups[0]];
  bool full = has(n->op, Elementwise) &&
              (size >= mostOfGroup ||
               (size >= threshold::groupCap && cost[n] > threshold::recomputeCap && needs[x.groups[0]] == 1));
  // Movement costs an address wherever it is; what it moves is decided below it.
  bool other = must || (isRootOp(n) && !absorb) || (dear && !once && !has(n->op, Movement)) || full ||
               n->op == Op::UpdateAt || n->op == Op::Scatter;
  d.realize = other || (spread && !once && !has(n->op, Movement));
  if (d.realize && !other) told.spread[n] = x.groups;
  if (!d.realize && isRootOp(n)) f.rootOp.try_emplace(x.groups[0], n);
}

/// Gives n a buffer and a group of its own.
void Decision::realize(UOpRef n, Decided &d) {
  f.realized.insert(n);
  d.groups = {n};
  d.ways = 1;
  d.depth = 0;
  d.straight = true;
  d.expanded = false;
  d.place = has(n->op, Elementwise) ? Root : Elsewhere;
  d.reduces = rows.absorb(n, Root, n, false);
  if (isRootOp(n)) f.rootOp[n] = n;
  if (auto concat = concatOf(c, n))
    for (UOpRef part : joinInMemory(f, n, std::move(*concat), readers)) facts[part].mustRealize = true;
}

Decision::Decided Decision::decide(UOpRef n) {
  const Facts &x = facts[n];
  Decided d{x.groups, x.straight, x.expanded, x.ways(), x.depth, rows.placeOf(n, x)};
  if (!isStored(n) && n->op != Op::Const && n->op != Op::FromIndex && n->op != Op::Iota)
    decideComputed(n, x, d);
  else
    d.realize = x.mustRealize && n->op != Op::Proj && !isStored(n); // a constant or an iota that is an output
  for (UOpRef g : d.groups) needs[g] -= isComputed(n);
  if (d.realize)
    realize(n, d);
  else if (d.reduces)
    d.ways = 1, d.expanded = false;
  if (has(n->op, Elementwise))
    for (UOpRef g : d.groups) ++told.groupSize[g];
  return d;
}

/// Tells the sources of n who reads them.
void Decision::tellSources(UOpRef n, const Decided &d) {
  UOpRef rootOp = d.groups.size() == 1 ? f.rootOp.lookup(d.groups[0]) : nullptr;
  for (unsigned i = 0; i < n->src.size(); ++i)
    if (!n->src[i]->isIndex() && !isControl(n->src[i])) tellSource(n, i, d, rootOp);
}

void Decision::tellSource(UOpRef n, unsigned i, const Decided &d, UOpRef rootOp) {
  UOpRef s = n->src[i];
  Facts &y = facts[s];
  ++y.uses;
  y.depth = std::max(y.depth, d.depth + 1);
  y.places |= RowGroups::below(n, d.place, s, d.reduces);
  for (UOpRef g : d.groups)
    if (y.groups.size() <= manyGroups && !llvm::is_contained(y.groups, g)) {
      y.groups.push_back(g);
      needs[g] += isComputed(s);
    }
  bool epilogue = has(n->op, Elementwise) ? s->shape == n->shape : d.realize && n->op == Op::Pad;
  bool passes = epilogue && d.straight && d.groups.size() == 1 && rootOp != n;
  y.straight = passes && (y.uses == 1 || y.straight);
  if (has(n->op, Elementwise))
    y.inPlace = std::max(y.inPlace, d.ways);
  else
    y.moved = std::min(y.moved + d.ways, 1000u);
  // An index into rows, for each row anew, by lanes that have one each.
  bool repeats = n->op == Op::Gather && i == 1 && n->ints[0] > 0 && n->ints[0] + 1 == int64_t(n->src[0]->rank());
  y.expanded |= d.expanded || repeats || n->op == Op::Window || (n->op == Op::Expand && s->rank());
  if ((n->op == Op::UpdateAt || n->op == Op::Scatter) && i == 0) y.mustRealize = true;
  bool random = (n->op == Op::Gather || n->op == Op::Pick || n->op == Op::SliceAt) && i == 0;
  UOpRef block = n->op == Op::Contract && rootOp == n && readers.lookup(s) == 1 ? sumOfBlock(n) : nullptr;
  if (block && readers.lookup(block) == 1) ofBlocks.insert(block);
  bool inMemory = (n->op == Op::Contract && !(block && ofBlocks.contains(block))) || n->op == Op::Cumulate ||
                  (n->op == Op::Words && !isPacked(n)) || random;
  if (inMemory && !isView(s) &&
      !(n->op == Op::Contract && (computesOperand(n, i) || (addsOnce(n, i) && cost[s] <= threshold::rereadCap))))
    facts[baseOf(s)].mustRealize = true;
}

/// Adds to `cut` where the group of `root` reads too many buffers: from the inputs up, each elementwise node by which
/// `pieceInputs` have come together.
static void cutGroup(const Fusion &f, UOpRef root, llvm::DenseSet<UOpRef> &cut) {
  auto isInput = [&](UOpRef n) { return isStored(n) || (n != root && f.realized.count(n)); };
  std::vector<UOpRef> group; // sources first
  llvm::DenseSet<UOpRef> seen;
  unsigned inputs = 0;
  std::vector<std::pair<UOpRef, unsigned>> stack{{root, 0}};
  seen.insert(root);
  while (!stack.empty()) {
    auto &[n, next] = stack.back();
    if (isInput(n) || next == n->src.size()) {
      inputs += isInput(n);
      group.push_back(n);
      stack.pop_back();
      continue;
    }
    UOpRef s = n->src[next++];
    if (!s->isIndex() && !isControl(s) && seen.insert(s).second) stack.push_back({s, 0});
  }
  if (inputs <= mostInputs) return;
  llvm::DenseMap<UOpRef, unsigned> below; // inputs, shared ones more than once
  for (UOpRef n : group) {
    unsigned k = isInput(n);
    if (!k)
      for (UOpRef s : n->src) k = std::min(k + below.lookup(s), 10000u);
    if (n != root && k >= threshold::pieceInputs && has(n->op, Elementwise)) cut.insert(n), k = 1;
    below[n] = k;
  }
}

/// Adds n and what it is made of to `again` where these groups, its readers', may compute it (Note [Reread]). A sum
/// that n repeats is a kernel of its own then.
static void computeAgain(const Fusion &f, UOpRef n, llvm::ArrayRef<UOpRef> groups,
                         llvm::DenseMap<UOpRef, unsigned> &again) {
  auto isContract = [&](UOpRef g) { return f.rootOp.count(g) && f.rootOp.lookup(g)->op == Op::Contract; };
  unsigned cost = 0,
           cap = groups.size() == 2 && llvm::none_of(groups, isContract) ? threshold::twiceCap : threshold::rereadCap;
  UOpRef source = nullptr;
  SmallVector<std::pair<UOpRef, bool>, 32> stack{{n, false}}; // with whether it is small
  llvm::DenseSet<UOpRef> seen[2];
  while (!stack.empty()) {
    auto [x, isSmall] = stack.pop_back_val();
    if (x->isIndex() || !seen[isSmall].insert(x).second) continue;
    bool lies = isStored(x) || (x != n && f.realized.contains(x) && !again.count(x));
    if (lies && !isSmall && source && source != x) return;
    if (lies && !isSmall) source = x;
    if (lies || has(x->op, Leaf)) continue;
    if (has(x->op, Elementwise) && !isSmall) cost += costOf(x->op);
    bool repeats = x->op == Op::Expand && x->src[0]->rank(), sums = isSmall && x->op == Op::Reduce;
    if (!has(x->op, Elementwise) && !repeats && !sums && x->op != Op::Reshape && x->op != Op::Permute) return;
    if (sums) cap = threshold::rereadCap;
    if (cost > cap || seen[isSmall].size() > threshold::groupCap) return;
    for (UOpRef s : x->tensors()) stack.push_back({s, (isSmall && !sums) || repeats});
  }
  if (!source || byteSize(n->dtype) < byteSize(source->dtype)) return;
  for (UOpRef x : seen[false])
    if (x != source) again.try_emplace(x, cost > threshold::rereadCap ? 2 : manyGroups);
}

Fusion astra::fuse(Context &c, llvm::ArrayRef<UOpRef> roots) {
  Known known;
  for (bool isFirst = true;; isFirst = false) {
    Told told;
    Fusion f = Decision(c, roots, known, told).run();
    size_t before = known.cut.size() + known.again.size();
    for (UOpRef r : f.order) {
      if (told.groupSize.lookup(r) * 2 >= mostInputs && !f.concats.count(r)) // an elementwise node has three sources
        cutGroup(f, r, known.cut);
      if (auto groups = told.spread.find(r); isFirst && groups != told.spread.end())
        computeAgain(f, r, groups->second, known.again);
    }
    if (known.cut.size() + known.again.size() == before) return f;
  }
}
