"""Kernels of Triton's, walked as kernels of Astra's: what differs in the two languages.

Takes:    the walkers of _kernel: one builds the node of the graph, the other runs program by program.
Gives:    the same with pointers, masks, Triton's rules of types and its functions.
Keeps:    integers of program ids, counters and sizes are exact, never wrapped; everything else has the bits of the kernel language.
"""

from __future__ import annotations

import ast
import builtins
from typing import Any

import numpy as np

from ... import _ops
from ..._dims import Dim
from ..._dtypes import DTYPES, DType
from ..._kernel import _forms
from ..._kernel._forms import Expr
from ..._kernel._values import Index, Tile, View, described
from ..._kernel._expressions import NUMBERS
from ..._kernel._walker import Walker
from ..._tensor import Tensor
from . import _pointers
from ._builtins import BUILTINS, METHODS, Builtin, ElementType, Old, PointerType, dtype_of
from ._pointers import BlockPointer, Items, Pointer

I32, I64, F32 = DTYPES["int32"], DTYPES["int64"], DTYPES["float32"]


class Known(ast.expr):
    """An expression whose value is there."""

    def __init__(self, known: Any) -> None:
        super().__init__()
        self.known = known


class Method:
    """A function of a value: x.to, x.sum, pointer.load."""

    def __init__(self, f: Builtin, x: Any) -> None:
        self.f, self.x = f, x


def named(x: Any) -> str:
    if isinstance(x, Pointer):
        return f"a pointer into '{x.argument.name}'"
    if isinstance(x, BlockPointer):
        return f"a block pointer into '{x.base.argument.name}'"
    if isinstance(x, Items):
        return "a tuple that is used as a pointer"
    return described(x)


def promoted(a: DType, b: DType) -> DType:
    """The type of an operation on two blocks."""
    if a is b:
        return a
    for kind in "f":
        if a.kind == kind or b.kind == kind:
            if a.kind != b.kind:
                return a if a.kind == kind else b
            if a.bits == b.bits:  # float16 and bfloat16
                return F32
            return a if a.bits > b.bits else b
    if a.kind == "b" or b.kind == "b":
        return b if a.kind == "b" else a
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return a if a.kind == "u" else b


