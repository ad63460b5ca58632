//===- Plan.cpp: the text of plans, and which can be lowered ----------------===//
// Takes:    a plan, its text, or both a kernel and a plan for it that comes from outside.
// Gives:    the other of plan and text; a sentence where the kernel cannot be lowered under the plan.
// Keeps:    every number bounded: what is accepted has room in memory and registers, and compiles.
#include "astra/Codegen/Plan.h"
#include "Planner/Choosing.h"
#include "Rows.h"
#include "astra/Codegen/Lower.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace astra;
using llvm::SmallVector;

static const char *const kinds[] = {"map", "rows", "columns", "contract", "programs"};

namespace {
bool transposes(const Plan &p) { return p.transpose; }
bool merges(const Plan &p) { return !p.transpose; }
bool takesStepsTogether(const Plan &p) { return p.unrollK && p.unrollK != sumLanes; } // of a contract
bool isOfSteps(const Plan &p) { return !takesStepsTogether(p); }

/// A step with one number, in the order in which text() writes them: the word that a field has in plans of some kinds.
struct Step {
  llvm::StringLiteral name;
  unsigned Plan::*field;
  std::initializer_list<PlanKind> kinds; // that have it
  unsigned Plan::*unlessZero;            // it is written where this is not 0; null: always
  bool ofGpu;
  llvm::StringLiteral formerly = "";  // what release 0.2.0 called it: read, never written
  bool (*of)(const Plan &) = nullptr; // where one word is of several fields: the plans in which it is this one's
};
using K = PlanKind;
const Step steps[] = {
    {"mr", &Plan::mr, {K::Contract, K::Programs}, nullptr, false, "rows"},
    {"pack-b", &Plan::packB, {K::Contract}, &Plan::packB, false, "stage"},
    {"merge", &Plan::merge, {K::Map, K::Rows, K::Columns}, nullptr, false, "", merges},
    {"merge", &Plan::across, {K::Map}, nullptr, false, "", transposes},
    {"vector", &Plan::lanes, {K::Map, K::Rows, K::Columns, K::Contract, K::Programs}, nullptr, false},
    {"nr", &Plan::unroll, {K::Contract}, nullptr, false, "unroll"},
    {"unroll", &Plan::unroll, {K::Map, K::Rows, K::Columns, K::Programs}, nullptr, false},
    {"row-block", &Plan::rowBlock, {K::Contract}, &Plan::rowBlock, false, "block"},
    {"tile", &Plan::mapTile, {K::Map}, &Plan::mapTile, false, "block"},
    {"block", &Plan::columnSteps, {K::Columns}, &Plan::columnSteps, false, "", isOfSteps},
    {"block", &Plan::chainBlocks, {K::Columns}, &Plan::chainBlocks, false, "", takesStepsTogether},
    {"tail", &Plan::tail, {K::Map, K::Columns, K::Contract}, &Plan::tail, false, "line"},
    {"threads", &Plan::threads, {K::Map, K::Rows, K::Columns, K::Contract, K::Programs}, &Plan::threads, true},
    {"warp", &Plan::warp, {K::Rows, K::Programs}, &Plan::warp, true},
    {"width", &Plan::width, {K::Rows}, &Plan::width, true},
    {"cooperative", &Plan::split, {K::Rows, K::Columns}, &Plan::split, true, "spread"},
    {"split-k", &Plan::split, {K::Contract}, &Plan::split, true, "spread"},
    {"mc", &Plan::mc, {K::Contract}, &Plan::mc, false, "tall"},
    {"kc", &Plan::kc, {K::Contract}, &Plan::mc, false, "deep"},
    {"unroll-k", &Plan::unrollK, {K::Columns}, &Plan::unrollK, false, "deep"},
    {"unroll-k", &Plan::unrollK, {K::Contract}, &Plan::unrollK, true},
    {"spill-sums", &Plan::spillSums, {K::Contract}, &Plan::spillSums, true},
    {"pipeline", &Plan::pipeline, {K::Contract}, &Plan::mc, true},
    {"stages", &Plan::stages, {K::Contract}, &Plan::stages, true},
    {"warp-groups", &Plan::warpGroups, {K::Contract}, &Plan::warpGroups, true},
    {"tiles", &Plan::tiles, {K::Contract}, &Plan::tiles, true},
    {"join", &Plan::join, {K::Contract}, &Plan::join, true},
    {"transpose", &Plan::transpose, {K::Map}, &Plan::transpose, true, "turn"},
    {"prefetch", &Plan::prefetch, {K::Map, K::Rows, K::Columns, K::Contract}, &Plan::prefetch, false, "ahead"},
    {"prefetch-panel", &Plan::prefetchPanel, {K::Contract}, &Plan::prefetchPanel, false, "next"},
    {"non-temporal", &Plan::nonTemporal, {K::Map, K::Rows}, &Plan::nonTemporal, false, "past"},
};
/// The numbers of `tail`, by name; numbers are read too.
const llvm::StringLiteral tails[] = {"none", "masked", "overlapped"};

bool has(const Step &s, PlanKind k) { return llvm::is_contained(s.kinds, k); }
std::string text(const Step &s, unsigned n) {
  bool named = s.field == &Plan::tail && n < std::size(tails);
  return (s.name + " " + (named ? llvm::Twine(tails[n]) : llvm::Twine(n))).str();
}
} // namespace

