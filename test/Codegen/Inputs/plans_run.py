"""Kernels under other plans than the chosen ones: whether they give the evaluator's bytes.

usage: plans_run.py BIN MODULE.uop FOLDER

Takes:    PLANS: for each kernel of each entry, changes of its chosen plan: steps in place of those of their names, `/2`
          for half of a number; or, with a colon, a whole plan.
Gives:    the number of plans, of runs, of plans refused; exit 1 with the commands that repeat it if bytes differ, a plan
          is refused or is the chosen one, a step of one (STEPS) changes no code, one of REFUSED is not refused, or a
          kernel has no plan here.
Keeps:    the entries that have a first change are one bundle, those that have a second one another, and so on.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np

BIN, MODULE, FOLDER = (Path(a) for a in sys.argv[1:])
LEVELS, THREADS = ("x86-64-v3", "x86-64-v4"), (1, 2, 3)

ROWS = ["vector /2; prefetch 1", "prefetch 3; unroll 1", "vector 64", "merge 1; prefetch 1", "vector 1; unroll 1"]
HEAD = ["row-block 7", "row-block 16; mr 5; prefetch 3", "row-block 53; nr 1", "row-block 11; mr 4; mc 2; kc 5"]
LAST = ["prefetch 3; mr 4; nr 1", "mc 2; kc 5; mr 2", "row-block 1; nr 1; mr 2", "mc 3; kc 64; prefetch 3; mr 2"]
PLANS = {
    "attention": {"contract_joined": HEAD + ["row-block 100; mr 4; nr 2; pack-b 2"], "reduce": ROWS,
                  "contract": LAST + ["pack-b 1; row-block 2; mr 2; nr 1"]},
    "causal": {"contract_joined": HEAD[:3], "reduce": ROWS[:3], "contract": LAST[:3]},
    "product": {"contract": ["pack-b 1", "pack-b 3; row-block 2; mr 4; nr 2", "pack-b 2; prefetch 3", "pack-b 40; nr 1; prefetch 8", "row-block 2; nr 1",
                             "prefetch 3", "mc 2; kc 5", "mc 3; kc 600; prefetch 7",
                             "columns: merge 1; vector 8; unroll 2; tail masked; prefetch 3"]},
    "weights": {"contract": ["mr 5; nr 2; prefetch-panel 1", "nr 1; row-block 2; prefetch-panel 1", "row-block 3; nr 2; mr 4", "prefetch 3", "mc 2; kc 5",
                             "mc 3; kc 32; prefetch 8; nr 2", "mc 64; kc 512; nr 2", "row-block 100; prefetch 8; nr 1",
                             "mc 2; kc 64; row-block 2; mr 4; nr 1", "columns: merge 2; vector 8; unroll 1; prefetch 3"]},
    "any": {"contract": ["row-block 2; nr 2", "mc 2; kc 9", "prefetch 3", "row-block 3; prefetch-panel 1; nr 1", "mc 3; kc 64; prefetch 8; nr 2"]},
    "places": {"contract": ["mc 2; kc 5", "mc 1; kc 16", "mc 4; kc 200; prefetch 3; mr 5", "prefetch 3; nr 1"]},
    "image": {"contract": ["m 0 1 2; nr 2; prefetch-panel 1", "m 0 1 2; row-block 3; nr 2", "m 0 1 2; mc 3; kc 32",
                           "prefetch 8; m 2", "m 1 2; mc 2; kc 7; nr 2", "m; mr 1; nr 2"]},
    "vector": {"contract": ["unroll-k 4; unroll 1", "unroll-k 16; unroll 2", "vector 4; unroll 3; unroll-k 2", "unroll-k 8; tail overlapped; unroll 3", "unroll 1; unroll-k 1"]},
    "vectors": {"contract": ["unroll-k 4; vector 4; merge 1; unroll 1", "unroll-k 16; vector 8; merge 1; unroll 1", "unroll-k 8; merge 2; vector 16; unroll 1"]},
    "dot": {"contract": ["block 4; unroll-k 8", "block 16; unroll-k 2", "block 2; unroll-k 16; prefetch 3"]},
    "dots": {"contract": ["block 2; unroll-k 4", "block 16; unroll-k 4", "columns: merge 1; vector 1; unroll 1"]},
    "depthwise": {"contract": ["mc 2; kc 5; mr 2", "row-block 3; mr 2; nr 1", "mr 3; nr 2", "m 1; mr 5; nr 1", "m; mr 1; nr 2"]},
    "images": {"contract": ["mr 3; vector 8; nr 2; tail overlapped", "mr 2; vector 4; nr 4; tail overlapped", "m; mr 1; vector 8; nr 2; tail overlapped",
                            "mr 2; vector 8; nr 2; tail none", "columns: merge 1; vector 8; unroll 1; tail overlapped"]},
    "panels": {"contract": ["mc 2; kc 9", "mc 3; kc 64; nr 1", "row-block 2; nr 1", "prefetch 5; mr 3", "mr 5; nr 1"]},
    "map": {"select": ["tail masked; unroll 2", "tail masked; unroll 1; merge 2", "tail masked; vector 64; unroll 1", "tail overlapped; vector 8; unroll 3",
                       "tail overlapped; merge 2; unroll 5", "tail overlapped; vector 32; unroll 1", "tail none; tile 5; unroll 1",
                       "tail none; tile 6; unroll 4; vector /2", "tail none; vector 16; unroll 2; non-temporal 1", "tail none; merge 2; vector 16; unroll 3"]},
    "turned": {"select": ["tile 0; tail masked; merge 1; unroll 2", "tile 0; tail overlapped; merge 1; unroll 2", "tile 0; tail masked; merge 3; unroll 1", "tile 7; merge 1; unroll 2", "tile 5; unroll 1",
                          "vector 16; non-temporal 1", "vector 32; unroll 1; tile 13; merge 2", "vector 64; unroll 1; tile 64; merge 1",
                          "vector 16; unroll 4; tile 256; merge 2", "vector 32; unroll 1; tile 21; merge 2", "points 0; merge 1; vector 16; unroll 4; tile 8",
                          "points 1 0; merge 1; vector 8; unroll 8; tile 33"]},
    "bytes": {"or": ["merge 2; vector 32; unroll 4", "merge 2; vector 16; unroll 1", "merge 2; vector 64; unroll 2", "merge 1; vector 2; unroll 2; tail masked"]},
    "halves": {"select": ["merge 1; vector 4; unroll 1", "merge 2; vector 32; unroll 1", "merge 2; vector 8; unroll 3", "merge 1; vector 4; unroll 2; tail masked"]},
    "columns": {"reduce": ["tail masked; unroll 2", "tail masked; unroll 1; prefetch 3", "tail none; prefetch 3; merge 1; unroll 2", "tail masked; merge 2; unroll 1",
                           "tail overlapped; merge 1; vector 8; unroll 2", "tail overlapped; merge 2; unroll 3", "tail none; merge 2; unroll 1", "tail none; merge 1; vector 16; unroll 3; prefetch 1",
                           "tail none; merge 1; vector 8; unroll 1; block 3", "tail none; merge 2; vector 4; unroll 2; block 5; prefetch 3"]},
    "tall": {"reduce": ["vector 8; unroll 1; block 2; unroll-k 64; tail none", "vector 4; unroll 3; block 3; unroll-k 64; tail none", "vector 16; unroll 3; tail masked; unroll-k 64", "vector 8; unroll 2; unroll-k 64; tail overlapped"]},
    "several": {"reduce": ["merge 2; vector 8; unroll 2; block 3; unroll-k 64; tail none", "merge 1; vector 4; unroll 1; block 7; unroll-k 64; tail none",
                           "merge 2; vector 8; unroll 1; tail masked; unroll-k 64", "merge 1; vector 2; unroll 6; tail masked; unroll-k 64",
                           "merge 2; vector 8; unroll 1; block 4; unroll-k 0; tail none"]},
    "any_columns": {"reduce": ["vector 8; unroll 2; block 2; unroll-k 64; tail none", "vector 4; unroll 3; tail masked; unroll-k 64", "vector 16; unroll 1; block 1; unroll-k 64; tail none"]},
    "rows": {"reduce": [*ROWS, "vector 16; non-temporal 1"]},
    "sums": {"reduce": ["columns: merge 1; vector 8; unroll 1; tail masked", "columns: merge 1; vector 8; unroll 2"]},
}
STEPS = ("row-block", "tile", "block", "tail", "pack-b", "mc", "prefetch", "prefetch-panel", "non-temporal")  # without one of them, or with another block, code is other
# Plans that no kernel can be lowered under, and a part of the sentence.
REFUSED = [
    ("attention", "contract_joined", "row-block 0", "expected a contract with a row-block"),
    ("attention", "contract", "rows: merge 3; vector 8; unroll 1", "rows is for a kernel with a reduce"),
    ("attention", "reduce", "non-temporal 1", "its next kernel reads them at once"),
    ("product", "contract", "pack-b 2; mc 2; kc 8", "expected one of them"),
    ("weights", "contract", "pack-b 2", "packed already"),
    ("causal", "contract", "pack-b 2", "without a domain"),
    ("vector", "contract", "unroll-k 3", "a power of two in 1..16"),
    ("dot", "contract", "block 3", "a power of two in 2..64"),
    ("vector", "contract", "block 8", "expected vector 1, unroll 1, an unroll-k and no tail"),
    ("image", "contract", "columns: merge 1; vector 1; unroll 1; block 4; unroll-k 8", "only of a contract of floats over one label"),
    ("columns", "reduce", "block 4", "only a kernel that writes its whole output row by row has one"),
    ("columns", "reduce", "unroll-k 8", "expected 64, and the order lane64"),
    ("tall", "reduce", "vector 16; unroll 64; block 2000; unroll-k 64; tail none", "more than 16 MiB"),
]
AS_CHOSEN = ("detach", "pad")  # copies before other kernels


class Failure(Exception):
    pass


def call(*words, exits=0):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode != exits:
        raise Failure(f"{shlex.join(str(w) for w in words)}\n  exit {done.returncode}: {done.stderr.strip()[:2000]}")
    return done.stdout if exits == 0 else done.stderr


def changed(text, change, without=None):
    """The plan with these steps, but `without` one."""
    if ":" in change:
        text, _, change = change.partition(":")
        text += ":"
    kind, _, steps = text.partition(":")
    steps = {s.split()[0]: " ".join(s.split()[1:]) for s in steps.split(";") if s.strip()}
    for step in change.split(";"):
        name, _, value = step.strip().partition(" ")
        steps[name] = str(int(steps[name]) // 2) if value == "/2" else value
    for step in (without, {"mc": "kc", "tile": "points"}.get(without)):
        steps.pop(step, None)
    return f"{kind}: " + "; ".join(f"{n} {v}".strip() for n, v in steps.items())


def plans_of(module, *options):
    """Plans by level and kernel, as astra-compile prints them."""
    plans, at = {}, None
    for line in call(BIN / "astra-compile", module, "--emit=plan", "--target=" + ",".join(f"cpu:{l}" for l in LEVELS), *options).splitlines():
        name, _, plan = line.partition(": ")
        if line.startswith("target "):
            at = plans.setdefault(line.split(":")[1], {})
        else:
            at[name] = plan
    return plans


def kernels(module):
    """Names of kernels by entry and what follows their number; by name, the kernel that each is a part of, and its place there."""
    found, parts, entry = {}, {}, None
    for line in call(BIN / "astra-compile", module, "--emit=schedule").splitlines():
        if joined := re.match(r"kernel (\w+) .* followed by (.*)", line):
            parts |= {name: (joined[1], i) for i, name in enumerate([joined[1], *joined[2].split(", ")])}
        elif line.startswith("entry "):
            entry = found.setdefault(line.split()[1], {})
        elif launch := re.match(r"  launch (k\d+_(\w+)) ", line):
            entry[launch[2]] = launch[1]
    return found, parts


def code(module, level, plans, parts):
    """C of each kernel; of those that are joined, their functions."""
    text = call(BIN / "astra-compile", module, "--emit=c", f"--target=cpu:{level}", f"--plans={plans}")
    functions = {m[1]: m[2] for m in re.finditer(r"^static [^\n]*void (k\w+)\([^\n]*\{\n(.*?)^\}", text, re.M | re.S)}
    return functions | {name: [functions[f] for f in functions if re.fullmatch(rf"{head}_\d+_{part}", f)] for name, (head, part) in parts.items()}


def write(file, plans):
    file.write_text("".join(f"target cpu:{l}\n" + "".join(f"{k}: {p}\n" for k, p in of.items()) for l, of in plans.items()))
    return file


def tensor(random, name, dtype, shape):
    """A file of random numbers; of integers all bits of a byte."""
    file, dtype = FOLDER / f"{name}.npy", {"f": "float", "u": "uint", "i": "int"}[dtype[0]] + dtype[1:]
    values = random.standard_normal([37 if e.strip() == "n" else int(e) for e in shape.split(",")])
    np.save(file, values.astype(dtype) if dtype[0] == "f" else (100 * values).astype(np.int64).astype(dtype))
    return file


def arguments(entries):
    """What each entry is run with: random inputs and weights, and what the evaluator gives of them."""
    random, words = np.random.default_rng(0), {}
    params = {m[1]: tensor(random, *m.groups()) for m in re.finditer(r"param @(\w+) : (\w+)\[(.*?)\]", MODULE.read_text())}
    for name, text in entries.items():
        given = [f"--input={i[1]}={tensor(random, name + '.' + i[1], i[2], i[3])}" for i in re.finditer(r"%(\w+) : (\w+)\[(.*?)\]", text.partition("->")[0])]
        given += [f"--param={p}={file}" for p, file in params.items() if f"@{p}[" in text]
        expected = FOLDER / f"{name}.y.npy"
        call(BIN / "astra-opt", MODULE, "--eval", f"--entry={name}", *given, f"--output=y={expected}")
        words[name] = [f"--entry={name}", *given, f"--expect=y={expected}"]
    return words


def refusals(module):
    chosen, (found, _) = plans_of(module), kernels(module)
    for entry, of in found.items():
        if missing := set(of) - set(PLANS[entry]) - set(AS_CHOSEN) | set(PLANS[entry]) - set(of):
            raise Failure(f"entry {entry} has the kernels {', '.join(of)}, and plans here for {', '.join(PLANS[entry])}: {', '.join(missing)}")
    for entry, role, change, sentence in REFUSED:
        for level in LEVELS:
            name = found[entry][role]
            file = write(FOLDER / "refused.plans", {level: {name: changed(chosen[level][name], change)}})
            said = call(BIN / "astra-compile", module, "--emit=plan", f"--target=cpu:{level}", f"--plans={file}", exits=1)
            if f"plan of kernel '{name}'" not in said or sentence not in said:
                raise Failure(f"{entry}: {change}: refused by '{said.strip()}', not by '{sentence}'")


def check(number, module, words, lacks):
    """The changes of this number: how many plans and runs these were, and what is wrong."""
    chosen, (found, parts) = plans_of(module), kernels(module)
    at = {found[e][role]: (e, changes[number]) for e in found for role, changes in PLANS[e].items() if number < len(changes)}

    def file(name, without=lambda change: None):
        return write(FOLDER / name, {l: {k: changed(chosen[l][k], change, without(change)) for k, (_, change) in at.items()} for l in LEVELS})

    plans, bundle, wrong, runs = file(f"{number}.plans"), FOLDER / f"{number}.astra", [], 0
    taken = plans_of(module, f"--plans={plans}")
    wrong += [f"{l}: {k}: '{taken[l][k]}' is the chosen plan" for l in LEVELS for k in at if taken[l][k] == chosen[l][k]]

    def steps(change):
        return [name for name in STEPS if re.search(rf"(?<![\w-]){name} (?!0|none)", change)]

    level = LEVELS[number % len(LEVELS)]
    now = code(module, level, plans, parts)
    for i in range(max(len(steps(change)) for _, change in at.values())):
        less = file("less.plans", lambda change: (steps(change)[i:] or [None])[0])
        if joined := {k for k in at if k.endswith("_joined")}:  # these always have a block
            less.write_text(re.sub(rf"^((?:{'|'.join(joined)}): (?!.*row-block).*)", r"\1; row-block 13", less.read_text(), flags=re.M))
        then = code(module, level, less, parts)
        wrong += [f"{level}: {k}: '{taken[level][k]}': no other code without '{steps(change)[i]}'"
                  for k, (_, change) in at.items() if i < len(steps(change)) and then[k] == now[k]]

    call(BIN / "astra-compile", module, "-o", bundle, "--target=" + ",".join(f"cpu:{l}" for l in LEVELS), f"--plans={plans}", "-j", 2, "--quiet")
    for level in LEVELS:
        for entry in found:
            for threads in THREADS:
                line = [str(w) for w in (BIN / "astra-run", bundle, f"--level={level}", f"--threads={threads}", *words[entry])]
                done = subprocess.run(line, capture_output=True, text=True)
                if "this CPU lacks" in done.stderr:
                    lacks.add(level)
                    break
                runs += 1
                if done.returncode:
                    wrong.append(f"{shlex.join(line)}\n  exit {done.returncode}: {done.stderr.strip()}")
                    wrong += [f"  {k}: {taken[level][k]}" for k, (e, _) in at.items() if e == entry]
    return len(at) * (len(LEVELS) - len(lacks)), runs, wrong


def main():
    text = MODULE.read_text()
    entries = {m[1]: m[0] for m in re.finditer(r"  entry @(\w+)(?:.|\n)*?\n  \}\n", text)}
    head = re.match(r"(?:.*\n)*module .*\n(?:  (?:dim|param) .*\n)*", text)[0]
    words, plans, runs, wrong, lacks = arguments(entries), 0, 0, [], set()
    refusals(MODULE)
    for number in range(max(len(changes) for of in PLANS.values() for changes in of.values())):
        module = FOLDER / f"{number}.uop"
        module.write_text(head + "".join(t for e, t in entries.items() if any(number < len(changes) for changes in PLANS[e].values())) + "}\n")
        done = check(number, module, words, lacks)
        plans, runs, wrong = plans + done[0], runs + done[1], wrong + done[2]
    expected = sum(len(changes) for of in PLANS.values() for changes in of.values()) * (len(LEVELS) - len(lacks))
    if not expected or plans != expected:
        wrong.append(f"{plans} plans were run, expected {expected}" + "".join(f"; this CPU has no {l}" for l in sorted(lacks)))
    if wrong:
        raise Failure("\n".join(wrong))
    print(f"{plans} plans, {runs} runs, {len(REFUSED)} refused" + "".join(f"; this CPU has no {l}" for l in sorted(lacks)))


try:
    main()
except Failure as e:
    sys.exit(f"plans_run.py: {e}")
