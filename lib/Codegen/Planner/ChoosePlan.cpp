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
/// elements that no mask is for, a short vector is not worth it.
static unsigned movingLanes(const Executor &target, UOpRef line, unsigned width, unsigned bytes) {
  unsigned lanes = lanesThatMove(target, line, width);
  return bytes < target.maskedBytes && lanes * bytes < threshold::leastVector ? 0 : lanes;
}

/// What a line shorter than a vector costs in the measure of AccessSummary::cost, beside whole vectors over several
/// lines: of a map its steps, one for each last element where nothing masks it or begins earlier, for so much less than
/// a vector.
static unsigned tailWaste(const Executor &target, UOpRef line, const Plan &p, unsigned width, unsigned bytes,
                          unsigned ops) {
  if (p.lanes >= width) return 0;
  if (p.kind != PlanKind::Map) return threshold::dearAccess;
  int64_t n = std::max<int64_t>(line->hi, 1), rest = n % p.lanes;
  bool finishes = bytes >= target.maskedBytes || movingLanes(target, line, width, bytes);
  int64_t steps = n / p.lanes + (finishes ? rest != 0 : rest);
  return (1 + ops / threshold::opsOfTailStep) * threshold::tailStep * (steps * width - n) / n;
}

/// Lines that are short and many are items: each is one place to compute where it lies, and has no scalar end. Where
/// vectors are narrow the last one begins earlier.
static void chooseTail(KernelFacts &f, const Executor &target, Plan &p) {
  bool isMap = p.kind == PlanKind::Map;
  const int64_t most = isMap ? threshold::longMapLine : threshold::longLine;
  unsigned bytes = f.laneBytes, width = std::max(1u, target.vectorBytes / bytes);
  UOpRef n = idxProduct(f.c, f.extents.take_back(p.merge)), lines = idxProduct(f.c, f.extents.drop_back(p.merge));
  if (target.isThread || f.points != f.out.value || p.mapTile) return; // a thread of a GPU has none
  if (n->hi < 2 || n->hi > most * width || lines->lo < threshold::fewestLines) return;
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
  line.unroll =
      p.unroll > 1 ? p.unroll : std::min<int64_t>(vectors, isMap ? threshold::mostVectors : threshold::sumVectors);
  if (!f.under(line).readsRuns()) return;
  p = line;
  // Elements that no mask is for are gated one by one, in as few and as short vectors as can be.
  if (bytes >= target.maskedBytes || !isMap || !n->isConst() || !f.under(p).gatesLanes()) return;
  while (p.lanes * bytes > threshold::leastVector && n->hi <= threshold::longLine * p.lanes / 2) p.lanes /= 2;
  unsigned here = llvm::divideCeil(n->hi, p.lanes);
  if (here <= threshold::longLine && here * f.under(p).statements(p.lanes, target.vectorBytes) <= threshold::mostGates)
    p.unroll = here;
}

/// Sums over windows, by columns: a window's place is computed once for a line of the innermost dim, where that is
/// vectors.
static Plan chooseWindows(KernelFacts &f, const Executor &target, Plan p) {
  unsigned width = std::max(1u, target.vectorBytes / f.laneBytes);
  Plan line = p;
  line.merge = 1;
  if (f.extents.back()->lo >= threshold::windowVectors * width) chooseTail(f, target, line);
  if (line.tail) return line;
  chooseTail(f, target, p);
  return p;
}

/// Lanes of a row's reduction; of few elements, where `n` of them are known, a part of them, since the last vector is
/// masked and folded as a whole; of very few one, for several rows are what a C compiler makes vectors of.
static unsigned rowLanes(KernelFacts &f, const Executor &target, UOpRef n) {
  unsigned lanes = std::min(std::max(1u, target.vectorBytes / std::max(1u, byteSize(f.root->dtype))), mostLanes);
  if (target.isThread || !n || !n->isConst() || n->hi >= threshold::partOfRow * lanes) return lanes;
  if (n->hi < fewByLanes) return 1;
  return std::min<int64_t>(
      lanes, std::max<int64_t>(threshold::fewestLanes, llvm::bit_floor<uint64_t>(n->hi / threshold::partOfRow)));
}

