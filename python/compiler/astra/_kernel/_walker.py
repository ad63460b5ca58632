"""The language: statements of a kernel's source.

Takes:    a syntax tree, what its names stand for.
Gives:    what stores, loops and branches make of the tiles that expressions are (_expressions.py).
Keeps:    as _expressions.py: what differs between the graph and the interpreter is in subclasses.
"""

from __future__ import annotations

import ast
import builtins
from typing import Any

from .._errors import KernelError
from ._expressions import NUMBERS, TESTED, Expressions, same_shape
from ._source import Source
from ._values import Index, Tile, View, described

MOST_UNROLLED = 4096
MOST_STEPS = 100_000  # of a `while`
_STATEMENTS = {  # what Python has and a kernel has not
    ast.Return: "a kernel has no `return`: it stores its results into outputs; a helper returns in its last statement",
    ast.FunctionDef: "a function inside of a kernel is not supported: write a helper of its own, under @astra.kernel.function",
    ast.AsyncFunctionDef: "`async` is not part of the kernel language",
    ast.ClassDef: "a class inside of a kernel is not supported",
    ast.Try: "`try` is not part of the kernel language: a kernel raises nothing",
    ast.Raise: "a kernel raises nothing; use `assert`, which the interpreter checks",
    ast.With: "`with` is not part of the kernel language",
    ast.Import: "`import` stands outside of the kernel",
    ast.ImportFrom: "`import` stands outside of the kernel",
    ast.Global: "a kernel changes nothing outside: `global` is not part of the language",
    ast.Nonlocal: "a kernel changes nothing outside: `nonlocal` is not part of the language",
    ast.Delete: "`del` is not part of the kernel language",
    ast.Break: "`break` is not part of the kernel language: a `for` runs to its end, a `while` until its condition is false",
    ast.Continue: "`continue` is not part of the kernel language: use `if` or kernel.where",
    ast.Match: "`match` is not part of the kernel language: use `if`",
}


