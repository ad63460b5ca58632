//===- ElementLoss.h: losses of a prediction beside a target of its shape -------===//
// Takes:    a prediction and a target, f32 or f64, of one shape.
// Gives:    the loss of each element, of that shape; who wants a mean or a sum reduces it.
// Keeps:    PyTorch's definitions and gradients (torch.nn, 2.15), also at kinks.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// (x - y)^2.
UOpRef squaredError(Composer &b, UOpRef x, UOpRef y);
/// |x - y|.
UOpRef absoluteError(Composer &b, UOpRef x, UOpRef y);
/// (x - y)^2 / (2 beta) below beta >= 0, |x - y| - beta / 2 beyond.
UOpRef smoothAbsoluteError(Composer &b, UOpRef x, UOpRef y, double beta = 1);
/// (x - y)^2 / 2 up to delta > 0, delta (|x - y| - delta / 2) beyond.
UOpRef huberLoss(Composer &b, UOpRef x, UOpRef y, double delta = 1);
/// -(y log x + (1 - y) log(1 - x)), x in [0, 1]. Logarithms are no less than -100, and the derivative is
/// (x - y) / max(x (1 - x), 1e-12): that of the logarithms is infinite at 0 and 1, which a sigmoid in f32 reaches
/// at 17.
UOpRef binaryCrossEntropy(Composer &b, UOpRef x, UOpRef y);
/// The same of sigmoid(x), without overflow; targets that are 1 weigh `positiveWeight`.
UOpRef binaryCrossEntropyWithLogits(Composer &b, UOpRef x, UOpRef y, double positiveWeight = 1);
/// y (log y - x), 0 where y is 0; x is a logarithm, and y too where `targetIsLog`.
UOpRef divergence(Composer &b, UOpRef x, UOpRef y, bool targetIsLog = false);
/// x where y is 1, max(0, margin - x) elsewhere: y is 1 or -1.
UOpRef hingeEmbedding(Composer &b, UOpRef x, UOpRef y, double margin = 1);
/// max(0, x), whose gradient at 0 is 0.
UOpRef hinge(Composer &b, UOpRef x);

} // namespace astra::compose
