"""Dynamic batching: requests that come together run together.

Takes:    a function that runs a batch; the most rows of one; how long a request waits for others; how many rows may wait.
Gives:    to each request its own rows of the outputs.
Keeps:    requests share a batch only if their arrays agree in all but axis 0. One batch runs at a time, on a thread, while the
          next one gathers. A batch that fails is run again request by request, so each gets its own error.
Does not: compute rows differently in a batch: that is the engine's promise, or not.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections import deque
from typing import Any, Callable, NamedTuple

import numpy as np


class Refused(Exception):
    """There is no room, or the server ends."""


class Request(NamedTuple):
    arrays: list[Any]
    rows: int
    due: float
    future: asyncio.Future[list[Any]]


class Batcher:
    def __init__(self, run: Callable[[list[Any]], list[Any]], most: int, wait: float, room: int) -> None:
        self._run, self._most, self._wait, self._room = run, most, wait, room
        self._loop = asyncio.get_running_loop()
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "batch")
        self._groups: dict[Any, deque[Request]] = {}  # by the shapes without axis 0
        self.waiting = 0  # rows
        self._busy = self._closing = False
        self._idle = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self.batches = self.rows = 0

    async def submit(self, arrays: list[Any]) -> list[Any]:
        """The outputs of these rows."""
        rows = len(arrays[0])
        if self._closing:
            raise Refused("the server is shutting down")
        if self.waiting + rows > self._room:
            raise Refused(f"{self.waiting} rows wait already and there is room for {self._room}; try again later")
        request = Request(arrays, rows, self._loop.time() + self._wait, self._loop.create_future())
        self._groups.setdefault(tuple(a.shape[1:] for a in arrays), deque()).append(request)
        self.waiting += rows
        self._look()
        return await request.future

    def _look(self) -> None:
        """Starts a batch if none runs and one is full or has waited long enough; else comes back when it has."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._busy:
            return
        if not self._groups:
            self._idle.set()
            return
        now = self._loop.time()
        for key, group in self._groups.items():
            if self._closing or group[0].due <= now or sum(r.rows for r in group) >= self._most:
                self._busy = True
                self._idle.clear()
                self._loop.create_task(self._serve(self._take(key)))
                return
        self._timer = self._loop.call_at(min(g[0].due for g in self._groups.values()), self._look)

    def _take(self, key: Any) -> list[Request]:
        """The oldest requests of a group, as many as fit; what stays goes behind the other groups."""
        group, rows = self._groups.pop(key), 0
        taken: list[Request] = []
        while group and (not taken or rows + group[0].rows <= self._most):
            taken.append(group.popleft())
            rows += taken[-1].rows
        if group:
            self._groups[key] = group
        self.waiting -= rows
        return taken

    async def _serve(self, requests: list[Request]) -> None:
        requests = [r for r in requests if not r.future.done()]  # a client may have gone
        batches = [requests] if requests else []
        while batches:
            batch = batches.pop(0)
            try:
                results: list[Any] = await self._loop.run_in_executor(self._thread, self._call, batch)
            except Exception as error:
                if len(batch) > 1:
                    batches = [[r] for r in batch]
                    continue
                results = [error]
            for request, result in zip(batch, results):
                if request.future.done():
                    continue
                if isinstance(result, Exception):
                    request.future.set_exception(result)
                else:
                    request.future.set_result(result)
        self._busy = False
        self._look()

    def _call(self, batch: list[Request]) -> list[list[Any]]:
        """Runs on the thread."""
        parts = list(zip(*(r.arrays for r in batch)))
        outputs = self._run([np.concatenate(p) if len(p) > 1 else p[0] for p in parts])
        self.batches, self.rows = self.batches + 1, self.rows + sum(r.rows for r in batch)
        results, begin = [], 0
        for request in batch:
            results.append([o[begin : begin + request.rows] for o in outputs])
            begin += request.rows
        return results

    async def close(self) -> None:
        """Takes nothing more, and runs what waits."""
        self._closing = True
        self._look()
        await self._idle.wait()
        self._thread.shutdown()
