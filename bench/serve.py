#!/usr/bin/env python3
"""What a service over HTTP answers in a second, and how soon: examples/python/serve with astra_rt and with ONNX Runtime behind it.

usage: PYTHONPATH=build/python build/venv/bin/python bench/serve.py [--models digits,minilm] [--connections 1,8,32] [--seconds N]
                                                                   [--rounds N] [--wait-ms X] [--threads N]
Takes:    build/bin/astra-compile, the module astra_rt, onnxruntime, fastapi, uvicorn, the program wrk. minilm: build/sentence/minilm.onnx,
          which examples/sentence/run.sh exports.
Gives:    a table: answers a second, the latencies that half and 99 of 100 stay below, the time of the processor that an answer takes in
          the service (which others on the machine disturb little), rows in a batch; medians of the rounds, of the last two the mean.
Keeps:    both engines run in the same rounds, turn and turn about, each behind the same application in a process of its own; their answers
          agree, or nothing is measured; a round with an answer that is no 200 is an error.
Does not: measure a network: client and service share the machine.
"""

import argparse
import contextlib
import http.client
import io
import json
import math
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
# The ONNX file, the bounds of its dims, the sizes of a request, a row.
MODELS = {
    "digits": (ROOT / "examples/digits/digits.onnx", {"batch": "1..64"}, "an image of 8 x 8, two convolutions"),
    "minilm": (ROOT / "build/sentence/minilm.onnx", {"batch": "1..64", "length": "2..256"}, "a sentence of 16 tokens, 6 layers of 384"),
}
LENGTH = 16
NPY = "application/x-npy"
SCRIPT = """
wrk.method = "POST"
wrk.body = io.open("{body}", "rb"):read("*a")
wrk.headers["Content-Type"] = "application/x-npy"
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d\\n", summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
                         e.connect + e.read + e.write + e.status + e.timeout))
end
"""


class Server:
    """The application with an engine, in a process of its own."""

    def __init__(self, engine, model, options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = [f"--engine={engine}", f"--port={self.port}", f"--threads={options.threads}", f"--max-wait-ms={options.wait_ms}", "--max-batch=64"]
        self.process = subprocess.Popen([sys.executable, ROOT / "examples/python/serve/app.py", model, *words])
        for _ in range(600):
            with contextlib.suppress(OSError):
                self.about = json.loads(self.ask("GET", "/metadata"))
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        sys.exit(f"bench/serve.py: the service with {engine} does not start")

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, {"content-type": NPY})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if answer.status != 200:
            sys.exit(f"bench/serve.py: {method} {path}: {answer.status} {data.decode(errors='replace')}")
        return data

    def load(self, script, connections, seconds):
        """Answers a second, and two latencies in milliseconds."""
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout=30s", "-s", script, f"http://127.0.0.1:{self.port}/predict"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        requests, micros, half, most, errors = map(int, said.split("RESULT ")[1].split())
        if errors:
            sys.exit(f"bench/serve.py: {errors} of {requests} requests failed")
        return requests / micros * 1e6, half / 1e3, most / 1e3

    def counters(self):
        """Rows and batches so far, and milliseconds of the processor."""
        health = json.loads(self.ask("GET", "/health"))
        times = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()[11:13]
        return health["rows"], health["batches"], sum(map(int, times)) * 1000 / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def body_of(inputs):
    """A request of one row: ids of tokens, a mask of ones, noise."""
    random, stream = np.random.default_rng(1), io.BytesIO()
    for i in inputs:
        shape = [1, *(extent if isinstance(extent, int) else LENGTH for extent in i["shape"][1:])]
        if i["dtype"][0] == "i":
            values = np.ones(shape, np.int64) if "mask" in i["name"] else random.integers(1000, 20000, shape)
            values = values.astype(i["dtype"].replace("i", "int"))
        else:
            values = random.standard_normal(shape, np.float32).astype(i["dtype"].replace("f", "float"))
        np.save(stream, values)
    return stream.getvalue()


def agree(one, other):
    streams = io.BytesIO(one), io.BytesIO(other)
    while streams[0].tell() < len(one):
        a, b = (np.load(s) for s in streams)
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-3, atol=1e-4):
            return False
    return streams[1].tell() == len(other)


def measure(name, options, folder):
    source, dims, row = MODELS[name]
    bundle = folder / f"{name}.astra"
    words = [f"--dim={dim}={bounds}" for dim, bounds in dims.items()]
    subprocess.run([ROOT / "build/bin/astra-compile", source, "-o", bundle, *words], check=True)
    servers = {"astra": Server("astra", bundle, options), "onnxruntime": Server("onnxruntime", source, options)}
    try:
        body = body_of(servers["astra"].about["inputs"])
        answers = {engine: s.ask("POST", "/predict", body) for engine, s in servers.items()}
        if not agree(*answers.values()):
            sys.exit(f"bench/serve.py: {name}: the answers of the engines differ")
        script = folder / f"{name}.lua"
        (folder / f"{name}.body").write_bytes(body)
        script.write_text(SCRIPT.format(body=folder / f"{name}.body"))
        for server in servers.values():
            server.load(script, 8, 1)  # warm
        for connections in options.connections:
            results, totals = {e: [] for e in servers}, {e: [0, 0, 0] for e in servers}
            for number in range(options.rounds):
                for engine in servers if number % 2 else reversed(servers):
                    before = servers[engine].counters()
                    results[engine].append(servers[engine].load(script, connections, options.seconds))
                    for k, (a, b) in enumerate(zip(before, servers[engine].counters())):
                        totals[engine][k] += b - a
            columns = []
            for engine in servers:
                rate, half, most = (statistics.median(r[k] for r in results[engine]) for k in range(3))
                rows, batches, processor = totals[engine]
                columns.append(f"{rate:.0f} | {half:.2f} | {most:.2f} | {processor / rows:.2f} | {rows / batches:.1f}")
            ratio = math.exp(statistics.median(math.log(a[0] / b[0]) for a, b in zip(*results.values())))
            print(f"| {name}: {row} | {connections} | {' | '.join(columns)} | {ratio:.2f} |", flush=True)
        if servers["astra"].ask("POST", "/predict", body) != answers["astra"]:
            sys.exit(f"bench/serve.py: {name}: the bytes have changed")
    finally:
        for server in servers.values():
            server.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="digits,minilm", type=lambda text: text.split(","))
    parser.add_argument("--connections", default="1,8,32", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--seconds", type=int, default=3, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--wait-ms", type=float, default=1, help="--max-wait-ms of the service")
    parser.add_argument("--threads", type=int, default=1, help="of a batch")
    options = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("bench/serve.py: the program wrk is missing (apt-get install wrk)")
    print(f"{options.rounds} rounds of {options.seconds} s, --max-wait-ms {options.wait_ms:g}, --threads {options.threads}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    columns = "answers/s | p50 ms | p99 ms | CPU ms | rows a batch"
    print(f"| model | connections | astra: {columns} | onnxruntime: {columns} | astra / onnxruntime |\n|{'---|' * 13}")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models:
            if name not in MODELS:
                sys.exit(f"bench/serve.py: there is no model '{name}'; there are {', '.join(MODELS)}")
            if MODELS[name][0].exists():
                measure(name, options, Path(folder))
            else:
                print(f"bench/serve.py: {MODELS[name][0].relative_to(ROOT)} is not here; examples/sentence/run.sh makes it", file=sys.stderr)


main()
