"""Installs what was built, and uses it as somebody else would.

usage: test/install/run.py [--build FOLDER] [--packages] [--wheels]
Without --packages under 20 seconds: an install in a folder of build, consumed by a CMake project, by pkg-config and from
another place (tree.py). With it too: the Debian packages, made twice, and used in roots that hold nothing but Debian's
minimum (packages.py); that takes root, apt's mirror and some minutes. With --wheels those of Python (wheels.py), likewise. The last line is "N passed, N failed".
"""

import argparse
import sys
import time
from pathlib import Path

import packages
import tree
import wheels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=tree.ROOT / "build")
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--wheels", action="store_true")
    options = parser.parse_args()
    build = options.build.resolve()
    groups = [(tree.Tree(build, build / "install-test/tree"), tree.CASES)]
    if options.packages:
        groups.append((packages.Packages(build, build / "install-test/packages"), packages.CASES))
    if options.wheels:
        groups.append((wheels.Wheels(build, build / "install-test/wheels"), wheels.CASES))
    passed = failed = 0
    for subject, cases in groups:
        for case in cases:
            before = time.monotonic()
            try:
                case(subject)
                passed += 1
                print(f"ok    {case.__name__} ({time.monotonic() - before:.1f} s)", flush=True)
            except tree.Failed as wrong:
                failed += 1
                print(f"FAIL  {case.__name__}: {wrong}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
