//===- Fourier.cpp: Fourier transforms of complex values -----------------===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    what Fourier.h says; parts of complex values stand along a last axis while they are transformed.
#include "astra/Compose/Fourier.h"
#include "astra/Compose/ComplexFunction.h"
#include "astra/Compose/Signal.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

namespace {

enum class Kind { Complex, FromReal, ToReal };

UOpRef withParts(Composer &b, UOpRef x) {
  if (!x) return nullptr;
  Ints last = {int64_t(x->rank())};
  if (!isComplex(x->dtype)) return b.unsqueeze(x, last);
  UOpRef re = b.unsqueeze(b.un(Op::Real, x), last), im = b.unsqueeze(b.un(Op::Imag, x), last);
  return re && im ? b.concat({re, im}, last[0]) : nullptr;
}

FourierNorm otherWay(FourierNorm n) {
  return n == FourierNorm::Backward ? FourierNorm::Forward : n == FourierNorm::Forward ? FourierNorm::Backward : n;
}

UOpRef transform(Composer &b, UOpRef x, const FourierAxis &o, Kind kind, bool inverse) {
  if (b.failed() || !b.requireRank(x, 1)) return nullptr;
  if (!isComplex(x->dtype) && x->dtype != DType::F32 && x->dtype != DType::F64)
    return b.fail(llvm::Twine("a Fourier transform of type ") + info(x->dtype).text +
                  ", expected f32, f64, complex64 or complex128");
  if (kind == Kind::FromReal && isComplex(x->dtype))
    return b.fail(llvm::Twine("a one-sided transform of type ") + info(x->dtype).text + ", expected f32 or f64");
  int64_t axis = b.axis(o.axis, x->rank());
  if (b.failed()) return nullptr;
  UOpRef length = o.length;
  if (!length && kind == Kind::ToReal) length = idxMul(b.c, b.idx(2), idxSub(b.c, x->shape[axis], b.idx(1)));
  if (!length) length = x->shape[axis];
  UOpRef y = fourierTransform(b, withParts(b, x), axis, length, {inverse, kind != Kind::Complex});
  if (!y) return nullptr;
  // The transform divides by the length on the way back.
  if (o.norm != FourierNorm::Backward) {
    UOpRef count = b.fromIndex(length, y->dtype);
    if (o.norm == FourierNorm::Orthogonal) count = b.un(Op::Sqrt, count);
    y = b.bin(inverse ? Op::Mul : Op::Div, y, count);
  }
  if (!y) return nullptr;
  int64_t last = int64_t(y->rank()) - 1;
  return kind == Kind::ToReal ? b.squeeze(y, {last})
                              : b.make(Op::Complex, {b.element(y, last, 0), b.element(y, last, 1)});
}

/// The transforms of whole arrays, in the order in which they are done: the last axis first.
std::vector<FourierAxis> axesOf(Composer &b, UOpRef x, const FourierAxes &o) {
  std::vector<FourierAxis> all;
  if (!b.requireRank(x, 1)) return all;
  int64_t rank = x->rank(), count = o.axes.empty() ? o.lengths.empty() ? rank : o.lengths.size() : o.axes.size();
  if (!o.lengths.empty() && int64_t(o.lengths.size()) != count)
    b.fail("found " + llvm::Twine(o.lengths.size()) + " lengths for " + llvm::Twine(count) + " axes");
  if (count > rank) b.fail("found " + llvm::Twine(count) + " axes of a tensor of rank " + llvm::Twine(rank));
  b.axes(o.axes, rank); // refuses one that is named twice
  for (int64_t i = count; i-- > 0 && !b.failed();)
    all.push_back({o.axes.empty() ? rank - count + i : o.axes[i], o.lengths.empty() ? nullptr : o.lengths[i], o.norm});
  return all;
}

UOpRef rolled(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> given, bool back) {
  if (!x) return nullptr;
  Ints axes = given.empty() ? axesBetween(0, x->rank()) : b.axes(given, x->rank());
  for (int64_t axis : axes) {
    if (b.failed()) return nullptr;
    UOpRef extent = x->shape[axis], half = idxDiv(b.c, extent, b.idx(2)), other = idxSub(b.c, extent, half);
    UOpRef behind = back ? other : half, before = back ? half : other; // the last so many come to the front
    UOpRef last = b.part(x, axis, before, behind), first = b.part(x, axis, b.idx(0), before);
    x = last && first ? b.concat({last, first}, axis) : nullptr;
  }
  return x;
}

UOpRef frequencies(Composer &b, UOpRef length, UOpRef count, double spacing, DType type) {
  if (!length || b.failed()) return nullptr;
  if (!isFloat(type)) return b.fail(llvm::Twine("frequencies of type ") + info(type).text);
  if (!(spacing == spacing) || spacing == 0) return b.fail("the spacing of the samples is 0 or not a number");
  if (!b.requireLeast(length, 1, "the length", "less than 1")) return nullptr;
  UOpRef i = b.iota(DType::I64, {count}, 0), n = b.fromIndex(length, DType::I64);
  UOpRef positive = b.bin(Op::Lt, i, b.fromIndex(idxCeilDiv(b.c, length, b.idx(2)), DType::I64));
  if (count != length) positive = b.b.lit(DType::Bool, 1);
  UOpRef turn = b.bin(Op::Mul, b.fromIndex(length, DType::F64), spacing);
  return b.cast(b.bin(Op::Div, b.cast(b.select(positive, i, b.bin(Op::Sub, i, n)), DType::F64), turn), type);
}

} // namespace

