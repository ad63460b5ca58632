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

private:
  Composer &b;
  const StoredWeight &w;
  llvm::ArrayRef<UOpRef> planes;

  UOpRef plane(StringRef suffix) {
    for (auto [p, x] : llvm::zip(planesOf(w.format), planes))
      if (suffix == p.suffix) return x;
    return nullptr;
  }
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

/// What the scales multiply, in f32.
UOpRef Values::codes() {
  UOpRef q = plane(".q");
  if (llvm::ArrayRef<int8_t> table = tableOf(w.format); !table.empty()) {
    llvm::SmallVector<int64_t, 16> bits;
    for (int8_t v : table) bits.push_back(int64_t(llvm::bit_cast<uint32_t>(float(v))));
    return b.make(Op::Lookup16, {b.cast(q, DType::U8)}, bits, DType::F32);
  }
  if (q->dtype == DType::I8) return f32(q);
  UOpRef code = b.cast(q, DType::U8);
  if (UOpRef h = further()) code = b.bin(Op::Or, code, b.bin(Op::Shl, h, double(bitWidth(q->dtype))));
  if (UOpRef u = plane(".u")) code = b.bin(Op::Or, code, b.bin(Op::Shl, b.cast(u, DType::U8), 4));
  if (int offset = codeOffset(w.format)) code = b.bin(Op::Sub, b.cast(code, DType::I8), offset);
  return f32(code);
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
