"""astra.random: keys and distributions.

Takes:    keys, shapes (numbers or dims), parameters that broadcast to the shape.
Gives:    tensors; JAX's names and signatures.
Keeps:    the numbers are those of the contract's generator (docs/numerics.md, N13): the same in every program, on every target. A key is
          a tensor of two uint32, the key words of Threefry2x32. A key is used once: split it, or fold a number in, for what comes
          next. Element i of a draw depends on the key and i alone, not on the shape.
"""

from __future__ import annotations

import operator
from typing import Any, Sequence

from . import _core, _dims, _dtypes, _ops
from ._dtypes import DTYPES
from ._errors import ArgumentError, DTypeError, ShapeError
from ._graph import current
from ._rejection import beta as beta
from ._rejection import gamma as gamma
from ._rejection import poisson as poisson
from ._rejection import truncated_normal as truncated_normal
from ._tensor import Tensor, asarray, call, of_node

U32, U64, I64, F32, F64 = (DTYPES[n] for n in ("uint32", "uint64", "int64", "float32", "float64"))
_FOLD = 0x666F6C64  # so that fold_in is not a split


def checked_seed(seed: Any, bits: int = 32, what: str = "seed") -> int:
    """A seed that has so many bits: two seeds are never one."""
    try:
        number = operator.index(seed)
    except TypeError:
        raise ArgumentError(f"the {what} is a {type(seed).__name__}; it must be an integer") from None
    if not 0 <= number < 1 << bits:
        raise ArgumentError(f"the {what} is {number}; it must be in 0 .. 2^{bits} - 1")
    return number


def key(seed: Any) -> Tensor:
    """A key of a seed: an integer in 0 .. 2^64 - 1, or a tensor of one, of which the 64 bits count."""
    if isinstance(seed, int):
        number = checked_seed(seed, 64)
        return asarray([number >> 32, number & 0xFFFFFFFF], dtype=U32)
    t = asarray(seed)
    if t.dtype.kind not in "iu" or t.shape != ():
        raise ArgumentError("the seed of a key is one integer")
    wide = _ops.astype(t, U64)
    return _ops.stack([_ops.astype(_ops.bitwise_right_shift(wide, 32), U32), _ops.astype(wide, U32)])


def _words(k: Any) -> tuple[Tensor, Tensor]:
    t = asarray(k)
    if t.dtype is not U32 or t.shape != (2,):
        raise ArgumentError(f"a key is a tensor of two uint32, not {t.dtype.name} of shape {t.shape}: make one with astra.random.key(seed), "
                            "or take one of those that split gives")  # fmt: skip
    return t[0], t[1]


def _shape(shape: Any) -> tuple[Any, ...]:
    return (shape,) if isinstance(shape, (int, _dims.Dim)) else tuple(shape)


def _drawn(function: Any, k: Any, shape: Any, *rest: Any) -> Tensor:
    """A draw of the core."""
    seed, stream = _words(k)
    graph = current()
    return of_node(graph, call(function, graph.core, seed._in(graph), stream._in(graph), _ops.sizes(graph, _shape(shape)), *rest))


def _size(shape: Any) -> Any:
    n: Any = 1
    for extent in _shape(shape):
        n = n * extent
    return n


def bits(key: Any, shape: Any = (), dtype: Any = U32) -> Tensor:
    """Random bits: uint32 (element i is word i of the key's stream), uint64 (words 2i and 2i + 1, high and low), or uint8 and uint16
    (the high bits of a word)."""
    t = _dtypes.dtype(dtype)
    if t.kind != "u":
        raise DTypeError(f"random bits are of an unsigned type, not {t.name}")
    if t is U64:
        pairs = _ops.astype(_ops.reshape(_drawn(_core.random_bits, key, (_size(shape) * 2,)), (_size(shape), 2)), U64)
        return _ops.reshape(_ops.bitwise_or(_ops.bitwise_left_shift(pairs[:, 0], 32), pairs[:, 1]), shape)
    words = _drawn(_core.random_bits, key, shape)
    return words if t is U32 else _ops.astype(_ops.bitwise_right_shift(words, 32 - t.bits), t)


def split(key: Any, num: Any = 2) -> Tensor:
    """Keys that are as good as new: [num, 2], or [*num, 2]. They are the words of the key's stream, in order."""
    return bits(key, (*_shape(num), 2))


