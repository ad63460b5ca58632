"""One peer in a process of its own, that answers over a pipe.

Takes:    the name of a peer and a number of threads; on stdin, requests, one JSON object a line:
            {"do": "load", "family": F, "row": R, "path": ONNX file, "outputs": FILE.npz}
            {"do": "run", "times": N}
Gives:    one JSON object a line: {"error": SENTENCE}, or for load the seconds that it and its first call took, for run
          the wall and CPU seconds of N calls after one that is not timed.
Keeps:    stdout for the answers: what the peer prints goes to stderr.
"""

import json
import os
import sys
import time
import traceback
from pathlib import Path

import numpy as np


def load(peer, request):
    import rows

    row = rows.find(request["family"], request["row"])
    case = row.case()
    if hasattr(peer, "build"):
        peer.build(case, Path(request["path"]))
    start = time.perf_counter()
    peer.load(row, case, request["path"])
    seconds = time.perf_counter() - start
    np.savez(request["outputs"], *peer.outputs())
    return {"seconds": seconds}


def run(peer, request):
    call = peer.run
    call()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(request["times"]):
        call()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def main():
    import importlib

    from peers import PEERS

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    entry = PEERS[sys.argv[1]]
    peer = importlib.import_module(f"peers.{entry.module}").Peer(int(sys.argv[2]), **entry.options)
    answers.write(json.dumps({"ready": True}) + "\n")
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"load": load, "run": run}[request["do"]](peer, request)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"[:300]}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
