//===- Search.cpp: better plans, found by measuring ------------------------===//
// Takes:    see Search.h.
// Gives:    for each kernel the end of a walk from plan to neighbouring plan, a step where one is clearly faster.
// Keeps:    time goes to kernels in proportion to their share of the whole: the next round is that of the kernel that
//           has had the least time for its share. Plans are timed by turns, so that what else the machine does falls on
//           all of them.
#include "astra/Search/Search.h"
#include "Bench.h"
#include "astra/Codegen/Candidates.h"
#include "astra/Codegen/Compile.h"
#include "astra/Codegen/Lower.h"
#include "astra/Search/Occasions.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include <chrono>

using namespace astra;
using llvm::Error;
using llvm::Expected;

namespace {

constexpr uint64_t mostBytes = uint64_t(1) << 30; // of one kernel's buffers
constexpr double leastShare = 1e-3;               // of a kernel that is searched, of the whole
constexpr double gain = 0.97;                     // a plan is taken that needs less than this part of the time
constexpr double hopeless = 1.3;                  // a plan that begins so much slower is not timed again
constexpr double patience = 4;                    // and one that takes so many times as long is not run to its end
constexpr unsigned plansPerRound = 8;             // and compiler
constexpr double nodesPerSecond = 1000;           // of lowered kernels, that a compiler takes at least
constexpr double confirming = 1;                  // seconds that are kept for the last look at a kernel
constexpr double launchesPerRound = 50;           // at least: a kernel that takes longer has no round

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> xs) {
  llvm::sort(xs);
  return xs[xs.size() / 2];
}

/// A kernel that is searched.
struct Subject {
  uint32_t kernel;   // the first that has the hash
  uint64_t launches; // of all that have it
  std::string hash;
  Plan heuristic, first, best; // first: where the walk began
  double before, after;        // seconds of a launch under the first plan and under the best
  double spent = 0;            // seconds of search
  size_t mostNodes = 0;
  int64_t leastItems = 0;
  bool done = false; // no neighbour is left
  llvm::StringSet<> tried;
  llvm::DenseSet<std::pair<UOpRef, uint64_t>> lowered; // different plans may be one kernel
};

class Search {
public:
  Search(const Module &m, const Schedule &s, const Target &target, const SearchOptions &options)
      : c(*m.context), s(s), target(target), options(options), occasions(findOccasions(m, s)) {}
  Error run(Tuning &tuning, SearchReport &report);

private:
  Context &c;
  const Schedule &s;
  const Target &target;
  const SearchOptions &options;
  std::vector<Occasion> occasions;
  std::vector<Subject> subjects;
  unsigned plans = 0;
  Clock::time_point start;

  bool isOver() const {
    auto better = llvm::count_if(subjects, [](const Subject &x) { return text(x.best) != text(x.first); });
    return since(start) + confirming * better >= options.seconds;
  }
  double share(const Subject &x) const { return double(x.launches) * x.after; }
  std::optional<int64_t> items(uint32_t kernel, UOpRef count) const;
  Error begin(const Tuning &tuning, SearchReport &report);
  std::vector<Plan> untried(Subject &x);
  struct Trial;
  Expected<Trial> tryOut(const Subject &x, llvm::ArrayRef<Plan> entrants);
  Error round(Subject &x);
  Error confirm(Subject &x);
  Expected<CompiledTarget> compile(const KernelSpec &spec, llvm::ArrayRef<Plan> plans);
};

std::optional<int64_t> Search::items(uint32_t kernel, UOpRef count) const {
  return idxEvaluate(count, [&](UOpRef d) -> std::optional<int64_t> {
    auto it = llvm::find(s.dims, d);
    if (it == s.dims.end()) return std::nullopt;
    return occasions[kernel].dims[it - s.dims.begin()];
  });
}

