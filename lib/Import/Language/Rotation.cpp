//===- Rotation.cpp: frequencies of rotations and their scalings ------------===//
// Takes:    what a configuration says.
// Gives:    frequencies, computed in f64 and rounded once to f32.
// Source:   B. Peng et al., "YaRN: efficient context window extension of large language models" (2023); Y. Ding et al.,
//           "LongRoPE" (2024); the scaling of Llama 3.1 as its configuration defines it.
#include "Config.h"
#include <algorithm>
#include <cmath>

using namespace astra::language;

static constexpr double pi = 3.14159265358979323846;

/// Between 0, at the frequencies that keep their length, and 1, at those that are stretched by the factor.
static double yarnRamp(const Rotation &r, double dim, double original, int64_t i) {
  auto column = [&](double turns) { return dim * std::log(original / (turns * 2 * pi)) / (2 * std::log(r.theta)); };
  double low = column(r.betaFast), high = column(r.betaSlow);
  if (r.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  return std::clamp((double(i) - low) / (high - low), 0.0, 1.0);
}

static double llama3(const Rotation &r, double original, double frequency) {
  double length = 2 * pi / frequency;
  if (length < original / r.highFactor) return frequency;
  if (length > original / r.lowFactor) return frequency / r.factor;
  double smooth = (original / length - r.lowFactor) / (r.highFactor - r.lowFactor);
  return (1 - smooth) * frequency / r.factor + smooth * frequency;
}

static double yarnFactor(const Rotation &r) {
  auto scale = [&](double m) { return r.factor <= 1 ? 1.0 : 0.1 * m * std::log(r.factor) + 1; };
  return r.mscale && r.mscaleAll ? scale(r.mscale) / scale(r.mscaleAll) : scale(1);
}

std::string Rotation::wrong(int64_t headSize) const {
  if (kind != Long) return "";
  size_t half = size_t(int64_t(double(headSize) * part) / 2);
  for (const std::vector<double> *factors : {&shortFactors, &longFactors}) {
    if (factors->size() != half)
      return "the rotations have " + std::to_string(factors->size()) + " factors, expected " + std::to_string(half);
    for (double x : *factors)
      if (!(x > 0 && x < 1e30)) return "a factor of the rotations is " + std::to_string(x) + ", expected above 0";
  }
  return "";
}

std::vector<float> Rotation::frequencies(int64_t headSize, int64_t context, int64_t positions,
                                         double &cosineFactor) const {
  int64_t half = int64_t(double(headSize) * part) / 2;
  double dim = 2 * double(half), first = original ? original : double(positions);
  cosineFactor = 1;
  if (kind == Yarn) cosineFactor = attentionFactor.value_or(yarnFactor(*this));
  if (kind == Long) {
    double stretched = factor > 1 ? factor : double(positions) / first;
    cosineFactor = attentionFactor.value_or(stretched <= 1 ? 1 : std::sqrt(1 + std::log(stretched) / std::log(first)));
  }
  const std::vector<double> &factors = double(context) > first ? longFactors : shortFactors;
  std::vector<float> result;
  for (int64_t i = 0; i < half; ++i) {
    double f = std::pow(theta, -2 * double(i) / dim);
    if (kind == Linear) f /= factor;
    if (kind == Llama3) f = llama3(*this, first, f);
    if (kind == Yarn) {
      double ramp = yarnRamp(*this, dim, first, i);
      f = f / factor * ramp + f * (1 - ramp);
    }
    if (kind == Long) f /= factors[size_t(i)];
    result.push_back(float(f));
  }
  return result;
}