/// Columns whose rows are read in the order of memory: an item is a whole row if that is some vectors, or a page of it.
/// Where no cache holds what is read all 64 lanes of a sum rest after each step, as no prefetcher follows rows 64
/// apart. Where one does, lanes that stay in registers are faster. Minima, maxima and sums of integers have no lanes:
/// rows go side by side there too, if they are a few lines. From memory as long as there are items for some threads.
static bool chooseInOrder(KernelFacts &f, const Executor &target, Plan &p) {
  const ReduceSpec &r = *f.reduce;
  unsigned inside = f.root->src[0]->rank() - 1 - r.axes[0];
  auto length = f.root->src[0]->shape[r.axes[0]]->constIndex();
  Plan order = p;
  order.merge = std::clamp(inside, 1u, p.merge);
  UOpRef n = idxProduct(f.c, f.extents.take_back(order.merge)),
         lines = idxProduct(f.c, f.extents.drop_back(order.merge));
  int64_t bytes = std::max(f.laneBytes, byteSize(f.root->dtype)), width = target.vectorBytes / bytes;
  if (target.isThread || !n->isConst() || !length || *length < threshold::longColumns || width < 2) return false;
  bool sums = r.order == ReduceOrder::Lane64, far = f.readBytes > target.l3Bytes;
  int64_t vectors = llvm::divideCeil(n->hi, width);
  order.lanes = std::min<uint64_t>(width, llvm::PowerOf2Ceil(n->hi));
  order.unroll = 1;
  if (sums) order.unrollK = sumLanes;
  if (!far && (sums || f.ops || lines->lo >= threshold::fewestLines)) return false; // chooseTail
  int64_t all = f.under(order).statements(order.lanes, target.vectorBytes);
  if (vectors <= (far ? threshold::longLine : threshold::nearBytes / int64_t(target.vectorBytes)) &&
      vectors * all <= threshold::mostStatements) {
    if (far && lines->lo < threshold::fewestItems) return false;
    if (bytes < target.maskedBytes && n->hi % order.lanes) return false;
    order.unroll = vectors;
    order.tail = tailMasked;
  } else {
    order.unroll = threshold::sumVectors;
    order.columnSteps = pageBytes / (threshold::sumVectors * width * bytes);
    bool isPage = n->hi * bytes <= threshold::inOrderPages * pageBytes && f.laneBytes >= threshold::wideElement;
    if (!sums || !isPage || lines->lo * (n->hi * bytes / pageBytes) < threshold::fewestItems) return false;
  }
  llvm::Error e = checkForm(f.spec, order);
  bool can = !e && f.under(order).readsRuns() && !f.under(order).readsByIndices;
  llvm::consumeError(std::move(e));
  if (can) p = order;
  return can;
}

/// Columns for a reduction along an outer axis: rows of many, far apart, of which each item takes a part. Where a
/// vector is a line, the part is short where caches hold the rows and long where memory is the bound. Else, of
/// rows of a page and more of which little is computed, twice as much, lines at once, and of what no L2 holds rows are
/// asked for ahead. Of sums that a cache holds, whose 64 lanes are written out for every vector, a line alone, which is
/// a third of the code too. Of a sum with fewer elements than lanes each is written out, so its vectors are a loop in
/// place of copies, in the same order.
static void chooseColumns(KernelFacts &f, const Executor &target, Plan &p) {
  unsigned partBytes = threshold::columnsBytes, bytes = f.laneBytes, width = std::max(1u, target.vectorBytes / bytes);
  UOpRef n = idxProduct(f.c, f.extents.take_back(p.merge));
  if (chooseInOrder(f, target, p)) return;
  uint64_t rowBytes = llvm::SaturatingMultiply<uint64_t>(std::max<int64_t>(f.extents.back()->lo, 0), bytes);
  bool isHalfLine = 2 * target.vectorBytes == lineBytes,
       simple = p.lanes == width && bytes >= threshold::wideElement && f.ops <= threshold::columnsOps && isHalfLine;
  if (storesLines(target)) partBytes = f.readBytes > target.l3Bytes ? threshold::farColumnsBytes : threshold::nearBytes;
  if (simple && rowBytes >= pageBytes && f.readBytes > target.l2Bytes) p.prefetch = threshold::rowsAhead;
  if (simple && rowBytes >= pageBytes) partBytes *= 2, p.lanes *= 2;
  if (f.reduce && f.reduce->order == ReduceOrder::Lane64 && isHalfLine && f.readBytes <= threshold::heldBytes)
    partBytes = lineBytes;
  unsigned wide = std::max(1u, partBytes / (p.lanes * bytes)), all = f.under(p).statements(p.lanes, target.vectorBytes);
  auto few = [&] { return p.lanes < width || n->lo < threshold::fewestItems * wide * p.lanes; };
  while (wide > 1 && (few() || wide * all > threshold::mostStatements)) wide /= 2;
  p.unroll = wide;
  chooseTail(f, target, p);
  UOpRef length =
      f.reduce && f.reduce->order == ReduceOrder::Lane64 ? f.root->src[0]->shape[f.reduce->axes[0]] : nullptr;
  if (!target.isThread && length && length->hi >= threshold::fewCopies && length->hi < sumLanes && p.unroll > 1 &&
      !p.tail)
    p.columnSteps = p.unroll, p.unroll = 1, p.prefetch = 0;
}

