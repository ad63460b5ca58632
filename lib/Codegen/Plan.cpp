//===- Plan.cpp: choosing and naming plans ---------------------------------===//
// Takes:    a kernel's graph and a target.
// Gives:    a plan, by trying the lowering under a few candidates and counting what would be slow.
// Keeps:    determinism: no measurement, no randomness.
#include "astra/Codegen/Plan.h"
#include "Rows.h"
#include "astra/Codegen/Lower.h"
#include "astra/IR/Contract.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace astra;
using llvm::SmallVector;

static const char *const kinds[] = {"map", "rows", "columns", "contract"};

namespace {
/// A step with one number, in the order in which text() writes them.
struct Step {
  llvm::StringLiteral name;
  unsigned Plan::*field;
  std::initializer_list<PlanKind> kinds; // that have it
  unsigned Plan::*unlessZero;            // it is written where this is not 0; null: always
  bool ofGpu;
};
using K = PlanKind;
const Step steps[] = {
    {"rows", &Plan::rows, {K::Contract}, nullptr, false},
    {"stage", &Plan::stage, {K::Contract}, &Plan::stage, false},
    {"merge", &Plan::merge, {K::Map, K::Rows, K::Columns}, nullptr, false},
    {"vector", &Plan::lanes, {K::Map, K::Rows, K::Columns, K::Contract}, nullptr, false},
    {"unroll", &Plan::unroll, {K::Map, K::Rows, K::Columns, K::Contract}, nullptr, false},
    {"block", &Plan::block, {K::Map, K::Rows, K::Columns}, &Plan::block, false},
    {"threads", &Plan::threads, {K::Map, K::Rows, K::Columns, K::Contract}, &Plan::threads, true},
    {"warp", &Plan::warp, {K::Rows}, &Plan::warp, true},
    {"spread", &Plan::spread, {K::Rows, K::Columns, K::Contract}, &Plan::spread, true},
    {"tall", &Plan::tall, {K::Contract}, &Plan::tall, false},
    {"deep", &Plan::deep, {K::Contract}, &Plan::tall, false},
    {"pipeline", &Plan::pipeline, {K::Contract}, &Plan::tall, true},
    {"turn", &Plan::turn, {K::Map}, &Plan::turn, true},
    {"ahead", &Plan::ahead, {K::Map, K::Rows, K::Columns, K::Contract}, &Plan::ahead, false},
};
bool has(const Step &s, PlanKind k) { return llvm::is_contained(s.kinds, k); }
} // namespace

std::string astra::text(const Plan &p) {
  std::string s = std::string(kinds[int(p.kind)]) + ":", separator = " ";
  auto add = [&](const std::string &step) { s += separator + step, separator = "; "; };
  if (p.kind == PlanKind::Contract) {
    std::string m = "m";
    for (int64_t l : p.mLabels) m += " " + std::to_string(l);
    if (p.nLabel >= 0) add("n " + std::to_string(p.nLabel));
    add(m);
  }
  for (const Step &step : steps)
    if (has(step, p.kind) && (!step.unlessZero || p.*step.unlessZero) && (!step.ofGpu || p.threads))
      add((step.name + " " + llvm::Twine(p.*step.field)).str());
  return s;
}

static constexpr int64_t mostNumber = 4096; // of any number in a plan

