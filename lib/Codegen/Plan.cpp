//===- Plan.cpp: choosing and naming plans ---------------------------------===//
// Takes:    a kernel's graph and a target.
// Gives:    a plan, by trying the lowering under a few candidates and counting what would be slow. ContractPlan.cpp
//           chooses those of contracts.
// Keeps:    determinism: no measurement, no randomness.
#include "astra/Codegen/Plan.h"
#include "ContractPlan.h"
#include "Rows.h"
#include "astra/Codegen/Lower.h"
#include "astra/IR/Contract.h"
#include "llvm/ADT/STLExtras.h"
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
    {"block", &Plan::block, {K::Map, K::Rows, K::Columns, K::Contract}, &Plan::block, false},
    {"line", &Plan::line, {K::Map, K::Columns, K::Contract}, &Plan::line, false},
    {"threads", &Plan::threads, {K::Map, K::Rows, K::Columns, K::Contract}, &Plan::threads, true},
    {"warp", &Plan::warp, {K::Rows}, &Plan::warp, true},
    {"spread", &Plan::spread, {K::Rows, K::Columns, K::Contract}, &Plan::spread, true},
    {"tall", &Plan::tall, {K::Contract}, &Plan::tall, false},
    {"deep", &Plan::deep, {K::Contract}, &Plan::tall, false},
    {"deep", &Plan::deep, {K::Columns}, &Plan::deep, false},
    {"pipeline", &Plan::pipeline, {K::Contract}, &Plan::tall, true},
    {"turn", &Plan::turn, {K::Map}, &Plan::turn, true},
    {"ahead", &Plan::ahead, {K::Map, K::Rows, K::Columns, K::Contract}, &Plan::ahead, false},
    {"next", &Plan::next, {K::Contract}, &Plan::next, false},
    {"past", &Plan::past, {K::Map, K::Rows}, &Plan::past, false},
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

static constexpr int64_t mostNumber = 4096;            // of any number in a plan
static constexpr unsigned mostDeep = 16;               // steps of a sum that are taken together
static constexpr uint64_t mostTileBytes = 16ull << 20; // of rows that pass between a kernel and its followers

/// Bytes of one row of all that passes between a kernel and its followers.
static uint64_t passedBytes(const KernelSpec &spec) {
  uint64_t bytes = 0;
  for (const Placed &p : llvm::ArrayRef(spec.outputs).drop_back()) bytes += rowBytes(p);
  return bytes;
}

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
  if (auto e = checkForm(spec, p)) return e;
  bool sums = spec.heavy && spec.heavy->op == Op::Contract;
  if (spec.follows && p.kind != (sums ? PlanKind::Contract : PlanKind::Rows))
    return refusePlan(spec, p,
                      llvm::Twine("the kernel follows another one, rows at a time; expected ") +
                          (sums ? "contract" : "rows"));
  if (spec.followers.empty()) return llvm::Error::success();
  if (p.kind != PlanKind::Contract || !p.block)
    return refusePlan(spec, p, "a kernel with followers; expected a contract with a block");
  if (p.block * passedBytes(spec) > mostTileBytes)
    return refusePlan(spec, p, "block " + llvm::Twine(p.block) + "; these rows take more than 16 MiB");
  return llvm::Error::success();
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
  if (!llvm::isPowerOf2_32(p.lanes) || p.lanes > mostLanes)
    return bad("vector " + n(p.lanes) + "; expected a power of two in 1.." + n(mostLanes));
  if (!p.unroll || p.unroll > 64) return bad("unroll " + n(p.unroll) + "; expected 1..64");
  if (!p.rows || p.rows > 64) return bad("rows " + n(p.rows) + "; expected 1..64");
  // The kernel ABI leaves 16 KiB of stack; a tile beyond the registers lies there.
  int64_t bytes = int64_t(p.rows) * p.unroll * p.lanes * std::max(1u, byteSize((sums ? heavy : value)->dtype));
  if (bytes > 8192)
    return bad("rows times unroll times vector are " + n(bytes) + " bytes; at most 8192 are held at once");
  bool contracts = sums && p.kind == PlanKind::Contract && !p.threads;
  if (p.block && !contracts && (p.kind != PlanKind::Map || storedPoints(spec) != value || serialAxis(spec) >= 0))
    return bad("block " + n(p.block) + "; only a map that writes its whole output and a contract have blocks");
  if (p.line > 2) return bad("line " + n(p.line) + "; expected 0, 1 or 2");
  bool hasLines = p.kind == PlanKind::Map || p.kind == PlanKind::Columns;
  if (contracts && p.line && (p.line == 1 || p.stage || p.tall || !movesLastVector(spec)))
    return bad("line " + n(p.line) +
               "; of columns that are neither packed nor copied, sums that do not rest, and not in place, it can be 2");
  if (p.line && !contracts &&
      (!hasLines || p.block || p.spread || p.turn || storedPoints(spec) != value || serialAxis(spec) >= 0))
    return bad("line " + n(p.line) + "; only what writes its whole output, by lines alone, has them");
  if (p.line > 1 && spec.inPlace && !contracts)
    return bad("line 2 in place; what is written twice would be read changed");
  if (p.past > 1) return bad("past " + n(p.past) + "; expected 0 or 1");
  if (p.past && spec.follows) return bad("past 1 of rows that pass to a kernel; the next kernel reads them at once");
  if (p.next > 1) return bad("next " + n(p.next) + "; expected 0 or 1");
  if (p.kind == PlanKind::Columns && p.deep && (!sums || p.threads || !llvm::isPowerOf2_32(p.deep) || p.deep > mostDeep))
    return bad("deep " + n(p.deep) + "; of columns of a contract, on a CPU, expected a power of two in 1.." +
               n(mostDeep));
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
  if (p.tall && !p.threads && p.deep < 2) return bad("deep 1; sums rest after two steps or more");
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

