//===- ChoosePlan.cpp: choosing plans ---------------------------------------===//
// Takes:    a kernel's graph and a target.
// Gives:    a plan, by trying the lowering under a few candidates and counting what would be slow. ContractPlan.cpp
//           chooses those of contracts, StridedPlan.cpp those with strided access.
// Keeps:    determinism: no measurement, no randomness.
#include "Choosing.h"
#include "Rows.h"
#include "astra/Codegen/Lower.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;

/// Bytes of what lanes hold: the result's, or a reduction's own where they are less, as of places of minima and maxima.
static unsigned laneBytes(const KernelSpec &spec) {
  unsigned bytes = std::max(1u, byteSize(storedPoints(spec)->dtype));
  bool reduces = spec.rootOp && spec.rootOp->op == Op::Reduce;
  return reduces ? std::min(bytes, std::max(1u, byteSize(spec.rootOp->dtype))) : bytes;
}

/// The price of an address of which each lane computes a part by itself: a gather. In a map little where that leads to
/// neighbours and every vector takes the same part of its lines, and less the fewer lanes there are (60,000 elements in
/// lines of 3, u8 for x86-64-v3, four vectors of 32 at once: 4.5 to 8 ns a vector; lines of 4: 1.2).
static unsigned gatherCost(const IndexTerm &term, UOpRef part, const Plan &p) {
  constexpr unsigned gather = 16;
  if (p.kind != PlanKind::Map || term.atoms.size() > 1 || term.coefficient != 1) return gather;
  for (UOpRef n : topoSort(part)) {
    if (n->op != Op::FloorDiv && n->op != Op::Mod) continue;
    auto by = n->src[1]->constIndex();
    if (!by || *by < 1 || p.lanes % *by) return p.lanes + p.lanes / 4;
  }
  return p.lanes / 4;
}

unsigned astra::addressCost(Context &c, const KernelSpec &spec, const Plan &plan) {
  Kernel k = lowerKernel(c, spec, plan);
  if (k.sink->src.empty()) return 0; // no element to store
  unsigned cost = 0;
  for (UOpRef n : topoSort(k.sink->src[0])) {
    if (n->op == Op::FloorDiv || n->op == Op::Mod) ++cost;
    if (n->op != Op::Load && n->op != Op::Store) continue;
    for (const IndexTerm &t : terms(n->indices()[0]))
      for (UOpRef a : t.atoms) {
        bool lane = a->op == Op::Range && RangeKind(a->ints[1]) == RangeKind::Vector;
        bool backwards = t.atoms.size() == 1 && t.coefficient == -1; // a vector, turned
        if (lane && (t.atoms.size() > 1 || t.coefficient != 1)) cost += backwards ? 2 : 16;
        if (!lane && a->op != Op::Range && a->op != Op::Dim && llvm::any_of(topoSort(a), isLane))
          cost += gatherCost(t, a, plan);
      }
  }
  return cost;
}

/// Lanes of a line whose last vector begins earlier; 0: it is masked, or its last elements come one after another. Of
/// elements that no mask is for, a vector of less than this many bytes is not worth it.
static unsigned movingLanes(const Target &target, UOpRef line, unsigned width, unsigned bytes) {
  constexpr unsigned leastBytes = 16;
  unsigned lanes = lanesThatMove(target, line, width);
  return bytes < target.maskedBytes && lanes * bytes < leastBytes ? 0 : lanes;
}

/// What a line shorter than a vector costs in addressCost's measure, beside whole vectors over several lines: of a map
/// its steps, one for each last element where nothing masks it or begins earlier, for so much less than a vector.
static unsigned tailWaste(const Target &target, UOpRef line, const Plan &p, unsigned width, unsigned bytes,
                          unsigned ops) {
  constexpr unsigned step = 3, opsOfStep = 4, flat = 16;
  if (p.lanes >= width) return 0;
  if (p.kind != PlanKind::Map) return flat;
  int64_t n = std::max<int64_t>(line->hi, 1), rest = n % p.lanes;
  bool finishes = bytes >= target.maskedBytes || movingLanes(target, line, width, bytes);
  int64_t steps = n / p.lanes + (finishes ? rest != 0 : rest);
  return (1 + ops / opsOfStep) * step * (steps * width - n) / n;
}

