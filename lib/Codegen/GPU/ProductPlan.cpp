//===- ProductPlan.cpp: plans of contractions for GPUs ----------------------===//
// Takes:    a contraction and a target.
// Gives:    tiles of blocks whose threads share the operands, by what a step of the sum costs a unit of the chip: what
//           it multiplies, what it loads, or what it waits. Few results are small tiles, so that there are blocks for
//           the chip, and several threads for each, one a chain of its sum. What cannot be shared is tiles of a thread.
// Keeps:    determinism: no measurement, no randomness.
#include "ProductPlan.h"
#include "../Value.h"
#include "CheckGpuPlan.h"
#include "astra/IR/Contract.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;

namespace {
/// Tiles of a block: rows and vectors of a thread, threads one below another and all of them.
struct Tile {
  unsigned rows, vectors, tall, threads;
  double speed; // of a multiply-add, by how often what was read from shared memory is used
};
constexpr Tile tiles[] = {{8, 2, 16, 256, 1.0}, {8, 1, 8, 128, 0.85}, {4, 1, 8, 128, 0.65}, {4, 1, 8, 64, 0.65},
                          {4, 1, 4, 64, 0.6},   {4, 1, 2, 64, 0.55},  {4, 1, 1, 64, 0.5},   {2, 1, 1, 64, 0.4}};
// In multiply-adds of a unit, of which a step takes one each 128th of a cycle:
constexpr double least = 2048; // what a step waits at least
constexpr double load = 8;     // what an element takes on its way from the far cache

class TileSearch {
public:
  TileSearch(Context &c, const KernelSpec &spec, const GpuTarget &target, Plan &best) : target(target), best(best) {
    UOpRef r = spec.rootOp;
    const ContractSpec &s = *spec.contract;
    bytes = std::max(1u, byteSize(r->dtype));
    if (best.nLabel >= 0) {
      n = likely(r->shape[best.nLabel]);
      alongColumns = neighbours(spec, s, best.nLabel);
      columnsInBoth = hasLabel(s.a, best.nLabel) && hasLabel(s.b, best.nLabel);
    }
    for (int64_t l = 0; l < s.kept; ++l)
      if (l != best.nLabel) (llvm::is_contained(best.mLabels, l) ? m : others) *= likely(r->shape[l]);
    for (int64_t l : best.mLabels) alongRows |= neighbours(spec, s, l);
    if (spec.mostRows) m = std::min(m, spec.mostRows);
    llvm::ArrayRef<UOpRef> lengths = r->indices().slice(s.kept, s.reduced);
    for (UOpRef e : lengths) steps *= likely(e);
    windows = llvm::count_if(lengths, [](UOpRef e) { return e->hi > 1; }) > 1;
    for (int64_t i : chainBlocks(c, lengths).order)
      chains *= (likely(lengths[i]) - 1) / std::max<int64_t>(chainBlocks(c, lengths).length[i]->hi, 1) + 1;
  }

  /// Whether there is a tile that is worth it.
  bool run() {
    constexpr int64_t shortest = 8, longSum = 32; // steps that are worth sharing, of many results and of few
    if (steps < shortest || (steps < longSum && double(m) * n * others < least / 2)) return false;
    // Columns of a thread are neighbours, which it reads together; of an operand that is turned its neighbours have
    // those, so that no two read from one bank.
    const unsigned vector = best.lanes, lanes = alongColumns ? vector : 1;
    for (const Tile &t : tiles)
      if (m > 1) spreads({t.rows, t.vectors * vector / lanes, t.tall, t.threads, t.speed}, lanes);
    for (unsigned columns : {vector, 1u})
      for (unsigned rows : {8, 4, 2, 1})
        for (unsigned threads = 256; threads; threads /= 2)
          for (unsigned tall = 1; tall <= threads; tall *= 2) {
            unsigned together = std::min(columns, lanes);
            double speed = double(rows) * columns / (rows + columns) / 3.1;
            spreads({rows, columns / together, tall, threads, std::min(speed, 0.6)}, together);
          }
    return bestScore > 0;
  }

private:
  /// Whether neighbours along a label are neighbours in an operand.
  static bool neighbours(const KernelSpec &spec, const ContractSpec &s, int64_t label) {
    for (bool inB : {false, true}) {
      const auto &forms = inB ? s.b : s.a;
      if (forms.empty()) continue;
      UOpRef x = spec.rootOp->src[inB];
      const Placed *in = spec.input(x);
      int64_t last = in ? in->layout.dims.back().axis : int64_t(forms.size()) - 1;
      while (last > 0 && x->shape[last]->hi == 1) --last;
      if (hasLabel(forms[last], label)) return true;
    }
    return false;
  }

