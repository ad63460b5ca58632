//===- ContractPlan.cpp: choosing the plan of a contract -------------------===//
// Takes:    a kernel with a contract and a target.
// Gives:    a register tile, packing, blocks and prefetches, by counting cycles and bytes.
// Keeps:    as ChoosePlan.cpp.
#include "../Phases.h"
#include "Choosing.h"
#include "astra/Codegen/Lower.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <cmath>

using namespace astra;
using llvm::SmallVector;

std::string astra::unpackable(const KernelSpec &spec, const ContractSpec &s, bool laneInB, const Plan &p) {
  const auto &forms = laneInB ? s.b : s.a;
  const Placed *in = spec.input(spec.rootOp->src[laneInB]);
  if (in && !in->layout.isPermuted()) return "the operand of the lanes is packed already";
  bool words = s.unit && spec.rootOp->indices()[s.kept + s.reduced - 1]->constIndex() == 1; // of a step: one
  if (s.reduced - words != 1 || !s.domain.empty()) return "the sum is not over one label without a domain";
  for (const AffineForm &f : forms)
    if (!f.isLabel() || llvm::is_contained(p.mLabels, f.terms[0].first))
      return "the operand of the lanes is indexed by more than labels, or by one of m";
  auto k = spec.rootOp->indices()[s.kept]->constIndex();
  if (!k) return "the length of the sum is not constant";
  int64_t row = int64_t(p.lanes) * p.unroll * std::max(1u, byteSize(spec.rootOp->dtype));
  return *k > mostScratch / row ? "its columns take more than 16 MiB" : "";
}

/// The numbers of kept labels that the forms mention.
static SmallVector<bool> mentions(const SmallVector<AffineForm, 4> &forms, int64_t labels) {
  SmallVector<bool> m(labels);
  for (const AffineForm &f : forms)
    for (auto [l, k] : f.terms) m[l] = true;
  return m;
}

/// How far apart neighbours along a label lie in an operand, in bytes; mostCounted if that is not known.
static uint64_t stepBytes(const KernelFacts &f, bool inB, int64_t along) {
  UOpRef x = f.root->src[inB];
  const Placed *in = f.spec.input(x);
  if (!in || !in->layout.isPermuted()) return mostCounted;
  uint64_t step = 0, stride = byteSize(x->dtype);
  for (const MemoryDim &d : llvm::reverse(in->layout.dims)) {
    for (auto [label, k] : (inB ? f.contract->b : f.contract->a)[d.axis].terms)
      if (label == along) step += stride * std::abs(k);
    stride = times(stride, x->shape[d.axis]->hi);
  }
  return step;
}

/// The most rows of a tile along these labels. Of rows whose lines meet in one set of the L1 no more than it
/// has ways: lines of more drive each other out from step to step.
static unsigned tileRows(KernelFacts &f, const Executor &target, bool inB, llvm::ArrayRef<int64_t> labels) {
  if (target.isThread || labels.empty()) return threshold::tileRows;
  uint64_t step = stepBytes(f, inB, labels.back());
  return step && step < mostCounted && step % pageBytes == 0 ? cacheWays : threshold::tileRows;
}

/// Columns and rows of the parts of a result, each of which has tiles of its own (Phases.h).
using Parts = llvm::ArrayRef<std::pair<int64_t, int64_t>>;

