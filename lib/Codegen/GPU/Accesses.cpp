//===- Accesses.cpp: how the threads of a warp meet in memory ---------------===//
// Takes:    a linear kernel bound to threads.
// Gives:    for each of its accesses to memory that threads share the sectors of 32 bytes that a warp touches, or the
//           words of 4 bytes that meet in one of 32 banks, counted from the index expressions, at several points of the
//           loops around it.
// Does not: look at gates (all threads take part), nor at addresses that are read from memory: those are 0.
#include "../Value.h"
#include "Barriers.h"
#include "Mma.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace astra;
using namespace astra::gpu;

namespace {
class Counting {
public:
  using Value = llvm::function_ref<std::optional<int64_t>(UOpRef)>;
  Counting(const GpuKernel &k, const GpuTarget &target, Value dims) : k(k), target(target), dims(dims) {}
  /// Of a loop.
  static int64_t turnsOf(UOpRef range, Value dims) {
    auto n = dims ? idxEvaluate(range->src[0], dims) : std::nullopt;
    return std::max<int64_t>(n.value_or(range->src[0]->hi), 1);
  }
  std::vector<GpuAccess> run() {
    if (!threads.find(k, target.warp).empty()) return {};
    unsigned loops = 0;
    for (const Inst &i : k.linear.insts) {
      if (i.kind == InstKind::LoopBegin) {
        bool own = RangeKind(i.uop->ints[1]) != RangeKind::Parallel; // of an item
        loops += own;
        turns.push_back(turns.back() * (own ? double(turnsOf(i.uop, dims)) : 1.0));
      }
      if (i.kind == InstKind::LoopEnd) loops -= RangeKind(i.uop->ints[1]) != RangeKind::Parallel, turns.pop_back();
      UOpRef x = i.uop;
      if (i.kind == InstKind::Write)
        global({x->src[0]->ints[0], true, loops}, x, x->src[1], 2);
      else if (i.kind == InstKind::Define && x->op == Op::Load)
        global({x->src[0]->ints[0], false, loops}, x, x, 1);
      else if (i.kind == InstKind::AccUpdate && unitStepOf(Combine(x->ints[0])))
        matrices(x, loops);
      else if (i.kind == InstKind::Define && x->op == Op::At && k.lines.contains(x->src[0]))
        continue; // by ldmatrix
      else if (i.kind == InstKind::Define && x->op == Op::At && threads.isShared(x->src[0]))
        shared({-1, false, loops}, x->src[0], x->indices(), lanesOf(x), 1);
      else if (i.kind == InstKind::StagePut && threads.isShared(x))
        shared({-1, true, loops}, x, x->indices(), lanesOf(x), lanesOf(x));
    }
    return std::move(found);
  }

private:
  static int64_t lanesOf(UOpRef x) { return x->rank() ? x->shape[0]->constIndex().value_or(1) : 1; }
  static constexpr int64_t points = 3; // at which loops and items are looked at

  /// The value of an index for a thread, at one of the points.
  int64_t valueOf(UOpRef x, unsigned thread, int64_t point) const {
    auto v = idxEvaluate(x, [&](UOpRef r) -> std::optional<int64_t> {
      if (r->op == Op::Dim) return std::clamp<int64_t>(1000, r->lo, r->hi);
      if (r->op != Op::Range) { // made of others, or of what memory holds
        bool made = r->src.size() == 2 && r->src[0]->isIndex();
        return made ? std::nullopt : std::optional<int64_t>(0);
      }
      int64_t extent = std::max<int64_t>(valueOf(r->src[0], thread, point), 1), number = thread % k.group;
      switch (RangeKind(r->ints[1])) {
      case RangeKind::Thread: return number / strideOf(r) % extent;
      case RangeKind::Parallel: {
        int64_t items = std::max<unsigned>(target.warp / k.group, 1), last = std::max<int64_t>(extent - items, 0);
        int64_t first = std::min(last, last * point / points / items * items);
        return std::min<int64_t>(first + thread / k.group, extent - 1);
      }
      default: return (extent - 1) * point / points;
      }
    });
    return v.value_or(0);
  }

  /// gateAt: which source the gate is, if there is one. A gate of several lanes splits the access, as in the emitter.
  void global(GpuAccess a, UOpRef access, UOpRef value, unsigned gateAt) {
    UOpRef at = access->indices()[0], gate = access->ntensors > gateAt ? access->src[gateAt] : nullptr;
    int64_t lanes = lanesOf(value), bytes = std::max(1u, byteSize(value->dtype));
    int64_t together = std::min<int64_t>({lanes, 16 / std::min<int64_t>(bytes, 16), int64_t(alignmentOf(at))});
    if (gate && gate->rank() && gate->op != Op::Splat) together = 1;
    a.bytes = unsigned(together * bytes);
    for (int64_t point = 0; point < points; ++point) {
      std::set<int64_t> sectors, touched;
      for (unsigned thread = 0; thread < target.warp; ++thread) {
        int64_t first = valueOf(at, thread, point) * bytes;
        for (int64_t b = 0; b < together * bytes; ++b) touched.insert(first + b), sectors.insert((first + b) >> 5);
      }
      unsigned least = unsigned((touched.size() + 31) / 32);
      a.sectors = std::max<unsigned>(a.sectors, sectors.size());
      a.waste = std::max(a.waste, double(sectors.size()) / least);
    }
    double warps = double(k.group) / target.warp; // of an item
    a.moved = uint64_t(std::min(32.0 * a.sectors * (lanes / together) * warps * turns.back(), 1e18));
    found.push_back(a);
  }