UOpRef fft(Composer &b, UOpRef x, const FourierAxis &o) { return transform(b, x, o, Kind::Complex, false); }
UOpRef ifft(Composer &b, UOpRef x, const FourierAxis &o) { return transform(b, x, o, Kind::Complex, true); }
UOpRef rfft(Composer &b, UOpRef x, const FourierAxis &o) { return transform(b, x, o, Kind::FromReal, false); }
UOpRef irfft(Composer &b, UOpRef x, const FourierAxis &o) { return transform(b, x, o, Kind::ToReal, true); }

UOpRef hfft(Composer &b, UOpRef x, const FourierAxis &given) {
  FourierAxis o = given;
  o.norm = otherWay(o.norm);
  return irfft(b, conjugate(b, x), o);
}
UOpRef ihfft(Composer &b, UOpRef x, const FourierAxis &given) {
  FourierAxis o = given;
  o.norm = otherWay(o.norm);
  return conjugate(b, rfft(b, x, o));
}

UOpRef fftn(Composer &b, UOpRef x, const FourierAxes &options) {
  for (const FourierAxis &a : axesOf(b, x, options)) x = fft(b, x, a);
  return b.failed() ? nullptr : x;
}
UOpRef ifftn(Composer &b, UOpRef x, const FourierAxes &options) {
  for (const FourierAxis &a : axesOf(b, x, options)) x = ifft(b, x, a);
  return b.failed() ? nullptr : x;
}
UOpRef rfftn(Composer &b, UOpRef x, const FourierAxes &options) {
  for (auto [i, a] : llvm::enumerate(axesOf(b, x, options))) x = i == 0 ? rfft(b, x, a) : fft(b, x, a);
  return b.failed() ? nullptr : x;
}
UOpRef irfftn(Composer &b, UOpRef x, const FourierAxes &options) {
  std::vector<FourierAxis> all = axesOf(b, x, options);
  for (const FourierAxis &a : llvm::reverse(llvm::ArrayRef(all).drop_front(!all.empty()))) x = ifft(b, x, a);
  return all.empty() || b.failed() ? nullptr : irfft(b, x, all.front());
}

UOpRef fftfreq(Composer &b, UOpRef length, double spacing, DType type) {
  return frequencies(b, length, length, spacing, type);
}
UOpRef rfftfreq(Composer &b, UOpRef length, double spacing, DType type) {
  if (!length) return nullptr;
  return frequencies(b, length, idxAdd(b.c, idxDiv(b.c, length, b.idx(2)), b.idx(1)), spacing, type);
}
UOpRef fftshift(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes) { return rolled(b, x, axes, false); }
UOpRef ifftshift(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes) { return rolled(b, x, axes, true); }

} // namespace astra::compose