std::string astra::text(const Plan &p, unsigned Plan::*field) {
  auto of = [&](bool any) {
    return llvm::find_if(steps, [&](const Step &s) { return s.field == field && (any || has(s, p.kind)); });
  };
  const Step *own = of(false);
  return ::text(own != std::end(steps) ? *own : *of(true), p.*field);
}

std::string astra::text(const Plan &p) {
  std::string s = std::string(kinds[int(p.kind)]) + ":", separator = " ";
  auto add = [&](const std::string &step) { s += separator + step, separator = "; "; };
  if (p.kind == PlanKind::Contract) {
    std::string m = "m";
    for (int64_t l : p.mLabels) m += " " + std::to_string(l);
    if (p.nLabel >= 0) add("n " + std::to_string(p.nLabel));
    add(m);
  }
  if (!p.points.empty()) {
    std::string points = "points";
    for (int64_t d : p.points) points += " " + std::to_string(d);
    add(points);
  }
  for (const Step &step : steps)
    if (has(step, p.kind) && (!step.of || step.of(p)) && (!step.unlessZero || p.*step.unlessZero) &&
        (!step.ofGpu || p.threads))
      add(::text(step, p.*step.field));
  return s;
}

static constexpr uint64_t mostTileBytes = 16ull << 20; // of rows that pass between a kernel and its followers

