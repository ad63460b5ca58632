"""Training steps as bundles: forward, backward and optimizer of a PyTorch model in one program.

Takes:    a model, a loss of PyTorch's, an optimizer of torch.optim; examples of the inputs and the target.
Gives:    a bundle with the entries that `astra-train` and C programs call: train_step, eval, main; a callable beside it.
Keeps:    a torch.optim optimizer's learning rates are states, which a call sets where a scheduler has changed them; what the optimizer has
          kept so far is where the states begin. Gradients are those of AOTAutograd's joint graph, steps those of lib/NN's optimizers, which are PyTorch's. Parameters, what
          the optimizer keeps of them, buffers that the model changes, and the number of steps are states.
"""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

import torch
from torch._functorch.aot_autograd import aot_export_module

import astra_rt
from astra_rt import ranks

from .. import _cache, _core, _ops
from .._errors import ArgumentError, UnsupportedError
from .._graph import Graph, tracing
from .._mesh import Mesh, refuse_pipeline
from .._stages import Compiled, Lowered
from .._tensor import Tensor, call, of_node
from .lower import lower
from .placements import plain, put, read, whole
from .program import KEY, is_random, value_of
from .rows.random import keyed
from .rows.types import F64, I64, own_type


def _recipe(optimizer: torch.optim.Optimizer, group: Mapping[str, Any]) -> str:
    """An optimizer of torch.optim as a recipe of lib/NN."""
    name = type(optimizer).__name__
    for flag in ("amsgrad", "maximize"):
        if group.get(flag):
            raise UnsupportedError(f"{name}({flag}=True): a training step has no such form")
    number = lambda x: repr(float(x))  # noqa: E731
    parts: dict[str, Any] = {"lr": number(group["lr"]), "weight_decay": number(group.get("weight_decay", 0))}
    if name == "SGD":
        parts |= {"momentum": number(group["momentum"]), "dampening": number(group["dampening"]), "nesterov": int(group["nesterov"])}
    elif name in ("Adam", "AdamW"):
        beta1, beta2 = group["betas"]
        parts |= {"beta1": number(beta1), "beta2": number(beta2), "eps": number(group["eps"])}
        name = "AdamW" if group.get("decoupled_weight_decay") else name
    elif name == "RMSprop":
        parts |= {k: number(group[k]) for k in ("alpha", "eps", "momentum")} | {"centered": int(group["centered"])}
    elif name == "Adagrad":
        parts |= {k: number(group[k]) for k in ("lr_decay", "initial_accumulator_value", "eps")}
    else:
        raise UnsupportedError(f"the optimizer {name}: a training step takes SGD, Adam, AdamW, RMSprop and Adagrad of torch.optim")
    return f"{name.lower()}({', '.join(f'{k}={v}' for k, v in parts.items())})"


# What lib/NN keeps of a parameter, by the names of torch.optim.
_KEPT = {"sgd": {"mean": "momentum_buffer"}, "adam": {"mean": "exp_avg", "squares": "exp_avg_sq"}, "adamw": {"mean": "exp_avg", "squares": "exp_avg_sq"},
         "rmsprop": {"squares": "square_avg", "mean": "grad_avg", "steps": "momentum_buffer"}, "adagrad": {"squares": "sum"}}  # fmt: skip


def _steps_done(optimizer: torch.optim.Optimizer) -> int:
    """How many steps an optimizer has made: of all its parameters the same."""
    found = set()
    for p in (p for g in optimizer.param_groups for p in g["params"] if p.requires_grad):
        kept = optimizer.state.get(p, {})
        has_tensors = any(isinstance(x, torch.Tensor) for x in kept.values())
        found.add(int(kept["step"]) if "step" in kept else int(has_tensors))  # SGD counts none: its first step is another
    if len(found) > 1:
        raise UnsupportedError(f"the optimizer has made {min(found)} steps of some parameters and {max(found)} of others: a training step counts one number for all")
    return found.pop() if found else 0


def _settings(group: Mapping[str, Any]) -> dict[str, Any]:
    """What a group says beside the parameters and the rate."""
    return {k: v for k, v in group.items() if k not in ("params", "lr", "initial_lr")}


