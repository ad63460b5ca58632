//===- Measure.cpp: what quantization costs and gains, on data --------------===//
// Takes:    see Measure.h; files come from outside.
// Keeps:    figures are functions of the data and the module but for times.
#include "Measure.h"
#include "Arrays.h"
#include "OutputFile.h"
#include "astra/text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include <cmath>
#include <cstring>

using namespace astra;
using namespace llvm;
using tool::Npy;

//===- Samples --------------------------------------------------------------===//

static Expected<std::vector<std::string>> filesOf(const std::string &place) {
  if (!sys::fs::is_directory(place)) return std::vector<std::string>{place};
  std::vector<std::string> files;
  std::error_code e;
  for (sys::fs::directory_iterator it(place, e), end; !e && it != end; it.increment(e))
    if (StringRef(it->path()).ends_with(".npz")) files.push_back(it->path());
  if (e) return createFileError(place, e);
  if (files.empty()) return createStringError(place + ": this folder has no .npz file");
  llvm::sort(files);
  return files;
}

/// Rows begin ... begin + count - 1.
static Npy rowsOf(const Npy &a, int64_t begin, int64_t count) {
  Npy part = a;
  size_t row = a.shape[0] ? a.data.size() / size_t(a.shape[0]) : 0;
  part.shape[0] = count;
  part.data.assign(a.data.begin() + begin * ptrdiff_t(row), a.data.begin() + (begin + count) * ptrdiff_t(row));
  return part;
}

/// The arrays of one file as calls.
static Error addCalls(const std::string &file, const Entry &e, int64_t most, Samples &out) {
  std::vector<Npy> arrays;
  int64_t rows = INT64_MAX, given = -1, least = 1;
  bool alike = !e.inputs.empty();
  for (const Value &input : e.inputs) {
    Npy &a = arrays.emplace_back();
    std::string wrong;
    bool one = e.inputs.size() == 1 && StringRef(file).ends_with(".npy");
    if (!one && !tool::holdsSeveral(file))
      return createStringError(file + ": the data of --calibrate are .npz files, folders of them, .npy where the model "
                                      "has one input, or for a language model text");
    if (!tool::readArray(file, input.name, a, wrong)) return createStringError(wrong);
    if (!tool::adopt(a, int32_t(input.value->dtype) - 1, wrong))
      return createStringError(file + ": '" + input.name + "': " + wrong);
    if (a.fortranOrder && a.shape.size() > 1)
      return createStringError(file + ": '" + input.name + "' is in Fortran order, expected C order");
    alike = alike && !a.shape.empty() && a.shape.size() == input.value->rank() && (given < 0 || given == a.shape[0]);
    if (!alike) continue;
    given = a.shape[0];
    rows = std::min(rows, input.value->shape[0]->hi);
    least = std::max(least, input.value->shape[0]->lo);
  }
  bool cuts = alike && rows > 0 && given > rows;
  for (int64_t begin = 0; begin < (cuts ? given : 1) && int64_t(out.calls.size()) < most; begin += cuts ? rows : 1) {
    int64_t count = cuts ? std::min(rows, given - begin) : 0;
    if (cuts && count < least) break; // fewer than a call takes
    std::vector<Npy> call;
    for (const Npy &a : arrays) call.push_back(cuts ? rowsOf(a, begin, count) : a);
    out.calls.push_back(std::move(call));
  }
  return Error::success();
}

Expected<Samples> astra::readSamples(const std::string &place, const Module &m, int64_t most) {
  Samples out;
  if (m.entries.empty()) return createStringError("the model has no entry");
  out.entry = m.entries[0].name;
  Expected<std::vector<std::string>> files = filesOf(place);
  if (!files) return files.takeError();
  for (const std::string &file : *files)
    if (Error e = addCalls(file, m.entries[0], most, out)) return std::move(e);
  if (out.calls.empty()) return createStringError(place + ": has fewer rows than a call of the model takes");
  return out;
}

Expected<std::vector<int64_t>> astra::readLabels(const std::string &file) {
  Npy a;
  std::string wrong;
  if (!tool::readArray(file, "labels", a, wrong)) return createStringError(wrong);
  DType t = DType(a.dtype + 1);
  if (!isInt(t)) return createStringError(file + ": labels are of type " + info(t).text + ", expected integers");
  std::vector<int64_t> labels;
  size_t each = byteSize(t);
  for (size_t at = 0; at < a.data.size(); at += each) {
    uint64_t bits = 0;
    std::memcpy(&bits, a.data.data() + at, each);
    labels.push_back(isSigned(t) ? SignExtend64(bits, unsigned(8 * each)) : int64_t(bits));
  }
  return labels;
}