llvm::Expected<Plan> astra::parsePlan(llvm::StringRef text) {
  Plan p;
  auto bad = [&](llvm::StringRef what, const llvm::Twine &expected) {
    return llvm::createStringError("plan '" + text + "': found '" + what.trim() + "', expected " + expected);
  };
  auto [kind, rest] = text.split(':');
  auto k = llvm::find(kinds, kind.trim());
  if (k == std::end(kinds)) return bad(kind, "map, rows, columns or contract, and a colon");
  p.kind = PlanKind(k - std::begin(kinds));
  bool contract = p.kind == PlanKind::Contract;
  SmallVector<llvm::StringRef> list, seen;
  rest.split(list, ';', -1, false);
  for (llvm::StringRef step : list) {
    SmallVector<llvm::StringRef> words;
    step.trim().split(words, ' ', -1, false);
    if (words.empty()) continue;
    if (llvm::is_contained(seen, words[0])) return bad(step, "each step once");
    seen.push_back(words[0]);
    SmallVector<int64_t> numbers;
    for (llvm::StringRef w : llvm::drop_begin(words)) {
      int64_t v;
      if (w.getAsInteger(10, v) || v < 0 || v > mostNumber) return bad(w, "a number in 0.." + llvm::Twine(mostNumber));
      numbers.push_back(v);
    }
    if (contract && words[0] == "m") {
      p.mLabels.assign(numbers.begin(), numbers.end());
      continue;
    }
    auto row = llvm::find_if(steps, [&](const Step &s) { return s.name == words[0] && has(s, p.kind); });
    bool isN = contract && words[0] == "n";
    if (row == std::end(steps) && !isN) {
      SmallVector<llvm::StringRef> names;
      if (contract) names = {"n", "m"};
      for (const Step &s : steps)
        if (has(s, p.kind)) names.push_back(s.name);
      return bad(step, llvm::join(llvm::ArrayRef(names).drop_back(), ", ") + " or " + names.back());
    }
    if (numbers.size() != 1) return bad(step, "one number after " + words[0]);
    if (isN)
      p.nLabel = numbers[0];
    else
      p.*row->field = unsigned(numbers[0]);
  }
  return p;
}

llvm::Error astra::refusePlan(const KernelSpec &spec, const Plan &p, const llvm::Twine &why) {
  return llvm::createStringError("plan of kernel '" + llvm::Twine(spec.name) + "', '" + text(p) + "': " + why);
}

llvm::Error astra::checkPlans(llvm::ArrayRef<KernelSpec> kernels, const Plans &plans,
                              llvm::function_ref<llvm::Error(const KernelSpec &, const Plan &)> check) {
  size_t known = 0;
  for (const KernelSpec &k : kernels)
    if (auto given = plans.find(k.name); given != plans.end()) {
      ++known;
      if (auto e = check(k, given->second)) return e;
    }
  if (known == plans.size()) return llvm::Error::success();
  std::set<llvm::StringRef> names;
  for (const KernelSpec &k : kernels) names.insert(k.name);
  for (auto &[name, plan] : plans)
    if (!names.count(name))
      return llvm::createStringError("a plan is given for kernel '" + name + "'; there is none (see --emit=plan)");
  return llvm::Error::success();
}

llvm::Error astra::checkPlan(const KernelSpec &spec, const Plan &p) {
  for (const Step &step : steps)
    if (step.ofGpu && p.*step.field != Plan().*step.field)
      return refusePlan(spec, p, step.name + " " + llvm::Twine(p.*step.field) + " is of GPUs; this is a CPU's");
  if (p.kind == PlanKind::Rows && p.lanes == 1 && (writesRows(spec) || !keptInRow(spec).empty()))
    return refusePlan(spec, p, "vector 1; the kernel writes or keeps rows in vectors, expected 2..64");
  return checkForm(spec, p);
}

/// Why the operand of the lanes cannot lie in fast memory under this plan, or "".
static std::string unstageable(const KernelSpec &spec, const ContractSpec &s, bool laneInB, const Plan &p) {
  const auto &forms = laneInB ? s.b : s.a;
  auto in = llvm::find_if(spec.inputs, [&](const Placed &i) { return i.value == spec.heavy->src[laneInB]; });
  bool computed = in == spec.inputs.end();
  if (!computed && !in->layout.isPermuted()) return "the operand of the lanes is packed already";
  if (s.reduced != 1 || !s.domain.empty()) return "the sum is not over one label without a domain";
  for (const AffineForm &f : forms)
    if (!f.isLabel() || llvm::is_contained(p.mLabels, f.terms[0].first))
      return "the operand of the lanes is indexed by more than labels, or by one of m";
  auto k = spec.heavy->indices()[s.kept]->constIndex();
  if (!k) return "the length of the sum is not constant";
  int64_t row = int64_t(p.lanes) * p.unroll * std::max(1u, byteSize(spec.heavy->dtype));
  return *k > (int64_t(1) << 24) / row ? "its columns take more than 16 MiB" : "";
}

