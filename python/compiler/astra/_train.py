"""A loop that trains: `astra.train`.

Takes:    a module, a loss, an optimizer, data.
Gives:    the trained module and the history.
Keeps:    what comes out is a function of the module, the data, the seed, the batch and the number of epochs: not of the CPU, or how
          often the run was stopped and resumed. One program does a step for every size of a batch.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from . import _cache, _dims, _dtypes, _ops, _tree
from ._errors import ArgumentError
from ._jit import Spec, Traced
from ._tensor import Tensor, asarray, of_value
from .data import Dataset


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


def _parts(batch: Any) -> tuple[Any, Any]:
    """Inputs (a tuple of arguments, or a dict of them) and the target of a batch."""
    if isinstance(batch, dict):
        if "target" not in batch:
            raise ArgumentError(f"a dict of arrays has a 'target'; there are {', '.join(batch)}")
        return {k: v for k, v in batch.items() if k != "target"}, batch["target"]
    if len(batch) < 2:
        raise ArgumentError("a batch has inputs and a target")
    return tuple(batch[:-1]), batch[-1]


class _Program:
    """A traced function, compiled for every size of a batch up to one."""

    def __init__(self, f: Callable[..., Any], trees: Sequence[Any], batch: Any, rows: int, name: str) -> None:
        n: Any = _dims.dim("batch", 1, rows) if rows > 1 else 1
        specs = [_tree.map(lambda x: Spec(x.shape, x.dtype) if isinstance(x, Tensor) else x, t) for t in trees]
        arrays, self.structure = _tree.flatten(batch)
        rows_of = [Spec((n, *a.shape[1:]), _dtypes.dtype(a.dtype)) for a in arrays]
        f.__name__ = name
        self.traced = Traced(f, [*specs, _tree.unflatten(self.structure, rows_of)], {})
        self.captured = [self.traced.graph.values[leaf] for leaf in self.traced._captured]
        import astra_rt

        self.entry = astra_rt.load(_cache.compile(self.traced._module(constants=False), what=f"a {name.replace('_', ' ')}"))["main"]

    def __call__(self, trees: Sequence[Any], batch: Any) -> Any:
        values = [x._realized() for t in trees for x in _tree.leaves(t) if isinstance(x, Tensor)]
        arrays = [np.ascontiguousarray(a) for a in _tree.leaves(batch)]
        made = self.entry(*values, *arrays, *self.captured)
        made = list(made) if isinstance(made, tuple) else [made]
        return _tree.unflatten(self.traced.out_tree, [of_value(v) for v in made])


def train(model: Any, loss: Callable[..., Any], optimizer: Any, data: Any, *, epochs: int, batch: int, seed: int = 0, eval: Any = None,
          metrics: Mapping[str, Callable[..., Any]] | None = None, trained: Callable[[str, Tensor], bool] | None = None,
          log: Any = None, checkpoint: Any = None, every: int = 0, resume: bool = False, early_stop: EarlyStop | None = None,
          plot: Any = None, augment: Callable[[Any, int], Any] | None = None, drop_last: bool = False,
          callback: Callable[[dict[str, float], Any], None] | None = None, progress: bool | None = None) -> Result:  # fmt: skip
    """Trains a module (`astra.nn`) on data, a pair (inputs, targets), a dict of arrays with a "target", or a `astra.data.Dataset`.

    loss(prediction, target) gives a scalar (`astra.losses`); optimizer: of `astra.optim`. eval: data on which the loss and the metrics, a
    dict of functions of prediction and target, are taken after each epoch. trained(name, tensor) says which parameters are trained.

    log: a .csv file of every step. checkpoint: a .safetensors file, written every `every` steps and after each epoch; with resume=True
    the training goes on from it, to the same bytes as without a stop. early_stop: see `EarlyStop`. plot: a picture of the losses that
    is drawn after each epoch. augment(batch, number): changes batches. callback(numbers of the epoch, module): may raise `astra.Stop`.
    progress: a bar (tqdm, where it is installed) and a line for each epoch; None: on a terminal."""
    from . import nn

    source, held = _dataset(data), None if eval is None else _dataset(eval)
    if epochs < 0 or batch < 1:
        raise ArgumentError(f"epochs is 0 or more and a batch has a row at least; there are {epochs} and {batch}")
    if not len(source):
        raise ArgumentError("the data have no rows")
    if drop_last and len(source) < batch:
        raise ArgumentError(f"drop_last leaves no batch of {batch} of {len(source)} rows")
    measures = dict(metrics or {})
    params, rest = nn.partition(model, trained)
    if not _tree.leaves(params):
        raise ArgumentError("the module has no parameter that is trained")
    state = optimizer.init(params)
    number = _ops.zeros((), dtype="int64")  # of the next step

    def train_step(params: Any, rest: Any, state: Any, number: Any, batch: Any) -> Any:
        inputs, target = _parts(batch)

        def value(params: Any, rest: Any) -> Any:
            key = _ops.stack([_ops.literal(seed & 0xFFFFFFFF, _dtypes.DTYPES["uint32"]), _ops.astype(number * 1024, "uint32")])
            out, after = nn.apply(nn.combine(params, rest), *(inputs if isinstance(inputs, tuple) else ()), key=key,
                                  **(inputs if isinstance(inputs, dict) else {}))  # fmt: skip
            return loss(out, target), nn.partition(after, trained)[1]

        from ._transforms import value_and_grad

        (cost, rest), gradients = value_and_grad(value, has_aux=True)(params, rest)
        params, state = optimizer.step(params, gradients, state)
        return params, rest, state, number + 1, cost

    def eval_step(params: Any, rest: Any, batch: Any) -> Any:
        inputs, target = _parts(batch)
        whole = nn.combine(params, rest)
        out = whole(*inputs) if isinstance(inputs, tuple) else whole(**inputs)
        return [loss(out, target), *(m(out, target) for m in measures.values())]

    def sample(d: Dataset) -> Any:
        return d[np.arange(min(1, len(d)))]

    first = augment(sample(source), 0) if augment else sample(source)
    step = _Program(train_step, [params, rest, state, number], first, batch, "train_step")
    judge = _Program(eval_step, [params, rest], sample(held), batch, "eval_step") if held is not None and len(held) else None
    run = _Run(source, batch, seed, drop_last)
    history, best, since, stopped = History(), None, 0, ""
    writer = _Log(log, ["step", "epoch", "loss", *(["eval_loss", *(f"eval_{m}" for m in measures)] if judge else [])])
    if resume:
        if checkpoint is None or not os.path.exists(checkpoint):
            raise ArgumentError("resume=True needs a checkpoint that is there: checkpoint=FILE.safetensors")
        params, rest, state, number = run.read(checkpoint, (params, rest, state, number), history)
    writer.open(run.steps if resume else None)
    shown = Bar(progress, epochs)
    while run.epoch <= epochs:
        shown.begin(run.epoch, run.per_epoch, run.done)
        for b in source.batches(batch, seed=seed, epoch=run.epoch, drop_last=drop_last, begin=run.done, augment=augment):
            params, rest, state, number, cost = step([params, rest, state, number], b)
            rows = len(_tree.leaves(b)[0])
            value = float(cost)
            run.advance(value, rows)
            writer.row(run.steps, run.epoch, np.float32(value) if cost.dtype.code == "f32" else value)
            if not np.isfinite(value):
                raise FloatingPointError(f"the loss of step {run.steps} (epoch {run.epoch}) is {value}: a smaller learning rate, clipping of "
                                         "gradients or astra.find_nan helps to find why; the last checkpoint is as it was")  # fmt: skip
            shown.step(value)
            if checkpoint is not None and every and run.steps % every == 0:
                run.write(checkpoint, (params, rest, state, number), history)
        numbers = {"epoch": float(run.epoch), "loss": run.loss_sum / max(run.loss_rows, 1)}
        if judge is not None:
            assert held is not None
            sums = np.zeros(1 + len(measures))
            for b in held.batches(batch, seed=None):
                sums += np.array([float(v) for v in judge([params, rest], b)]) * len(_tree.leaves(b)[0])
            means = sums / len(held)
            numbers |= dict(zip(["eval_loss", *(f"eval_{m}" for m in measures)], map(float, means)))
            writer.row(run.steps, run.epoch, "", *means)
        history.append(numbers)
        shown.end(numbers)
        run.next_epoch()
        if checkpoint is not None:
            run.write(checkpoint, (params, rest, state, number), history)
        if plot is not None:
            history.plot(plot)
        if callback is not None:
            try:
                callback(numbers, nn.combine(params, rest))
            except Stop as reason:
                stopped = str(reason) or "a callback raised Stop"
                break
        if early_stop is not None:
            if early_stop.watch not in numbers:
                raise ArgumentError(f"early_stop watches '{early_stop.watch}'; an epoch gives {', '.join(numbers)}")
            if best is None or numbers[early_stop.watch] < best[0] - early_stop.least:
                best, since = (numbers[early_stop.watch], params, rest, state), 0
            else:
                since += 1
            if since >= early_stop.patience:
                stopped = f"{early_stop.watch} has not become less for {since} epochs"
                break
    writer.close()
    if best is not None and early_stop is not None:
        params, rest, state = best[1:]
    return Result(nn.combine(params, rest), history, state, stopped)


class _Run:
    """Where a training is, and its file."""

    def __init__(self, data: Dataset, batch: int, seed: int, drop_last: bool) -> None:
        self.rows, self.batch, self.seed, self.drop_last = len(data), batch, seed, drop_last
        self.per_epoch = self.rows // batch if drop_last else -(-self.rows // batch)
        self.epoch, self.done, self.steps = 1, 0, 0
        self.loss_sum, self.loss_rows = 0.0, 0

    def advance(self, loss: float, rows: int) -> None:
        self.done, self.steps = self.done + 1, self.steps + 1
        self.loss_sum, self.loss_rows = self.loss_sum + loss * rows, self.loss_rows + rows

    def next_epoch(self) -> None:
        self.epoch, self.done, self.loss_sum, self.loss_rows = self.epoch + 1, 0, 0.0, 0

    def facts(self) -> dict[str, Any]:
        return {"rows": self.rows, "batch": self.batch, "seed": self.seed, "drop_last": self.drop_last}

    def write(self, path: Any, trees: Any, history: History) -> None:
        from astra_rt._safetensors import write

        named = {f"{i}.{p}": t._realized() for i, tree in enumerate(trees) for p, t in zip(_tree.paths(tree), _tree.leaves(tree))
                 if isinstance(t, Tensor)}  # fmt: skip
        where = {**self.facts(), "epoch": self.epoch, "done": self.done, "steps": self.steps, "loss_sum": self.loss_sum.hex(),
                 "loss_rows": self.loss_rows, "history": [{k: v.hex() for k, v in h.items()} for h in history]}  # fmt: skip
        text = np.frombuffer(json.dumps(where, sort_keys=True).encode(), np.uint8)
        write(os.fspath(path), {**named, "run": asarray(text)._realized()})

    def read(self, path: Any, trees: Any, history: History) -> Any:
        from astra_rt._safetensors import read

        file = read(os.fspath(path))
        if "run" not in file:
            raise ArgumentError(f"'{os.fspath(path)}' is no checkpoint of astra.train")
        where = json.loads(bytes(file["run"].numpy()))
        for name, value in self.facts().items():
            if where.get(name) != value:
                raise ArgumentError(f"'{os.fspath(path)}' is of a training with {name} {where.get(name)}, here it is {value}: it would not "
                                    "give the same bytes")  # fmt: skip
        self.epoch, self.done, self.steps = where["epoch"], where["done"], where["steps"]
        self.loss_sum, self.loss_rows = float.fromhex(where["loss_sum"]), where["loss_rows"]
        history.extend({k: float.fromhex(v) for k, v in h.items()} for h in where["history"])
        out = []
        for i, tree in enumerate(trees):
            leaves, structure = _tree.flatten(tree)
            for j, p in enumerate(_tree.paths(tree)):
                if not isinstance(leaves[j], Tensor):
                    continue
                name = f"{i}.{p}"
                if name not in file or tuple(file[name].shape) != tuple(leaves[j].shape) or file[name].dtype != leaves[j].dtype.code:
                    raise ArgumentError(f"'{os.fspath(path)}' has no '{name}' of this shape and type: it is of another module or optimizer")
                leaves[j] = of_value(file[name])
            out.append(_tree.unflatten(structure, leaves))
        return out


class _Log:
    """A run as CSV: numbers as the shortest text that gives them back, no time in it."""

    def __init__(self, path: Any, columns: Sequence[str]) -> None:
        self.path, self.columns, self.file = path, list(columns), None

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
        self.file: Any = open(self.path, "w", encoding="utf-8", newline="")
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
        self.epochs, self.bar, self.begun = epochs, None, time.monotonic()

    def begin(self, epoch: int, steps: int, done: int) -> None:
        """An epoch begins."""
        if not self.on or not sys.stderr.isatty():
            return
        try:
            from tqdm import tqdm
        except ImportError:
            return
        self.bar: Any = tqdm(total=steps, initial=done, desc=f"epoch {epoch}/{self.epochs}", leave=False, file=sys.stderr)

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
