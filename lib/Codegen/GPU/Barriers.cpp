//===- Barriers.cpp: what threads share, and where they wait ----------------===//
#include "Barriers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using namespace astra::gpu;

static bool isThread(UOpRef x) { return x->op == Op::Range && RangeKind(x->ints[1]) == RangeKind::Thread; }

uint32_t gpu::bitsOfRange(UOpRef range) {
  return uint32_t((range->src[0]->constIndex().value_or(1) - 1) * strideOf(range));
}

static int64_t lanesOf(UOpRef x) { return x->rank() ? x->shape[0]->constIndex().value_or(1) : 1; }

/// Of the last index of a read from a stage, which counts elements: the point whose whole vector is read, or null.
static UOpRef vectorNumber(UOpRef read, UOpRef last) {
  int64_t lanes = lanesOf(read->src[0]);
  if (lanes == 1) return last;
  llvm::SmallVector<IndexTerm, 4> sum = terms(last);
  bool whole = lanesOf(read) == lanes && sum.size() == 1 && sum[0].atoms.size() == 1 && sum[0].coefficient == lanes;
  return whole ? sum[0].atoms[0] : nullptr;
}

std::string Threads::find(const GpuKernel &k, unsigned warp) {
  llvm::DenseMap<UOpRef, bool> acrossThreads; // stages that close digits: whether another's element is read
  for (UOpRef x : topoSort({k.kernel->sink})) {
    Open mine;
    llvm::ArrayRef<UOpRef> sources = x->op == Op::LaneFold || x->op == Op::Stage ? x->tensors() : x->src;
    for (UOpRef y : sources) {
      auto it = open.find(y);
      if (it == open.end() || x->op == Op::Sink) continue;
      for (UOpRef r : it->second.ranges)
        if (!llvm::is_contained(mine.ranges, r)) {
          if (mine.bits & bitsOfRange(r)) return "a value depends on two thread ranges that are the same digit";
          mine.ranges.push_back(r);
          mine.bits |= bitsOfRange(r);
        }
    }
    if (isThread(x)) {
      auto n = x->src[0]->constIndex();
      if (!n || !llvm::isPowerOf2_64(*n) || !llvm::isPowerOf2_64(strideOf(x)) || *n * strideOf(x) > int64_t(k.group))
        return "a thread range is no digit of the number of a thread in its item";
      mine = {bitsOfRange(x), {x}};
    }
    auto close = [&](UOpRef r) {
      mine.bits &= ~bitsOfRange(r);
      llvm::erase(mine.ranges, r);
    };
    if (x->op == Op::LaneFold) {
      UOpRef r = x->indices()[0];
      if (strideOf(r) != 1 || *r->src[0]->constIndex() > int64_t(warp)) return "a lanefold is not of a warp's lanes";
      close(r);
    }
    if (x->op == Op::Stage) {
      uint32_t bits = mine.bits;
      for (UOpRef r : x->indices())
        if (isThread(r)) close(r), acrossThreads.try_emplace(x, false);
      if (mine.bits && mine.bits != bits) return "a stage closes a digit and depends on another";
    }
    if (x->op == Op::At)
      for (auto [r, i] : llvm::zip(x->src[0]->indices(), x->indices())) {
        UOpRef whose = r == x->src[0]->indices().back() ? vectorNumber(x, i) : i;
        bool own = whose && isThread(whose) && whose->src[0] == r->src[0] && strideOf(whose) == strideOf(r);
        if (isThread(r) && !own) acrossThreads[x->src[0]] = true;
      }
    if (mine.bits) open[x] = std::move(mine);
  }
  for (auto [stage, across] : acrossThreads) {
    if (!across) continue;
    if (k.group != k.threads) return "threads share an array, and their block has other items";
    shared.insert(stage);
  }
  return "";
}

namespace {
/// Shared arrays, by number.
struct Use {
  uint64_t puts = 0, reads = 0;
  bool clashes(const Use &then) const { return (puts & then.reads) || (reads & then.puts); }
  Use operator|(const Use &u) const { return {puts | u.puts, reads | u.reads}; }
};

class BarrierSearch {
public:
  BarrierSearch(const GpuKernel &k, const Threads &t, Barriers &out) : insts(k.linear.insts), out(out) {
    unsigned next = 0;
    for (const StageArray &a : k.linear.stages)
      if (t.isShared(a.stage)) number[a.stage] = next++ % 64;
    uses.resize(insts.size());
    std::vector<size_t> loops;
    out.endOf.assign(insts.size(), 0);
    for (size_t n = 0; n < insts.size(); ++n) {
      const Inst &i = insts[n];
      bool puts = i.kind == InstKind::StagePut || i.kind == InstKind::StageFill;
      auto it = number.find(puts || i.kind == InstKind::AccResume               ? i.uop
                            : i.kind == InstKind::Define && i.uop->op == Op::At ? i.uop->src[0]
                                                                                : nullptr);
      if (it != number.end()) (puts ? uses[n].puts : uses[n].reads) |= uint64_t(1) << it->second;
      if (i.kind == InstKind::LoopEnd) {
        out.endOf[loops.back()] = n;
        uses[n] = {};
        size_t begin = loops.back();
        loops.pop_back();
        if (!loops.empty()) uses[loops.back()] = uses[loops.back()] | uses[begin];
      } else if (i.kind == InstKind::LoopBegin)
        loops.push_back(n);
      else if (!loops.empty())
        uses[loops.back()] = uses[loops.back()] | uses[n];
    }
  }

