//===- OpsProduct.cpp: products and convolutions ---------------------------===//
// Takes:    axes from the attributes of the dialect.
// Gives:    contract UOps.
// Keeps:    precision is that of the numeric contract, whatever the attributes ask for.
#include "Lowering.h"
#include "astra/Compose/Convolution.h"
#include "astra/Compose/Einsum.h"
#include "astra/Compose/Product.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace astra::stablehlo {

namespace {

/// Operands as the result's type: a product of narrow types may give a wider one. Bools are counted and compared.
std::pair<UOpRef, UOpRef> asResult(Statement &s) {
  DType t = s.resultDType();
  if (t == DType::Bool) t = DType::I32;
  return {s.b.cast(s.in(0), t), s.b.cast(s.in(1), t)};
}
void giveAs(Statement &s, UOpRef x) { s.give(s.b.cast(x, s.resultDType())); }

llvm::SmallVector<int64_t, 4> listOf(const Fields &f, llvm::StringRef key) {
  const std::vector<int64_t> *list = f.find(key);
  return list ? llvm::SmallVector<int64_t, 4>(list->begin(), list->end()) : llvm::SmallVector<int64_t, 4>();
}

void dotGeneral(Statement &s) {
  Fields f = s.fields("dot_dimension_numbers");
  compose::GeneralProductAxes axes;
  axes.batchX = listOf(f, "lhs_batching_dimensions");
  axes.batchY = listOf(f, "rhs_batching_dimensions");
  axes.sumX = listOf(f, "lhs_contracting_dimensions");
  axes.sumY = listOf(f, "rhs_contracting_dimensions");
  auto [x, y] = asResult(s);
  if (!s.b.failed()) giveAs(s, generalProduct(s.b, x, y, axes));
}

void dot(Statement &s) {
  auto [x, y] = asResult(s);
  if (s.b.failed()) return;
  if (x->rank() > 2 || y->rank() > 2) s.fail("the operands must be vectors or matrices");
  giveAs(s, product(s.b, x, y));
}

void einsumOp(Statement &s) {
  std::string config = s.stringAttr("einsum_config");
  std::vector<UOpRef> xs = s.inputs(0, s.numInputs());
  if (!s.b.failed()) giveAs(s, einsum(s.b, config, xs));
}

/// "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]".
struct Layout {
  int64_t first = -1, second = -1; // of the two letters
  Ints spatial;
};
std::optional<Layout> layoutOf(llvm::StringRef text, char first, char second) {
  Layout l;
  llvm::SmallVector<llvm::StringRef, 8> parts;
  text.split(parts, ',');
  for (auto [axis, part] : llvm::enumerate(parts)) {
    part = part.trim();
    int64_t number = 0;
    if (part == llvm::StringRef(&first, 1)) {
      l.first = axis;
    } else if (part == llvm::StringRef(&second, 1)) {
      l.second = axis;
    } else if (!part.getAsInteger(10, number) && number >= 0 && number < 64) {
      l.spatial.resize(std::max<size_t>(l.spatial.size(), number + 1), -1);
      l.spatial[number] = axis;
    } else {
      return std::nullopt;
    }
  }
  if (l.first < 0 || l.second < 0 || llvm::is_contained(l.spatial, -1)) return std::nullopt;
  return l;
}

/// The numbers of a convolution's axes, in the short form, or in the long one: false where they are neither.
bool readAxes(Statement &s, compose::GeneralConvolutionOptions &o) {
  const Attribute *a = s.op.find("dimension_numbers");
  llvm::StringRef text = a && a->kind == Attribute::Kind::Dialect ? a->text : llvm::StringRef();
  size_t open = text.find('['), close = text.rfind(']');
  if (!text.starts_with("stablehlo") || !text.contains("conv") || open == llvm::StringRef::npos) return false;
  if (text.contains('=')) {
    Fields f = s.fields("dimension_numbers");
    auto one = [&](llvm::StringRef key) {
      const std::vector<int64_t> *v = f.find(key);
      return v && v->size() == 1 ? (*v)[0] : 0;
    };
    auto list = [&](llvm::StringRef key) {
      const std::vector<int64_t> *v = f.find(key);
      return v ? Ints(v->begin(), v->end()) : Ints();
    };
    o.batch = one("input_batch_dimension");
    o.channel = one("input_feature_dimension");
    o.spatial = list("input_spatial_dimensions");
    o.inChannel = one("kernel_input_feature_dimension");
    o.outChannel = one("kernel_output_feature_dimension");
    o.kernel = list("kernel_spatial_dimensions");
    o.resultBatch = one("output_batch_dimension");
    o.resultChannel = one("output_feature_dimension");
    o.resultSpatial = list("output_spatial_dimensions");
    return !s.b.failed();
  }
  text = text.slice(open, close + 1);
  auto [x, rest] = text.split("]x[");
  auto [w, y] = rest.split("]->[");
  if (!x.consume_front("[") || !y.consume_back("]")) return false;
  auto lx = layoutOf(x, 'b', 'f'), lw = layoutOf(w, 'i', 'o'), ly = layoutOf(y, 'b', 'f');
  if (!lx || !lw || !ly) return false;
  o.batch = lx->first;
  o.channel = lx->second;
  o.spatial = lx->spatial;
  o.inChannel = lw->first;
  o.outChannel = lw->second;
  o.kernel = lw->spatial;
  o.resultBatch = ly->first;
  o.resultChannel = ly->second;
  o.resultSpatial = ly->spatial;
  return true;
}

void convolutionWith(Statement &s, std::optional<Ints> pads) {
  compose::GeneralConvolutionOptions o;
  if (!readAxes(s, o) && !s.b.failed())
    s.fail("attribute 'dimension_numbers' must be as #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>");
  size_t n = o.spatial.size();
  o.strides = s.intsAttr("window_strides", n, 1);
  o.xDilations = s.intsAttr("lhs_dilation", n, 1);
  o.dilations = s.intsAttr("rhs_dilation", n, 1);
  o.reversed = s.intsAttr("window_reversal", n, 0);
  if (!pads) pads = s.intsAttr("padding", 2 * n, 0);
  o.groups = s.intAttr("feature_group_count", 1);
  o.batchGroups = s.intAttr("batch_group_count", 1);
  if (!s.b.failed() && pads->size() != 2 * n) s.fail("the padding does not fit " + llvm::Twine(n) + " spatial axes");
  for (size_t i = 0; i < n && !s.b.failed(); ++i) {
    o.before.push_back((*pads)[2 * i]);
    o.after.push_back((*pads)[2 * i + 1]);
  }
  auto [x, w] = asResult(s);
  if (!s.b.failed()) giveAs(s, generalConvolution(s.b, x, w, o));
}
void convolution(Statement &s) { convolutionWith(s, std::nullopt); }
void dynamicConvolution(Statement &s) {
  Ints pads = s.knownInts(2, "the padding");
  if (!s.b.failed()) convolutionWith(s, pads);
}

const Row rows[] = {
    {"stablehlo.convolution", convolution, "channels and kernel are constant", 2, 2},
    {"stablehlo.dot", dot, "", 2, 2},
    {"stablehlo.dot_general", dotGeneral, "precision is that of the numeric contract", 2, 2},
    {"stablehlo.dynamic_conv", dynamicConvolution, "pads must be constant once dims have bounds", 3, 3},
    {"stablehlo.einsum", einsumOp, "real types", 2, 2},
    {"stablehlo.unary_einsum", einsumOp, "real types", 1, 1},
};

} // namespace

llvm::ArrayRef<Row> productRows() { return rows; }

} // namespace astra::stablehlo
