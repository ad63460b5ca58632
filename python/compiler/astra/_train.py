"""A loop that trains: `astra.train`.

Takes:    a module, a loss, an optimizer, data.
Gives:    the trained module and the history.
Keeps:    what comes out is a function of the module, the data, the seed, the batch and the number of epochs: not of the CPU, or how
          often the run was stopped and resumed. One program does a step for every size of a batch.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import sys
from typing import Any, Callable, Mapping, Sequence

import numpy as np

import astra_rt

from . import _dims, _dtypes, _ops, _tree
from ._errors import ArgumentError
from ._mesh import Mesh, refuse_pipeline
from ._random import checked_seed
from ._stages import Compiled
from ._tensor import Tensor, asarray, of_value
from ._trace import Spec, entry, export
from .data import Dataset


_BEST = "train.best."  # before the names of the states of the best epoch, in a checkpoint


class Stop(Exception):
    """Raised by a callback: the training ends after this epoch."""


class History(list):  # type: ignore[type-arg]
    """What each epoch gave: a list of dicts. `plot(path)` draws it."""

    def plot(self, path: str | os.PathLike[str]) -> None:
        """A picture of the losses, by matplotlib."""
        _draw(self, path)


class Result:
    """What a training gives: `model`, `history`, the optimizer's `state`, and `stopped`: why it ended early, or ""."""

    def __init__(self, model: Any, history: History, state: Any, stopped: str) -> None:
        self.model, self.history, self.state, self.stopped = model, history, state, stopped

    def __repr__(self) -> str:
        last = ", ".join(f"{k} {v:.6g}" for k, v in self.history[-1].items()) if self.history else "no epoch"
        return f"<Result of a training: {last}>"


class EarlyStop:
    """Ends a training when a number of the history has not become less for `patience` epochs, and gives the best module back."""

    def __init__(self, watch: str = "eval_loss", patience: int = 5, least: float = 0.0) -> None:
        self.watch, self.patience, self.least = watch, patience, least


def _dataset(data: Any) -> Dataset:
    if isinstance(data, Dataset):
        return data
    if isinstance(data, Mapping):
        return Dataset(**data)
    if isinstance(data, (tuple, list)) and len(data) == 2:
        return Dataset(*data)
    raise ArgumentError("data is a Dataset, a pair (inputs, targets), or a dict of arrays with a 'target'")


def _named(model: Any, data: Dataset) -> Dataset:
    """The arrays by the names of the module's parameters, and "target", which is the last of arrays without names."""
    if data.names:
        if "target" not in data.names or len(data.names) < 2:
            raise ArgumentError(f"data by name has inputs and a 'target'; there are {', '.join(data.names)}")
        return data
    if len(data.arrays) < 2:
        raise ArgumentError("data are inputs and a target")
    call = type(model).__call__ if "__call__" in type(model).__dict__ or not hasattr(model, "forward") else type(model).forward
    names = [p.name for p in inspect.signature(call).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD][1:]
    count = len(data.arrays) - 1
    if len(names) < count:
        raise ArgumentError(f"the data have {count} inputs; the module takes {len(names)}")
    return Dataset(**dict(zip([*names[:count], "target"], data.arrays)))


class _Model:
    """A module and an optimizer as states by name: the module's own names, and "optimizer.PATH"."""

    def __init__(self, model: Any, optimizer: Any, trained: Any) -> None:
        from . import nn

        self.model, self.optimizer, self.trained = model, optimizer, trained
        params, _ = nn.partition(model, trained)
        if not _tree.leaves(params):
            raise ArgumentError("the module has no parameter that is trained")
        self.names = list(model.state_dict())
        leaves, self.structure = _tree.flatten(optimizer.init(params))
        self.slots = ["optimizer." + p for p in _tree.paths(_tree.unflatten(self.structure, leaves))]
        taken = set(self.names) & {*self.slots, "train.step"}
        if taken:
            raise ArgumentError(f"a tensor of the module has a name that the training needs: {', '.join(sorted(taken))}")
        self.first = {**model.state_dict(), **dict(zip(self.slots, leaves)), "train.step": _ops.zeros((), dtype="int64")}

    def parts(self, states: Mapping[str, Any]) -> tuple[Any, Any]:
        """The module and the state of the optimizer."""
        module = self.model.load_state_dict({n: states[n] for n in self.names})
        return module, _tree.unflatten(self.structure, [asarray(states[n]) for n in self.slots])

    def states(self, module: Any, state: Any, step: Any) -> dict[str, Any]:
        return {**module.state_dict(), **dict(zip(self.slots, _tree.leaves(state))), "train.step": step}


