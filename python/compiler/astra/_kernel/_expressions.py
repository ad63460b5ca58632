"""The language: expressions of a kernel's source, typed as they are walked.

Takes:    a syntax tree, what its names stand for.
Gives:    tiles, made of the package's own functions on tensors, so their bits are those of the numeric contract.
Keeps:    every rule of types and shapes is here, in _walker.py or in _primitives.py, the same for the graph and for the interpreter, which say in
          subclasses what differs: program ids, access to views, loops and branches.
Does not: know statements (_walker.py).
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
from os.path import basename
from typing import Any, Callable

from .. import _dtypes, _ops
from .._dims import ceildiv
from .._dtypes import DType
from .._errors import Error, KernelError
from .._tensor import Tensor, user_line
from . import _forms
from ._forms import Expr
from ._source import Source
from ._values import Index, Tile, View, described

NUMBERS = (bool, int, float)
MOST_ELEMENTS = 1 << 24  # of a tile
TESTED = " tested"  # beside the names of a kernel: an int64 scalar that waits for what was assumed and asserted so far

_BINARY: dict[type, tuple[str, Callable[..., Any], Any, str]] = {  # text, on numbers, on tiles, of indices
    ast.Add: ("+", operator.add, _ops.add, "add"),
    ast.Sub: ("-", operator.sub, _ops.subtract, "sub"),
    ast.Mult: ("*", operator.mul, _ops.multiply, "mul"),
    ast.Div: ("/", operator.truediv, _ops.divide, ""),
    ast.FloorDiv: ("//", operator.floordiv, _ops.floor_divide, "floordiv"),
    ast.Mod: ("%", operator.mod, _ops.remainder, "mod"),
    ast.Pow: ("**", operator.pow, _ops.pow, ""),
    ast.BitAnd: ("&", operator.and_, _ops.bitwise_and, "bitand"),
    ast.BitOr: ("|", operator.or_, _ops.bitwise_or, "bitor"),
    ast.BitXor: ("^", operator.xor, _ops.bitwise_xor, "bitxor"),
    ast.LShift: ("<<", operator.lshift, _ops.bitwise_left_shift, ""),
    ast.RShift: (">>", operator.rshift, _ops.bitwise_right_shift, ""),
}
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_COMPARE: dict[type, tuple[str, Callable[..., Any], Any, str]] = {
    ast.Lt: ("<", operator.lt, _ops.less, "lt"),
    ast.LtE: ("<=", operator.le, _ops.less_equal, "le"),
    ast.Gt: (">", operator.gt, _ops.greater, "lt"),
    ast.GtE: (">=", operator.ge, _ops.greater_equal, "le"),
    ast.Eq: ("==", operator.eq, _ops.equal, "eq"),
    ast.NotEq: ("!=", operator.ne, _ops.not_equal, "ne"),
}
_EXPRESSIONS = {
    ast.Lambda: "a `lambda` is not part of the kernel language: write a helper under @astra.kernel.function",
    ast.ListComp: "a list comprehension is not part of the kernel language: use kernel.static_for",
    ast.SetComp: "a comprehension is not part of the kernel language: use kernel.static_for",
    ast.DictComp: "a comprehension is not part of the kernel language: use kernel.static_for",
    ast.GeneratorExp: "a generator is not part of the kernel language: use kernel.static_for",
    ast.Dict: "a dict is not part of the kernel language",
    ast.Set: "a set is not part of the kernel language",
    ast.List: "a list is not part of the kernel language: use a tuple",
    ast.Await: "`await` is not part of the kernel language",
    ast.Yield: "`yield` is not part of the kernel language",
    ast.YieldFrom: "`yield` is not part of the kernel language",
    ast.NamedExpr: "`:=` is not part of the kernel language: use a statement",
    ast.Starred: "`*` in a call or a tuple is not part of the kernel language",
    ast.JoinedStr: "an f-string is not part of the kernel language: print(a, b) prints several values",
}


def same_extent(m: Any, n: Any) -> bool:
    """Whether two extents of tiles are equal for all sizes."""
    return bool(m == n) if isinstance(m, int) and isinstance(n, int) else isinstance(m - n, int) and bool(m - n == 0)


def same_shape(s: tuple[Any, ...], t: tuple[Any, ...]) -> bool:
    return len(s) == len(t) and all(map(same_extent, s, t))


def most_of(extent: Any) -> int:
    """The greatest that an extent of a tile may be."""
    return extent if isinstance(extent, int) else int(extent.bounds[1])


def shown(shape: tuple[Any, ...]) -> str:
    """A shape as Python prints it, sizes by their names."""
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


def to_tensor_type(x: Any) -> bool:
    return isinstance(x, (Tile, Index, *NUMBERS))


class Expressions:
    """Walks expressions with an environment: names to values."""

    concrete = False  # whether program ids are numbers

    def __init__(self, source: Source, language: Any) -> None:
        self.source, self.language = source, language
        self.names: dict[str, Any] = {}
        self.node: ast.AST = source.tree  # what is being looked at
        self.calls: list[str] = [source.name]
        self.depth = 0  # of branches and loops that are not decided while the kernel is compiled
        self.ids_alone = False  # whether the innermost of them is an `if` of program ids and sizes
        self.fresh = 0
        self.skipped: set[str] = set()  # outputs that statements name which never run

    # ---- what differs

    def program_id(self, axis: int) -> Any:
        raise NotImplementedError

    def num_programs(self, axis: int) -> Any:
        raise NotImplementedError

    def scalar(self, x: Index) -> Tensor:
        """An index as an int64 scalar."""
        raise NotImplementedError

    def index(self, op: str, x: Any, y: Any) -> Any:
        """Arithmetic on two integers of which one is an Index."""
        raise NotImplementedError

    def extents_of(self, t: Tensor) -> tuple[Any, ...]:
        """The extents of a tensor as numbers and indices."""
        return tuple(t.shape)

    def size(self, x: Index, what: str) -> Any:
        """A size as an extent of a tile."""
        raise NotImplementedError

    def diagonal(self, x: Any) -> Any:
        """A number or an Index, as a domain of a product has it."""
        raise NotImplementedError

    def extent(self, n: Any) -> Any:
        """An extent of a tile as a number or an Index."""
        return n

    def within_extent(self, i: int, n: Any) -> bool:
        """Whether a number is an index of an axis, whatever its extent is."""
        return bool(-n <= i < n)

    def shown_extent(self, n: Any) -> str:
        return str(n)

    def bounds(self, x: Any) -> tuple[int, int] | None:
        """The least and the greatest value that the elements of a tile of integers may have, as far as that is known."""
        return None

    def means(self, t: Tile, holds: Expr) -> Tile:
        """A bool that was computed, which is true where this holds of all elements of a tile."""
        return t

    def placed(self, form: Expr | None, names: dict[str, Expr]) -> Expr | None:
        """A form whose axes are these expressions of other axes."""
        return form

    def load(self, v: View, place: tuple[Any, ...], shape: tuple[int, ...], fill: Any) -> Tile:
        raise NotImplementedError

    def store(self, v: View, place: tuple[Any, ...], t: Tile, drop: bool) -> None:
        raise NotImplementedError

    def gather(self, v: View, place: tuple[Tile, ...], fill: Any) -> Tile:
        raise NotImplementedError

    def scatter(self, v: View, place: tuple[Tile, ...], t: Tile, mode: str, drop: bool) -> None:
        raise NotImplementedError

    def block(self, body: list[ast.stmt], top: bool = False) -> Any:
        """What statements do; of a helper's body what it returns."""
        raise NotImplementedError

    def for_range(self, s: ast.For, first: Any, last: Any, step: int) -> None:
        raise NotImplementedError

    def branch(self, s: ast.If, condition: Tile) -> None:
        raise NotImplementedError

    def while_data(self, s: ast.While) -> None:
        raise NotImplementedError

    def assumed(self, condition: Any) -> None:
        raise NotImplementedError

    def asserted(self, condition: Any, message: str) -> None:
        raise NotImplementedError

    def printed(self, values: list[Any]) -> None:
        pass

    def stopped(self) -> None:
        pass

    # ---- errors

    def error(self, sentence: str, node: ast.AST | None = None) -> KernelError:
        return self.source.error(node or self.node, sentence)

    def attempt(self, f: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """f of the package; what it refuses is said of this place."""
        try:
            return f(*args, **named)
        except KernelError:
            raise
        except (Error, TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
            raise self.error(str(error).splitlines()[0].removesuffix(f" ({basename(user_line())})")) from None

    # ---- expressions

    def value(self, e: ast.expr) -> Any:
        outer, self.node = self.node, e
        try:
            return self.expression(e)
        finally:
            self.node = outer

    def expression(self, e: ast.expr) -> Any:
        if isinstance(e, ast.Constant):
            if e.value is None or isinstance(e.value, (*NUMBERS, str)):
                return e.value
            raise self.error(f"{e.value!r} is not part of the kernel language")
        if isinstance(e, ast.Name):
            return self.name(e.id)
        if isinstance(e, ast.Tuple):
            return tuple(self.value(x) for x in e.elts)
        if isinstance(e, ast.BinOp):
            left, right = self.value(e.left), self.value(e.right)
            return self.binary(type(e.op), left, right)
        if isinstance(e, ast.UnaryOp):
            return self.unary(e, self.value(e.operand))
        if isinstance(e, ast.BoolOp):
            return self.logical(e)
        if isinstance(e, ast.Compare):
            return self.comparison(e)
        if isinstance(e, ast.IfExp):
            condition = self.value(e.test)
            if not isinstance(condition, NUMBERS):
                raise self.error("`a if c else b` is decided while the kernel is compiled; use kernel.where(c, a, b)")
            return self.value(e.body if condition else e.orelse)
        if isinstance(e, ast.Call):
            return self.call(e)
        if isinstance(e, ast.Attribute):
            return self.attribute(e)
        if isinstance(e, ast.Subscript):
            return self.subscript(e)
        known = next((text for kind, text in _EXPRESSIONS.items() if isinstance(e, kind)), None)
        raise self.error(known or f"`{type(e).__name__}` is not part of the kernel language")

    def name(self, name: str) -> Any:
        if name in self.names:
            return self.names[name]
        if name in self.source.assigned:
            raise self.error(f"'{name}' is used before it has a value")
        try:
            value = self.source.outside(name)
        except KeyError:
            raise self.error(f"the name '{name}' is not known here" + self.nearest(name)) from None
        if isinstance(value, Tensor) or hasattr(value, "__array__") and not isinstance(value, (*NUMBERS, DType)):
            raise self.error(f"'{name}' is a tensor outside of the kernel: pass it as an argument")
        return value

    def nearest(self, name: str) -> str:
        import difflib

        found = difflib.get_close_matches(name, self.names, 1)
        return f"; is '{found[0]}' meant?" if found else ""

    def attribute(self, e: ast.Attribute) -> Any:
        x = self.value(e.value)
        if isinstance(x, (View, Tile)):
            if e.attr == "shape":
                return tuple(x.shape) if isinstance(x, View) else self.extents_of(x.tensor)
            if e.attr == "dtype":
                return x.dtype
            if e.attr == "ndim":
                return len(x.shape)
            if e.attr == "T":
                return self.language.permute.apply(self, x, tuple(reversed(range(len(x.shape)))))
            raise self.error(f"{described(x)} has no attribute '{e.attr}' in a kernel: it has shape, dtype, ndim and T")
        if x is self.language and e.attr not in self.language.primitives and e.attr not in ("function",):
            raise self.error(f"astra.kernel has no '{e.attr}'" + self.nearest_primitive(e.attr))
        if inspect.ismodule(x) or x is self.language:
            if not hasattr(x, e.attr):
                raise self.error(f"{getattr(x, '__name__', 'astra.kernel')} has no '{e.attr}'")
            return getattr(x, e.attr)
        if isinstance(x, DType) and e.attr in ("bits", "name", "kind", "itemsize"):
            return getattr(x, e.attr)
        raise self.error(f"{described(x)} has no attribute '{e.attr}' in a kernel")

    def nearest_primitive(self, name: str) -> str:
        import difflib

        found = difflib.get_close_matches(name, self.language.primitives, 1)
        return f"; is '{found[0]}' meant?" if found else "; docs/kernels.md lists what there is"

    def call(self, e: ast.Call) -> Any:
        f = self.value(e.func)
        args = [self.value(a) for a in e.args]
        named = {}
        for k in e.keywords:
            if k.arg is None:
                raise self.error("`**` in a call is not part of the kernel language", k)
            named[k.arg] = self.value(k.value)
        self.node = e
        if isinstance(f, self.language.Primitive):
            return f.apply(self, *args, **named)
        if isinstance(f, self.language.Function):
            return self.helper(f, args, named)
        if isinstance(f, self.language.Kernel):
            raise self.error(f"'{f.source.name}' is a kernel: a kernel calls helpers, which are under @astra.kernel.function")
        if f is builtins.print:
            self.printed(args)
            return None
        if f is builtins.breakpoint:
            self.stopped()
            return None
        if f is builtins.len and len(args) == 1:
            if isinstance(args[0], tuple):
                return len(args[0])
            if isinstance(args[0], (Tile, View)) and len(args[0].shape):
                return args[0].shape[0] if isinstance(args[0], View) else self.extents_of(args[0].tensor)[0]
            raise self.error(f"len of {described(args[0])}")
        if f in (builtins.min, builtins.max) and len(args) == 2 and not named:
            return self.extreme("min" if f is builtins.min else "max", args[0], args[1])
        if f is ceildiv and len(args) == 2:
            return self.binary(ast.FloorDiv, self.binary(ast.Sub, self.binary(ast.Add, args[0], args[1]), 1), args[1])
        if f is builtins.float and len(args) == 1 and isinstance(args[0], (str, *NUMBERS)):
            return self.attempt(float, args[0])
        if f in (builtins.int, builtins.bool, builtins.abs) or getattr(f, "__module__", "") == "math":
            if all(isinstance(a, NUMBERS) for a in args) and not named:
                return self.attempt(f, *args)
            raise self.error(f"{f.__name__} takes numbers that are known while the kernel is compiled; "
                             + ("cast a tile with kernel.cast" if f in (int, bool) else f"use kernel.{f.__name__} of a tile"))  # fmt: skip
        if f is builtins.range:
            raise self.error("range stands in a `for` alone")
        raise self.error(f"{getattr(f, '__name__', described(f))!s} cannot be called in a kernel: it calls primitives of astra.kernel and helpers "
                         "under @astra.kernel.function")  # fmt: skip

    def helper(self, f: Any, args: list[Any], named: dict[str, Any]) -> Any:
        """A helper's body in place of the call."""
        source = f.source
        if source.name in self.calls:
            raise self.error(f"'{source.name}' calls itself, which a kernel cannot: {' -> '.join([*self.calls, source.name])}")
        try:
            bound = source.signature.bind(*args, **named)
        except TypeError as error:
            raise self.error(f"{source.name}{source.signature}: {error}") from None
        bound.apply_defaults()
        saved = self.source, self.names, self.node
        self.source, self.names = source, {**bound.arguments, **{n: t for n, t in self.names.items() if n == TESTED}}
        self.calls.append(source.name)
        try:
            return self.block(source.tree.body, top=True)
        finally:
            saved[1].update({n: t for n, t in self.names.items() if n == TESTED})
            self.source, self.names, self.node = saved
            self.calls.pop()

    def extreme(self, kind: str, x: Any, y: Any) -> Any:
        if isinstance(x, NUMBERS) and isinstance(y, NUMBERS):
            return min(x, y) if kind == "min" else max(x, y)
        if isinstance(x, (int, Index)) and isinstance(y, (int, Index)):
            return self.index(kind, x, y)
        return self.language.primitives["minimum" if kind == "min" else "maximum"].apply(self, x, y)

    def truth(self, x: Any, what: str) -> Any:
        """A bool of Python's, or a bool scalar."""
        if isinstance(x, NUMBERS):
            return bool(x)
        if isinstance(x, Tile) and x.shape == () and x.dtype.kind == "b":
            return x
        raise self.error(f"{what} is one bool, not {described(x)}" + ("; use kernel.where, kernel.any or kernel.all" if isinstance(x, Tile) else ""))

    # ---- arithmetic

    def form(self, x: Any) -> Expr | None:
        if isinstance(x, bool):
            return int(x)
        if isinstance(x, int):
            return x if abs(x) < 1 << 31 else None
        return x.form if isinstance(x, (Index, Tile)) else None

    def tensor(self, x: Any, like: DType | None = None) -> Tensor:
        """A tile, an index or a number as a tensor; a number takes the type beside it."""
        if isinstance(x, Tile):
            return x.tensor
        if isinstance(x, Index):
            scalar = self.scalar(x)
            return scalar if like is None else _ops.astype(scalar, like)
        if isinstance(x, NUMBERS):
            t = like or _dtypes.DEFAULT[_dtypes.kind_of_number(x)]
            if isinstance(x, float) and t.kind in "iu" or t.kind == "b" and not isinstance(x, bool):
                raise self.error(f"the number {x!r} beside a tile of {t.name}: cast the tile, or write a number of its kind")
            made: Tensor = self.attempt(_ops.literal, x, t)
            return made
        raise self.error(f"a tile or a number is needed here, not {described(x)}")

    def pair(self, x: Any, y: Any, what: str) -> tuple[Tensor, Tensor]:
        """Two operands as tensors of one dtype whose shapes broadcast."""
        for v in (x, y):
            if isinstance(v, View):
                raise self.error(f"{described(v)} is a whole tensor in memory: load a tile of it with kernel.load(x, at, shape)")
            if not to_tensor_type(v):
                raise self.error(f"{what} is of tiles and numbers, not of {described(v)}")
        tiles = [v for v in (x, y) if isinstance(v, Tile)]
        like = tiles[0].dtype if tiles else None
        a, b = self.tensor(x, like), self.tensor(y, like)
        for t in (a, b):
            if t.dtype.kind == "s":
                raise self.error(f"{t.dtype.name} is a type of storage: cast the tile before {what}, as with kernel.cast(x, astra.float32)")
        if a.dtype is not b.dtype:
            raise self.error(f"{what} of {a.dtype.name} and {b.dtype.name}: both are of one dtype; cast one with kernel.cast")
        self.broadcast(a.shape, b.shape, what)
        return a, b

    def broadcast(self, a: tuple[int, ...], b: tuple[int, ...], what: str) -> tuple[int, ...]:
        out = []
        for i in range(1, max(len(a), len(b)) + 1):
            m, n = a[-i] if i <= len(a) else 1, b[-i] if i <= len(b) else 1
            if not (same_extent(m, n) or same_extent(m, 1) or same_extent(n, 1)):
                raise self.error(f"{what} of tiles of shapes {shown(a)} and {shown(b)}, which do not broadcast")
            out.append(n if same_extent(m, 1) else m)
        return tuple(reversed(out))

    def made(self, tensor: Tensor, form: Expr | None = None, bounds: tuple[int, int] | None = None) -> Tile:
        """A tile with what is known of its elements: an expression, or bounds."""
        n = 1
        for extent in tensor.shape:
            n *= most_of(extent)
        if n > MOST_ELEMENTS:
            raise self.error(f"a tile of shape {shown(tensor.shape)} has {n} elements; {MOST_ELEMENTS} are the most")
        return Tile(tensor, form if tensor.dtype.kind in "iub" else None)

    def binary(self, kind: type, x: Any, y: Any) -> Any:
        if kind not in _BINARY:
            if kind is ast.MatMult:
                return self.language.dot.apply(self, x, y)
            raise self.error(f"`{kind.__name__}` is not part of the kernel language")
        text, number, tile, index = _BINARY[kind]
        if isinstance(x, NUMBERS) and isinstance(y, NUMBERS):
            return self.attempt(number, x, y)
        if isinstance(x, tuple) and isinstance(y, tuple) and kind is ast.Add:
            return x + y
        if isinstance(x, (int, Index)) and isinstance(y, (int, Index)) and index and kind not in _BITS:
            if index in ("floordiv", "mod") and isinstance(y, int) and y <= 0:
                raise self.error(f"sizes and program ids are divided by what is greater than 0, not by {y}")
            return self.index(index, x, y)
        a, b = self.pair(x, y, f"`{text}`")
        if kind is ast.Div and a.dtype.kind in "iub":
            raise self.error(f"`/` of integers ({a.dtype.name}) would be a fraction: cast to a float, or use `//`")
        if kind in _BITS and a.dtype.kind == "f" or kind in (ast.LShift, ast.RShift) and a.dtype.kind not in "iu":
            raise self.error(f"`{text}` is of integers, not of {a.dtype.name}")
        if a.dtype.kind == "b" and kind not in _BITS:
            raise self.error(f"`{text}` of bools: use `&`, `|`, `^` or cast them")
        return self.made(self.attempt(tile, a, b), self.form_of_two(kind, x, y, a.dtype))

    def form_of_two(self, kind: type, x: Any, y: Any, t: DType) -> Expr | None:
        """The form of an operator's result, where it is an expression."""
        f, g = self.form(x), self.form(y)
        if f is None or g is None:
            return None
        if t.kind == "b":
            return ({ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "ne"}[kind], f, g)
        if kind in (ast.LShift, ast.RShift) and isinstance(g, int) and 0 <= g < min(t.bits, 62):
            return _forms.make("mul" if kind is ast.LShift else "floordiv", f, 1 << g)
        if kind is ast.BitAnd:
            for one, other in ((f, g), (g, f)):
                if isinstance(other, int) and other >= 0 and other & other + 1 == 0:
                    return _forms.make("mod", one, other + 1)
        index = _BINARY[kind][3]
        divisor = self.bounds(y) if index in ("floordiv", "mod") else None
        if index in ("floordiv", "mod") and (divisor is None or divisor[0] <= 0):
            return None
        return _forms.make(index, f, g) if index else None

    def unary(self, e: ast.UnaryOp, x: Any) -> Any:
        if isinstance(x, NUMBERS):
            number: dict[type, Any] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.invert}
            return self.attempt(number[type(e.op)], x)
        if isinstance(e.op, ast.UAdd) and isinstance(x, (Tile, Index)):
            return x
        if isinstance(e.op, ast.USub) and isinstance(x, Index):
            return self.index("sub", 0, x)
        if isinstance(x, Tile):
            if isinstance(e.op, ast.USub) and x.dtype.kind in "iuf":
                return self.made(_ops.negative(x.tensor), None if x.form is None else _forms.make("sub", 0, x.form))
            if isinstance(e.op, ast.Invert) and x.dtype.kind in "iub" or isinstance(e.op, ast.Not) and x.dtype.kind == "b" and x.shape == ():
                form = None if x.form is None else ("not", x.form) if x.dtype.kind == "b" else _forms.make("sub", -1, x.form)
                return self.made(_ops.bitwise_invert(x.tensor), form)
        text = {ast.USub: "-", ast.UAdd: "+", ast.Not: "not", ast.Invert: "~"}[type(e.op)]
        raise self.error(f"`{text}` of {described(x)}" + ("; use `~` of tiles of bools" if text == "not" else ""))

    def logical(self, e: ast.BoolOp) -> Any:
        result: Any = None
        kind, text = (ast.BitAnd, "and") if isinstance(e.op, ast.And) else (ast.BitOr, "or")
        for i, part in enumerate(e.values):
            x = self.value(part)
            if isinstance(x, NUMBERS):
                x = bool(x)
            elif not (isinstance(x, Tile) and x.shape == () and x.dtype.kind == "b"):
                raise self.error(f"`{text}` is of single bools, not of {described(x)}; use `{'&' if text == 'and' else '|'}` of tiles", part)
            result = x if i == 0 else self.both(text, kind, result, x)
            if isinstance(result, bool) and result is (text == "or"):
                return result
        return result

    def both(self, text: str, kind: type, x: Any, y: Any) -> Any:
        if isinstance(x, bool):
            return y if x is (text == "and") else x
        if isinstance(y, bool):
            return x if y is (text == "and") else y
        return self.binary(kind, x, y)

    def comparison(self, e: ast.Compare) -> Any:
        if len(e.ops) > 1:
            parts = [ast.copy_location(ast.Compare(a, [op], [b]), e) for a, op, b in zip([e.left, *e.comparators], e.ops, e.comparators)]
            found = [self.value(p) for p in parts]
            out = found[0]
            for x in found[1:]:
                out = self.both("and", ast.BitAnd, out, x)
            return out
        op, x, y = e.ops[0], self.value(e.left), self.value(e.comparators[0])
        if isinstance(op, (ast.Is, ast.IsNot)):
            if x is None or y is None:
                return (x is y) == isinstance(op, ast.Is)
            raise self.error("`is` compares with None alone")
        if type(op) not in _COMPARE:
            raise self.error("`in` is not part of the kernel language")
        text, number, tile, form = _COMPARE[type(op)]
        plain = (*NUMBERS, str, DType, tuple)
        if isinstance(x, plain) and isinstance(y, plain) and not any(isinstance(v, Index) for t in (x, y) if isinstance(t, tuple) for v in t):
            return self.attempt(number, x, y)
        f, g = self.form(x), self.form(y)
        known = None if f is None or g is None else (form, g, f) if isinstance(op, (ast.Gt, ast.GtE)) else (form, f, g)
        a, b = self.pair(x, y, f"`{text}`")
        return self.made(self.attempt(tile, a, b), known)

    # ---- subscripts

    def subscript(self, e: ast.Subscript) -> Any:
        x = self.value(e.value)
        items = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
        if isinstance(x, tuple):
            i = self.value(e.slice)
            if isinstance(i, bool) or not isinstance(i, int) or not -len(x) <= i < len(x):
                raise self.error(f"a tuple of {len(x)} is indexed by a number within it, not by {described(i)}")
            return x[i]
        if not isinstance(x, (Tile, View)):
            raise self.error(f"{described(x)} cannot be indexed")
        kind = "tile" if isinstance(x, Tile) else "view"
        key: list[Any] = []
        for item in items:
            if isinstance(item, ast.Slice):
                parts = [None if p is None else self.value(p) for p in (item.lower, item.upper, item.step)]
                if any(p is not None and (isinstance(p, bool) or not isinstance(p, int)) for p in parts):
                    raise self.error(f"the bounds of a slice of a {kind} are numbers" + ("" if isinstance(x, Tile) else ": kernel.load and kernel.store have places"), item)
                key.append(slice(*parts))
            else:
                v = self.value(item)
                if not (v is None or isinstance(v, int) and not isinstance(v, bool)):
                    raise self.error(f"a {kind} is indexed by `:`, None, slices and numbers, not by {described(v)}; see kernel."
                                     + ("pick" if isinstance(x, Tile) else "load"), item)  # fmt: skip
                key.append(v)
        if isinstance(x, View):
            return self.language.views.indexed(self, x, key, ast.unparse(e))
        if sum(k is not None for k in key) > len(x.shape):
            raise self.error(f"{len([k for k in key if k is not None])} indices of a tile of shape {x.shape}")
        return self.made(self.attempt(lambda: x.tensor[tuple(key)]), self.indexed(x.form, x.shape, key))

    def indexed(self, form: Expr | None, shape: tuple[int, ...], key: list[Any]) -> Expr | None:
        """The form behind an index of `:`, None, slices and numbers."""
        if form is None:
            return None
        key = key + [slice(None)] * (len(shape) - sum(k is not None for k in key))
        new = sum(not isinstance(k, int) or isinstance(k, bool) for k in key)
        names: dict[str, Expr] = {}
        old = len(shape)
        for k in key:
            if isinstance(k, int):
                old -= 1
                names[_forms.axis(old)] = k % shape[len(shape) - 1 - old]
                continue
            new -= 1
            if k is None:
                continue
            old -= 1
            first, _, step = (0, 0, 1) if k == slice(None) else k.indices(shape[len(shape) - 1 - old])  # of a size all is asked for
            names[_forms.axis(old)] = _forms.make("add", _forms.make("mul", _forms.axis(new), step), first)
        return self.placed(form, names)


def constant(x: Any) -> bool:
    """Whether a value is a number, a dtype, or a tuple of such."""
    return isinstance(x, (*NUMBERS, str, DType)) or x is None or isinstance(x, tuple) and all(map(constant, x))