/// All kernels under the plans that there are, timed once, and which of them are worth a search.
Error Search::begin(const Tuning &tuning, SearchReport &report) {
  CompileOptions co;
  co.jobs = options.jobs, co.cache = options.cache;
  Expected<Plans> tuned = tunedPlans(s.kernels, target.name, tuning, checkPlan);
  if (!tuned) return tuned.takeError();
  co.plans = *tuned;
  Expected<CompiledTarget> code = compileKernels(c, s, target, co);
  if (!code) return code.takeError();
  Expected<LoadedCode> loaded = LoadedCode::load(code->image);
  if (!loaded) return loaded.takeError();
  start = Clock::now();
  llvm::StringMap<size_t> known; // subjects by hash
  for (auto [i, k] : llvm::enumerate(code->kernels)) {
    report.kernels += occasions[i].launches > 0;
    if (!occasions[i].launches) continue;
    const KernelSpec &spec = s.kernels[i];
    auto n = items(i, k.items);
    auto bench = Bench::make(spec, k.kernel, s.dims, occasions[i].dims, mostBytes);
    if (!n || !bench) {
      ++report.skipped;
      continue;
    }
    Runnable r{loaded->at(k.offset), *n, k.scratch};
    bench->tryOut(r, patience);
    double seconds = median({bench->time(r), bench->time(r), bench->time(r)});
    report.before += occasions[i].launches * seconds;
    if (*n == 0) continue;
    Subject x;
    x.hash = contentHash(spec);
    auto [at, fresh] = known.try_emplace(x.hash, subjects.size());
    if (!fresh) {
      subjects[at->second].launches += occasions[i].launches;
      continue;
    }
    x.kernel = i, x.launches = occasions[i].launches, x.heuristic = choosePlan(c, spec, target);
    x.first = x.best = k.kernel.plan;
    x.before = x.after = seconds;
    x.mostNodes = topoSort(k.kernel.sink).size() + 2000;
    x.leastItems = std::min<int64_t>(*n, target.cores);
    x.tried.insert(text(x.best));
    x.lowered.insert(identity(lowerKernel(c, spec, x.best)));
    subjects.push_back(std::move(x));
  }
  report.after = report.before;
  for (Subject &x : subjects)
    x.done = share(x) < leastShare * report.before || x.before * launchesPerRound > options.seconds;
  return Error::success();
}

/// Plans that were not tried yet: the heuristic's, neighbours of the best, and when these are done theirs. As many as
/// compile in the time that is left, or in a second.
std::vector<Plan> Search::untried(Subject &x) {
  const KernelSpec &spec = s.kernels[x.kernel];
  std::vector<Plan> out;
  size_t nodes = 0, most = nodesPerSecond * options.jobs * std::max(options.seconds - since(start), 1.0);
  auto isFull = [&] { return out.size() == plansPerRound * options.jobs || nodes >= most; };
  auto consider = [&](const Plan &p) {
    if (isFull() || !x.tried.insert(text(p)).second) return;
    Kernel k = lowerKernel(c, spec, p);
    if (!x.lowered.insert(identity(k)).second) return;
    k = expandKernel(c, k);
    auto n = items(x.kernel, itemCount(c, k.sink));
    size_t size = topoSort(k.sink).size();
    if (!n || *n < x.leastItems || size > x.mostNodes) return;
    out.push_back(p);
    nodes += size;
  };
  consider(x.heuristic);
  std::vector<Plan> near = candidates(spec, x.best, target, CandidatesFor::Measuring);
  for (const Plan &p : near) consider(p);
  for (size_t i = 0; i < near.size() && !isFull() && !isOver(); ++i)
    for (const Plan &p : candidates(spec, near[i], target, CandidatesFor::Measuring)) consider(p);
  return out;
}

/// One kernel under several plans.
Expected<CompiledTarget> Search::compile(const KernelSpec &spec, llvm::ArrayRef<Plan> plans) {
  Schedule part;
  part.dims = s.dims, part.moduleDims = s.moduleDims;
  CompileOptions co;
  co.jobs = options.jobs, co.cache = options.cache;
  for (auto [i, p] : llvm::enumerate(plans)) {
    part.kernels.push_back(spec);
    part.kernels.back().name = "plan" + std::to_string(i);
    co.plans[part.kernels.back().name] = p;
  }
  return compileKernels(c, part, target, co);
}

/// How much of the time of `a` `b` takes: the median of pairs, in either order.
double ratio(Bench &bench, const Runnable &a, const Runnable &b) {
  constexpr unsigned pairs = 16, leastPairs = 6;
  constexpr double enough = 2; // seconds
  std::vector<double> ratios;
  auto began = Clock::now();
  while (ratios.size() < pairs && (ratios.size() < leastPairs || since(began) < enough)) {
    bool turned = ratios.size() % 2;
    double first = bench.time(turned ? b : a), second = bench.time(turned ? a : b);
    ratios.push_back(turned ? first / std::max(second, 1e-12) : second / std::max(first, 1e-12));
  }
  return median(ratios);
}

/// Plans of one kernel that gave the same bits, ready to be timed.
struct Search::Trial {
  std::optional<LoadedCode> code;
  std::unique_ptr<Bench> bench;
  std::vector<std::pair<size_t, Runnable>> runs; // number of the plan; those that were not given up
};

