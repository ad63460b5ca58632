"""Operations on tensors: functions of the module `astra`, many of them methods of Tensor too.

Takes:    tensors, arrays, numbers.
Gives:    tensors.
Keeps:    names and meanings of the Array API 2025.12, aliases of NumPy beside them; promotion by the lattice of docs/ops.md, a number of
          Python's takes the type of the tensor beside it.
Does not: compute: each function adds nodes to the graph at hand.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from . import _core, _dims, _dtypes
from ._errors import ArgumentError, DTypeError, ShapeError
from ._graph import Graph, current
from ._tensor import Tensor, asarray, call, of_node

F32 = _dtypes.DTYPES["float32"]
I64 = _dtypes.DTYPES["int64"]
BOOL = _dtypes.DTYPES["bool"]
NUMBERS = (bool, int, float, complex, _dims.Dim)


def make(function: Callable[..., Any], *args: Any) -> Tensor:
    """A tensor of a function of the core that gives a node: tensors among the arguments become nodes of the graph at hand."""
    graph = current()
    given = [a._in(graph) if isinstance(a, Tensor) else a for a in args]
    return of_node(graph, call(function, graph.core, *given))


def make_several(function: Callable[..., Any], *args: Any) -> tuple[Tensor | None, ...]:
    """The same of a function that gives several nodes."""
    graph = current()
    given = [a._in(graph) if isinstance(a, Tensor) else a for a in args]
    return tuple(None if n is None else of_node(graph, n) for n in call(function, graph.core, *given))


def op(name: str, *tensors: Tensor, ints: Sequence[int] = (), dtype: str = "") -> Tensor:
    """A node of a primitive op."""
    graph = current()
    return of_node(graph, call(graph.core.make, name, [t._in(graph) for t in tensors], list(ints), dtype))


def sizes(graph: Graph, shape: Any) -> list[Any]:
    """A shape as nodes."""
    if isinstance(shape, (int, _dims.Dim, np.integer)):
        shape = (shape,)
    return [_dims.size_node(graph.core, n) for n in shape]


def literal(value: Any, t: _dtypes.DType) -> Tensor:
    """A scalar as part of the program."""
    graph = current()
    if isinstance(value, _dims.Dim):
        return astype(of_node(graph, call(graph.core.scalar, _dims.size_node(graph.core, value), "i64")), t)
    if t.kind in "iub":
        array = np.asarray(value).astype(t.numpy) if not isinstance(value, int) else value
        number = int(array)
        if isinstance(value, int) and t.kind in "iu":
            lo, hi = (-(1 << t.bits - 1), (1 << t.bits - 1) - 1) if t.kind == "i" else (0, (1 << t.bits) - 1)
            if not lo <= number <= hi:
                raise OverflowError(f"{value} is outside of {t.name}, {lo}..{hi}")
        return of_node(graph, graph.core.literal_int(t.code, number if number < 1 << 63 else number - (1 << 64)))
    if t.kind == "c":
        part = _dtypes.DTYPES["float32" if t.bits == 64 else "float64"]
        number = complex(value)
        return op("complex", literal(number.real, part), literal(number.imag, part))
    return of_node(graph, graph.core.literal(t.code, float(value)))


def operands(*xs: Any) -> list[Tensor]:
    """Tensors of one dtype from tensors, arrays and numbers."""
    t: _dtypes.DType | None = None
    made: list[Any] = []
    for x in xs:
        if not isinstance(x, NUMBERS) or isinstance(x, np.generic):
            x = x if isinstance(x, Tensor) else asarray(x)
            t = x.dtype if t is None else _dtypes.promote(t, x.dtype)
        made.append(x)
    kinds = [_dtypes.kind_of_number(x) for x in made if not isinstance(x, Tensor)]
    if t is None:
        t = _dtypes.DEFAULT[max(kinds, key=lambda k: _dtypes._RANK[k])]
    for kind in kinds:
        t = _dtypes.with_number(t, kind)
    return [astype(x, t) if isinstance(x, Tensor) else literal(x, t) for x in made]


def floating(x: Any) -> Tensor:
    """x, an integer or bool one as float32."""
    x = asarray(x)
    return x if x.dtype.kind in "fc" else astype(x, F32)


# ---- types


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """x in another element type: floats to integers truncate and saturate, a NaN gives 0; integers wrap."""
    x, t = asarray(x), _dtypes.dtype(dtype)
    if x.dtype is t:
        return x
    if x.dtype.kind == "c" and t.kind != "c":
        if t.kind != "b":
            raise DTypeError(f"a complex tensor cannot become {t.name}: take its real or imaginary part first")
    return make(_core.cast, x, t.code)


def bitcast(x: Any, dtype: Any) -> Tensor:
    """The same bits as another type of the same width."""
    return op("bitcast", asarray(x), dtype=_dtypes.dtype(dtype).code)


def result_type(*xs: Any) -> _dtypes.DType:
    """The dtype that tensors, dtypes and numbers have together."""
    t: _dtypes.DType | None = None
    kinds = []
    for x in xs:
        if isinstance(x, NUMBERS) and not isinstance(x, np.generic):
            kinds.append(_dtypes.kind_of_number(x))
        else:
            own = _dtypes.dtype(x)
            t = own if t is None else _dtypes.promote(t, own)
    if t is None:
        return _dtypes.DEFAULT[max(kinds, key=lambda k: _dtypes._RANK[k])]
    for kind in kinds:
        t = _dtypes.with_number(t, kind)
    return t


# ---- elementwise: tables


def _unary(name: str, doc: str, of: str = "any") -> Callable[[Any], Tensor]:
    def function(x: Any, /) -> Tensor:
        x = floating(x) if of == "float" else asarray(x)
        return op(name, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _binary(name: str, doc: str) -> Callable[[Any, Any], Tensor]:
    def function(x: Any, y: Any, /) -> Tensor:
        x, y = operands(x, y)
        return _binary_node(name, x, y)

    function.__doc__ = doc
    return function


def _binary_node(name: str, x: Tensor, y: Tensor) -> Tensor:
    graph = current()
    return of_node(graph, call(_core.binary, graph.core, name, x._in(graph), y._in(graph)))


negative = _unary("neg", "-x.")
abs = _unary("abs", "The magnitude; of complex numbers a real one.")
sqrt = _unary("sqrt", "The square root, correctly rounded.", "float")
exp = _unary("exp", "e^x.", "float")
exp2 = _unary("exp2", "2^x.", "float")
expm1 = _unary("expm1", "e^x - 1.", "float")
log = _unary("log", "The natural logarithm.", "float")
log2 = _unary("log2", "The logarithm to base 2.", "float")
log1p = _unary("log1p", "log(1 + x).", "float")
sin = _unary("sin", "The sine.", "float")
cos = _unary("cos", "The cosine.", "float")
tan = _unary("tan", "The tangent.", "float")
tanh = _unary("tanh", "The hyperbolic tangent.", "float")
erf = _unary("erf", "The error function.", "float")
sigmoid = _unary("sigmoid", "1 / (1 + e^-x).", "float")
rsqrt = _unary("rsqrt", "1 / sqrt(x).", "float")
asin = _unary("asin", "The arc sine.", "float")
acos = _unary("acos", "The arc cosine.", "float")
atan = _unary("atan", "The arc tangent.", "float")
sinh = _unary("sinh", "The hyperbolic sine.", "float")
cosh = _unary("cosh", "The hyperbolic cosine.", "float")
asinh = _unary("asinh", "The inverse of sinh.", "float")
acosh = _unary("acosh", "The inverse of cosh.", "float")
atanh = _unary("atanh", "The inverse of tanh.", "float")
stop_gradient = _unary("detach", "x, through which no gradient goes.")

add = _binary("add", "x + y.")
subtract = _binary("sub", "x - y.")
multiply = _binary("mul", "x * y.")
maximum = _binary("max", "The greater; a NaN wins.")
minimum = _binary("min", "The lesser; a NaN wins.")
equal = _binary("eq", "x == y.")
not_equal = _binary("ne", "x != y.")
less = _binary("lt", "x < y.")
less_equal = _binary("le", "x <= y.")
bitwise_and = _binary("and", "Bits that both have.")
bitwise_or = _binary("or", "Bits that one has.")
bitwise_xor = _binary("xor", "Bits that one alone has.")
bitwise_left_shift = _binary("shl", "x shifted left by y.")
bitwise_right_shift = _binary("shr", "x shifted right by y, the sign kept.")
copysign = _binary("copysign", "x with the sign of y.")


def greater(x: Any, y: Any, /) -> Tensor:
    """x > y."""
    return less(y, x)


def greater_equal(x: Any, y: Any, /) -> Tensor:
    """x >= y."""
    return less_equal(y, x)


def divide(x: Any, y: Any, /) -> Tensor:
    """x / y, of integers a float."""
    x, y = operands(x, y)
    return _binary_node("div", floating(x), floating(y))


def floor_divide(x: Any, y: Any, /) -> Tensor:
    """The quotient rounded down."""
    x, y = operands(x, y)
    if x.dtype.kind in "iu":
        return _binary_node("floordiv", x, y)
    return floor(_binary_node("div", x, y))


def remainder(x: Any, y: Any, /) -> Tensor:
    """x - floor(x / y) * y, exact, of the sign of y."""
    x, y = operands(x, y)
    return make(_core.remainder, x, y, False)


def fmod(x: Any, y: Any, /) -> Tensor:
    """x - trunc(x / y) * y, exact, of the sign of x."""
    x, y = operands(x, y)
    return make(_core.remainder, x, y, True)


def pow(x: Any, y: Any, /) -> Tensor:
    """x^y."""
    x, y = operands(x, y)
    return make(_core.power, x, y)


def square(x: Any, /) -> Tensor:
    """x * x."""
    x = asarray(x)
    return _binary_node("mul", x, x)


def reciprocal(x: Any, /) -> Tensor:
    """1 / x."""
    return divide(1, x)


def _rounding(name: str, doc: str) -> Callable[[Any], Tensor]:
    def function(x: Any, /) -> Tensor:
        x = asarray(x)
        return x if x.dtype.kind in "iub" else op(name, x)

    function.__doc__ = doc
    return function


floor = _rounding("floor", "The greatest integer not above x.")
ceil = _rounding("ceil", "The least integer not below x.")
trunc = _rounding("trunc", "x without its fraction.")
round = _rounding("roundeven", "The nearest integer, ties to even.")


def sign(x: Any, /) -> Tensor:
    """-1, 0 or 1; a NaN stays."""
    return make(_core.sign, asarray(x))


def positive(x: Any, /) -> Tensor:
    """x."""
    return asarray(x)


def logical_not(x: Any, /) -> Tensor:
    """Whether x is 0 or false."""
    return op("not", astype(asarray(x), BOOL))


def bitwise_invert(x: Any, /) -> Tensor:
    """The complement of the bits."""
    return op("not", asarray(x))


def logical_and(x: Any, y: Any, /) -> Tensor:
    """Whether both are true."""
    return bitwise_and(astype(asarray(x), BOOL), astype(asarray(y), BOOL))


def logical_or(x: Any, y: Any, /) -> Tensor:
    """Whether one is true."""
    return bitwise_or(astype(asarray(x), BOOL), astype(asarray(y), BOOL))


def logical_xor(x: Any, y: Any, /) -> Tensor:
    """Whether one alone is true."""
    return bitwise_xor(astype(asarray(x), BOOL), astype(asarray(y), BOOL))


def isnan(x: Any, /) -> Tensor:
    """Whether x is not a number."""
    x = asarray(x)
    return _binary_node("ne", x, x)


def where(condition: Any, x: Any, y: Any, /) -> Tensor:
    """x where the condition holds, else y."""
    x, y = operands(x, y)
    return make(_core.select, astype(asarray(condition), BOOL), x, y)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """x brought between min and max, each a number, a tensor, or None."""
    x = asarray(x)
    if min is not None:
        x = maximum(x, min)
    return x if max is None else minimum(x, max)


# ---- shapes


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """The same elements in row-major order under another shape; one extent may be -1."""
    x = asarray(x)
    if isinstance(shape, (int, _dims.Dim)):
        shape = (shape,)
    shape = list(shape)
    unknown = [i for i, n in enumerate(shape) if isinstance(n, int) and n == -1]
    if len(unknown) > 1:
        raise ArgumentError("only one extent of a shape may be -1")
    if unknown:
        known: Any = 1
        for n in shape:
            known = known * (1 if isinstance(n, int) and n == -1 else n)
        total = x.size
        if isinstance(known, int) and isinstance(total, int) and (known == 0 or total % known):
            raise ShapeError(f"{total} elements cannot have the shape {tuple(shape)}")
        shape[unknown[0]] = total // known
    graph = current()
    return of_node(graph, call(_core.reshape, graph.core, x._in(graph), sizes(graph, shape)))


def axis_of(axis: Any, rank: int) -> int:
    """An axis counted from the front."""
    n = int(axis)
    if not -rank <= n < rank:
        raise ArgumentError(f"axis {n} is outside of a tensor of {rank} axes")
    return n % rank


def axes_of(axis: Any, rank: int) -> list[int]:
    """Axes, ascending; None is all."""
    if axis is None:
        return list(range(rank))
    found = [axis_of(a, rank) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(set(found)) != len(found):
        raise ArgumentError(f"an axis is named twice in {axis}")
    return sorted(found)


def permute_dims(x: Any, /, axes: Sequence[int]) -> Tensor:
    """x with its axes in another order."""
    x = asarray(x)
    perm = [axis_of(a, x.ndim) for a in axes]
    if sorted(perm) != list(range(x.ndim)):
        raise ArgumentError(f"{tuple(axes)} does not name each of {x.ndim} axes once")
    return make(_core.permute, x, perm)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """The axes reversed, or in the order given."""
    x = asarray(x)
    return permute_dims(x, range(x.ndim)[::-1] if axes is None else axes)


def matrix_transpose(x: Any, /) -> Tensor:
    """The last two axes exchanged."""
    return swapaxes(x, -1, -2)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    x = asarray(x)
    perm = list(range(x.ndim))
    i, j = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    perm[i], perm[j] = perm[j], perm[i]
    return permute_dims(x, perm)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Tensor:
    """Axes moved to other places; the others keep their order."""
    x = asarray(x)
    one = lambda a: [a] if isinstance(a, int) else list(a)  # noqa: E731
    src, dst = [axis_of(a, x.ndim) for a in one(source)], [axis_of(a, x.ndim) for a in one(destination)]
    if len(src) != len(dst) or len(set(src)) != len(src) or len(set(dst)) != len(dst):
        raise ArgumentError("source and destination must name as many axes, each once")
    order = [a for a in range(x.ndim) if a not in src]
    for place, a in sorted(zip(dst, src)):
        order.insert(place, a)
    return permute_dims(x, order)


def expand_dims(x: Any, /, axis: Any = 0) -> Tensor:
    """Axes of extent 1 put in at places of the result."""
    x = asarray(x)
    n = len(axis) if isinstance(axis, (tuple, list)) else 1
    return make(_core.unsqueeze, x, axes_of(axis, x.ndim + n))


def squeeze(x: Any, /, axis: Any = None) -> Tensor:
    """x without axes of extent 1."""
    x = asarray(x)
    if axis is None:
        axis = [i for i, n in enumerate(x.shape) if isinstance(n, int) and n == 1]
    return make(_core.squeeze, x, axes_of(axis, x.ndim))


def broadcast_to(x: Any, /, shape: Any) -> Tensor:
    """x repeated to a shape, by NumPy's rules."""
    x, graph = asarray(x), current()
    return of_node(graph, call(_core.broadcast_to, graph.core, x._in(graph), sizes(graph, shape)))


