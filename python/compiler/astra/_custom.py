"""Functions whose derivative is computed in a way of their own: custom_vjp, custom_jvp, checkpoint.

Takes:    functions; for custom_vjp also those that give what to keep, and cotangents from it.
Gives:    functions that compute the same values.
Keeps:    one mechanism: the op `with_gradient`, whose function is built here. It takes floats; complex numbers pass through it as
          their parts, other types as floats of the same bits or values. Several results pass as one vector, so that their cotangents come together.
"""

from __future__ import annotations

import inspect
import threading
from typing import Any, Callable, Sequence

from . import _ops, _tree
from ._building import op
from ._dtypes import DTYPES
from ._errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ._graph import Graph, current
from ._static import is_static
from ._tensor import Tensor, asarray, call, of_node
from ._transforms import nodes_of, placeholder, substituted, tensors_of

F32, F64 = DTYPES["float32"], DTYPES["float64"]


def _coded(t: Tensor) -> Tensor:
    """A tensor as floats from which it can be told."""
    kind, bits = t.dtype.kind, t.dtype.bits
    if kind == "f":
        return t
    if kind == "c":
        return _ops.stack([_ops.real(t), _ops.imag(t)])
    if kind == "b" or kind in "iu" and bits < 32:
        return _ops.astype(t, F32)
    if kind in "iu":
        return _ops.bitcast(t, F32 if bits == 32 else F64)
    raise UnsupportedError(f"a tensor of {t.dtype.name} in a function with a derivative of its own is not supported")


def _decoded(t: Tensor, like: Tensor) -> Tensor:
    kind, bits = like.dtype.kind, like.dtype.bits
    if kind == "f":
        return t
    if kind == "c":
        return op("complex", t[0], t[1])
    return _ops.bitcast(t, like.dtype) if kind in "iu" and bits >= 32 else _ops.astype(t, like.dtype)


def _pack(tensors: Sequence[Tensor], wide: Any) -> Tensor:
    if len(tensors) == 1:
        return tensors[0]
    return _ops.concat([_ops.astype(_ops.reshape(t, (-1,)), wide) for t in tensors])