class _Loss(torch.nn.Module):
    """A model and its loss; the last argument is the target."""

    def __init__(self, model: torch.nn.Module, loss: Any) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *args: Any) -> Any:
        result = self.model(*args[:-1])
        return self.loss(result, args[-1]), torch.utils._pytree.tree_map(torch.Tensor.detach, result)


class TrainStep:
    """A compiled training step: what `train_step` gives. Call it with the inputs and the target; it gives the loss."""

    def __init__(self, model: torch.nn.Module, loss: Any, optimizer: torch.optim.Optimizer | str, examples: Sequence[torch.Tensor],
                 schedule: str = "constant", clip_norm: float | None = None, target: Any = None, frozen: bool | None = None,
                 mesh: Mesh | None = None, shardings: Mapping[str, Any] | None = None, numerics: str = "strict") -> None:  # fmt: skip
        if len(examples) < 2:
            raise ArgumentError("examples are those of the inputs, then one of the target")
        named_examples = list(zip(_names_of(len(examples)), examples))
        found, placed = read(model, named_examples)
        if found is not None:
            if mesh is not None and mesh != found:
                raise ArgumentError(f"mesh is {mesh}, and the DTensors are on {found}")
            if not isinstance(optimizer, str):
                raise UnsupportedError("an optimizer of torch.optim over a module with DTensors: give a recipe, as \"adamw(lr=1e-3)\"")
            mesh, shardings = mesh or found, {**(shardings or {}), **placed}
        self._target, model, examples = model, plain(model), [whole(x) for x in examples]
        self.model, self._schedule, self._clip = model, schedule, clip_norm
        self._optimizer = None if isinstance(optimizer, str) else optimizer
        both = _Loss(model, loss)
        if isinstance(optimizer, str):
            groups = {id(p): optimizer for p in model.parameters()}
        else:
            groups = {id(p): _recipe(optimizer, g) for g in optimizer.param_groups for p in g["params"]}
            self._settings = [_settings(g) for g in optimizer.param_groups]
            self._rates = [float(g["lr"]) for g in optimizer.param_groups]  # as they are in the states
        self._done = 0 if self._optimizer is None else _steps_done(self._optimizer)
        named = dict(model.named_parameters(remove_duplicate=True))
        frozen_names = [n for n, p in named.items() if id(p) not in groups or not p.requires_grad]
        self._trained = {n: groups[id(p)] for n, p in named.items() if n not in frozen_names}
        if not self._trained:
            raise ArgumentError("the optimizer has none of the model's parameters")
        module = self._build(both, optimizer, list(examples))
        if mesh is not None:
            refuse_pipeline(mesh, "train_step")
            rules = dict(shardings) if shardings is not None else self._rows(next(iter(mesh.axes)), examples)
            module = Lowered(module).with_mesh(mesh, rules).module
        elif shardings is not None:
            raise ArgumentError("shardings are of a mesh: give mesh=astra.mesh(...)")
        self.compiled = Compiled(_cache.compile(module, _targets(target), f"a training step of '{type(model).__name__}'", frozen=frozen,
                                                numerics=numerics))  # fmt: skip
        self._session: Any = None
        self._is_cut = mesh is not None

    # ---- the module

    @staticmethod
    def _rows(axis: str, examples: Sequence[torch.Tensor]) -> dict[str, Any]:
        """Inputs and target whose rows are cut by an axis of a mesh."""
        return {name: (axis, ...) for name, x in zip(_names_of(len(examples)), examples) if x.ndim}

    def _build(self, whole: _Loss, optimizer: Any, examples: list[torch.Tensor]) -> Any:
        model, was_training = whole.model, whole.model.training
        from .backend import decompositions

        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            whole.train()
            joint, signature = aot_export_module(whole, examples, decompositions=decompositions(), trace_joint=True, output_loss_index=0)
            whole.eval()
            forward, eval_signature = aot_export_module(whole, examples, decompositions=decompositions(), trace_joint=False)
            whole.train(was_training)
        with tracing() as graph:
            making = _core.Making(graph.core, type(model).__name__)
            leaves = self._leaves(graph, joint, signature, forward, eval_signature)
            self._declare(graph, making, leaves, model)
            self._step(graph, making, joint, signature, leaves)
            self._eval(graph, making, forward, eval_signature, leaves)
            return making.finish()

    def _leaves(self, graph: Graph, joint: Any, signature: Any, forward: Any, eval_signature: Any) -> dict[str, Any]:
        """A leaf for each parameter, buffer and input, by its name; all entries share those of states."""
        leaves: dict[str, Any] = {}
        for module, s in ((joint, signature), (forward, eval_signature)):
            users = 0
            for node in (n for n in module.graph.nodes if n.op == "placeholder"):
                name = s.inputs_to_parameters.get(node.name) or s.inputs_to_buffers.get(node.name)
                if name is None:
                    if node.name in s.user_inputs:
                        name, users = f"user.{users}", users + 1
                    else:
                        raise UnsupportedError(f"a training step with an input {node.name}")
                if name not in leaves:
                    example = node.meta["val"]
                    leaves[name] = call(graph.core.leaf, own_type(example.dtype).code, [graph.core.index(int(n)) for n in example.shape])
        return leaves

    def _declare(self, graph: Graph, making: Any, leaves: dict[str, Any], model: torch.nn.Module) -> None:
        """The states: parameters, what the optimizer keeps of each, buffers, the step. Their bytes are copied."""
        core = graph.core
        self._names: dict[str, str] = {}
        self._slots: dict[str, list[tuple[str, Any]]] = {}
        values = {f"model.{n}": t for n, t in [*model.named_parameters(), *model.named_buffers()]}
        for name, leaf in leaves.items():
            if name.startswith("user."):
                continue
            if name not in values:
                raise UnsupportedError(f"a loss with a tensor of its own, {name}: give it as a part of the target")
            own = name[len("model.") :]
            self._names[name] = own
            value = value_of(values[name])
            call(making.state, own, leaf, (value._address, value.nbytes))
            recipe = self._trained.get(own)
            if recipe is None:
                continue
            self._slots[name] = []
            for slot, first in call(_core.slots, recipe, leaf.rank):
                kept_leaf = call(core.leaf, leaf.dtype, list(leaf.dims))
                begins = value_of(self._kept(values[name], recipe, slot, first))
                call(making.state, f"{own}.{slot}", kept_leaf, (begins._address, begins.nbytes))
                self._slots[name].append((f"{own}.{slot}", kept_leaf))
        self._step_leaf = call(core.leaf, "i64", [])
        zero = value_of(torch.tensor(self._done, dtype=torch.int64))
        call(making.state, "step", self._step_leaf, (zero._address, zero.nbytes))
        self._rate_leaves: list[Any] = []
        for name, rate in zip(self._rate_names(), self._rates if self._optimizer is not None else ()):
            self._rate_leaves.append(call(core.leaf, "f64", []))
            value = value_of(torch.tensor(rate, dtype=torch.float64))
            call(making.state, name, self._rate_leaves[-1], (value._address, value.nbytes))
        self._key_leaf = call(core.leaf, "u32", [])
        seed = value_of(torch.tensor(torch.initial_seed() & 0x7FFFFFFF, dtype=torch.int64).to(torch.uint32))
        self._seed = seed

    def _kept(self, x: torch.Tensor, recipe: str, slot: str, first: float) -> torch.Tensor:
        """What a slot of a parameter begins as."""
        if self._optimizer is not None:
            found = self._optimizer.state.get(x, {}).get(_KEPT[recipe.partition("(")[0]][slot])  # type: ignore[call-overload]
            if isinstance(found, torch.Tensor):
                return found.detach().to(x.dtype)
        return torch.full_like(x, first)

    def _rate_names(self) -> list[str]:
        """The states that rates are, one for each group of the optimizer; none where a schedule makes them."""
        count = 0 if self._optimizer is None or self._schedule != "constant" else len(self._optimizer.param_groups)
        return ["optimizer.lr"] if count == 1 else [f"optimizer.lr.{i}" for i in range(count)]

    def _run(self, graph: Graph, module: Any, signature: Any, leaves: dict[str, Any], key: Tensor | None) -> list[Any]:
        given, users = [], 0
        for node in (n for n in module.graph.nodes if n.op == "placeholder"):
            name = signature.inputs_to_parameters.get(node.name) or signature.inputs_to_buffers.get(node.name)
            if name is None:
                name, users = f"user.{users}", users + 1
            given.append(of_node(graph, leaves[name]))
        with keyed(key):
            return list(lower(module, given))

    def _step(self, graph: Graph, making: Any, joint: Any, signature: Any, leaves: dict[str, Any]) -> None:
        core = graph.core
        done = of_node(graph, self._step_leaf)
        number = _ops.add(done, _ops.literal(1, I64))
        count = _ops.astype(number, F64)
        random = is_random(joint)
        key = None
        if random:  # another key for each step
            call(making.state, KEY, self._key_leaf, (self._seed._address, self._seed.nbytes))
            key = _ops.bitwise_xor(of_node(graph, self._key_leaf), _ops.astype(_ops.multiply(number, _ops.literal(2654435761, I64)), "uint32"))
        out = self._run(graph, joint, signature, leaves, key)
        names = [n.name if isinstance(n, torch.fx.Node) else None for n in joint.graph.output_node().args[0]]
        by_name = {name: x for name, x in zip(names, out) if name is not None}
        updates = [(self._names[target], by_name[name]._in(graph)) for name, target in signature.buffers_to_mutate.items()]
        wanted = [(by_name[name]._in(graph), target) for name, target in signature.backward_signature.gradients_to_parameters.items()
                  if self._names[target] in self._trained]  # fmt: skip
        gradients = [g for g, _ in wanted]
        if self._clip is not None:
            gradients = call(_core.clip_norm, core, gradients, float(self._clip))
        rates = []
        for gradient, (_, target) in zip(gradients, wanted):
            own, slots = self._names[target], self._slots[target]
            recipe = self._trained[own]
            rates.append(self._rate(graph, own, recipe, count))
            value, kept = call(_core.update, core, recipe, leaves[target], gradient, [leaf for _, leaf in slots], rates[-1], count._in(graph))
            updates.append((own, value))
            updates += [(slot, node) for (slot, _), node in zip(slots, kept)]
        updates.append(("step", number._in(graph)))
        loss = by_name[signature.user_outputs[0]]
        call(making.entry, "train_step", self._inputs(leaves, len(signature.user_inputs)), [("loss", loss._in(graph)), ("rate", rates[0])], updates)

    def _rate(self, graph: Graph, own: str, recipe: str, count: Tensor) -> Any:
        if not self._rate_leaves:
            return call(_core.rate_at, graph.core, recipe, self._schedule, count._in(graph))
        p = self.model.get_parameter(own)
        return next(leaf for leaf, g in zip(self._rate_leaves, self._optimizer.param_groups) if any(q is p for q in g["params"]))  # type: ignore[union-attr]

    def _inputs(self, leaves: dict[str, Any], n: int) -> list[tuple[str, Any]]:
        return [(name, leaves[f"user.{i}"]) for i, name in enumerate(_names_of(n))]

    def _eval(self, graph: Graph, making: Any, forward: Any, signature: Any, leaves: dict[str, Any]) -> None:
        out = self._run(graph, forward, signature, leaves, None)
        n = len(signature.buffers_to_mutate)
        loss, *results = [x for x in out[n:] if isinstance(x, Tensor)]
        inputs = self._inputs(leaves, len(signature.user_inputs))
        outputs = [("result" if len(results) == 1 else f"result.{i}", x._in(graph)) for i, x in enumerate(results)]
        call(making.entry, "main", inputs[:-1], outputs)
        call(making.entry, "eval", inputs, [*outputs, ("loss", loss._in(graph))])

    # ---- its use

    @property
    def session(self) -> Any:
        """The module that runs (`astra_rt.Module`, of a mesh `astra_rt.ranks.MeshModule`): `state_dict()`, `save_states(path)`, entries
        train_step, eval, main."""
        if self._session is None:
            load = ranks.init().load if self._is_cut else astra_rt.load
            self._session = load(self.compiled.bundle, threads=max(1, torch.get_num_threads()))
        return self._session

    def __call__(self, *args: torch.Tensor) -> torch.Tensor:
        from .program import ready

        if self._optimizer is not None:
            self._follow(self._optimizer)
        return torch.from_dlpack(self.session["train_step"](*(ready(x) for x in args)).loss)

    def _follow(self, optimizer: torch.optim.Optimizer) -> None:
        """Takes the rates that the optimizer has now; what else a scheduler changes is refused."""
        names = self._rate_names()
        for i, group in enumerate(optimizer.param_groups[: len(self._settings)]):
            if float(group["lr"]) != self._rates[i]:
                if not names:
                    raise ArgumentError(f"the optimizer's lr is {float(group['lr'])!r} and was {self._rates[i]!r}, but the rates of this training step are made by its "
                                        f"schedule, {self._schedule}: use one of them")  # fmt: skip
                self._rates[i] = float(group["lr"])
                self.session.set_state(names[i], value_of(torch.tensor(self._rates[i], dtype=torch.float64)))
        now = [_settings(g) for g in optimizer.param_groups]
        if now != self._settings:
            changed = sorted({k for a, b in zip(now, self._settings) for k in a if a[k] != b.get(k)}) or ["param_groups"]
            raise ArgumentError(f"the optimizer's {' and '.join(changed)} changed since train_step compiled it: only lr may; make another training step")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the bundle, with the states as they began."""
        self.compiled.save(path)

    def write_back(self) -> torch.nn.Module:
        """Gives the trained states to the model's parameters and buffers."""
        with torch.no_grad():
            for name, t in [*self._target.named_parameters(), *self._target.named_buffers()]:
                if name in self._names.values():
                    put(t, torch.from_dlpack(self.session.get_state(name)))
        return self._target