/// Rows times vectors of a register tile, by the work it wastes on edges and on loads. `exceedsL2`: the lanes' operand
/// does not fit the L2, so that the first tile of a panel, and what rows are left for a pass of their own, wait for
/// memory. `spills`: partial sums are spilled to memory, but those of the rows that are left. `moves`: no rows are
/// left, the last tile begins earlier. `panel`: both operands lie in panels of so many elements, of which rows and
/// columns of a tile are parts or multiples, so that each has one address; 0: they do not. `mostRows`: of the other
/// operand's rows, whose lines may meet in one set of the L1. `columns`: the lanes' operand alone lies in panels of so
/// many elements; the columns of a tile are parts or multiples, so that no line is read in part, but by narrow vectors
/// of a panel or two and a part.
static void chooseTile(Plan &p, const Executor &t, unsigned w, Parts parts, bool moves, bool exceedsL2, bool spills,
                       unsigned panel, unsigned mostRows, unsigned columns,
                       unsigned mostVectors = threshold::tileRowVectors, unsigned mostSums = ~0u) {
  // Lines of a vector, and cycles of one from beyond the L2. A line from the L2 takes as long where rows that are apart
  // use a part of it.
  const double ofLine = double(t.vectorBytes) / lineBytes, arrival = threshold::tileFarLine * ofLine;
  auto near = [&](unsigned vectors) {
    return threshold::tileLine * (panel ? vectors * ofLine : std::ceil(vectors * ofLine));
  };
  double best = 0;
  for (unsigned nv = 1; nv <= mostVectors; ++nv)
    for (unsigned rows = 1; rows <= mostRows; ++rows) {
      if (nv > threshold::tileVectors && (rows > 1 || !exceedsL2)) continue;
      if (nv * rows + nv + !t.fmaFromMemory > t.vectorRegisters) continue;
      int64_t wide = nv * w, n = parts[0].first;
      auto fits = [&](unsigned elements) { return !elements || wide % elements == 0 || elements % wide == 0; };
      if ((panel && panel % rows) || !fits(panel)) continue;
      if (nv * rows > mostSums) continue;
      if (!fits(columns) && (n % columns == 0 || n > threshold::tileFewPanels * columns || t.vectorBytes == lineBytes))
        continue;
      // a tile's time a step: its fmas, or the latency of the chains when there are too few
      // and more where a register is missing and values are read again
      auto time = [&](unsigned vs, unsigned rs) {
        double steps =
            std::max(vs * rs / threshold::tileFmas, threshold::tileLatency) + threshold::tileLoad * (vs + rs);
        if (vs * rs + std::min(vs, rs) + 1 > t.vectorRegisters) steps *= threshold::tileReload;
        return spills ? std::max(steps, near(vs)) : steps;
      };
      auto arriving = [&](unsigned vs, unsigned rs) {
        return exceedsL2 ? std::max(time(vs, rs), arrival * vs) + threshold::tileLoad * time(vs, rs) : time(vs, rs);
      };
      auto ofPanel = [&](unsigned vs, int64_t m) {
        int64_t whole = moves && m >= rows ? llvm::divideCeil(m, rows) : m / rows,
                left = std::max<int64_t>(m - whole * rows, 0);
        double tiles = whole ? (whole - 1) * time(vs, rows) + arriving(vs, rows) : 0;
        return tiles + (left ? arriving(vs, left) * (spills ? 2 : 1) : 0);
      };
      double cost = 0, useful = 0;
      for (auto [n, m] : parts) {
        int64_t lastN = n % wide;
        cost += (n / wide) * ofPanel(nv, m) + (lastN ? ofPanel((lastN + w - 1) / w, m) : 0);
        useful += double(n) / w * m;
      }
      if (!fits(columns)) cost *= threshold::tilePart;
      double score = useful / std::max(cost, 1e-9);
      if (score > best * threshold::tileBetter) best = score, p.mr = rows, p.unroll = nv;
    }
  p.lanes = w;
}

// Tiles of a short sum each row of which reads vectors of its own, as a depthwise convolution's. What rows share is
// the other operand's elements and what their taps overlap in, which stays in registers where the body is written out:
// so few sums, of rows that are neighbours.

unsigned astra::lanesThatMove(const Executor &t, UOpRef n, unsigned width) {
  unsigned lanes = n->isConst() && n->hi < width ? llvm::bit_floor<uint64_t>(std::max<int64_t>(n->hi, 0)) : width;
  return storesLines(t) || lanes < 2 || n->lo < lanes ? 0 : lanes;
}