def compile_training(model: Any, loss: Callable[..., Any], optimizer: Any, example: Mapping[str, Any], *, batch: int, seed: int = 0,
                     metrics: Mapping[str, Callable[..., Any]] | None = None, trained: Callable[[str, Tensor], bool] | None = None,
                     target: str | Sequence[str] | None = None, mesh: Mesh | None = None,
                     shardings: Mapping[str, Any] | None = None, numerics: str = "strict") -> Compiled:  # fmt: skip
    """A training as a bundle: entries `train_step` (the inputs and `target` by name: gives `loss`, the learning `rate`, and
    replaces the states), `eval` (the
    same: gives `loss` and the metrics) and `main` (the inputs: gives what the module gives), for batches of 1 to `batch` rows.

    example: arrays of a batch by name, "target" among them. The states are the module's tensors by their names and what the optimizer
    keeps. Save it and train by `astra-train`, from C, or with `astra_rt` alone. target: of the compiler; None: every CPU level.
    numerics: "device:hopper16" and the like, of products (docs/numerics.md, N4.8), those of gradients too.

    mesh: of logical shards (`astra.mesh`). shardings: as of `Lowered.with_mesh`; None: the rows of a batch are cut by the mesh's first
    axis, and gradients are summed over it."""
    from . import nn
    from ._transforms import value_and_grad

    whole = _Model(model, optimizer, trained)
    measures = dict(metrics or {})
    n: Any = _dims.dim("batch", 1, batch) if batch > 1 else 1
    specs = {k: Spec((n, *np.shape(a)[1:]), _dtypes.dtype(np.asarray(a).dtype)) for k, a in example.items()}
    inputs = {k: s for k, s in specs.items() if k != "target"}

    def train_step(states: Any, **given: Any) -> Any:
        module, state = whole.parts(states)
        wanted, step = given.pop("target"), states["train.step"]
        params, rest = nn.partition(module, trained)
        key = _ops.stack([_ops.literal(checked_seed(seed), _dtypes.DTYPES["uint32"]), _ops.astype(step * 1024, "uint32")])

        def value(params: Any, rest: Any) -> Any:
            out, after = nn.apply(nn.combine(params, rest), key=key, **given)
            cost, scale = loss(out, wanted), optimizer.loss_scale(state)
            scaled = cost if scale is None else cost * _ops.astype(asarray(scale), cost.dtype)
            return scaled, (cost, nn.partition(after, trained)[1])

        (_, (cost, rest)), gradients = value_and_grad(value, has_aux=True)(params, rest)
        rate = optimizer.rate(state)
        params, state = optimizer.step(params, gradients, state)
        return whole.states(nn.combine(params, rest), state, step + 1), {"loss": cost, "rate": rate}

    def eval(states: Any, **given: Any) -> Any:
        module, _ = whole.parts(states)
        wanted = given.pop("target")
        out = module(**given)
        return {"loss": loss(out, wanted), **{name: m(out, wanted) for name, m in measures.items()}}

    def main(states: Any, **given: Any) -> Any:
        return whole.parts(states)[0](**given)

    examples: dict[str, Any] = {**specs}
    served: dict[str, Any] = {**inputs}
    entries = {"train_step": entry(train_step, updates=True, **examples), "eval": entry(eval, **examples), "main": entry(main, **served)}
    lowered = export(entries, states=whole.first, name="training").lower()
    if mesh is not None:
        refuse_pipeline(mesh, "compile_training")
        rows = next(iter(mesh.axes))
        rules = dict.fromkeys(specs, (rows, ...)) if shardings is None else shardings
        lowered = lowered.with_mesh(mesh, rules)
    elif shardings is not None:
        raise ArgumentError("shardings are of a mesh: give mesh=astra.mesh(...)")
    return lowered.compile(target, numerics=numerics)


class _Session:
    """A compiled training, with the module's values as states."""

    def __init__(self, program: Compiled, whole: _Model, measures: Sequence[str]) -> None:
        self.module, self.whole = program.module, whole
        self.step, self.judge = self.module["train_step"], self.module["eval"]
        self.numbers = ["loss", *measures]

    def train(self, batch: Mapping[str, Any]) -> float:
        return float(self.step(**_contiguous(batch)).loss)

    def eval(self, batch: Mapping[str, Any]) -> list[float]:
        made = self.judge(**_contiguous(batch))
        return [float(made)] if len(self.numbers) == 1 else [float(getattr(made, n)) for n in self.numbers]

    def states(self) -> dict[str, Any]:
        return dict(self.module.state_dict())

    def parts(self, states: Mapping[str, Any]) -> tuple[Any, Any]:
        return self.whole.parts({n: of_value(v) for n, v in states.items()})


