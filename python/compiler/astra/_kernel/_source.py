"""The source of a kernel, and sentences about a place in it.

Takes:    a function of the user's.
Gives:    its syntax tree, what its free names stand for, and a KernelError for any node of the tree: file, line, column and the line itself.
Does not: run the function.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import textwrap
from typing import Any, Callable

from .._errors import ArgumentError, KernelError


class Source:
    """A function as a syntax tree whose lines and columns are those of its file."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f
        self.name = getattr(f, "__name__", "kernel")
        try:
            lines, first = inspect.getsourcelines(f)
        except (OSError, TypeError):
            raise ArgumentError(f"the source of '{self.name}' is not there: a kernel is parsed, so it is written in a file or a notebook") from None
        self.file = inspect.getsourcefile(f) or "<unknown>"
        text = "".join(lines)
        body = textwrap.dedent(text)
        self.indent = len(lines[0]) - len(lines[0].lstrip())
        try:
            tree = ast.parse(body)
        except SyntaxError:
            tree = ast.Module([], [])
        if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
            raise ArgumentError(f"'{self.name}' ({self.file}:{first}) is no function of `def`: a kernel is one")
        self.tree: ast.FunctionDef = tree.body[0]
        ast.increment_lineno(self.tree, first - 1)
        self.signature = inspect.signature(f)
        self.assigned = {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}

    def outside(self, name: str) -> Any:
        """What a free name stands for when the kernel is called; KeyError where nothing."""
        f: Any = self.f
        if name in f.__code__.co_freevars:
            try:
                return f.__closure__[f.__code__.co_freevars.index(name)].cell_contents
            except ValueError:  # not assigned yet
                raise KeyError(name) from None
        return f.__globals__[name] if name in f.__globals__ else vars(builtins)[name]

    def error(self, node: ast.AST, sentence: str) -> KernelError:
        """An exception that says where."""
        line, column = getattr(node, "lineno", self.tree.lineno), getattr(node, "col_offset", 0) + self.indent + 1
        text = linecache.getline(self.file, line).rstrip("\n")
        shown = f"\n    {text}\n    {' ' * (column - 1)}^" if text else ""
        return KernelError(f"{self.file}:{line}:{column}: error: {sentence}{shown}")