  void shared(GpuAccess a, UOpRef stage, llvm::ArrayRef<UOpRef> indices, int64_t lanes, int64_t lastCounts) {
    const StageArray &array = *llvm::find_if(k.linear.stages, [&](const StageArray &s) { return s.stage == stage; });
    int64_t bytes = std::max(1u, byteSize(stage->dtype)), step = array.strides.back();
    const unsigned line = k.lines.lookup(stage);
    auto placeOf = [&](unsigned thread, int64_t point) {
      int64_t place = 0;
      for (auto [d, i] : llvm::enumerate(indices))
        place += valueOf(i, thread, point) * array.strides[d] * (d + 1 == indices.size() ? lastCounts : 1);
      return line ? int64_t(swizzled(uint64_t(place), line)) : place;
    };
    // What the emitter reads or writes at once.
    int64_t together = step == 1 ? std::min<int64_t>(lanes, 16 / bytes) : 1;
    for (int64_t point = 0; point < points; ++point)
      for (unsigned thread = 0; thread < target.warp; ++thread)
        while (placeOf(thread, point) % together) together /= 2;
    a.bytes = unsigned(together * bytes);
    unsigned atOnce = std::min<unsigned>(target.warp, 32 / std::max<unsigned>(a.bytes / 4, 1)); // 128 bytes
    unsigned most = 0;                                                                          // waves of a warp
    for (int64_t point = 0; point < points; ++point) {
      unsigned waves = 0;
      for (int64_t l = 0; l < lanes; l += together)
        for (unsigned first = 0; first < target.warp; first += atOnce) {
          std::map<int64_t, std::set<int64_t>> banks;
          for (unsigned thread = first; thread < first + atOnce; ++thread) {
            int64_t begin = (placeOf(thread, point) + l * step) * bytes;
            for (int64_t word = begin >> 2; word <= (begin + a.bytes - 1) >> 2; ++word) banks[word % 32].insert(word);
          }
          unsigned conflict = 0;
          for (auto &[bank, words] : banks) conflict = std::max<unsigned>(conflict, words.size());
          a.conflict = std::max(a.conflict, conflict), waves += conflict;
        }
      most = std::max(most, waves);
    }
    a.waves = wavesOf(most);
    found.push_back(a);
  }

  /// Of an item, whose warps have so many each in every turn.
  uint64_t wavesOf(double ofWarp) const {
    return uint64_t(std::min(ofWarp * std::max(double(k.group) / target.warp, 1.0) * turns.back(), 1e18));
  }

  /// What ldmatrix reads for a step: of 8 lines a part of 16 bytes each, which go together.
  void matrices(UOpRef fold, unsigned loops) {
    constexpr int64_t part = 4;
    const UnitStep &step = *unitStepOf(Combine(fold->ints[0]));
    for (unsigned w = 0; w < 2 * step.words && fold->ints[1] == int64_t(2 * step.words); w += part) {
      UOpRef word = fold->tensors()[1 + w];
      llvm::SmallVector<UOpRef, 2> reads;
      if (word->op == Op::Splat || word->op == Op::Stack)
        reads.assign(word->src.begin(), word->src.end());
      else
        reads.push_back(word);
      if (reads[0]->op != Op::At || !k.lines.contains(reads[0]->src[0]) || !counted.insert(reads[0]).second) continue;
      UOpRef stage = reads[0]->src[0];
      const StageArray &array = *llvm::find_if(k.linear.stages, [&](const StageArray &s) { return s.stage == stage; });
      GpuAccess a{-1, false, loops, 16};
      for (int64_t point = 0; point < points; ++point) {
        std::set<int64_t> parts;
        for (UOpRef x : reads)
          for (unsigned thread = 0; thread < target.warp; ++thread) {
            int64_t place = 0;
            for (auto [i, stride] : llvm::zip_equal(x->indices(), array.strides))
              place += valueOf(i, thread, point) * stride;
            parts.insert(int64_t(swizzled(uint64_t(place), k.lines.lookup(stage))) / part);
          }
        std::map<int64_t, unsigned> banks;
        for (int64_t p : parts) a.conflict = std::max(a.conflict, ++banks[p % (32 / part)]);
      }
      a.waves = wavesOf(double(reads.size()) * a.conflict);
      found.push_back(a);
    }
  }

  const GpuKernel &k;
  const GpuTarget &target;
  Value dims;
  Threads threads;
  std::set<UOpRef> counted; // reads of words
  std::vector<GpuAccess> found;
  std::vector<double> turns{1}; // of the loops around
};
} // namespace

std::vector<GpuAccess> astra::gpuAccesses(const GpuKernel &k, const GpuTarget &target, Counting::Value dims) {
  if (k.steps.empty()) return Counting(k, target, dims).run();
  std::vector<GpuAccess> all; // of what is done with a tile; rows that pass between the steps are in no buffer
  for (const GpuKernel &part : k.steps) {
    uint64_t items = 0; // of the step, for a tile
    for (const Inst &i : part.linear.insts)
      if (i.kind == InstKind::LoopBegin && RangeKind(i.uop->ints[1]) == RangeKind::Parallel)
        items += Counting::turnsOf(i.uop, dims);
    for (GpuAccess a : gpuAccesses(part, target, dims)) {
      a.moved = llvm::SaturatingMultiply(a.moved, items), a.waves = llvm::SaturatingMultiply(a.waves, items);
      if (a.buffer >= 0 && part.arguments[a.buffer].local) continue;
      if (a.buffer >= 0) a.buffer = int64_t(part.arguments[a.buffer].number);
      all.push_back(a);
    }
  }
  return all;
}