static bool isLane(UOpRef n) { return n->op == Op::Range && RangeKind(n->ints[1]) == RangeKind::Vector; }

/// The price of an address of which each lane computes a part by itself: a gather. In a map little where that leads to
/// neighbours and every vector takes the same part of its lines, and less the fewer lanes there are (60,000 elements in
/// lines of 3, u8 for x86-64-v3, four vectors of 32 at once: 4.5 to 8 ns a vector; lines of 4: 1.2).
static unsigned lanePrice(const IndexTerm &term, UOpRef part, const Plan &p) {
  constexpr unsigned gather = 16;
  if (p.kind != PlanKind::Map || term.atoms.size() > 1 || term.coefficient != 1) return gather;
  for (UOpRef n : topoSort(part)) {
    if (n->op != Op::FloorDiv && n->op != Op::Mod) continue;
    auto by = n->src[1]->constIndex();
    if (!by || *by < 1 || p.lanes % *by) return p.lanes + p.lanes / 4;
  }
  return p.lanes / 4;
}

unsigned astra::slowness(Context &c, const KernelSpec &spec, const Plan &plan) {
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
        if (!lane && a->op != Op::Range && a->op != Op::Dim && llvm::any_of(topoSort(a), isLane))
          cost += lanePrice(t, a, plan);
      }
  }
  return cost;
}

static bool isUnrolled(UOpRef n) { return n->op == Op::Range && RangeKind(n->ints[1]) == RangeKind::Unroll; }

/// Lanes of a line whose last vector begins earlier; 0: it is masked, or its last elements come one after another. Of
/// elements that no mask is for, a vector of less than this many bytes is not worth it.
static unsigned movingLanes(const Target &target, UOpRef line, unsigned width, unsigned bytes) {
  constexpr unsigned leastBytes = 16;
  unsigned lanes = lanesThatMove(target, line, width);
  return bytes < target.maskedBytes && lanes * bytes < leastBytes ? 0 : lanes;
}

