//===- Plan.cpp: choosing and naming plans ---------------------------------===//
// Takes:    a kernel's graph and a target.
// Gives:    a plan, by trying the lowering under a few candidates and counting what would be slow.
// Keeps:    determinism: no measurement, no randomness.
#include "astra/Codegen/Plan.h"
#include "astra/Codegen/Lower.h"
#include "astra/IR/Contract.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using llvm::SmallVector;

static const char *const kinds[] = {"map", "rows", "columns", "contract"};

std::string astra::text(const Plan &p) {
  auto n = [](int64_t v) { return std::to_string(v); };
  std::string s = std::string(kinds[int(p.kind)]) + ":";
  if (p.kind == PlanKind::Contract) {
    s += " n " + n(p.nLabel) + "; m";
    for (int64_t l : p.mLabels) s += " " + n(l);
    s += "; rows " + n(p.rows) + ";";
    if (p.stage) s += " stage " + n(p.stage) + ";";
  } else
    s += " merge " + n(p.merge) + ";";
  return s + " vector " + n(p.lanes) + "; unroll " + n(p.unroll);
}

llvm::Expected<Plan> astra::parsePlan(llvm::StringRef text) {
  Plan p;
  auto bad = [&](llvm::StringRef what) {
    return llvm::createStringError("plan: found '" + what + "' in '" + text + "'");
  };
  auto [kind, rest] = text.split(':');
  auto k = llvm::find(kinds, kind.trim());
  if (k == std::end(kinds)) return bad(kind);
  p.kind = PlanKind(k - std::begin(kinds));
  SmallVector<llvm::StringRef> steps;
  rest.split(steps, ';', -1, false);
  for (llvm::StringRef step : steps) {
    SmallVector<llvm::StringRef> words;
    step.trim().split(words, ' ', -1, false);
    if (words.empty()) continue;
    SmallVector<int64_t> numbers;
    for (llvm::StringRef w : llvm::drop_begin(words)) {
      int64_t v;
      if (w.getAsInteger(10, v) || v < 0 || v > 4096) return bad(w);
      numbers.push_back(v);
    }
    if (words[0] == "m") {
      p.mLabels.assign(numbers.begin(), numbers.end());
      continue;
    }
    unsigned *field = words[0] == "merge"    ? &p.merge
                      : words[0] == "vector" ? &p.lanes
                      : words[0] == "unroll" ? &p.unroll
                      : words[0] == "rows"   ? &p.rows
                      : words[0] == "stage"  ? &p.stage
                                             : nullptr;
    if (numbers.size() != 1 || (!field && words[0] != "n")) return bad(step);
    if (field && !numbers[0]) return bad(step);
    if (field)
      *field = numbers[0];
    else
      p.nLabel = numbers[0];
  }
  return p;
}

/// What a lowering costs beside its arithmetic: loads that are not of neighbouring lanes, and divisions in addresses.
static unsigned slowness(Context &c, const KernelSpec &spec, const Plan &plan) {
  Kernel k = lowerKernel(c, spec, plan);
  if (k.sink->src.empty()) return 0; // no element to store
  unsigned cost = 0;
  for (UOpRef n : topoSort(k.sink->src[0])) {
    if (n->op == Op::FloorDiv || n->op == Op::Mod) ++cost;
    if (n->op != Op::Load && n->op != Op::Store) continue;
    for (const IndexTerm &t : terms(n->src.back()))
      for (UOpRef a : t.atoms) {
        bool lane = a->op == Op::Range && RangeKind(a->ints[1]) == RangeKind::Vector;
        if (lane && (t.atoms.size() > 1 || t.coefficient != 1)) cost += 16;
        if (!lane && a->op != Op::Range && a->op != Op::Dim)
          for (UOpRef b : topoSort(a))
            if (b->op == Op::Range && RangeKind(b->ints[1]) == RangeKind::Vector) cost += 16;
      }
  }
  return cost;
}

static unsigned floorPow2(uint64_t v) { return v ? 1u << (63 - __builtin_clzll(v)) : 1; }

/// The numbers of kept labels that the forms mention.
static SmallVector<bool> mentions(const SmallVector<AffineForm, 4> &forms, int64_t labels) {
  SmallVector<bool> m(labels);
  for (const AffineForm &f : forms)
    for (auto [l, k] : f.terms) m[l] = true;
  return m;
}