class Walker(Expressions):
    """Walks statements with an environment: names to values."""

    # ---- statements

    def run(self) -> None:
        """All statements of the kernel."""
        self.block(self.source.tree.body, top=True)

    def block(self, body: list[ast.stmt], top: bool = False) -> Any:
        for i, s in enumerate(body):
            if top and i == 0 and isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str):
                continue  # what the kernel says of itself
            if isinstance(s, ast.Return) and len(self.calls) > 1:
                if not top or i + 1 < len(body):
                    raise self.error("a helper returns in its last statement alone", s)
                return None if s.value is None else self.value(s.value)
            self.statement(s)
        return None

    def statement(self, s: ast.stmt) -> None:
        self.node = s
        if isinstance(s, ast.Assign):
            value = self.value(s.value)
            for target in s.targets:
                self.assign(target, value)
        elif isinstance(s, ast.AnnAssign):
            if s.value is not None:
                self.assign(s.target, self.value(s.value))
        elif isinstance(s, ast.AugAssign):
            if not isinstance(s.target, ast.Name):
                raise self.error("a tile never changes: assign another tile to its name", s.target)
            left = self.value(ast.copy_location(ast.Name(s.target.id, ast.Load()), s.target))
            right = self.value(s.value)
            self.node = s
            self.names[s.target.id] = self.binary(type(s.op), left, right)
        elif isinstance(s, ast.Expr):
            if isinstance(s.value, ast.Constant):
                return
            if not isinstance(s.value, ast.Call):
                raise self.error("this expression does nothing: assign it, or store it")
            if self.value(s.value) is not None:
                raise self.error("the result of this call is not used: assign it, or store it", s)
        elif isinstance(s, ast.For):
            self.for_(s)
        elif isinstance(s, ast.While):
            self.while_(s)
        elif isinstance(s, ast.If):
            self.if_(s)
        elif isinstance(s, ast.Assert):
            condition = self.value(s.test)
            message = self.value(s.msg) if s.msg is not None else ""
            self.node = s
            self.asserted(self.truth(condition, "what `assert` is given"), str(message))
        elif isinstance(s, ast.Pass):
            pass
        else:
            known = next((text for kind, text in _STATEMENTS.items() if isinstance(s, kind)), None)
            raise self.error(known or f"`{type(s).__name__}` is not part of the kernel language")

    def assign(self, target: ast.expr, value: Any) -> None:
        if value is None:
            raise self.error("this call gives nothing that could be assigned")
        if isinstance(target, ast.Name):
            known = self.names.get(target.id)
            if isinstance(known, View) and known.base is known:
                raise self.error(f"'{target.id}' is an argument of the kernel: give the value another name, or store it with kernel.store", target)
            self.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value, tuple):
                raise self.error(f"{described(value)} cannot be taken apart into {len(target.elts)} names", target)
            if len(value) != len(target.elts):
                raise self.error(f"a tuple of {len(value)} cannot be taken apart into {len(target.elts)} names", target)
            for t, v in zip(target.elts, value):
                self.assign(t, v)
        elif isinstance(target, ast.Subscript):
            raise self.error("a tile never changes, and a view is written with kernel.store(out, at, value)", target)
        else:
            raise self.error("this cannot be assigned to in a kernel", target)

    def skip(self, body: list[ast.stmt]) -> None:
        """Notes statements that never run, of a loop without a step or a branch that is not taken: outputs that they name may have no other store."""
        for name in {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)}:
            value = self.names.get(name)
            self.skipped |= {v.base.name for v in (value if isinstance(value, tuple) else (value,)) if isinstance(v, View)}

    def for_(self, s: ast.For) -> None:
        if s.orelse:
            raise self.error("`else` of a loop is not part of the kernel language", s.orelse[0])
        call = s.iter
        f = self.value(call.func) if isinstance(call, ast.Call) else None
        unrolled = f is self.language.static_for
        if not (f is builtins.range or unrolled) or not isinstance(call, ast.Call):
            raise self.error("a `for` of a kernel goes over range(...) or kernel.static_for(...)", call)
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise self.error("range takes one to three integers", call)
        bounds = [self.value(a) for a in call.args]
        for b, a in zip(bounds, call.args):
            if isinstance(b, bool) or not isinstance(b, (int, Index)):
                raise self.error(f"range takes integers known from sizes, program ids and counters, not {described(b)}", a)
        first, last, step = (0, bounds[0], 1) if len(bounds) == 1 else (bounds[0], bounds[1], 1) if len(bounds) == 2 else bounds
        if not isinstance(step, int) or step == 0:
            raise self.error("the step of range is a number that is not 0", call)
        self.node = s
        if not unrolled:
            if not isinstance(s.target, ast.Name):
                raise self.error("the counter of a `for` is one name", s.target)
            return self.for_range(s, first, last, step)
        if not isinstance(first, int) or not isinstance(last, int):
            raise self.error("static_for is unrolled while the kernel is compiled: its bounds are numbers", call)
        if len(range(first, last, step)) > MOST_UNROLLED:
            raise self.error(f"static_for is unrolled at most {MOST_UNROLLED} times, this one {len(range(first, last, step))} times", call)
        if not range(first, last, step):
            self.skip(s.body)
        for i in range(first, last, step):
            self.assign(s.target, i)
            self.block(s.body)

    def most_unrolled(self, body: list[ast.stmt]) -> int:
        """How often a statement of a body stands in it with its static_for loops unrolled, as far as that is known before the body is walked."""
        most = 1
        for s in body:
            times = 1
            if isinstance(s, ast.For) and isinstance(s.iter, ast.Call) and self.value(s.iter.func) is self.language.static_for:
                try:
                    times = max(1, len(range(*(self.value(a) for a in s.iter.args))))
                except (KernelError, TypeError, ValueError):
                    pass
            inner = [getattr(s, part, []) for part in ("body", "orelse")]
            most = max(most, times * max(self.most_unrolled(part) for part in inner))
        return most

    def while_(self, s: ast.While) -> None:
        if s.orelse:
            raise self.error("`else` of a loop is not part of the kernel language", s.orelse[0])
        condition = self.value(s.test)
        if isinstance(condition, NUMBERS):
            if not condition:
                return self.skip(s.body)
            used = {n.id for n in ast.walk(s.test) if isinstance(n, ast.Name)}
            if not used & set(self.changed(s.body)):
                raise self.error("the condition of this `while` is the number "
                                 f"{condition!r} while the kernel is compiled: a loop that never ends, or use kernel.static_for", s.test)
        self.while_data(s)

    def if_(self, s: ast.If) -> None:
        condition = self.value(s.test)
        self.node = s
        if condition is None or isinstance(condition, (*NUMBERS, str)):
            self.skip(s.orelse if condition else s.body)
            return self.block(s.body if condition else s.orelse)
        self.branch(s, self.truth(condition, "the condition of `if`"))

    def changed(self, body: list[ast.stmt]) -> list[str]:
        """Names that statements assign and that are there before."""
        found: dict[str, None] = {}
        for s in body:
            for n in ast.walk(s):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                    found[n.id] = None
        return [n for n in found if n in self.names] + [TESTED] * (TESTED in self.names and self.tests_in(body, self.source))

    def tests_in(self, body: list[ast.stmt], source: Source) -> bool:
        """Whether something is assumed or asserted in statements, or in helpers that they call."""
        for n in (n for s in body for n in ast.walk(s)):
            if isinstance(n, ast.Assert):
                return True
            called = n.func if isinstance(n, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr == "assume":
                return True
            if not isinstance(called, (ast.Name, ast.Attribute)):
                continue
            try:
                parts = ast.unparse(called).split(".")
                f: Any = source.outside(parts[0])
                for part in parts[1:]:
                    f = getattr(f, part)
            except (KeyError, AttributeError):
                continue
            if f is self.language.primitives["assume"] or isinstance(f, self.language.Function) and self.tests_in(f.source.tree.body, f.source):
                return True
        return False

    @staticmethod
    def only_grows(name: str, body: list[ast.stmt]) -> bool:
        """Whether all that a body does to a name is to add a number that is not negative."""
        found = False
        for s in body:
            if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name) and s.target.id == name:
                by = s.value
                found = isinstance(s.op, ast.Add) and isinstance(by, ast.Constant) and isinstance(by.value, int) and by.value >= 0
                if not found:
                    return False
            elif any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(s)):
                return False
        return found

    def carried(self, name: str, where: ast.AST) -> Tile:
        """The value of a name as a tile that a loop or a branch hands on."""
        value = self.names[name]
        if isinstance(value, NUMBERS):
            return Tile(self.tensor(value))
        if isinstance(value, Index):
            return Tile(self.scalar(value))
        if isinstance(value, Tile):
            return Tile(value.tensor)
        raise self.error(f"'{name}' is {described(value)}; what a loop or a branch changes is a tile or a number", where)

    def handed(self, name: str, before: Tile, where: ast.AST, what: str) -> Tile:
        """The value of a name at the end of a body, of the type that it had."""
        after = self.carried(name, where)
        if after.dtype is not before.dtype or not same_shape(after.shape, before.shape):
            raise self.error(f"'{name}' is {before} before {what} and {after} at the end of its body; both are of one type", where)
        return after
