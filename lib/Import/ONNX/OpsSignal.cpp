//===- OpsSignal.cpp: Fourier transforms and windows -----------------------===//
// Takes:    nodes on signals [.., time, .., 1 (real) or 2 (real and imaginary part)].
// Gives:    a transform as matrix products: its length is cut into factors of about its root (J. Cooley and J. Tukey),
//           one product with the rotations of each factor, a rotation of every element between two of them.
// Keeps:    rotations are computed in f64 by the contract's functions, the angle reduced to a quadrant in integers, and
//           rounded once; transforms of f16 and bf16 compute in f32.
#include "OpTable.h"
#include "astra/Compose/Product.h"
#include "astra/IR/Index.h"
#include "astra/Numerics/Functions.h"
#include "astra/Numerics/HostValue.h"
#include "onnx.pb.h"
#include <cmath>
#include <cstring>
#include <numbers>

namespace astra::onnx {

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
std::pair<UOpRef, UOpRef> rotations(Node &n, UOpRef rows, UOpRef columns, UOpRef length, bool inverse, DType t) {
  if (isConstantTable(rows, columns, length)) {
    Payload c{t, {*rows->constIndex(), *columns->constIndex()}, {}}, s = c;
    for (int64_t i = 0; i < c.dims[0]; ++i)
      for (int64_t k = 0; k < c.dims[1]; ++k) {
        Rotation r(uint64_t(i) * uint64_t(k), uint64_t(*length->constIndex()));
        append(c, r.cos);
        append(s, inverse ? r.sin : -r.sin);
      }
    return {n.parameter(std::move(c)), n.parameter(std::move(s))};
  }
  Dims dims = {rows, columns};
  UOpRef full = n.fromIndex(length, DType::I64),
         turns = n.bin(Op::Mul, n.iota(DType::I64, dims, 0), n.iota(DType::I64, dims, 1));
  UOpRef quarters = n.bin(Op::Mul, n.bin(Op::Mod, turns, full), 4);
  UOpRef quadrant = n.bin(Op::FloorDiv, quarters, full);
  UOpRef part = n.bin(Op::Div, n.cast(n.bin(Op::Mod, quarters, full), DType::F64), n.fromIndex(length, DType::F64));
  UOpRef angle = n.bin(Op::Mul, part, std::numbers::pi / 2), c = n.un(Op::Cos, angle), s = n.un(Op::Sin, angle);
  auto chosen = [&](UOpRef even, UOpRef odd, UOpRef flips) {
    UOpRef isOdd = n.bin(Op::Eq, n.bin(Op::And, quadrant, n.b.litInt(DType::I64, 1)), 1);
    UOpRef value = n.select(isOdd, odd, even);
    return n.cast(n.select(flips, n.un(Op::Neg, value), value), t);
  };
  UOpRef one = n.b.litInt(DType::I64, 1);
  UOpRef cosFlips = n.bin(Op::Eq, n.bin(Op::Shr, n.bin(Op::Add, quadrant, one), one), 1); // quadrants 1 and 2
  UOpRef lower = n.bin(Op::Le, n.b.litInt(DType::I64, 2), quadrant), sine = chosen(s, c, lower);
  return {chosen(c, s, cosFlips), inverse ? sine : n.un(Op::Neg, sine)};
}

UOpRef part(Node &n, UOpRef x, int64_t i) {
  if (!x) return nullptr;
  Dims begin(x->rank(), n.c.index(0)), size(x->shape.begin(), x->shape.end());
  begin.back() = n.c.index(i);
  size.back() = n.c.index(1);
  return n.shrink(x, begin, size);
}

UOpRef pairOf(Node &n, UOpRef re, UOpRef im) { return re && im ? n.concat({re, im}, re->rank() - 1) : nullptr; }

/// The rotations as a matrix [rows * parts, columns * 2] on vectors of real or complex numbers.
UOpRef rotationMatrix(Node &n, UOpRef rows, UOpRef parts, UOpRef columns, UOpRef length, bool inverse, DType t) {
  UOpRef two = n.c.index(2), height = idxMul(n.c, rows, parts), width = idxMul(n.c, columns, two);
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
    return n.parameter(std::move(m));
  }
  auto [c, s] = rotations(n, rows, columns, length, inverse, t);
  c = n.unsqueeze(c, {1, 3});
  s = n.unsqueeze(s, {1, 3}); // [rows, part, columns, part]
  UOpRef matrix = pairOf(n, c, s);
  if (parts == two) matrix = n.concat({matrix, pairOf(n, n.un(Op::Neg, s), c)}, 1);
  return n.reshape(matrix, {height, width});
}

