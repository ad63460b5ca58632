//===- Main.cpp: astra-opt: runs passes over .uop text ----------------------===//
// Takes:    a module as text.
// Gives:    the module after the passes asked for, as text, or the values of an entry.
// Exit:     0 ok, 1 failure, 2 usage.
#include "EvalMode.h"
#include "KernelMode.h"
#include "Options.h"
#include "OutputFile.h"
#include "OwnKernels.h"
#include "StandardOutput.h"
#include "astra/Compose/TextWords.h"
#include "astra/IR/Text.h"
#include "astra/Pipeline/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include <chrono>

using namespace astra;

namespace {
struct Settings {
  std::string output = "-", startAt, stopAfter;
  std::vector<std::string> passes, printAfter, own;
  bool standard = false, verifyEach = false, timePasses = false, traceRules = false, noData = false, noTypes = false,
       listPasses = false, paths = false, eval = false, roundTrip = false;
  int64_t ruleLimit = -1;
  bool kernel = false;
  std::string kernels, target = "cpu:x86-64-v3", emit = "listing", crashRepro;
  EvalRequest request;
};

tool::Program describeProgram(Settings &s) {
  using namespace tool;
  Program p;
  p.name = "astra-opt";
  p.synopsis = "[FILE.uop] [options]";
  p.summary = "run passes over .uop text, or evaluate it";
  p.description = "Without FILE, or with -, the text comes from standard input.";
  p.options = {
      {"o", "FILE", "writes the text to FILE instead of standard output", text(s.output)},
      {"passes", "A,B,...", "runs these passes, in this order", commas(s.passes)},
      {"standard", "", "runs the standard passes", flag(s.standard)},
      {"start-at", "PASS", "runs the standard passes from PASS on", text(s.startAt)},
      {"stop-after", "PASS", "runs the standard passes up to PASS", text(s.stopAfter)},
      {"list-passes", "", "prints the names of all passes and what they do", flag(s.listPasses)},
      {"print-after", "PASS|change", "prints the module to standard error after PASS, or after each change",
       commas(s.printAfter)},
      {"verify-each", "", "verifies after every pass (text that is read always is)", flag(s.verifyEach)},
      {"round-trip", "", "prints the module and parses it again before and after the passes", flag(s.roundTrip)},
      {"time-passes", "", "prints the time of each pass to standard error", flag(s.timePasses)},
      {"rule-limit", "N", "applies at most N rewrite rules", number(s.ruleLimit, 0, INT64_MAX)},
      {"trace-rules", "", "prints each rule applied to standard error", flag(s.traceRules)},
      {"no-data", "", "prints no bytes of parameters and states", flag(s.noData)},
      {"no-types", "", "prints no types that can be inferred", flag(s.noTypes)},
      {"paths", "",
       "prints in which order each einsum of three operands or more is contracted, and its cost, to standard error",
       flag(s.paths)},
      {"crash-repro", "FILE", "keeps the module and the passes left in FILE while they run, and after a failure",
       text(s.crashRepro)},
      ownKernels("own-kernels", s.own),
      {"kernels", "TARGET", "schedules after the passes and prints every kernel, lowered for TARGET", text(s.kernels)},
      {"kernel", "", "reads the listing of one kernel; its passes are rewrite and expand", flag(s.kernel)},
      {"emit", "FORM", "what --kernel prints: listing, linear or c (after expand)", text(s.emit)},
      {"target", "TARGET", "of --emit=c; cpu:x86-64-v3 if not given", text(s.target)},
      {"eval", "", "evaluates an entry after the passes and prints its results", flag(s.eval)},
      {"entry", "NAME", "the entry to evaluate", text(s.request.entry)},
      {"input", "NAME=VALUE", "an input: a .npy file, or literals: x=1,2,3 or x=[2,1]:1.5,inf", list(s.request.inputs)},
      {"state", "NAME=VALUE", "the value of a state when the entry begins", list(s.request.states)},
      {"param", "NAME=VALUE", "a parameter instead of the module's data", list(s.request.params)},
      {"dim", "NAME=N", "a dim that no input's shape binds", list(s.request.dims)},
      {"output", "NAME=FILE", "writes an output, or a state as @NAME, to a .npy file instead of printing it",
       list(s.request.outputs)},
  };
  std::vector<std::string> names, targets;
  for (const Pass &pass : passes()) names.push_back(pass.name);
  for (const Target &t : allTargets()) targets.push_back(t.name);
  for (const char *option : {"passes", "start-at", "stop-after"}) offer(p, option, names);
  for (const char *option : {"kernels", "target"}) offer(p, option, targets);
  offer(p, "emit", {"listing", "linear", "c"});
  names.push_back("change");
  offer(p, "print-after", names);
  p.operands = {".uop"};
  p.examples = "  astra-opt model.uop --standard --verify-each\n"
               "  astra-opt model.uop --passes=numerics --eval --input x=x.npy\n";
  return p;
}
} // namespace
static Settings o;

static int failure(llvm::StringRef sentence, int code = tool::Failure) {
  if (!sentence.contains(": error: ")) llvm::errs() << "astra-opt: error: "; // else it carries its place
  llvm::errs() << sentence << '\n';
  return code;
}