/// What a line shorter than a vector costs in slowness's measure, beside whole vectors over several lines: of a map its
/// steps, one for each last element where nothing masks it or begins earlier, for so much less than a vector.
static unsigned narrowness(const Target &target, UOpRef line, const Plan &p, unsigned width, unsigned bytes,
                           unsigned ops) {
  constexpr unsigned step = 3, opsOfStep = 4, flat = 16;
  if (p.lanes >= width) return 0;
  if (p.kind != PlanKind::Map) return flat;
  int64_t n = std::max<int64_t>(line->hi, 1), rest = n % p.lanes;
  bool finishes = bytes >= target.maskedBytes || movingLanes(target, line, width, bytes);
  int64_t steps = n / p.lanes + (finishes ? rest != 0 : rest);
  return (1 + ops / opsOfStep) * step * (steps * width - n) / n;
}

/// Whether what is taken at once, the points of a block or the steps of a sum, are neighbours in each operand whose
/// lanes are not (of a sum in one: what its last steps read is read lane by lane), and there is such a one: it is read
/// by vectors along them.
static bool readsSquares(Context &c, const KernelSpec &spec, const Plan &plan) {
  Kernel k = lowerKernel(c, spec, plan);
  bool any = false;
  if (k.sink->src.empty()) return false;
  for (UOpRef n : topoSort(k.sink->src[0])) {
    if (n->op != Op::Load) continue;
    bool apart = false, neighbours = false, elsewhere = false;
    for (const IndexTerm &t : terms(n->src.back())) {
      bool alone = t.atoms.size() == 1, unrolled = alone && isUnrolled(t.atoms[0]);
      apart |= alone && isLane(t.atoms[0]) ? t.coefficient != 1 : llvm::any_of(topoSort(t.atoms), isLane);
      neighbours |= unrolled && t.coefficient == 1;
      elsewhere |= !unrolled && llvm::any_of(topoSort(t.atoms), isUnrolled);
    }
    if (!apart) continue;
    if (neighbours && !elsewhere)
      any = true;
    else if (!plan.deep)
      return false;
  }
  return any;
}

/// Whether lanes of two lines of the result span no more than the first cache in what is read for them: lines further
/// apart meet in few of its sets (on AVX2 a permutation [2, 0, 1] of 256^3 floats, of which 32 lanes span 32 KiB: 34
/// and 27 ms; of 512^2 matrices transposed, which span 64: 19 and 29).
static bool readsNear(Context &c, const KernelSpec &spec, const Plan &plan, const Target &target) {
  Kernel k = lowerKernel(c, spec, plan);
  for (UOpRef n : topoSort(k.sink->src[0]))
    if (n->op == Op::Load)
      for (const IndexTerm &t : terms(n->src.back())) {
        bool alone = t.atoms.size() == 1 && isLane(t.atoms[0]);
        if (alone ? std::abs(t.coefficient) > int64_t(target.l1Bytes / (2 * lineBytes))
                  : llvm::any_of(topoSort(t.atoms), isLane))
          return false;
      }
  return true;
}

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

/// Lanes of a square: a vector, or a cache line of floats where a vector is less and the result's lines are whole ones:
/// half a line is written twice, and is gone between where lines lie a power of two apart (512^2 doubles transposed for
/// x86-64-v3 0.30 and 0.13 ms, 1024^2 floats 0.77 and 0.44, 1024 x 784 the same; 1024^2 halves, whose 32 lanes are read
/// from 64 KiB, 0.52 and 0.83).
static unsigned squareLanes(const Target &target, UOpRef line, unsigned width, unsigned bytes) {
  return !storesLines(target) && bytes >= 4 && isWhole(line, lineBytes / bytes) ? lineBytes / bytes : width;
}