/// A reduction: by rows where that costs no more than `least`, what columns `p` cost, in the measure of
/// AccessSummary::cost; windows; or columns.
static Plan chooseReduce(KernelFacts &f, const Executor &target, Plan p, unsigned least) {
  const ReduceSpec &r = *f.reduce;
  UOpRef length = f.root->src[0]->shape[r.axes[0]];
  bool exact = r.order == ReduceOrder::Exact;
  // Of floats columns are faster, and what is computed is computed once.
  bool isRow = exact && r.axes.size() == 1 &&
               length->hi >= (isFloat(f.root->dtype) || f.ops ? threshold::fewestOfRow : fewByLanes);
  Plan rows;
  rows.kind = PlanKind::Rows;
  rows.merge = f.extents.size();
  rows.lanes = rowLanes(f, target, nullptr);
  if ((isRow || r.order == ReduceOrder::Lane64) && f.under(rows).cost <= least) {
    rows.lanes = rowLanes(f, target, length);
    return rows;
  }
  if (r.order == ReduceOrder::Lane64 || (isRow && length->hi >= threshold::fewestOfRow)) {
    chooseColumns(f, target, p);
    return p;
  }
  Plan windows = chooseWindows(f, target, p);
  // Rows of a few elements: one row after another, of which a C compiler makes vectors, but of halves.
  bool isFew = f.spec.input(f.root->src[0]) && r.axes.size() == 1 && length->isConst() && length->hi < fewByLanes &&
               !(isFloat(f.root->dtype) && byteSize(f.root->dtype) < threshold::wideElement);
  if (!target.isThread && !windows.tail && least >= threshold::dearAccess && isFew) windows.lanes = windows.unroll = 1;
  return windows;
}

/// Many rows of a few elements, all of which are written: an element a lane, which computes what it needs of its row,
/// in place of vectors that are mostly empty. Not of whole numbers, of which a C compiler makes better code, nor of
/// gathers or of dear functions, which each lane would have for all of its row.
static bool chooseShortRows(KernelFacts &f, const Executor &target, Plan &p) {
  const Placed &out = f.out;
  const unsigned mostOps =
      byteSize(out.value->dtype) > threshold::wideElement ? threshold::fewOps : threshold::shortRowOps;
  UOpRef n = out.value->shape.back(), all = elementCount(f.c, out.layout, out.value->shape);
  int64_t width = target.vectorBytes / std::max(1u, byteSize(f.root->dtype));
  bool isPlain = !target.isThread && !f.spec.follows && f.spec.followers.empty() && out.layout.isRowMajor() &&
                 isFloat(out.value->dtype) && byteSize(out.value->dtype) >= threshold::wideElement;
  bool isShort = n->isConst() && n->hi >= 2 && n->hi <= threshold::shortRow && 2 * n->hi <= width;
  bool isLittle = n->hi * n->hi <= width || f.ops <= mostOps;
  if (!isPlain || !isShort || !isLittle) return false;
  Plan elements;
  elements.kind = PlanKind::Columns;
  elements.merge = out.value->rank();
  elements.lanes = std::min(unsigned(2 * width), mostLanes);
  if (all->lo < threshold::manySteps * elements.lanes ||
      f.under(elements).statements(elements.lanes, target.vectorBytes) > threshold::mostStatements ||
      f.under(elements).readsByIndices)
    return false;
  if (llvm::Error e = checkForm(f.spec, elements)) {
    llvm::consumeError(std::move(e));
    return false;
  }
  p = elements;
  return true;
}

