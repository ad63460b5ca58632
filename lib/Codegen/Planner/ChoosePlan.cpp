//===- ChoosePlan.cpp: choosing plans ---------------------------------------===//
// Takes:    a kernel's graph and a target.
// Gives:    a plan, by trying the lowering under a few candidates and counting what would be slow. ContractPlan.cpp
//           chooses those of contracts, StridedPlan.cpp those with strided access; Ranking.cpp compares costs at the
//           end.
// Keeps:    determinism: no measurement, no randomness.
#include "../Rows.h"
#include "Choosing.h"
#include "astra/Codegen/Lower.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;

/// Lanes of a line whose last vector begins earlier; 0: it is masked, or its last elements come one after another. Of
/// elements that no mask is for, a vector of less than this many bytes is not worth it.
static unsigned movingLanes(const Target &target, UOpRef line, unsigned width, unsigned bytes) {
  constexpr unsigned leastBytes = 16;
  unsigned lanes = lanesThatMove(target, line, width);
  return bytes < target.maskedBytes && lanes * bytes < leastBytes ? 0 : lanes;
}

/// What a line shorter than a vector costs in the measure of AccessSummary::cost, beside whole vectors over several
/// lines: of a map its steps, one for each last element where nothing masks it or begins earlier, for so much less than
/// a vector.
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

static constexpr unsigned mostStatements = 512; // of a step

static constexpr int64_t fewestLines = 16;               // that are many
static constexpr uint64_t heldBytes = uint64_t(8) << 20; // by caches, of what is read

/// Lines that are short and many are items: each is one place to compute where it lies, and has no scalar end. Where
/// vectors are narrow the last one begins earlier (a padded copy of 576 images of 14 x 14, lines of 15, for x86-64-v3:
/// 51 and 18 us).
static void chooseTail(KernelFacts &f, const Target &target, Plan &p) {
  constexpr unsigned together = 8, all = 64; // vectors at once, of a map: sums want registers; of a line that is gated
  const int64_t most = p.kind == PlanKind::Map ? 256 : 64; // vectors of a line
  unsigned bytes = f.laneBytes, width = std::max(1u, target.vectorBytes / bytes);
  UOpRef n = idxProduct(f.c, f.extents.take_back(p.merge)), lines = idxProduct(f.c, f.extents.drop_back(p.merge));
  if (!*target.name || f.points != f.out.value || p.mapTile) return; // a thread of a GPU has none
  if (n->hi < 2 || n->hi > most * width || lines->lo < fewestLines) return;
  Plan line = p;
  line.tail = tailMasked;
  line.lanes = std::min<uint64_t>(width, llvm::PowerOf2Ceil(n->hi));
  bool whole = n->isConst() && n->hi % line.lanes == 0;
  unsigned lanes = movingLanes(target, n, width, bytes);
  unsigned left = lanes && n->isConst() ? n->hi % lanes : ~0u;
  if (!whole && lanes && (left == 1 || !f.spec.inPlace))
    line.lanes = lanes, line.tail = left == 1 ? tailMasked : tailOverlapped;
  else if (!whole && bytes < target.maskedBytes)
    return;
  unsigned vectors = llvm::divideCeil(n->hi, line.lanes);
  line.unroll = p.unroll > 1 ? p.unroll : std::min(vectors, p.kind == PlanKind::Map ? together : together / 2);
  if (!f.under(line).readsRuns()) return;
  p = line;
  // Elements that no mask is for are gated one by one, in as few and as short vectors as can be (u8 1000 x 1000, padded
  // to 1002 x 1003, for x86-64-v3: 157 us, all vectors of 32 at once 89, of 16 56).
  if (bytes >= target.maskedBytes || p.kind != PlanKind::Map || !n->isConst() || !f.under(p).gatesLanes()) return;
  while (p.lanes * bytes > 16 && n->hi <= int64_t(all * p.lanes / 2)) p.lanes /= 2;
  unsigned here = llvm::divideCeil(n->hi, p.lanes);
  if (here <= all && here * f.under(p).statements(p.lanes, target.vectorBytes) <= 4 * mostStatements) p.unroll = here;
}

/// Sums over windows, by columns: a window's place is computed once for a line of the innermost dim, where that is some
/// vectors (max pooling of 64 channels, 112 x 112: 0.34 and 0.17 ms; 96 channels by themselves there, every other
/// place: 0.34 and 0.26).
static Plan chooseWindows(KernelFacts &f, const Target &target, Plan p) {
  unsigned width = std::max(1u, target.vectorBytes / f.laneBytes);
  Plan line = p;
  line.merge = 1;
  if (f.extents.back()->lo >= int64_t(2 * width)) chooseTail(f, target, line);
  if (line.tail) return line;
  chooseTail(f, target, p);
  return p;
}