llvm::Error astra::checkForm(const KernelSpec &spec, const Plan &p) {
  auto bad = [&](const llvm::Twine &what) { return refusePlan(spec, p, what); };
  auto n = [](int64_t v) { return std::to_string(v); };
  UOpRef heavy = spec.heavy, value = spec.outputs[0].value;
  bool sums = heavy && heavy->op == Op::Contract, reduces = heavy && heavy->op == Op::Reduce;
  // A tile that the threads of a GPU share may lie along any label: its operands are turned on their way.
  bool anyLabel = p.kind == PlanKind::Contract && sums && p.tall && p.threads && spec.laneLabel < 0;
  if (p.kind == PlanKind::Contract && !anyLabel && (!sums || spec.laneLabel < 0))
    return bad("the kernel has no contract along whose labels lanes can run; expected map, rows or columns");
  if (p.kind == PlanKind::Rows && !reduces) return bad("rows is for a kernel with a reduce; this one has none");
  if (p.kind == PlanKind::Columns && !reduces && !sums)
    return bad("columns is for a kernel with a reduce or a contract; this one has none");
  if (!llvm::isPowerOf2_32(p.lanes) || p.lanes > 64)
    return bad("vector " + n(p.lanes) + "; expected a power of two in 1..64");
  if (!p.unroll || p.unroll > 64) return bad("unroll " + n(p.unroll) + "; expected 1..64");
  if (!p.rows || p.rows > 64) return bad("rows " + n(p.rows) + "; expected 1..64");
  // The kernel ABI leaves 16 KiB of stack; a tile beyond the registers lies there.
  int64_t bytes = int64_t(p.rows) * p.unroll * p.lanes * std::max(1u, byteSize((sums ? heavy : value)->dtype));
  if (bytes > 8192)
    return bad("rows times unroll times vector are " + n(bytes) + " bytes; at most 8192 are held at once");
  if (p.block && (p.kind != PlanKind::Map || storedPoints(spec) != value || serialAxis(spec) >= 0))
    return bad("block " + n(p.block) + "; only a map that writes its whole output has blocks");
  if (p.kind != PlanKind::Contract) {
    unsigned rank = spec.outputs[0].layout.dims.size(), least = rank && !p.turn ? 1 : 0;
    if (p.merge < least || p.merge > rank)
      return bad("merge " + n(p.merge) + "; the output has " + n(rank) + " dims in memory, expected " + n(least) +
                 ".." + n(rank));
    return llvm::Error::success();
  }
  ContractSpec s = llvm::cantFail(decodeContract(heavy->ints));
  if (anyLabel && p.nLabel >= s.kept)
    return bad("n " + n(p.nLabel) + " is no kept label; they are 0.." + n(s.kept - 1));
  if (!anyLabel && p.nLabel != spec.laneLabel)
    return bad((p.nLabel < 0 ? "no n" : "n " + n(p.nLabel)) + "; the layouts let lanes run along label " +
               n(spec.laneLabel) + " alone");
  for (auto [i, l] : llvm::enumerate(p.mLabels)) {
    if (l < 0 || l >= s.kept)
      return bad("m " + n(l) + " is no kept label; they are 0.." + n(s.kept - 1) + ", n among them");
    if (l == p.nLabel) return bad("label " + n(l) + " is n and one of m; expected another");
    if (llvm::is_contained(llvm::ArrayRef(p.mLabels).take_front(i), l)) return bad("m has label " + n(l) + " twice");
  }
  for (const Placed &x : spec.inputs)
    if (!x.layout.isPermuted() && x.layout.dims.back().modulus && x.layout.dims.back().modulus % p.lanes)
      return bad("vector " + n(p.lanes) + "; an operand is packed in panels of " + n(x.layout.dims.back().modulus) +
                 ", which expects a divisor of that");
  if (!p.threads && !p.tall != !p.deep)
    return bad("tall " + n(p.tall) + " and deep " + n(p.deep) + "; expected both or neither");
  if (p.tall && p.stage) return bad("stage " + n(p.stage) + " and tall " + n(p.tall) + "; expected one of them");
  if (p.tall && !p.threads) {
    int64_t sums = p.tall * bytes;
    for (int64_t l : innerLabels(s, p.nLabel))
      sums = llvm::SaturatingMultiply<uint64_t>(sums, std::max<int64_t>(heavy->shape[l]->hi, 1));
    if (uint64_t(sums) > uint64_t(1) << 24)
      return bad("tall " + n(p.tall) + "; the sums of an item take more than 16 MiB");
  }
  if (!p.stage) return llvm::Error::success();
  if (p.lanes == 1) return bad("stage " + n(p.stage) + " with vector 1; columns are copied in vectors, expected 2..64");
  bool laneInB = llvm::any_of(
      s.b, [&](const AffineForm &f) { return llvm::any_of(f.terms, [&](auto t) { return t.first == p.nLabel; }); });
  std::string why = unstageable(spec, s, laneInB, p);
  return why.empty() ? llvm::Error::success() : bad("stage " + n(p.stage) + " is not possible: " + why);
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

static bool isLane(UOpRef n) { return n->op == Op::Range && RangeKind(n->ints[1]) == RangeKind::Vector; }

/// Whether the points of a block are neighbours in an operand whose lanes are not: then it is read in whole lines.
static bool readsLines(Context &c, const KernelSpec &spec, const Plan &plan) {
  Kernel k = lowerKernel(c, spec, plan);
  for (UOpRef n : topoSort(k.sink)) {
    if (n->op != Op::Load) continue;
    bool apart = false, neighbours = false;
    for (const IndexTerm &t : terms(n->src.back())) {
      bool alone = t.atoms.size() == 1;
      if (alone && isLane(t.atoms[0]))
        apart |= t.coefficient != 1;
      else
        apart |= llvm::any_of(topoSort(t.atoms), isLane);
      neighbours |= alone && t.coefficient == 1 && t.atoms[0]->op == Op::Range &&
                    RangeKind(t.atoms[0]->ints[1]) == RangeKind::Loop;
    }
    if (apart && neighbours) return true;
  }
  return false;
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

static unsigned floorPow2(uint64_t v) { return v ? 1u << (63 - __builtin_clzll(v)) : 1; }

/// The numbers of kept labels that the forms mention.
static SmallVector<bool> mentions(const SmallVector<AffineForm, 4> &forms, int64_t labels) {
  SmallVector<bool> m(labels);
  for (const AffineForm &f : forms)
    for (auto [l, k] : f.terms) m[l] = true;
  return m;
}

/// Rows times vectors of a register tile, by the work it wastes on edges and on loads. `far`: the lanes' operand does
/// not fit the second cache, so that the first tile of a panel, and what rows are left for a pass of their own, wait
/// for memory. `rests`: sums rest in memory, but those of the rows that are left.
static void chooseTile(Plan &p, const Target &t, unsigned w, int64_t n, int64_t m, bool far, bool rests = false) {
  // Of a vector, in cycles: from memory, between the third cache's and the memory's; from the second cache.
  constexpr double arrival = 5, near = 4;
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
        if (vs * rs + std::min(vs, rs) + 1 > t.vectorRegisters) steps *= 1.1;
        return rests ? std::max(steps, near * vs) : steps;
      };
      auto arriving = [&](unsigned vs, unsigned rs) {
        return far ? std::max(time(vs, rs), arrival * vs) + 0.1 * time(vs, rs) : time(vs, rs);
      };
      auto panel = [&](unsigned vs) {
        double tiles = m < rows ? 0 : (m / rows - 1) * time(vs, rows) + arriving(vs, rows);
        return tiles + (m % rows ? arriving(vs, m % rows) * (rests ? 2 : 1) : 0);
      };
      double cost = (n / wide) * panel(nv) + (lastN ? panel((lastN + w - 1) / w) : 0);
      double score = useful / std::max(cost, 1e-9);
      if (score > best * 1.0001) best = score, p.rows = rows, p.unroll = nv;
    }
  p.lanes = w;
}