/// x [.., rows, 1 or 2] times the rotations: [.., columns, 2]. One product, over rows and parts.
UOpRef transformed(Node &n, UOpRef x, UOpRef columns, UOpRef length, bool inverse) {
  if (!x) return nullptr;
  UOpRef rows = x->shape[x->rank() - 2], parts = x->shape.back();
  UOpRef matrix = rotationMatrix(n, rows, parts, columns, length, inverse, x->dtype);
  Dims flat(x->shape.begin(), x->shape.end() - 2), full = flat;
  flat.push_back(idxMul(n.c, rows, parts));
  full.append({columns, n.c.index(2)});
  return n.reshape(product(n, n.reshape(x, flat), matrix), full);
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
UOpRef fourier(Node &n, UOpRef x, UOpRef columns, bool inverse) {
  if (!x || n.failed()) return nullptr;
  UOpRef batch = x->shape[0], length = x->shape[1], one = n.c.index(1), two = n.c.index(2);
  std::optional<int64_t> known = length->constIndex();
  if (!known || nextFactor(*known) == *known) return transformed(n, x, columns, length, inverse);
  // x as [batch, rest, done, part]: `done` frequencies are transformed, the least factor of the number first.
  UOpRef done = one;
  x = n.reshape(x, {batch, length, one, x->shape[2]});
  for (int64_t rest = *known; rest > 1 && x;) {
    int64_t f = nextFactor(rest);
    UOpRef factor = n.c.index(f), total = n.c.index(rest), others = n.c.index(rest / f);
    x = n.permute(n.reshape(x, {batch, factor, others, done, x->shape[3]}), {0, 2, 3, 1, 4});
    x = transformed(n, x, factor, factor, inverse); // [batch, others, done, factor, part]
    if (rest > f && x) {
      auto [c, s] = rotations(n, others, factor, total, inverse, x->dtype);
      c = n.unsqueeze(c, {1, 3});
      s = n.unsqueeze(s, {1, 3}); // [others, 1, factor, 1]
      UOpRef re = part(n, x, 0), im = part(n, x, 1);
      if (n.failed()) return nullptr;
      c = n.broadcastTo(c, re->shape);
      s = n.broadcastTo(s, re->shape);
      UOpRef real = n.make(Op::Fma, {re, c, n.un(Op::Neg, n.bin(Op::Mul, im, s))}); // the contract's complex product
      UOpRef imaginary = n.make(Op::Fma, {re, s, n.bin(Op::Mul, im, c)});
      x = pairOf(n, real, imaginary);
    }
    done = idxMul(n.c, factor, done);
    x = n.reshape(n.permute(x, {0, 1, 3, 2, 4}), {batch, others, done, two});
    rest /= f;
  }
  UOpRef zero = n.c.index(0);
  return n.shrink(n.reshape(x, {batch, length, two}), {zero, zero, zero}, {batch, columns, two});
}

/// x cut or filled with zeros to an extent along an axis.
UOpRef fitted(Node &n, UOpRef x, int64_t axis, UOpRef extent) {
  if (!x || x->shape[axis] == extent) return x;
  Dims none(x->rank(), n.c.index(0)), size(x->shape.begin(), x->shape.end()), fill = none;
  size[axis] = extent;
  fill[axis] = idxSub(n.c, extent, x->shape[axis]);
  if (fill[axis]->hi <= 0) return n.shrink(x, none, size);
  if (fill[axis]->lo >= 0) return n.pad(x, none, fill, 0);
  return n.unsupported("the extent " + dimsText(x->shape[axis]) + " may be above or below the " + dimsText(extent) +
                       " that the transform takes: fix the dim with --dim");
}

struct Direction {
  bool inverse, onesided;
};

/// The transform of x along an axis that is not the last; `length` null: that of the axis.
UOpRef transform(Node &n, UOpRef x, int64_t axis, UOpRef length, Direction d) {
  if (n.failed()) return nullptr;
  UOpRef one = n.c.index(1), two = n.c.index(2), half = nullptr, parts = x->shape.back();
  if (parts != one && parts != two)
    return n.fail("the last extent of " + dimsText(x->shape) + " must be 1 (real) or 2 (complex)");
  bool back = d.inverse && d.onesided;
  if (!length) length = back ? idxMul(n.c, two, idxSub(n.c, x->shape[axis], one)) : x->shape[axis];
  if (length->lo < 1) return n.fail("the length " + dimsText(length) + " of the transform may be less than 1");
  half = idxAdd(n.c, idxDiv(n.c, length, two), one);
  if (d.onesided && !d.inverse && parts == two)
    return n.fail("a one-sided transform of complex values is not possible");
  // [batch, axis, part]
  Ints perm, home(x->rank() - 1);
  for (int64_t i = 0; i + 1 < int64_t(x->rank()); ++i)
    if (i != axis) perm.push_back(i);
  perm.push_back(axis);
  for (auto [to, from] : llvm::enumerate(perm)) home[from] = to;
  perm.push_back(x->rank() - 1);
  home.push_back(x->rank() - 1);
  UOpRef moved = n.permute(fitted(n, x, axis, back ? half : length), perm);
  if (!moved) return nullptr;
  Dims outer(moved->shape.begin(), moved->shape.end() - 2);
  moved = n.reshape(moved, {idxProduct(n.c, outer), moved->shape[moved->rank() - 2], parts});
  if (!moved) return nullptr;
  if (back) { // the other half are the conjugates, backwards
    UOpRef zero = n.c.index(0), others = idxSub(n.c, length, half);
    if (parts == one) moved = pairOf(n, moved, n.broadcastTo(n.b.lit(moved->dtype, 0), moved->shape));
    UOpRef mirror = moved ? n.shrink(moved, {zero, one, zero}, {moved->shape[0], others, two}) : nullptr;
    mirror = n.make(Op::Flip, {mirror}, {1});
    mirror = pairOf(n, part(n, mirror, 0), n.un(Op::Neg, part(n, mirror, 1)));
    moved = n.concat({moved, mirror}, 1);
  }
  UOpRef y = fourier(n, moved, d.onesided && !d.inverse ? half : length, d.inverse);
  if (d.inverse) y = n.bin(Op::Div, y, n.fromIndex(length, x->dtype));
  if (back) y = part(n, y, 0);
  if (!y) return nullptr;
  outer.append({y->shape[1], y->shape[2]});
  return n.permute(n.reshape(y, outer), home);
}

/// A scalar input that follows from constants and shapes; null where it is absent.
UOpRef knownScalar(Node &n, unsigned i, const char *what) {
  if (!n.has(i)) return nullptr;
  Dims values = n.knownDims(i, what);
  if (!n.failed() && values.size() != 1) n.fail(llvm::Twine(what) + " must be a scalar");
  return n.failed() ? nullptr : values[0];
}

/// Up to opset 19 the axis is an attribute.
template <bool axisIsInput> void dft(Node &n) {
  Direction d{n.intAttr("inverse", 0) != 0, n.intAttr("onesided", 0) != 0};
  UOpRef x = n.widen(n.in(0)), length = knownScalar(n, 1, "the length of the transform");
  int64_t axis = axisIsInput ? -2 : n.intAttr("axis", 1);
  if (axisIsInput && n.has(2)) {
    UOpRef given = knownScalar(n, 2, "the axis");
    if (given && !given->constIndex()) n.fail("the axis must be a constant");
    if (given) axis = given->constIndex().value_or(0);
  }
  if (n.failed() || !n.requireFloat(x) || !n.requireRank(x, 2)) return;
  axis = n.axis(axis, x->rank());
  if (axis + 1 == int64_t(x->rank())) n.fail("axis " + llvm::Twine(axis) + " holds the parts of complex values");
  n.give(n.cast(transform(n, x, axis, length, d), n.in(0)->dtype));
}

/// Frames of a signal [batch, time, part], each times the window, transformed.
void stft(Node &n) {
  bool onesided = n.intAttr("onesided", 1) != 0;
  UOpRef x = n.widen(n.in(0)), step = n.in(1) ? knownScalar(n, 1, "the frame step") : nullptr,
         given = knownScalar(n, 3, "the frame length");
  UOpRef window = n.has(2) ? n.widen(n.in(2)) : nullptr;
  if (n.failed() || !n.requireFloat(x) || !n.requireRank(x, 3, 3)) return;
  if (window && !n.requireRank(window, 1, 1)) return;
  UOpRef length = given ? given : window ? window->shape[0] : x->shape[1];
  if (!length->constIndex() || !step->constIndex())
    n.unsupported("the frame length " + dimsText(length) + " and the frame step " + dimsText(step) +
                  " must be constants");
  if (window && window->shape[0] != length)
    n.fail("the window has " + dimsText(window->shape) + " elements, the frame length is " + dimsText(length));
  if (n.failed()) return;
  UOpRef frames = n.make(Op::Window, {x}, {1, *length->constIndex(), *step->constIndex(), 1}); // [b, f, part, time]
  frames = n.permute(frames, {0, 1, 3, 2});
  if (window) frames = n.bin(Op::Mul, frames, n.unsqueeze(n.cast(window, x->dtype), {1}));
  if (frames) n.give(n.cast(transform(n, frames, 2, nullptr, {false, onesided}), n.in(0)->dtype));
}

// ---- windows and filters

/// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n) in f64, n the size or, if symmetric, one less.
struct Cosines {
  double a0, a1, a2;
};
constexpr Cosines hann = {0.5, 0.5, 0}, hamming = {25.0 / 46.0, 21.0 / 46.0, 0}, blackman = {0.42, 0.5, 0.08};

template <const Cosines &form> void window(Node &n) {
  bool periodic = n.intAttr("periodic", 1) != 0;
  DType t = dtypeAttr(n, "output_datatype");
  UOpRef size = n.in(0) ? knownScalar(n, 0, "the size") : nullptr;
  if (n.failed()) return;
  UOpRef turn = n.fromIndex(periodic ? size : idxSub(n.c, size, n.c.index(1)), DType::F64);
  UOpRef i = n.iota(DType::F64, {size}, 0);
  auto wave = [&](double times) {
    return n.un(Op::Cos, n.bin(Op::Div, n.bin(Op::Mul, i, times * 2 * std::numbers::pi), turn));
  };
  UOpRef y = n.bin(Op::Sub, n.b.lit(DType::F64, form.a0), n.bin(Op::Mul, wave(1), form.a1));
  if (form.a2 != 0) y = n.bin(Op::Add, y, n.bin(Op::Mul, wave(2), form.a2));
  n.give(n.cast(y, t == DType::Void ? DType::F32 : t));
}

/// Triangles over the bins of a spectrum whose corners are evenly spaced on the mel scale; computed while importing, in
/// f64 by the contract's functions.
void melWeightMatrix(Node &n) {
  DType t = dtypeAttr(n, "output_datatype");
  int64_t sizes[3];
  for (unsigned i = 0; i < 3; ++i) {
    Ints v = n.knownInts(i, "a size");
    if (!n.failed() && (v.size() != 1 || v[0] < 1 || v[0] > 1 << 30))
      n.fail("input " + llvm::Twine(i) + " must be one number in 1..2^30");
    sizes[i] = n.failed() ? 1 : v[0];
  }
  double edges[2] = {n.literalNumber(3, "the lower edge"), n.literalNumber(4, "the upper edge")};
  if (n.failed()) return;
  auto [bands, length, rate] = sizes;
  int64_t bins = length / 2 + 1;
  if (bands * bins > 1 << 24)
    return void(n.unsupported("a matrix of " + llvm::Twine(bins) + " x " + llvm::Twine(bands) +
                              " weights, at most 2^24 are supported"));
  const double ln10 = std::numbers::ln10;
  auto mel = [&](double hertz) { return 2595 * numerics::log1p(Number(hertz / 700)).v / ln10; };
  double low = mel(edges[0]), step = (mel(edges[1]) - low) / double(bands + 2);
  auto corner = [&](int64_t i) {
    double hertz = 700 * numerics::expm1(Number((double(i) * step + low) / 2595 * ln10)).v;
    return std::floor(double(length + 1) * hertz / double(rate));
  };
  std::vector<double> weights(bands * bins, 0.0);
  for (int64_t i = 0; i < bands; ++i) {
    double at[3] = {corner(i), corner(i + 1), corner(i + 2)};
    if (!(at[0] >= 0 && at[0] <= at[1] && at[1] <= at[2] && at[1] < double(bins) && at[2] <= double(bins)))
      return void(
          n.fail("band " + llvm::Twine(i) + " of the edges leaves the " + llvm::Twine(bins) + " bins of the spectrum"));
    int64_t left = int64_t(at[0]), centre = int64_t(at[1]), right = int64_t(at[2]);
    for (int64_t j = left; j <= centre; ++j)
      weights[j * bands + i] = left == centre ? 1 : double(j - left) / double(centre - left);
    for (int64_t j = centre; j < right; ++j) weights[j * bands + i] = double(right - j) / double(right - centre);
  }
  if (t == DType::Void) t = DType::F32;
  Payload p{t == DType::F32 ? t : DType::F64, {bins, bands}, {}};
  for (double w : weights) append(p, w);
  n.give(n.cast(n.parameter(std::move(p)), t));
}

constexpr const char *atImport = "the size must follow from constants and shapes";

constexpr Row rows[] = {
    {"DFT", 17, 19, 1, 2, dft<false>, floatTypes},
    {"DFT", 20, latest, 1, 3, dft<true>, floatTypes},
    {"STFT", 17, latest, 2, 4, stft, floatTypes},
    {"HannWindow", 17, latest, 1, 1, window<hann>, intTypes, atImport},
    {"HammingWindow", 17, latest, 1, 1, window<hamming>, intTypes, atImport},
    {"BlackmanWindow", 17, latest, 1, 1, window<blackman>, intTypes, atImport},
    {"MelWeightMatrix", 17, latest, 5, 5, melWeightMatrix, intTypes, "all inputs must be constants"},
};

} // namespace

llvm::ArrayRef<Row> signalRows() { return rows; }

} // namespace astra::onnx
