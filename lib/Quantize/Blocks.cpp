//===- Blocks.cpp: from floats to codes of few bits and their scales --------===//
// Takes:    finite floats; what is none, or has no scale, is refused.
// Gives:    see Blocks.h.
// Source:   the forms and roundings of Q4_0 ... Q8_0: gguf-py's quants.py, which follows ggml-quants.c.
#include "astra/Quantize/Blocks.h"
#include "KBlocks.h"
#include "Numbers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace astra;
using namespace astra::quantize;
using llvm::ArrayRef;

//===- The schemes ----------------------------------------------------------===//

static constexpr Scheme table[] = {
    {"int8", Scheme::Channels, WeightFormat::I8, 0, nullptr, "8 bits, one f32 scale for each output channel"},
    {"int4:32", Scheme::Blocks, WeightFormat::U8, 32, "int8", "4 bits, an f16 scale and a zero point for 32 elements"},
    {"int4:128", Scheme::Blocks, WeightFormat::U8, 128, "int4:32",
     "4 bits, an f16 scale and a zero point for 128 elements"},
    {"q8_0", Scheme::Ggml, WeightFormat::Q8_0, 32, "int8", "llama.cpp's Q8_0: 8 bits, an f16 scale for 32 elements"},
    {"q5_0", Scheme::Ggml, WeightFormat::Q5_0, 32, "int8", "llama.cpp's Q5_0: 5 bits, an f16 scale for 32"},
    {"q5_1", Scheme::Ggml, WeightFormat::Q5_1, 32, "int8", "llama.cpp's Q5_1: 5 bits, an f16 scale and minimum for 32"},
    {"q4_0", Scheme::Ggml, WeightFormat::Q4_0, 32, "int8", "llama.cpp's Q4_0: 4 bits, an f16 scale for 32"},
    {"q4_1", Scheme::Ggml, WeightFormat::Q4_1, 32, "int8", "llama.cpp's Q4_1: 4 bits, an f16 scale and minimum for 32"},
    {"q4_k", Scheme::Ggml, WeightFormat::Q4_K, 256, "q5_0",
     "llama.cpp's Q4_K: 4 bits, scales and minima of 6 bits for 32, f16 scales of those for 256"},
};

ArrayRef<Scheme> quantize::schemes() { return table; }

const Scheme *quantize::schemeNamed(llvm::StringRef text) {
  auto row = llvm::find_if(table, [&](const Scheme &s) { return text == s.text; });
  return row == std::end(table) ? nullptr : row;
}

const Scheme &quantize::fitting(const Scheme &scheme, int64_t columns) {
  const Scheme *s = &scheme;
  while (s->block && columns % s->block) s = schemeNamed(s->fallback);
  return *s;
}

//===- Rows -----------------------------------------------------------------===//

namespace {

/// Numbers of planes as they come, by the bits of each.
struct Columns {
  std::vector<uint32_t> q, high, d, m, s, t; // high: the fifth bits of codes, eight in one
};

uint32_t bitsOf(float x) { return llvm::bit_cast<uint32_t>(x); }
float inverseOf(float d) {
  float inverse = d != 0 ? 1 / d : 0;
  return std::isfinite(inverse) ? inverse : 0;
}
/// The f16 scale that is stored for d; false where it is beyond f16.
bool storeHalf(float d, std::vector<uint32_t> &out, float &stored) {
  out.push_back(halfBits(d));
  stored = halfValue(uint16_t(out.back()));
  return std::isfinite(stored);
}

class Writer {
public:
  Writer(const Scheme &scheme, size_t count) : scheme(scheme) { values.reserve(count); }
  Columns out;
  std::vector<float> values;

  bool block(ArrayRef<float> x) {
    switch (scheme.kind) {
    case Scheme::Channels: return channel(x);
    case Scheme::Blocks: return zeroed(x);
    case Scheme::Ggml: break;
    }
    switch (scheme.ggml) {
    case WeightFormat::Q4_0: return balanced(x, 16);
    case WeightFormat::Q5_0: return balanced(x, 32);
    case WeightFormat::Q4_1: return fromMinimum(x, 15);
    case WeightFormat::Q5_1: return fromMinimum(x, 31);
    case WeightFormat::Q8_0: return bytes(x);
    default: return nested(x);
    }
  }

private:
  const Scheme &scheme;

  bool channel(ArrayRef<float> x) {
    float most = 0;
    for (float v : x) most = std::max(most, std::fabs(v));
    float d = most / 127;
    out.d.push_back(bitsOf(d));
    for (float v : x) {
      int q = d != 0 ? std::clamp(int(std::nearbyint(v / d)), -127, 127) : 0;
      out.q.push_back(uint8_t(int8_t(q)));
      values.push_back(float(q) * d);
    }
    return true;
  }

  bool zeroed(ArrayRef<float> x) {
    float least = 0, most = 0, d;
    for (float v : x) least = std::min(least, v), most = std::max(most, v);
    if (!storeHalf((most - least) / 15, out.d, d)) return false;
    float inverse = inverseOf(d);
    auto code = [](float c) { return int(std::clamp(std::nearbyint(c), 0.0f, 15.0f)); };
    int zero = code(-least * inverse);
    out.m.push_back(uint32_t(zero));
    for (float v : x) {
      int q = code(v * inverse + float(zero));
      out.q.push_back(uint32_t(q));
      values.push_back(float(q - zero) * d);
    }
    return true;
  }