def _unpack(packed: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    if len(like) == 1:
        return [packed]
    out, at = [], 0
    for t in like:
        out.append(_ops.astype(_ops.reshape(packed[at : at + t.size], t.shape), t.dtype))
        at = at + t.size
    return out


def with_gradient(graph: Graph, outs: Sequence[Tensor], sources: Sequence[Tensor],
                  backward: Callable[[list[Tensor], list[Tensor]], list[Tensor | None]]) -> list[Tensor]:  # fmt: skip
    """The floats or complex numbers `outs`, through which gradients go to `sources`: backward(sources, cotangents) gives one for each (None: zeros). It
    is called once, on placeholders; what it uses beside them gets no gradient."""
    core = graph.core
    results_of = [_coded(o) for o in outs]
    wide = F64 if any(o.dtype is F64 for o in results_of) else F32
    packed = _pack(results_of, wide)
    values = [_coded(s) for s in sources]
    mark_y, mark_c = placeholder(graph, packed), placeholder(graph, packed)
    inner = [placeholder(graph, v) for v in values]
    mark = core.size
    with graph.transforming(gradients=True):
        cotangents = [_decoded(c, o) for c, o in zip(_unpack(mark_c, results_of), outs)]
        made = backward([_decoded(p, s) for p, s in zip(inner, sources)], cotangents)
        results = [_ops.zeros_like(v) if r is None or s.dtype.kind not in "fc" else _coded(r) for r, s, v in zip(made, sources, values)]
    roots = nodes_of(graph, results)
    while True:
        function, captured = call(core.close, roots, nodes_of(graph, [mark_y, *inner, mark_c]), mark, False, [])
        if not captured:
            break
        outside = tensors_of(graph, captured)  # become sources without a gradient
        codes = [_coded(t) for t in outside]
        holders = [placeholder(graph, t) for t in codes]
        roots += nodes_of(graph, [_ops.zeros_like(t) for t in codes])
        roots = call(core.substitute, roots, captured, nodes_of(graph, [_decoded(h, t) for h, t in zip(holders, outside)]))
        values += codes
        inner += holders
    node = call(core.with_gradient, nodes_of(graph, [packed, *values]), function)
    return [_decoded(t, o) for t, o in zip(_unpack(of_node(graph, node), results_of), outs)]


class _Custom:
    """A function with a derivative of its own, which `_cotangents_of` gives. The value is that of f."""

    def __init__(self, f: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        self._f, self._beside = f, tuple(nondiff_argnums)
        self._here = threading.local()  # busy: whether a derivative is being built, in which f is itself
        self.__name__, self.__doc__, self.__wrapped__ = getattr(f, "__name__", "function"), f.__doc__, f

    def _check(self) -> None:
        raise NotImplementedError

    def _cotangents_of(self, given: list[Any], args: Sequence[Any], numbers: list[int], arrived: Any, inside: list[Tensor],
                       cotangents: list[Tensor]) -> list[Tensor | None]:  # fmt: skip
        """One for each leaf of the arguments `numbers`. given: the arguments, of whose leaves `inside` are those; arrived: the cotangents as a
        tree like the result, cotangents: those of its floats."""
        raise NotImplementedError

    def __call__(self, *args: Any, **named: Any) -> Any:
        self._check()
        if named:
            bound = inspect.signature(self._f).bind(*args, **named)
            bound.apply_defaults()
            args = bound.args
        graph = current()
        if not graph.depth or getattr(self._here, "busy", False):  # nothing is differentiated here
            return self._f(*args)
        numbers = [i for i in range(len(args)) if i not in self._beside]
        leaves, structure = _tree.flatten([args[i] for i in numbers])
        sources = [asarray(x) for x in leaves]

        def given(tensors: Sequence[Any]) -> list[Any]:
            out = list(args)
            for i, tree in zip(numbers, _tree.unflatten(structure, tensors)):
                out[i] = tree
            return out

        out_leaves, out_structure = _tree.flatten(self._f(*given(sources)))
        outs = [asarray(x) for x in out_leaves]
        floats = [i for i, o in enumerate(outs) if o.dtype.kind in "fc"]

        def backward(inside: list[Tensor], cotangents: list[Tensor]) -> list[Tensor | None]:
            arrived: list[Any] = [_ops.zeros_like(o) if o.dtype.kind == "b" else _ops.zeros(o.shape) for o in outs]
            for i, c in zip(floats, cotangents):
                arrived[i] = c
            return self._cotangents_of(given(inside), args, numbers, _tree.unflatten(out_structure, arrived), inside, cotangents)

        if floats and sources:
            self._here.busy = True
            try:
                made = with_gradient(graph, [outs[i] for i in floats], sources, backward)
            finally:
                self._here.busy = False
            for i, t in zip(floats, made):
                outs[i] = t
        return _tree.unflatten(out_structure, outs)

    def _cotangents(self, result: Sequence[Any], args: Sequence[Any]) -> list[Tensor | None]:
        out: list[Tensor | None] = []
        for i, (tree, arg) in enumerate(zip(result, args)):
            wanted, structure = _tree.flatten(arg)
            if tree is None:
                out += [None] * len(wanted)
                continue
            found, found_structure = _tree.flatten(tree)
            if found_structure != structure:
                raise ArgumentError(f"cotangent {i} of '{self.__name__}' has the structure {found_structure}; the argument's is {structure}")
            for x, like in zip(found, wanted):
                t, like = asarray(x), asarray(like)
                if like.dtype.kind in "fc" and t.dtype is not like.dtype:
                    raise DTypeError(f"cotangent {i} of '{self.__name__}' is of {t.dtype.name}; the argument is of {like.dtype.name}")
                if like.dtype.kind in "fc" and t.shape != like.shape:
                    raise ShapeError(f"cotangent {i} of '{self.__name__}' has shape {t.shape}; the argument has shape {like.shape}")
                out.append(t)
        return out


class custom_vjp(_Custom):
    """A function whose reverse-mode derivative is given: a decorator, as JAX's. After `f.defvjp(forward, backward)`,
    forward(*args) gives (result, residuals) and backward(residuals, cotangent) a tuple with a cotangent for each argument, None for
    zeros. nondiff_argnums: arguments that are no tensors; backward is given them first. The value is that of f."""

    _forward: Any = None
    _backward: Any = None

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Says how to differentiate."""
        self._forward, self._backward = forward, backward

    def _check(self) -> None:
        if self._backward is None:
            raise ArgumentError(f"'{self.__name__}' has no derivative yet: call defvjp(forward, backward)")

    def _cotangents_of(self, given: list[Any], args: Sequence[Any], numbers: list[int], arrived: Any, inside: list[Tensor],
                       cotangents: list[Tensor]) -> list[Tensor | None]:  # fmt: skip
        pair = self._forward(*given)
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise ArgumentError(f"the forward function of '{self.__name__}' gives a pair: (result, residuals)")
        result = self._backward(*(args[i] for i in self._beside), pair[1], arrived)
        if not isinstance(result, (tuple, list)) or len(result) != len(numbers):
            raise ArgumentError(f"the backward function of '{self.__name__}' gives a tuple of {len(numbers)} cotangents, one for each argument")
        return self._cotangents(result, [args[i] for i in numbers])


class custom_jvp(_Custom):
    """A function whose forward-mode derivative is given: a decorator, as JAX's. After `f.defjvp(rule)`, rule(primals, tangents) gives
    (result, tangent of the result), linear in the tangents; those of integers are zeros. Reverse mode transposes the rule.
    nondiff_argnums: arguments that are no tensors; the rule is given them first. The value is that of f."""

    _rule: Any = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Says how to differentiate; a decorator."""
        self._rule = rule
        return rule

    def _check(self) -> None:
        if self._rule is None:
            raise ArgumentError(f"'{self.__name__}' has no derivative yet: call defjvp(rule)")

    def _cotangents_of(self, given: list[Any], args: Sequence[Any], numbers: list[int], arrived: Any, inside: list[Tensor],
                       cotangents: list[Tensor]) -> list[Tensor | None]:  # fmt: skip
        graph = current()
        tangents = [placeholder(graph, t) if t.dtype.kind in "fc" else _ops.zeros_like(t) for t in inside]
        primals = tuple(given[i] for i in numbers)
        pair = self._rule(*(args[i] for i in self._beside), primals, _tree.unflatten(_tree.structure(primals), tangents))
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise ArgumentError(f"the rule of '{self.__name__}' gives a pair: (result, tangent)")
        leaves, structure = _tree.flatten(pair[1])
        wanted, wanted_structure = _tree.flatten(arrived)
        if structure != wanted_structure:
            raise ArgumentError(f"the tangent of '{self.__name__}' has the structure {structure}; the result's is {wanted_structure}")
        outs = []
        for x, like in zip(leaves, wanted):
            if not any(like is c for c in cotangents):  # of an integer
                continue
            t = asarray(x)
            if t.dtype is not like.dtype:
                raise DTypeError(f"the tangent of '{self.__name__}' is of {t.dtype.name}; the result is of {like.dtype.name}")
            if t.shape != like.shape:
                raise ShapeError(f"the tangent of '{self.__name__}' has shape {t.shape}; the result has shape {like.shape}")
            outs.append(t)
        floats = [t for t in tangents if t.dtype.kind in "fc"]
        made = call(graph.core.vjp, nodes_of(graph, outs), nodes_of(graph, cotangents), nodes_of(graph, floats))[1]
        # Of a linear rule no tangent is left; of another it is the derivative at zero.
        found = iter(substituted(graph, tensors_of(graph, made), floats, [_ops.zeros_like(t) for t in floats]))
        return [next(found) if t.dtype.kind in "fc" else None for t in tangents]


def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, of which nothing inside is kept for its derivative: it is computed again from the arguments (and from what f uses of its
    surroundings). The bits are the same; a gradient takes less memory and more time."""

    def function(*args: Any, **named: Any) -> Any:
        graph, core = current(), current().core
        if not graph.depth:  # nothing is differentiated here
            return f(*args, **named)
        leaves, structure = _tree.flatten((args, named))
        places = [i for i, x in enumerate(leaves) if not is_static(x)]
        values = [asarray(leaves[i]) for i in places]
        inner = [placeholder(graph, v) for v in values]
        for i, p in zip(places, inner):
            leaves[i] = p
        mark = core.size
        with graph.transforming(gradients=True):
            inner_args, inner_named = _tree.unflatten(structure, leaves)
            out = f(*inner_args, **inner_named)
        out_leaves, out_structure = _tree.flatten(out)
        outs = [asarray(x) for x in out_leaves]
        floats = [i for i, o in enumerate(outs) if o.dtype.kind in "fc"]
        body = [outs[i] for i in floats]
        captured = call(core.close, nodes_of(graph, body), nodes_of(graph, inner), mark, False, [])[1] if body else []
        outside = tensors_of(graph, captured)
        sources, holders = [*values, *outside], [*inner, *outside]
        results = substituted(graph, outs, inner, values)

        def backward(inside: list[Tensor], cotangents: list[Tensor]) -> list[Tensor | None]:
            # Behind the cotangents: so interning does not merge what is computed again with what was computed before.
            first = _ops.real(cotangents[0]) if cotangents[0].dtype.kind == "c" else cotangents[0]

            def after(t: Tensor) -> Tensor:
                return op("complex", after(_ops.real(t)), after(_ops.imag(t))) if t.dtype.kind == "c" else op("after", t, first)

            behind = [after(s) for s in inside]
            again = substituted(graph, body, holders, behind)
            wrt = [t for t in behind if t.dtype.kind in "fc"]
            derivatives = iter(call(core.vjp, nodes_of(graph, again), nodes_of(graph, cotangents), nodes_of(graph, wrt))[1])
            return [of_node(graph, next(derivatives)) if t.dtype.kind in "fc" else None for t in behind]

        if body and any(s.dtype.kind in "fc" for s in sources):
            for i, t in zip(floats, with_gradient(graph, [results[i] for i in floats], sources, backward)):
                results[i] = t
        return _tree.unflatten(out_structure, results)

    function.__name__, function.__doc__ = getattr(f, "__name__", "function"), f.__doc__
    function.__wrapped__ = f  # type: ignore[attr-defined]
    return function


__all__ = ["checkpoint", "custom_jvp", "custom_vjp"]
