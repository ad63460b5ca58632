//===- Quantize.cpp: a model of fewer bits ----------------------------------===//
// Takes:    a module as it was loaded, and the options about quantization.
// Gives:    the module with weights of fewer bits, and what became of each, as a table.
// Does not: hold the quantizers (lib/Quantize).
#include "Quantize.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace astra;
using namespace llvm;

namespace {

struct Sums {
  size_t stored = 0, stay = 0;
  uint64_t before = 0, after = 0, kept = 0; // bytes: of weights that are stored anew; of those that stay

  explicit Sums(ArrayRef<quantize::WeightRow> rows) {
    for (const quantize::WeightRow &r : rows) {
      (r.scheme ? stored : stay) += 1;
      if (r.scheme)
        before += r.before, after += r.after;
      else
        kept += r.before;
    }
  }
};

std::string percent(uint64_t part, uint64_t all) {
  std::string s;
  raw_string_ostream(s) << format("%.1f %%", all ? 100.0 * double(part) / double(all) : 0.0);
  return s;
}

std::string errorText(double error) {
  std::string s;
  raw_string_ostream(s) << format("%.3f %%", 100 * error);
  return s;
}

std::string shapeText(const quantize::WeightRow &r) {
  std::string s = info(r.was).text;
  s += "[";
  for (auto [i, d] : enumerate(r.shape)) s += (i ? ", " : "") + std::to_string(d);
  return s + "]";
}

} // namespace

std::string astra::quantizeTable(const Report &report) {
  std::vector<std::vector<std::string>> lines = {{"weight", "was", "is", "bytes before", "after", "", "error"}};
  for (const quantize::WeightRow &r : report.weights)
    lines.push_back({r.name, shapeText(r), r.scheme ? r.scheme->text : "as it was", std::to_string(r.before),
                     std::to_string(r.after), r.scheme ? percent(r.after, r.before) : "",
                     r.scheme ? errorText(r.error) : r.why});
  Sums sums(report.weights);
  lines.push_back({"all", "", "", std::to_string(sums.before + sums.kept), std::to_string(sums.after + sums.kept),
                   percent(sums.after + sums.kept, sums.before + sums.kept), ""});
  std::vector<size_t> widths(lines[0].size());
  for (auto &line : lines)
    for (auto [w, cell] : zip(widths, line)) w = std::max(w, cell.size());
  std::string out;
  for (auto &line : lines) {
    std::string text;
    for (auto [i, cell] : enumerate(line)) {
      bool right = i >= 3 && i <= 5;
      std::string room(widths[i] - cell.size(), ' ');
      text += (right ? room + cell : cell + room) + "  ";
    }
    out += StringRef(text).rtrim().str() + "\n";
  }
  return out;
}

Error astra::quantizeModel(const Job &job, Module &m, Report &report, std::vector<std::string> &notes) {
  Expected<std::vector<quantize::WeightRow>> rows = quantize::quantizeWeights(m, job.quantize);
  if (!rows) return createStringError("--quantize: " + toString(rows.takeError()));
  report.weights = std::move(*rows);
  Sums sums(report.weights);
  if (!sums.stored)
    return createStringError("--quantize: the model has no weight that becomes smaller: "
                             "matrices of f32, f16 or bf16 that products read are quantized");
  notes.push_back("--quantize: " + std::to_string(sums.stored) + " weights of " + std::to_string(sums.before) +
                  " bytes are " + std::to_string(sums.after) + " bytes (" + percent(sums.after, sums.before) + "), " +
                  std::to_string(sums.stay) + " of " + std::to_string(sums.kept) +
                  " bytes stay" + (job.quantizeReport.empty() ? "; --quantize-report=- says each" : ""));
  return Error::success();
}