  /// Codes from 0, half of them for negative values: d * (q - levels / 2); the element of greatest magnitude has code
  /// 0.
  bool balanced(ArrayRef<float> x, int levels) {
    float most = 0, stored;
    for (float v : x)
      if (std::fabs(v) > std::fabs(most)) most = v;
    float half = float(levels / 2), d = most / -half, inverse = inverseOf(d);
    if (!storeHalf(d, out.d, stored)) return false;
    for (float v : x) {
      int q = std::clamp(int(v * inverse + (half + 0.5f)), 0, levels - 1);
      out.q.push_back(uint32_t(q));
      values.push_back(stored * float(q - levels / 2));
    }
    return true;
  }

  bool fromMinimum(ArrayRef<float> x, int most) {
    auto [low, high] = std::minmax_element(x.begin(), x.end());
    float least = *low, d = (*high - least) / float(most), inverse = inverseOf(d), stored, minimum;
    if (!storeHalf(d, out.d, stored) || !storeHalf(least, out.m, minimum)) return false;
    for (float v : x) {
      int q = std::clamp(int((v - least) * inverse + 0.5f), 0, most);
      out.q.push_back(uint32_t(q));
      values.push_back(stored * float(q) + minimum);
    }
    return true;
  }

  bool bytes(ArrayRef<float> x) {
    float most = 0, stored;
    for (float v : x) most = std::max(most, std::fabs(v));
    float d = most / 127, inverse = inverseOf(d);
    if (!storeHalf(d, out.d, stored)) return false;
    for (float v : x) {
      int q = int(std::round(v * inverse)); // halves away from 0
      out.q.push_back(uint8_t(int8_t(q)));
      values.push_back(stored * float(q));
    }
    return true;
  }

  bool nested(ArrayRef<float> x) {
    BlockQ4_K b = blockQ4_K(x);
    float d = halfValue(b.d), dmin = halfValue(b.dmin);
    out.q.insert(out.q.end(), b.q.begin(), b.q.end());
    out.s.insert(out.s.end(), b.s.begin(), b.s.end());
    out.t.insert(out.t.end(), b.t.begin(), b.t.end());
    out.d.push_back(b.d), out.m.push_back(b.dmin);
    for (unsigned i = 0; i < 256; ++i)
      values.push_back(d * float(b.s[i / 32]) * float(b.q[i]) - dmin * float(b.t[i / 32]));
    return std::isfinite(d) && std::isfinite(dmin);
  }
};

/// The low 4 bits stay; the fifth bits, eight of neighbours in a byte.
void takeFifthBits(Columns &c) {
  c.high.assign(c.q.size() / 8, 0);
  for (auto [i, q] : llvm::enumerate(c.q)) {
    c.high[i / 8] |= (q >> 4) << i % 8;
    q &= 15;
  }
}

} // namespace

std::optional<Quantized> quantize::quantized(const Scheme &scheme, ArrayRef<int64_t> dims, unsigned summed,
                                             ArrayRef<float> x) {
  if (!llvm::all_of(x, [](float v) { return std::isfinite(v); })) return std::nullopt;
  int64_t row = 1;
  for (int64_t d : dims.take_back(scheme.block ? 1 : summed)) row *= d;
  int64_t each = scheme.block ? scheme.block : row;
  if (x.empty() || row % each) return std::nullopt;
  Writer w(scheme, x.size());
  for (size_t i = 0; i < x.size(); i += size_t(each))
    if (!w.block(x.slice(i, size_t(each)))) return std::nullopt;
  Quantized result;
  result.values = std::move(w.values);
  auto add = [&](const char *suffix, DType t, unsigned elements, ArrayRef<uint32_t> bits) {
    std::vector<int64_t> own(dims);
    own.back() /= elements;
    result.planes.push_back({suffix, packed(t, own, bits)});
  };
  switch (scheme.kind) {
  case Scheme::Channels:
    add(".q", DType::I8, 1, w.out.q);
    result.planes.push_back({".d", packed(DType::F32, dims.drop_back(summed), w.out.d)});
    return result;
  case Scheme::Blocks:
    add(".q", DType::U4, 1, w.out.q);
    add(".d", DType::F16, unsigned(each), w.out.d);
    add(".z", DType::U4, unsigned(each), w.out.m);
    return result;
  case Scheme::Ggml: break;
  }
  ArrayRef<compose::WeightPlane> planes = compose::planesOf(scheme.ggml);
  if (llvm::any_of(planes, [](auto &p) { return llvm::StringRef(p.suffix) == ".h"; })) takeFifthBits(w.out);
  const std::pair<llvm::StringRef, ArrayRef<uint32_t>> numbers[] = {
      {".q", w.out.q}, {".h", w.out.high}, {".d", w.out.d},   {".m", w.out.m},
      {".s", w.out.s}, {".t", w.out.t},    {".dmin", w.out.m}};
  for (const compose::WeightPlane &p : planes)
    for (auto [suffix, bits] : numbers)
      if (suffix == p.suffix) add(p.suffix, p.dtype, p.elements, bits);
  return result;
}
