//===- ByteProduct.cpp: contracts whose operands are bytes ------------------===//
#include "ByteProduct.h"
#include "astra/Compose/Quantization.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <algorithm>
#include <cmath>

using namespace astra;
using namespace astra::quantize;
using compose::Composer;
using compose::Dims;
using llvm::ArrayRef;
using llvm::SmallVector;

/// A kept label that indexes an axis and does nothing else; -1: none.
static int64_t keptLabel(const AffineForm &f, const ContractSpec &s) {
  return f.isLabel() && f.terms[0].first < s.kept ? f.terms[0].first : -1;
}

/// A value whose axes are indexed by forms of kept labels, so that it broadcasts to the contract's result; null where
/// an axis has another form than a label, or a group's number and a channel's in it.
static UOpRef ontoResult(Composer &b, UOpRef value, ArrayRef<AffineForm> forms, const ContractSpec &s,
                         ArrayRef<UOpRef> extents) {
  Dims split;
  SmallVector<int64_t, 4> labels;
  for (auto [axis, f] : llvm::enumerate(forms)) {
    if (int64_t l = keptLabel(f, s); l >= 0) {
      labels.push_back(l), split.push_back(value->shape[axis]);
      continue;
    }
    bool grouped = f.terms.size() == 2 && !f.constant && f.divisor == 1 && f.terms[1].second == 1 &&
                   f.terms[1].first < s.kept && extents[f.terms[1].first]->constIndex() == f.terms[0].second;
    if (!grouped) return nullptr;
    for (auto [l, k] : f.terms) labels.push_back(l), split.push_back(extents[l]);
  }
  SmallVector<int64_t, 4> order = llvm::to_vector<4>(llvm::seq<int64_t>(0, int64_t(labels.size())));
  llvm::sort(order, [&](int64_t x, int64_t y) { return labels[x] < labels[y]; });
  Dims result(s.kept, b.idx(1));
  for (auto [i, l] : llvm::enumerate(labels)) {
    if (llvm::count(labels, l) > 1) return nullptr;
    result[l] = split[i];
  }
  return b.reshape(b.permute(b.reshape(value, split), order), result);
}

UOpRef quantize::productOfBytes(Composer &b, UOpRef n, const ContractSpec &s, unsigned weight, UOpRef q, UOpRef d,
                                UOpRef x, std::optional<Range> range) {
  ArrayRef<AffineForm> wForms = weight ? s.b : s.a, xForms = weight ? s.a : s.b;
  ArrayRef<UOpRef> extents = n->indices().take_front(s.kept + s.reduced);
  for (int64_t l = s.kept; l < s.kept + s.reduced; ++l) // each product is one of a byte of both
    if (extents[l]->constIndex() != 1 && (!hasLabel(wForms, l) || !hasLabel(xForms, l))) return nullptr;
  UOpRef scale = ontoResult(b, d, wForms.take_front(d->rank()), s, extents);
  if (!scale) return nullptr;
  UOpRef value, zero;
  if (range) {
    float least = std::min(range->least, 0.0f), most = std::max(range->most, 0.0f);
    float step = most > least ? (most - least) / 255 : 1.0f;
    float from = std::clamp(std::nearbyint(-least / step), 0.0f, 255.0f);
    UOpRef xScale = b.b.lit(DType::F32, step);
    zero = b.b.lit(DType::U8, from);
    compose::QuantizationOptions options;
    value = compose::quantize(b, x, xScale, zero, options);
    scale = b.bin(Op::Mul, xScale, scale);
  } else {
    SmallVector<int64_t, 4> along, rows;
    SmallVector<AffineForm, 4> rowForms;
    for (auto [axis, f] : llvm::enumerate(xForms))
      if (keptLabel(f, s) >= 0)
        rows.push_back(int64_t(axis)), rowForms.push_back(f);
      else
        along.push_back(int64_t(axis));
    compose::DynamicallyQuantized bytes = compose::quantizeByRange(b, x, along);
    UOpRef xScale = ontoResult(b, b.squeeze(bytes.scale, along), rowForms, s, extents);
    if (!xScale) return nullptr;
    value = bytes.value, zero = bytes.zero;
    scale = b.bin(Op::Mul, xScale, scale);
  }
  UOpRef centered = b.bin(Op::Sub, b.cast(value, DType::I32), b.cast(zero, DType::I32)), wide = b.cast(q, DType::I32);
  if (b.failed()) return nullptr;
  SmallVector<UOpRef, 8> src(n->src.begin(), n->src.end());
  src[weight] = wide, src[!weight] = centered;
  UOpRef sum = b.c.make(n->op, src, encode(s), n->str);
  return b.bin(Op::Mul, b.cast(sum, DType::F32), scale);
}

UOpRef quantize::blockProductOfBytes(Composer &b, UOpRef n, const ContractSpec &s, unsigned weight,
                                     compose::StoredWeight w, UOpRef x) {
  ArrayRef<AffineForm> wForms = weight ? s.b : s.a, xForms = weight ? s.a : s.b;
  bool hasScale = llvm::any_of(compose::planesOf(w.format),
                               [](auto &p) { return llvm::StringRef(p.suffix) == ".d" && p.elements == 32; });
  // x [rows..., k] times the transposed weight [n, k], and nothing else.
  auto is = [](const AffineForm &f, int64_t l) { return f.isLabel() && f.terms[0].first == l; };
  bool plain = hasScale && s.reduced == 1 && s.domain.empty() && wForms.size() == 2 && is(wForms[0], s.kept - 1) &&
               is(wForms[1], s.kept) && int64_t(xForms.size()) == s.kept;
  for (auto [axis, f] : llvm::enumerate(xForms))
    plain = plain && is(f, int64_t(axis) + 1 == s.kept ? s.kept : int64_t(axis));
  if (!plain) return nullptr;
  w.dims = {n->indices()[s.kept - 1], n->indices()[s.kept]};
  return compose::weightProductOfBytes(b, x, w);
}