/// How many rows go through a kernel and its followers at a time: what passes between them fits a part of the L2, and
/// yet as many as pay for the operands that each tile of them reads anew; several items; as few tiles that are not
/// whole as can be.
static void chooseBlock(KernelFacts &f, const Executor &target, Plan &p) {
  constexpr int64_t least = threshold::leastBlock, worth = threshold::worthBlock;
  Shape shape = f.out.value->shape;
  UOpRef rows = shape[shape.size() - 2];
  unsigned last = choosePlanByRules(f.c, f.spec.followers.back().spec, target).mr;
  int64_t fit = partOfL2(target, threshold::passedPart) / passedBytes(f.spec), most = fit < worth ? worth * 3 / 2 : fit,
          all = std::max<int64_t>(rows->hi, 0);
  for (UOpRef e : shape.drop_back(2)) all = std::min<uint64_t>(times(all, e->lo), mostCounted);
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
  const Placed &out = f.out;
  unsigned rank = out.layout.dims.size();
  UOpRef inner = f.c.index(1);
  for (p.merge = 0; out.layout.dims[rank - 1 - p.merge].axis != serial; ++p.merge)
    inner = idxMul(f.c, inner, f.extents[rank - 1 - p.merge]);
  p.lanes = std::min<uint64_t>(w, llvm::bit_floor<uint64_t>(std::max<int64_t>(inner->hi, 1)));
  p.merge = std::max(p.merge, 1u);
  if (p.lanes > 1 && f.under(p).cost >= threshold::dearAccess) p.lanes = 1;
  // Several vectors hide the latency of what runs, and read more of each line, where items are left.
  UOpRef outer = f.c.index(1);
  for (unsigned d = 0; d + p.merge + 1 < rank; ++d) outer = idxMul(f.c, outer, f.extents[d]);
  p.unroll = p.lanes == w ? threshold::mostVectors : 1;
  while (p.unroll > 1 && idxMul(f.c, inner, outer)->lo < threshold::fewestItems * p.unroll * p.lanes) p.unroll /= 2;
}

/// Several vectors a step where the last pass over a row is short, several of a row in all passes where it is not.
static void chooseRows(KernelFacts &f, const Executor &target, Plan &p) {
  p.kind = PlanKind::Rows;
  p.merge = f.out.layout.dims.size();
  p.lanes = std::min(std::max(1u, target.vectorBytes / std::max(1u, byteSize(f.root->dtype))), mostLanes);
  p.unroll = f.ops <= threshold::fewOps ? threshold::sumVectors : f.ops <= threshold::opsOfTwoRows ? 2 : 1;
  // Where a step waits for what it computes, all passes take several vectors at once, if the row has them; not of
  // lines, which go past the caches and are divided one by one.
  if (!target.isThread && !storesLines(target) && f.ops > threshold::fewOps &&
      f.out.value->shape.back()->hi >= threshold::sumVectors * p.lanes)
    p.lanes = std::min<int64_t>(threshold::sumVectors * p.lanes, mostLanes), p.unroll = 1;
  // A row comes from memory while the one before is computed: its passes would wait for it one after another, and no
  // prefetcher of a CPU goes beyond a page.
  if (!target.isThread && !f.spec.follows && f.readBytes > target.l3Bytes) p.prefetch = 1;
}

