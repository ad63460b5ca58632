//===- BindImport.cpp: front doors beside ONNX --------------------------------===//
// Takes:    the text of a program; the files of a language model.
// Gives:    a Module, and the tokenizer that belongs to it.
#include "Bind.h"
#include "PyModule.h"
#include "astra/Import/Language.h"
#include "astra/Import/StableHLO.h"
#include "astra/Import/Tokenizer.h"

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
  m.def("is_language_model", [](const std::string &path) { return isLanguageModel(path); }, "path"_a);
  m.def(
      "import_language",
      [](const std::string &path, int64_t context, int64_t batch, int64_t chunk, const std::string &cache,
         const std::string &tokenizer, const std::string &form) {
        std::vector<std::string> notes;
        LanguageOptions o{context, batch, chunk, dtypeOf(cache), &notes};
        std::string compiled;
        llvm::Expected<Module> made = [&]() -> llvm::Expected<Module> {
          nb::gil_scoped_release unlocked;
          llvm::Expected<Module> module = importLanguageModel(path, o);
          if (!module) return module;
          llvm::Expected<std::string> text = import::tokenizerOfModel(path, tokenizer, form, *module, notes);
          if (!text) return text.takeError();
          compiled = std::move(*text);
          return module;
        }();
        PyModule module{taken(std::move(made))};
        return std::tuple(std::move(module), nb::bytes(compiled.data(), compiled.size()), notes);
      },
      "path"_a, "context"_a, "batch"_a, "chunk"_a, "cache"_a, "tokenizer"_a, "form"_a);
}
