//===- Signal.h: Fourier transforms and windows ----------------------------===//
// Takes:    signals [.., time, .., 1 (real) or 2 (real and imaginary part)], of float types.
// Gives:    a transform as matrix products: its length is cut into factors of about its root (J. Cooley and J. Tukey),
//           one product with the rotations of each factor, a rotation of every element between two of them.
// Keeps:    rotations are computed in f64 by the contract's functions, the angle reduced to a quadrant in integers, and
//           rounded once; transforms of f16 and bf16 compute in f32.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

struct FourierOptions {
  bool inverse = false;
  bool onesided = false; // of a real signal, the frequencies up to half; inverse: a real signal from those
};
/// The discrete transform along an axis that is not the last. `length`, a symbolic integer: the signal is cut or filled
/// with zeros to it; null: the axis'.
UOpRef fourierTransform(Composer &b, UOpRef x, int64_t axis, UOpRef length, const FourierOptions &options);

/// Frames of a signal [batch, time, part], one each `step`, each times the window [length] (null: ones), transformed:
/// [batch, frames, frequencies, 2]. `length` null: that of the window, or the signal's. Step and length are constant.
UOpRef shortTimeFourierTransform(Composer &b, UOpRef x, UOpRef step, UOpRef window, UOpRef length,
                                 bool onesided = true);

/// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n) in f64, n the size or, if not periodic, one less.
struct CosineWindow {
  double a0, a1, a2;
};
inline constexpr CosineWindow hannWindow = {0.5, 0.5, 0}, hammingWindow = {25.0 / 46.0, 21.0 / 46.0, 0},
                              blackmanWindow = {0.42, 0.5, 0.08};
UOpRef window(Composer &b, const CosineWindow &form, UOpRef size, bool periodic, DType type);

/// Triangles over the bins of a spectrum whose corners are evenly spaced on the mel scale, [length / 2 + 1, bands];
/// computed while building, in f64 by the contract's functions. Numbers are 1..2^30, edges and the rate in hertz.
UOpRef melWeights(Composer &b, int64_t bands, int64_t length, int64_t rate, double low, double high, DType type);

} // namespace astra::compose