def concat(xs: Sequence[Any], /, axis: int | None = 0) -> Tensor:
    """Tensors one after another along an axis; None: each flattened."""
    made = operands(*xs)
    if axis is None:
        made, axis = [reshape(x, (-1,)) for x in made], 0
    graph = current()
    if not made:
        raise ArgumentError("there is nothing to concatenate")
    return of_node(graph, call(_core.concat, graph.core, [x._in(graph) for x in made], axis_of(axis, made[0].ndim)))


def stack(xs: Sequence[Any], /, axis: int = 0) -> Tensor:
    """Tensors of one shape one beside another along a new axis."""
    made = operands(*xs)
    if not made:
        raise ArgumentError("there is nothing to stack")
    return concat([expand_dims(x, axis) for x in made], axis=axis_of(axis, made[0].ndim + 1))


def flip(x: Any, /, axis: Any = None) -> Tensor:
    """Axes reversed; None: all."""
    x = asarray(x)
    return make(_core.flip, x, axes_of(axis, x.ndim))


# ---- creation


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of one value."""
    t = _dtypes.dtype(dtype) if dtype is not None else result_type(fill_value)
    value = astype(fill_value, t) if isinstance(fill_value, Tensor) else literal(fill_value, t)
    return broadcast_to(value, shape)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros, of float32 unless dtype says otherwise."""
    return full(shape, 0, dtype=dtype or F32)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones, of float32 unless dtype says otherwise."""
    return full(shape, 1, dtype=dtype or F32)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros of the shape and type of x."""
    x = asarray(x)
    return full(x.shape, 0, dtype=dtype or x.dtype)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones of the shape and type of x."""
    x = asarray(x)
    return full(x.shape, 1, dtype=dtype or x.dtype)


def iota(n: Any, dtype: Any = I64) -> Tensor:
    """0, 1, ... n - 1."""
    graph = current()
    return of_node(graph, call(_core.iota, graph.core, _dtypes.dtype(dtype).code, sizes(graph, n), 0))


# ---- reductions


def _reduction(kind: str, doc: str, of: str = "any") -> Callable[..., Tensor]:
    def function(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
        x = floating(x) if of == "float" else asarray(x)
        if dtype is not None:
            x = astype(x, dtype)
        elif kind in ("sum", "prod") and x.dtype.kind in "biu" and x.dtype.bits < 64:
            x = astype(x, "uint64" if x.dtype.kind == "u" else I64)
        return make(_core.fold, kind, x, axes_of(axis, x.ndim), keepdims)

    function.__doc__ = doc
    return function


sum = _reduction("sum", "The sum along axes (None: all), in the order lane64 of docs/numerics.md; of small integers in 64 bits.")
prod = _reduction("prod", "The product along axes (None: all).")
max = _reduction("max", "The greatest element; a NaN wins.")
min = _reduction("min", "The least element; a NaN wins.")
mean = _reduction("mean", "The mean along axes (None: all).", "float")
logsumexp = _reduction("logsumexp", "log(sum(exp(x))) without overflow.", "float")


def all(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Whether all elements along axes are true."""
    x = astype(asarray(x), BOOL)
    return make(_core.reduce, "and", x, axes_of(axis, x.ndim), keepdims)


