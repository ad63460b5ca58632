"""Run ONNX's backend suite: every node, simple, pytorch-operator and pytorch-converted case through bundle and runtime.

Takes:    the package onnx (onnx.backend.test, the public runner), a build folder.
Gives:    counts of passed, refused and failed cases by reason; a JSON file on request. Exit code 1 if what passes is not
          what passing.txt says: a case there does not pass or is no case, a case passes and is not there, a case marked
          `constants` (it passes with inputs bound as constants) needs none, or one needs them and has no mark; 2 if the
          command line is wrong.
Keeps:    each case in a process of its own: a crash or a hang is a failure of that case. The order of processes changes
          nothing that is printed.
Does not: count a refused case as passed. Cases of passing.txt may only be added (--update).

    build/venv/bin/python test/onnx/run.py
    build/venv/bin/python test/onnx/run.py --filter='resize|upsample' --verbose
"""

import argparse
import collections
import json
import multiprocessing
import os
import random
import re
import signal
import sys
import time
import unittest
import warnings
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
PASSING = HERE / "passing.txt"
CASES = HERE / "cases.txt"
EXCEPTIONS = HERE.parent / "unit/onnx/exceptions.txt"  # where ONNX leaves a result open, and what Astra decides
CATEGORIES = ["NodeModel", "SimpleModel", "PyTorchOperatorModel", "PyTorchConvertedModel"]
MARK = "constants"  # the second word of a line of passing.txt
OUTCOMES = ["passed", "passed with inputs bound as constants", "refused", "failed"]


def parse():
    p = argparse.ArgumentParser(prog="run.py", description=__doc__.split("\n")[0])
    p.add_argument("--filter", metavar="REGEX", help="only cases whose name has this expression somewhere in it")
    p.add_argument("--levels", metavar="LIST", help="x86-64-v4, x86-64-v3, aarch64 (under qemu), commas between; by "
                   "default the x86 levels of this machine. All of them must give the same bytes")  # fmt: skip
    p.add_argument("--eval", action="store_true", help="the reference evaluator must give the same bytes too")
    p.add_argument("--subset", type=int, metavar="K", help="one case in K, by a hash of its name, and one for each op")
    p.add_argument("--sample", type=int, metavar="N", help="a seeded sample of N of the passing cases")
    p.add_argument("--update", action="store_true", help="add the cases that pass now to passing.txt, with their marks")
    p.add_argument("--json", metavar="FILE", help="every case with outcome, reason and seconds")
    p.add_argument("--build", metavar="DIR", help="the build folder; build if not given")
    p.add_argument("--timeout", type=float, default=180, metavar="SECONDS", help="for one case; 180 if not given")
    p.add_argument("-j", type=int, default=os.cpu_count(), metavar="N", help="cases at once; the processors if not given")
    p.add_argument("-v", "--verbose", action="store_true", help="a line for each case that did not pass")
    options = p.parse_args()
    if options.j < 1:
        p.error(f"-j {options.j}: expected a number from 1 on")
    for flag in ("subset", "sample"):
        if getattr(options, flag) is not None and getattr(options, flag) < 1:
            p.error(f"--{flag} {getattr(options, flag)}: expected a number from 1 on")
    return options


def lines(path):
    return [line.strip() for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def listed():
    """Per case of passing.txt: whether it passes with inputs bound as constants."""
    rows = [line.split() for line in lines(PASSING)]
    for row in rows:
        if row[1:] not in ([], [MARK]):
            sys.exit(f"run.py: passing.txt: '{' '.join(row)}': expected NAME or NAME {MARK}")
    return {row[0]: len(row) > 1 for row in rows}


def suite():
    """The public runner's tests by the name of the case."""
    from backend import AstraBackend
    from onnx.backend.test import BackendTest

    class Strict(BackendTest):
        """The runner looks at the rows of a sequence's elements, as many as it was given: here at all, whole."""

        @classmethod
        def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol, model_dir=None):
            for wanted, found in zip(ref_outputs, outputs, strict=True):
                assert isinstance(found, list) == isinstance(wanted, list), f"found {found}, expected {wanted}"
                lists = (wanted, found) if isinstance(wanted, list) else ([wanted], [found])
                super().assert_similar_outputs(*lists, rtol, atol, model_dir)

    classes = Strict(AstraBackend).test_cases
    tests = {}
    for category in CATEGORIES:
        kind = classes[f"OnnxBackend{category}Test"]
        for method in unittest.defaultTestLoader.getTestCaseNames(kind):
            if method.endswith("_cpu"):
                tests[method.removesuffix("_cpu")] = (kind, method)
    return dict(sorted(tests.items()))


