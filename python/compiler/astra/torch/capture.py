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
import traceback
import warnings
from typing import Any, Callable, Mapping, Sequence

import torch
import torch.utils._pytree as pytree
from torch.overrides import TorchFunctionMode
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, SymIntArgument, TensorArgument

from .. import _cache, _core, _dims, _environment
from .._environment import Environment
from .._errors import ArgumentError, TraceError
from .._graph import tracing
from .._stages import Compiled, Lowered
from .._tensor import Tensor, call, user_line
from .dims import Symbols
from .lower import is_users
from .program import KEY, Input, Program, build, kind_of, value_of
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

        @functools.wraps(f)
        def forward(*args: Any, **named: Any) -> Any:
            with _Inputs({key: getattr(self, name) for key, (name, _) in self._tensors.items()}):
                return f(*args, **named)

        self.forward = forward
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        for path, x in _used(environment or Environment(f)):
            name = "used_" + re.sub(r"\W+", "_", path).strip("_")
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


def _used(environment: Environment) -> list[tuple[str, Any]]:
    """Modules and tensors that a function reads from outside, by the paths to them; without those that are in such a module."""
    inner = {id(x) for m in environment.modules for x in (*m.parameters(), *m.buffers(), *(n for n in m.modules() if n is not m))}
    return [(path, x) for key, (path, x) in environment.objects.items() if key not in inner]


def _user_line(error: BaseException) -> str:
    """The last line of the user's program in a traceback."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if is_users(f.filename)]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _sentence(error: BaseException) -> str:
    """The first line of an error's text; where that announces another, both."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])


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
        with unchecked():
            program, environment = exported(module, args, named, shapes)
            return program.run_decompositions(decompositions()), environment
    except TraceError:
        raise
    except Exception as error:
        line = _user_line(error)
        text = _sentence(error)
        raise TraceError(f"'{name}' cannot be captured as a graph{f' ({line})' if line else ''}: {text}; what depends on values of tensors "
                         "is written by torch.where or torch.cond") from error  # fmt: skip


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
        self.source = module if isinstance(module, torch.nn.Module) else _Function(module)
        self.name = getattr(module, "__name__", None) or type(module).__name__
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
            return Lowered(making.finish())

    def compile(self, target: str | Sequence[str] | None = None, frozen: bool | None = None) -> Compiled:
        """A bundle: see `astra.trace(...).lower().compile`."""
        return self.lower().compile(target, frozen)


def _result_name(n: int, signature: Any) -> str:
    count = sum(1 for s in signature.output_specs if s.kind == OutputKind.USER_OUTPUT)
    return "result" if count == 1 else f"result.{n}"


def _attribute(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part, None)
    return module


class Inference:
    """A compiled program with the call of the original: parameters live in the nn.Module, and are looked at in each call."""

    def __init__(self, captured: Captured, frozen: bool | None) -> None:
        self.captured, self.environment = captured, captured.environment
        inputs = captured.inputs("weight")
        self.constants = [i.kind == "constant" for i in inputs if i.kind in ("input", "constant")]
        self.order: list[Any] = [i.data if i.kind == "state" else None for i in inputs if i.kind in ("input", "state")]
        for i in inputs:
            i.kind = "input" if i.kind == "state" else i.kind
        self.program = Program(captured.exported.graph_module, inputs, captured.symbols, captured.name, frozen, f"'{captured.name}'")
        self.outputs = captured.signature.output_specs
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
        made = self.program(*given)
        results = []
        for spec, x in zip(self.outputs, made):
            if spec.kind == OutputKind.USER_OUTPUT:
                results.append(x)
                continue
            with torch.no_grad():
                if spec.kind == OutputKind.USER_INPUT_MUTATION:
                    self._input(spec.target, leaves).copy_(x)
                else:
                    _attribute(self.captured.source, spec.target).copy_(x)
        return pytree.tree_unflatten(results, self.captured.out_spec)

    def _input(self, name: str, leaves: Sequence[Any]) -> Any:
        users = [s for s in self.captured.signature.input_specs if s.kind == InputKind.USER_INPUT]
        return next(x for s, x in zip(users, leaves) if s.arg.name == name)


def is_like(old: Any, new: Any) -> bool:
    """Whether a tensor may take the place of another in a program."""
    return (isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor) and old.dtype is new.dtype and old.shape == new.shape
            and old.device == new.device and old.requires_grad == new.requires_grad)  # fmt: skip


class _Variant:
    """A program for what its function reads beside its arguments. direct: what calls it with tensors by place alone, or None."""

    __slots__ = ("program", "guards", "flags", "direct", "always")

    def __init__(self, program: Any, gradients: bool) -> None:
        self.program = program
        self.guards = program.guards if len(program.guards) else None
        self.flags = [t.requires_grad for t in program.tensors] if gradients and program.tensors else None
        self.always = self.guards is None and self.flags is None
        self.direct = program.program.direct() if isinstance(program, Inference) and program.is_direct else None

    def holds(self) -> bool:
        """Whether all of it is as it was."""
        if self.guards is not None and not self.guards.check():
            return False
        return self.flags is None or self.flags == [t.requires_grad for t in self.program.tensors]


_is_grad_enabled = torch.is_grad_enabled
_MANY = 8  # programs for one kind of arguments
_MOST_QUICK = 512  # kinds of arguments that are found without flattening them