/// Whether the lanes lie side by side in all that is read, in either direction, or at every other element.
static bool readsRuns(Context &c, const KernelSpec &spec, const Plan &plan) {
  Kernel k = lowerKernel(c, spec, plan);
  for (UOpRef n : topoSort(k.sink)) {
    if (n->op != Op::Load) continue;
    for (const IndexTerm &t : terms(n->src.back())) {
      bool alone = t.atoms.size() == 1 && isLane(t.atoms[0]);
      if (alone ? t.coefficient != 1 && t.coefficient != 2 && t.coefficient != -1
                : llvm::any_of(topoSort(t.atoms), isLane))
        return false;
    }
  }
  return true;
}

static constexpr unsigned mostStatements = 512; // of a step

/// About how many statements of whole vectors one of a plan's steps is, which a C compiler's time grows with: a
/// quotient of integers is one for each lane, a float of two bytes or less is made of some (the least of columns of i8
/// by a modulus, 1024 at once: 44 s).
static unsigned statements(Context &c, const KernelSpec &spec, const Plan &plan, const Target &target) {
  constexpr unsigned ofSmallFloat = 8;
  Kernel k = lowerKernel(c, spec, plan);
  unsigned count = 0;
  for (UOpRef n : topoSort(k.sink)) {
    if (!has(n->op, Elementwise) || n->isIndex()) continue;
    unsigned vectors = llvm::divideCeil(plan.lanes * std::max(1u, byteSize(n->dtype)), target.vectorBytes);
    bool divides = (n->op == Op::FloorDiv || n->op == Op::Mod) && !isFloat(n->dtype);
    auto isSmall = [](DType t) { return isFloat(t) && byteSize(t) < 4; };
    bool converts = n->op == Op::Cast && (isSmall(n->dtype) || isSmall(n->src[0]->dtype));
    count += divides ? plan.lanes : converts ? ofSmallFloat * vectors : vectors;
  }
  return count;
}

/// Whether a load is gated lane by lane. Where the lanes' places are numbers, so is the gate of most vectors.
static bool gatesLanes(Context &c, const KernelSpec &spec, const Plan &plan) {
  Kernel k = lowerKernel(c, spec, plan);
  return llvm::any_of(topoSort(k.sink), [](UOpRef n) {
    return n->op == Op::Load && n->src.size() == 3 && llvm::any_of(topoSort(n->src[1]), isLane);
  });
}

/// Whether lanes are read backwards.
static bool readsBackwards(Context &c, const KernelSpec &spec, const Plan &plan) {
  return llvm::any_of(laneSteps(c, spec, plan), [](const LaneStep &s) { return s.elements == -1; });
}

/// Whether what is read lies at quotients or remainders, as along some of the dims that are merged.
static bool divides(Context &c, const KernelSpec &spec, const Plan &plan) {
  Kernel k = lowerKernel(c, spec, plan);
  return llvm::any_of(topoSort(k.sink), [](UOpRef n) {
    return n->op == Op::Load && llvm::any_of(topoSort({n->src.back()}), [](UOpRef i) {
             return i->isIndex() && (i->op == Op::FloorDiv || i->op == Op::Mod);
           });
  });
}

static constexpr int64_t fewestLines = 16; // that are many

/// Lines that are short and many are items: each is one place to compute where it lies, and has no scalar end. Where
/// vectors are narrow the last one begins earlier (a padded copy of 576 images of 14 x 14, lines of 15, for x86-64-v3:
/// 51 and 18 us).
static void chooseTail(Context &c, const KernelSpec &spec, const Target &target, llvm::ArrayRef<UOpRef> extents,
                       Plan &p) {
  constexpr unsigned together = 8, all = 64; // vectors at once, of a map: sums want registers; of a line that is gated
  const int64_t most = p.kind == PlanKind::Map ? 256 : 64; // vectors of a line
  unsigned bytes = laneBytes(spec), width = std::max(1u, target.vectorBytes / bytes);
  UOpRef n = idxProduct(c, extents.take_back(p.merge)), lines = idxProduct(c, extents.drop_back(p.merge));
  if (!*target.name || storedPoints(spec) != spec.outputs[0].value || p.block) return; // a thread of a GPU has none
  if (n->hi < 2 || n->hi > most * width || lines->lo < fewestLines) return;
  Plan line = p;
  line.tail = tailMasked;
  line.lanes = std::min<uint64_t>(width, llvm::PowerOf2Ceil(n->hi));
  bool whole = n->isConst() && n->hi % line.lanes == 0;
  unsigned lanes = movingLanes(target, n, width, bytes);
  unsigned left = lanes && n->isConst() ? n->hi % lanes : ~0u;
  if (!whole && lanes && (left == 1 || !spec.inPlace))
    line.lanes = lanes, line.tail = left == 1 ? tailMasked : tailOverlapped;
  else if (!whole && bytes < target.maskedBytes)
    return;
  unsigned vectors = llvm::divideCeil(n->hi, line.lanes);
  line.unroll = p.unroll > 1 ? p.unroll : std::min(vectors, p.kind == PlanKind::Map ? together : together / 2);
  if (!readsRuns(c, spec, line)) return;
  p = line;
  // Elements that no mask is for are gated one by one, in as few and as short vectors as can be (u8 1000 x 1000, padded
  // to 1002 x 1003, for x86-64-v3: 157 us, all vectors of 32 at once 89, of 16 56).
  if (bytes >= target.maskedBytes || p.kind != PlanKind::Map || !n->isConst() || !gatesLanes(c, spec, p)) return;
  while (p.lanes * bytes > 16 && n->hi <= int64_t(all * p.lanes / 2)) p.lanes /= 2;
  unsigned here = llvm::divideCeil(n->hi, p.lanes);
  if (here <= all && here * statements(c, spec, p, target) <= 4 * mostStatements) p.unroll = here;
}

