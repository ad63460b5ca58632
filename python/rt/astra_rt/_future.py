"""Calls that nobody waits for yet.

Takes:    an entry and its arguments.
Gives:    a Future, which a thread can wait for and asyncio can await.
Keeps:    calls of a session run one after the other, in the order in which they were asked for. A call that may begin at
          once on threads of the device is submitted by who asks, and its end wakes the event loop: no thread waits for it. Any
          other has a thread of the session, which is made for the first of them.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Generator

from . import _rt

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures

    from ._rt import Entry


class Worker:
    """The calls of a session that are not awaited yet, and its thread."""

    def __init__(self) -> None:
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self._process = 0
        self._queued = 0  # on the thread, not ended
        self._lock = threading.RLock()  # converting an argument may run anything

    def submit(self, entry: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future:
        """Begins a call, or queues it."""
        with self._lock:
            if not self._queued and (module := sys.modules.get("asyncio")) and module._get_running_loop():
                try:
                    pending = _rt.begin(entry, args, kwargs)
                except Exception as error:
                    return Future(_failed(error))
                if pending is not None:
                    return Started(pending, self)
        return Future(self.run(entry, *args, **kwargs))

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        """Has the thread call a function."""
        with self._lock:
            if self._pool is None or self._process != os.getpid():
                from concurrent.futures import ThreadPoolExecutor

                self._pool, self._process, self._queued = ThreadPoolExecutor(1, thread_name_prefix="astra_rt"), os.getpid(), 0
            future = self._pool.submit(function, *args, **kwargs)
            self._queued += 1
        future.add_done_callback(self._ended)
        return future

    def _ended(self, _: object) -> None:
        with self._lock:
            self._queued -= 1

    def close(self) -> None:
        """Waits for what was queued, and ends the thread."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and self._process == os.getpid():
            pool.shutdown(wait=True)


def _failed(error: Exception) -> concurrent.futures.Future[Any]:
    import concurrent.futures

    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    future.set_exception(error)
    return future


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


class Started(Future):
    """A call that its session is held for until it has ended."""

    __slots__ = ("_pending", "_worker", "_taken", "_value", "_error", "_cancelled")

    def __init__(self, pending: _rt.Pending, worker: Worker) -> None:
        self._pending, self._worker = pending, worker
        self._taken = threading.Lock()
        self._future = None  # type: ignore[assignment]  # one of the standard library, when somebody asks
        self._value: Any = None
        self._error: BaseException | None = None
        self._cancelled = False

    def _take(self) -> None:
        """Of a call that has ended: what it gave."""
        with self._taken:
            if self._pending is None:
                return
            try:
                self._value = self._pending.result()
            except BaseException as error:
                self._error = error
            if self._cancelled:
                import concurrent.futures

                self._error = concurrent.futures.CancelledError()
            self._pending = None  # type: ignore[assignment]

    def _wait(self, timeout: float | None) -> None:
        pending = self._pending
        if pending is not None and not pending.wait(timeout):
            from concurrent.futures import TimeoutError

            raise TimeoutError
        self._take()

    @property
    def future(self) -> concurrent.futures.Future[Any]:
        if self._future is None:
            self._future = self._worker.run(self.result)
        return self._future

    def result(self, timeout: float | None = None) -> Any:
        self._wait(timeout)
        if self._error is not None:
            raise self._error
        return self._value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._wait(timeout)
        if self._cancelled and self._error is not None:
            raise self._error
        return self._error

    def done(self) -> bool:
        pending = self._pending
        return pending is None or pending.done()

    def cancel(self) -> bool:
        pending = self._pending
        if pending is not None and not self._cancelled:
            self._cancelled = pending.cancel()
        return self._cancelled

    def add_done_callback(self, fn: Callable[[Future], object]) -> None:
        self.future.add_done_callback(lambda _: fn(self))

    def __await__(self) -> Generator[Any, None, Any]:
        import asyncio

        pending = self._pending
        if pending is not None and not pending.done():
            hub = _hub_of(asyncio.get_running_loop())
            number, ended = hub.expect()
            if pending.notify(hub.ready, number):
                try:
                    yield from ended
                except asyncio.CancelledError:
                    self.cancel()
                    raise
                finally:
                    hub.expected.pop(number, None)
            else:
                del hub.expected[number]
        self._take()
        if self._cancelled:
            raise asyncio.CancelledError
        return self.result()


class _Hub:
    """What an event loop is told: the futures that wait for calls, by numbers. The loop's reader is its one owner."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.ready, self.last = loop, _rt.ready(), 0
        self.expected: dict[int, asyncio.Future[None]] = {}
        loop.add_reader(self.ready.fileno(), self.wake)

    def expect(self) -> tuple[int, asyncio.Future[None]]:
        self.last += 1
        future = self.expected[self.last] = self.loop.create_future()
        return self.last, future

    def wake(self) -> None:
        for number in self.ready.drain():
            future = self.expected.pop(number, None)
            if future is not None and not future.done():
                future.set_result(None)


_hubs: Any = None


def _hub_of(loop: asyncio.AbstractEventLoop) -> _Hub:
    import weakref

    global _hubs
    if _hubs is None:
        _hubs = weakref.WeakKeyDictionary()
    known = _hubs.get(loop)
    hub: _Hub | None = known() if known is not None else None
    if hub is None:
        hub = _Hub(loop)
        _hubs[loop] = weakref.ref(hub)
    return hub


def call_async(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Future:
    """What Entry.async_call does."""
    worker: Worker = entry._info.worker
    return worker.submit(entry, args, kwargs or {})