/// How many inner dims are one loop, and the lanes in it, by what addresses and tails cost. Gives that cost.
static unsigned chooseMerged(KernelFacts &f, const Executor &target, unsigned w, Plan &p) {
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
static Plan chooseMap(KernelFacts &f, const Executor &target, unsigned w, Plan p) {
  const Placed &out = f.out;
  UOpRef v = f.points;
  // A few vectors a step where the body is short.
  UOpRef n = idxProduct(f.c, f.extents.take_back(p.merge));
  for (unsigned u : {4u, 2u})
    if (f.ops <= (u == 4 ? threshold::fewOps : threshold::opsOfTwo) && n->hi >= int64_t(u * p.lanes) &&
        (!n->isConst() || n->hi % (u * p.lanes) == 0 || n->hi >= threshold::manySteps * u * p.lanes)) {
      p.unroll = u;
      break;
    }
  if (unsigned nodes = f.under(p).perLane; nodes > 1) {
    while (p.unroll > 1 && nodes * p.lanes * p.unroll > threshold::mostStatements) p.unroll /= 2;
    while (p.lanes > threshold::fewestLanes && nodes * p.lanes > threshold::mostStatements) p.lanes /= 2;
    if (v == out.value) chooseGather(f, target, p);
    if (p.mapTile) return p;
  }
  chooseTail(f, target, p);
  // Several merged dims, where what is read begins and ends within a vector or goes backwards, or steps begin anywhere
  // in a line, each of whose vectors has its place divided: items are lines of one, if they can be.
  if (p.tail || p.merge < 2 || f.extents.back()->lo < threshold::crossedLine * w) return p;
  Plan line = p;
  line.merge = 1;
  chooseTail(f, target, line);
  auto length = f.extents.back()->constIndex();
  bool crosses = length && *length % (p.lanes * p.unroll) && f.readBytes <= threshold::heldBytes;
  return line.tail &&
                 (f.under(line).gatesLanes() || f.under(line).readsBackwards() || (crosses && f.under(p).divides()))
             ? line
             : p;
}

/// Of a kernel that a user wrote: a register tile where it has products.
static Plan choosePrograms(KernelFacts &f, const Executor &target) {
  Plan p;
  p.kind = PlanKind::Programs;
  UOpRef tile = f.out.value->src[0];
  int64_t n = tile->rank() ? std::max<int64_t>(tile->shape.back()->hi, 1) : 1;
  p.lanes = std::min<int64_t>(std::max(1u, target.vectorBytes / f.laneBytes), llvm::PowerOf2Ceil(n));
  bool products = llvm::any_of(topoSort(tile), [](UOpRef x) {
    return x->op == Op::Contract || (x->op == Op::Fold && Combine(x->ints[0]) == Combine::Fma);
  });
  unsigned most = products ? (target.vectorRegisters >= 16 ? 2 : 1) : threshold::programVectors;
  for (p.unroll = 1; p.unroll < most && int64_t(p.lanes) * p.unroll * 2 <= n;) p.unroll *= 2;
  int64_t rows = products && tile->rank() > 1 ? tile->shape[tile->rank() - 2]->hi : 1;
  if (rows >= threshold::programRows)
    p.mr = rows >= threshold::programManyRows && target.vectorRegisters >= 32 ? threshold::programManyRows
                                                                              : threshold::programRows;
  return p;
}

/// All of a plan but how results are stored.
static Plan chooseForm(KernelFacts &f, const Executor &target) {
  Plan p;
  if (!f.spec.grid.empty()) return choosePrograms(f, target);
  if (contractPlan(f, target, p)) {
    if (!f.spec.followers.empty() && !target.isThread) chooseBlock(f, target, p);
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
  if (cost >= threshold::dearAccess && v == out.value && chooseRegisterTranspose(f, target, p)) return p;
  return chooseMap(f, target, w, p);
}

/// Results that no cache holds until they are read go past them: a line is not read before it is written.
static void chooseNonTemporal(KernelFacts &f, const Executor &target, Plan &p) {
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

Plan astra::choosePlanByRules(Context &c, const KernelSpec &spec, const Executor &executor) {
  KernelFacts f(c, spec);
  return chooseForm(f, executor);
}

Plan astra::choosePlan(Context &c, const KernelSpec &spec, const Target &target) {
  KernelFacts f(c, spec);
  Plan p = chooseForm(f, target);
  bool isOneOfSeveral = spec.follows || !spec.followers.empty(); // whose tiles go together
  if (speedsOf(target).ranks && !isOneOfSeveral && !exceptionOf(p)) p = cheapest(f, target, p);
  chooseNonTemporal(f, target, p);
  return p;
}