/// Sums over windows, by columns: a window's place is computed once for a line of the innermost dim, where that is some
/// vectors (max pooling of 64 channels, 112 x 112: 0.34 and 0.17 ms; 96 channels by themselves there, every other
/// place: 0.34 and 0.26).
static Plan chooseWindows(Context &c, const KernelSpec &spec, const Target &target, llvm::ArrayRef<UOpRef> extents,
                          Plan p) {
  unsigned width = std::max(1u, target.vectorBytes / laneBytes(spec));
  Plan line = p;
  line.merge = 1;
  if (extents.back()->lo >= int64_t(2 * width)) chooseTail(c, spec, target, extents, line);
  if (line.tail) return line;
  chooseTail(c, spec, target, extents, p);
  return p;
}

/// Lanes of a row's reduction; of few elements, where `n` of them are known, about a third of them, since the last
/// vector is masked and folded as a whole; of less than eight one, for several rows are what a C compiler makes vectors
/// of (20,000 rows for x86-64-v4, sums of 2 to 6 floats 0.12 to 0.42 of the time, of 10 to 24 0.58 to 0.69).
static unsigned rowLanes(const KernelSpec &spec, const Target &target, UOpRef n) {
  constexpr unsigned least = 4, part = 3;
  unsigned lanes = std::min(std::max(1u, target.vectorBytes / std::max(1u, byteSize(spec.rootOp->dtype))), mostLanes);
  if (!*target.name || !n || !n->isConst() || n->hi >= int64_t(part * lanes)) return lanes;
  if (n->hi < fewByLanes) return 1;
  return std::min(lanes, std::max<unsigned>(least, llvm::bit_floor<uint64_t>(n->hi / part)));
}

/// How many nodes the addresses of a lowering take that are computed for each lane by itself: the code has them once
/// for every lane of a step.
static unsigned perLane(Context &c, const KernelSpec &spec, const Plan &plan) {
  Kernel k = lowerKernel(c, spec, plan);
  if (k.sink->src.empty()) return 0;
  std::vector<UOpRef> addresses;
  for (UOpRef n : topoSort(k.sink->src[0]))
    if (n->op == Op::Load)
      for (const IndexTerm &t : terms(n->src.back())) addresses.insert(addresses.end(), t.atoms.begin(), t.atoms.end());
  unsigned count = 0;
  llvm::SmallPtrSet<UOpRef, 32> varies; // with the lane
  for (UOpRef n : topoSort(addresses)) {
    bool lane = n->op == Op::Range && RangeKind(n->ints[1]) == RangeKind::Vector;
    if (!lane && llvm::none_of(n->src, [&](UOpRef s) { return varies.contains(s); })) continue;
    varies.insert(n);
    count += !lane && !n->isConst();
  }
  return count;
}

/// Whether the kernel reads at places that it computes from what it reads: then it does not read all of its inputs.
static bool readsByIndices(Context &c, const KernelSpec &spec, const Plan &plan) {
  Kernel k = lowerKernel(c, spec, plan);
  return llvm::any_of(topoSort(k.sink), [](UOpRef n) { return n->op == Op::Extent; });
}