/// Lanes along the image, rows down it: about as many sums as hide their latency. All columns in one pass where that
/// is possible, or equal passes, since another reads lines again; the last of several narrow vectors begins earlier.
static void chooseDown(KernelFacts &f, const Executor &target, Plan &p) {
  UOpRef r = f.root;
  auto outside = llvm::make_filter_range(f.out.layout.dims, [&](const MemoryDim &d) { return d.axis != p.nLabel; });
  auto n = r->shape[p.nLabel]->constIndex();
  if (outside.empty() || !n) return;
  int64_t down = (--outside.end())->axis; // along which rows are neighbours
  if (!llvm::is_contained(innerLabels(*f.contract, p.nLabel), down) || r->shape[down]->lo < 2) return;
  unsigned lanes = movesLastVector(f.spec) ? lanesThatMove(target, r->shape[p.nLabel], p.lanes) : 0;
  if (lanes * byteSize(r->dtype) >= threshold::leastVector) p.lanes = lanes;
  auto onePass = [&](unsigned vectors) {
    int64_t wide = int64_t(vectors) * p.lanes;
    return *n <= wide || *n % wide == 0;
  };
  p.unroll = target.sums;
  while (p.unroll > 1 && !onePass(p.unroll)) --p.unroll;
  if (!onePass(p.unroll)) p.unroll = std::max(target.sums / 2, 1u);
  p.unroll = std::min<int64_t>(p.unroll, llvm::divideCeil(std::max<int64_t>(*n, 1), p.lanes));
  p.mr = std::max(target.sums / p.unroll, 4 * p.unroll <= target.vectorRegisters ? 2u : 1u); // half for the sums
  p.mLabels.assign({down});
  if (lanes == p.lanes && *n % lanes > 1 && *n < int64_t(p.unroll) * lanes) p.tail = tailOverlapped;
}

/// Lanes along channels, rows along the image's own: as many as divide it, so that no tile goes over an edge. All
/// channels of a pass stay in the L1 for the taps of the rows below, if all fits the L2; else a row of the
/// image has all its channels first, in the order of memory.
static bool chooseAcross(KernelFacts &f, const Executor &target, llvm::ArrayRef<int64_t> rows, bool otherFitsL2,
                         Plan &p) {
  UOpRef r = f.root;
  auto length = r->shape[rows.back()]->constIndex(), n = r->shape[p.nLabel]->constIndex();
  if (!length || !n || *length < threshold::acrossLeastRows) return false;
  p.mr = threshold::acrossRows;
  while (p.mr >= threshold::acrossLeastRows && *length % p.mr) --p.mr;
  bool whole = p.mr >= threshold::acrossLeastRows;
  if (!whole) p.mr = threshold::acrossLeastRows;
  // Half of the registers for sums and the other operand's vectors, half for what rows overlap in; no part of a line.
  auto fits = [&](unsigned vectors) { return (p.mr + 1) * vectors <= target.vectorRegisters / 2; };
  p.unroll = fits(2) && *n % (2 * p.lanes) == 0 ? 2 : 1;
  if (!fits(p.unroll) || p.unroll * target.vectorBytes < lineBytes) return false;
  bool fixed = llvm::all_of(rows, [&](int64_t l) { return r->shape[l]->isConst(); });
  p.mLabels.assign(whole && otherFitsL2 && fixed ? rows.begin() : rows.end() - 1, rows.end());
  return true;
}

/// Whether the lanes' operand is worth a copy in fast memory: rows of it are far apart, many rows of the tile read it.
/// The copy need not fit the L2: that its rows are neighbours is worth more.
static void choosePackB(KernelFacts &f, const Executor &target, bool laneInB, Plan &p) {
  UOpRef r = f.root;
  if (!unpackable(f.spec, *f.contract, laneInB, p).empty()) return;
  auto k = r->indices()[f.contract->kept]->constIndex(), n = r->shape[p.nLabel]->constIndex();
  UOpRef rows = f.c.index(1);
  for (int64_t l : p.mLabels) rows = idxMul(f.c, rows, r->shape[l]);
  // An operand that is computed in the kernel gains from two tiles of rows on, also where only some calls have them.
  bool computed = !f.spec.input(r->src[laneInB]);
  int64_t width = int64_t(p.lanes) * p.unroll,
          most = computed ? f.spec.mostRows ? f.spec.mostRows : rows->hi : rows->lo, tiles = most / p.mr;
  if (!k || !n || *k < threshold::packSteps || *n < 2 * width || tiles < (computed ? 2 : threshold::packTiles)) return;
  if (uint64_t(*k) * width * byteSize(r->dtype) > partOfL2(target, threshold::packPart)) return; // each worker has one
  // Two items for each core; one where an item's copy would take much of its time.
  int64_t columns = llvm::divideCeil(*n, width), parts = llvm::divideCeil(2 * target.cores, columns);
  if (tiles / parts < threshold::manyTiles) parts = llvm::divideCeil(target.cores, columns);
  parts = std::clamp<int64_t>(tiles / threshold::packTiles, 1, parts);
  p.packB = std::min<int64_t>(std::max<int64_t>(llvm::divideCeil(tiles, parts), threshold::packTiles), mostNumber);
}

