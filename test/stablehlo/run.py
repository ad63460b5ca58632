#!/usr/bin/env python3
"""Runs the StableHLO programs of test/stablehlo/sample, which JAX wrote, and compares with the numbers that JAX gave.

usage: run.py BIN [--filter=REGEX] [--bundle]
By the reference evaluator, or compiled for x86-64-v3 (--bundle). beside_jax.py --update writes the sample. The last line is
"N passed, N failed".
"""
import argparse
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from harness import SAMPLE_FOLDER, difference, evaluate, load  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--filter", default="")
    parser.add_argument("--bundle", action="store_true")
    options = parser.parse_args()
    passed = failed = 0
    for name in sorted(path.stem for path in SAMPLE_FOLDER.glob("*.mlir")):
        if not re.search(options.filter, name):
            continue
        program, args, want, dims, tolerance = load(name)
        with tempfile.TemporaryDirectory() as folder:
            try:
                got = evaluate(options.bin, program, args, list(want), pathlib.Path(folder), options.bundle, dims)
                wrong = next((f"{label}: {text}" for (label, w), g in zip(want.items(), got, strict=True) if (text := difference(g, w, tolerance))), None)
            except RuntimeError as e:
                wrong = str(e)
        passed += wrong is None
        failed += wrong is not None
        if wrong:
            print(f"FAIL {name}: {wrong}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
