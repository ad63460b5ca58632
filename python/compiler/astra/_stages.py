"""Modules and bundles: Lowered, Compiled, load, verify, compile_file.

Takes:    modules, targets, paths.
Gives:    code: in memory, in a file, as text of every stage; what it costs; whether it gives the evaluator's bytes.
Keeps:    Compiled is called as the function was that it is made of; it can be pickled and saved.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, Mapping, NamedTuple, Sequence

import numpy as np

import astra_rt

from . import _analysis, _cache, _core, _tree
from ._errors import ArgumentError, Error, MismatchError
from ._evaluate import of_bytes
from ._mesh import Mesh, sharding_text
from ._tensor import Tensor, asarray, call, of_value
from ._trace import Signature


_DIALECTS = ("sharding", "schedule", "plan", "c", "asm", "mlir", "llvm", "ptx")


def write_whole(path: str, data: bytes) -> None:
    """Writes a file: it is there as a whole or not at all."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


class QuantizedWeight(NamedTuple):
    """What became of a weight."""

    name: str
    type: str
    format: str  # "": it stays, because of `why`
    why: str
    before: int  # bytes
    after: int
    error: float  # root of the mean square of what values are off, relative to that of the values
    bytes: bool  # whether all products by it multiply bytes


class Lowered:
    """A module: what `Traced.lower` gives. `compile` makes code of it."""

    def __init__(self, module: Any, signatures: dict[str, Signature] | None = None, states: Any = None) -> None:
        self.module = module
        self._signatures, self._states = signatures or {}, states
        self.weights: list[QuantizedWeight] = []  # what `quantize` made of each

    def as_text(self, dialect: str = "uop", target: str | None = None) -> str:
        """The module as text: "uop" (the text form), "schedule", "plan", "c", "asm", or of a GPU "mlir", "llvm", "ptx"."""
        if dialect == "uop":
            return str(self.module.text(False))
        if dialect not in _DIALECTS:
            raise ArgumentError(f"there is no text '{dialect}' of a module; there are uop, {', '.join(_DIALECTS)}")
        is_gpu = target is not None and target.startswith(("cuda", "hip"))
        if dialect in ("mlir", "llvm", "ptx") and not is_gpu:
            raise ArgumentError(f"'{dialect}' is a text of kernels of a GPU: name one, as_text('{dialect}', target='cuda:sm_90')")
        if dialect == "ptx" and is_gpu and not str(target).startswith("cuda"):
            raise ArgumentError(f"'ptx' is a text of kernels of CUDA, not of {target}")
        return str(self._emitted(dialect, target).text)

    def _emitted(self, dialect: str, target: str | None) -> Any:
        name = _cache.native() if target in (None, "native") else target
        return call(self.module.compile, [name], dialect, "", 1)

    def to_c(self, folder: str | os.PathLike[str], target: str | None = None) -> list[str]:
        """Writes the C that the module becomes for a CPU (None: this machine's best), NAME.c and what it includes; gives the paths."""
        made = self._emitted("c", target)
        os.makedirs(folder, exist_ok=True)
        paths = []
        for name, text in ((f"{self.module.name}.c", made.text), ("model.h", made.header)):
            if text:
                paths.append(os.path.join(os.fspath(folder), name))
                write_whole(paths[-1], text.encode())
        return paths

    def compile(self, target: str | Sequence[str] | None = None, frozen: bool | None = None, jobs: int = 0, check: bool = False,
                numerics: str = "strict") -> Compiled:  # fmt: skip
        """A bundle for the targets: names as `astra-compile --target` takes them, with commas or as a list; None: every CPU level
        that there is; "native": this machine's best. jobs: threads; 0: as many as there are CPUs. check: kernels test what they
        assume and assert when they run, and a call in which a test fails is refused (docs/kernels.md). numerics: see `with_numerics`."""
        if numerics != "strict":
            return self.with_numerics(numerics).compile(target, frozen, jobs, check)
        names = target.split(",") if isinstance(target, str) else list(target or _core.targets())
        bundle = _cache.compile(self.module, names, f"'{self.module.name}'", jobs, frozen, check=check)
        return Compiled(bundle, self._signatures, self._states, self)

    def quantize(self, *formats: str, activations: str = "float", fewest: int = 1024) -> Lowered:
        """The same with weights of few bits, by `formats` as `astra-compile --quantize` takes them: "q8_0" for all, "PATTERN=q4_0" and
        "PATTERN=float" for those whose names match. activations: "float"; "dynamic": products multiply bytes, by the range of each row
        ("int8" then, if no format is given). Weights of fewer elements than `fewest` stay unless a pattern names them. `weights` of the
        result says what became of each."""
        if activations not in ("float", "dynamic"):
            raise ArgumentError(f"activations are '{activations}'; expected float or dynamic")
        dynamic = activations == "dynamic"
        module, rows = call(_core.quantized, self.module, list(formats) or ["int8"] * dynamic, dynamic, fewest)
        made = Lowered(module, self._signatures, self._states)
        made.weights = [QuantizedWeight(*row) for row in rows]
        return made

    def with_numerics(self, contract: str) -> Lowered:
        """The same under a numeric contract: "device:UNIT" adds products of floats as a matrix unit does (docs/numerics.md, N4.8), as
        `astra-compile --numerics` takes it; "device:UNIT:TYPE" says what float32 is rounded to; "strict" changes nothing."""
        if contract == "strict":
            return self
        return Lowered(call(_core.with_numerics, self.module, contract), self._signatures, self._states)

    def with_mesh(self, mesh: Mesh, shardings: Mapping[str, Any] | None = None) -> Lowered:
        """The same for the shards of a mesh (`astra.mesh`; docs/distributed.md). shardings: by patterns of names of params, states,
        inputs and outputs, how they are cut: "(data, -)", "(data?, ...)", or a tuple as `astra.shard` takes it; the first that matches counts.
        `as_text("sharding")` of the result is the program of one shard."""
        return self._with_mesh(mesh, shardings)

    def _with_mesh(self, mesh: Mesh, shardings: Mapping[str, Any] | None = None, of_training: bool = False) -> Lowered:
        if not isinstance(mesh, Mesh):
            raise ArgumentError(f"the mesh is {mesh!r}; expected what astra.mesh(data=4) gives")
        for name, how in (shardings or {}).items():
            if not isinstance(how, (str, tuple, list)):
                raise ArgumentError(f"the sharding of '{name}' is {how!r}; expected \"(data, -)\" or a tuple of axes of the mesh and None")
        rules = [(k, v if isinstance(v, str) else sharding_text(v)) for k, v in (shardings or {}).items()]
        module = call(_core.with_mesh, self.module, str(mesh), rules, mesh.pipeline, mesh.bucket, mesh.overlap, of_training)
        return Lowered(module, self._signatures, self._states)

    def with_training(self, loss: str, optimizer: str = "adamw", *, schedule: str = "constant", clip_norm: float | None = None,
                      frozen: Sequence[str] = (), mesh: Mesh | None = None, shardings: Mapping[str, Any] | None = None) -> Lowered:  # fmt: skip
        """The same with entries that train the params of `main` (`astra.export(..., params=...)`), by recipes as `astra-compile --train` takes
        them: `train_step` (the inputs and `target`: gives `loss` and `rate`, and replaces the params), `eval` and `init`. frozen: patterns of
        params that stay. mesh, shardings: as of `with_mesh`, of what the optimizer keeps too; a pipeline of the mesh comes before gradients.
        What `compile` gives of it is loaded by `astra_rt.load` or `astra_rt.ranks`."""
        if clip_norm is not None and not (isinstance(clip_norm, (int, float)) and 0 < clip_norm < float("inf")):
            raise ArgumentError(f"clip_norm is {clip_norm!r}; expected a number above 0")
        if mesh is None and shardings is not None:
            raise ArgumentError("shardings are of a mesh: give mesh=astra.mesh(...)")
        plain = self if mesh is None else self._with_mesh(mesh, of_training=True)
        module = call(_core.with_training, plain.module, loss, optimizer, schedule, clip_norm or 0.0, list(frozen), mesh and mesh.pipeline)
        made = Lowered(module)  # states are read in the place of params
        return made if mesh is None else made.with_mesh(Mesh(mesh.axes, None, mesh.bucket, mesh.overlap), shardings)

    def cost_analysis(self, entry: str = "main", **dims: int) -> _analysis.Cost:
        """See `Compiled.cost_analysis`; of code for this machine."""
        return self.compile("native").cost_analysis(entry, **dims)

    def memory_analysis(self, entry: str = "main", **dims: int) -> _analysis.Memory:
        """See `Compiled.memory_analysis`; of code for this machine."""
        return self.compile("native").memory_analysis(entry, **dims)


