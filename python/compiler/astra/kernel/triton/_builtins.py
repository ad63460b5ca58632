"""The functions of triton.language: one table, in terms of the primitives of the kernel language.

Takes:    a walker, and what a call in a kernel is given.
Gives:    a value, or a refusal with the place of the call.
Keeps:    one row a function; what Triton has and is not here is refused by name.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable

from ... import _ops
from ..._dtypes import DTYPES, DType
from ..._errors import ArgumentError
from ..._kernel import _forms
from ..._kernel._primitives import PRIMITIVES, _axis, _dtype, _shape, _tile
from ..._kernel._values import Index, Tile
from ..._kernel._expressions import NUMBERS
from ._pointers import BlockPointer, Items, Pointer
from ._random import box_muller, philox, uniform

I32, U32, I64, U64, F32 = (DTYPES[n] for n in ("int32", "uint32", "int64", "uint64", "float32"))
BUILTINS: dict[str, Builtin] = {}
METHODS: dict[str, str] = {}  # names of functions that are methods of tiles and pointers too

_OF_TRITON = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2",
              "fp8e4b8": "float8_e4m3fnuz", "fp8e5b16": "float8_e5m2fnuz", "int1": "bool"}  # fmt: skip
# The types of tl, and their names here.
TYPES = {"int1": "bool", **{f"{u}int{n}": f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)}, "float16": "float16", "bfloat16": "bfloat16", "float32": "float32",
         "float64": "float64", "float8e4nv": "float8_e4m3fn", "float8e5": "float8_e5m2", "float8e4b8": "float8_e4m3fnuz", "float8e5b16": "float8_e5m2fnuz"}  # fmt: skip


class ElementType:
    """x.type of a tile."""

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype


class PointerType(ElementType):
    """x.dtype of a pointer, and tl.pointer_type(t)."""


def dtype_of(x: Any) -> DType | None:
    """A type of Triton's own package."""
    name = getattr(x, "name", None)
    if type(x).__name__ != "dtype" or not isinstance(name, str):
        return None
    return DTYPES.get(_OF_TRITON.get(name, name))


class Builtin:
    """A function of tl; it has a meaning inside of a kernel alone."""

    def __init__(self, name: str, f: Callable[..., Any]) -> None:
        self.name = self.__name__ = name
        self.there = True  # not refused by name
        self.f, self.__doc__ = f, f.__doc__
        parameters = list(inspect.signature(f).parameters.values())[1:]
        self.signature = inspect.Signature([p.replace(annotation=p.empty) for p in parameters])

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise ArgumentError(f"tl.{self.name} is called in a kernel, a function under @triton.jit")

    def __repr__(self) -> str:
        return f"<astra.kernel.triton.language.{self.name}{self.signature}>"

    def apply(self, w: Any, *args: Any, **named: Any) -> Any:
        named = {k: v for k, v in named.items() if k not in ("_semantic", "_builder", "sanitize_overflow", "propagate_nan")}
        try:
            self.signature.bind(*args, **named)
        except TypeError as error:
            raise w.error(f"tl.{self.name}{self.signature}: {error}") from None
        return self.f(w, *args, **named)


def builtin(f: Callable[..., Any]) -> Callable[..., Any]:
    """A row of the table: the function's name without a last underscore."""
    name = f.__name__.rstrip("_")
    BUILTINS[name] = Builtin(name, f)
    return f


def method(f: Callable[..., Any]) -> Callable[..., Any]:
    METHODS[f.__name__.rstrip("_")] = f.__name__.rstrip("_")
    return builtin(f)


def _lone(w: Any, x: Any) -> Any:
    """An index as a tile, where tiles are computed with."""
    return Tile(_ops.astype(w.scalar(x), I32), x.form) if isinstance(x, Index) else x


def _float(w: Any, x: Any) -> Any:
    """What functions of floats take: integers become float32."""
    x = Tile(w.tensor(x)) if isinstance(x, NUMBERS) else _lone(w, x)
    return Tile(_ops.astype(x.tensor, F32)) if isinstance(x, Tile) and x.dtype.kind in "iub" else x


