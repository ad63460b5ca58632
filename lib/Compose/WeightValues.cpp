//===- WeightValues.cpp: what is computed from planes -----------------------===//
// Takes:    planes of a weight as nodes.
// Gives:    see WeightBlocks.h: values, products and rows.
// Keeps:    one formula for all formats, whose terms are there where the format has the plane.
#include "astra/Compose/Indexing.h"
#include "astra/Compose/WeightBlocks.h"
#include "astra/IR/Index.h"

using namespace astra;
using namespace astra::compose;
using llvm::StringRef;

namespace {

/// What is taken off the codes, and off the scales of 6 bits.
int codeOffset(WeightFormat f) {
  switch (f) {
  case WeightFormat::Q3_K: return 4;
  case WeightFormat::Q4_0: return 8;
  case WeightFormat::Q5_0: return 16;
  case WeightFormat::Q6_K: return 32;
  default: return 0;
  }
}
int scaleOffset(WeightFormat f) { return f == WeightFormat::Q3_K ? 32 : 0; }

/// The numbers that codes stand for: ggml-common.h, kvalues_iq4nl and kvalues_mxfp4 (twice those of f4e2m1).
constexpr int8_t tableIQ4_NL[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr int8_t tableMXFP4[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

llvm::ArrayRef<int8_t> tableOf(WeightFormat f) {
  if (f == WeightFormat::IQ4_NL) return tableIQ4_NL;
  if (f == WeightFormat::MXFP4) return tableMXFP4;
  return {};
}

class Values {
public:
  Values(Composer &b, const StoredWeight &w, llvm::ArrayRef<UOpRef> planes) : b(b), w(w), planes(planes) {}
  UOpRef all();
  /// The numbers that scales multiply, as i8: of formats with a scale for 32 elements.
  UOpRef wholes();
  UOpRef plane(StringRef suffix) {
    for (auto [p, x] : llvm::zip(planesOf(w.format), planes))
      if (suffix == p.suffix) return x;
    return nullptr;
  }

private:
  Composer &b;
  const StoredWeight &w;
  llvm::ArrayRef<UOpRef> planes;

  unsigned perElement(StringRef suffix) {
    for (const WeightPlane &p : planesOf(w.format))
      if (suffix == p.suffix) return p.elements;
    return 1;
  }
  UOpRef f32(UOpRef x) { return b.cast(x, DType::F32); }
  /// Each element of the last axis `times` times.
  UOpRef repeated(UOpRef x, int64_t times) {
    if (!x || times == 1) return x;
    Dims each(x->shape.begin(), x->shape.end()), joined = each;
    each.push_back(b.idx(times));
    joined.back() = idxMul(b.c, joined.back(), b.idx(times));
    return b.reshape(b.broadcastTo(b.unsqueeze(x, {int64_t(x->rank())}), each), joined);
  }
  UOpRef further();
  UOpRef code();
  UOpRef codes();
  UOpRef scales(StringRef super, StringRef fine);
};

/// The bits of ".h": bit e % 8 of byte e / 8.
UOpRef Values::further() {
  UOpRef bytes = repeated(plane(".h"), 8);
  if (!bytes) return nullptr;
  Dims split(bytes->shape.begin(), bytes->shape.end()), joined = split;
  split.back() = plane(".h")->shape.back();
  split.push_back(b.idx(8));
  UOpRef eighths = b.bin(Op::Shr, b.reshape(bytes, split), b.iota(DType::U8, {b.idx(8)}, 0));
  return b.bin(Op::And, b.reshape(eighths, joined), 1);
}

/// The codes of more than 4 bits put together, less their offset: u8, or i8.
UOpRef Values::code() {
  UOpRef q = plane(".q");
  if (q->dtype == DType::I8) return q;
  UOpRef code = b.cast(q, DType::U8);
  if (UOpRef h = further()) code = b.bin(Op::Or, code, b.bin(Op::Shl, h, double(bitWidth(q->dtype))));
  if (UOpRef u = plane(".u")) code = b.bin(Op::Or, code, b.bin(Op::Shl, b.cast(u, DType::U8), 4));
  int offset = codeOffset(w.format);
  return offset ? b.bin(Op::Sub, b.cast(code, DType::I8), offset) : code;
}

template <class Bits> static llvm::SmallVector<int64_t, 16> tableBits(llvm::ArrayRef<int8_t> table, Bits bits) {
  llvm::SmallVector<int64_t, 16> all;
  for (int8_t v : table) all.push_back(bits(v));
  return all;
}

/// What the scales multiply, in f32.
UOpRef Values::codes() {
  llvm::ArrayRef<int8_t> table = tableOf(w.format);
  if (table.empty()) return f32(code());
  auto bits = tableBits(table, [](int8_t v) { return int64_t(llvm::bit_cast<uint32_t>(float(v))); });
  return b.make(Op::Lookup16, {b.cast(plane(".q"), DType::U8)}, bits, DType::F32);
}

UOpRef Values::wholes() {
  llvm::ArrayRef<int8_t> table = tableOf(w.format);
  if (table.empty()) return b.cast(code(), DType::I8);
  auto bits = tableBits(table, [](int8_t v) { return int64_t(uint8_t(v)); });
  return b.make(Op::Lookup16, {b.cast(plane(".q"), DType::U8)}, bits, DType::I8);
}

/// A scale for each element: d, of which blocks have one, times the scales of their parts, where they have them.
UOpRef Values::scales(StringRef super, StringRef fine) {
  UOpRef d = plane(super), s = plane(fine);
  if (!d) return nullptr;
  d = f32(d);
  unsigned each = perElement(super);
  if (s) {
    UOpRef code = b.cast(s, s->dtype == DType::I8 ? DType::I8 : DType::U8);
    if (int offset = scaleOffset(w.format)) code = b.bin(Op::Sub, b.cast(code, DType::I8), offset);
    d = b.bin(Op::Mul, repeated(d, each / perElement(fine)), f32(code));
    each = perElement(fine);
  }
  return repeated(d, each);
}

UOpRef Values::all() {
  if (!info(w.format).isBlocked()) return planes[0];
  if (b.failed()) return nullptr;
  UOpRef scale = scales(".d", ".s");
  if (UOpRef e = plane(".e")) { // 2^(e - 128), e below 2 subnormal
    UOpRef x = b.cast(e, DType::U32);
    UOpRef normal = b.bin(Op::Shl, b.bin(Op::Sub, x, 1), 23), small = b.bin(Op::Shl, b.literal(x, 0x00200000), x);
    scale =
        repeated(b.make(Op::Bitcast, {b.select(b.bin(Op::Lt, x, 2), small, normal)}, {}, DType::F32), perElement(".e"));
  }
  UOpRef y = b.bin(Op::Mul, scale, codes());
  if (UOpRef m = plane(".m")) y = b.bin(Op::Add, y, repeated(f32(m), perElement(".m")));
  if (UOpRef t = scales(".dmin", ".t")) y = b.bin(Op::Sub, y, t);
  return y;
}

} // namespace

StoredWeight compose::storeWeight(Composer &b, StringRef name, WeightFormat format, llvm::ArrayRef<int64_t> dims,
                                  llvm::ArrayRef<uint8_t> bytes) {
  StoredWeight w;
  w.format = format;
  for (int64_t d : dims) w.dims.push_back(b.idx(d));
  std::vector<Payload> planes = splitBlocks(format, dims, bytes);
  for (auto [p, payload] : llvm::zip(planesOf(format), planes)) {
    Dims shape;
    for (int64_t d : payload.dims) shape.push_back(b.idx(d));
    auto value = b.c.tryMake(Op::Param, shape, {}, (name + p.suffix).str(), p.dtype);
    if (!value) {
      b.fail(llvm::toString(value.takeError()));
      return w;
    }
    w.planes.push_back(*value);
    b.params.emplace_back();
    b.params.back().value = *value;
    b.params.back().data = std::make_shared<const std::vector<uint8_t>>(std::move(payload.bytes));
    b.params.back().kind = isFloat(info(format).dtype) ? ParamKind::Weight : ParamKind::Fixed;
  }
  return w;
}

UOpRef compose::weightValues(Composer &b, const StoredWeight &w) {
  if (b.failed() || w.planes.empty()) return nullptr;
  return Values(b, w, w.planes).all();
}

UOpRef compose::weightProduct(Composer &b, UOpRef given, const StoredWeight &w) {
  UOpRef values = weightValues(b, w);
  if (!values || !b.requireFloat(given) || !b.requireRank(given, 1)) return nullptr;
  if (w.dims.size() != 2 || !(isFloat(values->dtype)))
    return b.fail(llvm::Twine("the weight is ") + info(w.format).text + dimsText(w.dims) +
                  ", expected a matrix of floats");
  if (!b.requireEqual(given->shape.back(), w.dims[1], "the input's last axis and the weight's")) return nullptr;
  UOpRef x = b.widen(given);
  DType t = x->dtype == DType::F64 || values->dtype == DType::F64 ? DType::F64 : DType::F32;
  ContractSpec spec;
  spec.kept = x->rank();
  spec.reduced = 1;
  Dims extents(x->shape.begin(), x->shape.end());
  for (int64_t axis = 0; axis + 1 < x->rank(); ++axis) spec.a.push_back(label(axis));
  spec.a.push_back(label(spec.kept));
  spec.b = {label(spec.kept - 1), label(spec.kept)};
  extents.back() = w.dims[0];
  extents.push_back(w.dims[1]);
  return b.cast(b.contract(spec, b.cast(x, t), b.cast(values, t), extents), given->dtype);
}

UOpRef compose::weightProductOfBytes(Composer &b, UOpRef given, const StoredWeight &w) {
  constexpr int64_t block = 32;
  bool hasScale =
      llvm::any_of(planesOf(w.format), [](auto &p) { return StringRef(p.suffix) == ".d" && p.elements == block; });
  if (b.failed() || !hasScale || w.dims.size() != 2)
    return b.unsupported(llvm::Twine("a weight that is ") + info(w.format).text + dimsText(w.dims) +
                         " is not multiplied by activations of 8 bits: a matrix with a scale for 32 elements is");
  if (!b.requireFloat(given) || !b.requireRank(given, 1) ||
      !b.requireEqual(given->shape.back(), w.dims[1], "the input's last axis and the weight's"))
    return nullptr;
  Values values(b, w, w.planes);
  UOpRef x = b.cast(given, DType::F32), n = w.dims[0], blocks = values.plane(".d")->shape[1];
  // x' and its scales, of blocks that are an axis of their own.
  Dims split(x->shape.begin(), x->shape.end() - 1), rows = split;
  split.append({blocks, b.idx(block)});
  int64_t kept = int64_t(rows.size());
  UOpRef parts = b.reshape(x, split), most = b.reduce(ReduceKind::Max, b.un(Op::Abs, parts), {kept + 1});
  UOpRef e = b.bin(Op::Div, most, 127), none = b.literal(x, 0), one = b.literal(x, 1);
  UOpRef inverse = b.select(b.bin(Op::Eq, e, none), none, b.bin(Op::Div, one, e));
  UOpRef bytes = b.cast(b.un(Op::RoundEven, b.bin(Op::Mul, parts, inverse)), DType::I8);
  e = b.squeeze(e, {kept + 1});
  UOpRef q = b.reshape(values.wholes(), {n, blocks, b.idx(block)});
  if (b.failed()) return nullptr;
  // Of blocks, then over them.
  Dims extents = rows;
  extents.append({n, blocks, b.idx(block)});
  ContractSpec each, all;
  each.kept = kept + 2, all.kept = kept + 1;
  each.reduced = all.reduced = 1;
  for (int64_t l = 0; l < kept; ++l) each.a.push_back(label(l)), all.a.push_back(label(l));
  each.a.append({label(kept + 1), label(kept + 2)});
  each.b = {label(kept), label(kept + 1), label(kept + 2)};
  UOpRef p = b.contract(each, b.cast(bytes, DType::I32), b.cast(q, DType::I32), extents);
  extents.pop_back();
  UOpRef scale = b.bin(Op::Mul, b.unsqueeze(e, {kept}), b.cast(values.plane(".d"), DType::F32));
  all.a.append({label(kept), label(kept + 1)});
  all.b = all.a;
  UOpRef y = b.contract(all, b.cast(p, DType::F32), scale, extents);
  if (UOpRef m = values.plane(".m")) {
    UOpRef sums = b.squeeze(b.reduce(ReduceKind::Sum, b.cast(bytes, DType::I32), {kept + 1}), {kept + 1});
    all.a.assign(all.b.begin(), all.b.begin() + kept);
    all.a.push_back(label(kept + 1));
    all.b = {label(kept), label(kept + 1)};
    y = b.bin(Op::Add, y, b.contract(all, b.bin(Op::Mul, e, b.cast(sums, DType::F32)), b.cast(m, DType::F32), extents));
  }
  return b.cast(y, given->dtype);
}

UOpRef compose::weightRows(Composer &b, UOpRef index, const StoredWeight &w) {
  if (b.failed() || !index || w.planes.empty()) return nullptr;
  if (w.dims.size() != 2)
    return b.fail(llvm::Twine("the weight is ") + info(w.format).text + dimsText(w.dims) + ", expected a matrix");
  llvm::SmallVector<UOpRef, 5> rows;
  for (UOpRef p : w.planes) {
    rows.push_back(gather(b, p, index, 0));
    if (!rows.back()) return nullptr;
  }
  return Values(b, w, rows).all();
}