/// Squares of what no cache holds. Memory is the bound, and its lines come earlier to one load after another where a
/// vector is a line (a rotation of 16^6 floats: 7.2 ms, 9.0 by squares). Where it is less, two lines of a result are
/// written at once if that reads near, from lines that are read to their ends if they are not long (256^3 floats,
/// [2, 0, 1], for x86-64-v3, items of 64 and 256 points: 25.8 and 19.7 ms); else items have more points (x86-64-v3,
/// points of 64 one after another and squares of 256: 4096^2 transposed 21.7 and 15.9 ms, 8192 x 2048 25.5 and 18.9,
/// 64^4 [2, 3, 0, 1] 20.1 and 15.5, 3000 x 5000 24.4 and 16.4).
static void chooseLarge(Context &c, const KernelSpec &spec, const Target &target, UOpRef in, UOpRef around,
                        unsigned bytes, Plan &p) {
  constexpr unsigned most = 256; // points of an item
  Plan single = p;
  single.unroll = 1;
  if (storesLines(target)) {
    p = single;
    return;
  }
  single.lanes = 2 * lineBytes / bytes;
  if (isWhole(in, single.lanes) && readsNear(c, spec, single, target)) {
    if (around->isConst() && around->hi <= most) single.block = around->hi;
    p = single;
    return;
  }
  p.block = pointsOf(around, most, p.unroll);
}

/// An operand that is read across: squares of vectors, turned in a quarter of the registers (half of them gain 2 % and
/// take twice as long to compile), where some loop goes along it.
static bool chooseSquares(Context &c, const KernelSpec &spec, const Target &target, llvm::ArrayRef<UOpRef> extents,
                          Plan &p) {
  constexpr unsigned most = 64, fewest = 4; // points of an item; points at once, where they are fewer than lanes
  unsigned bytes = std::max(1u, byteSize(spec.outputs[0].value->dtype)), width = target.vectorBytes / bytes;
  if (!*target.name || width < 2) return false;
  bool large = idxProduct(c, extents)->lo > int64_t(target.l3Bytes / bytes);
  for (size_t k = 1; k < extents.size(); ++k) {
    UOpRef in = idxProduct(c, extents.take_back(k)), around = idxProduct(c, extents.drop_back(k));
    if (in->hi < width) continue;
    Plan squares = p;
    squares.merge = k, squares.lanes = squareLanes(target, in, width, bytes);
    unsigned least = std::min(width, fewest), first = std::min(width, target.vectorRegisters / 4);
    for (unsigned u = first; u >= least && around->isConst(); u /= 2)
      if (around->hi % u == 0) { // no point is left over
        first = u;
        break;
      }
    for (unsigned u = first; u >= least; u /= 2) {
      if (around->hi < u) continue;
      squares.unroll = u, squares.block = pointsOf(around, most, u);
      if (!readsSquares(c, spec, squares)) continue;
      p = squares;
      if (large) chooseLarge(c, spec, target, in, around, bytes, p);
      return true;
    }
  }
  return false;
}

/// Whether the lanes lie side by side in all that is read, or at every other element.
static bool readsRuns(Context &c, const KernelSpec &spec, const Plan &plan) {
  Kernel k = lowerKernel(c, spec, plan);
  for (UOpRef n : topoSort(k.sink)) {
    if (n->op != Op::Load) continue;
    for (const IndexTerm &t : terms(n->src.back())) {
      bool alone = t.atoms.size() == 1 && isLane(t.atoms[0]);
      if (alone ? t.coefficient != 1 && t.coefficient != 2 : llvm::any_of(topoSort(t.atoms), isLane)) return false;
    }
  }
  return true;
}

