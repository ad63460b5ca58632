"""What astra-compile --emit=cost says of a model's kernels beside what they take on this machine.

usage: PYTHONPATH=build/python bench/cost.py MODEL --ghz CLOCK [--build FOLDER] [--repeat N] [--input NAME=FILE.npy]... [-- OPTIONS of astra-compile]
       Dims need bounds that meet, as --dim batch=1..1, so that what is computed and what is run have the same sizes. CLOCK is what
       bench/speeds.c prints; the target is the best of this CPU, planned for its kind of core where the machine table has it.
Gives:    a line for each kernel: measured microseconds of a launch (median over N calls, each traced in a process of its own), those computed, their
          ratio, what bounds it; then the geometric mean of the ratios, and how far the half in the middle of them goes.
Keeps:    to one thread. Does not: pin it; run beside other work and the ratios say so.
"""

import argparse
import collections
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import machine

ROOT = Path(__file__).resolve().parent.parent


def computed(text):
    """Cycles of a launch and what bounds it, by the kernel's name, of the last target in the text."""
    found, name = {}, None
    for line in text.splitlines():
        if line.startswith("target "):
            found = {}
        elif m := re.match(r"(k\d+_\w+): ", line):
            name = m[1]
        elif m := re.match(r"  (\d+) cycles by ([\w]+)", line):
            found[name] = int(m[1]), m[2]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--ghz", type=float, required=True)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--input", action="append", default=[])
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    o = parser.parse_args(words[:cut])
    target = ["--target=cpu:" + machine.level(), "--tune=native", "--quiet", *words[cut + 1 :]]
    compiler = o.build / "bin/astra-compile"
    with tempfile.TemporaryDirectory() as folder:
        bundle, trace = Path(folder) / "model.astra", Path(folder) / "trace.json"
        text = subprocess.run([compiler, o.model, *target, "--emit=cost"], check=True, capture_output=True, text=True).stdout
        subprocess.run([compiler, o.model, *target, "-o", bundle], check=True)
        inputs = [word for i in o.input for word in ("--input", i)]
        times = collections.defaultdict(list)
        for _ in range(o.repeat):  # the trace is of the last call
            subprocess.run([o.build / "bin/astra-run", bundle, *inputs, "--threads", "1", "--repeat", "3", "--trace", trace], check=True, stdout=subprocess.DEVNULL)
            events = json.loads(trace.read_text())
            for event in events["traceEvents"] if isinstance(events, dict) else events:
                if event.get("ph") == "X":
                    times[event["name"].split(" ")[0]].append(event["dur"])
    ratios = []
    for name, (cycles, term) in computed(text).items():
        if name not in times or not cycles:
            continue
        measured, wanted = statistics.median(times[name]), cycles / o.ghz / 1000
        ratios.append(measured / wanted)
        print(f"{name:24} measured {measured:10.1f} us, computed {wanted:10.1f} us by {term:10} ratio {ratios[-1]:.2f}")
    if not ratios:
        sys.exit("bench/cost.py: no kernel was both computed and traced; are the bounds of each dim the same number?")
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    ratios.sort()
    print(f"{len(ratios)} kernels: geometric mean of the ratios {mean:.2f}, middle half {ratios[len(ratios) // 4]:.2f} to {ratios[-len(ratios) // 4 - 1]:.2f}")


if __name__ == "__main__":
    main()