/// Of a contract both of whose operands lie in panels, the elements of one; else 0.
static unsigned panelOfBoth(const KernelFacts &f) {
  unsigned least = 0;
  for (UOpRef x : f.root->src) {
    if (x->isIndex()) break;
    if (!f.spec.isPacked(x)) return 0;
    unsigned elements = f.spec.input(x)->layout.dims.back().modulus;
    least = least ? std::min(least, elements) : elements;
  }
  return least;
}

/// Where no operand is packed, or both are, and tiles would read the lanes' operand again and again from beyond the L2:
/// all row labels in an item's tiles, and a long sum in parts, taken by the tiles in turn.
static void chooseBlocking(KernelFacts &f, const Executor &target, llvm::ArrayRef<int64_t> rows, bool laneInB,
                           uint64_t operandBytes, Plan &p) {
  constexpr int64_t least = threshold::fewTiles, most = threshold::manyTiles;
  const uint64_t items = target.cores / 2; // each reads the other operand anew
  // Rows that lie far apart meet in few sets of the L2.
  int64_t deep = stepBytes(f, laneInB, f.contract->kept + f.contract->reduced - 1) >= threshold::meetingBytes
                     ? threshold::blockFarSteps
                     : threshold::blockSteps;
  UOpRef r = f.root;
  bool moves = movesLastTile(f.spec);
  auto packed = [](const Placed &x) { return !x.layout.isPermuted(); };
  unsigned panel = panelOfBoth(f);
  if (p.packB || !isFloat(r->dtype) || (f.contract->unit && f.contract->unit->block > 2) ||
      !f.contract->domain.empty() || !f.contract->outside.empty() || (!panel && llvm::any_of(f.spec.inputs, packed)))
    return;
  auto product = [&](auto &&labels) {
    uint64_t v = 1;
    for (int64_t l : labels) {
      UOpRef e = r->indices()[l];
      v = llvm::SaturatingMultiply<uint64_t>(v, e->isConst() ? std::max<int64_t>(e->ints[0], 1) : ~uint64_t(0));
    }
    return v;
  };
  auto inner = innerLabels(*f.contract, p.nLabel);
  uint64_t steps = product(llvm::seq(f.contract->kept, f.contract->kept + f.contract->reduced)), m = product(rows),
           taps = product(inner), n = product(llvm::ArrayRef(p.nLabel)),
           all = product(llvm::seq(int64_t(0), f.contract->kept));
  // Of the other operand, a line a step.
  uint64_t width = uint64_t(p.lanes) * p.unroll, pass = steps * (width * byteSize(r->dtype) + lineBytes);
  if (steps < threshold::blockFarSteps || std::max({steps, m, taps, n, all}) > mostCounted) return;
  Plan q = p;
  unsigned below = tileRows(f, target, !laneInB, rows); // one another
  q.mLabels.assign(rows.begin(), rows.end());
  bool exceedsL2 = pass >= partOfL2(target, threshold::blockPass);
  if (!exceedsL2) {
    if (p.mLabels.size() == rows.size() || operandBytes <= partOfL2(target, threshold::blockOperand)) return;
    chooseTile(q, target, p.lanes, {{int64_t(n), int64_t(m)}}, moves, false, false, panel, below, 0);
    p = q;
    return;
  }
  chooseTile(q, target, p.lanes, {{int64_t(n), int64_t(m)}}, moves, false, true, panel, below, 0);
  uint64_t columns = std::max<uint64_t>(n / (q.lanes * q.unroll), 1), batches = all / (n * m * taps),
           tiles = std::max<uint64_t>(moves ? llvm::divideCeil(m, q.mr) : m / q.mr, 1),
           parts = (items + columns * batches - 1) / (columns * batches);
  q.mc = std::clamp<uint64_t>((tiles + parts - 1) / parts, std::min<uint64_t>(tiles, (least + taps - 1) / taps),
                              std::max<uint64_t>(most / taps, 1));
  q.kc = deep;
  if (q.mc * taps >= least && q.mc * taps <= least * most) p = q;
}