  /// A tile, with a thread for each result and with several.
  void spreads(const Tile &t, unsigned lanes) {
    constexpr unsigned mostThreads = 512; // whose registers are there
    int64_t wide = int64_t(t.threads) / t.tall * t.vectors * lanes, down = int64_t(t.tall) * t.rows;
    int64_t sector = 32 / bytes, columns = std::min(wide, n);
    if ((down >= 2 * m && down > 1) || (wide >= 2 * n && wide > 1)) return; // a smaller one does
    if (alongColumns && wide < 2 * sector && wide < n) return;
    if (alongRows && down < 2 * sector && down < m) return;
    if (columns < sector && t.rows > 1) return; // threads below each other would store far apart
    if (columns < sector && wide > n && lanes * t.vectors > 1) return;
    for (unsigned spread = 1; spread < 2 * chains || t.threads * spread <= target.warp; spread *= 2)
      if (t.threads * spread > mostThreads)
        break;
      else if (t.threads * spread % target.warp == 0)
        consider(t, lanes, wide, down, spread);
  }

  void consider(const Tile &t, unsigned lanes, int64_t wide, int64_t down, unsigned spread) {
    constexpr int64_t band = 8; // rows of tiles that are taken together
    // Steps that a chain's result takes; what a full chip is worth, chains that there are not, a block of a warp; how
    // much of its loads a step waits for.
    constexpr double addition = 0.4, filled = 0.6, idle = 0.25, lone = 0.95, apart = 0.25;
    unsigned threads = t.threads * spread;
    int64_t points = (wide + (columnsInBoth ? wide * down : down)) * spread;
    bool small = t.rows * t.vectors * lanes <= 4; // a thread's tile leaves registers
    int64_t deep = depth(points, threads, small ? 32 : 16);
    if (!deep) return;
    int64_t blocks = ((n + wide - 1) / wide) * ((m + down - 1) / down) * others, turns = (blocks + units - 1) / units;
    double loads = double(turns) * points * load,
           step = std::max({double(turns) * wide * down * spread / t.speed, loads, least}) + apart * loads;
    double serial = double((chains + spread - 1) / spread) * double((steps + chains - 1) / chains) +
                    (spread > 1 ? addition * double(chains) : 0);
    double score = double(n) * m * others * double(steps) / (step * serial);
    score *= 1 + filled * std::min(1.0, double(blocks) / units);
    if (spread >= 2 * chains && spread > 1) score *= idle; // chains that there are not
    if (threads < 64) score *= lone;
    if (score <= bestScore * 1.05) return;
    bestScore = score;
    best.mr = t.rows, best.unroll = t.vectors, best.lanes = lanes, best.mc = t.tall, best.threads = threads;
    best.split = spread > 1 ? spread : 0, best.kc = unsigned(deep), best.pipeline = 2;
    // Of a large tile some steps are a turn of their loop: a thread multiplies those of one while the next ones' come.
    // What they hold is registers, of which smaller tiles have more use in more blocks; the windows of a convolution
    // keep their gates there, and ptxas would rather spill than lose a block.
    unsigned elements = t.rows * t.vectors * lanes;
    unsigned many = chains > 1 ? 8 : 2; // a sum of one chain leaves registers for a second block, which more would take
    best.unrollK = elements >= 64 ? many : elements >= 32 && !windows ? 4 : 0;
    // What runs at once is as many rows of tiles as columns, nearly, so that it reads few of both: of a large product.
    int64_t across = (n + wide - 1) / wide, below = (m + down - 1) / down;
    best.rowBlock = across >= band && below % band == 0 && across * below >= 4 * units ? unsigned(band) : 0;
  }

