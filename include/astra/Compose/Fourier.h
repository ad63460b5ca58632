//===- Fourier.h: Fourier transforms of complex values ---------------------===//
// Takes:    tensors of complex types, or of real ones where a transform is of real signals; axes; lengths, symbolic
//           integers, to which an axis is cut or filled with zeros (null: the axis').
// Gives:    the functions of the array API's fft extension, by the transform of Signal.h.
// Keeps:    complex64 with f32, complex128 with f64. Whole arrays transform the last axis first.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// Which direction is divided by the length: the inverse, the forward one, or both by its root.
enum class FourierNorm { Backward, Forward, Orthogonal };

struct FourierAxis {
  int64_t axis = -1;
  UOpRef length = nullptr;
  FourierNorm norm = FourierNorm::Backward;
};

/// A complex tensor from a complex or real one.
UOpRef fft(Composer &b, UOpRef x, const FourierAxis &options = {});
UOpRef ifft(Composer &b, UOpRef x, const FourierAxis &options = {});
/// The frequencies 0 .. length / 2 of a real signal.
UOpRef rfft(Composer &b, UOpRef x, const FourierAxis &options = {});
/// A real signal from those; the length, if not given, is twice the axis' less 2.
UOpRef irfft(Composer &b, UOpRef x, const FourierAxis &options = {});
/// The real spectrum of half a signal that is its own mirrored conjugate, and back.
UOpRef hfft(Composer &b, UOpRef x, const FourierAxis &options = {});
UOpRef ihfft(Composer &b, UOpRef x, const FourierAxis &options = {});

struct FourierAxes {
  Ints axes = {};    // none: all, or, where lengths are given, as many of the last ones
  Dims lengths = {}; // none: the axes'
  FourierNorm norm = FourierNorm::Backward;
};
UOpRef fftn(Composer &b, UOpRef x, const FourierAxes &options = {});
UOpRef ifftn(Composer &b, UOpRef x, const FourierAxes &options = {});
/// The last of the axes is the one of a real signal.
UOpRef rfftn(Composer &b, UOpRef x, const FourierAxes &options = {});
UOpRef irfftn(Composer &b, UOpRef x, const FourierAxes &options = {});

/// The frequencies of a transform of `length` samples `spacing` apart: 0, 1, .. and, of fft, then the negative ones.
UOpRef fftfreq(Composer &b, UOpRef length, double spacing, DType type);
UOpRef rfftfreq(Composer &b, UOpRef length, double spacing, DType type);
/// Frequency 0 from the front to the middle of the axes (none: of all), and back.
UOpRef fftshift(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes = {});
UOpRef ifftshift(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes = {});

} // namespace astra::compose