def any(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Whether an element along axes is true."""
    x = astype(asarray(x), BOOL)
    return make(_core.reduce, "or", x, axes_of(axis, x.ndim), keepdims)


def _arg(greatest: bool) -> Callable[..., Tensor]:
    def function(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        x = asarray(x)
        if axis is None:
            rank, x = x.ndim, reshape(x, (-1,))
            out = squeeze(make(_core.arg_reduce, x, 0, greatest, False), 0)
            return reshape(out, (1,) * rank) if keepdims else out
        a = axis_of(axis, x.ndim)
        out = make(_core.arg_reduce, x, a, greatest, False)
        return out if keepdims else squeeze(out, a)

    return function


argmax = _arg(True)
argmax.__doc__ = "The index of the greatest element along an axis (None: of all), the first of several."
argmin = _arg(False)
argmin.__doc__ = "The index of the least element along an axis (None: of all), the first of several."


def softmax(x: Any, /, axis: int = -1) -> Tensor:
    """exp(x) over its sum along an axis."""
    x = floating(x)
    return make(_core.softmax, x, [axis_of(axis, x.ndim)])


def log_softmax(x: Any, /, axis: int = -1) -> Tensor:
    """log(softmax(x)), without overflow."""
    x = floating(x)
    return make(_core.log_softmax, x, [axis_of(axis, x.ndim)])


# ---- products


def matmul(x: Any, y: Any, /) -> Tensor:
    """The product of matrices; leading axes broadcast."""
    x, y = operands(x, y)
    return make(_core.product, x, y)


def einsum(equation: str, *xs: Any) -> Tensor:
    """NumPy's einsum: "ij,jk->ik"."""
    made, graph = operands(*xs), current()
    return of_node(graph, call(_core.einsum, graph.core, equation.replace(" ", ""), [x._in(graph) for x in made]))


# ---- indexing


def take(x: Any, indices: Any, /, axis: int | None = None) -> Tensor:
    """Elements along an axis by their numbers; negative ones count from the end, those outside read 0."""
    x, indices = asarray(x), asarray(indices)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    return make(_core.gather, x, indices, axis_of(axis, x.ndim))


def take_along_axis(x: Any, indices: Any, /, axis: int = -1) -> Tensor:
    """Along one axis, element by element."""
    x = asarray(x)
    return make(_core.gather_elements, x, asarray(indices), axis_of(axis, x.ndim))


def getitem(x: Tensor, key: Any) -> Tensor:
    """x[key], by NumPy's rules: integers, slices, None, ..., masks and tensors of integers."""
    from ._indexing import getitem as get

    return get(x, key)
