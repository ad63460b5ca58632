"""One peer in a process of its own, that answers over a pipe.

Takes:    the name of a peer and a number of threads; on stdin, requests, one JSON object a line:
            {"do": "find", "family": F, "row": R}       makes the row's values
            {"do": "build", "path": ONNX file}          what it makes ahead of time
            {"do": "prepare"}                           imports what it needs for the row
            {"do": "load", "path": FILE}                the ONNX file, or what build made
            {"do": "outputs", "file": FILE.npz}         writes the results of the last call
            {"do": "run", "times": N, "parts": P}
Gives:    one JSON object a line: {"error": SENTENCE}, or for build the path of what was made, null if nothing; for load
          the seconds that it and its first call took; for run the wall and CPU seconds of each of P parts of N calls,
          after one call that is not timed.
Keeps:    stdout for the answers: what the peer prints goes to stderr.
"""

import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path

import numpy as np


class Worker:
    def __init__(self, peer):
        self.peer = peer

    def find(self, family, row):
        import rows

        self.row = rows.find(family, row)
        self.case = self.row.case()
        return {}

    def build(self, path):
        made = self.peer.build(self.row, self.case, Path(path)) if hasattr(self.peer, "build") else None
        return {"path": made and str(made)}

    def prepare(self):
        if hasattr(self.peer, "prepare"):
            self.peer.prepare(self.row)
        return {}

    def load(self, path):
        start = time.perf_counter()
        self.peer.load(self.row, self.case, path)
        return {"seconds": time.perf_counter() - start}

    def outputs(self, file):
        np.savez(file, *self.peer.outputs())
        return {}

    def run(self, times, parts):
        call, took = self.peer.run, []
        call()
        for _ in range(parts):
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(times):
                call()
            took.append((time.perf_counter() - wall, time.process_time() - cpu))
        return {"took": took}


def main():
    from peers import PEERS, WAYS

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    entry = {**PEERS, **WAYS}[sys.argv[1]]
    worker = Worker(importlib.import_module(f"peers.{entry.module}").Peer(int(sys.argv[2]), **entry.options))
    answers.write(json.dumps({"ready": True}) + "\n")
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"[:300]}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