def _names_of(n: int) -> list[str]:
    """What a training step calls its inputs and its target."""
    return [*(["x"] if n == 2 else [f"x{i}" for i in range(n - 1)]), "target"]


def _targets(target: Any) -> list[str]:
    return target.split(",") if isinstance(target, str) else list(target or [])


def train_step(model: torch.nn.Module, loss_fn: Any, optimizer: torch.optim.Optimizer | str, examples: Sequence[torch.Tensor], *,
               schedule: str = "constant", clip_norm: float | None = None, target: Any = None, frozen: bool | None = None,
               mesh: Mesh | None = None, shardings: Mapping[str, Any] | None = None, numerics: str = "strict") -> TrainStep:  # fmt: skip
    """A training step compiled ahead: loss_fn(model(*inputs), target), its gradients and a step of the optimizer, in one bundle.

        step = astra.torch.train_step(model, nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters()), (x, y))
        loss = step(x, y)
        step.save("m.astra")       # astra-train m.astra --data ..., or from C; step.write_back() gives the weights to the model

    optimizer: of torch.optim, or a recipe of docs/training.md: "lion(lr=1e-4)". schedule: a recipe, "cosine(steps=900, warmup=45)".
    clip_norm: as torch.nn.utils.clip_grad_norm_. A scheduler of torch.optim may change the optimizer's lr between calls; an optimizer that
    has made steps goes on from there.
    examples: of the inputs, then of the target; their shapes are the bundle's. numerics: as of `@astra`.

    mesh: of logical shards (`astra.mesh`; docs/distributed.md), which the ranks run that a launcher has started (`astra_rt.ranks`); a process
    that was started alone runs all of them. Every rank makes the same calls, with the same tensors.
    shardings: by names, x (or x0, x1, ...), target, parameters and states; None: rows are cut by the mesh's first axis.
    Parameters and examples that are DTensors say both: Shard(i) and Replicate() on a device mesh with names."""
    return TrainStep(model, loss_fn, optimizer, examples, schedule, clip_norm, target, frozen, mesh, shardings, numerics)
