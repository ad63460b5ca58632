"""Ranks: this process among those that a launcher has started, and bundles for a mesh (docs/distributed.md).

    from astra_rt import ranks
    world = ranks.init()                      # under astra-launch, torchrun, srun or mpirun; alone the only rank
    model = world.load("chargpt.astra")
    loss = model.train_step(token=tokens, target=targets).loss

Takes:    the environment of a launcher; logical tensors, the same on every rank.
Gives:    rank, size, sums; modules whose entries take and give logical tensors.
Keeps:    every rank makes the same calls in the same order: a call of such a module, and reading its states, is of all ranks.
          What ranks are given is compared before the first call of each entry, and where states are loaded.
          A process joins once, and leaves when the interpreter ends or `leave` is called.
"""

from __future__ import annotations

import atexit
import os
from types import TracebackType
from typing import Any, Mapping

import numpy as np

from . import _rt
from ._convert import NARROW, NUMPY, as_input
from ._errors import ClosedError, DeviceError, DTypeError, NotFoundError, ShapeError, refusal
from ._hash import hash as digest
from ._info import TensorInfo, results_class
from ._module import Module, Source, load
from ._tensor import Tensor

_INPUT, _OUTPUT, _STATE = 0, 1, 2
_DIM = "shards"  # as the compiler calls the number of a rank's shards


class World:
    """The job: what `init` gives."""

    def __init__(self, rank: int, size: int, engine: str) -> None:
        self.rank, self.size, self.engine = rank, size, engine

    def barrier(self) -> None:
        """Returns when all ranks have called it."""
        _rt.job_barrier()

    def gather(self, data: bytes) -> list[bytes]:
        """The bytes of all ranks, in their order; they may have different lengths."""
        sizes = np.frombuffer(_rt.job_gather(np.uint64(len(data)).tobytes()), np.uint64)
        most = int(sizes.max())
        everything = _rt.job_gather(bytes(data).ljust(most, b"\0")) if most else b""
        return [everything[i * most : i * most + int(n)] for i, n in enumerate(sizes)]

    def require_same(self, given: Mapping[str, str]) -> None:
        """Refuses, on every rank, what ranks were given differently: texts, such as `astra_rt.hash` of a value, by what a sentence
        calls them. All ranks call it."""
        if not isinstance(given, Mapping):
            raise TypeError(f"require_same takes a dict of texts, such as {{'lr': '0.1'}}, and not {type(given).__name__}")
        for name, value in given.items():
            if not isinstance(name, str):
                raise TypeError(f"require_same takes texts by names that are str, and {name!r} is {type(name).__name__}")
            if not isinstance(value, str):
                raise TypeError(f"require_same takes texts, and '{name}' is {type(value).__name__}: give its str(), or astra_rt.hash of an array")
        if self.size == 1:
            return
        everyone = self.gather("\0".join(part for pair in given.items() for part in pair).encode())
        if all(data == everyone[0] for data in everyone):
            return
        texts = [data.decode().split("\0") for data in everyone]
        rows = [dict(zip(t[::2], t[1::2])) for t in texts]
        for name in dict.fromkeys(name for row in rows for name in row):
            others = [str(r) for r, row in enumerate(rows) if row.get(name) != rows[0].get(name)]
            if others:
                who = f"ranks {', '.join(others)} were" if len(others) > 1 else f"rank {others[0]} was"
                raise refusal(DeviceError, "ASTRA_PEER_DIFFERS", f"{who} given another {name} than rank 0: give all ranks the same")

    def sum(self, array: Any) -> Any:
        """The sum of all ranks' arrays, element by element, on every rank: by a tree over the ranks. Unlike the sums of a bundle it
        depends on how many ranks there are."""
        array = np.ascontiguousarray(array)
        names = [name for name, t in NUMPY.items() if np.dtype(t) == array.dtype]
        if not names:
            raise refusal(DTypeError, "ASTRA_WRONG_DTYPE", f"elements of {array.dtype} are not summed over ranks")
        return np.frombuffer(_rt.job_sum(names[0], array.tobytes()), array.dtype).reshape(array.shape)

    @property
    def counters(self) -> dict[str, int]:
        """What has moved: collectives, bytes sent and received, nanoseconds in collectives."""
        return _rt.job_counters()

    def load(self, source: Source, *, dims: Mapping[str, int] | None = None, **options: Any) -> MeshModule:
        """Loads a bundle for a mesh; `options` are those of astra_rt.load. All ranks load the same bundle."""
        return MeshModule(source, dims, options)

    def __enter__(self) -> World:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        leave()

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size}, {self.engine}>"


