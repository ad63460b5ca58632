"""`python -m astra_rt FILE.astra`: what a bundle has, and whether it runs here."""

from __future__ import annotations

import argparse
import sys

from . import Error, __version__, _rt, abi_version
from ._info import DimInfo, EntryInfo, TargetInfo, TensorInfo
from ._future import Worker
from ._module import read_source


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m astra_rt", description="Prints what a bundle has, and whether it runs here.")
    parser.add_argument("file", help="a bundle that astra-compile made")
    parser.add_argument("--version", action="version", version=f"astra_rt {__version__}, C ABI {abi_version}")
    try:
        path, data = read_source(parser.parse_args().file)
        assert path is not None
        about = _rt.open(path, data, 0).describe()
    except (Error, OSError) as error:
        print(f"astra_rt: {error}", file=sys.stderr)
        return 1
    print(f"module {about['module']}, {about['contract']} {about['numerics']}, {about['num_kernels']} kernels")
    for name, inputs, outputs, states, _ in about["entries"]:
        print("entry", EntryInfo(name, inputs, outputs, states, Worker()).text)
    for word, rows in (("param", about["params"]), ("state", about["states"])):
        for row in rows:
            print(word, TensorInfo(*row))
    for row in about["dims"]:
        dim = DimInfo(*row)
        print("dim", dim, "of a session" if dim.is_session else "of a call" if dim.is_host else "of inputs")
    for row in about["targets"]:
        target = TargetInfo(*row)
        print("target", target.name, "runs here" if target.lacks is None else f"needs {target.lacks}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