def _primitive(name: str, *also: str, floats: bool = True, arity: int = 1) -> None:
    """A function that a primitive is."""
    p = PRIMITIVES[name]

    def one(w: Any, x: Any) -> Any:
        return p.apply(w, _float(w, x) if floats else _lone(w, x))

    def two(w: Any, x: Any, y: Any) -> Any:
        return p.apply(w, *((_float(w, v) if not isinstance(v, NUMBERS) else v) if floats else v for v in (x, y)))

    def three(w: Any, x: Any, y: Any, z: Any) -> Any:
        return p.apply(w, *(_float(w, v) if not isinstance(v, NUMBERS) else v for v in (x, y, z)))

    for n in (name, *also):
        BUILTINS[n] = Builtin(n, (one, two, three)[arity - 1])
        METHODS[n] = n


for _name, _also in (("exp", ("fast_expf",)), ("exp2", ()), ("log", ("fast_logf",)), ("log2", ()), ("sin", ("fast_sinf",)), ("cos", ("fast_cosf",)), ("tan", ()),
                     ("tanh", ("fast_tanhf",)), ("asin", ()), ("acos", ()), ("atan", ()), ("sinh", ()), ("cosh", ()), ("asinh", ()), ("acosh", ()), ("atanh", ()), ("erf", ()),
                     ("sqrt", ("sqrt_rn",)), ("rsqrt", ()), ("floor", ()), ("ceil", ()), ("trunc", ()), ("round", ("rint", "nearbyint")), ("expm1", ()), ("log1p", ()),
                     ("isnan", ()), ("isinf", ()), ("sigmoid", ())):  # fmt: skip
    _primitive(_name, *_also)
_primitive("abs", "fabs", floats=False)
_primitive("maximum", "fmax", floats=False, arity=2)
_primitive("minimum", "fmin", floats=False, arity=2)
for _name, _also in (("pow", ()), ("atan2", ()), ("copysign", ()), ("fmod", ())):
    _primitive(_name, *_also, arity=2)
_primitive("fma", arity=3)


# ---- programs and integers


@builtin
def program_id(w: Any, axis: Any) -> Any:
    return PRIMITIVES["program_id"].apply(w, axis)


@builtin
def num_programs(w: Any, axis: Any) -> Any:
    return PRIMITIVES["num_programs"].apply(w, axis)


@builtin
def cdiv(w: Any, x: Any, div: Any) -> Any:
    import ast

    return w.binary(ast.FloorDiv, w.binary(ast.Sub, w.binary(ast.Add, x, div), 1), div)


@builtin
def next_power_of_2(w: Any, n: Any) -> Any:
    if not isinstance(n, int):
        raise w.error("next_power_of_2 is of numbers that are known while the kernel is compiled")
    return 1 << max(n - 1, 0).bit_length()


def _same(w: Any, x: Any, *_: Any, **__: Any) -> Any:
    return x


for _name in ("multiple_of", "max_contiguous", "max_constancy", "constexpr", "to_tensor"):
    BUILTINS[_name] = Builtin(_name, _same)


