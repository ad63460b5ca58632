"""Continuous batching: replies share the rows of one session, and come and go between steps.

Takes:    a model, replies to fill.
Gives:    pieces of text to whoever asked, as they arise.
Keeps:    a reply does not depend on who else is there (Rows). A long prompt is read chunk by chunk beside the others' steps.
          Replies begin in the order in which they came. All calls run on one thread.
Does not: know HTTP.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Callable

from .._errors import BusyError, refusal
from ._model import LanguageModel, Reply


@dataclass
class Job:
    """A reply in the making. `tell(piece, error)` is called on the batch's thread for each token, with an error at most once; the
    reply has ended when `reply.finish` is set, or with the error."""

    reply: Reply
    tell: Callable[[str, Exception | None], None]
    read: int = 0  # tokens of the prompt
    cancelled: bool = False


class Batch:
    def __init__(self, model: LanguageModel, room: int = 256) -> None:
        self._rows, self._room = model.rows(), room
        self._waiting: deque[Job] = deque()
        self._active: dict[int, Job] = {}
        self._drawn = 0
        self._wake, self._closing = threading.Condition(), False
        self._thread = threading.Thread(target=self._work, name="astra-batch", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Takes a job, or refuses it where too many wait."""
        with self._wake:
            if self._closing:
                raise refusal(BusyError, "ASTRA_BUSY", "the server is shutting down")
            if len(self._waiting) >= self._room:
                raise refusal(BusyError, "ASTRA_BUSY", f"{len(self._waiting)} requests wait already; try again later")
            self._waiting.append(job)
            self._wake.notify()

    def counts(self) -> dict[str, int]:
        """How many replies are made, how many wait, and how many tokens were drawn."""
        with self._wake:
            return {"active": len(self._active), "waiting": len(self._waiting), "tokens": self._drawn}

    def close(self) -> None:
        """Takes nothing more, and ends when every reply has."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def _work(self) -> None:
        while True:
            with self._wake:
                while not (self._waiting or self._active or self._closing):
                    self._wake.wait()
                if not (self._waiting or self._active):
                    return
                new = self._admit()
            try:
                if new:
                    self._rows.cut({row: 0 for row in new})
                self._step()
            except Exception as error:  # of the device, say: nobody's reply can go on
                for job in self._active.values():
                    job.tell("", error)
                self._active.clear()

    def _admit(self) -> list[int]:
        """Who has gone leaves; who waits gets a free row."""
        self._active = {row: job for row, job in self._active.items() if not job.cancelled}
        new = []
        for row in range(self._rows.batch):
            while self._waiting and self._waiting[0].cancelled:
                self._waiting.popleft()
            if row not in self._active and self._waiting:
                self._active[row] = self._waiting.popleft()
                new.append(row)
        return new

    def _step(self) -> None:
        """A chunk of each prompt that is not read yet; then a token of each of the others."""
        pieces = {}
        for row, job in self._active.items():
            if job.read < len(job.reply.prompt):
                pieces[row] = job.reply.prompt[job.read : job.read + self._rows.chunk]
        if pieces:
            self._rows.read(pieces)
            for row, piece in pieces.items():
                self._active[row].read += len(piece)
        ready = {row: job for row, job in self._active.items() if job.read == len(job.reply.prompt)}
        drawn = self._rows.draw({row: job.reply.sampling for row, job in ready.items()}) if ready else {}
        self._drawn += len(drawn)
        for row, (token, logprob) in drawn.items():
            job = ready[row]
            job.tell(job.reply.take(self._rows, row, token, logprob), None)
            if job.reply.finish:
                del self._active[row], ready[row]
        if ready:
            self._rows.step({row: job.reply.tokens[-1] for row, job in ready.items()})
