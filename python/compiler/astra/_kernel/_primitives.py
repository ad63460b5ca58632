"""The primitives of the kernel language: one table, from which calls are checked, editors complete and docs/kernels.md is written.

Takes:    a walker, and what a call in a kernel is given.
Gives:    a value, or a refusal with the place of the call.
Keeps:    one row a primitive: its group, its signature, its types, one sentence of meaning (the docstring).
"""

from __future__ import annotations

import ast
import inspect
from typing import Any, Callable

from .. import _core, _dtypes, _ops
from .._dims import Dim
from .._dtypes import DType
from .._errors import ArgumentError, TraceError
from . import _forms, _views
from ._values import Index, Tile, View, described
from ._expressions import MOST_ELEMENTS, NUMBERS, same_extent, same_shape, shown
from ._walker import Walker

GROUPS = ("programs", "memory", "making tiles", "shapes", "element by element", "folds", "order", "products", "statements")
PRIMITIVES: dict[str, Primitive] = {}


class Primitive:
    """A primitive of the kernel language; it has a meaning inside of a kernel alone."""

    def __init__(self, name: str, group: str, types: str, f: Callable[..., Any], meaning: str) -> None:
        self.name, self.group, self.types, self.f, self.meaning = name, group, types, f, meaning
        self.__name__, self.__doc__ = name, meaning
        signature = inspect.signature(f)
        self.signature = signature.replace(parameters=[
            p.replace(annotation=p.empty) for p in list(signature.parameters.values())[1:]], return_annotation=signature.empty)  # fmt: skip

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise ArgumentError(f"astra.kernel.{self.name} is called in a kernel, a function under @astra.kernel")

    def __repr__(self) -> str:
        return f"<astra.kernel.{self.name}{self.signature}>"

    def apply(self, w: Walker, *args: Any, **named: Any) -> Any:
        """What a call in a kernel gives."""
        try:
            self.signature.bind(*args, **named)
        except TypeError as error:
            raise w.error(f"{self.name}{self.signature}: {error}") from None
        try:
            return self.f(w, *args, **named)
        except TraceError as error:  # what it asks of an extent is not known of a size
            raise w.error(f"{self.name}: {error}") from None


def _add(name: str, group: str, types: str, f: Callable[..., Any], meaning: str) -> None:
    PRIMITIVES[name] = Primitive(name, group, types, f, meaning)


