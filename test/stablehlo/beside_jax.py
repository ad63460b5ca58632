#!/usr/bin/env python3
"""Compares functions of JAX with what Astra makes of them: jax.export, StableHLO as text, astra-compile.

usage: beside_jax.py BIN [--filter=REGEX] [--bundle] [--keep DIR] [--update] [--verbose]

Each case of cases.py is exported, imported and evaluated by the reference evaluator (astra-opt --eval), or compiled for x86-64-v3
and run (--bundle). Integers and bools must be equal; floats within the tolerance of the case; a NaN where JAX has one. --update writes the texts and numbers of the
sample, test/stablehlo/sample. The last line is "N passed, N failed".
"""
import argparse
import os
import pathlib
import re
import sys
import tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax  # noqa: E402
import numpy as np  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import harness  # noqa: E402
import text  # noqa: E402
from cases import CASES, POLYMORPHIC, SAMPLE  # noqa: E402
from harness import difference, evaluate  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--filter", default="")
    parser.add_argument("--bundle", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.update:
        options.filter = "^(" + "|".join(map(re.escape, SAMPLE)) + ")$"
    passed = failed = 0
    cases = {name: (f, None, [], args, tolerance) for name, (f, args, tolerance) in CASES.items()} | POLYMORPHIC
    for name, (f, shapes, dims, args, tolerance) in cases.items():
        if not re.search(options.filter, name):
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.keep / name if options.keep else pathlib.Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            try:
                program, kept, results = text.export(f, args, shapes, "tpu" if name.startswith("tpu.") else "cpu")
                want = [np.asarray(x) for x in jax.tree.leaves(jax.jit(f)(*args))]
                got = evaluate(options.bin, program, [args[i] for i in kept], results, folder, options.bundle, dims)
                for label, g, w in zip(results, got, want, strict=True):
                    if wrong := difference(g, w, tolerance):
                        raise RuntimeError(f"{label}: {wrong}")
                passed += 1
                if options.update:
                    harness.save(name, program, [args[i] for i in kept], dict(zip(results, want, strict=True)), dims, tolerance)
                if options.verbose:
                    print(f"ok   {name}")
            except Exception as e:  # noqa: BLE001 - a case that fails in any way is one that failed
                failed += 1
                print(f"FAIL {name}: {type(e).__name__}: {e}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