class TritonWalker(Walker):
    """What both walkers share."""

    jitted: Any = None  # the class of functions under @triton.jit
    guards: list[Expr]  # what is known of the program at this place
    lost: dict[str, str]  # names that a loop or a branch took the value of, and why

    # ---- names, functions and methods

    def value(self, e: ast.expr) -> Any:
        return self.translated(super().value(e))

    def translated(self, x: Any) -> Any:
        """What stands for an object of Triton's own package."""
        module = getattr(type(x), "__module__", "")
        if isinstance(x, Builtin):
            return {"range": builtins.range, "static_range": self.language.static_for}.get(x.name, x)
        if isinstance(x, Dim):
            return self.sized(x)
        if isinstance(x, np.generic):
            return x.item()
        if module.startswith("triton") or getattr(x, "__module__", None) and str(x.__module__).startswith("triton."):
            name = getattr(x, "__name__", "")
            if hasattr(x, "value") and type(x).__name__ == "constexpr":
                return x.value
            found = dtype_of(x)
            if found is not None:
                return found
            if name in BUILTINS and str(getattr(x, "__module__", "")).startswith("triton.language"):
                return self.translated(BUILTINS[name])
            if hasattr(x, "fn"):
                return self.jitted(x)
        return x

    def sized(self, x: Dim) -> Any:
        return x

    def name(self, name: str) -> Any:
        if name not in self.names and name in self.lost:
            raise self.error(f"'{name}' is not known here: {self.lost[name]}")
        x = super().name(name)
        if isinstance(x, Old):
            raise self.error(f"the old value of tl.atomic_{x.kind} depends on the order of programs: nothing can be done with it")
        return x

    def expression(self, e: ast.expr) -> Any:
        if isinstance(e, Known):
            return e.known
        if isinstance(e, ast.List):
            return tuple(self.value(x) for x in e.elts)
        if isinstance(e, ast.JoinedStr):
            return ""  # of messages
        return super().expression(e)

    def attribute(self, e: ast.Attribute) -> Any:
        x = self.value(e.value)
        if isinstance(x, (Tile, Index, Pointer, BlockPointer, DType, ElementType, PointerType)) or isinstance(x, NUMBERS):
            if e.attr in ("dtype", "type") and isinstance(x, (Pointer, BlockPointer)):
                return PointerType((x if isinstance(x, Pointer) else x.base).argument.dtype)
            if e.attr in ("element_ty", "scalar") and isinstance(x, (PointerType, DType, ElementType)):
                return x.dtype if isinstance(x, (PointerType, ElementType)) else x
            if e.attr == "type" and isinstance(x, Tile):
                return ElementType(x.dtype)
            if e.attr == "dtype" and isinstance(x, (Index, int)) and not isinstance(x, bool):
                return I32
            if e.attr in ("primitive_bitwidth", "itemsize") and isinstance(x, DType):
                return x.bits if e.attr == "primitive_bitwidth" else x.itemsize
            if e.attr == "shape" and isinstance(x, Pointer):
                return x.shape
            if e.attr == "value" and isinstance(x, NUMBERS):
                return x
            if e.attr in METHODS and not isinstance(x, DType):
                return Method(BUILTINS[METHODS[e.attr]], x)
        if isinstance(x, (Pointer, BlockPointer, PointerType, ElementType)):
            raise self.error(f"{named(x)} has no attribute '{e.attr}' in a kernel")
        if hasattr(x, "__dict__") and not isinstance(x, (Tile, Index, View)) and hasattr(x, e.attr) and str(getattr(x, "__name__", "")).split(".")[0] in (
                "astra", "triton"):  # fmt: skip
            return getattr(x, e.attr)
        return super().attribute(ast.copy_location(ast.Attribute(Known(x), e.attr, e.ctx), e))

    def call(self, e: ast.Call) -> Any:
        f: Any = self.value(e.func)
        if f is builtins.isinstance:
            x, kind = (self.value(a) for a in e.args)
            return isinstance(x, kind) or isinstance(x, BlockPointer) and isinstance(x.base, kind) or getattr(kind, "__name__", "") == "constexpr" and isinstance(
                x, NUMBERS)  # fmt: skip
        if not isinstance(f, (Builtin, Method, self.jitted)) and f is not builtins.max and f is not builtins.min:
            return super().call(e)
        args = [self.value(a) for a in e.args]
        more = {}
        for k in e.keywords:
            if k.arg is None:
                raise self.error("`**` in a call is not part of the kernel language", k)
            more[k.arg] = self.value(k.value)
        self.node = e
        if isinstance(f, Method):
            return f.f.apply(self, f.x, *args, **more)
        if isinstance(f, Builtin):
            return f.apply(self, *args, **more)
        if f is builtins.max or f is builtins.min:
            return self.extreme("max" if f is builtins.max else "min", *args)
        return self.helper(f, args, more)

    def block(self, body: list[ast.stmt], top: bool = False) -> Any:
        """A helper may return in an `if` that is decided while the kernel is compiled."""
        for i, s in enumerate(body):
            returns = isinstance(s, ast.If) and any(isinstance(n, ast.Return) for n in ast.walk(s))
            if top and returns and isinstance(s, ast.If):
                super().block(body[:i], top=False) if i else None
                condition = self.value(s.test)
                self.node = s
                if condition is not None and not isinstance(condition, (*NUMBERS, str)):
                    raise self.error("a `return` in an `if` on data: a kernel stores with a mask, a helper returns in its last statement", s)
                return self.block((s.body if condition else s.orelse) + body[i + 1 :], top=True)
        if top and len(self.calls) == 1 and body and isinstance(body[-1], ast.Return) and body[-1].value is None:
            body = body[:-1]
        if top and len(self.calls) == 1 and any(isinstance(s, ast.Return) and s.value is None for s in body):
            body = body[: next(i for i, s in enumerate(body) if isinstance(s, ast.Return))]
        return super().block(body, top)

    def statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
            self.node = s
            self.value(s.value)  # what it gives may stay unused: an atomic's old value, tl.multiple_of
            return
        if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
            left, right = self.value(ast.copy_location(ast.Name(s.target.id, ast.Load()), s.target)), self.value(s.value)
            self.node = s
            self.names[s.target.id] = self.binary(type(s.op), left, right)
            return
        super().statement(s)

    def tests_in(self, body: list[ast.stmt], source: Any) -> bool:
        """Of helpers too: which ones tl's functions and those under @triton.jit are is known when they are called."""
        for n in (n for s in body for n in ast.walk(s) if isinstance(n, ast.Call)):
            name = n.func.attr if isinstance(n.func, ast.Attribute) else n.func.id if isinstance(n.func, ast.Name) else ""
            if name in ("assume", "device_assert"):
                return True
            try:
                f = self.translated(source.outside(name))
            except KeyError:
                continue
            if isinstance(f, self.jitted) and f.source.name not in self.calls and self.tests_in(f.source.tree.body, f.source):
                return True
        return super().tests_in(body, source)

    def for_(self, s: ast.For) -> None:
        """range of tl has more arguments, which say how a loop is compiled."""
        if isinstance(s.iter, ast.Call) and s.iter.keywords:
            order = {"arg1": 0, "start": 0, "arg2": 1, "end": 1, "stop": 1, "step": 2}
            given = {k.arg: k.value for k in s.iter.keywords}
            args = list(s.iter.args)
            for name, value in sorted(((n, v) for n, v in given.items() if n in order), key=lambda p: order[str(p[0])]):
                args.append(value)
            plain = ast.copy_location(ast.Call(s.iter.func, args, []), s.iter)
            s = ast.copy_location(ast.For(s.target, plain, s.body, s.orelse), s)
        super().for_(s)

    # ---- arithmetic

    def form(self, x: Any) -> Expr | None:
        return x if isinstance(x, int) and not isinstance(x, bool) else super().form(x)

    def pair(self, x: Any, y: Any, what: str) -> tuple[Tensor, Tensor]:
        """Two operands in Triton's common type."""
        for v in (x, y):
            if not isinstance(v, (Tile, Index, *NUMBERS)):
                raise self.error(f"{what} is of tiles and numbers, not of {named(v)}" + ("; load what it points to" if isinstance(v, (Pointer, BlockPointer)) else ""))
        tiles = [v for v in (x, y) if isinstance(v, Tile)]
        if len(tiles) == 2:
            ranks = [len(t.shape) for t in tiles]
            t = promoted(tiles[0].dtype, tiles[1].dtype)
            if (ranks[0] == 0) != (ranks[1] == 0):  # one value beside a block takes the block's type, unless it is of a higher kind
                block, one = (tiles[1], tiles[0]) if ranks[0] == 0 else (tiles[0], tiles[1])
                if "biuf".index(one.dtype.kind) <= "biuf".index(block.dtype.kind) and not (one.dtype.kind == "u" and block.dtype.kind == "i"):
                    t = block.dtype
        elif tiles:
            other = y if tiles[0] is x else x
            t = tiles[0].dtype
            if isinstance(other, float) and t.kind in "iub":
                t = F32
            elif not isinstance(other, (bool, float)) and t.kind == "b":
                t = I32
            elif isinstance(other, int) and t.kind in "iu" and not self.fits(other, t):
                t = I64
            elif isinstance(other, Index) and t.kind in "iu" and t.bits < 32:
                t = I32
        else:
            t = F32 if float in (type(x), type(y)) else I64
        if t.kind == "s":
            t = F32
        a, b = (self.typed(v, t) for v in (x, y))
        self.broadcast(a.shape, b.shape, what)
        return a, b

    @staticmethod
    def fits(n: int, t: DType) -> bool:
        return (-(1 << t.bits - 1) <= n < 1 << t.bits - 1) if t.kind == "i" else 0 <= n < 1 << t.bits

    def typed(self, x: Any, t: DType) -> Tensor:
        """A value as a tensor of a type."""
        if isinstance(x, NUMBERS):
            if t.kind == "u" and isinstance(x, int) and x < 0:
                x %= 1 << t.bits
            return self.tensor(float(x) if t.kind == "f" else x, t)
        made: Tensor = self.attempt(_ops.astype, self.tensor(x), t)
        return made

    def binary(self, kind: type, x: Any, y: Any) -> Any:
        if isinstance(x, Items) or isinstance(y, Items):
            items, by = (x, y) if isinstance(x, Items) else (y, x)
            if kind is ast.Add and isinstance(by, int):
                return Items(items.items, items.at + by)
            raise self.error("a tuple that is used as a pointer is moved by numbers that are known while the kernel is compiled, "
                             f"not by {named(by)}: unroll the loop with tl.static_range")  # fmt: skip
        if isinstance(x, Pointer) or isinstance(y, Pointer):
            return self.moved_pointer(kind, x, y)
        integers = all(isinstance(v, (int, Index)) or isinstance(v, Tile) and v.dtype.kind in "iub" for v in (x, y))
        if isinstance(x, NUMBERS) and isinstance(y, NUMBERS) or not integers:
            return super().binary(kind, x, y)
        tiles = [v for v in (x, y) if isinstance(v, Tile)]
        if kind is ast.Div:
            return super().binary(kind, Tile(self.typed(x, F32)), Tile(self.typed(y, F32)))
        if kind in (ast.FloorDiv, ast.Mod) and not self.plain(x, y):
            return self.truncated(kind, x, y)
        if tiles and all(t.dtype.kind == "b" for t in tiles) and kind in (ast.Add, ast.Sub, ast.Mult) and not any(
                isinstance(v, (int, Index)) and not isinstance(v, bool) for v in (x, y)):  # fmt: skip
            x = Tile(self.typed(x, I32), self.form(x))
        return super().binary(kind, x, y)

    def plain(self, x: Any, y: Any) -> bool:
        """Whether a quotient of integers is the same rounded down and rounded to zero."""
        raise NotImplementedError

    def truncated(self, kind: type, x: Any, y: Any) -> Tile:
        """Quotient and remainder of C."""
        a, b = self.pair(x, y, "`//`" if kind is ast.FloorDiv else "`%`")
        if kind is ast.Mod:
            divisor = self.bounds(y)
            most = None if divisor is None else max(abs(divisor[0]), abs(divisor[1]), 1) - 1
            return self.made(self.attempt(_ops.fmod, a, b), None, None if most is None else (0 if a.dtype.kind == "u" else -most, most))
        if a.dtype.kind == "u":
            return self.made(_ops.floor_divide(a, b))
        q = _ops.floor_divide(_ops.abs(a), _ops.abs(b))
        return self.made(_ops.where(_ops.less(_ops.bitwise_xor(a, b), 0), _ops.negative(q), q))

    def comparison(self, e: ast.Compare) -> Any:
        if len(e.ops) == 1 and isinstance(e.ops[0], (ast.Is, ast.IsNot)):
            x, y = self.value(e.left), self.value(e.comparators[0])
            return (x is y) == isinstance(e.ops[0], ast.Is)
        return self.decided(super().comparison(e))

    def decided(self, x: Any) -> Any:
        """A bool of Python's, where a condition is known to hold or not to."""
        return x

    def unary(self, e: ast.UnaryOp, x: Any) -> Any:
        if isinstance(e.op, ast.Not) and isinstance(x, Tile) and x.shape == () and x.dtype.kind in "iu":
            x = self.not_zero(x)
        return super().unary(e, x)

    def truth(self, x: Any, what: str) -> Any:
        if isinstance(x, Index):
            x = Tile(self.scalar(x), x.form)
        if isinstance(x, Tile) and x.shape == () and x.dtype.kind in "iu":
            return self.not_zero(x)
        return super().truth(x, what)

    def not_zero(self, x: Tile) -> Tile:
        """Integers and floats as bools."""
        form = self.form(x)
        return self.made(_ops.not_equal(x.tensor, 0), None if form is None else ("ne", form, 0))

    def extreme(self, kind: str, *args: Any) -> Any:
        out = args[0]
        for x in args[1:]:
            out = super().extreme(kind, out, x)
        return out

    # ---- pointers

    def moved_pointer(self, kind: type, x: Any, y: Any) -> Pointer:
        if isinstance(x, Pointer) and isinstance(y, Pointer) and kind is ast.Sub:
            raise self.error("the difference of two pointers: keep their offsets in names")
        p, by = (x, y) if isinstance(x, Pointer) else (y, x)
        if kind not in (ast.Add, ast.Sub) or kind is ast.Sub and p is y or not _pointers.offsets(by):
            raise self.error(f"{named(x)} and {named(y)}: a pointer is moved by integers, with + and -")
        return Pointer(p.argument, self.binary(kind, self.wide(p.offset), self.wide(by)))

    def wide(self, x: Any) -> Any:
        """An offset of 64 bits."""
        return Tile(_ops.astype(x.tensor, I64), x.form) if isinstance(x, Tile) else x

    def subscript(self, e: ast.Subscript) -> Any:
        x = self.value(e.value)
        if isinstance(x, Pointer):
            if not isinstance(x.offset, Tile):
                raise self.error(f"{named(x)} to one element cannot be indexed: add offsets to it, and load")
            self.names["%pointer"] = x.offset
            try:
                return Pointer(x.argument, self.subscript(ast.copy_location(ast.Subscript(ast.Name("%pointer", ast.Load()), e.slice, e.ctx), e)))
            finally:
                del self.names["%pointer"]
        if isinstance(x, (Index, int)) and not isinstance(x, bool):
            raise self.error("one integer cannot be indexed")
        return super().subscript(ast.copy_location(ast.Subscript(Known(x), e.slice, e.ctx), e))

    def pointer_of(self, p: BlockPointer, checked: tuple[int, ...]) -> tuple[Pointer, Any]:
        """The pointers of a block, and the mask of the axes whose ends are looked at."""
        offset, mask, rank = p.base.offset, None, len(p.block)
        for axis, (begin, n, stride, span) in enumerate(zip(p.offsets, p.shape, p.strides, p.block)):
            line = Tile(_ops.reshape(_ops.iota(span), (span,) + (1,) * (rank - axis - 1)), _forms.axis(rank - axis - 1))
            at = self.binary(ast.Add, self.wide(begin), line)
            if axis in checked:
                for c in (self.compared("le", 0, at), self.compared("lt", at, n)):
                    mask = c if mask is None else self.binary(ast.BitAnd, mask, c)
            offset = self.binary(ast.Add, offset, self.binary(ast.Mult, at, self.wide(stride)))
        return Pointer(p.base.argument, offset), mask

    def compared(self, op: str, x: Any, y: Any) -> Tile:
        a, b = self.pair(x, y, "a comparison")
        f, g = self.form(x), self.form(y)
        return self.made((_ops.less_equal if op == "le" else _ops.less)(a, b), None if f is None or g is None else (op, f, g))

    def masked(self, mask: Any, shape: tuple[int, ...], what: str) -> Any:
        """A mask as a tile of bools of the pointers' shape; True where there is none."""
        if mask is None or mask is True:
            return True
        if mask is False or isinstance(mask, (int, Index)):
            mask = Tile(_ops.astype(self.tensor(mask), "bool"), int(mask) if isinstance(mask, int) else None)
        if not isinstance(mask, Tile):
            raise self.error(f"the mask of {what} is a tile of bools, not {named(mask)}")
        if mask.dtype.kind != "b":
            mask = self.not_zero(mask)
        if self.broadcast(mask.shape, shape, f"{what} with a mask") != shape:
            raise self.error(f"{what} through pointers of shape {shape} with a mask of shape {mask.shape}")
        return self.made(_ops.broadcast_to(mask.tensor, shape), mask.form)

    def read(self, p: Pointer, mask: Any, other: Any) -> Tile:
        raise NotImplementedError

    def write(self, p: Pointer, t: Tile, mask: Any, mode: str) -> None:
        raise NotImplementedError