/// Columns whose rows are read in the order of memory: an item is a whole row if that is some vectors, or a page of it.
/// Where no cache holds what is read all 64 lanes of a sum rest after each step, as no prefetcher follows rows 64 apart
/// (floats for x86-64-v4: 100,000 x 64 1.84 and 1.06 ms, 16384 x 1024 5.77 and 3.13, 4096 x 4096 4.36 and 3.56; for
/// x86-64-v3 1.78 and 1.37, 5.75 and 2.92, 5.04 and 3.25; not so of rows of more pages, 512 x 50,257 5.7 and 6.6, nor
/// of a few hundred). Where one does, lanes that stay in registers are faster. Minima, maxima and sums of integers have
/// no lanes: rows go side by side there too, if they are a few lines (maxima of 100,000 x 64 5.0 and 0.8 ms, of 16384 x
/// 1024 6.8 and 2.4, of 10,000 x 64 88 and 27 us). From memory as long as there are items for some threads.
static bool chooseInOrder(Context &c, const KernelSpec &spec, const Target &target, llvm::ArrayRef<UOpRef> extents,
                          unsigned ops, Plan &p) {
  constexpr int64_t nearBytes = 256, together = 4, most = 64, worth = 256, manyRows = 1024, items = 4;
  ReduceSpec r = llvm::cantFail(decodeReduce(spec.rootOp->ints));
  unsigned inside = spec.rootOp->src[0]->rank() - 1 - r.axes[0];
  auto length = spec.rootOp->src[0]->shape[r.axes[0]]->constIndex();
  Plan order = p;
  order.merge = std::clamp(inside, 1u, p.merge);
  UOpRef n = idxProduct(c, extents.take_back(order.merge)), lines = idxProduct(c, extents.drop_back(order.merge));
  int64_t bytes = std::max(laneBytes(spec), byteSize(spec.rootOp->dtype)), width = target.vectorBytes / bytes;
  if (!*target.name || !n->isConst() || !length || *length < worth || width < 2) return false;
  bool sums = r.order == ReduceOrder::Lane64, far = readBytes(spec) > target.l3Bytes;
  int64_t vectors = llvm::divideCeil(n->hi, width);
  order.lanes = std::min<uint64_t>(width, llvm::PowerOf2Ceil(n->hi));
  order.unroll = 1;
  if (sums) order.kc = 64;
  if (!far && (sums || ops || lines->lo >= fewestLines)) return false; // chooseTail
  int64_t all = statements(c, spec, order, target);
  if (vectors <= (far ? most : nearBytes / target.vectorBytes) && vectors * all <= mostStatements) {
    if (far && lines->lo < items) return false;
    if (bytes < target.maskedBytes && n->hi % order.lanes) return false;
    order.unroll = vectors;
    order.tail = tailMasked;
  } else {
    order.unroll = together;
    order.block = pageBytes / (together * width * bytes);
    bool isPage = n->hi * bytes <= 4 * pageBytes && *length >= manyRows && laneBytes(spec) >= 4;
    if (!sums || !isPage || lines->lo * (n->hi * bytes / pageBytes) < items) return false;
  }
  llvm::Error e = checkForm(spec, order);
  bool can = !e && readsRuns(c, spec, order) && !readsByIndices(c, spec, order);
  llvm::consumeError(std::move(e));
  if (can) p = order;
  return can;
}

/// Columns for a reduction along an outer axis: rows of many, far apart, of which each item takes a part of so many
/// bytes. Less than a few lines of each, and no prefetcher of a CPU follows. Where a vector is a line, as many as eight
/// rows have sums in registers, or four times that if memory is the bound (x86-64-v4, parts of 512 bytes and of these:
/// 2048 x 768 floats 158 and 109 us, 1000 x 1000 90 and 64; 4096 x 4096 6.0 and 5.0 ms). Else, of rows of a page and
/// more of which little is computed, twice as much, lines at once, and of what no L2 holds rows are asked for
/// ahead (4096 x 4096 and 16384 x 1024 floats, for x86-64-v3: sums 8.8 and 7.8, 13.5 and 10.3 ms, maxima 9.7 and 8.5,
/// 14.0 and 9.7; not so of shorter rows, sums of a batch norm's gradient 2.1 and 3.3).
static void chooseColumns(Context &c, const KernelSpec &spec, const Target &target, llvm::ArrayRef<UOpRef> extents,
                          unsigned ops, Plan &p) {
  constexpr unsigned rowsAhead = 8, little = 8;
  unsigned partBytes = 512, bytes = laneBytes(spec), width = std::max(1u, target.vectorBytes / bytes);
  UOpRef n = idxProduct(c, extents.take_back(p.merge));
  if (chooseInOrder(c, spec, target, extents, ops, p)) return;
  uint64_t rowBytes = llvm::SaturatingMultiply<uint64_t>(std::max<int64_t>(extents.back()->lo, 0), bytes);
  bool simple = p.lanes == width && bytes >= 4 && ops <= little && 2 * target.vectorBytes == lineBytes;
  if (storesLines(target)) partBytes = readBytes(spec) > target.l3Bytes ? 1024 : 256;
  if (simple && rowBytes >= pageBytes * 3 / 4 && readBytes(spec) > target.l2Bytes) p.prefetch = rowsAhead;
  if (simple && rowBytes >= pageBytes) partBytes *= 2, p.lanes *= 2;
  unsigned wide = std::max(1u, partBytes / (p.lanes * bytes)), all = statements(c, spec, p, target);
  auto few = [&] { return p.lanes < width || n->lo < int64_t(4 * wide * p.lanes); }; // items for the threads
  while (wide > 1 && (few() || wide * all > mostStatements)) wide /= 2;
  p.unroll = wide;
  chooseTail(c, spec, target, extents, p);
}