def _contiguous(batch: Mapping[str, Any]) -> dict[str, Any]:
    return {k: np.ascontiguousarray(a) for k, a in batch.items()}


def train(model: Any, loss: Callable[..., Any], optimizer: Any, data: Any, *, epochs: int, batch: int, seed: int = 0, eval: Any = None,
          metrics: Mapping[str, Callable[..., Any]] | None = None, trained: Callable[[str, Tensor], bool] | None = None,
          log: Any = None, checkpoint: Any = None, every: int = 0, resume: bool = False, early_stop: EarlyStop | None = None,
          plot: Any = None, augment: Callable[[Any, int], Any] | None = None, drop_last: bool = False,
          callback: Callable[[dict[str, float], Any], None] | None = None, progress: bool | None = None, numerics: str = "strict") -> Result:  # fmt: skip
    """Trains a module (`astra.nn`) on data, a pair (inputs, targets), a dict of arrays with a "target", or a `astra.data.Dataset`.

    loss(prediction, target) gives a scalar (`astra.losses`); optimizer: of `astra.optim`. eval: data on which the loss and the metrics, a
    dict of functions of prediction and target, are taken after each epoch. trained(name, tensor) says which parameters are trained.

    log: a .csv file of every step. checkpoint: a .safetensors file, written every `every` steps and after each epoch; with resume=True
    the training goes on from it, to the same bytes as without a stop. early_stop: see `EarlyStop`. plot: a picture of the losses that
    is drawn after each epoch. augment(batch, number): changes batches. callback(numbers of the epoch, module): may raise `astra.Stop`.
    progress: a bar (tqdm, where it is installed) and a line for each epoch; None: on a terminal. numerics: as of `compile_training`."""
    source, held = _named(model, _dataset(data)), None if eval is None else _named(model, _dataset(eval))
    if epochs < 0 or batch < 1:
        raise ArgumentError(f"epochs is 0 or more and a batch has a row at least; there are {epochs} and {batch}")
    if not len(source):
        raise ArgumentError("the data have no rows")
    if drop_last and len(source) < batch:
        raise ArgumentError(f"drop_last leaves no batch of {batch} of {len(source)} rows")
    measures = dict(metrics or {})
    example = source[np.arange(1)]
    program = compile_training(model, loss, optimizer, augment(example, 0) if augment else example, batch=batch, seed=seed, metrics=measures,
                               trained=trained, target="native", numerics=numerics)  # fmt: skip
    session = _Session(program, _Model(model, optimizer, trained), list(measures))
    _check_classes(loss, session.module, [source, held])
    run = _Run(source, batch, seed, drop_last, optimizer)
    history, watch, stopped = History(), _Watch(early_stop), ""
    judges = held is not None and len(held) > 0
    writer = _Log(log, ["step", "epoch", "loss", *(["eval_loss", *(f"eval_{m}" for m in measures)] if judges else [])])
    if resume:
        if checkpoint is None or not os.path.exists(checkpoint):
            raise ArgumentError("resume=True needs a checkpoint that is there: checkpoint=FILE.safetensors")
        session.module.load_state_dict(run.read(checkpoint, session.states(), history, watch))
        stopped = watch.reason()
    writer.open(run.steps if resume else None)
    shown = Bar(progress, epochs)
    while run.epoch <= epochs and not stopped:
        shown.begin(run.epoch, run.per_epoch, run.done)
        for b in source.batches(batch, seed=seed, epoch=run.epoch, drop_last=drop_last, begin=run.done, augment=augment):
            value = session.train(b)
            run.advance(value, len(b["target"]))
            writer.row(run.steps, run.epoch, np.float32(value) if np.float32(value) == value else value)
            if not np.isfinite(value):
                raise FloatingPointError(f"the loss of step {run.steps} (epoch {run.epoch}) is {value}: a smaller learning rate, clipping of "
                                         "gradients or astra.find_nan helps to find why; the last checkpoint is as it was")  # fmt: skip
            shown.step(value)
            if checkpoint is not None and every and run.steps % every == 0:
                run.write(checkpoint, session.states(), history, watch)
        numbers = {"epoch": float(run.epoch), "loss": run.loss_sum / max(run.loss_rows, 1)}
        if judges:
            assert held is not None
            sums = np.zeros(1 + len(measures))
            for b in held.batches(batch, seed=None):
                sums += np.array(session.eval(b)) * len(b["target"])
            means = sums / len(held)
            numbers |= dict(zip(["eval_loss", *(f"eval_{m}" for m in measures)], map(float, means)))
            writer.row(run.steps, run.epoch, "", *means)
        history.append(numbers)
        shown.end(numbers)
        run.next_epoch()
        watch.see(numbers, session.states)
        if checkpoint is not None:
            run.write(checkpoint, session.states(), history, watch)
        if plot is not None:
            history.plot(plot)
        if callback is not None:
            try:
                callback(numbers, session.parts(session.states())[0])
            except Stop as reason:
                stopped = str(reason) or "a callback raised Stop"
                break
        stopped = watch.reason()
    writer.close()
    module, state = session.parts(watch.states or session.states())
    return Result(module, history, state, stopped)


