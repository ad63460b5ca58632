//===- SearchStage.cpp: plans found by measuring ----------------------------===//
// Takes:    a schedule, the targets of the options.
// Gives:    a tuning with what was found for those that this machine runs, to keepTuning and the stages that follow.
#include "Run.h"
#include "astra/Search/Search.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace astra;
using namespace llvm;

Error astra::searchFor(Run &run, const Module &m, const Schedule &s) {
  const PipelineOptions &o = run.o;
  std::vector<const Target *> here;
  copy_if(o.targets, std::back_inserter(here), [](const Target *t) { return hostRuns(*t); });
  if (here.empty()) return createStringError("--search: this machine runs none of the targets");
  for (const Target *t : o.targets)
    if (!is_contained(here, t))
      run.note("--search: " + Twine(t->name) + " is not searched: this machine does not run it");
  for (const auto &[gpu, host] : o.gpus)
    run.note("--search: " + Twine(gpu->name) + " is not searched: a search is for CPUs");
  auto keep = [&] { return o.keepTuning ? o.keepTuning(text(run.given.tuning)) : Error::success(); };
  if (Error e = keep()) return e; // before the time is spent
  for (const Target *t : here) {
    std::string stage = std::string("search ") + t->name;
    run.begin(stage);
    SearchOptions options{o.searchSeconds / here.size(), o.jobs, o.cache,
                          [&](const std::string &what) { run.progress(what); }};
    Expected<SearchReport> r = searchPlans(m, s, *t, options, run.given.tuning);
    if (!r) return r.takeError();
    if (Error e = run.end(stage)) return e;
    for (const FasterKernel &k : r->faster) {
      std::string line;
      raw_string_ostream(line) << format("search %s %s: %.4f ms, %.4f before: %s", t->name, k.name.c_str(),
                                         k.after * 1e3, k.before * 1e3, k.plan.c_str());
      run.detail(line);
    }
    std::string skipped = r->skipped ? ", " + std::to_string(r->skipped) + " could not be timed" : "";
    std::string times;
    raw_string_ostream(times) << format("; their launches together take %.4g ms, %.4g before", r->after * 1e3,
                                        r->before * 1e3);
    run.note("--search: " + Twine(t->name) + ": " + Twine(r->plans) + " plans tried, " + Twine(r->faster.size()) +
             " of " + Twine(r->kernels) + " kernels are faster" + skipped + times);
  }
  return keep();
}