/// A reduction: by rows where that costs no more than `least`, what columns `p` cost, in addressCost's measure;
/// windows; or columns.
static Plan chooseReduce(Context &c, const KernelSpec &spec, const Target &target, llvm::ArrayRef<UOpRef> extents,
                         Plan p, unsigned least, unsigned ops) {
  constexpr int64_t many = 32; // elements of what is no window
  ReduceSpec r = llvm::cantFail(decodeReduce(spec.rootOp->ints));
  UOpRef length = spec.rootOp->src[0]->shape[r.axes[0]];
  bool exact = r.order == ReduceOrder::Exact;
  // Of floats columns are faster (20,000 rows of 8 to 12 floats 2 to 3 times), and what is computed is computed once.
  bool isRow = exact && r.axes.size() == 1 && length->hi >= (isFloat(spec.rootOp->dtype) || ops ? many : fewByLanes);
  Plan rows;
  rows.kind = PlanKind::Rows;
  rows.merge = extents.size();
  rows.lanes = rowLanes(spec, target, nullptr);
  if ((isRow || r.order == ReduceOrder::Lane64) && addressCost(c, spec, rows) <= least) {
    rows.lanes = rowLanes(spec, target, length);
    return rows;
  }
  if (r.order == ReduceOrder::Lane64 || (isRow && length->hi >= many)) {
    chooseColumns(c, spec, target, extents, ops, p);
    return p;
  }
  Plan windows = chooseWindows(c, spec, target, extents, p);
  // Rows of a few elements: one row after another, of which a C compiler makes vectors (u8[20000, 4] 11.7 and 2.2 us),
  // but of halves.
  bool isInput = llvm::any_of(spec.inputs, [&](const Placed &in) { return in.value == spec.rootOp->src[0]; });
  bool isFew = isInput && r.axes.size() == 1 && length->isConst() && length->hi < fewByLanes &&
               !(isFloat(spec.rootOp->dtype) && byteSize(spec.rootOp->dtype) < 4);
  if (*target.name && !windows.tail && least >= 16 && isFew) windows.lanes = windows.unroll = 1;
  return windows;
}

/// Many rows of a few elements, all of which are written: an element a lane, which computes what it needs of its row,
/// in place of vectors that are mostly empty (300,000 floats for x86-64-v4 and v3, softmax over 2 1422 and 314, 1983
/// and 479 us, over 4 1007 and 529, 1298 and 844, a norm over 4 333 and 98, 469 and 120; a softmax over 8 674 and 812,
/// 361 and 1327). Not of whole numbers, of which a C compiler makes better code (i16, rows of 4, 422 and 80 us), nor of
/// gathers, of many inputs or of dear functions, which each lane would have for all of its row (three gathers, rows of
/// 4: 5.9 and 1.3 ms).
static bool chooseShortRows(Context &c, const KernelSpec &spec, const Target &target, unsigned ops, Plan &p) {
  constexpr int64_t most = 4, manySteps = 16;
  const Placed &out = spec.outputs[0];
  const unsigned fewInputs = 4, fewOps = byteSize(out.value->dtype) > 4 ? 16 : 48; // of f64 functions are dear
  UOpRef n = out.value->shape.back(), all = elementCount(c, out.layout, out.value->shape);
  int64_t width = target.vectorBytes / std::max(1u, byteSize(spec.rootOp->dtype));
  bool isPlain = *target.name && !spec.follows && spec.followers.empty() && out.layout.isRowMajor() &&
                 isFloat(out.value->dtype) && byteSize(out.value->dtype) >= 4;
  bool isShort = n->isConst() && n->hi >= 2 && n->hi <= most && 2 * n->hi <= width;
  bool isLittle = spec.inputs.size() <= fewInputs && (n->hi * n->hi <= width || ops <= fewOps);
  if (!isPlain || !isShort || !isLittle) return false;
  Plan elements;
  elements.kind = PlanKind::Columns;
  elements.merge = out.value->rank();
  elements.lanes = std::min(unsigned(2 * width), mostLanes);
  if (all->lo < manySteps * elements.lanes || statements(c, spec, elements, target) > mostStatements ||
      readsByIndices(c, spec, elements))
    return false;
  if (llvm::Error e = checkForm(spec, elements)) {
    llvm::consumeError(std::move(e));
    return false;
  }
  p = elements;
  return true;
}

