"""Extents that are arithmetic of dims: "past + 1", "4*h".

Takes:    text as exporters and --dim write it: names and integers with + - * // % ( ), floor(a / b), FloorDiv, Mod, Max, Min.
Gives:    its names; its value for given sizes; the size of its one dim that makes it a number.
Does not: check bounds: the compiler does.
"""

import ast
import operator
import re

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
             ast.Mod: operator.mod}
FUNCTIONS = {"floordiv": operator.floordiv, "mod": operator.mod, "max": max, "min": min}


def parsed(text):
    """The tree with names that Python can read (a dim may be called `in` or `x.1`), and what each stands for."""
    aliases, text = {}, text.strip()

    def alias(match):
        name = match[0]
        if name.lower() in ("floor", *FUNCTIONS) and text[match.end() :].lstrip().startswith("("):
            return name.lower()
        return aliases.setdefault(name, f"n{len(aliases)}")

    if not re.fullmatch(r"[\w.\s+*/%(),-]*", text):
        return None, {}
    try:
        plain = re.sub(r"(?<![\w.])0+(?=[0-9])", "", re.sub(r"[A-Za-z_][\w.]*", alias, text))
        return ast.parse(plain, mode="eval").body, {short: name for name, short in aliases.items()}
    except (SyntaxError, ValueError, RecursionError):
        return None, {}


def names(text):
    """Of the dims that an extent is made of, in order."""
    return list(parsed(text)[1].values())


def value(text, sizes):
    """None where it is no arithmetic, or a size is missing."""

    def of(node):
        if isinstance(node, ast.Name):
            return sizes[dims[node.id]]
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -of(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            called, args = node.func.id, node.args
            if called == "floor" and len(args) == 1:
                quotient = isinstance(args[0], ast.BinOp) and isinstance(args[0].op, ast.Div)
                return of(args[0].left) // of(args[0].right) if quotient else of(args[0])
            if called in FUNCTIONS and len(args) == 2:
                return FUNCTIONS[called](of(args[0]), of(args[1]))
        raise ValueError

    root, dims = parsed(text)
    try:
        return None if root is None else of(root)
    except (KeyError, ValueError, ZeroDivisionError, RecursionError):
        return None


def solve(text, extent):
    """Name and size of the one dim of which `text` is a multiple plus a constant; None where it gives none."""
    if len(found := names(text)) != 1:
        return None
    at = [value(text, {found[0]: n}) for n in (1 << 16, (1 << 16) + 1)]
    if None in at or at[1] <= at[0]:
        return None
    size = (1 << 16) + (extent - at[0]) // (at[1] - at[0])
    return (found[0], size) if value(text, {found[0]: size}) == extent else None
