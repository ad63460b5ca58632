"""Random numbers of Triton's: Philox 4x32 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; 2011).

Takes:    a seed of 64 bits, which is the key, and offsets, which are the counter.
Gives:    four tensors of uint32; of such, floats in [0, 1) and normal ones. The integers and the uniform floats are those of Triton, bit by bit.
"""

from __future__ import annotations

from ... import _ops
from ..._dtypes import DTYPES
from ..._tensor import Tensor

I32, U32, U64, F32 = (DTYPES[n] for n in ("int32", "uint32", "uint64", "float32"))
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85  # what a round adds to the key
SCALE = 4.6566127342e-10  # just below 2^-31, so that no product is 1


def philox(seed: Tensor, offset: Tensor, rounds: int) -> tuple[Tensor, ...]:
    """The four words of the counter (offset, its upper half, 0, 0)."""
    low = _ops.astype(offset, U32)
    zero = _ops.multiply(low, 0)
    high = zero if offset.dtype.bits <= 32 else _ops.astype(_ops.bitwise_right_shift(offset, 32), U32)
    a, b, c, d = low, high, zero, zero
    keys = [_ops.astype(seed, U32), _ops.astype(_ops.bitwise_right_shift(seed, 32), U32)]
    for _ in range(rounds):
        products = [_ops.multiply(_ops.astype(x, U64), m) for x, m in zip((a, c), MULTIPLIERS)]
        upper = [_ops.astype(_ops.bitwise_right_shift(p, 32), U32) for p in products]
        lower = [_ops.astype(p, U32) for p in products]
        a, c = (_ops.bitwise_xor(_ops.bitwise_xor(u, w), k) for u, w, k in ((upper[1], b, keys[0]), (upper[0], d, keys[1])))
        b, d = lower[1], lower[0]
        keys = [_ops.add(k, w) for k, w in zip(keys, WEYL)]
    return a, b, c, d


def uniform(x: Tensor) -> Tensor:
    """Words as floats in [0, 1)."""
    signed = _ops.bitcast(x, I32)
    positive = _ops.where(_ops.less(signed, 0), _ops.bitwise_invert(signed), signed)
    return _ops.multiply(_ops.astype(positive, F32), SCALE)


def box_muller(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Two normal floats of two uniform ones."""
    radius = _ops.sqrt(_ops.multiply(_ops.log(_ops.maximum(u, 1.0e-7)), -2.0))
    angle = _ops.multiply(v, 6.283185307179586)
    return _ops.multiply(radius, _ops.cos(angle)), _ops.multiply(radius, _ops.sin(angle))