_world: World | None = None


def init(engine: str | None = None, *, timeout: float | None = None) -> World:
    """Joins the job that a launcher has started; gives the same World again once it has. A process that was started alone is the only rank.

    engine   "shm", "mpi" or "mpi:PATH"; None: the environment's ASTRA_ENGINE, or what fits the launcher
    timeout  seconds after which a rank that does not move is lost (Error with status "ASTRA_PEER_LOST"); None: the environment's
             ASTRA_RANKS_TIMEOUT, or 5"""
    global _world
    if _world is None:
        _world = World(*_rt.job_join(engine, max(1, int(timeout * 1000)) if timeout is not None else 0))
        atexit.register(leave)
    return _world


def leave() -> None:
    """Leaves the job: modules that were loaded for it are refused from now on."""
    global _world
    _world = None
    _rt.job_leave()


def world() -> World:
    """The job that this process has joined."""
    if _world is None:
        raise refusal(ClosedError, "CLOSED", "this process is not among the ranks of a job: call astra_rt.ranks.init first")
    return _world


def rank() -> int:
    """The number of this process, from 0."""
    return world().rank


def size() -> int:
    """How many ranks there are."""
    return world().size


# ---- a bundle on ranks


def _codes(dtype: str, name: str) -> Any:
    """The type of NumPy whose elements hold those of `dtype`."""
    if dtype in NARROW and NARROW[dtype][1] < 8:
        raise refusal(DTypeError, "ASTRA_WRONG_DTYPE", f"'{name}' has elements of less than a byte, which are not cut")
    return np.dtype(NARROW[dtype][2] if dtype in NARROW else NUMPY[dtype])


