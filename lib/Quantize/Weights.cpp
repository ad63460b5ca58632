//===- Weights.cpp: weights of a module as codes of few bits ----------------===//
// Takes:    see Weights.h.
// Gives:    planes as parameters, and readers that read arithmetic on them: a contract has its axes in the order of the
//           planes, so that nothing is moved; a gather takes rows of the planes.
#include "astra/Quantize/Weights.h"
#include "ByteProduct.h"
#include "Numbers.h"
#include "Uses.h"
#include "astra/Compose/Quantization.h"
#include "astra/IR/Eval.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/GlobPattern.h"
#include <cmath>

using namespace astra;
using namespace astra::quantize;
using llvm::ArrayRef;
using llvm::StringRef;

std::string quantize::addRule(WeightOptions &options, StringRef text) {
  auto [pattern, name] = text.contains('=') ? text.rsplit('=') : std::pair(StringRef(), text);
  const Scheme *scheme = schemeNamed(name);
  std::string all = "float";
  for (const Scheme &s : schemes()) all += std::string(", ") + s.text;
  if ((!scheme && name != "float") || (pattern.empty() && text.contains('=')))
    return ("'" + text + "' is not FORMAT or PATTERN=FORMAT, of " + all).str();
  if (pattern.empty() && !scheme) return "'float' needs a pattern: weights that no option names stay as they are";
  if (pattern.empty() && options.otherwise)
    return "'" + text.str() + "' and '" + options.otherwise->text + "' both are for all weights";
  if (pattern.empty())
    options.otherwise = scheme;
  else
    options.rules.push_back({pattern.str(), scheme});
  return "";
}

namespace {

/// A weight that is stored as planes.
struct Stored {
  const Scheme *scheme;
  Use use;
  llvm::SmallVector<UOpRef, 5> planes;
};

/// The values of a weight from its planes, or of rows of them, in f32.
UOpRef valuesOf(compose::Composer &b, const Stored &w, ArrayRef<UOpRef> planes) {
  switch (w.scheme->kind) {
  case Scheme::Channels: {
    compose::Dims dims(planes[1]->shape.begin(), planes[1]->shape.end());
    dims.append(planes[0]->rank() - planes[1]->rank(), b.idx(1));
    return b.bin(Op::Mul, b.cast(planes[0], DType::F32), b.reshape(planes[1], dims));
  }
  case Scheme::Blocks: {
    compose::QuantizationOptions options;
    options.axis = int64_t(planes[0]->rank()) - 1, options.block = w.scheme->block, options.to = DType::F32;
    return compose::dequantize(b, planes[0], planes[1], planes[2], options);
  }
  case Scheme::Ggml: break;
  }
  compose::StoredWeight stored{w.scheme->ggml, {}, {planes.begin(), planes.end()}};
  return compose::weightValues(b, stored);
}

/// Row-major elements with their axes in another order.
std::vector<float> permuted(std::vector<float> x, ArrayRef<int64_t> dims, ArrayRef<int64_t> order) {
  if (llvm::is_sorted(order)) return x;
  std::vector<size_t> stride(dims.size(), 1), extent, step;
  for (size_t i = dims.size(); i-- > 1;) stride[i - 1] = stride[i] * size_t(dims[i]);
  for (int64_t axis : order) extent.push_back(size_t(dims[axis])), step.push_back(stride[axis]);
  std::vector<size_t> at(order.size(), 0);
  std::vector<float> out(x.size());
  size_t from = 0;
  for (float &v : out) {
    v = x[from];
    for (size_t i = order.size(); i-- > 0;) {
      from += step[i];
      if (++at[i] < extent[i]) break;
      from -= extent[i] * step[i], at[i] = 0;
    }
  }
  return out;
}

double relativeError(ArrayRef<float> x, ArrayRef<float> y) {
  double off = 0, all = 0;
  for (auto [a, b] : llvm::zip(x, y)) off += (double(b) - a) * (double(b) - a), all += double(a) * a;
  return all > 0 ? std::sqrt(off / all) : 0;
}

class Quantizer {
public:
  Quantizer(Module &m, const WeightOptions &options, std::vector<UOpRef> *asked = nullptr)
      : m(m), options(options), asked(asked), b(m.ctx()), uses(m) {}
  llvm::Expected<std::vector<WeightRow>> run();

private:
  Module &m;
  const WeightOptions &options;
  std::vector<UOpRef> *asked; // gets the values whose ranges are wanted, which then need not be known
  compose::Composer b;
  Uses uses;
  std::vector<llvm::GlobPattern> patterns;
  std::vector<bool> matched; // by rule
  llvm::DenseMap<UOpRef, Stored> stored;
  llvm::DenseMap<UOpRef, View> views; // of nodes as they are now

