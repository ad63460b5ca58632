"""How much faster rows become by plans that were searched for: what the compiler's choice without measuring leaves.

Takes:    --rows (as run.py), --search (seconds for each row), --rounds.
Gives:    a table in Markdown, a row a line: the chosen plans' time over the searched ones', one thread.
Keeps:    both bundles give the same bytes, or it ends; they are timed in turns, medians.
Does not: compare with anybody (run.py).

    build/bench/venv/bin/python bench/searched.py --rows networks:ResNet,matmul:512 --search 120
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import level
from measure import Setting, in_turns, output_names
from run import ROOT, chosen, count, programs


def bundles(row, model, setting, seconds):
    """By chosen plans and by searched ones."""
    plain, searched = setting.folder / "chosen.astra", setting.folder / "searched.astra"
    words = [setting.build / "bin/astra-compile", model, f"--target=cpu:{level()}", "--quiet", "-j2", *(f"--dim={name}={bounds}" for name, bounds in row.dims.items()), *row.options]
    subprocess.run([*words, "-o", plain], check=True)
    subprocess.run([*words, "-o", searched, f"--search={seconds}", f"--tuning={setting.folder / 'row.tuning'}"], check=True)
    (setting.folder / "row.tuning").unlink(missing_ok=True)
    return {"chosen": plain, "searched": searched}


def measured(row, setting, seconds):
    """Milliseconds by chosen and by searched plans, and the median ratio."""
    case = row.case()
    model = setting.model(row, case)
    found = bundles(row, model, setting, seconds)
    times = in_turns(found, row.entry, case.inputs, output_names(model), setting, 1, row.name)
    return *(1e3 * statistics.median(times[name]) for name in found), statistics.median(a / b for a, b in zip(times["chosen"], times["searched"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=lambda text: text.split(","), required=True, metavar="LIST")
    parser.add_argument("--search", type=count, default=60, metavar="SECONDS")
    parser.add_argument("--rounds", type=count, default=9, metavar="N")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    wanted = parser.parse_args()
    kept = wanted.build / "bench"
    _, program = programs(wanted.build, kept)
    with open(kept / "searched.log", "w") as log, tempfile.TemporaryDirectory() as scratch:
        setting = Setting(wanted.build, kept, Path(scratch), program, wanted.rounds, 0.03, log)
        print("| row | chosen, ms | searched, ms | ratio |\n|---|---|---|---|")
        for row in chosen(wanted.rows):
            plain, searched, ratio = measured(row, setting, wanted.search)
            print(f"| {row.family}: {row.name} | {plain:.3g} | {searched:.3g} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
