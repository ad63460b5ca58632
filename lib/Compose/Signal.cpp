//===- Signal.cpp: Fourier transforms and windows ------------------------===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    what Signal.h says.
#include "astra/Compose/Signal.h"
#include "astra/Compose/Product.h"
#include "astra/IR/Index.h"
#include "astra/Numerics/Functions.h"
#include "astra/Numerics/HostValue.h"
#include <cmath>
#include <cstring>
#include <numbers>

namespace astra::compose {

namespace {

using Number = numerics::Host<double>;

double exactCos(double x) { return numerics::cos(Number(x)).v; }
double exactSin(double x) { return numerics::sin(Number(x)).v; }

void append(Payload &p, double value) {
  uint8_t bytes[8];
  float narrow = float(value);
  size_t width = byteSize(p.dtype);
  std::memcpy(bytes, width == 8 ? static_cast<const void *>(&value) : &narrow, width);
  p.bytes.insert(p.bytes.end(), bytes, bytes + width);
}

/// cos and sin of 2 pi turns / length.
struct Rotation {
  double cos, sin;
  Rotation(uint64_t turns, uint64_t length) {
    unsigned __int128 quarters = static_cast<unsigned __int128>(turns % length) * 4;
    double angle = double(uint64_t(quarters % length)) / double(length) * (std::numbers::pi / 2);
    double c = exactCos(angle), s = exactSin(angle);
    const double turned[4][2] = {{c, s}, {-s, c}, {-c, -s}, {s, -c}};
    cos = turned[uint64_t(quarters / length)][0];
    sin = turned[uint64_t(quarters / length)][1];
  }
};

/// Whether a table of so many rotations is a constant of the module; a greater one is computed in the run.
bool isConstantTable(UOpRef rows, UOpRef columns, UOpRef length) {
  constexpr int64_t most = 1 << 20;
  auto height = rows->constIndex(), width = columns->constIndex();
  return height && width && length->constIndex() && *height <= most && *width <= most && *height * *width <= most;
}

/// cos and, with the sign of the direction, sin of 2 pi row column / length: two tensors [rows, columns].
std::pair<UOpRef, UOpRef> rotations(Composer &b, UOpRef rows, UOpRef columns, UOpRef length, bool inverse, DType t) {
  if (isConstantTable(rows, columns, length)) {
    Payload c{t, {*rows->constIndex(), *columns->constIndex()}, {}}, s = c;
    for (int64_t i = 0; i < c.dims[0]; ++i)
      for (int64_t k = 0; k < c.dims[1]; ++k) {
        Rotation r(uint64_t(i) * uint64_t(k), uint64_t(*length->constIndex()));
        append(c, r.cos);
        append(s, inverse ? r.sin : -r.sin);
      }
    return {b.constant(std::move(c)), b.constant(std::move(s))};
  }
  Dims dims = {rows, columns};
  UOpRef full = b.fromIndex(length, DType::I64),
         turns = b.bin(Op::Mul, b.iota(DType::I64, dims, 0), b.iota(DType::I64, dims, 1));
  UOpRef quarters = b.bin(Op::Mul, b.bin(Op::Mod, turns, full), 4);
  UOpRef quadrant = b.bin(Op::FloorDiv, quarters, full);
  UOpRef part = b.bin(Op::Div, b.cast(b.bin(Op::Mod, quarters, full), DType::F64), b.fromIndex(length, DType::F64));
  UOpRef angle = b.bin(Op::Mul, part, std::numbers::pi / 2), c = b.un(Op::Cos, angle), s = b.un(Op::Sin, angle);
  auto chosen = [&](UOpRef even, UOpRef odd, UOpRef flips) {
    UOpRef isOdd = b.bin(Op::Eq, b.bin(Op::And, quadrant, b.b.litInt(DType::I64, 1)), 1);
    UOpRef value = b.select(isOdd, odd, even);
    return b.cast(b.select(flips, b.un(Op::Neg, value), value), t);
  };
  UOpRef one = b.b.litInt(DType::I64, 1);
  UOpRef cosFlips = b.bin(Op::Eq, b.bin(Op::Shr, b.bin(Op::Add, quadrant, one), one), 1); // quadrants 1 and 2
  UOpRef lower = b.bin(Op::Le, b.b.litInt(DType::I64, 2), quadrant), sine = chosen(s, c, lower);
  return {chosen(c, s, cosFlips), inverse ? sine : b.un(Op::Neg, sine)};
}

/// The real or the imaginary part.
UOpRef partOf(Composer &b, UOpRef x, int64_t i) { return x ? b.part(x, x->rank() - 1, i, 1) : nullptr; }

UOpRef pairOf(Composer &b, UOpRef re, UOpRef im) { return re && im ? b.concat({re, im}, re->rank() - 1) : nullptr; }

/// The rotations as a matrix [rows * parts, columns * 2] on vectors of real or complex numbers.
UOpRef rotationMatrix(Composer &b, UOpRef rows, UOpRef parts, UOpRef columns, UOpRef length, bool inverse, DType t) {
  UOpRef two = b.idx(2), height = idxMul(b.c, rows, parts), width = idxMul(b.c, columns, two);
  if (isConstantTable(rows, columns, length)) {
    Payload m{t, {*height->constIndex(), *width->constIndex()}, {}};
    for (int64_t i = 0; i < m.dims[0]; ++i)
      for (int64_t k = 0; k < m.dims[1] / 2; ++k) {
        int64_t row = parts == two ? i / 2 : i;
        Rotation r(uint64_t(row) * uint64_t(k), uint64_t(*length->constIndex()));
        double s = inverse ? r.sin : -r.sin;
        bool imaginary = parts == two && i % 2;
        append(m, imaginary ? -s : r.cos);
        append(m, imaginary ? r.cos : s);
      }
    return b.constant(std::move(m));
  }
  auto [c, s] = rotations(b, rows, columns, length, inverse, t);
  c = b.unsqueeze(c, {1, 3});
  s = b.unsqueeze(s, {1, 3}); // [rows, part, columns, part]
  UOpRef matrix = pairOf(b, c, s);
  if (parts == two) matrix = b.concat({matrix, pairOf(b, b.un(Op::Neg, s), c)}, 1);
  return b.reshape(matrix, {height, width});
}

/// x [.., rows, 1 or 2] times the rotations: [.., columns, 2]. One product, over rows and parts.
UOpRef transformed(Composer &b, UOpRef x, UOpRef columns, UOpRef length, bool inverse) {
  if (!x) return nullptr;
  UOpRef rows = x->shape[x->rank() - 2], parts = x->shape.back();
  UOpRef matrix = rotationMatrix(b, rows, parts, columns, length, inverse, x->dtype);
  Dims flat(x->shape.begin(), x->shape.end() - 2), full = flat;
  flat.push_back(idxMul(b.c, rows, parts));
  full.append({columns, b.idx(2)});
  return b.reshape(product(b, b.reshape(x, flat), matrix), full);
}

/// The factor of a length that is split off next: the greatest up to its root and 64, else the least prime.
int64_t nextFactor(int64_t length) {
  constexpr int64_t direct = 64;
  if (length <= direct) return length;
  int64_t root = std::min<int64_t>(direct, std::max<int64_t>(8, int64_t(std::sqrt(double(length)))));
  for (int64_t f = root; f > 1; --f)
    if (length % f == 0) return f;
  for (int64_t f = root; f * f <= length; ++f)
    if (length % f == 0) return f;
  return length;
}

/// The first `columns` frequencies of x [batch, length, 1 or 2] along axis 1: [batch, columns, 2], not divided by the
/// length.
UOpRef fourier(Composer &b, UOpRef x, UOpRef columns, bool inverse) {
  if (!x || b.failed()) return nullptr;
  UOpRef batch = x->shape[0], length = x->shape[1], one = b.idx(1), two = b.idx(2);
  std::optional<int64_t> known = length->constIndex();
  if (!known || nextFactor(*known) == *known) return transformed(b, x, columns, length, inverse);
  // x as [batch, rest, done, part]: `done` frequencies are transformed, the least factor of the number first.
  UOpRef done = one;
  x = b.reshape(x, {batch, length, one, x->shape[2]});
  for (int64_t rest = *known; rest > 1 && x;) {
    int64_t f = nextFactor(rest);
    UOpRef factor = b.idx(f), total = b.idx(rest), others = b.idx(rest / f);
    x = b.permute(b.reshape(x, {batch, factor, others, done, x->shape[3]}), {0, 2, 3, 1, 4});
    x = transformed(b, x, factor, factor, inverse); // [batch, others, done, factor, part]
    if (rest > f && x) {
      auto [c, s] = rotations(b, others, factor, total, inverse, x->dtype);
      c = b.unsqueeze(c, {1, 3});
      s = b.unsqueeze(s, {1, 3}); // [others, 1, factor, 1]
      UOpRef re = partOf(b, x, 0), im = partOf(b, x, 1);
      if (b.failed()) return nullptr;
      c = b.broadcastTo(c, re->shape);
      s = b.broadcastTo(s, re->shape);
      UOpRef real = b.make(Op::Fma, {re, c, b.un(Op::Neg, b.bin(Op::Mul, im, s))}); // the contract's complex product
      UOpRef imaginary = b.make(Op::Fma, {re, s, b.bin(Op::Mul, im, c)});
      x = pairOf(b, real, imaginary);
    }
    done = idxMul(b.c, factor, done);
    x = b.reshape(b.permute(x, {0, 1, 3, 2, 4}), {batch, others, done, two});
    rest /= f;
  }
  UOpRef zero = b.idx(0);
  return b.shrink(b.reshape(x, {batch, length, two}), {zero, zero, zero}, {batch, columns, two});
}

/// x cut or filled with zeros to an extent along an axis.
UOpRef fitted(Composer &b, UOpRef x, int64_t axis, UOpRef extent) {
  if (!x || x->shape[axis] == extent) return x;
  Dims none(x->rank(), b.idx(0)), size(x->shape.begin(), x->shape.end()), fill = none;
  size[axis] = extent;
  fill[axis] = idxSub(b.c, extent, x->shape[axis]);
  if (fill[axis]->hi <= 0) return b.shrink(x, none, size);
  if (fill[axis]->lo >= 0) return b.pad(x, none, fill, 0);
  return b.unsupported("the extent " + dimsText(x->shape[axis]) + " may be above or below the " + dimsText(extent) +
                       " that the transform takes: fix the dim" + b.hints.means());
}

/// The transform of x along an axis that is not the last; `length` null: that of the axis.
UOpRef transform(Composer &b, UOpRef x, int64_t axis, UOpRef length, const FourierOptions &d) {
  if (b.failed()) return nullptr;
  UOpRef one = b.idx(1), two = b.idx(2), half = nullptr, parts = x->shape.back();
  if (parts != one && parts != two)
    return b.fail("the last extent of " + dimsText(x->shape) + " must be 1 (real) or 2 (complex)");
  bool back = d.inverse && d.onesided;
  if (!length) length = back ? idxMul(b.c, two, idxSub(b.c, x->shape[axis], one)) : x->shape[axis];
  if (length->lo < 1) return b.fail("the length " + dimsText(length) + " of the transform may be less than 1");
  half = idxAdd(b.c, idxDiv(b.c, length, two), one);
  if (d.onesided && !d.inverse && parts == two)
    return b.fail("a one-sided transform of complex values is not possible");
  // [batch, axis, part]
  Ints perm, home(x->rank() - 1);
  for (int64_t i = 0; i + 1 < int64_t(x->rank()); ++i)
    if (i != axis) perm.push_back(i);
  perm.push_back(axis);
  for (auto [to, from] : llvm::enumerate(perm)) home[from] = to;
  perm.push_back(x->rank() - 1);
  home.push_back(x->rank() - 1);
  UOpRef moved = b.permute(fitted(b, x, axis, back ? half : length), perm);
  if (!moved) return nullptr;
  Dims outer(moved->shape.begin(), moved->shape.end() - 2);
  moved = b.reshape(moved, {idxProduct(b.c, outer), moved->shape[moved->rank() - 2], parts});
  if (!moved) return nullptr;
  if (back) { // the other half are the conjugates, backwards
    UOpRef zero = b.idx(0), others = idxSub(b.c, length, half);
    if (parts == one) moved = pairOf(b, moved, b.broadcastTo(b.b.lit(moved->dtype, 0), moved->shape));
    UOpRef mirror = moved ? b.shrink(moved, {zero, one, zero}, {moved->shape[0], others, two}) : nullptr;
    mirror = b.make(Op::Flip, {mirror}, {1});
    mirror = pairOf(b, partOf(b, mirror, 0), b.un(Op::Neg, partOf(b, mirror, 1)));
    moved = b.concat({moved, mirror}, 1);
  }
  UOpRef y = fourier(b, moved, d.onesided && !d.inverse ? half : length, d.inverse);
  if (d.inverse) y = b.bin(Op::Div, y, b.fromIndex(length, x->dtype));
  if (back) y = partOf(b, y, 0);
  if (!y) return nullptr;
  outer.append({y->shape[1], y->shape[2]});
  return b.permute(b.reshape(y, outer), home);
}

} // namespace

UOpRef fourierTransform(Composer &b, UOpRef given, int64_t axis, UOpRef length, const FourierOptions &options) {
  UOpRef x = b.widen(given);
  if (b.failed() || !b.requireFloat(x) || !b.requireRank(x, 2)) return nullptr;
  axis = b.axis(axis, x->rank());
  if (axis + 1 == int64_t(x->rank())) b.fail("axis " + llvm::Twine(axis) + " holds the parts of complex values");
  return b.cast(transform(b, x, axis, length, options), given->dtype);
}

UOpRef shortTimeFourierTransform(Composer &b, UOpRef signal, UOpRef step, UOpRef givenWindow, UOpRef given,
                                 bool onesided) {
  UOpRef x = b.widen(signal), window = b.widen(givenWindow);
  if (b.failed() || !b.requireFloat(x) || !b.requireRank(x, 3, 3)) return nullptr;
  if (window && !b.requireRank(window, 1, 1)) return nullptr;
  UOpRef length = given ? given : window ? window->shape[0] : x->shape[1];
  if (!length->constIndex() || !step->constIndex())
    b.unsupported("the frame length " + dimsText(length) + " and the frame step " + dimsText(step) +
                  " must be constants");
  if (window && window->shape[0] != length)
    b.fail("the window has " + dimsText(window->shape) + " elements, the frame length is " + dimsText(length));
  if (b.failed()) return nullptr;
  UOpRef frames = b.make(Op::Window, {x}, {1, *length->constIndex(), *step->constIndex(), 1}); // [b, f, part, time]
  frames = b.permute(frames, {0, 1, 3, 2});
  if (window) frames = b.bin(Op::Mul, frames, b.unsqueeze(b.cast(window, x->dtype), {1}));
  return frames ? b.cast(transform(b, frames, 2, nullptr, {false, onesided}), signal->dtype) : nullptr;
}

// ---- windows and filters

UOpRef window(Composer &b, const CosineWindow &form, UOpRef size, bool periodic, DType type) {
  if (!size || b.failed()) return nullptr;
  UOpRef turn = b.fromIndex(periodic ? size : idxSub(b.c, size, b.idx(1)), DType::F64);
  UOpRef i = b.iota(DType::F64, {size}, 0);
  auto wave = [&](double times) {
    return b.un(Op::Cos, b.bin(Op::Div, b.bin(Op::Mul, i, times * 2 * std::numbers::pi), turn));
  };
  UOpRef y = b.bin(Op::Sub, b.b.lit(DType::F64, form.a0), b.bin(Op::Mul, wave(1), form.a1));
  if (form.a2 != 0) y = b.bin(Op::Add, y, b.bin(Op::Mul, wave(2), form.a2));
  return b.cast(y, type);
}

UOpRef melWeights(Composer &b, int64_t bands, int64_t length, int64_t rate, double lowEdge, double highEdge,
                  DType type) {
  for (int64_t v : {bands, length, rate})
    if (v < 1 || v > 1 << 30) b.fail("a size of " + llvm::Twine(v) + " is not in 1..2^30");
  if (b.failed()) return nullptr;
  int64_t bins = length / 2 + 1;
  if (bands * bins > 1 << 24)
    return b.unsupported("a matrix of " + llvm::Twine(bins) + " x " + llvm::Twine(bands) +
                         " weights, at most 2^24 are supported");
  const double ln10 = std::numbers::ln10;
  auto mel = [&](double hertz) { return 2595 * numerics::log1p(Number(hertz / 700)).v / ln10; };
  double low = mel(lowEdge), step = (mel(highEdge) - low) / double(bands + 2);
  auto corner = [&](int64_t i) {
    double hertz = 700 * numerics::expm1(Number((double(i) * step + low) / 2595 * ln10)).v;
    return std::floor(double(length + 1) * hertz / double(rate));
  };
  std::vector<double> weights(bands * bins, 0.0);
  for (int64_t i = 0; i < bands; ++i) {
    double at[3] = {corner(i), corner(i + 1), corner(i + 2)};
    if (!(at[0] >= 0 && at[0] <= at[1] && at[1] <= at[2] && at[1] < double(bins) && at[2] <= double(bins)))
      return b.fail("band " + llvm::Twine(i) + " of the edges leaves the " + llvm::Twine(bins) +
                    " bins of the spectrum");
    int64_t left = int64_t(at[0]), centre = int64_t(at[1]), right = int64_t(at[2]);
    for (int64_t j = left; j <= centre; ++j)
      weights[j * bands + i] = left == centre ? 1 : double(j - left) / double(centre - left);
    for (int64_t j = centre; j < right; ++j) weights[j * bands + i] = double(right - j) / double(right - centre);
  }
  Payload p{type == DType::F32 ? type : DType::F64, {bins, bands}, {}};
  for (double w : weights) append(p, w);
  return b.cast(b.constant(std::move(p)), type);
}

} // namespace astra::compose
