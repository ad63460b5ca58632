"""How fast rows are by this compiler, beside what another one made of them: what a change of the planner costs on the bench.

usage: bench/against.py --compiler FILE --rows LIST [--changed] [--options LIST] [--rounds N] [--threads N] [--build FOLDER]
       FILE is the other astra-compile, as of a checkout before the change; rows as run.py. --changed: those whose plans differ.
Gives:    milliseconds of each row by the other compiler and by this one, how many times as fast it is. Then the geometric mean
          and the least. Exit code 1 if a row is below 0.95.
Keeps:    both bundles give the same bytes, or it ends; they are timed in turns, medians. A row below 0.95 is measured twice more,
          and its best counts.
Does not: compare with anybody (run.py), nor measure small and odd work (odd.py).
"""

import argparse
import math
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import level
from measure import Setting, in_turns, output_names
from run import ROOT, chosen, count, programs

GOAL = 0.95


def made(compiler, row, model, path, options):
    """The file that a compiler makes of a model."""
    words = [compiler, model, "-o", path, f"--target=cpu:{level()}", "--quiet", "-j2", *(f"--dim={name}={bounds}" for name, bounds in row.dims.items()), *row.options, *options]
    subprocess.run([str(word) for word in words], check=True)
    return path


def measured(row, case, model, bundles, setting, threads):
    """Milliseconds by both, and the median ratio within a round."""
    times = in_turns(bundles, row.entry, case.inputs, output_names(model), setting, threads, row.name)
    return *(1e3 * statistics.median(times[name]) for name in bundles), statistics.median(a / b for a, b in zip(*times.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", type=Path, required=True, metavar="FILE")
    parser.add_argument("--rows", type=lambda text: text.split(","), required=True, metavar="LIST")
    parser.add_argument("--changed", action="store_true", help="rows whose plans differ")
    parser.add_argument("--options", type=shlex.split, default=[], metavar="LIST", help="of both compilers, in one word")
    parser.add_argument("--rounds", type=count, default=7, metavar="N")
    parser.add_argument("--threads", type=count, default=1, metavar="N")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    wanted = parser.parse_args()
    kept = wanted.build / "bench"
    _, program = programs(wanted.build, kept)
    ratios, same = [], 0
    with open(kept / "against.log", "w") as log, tempfile.TemporaryDirectory() as scratch:
        setting = Setting(wanted.build, kept, Path(scratch), program, wanted.rounds, 0.02, log)
        print("| row | then, ms | now, ms | times as fast |\n|---|---|---|---|")
        for row in chosen(wanted.rows):
            case = row.case()
            model = setting.model(row, case)
            compilers = {"then": wanted.compiler, "now": wanted.build / "bin/astra-compile"}
            plans = [made(compiler, row, model, setting.folder / f"{name}.plan", [*wanted.options, "--emit=plan"]).read_text() for name, compiler in compilers.items()]
            if wanted.changed and plans[0] == plans[1]:
                same += 1
                continue
            bundles = {name: made(compiler, row, model, setting.folder / f"{name}.astra", wanted.options) for name, compiler in compilers.items()}
            tries = [measured(row, case, model, bundles, setting, wanted.threads)]
            while tries[-1][2] < GOAL and len(tries) < 3:
                tries.append(measured(row, case, model, bundles, setting, wanted.threads))
            then, now, ratio = max(tries, key=lambda found: found[2])
            ratios.append(ratio)
            print(f"| {row.family}: {row.name} | {then:.4g} | {now:.4g} | {ratio:.2f} |", flush=True)
    if same:
        print(f"\n{same} rows have the same plans")
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"\n{len(ratios)} rows: geometric mean {mean:.3f}, least {min(ratios):.2f}, {sum(r < GOAL for r in ratios)} below {GOAL}")
    return int(any(ratio < GOAL for ratio in ratios))


if __name__ == "__main__":
    sys.exit(main())
