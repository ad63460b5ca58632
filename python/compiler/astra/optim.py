"""Optimizers: pure functions of parameters, gradients and a state. PyTorch's definitions; the table is that of lib/NN.

    optimizer = astra.optim.adamw(lr=1e-3)
    state = optimizer.init(params)
    params, state = optimizer.step(params, gradients, state)

Transformations of gradients go in front: `astra.optim.chain(astra.optim.clip_by_global_norm(1.0), optimizer)`.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from . import _core, _dtypes, _ops, _tree
from ._errors import ArgumentError, DTypeError, ShapeError
from ._graph import current
from ._recipes import Row, functions
from ._tensor import Tensor, asarray, call, of_node
from .schedules import Schedule

F64 = _dtypes.DTYPES["float64"]


class Optimizer:
    """Takes gradients to the next parameters. `init(params)` is its first state; `step(params, gradients, state)` gives the next
    parameters and the next state, trees like those given. What is no tensor of floats stays as it is."""

    def init(self, params: Any) -> Any:
        """The state before the first step."""
        raise NotImplementedError

    def step(self, params: Any, gradients: Any, state: Any) -> tuple[Any, Any]:
        """The next parameters and state."""
        raise NotImplementedError

    def rate(self, state: Any) -> Tensor:
        """The learning rate of the next step, a float64 scalar."""
        raise NotImplementedError

    def loss_scale(self, state: Any) -> Tensor | float | None:
        """What the loss is multiplied by before its gradients are taken: see `scaled`. None: nothing."""
        return None


class Transformation:
    """Changes gradients before an optimizer sees them."""

    def init(self, params: Any) -> Any:
        """The state before the first step."""
        return ()

    def apply(self, gradients: Any, state: Any, params: Any) -> tuple[Any, Any]:
        """Other gradients, and the next state."""
        raise NotImplementedError


def _trained(x: Any) -> bool:
    if not isinstance(x, Tensor) or x.dtype.kind != "f":
        return False
    if x.dtype.code not in ("f32", "f64"):
        raise DTypeError(f"a parameter is of {x.dtype.name}; optimizers keep float32 or float64: train those and cast them in the function")
    return True


def _fitting(found: Any, x: Tensor, what: str) -> Tensor:
    """What goes beside a parameter: of its type and shape."""
    t = asarray(found)
    if t.dtype is not x.dtype:
        raise DTypeError(f"{what} is of {t.dtype.name}; it must be {x.dtype.name}")
    if tuple(t.shape) != tuple(x.shape):
        raise ShapeError(f"{what} has shape {tuple(t.shape)}; it must be {tuple(x.shape)}")
    return t


class _Recipe(Optimizer):
    """A row of the table. decay: for each leaf whether weights decay, by path and leaf."""

    def __init__(self, row: Row, parameters: dict[str, Any], schedule: Schedule | None, decay: Callable[[str, Tensor], bool] | None) -> None:
        self.recipe = row.text(parameters)
        self.undecayed = row.text({**parameters, "weight_decay": 0.0}) if any(p[0] == "weight_decay" for p in row.parameters) else self.recipe
        self.schedule, self.decay = schedule.recipe if schedule else "constant", decay
        call(_core.slots, self.recipe, 1)  # refuses parameters beyond their bounds

    def __repr__(self) -> str:
        return f"astra.optim.{self.recipe}" + ("" if self.schedule == "constant" else f" with {self.schedule}")

    def init(self, params: Any) -> Any:
        slots = {}
        for path, x in zip(_tree.paths(params), _tree.leaves(params)):
            if _trained(x):
                slots[path] = {name: _ops.full(x.shape, value, dtype=x.dtype) for name, value in _core.slots(self.recipe, x.ndim)}
        return {"step": _ops.zeros((), dtype="int64"), "slots": slots}

    def rate(self, state: Any) -> Tensor:
        return _ops.make(_core.rate_at, self.recipe, self.schedule, _ops.astype(state["step"] + 1, F64))

    def step(self, params: Any, gradients: Any, state: Any) -> tuple[Any, Any]:
        graph = current()
        leaves, structure = _tree.flatten(params)
        found, own = _tree.flatten(gradients)
        if own != structure:
            raise ArgumentError(f"the gradients are a tree {own}; the parameters are {structure}")
        number = state["step"] + 1
        count = _ops.astype(number, F64)
        rate = self.rate(state)
        out, slots = [], {}
        for i, (path, x) in enumerate(zip(_tree.paths(params), leaves)):
            if not _trained(x):
                out.append(x)
                continue
            g = _fitting(found[i], x, f"the gradient of '{path}'")
            recipe = self.recipe if self.decay is None or self.decay(path, x) else self.undecayed
            kept = state["slots"].get(path, {})
            names = [name for name, _ in _core.slots(recipe, x.ndim)]
            if any(n not in kept for n in names):
                raise ArgumentError(f"the state has no {' and '.join(names)} of '{path}': it is of another optimizer or of other parameters")
            slots_now = [_fitting(kept[n], x, f"the state's {n} of '{path}'") for n in names]
            value, after = call(_core.update, graph.core, recipe, x._in(graph), g._in(graph), [s._in(graph) for s in slots_now],
                                rate._in(graph), count._in(graph))  # fmt: skip
            out.append(of_node(graph, value))
            slots[path] = {n: of_node(graph, s) for n, s in zip(names, after)}
        return _tree.unflatten(structure, out), {"step": number, "slots": slots}


def _make(row: Row) -> Callable[..., Any]:
    def optimizer(*, schedule: Schedule | None = None, decay: Callable[[str, Tensor], bool] | None = None, **parameters: Any) -> Optimizer:
        return _Recipe(row, parameters, schedule, decay)

    optimizer.__name__ = optimizer.__qualname__ = row.name
    optimizer.__doc__ = row.doc("An optimizer") + "\n\nschedule: of the learning rate (`astra.schedules`).\ndecay: a function of a " \
        "parameter's path and value that says whether weight_decay is for it; None: for all."
    return optimizer


class _Chain(Optimizer):
    def __init__(self, transformations: Sequence[Transformation], optimizer: Optimizer) -> None:
        self.transformations, self.optimizer = tuple(transformations), optimizer

    def __repr__(self) -> str:
        return f"astra.optim.chain({', '.join(map(repr, [*self.transformations, self.optimizer]))})"

    def init(self, params: Any) -> Any:
        return [t.init(params) for t in self.transformations], self.optimizer.init(params)

    def rate(self, state: Any) -> Tensor:
        return self.optimizer.rate(state[1])

    def step(self, params: Any, gradients: Any, state: Any) -> tuple[Any, Any]:
        own, rest = state
        following = []
        for t, s in zip(self.transformations, own):
            gradients, after = t.apply(gradients, s, params)
            following.append(after)
        params, rest = self.optimizer.step(params, gradients, rest)
        return params, (following, rest)


def chain(*parts: Any) -> Optimizer:
    """Transformations of gradients, one after another, then an optimizer."""
    if not parts or not isinstance(parts[-1], Optimizer) or not all(isinstance(p, Transformation) for p in parts[:-1]):
        raise ArgumentError("chain takes transformations of gradients, then an optimizer")
    _checked_inner(parts[-1])
    return parts[-1] if len(parts) == 1 else _Chain(parts[:-1], parts[-1])


class _ClipNorm(Transformation):
    def __init__(self, most: float) -> None:
        if not most > 0:
            raise ArgumentError(f"the greatest norm is above 0, not {most}")
        self.most = float(most)

    def __repr__(self) -> str:
        return f"astra.optim.clip_by_global_norm({self.most!r})"

    def apply(self, gradients: Any, state: Any, params: Any) -> tuple[Any, Any]:
        graph = current()
        leaves, structure = _tree.flatten(gradients)
        at = [i for i, g in enumerate(leaves) if _trained(g)]
        nodes = call(_core.clip_norm, graph.core, [leaves[i]._in(graph) for i in at], self.most)
        for i, n in zip(at, nodes):
            leaves[i] = of_node(graph, n)
        return _tree.unflatten(structure, leaves), state


def clip_by_global_norm(most: float) -> Transformation:
    """Scales all gradients together so that their norm is at most `most` (torch.nn.utils.clip_grad_norm_)."""
    return _ClipNorm(most)


class _ClipValue(Transformation):
    def __init__(self, most: float) -> None:
        self.most = float(most)

    def __repr__(self) -> str:
        return f"astra.optim.clip_by_value({self.most!r})"

    def apply(self, gradients: Any, state: Any, params: Any) -> tuple[Any, Any]:
        return _tree.map(lambda g: _ops.clip(g, -self.most, self.most) if _trained(g) else g, gradients), state


def clip_by_value(most: float) -> Transformation:
    """Brings each element of a gradient between -most and most."""
    return _ClipValue(most)


class _Accumulate(Optimizer):
    def __init__(self, optimizer: Optimizer, steps: int) -> None:
        self.optimizer, self.steps = optimizer, int(steps)

    def __repr__(self) -> str:
        return f"astra.optim.accumulate({self.optimizer!r}, {self.steps})"

    def init(self, params: Any) -> Any:
        zeros = [_ops.zeros_like(x) for x in _tree.leaves(params) if _trained(x)]
        return {"count": _ops.zeros((), dtype="int64"), "sum": zeros, "inner": self.optimizer.init(params)}

    def rate(self, state: Any) -> Tensor:
        return self.optimizer.rate(state["inner"])

    def step(self, params: Any, gradients: Any, state: Any) -> tuple[Any, Any]:
        from ._control import cond

        leaves, structure = _tree.flatten(gradients)
        at = [i for i, g in enumerate(leaves) if _trained(g)]
        total = [s + leaves[i] for s, i in zip(state["sum"], at)]
        count = state["count"] + 1

        def update(params: Any, inner: Any, total: Any) -> Any:
            mean = list(leaves)
            for i, s in zip(at, total):
                mean[i] = s / self.steps
            params, inner = self.optimizer.step(params, _tree.unflatten(structure, mean), inner)
            return params, inner, [_ops.zeros_like(s) for s in total]

        params, inner, total = cond(count % self.steps == 0, update, lambda p, i, t: (p, i, t), params, state["inner"], total)
        return params, {"count": count, "sum": total, "inner": inner}


def accumulate(optimizer: Optimizer, steps: int) -> Optimizer:
    """Steps once every `steps` calls, by the mean of their gradients."""
    if steps < 1:
        raise ArgumentError(f"steps is at least 1, not {steps}")
    _checked_inner(optimizer)
    return optimizer if steps == 1 else _Accumulate(optimizer, steps)


class _Average(Optimizer):
    def __init__(self, optimizer: Optimizer, keep: float) -> None:
        self.optimizer, self.keep = optimizer, float(keep)

    def __repr__(self) -> str:
        return f"astra.optim.ema({self.optimizer!r}, {self.keep!r})"

    def init(self, params: Any) -> Any:
        return {"average": params, "inner": self.optimizer.init(params)}

    def rate(self, state: Any) -> Tensor:
        return self.optimizer.rate(state["inner"])

    def step(self, params: Any, gradients: Any, state: Any) -> tuple[Any, Any]:
        params, inner = self.optimizer.step(params, gradients, state["inner"])
        average = _tree.map(lambda a, p: a * self.keep + p * (1 - self.keep) if _trained(p) else p, state["average"], params)
        return params, {"average": average, "inner": inner}


def ema(optimizer: Optimizer, keep: float = 0.999) -> Optimizer:
    """An exponential moving average of the parameters beside them: state["average"], a tree like the parameters."""
    if not 0 <= keep < 1:
        raise ArgumentError(f"keep is at least 0 and below 1, not {keep}")
    _checked_inner(optimizer)
    return _Average(optimizer, keep)


class _Scaled(Optimizer):
    def __init__(self, optimizer: Optimizer, recipe: str) -> None:
        self.optimizer, self.recipe = optimizer, recipe
        self.first, self.is_dynamic = call(_core.loss_scale, recipe)  # refuses what is no recipe

    def __repr__(self) -> str:
        return f"astra.optim.scaled({self.optimizer!r}, {self.recipe!r})"

    def init(self, params: Any) -> Any:
        kept = {} if not self.is_dynamic else {"factor": _ops.full((), self.first, dtype="float32"), "steps": _ops.zeros((), dtype="int64")}
        return {"loss_scale": kept, "inner": self.optimizer.init(params)}

    def rate(self, state: Any) -> Tensor:
        return self.optimizer.rate(state["inner"])

    def loss_scale(self, state: Any) -> Tensor | float | None:
        return asarray(state["loss_scale"]["factor"]) if self.is_dynamic else self.first

    def step(self, params: Any, gradients: Any, state: Any) -> tuple[Any, Any]:
        graph, kept = current(), state["loss_scale"]
        leaves, structure = _tree.flatten(gradients)
        at = [i for i, g in enumerate(leaves) if _trained(g)]
        factor, steps = (asarray(kept[n])._in(graph) if kept else None for n in ("factor", "steps"))
        nodes, after = call(_core.unscaled, graph.core, self.recipe, [leaves[i]._in(graph) for i in at], factor, steps)
        for i, n in zip(at, nodes):
            leaves[i] = of_node(graph, n)
        now, inner = self.optimizer.step(params, _tree.unflatten(structure, leaves), state["inner"])
        if after is None:
            return now, {"loss_scale": kept, "inner": inner}
        is_finite, *following = (of_node(graph, n) for n in after)

        def chosen(before: Any, now: Any) -> Any:
            return _ops.where(is_finite, now, before) if isinstance(now, Tensor) and now is not before else now

        return _tree.map(chosen, params, now), {"loss_scale": dict(zip(("factor", "steps"), following)), "inner": _tree.map(chosen, state["inner"], inner)}


def scaled(optimizer: Optimizer, recipe: str = "dynamic") -> Optimizer:
    """Steps by gradients of the loss times a number, which it divides out: for products of narrow floats, whose small gradients
    would be zeros. recipe: "static(scale=1024)" or "dynamic(scale=65536, growth=2, backoff=0.5, interval=2000)", as
    `astra-compile --loss-scale` has them (docs/training.md): a dynamic one leaves out steps whose gradients are not finite. `astra.train`
    multiplies the loss; in a loop of your own do so by `optimizer.loss_scale(state)`."""
    _checked_inner(optimizer)
    return _Scaled(optimizer, recipe)


def _checked_inner(optimizer: Any) -> None:
    if isinstance(optimizer, _Scaled):
        raise ArgumentError("a loss scale is the outermost of all: astra.optim.scaled(astra.optim.chain(...)), so that others see the gradients of the loss")


_functions = functions("optimizers", _make)
globals().update(_functions)
__all__ = [*_functions, "Optimizer", "Transformation", "accumulate", "chain", "clip_by_global_norm", "clip_by_value", "ema", "scaled"]
