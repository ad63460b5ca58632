//===- KBlocks.cpp: blocks of 256 with scales of 6 bits ---------------------===//
// Takes:    finite floats.
// Gives:    see KBlocks.h.
// Keeps:    a function of the block alone, in f32 without contraction.
// Does not: give the bits of llama.cpp: the form is the same, the search is not.
#include "KBlocks.h"
#include "Numbers.h"
#include <algorithm>
#include <cmath>

using namespace astra;
using namespace astra::quantize;
using llvm::ArrayRef;

namespace {

constexpr unsigned part = 32, mostCode = 15, mostScale = 63;

/// x is about slope * code - offset, slope and offset not negative.
struct Line {
  float slope = 0, offset = 0;
};

unsigned nearest(float x, unsigned most) { return unsigned(std::clamp(std::nearbyint(x), 0.0f, float(most))); }

unsigned codeOf(float x, const Line &l) { return l.slope > 0 ? nearest((x + l.offset) / l.slope, mostCode) : 0; }

class Fit {
public:
  explicit Fit(ArrayRef<float> x) : x(x) {
    float squares = 0;
    for (float v : x) squares += v * v;
    float usual = std::sqrt(squares / float(x.size()));
    for (unsigned i = 0; i < part; ++i) weight[i] = usual + std::fabs(x[i]);
  }
  /// The best line over codes from several ranges: each is fitted by least squares to the codes that it gives.
  Line best() const {
    auto [least, most] = std::minmax_element(x.begin(), x.end());
    float low = std::min(*least, 0.0f), range = *most - low;
    Line chosen;
    if (!(range > 0)) { // no element above 0: all are equal to the least, or a line of slope 0 is near enough
      chosen.offset = -low;
      return chosen;
    }
    float least_error = INFINITY;
    constexpr int steps = 20; // from 14 codes for the range to 16
    for (int step = -1; step <= steps; ++step) {
      Line l{range / (step < 0 ? float(mostCode) : float(mostCode) - 1 + 0.1f * float(step)), -low};
      if (step >= 0) l = fitted(l);
      float e = error(l);
      if (e < least_error) least_error = e, chosen = l;
    }
    return chosen;
  }

private:
  ArrayRef<float> x;
  float weight[part];

  float error(const Line &l) const {
    float sum = 0;
    for (unsigned i = 0; i < part; ++i) {
      float off = l.slope * float(codeOf(x[i], l)) - l.offset - x[i];
      sum += weight[i] * off * off;
    }
    return sum;
  }
  /// The line of least weighted squares through the codes that another one gives.
  Line fitted(const Line &from) const {
    float w = 0, c = 0, cc = 0, v = 0, cv = 0;
    for (unsigned i = 0; i < part; ++i) {
      float code = float(codeOf(x[i], from)), wi = weight[i];
      w += wi, c += wi * code, cc += wi * code * code, v += wi * x[i], cv += wi * code * x[i];
    }
    float determinant = w * cc - c * c;
    if (!(determinant > 0)) return from;
    Line l{(w * cv - c * v) / determinant, (c * cv - cc * v) / determinant};
    if (l.offset < 0) l = {cc > 0 ? cv / cc : 0, 0}; // through 0
    return l.slope > 0 ? l : from;
  }
};

/// Numbers that are not negative as 6 bits of a common f16 scale.
uint16_t asParts(ArrayRef<float> x, std::array<uint8_t, 8> &parts) {
  float most = *std::max_element(x.begin(), x.end());
  uint16_t scale = halfBits(most / float(mostScale));
  float inverse = most > 0 ? float(mostScale) / most : 0;
  for (unsigned i = 0; i < 8; ++i) parts[i] = uint8_t(std::isfinite(inverse) ? nearest(x[i] * inverse, mostScale) : 0);
  return scale;
}

} // namespace

BlockQ4_K quantize::blockQ4_K(ArrayRef<float> x) {
  BlockQ4_K b{};
  float slopes[8], offsets[8];
  for (unsigned j = 0; j < 8; ++j) {
    Line l = Fit(x.slice(j * part, part)).best();
    slopes[j] = l.slope, offsets[j] = l.offset;
  }
  b.d = asParts(slopes, b.s);
  b.dmin = asParts(offsets, b.t);
  for (unsigned i = 0; i < 256; ++i) {
    Line l{halfValue(b.d) * float(b.s[i / part]), halfValue(b.dmin) * float(b.t[i / part])};
    b.q[i] = uint8_t(codeOf(x[i], l));
  }
  return b;
}