class Compiled:
    """A bundle in memory: what `Lowered.compile` gives. Call it as the function that it is made of, `save` it and `astra.load` it
    anywhere. Entries of other names than "main" are attributes and items. States stay in the object from call to call."""

    def __init__(self, bundle: bytes, signatures: dict[str, Signature] | None = None, states: Any = None,
                 lowered: Lowered | None = None) -> None:  # fmt: skip
        self.bundle = bundle
        self._signatures, self._states, self._lowered = signatures or {}, states, lowered
        self._loaded: Any = None
        self._process = 0

    def __getstate__(self) -> dict[str, Any]:
        kept = {"bundle": self.bundle, "_signatures": self._signatures, "_states": self._states}
        return {**kept, "_values": self.module.state_dict() if self._states is not None and self._loaded is not None else None}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__init__(kept["bundle"], kept["_signatures"], kept["_states"])  # type: ignore[misc]
        if kept["_values"] is not None:
            self.module.load_state_dict(kept["_values"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the bundle: the file is there as a whole or not at all."""
        write_whole(os.fspath(path), self.bundle)

    @property
    def module(self) -> Any:
        """The loaded module (`astra_rt.Module`): states, weights, sessions, devices."""
        if self._loaded is None or self._process != os.getpid():
            self._loaded, self._process = astra_rt.load(self.bundle), os.getpid()
        return self._loaded

    def __call__(self, *args: Any, **named: Any) -> Any:
        names = list(self._signatures)
        name = "main" if "main" in names else names[0] if len(names) == 1 else None
        if name is None:
            raise ArgumentError(f"there is no entry 'main', and not just one; call one of {', '.join(names)}")
        return self._run(name, args, named)

    def __getitem__(self, name: str) -> Any:
        if name not in self._signatures:
            raise ArgumentError(f"there is no entry '{name}'; the entries are {', '.join(self._signatures)}")

        def function(*args: Any, **named: Any) -> Any:
            return self._run(name, args, named)

        function.__name__ = name
        return function

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._signatures:
            return self[name]
        raise AttributeError(f"a Compiled has no attribute or entry '{name}'")

    def _run(self, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        signature = self._signatures[name]
        if len(args) == signature.plain and not named and all(type(x) is Tensor or type(x) is np.ndarray for x in args):
            values = [x._realized() if type(x) is Tensor else x for x in args]
        else:
            values = [value_of(x) for x in signature.tensors(args, named)]
        made = self.module[name](*values)
        return results(signature.out_tree, made)

    @property
    def states(self) -> Any:
        """Copies of the states, as the tree that they were exported as."""
        values = self.module.state_dict()
        if self._states is None:
            return {n: of_value(v) for n, v in values.items()}
        return _tree.unflatten(self._states, [of_value(v) for v in values.values()])

    @states.setter
    def states(self, tree: Any) -> None:
        leaves, structure = _tree.flatten(tree)
        if structure != self._states:
            raise ArgumentError(f"the states have the structure {self._states}; these have {structure}")
        self.module.load_state_dict(dict(zip([s.name for s in self.module.states], map(value_of, leaves))))

    def as_text(self, dialect: str = "kernels", target: str | None = None) -> str:
        """"kernels": a line for each kernel, with its cost and the lines that it computes; else as `Lowered.as_text`."""
        if dialect == "kernels":
            return _analysis.listing(self.bundle)
        if self._lowered is None:
            raise ArgumentError("a bundle that was loaded or pickled has no text of the stages before it")
        return self._lowered.as_text(dialect, target)

    def cost_analysis(self, entry: str = "main", **dims: int) -> _analysis.Cost:
        """Operations and bytes of a call, and of each kernel: at the dims given, others at their upper bounds. What a `while` runs
        counts once."""
        return _analysis.cost(self.bundle, entry, dims)

    def memory_analysis(self, entry: str = "main", **dims: int) -> _analysis.Memory:
        """Bytes that a call takes: arena, states, params, inputs, outputs, and their sum, `peak`."""
        return _analysis.memory(self.bundle, entry, dims)

    def __repr__(self) -> str:
        return f"<astra.Compiled: {', '.join(self._signatures)}; {len(self.bundle):,} bytes>"


def value_of(x: Any) -> Any:
    """An argument as the runtime takes it."""
    return x._realized() if isinstance(x, Tensor) else asarray(x)._realized()


def results(out_tree: Any, made: Any) -> Any:
    """What the runtime gives as the tree of a function's result."""
    values = [] if made is None else list(made) if isinstance(made, tuple) else [made]
    return _tree.unflatten(out_tree, [of_value(v) for v in values])


def load(path: str | os.PathLike[str] | bytes, **options: Any) -> Any:
    """A saved bundle, ready to be called: `astra_rt.load`."""
    return astra_rt.load(path, **options)


def compile_file(path: str | os.PathLike[str], target: str | Sequence[str] | None = None, numerics: str = "strict", **options: Any) -> Compiled:
    """The bundle of a model in a file: ONNX (options as of `astra.from_onnx`) or the text form, `.uop`. numerics: see
    `Lowered.with_numerics`."""
    name = os.fspath(path)
    if name.endswith(".uop"):
        with open(name, encoding="utf-8") as file:
            module = call(_core.parse_uop, file.read(), name)
        for sentence in call(_core.verify_programs, module):
            warnings.warn(f"{name}: {sentence}", stacklevel=2)
        lowered = of_module(module)
        return lowered.compile(target, numerics=numerics)
    from ._onnx import from_onnx

    return from_onnx(name, **options).compile(target, numerics=numerics)


def of_module(module: Any) -> Lowered:
    """A module that no function was traced for: its entries are called with tensors, by place."""
    signatures = {}
    for e in module.entries:
        inputs = [(n, f"{t}[{', '.join(dims)}]") for n, t, dims in module.inputs(e)]
        s = signatures[e] = Signature(e, _tree.structure((tuple(0 for _ in inputs), {})), [], inputs)
        s.outputs = [(n, f"{t}[{', '.join(dims)}]") for n, t, dims in module.outputs(e)]
        s.out_tree = _tree.structure(0 if len(s.outputs) == 1 else tuple(0 for _ in s.outputs))
    return Lowered(module, signatures)


def verify(program: Any, *args: Any, entry: str = "main", by: Lowered | None = None, **named: Any) -> str:
    """Calls an entry, and computes the same by the reference evaluator, which is the meaning of the module: all results and states must
    have the same bytes. Gives their SHA-256; a difference is a MismatchError that names it. program: a Compiled; or a loaded bundle, with
    `by` the Lowered that it was compiled from."""
    import hashlib

    lowered = by if by is not None else getattr(program, "_lowered", None)
    if lowered is None:
        raise ArgumentError("verify needs the Lowered that the bundle was compiled from: by=lowered")
    module = program.module if isinstance(program, Compiled) else program
    signature = lowered._signatures.get(entry)
    if signature is None:
        raise ArgumentError(f"there is no entry '{entry}'; the entries are {', '.join(lowered._signatures)}")
    inputs = [value_of(x) for x in signature.tensors(args, named)]
    before = module.state_dict()
    made = module[entry](*inputs)
    found = [] if made is None else list(made) if isinstance(made, tuple) else [made]
    given = [_described(v) for v in inputs]
    outputs, states = call(lowered.module.evaluate, entry, given, {}, {n: _described(v) for n, v in before.items()})
    after = module.state_dict()
    digest = hashlib.sha256()
    pairs = [(f"result '{n}'", x, y) for (n, _), x, y in zip(signature.outputs, found, outputs)]
    pairs += [(f"state '{n}'", after[n], y) for n, y in states]
    for what, x, (dtype, shape, data) in pairs:
        if x.dtype != dtype or tuple(x.shape) != tuple(shape):
            raise MismatchError(f"{what} is {x.dtype}{list(x.shape)}; by the evaluator it is {dtype}{list(shape)}")
        if bytes(x.tobytes()) != data:
            raise MismatchError(f"{what} has other bytes than the evaluator's{_first_difference(x, of_bytes(dtype, shape, data))}")
        digest.update(data)
    return digest.hexdigest()


def _described(v: Any) -> tuple[Any, ...]:
    return v.dtype, list(v.shape), (v._address, v.nbytes)


def _first_difference(x: Any, y: Any) -> str:
    try:
        a, b = x.numpy().ravel(), y.numpy().ravel()
        size = a.dtype.itemsize
        differ = np.frombuffer(a.tobytes(), np.uint8).reshape(-1, size) != np.frombuffer(b.tobytes(), np.uint8).reshape(-1, size)
        at = int(np.flatnonzero(differ.any(axis=1))[0])
        return f": {int(differ.any(axis=1).sum())} of {a.size} elements, the first is element {at}: {a[at]!r}, by the evaluator {b[at]!r}"
    except (TypeError, Error, IndexError):
        return ""


__all__ = ["Compiled", "Lowered", "compile_file", "load", "verify"]