def primitive(group: str, types: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A row of the table: the function's name without a last underscore, its docstring."""

    def row(f: Callable[..., Any]) -> Callable[..., Any]:
        _add(f.__name__.rstrip("_"), group, types, f, " ".join((f.__doc__ or "").split()))
        return f

    return row


# ---- arguments


def _tile(w: Walker, x: Any, what: str, kinds: str = "") -> Tile:
    """A tile, of dtypes of these kinds."""
    if isinstance(x, View):
        raise w.error(f"{what} is a tile, and {described(x)} is a whole tensor in memory: load a tile of it with kernel.load(x, at, shape)")
    if isinstance(x, (Index, *NUMBERS)):
        x = Tile(w.tensor(x), w.form(x))
    if not isinstance(x, Tile):
        raise w.error(f"{what} is a tile, not {described(x)}")
    if kinds and x.dtype.kind not in kinds:
        words = {"b": "bools", "i": "integers", "u": "unsigned integers", "f": "floats"}
        wanted = " or ".join(words[k] for k in kinds if k != "u" or "i" not in kinds)
        more = f"; cast it first: kernel.cast(x, {'astra.float32' if kinds == 'f' else 'a dtype'})" if kinds != "b" else ""
        raise w.error(f"{what} is of {wanted}, not of {x.dtype.name}{more}")
    return x


def _shape(w: Walker, shape: Any, what: str) -> tuple[Any, ...]:
    """Extents: numbers, and sizes of arguments, of which a size with bounds is one too."""
    parts = tuple(w.size(p, what) if isinstance(p, Index) else p for p in (shape if isinstance(shape, tuple) else (shape,)))
    n = 1
    for p in parts:
        if isinstance(p, Tile):
            raise w.error(f"{what} is of numbers that are known while the kernel is compiled; make a size a keyword argument of the kernel (BLOCK=64)")
        if isinstance(p, Dim):
            n *= p.bounds[1]
            continue
        if isinstance(p, bool) or not isinstance(p, int):
            raise w.error(f"{what} is a tuple of numbers; {described(p)} is in it")
        if p < 1:
            raise w.error(f"{what} has an extent of {p}; extents are 1 at least")
        n *= p
    if n > MOST_ELEMENTS:
        raise w.error(f"{what} {shown(parts)} has {n} elements; {MOST_ELEMENTS} are the most of a tile")
    return parts


def _dtype(w: Walker, t: Any) -> DType:
    if isinstance(t, (DType, str)) or t in (int, float, bool):
        found: DType = w.attempt(_dtypes.dtype, t)
        return found
    raise w.error(f"a dtype is needed, as astra.float32, not {described(t)}")


def _axis(w: Walker, axis: Any, rank: int, extra: int = 0) -> int:
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise w.error(f"an axis is a number, not {described(axis)}")
    if not -rank - extra <= axis < rank + extra:
        raise w.error(f"axis {axis} of a tile of {rank} axes")
    return axis % (rank + extra)


def _view(w: Walker, view: Any, reads: bool) -> View:
    if not isinstance(view, View):
        raise w.error(f"an argument of the kernel is needed, not {described(view)}")
    if reads and view.is_output:
        raise w.error(f"'{view.name}' is an output: a kernel never reads what it writes; keep the value in a name, or make two kernels")
    if not reads and not view.is_output:
        raise w.error(f"'{view.name}' is an input: a kernel stores into outputs alone, arguments that are given as astra.spec(shape, dtype)")
    return view


def _place(w: Walker, view: View, at: Any, what: str) -> tuple[Any, ...]:
    parts = at if isinstance(at, tuple) else (at,)
    if len(parts) != len(view.shape):
        raise w.error(f"{what} has {len(parts)} indices; '{view.name}' has {len(view.shape)} axes")
    return parts


# ---- programs


@primitive("programs", "int -> integer")
def program_id(w: Walker, axis: Any = 0) -> Any:
    """The number of the program along an axis of the grid: 0, 1, ... ."""
    return w.program_id(_grid_axis(w, axis))


@primitive("programs", "int -> integer")
def num_programs(w: Walker, axis: Any = 0) -> Any:
    """The extent of the grid along an axis."""
    return w.num_programs(_grid_axis(w, axis))


def _grid_axis(w: Walker, axis: Any) -> int:
    if isinstance(axis, bool) or not isinstance(axis, int) or axis not in (0, 1, 2):
        raise w.error(f"the axes of a grid are 0, 1 and 2, not {described(axis)}")
    return axis


# ---- memory


@primitive("memory", "input, integers, shape -> tile")
def load(w: Walker, view: Any, at: Any, shape: Any, *, fill: Any = None) -> Tile:
    """The block of this shape that begins at these indices. What is outside is `fill`; without one it must be inside."""
    v = _view(w, view, True)
    place, extents = _place(w, v, at, "the place of a load"), _shape(w, shape, "the shape of a load")
    if len(extents) != len(v.shape):
        raise w.error(f"a load of shape {extents} from '{v.name}', which has {len(v.shape)} axes: extents of 1 where one element is wanted")
    for p in place:
        _index(w, p, "the place of a load")
    return w.load(v, place, extents, _fill(w, fill, v))


def _index(w: Walker, p: Any, what: str) -> None:
    if isinstance(p, (bool, float)) or not (isinstance(p, (int, Index)) or isinstance(p, Tile) and p.shape == () and p.dtype.kind in "iu"):
        raise w.error(f"{what} is made of integers, not of {described(p)}" + ("; kernel.gather reads at a tile of indices" if isinstance(p, Tile) else ""))


def _fill(w: Walker, fill: Any, v: View) -> Any:
    if fill is None:
        return None
    if isinstance(fill, bool) and v.dtype.kind == "b" or isinstance(fill, (int, float)) and not isinstance(fill, bool) and v.dtype.kind == "f" or isinstance(
            fill, int) and not isinstance(fill, bool) and v.dtype.kind in "iu":  # fmt: skip
        return fill
    if v.dtype.kind == "s" and fill == 0:
        return 0
    raise w.error(f"the fill of a load from '{v.name}' is a number of the kind of {v.dtype.name}, not {described(fill)}")


@primitive("memory", "output, integers, tile")
def store(w: Walker, view: Any, at: Any, value: Any, *, drop: Any = False) -> None:
    """Writes a tile at these indices. With drop=True what is outside is not written; without it all must be inside."""
    v = _view(w, view, False)
    place = _place(w, v, at, "the place of a store")
    for p in place:
        _index(w, p, "the place of a store")
    t = value if isinstance(value, Tile) else _like(w, value, v, place)
    if len(t.shape) != len(v.shape):
        raise w.error(f"a tile of shape {t.shape} is stored into '{v.name}', which has {len(v.shape)} axes")
    _typed(w, t, v)
    w.store(v, place, t, _flag(w, drop, "drop"))


def _like(w: Walker, value: Any, v: View, place: tuple[Any, ...]) -> Tile:
    if isinstance(value, (Index, *NUMBERS)):
        return w.made(_ops.broadcast_to(w.tensor(value, v.dtype), (1,) * len(v.shape)))
    raise w.error(f"what is stored is a tile, not {described(value)}")


def _typed(w: Walker, t: Tile, v: View) -> None:
    if t.dtype is not v.dtype:
        raise w.error(f"a tile of {t.dtype.name} is stored into '{v.name}', which is of {v.dtype.name}: cast it with kernel.cast(x, {v.name}.dtype)")


def _flag(w: Walker, x: Any, what: str) -> bool:
    if not isinstance(x, bool):
        raise w.error(f"{what} is True or False, not {described(x)}")
    return x


@primitive("memory", "input, tiles of integers -> tile")
def gather(w: Walker, view: Any, at: Any, *, fill: Any = None) -> Tile:
    """The elements at indices, one tile an axis; they broadcast. What is outside reads `fill`; without one all must be inside."""
    v = _view(w, view, True)
    place = tuple(_tile(w, p, "an index of gather", "iu") for p in _place(w, v, at, "the place of a gather"))
    _common(w, place, "gather")
    return w.gather(v, place, _fill(w, fill, v))


def _common(w: Walker, tiles: tuple[Tile, ...], what: str) -> tuple[int, ...]:
    shape: tuple[int, ...] = ()
    for t in tiles:
        shape = w.broadcast(shape, t.shape, f"the indices of {what}")
    return shape


@primitive("memory", "output, tiles of integers, tile")
def scatter(w: Walker, view: Any, at: Any, value: Any, *, mode: Any = "set", drop: Any = False) -> None:
    """Writes elements at indices. mode "set": no two to one place. "add", "max", "min": in the order of programs and elements."""
    _scatter(w, view, at, value, mode, drop, "scatter")


def _scatter(w: Walker, view: Any, at: Any, value: Any, mode: Any, drop: Any, what: str) -> None:
    v = _view(w, view, False)
    if v.base is not v:
        raise w.error(f"a {what} writes into an output itself, not into a view of it: compute the index")
    place = tuple(_tile(w, p, f"an index of {what}", "iu") for p in _place(w, v, at, f"the place of a {what}"))
    if mode not in ("set", "add", "max", "min"):
        raise w.error(f"the mode of scatter is 'set', 'add', 'max' or 'min', not {described(mode)}")
    if v.dtype.kind not in "iufb" or mode != "set" and v.dtype.kind == "b":
        raise w.error(f"{what} with mode '{mode}' into '{v.name}', which is of {v.dtype.name}")
    shape = _common(w, place, what)
    t = value if isinstance(value, Tile) else Tile(w.tensor(value, v.dtype))
    _typed(w, t, v)
    if w.broadcast(shape, t.shape, what) != shape:
        raise w.error(f"{what} of a tile of shape {t.shape} to {len(place)} indices of shape {shape}")
    w.scatter(v, place, Tile(_ops.broadcast_to(t.tensor, shape)), mode, _flag(w, drop, "drop"))


def _atomic(kind: str, words: str) -> None:
    def f(w: Walker, view: Any, at: Any, value: Any, *, drop: Any = False) -> None:
        v = _view(w, view, False)
        if v.dtype.kind not in "iu":
            raise w.error(f"atomic_{kind} into '{v.name}', which is of {v.dtype.name}: atomics are of integers, whose result no order changes; "
                          f"kernel.scatter(..., mode='{kind}') combines floats in the order of programs")  # fmt: skip
        _scatter(w, view, at, value, kind, drop, f"atomic_{kind}")

    _add(f"atomic_{kind}", "memory", "output of integers, tiles of integers, tile", f, words)


_atomic("add", "Adds the elements of a tile to those of an output at these indices, which begin as 0.")
_atomic("max", "The greater of the elements of a tile and those of an output, which begin as 0.")
_atomic("min", "The lesser of the elements of a tile and those of an output, which begin as 0.")


# ---- making tiles


@primitive("making tiles", "shape, number -> tile")
def full(w: Walker, shape: Any, value: Any, dtype: Any = "float32") -> Tile:
    """A tile of one number."""
    extents, t = _shape(w, shape, "the shape of a tile"), _dtype(w, dtype)
    if isinstance(value, Tile) and value.shape == ():
        return w.made(_ops.broadcast_to(w.attempt(_ops.astype, value.tensor, t), extents))
    return w.made(_ops.broadcast_to(w.tensor(value, t), extents), w.form(value))


@primitive("making tiles", "shape -> tile")
def zeros(w: Walker, shape: Any, dtype: Any = "float32") -> Tile:
    """A tile of zeros."""
    t = _dtype(w, dtype)
    return full(w, shape, False if t.kind == "b" else 0, t)


@primitive("making tiles", "int -> tile")
def arange(w: Walker, n: Any, dtype: Any = "int32") -> Tile:
    """The tile 0, 1, ..., n - 1."""
    (extent,) = _shape(w, n if not isinstance(n, tuple) else n[0] if len(n) == 1 else -1, "the extent of arange")
    t = _dtype(w, dtype)
    if t.kind not in "iu":
        raise w.error(f"arange is of integers, not of {t.name}: cast it")
    return w.made(_ops.astype(_ops.iota(extent), t), _forms.axis(0))


# ---- shapes


@primitive("shapes", "tile, shape -> tile")
def reshape(w: Walker, x: Any, shape: Any) -> Tile:
    """The same elements, row-major, in another shape."""
    t, extents = _tile(w, x, "what is reshaped"), _shape(w, shape, "the shape")
    if not same_extent(_count(t.shape), _count(extents)):
        raise w.error(f"a tile of shape {shown(t.shape)} has {_count(t.shape)} elements; {shown(extents)} has {_count(extents)}")
    return w.made(_ops.reshape(t.tensor, extents), t.form if isinstance(t.form, int) else None, w.bounds(t))


def _count(shape: tuple[Any, ...]) -> Any:
    n: Any = 1
    for p in shape:
        n *= p
    return n


def _said(w: Walker, v: View) -> str:
    """What the user calls a view that a call makes."""
    return ast.unparse(w.node) if isinstance(w.node, ast.expr) else v.name


@primitive("shapes", "tile, axes -> tile")
def permute(w: Walker, x: Any, axes: Any) -> Tile | View:
    """Axis i of the result is axis axes[i] of the tile. Of an argument: a view."""
    t = x if isinstance(x, View) else _tile(w, x, "what is permuted")
    rank = len(t.shape)
    if not isinstance(axes, tuple) or sorted(a for a in axes if isinstance(a, int)) != list(range(rank)) or len(axes) != rank:
        raise w.error(f"axes {axes} of a tile of {rank} axes: each of 0 .. {rank - 1} once")
    if isinstance(t, View):
        return _views.permuted(w, t, axes, _said(w, t))
    names: dict[str, Any] = {_forms.axis(rank - 1 - a): _forms.axis(rank - 1 - i) for i, a in enumerate(axes)}
    return w.made(_ops.permute_dims(t.tensor, axes), w.placed(t.form, names))


@primitive("shapes", "tile, shape -> tile")
def broadcast(w: Walker, x: Any, shape: Any) -> Tile | View:
    """The tile repeated along axes of extent 1 and along new ones in front. Of an input: a view."""
    if isinstance(x, View):
        return _views.broadcast(w, x, _shape(w, shape, "the shape"), _said(w, x))
    t, extents = _tile(w, x, "what is broadcast"), _shape(w, shape, "the shape")
    if not same_shape(w.broadcast(t.shape, extents, "broadcast"), extents):
        raise w.error(f"a tile of shape {shown(t.shape)} does not broadcast to {shown(extents)}")
    return w.made(_ops.broadcast_to(t.tensor, extents), t.form)


@primitive("shapes", "tile, ints -> tile")
def slice_(w: Walker, x: Any, begin: Any, shape: Any) -> Tile:
    """The part of a tile that begins at `begin` and has this shape; numbers. As x[2:4, :]."""
    t = _tile(w, x, "what is sliced")
    first = begin if isinstance(begin, tuple) else (begin,)
    extents = _shape(w, shape, "the shape of a slice")
    if not len(first) == len(extents) == len(t.shape):
        raise w.error(f"a slice at {begin} of shape {extents} of a tile of {len(t.shape)} axes")
    for b, n, m in zip(first, extents, t.shape):
        if isinstance(b, bool) or not isinstance(b, int):
            raise w.error(f"a slice of a tile begins at numbers, not at {described(b)}")
        if b < 0 or b + n > m:
            raise w.error(f"the slice {b} .. {b + n} leaves a tile of shape {t.shape}")
    key = [slice(b, b + n) for b, n in zip(first, extents)]
    return w.made(t.tensor[tuple(key)], w.indexed(t.form, t.shape, key))


@primitive("shapes", "tiles -> tile")
def join(w: Walker, tiles: Any, axis: Any = 0) -> Tile:
    """Tiles one after another along an axis."""
    if not isinstance(tiles, tuple) or not tiles:
        raise w.error("join takes a tuple of tiles")
    made = [_tile(w, t, "what is joined") for t in tiles]
    place = _axis(w, axis, len(made[0].shape))
    for t in made[1:]:
        if t.dtype is not made[0].dtype:
            raise w.error(f"join of {made[0].dtype.name} and {t.dtype.name}: all are of one dtype")
        if [n for i, n in enumerate(t.shape) if i != place] != [n for i, n in enumerate(made[0].shape) if i != place]:
            raise w.error(f"join along axis {place} of tiles of shapes {made[0].shape} and {t.shape}")
    return w.made(w.attempt(_ops.concat, [t.tensor for t in made], axis=place), None, _union([w.bounds(t) for t in made]))


def _union(bounds: list[Any]) -> tuple[int, int] | None:
    return None if None in bounds else (min(b[0] for b in bounds), max(b[1] for b in bounds))


@primitive("shapes", "tile -> tuple of tiles")
def split(w: Walker, x: Any, parts: Any, axis: Any = 0) -> tuple[Tile, ...]:
    """A tile in so many equal parts along an axis."""
    t = _tile(w, x, "what is split")
    place = _axis(w, axis, len(t.shape))
    if isinstance(parts, bool) or not isinstance(parts, int) or parts < 1 or t.shape[place] % parts:
        raise w.error(f"axis {place} of a tile of shape {t.shape} in {described(parts)} equal parts")
    step = t.shape[place] // parts
    keys = [[slice(None)] * place + [slice(i * step, i * step + step)] for i in range(parts)]
    return tuple(w.made(p, w.indexed(t.form, t.shape, key)) for p, key in zip(_ops.split(t.tensor, parts, axis=place), keys))


# ---- element by element


def _of_one(name: str, f: Any, kinds: str, meaning: str) -> None:
    def row(w: Walker, x: Any) -> Tile:
        t = _tile(w, x, f"the argument of {name}", kinds)
        form = w.form(t) if name == "abs" else None
        return w.made(w.attempt(f, t.tensor), None if form is None else ("abs", form))

    _add(name, "element by element", f"tile of {'floats' if kinds == 'f' else 'numbers'} -> tile", row, meaning)


for _name in ("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "tanh", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
              "erf", "sqrt", "rsqrt", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite"):  # fmt: skip
    _of_one(_name, getattr(_ops, _name), "f", (getattr(_ops, _name).__doc__ or "").split("\n")[0])
_of_one("sigmoid", _ops.sigmoid, "f", "1 / (1 + e^-x).")
_of_one("abs", _ops.abs, "iuf", "The magnitude.")


def _of_two(name: str, f: Any, kinds: str, meaning: str, form: str = "") -> None:
    def row(w: Walker, x: Any, y: Any) -> Tile:
        a, b = w.pair(x, y, name)
        if a.dtype.kind not in kinds:
            raise w.error(f"{name} of {a.dtype.name}")
        left, right = w.form(x), w.form(y)
        return w.made(w.attempt(f, a, b), _forms.make(form, left, right) if form and left is not None and right is not None else None)

    _add(name, "element by element", f"tiles of {'floats' if kinds == 'f' else 'numbers'} -> tile", row, meaning)


_of_two("maximum", _ops.maximum, "iuf", "The greater; a NaN wins.", "max")
_of_two("minimum", _ops.minimum, "iuf", "The lesser; a NaN wins.", "min")
_of_two("pow", _ops.pow, "iuf", "x ** y.")
_of_two("atan2", _ops.atan2, "f", "The angle of the point (y, x).")
_of_two("copysign", _ops.copysign, "f", "x with the sign of y.")
_of_two("fmod", _ops.fmod, "iuf", "The remainder of the sign of x.")


@primitive("element by element", "tiles of floats -> tile")
def fma(w: Walker, x: Any, y: Any, z: Any) -> Tile:
    """x * y + z, rounded once."""
    a, b = w.pair(x, y, "fma")
    c, _ = w.pair(z, Tile(a), "fma")
    if a.dtype.kind != "f":
        raise w.error(f"fma of {a.dtype.name}: it is of floats")
    shape = w.broadcast(w.broadcast(a.shape, b.shape, "fma"), c.shape, "fma")
    parts = [_ops.broadcast_to(t, shape) for t in (a, b, c)]
    return w.made(w.attempt(_ops.op, "fma", *parts))


@primitive("element by element", "bools, tiles -> tile")
def where(w: Walker, condition: Any, x: Any, y: Any) -> Tile:
    """x where the condition holds, else y. Also `select`."""
    c = _tile(w, condition, "the condition of where", "b")
    a, b = w.pair(x, y, "where")
    w.broadcast(w.broadcast(a.shape, b.shape, "where"), c.shape, "where")
    forms = (w.form(c), w.form(x), w.form(y))
    known = ("select", *forms) if None not in forms else None
    return w.made(w.attempt(_ops.where, c.tensor, a, b), known)


PRIMITIVES["select"] = PRIMITIVES["where"]


@primitive("element by element", "tile, bounds -> tile")
def clip(w: Walker, x: Any, low: Any, high: Any) -> Tile:
    """The lesser of `high` and of the greater of x and `low`."""
    lower = PRIMITIVES["maximum"].apply(w, x, low)
    found: Tile = PRIMITIVES["minimum"].apply(w, lower, high)
    return found


@primitive("element by element", "tile, dtype -> tile")
def cast(w: Walker, x: Any, dtype: Any) -> Tile:
    """The tile in another dtype: floats to integers truncate and saturate, a NaN gives 0; integers wrap."""
    t, to = _tile(w, x, "what is cast"), _dtype(w, dtype)
    form = w.form(t)
    if form is None or to.kind not in "iu":
        form = None
    elif t.dtype.kind == "b":
        form = _forms.make("select", form, 1, 0)
    return w.made(w.attempt(_ops.astype, t.tensor, to), form)


@primitive("element by element", "tile, dtype -> tile")
def bitcast(w: Walker, x: Any, dtype: Any) -> Tile:
    """The same bits as another dtype of the same width."""
    t, to = _tile(w, x, "what is cast"), _dtype(w, dtype)
    if t.dtype.bits != to.bits:
        raise w.error(f"a bitcast of {t.dtype.name}, {t.dtype.bits} bits, to {to.name}, {to.bits} bits")
    return w.made(w.attempt(_ops.bitcast, t.tensor, to))


# ---- folds


def _axes(w: Walker, t: Tile, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(len(t.shape)))
    return tuple(_axis(w, a, len(t.shape)) for a in (axis if isinstance(axis, tuple) else (axis,)))


def _fold(name: str, f: Any, kinds: str, meaning: str, typed: bool = False) -> None:
    def row(w: Walker, x: Any, axis: Any = None, *, keepdims: Any = False) -> Tile:
        t = _tile(w, x, f"the argument of {name}", kinds)
        more = {"dtype": t.dtype} if typed else {}
        axes = _axes(w, t, axis)
        out = w.attempt(f, t.tensor, axis=axes, keepdims=_flag(w, keepdims, "keepdims"), **more)
        return _folded(w, name, t, out, _count(tuple(t.shape[a] for a in axes)))

    _add(name, "folds", f"tile of {'bools' if kinds == 'b' else 'numbers'} -> tile", row, meaning)


def _folded(w: Walker, name: str, t: Tile, out: Any, n: int) -> Tile:
    """What is known of a fold of n elements."""
    form, bounds = w.form(t), w.bounds(t)
    if form is None or bounds is None:
        return w.made(out)
    if name in ("any", "all"):  # any is not of all: not
        holds = form if name == "all" else ("not", form)
        each = w.means(w.made(out), holds)
        if name == "all" or each.form is None:
            return each
        return Tile(out, ("not", each.form))
    return w.made(out, None, {"max": bounds, "min": bounds, "sum": (bounds[0] * n, bounds[1] * n)}.get(name))


_fold("sum", _ops.sum, "iuf", "The sum along axes, in the contract's order (N4); of its own dtype.", True)
_fold("prod", _ops.prod, "iuf", "The product along axes; of its own dtype.", True)
_fold("max", _ops.max, "iuf", "The greatest along axes; a NaN wins.")
_fold("min", _ops.min, "iuf", "The least along axes; a NaN wins.")
_fold("any", _ops.any, "b", "Whether one is true along axes.")
_fold("all", _ops.all, "b", "Whether all are true along axes.")


def _arg(name: str, f: Any, meaning: str) -> None:
    def row(w: Walker, x: Any, axis: Any = -1, *, keepdims: Any = False) -> Tile:
        t = _tile(w, x, f"the argument of {name}", "iuf")
        place = _axis(w, axis, len(t.shape))
        return w.made(w.attempt(f, t.tensor, axis=place, keepdims=_flag(w, keepdims, "keepdims")), None, (0, t.shape[place] - 1))

    _add(name, "folds", "tile of numbers -> tile of int64", row, meaning)


_arg("argmax", _ops.argmax, "The index of the greatest along an axis: the first NaN if there is one, else the first.")
_arg("argmin", _ops.argmin, "The index of the least along an axis.")


def _running(name: str, f: Any, meaning: str, typed: bool) -> None:
    def row(w: Walker, x: Any, axis: Any = -1) -> Tile:
        t = _tile(w, x, f"the argument of {name}", "iuf")
        more = {"dtype": t.dtype} if typed else {}
        place, bounds = _axis(w, axis, len(t.shape)), w.bounds(t)
        if bounds is not None and name == "cumsum":
            bounds = min(bounds[0], bounds[0] * t.shape[place]), max(bounds[1], bounds[1] * t.shape[place])
        return w.made(w.attempt(f, t.tensor, axis=place, **more), None, None if name == "cumprod" else bounds)

    _add(name, "folds", "tile of numbers -> tile", row, meaning)


_running("cumsum", _ops.cumulative_sum, "Running sums along an axis.", True)
_running("cumprod", _ops.cumulative_prod, "Running products along an axis.", True)
_running("cummax", _ops.cumulative_max, "The greatest so far along an axis.", False)
_running("cummin", _ops.cumulative_min, "The least so far along an axis.", False)


@primitive("folds", "tile of integers, int -> tile of int32")
def histogram(w: Walker, x: Any, bins: Any) -> Tile:
    """How often each of 0, 1, ..., bins - 1 is in the tile; other values are not counted."""
    t = _tile(w, x, "the argument of histogram", "iu")
    (n,) = _shape(w, bins if not isinstance(bins, tuple) else -1, "the number of bins")
    flat = _ops.reshape(t.tensor, (_count(t.shape), 1))
    narrow = t.dtype.bits < 32 or t.dtype.name == "int32"  # 32 bits hold them: twice the lanes
    wide = flat if t.dtype.bits == 64 else _ops.astype(flat, "int32" if narrow else "int64")
    hits = _ops.equal(wide, _ops.astype(_ops.iota(n), wide.dtype))
    return w.made(_ops.sum(_ops.astype(hits, "int32"), axis=0, dtype="int32"), None, (0, _count(t.shape)))


# ---- order


@primitive("order", "tile of numbers -> tile")
def sort(w: Walker, x: Any, axis: Any = -1, *, descending: Any = False) -> Tile:
    """Sorted along an axis, stable; NaNs are the greatest."""
    t = _tile(w, x, "the argument of sort", "iuf")
    return w.made(w.attempt(_ops.sort, t.tensor, axis=_axis(w, axis, len(t.shape)), descending=_flag(w, descending, "descending")), None, w.bounds(t))


@primitive("order", "tile of numbers -> tile of int64")
def argsort(w: Walker, x: Any, axis: Any = -1, *, descending: Any = False) -> Tile:
    """The indices that sort along an axis, stable."""
    t = _tile(w, x, "the argument of argsort", "iuf")
    place = _axis(w, axis, len(t.shape))
    return w.made(w.attempt(_ops.argsort, t.tensor, axis=place, descending=_flag(w, descending, "descending")), None, (0, t.shape[place] - 1))


@primitive("order", "tile, int -> two tiles")
def topk(w: Walker, x: Any, k: Any, axis: Any = -1) -> tuple[Tile, ...]:
    """The k greatest along an axis, descending, and their indices."""
    t = _tile(w, x, "the argument of topk", "iuf")
    place = _axis(w, axis, len(t.shape))
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= t.shape[place]:
        raise w.error(f"the {described(k)} greatest of {t.shape[place]}")
    values, indices = w.attempt(_ops.topk, t.tensor, k, axis=place)
    return w.made(values, None, w.bounds(t)), w.made(indices, None, (0, t.shape[place] - 1))


@primitive("order", "tile, tile of integers -> tile")
def pick(w: Walker, x: Any, index: Any, axis: Any = -1) -> Tile:
    """Elements of a tile at the indices of another, along an axis; the other axes are equal. An index outside reads 0."""
    t, i = _tile(w, x, "what is picked from"), _tile(w, index, "the index of pick", "iu")
    place = _axis(w, axis, len(t.shape))
    if len(t.shape) != len(i.shape) or any(m != n for a, (m, n) in enumerate(zip(t.shape, i.shape)) if a != place):
        raise w.error(f"pick along axis {place} of a tile of shape {t.shape} by one of shape {i.shape}")
    picked = w.attempt(_ops.op, "pick", t.tensor, _ops.astype(i.tensor, "int64"), ints=[place])
    return w.made(picked, None, _union([w.bounds(t), (0, 0)]))


# ---- products


@primitive("products", "tiles, accumulator -> tile")
def dot(w: Walker, x: Any, y: Any, acc: Any = None, *, tril: Any = None, order: Any = None) -> Tile:
    """acc + the product of matrices (below a diagonal: tril), in chain512 order or a matrix unit's; of 16 bits in float32, 8 in int32."""
    a, b = _tile(w, x, "the first operand of dot", "iuf"), _tile(w, y, "the second operand of dot", "iuf")
    if a.dtype is not b.dtype and not (a.dtype.bits == b.dtype.bits == 8 and a.dtype.kind in "iu" and b.dtype.kind in "iu"):
        raise w.error(f"dot of {a.dtype.name} and {b.dtype.name}: both are of one dtype, or of int8 and uint8")
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise w.error(f"dot is of matrices; the tiles have shapes {a.shape} and {b.shape}")
    if not same_extent(a.shape[-1], b.shape[-2]) or not same_shape(a.shape[:-2], b.shape[:-2]):
        raise w.error(f"dot of tiles of shapes {shown(a.shape)} and {shown(b.shape)}: the last extent of the first is the last but one of the second")
    t = a.dtype
    if t.kind in "iu" and t.bits == 16:
        raise w.error(f"dot of {t.name}: cast to int32 first")
    wide = _dtypes.DTYPES["float32" if t.kind == "f" and t.bits < 32 else "int32" if t.kind in "iu" and t.bits < 32 else t.name]
    if isinstance(tril, bool) or not (tril is None or isinstance(tril, (int, Index))):
        raise w.error(f"tril is an integer of program ids and sizes, not {described(tril)}")
    low, high = (0, 0) if tril is None else (tril, tril) if isinstance(tril, int) else (tril.node.lo, tril.node.hi)
    if low < -_forms.FAR or high > _forms.FAR:
        raise w.error(f"tril is within {-_forms.FAR}..{_forms.FAR}; this one may be {low if low < -_forms.FAR else high}")
    if order is not None and (not isinstance(order, str) or not order):
        raise w.error(f"order names a matrix unit, as in order='hopper16 bf16', not {described(order)}")
    diagonal = None if tril is None else w.diagonal(tril)
    out = w.attempt(_ops.make, _core.product, _ops.astype(a.tensor, wide), _ops.astype(b.tensor, wide), diagonal, order or "")
    if acc is None:
        return w.made(out)
    c = _tile(w, acc, "the accumulator of dot")
    if c.dtype is not wide or not same_shape(c.shape, out.shape):
        raise w.error(f"the accumulator of this dot is {wide.name}{list(out.shape)}, not {c}")
    return w.made(_ops.add(c.tensor, out))


# ---- statements


@primitive("statements", "bool")
def assume(w: Walker, condition: Any) -> None:
    """Says that a condition holds for all elements: bounds are shown with it. The interpreter and builds that check test it."""
    if isinstance(condition, bool) or isinstance(condition, Tile) and condition.dtype.kind == "b":
        return w.assumed(condition)
    raise w.error(f"assume takes a condition, not {described(condition)}")


@primitive("statements", "ints")
def static_for(w: Walker, first: Any, last: Any = None, step: Any = 1) -> None:
    """`for i in kernel.static_for(n)`: a loop that is unrolled while the kernel is compiled; i is a number."""
    raise w.error("static_for stands in a `for` alone: for i in kernel.static_for(n)")