uint64_t astra::passedBytes(const KernelSpec &spec) {
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
  if (k == std::end(kinds)) return bad(kind, "map, rows, columns, contract or programs, and a colon");
  p.kind = PlanKind(k - std::begin(kinds));
  bool contract = p.kind == PlanKind::Contract;
  SmallVector<llvm::StringRef> list, seen;
  SmallVector<std::pair<const Step *, unsigned>> numbered;
  rest.split(list, ';', -1, false);
  for (llvm::StringRef step : list) {
    SmallVector<llvm::StringRef> words;
    step.trim().split(words, ' ', -1, false);
    if (words.empty()) continue;
    bool isM = contract && words[0] == "m", isN = contract && words[0] == "n",
         isPoints = p.kind == PlanKind::Map && words[0] == "points";
    auto row = llvm::find_if(
        steps, [&](const Step &s) { return has(s, p.kind) && (s.name == words[0] || s.formerly == words[0]); });
    if (row == std::end(steps) && !isM && !isN && !isPoints) {
      SmallVector<llvm::StringRef> names;
      if (contract) names = {"n", "m"};
      if (p.kind == PlanKind::Map) names = {"points"};
      for (const Step &s : steps)
        if (has(s, p.kind) && !llvm::is_contained(names, s.name)) names.push_back(s.name);
      return bad(step, llvm::join(llvm::ArrayRef(names).drop_back(), ", ") + " or " + names.back());
    }
    llvm::StringRef name = isM || isN || isPoints ? words[0] : llvm::StringRef(row->name);
    if (llvm::is_contained(seen, name)) return bad(step, "each step once");
    seen.push_back(name);
    SmallVector<int64_t> numbers;
    for (llvm::StringRef w : llvm::drop_begin(words)) {
      int64_t v;
      if (auto tail = llvm::find(tails, w); name == "tail" && tail != std::end(tails))
        v = tail - std::begin(tails);
      else if (w.getAsInteger(10, v) || v < 0 || v > mostNumber)
        return bad(w, "a number in 0.." + llvm::Twine(mostNumber) + (name == "tail" ? ", masked or overlapped" : ""));
      numbers.push_back(v);
    }
    if (isM || isPoints) {
      (isM ? p.mLabels : p.points).assign(numbers.begin(), numbers.end());
      continue;
    }
    if (numbers.size() != 1) return bad(step, "one number after " + name);
    if (isN)
      p.nLabel = numbers[0];
    else
      numbered.push_back({row, unsigned(numbers[0])});
  }
  for (bool several : {false, true}) // words of several fields once all others are known
    for (auto [row, number] : numbered)
      if (bool(row->of) == several)
        p.*llvm::find_if(steps, [&](const Step &s) {
             return s.name == row->name && has(s, p.kind) && (!s.of || s.of(p));
           })->field = number;
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
    if (step.ofGpu && has(step, p.kind) && p.*step.field != Plan().*step.field)
      return refusePlan(spec, p, text(p, step.field) + " is of GPUs; this is a CPU's");
  if (auto e = checkForm(spec, p)) return e;
  bool sums = spec.rootOp && spec.rootOp->op == Op::Contract;
  if (spec.follows && p.kind != (sums ? PlanKind::Contract : PlanKind::Rows))
    return refusePlan(spec, p,
                      llvm::Twine("the kernel follows another one of a fused chain, rows at a time; expected ") +
                          (sums ? "contract" : "rows"));
  if (spec.followers.empty()) return llvm::Error::success();
  if (p.kind != PlanKind::Contract || !p.rowBlock)
    return refusePlan(spec, p, "a kernel of a fused chain; expected a contract with a row-block");
  if (p.rowBlock * passedBytes(spec) > mostTileBytes)
    return refusePlan(spec, p, text(p, &Plan::rowBlock) + "; these rows take more than 16 MiB");
  return llvm::Error::success();
}

namespace {
/// The rules of a plan's form, each by itself. A rule gives what is wrong; nothing where the plan keeps it.
class FormRules {
public:
  FormRules(const KernelSpec &spec, const Plan &p)
      : spec(spec), p(p), rootOp(spec.rootOp), value(spec.outputs[0].value), sums(rootOp && rootOp->op == Op::Contract),
        reduces(rootOp && rootOp->op == Op::Reduce),
        anyLabel(p.kind == PlanKind::Contract && sums && p.mc && p.threads && spec.vectorIndex < 0),
        contracts(sums && p.kind == PlanKind::Contract && !p.threads),
        spills(p.kind == PlanKind::Columns && reduces && p.unrollK) {
    if (p.kind == PlanKind::Contract && sums) s = *spec.contract;
  }
  std::string kind() const;
  std::string sizes() const;
  std::string spilledLanes() const;
  std::string blocks() const;
  std::string tail() const;
  std::string hints() const;
  std::string stepsTogether() const;
  std::string mergedDims() const;
  std::string points() const;
  std::string labels() const;
  std::string panels() const;
  std::string spilledSums() const;
  std::string packing() const;

private:
  const KernelSpec &spec;
  const Plan &p;
  UOpRef rootOp, value;
  bool sums, reduces; // what the root op is
  bool anyLabel;  // a tile that the threads of a GPU share: operands are transposed on their way, so n may be any label
  bool contracts; // by register tiles of a CPU
  bool spills;    // the lanes of a sum of columns
  ContractSpec s; // of a plan for a contract