def choose(options, tests):
    names = list(tests)
    if options.filter:
        names = [n for n in names if re.search(options.filter, n)]
    if options.subset:
        firsts = {op: name for name, op in reversed([line.split() for line in lines(CASES)])}
        wanted = set(firsts.values())
        names = [n for n in names if n in wanted or zlib.crc32(n.encode()) % options.subset == 0]
    if options.sample:
        passing = [n for n in listed() if n in set(names)]
        names = sorted(random.Random(1).sample(passing, min(options.sample, len(passing))))
    return names


# ---- One case


def child(kind, method, pipe):
    """Runs one test and sends its outcome; everything that it starts is of its own process group."""
    os.setsid()
    warnings.filterwarnings("ignore")
    import backend

    try:
        getattr(kind(method), method)()
        bound = backend.record["constants"]
        outcome = ("passed" if not bound else OUTCOMES[1], ", ".join(bound))
    except unittest.SkipTest as refused:
        outcome = ("refused", str(refused))
    except BaseException as failure:  # whatever it is, it is this case's
        outcome = ("failed", f"{type(failure).__name__}: {failure}")
    pipe.send(outcome)
    pipe.close()
    os._exit(0)


class Running:
    def __init__(self, name, kind, method, timeout):
        self.name, self.start = name, time.monotonic()
        self.deadline = self.start + timeout
        self.pipe, end = multiprocessing.Pipe(duplex=False)
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self.pipe.close()
            child(kind, method, end)
        end.close()

    def finish(self, timeout):
        """(outcome, reason), or None while it runs."""
        if self.pipe.poll():
            try:
                result = self.pipe.recv()
            except EOFError:
                result = None
        elif time.monotonic() > self.deadline:
            result = ("failed", f"still running after {timeout:g} s")
        else:
            return None
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        status = os.waitpid(self.pid, 0)[1]
        if result is None:
            result = ("failed", f"the process died of signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status)
                      else f"the process ended with status {os.waitstatus_to_exitcode(status)}")  # fmt: skip
        return result


def run_all(tests, names, options):
    waiting, running, results = list(reversed(names)), [], {}
    shown = sys.stderr.isatty()
    while waiting or running:
        while waiting and len(running) < options.j:
            name = waiting.pop()
            running.append(Running(name, *tests[name], options.timeout))
        multiprocessing.connection.wait([r.pipe for r in running], timeout=1)
        for r in list(running):
            if result := r.finish(options.timeout):
                running.remove(r)
                r.pipe.close()
                results[r.name] = (*result, time.monotonic() - r.start)
        if shown:
            print(f"\r{len(results)} of {len(names)} ", end="", file=sys.stderr)
    if shown:
        print("\r", end="", file=sys.stderr)
    return {name: results[name] for name in names}


# ---- What it came to


def reason_of(text):
    """What a reason has in common with others: no names of nodes and values, no numbers."""
    text = text.strip()
    if ops := re.findall(r"\(([\w.:]+), opset [\w ]+\): this op is not supported", text):
        return "no row for " + ", ".join(sorted(set(ops)))
    first = text.splitlines()[0] if text else "no reason"
    m = re.match(r"(.*?)node (?:'.*?'|number \d+) \((.*?), opset \d+\): (.*)", first)
    first = f"{m[1]}{m[2]}: {m[3]}" if m else first
    if "Not equal to tolerance" in text or "Arrays are not equal" in text or "not equal" in first:
        shape = "incorrect shape" in text
        return "AssertionError: the shape differs" if shape else "AssertionError: the values differ"
    first = re.sub(r"'[^']*'", "'...'", first)
    return re.sub(r"\d+", "N", first)[:160]