def _check_classes(loss: Any, module: Any, sets: Sequence[Any]) -> None:
    """Targets of a loss of classes must be classes of the prediction, or -100, which is ignored."""
    if not getattr(loss, "of_classes", False) or len(module["main"].outputs) != 1 or len(module["main"].outputs[0].upper) < 2:
        return
    classes = module["main"].outputs[0].upper[1]
    for d in sets:
        if d is None or not len(d):
            continue
        target = d[:]["target"]
        if target.dtype.kind not in "iu":
            continue
        wrong = (target != -100) & ((target < 0) | (target >= classes))
        if wrong.any():
            row = int(np.argwhere(wrong)[0][0])
            raise ArgumentError(f"the target of row {row} is {target[row]}: there are {classes} classes, 0 to {classes - 1}")


class _Watch:
    """The best epoch so far, for an EarlyStop."""

    def __init__(self, early_stop: EarlyStop | None) -> None:
        self.stop, self.best, self.since = early_stop, float("inf"), 0
        self.states: dict[str, Any] | None = None

    def see(self, numbers: Mapping[str, float], states: Callable[[], dict[str, Any]]) -> None:
        """An epoch is done."""
        if self.stop is None:
            return
        if self.stop.watch not in numbers:
            raise ArgumentError(f"early_stop watches '{self.stop.watch}'; an epoch gives {', '.join(numbers)}")
        value = numbers[self.stop.watch]
        if self.states is None or value < self.best - self.stop.least:
            self.best, self.since, self.states = value, 0, states()
        else:
            self.since += 1

    def reason(self) -> str:
        """Why the training ends now, or ""."""
        if self.stop is None or self.since < self.stop.patience:
            return ""
        return f"{self.stop.watch} has not become less for {self.since} epochs"


def _digest(data: Dataset) -> str:
    """Of the arrays' types, shapes and bytes."""
    h = hashlib.sha256()
    for name, a in zip(data.names or (), data.arrays):
        h.update(f"{name} {a.dtype.str} {a.shape}".encode())
        h.update(np.ascontiguousarray(a).view(np.uint8).data if a.size else b"")
    return h.hexdigest()


class _Run:
    """Where a training is, and its file."""

    def __init__(self, data: Dataset, batch: int, seed: int, drop_last: bool, optimizer: Any) -> None:
        self.optimizer, self.data = repr(optimizer), data
        self.rows, self.batch, self.seed, self.drop_last = len(data), batch, seed, drop_last
        self.per_epoch = self.rows // batch if drop_last else -(-self.rows // batch)
        self.epoch, self.done, self.steps = 1, 0, 0
        self.loss_sum, self.loss_rows = 0.0, 0
        self.digest = ""

    def advance(self, loss: float, rows: int) -> None:
        self.done, self.steps = self.done + 1, self.steps + 1
        self.loss_sum, self.loss_rows = self.loss_sum + loss * rows, self.loss_rows + rows

    def next_epoch(self) -> None:
        self.epoch, self.done, self.loss_sum, self.loss_rows = self.epoch + 1, 0, 0.0, 0

    def facts(self) -> dict[str, Any]:
        self.digest = self.digest or _digest(self.data)
        return {"rows": self.rows, "batch": self.batch, "seed": self.seed, "drop_last": self.drop_last, "optimizer": self.optimizer,
                "data": self.digest}  # fmt: skip

    def write(self, path: Any, states: Mapping[str, Any], history: History, watch: _Watch) -> None:
        from astra_rt._safetensors import write

        where = {**self.facts(), "epoch": self.epoch, "done": self.done, "steps": self.steps, "loss_sum": self.loss_sum.hex(),
                 "loss_rows": self.loss_rows, "history": [{k: v.hex() for k, v in h.items()} for h in history],
                 "best": watch.best.hex(), "since": watch.since}  # fmt: skip
        best = {_BEST + n: v for n, v in (watch.states or {}).items()}
        text = np.frombuffer(json.dumps(where, sort_keys=True).encode(), np.uint8)
        write(os.fspath(path), {**states, **best, "train.run": astra_rt.tensor(text)})

    def read(self, path: Any, states: Mapping[str, Any], history: History, watch: _Watch) -> dict[str, Any]:
        from astra_rt._safetensors import read

        file = read(os.fspath(path))
        if "train.run" not in file:
            raise ArgumentError(f"'{os.fspath(path)}' is no checkpoint of astra.train")
        where = json.loads(bytes(file["train.run"].numpy()))
        for name, value in self.facts().items():
            if where.get(name) != value:
                raise ArgumentError(f"'{os.fspath(path)}' is of a training with {name} {where.get(name)!s:.60}, here it is {value!s:.60}: it would not "
                                    "give the same bytes")  # fmt: skip
        for name, old in states.items():
            if name not in file or tuple(file[name].shape) != tuple(old.shape) or file[name].dtype != old.dtype:
                raise ArgumentError(f"'{os.fspath(path)}' has no '{name}' of this shape and type: it is of another module or optimizer")
        self.epoch, self.done, self.steps = where["epoch"], where["done"], where["steps"]
        self.loss_sum, self.loss_rows = float.fromhex(where["loss_sum"]), where["loss_rows"]
        history.extend({k: float.fromhex(v) for k, v in h.items()} for h in where["history"])
        watch.best, watch.since = float.fromhex(where["best"]), where["since"]
        watch.states = {n: file[_BEST + n] for n in states} if all(_BEST + n in file for n in states) and watch.stop else None
        return {name: file[name] for name in states}


