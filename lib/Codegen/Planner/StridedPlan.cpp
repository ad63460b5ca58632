//===- StridedPlan.cpp: plans for strided access -----------------------------===//
// Takes:    a kernel with strided access to an operand: neighbours of its result are not neighbours there.
// Gives:    a plan under which it is read by vectors, which are transposed in registers (Note [In-register transpose]):
//           the points of a map, the steps of a sum.
// Keeps:    as ChoosePlan.cpp.
#include "Choosing.h"
#include "astra/Codegen/Lower.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;

/// How many points an item has: at most so many, a multiple of those at once, items alike where that leaves a quarter.
static unsigned pointsOf(UOpRef around, unsigned most, unsigned once) {
  unsigned all = most / once;
  if (!around->isConst()) return all * once;
  all = std::min<int64_t>(all, around->hi / once);
  for (unsigned deep = all; 4 * deep >= all; --deep)
    if (around->hi / once % deep == 0) return deep * once;
  return all * once;
}

/// Whether a line of a result is so many lanes again and again.
static bool isWhole(UOpRef line, unsigned lanes) {
  return lanes <= mostLanes && line->isConst() && line->hi % lanes == 0;
}

/// Lanes of an in-register transpose: a vector, or a cache line of floats where a vector is less and the result's lines
/// are whole ones: half a line is written twice, and is gone between where lines lie a power of two apart.
static unsigned transposeLanes(const Executor &target, UOpRef line, unsigned width, unsigned bytes) {
  return !storesLines(target) && bytes >= threshold::wideElement && isWhole(line, lineBytes / bytes) ? lineBytes / bytes
                                                                                                     : width;
}

/// In-register transposes of what no cache holds. Where a vector is a line, squares whose results are written by
/// non-temporal stores: of elements of 8 bytes and of what is not much larger than the caches whole squares, of others
/// few points at once, in items of many. Where it is less, two lines of a result are written at once if that reads
/// near, from lines that are read to their ends if they are not long; else items have more points.
static void chooseLarge(KernelFacts &f, const Executor &target, UOpRef in, UOpRef around, unsigned bytes, bool exceeds,
                        Plan &p) {
  Plan single = p;
  single.unroll = 1, single.mapTile = pointsOf(around, threshold::itemPoints, 1);
  if (storesLines(target)) {
    if (bytes > threshold::wideElement || !exceeds) {
      p.mapTile = pointsOf(around, exceeds ? threshold::itemPoints : threshold::wholePoints, p.unroll);
      return;
    }
    p.unroll = std::min<int64_t>(p.unroll, threshold::fewPoints);
    p.mapTile = pointsOf(around, threshold::manyPoints, p.unroll);
    if (bytes == 1) p = single; // 64 lanes
    return;
  }
  single.lanes = 2 * lineBytes / bytes;
  if (isWhole(in, single.lanes) && f.under(single).readsNear(target.l1Bytes / (2 * lineBytes))) {
    if (around->isConst() && around->hi <= threshold::manyPoints) single.mapTile = around->hi;
    p = single;
    return;
  }
  p.mapTile = pointsOf(around, threshold::manyPoints, p.unroll);
}

/// The memory dims outside of the merged ones along which what is read is one run of memory, at least so long, the
/// innermost of the run last: that of the first operand with strided access. None where that is their order anyway, or
/// an operand's elements are not at fixed strides.
static llvm::SmallVector<int64_t, 2> dimsOfRun(KernelFacts &f, unsigned merge, int64_t least) {
  llvm::SmallVector<UOpRef, 8> loops;
  llvm::SmallVector<int64_t, 2> run;
  for (UOpRef load : topoSort(lowerByDims(f.c, f.spec, loops).sink)) {
    if (load->op != Op::Load) continue;
    llvm::SmallVector<int64_t, 8> strides(loops.size(), 0);
    for (const IndexTerm &t : terms(load->src.back())) {
      if (t.atoms.empty()) continue;
      auto at = t.atoms.size() == 1 ? llvm::find(loops, t.atoms[0]) : loops.end();
      if (at == loops.end()) return {};
      strides[at - loops.begin()] = t.coefficient;
    }
    if (strides.back() == 0 || strides.back() == 1) continue;
    int64_t next = 1;
    while (next < least) {
      auto at = llvm::find(strides, next);
      if (at >= strides.end() - merge) break;
      auto extent = loops[at - strides.begin()]->src[0]->constIndex();
      if (!extent || *extent < 2) break;
      run.insert(run.begin(), at - strides.begin());
      next *= *extent;
    }
    break;
  }
  for (size_t i = 0; i < run.size(); ++i)
    if (run[i] != int64_t(loops.size() - merge - run.size() + i)) return run;
  return {};
}

