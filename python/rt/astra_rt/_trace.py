"""What ran, kernel by kernel.

Takes:    a session's handle.
Gives:    a list of events, and a file for Perfetto or chrome://tracing.
Keeps:    times of CLOCK_MONOTONIC, in nanoseconds (time.monotonic_ns).
Does not: change a bit of the results.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ._errors import BusyError, refusal


class Event(NamedTuple):
    """A kernel, or a copy, that ran. bytes and flops are -1 where they are not known."""

    name: str
    begin_ns: int
    end_ns: int
    items: int
    bytes: int
    flops: int
    origins: tuple[str, ...]
    """The nodes of the model that it computes some of."""
    more_origins: int
    """How many nodes there are beside them, at least."""


_traced: set[int] = set()  # the handles of sessions that are traced


class Trace(list["Event"]):
    """The events of the calls inside of `with session.trace() as trace:`; they are there after it. One at a time."""

    def __init__(self, handle: Any) -> None:
        super().__init__()
        self._handle = handle

    def __enter__(self) -> Trace:
        if id(self._handle) in _traced:
            raise refusal(BusyError, "ASTRA_BUSY", "the session is traced already; end that trace first")
        self._handle.take_trace()
        self._handle.set_trace(True)
        _traced.add(id(self._handle))
        return self

    def __exit__(self, *_: object) -> None:
        _traced.discard(id(self._handle))
        if not self._handle.closed:
            self._handle.set_trace(False)
        self.extend(Event(e[0], e[1], e[2], e[3], e[4], e[5], tuple(e[6]), e[7]) for e in self._handle.take_trace())

    def save(self, path: str) -> None:
        """Writes the events for Perfetto (Chrome's JSON)."""
        import json

        rows = [{"name": e.name, "ph": "X", "pid": 0, "tid": 0, "ts": e.begin_ns / 1000, "dur": (e.end_ns - e.begin_ns) / 1000,
                 "args": {"items": e.items, "bytes": e.bytes, "flops": e.flops, "origins": list(e.origins)}} for e in self]  # fmt: skip
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": rows}, file)