/// Tiles of rows that share a panel from beyond the L2, some steps of it at a time, so that all but the first read it
/// from the L1. Two tiles; or several, where the L2 does not hold a panel from one tile to the next, be it for its size
/// or for that of the rows that pass in between. As long as there are items for some threads.
static void chooseShared(KernelFacts &f, const Executor &target, int64_t rows, bool packed, bool exceedsL2, Plan &p) {
  UOpRef r = f.root;
  if (p.packB || p.mc || !packed || !exceedsL2 || !isFloat(r->dtype) || f.spec.follows || !f.spec.followers.empty() ||
      !f.contract->domain.empty() || !f.contract->outside.empty() || !innerLabels(*f.contract, p.nLabel).empty())
    return;
  int64_t columns = int64_t(p.lanes) * p.unroll;
  uint64_t panels = 1; // in each of which the tiles lie one below another
  for (int64_t l = 0; l < f.contract->kept; ++l)
    if (!llvm::is_contained(p.mLabels, l)) {
      int64_t here = std::max<int64_t>(r->shape[l]->lo, 1);
      panels = times(panels, l == p.nLabel ? llvm::divideCeil(here, columns) : here);
    }
  uint64_t bytes = uint64_t(leastSteps(f.spec)) * byteSize(r->dtype), ofPanel = bytes * columns, ofRows = bytes * rows;
  // Rows that the L2 does not hold come from beyond it whatever the tiles do.
  bool stays = ofPanel <= partOfL2(target, threshold::panelsPart) &&
               (ofPanel + ofRows <= target.l2Bytes || ofRows > target.l2Bytes);
  int64_t tiles = llvm::divideCeil(rows, p.mr),
          together = llvm::divideCeil(tiles, llvm::divideCeil(target.cores / 2, panels));
  if (rows <= threshold::pairRows && rows == 2 * int64_t(p.mr) && movesLastTile(f.spec))
    p.mc = 2, p.kc = threshold::pairSteps;
  else if (!stays && tiles <= threshold::tilesTogether && together >= threshold::fewestTiles)
    p.mc = together, p.kc = together <= threshold::fewTiles ? threshold::pairSteps : threshold::sharedSteps;
}

/// Whether the L2 holds all panels of an operand beside what passes.
static bool fitsL2(UOpRef panels, const Executor &target) {
  return mostBytes(panels) <= partOfL2(target, threshold::panelsPart);
}

/// Whether a product's reads are prefetched: where they come from beyond the L2, and few tiles read the same (of many,
/// the first one alone waits), or the lanes' operand has been copied, so that what is read after the sums is all. Where
/// all columns of a tile of rows come before the next tile, and rows from beyond the L2, each tile waits for its own.
/// Not by the short steps of narrow vectors where other taps read the same: they fit the L2 then.
static void choosePrefetch(KernelFacts &f, const Executor &target, bool laneInB, Plan &p) {
  UOpRef r = f.root;
  if (!isFloat(r->dtype) || p.mr * p.unroll < threshold::aheadTile) return;
  bool plain = f.spec.input(r->src[!laneInB]);
  if (target.vectorBytes < lineBytes && !p.packB && (f.contract->reduced > 1 || !plain)) return;
  uint64_t read = f.readBytes, rows = 1;
  for (int64_t l : p.mLabels) rows = times(rows, r->shape[l]->hi);
  bool packed = llvm::any_of(f.spec.inputs, [](const Placed &x) { return !x.layout.isPermuted(); });
  if (p.rowBlock && !p.packB && fitsL2(r->src[laneInB], target) &&
      mostBytes(r->src[!laneInB]) > partOfL2(target, threshold::blockOperand))
    p.prefetch = threshold::rowsAhead;
  else if (read > target.l2Bytes &&
           (p.packB || rows / p.mr <= uint64_t(packed ? threshold::manyTiles : threshold::aheadTiles)))
    p.prefetch = threshold::aheadSteps;
}

/// Whether tiles prefetch the next panel of a packed operand, which then comes while they compute: where a panel is
/// read by some tiles, but not by so many that the time in which it comes is nothing. Wherever it is: it may be in the
/// L2, but weights of a network seldom are, since those of all layers pass through it in between.
static void choosePanelPrefetch(KernelFacts &f, const Executor &target, bool laneInB, Plan &p) {
  UOpRef r = f.root, panels = r->src[laneInB];
  bool packed = f.spec.isPacked(panels);
  if (!packed || p.packB || p.mc || (p.rowBlock && fitsL2(panels, target)) || f.spec.follows ||
      !f.spec.followers.empty())
    return;
  if (leastSteps(f.spec) < threshold::shortSum) return;
  uint64_t rows = 1;
  for (int64_t l : p.mLabels) {
    if (!r->shape[l]->isConst()) return; // then nobody knows what a step's part is
    rows = times(rows, r->shape[l]->hi);
  }
  uint64_t tiles = p.rowBlock ? p.rowBlock : llvm::divideCeil(rows, p.mr);
  p.prefetchPanel = tiles >= threshold::fewestTiles && tiles <= threshold::manyTiles;
  // Of few tiles with narrow vectors each asks for much of the next panel, and to ask for its own ahead too is more
  // than memory gives.
  if (p.prefetchPanel && tiles <= threshold::fewTilesAhead && !storesLines(target)) p.prefetch = 0;
}

