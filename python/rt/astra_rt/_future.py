"""Calls that run on a thread of their own.

Takes:    an entry and its arguments.
Gives:    a Future, which a thread can wait for and asyncio can await.
Keeps:    calls of a session run one after the other, in the order in which they were asked for.
Does not: make a thread before the first such call.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Callable, Generator

if TYPE_CHECKING:
    import concurrent.futures

    from ._rt import Entry


class Worker:
    """The thread of a session."""

    def __init__(self) -> None:
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self._process = 0
        self._lock = threading.Lock()

    def submit(self, entry: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future:
        """Queues a call."""
        with self._lock:
            if self._pool is None or self._process != os.getpid():
                from concurrent.futures import ThreadPoolExecutor

                self._pool, self._process = ThreadPoolExecutor(1, thread_name_prefix="astra_rt"), os.getpid()
            return Future(self._pool.submit(entry, *args, **kwargs))

    def close(self) -> None:
        """Waits for what was queued, and ends the thread."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and self._process == os.getpid():
            pool.shutdown(wait=True)


class Future:
    """The result of a call that may still run. `await` it, or ask for its result()."""

    __slots__ = ("_future",)

    def __init__(self, future: concurrent.futures.Future[Any]) -> None:
        self._future = future

    @property
    def future(self) -> concurrent.futures.Future[Any]:
        """The same as a future of the standard library, for concurrent.futures.wait and what else asks for one."""
        return self._future

    def result(self, timeout: float | None = None) -> Any:
        """What the call gives, or the exception that it raised. TimeoutError after `timeout` seconds."""
        return self._future.result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The exception that the call raised, None if there was none."""
        return self._future.exception(timeout)

    def done(self) -> bool:
        """Whether the call has ended."""
        return self._future.done()

    def cancel(self) -> bool:
        """Takes the call back if it has not begun; False if it has."""
        return self._future.cancel()

    def add_done_callback(self, fn: Callable[[Future], object]) -> None:
        """Calls fn(self) when the call has ended."""
        self._future.add_done_callback(lambda _: fn(self))

    def __await__(self) -> Generator[Any, None, Any]:
        import asyncio

        return asyncio.wrap_future(self._future).__await__()

    def __repr__(self) -> str:
        return f"<astra_rt.Future {'done' if self.done() else 'pending'}>"


def call_async(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Future:
    """What Entry.async_call does."""
    worker: Worker = entry._info.worker
    return worker.submit(entry, args, kwargs or {})
