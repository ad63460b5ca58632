#!/usr/bin/env python3
"""Five awkward modules, from text to bundle to the C API (through astra-run), equal to the evaluator byte for byte.

usage: run.py BUILD    BUILD/bin holds astra-compile, astra-run and astra-opt; prints "N passed, N failed"
"""
import json, os, subprocess, sys, tempfile
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
bin = os.path.join(os.path.abspath(sys.argv[1]), "bin")
levels = ["x86-64-v3"] + (["x86-64-v4"] if "avx512f" in open("/proc/cpuinfo").read() else [])
targets = "cpu:x86-64-v3,cpu:x86-64-v4,cpu:aarch64"
passed = failed = 0


def tool(name, *args):
    r = subprocess.run([os.path.join(bin, name), *args], capture_output=True, text=True)
    if r.returncode:
        raise RuntimeError(f"{name} {' '.join(args)}: exit {r.returncode}: {r.stderr.strip()}")
    return r.stdout


def check(what, ok, detail=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAILED {what} {detail}")


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


class Module:
    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.text = os.path.join(here, name + ".uop")
        self.bundle = os.path.join(folder, name + ".astra")
        tool("astra-compile", self.text, "-o", self.bundle, "--target=" + targets)

    def file(self, stem, value=None):
        path = os.path.join(self.folder, f"{self.name}.{stem}.npy")
        if value is not None:
            np.save(path, value)
        return path

    def args(self, flag, values):
        return [a for k, v in values.items() for a in (flag, f"{k}={self.file(flag.strip('-') + '.' + k, v)}")]

    def outputs(self, who, names):
        return [a for n in names for a in ("--output", f"{n}={self.file(who + '.' + n)}")]

    def evaluate(self, inputs, names, params={}, states={}, dims={}):
        """Outputs by the evaluator."""
        tool("astra-opt", self.text, "--eval", *self.args("--input", inputs), *self.args("--param", params),
             *self.args("--state", states), *[a for k, v in dims.items() for a in ("--dim", f"{k}={v}")], *self.outputs("eval", names))
        return {n: np.load(self.file("eval." + n)) for n in names}

    def run(self, inputs, names, level, threads=1, params={}, states={}, keep=(), dims={}, trace=None):
        """Outputs, and the states named by `keep`, by the bundle."""
        extra = [a for s in keep for a in ("--get-state", f"{s}={self.file('state.' + s)}")]
        tool("astra-run", self.bundle, "--level", level, "--threads", str(threads), *self.args("--input", inputs),
             *self.args("--param", params), *self.args("--set-state", states), *extra,
             *[a for k, v in dims.items() for a in ("--dim", f"{k}={v}")], *self.outputs("run", names), *(["--trace", trace] if trace else []))
        return {n: np.load(self.file("run." + n)) for n in names}, {s: np.load(self.file("state." + s)) for s in keep}

    def compare(self, what, inputs, names, **more):
        expected = self.evaluate(inputs, names, **more)
        for level in levels:
            for threads in (1, 3):
                found, _ = self.run(inputs, names, level, threads, **more)
                for n in names:
                    check(f"{self.name} {what} {level} threads {threads}: {n}", same(found[n], expected[n]))


def launches(trace):
    data = json.load(open(trace))
    events = data["traceEvents"] if isinstance(data, dict) else data
    return [e["name"] for e in events if e.get("ph") == "X"]


def main(folder):
    rng = np.random.default_rng(1)
    normal = lambda *shape: rng.standard_normal(shape).astype("f4")

    m = Module("decode", folder)
    listing = tool("astra-compile", m.text, "--emit=schedule", "--target=cpu:x86-64-v3")
    check("decode: the cache is written in place and never copied", "in place" in listing and "copy" not in listing, listing)
    largest = max(int(l.split()[-2]) for l in listing.splitlines() if ": input" in l)
    slots = [l for l in listing.splitlines() if l.strip().startswith("slot")]
    check("decode: no slot holds a cache", all("262144" not in l for l in slots), slots)
    for level in levels:
        states = {"keys": np.zeros((1024, 64), "f4"), "values": np.zeros((1024, 64), "f4")}
        for step in range(6):
            inputs = {"q": normal(64), "key": normal(1, 64), "value": normal(1, 64)}
            expected = m.evaluate(inputs, ["y"], states=states, dims={"len": step})
            found, after = m.run(inputs, ["y"], level, states=states, keep=["keys", "values"], dims={"len": step})
            check(f"decode step {step} {level}", same(found["y"], expected["y"]))
            changed = sum(int((after[s] != states[s]).any(axis=1).sum()) for s in after)
            check(f"decode step {step} {level}: one row of each cache changes", changed == 2, changed)
            check(f"decode step {step} {level}: the row is the new one", same(after["keys"][step], inputs["key"][0]))
            states = after
    print(f"decode: a step writes {2 * 64 * 4} bytes of the two caches of {2 * 1024 * 64 * 4} bytes; largest other buffer {largest} bytes")

    m = Module("grow", folder)
    for limit in (0.5, 10.0, 1e6, 1e30):
        m.compare(f"limit {limit}", {"x": np.array([1, 0.5, 0.25], "f4"), "limit": np.array(limit, "f4")}, ["y", "count"])

    m = Module("compact", folder)
    for n in (0, 1, 64, 333):
        m.compare(f"rows {n}", {"x": normal(n, 6)}, ["kept", "sum", "count"])

    m = Module("weights", folder)
    for n in (1, 7):
        m.compare(f"rows {n}", {"x": normal(n, 40)}, ["y"])
        m.compare(f"rows {n}, the user's weight", {"x": normal(n, 40)}, ["y"], params={"w": normal(40, 70)})

    m = Module("variants", folder)
    for n in (1, 4, 5, 64):
        m.compare(f"rows {n}", {"x": normal(n, 100)}, ["y"])
        trace = os.path.join(folder, "trace.json")
        m.run({"x": normal(n, 100)}, ["y"], levels[0], trace=trace)
        names = launches(trace)
        check(f"variants rows {n}: the guard picks", any("thin" in x for x in names) == (n <= 4), names)


with tempfile.TemporaryDirectory() as folder:
    main(folder)
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