  /// Steps that lie in shared memory at once: as many as a thread can have on their way. 0: there is no room.
  int64_t depth(int64_t points, int64_t threads, int64_t most) const {
    constexpr int64_t onTheWay = 128;                            // bytes of a thread
    int64_t apart = 2 * 8 * (16 / std::min<int64_t>(bytes, 16)); // at most
    for (int64_t deep : {32, 16, 8}) {
      if (deep > most || (deep > 16 && (deep * points * bytes > onTheWay * threads || deep > steps))) continue;
      if (uint64_t(2 * deep * (points + apart) * bytes) <= target.sharedBytes) return deep;
    }
    return 0;
  }

  const GpuTarget &target;
  Plan &best;
  double bestScore = 0;
  int64_t m = 1, n = 1, others = 1, steps = 1, chains = 1, bytes = 1;
  bool columnsInBoth = false, alongColumns = false, alongRows = false;
  bool windows = false; // the sum goes along several labels
};
} // namespace

int64_t astra::likely(UOpRef e) {
  constexpr int64_t large = 4096;
  return std::clamp<int64_t>(e->hi, 1, e->isConst() ? int64_t(1) << 40 : large);
}

/// A tile of a matrix unit: warps lie one below another, each as wide as the tile; what a thread has of it is whole
/// tiles of the instruction. The largest of which there are enough blocks for a chip.
static bool chooseUnitTile(const KernelSpec &spec, const ContractSpec &s, const GpuTarget &target, Plan &p) {
  const UnitInstruction &unit = *unitInstruction(target, {s.unit, s.inputs, 0});
  struct Tile {
    unsigned rows, vectors, threads;
  };
  static constexpr Tile mma[] = {{4, 16, 128}, {2, 16, 128}, {2, 8, 128}, {2, 8, 64}, {2, 4, 64}, {2, 4, 32}},
                        mfma[] = {{32, 4, 128}, {16, 4, 128}, {16, 2, 128}, {16, 2, 64}, {16, 1, 64}};
  constexpr int64_t band = 8;
  int64_t m = 1, n = likely(spec.rootOp->shape[p.nLabel]), others = 1;
  for (int64_t l = 0; l < s.kept; ++l)
    if (l != p.nLabel) (llvm::is_contained(p.mLabels, l) ? m : others) *= likely(spec.rootOp->shape[l]);
  for (const Tile &t : unit.form == UnitInstruction::Mma ? llvm::ArrayRef(mma) : llvm::ArrayRef(mfma)) {
    int64_t down = t.threads / unit.wide() * t.rows, across = unit.wide() * unit.lanes() * t.vectors,
            below = (m + down - 1) / down, beside = (n + across - 1) / across;
    p.mr = t.rows, p.unroll = t.vectors, p.lanes = unit.lanes(), p.threads = t.threads, p.mc = t.threads / unit.wide();
    p.rowBlock = beside >= band && below % band == 0 ? unsigned(band) : 0;
    if (below * beside * others >= units) break;
  }
  const int words = s.unit->block / int(matrixInputsInWord(s.inputs));
  p.kc = 16, p.pipeline = 2, p.split = 0;
  p.unrollK = std::max(1, 16 / words);
  // Of mma.sync what is on the way takes registers that a third block of threads could have.
  if (target.copiesAsync && unit.form == UnitInstruction::Mma) p.stages = 3, p.pipeline = 1;
  return true;
}