def fold_in(key: Any, data: Any) -> Tensor:
    """A key of a key and an integer in 0 .. 2^32 - 1, or a tensor of one, whose lower 32 bits count: for the steps of a loop."""
    first = bits(key, (2,))
    if isinstance(data, int):
        number: Any = checked_seed(data, 32, "number that is folded into a key")
    else:
        number = asarray(data)
        if number.dtype.kind not in "iu" or number.shape != ():
            raise ArgumentError("what is folded into a key is one integer")
        number = _ops.astype(number, U32)
    mixed = _ops.stack([_ops.bitwise_xor(first[0], _FOLD), _ops.bitwise_xor(first[1], number)])
    return bits(mixed, (2,))


def _float(dtype: Any) -> Any:
    t = _dtypes.dtype(dtype)
    if t.kind != "f":
        raise DTypeError(f"the numbers are of a float type, not {t.name}")
    return t


def _wide(t: Any) -> Any:
    """The type that numbers are drawn in."""
    return F64 if t is F64 else F32


def uniform(key: Any, shape: Any = (), dtype: Any = F32, minval: Any = 0.0, maxval: Any = 1.0) -> Tensor:
    """Numbers from minval up to, and without, maxval: u * (maxval - minval) + minval, where u has 24 bits (float64: 53)."""
    t = _float(dtype)
    if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)):
        return _drawn(_core.uniform, key, shape, t.code, float(minval), float(maxval))
    u = _drawn(_core.uniform, key, shape, _wide(t).code, 0.0, 1.0)
    lo, hi = (_ops.broadcast_to(asarray(v, dtype=_wide(t)), _shape(shape)) for v in (minval, maxval))
    return _ops.astype(u * (hi - lo) + lo, t)


def normal(key: Any, shape: Any = (), dtype: Any = F32) -> Tensor:
    """Normal numbers with mean 0 and deviation 1, by Box and Muller: of words 2i and 2i + 1."""
    return _drawn(_core.normal, key, shape, _float(dtype).code, 0.0, 1.0)


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = I64) -> Tensor:
    """Integers from minval up to, and without, maxval: minval + (a word of 64 bits) mod (maxval - minval)."""
    t = _dtypes.dtype(dtype)
    if t.kind not in "iu":
        raise DTypeError(f"randint gives integers, not {t.name}")
    if isinstance(minval, int) and isinstance(maxval, int):
        lo, hi = (-(1 << t.bits - 1), 1 << t.bits - 1) if t.kind == "i" else (0, 1 << t.bits)
        if not lo <= minval < maxval <= hi:
            raise ArgumentError(f"randint needs minval < maxval within {t.name}; they are {minval} and {maxval}")
        span: Any = maxval - minval
        if span == 1 << 64:
            return _ops.astype(bits(key, shape, U64), t)
    else:
        lo_tensor, hi_tensor = asarray(minval, dtype=t), asarray(maxval, dtype=t)
        span = _ops.maximum(_ops.astype(hi_tensor, U64) - _ops.astype(lo_tensor, U64), 1)
        minval = lo_tensor
    word = bits(key, shape, U64)
    offset = _ops.remainder(word, span)
    base = _ops.astype(minval, U64) if isinstance(minval, Tensor) else minval & (1 << 64) - 1
    total = offset + (base if isinstance(base, Tensor) else _ops.literal(base, U64))
    return _ops.astype(total, t)


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Tensor:
    """True with probability p: where a uniform number is below it."""
    chance = asarray(p, dtype=None if isinstance(p, Tensor) else F32) if not isinstance(p, (int, float)) else asarray(float(p))
    chance = _ops.floating(chance)
    if shape is not None:
        chance = _ops.broadcast_to(chance, shape)
    graph, (seed, stream) = current(), _words(key)
    return of_node(graph, call(_core.bernoulli, graph.core, seed._in(graph), stream._in(graph), chance._in(graph), "bool"))


def exponential(key: Any, shape: Any = (), dtype: Any = F32) -> Tensor:
    """Exponential numbers of rate 1: -log(1 - u)."""
    return _drawn(_core.exponential, key, shape, _float(dtype).code)


def gumbel(key: Any, shape: Any = (), dtype: Any = F32) -> Tensor:
    """Gumbel's standard distribution: -log(-log(v)), where v is u + 2^-25 (float64: u + 2^-54): never 0 or 1."""
    return _drawn(_core.gumbel, key, shape, _float(dtype).code)


def logistic(key: Any, shape: Any = (), dtype: Any = F32) -> Tensor:
    """The logistic distribution: log(v / (1 - v)), v as of gumbel."""
    return _drawn(_core.logistic, key, shape, _float(dtype).code)