/// Strided access to an operand: squares of vectors, transposed in registers: in a quarter of them, or in half where
/// little else is computed. Where some loop goes along it, or dims that do become the innermost of the points. An item
/// reads one line, or two, to their ends.
bool astra::chooseRegisterTranspose(KernelFacts &f, const Executor &target, Plan &p) {
  unsigned bytes = std::max(1u, byteSize(f.out.value->dtype)), width = target.vectorBytes / bytes;
  if (target.isThread || width < 2) return false;
  int64_t elements = idxProduct(f.c, f.extents)->lo;
  bool large = isLargeTranspose(target, elements, bytes), exceeds = exceedsL3(target, elements, bytes);
  bool copies = bytes >= threshold::wideElement && llvm::count_if(topoSort(f.out.value), [](UOpRef n) {
                                                     return has(n->op, Elementwise) && !n->isIndex();
                                                   }) <= threshold::copyOps;
  unsigned item = bytes < threshold::wideElement ? threshold::itemPoints
                  : storesLines(target)          ? threshold::linePoints
                                                 : lineBytes / bytes;
  // Points in the order of memory, if they can be.
  for (bool reorders : {false, true})
    for (size_t k = 1; k < f.extents.size(); ++k) {
      UOpRef in = idxProduct(f.c, f.extents.take_back(k)), around = idxProduct(f.c, f.extents.drop_back(k));
      if (in->hi < width) continue;
      Plan tiled = p;
      tiled.merge = k, tiled.lanes = transposeLanes(target, in, width, bytes);
      auto run = dimsOfRun(f, k, large ? threshold::longRun : item);
      if (reorders && run.empty()) continue;
      if (reorders) tiled.points = run;
      unsigned least = std::min<int64_t>(width, threshold::fewestLanes),
               first = std::min(width, target.vectorRegisters / (copies && storesLines(target) ? 2 : 4));
      for (unsigned u = first; u >= least && around->isConst(); u /= 2)
        if (around->hi % u == 0) { // no point is left over
          first = u;
          break;
        }
      for (unsigned u = first; u >= least; u /= 2) {
        if (around->hi < u) continue;
        tiled.unroll = u, tiled.mapTile = std::max(item, u);
        if (bytes < threshold::wideElement || around->hi < item) tiled.mapTile = pointsOf(around, tiled.mapTile, u);
        if (!f.under(tiled).transposesInRegisters(false)) continue;
        p = tiled;
        if (!large) return true;
        tiled.points = run;
        if (f.under(tiled).transposesInRegisters(false)) p = tiled;
        chooseLarge(f, target, in, around, bytes, exceeds, p);
        return true;
      }
    }
  return false;
}

/// Lines of a few elements, less than a vector, with strided access, as an image's colours from planes of them: one
/// element after another, in a loop over lines, in which a C compiler sees runs to interleave. As long as neighbours of
/// a line are neighbours in what is read, without a division, or thousands of them where no vector's lanes are whole
/// lines. The other way lines of which every third element of two bytes or less is read.
bool astra::chooseInterleaved(KernelFacts &f, const Executor &target, Plan &p) {
  UOpRef n = f.extents.back();
  int64_t bytes = std::max(1u, byteSize(f.out.value->dtype)), width = target.vectorBytes / bytes;
  bool few = f.extents.size() > 1 && n->isConst() && n->hi >= 2 && n->hi <= threshold::interleaved && n->hi < width &&
             f.extents[f.extents.size() - 2]->lo >= threshold::interleavedLines;
  bool thirds = n->lo >= threshold::interleavedLines && bytes < threshold::wideElement;
  if (target.isThread || !(few || thirds)) return false;
  Plan lines = p;
  lines.merge = lines.lanes = lines.unroll = 1;
  lines.tail = tailMasked;
  for (const LoadAccess &load : f.under(lines).loads) {
    bool across = false, runs = false; // along a line; from line to line
    for (const AccessTerm &t : load.terms) switch (t.along) {
      case Along::Item: runs |= t.coefficient == 1; break;
      case Along::ItemRemainder:
        runs |= t.coefficient == 1 && width % n->hi && t.modulus >= threshold::interleavedRun;
        break;
      case Along::Else: break;
      default:
        across |= few ? std::abs(t.coefficient) > threshold::interleaved : t.coefficient == threshold::everyThird;
      }
    if (!across || (few && !runs)) continue;
    p = lines;
    return true;
  }
  return false;
}

