"""Modules and sessions: a loaded bundle as an object.

Takes:    a path or bytes; names of entries, states, params, dims.
Gives:    Module, Session, load, devices.
Keeps:    what is asked of a session while a call is in flight waits for its end.
Does not: stand in the way of a call: an entry's call goes from the interpreter into C++.
"""

from __future__ import annotations

import os
import pickle
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Union

from . import _rt
from ._convert import as_input
from ._errors import ArgumentError, DTypeError, NotFoundError, ShapeError, refusal
from ._future import Future, Worker
from ._info import DimInfo, EntryInfo, TargetInfo, TensorInfo, results_class
from ._trace import Trace

if TYPE_CHECKING:
    from ._rt import Entry
    from ._tensor import Tensor

Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]
_VERIFY_ALL, _REQUIRE_STRICT = 1, 4


def _names(names: Any) -> str:
    return ", ".join(f"'{n}'" for n in names) or "none"


class Session(_rt.Callable):
    """States, memory and sizes for calls of a module: one call at a time; threads that share it take turns.

    `session(x)` calls the entry "main" (or the only one); `session["train_step"](...)` or `session.train_step(...)`
    another. Sessions of one module share code and weights and run beside each other."""

    __slots__ = ("_loaded", "_handle", "_about", "_entries", "_worker", "_shapes", "__weakref__")
    _target: Any

    def __init__(self, loaded: _rt.Loaded, about: dict[str, Any], dims: Mapping[str, int] | None) -> None:
        self._loaded, self._about = loaded, about
        self._handle = loaded.session(dict(dims or {}))
        self._worker = Worker()
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._entries: dict[str, Entry] = {}
        for number, (name, inputs, outputs, states, _) in enumerate(about["entries"]):
            entry = self._handle.entry(number)
            info = EntryInfo(name, inputs, outputs, states, self._worker)
            info.host_dims = tuple(d[0] for d in about["dims"] if d[3])
            entry._info = info
            if len(info.outputs) > 1:
                entry._result_class = results_class(tuple(o.name for o in info.outputs))
            self._entries[name] = entry
        self._target = self._entries.get("main") or (entry if len(self._entries) == 1 else None)

    # Entries

    @property
    def entries(self) -> dict[str, Entry]:
        """The entries by name: callables with `name`, `inputs`, `outputs`, `states`, `async_call`."""
        return dict(self._entries)

    def __getitem__(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except KeyError:
            text = f"there is no entry '{name}'; the entries are {_names(self._entries)}"
            raise refusal(NotFoundError, "ASTRA_UNKNOWN_NAME", text) from None

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "_entries")[name]
        except (KeyError, AttributeError):
            raise AttributeError(f"{type(self).__name__} has no attribute or entry '{name}'") from None

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *(n for n in self._entries if n.isidentifier())})

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The inputs of the entry that a call of this calls."""
        return self._main().inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """The outputs of the entry that a call of this calls."""
        return self._main().outputs

    def _main(self) -> Entry:
        if self._target is None:
            text = f"there is no entry 'main', and not just one; name one of {_names(self._entries)}"
            raise refusal(NotFoundError, "ASTRA_UNKNOWN_NAME", text)
        return self._target  # type: ignore[no-any-return]

    def async_call(self, *inputs: Any, **named: Any) -> Future:
        """Begins a call of the main entry; gives a Future at once: `await` it, or ask for its result().
        Calls run in the order in which they were asked for. Inputs must stay as they are until the call has ended."""
        return self._worker.submit(self._main(), inputs, named)

    def set_dim(self, name: str, value: int) -> None:
        """Sets a host dim for the calls that follow; a call may give it by name too."""
        self._handle.set_dim(name, value)

    # States

    @property
    def states(self) -> tuple[TensorInfo, ...]:
        """The states, which calls read and write."""
        return tuple(TensorInfo(*s) for s in self._about["states"])

    def _state(self, name: str) -> TensorInfo:
        for row in self._about["states"]:
            if row[0] == name:
                return TensorInfo(*row)
        text = f"there is no state '{name}'; the states are {_names(s[0] for s in self._about['states'])}"
        raise refusal(NotFoundError, "ASTRA_UNKNOWN_NAME", text)

    def _shape(self, info: TensorInfo) -> tuple[int, ...]:
        """The shape of a state in this session: of an axis whose extent depends on dims, what fits its bytes."""
        if info.is_constant:
            return info.lower
        known = self._shapes.get(info.name)
        if known is None:
            known = self._shapes[info.name] = self._find_shape(info)
        return known

    def _find_shape(self, info: TensorInfo) -> tuple[int, ...]:
        total = self._handle.state_bytes(info.name)
        for shape in _shapes_of(info, total):
            try:
                self._handle.get_states([(info.name, info.dtype, shape)])
            except ShapeError:
                continue
            return shape
        raise refusal(ShapeError, "ASTRA_WRONG_SHAPE", f"the shape of state '{info.name}' cannot be found")

    def get_state(self, name: str) -> Tensor:
        """A copy of a state."""
        info = self._state(name)
        return self._handle.get_states([(name, info.dtype, self._shape(info))])[0]

    def set_state(self, name: str, value: Any) -> None:
        """Copies a tensor into a state."""
        self._handle.set_states([(name, self._state(name).dtype, value)])

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of all states by name, of one moment: no call of another thread comes between."""
        states = self.states
        values = self._handle.get_states([(s.name, s.dtype, self._shape(s)) for s in states])
        return {s.name: value for s, value in zip(states, values)}

    def load_state_dict(self, states: Mapping[str, Any], strict: bool = True) -> None:
        """Sets states by name. With `strict` the names must be those of the bundle; without, others are passed over and
        states that are missing stay. Everything is checked before the first state changes, and no call of another thread comes
        between."""
        infos = {s.name: s for s in self.states}
        missing, others = [n for n in infos if n not in states], [n for n in states if n not in infos]
        if strict and (missing or others):
            text = f"the names are not those of the states: missing {_names(missing)}; unknown {_names(others)}"
            raise refusal(NotFoundError, "ASTRA_UNKNOWN_NAME", text)
        ready = []
        for name, info in infos.items():
            if name not in states:
                continue
            value = as_input(states[name], info.dtype, f"state {name}") if _is_foreign(states[name]) else states[name]
            if tuple(value.shape) != self._shape(info):
                text = f"state {name} has shape {tuple(value.shape)}; it must be {self._shape(info)}"
                raise refusal(ShapeError, "ASTRA_WRONG_SHAPE", text)
            if not isinstance(value, _rt.Tensor):
                value = as_input(value, info.dtype, f"state {name}")
            elif value.dtype != info.dtype:
                raise refusal(DTypeError, "ASTRA_WRONG_DTYPE", f"state {name} has dtype {value.dtype}; it must be {info.dtype}")
            ready.append((name, info.dtype, value))
        self._handle.set_states(ready)

    def reset(self) -> None:
        """Every state gets its first value again."""
        self._handle.reset()

    def save_states(self, path: str | os.PathLike[str]) -> None:
        """Writes all states into a .safetensors file, as `astra-run --save-states` does."""
        from ._safetensors import write

        write(os.fspath(path), self.state_dict())

    def load_states(self, path: str | os.PathLike[str], strict: bool = True) -> None:
        """Sets the states from a .safetensors file."""
        from ._safetensors import read

        self.load_state_dict(read(os.fspath(path)), strict)

    # Params

    @property
    def params(self) -> tuple[TensorInfo, ...]:
        """The params that may be replaced."""
        return tuple(TensorInfo(*p) for p in self._about["params"])

    def _param(self, name: str) -> TensorInfo:
        for row in self._about["params"]:
            if row[0] == name:
                return TensorInfo(*row)
        text = f"there is no param '{name}'; the params are {_names(p[0] for p in self._about['params'])}"
        raise refusal(NotFoundError, "ASTRA_UNKNOWN_NAME", text)

    def set_param(self, name: str, value: Any) -> None:
        """Replaces a param for this session alone, from the next call on."""
        self._handle.set_param(name, self._param(name).dtype, value)

    # The rest

    def trace(self) -> Trace:
        """`with session.trace() as trace: session(x)`: afterwards `trace` is the list of the kernels that ran."""
        return Trace(self._handle)

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return self._handle.closed

    def close(self) -> None:
        """Waits for calls in flight and frees the session's memory. Tensors that it gave stay. A call of a closed session is
        a ClosedError."""
        self._worker.close()
        self._handle.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise pickle.PicklingError("a session has no form of its own in a pickle; pickle its module, or its state_dict()")

    def __repr__(self) -> str:
        return f"<astra_rt.{type(self).__name__} {self._text()}>"

    def _text(self) -> str:
        entries = "; ".join(e._info.text for e in self._entries.values())
        return f"'{self._about['module']}' on {self._loaded.target}{', closed' if self.closed else ''}: {entries}"


