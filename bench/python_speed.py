#!/usr/bin/env python3
"""`@astra` on the networks of the bench, and training steps, beside PyTorch, torch.compile and JAX, turn and turn about.

usage: PYTHONPATH=build/python build/venv/bin/python bench/python_speed.py [--rows networks,train:digits] [--threads 1,2] [--rounds N] [--quick]
Takes:    rows of the families networks and train (FAMILY:TEXT: those whose name has the text); the module astra, torch, torchvision and
          transformers, jax where it is installed. Networks are those of bench/rows/networks.py: the exporter writes them where they are not there.
Gives:    a table: for each row and number of threads the median time of a call of each, and the median over the rounds of the best
          other's time over ours: above 1 where `@astra` is faster. Exit code 1 where ours is missing or no other could be measured.
Keeps:    each runs in a process of its own, one at a time, in an order that turns from round to round (bench/process.py, bench/measure.py).
          First results agree (1e-4 of the largest magnitude), or the row has no time. torch.compile has frozen weights and its most
          thorough tuning, JAX images channels-last (bench/peers). A training step is forward, backward and AdamW.
Does not: count what is compiled or tuned before the first result.
"""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

import measure
import rows
from machine import level
from peers import PEERS, WAYS
from process import Failed, PeerProcess

HERE = Path(__file__).resolve().parent
FAMILIES = {"networks": ["torch", "compile"], "train": ["torch", "compile", "jax"]}
SECONDS = 3600  # for a tuning that looks at everything


class Turns:
    """What measure.rounds_of asks of a setting."""

    def __init__(self, rounds, slice_seconds):
        self.rounds, self.slice = rounds, slice_seconds


def chosen(names):
    for name in names:
        family, _, text = name.partition(":")
        yield from (row for row in rows.family(family) if text in row.name)


def loaded(row, contestants, model, scratch):
    """The first results of each; a sentence for who gives none or another."""
    results, absent = {}, {}
    for name, peer in contestants.items():
        try:
            results[name], _ = peer.load(row, model, scratch / "peer.npz", SECONDS)
        except Failed as failed:
            absent[name] = str(failed)
    if "astra" not in results:
        return [], absent
    record = {"peers": {}}
    agreeing = measure.compared(record, {n: r for n, r in results.items() if n != "astra"}, results["astra"], row.tolerance)
    return ["astra", *agreeing], {**absent, **{n: said["absent"] for n, said in record["peers"].items()}}


def line(row, threads, times, absent):
    """A row of the table."""
    columns = []
    for name in ("astra", "torch", "compile", "jax"):
        columns.append(f"{statistics.median(times[name]) * 1e3:.3f}" if name in times else absent.get(name, "").replace("|", "/"))
    others = {n: statistics.median(times[n]) for n in times if n != "astra"}
    best = min(others, key=others.get) if others else None
    ratio = statistics.median(theirs / ours for theirs, ours in zip(times[best], times["astra"])) if best and "astra" in times else None
    print(f"| {row.name} | {threads} | {' | '.join(columns)} | {f'{ratio:.2f} ({best})' if ratio else ''} |", flush=True)
    return ratio is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    some = lambda text: [word for word in text.split(",") if word]  # noqa: E731
    parser.add_argument("--rows", type=some, default=list(FAMILIES))
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="3 short rounds")
    parser.add_argument("--peers", type=some, default=["torch", "compile", "jax"])
    options = parser.parse_args()
    unknown = [name for name in options.rows if name.partition(":")[0] not in FAMILIES] + [p for p in options.peers if p not in ("torch", "compile", "jax")]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}: rows are of {', '.join(FAMILIES)}, peers are torch, compile, jax")
    turns = Turns(3, 0.03) if options.quick else Turns(options.rounds, 0.3)
    folder, fine = HERE.parent / "build/bench", True
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{turns.rounds} rounds, {level()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before\n")
    print("| row | threads | @astra ms | torch ms | torch.compile ms | JAX ms | best other's time over ours |\n|---|---|---|---|---|---|---|")
    with open(folder / "python_speed.log", "w") as log, tempfile.TemporaryDirectory() as scratch:
        for threads in options.threads:
            for row in chosen(options.rows):
                names = ["astra", *(n for n in FAMILIES[row.family] if n in options.peers)]
                contestants = {n: PeerProcess(n, {**PEERS, **WAYS}[n], threads, log) for n in names}
                try:
                    agreeing, absent = loaded(row, contestants, Path(scratch) / "row.onnx", Path(scratch))
                    times, _, failed = measure.rounds_of({n: contestants[n] for n in agreeing}, turns, None)
                    fine &= line(row, threads, times, {**absent, **failed})
                finally:
                    for peer in contestants.values():
                        peer.close()
    sys.exit(not fine)


main()