def report(results, options):
    count = collections.Counter(outcome for outcome, *_ in results.values())
    told = dict(line.split(" ", 1) for line in lines(EXCEPTIONS) if not line.startswith("#"))
    for outcome in ("refused", "failed"):
        groups = collections.defaultdict(list)
        for name, (found, reason, _) in results.items():
            if found == outcome:
                known = told.get(name.removeprefix("test_")) if outcome == "failed" else None
                groups[known or reason_of(reason)].append(name)
        if groups:
            print(f"\n{outcome}:")
        for reason, names in sorted(groups.items(), key=lambda g: (-len(g[1]), g[0])):
            examples = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
            print(f"  {len(names):4}  {reason}  [{examples}]")
    if options.verbose:
        print()
        for name, (outcome, reason, seconds) in results.items():
            if not outcome.startswith("passed"):
                print(f"{name}: {outcome}: {reason.strip()[:1500]}")
    print(f"\n{len(results)} cases: " + ", ".join(f"{count[o]} {o}" for o in OUTCOMES))
    return count


def write_json(path, results):
    rows = [{"name": n, "outcome": o, "reason": r, "group": reason_of(r) if o in ("refused", "failed") else "",
             "seconds": round(s, 3)} for n, (o, r, s) in results.items()]  # fmt: skip
    Path(path).write_text(json.dumps(rows, indent=1) + "\n")


def main():
    options = parse()
    sys.path.insert(0, str(HERE))
    if options.build:
        os.environ["ASTRA_BUILD"] = options.build
    if options.levels:
        os.environ["ASTRA_LEVELS"] = options.levels
    os.environ["ASTRA_EVAL"] = "1" if options.eval else "0"
    warnings.filterwarnings("ignore")
    import multiprocessing.connection  # noqa: F401

    from backend import BUILD

    for needed in ["bin/astra-compile", "lib/libastra_rt.so"] + ["aarch64/astra-run"] * ("aarch64" in (options.levels or "")):
        if not (BUILD / needed).exists():
            sys.exit(f"run.py: {BUILD / needed} is not there: run scripts/build")
    tests = suite()
    names = choose(options, tests)
    if not names:
        print("run.py: no case has such a name", file=sys.stderr)
        sys.exit(2)
    start = time.monotonic()
    results = run_all(tests, names, options)
    report(results, options)
    if options.json:
        write_json(options.json, results)
    faults = compare(results, options.update)
    print("\n".join(faults), end="\n" * bool(faults))
    print(f"time: {time.monotonic() - start:.0f} s", file=sys.stderr)
    passed = sum(outcome.startswith("passed") for outcome, *_ in results.values())
    bound = sum(outcome == OUTCOMES[1] for outcome, *_ in results.values())
    print(f"of the cases that pass, {bound} do with inputs bound as constants")
    print(f"{passed} passed, {len(faults)} failed")  # as scripts/test counts
    sys.exit(1 if faults else 0)


def compare(results, update):
    """A sentence for each way in which passing.txt is not what these results say; --update writes it first."""
    told, cases = listed(), {line.split()[0] for line in lines(CASES)}
    found = {name: outcome == OUTCOMES[1] for name, (outcome, *_) in results.items() if outcome.startswith("passed")}
    if update and (changed := {name for name, mark in found.items() if told.get(name) != mark}):
        told |= found
        PASSING.write_text("".join(f"{name} {MARK}\n" if mark else f"{name}\n" for name, mark in sorted(told.items())))
        print(f"passing.txt: {len(changed)} added or marked anew, {len(told)} in all")
    faults = [f"{name} is in passing.txt and is no case of cases.txt" for name in told if name not in cases]
    for name, (_, reason, _) in results.items():
        if name in told and name not in found:
            faults.append(f"{name} is in passing.txt and did not pass: {reason.strip()[:1500]}")
        elif name in found and name not in told:
            faults.append(f"{name} passes and is not in passing.txt: --update adds it")
        elif name in found and found[name] != told[name]:
            how = "only with inputs bound as constants" if found[name] else "without inputs bound as constants"
            faults.append(f"{name} passes {how}, and passing.txt says otherwise: --update marks it anew")
    return faults


if __name__ == "__main__":
    main()