class _Cut:
    """How one tensor is cut; `parts` is None of one that is whole."""

    def __init__(self, mesh: _rt.Mesh, local: int, kind: int, entry: str | None, info: TensorInfo) -> None:
        self.mesh, self.local, self.key, self.info = mesh, local, (kind, entry, info.name), info
        self.parts = mesh.cut(kind, entry, info.name)

    @property
    def logical(self) -> TensorInfo:
        """The logical tensor."""
        if self.parts is None:
            return self.info
        lower, upper = (tuple(n * p for n, p in zip(bound[1:], self.parts)) for bound in (self.info.lower, self.info.upper))
        return self.info._replace(lower=lower, upper=upper)

    def take(self, value: Any, what: str) -> Any:
        """The part of this rank."""
        if self.parts is None:
            return value
        codes = _codes(self.info.dtype, self.info.name)
        if not isinstance(value, np.ndarray) or value.dtype != codes:
            value = as_input(value, self.info.dtype, what)
        if not isinstance(value, np.ndarray):
            if value.dtype != self.info.dtype:
                raise refusal(DTypeError, "ASTRA_WRONG_DTYPE", f"{what} has dtype {value.dtype}; it must be {self.info.dtype}")
            value = value._array()
        if value.dtype != codes:
            raise refusal(DTypeError, "ASTRA_WRONG_DTYPE", f"{what} has dtype {value.dtype}; it must be {self.info.dtype}")
        value = np.ascontiguousarray(value)
        if value.ndim != len(self.parts) or any(n % p for n, p in zip(value.shape, self.parts)):
            text = f"{what} has shape {value.shape}, which the mesh ({self.mesh.describe()[0]}) does not cut into {self.parts} equal parts"
            raise refusal(ShapeError, "ASTRA_WRONG_SHAPE", text)
        part = np.empty((self.local, *(n // p for n, p in zip(value.shape, self.parts))), codes)
        self.mesh.take(*self.key, codes.itemsize, value.shape, value.ctypes.data, part.ctypes.data, part.nbytes)
        return part

    def join(self, part: Tensor) -> Tensor:
        """The logical tensor of all ranks' parts."""
        if self.parts is None:
            return part
        codes = _codes(self.info.dtype, self.info.name)
        array = np.ascontiguousarray(part._array())
        shape = tuple(n * p for n, p in zip(part.shape[1:], self.parts))
        whole = np.empty(shape, codes)
        self.mesh.join(*self.key, codes.itemsize, shape, array.ctypes.data, whole.ctypes.data, whole.nbytes)
        return _rt.wrap(whole, self.info.dtype, shape)


class MeshEntry:
    """An entry of a bundle for a mesh: called on logical tensors by all ranks, it gives logical tensors."""

    def __init__(self, mesh: _rt.Mesh, local: int, entry: _rt.Entry) -> None:
        self.name, self._entry = entry.name, entry
        self._inputs = {i.name: _Cut(mesh, local, _INPUT, entry.name, i) for i in entry.inputs}
        self._outputs = [_Cut(mesh, local, _OUTPUT, entry.name, o) for o in entry.outputs]
        self._results: Any = results_class(tuple(o.info.name for o in self._outputs))
        self._is_compared = False

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The logical inputs."""
        return tuple(c.logical for c in self._inputs.values())

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """The logical outputs."""
        return tuple(c.logical for c in self._outputs)

    def _compare(self, values: dict[str, Any]) -> None:
        """Ranks that are given something else would compute what nobody asked for, or wait for each other."""
        if self._is_compared or world().size == 1:
            return
        given = {f"input {n} of {self.name}": digest(as_input(x, self._inputs[n].info.dtype, f"input {n}")) for n, x in values.items()}
        world().require_same({"entry": self.name, **given})
        self._is_compared = True

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        cuts = list(self._inputs.values())
        self._compare({**dict(zip(self._inputs, inputs)), **{n: x for n, x in named.items() if n in self._inputs}})
        given = [cuts[i].take(x, f"input {cuts[i].info.name}") if i < len(cuts) else x for i, x in enumerate(inputs)]
        named = {n: self._inputs[n].take(x, f"input {n}") if n in self._inputs else x for n, x in named.items()}
        if "out" in named and "out" not in self._inputs:
            raise TypeError("out= is memory of one rank, and the results are of all: call module.local for the parts of this rank")
        made = self._entry(*given, **named)
        if len(self._outputs) < 2:
            return self._outputs[0].join(made) if self._outputs else made
        return self._results(cut.join(value) for cut, value in zip(self._outputs, made))

    def __repr__(self) -> str:
        return f"<entry {self.name}({', '.join(map(str, self.inputs))}) -> ({', '.join(map(str, self.outputs))}) of all ranks>"


class MeshModule:
    """A bundle for a mesh on this rank: what `World.load` gives. `local` is the module of this rank's shards alone, whose tensors that
    are cut have the rank's shards as their first axis."""

    def __init__(self, source: Source, dims: Mapping[str, int] | None, options: dict[str, Any]) -> None:
        from ._module import read_source

        world()
        path, data = read_source(source)
        bundle = _rt.open(path, data, 0)
        self._mesh = _rt.mesh(bundle)
        self.axes, self.shards, self.local_shards = self._mesh.describe()
        world().require_same({f"dim {name}": str(n) for name, n in (dims or {}).items()})
        asked = [name for name, _, _, is_host, is_session in bundle.describe()["dims"] if is_host or is_session]
        own = {_DIM: self.local_shards} if _DIM in asked else {}
        self.local: Module = load(source, dims={**(dims or {}), **own} or None, **options)
        self._entries = {n: MeshEntry(self._mesh, self.local_shards, e) for n, e in self.local.entries.items() if n != "shards_init"}
        self._states = {s.name: _Cut(self._mesh, self.local_shards, _STATE, None, s) for s in self.local.states}
        self._begin()

    def _begin(self) -> None:
        """What states that are cut begin as, where that is not zeros."""
        if "shards_init" in self.local.entries:
            self.local["shards_init"]()

    @property
    def entries(self) -> dict[str, MeshEntry]:
        """The entries by name."""
        return dict(self._entries)

    def __getitem__(self, name: str) -> MeshEntry:
        if name not in self._entries:
            text = f"there is no entry '{name}'; the entries are {', '.join(self._entries)}"
            raise refusal(NotFoundError, "ASTRA_UNKNOWN_NAME", text)
        return self._entries[name]

    def __getattr__(self, name: str) -> Any:
        entries = self.__dict__.get("_entries", {})
        if name in entries:
            return entries[name]
        raise AttributeError(f"MeshModule has no attribute or entry '{name}'")

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return (self._entries.get("main") or self["main" if len(self._entries) != 1 else next(iter(self._entries))])(*inputs, **named)

    @property
    def states(self) -> tuple[TensorInfo, ...]:
        """The logical states."""
        return tuple(c.logical for c in self._states.values())

    def _state(self, name: str) -> _Cut:
        if name not in self._states:
            text = f"there is no state '{name}'; the states are {', '.join(self._states)}"
            raise refusal(NotFoundError, "ASTRA_UNKNOWN_NAME", text)
        return self._states[name]

    def get_state(self, name: str) -> Tensor:
        """A copy of a state, whole. All ranks call it."""
        return self._state(name).join(self.local.get_state(name))

    def set_state(self, name: str, value: Any) -> None:
        """Copies a whole tensor into a state, each rank its part."""
        self.local.set_state(name, self._state(name).take(value, f"state {name}"))

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of all states, whole. All ranks call it."""
        own = self.local.state_dict()
        return {name: self._states[name].join(value) for name, value in own.items()}

    def load_state_dict(self, states: Mapping[str, Any], strict: bool = True) -> None:
        """Sets states from logical tensors, as `Session.load_state_dict` does. All ranks call it."""
        if world().size > 1:
            known = {n: as_input(v, self._states[n].info.dtype, f"state {n}") for n, v in states.items() if n in self._states}
            world().require_same({f"state {n}": digest(v) for n, v in known.items()})
        self.local.load_state_dict({n: self._states[n].take(v, f"state {n}") if n in self._states else v for n, v in states.items()}, strict)

    def save_states(self, path: str | os.PathLike[str]) -> None:
        """Rank 0 writes all states, whole, into a .safetensors file; it is there when the call ends. All ranks call it."""
        from ._safetensors import write

        states = self.state_dict()
        if world().rank == 0:
            write(os.fspath(path), states)
        world().barrier()

    def load_states(self, path: str | os.PathLike[str], strict: bool = True) -> None:
        """Sets the states from a .safetensors file, or from an index of several (`NAME.safetensors.index.json`)."""
        from ._safetensors import read

        self.load_state_dict(read(os.fspath(path)), strict)

    def reset(self) -> None:
        """Every state gets its first value again. All ranks call it."""
        self.local.reset()
        self._begin()

    def close(self) -> None:
        """Frees the memory of this rank's session."""
        self.local.close()

    def __repr__(self) -> str:
        return f"<astra_rt.ranks.MeshModule '{self.local.name}' of mesh {self.axes}: {self.local_shards} of {self.shards} shards>"


__all__ = ["MeshEntry", "MeshModule", "World", "init", "leave", "rank", "size", "world"]