/// How many rows go through a kernel and its followers at a time: what passes between them fits a part of the second
/// cache, and yet as many as pay for the operands that each tile of them reads anew (2048 keys of 64, 12 heads: tiles
/// of the 8 rows that fit 285 ms, of 16 270, of 32 242, of 64 239); several items; as few tiles that are not whole as
/// can be.
static void chooseBlock(Context &c, const KernelSpec &spec, const Target &target, Plan &p) {
  constexpr int64_t least = 8, worth = 32, large = int64_t(1) << 20;
  Shape shape = spec.outputs[0].value->shape;
  UOpRef rows = shape[shape.size() - 2];
  unsigned last = choosePlan(c, spec.followers.back().spec, target).mr;
  int64_t fit = target.l2Bytes / 4 / passedBytes(spec), most = fit < worth ? worth * 3 / 2 : fit,
          all = std::min(rows->hi, large);
  for (UOpRef e : shape.drop_back(2)) all = std::min(all * std::clamp<int64_t>(e->lo, 1, large), large);
  most =
      std::clamp(std::min(most, all / target.cores), least, std::min<int64_t>(std::max(rows->hi, least), mostNumber));
  auto tiles = [&](int64_t n) { return llvm::divideCeil(n, p.mr) + llvm::divideCeil(n, last); };
  auto n = rows->constIndex();
  double fewest = 1e18;
  for (int64_t r = most, low = std::max(most / 2, most < worth ? least : worth * 3 / 4); r >= low; --r) {
    // what is left of the rows is code of its own
    double count =
        n ? double(*n / r * tiles(r)) + (*n % r ? double(tiles(*n % r)) + 0.5 : 0) : double(tiles(r)) / double(r);
    if (count < fewest) fewest = count, p.block = r;
  }
}

/// Lanes along what lies inside of the serial axis of a running sum or scatter, where they are neighbours all the way.
static void chooseSerial(Context &c, const KernelSpec &spec, int64_t serial, unsigned w, Plan &p) {
  constexpr unsigned mostTogether = 8;
  const Placed &out = spec.outputs[0];
  unsigned rank = out.layout.dims.size();
  auto extents = memoryExtents(c, out.layout, storedPoints(spec)->shape);
  UOpRef inner = c.index(1);
  for (p.merge = 0; out.layout.dims[rank - 1 - p.merge].axis != serial; ++p.merge)
    inner = idxMul(c, inner, extents[rank - 1 - p.merge]);
  p.lanes = std::min<uint64_t>(w, llvm::bit_floor<uint64_t>(std::max<int64_t>(inner->hi, 1)));
  p.merge = std::max(p.merge, 1u);
  if (p.lanes > 1 && addressCost(c, spec, p) >= 16) p.lanes = 1;
  // Several vectors hide the latency of what runs, and read more of each line, where items are left.
  UOpRef outer = c.index(1);
  for (unsigned d = 0; d + p.merge + 1 < rank; ++d) outer = idxMul(c, outer, extents[d]);
  p.unroll = p.lanes == w ? mostTogether : 1;
  while (p.unroll > 1 && idxMul(c, inner, outer)->lo < int64_t(4 * p.unroll * p.lanes)) p.unroll /= 2;
}

/// Several vectors a step where the last pass over a row is short.
static void chooseRows(const KernelSpec &spec, const Target &target, unsigned ops, Plan &p) {
  p.kind = PlanKind::Rows;
  p.merge = spec.outputs[0].layout.dims.size();
  p.lanes = std::min(std::max(1u, target.vectorBytes / std::max(1u, byteSize(spec.rootOp->dtype))), mostLanes);
  p.unroll = ops <= 16 ? 4 : ops <= 64 ? 2 : 1;
  // A row comes from memory while the one before is computed: its passes would wait for it one after another, and no
  // prefetcher of a CPU goes beyond a page (2048 rows, layer norm of 4096: 3.78 and 3.33 ms; not so of 4096 rows of
  // 1024, which the L3 may hold, 1.93 and 2.19).
  if (*target.name && !spec.follows && readBytes(spec) > target.l3Bytes) p.prefetch = 1;
}