/// Whether the lanes' operand is worth a copy in fast memory: rows of it are far apart, many rows of the tile read it.
/// The copy need not fit the second cache: that its rows are neighbours is worth more (1.4 times the speed where it is
/// two and a half times as large, 1.9 times where it is two thirds of it).
static void chooseStage(Context &c, const KernelSpec &spec, const ContractSpec &s, const Target &target, bool laneInB,
                        Plan &p) {
  UOpRef r = spec.heavy;
  if (!unstageable(spec, s, laneInB, p).empty()) return;
  auto k = r->indices()[s.kept]->constIndex(), n = r->shape[p.nLabel]->constIndex();
  UOpRef rows = c.index(1);
  for (int64_t l : p.mLabels) rows = idxMul(c, rows, r->shape[l]);
  // An operand that is computed in the kernel gains from two tiles of rows on, also where only some calls have them.
  bool computed = llvm::none_of(spec.inputs, [&](const Placed &i) { return i.value == r->src[laneInB]; });
  int64_t width = int64_t(p.lanes) * p.unroll, most = computed ? spec.mostRows ? spec.mostRows : rows->hi : rows->lo,
          tiles = most / p.rows;
  if (!k || !n || *k < 128 || *n < 2 * width || tiles < (computed ? 2 : 16)) return;
  if (uint64_t(*k) * width * byteSize(r->dtype) > 3 * target.l2Bytes) return; // each worker has one
  int64_t columns = *n / width, parts = (32 + columns - 1) / columns; // enough items for the threads of a large machine
  p.stage = std::min<int64_t>(std::max<int64_t>((tiles + parts - 1) / parts, 16), 4096);
}

