//===- BindImport.cpp: front doors beside ONNX --------------------------------===//
// Takes:    the text of a program.
// Gives:    a Module.
#include "Bind.h"
#include "PyModule.h"
#include "astra/Import/StableHLO.h"

using namespace astra;
using namespace astra::python;
using namespace nb::literals;

void python::bindImport(nb::module_ &m) {
  m.def(
      "import_stablehlo",
      [](const std::string &text, const std::string &name,
         const std::vector<std::tuple<std::string, int64_t, int64_t, std::string>> &dims) {
        StableHLOOptions o;
        for (const auto &[dim, lo, hi, value] : dims) o.dims.push_back({dim, lo, hi, value});
        llvm::Expected<Module> made = [&] {
          nb::gil_scoped_release unlocked;
          return importStableHLO(text, name, o);
        }();
        return PyModule{taken(std::move(made))};
      },
      "text"_a, "name"_a, "dims"_a);
}
