"""Trees of tensors: lists, tuples, dicts, dataclasses and modules, by optree in a namespace of this package.

Takes:    a value of Python's; a leaf is what is no container. None is an empty tree.
Gives:    its leaves and its structure.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import optree

NAMESPACE = "astra"


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Leaves and structure; dicts go by sorted keys."""
    leaves, structure = optree.tree_flatten(tree, namespace=NAMESPACE)
    return list(leaves), structure


def unflatten(structure: Any, leaves: Any) -> Any:
    """The tree of a structure with these leaves."""
    return optree.tree_unflatten(structure, list(leaves))


def map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """The tree of the function's results on the leaves of trees of one structure."""
    return optree.tree_map(function, tree, *rest, namespace=NAMESPACE)


def leaves(tree: Any) -> list[Any]:
    """The leaves, in order."""
    return list(optree.tree_leaves(tree, namespace=NAMESPACE))


def paths(tree: Any) -> list[str]:
    """A name for each leaf: "layers.0.weight"."""
    return [".".join(str(k) for k in path) for path in optree.tree_paths(tree, namespace=NAMESPACE)]


def containers(tree: Any) -> tuple[list[Any], Any]:
    """Leaves and structure of lists, tuples and dicts; classes are leaves."""
    kinds = (tuple, list, dict)
    leaves, structure = optree.tree_flatten(tree, is_leaf=lambda x: type(x) not in kinds, none_is_leaf=True, namespace=NAMESPACE)
    return list(leaves), structure


def register(kind: type, flatten: Callable[[Any], Any], unflatten: Callable[[Any, Any], Any]) -> None:
    """Makes a class a container: flatten(x) gives (children, what is static[, names]), unflatten(static, children) an x."""
    optree.register_pytree_node(kind, flatten, unflatten, namespace=NAMESPACE)


def structure(tree: Any) -> Any:
    """The structure alone."""
    return optree.tree_structure(tree, namespace=NAMESPACE)


def dataclass(kind: Any = None, *, static: Any = ()) -> Any:
    """Makes a dataclass a container of its fields; those that `static` names are part of the structure. A decorator, above
    @dataclasses.dataclass."""
    if kind is None:
        return lambda k: dataclass(k, static=static)
    names = [f.name for f in dataclasses.fields(kind)]
    fixed = {static} if isinstance(static, str) else set(static)
    if not fixed <= set(names):
        raise ValueError(f"{kind.__name__} has no field {', '.join(sorted(fixed - set(names)))}")
    parts = [n for n in names if n not in fixed]

    def unflatten(rest: tuple[Any, ...], children: Any) -> Any:
        made = object.__new__(kind)  # children may be anything while a tree is mapped: no checks of __init__
        for name, x in [*zip(parts, children), *rest]:
            object.__setattr__(made, name, x)
        return made

    register(kind, lambda x: ([getattr(x, n) for n in parts], tuple((n, getattr(x, n)) for n in sorted(fixed)), tuple(parts)), unflatten)
    return kind


__all__ = ["dataclass", "flatten", "leaves", "map", "paths", "register", "structure", "unflatten"]