/// How far apart neighbours along the last label of a sum lie in an operand, in bytes; a lot if that is not known.
static uint64_t stepBytes(const KernelSpec &spec, const ContractSpec &s, bool inB) {
  constexpr uint64_t unknown = uint64_t(1) << 40;
  UOpRef x = spec.heavy->src[inB];
  auto in = llvm::find_if(spec.inputs, [&](const Placed &i) { return i.value == x; });
  if (in == spec.inputs.end() || !in->layout.isPermuted()) return unknown;
  uint64_t step = 0, stride = byteSize(x->dtype);
  for (const MemoryDim &d : llvm::reverse(in->layout.dims)) {
    for (auto [label, k] : (inB ? s.b : s.a)[d.axis].terms)
      if (label == s.kept + s.reduced - 1) step += stride * std::abs(k);
    stride = llvm::SaturatingMultiply<uint64_t>(stride, std::clamp<int64_t>(x->shape[d.axis]->hi, 1, unknown));
  }
  return step;
}

/// Where nothing is packed, and tiles would read the lanes' operand again and again from a far cache: all row labels in
/// an item's tiles, and a long sum in parts, taken by the tiles in turn (171 to 237 GFLOP/s in x[2048, 128]^T
/// y[2048, 512], 159 to 228 in a convolution of 512 channels, 7 x 7).
static void chooseRest(const KernelSpec &spec, const ContractSpec &s, const Target &target,
                       llvm::ArrayRef<int64_t> rows, bool laneInB, uint64_t operandBytes, Plan &p) {
  constexpr int64_t least = 4, most = 64, items = 8, line = 64; // bytes of the other operand a step
  // Rows that lie far apart meet in few sets of the second cache.
  int64_t deep = stepBytes(spec, s, laneInB) > 2048 ? 256 : 512;
  UOpRef r = spec.heavy;
  bool thread = !*target.name; // of a GPU, which has no cache of its own
  auto packed = [](const Placed &x) { return !x.layout.isPermuted(); };
  if (p.stage || thread || !isFloat(r->dtype) || llvm::any_of(spec.inputs, packed)) return;
  auto product = [&](auto &&labels) {
    uint64_t v = 1;
    for (int64_t l : labels) {
      UOpRef e = r->indices()[l];
      v = llvm::SaturatingMultiply<uint64_t>(v, e->isConst() ? std::max<int64_t>(e->ints[0], 1) : ~uint64_t(0));
    }
    return v;
  };
  constexpr uint64_t large = uint64_t(1) << 40;
  auto inner = innerLabels(s, p.nLabel);
  uint64_t steps = product(llvm::seq(s.kept, s.kept + s.reduced)), m = product(rows), taps = product(inner),
           n = product(llvm::ArrayRef(p.nLabel)), all = product(llvm::seq(int64_t(0), s.kept));
  uint64_t width = uint64_t(p.lanes) * p.unroll, pass = steps * (width * byteSize(r->dtype) + line);
  if (steps < 256 || std::max({steps, m, taps, n, all}) > large) return;
  Plan q = p;
  q.mLabels.assign(rows.begin(), rows.end());
  bool far = pass >= target.l2Bytes * 3 / 8;
  if (!far) {
    if (p.mLabels.size() == rows.size() || operandBytes <= target.l2Bytes / 2) return;
    chooseTile(q, target, p.lanes, n, m, false);
    p = q;
    return;
  }
  chooseTile(q, target, p.lanes, n, m, false, true);
  uint64_t columns = std::max<uint64_t>(n / (q.lanes * q.unroll), 1), batches = all / (n * m * taps),
           tiles = std::max<uint64_t>(m / q.rows, 1), parts = (items + columns * batches - 1) / (columns * batches);
  q.tall = std::clamp<uint64_t>((tiles + parts - 1) / parts, std::min<uint64_t>(tiles, (least + taps - 1) / taps),
                                std::max<uint64_t>(most / taps, 1));
  q.deep = deep;
  if (q.tall * taps >= least && q.tall * taps <= 4 * most) p = q;
}