/// The order of items. By panels of columns, each worker reads some panels and all of the other operand; by rows, all
/// panels and some rows of the other operand, which it has often written itself, as the same share of another kernel.
/// So by rows where these are more bytes and panels lie side by side in memory: as many tiles as half of the L1 has the
/// rows of, which then read a panel from there. Where the L2 does not hold all panels, several tiles of a panel follow
/// each other, and rows are to be twice as many bytes, since panels come from beyond the L2 again for each of these
/// bands. By rows too where sums are short and what is written is all, in the order of memory then.
static void chooseOrder(KernelFacts &f, const Executor &target, bool laneInB, Plan &p) {
  UOpRef r = f.root, panels = r->src[laneInB], other = r->src[!laneInB];
  bool packed = f.spec.isPacked(panels);
  if (f.spec.follows || p.mc) return;
  if (r->shape[p.nLabel]->lo <= int64_t(p.lanes) * p.unroll) return; // one panel
  if (!packed && !p.packB) {
    bool isShort =
        idxProduct(f.c, r->indices().slice(f.contract->kept, f.contract->reduced))->hi <= threshold::orderSum;
    if (isShort && mostBytes(r) > target.l2Bytes && fitsL2(panels, target)) p.rowBlock = 1;
    return;
  }
  uint64_t most = mostBytes(panels), least = byteSize(r->dtype);
  for (UOpRef e : other->shape) least = llvm::SaturatingMultiply<uint64_t>(least, std::max<int64_t>(e->lo, 0));
  bool panelsFit = fitsL2(panels, target);
  if (least / (panelsFit ? 1 : 2) <= most) return;
  uint64_t rows = 1;
  for (int64_t l : p.mLabels) rows = times(rows, r->shape[l]->lo);
  uint64_t ofRow = std::max<uint64_t>(least / rows, 1), down = uint64_t(p.mr) * std::max(p.packB, 1u),
           ofItem = llvm::SaturatingMultiply(ofRow, down);
  p.rowBlock = panelsFit ? std::clamp<uint64_t>(target.l1Bytes / 2 / ofItem, 1, threshold::tilesTogether)
                         : threshold::tilesTogether;
}

/// A row times a matrix as it lies, from memory: as much of each of its rows as there are registers for sums.
static void chooseWide(const Executor &target, bool packed, bool exceedsL2, UOpRef n, Plan &p) {
  const unsigned most = storesLines(target) ? threshold::wideVectors : target.vectorRegisters - 2,
                 steps = storesLines(target) ? threshold::rowsAhead : 0;
  if (packed || !exceedsL2 || p.mr > 1 || p.packB || p.mc || n->lo < int64_t(2 * most * p.lanes)) return;
  p.unroll = most, p.prefetch = steps;
}

/// Few rows, all of a tile: what bounds them is weights from memory, each of which is read once. Panels that lie a
/// multiple of a page apart meet in one set of the L1: few of them at once, of one row asked for a page before, of more
/// rows by the CPU itself.
static void chooseStream(KernelFacts &f, const Executor &target, bool packed, bool exceedsL2, int64_t rows, Plan &p) {
  bool meets = uint64_t(leastSteps(f.spec)) * target.vectorBytes % pageBytes == 0;
  if (!storesLines(target) || !packed || !exceedsL2 || !meets || !p.prefetch || rows > threshold::streamRows ||
      rows > p.mr)
    return;
  p.unroll = std::min<int64_t>(p.unroll, rows == 1 ? threshold::streamVectors : threshold::streamRowVectors);
  p.prefetch = rows == 1 ? threshold::streamAhead : 0;
}