  llvm::Error readPatterns();
  const Scheme *schemeOf(StringRef name, bool &named);
  WeightRow store(const Param &p);
  llvm::DenseSet<UOpRef> byFloats; // weights that some product multiplies floats by
  /// `was`: the node in the module as it came.
  UOpRef rewrite(UOpRef n, UOpRef was);
  UOpRef multiplied(UOpRef contract, UOpRef was);
  UOpRef byBytes(UOpRef contract, const ContractSpec &s, unsigned weight, const Stored &w, UOpRef x);
  UOpRef gathered(UOpRef gather);
};

llvm::Error Quantizer::readPatterns() {
  for (const Rule &r : options.rules) {
    auto p = llvm::GlobPattern::create(r.pattern);
    if (!p) return llvm::createStringError("'" + r.pattern + "' is no pattern: " + llvm::toString(p.takeError()));
    patterns.push_back(std::move(*p));
  }
  matched.assign(patterns.size(), false);
  return llvm::Error::success();
}

const Scheme *Quantizer::schemeOf(StringRef name, bool &named) {
  for (auto [i, p] : llvm::enumerate(patterns))
    if (p.match(name)) {
      matched[i] = named = true;
      return options.rules[i].scheme;
    }
  return options.otherwise;
}

/// Keeps the planes in b.params and `stored` where the weight is to be of few bits and can be.
WeightRow Quantizer::store(const Param &p) {
  const Use &use = uses.of(p.value);
  WeightRow row;
  row.name = p.value->str.str(), row.was = p.value->dtype;
  int64_t count = 1;
  for (UOpRef d : p.value->shape) row.shape.push_back(d->constIndex().value_or(0)), count *= row.shape.back();
  row.before = row.after = tensorBytes(row.was, row.shape);
  bool named = false;
  const Scheme *scheme = schemeOf(row.name, named);
  auto stays = [&](const llvm::Twine &why) {
    row.why = why.str();
    return row;
  };
  if (!scheme) return stays("not asked for");
  if (!use.other.empty()) return stays(use.other);
  if (!named && count < options.fewest) return stays("it has fewer than " + llvm::Twine(options.fewest) + " elements");
  if (!p.data) return stays("its values are given when it is run");
  std::vector<int64_t> dims;
  for (int64_t axis : use.order) dims.push_back(use.base[axis]);
  scheme = &fitting(*scheme, dims.back());
  std::vector<float> x = permuted(floatsOf(row.was, *p.data), use.base, use.order);
  std::optional<Quantized> q = quantized(*scheme, dims, use.summed, x);
  if (!q) return stays("its values are not finite, or too large for f16 scales");
  uint64_t bytes = 0;
  for (const Plane &plane : q->planes) bytes += plane.payload.bytes.size();
  if (bytes >= row.before) return stays(llvm::Twine("as ") + scheme->text + " it would not be smaller");
  for (const Plane &plane : q->planes)
    if (std::string name = row.name + plane.suffix; m.param(name) || m.state(name))
      return stays("there is another parameter named " + name);
  Stored s{scheme, use, {}};
  for (Plane &plane : q->planes) {
    compose::Dims shape;
    for (int64_t d : plane.payload.dims) shape.push_back(b.idx(d));
    s.planes.push_back(b.b.param(row.name + plane.suffix, plane.payload.dtype, shape));
    Param to;
    to.value = s.planes.back();
    to.data = std::make_shared<const std::vector<uint8_t>>(std::move(plane.payload.bytes));
    to.kind = p.kind == ParamKind::Constant ? ParamKind::Constant : ParamKind::Fixed;
    b.params.push_back(std::move(to));
  }
  row.scheme = scheme, row.after = bytes, row.error = relativeError(x, q->values);
  stored[p.value] = std::move(s);
  return row;
}

/// The product with x as bytes, or null where it reads floats.
UOpRef Quantizer::byBytes(UOpRef n, const ContractSpec &s, unsigned weight, const Stored &w, UOpRef was) {
  UOpRef x = n->src[!weight];
  if (options.activations == Activations::Float || x->dtype != DType::F32 || n->ntensors != 2) return nullptr;
  bool isStatic = options.activations == Activations::Static;
  if (w.scheme->kind == Scheme::Ggml && !isStatic)
    return blockProductOfBytes(b, n, s, weight, {w.scheme->ggml, {}, {w.planes.begin(), w.planes.end()}}, x);
  if (w.scheme->kind != Scheme::Channels) return nullptr;
  std::optional<Range> range;
  if (isStatic) {
    auto known = options.ranges.find(was);
    if (known == options.ranges.end() && !asked) return nullptr;
    range = asked ? Range() : known->second;
  }
  UOpRef y = productOfBytes(b, n, s, weight, w.planes[0], w.planes[1], x, range);
  if (y && asked && !llvm::is_contained(*asked, was)) asked->push_back(was);
  return y;
}

UOpRef Quantizer::multiplied(UOpRef n, UOpRef was) {
  ContractSpec s = llvm::cantFail(decodeContract(n->ints));
  llvm::SmallVector<UOpRef, 8> src(n->src.begin(), n->src.end());
  for (unsigned o : {0u, 1u}) {
    View v = views.lookup(n->src[o]);
    auto w = stored.find(v.param);
    if (w == stored.end()) continue;
    auto &forms = o ? s.b : s.a;
    llvm::SmallVector<AffineForm, 4> lie;
    for (int64_t axis : w->second.use.order) lie.push_back(forms[llvm::find(v.axes, axis) - v.axes.begin()]);
    forms = lie;
    if (UOpRef y = byBytes(n, s, o, w->second, was->src[!o])) return y;
    byFloats.insert(v.param);
    src[o] = b.cast(valuesOf(b, w->second, w->second.planes), n->src[o]->dtype);
  }
  return src == llvm::SmallVector<UOpRef, 8>(n->src.begin(), n->src.end())
             ? n
             : m.ctx().make(n->op, src, encode(s), n->str);
}

UOpRef Quantizer::gathered(UOpRef n) {
  auto w = stored.find(views.lookup(n->src[0]).param);
  if (w == stored.end()) return n;
  llvm::SmallVector<UOpRef, 5> rows;
  for (UOpRef plane : w->second.planes) {
    rows.push_back(m.ctx().make(Op::Gather, {plane, n->src[1]}, {0}));
  }
  return b.cast(valuesOf(b, w->second, rows), n->dtype);
}

UOpRef Quantizer::rewrite(UOpRef n, UOpRef was) {
  if (n->isIndex()) return n;
  View v = viewOf(n, [&](UOpRef s) { return views.lookup(s); });
  if (v.param && stored.contains(v.param)) views[n] = v;
  return n->is(Op::Contract) ? multiplied(n, was) : n->is(Op::Gather) ? gathered(n) : n;
}

llvm::Expected<std::vector<WeightRow>> Quantizer::run() {
  if (llvm::Error e = readPatterns()) return std::move(e);
  std::vector<WeightRow> rows;
  for (const Param &p : m.params)
    if (uses.knows(p.value) && uses.of(p.value).isWeight() && p.value->rank() > 1) rows.push_back(store(p));
  for (auto [rule, was] : llvm::zip(options.rules, matched))
    if (!was)
      return llvm::createStringError("'" + rule.pattern +
                                     "' matches no weight of the model: a float parameter of rank 2 or more");
  std::vector<UOpRef> order = topoSort(m.roots()); // in which mapValues comes to them
  size_t at = 0;
  mapValues(m, [&](UOpRef n) { return rewrite(n, order[at++]); });
  if (b.failed()) return llvm::createStringError("internal error: " + b.failure());
  for (auto [param, w] : stored)
    if (options.activations != Activations::Float && w.use.isMultiplied && !byFloats.contains(param))
      for (WeightRow &r : rows) r.bytes |= r.name == param->str;
  llvm::erase_if(m.params, [&](const Param &p) { return stored.contains(p.value); });
  for (Param &p : b.params) m.params.push_back(std::move(p));
  return rows;
}

} // namespace

llvm::Expected<std::vector<WeightRow>> quantize::quantizeWeights(Module &m, const WeightOptions &options) {
  return Quantizer(m, options).run();
}

llvm::Expected<std::vector<UOpRef>> quantize::activationsOf(const Module &given, const WeightOptions &options) {
  Module m = given;
  std::vector<UOpRef> found;
  WeightOptions measured = options;
  measured.activations = Activations::Static;
  auto rows = Quantizer(m, measured, &found).run();
  if (!rows) return rows.takeError();
  return found;
}
