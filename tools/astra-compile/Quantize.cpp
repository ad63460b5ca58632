//===- Quantize.cpp: a model of fewer bits ----------------------------------===//
// Takes:    a module as it was loaded, and the options about quantization.
// Gives:    the module with weights of fewer bits, and what became of each, as a table.
// Does not: hold the quantizers (lib/Quantize).
#include "Quantize.h"
#include "Measure.h"
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

std::string figureText(const Report::Figure &f) {
  std::string s, unit = f.unit.empty() ? "" : " " + f.unit;
  raw_string_ostream(s) << f.what << ": " << format("%.4g", f.before) << unit << " before, " << format("%.4g", f.after)
                        << unit << " after";
  return s;
}

} // namespace

std::string astra::quantizeTable(const Report &report) {
  std::vector<std::vector<std::string>> lines = {
      {"weight", "was", "is", "bytes before", "after", "", "error", "activations"}};
  for (const quantize::WeightRow &r : report.weights)
    lines.push_back({r.name, shapeText(r), r.scheme ? r.scheme->text : "as it was", std::to_string(r.before),
                     std::to_string(r.after), r.scheme ? percent(r.after, r.before) : "",
                     r.scheme ? errorText(r.error) : r.why, r.bytes ? "bytes" : ""});
  Sums sums(report.weights);
  lines.push_back({"all", "", "", std::to_string(sums.before + sums.kept), std::to_string(sums.after + sums.kept),
                   percent(sums.after + sums.kept, sums.before + sums.kept), "", ""});
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
  for (const Report::Figure &f : report.figures) out += figureText(f) + "\n";
  for (const std::string &text : report.differences) out += text + "\n";
  return out;
}

/// --calibrate: both models on the data.
static Error compare(const Job &job, const Module &before, const Module &after, const Samples &samples, bool language,
                     Report &report) {
  Expected<Measured> m = language ? comparePerplexity(before, after, job.calibrate,
                                                      job.calibrateMost ? job.calibrateMost : 4096, job.pipeline)
                                  : compareOutputs(before, after, samples, job.pipeline);
  if (!m) return m.takeError();
  for (const Comparison &f : m->figures) report.figures.push_back({f.what, f.before, f.after, f.unit});
  report.differences = std::move(m->sentences);
  return Error::success();
}

Error astra::quantizeModel(const Job &job, Module &m, Report &report, std::vector<std::string> &notes) {
  bool language = isLanguageModel(job.model), isStatic = job.quantize.activations == quantize::Activations::Static;
  quantize::WeightOptions options = job.quantize;
  if (isStatic && language)
    return createStringError(
        std::errc::not_supported,
        "--quantize-activations=static is not for a language model, whose entries have ranges each "
        "of its own: dynamic is");
  Samples samples;
  if (!job.calibrate.empty() && !language) {
    Expected<Samples> read = readSamples(job.calibrate, m, job.calibrateMost ? job.calibrateMost : 1000);
    if (!read) return read.takeError();
    samples = std::move(*read);
    if (!job.labels.empty()) {
      Expected<std::vector<int64_t>> labels = readLabels(job.labels);
      if (!labels) return labels.takeError();
      samples.labels = std::move(*labels);
    }
  }
  if (isStatic) {
    if (m.entries.size() > 1)
      return createStringError(std::make_error_code(std::errc::not_supported),
                               "--quantize-activations=static is for a model with one entry, this one has " +
                                   Twine(m.entries.size()));
    Expected<std::vector<UOpRef>> values = quantize::activationsOf(m, options);
    if (!values) return createStringError("--quantize: " + toString(values.takeError()));
    auto ranges = measureRanges(m, *values, samples, job.percentile, job.pipeline);
    if (!ranges) return ranges.takeError();
    options.ranges = std::move(*ranges);
  }
  Module before = m;
  Expected<std::vector<quantize::WeightRow>> rows = quantize::quantizeWeights(m, options);
  if (!rows) return createStringError("--quantize: " + toString(rows.takeError()));
  report.weights = std::move(*rows);
  Sums sums(report.weights);
  if (!sums.stored)
    return createStringError("--quantize: the model has no weight that becomes smaller: "
                             "matrices of f32, f16 or bf16 that products read are quantized");
  std::string bytes;
  if (options.activations != quantize::Activations::Float)
    bytes = ", " + std::to_string(count_if(report.weights, [](auto &r) { return r.bytes; })) +
            " multiplied by activations of 8 bits";
  auto weights = [](size_t n) { return std::to_string(n) + (n == 1 ? " weight, " : " weights, "); };
  notes.push_back("--quantize: " + weights(sums.stored) + std::to_string(sums.before) + " bytes before, " +
                  std::to_string(sums.after) + " after (" + percent(sums.after, sums.before) + ")" + bytes +
                  (sums.stay ? "; " + weights(sums.stay) + std::to_string(sums.kept) + " bytes, stay" : "") +
                  (job.quantizeReport.empty() ? "; --quantize-report=- says each" : ""));
  if (job.calibrate.empty()) return Error::success();
  if (Error e = compare(job, before, m, samples, language, report)) return e;
  for (const Report::Figure &f : report.figures) notes.push_back(figureText(f));
  for (const std::string &text : report.differences) notes.push_back(text);
  return Error::success();
}