/// Rows times vectors of a register tile, by the work it wastes on edges and on loads.
static void chooseTile(Plan &p, const Target &t, unsigned w, int64_t n, int64_t m) {
  double best = 0;
  for (unsigned nv = 1; nv <= 6; ++nv)
    for (unsigned rows = 1; rows <= 14; ++rows) {
      if (nv * rows + nv + !t.fmaFromMemory > t.vectorRegisters) continue;
      int64_t wide = nv * w, lastN = n % wide;
      double useful = double(n) / w * m;
      // a tile's time a step: its fmas, or the latency of the chains when there are too few
      // and a tenth more where a register is missing and values are read again
      auto time = [&](unsigned vs, unsigned rs) {
        double steps = std::max(vs * rs / 2.0, 4.0) + 0.1 * (vs + rs);
        return vs * rs + std::min(vs, rs) + 1 > t.vectorRegisters ? steps * 1.1 : steps;
      };
      double cost = (n / wide) * ((m / rows) * time(nv, rows) + (m % rows ? time(nv, m % rows) : 0));
      if (lastN)
        cost += (m / rows) * time((lastN + w - 1) / w, rows) + (m % rows ? time((lastN + w - 1) / w, m % rows) : 0);
      double score = useful / std::max(cost, 1e-9);
      if (score > best * 1.0001) best = score, p.rows = rows, p.unroll = nv;
    }
  p.lanes = w;
}

/// Whether the lanes' operand is worth a copy in fast memory: rows of it are far apart, many rows of the tile read it,
/// and the columns of one tile fit half of the second cache.
static void chooseStage(Context &c, const KernelSpec &spec, const ContractSpec &s, const Target &target, bool laneInB,
                        Plan &p) {
  UOpRef r = spec.heavy, x = r->src[laneInB];
  auto in = llvm::find_if(spec.inputs, [&](const Placed &i) { return i.value == x; });
  if (in == spec.inputs.end() || !in->layout.isPermuted() || s.reduced != 1 || !s.domain.empty() ||
      !llvm::all_of(laneInB ? s.b : s.a, [](const AffineForm &f) { return f.isLabel(); }))
    return;
  auto k = r->indices()[s.kept]->constIndex(), n = r->shape[p.nLabel]->constIndex();
  UOpRef rows = c.index(1);
  for (int64_t l : p.mLabels) rows = idxMul(c, rows, r->shape[l]);
  int64_t width = int64_t(p.lanes) * p.unroll, tiles = rows->lo / p.rows;
  if (!k || !n || *k < 128 || *n < 2 * width || tiles < 16) return;
  if (uint64_t(*k) * width * byteSize(r->dtype) > target.l2Bytes / 2) return;
  int64_t columns = *n / width, parts = (32 + columns - 1) / columns; // enough items for the threads of a large machine
  p.stage = std::min<int64_t>(std::max<int64_t>((tiles + parts - 1) / parts, 16), 4096);
}

static bool contractPlan(Context &c, const KernelSpec &spec, const Target &target, Plan &p) {
  if (!spec.heavy || spec.heavy->op != Op::Contract || spec.laneLabel < 0) return false;
  UOpRef r = spec.heavy;
  ContractSpec s = llvm::cantFail(decodeContract(r->ints));
  p.kind = PlanKind::Contract;
  p.nLabel = spec.laneLabel;
  int64_t labels = s.kept + s.reduced;
  auto inA = mentions(s.a, labels), inB = mentions(s.b, labels);
  bool laneInB = inB[p.nLabel];
  auto &other = laneInB ? inB : inA; // rows reuse the operand along which the lanes run
  SmallVector<int64_t> rows;         // in the output's memory order
  for (const MemoryDim &d : spec.outputs[0].layout.dims)
    if (d.axis != p.nLabel && d.axis < s.kept && !other[d.axis]) rows.push_back(d.axis);
  // Lanes of one vector: at most what lies together in a panel.
  unsigned lanes = target.vectorBytes / std::max(1u, byteSize(r->dtype));
  for (const Placed &x : spec.inputs)
    if (!x.layout.isPermuted() && x.layout.dims.back().modulus)
      lanes = std::min<int64_t>(lanes, x.layout.dims.back().modulus);
  auto tileFor = [&](llvm::ArrayRef<int64_t> mLabels) {
    p.mLabels.assign(mLabels.begin(), mLabels.end());
    int64_t m = 1;
    bool fixed = true;
    for (int64_t l : mLabels) m *= std::max<int64_t>(r->shape[l]->hi, 1), fixed &= r->shape[l]->isConst();
    if (spec.mostRows) m = spec.mostRows, fixed = true;
    UOpRef n = r->shape[p.nLabel];
    chooseTile(p, target, lanes, n->isConst() ? n->hi : 4096, fixed ? m : 4096);
  };
  tileFor({});
  if (rows.empty()) return true;
  // As many row labels as can be walked as one index without dividing in addresses; else the innermost alone.
  unsigned least = ~0u;
  Plan chosen = p;
  for (size_t k = 1; k <= rows.size(); ++k) {
    tileFor(llvm::ArrayRef<int64_t>(rows).take_back(k));
    unsigned cost = slowness(c, spec, p);
    if (k > 1 && cost > least) break;
    if (k == 1 || cost <= least) least = cost, chosen = p;
  }
  p = chosen;
  chooseStage(c, spec, s, target, laneInB, p);
  return true;
}

