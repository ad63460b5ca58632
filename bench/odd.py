"""Small and odd work (rows/odd.py) by this compiler, beside what another one made of it: what a change of the planner costs.

usage: bench/odd.py [--keep FILE] [--against FILE] [--only PATTERN] [--threads N] [--rounds N] [--build FOLDER]
       Before a change `--keep today.astra` keeps the bundle; after it `--against today.astra` measures both in turns.
Gives:    microseconds of each row; with --against how many times as fast each is as it was, those below 0.9 first, the geometric
          mean, the least. A row below 0.9 is measured twice more, and its best counts. Exit code 1 if one stays below.
Keeps:    both give the same bytes, or it ends. One thread unless asked.
Does not: know the noise of the machine: --against the bundle of the same compiler shows it.
"""

import argparse
import math
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import rows
from machine import level
from measure import Setting, in_turns
from rows import odd
from run import ROOT, count, programs

GOAL = 0.9
HOLDERS = {"bool": np.bool_, "f16": np.float16, "f32": np.float32, "f64": np.float64}


def value(row, name, kind):
    """An input of a row, a function of its name."""
    rng = rows.random(row.name, name)
    dtype, _, shape = kind.rstrip("]").partition("[")
    shape = [int(e) for e in shape.split(",")]
    if dtype in HOLDERS:
        return rng.standard_normal(shape).astype(HOLDERS[dtype])
    return rng.integers(1, row.index or 8, shape).astype(np.dtype(f"{dtype[0]}{int(dtype[1:]) // 8}"))


def measured(number, row, bundles, setting, threads):
    """Medians of seconds of each bundle, and of the first one's over the last one's within a round."""
    inputs = {name: value(row, name, kind) for name, kind in zip("abc", row.inputs)}
    times = in_turns(bundles, f"r{number}", inputs, ["out"], setting, threads, row.name)
    first, last = (times[name] for name in (next(iter(bundles)), "now"))
    return statistics.median(last), statistics.median(a / b for a, b in zip(first, last))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="where the bundle goes")
    parser.add_argument("--against", type=Path, metavar="FILE", help="a bundle that was kept")
    parser.add_argument("--only", type=re.compile, default=re.compile(""), metavar="PATTERN", help="rows whose names have it")
    parser.add_argument("--threads", type=count, default=1, metavar="N")
    parser.add_argument("--rounds", type=count, default=5, metavar="N")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    wanted = parser.parse_args()
    chosen = [number for number, row in enumerate(odd.ROWS) if wanted.only.search(row.name)]
    if not chosen:
        parser.error(f"--only: no row has '{wanted.only.pattern}' in its name")
    kept = wanted.build / "bench"
    _, program = programs(wanted.build, kept)
    with open(kept / "odd.log", "w") as log, tempfile.TemporaryDirectory() as scratch:
        setting = Setting(wanted.build, kept, Path(scratch), program, wanted.rounds, 0.005, log)
        text, now = setting.folder / "odd.uop", wanted.keep or setting.folder / "odd.astra"
        text.write_text(odd.module(chosen))
        subprocess.run([wanted.build / "bin/astra-compile", text, "-o", now, f"--target=cpu:{level()}", "--quiet", "-j2"], check=True)
        bundles = {**({"then": wanted.against} if wanted.against else {}), "now": now}
        ratios, lines = [], []
        for number in chosen:
            row = odd.ROWS[number]
            seconds, ratio = measured(number, row, bundles, setting, wanted.threads)
            for _ in range(2):
                if ratio < GOAL:
                    seconds, ratio = max((seconds, ratio), measured(number, row, bundles, setting, wanted.threads), key=lambda found: found[1])
            ratios.append(ratio)
            lines.append((ratio if ratio < GOAL else GOAL, f"| {row.name} | {1e6 * seconds:.1f} |" + (f" {ratio:.2f} |" if wanted.against else "")))
            if sys.stderr.isatty():
                print(f"\r{len(lines)} rows", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print("| row | us |" + (" times as fast |\n|---|---|---|" if wanted.against else "\n|---|---|"))
    print("\n".join(line for _, line in sorted(lines, key=lambda line: line[0])))
    if wanted.against and ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"\n{len(ratios)} rows: geometric mean {mean:.3f}, least {min(ratios):.2f}, {sum(r < GOAL for r in ratios)} below {GOAL}")
    return int(any(ratio < GOAL for ratio in ratios))


if __name__ == "__main__":
    sys.exit(main())