class _Log:
    """A run as CSV: numbers as the shortest text that gives them back, no time in it."""

    def __init__(self, path: Any, columns: Sequence[str]) -> None:
        self.path, self.columns = path, list(columns)
        self.file: Any = None

    def open(self, steps: int | None) -> None:
        """A new file, or one of which what lies behind a step is cut off."""
        if self.path is None:
            return
        kept = [",".join(self.columns)]
        if steps is not None and os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as old:
                lines = old.read().splitlines()
            if not lines or lines[0] != kept[0]:
                raise ArgumentError(f"'{os.fspath(self.path)}' is no log of this training: its columns differ")
            kept = [lines[0], *(line for line in lines[1:] if int(line.split(",", 1)[0]) <= steps)]
        self.file = open(self.path, "w", encoding="utf-8", newline="")
        self.file.write("\n".join(kept) + "\n")

    def row(self, *cells: Any) -> None:
        if self.file is not None:
            text = [str(c) if isinstance(c, np.float32) else repr(float(c)) if isinstance(c, (float, np.floating)) else str(c) for c in cells]
            self.file.write(",".join(text + [""] * (len(self.columns) - len(text))) + "\n")
            self.file.flush()

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


class Bar:
    """Progress: tqdm's bar where it is installed and stderr is a terminal, and a line for each epoch."""

    def __init__(self, wanted: bool | None, epochs: int) -> None:
        self.on = sys.stderr.isatty() if wanted is None else wanted
        self.epochs = epochs
        self.bar: Any = None

    def begin(self, epoch: int, steps: int, done: int) -> None:
        """An epoch begins."""
        if not self.on or not sys.stderr.isatty():
            return
        try:
            from tqdm import tqdm
        except ImportError:
            return
        self.bar = tqdm(total=steps, initial=done, desc=f"epoch {epoch}/{self.epochs}", leave=False, file=sys.stderr)

    def step(self, loss: float) -> None:
        """A step is done."""
        if self.bar is not None:
            self.bar.set_postfix(loss=f"{loss:.4g}", refresh=False)
            self.bar.update()

    def end(self, numbers: dict[str, float]) -> None:
        """An epoch is done."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None
        if self.on:
            rest = ", ".join(f"{k} {v:.6g}" for k, v in numbers.items() if k != "epoch")
            sys.stderr.write(f"epoch {numbers['epoch']:.0f}/{self.epochs}, {rest}\n")


def _draw(history: Sequence[Mapping[str, float]], path: Any) -> None:
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise ArgumentError("a picture is drawn by matplotlib: pip install matplotlib") from None
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name in ("loss", "eval_loss"):
        points = [(h["epoch"], h[name]) for h in history if name in h]
        if points:
            axes.plot(*zip(*points), label=name.replace("_", " "), marker="o", markersize=3)
    axes.set_xlabel("epoch")
    axes.set_ylabel("loss")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


__all__ = ["EarlyStop", "Stop", "compile_training", "train"]
