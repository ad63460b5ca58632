//===- Main.cpp: astra-opt: runs passes over .uop text ----------------------===//
// Takes:    a module as text.
// Gives:    the module after the passes asked for, as text, or the values of an entry.
// Exit:     0 ok, 1 failure, 2 usage.
#include "EvalMode.h"
#include "Support/Npy.h"
#include "Support/Options.h"
#include "Support/Passes.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include <chrono>

using namespace astra;

namespace {
struct Options {
  std::string output = "-", startAt, stopAfter;
  std::vector<std::string> passes, printAfter;
  bool standard = false, verifyEach = false, timePasses = false, traceRules = false, noData = false, noTypes = false,
       listPasses = false, eval = false, roundTrip = false;
  uint64_t ruleLimit = UINT64_MAX;
  EvalRequest request;
};
} // namespace
static Options o;

static const Option rows[] = {
    {"-o", "FILE", &o.output, "write the text to FILE instead of standard output"},
    {"--passes", "A,B,...", &o.passes, "run these passes, in this order"},
    {"--standard", "", &o.standard, "run the standard passes"},
    {"--start-at", "PASS", &o.startAt, "run the standard passes from PASS on"},
    {"--stop-after", "PASS", &o.stopAfter, "run the standard passes up to PASS"},
    {"--list-passes", "", &o.listPasses, "print the names of all passes and what they do"},
    {"--print-after", "PASS|change", &o.printAfter,
     "print the module to standard error after PASS, or after each change"},
    {"--verify-each", "", &o.verifyEach, "verify after every pass"},
    {"--round-trip", "", &o.roundTrip, "print the module and parse it again before and after the passes"},
    {"--time-passes", "", &o.timePasses, "print the time of each pass to standard error"},
    {"--rule-limit", "N", &o.ruleLimit, "apply at most N rewrite rules"},
    {"--trace-rules", "", &o.traceRules, "print each rule applied to standard error"},
    {"--no-data", "", &o.noData, "print no bytes of parameters and states"},
    {"--no-types", "", &o.noTypes, "print no types that can be inferred"},
    {"--eval", "", &o.eval, "evaluate an entry after the passes and print its results"},
    {"--entry", "NAME", &o.request.entry, "the entry to evaluate"},
    {"--input", "NAME=VALUE", &o.request.inputs, "an input: a .npy file, or literals: x=1,2,3 or x=[2,1]:1.5,inf"},
    {"--state", "NAME=VALUE", &o.request.states, "the value of a state when the entry begins"},
    {"--param", "NAME=VALUE", &o.request.params, "a parameter instead of the module's data"},
    {"--dim", "NAME=N", &o.request.dims, "a dim that no input's shape binds"},
    {"--output", "NAME=FILE", &o.request.outputs, "write an output to a .npy file instead of printing it"},
};
static const Command command = {"astra-opt", "[FILE.uop] [OPTION...]", "runs passes over .uop text, or evaluates it",
                                rows,
                                "Without FILE, or with -, the text comes from standard input.\n"
                                "Exit: 0 ok, 1 failure, 2 usage.\n"};

static int failure(llvm::StringRef sentence, int code = 1) {
  if (sentence.contains(": error: ")) // a diagnostic with its place
    llvm::errs() << sentence << '\n';
  else
    llvm::errs() << "astra-opt: error: " << sentence << '\n';
  return code;
}

/// The passes to run, or nothing after a usage error.
static std::optional<std::vector<const Pass *>> pipeline() {
  std::vector<const Pass *> list;
  llvm::SmallVector<llvm::StringRef, 8> names;
  for (llvm::StringRef text : o.passes) text.split(names, ',', -1, false);
  auto find = [](llvm::StringRef name) {
    const Pass *p = passNamed(name);
    if (!p) failure("no pass is called " + name.str() + " (--list-passes)", 2);
    return p;
  };
  if (o.roundTrip) names.insert(names.begin(), "round-trip");
  for (llvm::StringRef name : names) {
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

static int run(const std::string &file) {
  if (o.listPasses) {
    for (const Pass &p : passes()) llvm::outs() << p.name << (p.standard ? " (standard): " : ": ") << p.meaning << '\n';
    return 0;
  }
  auto list = pipeline();
  if (!list) return 2;
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(file);
  if (!buffer) return failure(file + ": " + buffer.getError().message());
  auto m = parse((*buffer)->getBuffer(), file);
  if (!m) return failure(llvm::toString(m.takeError()));

  PassOptions options;
  options.ruleLimit = o.ruleLimit;
  if (o.traceRules) options.trace = &llvm::errs();
  PrintOptions form;
  form.data = !o.noData;
  form.types = !o.noTypes;
  bool onChange = llvm::is_contained(o.printAfter, "change");
  std::string before = onChange ? print(*m, form) : "";
  for (const Pass *p : *list) {
    auto start = std::chrono::steady_clock::now();
    if (auto e = p->run(*m, options)) return failure(std::string(p->name) + ": " + llvm::toString(std::move(e)));
    if (o.timePasses)
      llvm::errs() << llvm::format(
          "%-20s %10.3f ms\n", p->name,
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    if (o.verifyEach && p->check)
      if (auto e = p->check(*m)) return failure(std::string("after ") + p->name + ": " + llvm::toString(std::move(e)));
    if (onChange) {
      std::string after = print(*m, form);
      if (after != before) llvm::errs() << "// after " << p->name << '\n' << after;
      before = std::move(after);
    } else if (llvm::is_contained(o.printAfter, p->name))
      llvm::errs() << "// after " << p->name << '\n' << print(*m, form);
  }
  if (o.eval) {
    if (auto e = evaluate(*m, o.request, llvm::outs())) return failure(llvm::toString(std::move(e)));
    return 0;
  }
  std::string text = print(*m, form);
  if (o.output == "-") {
    llvm::outs() << text;
    return 0;
  }
  if (auto e = writeFile(o.output, text)) return failure(llvm::toString(std::move(e)));
  return 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  std::vector<std::string> files;
  auto go = parseCommandLine(command, argc, argv, files);
  if (!go) return failure(llvm::toString(go.takeError()), 2);
  if (!*go) return 0;
  if (files.size() > 1) return failure("more than one file", 2);
  return run(files.empty() ? "-" : files[0]);
}