def laplace(key: Any, shape: Any = (), dtype: Any = F32) -> Tensor:
    """Laplace's distribution: an exponential number, its sign random."""
    t = _float(dtype)
    pair = split(key)
    sign = _ops.where(_ops.less(bits(pair[1], shape), 1 << 31), asarray(1.0), asarray(-1.0))
    return _ops.astype(exponential(pair[0], shape, _wide(t)) * _ops.astype(sign, _wide(t)), t)


def cauchy(key: Any, shape: Any = (), dtype: Any = F32) -> Tensor:
    """Cauchy's distribution: tan(pi (u - 1/2))."""
    return _drawn(_core.cauchy, key, shape, _float(dtype).code)


def rademacher(key: Any, shape: Any = (), dtype: Any = I64) -> Tensor:
    """1 or -1, by the highest bit of a word."""
    return _ops.astype(_ops.where(_ops.less(bits(key, shape), 1 << 31), asarray(1), asarray(-1)), dtype)


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Tensor:
    """Numbers of classes whose logarithms of weights lie along an axis: argmax(logits + gumbel). shape: of the result; its last axes are
    those of logits without `axis`."""
    x = _ops.floating(logits)
    a = _ops.axis_of(axis, x.ndim)
    batch = tuple(n for i, n in enumerate(x.shape) if i != a)
    if shape is None:
        shape = batch
    shape = _shape(shape)
    if len(shape) < len(batch) or (batch and shape[len(shape) - len(batch) :] != batch):
        raise ShapeError(f"the shape {shape} of categorical must end with {batch}, that of logits without axis {a}")
    more = shape[: len(shape) - len(batch)]
    noise = gumbel(key, (*more, *x.shape), x.dtype)
    return _ops.argmax(noise + x, axis=len(more) + a)


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Tensor:
    """x, or 0 ... x - 1 of an integer, in a random order along an axis. independent: of each row its own. The order is that of a stable
    sort of 64 random bits."""
    if isinstance(x, (int, _dims.Dim)):
        x = _ops.iota(x)
    t = asarray(x)
    a = _ops.axis_of(axis, t.ndim)
    if independent:
        return _ops.take_along_axis(t, _order(bits(key, t.shape, U64), a), axis=a)
    return _ops.take(t, _order(bits(key, (t.shape[a],), U64), 0), axis=a)


def _order(words: Tensor, axis: int) -> Tensor:
    return _ops.make(_core.argsort, words, axis, False)


def shuffle(key: Any, x: Any, axis: int = 0) -> Tensor:
    """The same as `permutation` of a tensor."""
    return permutation(key, asarray(x), axis)


def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Tensor:
    """Elements of a (of 0 ... a - 1 where it is an integer) along an axis. p: their probabilities, along it; replace=False: each at most
    once."""
    values = _ops.iota(a) if isinstance(a, (int, _dims.Dim)) else asarray(a)
    at = _ops.axis_of(axis, values.ndim)
    n, shape = values.shape[at], _shape(shape)
    count = _size(shape)
    if not replace and isinstance(n, int) and isinstance(count, int) and count > n:
        raise ArgumentError(f"{count} elements of {n} cannot be chosen without repeating one")
    if p is not None:
        weights = _ops.floating(p)
        if weights.shape != (n,):
            raise ShapeError(f"p has shape {weights.shape}; it must be ({n},): one probability for each element")
    if replace:
        index = randint(key, shape, 0, n) if p is None and isinstance(n, int) else None
        if index is None:
            logits = _ops.zeros((n,)) if p is None else _ops.log(weights)
            index = categorical(key, logits, shape=shape)
    else:
        if p is None:
            order = _order(bits(key, (n,), U64), 0)
        else:  # the greatest of log p + gumbel are drawn one after another
            order = _order(-(gumbel(key, (n,), weights.dtype) + _ops.log(weights)), 0)
        index = _ops.reshape(order[0:count], shape)
    moved = _ops.take(values, index, axis=at)
    return moved


def multivariate_normal(key: Any, mean: Any, factor: Any, shape: Any = ()) -> Tensor:
    """mean + factor @ z, z normal: `factor` is the Cholesky factor of the covariance."""
    m, f = _ops.floating(mean), _ops.floating(factor)
    z = normal(key, (*_shape(shape), f.shape[-1]), f.dtype)
    return m + _ops.squeeze(_ops.matmul(f, _ops.expand_dims(z, -1)), -1)


__all__: Sequence[str] = [
    "key", "split", "fold_in", "bits", "uniform", "normal", "randint", "bernoulli", "exponential", "gumbel", "logistic", "laplace",
    "cauchy", "rademacher", "truncated_normal", "gamma", "beta", "poisson", "categorical", "permutation", "shuffle", "choice", "multivariate_normal",
]  # fmt: skip
