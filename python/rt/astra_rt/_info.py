"""What a bundle says of itself, as named tuples.

Takes:    the tuples of `_rt.Bundle.describe`.
Gives:    TensorInfo, DimInfo, TargetInfo, and EntryInfo, which an entry keeps.
Keeps:    texts in the form of Astra's own: "x: f32[1..64, 784]".
Does not: ask the runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import inspect

    from ._future import Worker


class TensorInfo(NamedTuple):
    """An input, output, param or state."""

    name: str
    dtype: str
    lower: tuple[int, ...]
    """The least extent of each axis that is legal."""
    upper: tuple[int, ...]
    """The largest; equal to `lower` where the extent is constant."""
    is_tap: bool

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.lower)

    @property
    def shape(self) -> str:
        """The shape as a text: "[1..64, 784]"."""
        axes = (str(low) if low == high else f"{low}..{high}" for low, high in zip(self.lower, self.upper))
        return f"[{', '.join(axes)}]"

    @property
    def is_constant(self) -> bool:
        """Whether there is one legal shape."""
        return self.lower == self.upper

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{self.shape if self.ndim else ''}"


class DimInfo(NamedTuple):
    """A named size. `is_host`: calls give it by name; `is_session`: it is given when a session is made; else inputs do."""

    name: str
    lower: int
    upper: int
    is_host: bool
    is_session: bool

    def __str__(self) -> str:
        return f"{self.name} in {self.lower}..{self.upper}"


class TargetInfo(NamedTuple):
    """Code in a bundle. `lacks`: what this machine lacks to run it, None if it can."""

    name: str
    lacks: str | None


class EntryInfo:
    """What an entry keeps of itself: names and types of inputs and outputs, its session's worker."""

    def __init__(self, name: str, inputs: list[Any], outputs: list[Any], states: list[str], worker: Worker) -> None:
        self.name = name
        self.inputs = tuple(TensorInfo(*i) for i in inputs)
        self.outputs = tuple(TensorInfo(*o) for o in outputs)
        self.states = tuple(states)
        self.worker = worker
        self.host_dims: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The entry in one line."""
        inputs, outputs = (", ".join(map(str, part)) for part in (self.inputs, self.outputs))
        return f"{self.name}({inputs}) -> ({outputs})"

    @property
    def signature(self) -> inspect.Signature:
        """For inspect.signature: inputs that are identifiers go by place or by name, host dims by name."""
        import inspect

        kind = inspect.Parameter
        parameters = []
        for number, i in enumerate(self.inputs):
            if i.name.isidentifier():
                parameters.append(kind(i.name, kind.POSITIONAL_OR_KEYWORD, annotation=f"{i.dtype}{i.shape}"))
            else:
                parameters.append(kind(f"input{number}", kind.POSITIONAL_ONLY, annotation=f"{i.dtype}{i.shape}"))
        first = next((k for k, p in enumerate(parameters) if p.kind == kind.POSITIONAL_OR_KEYWORD), len(parameters))
        if any(p.kind == kind.POSITIONAL_ONLY for p in parameters[first:]):
            parameters = [p.replace(kind=kind.POSITIONAL_ONLY) for p in parameters]
        out_is_free = "out" not in {*(i.name for i in self.inputs), *self.host_dims}
        if self.outputs and out_is_free:
            parameters.append(kind("out", kind.KEYWORD_ONLY, default=None))
        parameters += [kind(d, kind.KEYWORD_ONLY, default=None, annotation=int) for d in self.host_dims if d.isidentifier()]
        return inspect.Signature(parameters)


class Results(tuple[Any, ...]):
    """The outputs of an entry that has several: a tuple, whose elements also go by name: `r["y"]`, `r.y`."""

    __slots__ = ()
    _names: tuple[str, ...] = ()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self._names:
                raise KeyError(f"there is no output '{key}'; the outputs are {', '.join(self._names)}")
            return tuple.__getitem__(self, self._names.index(key))
        return tuple.__getitem__(self, key)

    def __getattr__(self, name: str) -> Any:
        if name in type(self)._names:
            return self[name]
        raise AttributeError(f"there is no output '{name}'; the outputs are {', '.join(self._names)}")

    def keys(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return self._names

    def asdict(self) -> dict[str, Any]:
        """The outputs by their names."""
        return dict(zip(self._names, self))

    def __repr__(self) -> str:
        return f"({', '.join(f'{n}={v!r}' for n, v in zip(self._names, self))})"

    def __reduce__(self) -> Any:
        return (tuple, (tuple(self),))


def results_class(names: tuple[str, ...]) -> type[Results]:
    """The class of an entry's results."""
    return type("Results", (Results,), {"_names": names, "__slots__": ()})