/// A gather along the innermost axis: where the lanes lie is computed once for some rows.
void astra::chooseGather(KernelFacts &f, const Executor &target, Plan &p) {
  if (target.isThread || p.lanes < 2) return;
  for (unsigned k = p.merge; k > 0; --k) {
    UOpRef around = idxProduct(f.c, f.extents.drop_back(k)), line = idxProduct(f.c, f.extents.take_back(k));
    if (line->hi < p.lanes) return;
    int64_t vectors = llvm::divideCeil(std::max<int64_t>(line->lo, 1), p.lanes);
    uint64_t rows = llvm::SaturatingMultiply<uint64_t>(std::max<int64_t>(around->lo, 0), vectors) /
                    target.cores; // an item for each core
    if (rows < 2 || around->lo < 2) continue;
    Plan block = p;
    block.merge = k, block.unroll = 1,
    block.mapTile = pointsOf(around, std::min<uint64_t>(threshold::itemPoints, rows), 1);
    if (!f.under(block).sharesPlaces()) continue;
    p = block;
    return;
  }
}

int64_t astra::blocksOf(UOpRef r) {
  ContractSpec s = llvm::cantFail(decodeContract(r->ints));
  auto isLabel = [](const AffineForm &f) { return f.isLabel(); };
  if (!isFloat(r->dtype) || s.reduced != 1 || !s.domain.empty() || !llvm::all_of(s.a, isLabel) ||
      !llvm::all_of(s.b, isLabel))
    return 0;
  UOpRef n = r->indices()[s.kept];
  int64_t blocks = n->hi / chainBlock;
  return blocks > mostScratch / int64_t(sizeof(double)) ? 0 : blocks;
}

/// Few long sums, as of two vectors: the blocks of a chain are lanes, which lie 512 elements apart, and whole lines of
/// steps are taken together, or half of them where a line is a vector: two squares of 16 by 16 are all registers of
/// AVX-512.
void astra::chooseBlocks(KernelFacts &f, const Executor &target, Plan &p) {
  UOpRef r = f.root;
  int64_t lanes = target.vectorBytes / std::max(1u, byteSize(r->dtype));
  if (target.isThread || r->op != Op::Contract || lanes < threshold::fewestLanes ||
      blocksOf(r) < threshold::blockRounds * lanes)
    return;
  if (idxProduct(f.c, f.out.value->shape)->hi > threshold::blockSums) return;
  Plan blocks = p;
  blocks.kind = PlanKind::Columns;
  blocks.lanes = blocks.unroll = 1;
  blocks.tail = 0;
  blocks.chainBlocks = lanes;
  blocks.unrollK =
      std::min<unsigned>(storesLines(target) ? threshold::blockLineSteps : mostUnrollK, lineBytes / byteSize(r->dtype));
  if (f.under(blocks).transposesInRegisters(true)) p = blocks;
}

/// A product by columns with strided access along its lanes, as of a matrix and a vector: some steps of the sum
/// together, which are squares in registers then. Several vectors of rows at once, so that the chains' latency is less
/// than the squares take, but where their lines meet in one or two sets of the L1; of vectors of more than it has ways,
/// as many rows as it has.
void astra::chooseSteps(KernelFacts &f, const Executor &target, UOpRef line, Plan &p) {
  if (target.isThread || f.root->op != Op::Contract || p.lanes < threshold::fewestLanes) return;
  Plan steps = p;
  steps.unrollK = std::min(p.lanes, mostUnrollK);
  if (!f.under(steps).transposesInRegisters(true)) return;
  if (p.lanes > cacheWays && f.under(steps).bytesAcross() % pageBytes == 0) steps.lanes = steps.unrollK = cacheWays;
  p = steps;
  if (line->lo >= 2 * threshold::stepRows && f.under(p).bytesAcross() % threshold::meetingBytes)
    p.unroll = std::max<int64_t>(threshold::stepRows / p.lanes, 1);
}