/// Whether a product's reads are asked for ahead: where they come from beyond the second cache, and few tiles read the
/// same (of many, the first one alone waits), or the lanes' operand has been copied, so that what is read after the
/// sums is all (weight gradients of 3x3 convolutions of 64 channels at 56 x 56: 193 to 226 GFLOP/s; a product that is
/// followed by the derivative of gelu: 12.5 to 10.4 ms; 8 rows times packed weights of 64 MiB: 5.0 to 3.9 ms).
static void chooseAhead(const KernelSpec &spec, const Target &target, Plan &p) {
  constexpr unsigned steps = 24, leastTile = 8; // vectors
  constexpr uint64_t fewTiles = 32, large = uint64_t(1) << 40;
  UOpRef r = spec.heavy;
  bool thread = !*target.name; // of a GPU
  if (thread || !isFloat(r->dtype) || p.rows * p.unroll < leastTile) return;
  uint64_t read = 0, rows = 1;
  for (const Placed &in : spec.inputs) {
    uint64_t bytes = std::max(1u, byteSize(in.value->dtype));
    for (UOpRef e : in.value->shape)
      bytes = llvm::SaturatingMultiply<uint64_t>(bytes, std::clamp<int64_t>(e->hi, 1, large));
    read = llvm::SaturatingAdd(read, bytes);
  }
  for (int64_t l : p.mLabels)
    rows = llvm::SaturatingMultiply<uint64_t>(rows, std::clamp<int64_t>(r->shape[l]->hi, 1, large));
  if (read > target.l2Bytes && (p.stage || rows / p.rows <= fewTiles)) p.ahead = steps;
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
  uint64_t operandBytes = byteSize(r->dtype);
  for (UOpRef extent : r->src[laneInB]->shape)
    operandBytes = std::min<uint64_t>(operandBytes * std::max<int64_t>(extent->hi, 1), uint64_t(1) << 32);
  auto tileFor = [&](llvm::ArrayRef<int64_t> mLabels) {
    p.mLabels.assign(mLabels.begin(), mLabels.end());
    int64_t m = 1;
    bool fixed = true;
    for (int64_t l : mLabels) m *= std::max<int64_t>(r->shape[l]->hi, 1), fixed &= r->shape[l]->isConst();
    if (spec.mostRows) m = spec.mostRows, fixed = true;
    UOpRef n = r->shape[p.nLabel];
    chooseTile(p, target, lanes, n->isConst() ? n->hi : 4096, fixed ? m : 4096, operandBytes > target.l2Bytes);
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
  chooseRest(spec, s, target, rows, laneInB, operandBytes, p);
  chooseAhead(spec, target, p);
  return true;
}

Plan astra::choosePlan(Context &c, const KernelSpec &spec, const Target &target) {
  Plan p;
  if (contractPlan(c, spec, target, p)) return p;
  p = Plan();
  const Placed &out = spec.outputs[0];
  UOpRef v = storedPoints(spec);
  unsigned bytes = std::max(1u, byteSize(v->dtype)), rank = out.layout.dims.size(),
           w = std::max(1u, target.vectorBytes / bytes);
  unsigned ops = 0;
  for (UOpRef n : topoSort(out.value)) ops += has(n->op, Elementwise);
  if (int64_t serial = serialAxis(spec); serial >= 0) {
    // Lanes along what lies inside of the serial axis, where they are neighbours all the way.
    auto extents = memoryExtents(c, out.layout, v->shape);
    UOpRef inner = c.index(1);
    for (p.merge = 0; out.layout.dims[rank - 1 - p.merge].axis != serial; ++p.merge)
      inner = idxMul(c, inner, extents[rank - 1 - p.merge]);
    p.lanes = std::min<uint64_t>(w, floorPow2(std::max<int64_t>(inner->hi, 1)));
    p.merge = std::max(p.merge, 1u);
    if (p.lanes > 1 && slowness(c, spec, p) >= 16) p.lanes = 1;
    return p;
  }
  if (rank == 0) {
    p.merge = rank;
    if (rank == 0 && spec.heavy && spec.heavy->op == Op::Reduce) p.kind = PlanKind::Rows, p.lanes = std::min(w, 64u);
    return p;
  }
  if (writesRows(spec)) { // several vectors a step where the last pass is short
    p.kind = PlanKind::Rows;
    p.merge = rank;
    p.lanes = std::min(std::max(1u, target.vectorBytes / std::max(1u, byteSize(spec.heavy->dtype))), 64u);
    p.unroll = ops <= 16 ? 4 : ops <= 64 ? 2 : 1;
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
    // Along other axes: rows of many, far apart, of which each item takes a part of this many bytes. Less than a few
    // lines of each, and no prefetcher of a CPU follows.
    constexpr unsigned partBytes = 512;
    UOpRef n = c.index(1);
    for (unsigned k = 0; k < p.merge; ++k) n = idxMul(c, extents[rank - 1 - k], n);
    unsigned wide = std::max(1u, partBytes / (p.lanes * bytes));
    while (wide > 1 && (p.lanes < w || n->lo < int64_t(4 * wide * p.lanes))) wide /= 2; // some items for the threads
    p.unroll = wide;
    return p;
  }
  if (!reduces && least >= 16 &&
      v == out.value) // an operand that is read across: by lines, if some loop goes along them
    for (unsigned k = 1; k < rank; ++k) {
      Plan blocks = p;
      blocks.merge = k, blocks.unroll = 1;
      UOpRef in = idxProduct(c, llvm::ArrayRef<UOpRef>(extents).take_back(k)),
             around = idxProduct(c, llvm::ArrayRef<UOpRef>(extents).drop_back(k));
      blocks.lanes = std::min<uint64_t>(w, floorPow2(std::max<int64_t>(in->hi, 1)));
      // Several lines of it, where memory has them in a row (4096 by 4096: a third of the time).
      for (blocks.block = 64; blocks.block > 16 && around->hi < 2 * int64_t(blocks.block);) blocks.block /= 2;
      bool fits = blocks.lanes == w && around->hi >= 2 * int64_t(blocks.block);
      if (fits && readsLines(c, spec, blocks)) return blocks;
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
    constexpr unsigned most =
        512; // a gather's addresses, written out for every lane of wide steps, compile for seconds
    if (unsigned nodes = perLane(c, spec, p); nodes > 1) {
      while (p.unroll > 1 && nodes * p.lanes * p.unroll > most) p.unroll /= 2;
      while (p.lanes > 4 && nodes * p.lanes > most) p.lanes /= 2;
    }
  }
  return p;
}
