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

NB_MODULE(_core, m) {
  m.doc() = "Graphs, composites and modules of the compiler.";
  nb::exception<Unsupported>(m, "Unsupported", PyExc_NotImplementedError);
  bindGraph(m);
  bindModule(m);
  bindCompose(m);
  bindNetworks(m);
}
