#!/usr/bin/env python3
"""What the phases and the ctest cases of the last scripts/test took, beside the budget; what was skipped, and why.

usage: scripts/times.py [--update | --skipped]

Takes:    build/test-logs: of each phase NAME.time (wall, user and system seconds), of unit the log of ctest;
          test/budget.csv: CPU seconds on a machine with 2 cores that is warm.
Gives:    build/test-logs/times.csv (name, wall seconds, CPU seconds), and a line for each phase and case that took more than
          its budget by half and by 3 seconds. It is a report: nothing fails of it. ctest knows a case's wall seconds only;
          its CPU seconds are its share of what all cases took.
  --update   writes what was measured into test/budget.csv; what was not run keeps its row, what is no more loses it
  --skipped  a line for each thing that phases, cases and lit tests left out, with the reason
"""
import csv
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS, BUDGET, CTEST = ROOT / "build/test-logs", ROOT / "test/budget.csv", ROOT / "build/Testing/Temporary/LastTest.log"
OVER, LEAST = 1.5, 3  # times the budget, and seconds more than it


def cases():
    """Of ctest's last run: name, wall seconds, output of each case."""
    text = CTEST.read_text(errors="replace") if CTEST.exists() else ""
    for part in re.split(r"^\d+/\d+ Testing: ", text, flags=re.M)[1:]:
        name, _, rest = part.partition("\n")
        took = re.search(r"^Test time = +([\d.]+) sec", rest, re.M)
        yield name, float(took[1]) if took else 0.0, rest


def all_cases():
    """Names of all cases that ctest knows, those of a night too."""
    done = subprocess.run(["ctest", "--test-dir", ROOT / "build", "-N", "-C", "Nightly"], capture_output=True, text=True)
    return re.findall(r"^ *Test +#\d+: (\S+)", done.stdout, re.M)


def measured(phases):
    """Rows (name, wall, CPU) of the phases and, as unit/CASE, of the cases."""
    rows = []
    for name in phases:
        try:
            wall, user, system = map(float, (LOGS / f"{name}.time").read_text().split()[-3:])
        except (OSError, ValueError):
            continue
        rows.append((name, wall, user + system))
        if name == "unit":
            found = list(cases())
            share = (user + system) / max(sum(wall for _, wall, _ in found), 1e-9)
            rows += [(f"unit/{case}", wall, wall * share) for case, wall, _ in found]
    return rows


def over(rows, limits):
    return [(name, cpu) for name, _, cpu in rows if name in limits and cpu > max(OVER * limits[name], limits[name] + LEAST)]


def budget():
    with open(BUDGET, newline="") as file:
        return {row["name"]: float(row["cpu_seconds"]) for row in csv.DictReader(file)}


def write(path, head, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def skipped(phases):
    """(where, what and why), one for each thing that was not tried."""
    for name in phases:  # lines of their own, and those of pytest -rs: SKIPPED [N] FILE:LINE: WHY
        log = LOGS / f"{name}.log"
        for line in re.findall(r"^(?:skipped:|SKIPPED \[\d+\]) (.*)$", log.read_text(errors="replace"), re.M) if log.exists() else ():
            yield name, line
    for case, _, output in cases() if "unit" in phases else ():
        for test, why in gtest_skips(output):
            yield "unit", f"{case}: {test}: {why}"
        if re.search(r"^Test (Skipped|Not Run)", output, re.M) and "[  SKIPPED ]" not in output:
            yield "unit", f"{case}: {output.strip().splitlines()[-1]}"


def gtest_skips(output):
    """GoogleTest prints `[ RUN      ] T`, then FILE:LINE: Skipped and the reason, then `[  SKIPPED ] T`."""
    for test, body in re.findall(r"^\[ RUN      \] (\S+)\n((?:(?!\[ RUN|\[       OK|\[  FAILED).*\n)*?)\[  SKIPPED \]", output, re.M):
        why = re.search(r": Skipped\n(.*)", body)
        yield test, (why and why[1].strip()) or "no reason is given"


def main():
    words = sys.argv[1:]
    if "--help" in words or any(word not in ("--update", "--skipped") for word in words):
        print(__doc__)
        return 0 if "--help" in words else 2
    phases = (LOGS / "ran").read_text().split() if (LOGS / "ran").exists() else []
    if "--skipped" in words:
        for where, what in skipped(phases):
            print(f"{where}: {what}")
        return 0
    rows, limits = measured(phases), budget() if BUDGET.exists() else {}
    write(LOGS / "times.csv", ("name", "wall_seconds", "cpu_seconds"), [(n, f"{w:.1f}", f"{c:.1f}") for n, w, c in rows])
    if "--update" in words:
        found = {name: cpu for name, _, cpu in rows}
        known = {f"unit/{case}" for case in all_cases()}
        gone = {name for name in limits if name.startswith("unit/") and known and name not in known}
        limits = {name: cpu for name, cpu in limits.items() if name not in gone} | found
        write(BUDGET, ("name", "cpu_seconds"), [(name, f"{cpu:.1f}") for name, cpu in sorted(limits.items())])
        return 0
    for name, cpu in over(rows, limits):
        print(f"{name}: {cpu:.0f} CPU seconds, its budget is {limits[name]:.0f}")
    if unknown := [name for name, *_ in rows if name not in limits]:
        print(f"without a budget (scripts/times.py --update): {' '.join(unknown)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