  /// What a tile holds at once; the plan's sizes are in bounds.
  int64_t tileBytes() const {
    return int64_t(p.mr) * p.unroll * p.lanes * std::max(1u, byteSize((sums ? rootOp : value)->dtype));
  }
  static std::string n(int64_t v) { return std::to_string(v); }
  std::string step(unsigned Plan::*field) const { return text(p, field); }
};
} // namespace

std::string FormRules::kind() const {
  if ((p.kind == PlanKind::Programs) != !spec.grid.empty())
    return spec.grid.empty() ? "programs is for a kernel that a user wrote"
                             : "the kernel is a user's; expected programs";
  if (p.kind == PlanKind::Contract && !anyLabel && (!sums || spec.vectorIndex < 0))
    return "the kernel has no contract along whose labels lanes can run; expected map, rows or columns";
  if (p.kind == PlanKind::Rows && !reduces) return "rows is for a kernel with a reduce; this one has none";
  if (p.kind == PlanKind::Columns && !reduces && !sums)
    return "columns is for a kernel with a reduce or a contract; this one has none";
  return "";
}

std::string FormRules::sizes() const {
  if (!llvm::isPowerOf2_32(p.lanes) || p.lanes > mostLanes)
    return step(&Plan::lanes) + "; expected a power of two in 1.." + n(mostLanes);
  if (!p.unroll || p.unroll > 64) return step(&Plan::unroll) + "; expected 1..64";
  if (!p.mr || p.mr > 64) return step(&Plan::mr) + "; expected 1..64";
  // The kernel ABI leaves 16 KiB of stack; a tile beyond the registers lies there.
  if (tileBytes() > 8192)
    return "the sums of a register tile are " + n(tileBytes()) + " bytes; at most 8192 are held at once";
  return "";
}

std::string FormRules::spilledLanes() const {
  if (!spills) return "";
  ReduceSpec r = llvm::cantFail(decodeReduce(rootOp->ints));
  if (p.threads || p.unrollK != sumLanes || r.order != ReduceOrder::Lane64)
    return step(&Plan::unrollK) + "; of columns of a reduction, on a CPU, expected 64, and the order lane64";
  uint64_t chunks = llvm::divideCeil(std::max<int64_t>(rootOp->src[0]->shape[r.axes[0]]->hi, 1), laneChunk);
  uint64_t each = uint64_t(std::max(p.columnSteps, 1u)) * p.unroll * p.lanes * std::max(1u, byteSize(rootOp->dtype));
  if (llvm::SaturatingMultiply(chunks + 64, each) > mostTileBytes) return "the sums of an item take more than 16 MiB";
  return "";
}