def _is_foreign(value: Any) -> bool:
    """Whether it has no shape and dtype that can be looked at before it is converted."""
    import numpy as np

    return not isinstance(value, (_rt.Tensor, np.ndarray))


def _shapes_of(info: TensorInfo, total: int) -> Iterator[tuple[int, ...]]:
    """The shapes within a state's bounds that take `total` bytes."""
    from ._convert import NARROW, NUMPY

    bits = NARROW[info.dtype][1] if info.dtype in NARROW else 8 * NUMPY[info.dtype]().itemsize

    def fit(axis: int, left: int) -> Iterator[tuple[int, ...]]:
        low, high = info.lower[axis], info.upper[axis]
        last = axis + 1 == info.ndim
        if last and bits >= 8:
            if left % (bits // 8) == 0 and low <= left // (bits // 8) <= high:
                yield (left // (bits // 8),)
            return
        for extent in range(low, high + 1):
            if last:
                if (extent * bits + 7) // 8 == left:
                    yield (extent,)
            elif extent and left % extent == 0:
                for rest in fit(axis + 1, left // extent):
                    yield (extent, *rest)

    if total:
        yield from fit(0, total)


class Module(Session):
    """A bundle on a device, with a session of its own: `module(x)`, `module.train_step(...)`, `module["entry"](...)`.

    Made by `load`. It can be pickled: by its path (or bytes), options and states. In a forked process it refuses
    (ForkedError): load it again there."""

    __slots__ = ("_bundle", "_source", "_options", "_replaced")

    def __init__(self, source: Source, options: dict[str, Any]) -> None:
        path, data = read_source(source)
        self._source = os.path.abspath(os.fsdecode(path)) if path is not None else data
        self._options, self._replaced = options, False
        flags = (_VERIFY_ALL if options["verify"] else 0) | (_REQUIRE_STRICT if options["strict"] else 0)
        self._bundle = _rt.open(path, data, flags)
        about = self._bundle.describe()
        loaded = self._bundle.load(options["device"], options["threads"], options["level"])
        dims = options["dims"] or {}
        for name in dims:
            if all(name != d[0] for d in about["dims"]):
                text = f"there is no dim '{name}'; the dims are {_names(d[0] for d in about['dims'])}"
                raise refusal(NotFoundError, "ASTRA_UNKNOWN_NAME", text)
        try:
            super().__init__(loaded, about, dims)
        except ArgumentError as error:
            if error.status == "ASTRA_MISSING_VALUE":
                wanted = ", ".join(str(DimInfo(*d)) for d in about["dims"] if d[4] and d[0] not in dims)
                raise refusal(ArgumentError, error.status, f"load needs dims={{...}} with a value of: {wanted}") from None
            raise

    @property
    def name(self) -> str:
        """The name of the model."""
        return str(self._about["module"])

    def asset(self, name: str) -> bytes:
        """A file that came with the model, as "tokenizer"."""
        return self._bundle.asset(name)

    @property
    def path(self) -> str | None:
        """Where the bundle is; None if it came from bytes."""
        return self._source if isinstance(self._source, str) else None

    @property
    def target(self) -> str:
        """The target whose code runs, as "cpu:x86-64-v3"."""
        return self._loaded.target

    @property
    def device(self) -> str:
        """The device: "cpu", "cuda:0", ..."""
        return str(self._options["device"])

    @property
    def threads(self) -> int:
        """How many threads a call may use."""
        return int(self._options["threads"])

    @property
    def contract(self) -> str:
        """The numeric contract that the bits follow, as "astra-num/1"."""
        return str(self._about["contract"])

    @property
    def targets(self) -> tuple[TargetInfo, ...]:
        """The targets in the bundle, and what this machine lacks for each."""
        return tuple(TargetInfo(*t) for t in self._about["targets"])

    @property
    def dims(self) -> tuple[DimInfo, ...]:
        """The named sizes."""
        return tuple(DimInfo(*d) for d in self._about["dims"])

    def session(self, **dims: int) -> Session:
        """Another session of this module: states of its own, the same code and weights. Sessions run beside each other, one
        in each thread. Keywords are values of session dims."""
        return Session(self._loaded, self._about, {**(self._options["dims"] or {}), **dims})

    def set_param(self, name: str, value: Any) -> None:
        """Replaces a param for every session, from the next call on; BusyError while a call is in flight."""
        self._loaded.set_param(name, self._param(name).dtype, value)
        self._replaced = True

    def pool_stats(self) -> dict[str, int]:
        """Of the memory that outputs come from: bytes held and in use, and how many requests took fresh memory."""
        return self._loaded.pool_stats()

    def trim(self) -> None:
        """Gives memory that no output uses back to the system."""
        self._loaded.trim()

    def __reduce__(self) -> Any:
        if self._replaced:
            raise pickle.PicklingError("params of the module were replaced, which its file does not have; set them after loading")
        if self.closed:
            raise pickle.PicklingError("the module is closed")
        return (_restore, (self._source, self._options, self.state_dict()))

    def _text(self) -> str:
        where = f" from {self._source}" if isinstance(self._source, str) else ""
        return super()._text().replace("' on ", f"'{where} on ", 1)


def _restore(source: Source, options: dict[str, Any], states: dict[str, Tensor]) -> Module:
    """What pickle calls."""
    module = Module(source, options)
    if states:
        module.load_state_dict(states)
    return module


def read_source(source: Source) -> tuple[bytes | None, bytes | None]:
    """The name of a file that there is, as the system has it, or the content of one."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return None, bytes(source)
    try:
        path = os.fspath(source)
    except TypeError:
        raise TypeError(f"load takes a path or the bytes of a bundle, not {type(source).__name__}") from None
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder, not a bundle")
    with open(path, "rb"):  # FileNotFoundError, PermissionError
        return os.fsencode(path), None


def load(source: Source, *, device: str = "cpu", threads: int = 1, level: str | None = None,
         dims: Mapping[str, int] | None = None, verify: bool = False, strict: bool = False) -> Module:  # fmt: skip
    """Loads a bundle: a path, or its bytes.

    device   "cpu", "cuda:0", "hip:0" (see `devices`)
    threads  how many threads a call may use; 1 makes none. It never changes a bit of the results
    level    the CPU level to use, as "x86-64-v3"; None: the best that this CPU has
    dims     values of session dims, and first values of host dims
    verify   hash all code and the weights, not only what is used
    strict   refuse a bundle that was not built under the strict numeric contract

    Code is trusted once its hash is right: load only files that you would run."""
    if isinstance(threads, bool) or not isinstance(threads, int):
        raise TypeError(f"threads must be a number, not {type(threads).__name__}")
    if not 1 <= threads <= 4096:
        raise ValueError(f"threads is {threads}; it must be in 1 .. 4096")
    options = {"device": device, "threads": threads, "level": level, "dims": dict(dims) if dims else None,
               "verify": bool(verify), "strict": bool(strict)}  # fmt: skip
    return Module(source, options)


def devices() -> list[str]:
    """The names that `load` takes as device here: "cpu", and GPUs whose driver can be opened."""
    found = ["cpu"]
    for kind in ("cuda", "hip"):
        number = 0
        while _rt.probe(f"{kind}:{number}") is None:
            found.append(f"{kind}:{number}")
            number += 1
    return found
