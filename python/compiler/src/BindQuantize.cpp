//===- BindQuantize.cpp: modules with weights of few bits --------------------===//
#include "Bind.h"
#include "PyModule.h"
#include "astra/Quantize/Weights.h"

using namespace astra;
using namespace astra::python;
using namespace nb::literals;

namespace {

/// name, type, format or "", why it stays or "", bytes before and after, relative error, whether bytes multiply it.
using Row = std::tuple<std::string, std::string, std::string, std::string, uint64_t, uint64_t, double, bool>;

std::pair<PyModule, std::vector<Row>> quantized(const PyModule &p, const std::vector<std::string> &formats,
                                                bool dynamic, int64_t fewest) {
  quantize::WeightOptions options;
  options.fewest = fewest;
  if (dynamic) options.activations = quantize::Activations::Dynamic;
  for (const std::string &text : formats)
    if (std::string wrong = quantize::addRule(options, text); !wrong.empty()) throw std::invalid_argument(wrong);
  std::lock_guard lock(*p.busy);
  PyModule made = p; // over the same context
  std::vector<Row> rows;
  for (const quantize::WeightRow &r : taken(quantize::quantizeWeights(made.m, options))) {
    std::string type = std::string(info(r.was).text) + "[";
    for (size_t i = 0; i < r.shape.size(); ++i) type += (i ? ", " : "") + std::to_string(r.shape[i]);
    rows.emplace_back(r.name, type + "]", r.scheme ? r.scheme->text : "", r.why, r.before, r.after, r.error, r.bytes);
  }
  return {std::move(made), std::move(rows)};
}

} // namespace

void python::bindQuantize(nb::module_ &m) {
  m.def("quantized", quantized, "module"_a, "formats"_a, "dynamic"_a, "fewest"_a);
}