/// A tile that warp groups multiply: the largest of which there are enough for a chip.
static void chooseGroupTile(const KernelSpec &spec, const ContractSpec &s, Plan &p) {
  struct Tile {
    unsigned groups, rows, vectors, stages;
  };
  static constexpr Tile tiles[] = {{2, 2, 32, 4}, {2, 2, 16, 6}, {1, 2, 16, 6}, {1, 2, 8, 8}, {1, 2, 4, 8}};
  constexpr int64_t band = 8;
  int64_t m = 1, n = likely(spec.rootOp->shape[p.nLabel]), others = 1;
  for (int64_t l = 0; l < s.kept; ++l)
    if (l != p.nLabel) (llvm::is_contained(p.mLabels, l) ? m : others) *= likely(spec.rootOp->shape[l]);
  for (const Tile &t : tiles) {
    int64_t down = 32 * t.groups * t.rows, across = 8 * t.vectors, below = (m + down - 1) / down,
            beside = (n + across - 1) / across;
    p.warpGroups = t.groups, p.threads = t.groups * groupThreads, p.mc = p.threads / 4;
    p.mr = t.rows, p.unroll = t.vectors, p.lanes = 2, p.kc = 32, p.stages = t.stages;
    p.rowBlock = beside >= band && below % band == 0 ? unsigned(band) : 0;
    if (below * beside * others >= units) break;
  }
  p.pipeline = 1, p.split = 0, p.unrollK = 0;
}

/// Whether columns lie side by side in memory, as a warp's instruction reads them, or of mma.sync the words of one:
/// without it a tile of steps in primitives is so large that LLVM takes minutes.
static bool columnsAreNeighbours(const KernelSpec &spec, const ContractSpec &s, const Plan &p,
                                 const GpuTarget &target) {
  bool inB = hasLabel(s.b, p.nLabel);
  const Placed *x = spec.input(spec.rootOp->src[inB]);
  if (!x || x->layout.dims.empty()) return true; // computed on the way
  const AffineForm &last = (inB ? s.b : s.a)[x->layout.dims.back().axis];
  bool line = unitInstruction(target, {s.unit, s.inputs, 0})->form == UnitInstruction::Mma && last.isLabel() &&
              last.terms[0].first >= s.kept;
  return last.terms.empty() || line || hasLabel(last, p.nLabel);
}

bool astra::shareOperands(Context &c, const KernelSpec &spec, const GpuTarget &target, Plan &p) {
  const ContractSpec &s = *spec.contract;
  const Placed &out = spec.outputs[0];
  p.kind = PlanKind::Contract;
  if (spec.vectorIndex < 0) { // along the output's neighbours
    p.nLabel = -1;
    p.lanes = std::max<int64_t>(16 / std::max(1u, byteSize(spec.rootOp->dtype)), 1);
    for (const MemoryDim &d : out.layout.dims)
      if (d.axis < s.kept && spec.rootOp->shape[d.axis]->hi > 1) p.nLabel = d.axis;
  }
  const auto &lanesOperand = hasLabel(s.b, p.nLabel) ? s.b : s.a;
  p.mLabels.clear(); // in the output's memory order
  for (const MemoryDim &d : out.layout.dims)
    if (d.axis != p.nLabel && d.axis < s.kept && !hasLabel(lanesOperand, d.axis) &&
        !llvm::is_contained(p.mLabels, d.axis))
      p.mLabels.push_back(d.axis);
  // A tile for warp groups first, which take more types than warps do.
  constexpr int64_t fewest = 16; // rows that are worth a tile of 64
  int64_t m = 1;
  for (int64_t l : p.mLabels) m *= likely(spec.rootOp->shape[l]);
  Plan groups = p;
  groups.warpGroups = 1;
  if (s.unit && m >= fewest && unsharable(spec, groups, target).empty() && unfitForGroups(spec, groups, target).empty())
    return chooseGroupTile(spec, s, p), true;
  if (!unsharable(spec, p, target).empty()) return false;
  if (s.unit && !columnsAreNeighbours(spec, s, p, target)) return false;
  return s.unit ? chooseUnitTile(spec, s, target, p) : TileSearch(c, spec, target, p).run();
}