class Callable_:
    """What `@astra` makes of PyTorch code: compiled at the first call with arguments of other types, shapes or structure, or where what
    it reads beside them has other values."""

    def __init__(self, f: Any, dims: Mapping[str, Any] | None = None, target: Any = None, bundle: Any = None, grad: bool | None = None,
                 frozen: bool | None = None) -> None:  # fmt: skip
        self._f, self._dims, self._target, self._bundle, self._grad, self._frozen = f, dims, target, bundle, grad, frozen
        self._programs: dict[Any, list[_Variant]] = {}
        # What runs, whether it takes the tensors one by one, and what must hold: by types and shapes, of calls with nothing but tensors by place.
        self._quick: dict[bool, dict[Any, tuple[Any, bool, _Variant | None]]] = {True: {}, False: {}}
        self._warned = False
        self.traces = 0  # how many programs were made
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        self.__doc__ = f.__doc__
        self.__wrapped__ = f

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._f, name)

    def __repr__(self) -> str:
        return f"astra({self._f!r})"

    def trace(self, *args: Any, **named: Any) -> Captured:
        """The captured graph for arguments: `.lower()`, `.compile()`."""
        return Captured(self._f, args, named, self._dims)

    def train(self, mode: bool = True) -> Any:
        """As nn.Module's."""
        module = self._f if isinstance(self._f, torch.nn.Module) else _Function(self._f)
        module.train(mode)
        return self

    def eval(self) -> Any:
        """As nn.Module's."""
        return self.train(False)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.call(args, named)

    def call(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What a call gives. One with tensors by place alone, like one before, is found without flattening trees."""
        gradients = self._grad
        if gradients is None:
            gradients = _is_grad_enabled()
        quick: Any = None
        if not named:
            quick = kind_of(args)
            found = self._quick[gradients].get(quick)
            if found is not None:
                run, many, variant = found
                if variant is None or variant.holds():
                    return run(*args) if many else run(args)
        variant = self._general(args, named, gradients)
        if quick is not None:
            table = self._quick[gradients]
            if len(table) > _MOST_QUICK:  # shapes of dims
                table.clear()
            direct = None if any(x.requires_grad for x in args) else variant.direct
            table[quick] = direct or variant.program, direct is not None, None if variant.always else variant
        return variant.program(pytree.tree_leaves((args, named)))

    def _general(self, args: Any, named: Any, gradients: bool) -> _Variant:
        """The program for a call, which is made where there is none."""
        leaves, structure = pytree.tree_flatten((args, named))
        parts: list[Any] = [structure, gradients]
        for x in leaves:
            if isinstance(x, torch.Tensor):
                parts.append((x.dtype, None if self._dims else tuple(x.shape), x.requires_grad and gradients))
            else:
                parts.append((type(x), x))
        key = tuple(parts)
        for variant in self._programs.get(key, ()):
            if variant.holds():
                return variant
        return self._kept(key, _Variant(self._compiled(args, named, gradients, leaves), gradients))

    def _kept(self, key: Any, variant: _Variant) -> _Variant:
        """Keeps a program beside those for other values from outside, which are few."""
        kept = self._programs.setdefault(key, [])
        kept.insert(0, variant)
        if len(kept) > _MANY:
            path = kept.pop(1).program.environment.changed()
            if not self._warned:
                self._warned = True
                warnings.warn(f"'{self.__name__}' is compiled for more than {_MANY} values of '{path}' ({user_line()}), which it reads from outside: "
                              "pass it as an argument, a tensor", stacklevel=4)  # fmt: skip
        return variant

    def _compiled(self, args: Any, named: Any, gradients: bool, leaves: Sequence[Any]) -> Any:
        self.traces += 1
        if gradients and self._grad is None:
            gradients = any(isinstance(x, torch.Tensor) and x.requires_grad for x in leaves) or self._has_gradients()
        if gradients:
            from .autograd import Differentiable

            module = self._f if isinstance(self._f, torch.nn.Module) else _Function(self._f)
            return Differentiable(module, args, named, self.__name__, self._dims, self._frozen)
        captured = Captured(self._f, args, named, self._dims)
        if self._bundle is not None:
            captured.compile(self._target, self._frozen).save(self._bundle)
        return Inference(captured, self._frozen)

    def _has_gradients(self) -> bool:
        """Whether something that the function reads wants gradients."""
        found = Environment(self._f)
        return any(t.requires_grad for m in found.modules for t in m.parameters(False)) or any(
            isinstance(t, torch.Tensor) and t.requires_grad for _, t in found.objects.values())  # fmt: skip


def compiled(f: Any, **options: Any) -> Any:
    """`@astra` on PyTorch code."""
    if isinstance(f, type):
        return _compiled_class(f, options)
    return Callable_(f, **options)


def _compiled_class(kind: type, options: dict[str, Any]) -> type:
    """A class whose instances are compiled when they are called."""

    class Compiled_(kind):  # type: ignore[misc]
        def __call__(self, *args: Any, **named: Any) -> Any:
            if torch.compiler.is_exporting() or torch.compiler.is_compiling() or self.__dict__.get("_astra_inside"):
                return super().__call__(*args, **named)
            found = self.__dict__.get("_astra_compiled")
            if found is None:
                found = Callable_(self, **options)
                self.__dict__["_astra_compiled"] = found
            self.__dict__["_astra_inside"] = True
            try:
                return found(*args, **named)
            finally:
                self.__dict__["_astra_inside"] = False

    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(Compiled_, name, getattr(kind, name))
    return Compiled_


def from_torch(model: Any, *args: Any, dims: Mapping[str, Any] | None = None, **named: Any) -> Captured:
    """A function or nn.Module of PyTorch's for example arguments: `.lower().as_text()`, `.compile(target=...).save("m.astra")`. Its
    parameters are the bundle's weights, buffers that it changes are states."""
    return Captured(model, args, named, dims)


_ = (SymIntArgument, TensorArgument, _cache)
