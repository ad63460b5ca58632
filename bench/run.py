"""Ours beside its peers: measures rows, prints a table, writes JSON.

Takes:    rows (families, or FAMILY:TEXT for those whose name has the text), peers, numbers of threads.
Gives:    a table on the terminal, the ratio first: the best peer's time over ours, above 1 where ours is faster; every
          figure in the JSON file. Exit code 1 if a row of ours failed.
Keeps:    the order of tables, whatever was asked for first. A peer that is missing or fails is said in its place.

scripts/bench runs this; --help there.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import report
import rows
from machine import fingerprint, level
from measure import Setting, measure
from peers import PEERS
from process import Limits, PeerProcess

ROOT = Path(__file__).resolve().parent.parent
SAME = ("cpu", "level", "cores")  # of all rows of a file, beside the versions of the peers


def count(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def kept(path, machine):
    """The rows of a file of figures; ValueError says why it cannot be continued here."""
    if not path.exists():
        return []
    try:
        found = json.loads(path.read_text())
        if found["rows"]:
            report.text(found, path)
        there, here = ({**{key: m[key] for key in SAME}, **m["peers"]} for m in (found["machine"], machine))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{path} is no file of figures; name another, or remove it") from None
    other = [f"{key} {there[key]}, here {here[key]}" for key in there if key in here and there[key] != here[key]]
    if other:
        raise ValueError(f"{path} was measured elsewhere ({'; '.join(other)}); name another file")
    return found["rows"]


def write(path, result):
    """Whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(result, indent=1) + "\n")
    part.replace(path)


def options():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.split("\n")[0])
    some = lambda text: [word for word in text.split(",") if word]
    place = lambda text: Path(text).resolve()
    parser.add_argument("--rows", type=some, default=rows.FAMILIES, metavar="LIST", help=f"of {','.join(rows.FAMILIES)}; FAMILY:TEXT for rows with the text in their name")
    parser.add_argument("--peers", type=some, default=list(PEERS), metavar="LIST", help=f"of {','.join(PEERS)}; none for ours alone")
    parser.add_argument("--threads", type=lambda text: [count(word) for word in text.split(",")], default=[1, 2], metavar="LIST", help="numbers of threads; 1,2 if not given")
    parser.add_argument("--json", type=place, metavar="FILE", help="where the figures go; rows that are in the file and not measured now stay")
    parser.add_argument("--docs", nargs="?", const=ROOT / "docs/benchmarks.md", type=place, help="writes docs/benchmarks.md, or this page, and its picture from the JSON file")
    parser.add_argument("--rounds", type=count, default=9, metavar="N", help="turns of everyone; 9 if not given")
    parser.add_argument("--quick", action="store_true", help="3 short ones")
    parser.add_argument("--zoo", type=place, metavar="FOLDER", help="where exported networks are (build/bench/zoo, made if not there)")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help=argparse.SUPPRESS)
    found = parser.parse_args()
    if found.zoo:  # rows/networks.py reads it, once
        try:
            found.zoo.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            parser.error(f"--zoo: {found.zoo} is no folder and cannot be made: {error.strerror}")
        os.environ["ASTRA_BENCH_ZOO"] = str(found.zoo)
    for name in found.rows:
        if name.split(":")[0] not in rows.FAMILIES:
            parser.error(f"--rows: {name} is not one of {','.join(rows.FAMILIES)}")
    if found.peers == ["none"]:
        found.peers = []
    for name in found.peers:
        if name not in PEERS:
            parser.error(f"--peers: {name} is not one of {','.join(PEERS)}")
    if not any(chosen(found.rows)):
        parser.error(f"--rows: no row is named by {','.join(found.rows) or 'an empty list'}")
    if max(found.threads) > len(os.sched_getaffinity(0)):
        parser.error(f"--threads: {max(found.threads)} threads, and this process may use {len(os.sched_getaffinity(0))} CPUs")
    for word, path in (("json", found.json), ("docs", found.docs)):
        if path and not path.parent.is_dir():
            parser.error(f"--{word}: there is no folder {path.parent}")
        if path and path.is_dir():
            parser.error(f"--{word}: {path} is a folder; name a file in it")
    if not (found.build / "lib/libastra_rt.a").exists():
        parser.error(f"{found.build} has no lib/libastra_rt.a: scripts/build astra-compile AstraRuntimeStatic")
    found.machine = fingerprint(ROOT, found.build, PEERS)
    try:
        found.kept = kept(found.json, found.machine) if found.json else []
    except ValueError as error:
        parser.error(f"--json: {error}")
    return found


def chosen(names):
    for family in rows.FAMILIES:
        texts = [name.partition(":")[2] for name in names if name.split(":")[0] == family]
        if texts:
            yield from (row for row in rows.family(family) if any(text in row.name for text in texts))


def programs(build, folder):
    """The C programs of the bench."""
    folder.mkdir(parents=True, exist_ok=True)
    cc = ["clang-22", "-std=gnu11", "-O2", "-Wall", "-Wextra", f"-march={level()}", "-mprefer-vector-width=512", "-ffp-contract=fast", f"-I{ROOT / 'include'}"]
    for name, more in (("limits", []), ("ours", [build / "lib/libastra_rt.a"])):
        subprocess.run([*cc, ROOT / f"bench/{name}.c", *more, "-pthread", "-o", folder / name], check=True)
    return folder / "limits", folder / "ours"


def main():
    wanted = options()
    folder = wanted.build / "bench"
    limits_program, program = programs(wanted.build, folder)
    result = {"machine": wanted.machine, "rounds": 3 if wanted.quick else wanted.rounds, "rows": wanted.kept}
    failed = 0
    with open(folder / "peers.log", "w") as log, tempfile.TemporaryDirectory() as scratch:
        setting = Setting(wanted.build, folder, Path(scratch), program, result["rounds"], 0.01 if wanted.quick else 0.03, log)
        for threads in wanted.threads:
            limits = Limits([limits_program, threads], threads, log)
            peers = {name: PeerProcess(name, PEERS[name], threads, log) for name in wanted.peers}
            for row in chosen(wanted.rows):
                here = {name: peer for name, peer in peers.items() if row.family in PEERS[name].families}
                record = measure(row, threads, here, setting, limits)
                for name, peer in PEERS.items():
                    if row.family in peer.families and name not in here:
                        record["peers"][name] = {"absent": "not asked for in this run"}
                record["astra"] = result["machine"]["astra"]
                failed += "failed" in record
                key = lambda r: (r["family"], r["row"], r["threads"])
                result["rows"] = [r for r in result["rows"] if key(r) != key(record)] + [record]
                report.line(record, sys.stdout)
                if wanted.json:
                    write(wanted.json, result)
            for peer in peers.values():
                peer.close()
            limits.kill()
    report.summary(result, sys.stdout)
    if wanted.docs:
        report.page(result, wanted.docs)
    print(f"what the peers printed: {folder / 'peers.log'}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