static std::vector<const Npy *> pointers(const std::vector<Npy> &call) {
  std::vector<const Npy *> out;
  for (const Npy &a : call) out.push_back(&a);
  return out;
}

//===- Ranges ---------------------------------------------------------------===//

static ArrayRef<float> floatsIn(const Npy &a) {
  return {reinterpret_cast<const float *>(a.data.data()), a.data.size() / 4};
}

namespace {
/// Counts of a value's elements between its extremes.
struct Histogram {
  static constexpr size_t bins = 4096;
  quantize::Range range{INFINITY, -INFINITY};
  std::vector<uint64_t> counts;
  uint64_t total = 0;

  void widen(ArrayRef<float> x) {
    for (float v : x)
      if (std::isfinite(v)) range = {std::min(range.least, v), std::max(range.most, v)};
  }
  void count(ArrayRef<float> x) {
    counts.resize(bins);
    double width = (double(range.most) - range.least) / bins;
    for (float v : x)
      if (std::isfinite(v) && width > 0)
        ++counts[std::min(bins - 1, size_t((double(v) - range.least) / width))], ++total;
  }
  /// As many elements are left out at each end as the percentile allows.
  quantize::Range holding(double percentile) const {
    if (!total) return range;
    double width = (double(range.most) - range.least) / bins, out = double(total) * (100 - percentile) / 200;
    size_t first = 0, last = bins;
    for (double sum = 0; first < bins && (sum += double(counts[first])) <= out;) ++first;
    for (double sum = 0; last > first + 1 && (sum += double(counts[last - 1])) <= out;) --last;
    return {float(range.least + width * double(first)), float(range.least + width * double(last))};
  }
};
} // namespace

Expected<std::map<UOpRef, quantize::Range>> astra::measureRanges(const Module &given, ArrayRef<UOpRef> values,
                                                                 const Samples &samples, double percentile,
                                                                 const PipelineOptions &like) {
  Module m = given;
  m.entries.resize(1);
  Entry &e = m.entries[0];
  size_t own = e.outputs.size();
  for (auto [i, v] : enumerate(values)) e.outputs.push_back({"activation." + std::to_string(i), v});
  Expected<std::unique_ptr<Runner>> runner = Runner::make(m, like);
  if (!runner) return runner.takeError();
  std::vector<Histogram> found(values.size());
  for (bool counts : {false, true}) {
    if (counts && percentile >= 100) break;
    for (const std::vector<Npy> &call : samples.calls) {
      Expected<Runner::Result> r = (*runner)->call(samples.entry, pointers(call));
      if (!r) return createStringError("--calibrate: " + toString(r.takeError()));
      for (auto [i, h] : enumerate(found)) {
        ArrayRef<float> x = floatsIn(r->outputs[own + i]);
        counts ? h.count(x) : h.widen(x);
      }
    }
  }
  std::map<UOpRef, quantize::Range> ranges;
  for (auto [v, h] : zip(values, found))
    ranges[v] = h.range.least > h.range.most ? quantize::Range{} : percentile < 100 ? h.holding(percentile) : h.range;
  return ranges;
}

//===- Outputs --------------------------------------------------------------===//

namespace {
/// What two models say of one output, over all samples.
struct Differences {
  std::string name;
  double most = 0, greatest = 0, off = 0, all = 0;
  uint64_t rows = 0, agree = 0, right[2] = {0, 0};

  void add(ArrayRef<float> x, ArrayRef<float> y, int64_t classes, ArrayRef<int64_t> labels) {
    for (auto [a, b] : zip(x, y)) {
      if (!std::isfinite(a) || !std::isfinite(b)) continue;
      double d = double(b) - a;
      most = std::max(most, std::fabs(d)), greatest = std::max(greatest, std::fabs(double(a)));
      off += d * d, all += double(a) * a;
    }
    if (classes < 2) return;
    for (size_t at = 0; at + size_t(classes) <= x.size(); at += size_t(classes)) {
      auto best = [&](ArrayRef<float> z) { return std::max_element(z.begin(), z.end()) - z.begin(); };
      int64_t one = best(x.slice(at, size_t(classes))), two = best(y.slice(at, size_t(classes)));
      agree += one == two;
      if (rows < labels.size()) right[0] += one == labels[rows], right[1] += two == labels[rows];
      ++rows;
    }
  }
  std::string text() const {
    std::string s;
    raw_string_ostream out(s);
    out << "output '" << name << "': largest difference " << format("%.3g of %.3g, ", most, greatest)
        << format("relative RMS %.3f %%", all > 0 ? 100 * std::sqrt(off / all) : 0.0);
    if (rows) out << ", the greatest of the last axis is the same in " << agree << " of " << rows << " rows";
    return s;
  }
};
} // namespace

