//===- Report.cpp: what a compilation did, as JSON --------------------------===//
#include "Report.h"
#include "llvm/Support/JSON.h"

using namespace astra;
using namespace llvm;

void astra::print(raw_ostream &out, const Report &report) {
  json::OStream j(out, 1);
  j.object([&] {
    j.attribute("model", json::fixUTF8(report.model));
    if (!report.output.empty()) j.attribute("output", json::fixUTF8(report.output));
    if (!report.error.empty()) j.attribute("error", json::fixUTF8(report.error));
    if (report.bytes) j.attribute("bytes", report.bytes);
    j.attribute("kernels", report.kernels);
    j.attributeArray("targets", [&] {
      for (const Report::Code &c : report.code)
        j.object([&] {
          j.attribute("name", c.target);
          j.attribute("code_bytes", c.bytes);
        });
    });
    j.attributeArray("stages", [&] {
      for (const PipelineReport::Stage &s : report.pipeline.stages)
        j.object([&] {
          j.attribute("name", s.name);
          j.attribute("milliseconds", s.milliseconds);
        });
    });
    if (!report.weights.empty())
      j.attributeArray("quantized", [&] {
        for (const quantize::WeightRow &r : report.weights)
          j.object([&] {
            j.attribute("weight", json::fixUTF8(r.name));
            j.attribute("was", info(r.was).text);
            j.attributeArray("shape", [&] {
              for (int64_t d : r.shape) j.value(d);
            });
            if (r.scheme)
              j.attribute("is", r.scheme->text);
            else
              j.attribute("why", r.why);
            j.attribute("bytes_before", r.before);
            j.attribute("bytes_after", r.after);
            j.attribute("bytes_activations", r.bytes);
            j.attribute("error", r.error);
          });
      });
    if (!report.figures.empty())
      j.attributeArray("measured", [&] {
        for (const Report::Figure &f : report.figures)
          j.object([&] {
            j.attribute("what", f.what);
            j.attribute("before", f.before);
            j.attribute("after", f.after);
            j.attribute("unit", f.unit);
          });
      });
    if (!report.differences.empty())
      j.attributeArray("outputs", [&] {
        for (const std::string &text : report.differences) j.value(json::fixUTF8(text));
      });
    j.attributeArray("notes", [&] {
      for (const std::string &note : report.pipeline.notes) j.value(json::fixUTF8(note));
    });
  });
  out << "\n";
}