/// Lanes of a row's reduction; of few elements, where `n` of them are known, about a third of them, since the last
/// vector is masked and folded as a whole; of less than eight one, for several rows are what a C compiler makes vectors
/// of (20,000 rows for x86-64-v4, sums of 2 to 6 floats 0.12 to 0.42 of the time, of 10 to 24 0.58 to 0.69).
static unsigned rowLanes(KernelFacts &f, const Target &target, UOpRef n) {
  constexpr unsigned least = 4, part = 3;
  unsigned lanes = std::min(std::max(1u, target.vectorBytes / std::max(1u, byteSize(f.root->dtype))), mostLanes);
  if (!*target.name || !n || !n->isConst() || n->hi >= int64_t(part * lanes)) return lanes;
  if (n->hi < fewByLanes) return 1;
  return std::min(lanes, std::max<unsigned>(least, llvm::bit_floor<uint64_t>(n->hi / part)));
}

/// Columns whose rows are read in the order of memory: an item is a whole row if that is some vectors, or a page of it.
/// Where no cache holds what is read all 64 lanes of a sum rest after each step, as no prefetcher follows rows 64 apart
/// (floats for x86-64-v4: 100,000 x 64 1.84 and 1.06 ms, 16384 x 1024 5.77 and 3.13, 4096 x 4096 4.36 and 3.56; for
/// x86-64-v3 1.78 and 1.37, 5.75 and 2.92, 5.04 and 3.25; not so of rows of more pages, 512 x 50,257 5.7 and 6.6, nor
/// of a few hundred). Where one does, lanes that stay in registers are faster. Minima, maxima and sums of integers have
/// no lanes: rows go side by side there too, if they are a few lines (maxima of 100,000 x 64 5.0 and 0.8 ms, of 16384 x
/// 1024 6.8 and 2.4, of 10,000 x 64 88 and 27 us). From memory as long as there are items for some threads.
static bool chooseInOrder(KernelFacts &f, const Target &target, Plan &p) {
  constexpr int64_t nearBytes = 256, together = 4, most = 64, worth = 256, manyRows = 1024, items = 4;
  const ReduceSpec &r = *f.reduce;
  unsigned inside = f.root->src[0]->rank() - 1 - r.axes[0];
  auto length = f.root->src[0]->shape[r.axes[0]]->constIndex();
  Plan order = p;
  order.merge = std::clamp(inside, 1u, p.merge);
  UOpRef n = idxProduct(f.c, f.extents.take_back(order.merge)),
         lines = idxProduct(f.c, f.extents.drop_back(order.merge));
  int64_t bytes = std::max(f.laneBytes, byteSize(f.root->dtype)), width = target.vectorBytes / bytes;
  if (!*target.name || !n->isConst() || !length || *length < worth || width < 2) return false;
  bool sums = r.order == ReduceOrder::Lane64, far = f.readBytes > target.l3Bytes;
  int64_t vectors = llvm::divideCeil(n->hi, width);
  order.lanes = std::min<uint64_t>(width, llvm::PowerOf2Ceil(n->hi));
  order.unroll = 1;
  if (sums) order.unrollK = 64;
  if (!far && (sums || f.ops || lines->lo >= fewestLines)) return false; // chooseTail
  int64_t all = f.under(order).statements(order.lanes, target.vectorBytes);
  if (vectors <= (far ? most : nearBytes / target.vectorBytes) && vectors * all <= mostStatements) {
    if (far && lines->lo < items) return false;
    if (bytes < target.maskedBytes && n->hi % order.lanes) return false;
    order.unroll = vectors;
    order.tail = tailMasked;
  } else {
    order.unroll = together;
    order.columnSteps = pageBytes / (together * width * bytes);
    bool isPage = n->hi * bytes <= 4 * pageBytes && *length >= manyRows && f.laneBytes >= 4;
    if (!sums || !isPage || lines->lo * (n->hi * bytes / pageBytes) < items) return false;
  }
  llvm::Error e = checkForm(f.spec, order);
  bool can = !e && f.under(order).readsRuns() && !f.under(order).readsByIndices;
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
/// 14.0 and 9.7; not so of shorter rows, sums of a batch norm's gradient 2.1 and 3.3). Of sums that a cache holds,
/// whose 64 lanes are written out for every vector, a line alone (49 x 576 of max(x, 0) 7.0 and 3.6 us, 200 x 2000
/// floats 85 and 41, 2048 x 768 298 and 264; 4096 x 1024 828 and 1977), which is a third of the code too. Of a sum
/// with fewer elements than lanes each is written out, so its vectors are a loop in place of copies, in the same order
/// (49 x 2048 of max(x + y + z, 0): 6298 statements and 394).
static void chooseColumns(KernelFacts &f, const Target &target, Plan &p) {
  constexpr unsigned rowsAhead = 8, little = 8, lanesOfSums = 64, fewCopies = 16;
  unsigned partBytes = 512, bytes = f.laneBytes, width = std::max(1u, target.vectorBytes / bytes);
  UOpRef n = idxProduct(f.c, f.extents.take_back(p.merge));
  if (chooseInOrder(f, target, p)) return;
  uint64_t rowBytes = llvm::SaturatingMultiply<uint64_t>(std::max<int64_t>(f.extents.back()->lo, 0), bytes);
  bool isHalfLine = 2 * target.vectorBytes == lineBytes,
       simple = p.lanes == width && bytes >= 4 && f.ops <= little && isHalfLine;
  if (storesLines(target)) partBytes = f.readBytes > target.l3Bytes ? 1024 : 256;
  if (simple && rowBytes >= pageBytes * 3 / 4 && f.readBytes > target.l2Bytes) p.prefetch = rowsAhead;
  if (simple && rowBytes >= pageBytes) partBytes *= 2, p.lanes *= 2;
  if (f.reduce && f.reduce->order == ReduceOrder::Lane64 && isHalfLine && f.readBytes <= heldBytes)
    partBytes = lineBytes;
  unsigned wide = std::max(1u, partBytes / (p.lanes * bytes)), all = f.under(p).statements(p.lanes, target.vectorBytes);
  auto few = [&] { return p.lanes < width || n->lo < int64_t(4 * wide * p.lanes); }; // items for the threads
  while (wide > 1 && (few() || wide * all > mostStatements)) wide /= 2;
  p.unroll = wide;
  chooseTail(f, target, p);
  UOpRef length =
      f.reduce && f.reduce->order == ReduceOrder::Lane64 ? f.root->src[0]->shape[f.reduce->axes[0]] : nullptr;
  if (*target.name && length && length->hi >= fewCopies && length->hi < lanesOfSums && p.unroll > 1 && !p.tail)
    p.columnSteps = p.unroll, p.unroll = 1, p.prefetch = 0;
}

/// A reduction: by rows where that costs no more than `least`, what columns `p` cost, in the measure of
/// AccessSummary::cost; windows; or columns.
static Plan chooseReduce(KernelFacts &f, const Target &target, Plan p, unsigned least) {
  constexpr int64_t many = 32; // elements of what is no window
  const ReduceSpec &r = *f.reduce;
  UOpRef length = f.root->src[0]->shape[r.axes[0]];
  bool exact = r.order == ReduceOrder::Exact;
  // Of floats columns are faster (20,000 rows of 8 to 12 floats 2 to 3 times), and what is computed is computed once.
  bool isRow = exact && r.axes.size() == 1 && length->hi >= (isFloat(f.root->dtype) || f.ops ? many : fewByLanes);
  Plan rows;
  rows.kind = PlanKind::Rows;
  rows.merge = f.extents.size();
  rows.lanes = rowLanes(f, target, nullptr);
  if ((isRow || r.order == ReduceOrder::Lane64) && f.under(rows).cost <= least) {
    rows.lanes = rowLanes(f, target, length);
    return rows;
  }
  if (r.order == ReduceOrder::Lane64 || (isRow && length->hi >= many)) {
    chooseColumns(f, target, p);
    return p;
  }
  Plan windows = chooseWindows(f, target, p);
  // Rows of a few elements: one row after another, of which a C compiler makes vectors (u8[20000, 4] 11.7 and 2.2 us),
  // but of halves.
  bool isInput = llvm::any_of(f.spec.inputs, [&](const Placed &in) { return in.value == f.root->src[0]; });
  bool isFew = isInput && r.axes.size() == 1 && length->isConst() && length->hi < fewByLanes &&
               !(isFloat(f.root->dtype) && byteSize(f.root->dtype) < 4);
  if (*target.name && !windows.tail && least >= 16 && isFew) windows.lanes = windows.unroll = 1;
  return windows;
}

/// Many rows of a few elements, all of which are written: an element a lane, which computes what it needs of its row,
/// in place of vectors that are mostly empty (300,000 floats for x86-64-v4 and v3, softmax over 2 1422 and 314, 1983
/// and 479 us, over 4 1007 and 529, 1298 and 844, a norm over 4 333 and 98, 469 and 120; a softmax over 8 674 and 812,
/// 361 and 1327). Not of whole numbers, of which a C compiler makes better code (i16, rows of 4, 422 and 80 us), nor of
/// gathers, of many inputs or of dear functions, which each lane would have for all of its row (three gathers, rows of
/// 4: 5.9 and 1.3 ms).
static bool chooseShortRows(KernelFacts &f, const Target &target, Plan &p) {
  constexpr int64_t most = 4, manySteps = 16;
  const Placed &out = f.out;
  const unsigned fewInputs = 4, fewOps = byteSize(out.value->dtype) > 4 ? 16 : 48; // of f64 functions are dear
  UOpRef n = out.value->shape.back(), all = elementCount(f.c, out.layout, out.value->shape);
  int64_t width = target.vectorBytes / std::max(1u, byteSize(f.root->dtype));
  bool isPlain = *target.name && !f.spec.follows && f.spec.followers.empty() && out.layout.isRowMajor() &&
                 isFloat(out.value->dtype) && byteSize(out.value->dtype) >= 4;
  bool isShort = n->isConst() && n->hi >= 2 && n->hi <= most && 2 * n->hi <= width;
  bool isLittle = f.spec.inputs.size() <= fewInputs && (n->hi * n->hi <= width || f.ops <= fewOps);
  if (!isPlain || !isShort || !isLittle) return false;
  Plan elements;
  elements.kind = PlanKind::Columns;
  elements.merge = out.value->rank();
  elements.lanes = std::min(unsigned(2 * width), mostLanes);
  if (all->lo < manySteps * elements.lanes ||
      f.under(elements).statements(elements.lanes, target.vectorBytes) > mostStatements ||
      f.under(elements).readsByIndices)
    return false;
  if (llvm::Error e = checkForm(f.spec, elements)) {
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
static void chooseBlock(KernelFacts &f, const Target &target, Plan &p) {
  constexpr int64_t least = 8, worth = 32, large = int64_t(1) << 20;
  Shape shape = f.out.value->shape;
  UOpRef rows = shape[shape.size() - 2];
  unsigned last = choosePlan(f.c, f.spec.followers.back().spec, target).mr;
  int64_t fit = target.l2Bytes / 4 / passedBytes(f.spec), most = fit < worth ? worth * 3 / 2 : fit,
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
    if (count < fewest) fewest = count, p.rowBlock = r;
  }
}

/// Lanes along what lies inside of the serial axis of a running sum or scatter, where they are neighbours all the way.
static void chooseSerial(KernelFacts &f, int64_t serial, unsigned w, Plan &p) {
  constexpr unsigned mostTogether = 8;
  const Placed &out = f.out;
  unsigned rank = out.layout.dims.size();
  UOpRef inner = f.c.index(1);
  for (p.merge = 0; out.layout.dims[rank - 1 - p.merge].axis != serial; ++p.merge)
    inner = idxMul(f.c, inner, f.extents[rank - 1 - p.merge]);
  p.lanes = std::min<uint64_t>(w, llvm::bit_floor<uint64_t>(std::max<int64_t>(inner->hi, 1)));
  p.merge = std::max(p.merge, 1u);
  if (p.lanes > 1 && f.under(p).cost >= 16) p.lanes = 1;
  // Several vectors hide the latency of what runs, and read more of each line, where items are left.
  UOpRef outer = f.c.index(1);
  for (unsigned d = 0; d + p.merge + 1 < rank; ++d) outer = idxMul(f.c, outer, f.extents[d]);
  p.unroll = p.lanes == w ? mostTogether : 1;
  while (p.unroll > 1 && idxMul(f.c, inner, outer)->lo < int64_t(4 * p.unroll * p.lanes)) p.unroll /= 2;
}

/// Several vectors a step where the last pass over a row is short.
static void chooseRows(KernelFacts &f, const Target &target, Plan &p) {
  p.kind = PlanKind::Rows;
  p.merge = f.out.layout.dims.size();
  p.lanes = std::min(std::max(1u, target.vectorBytes / std::max(1u, byteSize(f.root->dtype))), mostLanes);
  p.unroll = f.ops <= 16 ? 4 : f.ops <= 64 ? 2 : 1;
  // A row comes from memory while the one before is computed: its passes would wait for it one after another, and no
  // prefetcher of a CPU goes beyond a page (2048 rows, layer norm of 4096: 3.78 and 3.33 ms; not so of 4096 rows of
  // 1024, which the L3 may hold, 1.93 and 2.19).
  if (*target.name && !f.spec.follows && f.readBytes > target.l3Bytes) p.prefetch = 1;
}

/// How many inner dims are one loop, and the lanes in it, by what addresses and tails cost. Gives that cost.
static unsigned chooseMerged(KernelFacts &f, const Target &target, unsigned w, Plan &p) {
  const Placed &out = f.out;
  unsigned rank = out.layout.dims.size(), bytes = f.laneBytes, least = ~0u;
  // Differs from `f.extents` where a window or a part is written.
  auto whole = memoryExtents(f.c, out.layout, out.begin.empty() ? out.value->shape : Shape(out.allocated));
  Plan chosen = p;
  UOpRef inner = f.c.index(1);
  for (unsigned k = 1; k <= rank; ++k) {
    if (k > 1 && f.extents[rank - k + 1] != whole[rank - k + 1]) break; // its rows are not neighbours
    inner = idxMul(f.c, f.extents[rank - k], inner);
    p.merge = k;
    p.lanes = std::min<uint64_t>(w, llvm::bit_floor<uint64_t>(std::max<int64_t>(inner->hi, 1)));
    p.unroll = 1;
    unsigned cost = f.under(p).cost + tailWaste(target, inner, p, w, bytes, f.ops);
    if (cost <= least) least = cost, chosen = p;
  }
  p = chosen;
  return least;
}

/// Steps and lines of a map whose merged dims and lanes are chosen.
static Plan chooseMap(KernelFacts &f, const Target &target, unsigned w, Plan p) {
  const Placed &out = f.out;
  UOpRef v = f.points;
  // A few vectors a step where the body is short.
  UOpRef n = idxProduct(f.c, f.extents.take_back(p.merge));
  for (unsigned u : {4u, 2u})
    if (f.ops <= 32 / u * 2 && n->hi >= int64_t(u * p.lanes) &&
        (!n->isConst() || n->hi % (u * p.lanes) == 0 || n->hi >= int64_t(16 * u * p.lanes))) {
      p.unroll = u;
      break;
    }
  constexpr unsigned most = 512; // a gather's addresses, written out for every lane of wide steps, compile for seconds
  if (unsigned nodes = f.under(p).perLane; nodes > 1) {
    while (p.unroll > 1 && nodes * p.lanes * p.unroll > most) p.unroll /= 2;
    while (p.lanes > 4 && nodes * p.lanes > most) p.lanes /= 2;
    if (v == out.value) chooseGather(f, target, p);
    if (p.mapTile) return p;
  }
  chooseTail(f, target, p);
  // Several merged dims, where what is read begins and ends within a vector or goes backwards, or steps begin anywhere
  // in a line, each of whose vectors has its place divided: items are lines of one, if they can be (1000 x 300 beside
  // 1000 x 500: 197 and 163 us; lines of 1000 backwards: 304 and 207; for x86-64-v3 an outer product of 100 and 1000
  // 18.3 and 3.9, a row added to 100 x 1000 12.7 and 8.4; not so of 2000 x 2000 from memory, 820 and 1200).
  constexpr int64_t longLine = 8; // vectors; not so of 16 floats, each of whose lines begins and ends (22 and 35 us)
  if (p.tail || p.merge < 2 || f.extents.back()->lo < longLine * w) return p;
  Plan line = p;
  line.merge = 1;
  chooseTail(f, target, line);
  auto length = f.extents.back()->constIndex();
  bool crosses = length && *length % (p.lanes * p.unroll) && f.readBytes <= heldBytes;
  return line.tail &&
                 (f.under(line).gatesLanes() || f.under(line).readsBackwards() || (crosses && f.under(p).divides()))
             ? line
             : p;
}

/// Of a kernel that a user wrote: a register tile where it has products.
static Plan choosePrograms(KernelFacts &f, const Target &target) {
  Plan p;
  p.kind = PlanKind::Programs;
  UOpRef tile = f.out.value->src[0];
  int64_t n = tile->rank() ? std::max<int64_t>(tile->shape.back()->hi, 1) : 1;
  p.lanes = std::min<int64_t>(std::max(1u, target.vectorBytes / f.laneBytes), llvm::PowerOf2Ceil(n));
  bool products = llvm::any_of(topoSort(tile), [](UOpRef x) {
    return x->op == Op::Contract || (x->op == Op::Fold && Combine(x->ints[0]) == Combine::Fma);
  });
  unsigned most = products ? (target.vectorRegisters >= 16 ? 2 : 1) : 4;
  for (p.unroll = 1; p.unroll < most && int64_t(p.lanes) * p.unroll * 2 <= n;) p.unroll *= 2;
  // A product of 512 x 512 by tiles of 64 x 64 for x86-64-v4: 8 rows of 2 vectors 1.13 ms, 4 of 4 1.16.
  int64_t rows = products && tile->rank() > 1 ? tile->shape[tile->rank() - 2]->hi : 1;
  if (rows >= 4) p.mr = rows >= 8 && target.vectorRegisters >= 32 ? 8 : 4;
  return p;
}

/// All of a plan but how results are stored.
static Plan chooseForm(KernelFacts &f, const Target &target) {
  Plan p;
  if (!f.spec.grid.empty()) return choosePrograms(f, target);
  if (contractPlan(f, target, p)) {
    if (!f.spec.followers.empty() && *target.name) chooseBlock(f, target, p);
    return p;
  }
  p = Plan();
  const Placed &out = f.out;
  UOpRef v = f.points;
  unsigned rank = out.layout.dims.size(), w = std::max(1u, target.vectorBytes / f.laneBytes);
  if (int64_t serial = serialAxis(f.spec); serial >= 0) {
    chooseSerial(f, serial, w, p);
    return p;
  }
  if (rank == 0) {
    p.merge = 0;
    if (f.root && f.root->op == Op::Reduce) p.kind = PlanKind::Rows, p.lanes = std::min(w, mostLanes);
    if (f.root) chooseBlocks(f, target, p);
    return p;
  }
  if (writesRows(f.spec)) {
    if (!chooseShortRows(f, target, p)) chooseRows(f, target, p);
    return p;
  }
  bool reduces = f.root && (f.root->op == Op::Reduce || f.root->op == Op::Contract);
  p.kind = reduces ? PlanKind::Columns : PlanKind::Map;
  unsigned cost = chooseMerged(f, target, w, p);
  if (reduces && f.root->op == Op::Reduce) return chooseReduce(f, target, p, cost);
  if (reduces) {
    chooseSteps(f, target, idxProduct(f.c, f.extents.take_back(p.merge)), p);
    chooseBlocks(f, target, p);
    return p.unrollK ? p : chooseWindows(f, target, p);
  }
  if (v == out.value && chooseInterleaved(f, target, p)) return p;
  if (cost >= 16 && v == out.value && chooseRegisterTranspose(f, target, p)) return p;
  return chooseMap(f, target, w, p);
}

/// Results that no cache holds until they are read go past them: a line is not read before it is written (transposition
/// of 4096 x 4096: 28 and 17 ms; 25 MB of a batch norm: 4.2 and 2.5; not so of 16 MB of a softmax).
static void chooseNonTemporal(KernelFacts &f, const Target &target, Plan &p) {
  UOpRef v = f.out.value;
  bool writes = p.kind == PlanKind::Map || (p.kind == PlanKind::Rows && writesRows(f.spec));
  if (!storesLines(target) || !writes || f.spec.inPlace || f.spec.follows || p.lanes * byteSize(v->dtype) != lineBytes)
    return;
  uint64_t elements = 1, bytes = byteSize(v->dtype);
  for (UOpRef e : v->shape) elements = llvm::SaturatingMultiply<uint64_t>(elements, std::max<int64_t>(e->lo, 0));
  bool across = p.kind == PlanKind::Map && p.mapTile && p.unroll > 1;
  p.nonTemporal = across ? isLargeTranspose(target, std::min<uint64_t>(elements, INT64_MAX), bytes)
                         : llvm::SaturatingMultiply(elements, bytes) >= target.l3Bytes;
}

Plan astra::choosePlan(Context &c, const KernelSpec &spec, const Target &target) {
  KernelFacts f(c, spec);
  Plan p = chooseForm(f, target);
  bool isOneOfSeveral = spec.follows || !spec.followers.empty(); // whose tiles go together
  if (*target.name && speedsOf(target).ranks && !isOneOfSeveral && !exceptionOf(p)) p = cheapest(f, target, p);
  chooseNonTemporal(f, target, p);
  return p;
}