Expected<Measured> astra::compareOutputs(const Module &before, const Module &after, const Samples &samples,
                                         const PipelineOptions &like) {
  Expected<std::unique_ptr<Runner>> one = Runner::make(before, like), two = Runner::make(after, like);
  if (!one) return joinErrors(one.takeError(), two.takeError());
  if (!two) return two.takeError();
  const Entry &e = before.entries[0];
  std::vector<Differences> differences;
  for (const Value &v : e.outputs) differences.push_back({v.name});
  constexpr int turns = 3;
  double seconds[2] = {INFINITY, INFINITY};
  for (const std::vector<Npy> &call : samples.calls)
    for (int turn = 0; turn < (&call == &samples.calls[0] ? turns : 1); ++turn) {
      Expected<Runner::Result> x = (*one)->call(samples.entry, pointers(call));
      if (!x) return createStringError("--calibrate: " + toString(x.takeError()));
      Expected<Runner::Result> y = (*two)->call(samples.entry, pointers(call));
      if (!y) return createStringError("--calibrate: " + toString(y.takeError()));
      if (call[0].shape == samples.calls[0][0].shape) // calls of one size
        seconds[0] = std::min(seconds[0], x->seconds), seconds[1] = std::min(seconds[1], y->seconds);
      for (size_t i = 0; i < differences.size() && !turn; ++i) {
        const Npy &a = x->outputs[i], &b = y->outputs[i];
        if (a.dtype == ASTRA_F32 && a.shape == b.shape)
          differences[i].add(floatsIn(a), floatsIn(b), a.shape.size() > 1 ? a.shape.back() : 0, samples.labels);
      }
    }
  Measured m;
  if (!samples.labels.empty() && !differences.empty()) {
    const Differences &d = differences[0];
    if (d.rows > samples.labels.size() || !d.rows)
      return createStringError("--calibrate-labels: there are " + Twine(samples.labels.size()) +
                               " labels, and the output '" + d.name + "' has " + Twine(d.rows) + " rows of classes");
    m.figures.push_back({"accuracy of " + std::to_string(d.rows) + " rows", 100.0 * double(d.right[0]) / double(d.rows),
                         100.0 * double(d.right[1]) / double(d.rows), "%"});
  }
  m.figures.push_back({"least time of a call", 1000 * seconds[0], 1000 * seconds[1], "ms"});
  for (auto [d, v] : zip(differences, e.outputs))
    if (v.value->dtype == DType::F32) m.sentences.push_back(d.text());
  return m;
}

//===- Perplexity -----------------------------------------------------------===//

static Expected<std::vector<int32_t>> tokensOf(const std::string &textFile, const PipelineOptions &like) {
  auto asset = find_if(like.assets, [](const Asset &a) { return a.name == "tokenizer"; });
  if (asset == like.assets.end())
    return createStringError("--calibrate: text needs a tokenizer, and the model has none: give --tokenizer=FILE");
  std::vector<uint8_t> text;
  std::string wrong;
  if (!tool::readWhole(textFile, text, wrong)) return createStringError(wrong);
  std::vector<uint64_t> aligned((asset->bytes->size() + 7) / 8);
  std::memcpy(aligned.data(), asset->bytes->data(), asset->bytes->size());
  astra_text *tokenizer = nullptr;
  astra_diag diag = ASTRA_INIT(astra_diag);
  std::vector<int32_t> tokens(text.size() + 16);
  size_t count = 0;
  astra_status s = astra_text_init(&tokenizer, aligned.data(), asset->bytes->size(), &diag);
  if (s == ASTRA_OK)
    s = astra_text_encode(tokenizer, reinterpret_cast<const char *>(text.data()), text.size(), ASTRA_TEXT_AROUND,
                          tokens.data(), tokens.size(), &count, &diag);
  astra_text_free(&tokenizer);
  if (s != ASTRA_OK) return createStringError(textFile + ": " + diag.text);
  tokens.resize(count);
  return tokens;
}

namespace {
struct Scored {
  double sum = 0, speed = 0, decode = 0; // of log-probabilities; tokens a second, of the fastest call
  uint64_t count = 0;
};
} // namespace

