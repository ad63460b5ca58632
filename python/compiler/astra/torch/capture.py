"""Functions and modules of PyTorch, captured by torch.export and compiled.

Takes:    a function of tensors, an nn.Module; examples of its arguments; sizes that may change, as dims.
Gives:    a callable with the same arguments and results; a module for targets; a bundle.
Keeps:    a call runs compiled code or is refused. Buffers and arguments that the program changes are written back; in a bundle such
          buffers are states. What needs gradients goes by autograd.py.
"""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any, Callable, Mapping, Sequence

import torch
import torch.utils._pytree as pytree
from torch.overrides import TorchFunctionMode
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

from .. import _core, _dims, _environment
from .._environment import Environment
from .._errors import ArgumentError, TraceError
from .._graph import tracing
from .._stages import Compiled, Lowered, of_module
from .._tensor import Tensor, call
from .aliases import refuse_overlaps
from .dims import Symbols
from .exclusive import capturing, is_traced
from .program import KEY, Input, Program, build, random_key, ready, to_torch, value_of
from .refusals import is_users_own, refused
from .rows.matrices import unchecked


class _Inputs(TorchFunctionMode):
    """Meanwhile tensors from outside of a function are those that a module has for them: a trace knows them."""

    def __init__(self, tensors: dict[int, torch.Tensor]) -> None:
        super().__init__()
        self._tensors = tensors

    def __torch_function__(self, function: Any, kinds: Any, args: Any = (), named: Any = None) -> Any:
        of = lambda x: self._tensors.get(id(x), x)  # noqa: E731
        args, named = pytree.tree_map_only(torch.Tensor, of, (args, named or {}))
        return function(*args, **named)


class _Function(torch.nn.Module):
    """A function as a module, whose parameters are the tensors and modules that it reads from outside."""

    def __init__(self, f: Callable[..., Any], environment: Environment | None = None) -> None:
        super().__init__()
        self._tensors: dict[int, tuple[str, torch.Tensor]] = {}  # by identity: the names here

        def forward(*args: Any, **named: Any) -> Any:
            with _Inputs({key: getattr(self, name) for key, (name, _) in self._tensors.items()}):
                return f(*args, **named)

        self.forward = functools.wraps(f)(forward) if _has_signature(f) else forward
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        for path, x in _used(environment or Environment(f)):
            name = "used_" + re.sub(r"\W+", "_", path).strip("_") if path else "self"  # of a bound method
            while hasattr(self, name):
                name += "_"
            if isinstance(x, torch.nn.Module):
                self.add_module(name, x)
                continue
            self._tensors[id(x)] = name, x
            if isinstance(x, torch.nn.Parameter):
                self.register_parameter(name, x)
            else:
                self.register_buffer(name, x, persistent=False)
        anchor = getattr(torch.fx.proxy, "_register_stack_trace_anchor", None)
        if anchor is not None:
            anchor(f)

    def replace(self, old: torch.Tensor, new: torch.Tensor) -> None:
        """Another tensor in the place of one from outside."""
        name, _ = self._tensors.pop(id(old))
        self._tensors[id(new)] = name, new
        own = self._parameters if name in self._parameters else self._buffers
        own[name] = new  # type: ignore[assignment]


def _has_signature(f: Any) -> bool:
    """Whether parameters of a function are known: of PyTorch's own in C++ they are not."""
    try:
        inspect.signature(f)
    except (TypeError, ValueError):
        return False
    return True


def _used(environment: Environment) -> list[tuple[str, Any]]:
    """Modules and tensors that a function reads from outside, by the paths to them; without those that are in such a module."""
    inner = {id(x) for m in environment.modules for x in (*m.parameters(), *m.buffers(), *(n for n in m.modules() if n is not m))}
    return [(path, x) for key, (path, x) in environment.objects.items() if key not in inner]


def _parameters(module: torch.nn.Module) -> Any:
    return inspect.signature(module.forward)