/// Lines that are short and many are items: each is one place to compute where it lies, and has no scalar end. Where
/// vectors are narrow the last one begins earlier (a padded copy of 576 images of 14 x 14, lines of 15, for x86-64-v3:
/// 51 and 18 us).
static void chooseLine(Context &c, const KernelSpec &spec, const Target &target, llvm::ArrayRef<UOpRef> extents,
                       Plan &p) {
  constexpr int64_t most = 64, fewest = 16; // vectors of a line; lines
  constexpr unsigned together = 8;          // vectors at once, of a map: sums want registers
  unsigned bytes = std::max(1u, byteSize(spec.outputs[0].value->dtype)),
           width = std::max(1u, target.vectorBytes / bytes);
  UOpRef n = idxProduct(c, extents.take_back(p.merge)), lines = idxProduct(c, extents.drop_back(p.merge));
  if (!*target.name || storedPoints(spec) != spec.outputs[0].value || p.block) return; // a thread of a GPU has none
  if (n->hi < 2 || n->hi > most * width || lines->lo < fewest) return;
  Plan line = p;
  line.line = 1;
  line.lanes = std::min<uint64_t>(width, llvm::PowerOf2Ceil(n->hi));
  bool whole = n->isConst() && n->hi % line.lanes == 0;
  unsigned lanes = movingLanes(target, n, width, bytes);
  unsigned left = lanes && n->isConst() ? n->hi % lanes : ~0u;
  if (!whole && lanes && (left == 1 || !spec.inPlace))
    line.lanes = lanes, line.line = left == 1 ? 1 : 2;
  else if (!whole && bytes < target.maskedBytes)
    return;
  unsigned vectors = llvm::divideCeil(n->hi, line.lanes);
  line.unroll = p.unroll > 1 ? p.unroll : std::min(vectors, p.kind == PlanKind::Map ? together : together / 2);
  if (readsRuns(c, spec, line)) p = line;
}

/// Sums over windows, by columns: a window's place is computed once for a line of the innermost dim, where that is some
/// vectors (max pooling of 64 channels, 112 x 112: 0.34 and 0.17 ms; 96 channels by themselves there, every other
/// place: 0.34 and 0.26).
static Plan chooseWindows(Context &c, const KernelSpec &spec, const Target &target, llvm::ArrayRef<UOpRef> extents,
                          Plan p) {
  unsigned bytes = std::max(1u, byteSize(spec.outputs[0].value->dtype)),
           width = std::max(1u, target.vectorBytes / bytes);
  Plan line = p;
  line.merge = 1;
  if (extents.back()->lo >= int64_t(2 * width)) chooseLine(c, spec, target, extents, line);
  if (line.line) return line;
  chooseLine(c, spec, target, extents, p);
  return p;
}

/// How far apart in memory lanes are that do not lie side by side, in bytes: the most of all loads.
static uint64_t bytesAcross(Context &c, const KernelSpec &spec, const Plan &plan) {
  uint64_t most = 0;
  for (UOpRef n : topoSort(lowerKernel(c, spec, plan).sink)) {
    if (n->op != Op::Load) continue;
    for (const IndexTerm &t : terms(n->src.back()))
      if (t.atoms.size() == 1 && isLane(t.atoms[0]) && t.coefficient != 1)
        most = std::max(most, llvm::SaturatingMultiply<uint64_t>(std::abs(t.coefficient), byteSize(n->dtype)));
  }
  return most;
}