/// Zeros of i32.
static Npy zeros(std::vector<int64_t> shape) {
  Npy a;
  size_t n = 1;
  for (int64_t d : shape) n *= size_t(d);
  a.dtype = ASTRA_I32, a.shape = std::move(shape), a.data.assign(n * 4, 0);
  return a;
}

/// How fast one sequence grows behind its first tokens: the fastest of some calls.
static Error measureDecode(Runner &runner, int32_t token, int64_t batch, Scored &out) {
  constexpr int turns = 8;
  constexpr int32_t behind = 64;
  Npy keep = zeros({batch}), next = zeros({batch});
  std::memcpy(keep.data.data(), &behind, 4);
  if (auto r = runner.call("reset", {&keep}); !r) return r.takeError();
  for (int64_t i = 0; i < batch; ++i) { // others stay as they are
    int32_t t = i ? -1 : token;
    std::memcpy(next.data.data() + 4 * i, &t, 4);
  }
  for (int turn = 0; turn < turns; ++turn) {
    auto r = runner.call("decode", {&next});
    if (!r) return r.takeError();
    out.decode = std::max(out.decode, 1 / r->seconds);
  }
  return Error::success();
}

/// Log-probabilities of tokens, in contexts one behind another.
static Expected<Scored> score(Runner &runner, ArrayRef<int32_t> tokens, int64_t batch, int64_t chunk, int64_t context) {
  Scored total;
  for (size_t begin = 0; begin + 1 < tokens.size(); begin += size_t(context)) {
    Npy keep = zeros({batch});
    if (auto r = runner.call("reset", {&keep}); !r) return r.takeError();
    size_t end = std::min(tokens.size() - 1, begin + size_t(context)); // of what is read
    for (size_t at = begin; at < end; at += size_t(chunk)) {
      size_t n = std::min(size_t(chunk), end - at);
      Npy read = zeros({batch, int64_t(n)}), next = read, count = zeros({batch});
      std::memcpy(read.data.data(), &tokens[at], n * 4);
      std::memcpy(next.data.data(), &tokens[at + 1], n * 4);
      int32_t number = int32_t(n);
      std::memcpy(count.data.data(), &number, 4);
      auto r = runner.call("score", {&read, &next, &count});
      if (!r) return r.takeError();
      if (n == std::min<size_t>({size_t(chunk), size_t(context), tokens.size() - 1}))
        total.speed = std::max(total.speed, double(n) / r->seconds);
      for (float v : floatsIn(r->outputs[0]).take_front(n)) total.sum += v, ++total.count;
    }
  }
  if (Error e = measureDecode(runner, tokens.back(), batch, total)) return std::move(e);
  return total;
}

Expected<Measured> astra::comparePerplexity(const Module &before, const Module &after, const std::string &textFile,
                                            int64_t most, const PipelineOptions &like) {
  Expected<std::vector<int32_t>> tokens = tokensOf(textFile, like);
  if (!tokens) return tokens.takeError();
  if (tokens->size() > size_t(most)) tokens->resize(size_t(most));
  if (tokens->size() < 2) return createStringError(textFile + ": has fewer than two tokens");
  const Entry *entry = before.entry("score");
  const StateVar *history = before.state("history");
  if (!entry || !history) return createStringError("--calibrate: the model has no entry 'score'");
  Shape shape = entry->inputs[0].value->shape;
  int64_t batch = shape[0]->hi, chunk = shape[1]->hi, context = history->value->shape[1]->hi;
  Measured m;
  Comparison speed{"tokens a second, read in chunks of " +
                   std::to_string(std::min<int64_t>({chunk, context, int64_t(tokens->size()) - 1}))};
  Comparison decode{"tokens a second, one by one"};
  Comparison perplexity{"perplexity of " + std::to_string(tokens->size() - 1) + " tokens"};
  for (bool second : {false, true}) {
    // One after the other: both at once need the memory of both.
    Expected<std::unique_ptr<Runner>> runner = Runner::make(second ? after : before, like);
    if (!runner) return runner.takeError();
    Expected<Scored> s = score(**runner, *tokens, batch, chunk, context);
    if (!s) return createStringError("--calibrate: " + toString(s.takeError()));
    (second ? perplexity.after : perplexity.before) = std::exp(-s->sum / double(s->count));
    (second ? speed.after : speed.before) = s->speed;
    (second ? decode.after : decode.before) = s->decode;
  }
  m.figures = {perplexity, speed, decode};
  return m;
}