Plan astra::choosePlan(Context &c, const KernelSpec &spec, const Target &target) {
  Plan p;
  if (contractPlan(c, spec, target, p)) return p;
  p = Plan();
  const Placed &out = spec.outputs[0];
  UOpRef v = spec.inPlace && out.value->op == Op::UpdateAt ? out.value->src[1] : out.value;
  unsigned bytes = std::max(1u, byteSize(v->dtype)), rank = out.layout.dims.size(),
           w = std::max(1u, target.vectorBytes / bytes);
  unsigned ops = 0;
  bool chain = false;
  for (UOpRef n : topoSort(out.value)) {
    ops += has(n->op, Elementwise);
    chain |= n->op == Op::Cumulate;
  }
  if (chain || rank == 0) {
    p.merge = rank;
    if (rank == 0 && spec.heavy && spec.heavy->op == Op::Reduce) p.kind = PlanKind::Rows, p.lanes = std::min(w, 64u);
    return p;
  }
  bool reduces = spec.heavy && (spec.heavy->op == Op::Reduce || spec.heavy->op == Op::Contract);
  p.kind = reduces ? PlanKind::Columns : PlanKind::Map;
  auto extents = memoryExtents(c, out.layout, v->shape);
  unsigned least = ~0u;
  Plan chosen = p;
  UOpRef inner = c.index(1);
  auto whole = memoryExtents(c, out.layout, out.value->shape); // differs from `extents` where a window is written
  for (unsigned k = 1; k <= rank; ++k) {
    if (k > 1 && extents[rank - k + 1] != whole[rank - k + 1]) break; // its rows are not neighbours
    inner = idxMul(c, extents[rank - k], inner);
    p.merge = k;
    p.lanes = std::min<uint64_t>(w, floorPow2(std::max<int64_t>(inner->hi, 1)));
    p.unroll = 1;
    unsigned cost = slowness(c, spec, p) + (p.lanes < w ? 16 : 0);
    if (cost <= least) least = cost, chosen = p;
  }
  p = chosen;
  if (reduces && spec.heavy->op == Op::Reduce) {
    ReduceSpec r = llvm::cantFail(decodeReduce(spec.heavy->ints));
    bool byLanes = r.order == ReduceOrder::Lane64 || (r.order == ReduceOrder::Exact && r.axes.size() == 1 &&
                                                      spec.heavy->src[0]->shape[r.axes[0]]->hi >= 32);
    if (!byLanes) return p;
    Plan rows;
    rows.kind = PlanKind::Rows;
    rows.merge = rank;
    rows.lanes = std::min(std::max(1u, target.vectorBytes / std::max(1u, byteSize(spec.heavy->dtype))), 64u);
    if (slowness(c, spec, rows) <= least) return rows;
    return p;
  }
  if (!reduces) { // a few vectors a step where the body is short
    UOpRef n = c.index(1);
    for (unsigned k = 0; k < p.merge; ++k) n = idxMul(c, extents[rank - 1 - k], n);
    for (unsigned u : {4u, 2u})
      if (ops <= 32 / u * 2 && n->hi >= int64_t(u * p.lanes) &&
          (!n->isConst() || n->hi % (u * p.lanes) == 0 || n->hi >= int64_t(16 * u * p.lanes))) {
        p.unroll = u;
        break;
      }
  }
  return p;
}