/// A product by columns whose lanes lie across in memory, as of a matrix and a vector: some steps of the sum together,
/// which are squares in registers then. Sixteen rows at once, so that the chains' latency is less than the squares take
/// (1000 x 1000 for x86-64-v3: 324 us, 180 by one vector and 135 by two), but where their lines meet in one or two sets
/// of the first cache (2048 x 2048: 1.62, 0.97 and 1.98 ms).
static void chooseSteps(Context &c, const KernelSpec &spec, const Target &target, UOpRef line, Plan &p) {
  constexpr unsigned together = 16, meeting = 2048; // rows; bytes
  if (!*target.name || spec.heavy->op != Op::Contract || p.lanes < 4) return;
  Plan steps = p;
  steps.deep = std::min(p.lanes, mostDeep);
  if (!readsSquares(c, spec, steps)) return;
  p = steps;
  if (line->lo >= 2 * int64_t(together) && bytesAcross(c, spec, p) % meeting)
    p.unroll = std::max(together / p.lanes, 1u);
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

/// How many rows go through a kernel and its followers at a time: what passes between them fits a part of the second
/// cache, and yet as many as pay for the operands that each tile of them reads anew (2048 keys of 64, 12 heads: tiles
/// of the 8 rows that fit 285 ms, of 16 270, of 32 242, of 64 239); several items; as few tiles that are not whole as
/// can be.
static void chooseBlock(Context &c, const KernelSpec &spec, const Target &target, Plan &p) {
  constexpr int64_t least = 8, worth = 32, large = int64_t(1) << 20;
  Shape shape = spec.outputs[0].value->shape;
  UOpRef rows = shape[shape.size() - 2];
  unsigned last = choosePlan(c, spec.followers.back().spec, target).rows;
  int64_t fit = target.l2Bytes / 4 / passedBytes(spec), most = fit < worth ? worth * 3 / 2 : fit,
          all = std::min(rows->hi, large);
  for (UOpRef e : shape.drop_back(2)) all = std::min(all * std::clamp<int64_t>(e->lo, 1, large), large);
  most =
      std::clamp(std::min(most, all / target.cores), least, std::min<int64_t>(std::max(rows->hi, least), mostNumber));
  auto tiles = [&](int64_t n) { return llvm::divideCeil(n, p.rows) + llvm::divideCeil(n, last); };
  auto n = rows->constIndex();
  double fewest = 1e18;
  for (int64_t r = most, low = std::max(most / 2, most < worth ? least : worth * 3 / 4); r >= low; --r) {
    // what is left of the rows is code of its own
    double count =
        n ? double(*n / r * tiles(r)) + (*n % r ? double(tiles(*n % r)) + 0.5 : 0) : double(tiles(r)) / double(r);
    if (count < fewest) fewest = count, p.block = r;
  }
}

/// All of a plan but how results are stored.
static Plan chooseForm(Context &c, const KernelSpec &spec, const Target &target) {
  Plan p;
  if (contractPlan(c, spec, target, p)) {
    if (!spec.followers.empty() && *target.name) chooseBlock(c, spec, target, p);
    return p;
  }
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
    p.lanes = std::min<uint64_t>(w, llvm::bit_floor<uint64_t>(std::max<int64_t>(inner->hi, 1)));
    p.merge = std::max(p.merge, 1u);
    if (p.lanes > 1 && slowness(c, spec, p) >= 16) p.lanes = 1;
    return p;
  }
  if (rank == 0) {
    p.merge = 0;
    if (spec.heavy && spec.heavy->op == Op::Reduce) p.kind = PlanKind::Rows, p.lanes = std::min(w, mostLanes);
    return p;
  }
  if (writesRows(spec)) { // several vectors a step where the last pass is short
    p.kind = PlanKind::Rows;
    p.merge = rank;
    p.lanes = std::min(std::max(1u, target.vectorBytes / std::max(1u, byteSize(spec.heavy->dtype))), mostLanes);
    p.unroll = ops <= 16 ? 4 : ops <= 64 ? 2 : 1;
    // A row comes from afar while the one before is computed: its passes would wait for it one after another, and no
    // prefetcher of a CPU goes beyond a page (4096 rows, softmax of 1024: 2.61 and 2.20 ms, layer norm of 768: 1.19 and
    // 0.99).
    if (*target.name && !spec.follows && readBytes(spec) > target.l2Bytes) p.ahead = 1;
    return p;
  }
  bool reduces = spec.heavy && (spec.heavy->op == Op::Reduce || spec.heavy->op == Op::Contract);
  p.kind = reduces ? PlanKind::Columns : PlanKind::Map;
  auto extents = memoryExtents(c, out.layout, v->shape);
  unsigned least = ~0u;
  Plan chosen = p;
  UOpRef inner = c.index(1);
  // Differs from `extents` where a window or a part is written.
  auto whole = memoryExtents(c, out.layout, out.begin.empty() ? out.value->shape : Shape(out.allocated));
  for (unsigned k = 1; k <= rank; ++k) {
    if (k > 1 && extents[rank - k + 1] != whole[rank - k + 1]) break; // its rows are not neighbours
    inner = idxMul(c, extents[rank - k], inner);
    p.merge = k;
    p.lanes = std::min<uint64_t>(w, llvm::bit_floor<uint64_t>(std::max<int64_t>(inner->hi, 1)));
    p.unroll = 1;
    unsigned cost = slowness(c, spec, p) + narrowness(target, inner, p, w, bytes, ops);
    if (cost <= least) least = cost, chosen = p;
  }
  p = chosen;
  if (reduces && spec.heavy->op == Op::Reduce) {
    ReduceSpec r = llvm::cantFail(decodeReduce(spec.heavy->ints));
    bool byLanes = r.order == ReduceOrder::Lane64 || (r.order == ReduceOrder::Exact && r.axes.size() == 1 &&
                                                      spec.heavy->src[0]->shape[r.axes[0]]->hi >= 32);
    if (!byLanes) return chooseWindows(c, spec, target, extents, p);
    Plan rows;
    rows.kind = PlanKind::Rows;
    rows.merge = rank;
    rows.lanes = std::min(std::max(1u, target.vectorBytes / std::max(1u, byteSize(spec.heavy->dtype))), mostLanes);
    if (slowness(c, spec, rows) <= least) return rows;
    // Along other axes: rows of many, far apart, of which each item takes a part of this many bytes. Less than a few
    // lines of each, and no prefetcher of a CPU follows. Rows of a page and more, where two vectors are a line and
    // little is computed: twice as much, lines at once, and of what no second cache holds rows are asked for ahead
    // (4096 x 4096 and 16384 x 1024 floats, for x86-64-v3: sums 8.8 and 7.8, 13.5 and 10.3 ms, maxima 9.7 and 8.5, 14.0
    // and 9.7; not so of shorter rows, sums of a batch norm's gradient 2.1 and 3.3).
    constexpr unsigned pageBytes = 4096, rowsAhead = 8, little = 8, mostStatements = 512;
    unsigned partBytes = 512;
    UOpRef n = idxProduct(c, llvm::ArrayRef(extents).take_back(p.merge));
    bool apart = extents.back()->lo >= int64_t(pageBytes / bytes) && 2 * target.vectorBytes == lineBytes;
    if (apart && p.lanes == w && bytes >= 4 && ops <= little) {
      partBytes *= 2, p.lanes *= 2;
      if (readBytes(spec) > target.l2Bytes) p.ahead = rowsAhead;
    }
    unsigned wide = std::max(1u, partBytes / (p.lanes * bytes)), all = statements(c, spec, p, target);
    auto few = [&] { return p.lanes < w || n->lo < int64_t(4 * wide * p.lanes); }; // items for the threads
    while (wide > 1 && (few() || wide * all > mostStatements)) wide /= 2;
    p.unroll = wide;
    chooseLine(c, spec, target, extents, p);
    return p;
  }
  if (reduces) {
    chooseSteps(c, spec, target, idxProduct(c, llvm::ArrayRef(extents).take_back(p.merge)), p);
    return p.deep ? p : chooseWindows(c, spec, target, extents, p);
  }
  if (least >= 16 && v == out.value && chooseSquares(c, spec, target, extents, p)) return p;
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
  }
  chooseLine(c, spec, target, extents, p);
  return p;
}

/// Results that no cache holds until they are read go past them: a line is not read before it is written (transposition
/// of 4096 x 4096: 28 and 17 ms; 25 MB of a batch norm: 4.2 and 2.5; not so of 16 MB of a softmax).
static void choosePast(const KernelSpec &spec, const Target &target, Plan &p) {
  UOpRef v = spec.outputs[0].value;
  bool writes = p.kind == PlanKind::Map || (p.kind == PlanKind::Rows && writesRows(spec));
  if (!storesLines(target) || !writes || spec.inPlace || spec.follows || p.lanes * byteSize(v->dtype) != lineBytes)
    return;
  uint64_t bytes = byteSize(v->dtype);
  for (UOpRef e : v->shape) bytes = llvm::SaturatingMultiply<uint64_t>(bytes, std::max<int64_t>(e->lo, 0));
  p.past = bytes >= target.l3Bytes;
}

Plan astra::choosePlan(Context &c, const KernelSpec &spec, const Target &target) {
  Plan p = chooseForm(c, spec, target);
  choosePast(spec, target, p);
  return p;
}