/// The passes to run, or nothing after a usage error.
static std::optional<std::vector<const Pass *>> pipeline() {
  std::vector<const Pass *> list;
  std::vector<std::string> names = o.passes;
  auto find = [](llvm::StringRef name) {
    const Pass *p = passNamed(name);
    if (!p) failure("no pass is called " + name.str() + " (--list-passes)", 2);
    return p;
  };
  if (o.roundTrip) names.insert(names.begin(), "round-trip");
  for (const std::string &name : names) {
    const Pass *p = find(name);
    if (!p) return std::nullopt;
    list.push_back(p);
  }
  auto done = [&] {
    if (o.roundTrip) list.push_back(find("round-trip"));
    return list;
  };
  if (!o.standard && o.startAt.empty() && o.stopAfter.empty()) return done();
  bool running = o.startAt.empty();
  for (const std::string &name : {o.startAt, o.stopAfter})
    if (!name.empty() && !find(name)) return std::nullopt;
  for (const Pass &p : passes()) {
    running |= o.startAt == p.name;
    if (running && p.standard) list.push_back(&p);
    if (o.stopAfter == p.name) break;
  }
  return done();
}

static int give(const std::string &text) {
  if (o.output == "-") {
    llvm::outs() << text;
    return tool::Ok;
  }
  std::string error;
  if (!tool::writeWhole(o.output, text.data(), text.size(), error)) return failure(error);
  return tool::Ok;
}

static int runKernelMode(llvm::StringRef text, const std::string &file, const PassOptions &options) {
  KernelRequest r{o.passes, o.emit, targetNamed(o.target), o.verifyEach, o.roundTrip, options.rewrite};
  if (!r.target) return failure("no target is called " + o.target, tool::Usage);
  if (r.emit != "listing" && r.emit != "linear" && r.emit != "c")
    return failure("--emit is listing, linear or c", tool::Usage);
  auto out = runKernel(text, file, r);
  return out ? give(*out) : failure(llvm::toString(out.takeError()));
}

/// Runs the passes; an error says which one failed.
static llvm::Error runPasses(Module &m, llvm::ArrayRef<const Pass *> list, PassOptions &options,
                             const PrintOptions &form) {
  auto fail = [](const Pass *p, const char *when, llvm::Error e) {
    return llvm::createStringError(std::string(when) + p->name + ": " + llvm::toString(std::move(e)));
  };
  bool onChange = llvm::is_contained(o.printAfter, "change");
  std::string before = onChange ? print(m, form) : "";
  for (size_t i = 0; i < list.size(); ++i) {
    const Pass *p = list[i];
    if (!o.crashRepro.empty()) {
      std::string text = "// astra-opt " + o.crashRepro + " --verify-each --passes=", error;
      for (size_t k = i; k < list.size(); ++k) text += (k > i ? "," : "") + std::string(list[k]->name);
      text += "\n" + print(m);
      if (!tool::writeWhole(o.crashRepro, text.data(), text.size(), error)) return llvm::createStringError(error);
    }
    auto start = std::chrono::steady_clock::now();
    if (auto e = p->run(m, options)) return fail(p, "", std::move(e));
    std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    if (o.timePasses) llvm::errs() << llvm::format("%-20s %10.3f ms\n", p->name, time.count());
    if (o.verifyEach) {
      if (auto e = verify(m, m.stage)) return fail(p, "after ", std::move(e));
      if (p->check)
        if (auto e = p->check(m)) return fail(p, "after ", std::move(e));
    }
    if (onChange) {
      std::string after = print(m, form);
      if (after != before) llvm::errs() << "// after " << p->name << '\n' << after;
      before = std::move(after);
    } else if (llvm::is_contained(o.printAfter, p->name))
      llvm::errs() << "// after " << p->name << '\n' << print(m, form);
  }
  if (!o.crashRepro.empty()) llvm::sys::fs::remove(o.crashRepro);
  return llvm::Error::success();
}

static int run(const std::string &file) {
  if (o.listPasses) {
    for (const Pass &p : passes()) llvm::outs() << p.name << (p.standard ? " (standard): " : ": ") << p.meaning << '\n';
    return tool::Ok;
  }
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(file);
  if (!buffer) return failure(file + ": " + buffer.getError().message());
  PassOptions options;
  options.rewrite.ruleLimit = o.ruleLimit;
  options.kernels = o.own;
  if (o.traceRules) options.rewrite.trace = &llvm::errs();
  if (o.kernel) return runKernelMode((*buffer)->getBuffer(), file, options);

  auto list = pipeline();
  if (!list) return tool::Usage;
  std::vector<std::string> notes;
  auto m = compose::parseText((*buffer)->getBuffer(), file, &notes);
  if (o.paths)
    for (const std::string &note : notes) llvm::errs() << "// " << note << '\n';
  if (!m) return failure(llvm::toString(m.takeError()));
  for (const Pass &p : passes()) { // text that enters behind a pass is what that pass gives, whether it says so or not
    if (o.startAt.empty() || o.startAt == p.name) break;
    if (p.standard && p.gives) m->stage = std::max(m->stage, *p.gives);
  }
  if (auto e = verify(*m, m->stage)) return failure(file + ": " + llvm::toString(std::move(e)));
  PrintOptions form;
  form.data = !o.noData;
  form.types = !o.noTypes;
  if (auto e = runPasses(*m, *list, options, form)) return failure(llvm::toString(std::move(e)));
  if (o.eval) {
    auto e = evaluate(*m, o.request, llvm::outs());
    return e ? failure(llvm::toString(std::move(e))) : tool::Ok;
  }
  if (o.kernels.empty()) return give(print(*m, form));
  const Target *target = targetNamed(o.kernels);
  if (!target) return failure("no target is called " + o.kernels, tool::Usage);
  auto text = kernelListings(*m, *target);
  return text ? give(*text) : failure(llvm::toString(text.takeError()));
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  tool::Program program = describeProgram(o);
  std::vector<std::string> files;
  if (int code = tool::parse(program, argc, argv, files); code >= 0) return code;
  if (files.size() > 1) return tool::complain(program, tool::Usage, "give one file");
  return tool::finished(program, run(files.empty() ? "-" : files[0]));
}