std::string FormRules::blocks() const {
  if (p.kind == PlanKind::Columns && p.columnSteps && (!reduces || p.threads))
    return step(&Plan::columnSteps) + "; of columns of a contract, expected an unroll-k in 1.." + n(mostUnrollK);
  if (p.kind == PlanKind::Columns && p.chainBlocks) {
    if (!sums || p.threads || !blocksOf(rootOp))
      return step(&Plan::chainBlocks) +
             "; of columns, only of a contract of floats over one label of 512 to 2^30, by which alone operands are " +
             "indexed, on a CPU";
    if (p.lanes * p.unroll != 1 || !p.unrollK || p.tail)
      return step(&Plan::chainBlocks) + "; of columns, expected vector 1, unroll 1, an unroll-k and no tail";
    if (!llvm::isPowerOf2_32(p.chainBlocks) || p.chainBlocks < 2 || p.chainBlocks > mostLanes)
      return step(&Plan::chainBlocks) + "; of columns, expected a power of two in 2.." + n(mostLanes);
  }
  constexpr const char *taken = "; only a map that writes its whole output and a contract are taken in blocks";
  bool shares = sums && p.threads && p.mc;
  if (p.kind == PlanKind::Contract && p.rowBlock && !contracts && !shares) return step(&Plan::rowBlock) + taken;
  if (p.kind == PlanKind::Map && p.mapTile && (storedPoints(spec) != value || serialAxis(spec) >= 0))
    return step(&Plan::mapTile) + taken;
  return "";
}

std::string FormRules::tail() const {
  if (p.tail > tailOverlapped) return step(&Plan::tail) + "; expected masked or overlapped";
  bool hasTails = p.kind == PlanKind::Map ? !p.mapTile && !p.transpose
                                          : p.kind == PlanKind::Columns && !p.columnSteps && !p.chainBlocks;
  if (contracts && p.tail && (p.tail == tailMasked || p.packB || p.mc || !movesLastVector(spec)))
    return step(&Plan::tail) + "; of a contract, expected overlapped, of columns that are neither packed nor copied, " +
           "sums that are not spilled, and not in place";
  if (p.tail && !contracts && (!hasTails || p.split || storedPoints(spec) != value || serialAxis(spec) >= 0))
    return step(&Plan::tail) + "; only a kernel that writes its whole output row by row has one";
  if (p.tail == tailOverlapped && spec.inPlace && !contracts)
    return step(&Plan::tail) + " in place; what is written twice would be read changed";
  return "";
}

std::string FormRules::hints() const {
  if (p.nonTemporal > 1) return step(&Plan::nonTemporal) + "; expected 0 or 1";
  if (p.nonTemporal && spec.follows)
    return step(&Plan::nonTemporal) + " of rows that a fused chain passes on; its next kernel reads them at once";
  if (p.prefetchPanel > 1) return step(&Plan::prefetchPanel) + "; expected 0 or 1";
  return "";
}

std::string FormRules::stepsTogether() const {
  if (p.kind == PlanKind::Columns && p.unrollK && !spills &&
      (!sums || p.threads || !llvm::isPowerOf2_32(p.unrollK) || p.unrollK > mostUnrollK))
    return step(&Plan::unrollK) + "; of columns of a contract, on a CPU, expected a power of two in 1.." +
           n(mostUnrollK);
  return "";
}

std::string FormRules::mergedDims() const {
  if (p.kind == PlanKind::Programs) return "";
  unsigned rank = spec.outputs[0].layout.dims.size(), least = rank ? 1 : 0;
  if (p.transpose && p.kind == PlanKind::Map) return ""; // has none of its own
  if (p.merge < least || p.merge > rank)
    return step(&Plan::merge) + "; the output has " + n(rank) + " dims in memory, expected " + n(least) + ".." +
           n(rank);
  return "";
}

std::string FormRules::points() const {
  if (p.points.empty()) return "";
  if (!p.mapTile || p.kind != PlanKind::Map || p.transpose) return "points; only a map with a tile has them, on a CPU";
  int64_t outside = spec.outputs[0].layout.dims.size() - p.merge;
  for (auto [i, d] : llvm::enumerate(p.points)) {
    if (d < 0 || d >= outside)
      return "points: " + n(d) + " is no memory dim outside of the merged ones; they are 0.." + n(outside - 1);
    if (llvm::is_contained(llvm::ArrayRef(p.points).take_front(i), d)) return "points: " + n(d) + " comes twice";
  }
  return "";
}