@builtin
def swizzle2d(w: Any, i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> Any:
    """The place of a row-major number in groups of rows that are walked column by column."""
    import ast

    add, sub, mul, div, mod = ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod
    number = w.binary(add, w.binary(mul, i, size_j), j)
    group = w.binary(mul, size_g, size_j)
    first = w.binary(mul, w.binary(div, number, group), size_g)
    rows = w.extreme("min", w.binary(sub, size_i, first), size_g)
    inside = w.binary(mod, number, group)
    return w.binary(add, first, w.binary(mod, inside, rows)), w.binary(div, inside, rows)


# ---- making tiles and moving them


@builtin
def arange(w: Any, start: Any, end: Any) -> Any:
    import ast

    if not isinstance(start, int) or not isinstance(end, int) or end <= start:
        raise w.error("tl.arange takes two numbers that are known while the kernel is compiled, the second one greater")
    line = PRIMITIVES["arange"].apply(w, end - start)
    return w.binary(ast.Add, line, start) if start else line


@builtin
def full(w: Any, shape: Any, value: Any, dtype: Any = F32) -> Any:
    return PRIMITIVES["full"].apply(w, shape, float(value) if isinstance(value, int) and dtype.kind == "f" else value, dtype)


@builtin
def zeros(w: Any, shape: Any, dtype: Any = F32) -> Any:
    return PRIMITIVES["zeros"].apply(w, shape, dtype)


@builtin
def zeros_like(w: Any, input: Any) -> Any:
    t = _tile(w, input, "the argument of zeros_like")
    return PRIMITIVES["zeros"].apply(w, t.shape, t.dtype)


@method
def cast(w: Any, x: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> Any:
    if isinstance(x, Pointer) and isinstance(dtype, PointerType) and dtype.dtype is x.argument.dtype:
        return x
    if isinstance(dtype, PointerType) or isinstance(x, Pointer):
        raise w.error("an integer as a pointer: a kernel has pointers to its arguments alone; pass a tuple of tensors in place of their addresses")
    if fp_downcast_rounding not in (None, "rtne"):
        raise w.error(f"floats are rounded to the nearest, ties to even; '{fp_downcast_rounding}' is not there")
    dtype = _dtype(w, dtype)
    if isinstance(x, Index) and dtype.kind in "iu" and dtype.bits >= 32 or isinstance(x, int) and not isinstance(x, bool) and dtype in (I32, I64):
        return x  # exact
    x = Tile(w.tensor(x)) if isinstance(x, NUMBERS) else _lone(w, x)
    if bitcast:
        return PRIMITIVES["bitcast"].apply(w, x, dtype)
    if isinstance(x, Tile) and dtype.kind == "b" and x.dtype.kind != "b":
        return w.not_zero(x)
    return PRIMITIVES["cast"].apply(w, x, dtype)


METHODS["to"] = "cast"


@method
def broadcast_to(w: Any, x: Any, *shape: Any) -> Any:
    extents = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    if isinstance(x, Pointer):
        import ast

        zero = PRIMITIVES["zeros"].apply(w, extents, I64)
        return Pointer(x.argument, w.binary(ast.Add, zero, w.wide(x.offset)))
    return PRIMITIVES["broadcast"].apply(w, _lone(w, x), extents)


@builtin
def broadcast(w: Any, x: Any, y: Any) -> Any:
    a, b = _tile(w, x, "what is broadcast"), _tile(w, y, "what is broadcast")
    shape = w.broadcast(a.shape, b.shape, "broadcast")
    return PRIMITIVES["broadcast"].apply(w, a, shape), PRIMITIVES["broadcast"].apply(w, b, shape)


@method
def expand_dims(w: Any, x: Any, axis: Any) -> Any:
    t = _tile(w, x, "what gets an axis")
    place = _axis(w, axis, len(t.shape), 0 if axis >= 0 and axis < len(t.shape) else 1)
    rank = len(t.shape)
    names = {_forms.axis(rank - 1 - a): _forms.axis(rank - a - (a >= place)) for a in range(rank)}
    return w.made(_ops.reshape(t.tensor, (*t.shape[:place], 1, *t.shape[place:])), w.placed(t.form, names))


@method
def reshape(w: Any, x: Any, *shape: Any, can_reorder: Any = False) -> Any:
    return PRIMITIVES["reshape"].apply(w, x, shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape)


BUILTINS["view"] = Builtin("view", reshape)
METHODS["view"] = "view"


@method
def ravel(w: Any, x: Any, can_reorder: Any = False) -> Any:
    n = 1
    for extent in _tile(w, x, "what is reshaped").shape:
        n *= extent
    return PRIMITIVES["reshape"].apply(w, x, (n,))


@method
def trans(w: Any, x: Any, *dims: Any) -> Any:
    rank = len(_tile(w, x, "what is transposed").shape)
    axes = dims[0] if len(dims) == 1 and isinstance(dims[0], tuple) else dims or (*range(rank - 2), rank - 1, rank - 2)
    return PRIMITIVES["permute"].apply(w, x, tuple(axes))


@method
def permute(w: Any, x: Any, *dims: Any) -> Any:
    return PRIMITIVES["permute"].apply(w, x, tuple(dims[0] if len(dims) == 1 and isinstance(dims[0], tuple) else dims))


@builtin
def join(w: Any, a: Any, b: Any) -> Any:
    """Two tiles side by side in a new last axis."""
    x, y = w.pair(a, b, "join")
    shape = w.broadcast(x.shape, y.shape, "join")
    return w.made(_ops.stack([_ops.broadcast_to(t, shape) for t in (x, y)], axis=-1))


@method
def split(w: Any, a: Any) -> Any:
    """The two halves along a last axis of 2."""
    t = _tile(w, a, "what is split")
    if not t.shape or t.shape[-1] != 2:
        raise w.error(f"tl.split takes a tile whose last axis is 2, not one of shape {t.shape}")
    return w.made(t.tensor[..., 0]), w.made(t.tensor[..., 1])


@builtin
def cat(w: Any, input: Any, other: Any, can_reorder: Any = False, dim: Any = 0) -> Any:
    return PRIMITIVES["join"].apply(w, (input, other), dim)


@builtin
def interleave(w: Any, a: Any, b: Any) -> Any:
    both = join(w, a, b)
    return w.made(_ops.reshape(both.tensor, (*both.shape[:-2], 2 * both.shape[-2])))


# ---- memory


def _pointer(w: Any, p: Any, what: str) -> Pointer:
    if not isinstance(p, Pointer):
        from ._walk import named

        raise w.error(f"{what} takes a pointer, which is a tensor among the kernel's arguments and offsets, not {named(p)}")
    return p


def _checked(w: Any, p: BlockPointer, boundary_check: Any) -> tuple[int, ...]:
    axes = boundary_check if isinstance(boundary_check, tuple) else () if boundary_check is None else (boundary_check,)
    return tuple(_axis(w, a, len(p.block)) for a in axes)


@method
def load(w: Any, pointer: Any, mask: Any = None, other: Any = None, boundary_check: Any = (), padding_option: Any = "", cache_modifier: Any = "",
         eviction_policy: Any = "", volatile: Any = False) -> Any:  # fmt: skip
    if isinstance(pointer, Items):
        if not 0 <= pointer.at < len(pointer.items):
            raise w.error(f"the load is outside: item {pointer.at} of a tuple of {len(pointer.items)}")
        return pointer.items[pointer.at]
    if isinstance(pointer, BlockPointer):
        if isinstance(pointer.base, Descriptor):
            offsets = mask if isinstance(mask, tuple) else (mask,)
            pointer = BlockPointer(Pointer(pointer.base.argument, pointer.base.offset), pointer.shape, pointer.strides, offsets, pointer.block)
            p, inside = w.pointer_of(pointer, tuple(range(len(pointer.block))))
            return w.read(p, inside, 0)
        if padding_option not in ("", "zero", "nan", None):
            raise w.error(f"the padding is '', 'zero' or 'nan', not {padding_option!r}")
        p, inside = w.pointer_of(pointer, _checked(w, pointer, boundary_check))
        return w.read(p, inside, float("nan") if padding_option == "nan" else 0)
    if other is not None and mask is None:
        raise w.error("`other` without a mask")
    p = _pointer(w, pointer, "tl.load")
    if isinstance(other, Index):
        other = _lone(w, other)
    if isinstance(other, Tile):
        w.broadcast(other.shape, p.shape, "a load with `other`")
    return w.read(p, mask, 0 if other is None else other)


class Descriptor(Pointer):
    """The base of a tensor descriptor, which is loaded from with offsets."""


@method
def store(w: Any, pointer: Any, value: Any, mask: Any = None, boundary_check: Any = (), cache_modifier: Any = "", eviction_policy: Any = "") -> None:
    if isinstance(pointer, BlockPointer):
        checked = _checked(w, pointer, boundary_check)
        if isinstance(pointer.base, Descriptor):
            offsets, value = (value if isinstance(value, tuple) else (value,)), mask
            pointer = BlockPointer(Pointer(pointer.base.argument, pointer.base.offset), pointer.shape, pointer.strides, offsets, pointer.block)
            checked = tuple(range(len(pointer.block)))
        pointer, mask = w.pointer_of(pointer, checked)
    p = _pointer(w, pointer, "tl.store")
    w.write(p, _stored(w, p, value, "a store"), mask, "set")


def _stored(w: Any, p: Pointer, value: Any, what: str) -> Tile:
    """A value in the type and the shape of what a pointer points to."""
    x = w.tensor(value) if isinstance(value, Index) else w.typed(value, p.argument.dtype) if isinstance(value, NUMBERS) else _tile(w, value, "what is stored").tensor
    if p.argument.dtype.kind == "b" and x.dtype.kind != "b":
        x = _ops.not_equal(x, 0)
    x = w.attempt(_ops.astype, x, p.argument.dtype)
    if w.broadcast(x.shape, p.shape, what) != p.shape:
        raise w.error(f"{what} of a tile of shape {x.shape} through pointers of shape {p.shape}")
    return Tile(_ops.broadcast_to(x, p.shape))


@builtin
def make_block_ptr(w: Any, base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any = None) -> BlockPointer:
    p, block = _pointer(w, base, "make_block_ptr"), _shape(w, block_shape, "the shape of a block")
    if not len(shape) == len(strides) == len(offsets) == len(block):
        raise w.error(f"a block pointer of {len(shape)} extents, {len(strides)} strides, {len(offsets)} offsets and a block of {len(block)} axes")
    return BlockPointer(p, shape, strides, offsets, block)


@builtin
def make_tensor_descriptor(w: Any, base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: Any = "zero") -> BlockPointer:
    p = make_block_ptr(w, base, shape, strides, (0,) * len(shape), block_shape)
    return BlockPointer(Descriptor(p.base.argument, p.base.offset), p.shape, p.strides, p.offsets, p.block)


@method
def advance(w: Any, base: Any, offsets: Any) -> BlockPointer:
    import ast

    if not isinstance(base, BlockPointer) or len(offsets) != len(base.block):
        raise w.error("tl.advance takes a block pointer, and an offset for each of its axes")
    return BlockPointer(base.base, base.shape, base.strides, tuple(w.binary(ast.Add, x, by) for x, by in zip(base.offsets, offsets)), base.block)


def _atomic(kind: str) -> None:
    def f(w: Any, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        p = _pointer(w, pointer, f"tl.atomic_{kind}")
        if p.argument.dtype.kind not in "iu":
            raise w.error(f"tl.atomic_{kind} into '{p.argument.name}', which is of {p.argument.dtype.name}: atomics are of integers, whose result no order changes; "
                          "give each program a place of its own, and add them up in a second kernel")  # fmt: skip
        if kind != "add" and p.argument.before is not None:
            raise w.error(f"tl.atomic_{kind} into '{p.argument.name}', which has values: give it as astra.spec(shape, dtype), which begins as 0")
        w.write(p, _stored(w, p, val, f"tl.atomic_{kind}"), mask, kind)
        return Old(kind)

    BUILTINS[f"atomic_{kind}"] = Builtin(f"atomic_{kind}", f)


class Old:
    """What an atomic gives: it depends on the order of programs, so nothing can be done with it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


for _name in ("add", "max", "min"):
    _atomic(_name)


def _refused(name: str, why: str) -> None:
    def f(w: Any, *args: Any, **named: Any) -> Any:
        raise w.error(f"tl.{name}: {why}")

    BUILTINS[name] = Builtin(name, f)
    BUILTINS[name].there = False


for _name in ("atomic_cas", "atomic_xchg"):
    _refused(_name, "locks make a result depend on the order of programs; give each program a place of its own, and add them up in a second kernel")
for _name in ("atomic_and", "atomic_or", "atomic_xor"):
    _refused(_name, "it is not there; atomics are add, max and min")
for _name in ("inline_asm_elementwise", "map_elementwise"):
    _refused(_name, "instructions of one machine are not part of the adapter")
for _name in ("dot_scaled", "associative_scan", "reduce", "gather", "flip", "topk", "load_tensor_descriptor", "store_tensor_descriptor"):
    _refused(_name, "it is not there yet")


# ---- folds


def _widened(w: Any, t: Tile, floats: bool) -> Tile:
    """Narrow integers become int32; bfloat16, and where asked float16, float32."""
    if t.dtype.kind in "iub" and t.dtype.bits < 32:
        wide: Tile = PRIMITIVES["cast"].apply(w, t, U32 if t.dtype.kind == "u" else I32)
        return wide
    return Tile(_ops.astype(t.tensor, F32)) if t.dtype.name == "bfloat16" or floats and t.dtype.name == "float16" else t


def _fold(name: str, floats: bool) -> None:
    def f(w: Any, input: Any, axis: Any = None, return_indices: Any = False, return_indices_tie_break_left: Any = True, keep_dims: Any = False,
          dtype: Any = None) -> Any:  # fmt: skip
        t = _widened(w, _tile(w, input, f"the argument of tl.{name}"), floats)
        if dtype is not None:
            t = cast(w, t, dtype)
        out = PRIMITIVES[name].apply(w, t, axis, keepdims=keep_dims)
        if not return_indices:
            return out
        if axis is None:
            raise w.error(f"tl.{name} with return_indices is along one axis")
        return out, BUILTINS[f"arg{name}"].f(w, input, axis, keep_dims=keep_dims)

    BUILTINS[name] = Builtin(name, f)
    METHODS[name] = name


for _name in ("sum", "max", "min"):
    _fold(_name, _name != "sum")


def _arg(name: str) -> None:
    def f(w: Any, input: Any, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> Any:
        found = PRIMITIVES[name].apply(w, input, axis, keepdims=keep_dims)
        return PRIMITIVES["cast"].apply(w, found, I32)

    BUILTINS[name] = Builtin(name, f)
    METHODS[name] = name


def _running(name: str) -> None:
    def f(w: Any, input: Any, axis: Any = 0, reverse: Any = False, dtype: Any = None) -> Any:
        if reverse:
            raise w.error(f"tl.{name} from the end is not there yet")
        t = _widened(w, _tile(w, input, f"the argument of tl.{name}"), False)
        return PRIMITIVES[name].apply(w, cast(w, t, dtype) if dtype is not None else t, axis)

    BUILTINS[name] = Builtin(name, f)
    METHODS[name] = name


for _name in ("argmax", "argmin"):
    _arg(_name)
for _name in ("cumsum", "cumprod"):
    _running(_name)


@method
def sort(w: Any, x: Any, dim: Any = None, descending: Any = False) -> Any:
    return PRIMITIVES["sort"].apply(w, x, -1 if dim is None else dim, descending=descending)


@method
def histogram(w: Any, input: Any, num_bins: Any, mask: Any = None) -> Any:
    if mask is not None:
        input = where(w, mask, input, -1)
    return PRIMITIVES["histogram"].apply(w, input, num_bins)


@builtin
def softmax(w: Any, x: Any, dim: Any = None, keep_dims: Any = False, ieee_rounding: Any = False) -> Any:
    import ast

    t = _tile(w, x, "the argument of softmax", "f")
    axis = 0 if dim is None else dim
    power = PRIMITIVES["exp"].apply(w, w.binary(ast.Sub, t, PRIMITIVES["max"].apply(w, t, axis, keepdims=True)))
    return w.binary(ast.Div, power, PRIMITIVES["sum"].apply(w, power, axis, keepdims=True))


# ---- arithmetic


@builtin
def where(w: Any, condition: Any, x: Any, y: Any) -> Any:
    c = condition
    if isinstance(c, (Index, *NUMBERS)):
        c = Tile(w.tensor(c), w.form(c))
    if isinstance(c, Tile) and c.dtype.kind != "b":
        c = w.not_zero(c)
    x, y = (_lone(w, v) for v in (x, y))
    return PRIMITIVES["where"].apply(w, c, x, y)


def _operator(name: str, kind: str) -> None:
    def f(w: Any, x: Any, y: Any, ieee_rounding: Any = True) -> Any:
        import ast

        return w.binary(getattr(ast, kind), x, y)

    BUILTINS[name] = Builtin(name, f)


for _name, _also in (("add", "Add"), ("sub", "Sub"), ("mul", "Mult"), ("fdiv", "Div"), ("div_rn", "Div")):  # type: ignore[assignment]
    _operator(_name, str(_also))


@builtin
def clamp(w: Any, x: Any, min: Any, max: Any, propagate_nan: Any = None) -> Any:
    return PRIMITIVES["clip"].apply(w, x, min, max)


@builtin
def umulhi(w: Any, x: Any, y: Any) -> Any:
    """The upper 32 bits of a product."""
    a, b = w.pair(x, y, "umulhi")
    if a.dtype.bits != 32:
        raise w.error(f"umulhi of {a.dtype.name}: it is of 32 bits")
    wide = _ops.multiply(*(_ops.astype(_ops.astype(t, U32), U64) for t in (a, b)))
    return w.made(_ops.astype(_ops.astype(_ops.bitwise_right_shift(wide, 32), U32), a.dtype))


@builtin
def dot(w: Any, input: Any, other: Any, acc: Any = None, input_precision: Any = None, allow_tf32: Any = None, max_num_imprecise_acc: Any = None,
        out_dtype: Any = F32) -> Any:  # fmt: skip
    a, b = (_tile(w, t, "an operand of tl.dot", "iuf") for t in (input, other))
    if input_precision not in (None, "ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"):
        raise w.error(f"the input_precision of tl.dot is 'ieee' (the same for all that Triton knows), not {input_precision!r}")
    if isinstance(acc, Tile) and acc.dtype.kind == "f" and acc.dtype.bits < 32:
        wide = PRIMITIVES["dot"].apply(w, a, b, PRIMITIVES["cast"].apply(w, acc, F32))
        return PRIMITIVES["cast"].apply(w, wide, acc.dtype)
    out = PRIMITIVES["dot"].apply(w, a, b, acc)
    return PRIMITIVES["cast"].apply(w, out, out_dtype) if out.dtype.kind == "f" and acc is None and out_dtype.bits < out.dtype.bits else out


# ---- random numbers


def _drawn(w: Any, seed: Any, offset: Any, rounds: Any) -> tuple[Any, ...]:
    t = _tile(w, offset, "the offsets of random numbers", "iu")
    key = w.tensor(seed % (1 << 64), U64) if isinstance(seed, int) else _ops.astype(w.tensor(_lone(w, seed)), U64)
    if not isinstance(rounds, int) or not 1 <= rounds <= 64:
        raise w.error("the number of rounds is a number from 1 to 64")
    return philox(key, t.tensor, rounds)


@builtin
def randint4x(w: Any, seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    return tuple(w.made(x) for x in _drawn(w, seed, offset, n_rounds))


@builtin
def randint(w: Any, seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    return w.made(_drawn(w, seed, offset, n_rounds)[0])


@builtin
def rand(w: Any, seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    return w.made(uniform(_drawn(w, seed, offset, n_rounds)[0]))


@builtin
def rand4x(w: Any, seed: Any, offsets: Any, n_rounds: Any = 10) -> Any:
    return tuple(w.made(uniform(x)) for x in _drawn(w, seed, offsets, n_rounds))


@builtin
def randn(w: Any, seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    a, b, _, _ = (uniform(x) for x in _drawn(w, seed, offset, n_rounds))
    return w.made(box_muller(a, b)[0])


@builtin
def randn4x(w: Any, seed: Any, offset: Any, n_rounds: Any = 10) -> Any:
    a, b, c, d = (uniform(x) for x in _drawn(w, seed, offset, n_rounds))
    return tuple(w.made(x) for x in (*box_muller(a, b), *box_muller(c, d)))


# ---- statements


@builtin
def assume(w: Any, cond: Any) -> None:
    w.assumed(w.truth(cond, "what is assumed") if not isinstance(cond, Tile) else cond)


@builtin
def static_assert(w: Any, cond: Any, msg: Any = "") -> None:
    if not isinstance(cond, NUMBERS):
        raise w.error("tl.static_assert is of what is known while the kernel is compiled; see tl.device_assert")
    if not cond:
        raise w.error("the assertion does not hold" + (f": {msg}" if msg else ""))


@builtin
def device_assert(w: Any, cond: Any, msg: Any = "", mask: Any = None) -> None:
    if isinstance(cond, Tile) and cond.shape:
        cond = PRIMITIVES["all"].apply(w, cond)
    w.asserted(w.truth(cond, "what is asserted"), msg if isinstance(msg, str) else "")


@builtin
def device_print(w: Any, prefix: Any, *args: Any, hex: Any = False) -> None:
    w.printed([prefix, *args])


@builtin
def static_print(w: Any, *values: Any, sep: Any = " ", end: Any = "", file: Any = None, flush: Any = False) -> None:
    """Nothing: what is known while the kernel is compiled can be printed outside of it."""


@builtin
def debug_barrier(w: Any) -> None:
    """Nothing: a program is one sequence of statements."""


@builtin
def pointer_type(w: Any, element_ty: Any, address_space: Any = 1, const: Any = False) -> PointerType:
    return PointerType(element_ty)


def _of_loops(name: str) -> None:
    def f(w: Any, *args: Any, **named: Any) -> Any:
        raise w.error(f"tl.{name} stands in a `for` alone")

    BUILTINS[name] = Builtin(name, f)


for _name in ("range", "static_range"):
    _of_loops(_name)