/// Compiles the plans and runs each once. The first is the one that others must agree with.
Expected<Search::Trial> Search::tryOut(const Subject &x, llvm::ArrayRef<Plan> entrants) {
  const KernelSpec &spec = s.kernels[x.kernel];
  Expected<CompiledTarget> code = compile(spec, entrants);
  if (!code) return code.takeError();
  Expected<LoadedCode> loaded = LoadedCode::load(code->image);
  if (!loaded) return loaded.takeError();
  Trial t;
  t.code.emplace(std::move(*loaded));
  t.bench = Bench::make(spec, code->kernels[0].kernel, s.dims, occasions[x.kernel].dims, mostBytes);
  if (!t.bench) return llvm::createStringError("no memory for the buffers of kernel '" + spec.name + "'");
  for (auto [i, k] : llvm::enumerate(code->kernels)) {
    Runnable r{t.code->at(k.offset), *items(x.kernel, k.items), k.scratch};
    Bench::Verdict verdict = t.bench->tryOut(r, patience);
    if (verdict == Bench::Verdict::Different)
      return llvm::createStringError("internal error: kernel '" + spec.name + "' on " + target.name +
                                     " gives other bits under plan '" + text(entrants[i]) + "' than under '" +
                                     text(entrants[0]) + "'");
    if (verdict == Bench::Verdict::Same) t.runs.emplace_back(i, r);
  }
  return std::move(t);
}

/// The best plan beside some others that are near.
Error Search::round(Subject &x) {
  std::vector<Plan> entrants = untried(x);
  if (entrants.empty()) {
    x.done = true;
    return Error::success();
  }
  plans += entrants.size();
  entrants.insert(entrants.begin(), x.best);
  Expected<Trial> t = tryOut(x, entrants);
  if (!t) return t.takeError();
  constexpr unsigned turns = 7, leastTurns = 3;
  constexpr double enough = 1.5; // seconds
  std::vector<std::vector<double>> times;
  for (auto &[plan, r] : t->runs) times.push_back({std::min(t->bench->time(r), t->bench->time(r))});
  auto began = Clock::now();
  for (unsigned turn = 0; turn < turns && (turn < leastTurns || since(began) < enough); ++turn)
    for (auto [run, ts] : llvm::zip_equal(t->runs, times))
      if (ts[0] < hopeless * times[0][0]) ts.push_back(t->bench->time(run.second));
  size_t best = 0;
  double least = median(times[0]) * gain;
  for (size_t i = 1; i < times.size(); ++i)
    if (times[i].size() > 1 && median(times[i]) < least) best = i, least = median(times[i]);
  if (best && ratio(*t->bench, t->runs[0].second, t->runs[best].second) < gain) x.best = entrants[t->runs[best].first];
  return Error::success();
}

/// The end of the walk beside its beginning: steps that were luck lead nowhere.
Error Search::confirm(Subject &x) {
  if (text(x.best) == text(x.first)) return Error::success();
  Expected<Trial> t = tryOut(x, {x.first, x.best});
  if (!t) return t.takeError();
  double part = t->runs.size() == 2 ? ratio(*t->bench, t->runs[0].second, t->runs[1].second) : 1;
  if (part < gain)
    x.after = x.before * part;
  else
    x.best = x.first;
  return Error::success();
}

Error Search::run(Tuning &tuning, SearchReport &report) {
  if (Error e = begin(tuning, report)) return e;
  constexpr double head = 0.3;  // seconds that all have had at the beginning, so that shares decide who begins
  while (!plans || !isOver()) { // one round in any case
    Subject *next = nullptr;
    for (Subject &x : subjects)
      if (!x.done && (!next || share(x) * (next->spent + head) > share(*next) * (x.spent + head))) next = &x;
    if (!next) break;
    if (options.progress)
      options.progress("search " + std::string(target.name) + ", " + std::to_string(int(since(start))) + " of " +
                       std::to_string(int(options.seconds)) + " s, " + std::to_string(plans) + " plans, " +
                       s.kernels[next->kernel].name);
    auto began = Clock::now();
    if (Error e = round(*next)) return e;
    next->spent += since(began);
  }
  report.plans = plans;
  for (Subject &x : subjects)
    if (Error e = confirm(x)) return e;
  for (const Subject &x : subjects) {
    std::pair<std::string, std::string> key{x.hash, target.name};
    if (text(x.best) == text(x.heuristic))
      tuning.erase(key);
    else
      tuning[key] = {x.best, ""};
    if (x.after >= x.before) continue;
    report.after -= double(x.launches) * (x.before - x.after);
    report.faster.push_back({s.kernels[x.kernel].name, text(x.best), x.before, x.after});
  }
  return Error::success();
}

} // namespace

Expected<SearchReport> astra::searchPlans(const Module &m, const Schedule &schedule, const Target &target,
                                          const SearchOptions &options, Tuning &tuning) {
  SearchReport report;
  if (Error e = Search(m, schedule, target, options).run(tuning, report)) return std::move(e);
  return report;
}