/// How many inner dims are one loop, and the lanes in it, by what addresses and tails cost. Gives that cost.
static unsigned chooseMerged(Context &c, const KernelSpec &spec, const Target &target, unsigned w, unsigned ops,
                             Plan &p) {
  const Placed &out = spec.outputs[0];
  unsigned rank = out.layout.dims.size(), bytes = laneBytes(spec), least = ~0u;
  auto extents = memoryExtents(c, out.layout, storedPoints(spec)->shape);
  // Differs from `extents` where a window or a part is written.
  auto whole = memoryExtents(c, out.layout, out.begin.empty() ? out.value->shape : Shape(out.allocated));
  Plan chosen = p;
  UOpRef inner = c.index(1);
  for (unsigned k = 1; k <= rank; ++k) {
    if (k > 1 && extents[rank - k + 1] != whole[rank - k + 1]) break; // its rows are not neighbours
    inner = idxMul(c, extents[rank - k], inner);
    p.merge = k;
    p.lanes = std::min<uint64_t>(w, llvm::bit_floor<uint64_t>(std::max<int64_t>(inner->hi, 1)));
    p.unroll = 1;
    unsigned cost = addressCost(c, spec, p) + tailWaste(target, inner, p, w, bytes, ops);
    if (cost <= least) least = cost, chosen = p;
  }
  p = chosen;
  return least;
}

/// Steps and lines of a map whose merged dims and lanes are chosen.
static Plan chooseMap(Context &c, const KernelSpec &spec, const Target &target, unsigned w, unsigned ops, Plan p) {
  const Placed &out = spec.outputs[0];
  UOpRef v = storedPoints(spec);
  auto extents = memoryExtents(c, out.layout, v->shape);
  // A few vectors a step where the body is short.
  UOpRef n = idxProduct(c, llvm::ArrayRef(extents).take_back(p.merge));
  for (unsigned u : {4u, 2u})
    if (ops <= 32 / u * 2 && n->hi >= int64_t(u * p.lanes) &&
        (!n->isConst() || n->hi % (u * p.lanes) == 0 || n->hi >= int64_t(16 * u * p.lanes))) {
      p.unroll = u;
      break;
    }
  constexpr unsigned most = 512; // a gather's addresses, written out for every lane of wide steps, compile for seconds
  if (unsigned nodes = perLane(c, spec, p); nodes > 1) {
    while (p.unroll > 1 && nodes * p.lanes * p.unroll > most) p.unroll /= 2;
    while (p.lanes > 4 && nodes * p.lanes > most) p.lanes /= 2;
    if (v == out.value) chooseGather(c, spec, target, extents, p);
    if (p.block) return p;
  }
  chooseTail(c, spec, target, extents, p);
  // Several merged dims, where what is read begins and ends within a vector or goes backwards, or steps begin anywhere
  // in a line, each of whose vectors has its place divided: items are lines of one, if they can be (1000 x 300 beside
  // 1000 x 500: 197 and 163 us; lines of 1000 backwards: 304 and 207; for x86-64-v3 an outer product of 100 and 1000
  // 18.3 and 3.9, a row added to 100 x 1000 12.7 and 8.4; not so of 2000 x 2000 from memory, 820 and 1200).
  constexpr int64_t longLine = 8; // vectors; not so of 16 floats, each of whose lines begins and ends (22 and 35 us)
  if (p.tail || p.merge < 2 || extents.back()->lo < longLine * w) return p;
  Plan line = p;
  line.merge = 1;
  chooseTail(c, spec, target, extents, line);
  auto length = extents.back()->constIndex();
  constexpr uint64_t near = uint64_t(8) << 20; // bytes
  bool crosses = length && *length % (p.lanes * p.unroll) && readBytes(spec) <= near;
  return line.tail && (gatesLanes(c, spec, line) || readsBackwards(c, spec, line) || (crosses && divides(c, spec, p)))
             ? line
             : p;
}