  void run(bool ahead) {
    if (ahead)
      for (size_t n = 0; n < insts.size(); ++n)
        if (insts[n].kind == InstKind::LoopBegin) goAhead(n);
    body(0, insts.size(), {});
  }

private:
  /// What threads did since the last barrier, before and after the instructions from `at` to `end`.
  Use body(size_t at, size_t end, Use since) {
    for (; at < end; ++at) {
      bool loop = insts[at].kind == InstKind::LoopBegin;
      bool parallel = loop && RangeKind(insts[at].uop->ints[1]) == RangeKind::Parallel;
      if (parallel) since = {}; // a block has one item
      if (since.clashes(uses[at])) out.before.insert(at), since = {};
      if (!loop) {
        since = since | uses[at];
        continue;
      }
      auto it = out.ahead.find(at);
      Use skipped = parallel || insts[at].uop->src[0]->lo > 0 ? Use() : since; // a loop that may have no turn
      if (it != out.ahead.end())
        since = body(it->second, out.endOf[at], {}) | uses[at]; // the emitter puts, waits, loads
      else if (uses[at].puts | uses[at].reads) {
        since = body(at + 1, out.endOf[at], since);
        if (!parallel) since = body(at + 1, out.endOf[at], since); // turn after turn
      }
      at = out.endOf[at];
      since = since | skipped;
      if (parallel) since = {};
    }
    return since;
  }

  /// A loop that begins by filling shared arrays, and after that puts nothing: the values for the next turn may be
  /// loaded while this turn's are used.
  void goAhead(size_t loop) {
    size_t last = loop;
    for (size_t n = loop + 1; n < out.endOf[loop]; ++n) {
      if (uses[n].puts) last = insts[n].kind == InstKind::LoopBegin ? out.endOf[n] : n;
      if (insts[n].kind == InstKind::LoopBegin) n = out.endOf[n];
    }
    bool used = false;
    for (size_t n = last + 1; n < out.endOf[loop]; ++n) used |= uses[n].reads != 0;
    if (last == loop || !used || RangeKind(insts[loop].uop->ints[1]) != RangeKind::Fold) return;
    llvm::DenseSet<UOpRef> fetched; // exists only while the next turn's values are loaded
    for (size_t n = loop + 1; n <= last; ++n) {
      const Inst &i = insts[n];
      bool put = i.kind == InstKind::StagePut;
      if (uses[n].reads || (put && !number.contains(i.uop)) || i.kind == InstKind::AccInit ||
          i.kind == InstKind::AccUpdate || i.kind == InstKind::Write)
        return;
      if (i.kind == InstKind::LoopBegin) {
        auto count = i.uop->src[0]->constIndex();
        if (!count || *count > 32) return;
      }
      if (i.kind != InstKind::Define) continue;
      bool load = i.uop->op == Op::Load || i.uop->op == Op::At;
      if (load || llvm::any_of(i.uop->src, [&](UOpRef s) { return fetched.contains(s); })) fetched.insert(i.uop);
    }
    for (size_t n = last + 1; n < out.endOf[loop]; ++n) {
      if (insts[n].kind == InstKind::LoopEnd) continue;
      if (llvm::any_of(insts[n].uop->src, [&](UOpRef s) { return fetched.contains(s); })) return;
    }
    out.ahead[loop] = last + 1;
    out.fetched.insert(fetched.begin(), fetched.end());
  }

  llvm::ArrayRef<Inst> insts;
  Barriers &out;
  llvm::DenseMap<UOpRef, unsigned> number;
  std::vector<Use> uses; // of a LoopBegin: of all that is inside
};
} // namespace

void Barriers::find(const GpuKernel &k, const Threads &t) {
  BarrierSearch(k, t, *this).run(k.pipeline > 1 || k.stages);
}

bool Barriers::within(size_t loop) const {
  if (ahead.count(loop)) return true;
  for (size_t n = loop + 1; n < endOf[loop]; ++n)
    if (before.contains(n) || ahead.count(n)) return true;
  return false;
}
