//===- Core.cpp: the extension module ---------------------------------------===//
// Gives:    astra._core: graphs, composites, modules. Python's side of it is private: astra._graph.
#include "Bind.h"
#include "astra/IR/Text.h"

using namespace astra;
using namespace astra::python;

void python::check(Graph &g) {
  if (!g.failed()) return;
  compose::Composer::Failure failure = g.takeFailure();
  if (failure.beyond) throw Unsupported(*failure.error);
  throw std::invalid_argument(*failure.error);
}

void python::raise(llvm::Error e) {
  std::string text;
  bool beyond = false;
  llvm::handleAllErrors(std::move(e), [&](const llvm::ErrorInfoBase &x) {
    beyond |= x.convertToErrorCode() == std::errc::not_supported;
    text += (text.empty() ? "" : "\n") + x.message();
  });
  if (beyond) throw Unsupported(text);
  throw std::invalid_argument(text);
}

DType python::dtypeOf(const std::string &name) {
  std::optional<DType> t = dtypeNamed(name);
  if (!t) throw std::invalid_argument("there is no dtype '" + name + "'");
  return *t;
}

int astraCompileMain(int argc, char **argv); // main of tools/astra-compile

/// The program astra-compile in this process: its exit status.
static int runCompile(std::vector<std::string> arguments) {
  std::string name = "astra-compile";
  std::vector<char *> argv{name.data()};
  for (std::string &a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  nb::gil_scoped_release unlocked;
  return astraCompileMain(int(argv.size()) - 1, argv.data());
}

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false); // graphs of threads live until the process ends
  m.doc() = "Graphs, composites and modules of the compiler.";
  nb::set_leak_warnings(false); // what other packages keep until the end is theirs
  nb::exception<Unsupported>(m, "Unsupported", PyExc_NotImplementedError);
  bindGraph(m);
  bindModule(m);
  bindCompose(m);
  bindNetworks(m);
  bindTraining(m);
  bindImport(m);
  m.def("run_compile", runCompile, "The program astra-compile with these arguments: its exit status.");
  bindBundle(m);
  bindLinalg(m);
  bindGuards(m);
  bindQuantize(m);
  bindExternal(m);
}
