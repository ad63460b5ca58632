#!/usr/bin/env python3
"""A language model beside llama.cpp, ONNX Runtime and OpenVINO: prompts, decoding, load to first token, memory.

usage: PYTHONPATH=build/python build/venv/bin/python bench/language.py FILE.gguf [--llama PYTHON] [--engine TITLE=NAME:FILE[@PYTHON] ...]
                                                                     [--threads 1,2] [--rounds N] [--only prompt,decode,first] [--best]
Takes:    build/bin/astra-compile, astra_rt, a GGUF file. --llama: a Python that has the package llama-cpp-python. --engine: a model for one of the
          engines of bench/language_worker.py, as bench/language_onnx.py writes them; --bundle: ours, compiled before.
Gives:    a table in Markdown: tokens a second, milliseconds from the call that loads to the scores behind one token, and the peak of resident
          memory of a fresh process that has loaded, read 512 tokens and decoded; beside each figure, how often Astra's is as good.
Keeps:    engines take turns in each round, each stopped while another runs; ratios are taken within a round; everything is a median over
          rounds, or with --best the best of them. With one thread time is CPU time where that is less than wall time: another process had the core then.
Does not: check results: test/language/beside_llama.py does.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import machine
from process import Failed, Process

HERE = Path(__file__).resolve().parent
TOKENS = [(i * 7919) % 40000 + 100 for i in range(1024)]  # what they are does not matter
STEPS = 16


class Engine:
    def __init__(self, title, name, path, python=sys.executable):
        self.title, self.name, self.path, self.python = title, name, path, python

    def start(self, threads):
        process = Process([self.python, HERE / "language_worker.py", self.name, self.path, threads], threads, sys.stderr)
        process.hear(120)
        return process


def ask(process, threads=0, **request):
    answer = json.loads(process.ask(json.dumps(request), 300))
    if "error" in answer:
        raise Failed(answer["error"])
    if "wall" not in answer:
        return answer
    return min(answer["wall"], answer["cpu"]) if threads == 1 else answer["wall"]


def first(engine, threads):
    """Milliseconds to the scores behind one token, of a fresh process; MiB at most after some work."""
    process = engine.start(threads)
    try:
        seconds = ask(process, threads, do="load")
        ask(process, do="prompt", tokens=TOKENS[:512])
        ask(process, do="decode", at=TOKENS[:64], times=8)
        return seconds * 1000, ask(process, do="memory")["VmHWM"]
    finally:
        process.kill()


def speeds(engines, threads, rounds, kinds):
    """{what: [a list of seconds, or of MiB, for each engine]}, round by round."""
    found = {}

    def note(what, number, value):
        found.setdefault(what, [[] for _ in engines])[number].append(value)

    def turns(turn):
        order = list(enumerate(engines))
        return order[turn % len(order) :] + order[: turn % len(order)]

    if "first" in kinds:
        for turn in range(rounds):
            for number, engine in turns(turn):
                ms, peak = first(engine, threads)
                note("load to first token, ms", number, ms)
                note("memory at most, MiB", number, peak)
    work = []
    if "prompt" in kinds:
        work += [(f"prompt of {n}, tokens/s", n, dict(do="prompt", tokens=TOKENS[:n])) for n in (128, 512)]
    if "decode" in kinds:
        work += [(f"decode at {n}, tokens/s", STEPS, dict(do="decode", at=TOKENS[:n], times=STEPS)) for n in (64, 1024)]
    if not work:
        return found
    processes = [engine.start(threads) for engine in engines]
    try:
        for process in processes:
            ask(process, do="load")
        for what, tokens, request in work:
            for turn in range(rounds + 1):
                for number, _ in turns(turn):
                    seconds = ask(processes[number], threads, **request)
                    if turn:  # the first one reads the context, and warms up
                        note(what, number, tokens / seconds)
    finally:
        for process in processes:
            process.kill()
    return found


def ratio(what, ours, theirs, best):
    """How often ours is as good."""
    if best:
        ours, theirs = [figure(what, ours, best)], [figure(what, theirs, best)]
    return statistics.median(a / b if what.endswith("/s") else b / a for a, b in zip(ours, theirs))


def figure(what, rounds, best):
    return (max if what.endswith("/s") else min)(rounds) if best else statistics.median(rounds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--build", type=Path, default=HERE.parent / "build")
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--compile", default="", help="more options of astra-compile")
    parser.add_argument("--llama", metavar="PYTHON")
    parser.add_argument("--engine", action="append", default=[], metavar="TITLE=NAME:FILE[@PYTHON]")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="prompt,decode,first")
    parser.add_argument("--best", action="store_true", help="the best of the rounds, not their median: for a machine that others use too")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bundle = a.bundle or Path(folder) / "model.astra"
        if not a.bundle:
            words = [a.build / "bin/astra-compile", a.model, "-o", bundle, "--target=native", "--context=2048", "--quiet", "-j2"]
            subprocess.run([*words, *a.compile.split()], check=True)
        engines = [Engine("Astra", "astra", bundle)]
        if a.llama:
            engines.append(Engine("llama.cpp", "llama.cpp", a.model, a.llama))
        for words in a.engine:
            title, _, rest = words.partition("=")
            name, _, path = rest.partition(":")
            path, _, python = path.partition("@")
            engines.append(Engine(title, name, Path(path), python or sys.executable))
        print(f"{machine.cpu_lines().get('model name')}, {len(os.sched_getaffinity(0))} cores; load {os.getloadavg()[0]:.1f} before\n")
        print("| threads | what | Astra | " + " | ".join(f"{e.title} | Astra is" for e in engines[1:]) + " |")
        print("|---:|---|---:|" + "---:|" * (2 * len(engines) - 2), flush=True)
        for threads in map(int, a.threads.split(",")):
            for what, columns in speeds(engines, threads, a.rounds, a.only.split(",")).items():
                cells = [f"{figure(what, columns[0], a.best):.1f}"]
                for theirs in columns[1:]:
                    cells += [f"{figure(what, theirs, a.best):.1f}", f"{ratio(what, columns[0], theirs, a.best):.2f}x"]
                print(f"| {threads} | {what} | " + " | ".join(cells) + " |", flush=True)
        print(f"\nload {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