/// Columns and rows of the parts of a result with windows.
static SmallVector<std::pair<int64_t, int64_t>, 4> sizesOfParts(Context &c, UOpRef r, const Plan &p) {
  SmallVector<std::pair<int64_t, int64_t>, 4> sizes;
  for (const Phase &phase : phasesOf(c, r, p.nLabel)) {
    auto count = [&](int64_t l) { return std::max<int64_t>((phase.counts[l] ? phase.counts[l] : r->shape[l])->hi, 1); };
    int64_t m = 1;
    for (int64_t l : p.mLabels) m *= count(l);
    sizes.push_back({count(p.nLabel), m});
  }
  return sizes;
}

/// Of a kernel that computes the sums of blocks that it adds up (sumOfBlock), the labels of rows, which reuse what a
/// block's sum reads along the lanes, in the output's memory order; nothing of another.
static std::optional<SmallVector<int64_t>> rowsOfBlocks(const KernelFacts &f, int64_t nLabel) {
  UOpRef block = sumOfBlock(f.root);
  if (!block || f.spec.input(block)) return std::nullopt;
  ContractSpec inner = llvm::cantFail(decodeContract(block->ints));
  SmallVector<int64_t> axisOf(f.contract->kept +
                              f.contract->reduced); // of the block's result, which is no more than its labels
  for (auto [axis, form] : llvm::enumerate(f.contract->a)) axisOf[form.terms[0].first] = axis;
  auto inB = mentions(inner.b, inner.kept + inner.reduced);
  auto along = mentions(inB[axisOf[nLabel]] ? inner.b : inner.a, inner.kept + inner.reduced);
  SmallVector<int64_t> rows;
  for (const MemoryDim &d : f.out.layout.dims)
    if (d.axis != nLabel && d.axis < f.contract->kept && !along[axisOf[d.axis]]) rows.push_back(d.axis);
  return rows;
}