def _specs(module: torch.nn.Module, args: Any, named: Any, dims: Mapping[str, Any]) -> list[Any]:
    """For each argument, in the order of the call: axis -> (name, least, most), or None. dims={"x": ("batch", 1, 64)} is of the first axis,
    {"x": {1: ("length", 1, 32)}} of others; a dim of this package says its name and bounds itself."""
    signature = _parameters(module)
    bound = signature.bind(*args, **named)
    unknown = set(dims) - set(bound.arguments)
    if unknown:
        raise ArgumentError(f"dims names {', '.join(sorted(unknown))}; the arguments are {', '.join(bound.arguments)}")
    positional = [p.name for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [positional[i] if i < len(positional) else "" for i in range(len(args))] + list(named)
    out = []
    for name in names:
        spec = dims.get(name)
        axes = None if spec is None else dict(spec) if isinstance(spec, Mapping) else {0: spec}
        out.append(axes and {a: (str(d), *d.bounds) if isinstance(d, _dims.Dim) else tuple(d) for a, d in axes.items()})
    return out


def _dynamic(module: torch.nn.Module, args: Any, named: Any, dims: Mapping[str, Any] | None) -> Any:
    """The same as torch.export has it."""
    if not dims:
        return None
    made: dict[str, Any] = {}

    def of(axes: Any, value: Any) -> Any:
        if not axes:
            return pytree.tree_map(lambda _: None, value)
        one = {}
        for axis, (name, least, most) in axes.items():
            made.setdefault(name, torch.export.Dim(name, min=least, max=most))
            one[axis] = made[name]
        return pytree.tree_map(lambda x: dict(one) if isinstance(x, torch.Tensor) else None, value)

    values = [*args, *named.values()]
    shapes = [of(axes, v) for axes, v in zip(_specs(module, args, named, dims), values)]
    bound = _parameters(module).bind(*args, **named)
    names = [n for n in bound.arguments if n not in named]
    return {**dict(zip(names, shapes[: len(args)])), **dict(zip(named, shapes[len(args) :]))}


def export(module: torch.nn.Module, args: Any, named: Any, dims: Mapping[str, Any] | None = None) -> tuple[Any, Environment]:
    """The exported program, with functional core ops, and what it reads beside its arguments."""
    shapes = _dynamic(module, args, named, dims)
    name = getattr(module, "__name__", None) or type(module).__name__
    try:
        with capturing(), unchecked():
            program, environment = exported(module, args, named, shapes)
            return program.run_decompositions(decompositions()), environment
    except Exception as error:
        raise refused(name, error) from (None if is_users_own(error) else error)


def _check_dims(module: torch.nn.Module, name: str, args: Any, named: Any, dims: Mapping[str, Any] | None) -> None:
    """Refuses a size outside of the bounds that it was given."""
    if not dims:
        return
    for spec, value in zip(_specs(module, args, named, dims), [*args, *named.values()]):
        for axis, (size, least, most) in (spec or {}).items():
            for t in pytree.tree_leaves(value):
                if isinstance(t, torch.Tensor) and (axis >= t.ndim or not least <= t.shape[axis] <= most):
                    found = f"{size} = {t.shape[axis]}" if axis < t.ndim else f"a tensor of rank {t.ndim} for {size}, its axis {axis}"
                    raise ArgumentError(f"'{name}' is called with {found}; dims gives {size} the bounds {least}..{most}")


def _roomy(module: torch.nn.Module, args: Any, named: Any, dims: Mapping[str, Any] | None) -> tuple[Any, Any]:
    """Examples in which no size that may change is 0 or 1: torch.export takes those for constants. Their values do not matter."""
    if not dims:
        return args, named
    specs = _specs(module, args, named, dims)
    values = [*args, *named.values()]
    small: dict[str, int] = {}
    for spec, value in zip(specs, values):
        for t in pytree.tree_leaves(value):
            for axis, (name, least, most) in (spec or {}).items():
                if isinstance(t, torch.Tensor) and t.shape[axis] < 2:
                    small[name] = min(max(2, least), most)

    def grown(t: Any, spec: Any) -> Any:
        if not isinstance(t, torch.Tensor) or not any(name in small for name, *_ in spec.values()):
            return t
        shape = list(t.shape)
        for axis, (name, *_) in spec.items():
            shape[axis] = small.get(name, shape[axis])
        return torch.zeros(shape, dtype=t.dtype)

    made = [pytree.tree_map(lambda t, s=spec: grown(t, s), v) if spec and small else v for spec, v in zip(specs, values)]
    return tuple(made[: len(args)]), dict(zip(named, made[len(args) :]))


def exported(module: torch.nn.Module, args: Any, named: Any, shapes: Any = None) -> tuple[Any, Environment]:
    """The program as torch.export has it; by Dynamo where control flow asks for it. And what it reads beside its arguments; what it
    changes there is refused."""
    name = getattr(module, "__name__", None) or type(module).__name__
    source = getattr(module.forward, "__wrapped__", module) if isinstance(module, _Function) else module
    refusals: list[TraceError] = []

    def look(*_: Any) -> None:  # at once: torch.export puts attributes back
        try:
            environment.refuse_changes(name)
        except TraceError as error:
            refusals.append(error)

    with _environment.traced(source, name) as environment:
        hook = module.register_forward_hook(look)
        try:
            program = _exported(module, args, named, shapes, hook)
            if not refusals:
                environment.restore()  # containers themselves in the place of copies that torch.export made
            return program, environment
        except Exception:
            if refusals:
                raise refusals[0] from None
            raise
        finally:
            hook.remove()
            if refusals:
                raise refusals[0]


def _exported(module: torch.nn.Module, args: Any, named: Any, shapes: Any, hook: Any) -> Any:
    try:
        return torch.export.export(module, tuple(args), dict(named), dynamic_shapes=shapes, strict=False)
    except Exception as error:
        if "captured completely with torch.compile" not in str(error):
            raise
    hook.remove()  # Dynamo does without
    return torch.export.export(module, tuple(args), dict(named), dynamic_shapes=shapes, strict=True)


@functools.lru_cache(maxsize=1)
def decompositions() -> Any:
    """PyTorch's table to the core set, without those that rows keep whole."""
    table = torch.export.default_decompositions()
    from .rows.registry import ROWS

    for op in list(table):
        if isinstance(op, torch._ops.OpOverload) and (str(op) in ROWS or str(op.overloadpacket) in _KEPT):
            table.pop(op, None)
    return table


_KEPT = {"aten.scaled_dot_product_attention", "aten.silu", "aten.pixel_shuffle", "aten.rms_norm", "aten.linear", "aten.native_layer_norm",
         "aten.hardsigmoid", "aten.hardswish", "aten.mish", "aten.softplus", "aten.upsample_bicubic2d", "aten.upsample_bilinear2d",
         "aten.upsample_nearest2d", "aten.roll", "aten.addcmul", "aten.masked_fill", "aten.logsumexp", "aten.var_mean"}  # fmt: skip


class Captured:
    """An exported program as a graph of this package: what `from_torch` gives before it is compiled."""

    def __init__(self, module: Any, args: Any, named: Any = None, dims: Mapping[str, Any] | None = None) -> None:
        self.name = getattr(module, "__name__", None) or type(module).__name__
        with capturing():
            self.source = module if isinstance(module, torch.nn.Module) else _Function(module)
            _check_dims(self.source, self.name, args, named or {}, dims)
            args, named = _roomy(self.source, args, named or {}, dims)
            self.exported, self.environment = export(self.source, args, named, dims)
        self.signature = self.exported.graph_signature
        names = self._dim_names(args, named, dims)
        self.symbols = Symbols(self.exported.range_constraints, names)
        self.in_spec, self.out_spec = self.exported.call_spec.in_spec, self.exported.call_spec.out_spec

    def _dim_names(self, args: Any, named: Any, dims: Mapping[str, Any] | None) -> dict[str, str]:
        """Symbols of the program by the names that dims gave them."""
        if not dims:
            return {}
        axes = [a for spec, v in zip(_specs(self.source, args, named, dims), [*args, *named.values()]) for a in [spec] * len(pytree.tree_leaves(v))]
        nodes = [n for n in self.exported.graph.nodes if n.op == "placeholder"]
        users = [n for n, s in zip(nodes, self.signature.input_specs) if s.kind == InputKind.USER_INPUT]
        out = {}
        for node, spec in zip(users, axes):
            value = node.meta.get("val")
            for axis, (name, *_) in (spec or {}).items():
                if isinstance(value, torch.Tensor) and isinstance(value.shape[axis], torch.SymInt):
                    out[str(value.shape[axis].node.expr)] = name
        return out

    def inputs(self, weights: str) -> list[Input]:
        """What each placeholder is. weights: "weight" keeps parameters in the program; "input" makes them inputs."""
        nodes = [n for n in self.exported.graph.nodes if n.op == "placeholder"]
        changed = set(self.signature.buffers_to_mutate.values()) | set(getattr(self.signature, "parameters_to_mutate", {}).values())
        out = []
        for node, spec in zip(nodes, self.signature.input_specs):
            if spec.kind == InputKind.USER_INPUT:
                if isinstance(spec.arg, ConstantArgument):
                    out.append(Input(node.name, spec.arg.value, "constant"))
                else:
                    out.append(Input(node.name, node.meta["val"]))
                continue
            if spec.kind not in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
                raise TraceError(f"'{self.name}' has an input of kind {spec.kind.name}, {node.name}: tensors are supported")
            data = self._tensor(spec)
            if spec.kind == InputKind.CONSTANT_TENSOR and id(data) in self.environment.tensors:
                out.append(Input(spec.target, node.meta["val"], weights, data))  # the user's, who may change it
            elif spec.target in changed:
                out.append(Input(spec.target, node.meta["val"], "state", data))
            else:
                out.append(Input(spec.target, node.meta["val"], weights if spec.kind == InputKind.PARAMETER or spec.kind == InputKind.BUFFER else "fixed", data))
        return out

    def _tensor(self, spec: Any) -> torch.Tensor:
        if spec.kind == InputKind.CONSTANT_TENSOR or (spec.kind == InputKind.BUFFER and spec.persistent is False):
            found = self.exported.constants.get(spec.target)
            live = _attribute(self.source, spec.target)
            return live if isinstance(live, torch.Tensor) else found
        live = _attribute(self.source, spec.target)
        return live if isinstance(live, torch.Tensor) else self.exported.state_dict[spec.target]

    def lower(self) -> Lowered:
        """The module: entry "main"; parameters are its weights, buffers that it changes its states."""
        with tracing() as graph:
            inputs = self.inputs("weight")
            built = build(self.exported.graph_module, inputs, self.symbols, graph, key=True)
            making = _core.Making(graph.core, self.name if self.name.isidentifier() else "module")
            entry, kept = [], []
            for i, leaf in zip(inputs, built.leaves):
                if leaf is None:
                    continue
                if i.kind == "input":
                    entry.append((i.name, leaf))
                    continue
                value = value_of(i.data)
                kept.append(value)
                if i.kind == "state":
                    call(making.state, i.name, leaf, (value._address, value.nbytes))
                else:
                    call(making.param, i.name, leaf, i.kind, (value._address, value.nbytes))
            outputs: list[tuple[str, Any]] = []
            updates: list[tuple[str, Any]] = []
            for spec, x in zip(self.signature.output_specs, built.results):
                if spec.kind == OutputKind.USER_OUTPUT and isinstance(x, Tensor):
                    outputs.append((_result_name(len(outputs), self.signature), x._in(graph)))
                elif spec.kind in (OutputKind.BUFFER_MUTATION, getattr(OutputKind, "PARAMETER_MUTATION", None)):
                    updates.append((spec.target, x._in(graph)))
                elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                    outputs.append((f"{spec.target}.changed", x._in(graph)))
            for n, leaf in enumerate(graph.core.leaves_of([x for _, x in outputs + updates])):
                if leaf in graph.values:
                    value = graph.values[leaf]
                    call(making.param, f"captured.{n}", leaf, "fixed", (value._address, value.nbytes))
            if built.key is not None:
                entry.append((KEY, built.key))
            call(making.entry, "main", entry, outputs, updates)
            return of_module(making.finish())

    def compile(self, target: str | Sequence[str] | None = None, frozen: bool | None = None, numerics: str = "strict") -> Compiled:
        """A bundle: see `astra.trace(...).lower().compile`. Call it as the function, with PyTorch's tensors."""
        lowered = self.lower().with_numerics(numerics)
        return CompiledTorch(self, lowered, lowered.compile(target, frozen))


def _result_name(n: int, signature: Any) -> str:
    count = sum(1 for s in signature.output_specs if s.kind == OutputKind.USER_OUTPUT)
    return "result" if count == 1 else f"result.{n}"


def _attribute(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part, None)
    return module


class CompiledTorch(Compiled):
    """A bundle in memory that is called as the function of PyTorch's that it is made of."""

    def __init__(self, captured: Captured, lowered: Lowered, made: Compiled) -> None:
        super().__init__(made.bundle, made._signatures, None, lowered)
        self._of = captured

    def __reduce__(self) -> Any:  # without the captured program: its entries are called by place
        return Compiled, (self.bundle, self._signatures)

    def __call__(self, *args: Any, **named: Any) -> Any:
        leaves, structure = pytree.tree_flatten((args, named))
        if structure != self._of.in_spec:
            raise ArgumentError(f"'{self._of.name}' was captured for arguments of another structure: {self._of.in_spec}, not {structure}")
        users = [s for s in self._of.signature.input_specs if s.kind == InputKind.USER_INPUT]
        given = {s.arg.name: x for s, x in zip(users, leaves) if not isinstance(s.arg, ConstantArgument)}
        tensors = [ready(x) for x in given.values() if isinstance(x, torch.Tensor)]
        if any(n == KEY for n, _ in self._signatures["main"].inputs):
            tensors.append(random_key())
        made = self.module["main"](*tensors)
        results = iter(made if isinstance(made, tuple) else [] if made is None else [made])
        out = []
        for spec in self._of.signature.output_specs:
            if spec.kind == OutputKind.USER_OUTPUT:
                out.append(spec.arg.value if isinstance(spec.arg, ConstantArgument) else to_torch(next(results)))
            elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                with torch.no_grad():
                    given[spec.target].copy_(to_torch(next(results)))
        return pytree.tree_unflatten(out, self._of.out_spec)


class Inference:
    """A compiled program with the call of the original: parameters live in the nn.Module, and are looked at in each call."""

    def __init__(self, captured: Captured, frozen: bool | None, numerics: str = "strict") -> None:
        self.captured, self.environment = captured, captured.environment
        inputs = captured.inputs("weight")
        self.constants = [i.kind == "constant" for i in inputs if i.kind in ("input", "constant")]
        self.order: list[Any] = [i.data if i.kind == "state" else None for i in inputs if i.kind in ("input", "state")]
        names = [i.name for i in inputs if i.kind in ("input", "state")]
        for i in inputs:
            i.kind = "input" if i.kind == "state" else i.kind
        self.program = Program(captured.exported.graph_module, inputs, captured.symbols, captured.name, frozen, f"'{captured.name}'",
                               numerics)  # fmt: skip
        self.outputs = captured.signature.output_specs
        # What the program writes back, in the order of its results: the place in `order`, the name.
        self.changed = [(names.index(s.target), s.target) for s in self.outputs if s.kind != OutputKind.USER_OUTPUT]
        self.guards = captured.environment.guards(self._taken)
        self.tensors = [t for _, t in self.program.live]
        whole = self.program.is_direct and not any(self.constants) and not any(x is not None for x in self.order)
        self.is_direct = (whole and len(self.program.places) == len(self.constants) and captured.out_spec.is_leaf()
                          and len(self.outputs) == 1 and self.outputs[0].kind == OutputKind.USER_OUTPUT)  # fmt: skip

    def _taken(self, old: Any, new: Any) -> bool:
        """Takes another tensor from outside in the place of one, where it has the same type and shape."""
        if not is_like(old, new):
            return False
        if not self.program.replace(old, new):
            places = [k for k, x in enumerate(self.order) if x is old]
            if not places:
                return False
            self.order[places[0]] = new
        self.tensors = [t for _, t in self.program.live]
        if isinstance(self.captured.source, _Function):
            self.captured.source.replace(old, new)
        return True

    def __call__(self, leaves: Sequence[Any]) -> Any:
        users = iter([x for x, constant in zip(leaves, self.constants) if not constant])
        given = [next(users) if x is None else x for x in self.order]
        if self.changed:
            places = [i for i, _ in self.changed]
            rest = [x for i, x in enumerate(given) if i not in places]
            refuse_overlaps(self.captured.name, [given[i] for i in places], [*rest, *self.tensors])
        made = self.program(*given)
        results, written = [], iter(self.changed)
        for spec, x in zip(self.outputs, made):
            if spec.kind == OutputKind.USER_OUTPUT:
                results.append(x)
                continue
            place, _ = next(written)
            with torch.no_grad():
                given[place].copy_(x)
        return pytree.tree_unflatten(results, self.captured.out_spec)


def is_like(old: Any, new: Any) -> bool:
    """Whether a tensor may take the place of another in a program. One that stands for another while a capture goes on may not."""
    return (not is_traced(new) and isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor) and old.dtype is new.dtype and old.shape == new.shape
            and old.device == new.device and old.requires_grad == new.requires_grad)  # fmt: skip


def from_torch(model: Any, *args: Any, dims: Mapping[str, Any] | None = None, **named: Any) -> Captured:
    """A function or nn.Module of PyTorch's for example arguments: `.lower().as_text()`, `.compile(target=...).save("m.astra")`. Its
    parameters are the bundle's weights, buffers that it changes are states."""
    return Captured(model, args, named, dims)