/// Of a kernel that a user wrote: a register tile where it has products.
static Plan choosePrograms(const KernelSpec &spec, const Target &target) {
  Plan p;
  p.kind = PlanKind::Programs;
  UOpRef tile = spec.outputs[0].value->src[0];
  int64_t n = tile->rank() ? std::max<int64_t>(tile->shape.back()->hi, 1) : 1;
  p.lanes = std::min<int64_t>(std::max(1u, target.vectorBytes / laneBytes(spec)), llvm::PowerOf2Ceil(n));
  bool products = llvm::any_of(topoSort(tile), [](UOpRef x) {
    return x->op == Op::Contract || (x->op == Op::Fold && Combine(x->ints[0]) == Combine::Fma);
  });
  unsigned most = products ? std::max(1u, target.vectorRegisters / 16) : 4;
  for (p.unroll = 1; p.unroll < most && int64_t(p.lanes) * p.unroll * 2 <= n;) p.unroll *= 2;
  // A product of 512 x 512 by tiles of 64 x 64 for x86-64-v4: 8 rows of 2 vectors 1.13 ms, 4 of 4 1.16.
  int64_t rows = products && tile->rank() > 1 ? tile->shape[tile->rank() - 2]->hi : 1;
  if (rows >= 4) p.mr = rows >= 8 && target.vectorRegisters >= 32 ? 8 : 4;
  return p;
}

/// All of a plan but how results are stored.
static Plan chooseForm(Context &c, const KernelSpec &spec, const Target &target) {
  Plan p;
  if (!spec.grid.empty()) return choosePrograms(spec, target);
  if (contractPlan(c, spec, target, p)) {
    if (!spec.followers.empty() && *target.name) chooseBlock(c, spec, target, p);
    return p;
  }
  p = Plan();
  const Placed &out = spec.outputs[0];
  UOpRef v = storedPoints(spec);
  unsigned rank = out.layout.dims.size(), w = std::max(1u, target.vectorBytes / laneBytes(spec)), ops = 0;
  for (UOpRef n : topoSort(out.value)) ops += has(n->op, Elementwise);
  if (int64_t serial = serialAxis(spec); serial >= 0) {
    chooseSerial(c, spec, serial, w, p);
    return p;
  }
  if (rank == 0) {
    p.merge = 0;
    if (spec.rootOp && spec.rootOp->op == Op::Reduce) p.kind = PlanKind::Rows, p.lanes = std::min(w, mostLanes);
    if (spec.rootOp) chooseBlocks(c, spec, target, p);
    return p;
  }
  if (writesRows(spec)) {
    if (!chooseShortRows(c, spec, target, ops, p)) chooseRows(spec, target, ops, p);
    return p;
  }
  bool reduces = spec.rootOp && (spec.rootOp->op == Op::Reduce || spec.rootOp->op == Op::Contract);
  p.kind = reduces ? PlanKind::Columns : PlanKind::Map;
  unsigned cost = chooseMerged(c, spec, target, w, ops, p);
  auto extents = memoryExtents(c, out.layout, v->shape);
  if (reduces && spec.rootOp->op == Op::Reduce) return chooseReduce(c, spec, target, extents, p, cost, ops);
  if (reduces) {
    chooseSteps(c, spec, target, idxProduct(c, llvm::ArrayRef(extents).take_back(p.merge)), p);
    chooseBlocks(c, spec, target, p);
    return p.kc ? p : chooseWindows(c, spec, target, extents, p);
  }
  if (v == out.value && chooseInterleaved(c, spec, target, extents, p)) return p;
  if (cost >= 16 && v == out.value && chooseRegisterTranspose(c, spec, target, extents, p)) return p;
  return chooseMap(c, spec, target, w, ops, p);
}

/// Results that no cache holds until they are read go past them: a line is not read before it is written (transposition
/// of 4096 x 4096: 28 and 17 ms; 25 MB of a batch norm: 4.2 and 2.5; not so of 16 MB of a softmax).
static void chooseNonTemporal(const KernelSpec &spec, const Target &target, Plan &p) {
  UOpRef v = spec.outputs[0].value;
  bool writes = p.kind == PlanKind::Map || (p.kind == PlanKind::Rows && writesRows(spec));
  if (!storesLines(target) || !writes || spec.inPlace || spec.follows || p.lanes * byteSize(v->dtype) != lineBytes)
    return;
  uint64_t elements = 1, bytes = byteSize(v->dtype);
  for (UOpRef e : v->shape) elements = llvm::SaturatingMultiply<uint64_t>(elements, std::max<int64_t>(e->lo, 0));
  bool across = p.kind == PlanKind::Map && p.block && p.unroll > 1;
  p.nonTemporal = across ? isLargeTranspose(target, std::min<uint64_t>(elements, INT64_MAX), bytes)
                         : llvm::SaturatingMultiply(elements, bytes) >= target.l3Bytes;
}

Plan astra::choosePlan(Context &c, const KernelSpec &spec, const Target &target) {
  Plan p = chooseForm(c, spec, target);
  chooseNonTemporal(spec, target, p);
  return p;
}