std::string FormRules::labels() const {
  if (anyLabel && p.nLabel >= s.kept) return "n " + n(p.nLabel) + " is no kept label; they are 0.." + n(s.kept - 1);
  if (!anyLabel && p.nLabel != spec.vectorIndex)
    return (p.nLabel < 0 ? "no n" : "n " + n(p.nLabel)) + "; the layouts let lanes run along label " +
           n(spec.vectorIndex) + " alone";
  for (auto [i, l] : llvm::enumerate(p.mLabels)) {
    if (l < 0 || l >= s.kept) return "m " + n(l) + " is no kept label; they are 0.." + n(s.kept - 1) + ", n among them";
    if (l == p.nLabel) return "label " + n(l) + " is n and one of m; expected another";
    if (llvm::is_contained(llvm::ArrayRef(p.mLabels).take_front(i), l)) return "m has label " + n(l) + " twice";
  }
  return "";
}

std::string FormRules::panels() const {
  for (const Placed &x : spec.inputs)
    if (!x.layout.isPermuted() && x.layout.dims.back().modulus && x.layout.dims.back().modulus % p.lanes)
      return step(&Plan::lanes) + "; an operand is packed in panels of " + n(x.layout.dims.back().modulus) +
             ", which expects a divisor of that";
  return "";
}

std::string FormRules::spilledSums() const {
  if (!p.threads && !p.mc != !p.kc) return step(&Plan::mc) + " and " + step(&Plan::kc) + "; expected both or neither";
  if (p.mc && !p.threads && !s.outside.empty())
    return step(&Plan::mc) + "; sums without the taps that are in the padding are not spilled";
  if (p.mc && !p.threads && p.kc < 2) return step(&Plan::kc) + "; sums are spilled after two steps or more";
  if (p.mc && p.packB) return step(&Plan::packB) + " and " + step(&Plan::mc) + "; expected one of them";
  if (!p.mc || p.threads) return "";
  int64_t spilled = p.mc * tileBytes();
  for (int64_t l : innerLabels(s, p.nLabel))
    spilled = llvm::SaturatingMultiply<uint64_t>(spilled, std::max<int64_t>(rootOp->shape[l]->hi, 1));
  if (uint64_t(spilled) > uint64_t(1) << 24) return step(&Plan::mc) + "; the sums of an item take more than 16 MiB";
  return "";
}

std::string FormRules::packing() const {
  if (!p.packB) return "";
  if (p.lanes == 1) return step(&Plan::packB) + " with vector 1; columns are copied in vectors, expected 2..64";
  bool laneInB = llvm::any_of(
      s.b, [&](const AffineForm &f) { return llvm::any_of(f.terms, [&](auto t) { return t.first == p.nLabel; }); });
  std::string why = unpackable(spec, s, laneInB, p);
  return why.empty() ? why : step(&Plan::packB) + " is not possible: " + why;
}

llvm::Error astra::checkForm(const KernelSpec &spec, const Plan &p) {
  using Rule = std::string (FormRules::*)() const;
  static constexpr Rule ofAll[] = {&FormRules::kind, &FormRules::sizes, &FormRules::spilledLanes, &FormRules::blocks,
                                   &FormRules::tail, &FormRules::hints, &FormRules::stepsTogether};
  static constexpr Rule ofContracts[] = {&FormRules::labels, &FormRules::panels, &FormRules::spilledSums,
                                         &FormRules::packing};
  static constexpr Rule ofOthers[] = {&FormRules::mergedDims, &FormRules::points};
  FormRules rules(spec, p);
  for (llvm::ArrayRef<Rule> list :
       {llvm::ArrayRef<Rule>(ofAll),
        p.kind == PlanKind::Contract ? llvm::ArrayRef<Rule>(ofContracts) : llvm::ArrayRef<Rule>(ofOthers)})
    for (Rule rule : list)
      if (std::string why = (rules.*rule)(); !why.empty()) return refusePlan(spec, p, why);
  return llvm::Error::success();
}