bool astra::contractPlan(KernelFacts &f, const Executor &target, Plan &p) {
  if (!f.root || f.root->op != Op::Contract || f.spec.vectorIndex < 0) return false;
  UOpRef r = f.root;
  p.kind = PlanKind::Contract;
  p.nLabel = f.spec.vectorIndex;
  int64_t labels = f.contract->kept + f.contract->reduced;
  auto inA = mentions(f.contract->a, labels), inB = mentions(f.contract->b, labels);
  bool laneInB = inB[p.nLabel];
  auto &other = laneInB ? inB : inA; // rows reuse the operand along which the lanes run
  SmallVector<int64_t> rows;         // in the output's memory order
  for (const MemoryDim &d : f.out.layout.dims)
    if (d.axis != p.nLabel && d.axis < f.contract->kept && !other[d.axis]) rows.push_back(d.axis);
  // Lanes of one vector: at most what lies together in a panel.
  unsigned lanes = target.vectorBytes / std::max(1u, byteSize(r->dtype));
  for (const Placed &x : f.spec.inputs)
    if (!x.layout.isPermuted() && x.layout.dims.back().modulus)
      lanes = std::min<int64_t>(lanes, x.layout.dims.back().modulus);
  uint64_t operandBytes = mostBytes(r->src[laneInB]), otherBytes = mostBytes(r->src[!laneInB]);
  // A vector no wider than all columns: its masks, and the lines that it crosses, are fewer.
  if (auto n = r->shape[p.nLabel]->constIndex())
    while (lanes * byteSize(r->dtype) > threshold::leastVector && lanes / 2 >= std::max<int64_t>(*n, 1)) lanes /= 2;
  // Of columns that are copied for each item the rows that are left cost little.
  bool packed = f.spec.isPacked(r->src[laneInB]);
  unsigned columns = packed ? f.spec.input(r->src[laneInB])->layout.dims.back().modulus : 0;
  bool moves = !target.isThread && packed && movesLastTile(f.spec);
  bool exceedsL2 = operandBytes > target.l2Bytes;
  int64_t all = 1; // rows; where they are one tile, what exceeds the L2 is read once
  for (int64_t l : rows)
    all = std::min(all * std::clamp<int64_t>(r->shape[l]->hi, 1, threshold::tileRows + 1), threshold::tileRows + 1);
  bool once = exceedsL2 && all <= threshold::tileRows;
  uint64_t taps = 1;
  for (UOpRef e : llvm::drop_begin(r->indices(), f.contract->kept))
    taps = std::min<uint64_t>(taps, threshold::shortSum + 1) *
           (e->isConst() ? std::max<int64_t>(e->ints[0], 1) : threshold::shortSum + 1);
  bool hasParts = !f.contract->outside.empty() && taps > threshold::shortSum;
  std::optional<SmallVector<int64_t>> ofBlocks = rowsOfBlocks(f, p.nLabel);
  Executor registers = target;
  if (ofBlocks) rows = *ofBlocks, registers.vectorRegisters /= 2; // half for the sums of a block
  // A step of a matrix unit of several words is hundreds of instructions in primitives.
  const unsigned mostSums = f.contract->unit && f.contract->unit->block > 2 ? 2 : ~0u;
  auto tileFor = [&](llvm::ArrayRef<int64_t> mLabels) {
    p.mLabels.assign(mLabels.begin(), mLabels.end());
    int64_t m = 1;
    bool fixed = true;
    for (int64_t l : mLabels) m *= std::max<int64_t>(r->shape[l]->hi, 1), fixed &= r->shape[l]->isConst();
    if (f.spec.mostRows) m = f.spec.mostRows, fixed = true;
    UOpRef n = r->shape[p.nLabel];
    SmallVector<std::pair<int64_t, int64_t>, 4> parts{{n->isConst() ? n->hi : mostNumber, fixed ? m : mostNumber}};
    unsigned mostVectors = threshold::tileRowVectors;
    if (fixed && n->isConst() && hasParts) { // whose panels the L2 holds from one tile to the next
      uint64_t bytes = uint64_t(leastSteps(f.spec)) * lanes * byteSize(r->dtype);
      mostVectors = std::clamp<uint64_t>(target.l2Bytes / std::max<uint64_t>(bytes, 1), 2, mostVectors);
      parts = sizesOfParts(f.c, r, p);
    }
    chooseTile(p, registers, lanes, parts, moves, exceedsL2, false, panelOfBoth(f),
               once ? threshold::tileRows : tileRows(f, target, !laneInB, mLabels), columns, mostVectors, mostSums);
    if (target.tiles && f.contract->unit && llvm::StringRef(f.contract->unit->text) == "amx32" &&
        lanes == 16) // four tiles of sums, or fewer
      p.mr = m >= 32 ? 32 : m >= 16 ? 16 : std::max<int64_t>(m, 1), p.unroll = parts[0].first >= 32 ? 2 : 1;
  };
  tileFor({});
  bool isShort = !target.isThread && taps <= threshold::shortSum &&
                 isFloat(r->dtype); // a GPU's threads have no tiles of this kind
  bool alsoInOther = (laneInB ? inA : inB)[p.nLabel];
  if (rows.empty()) {
    if (isShort) chooseDown(f, target, p);
    return true;
  }
  if (isShort && alsoInOther && !ofBlocks && chooseAcross(f, target, rows, otherBytes <= target.l2Bytes, p))
    return true;
  // As many row labels as can be walked as one index without dividing in addresses; else the innermost alone. All of
  // them where parts are small: each reads the weights of its taps anew.
  unsigned least = ~0u;
  Plan chosen = p;
  for (size_t k = 1; k <= rows.size(); ++k) {
    tileFor(llvm::ArrayRef<int64_t>(rows).take_back(k));
    unsigned cost = f.under(p).cost;
    if (k > 1 && cost > least && !hasParts) break;
    if (k == 1 || cost <= least || hasParts) least = cost, chosen = p;
  }
  p = chosen;
  if (ofBlocks || target.isThread) return true;
  choosePackB(f, target, laneInB, p);
  chooseBlocking(f, target, rows, laneInB, operandBytes, p);
  UOpRef down = f.c.index(1);
  for (int64_t l : p.mLabels) down = idxMul(f.c, down, r->shape[l]);
  if (p.mLabels.size() == rows.size()) chooseShared(f, target, down->constIndex().value_or(0), packed, exceedsL2, p);
  if (p.mLabels.size() == rows.size() && !alsoInOther) chooseOrder(f, target, laneInB, p);
  choosePrefetch(f, target, laneInB, p);
  choosePanelPrefetch(f, target, laneInB, p);
  if (p.mLabels.size() == rows.size())
    chooseStream(f, target, packed, exceedsL2, down->constIndex().value_or(mostNumber), p);
  if (down->constIndex() == 1) chooseWide(target, packed, exceedsL2, r->shape[p.nLabel], p);
  return true;
}
