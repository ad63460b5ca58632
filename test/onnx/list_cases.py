"""Write the list of ONNX's backend cases: a line "NAME OP" for each.

Takes:    the package onnx.
Gives:    cases.txt on stdout; --check FILE: exit code 1 if that file is not what this would write.
Keeps:    the op that a case is about: the one op of its model (beside Constant), or the one whose expansion into other
          ops it is; "-" for a model of several.
Does not: run anything.

    build/venv/bin/python test/onnx/list_cases.py > test/onnx/cases.txt
"""

import re
import sys
import warnings
from pathlib import Path

import onnx
from onnx.backend.test.loader import load_model_tests

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")


def ops_of(model):
    names = set()
    for node in model.graph.node:
        domain = "" if node.domain in ("", "ai.onnx") else node.domain + "::"
        names.add(domain + node.op_type)
    return names - {"Constant"} or names


def main():
    warnings.filterwarnings("ignore")
    ops = {}
    for kind in KINDS:
        for case in load_model_tests(kind=kind):
            model = case.model or onnx.load(Path(case.model_dir) / "model.onnx", load_external_data=False)
            ops[case.name] = ops_of(model)
    text = ""
    for name, used in sorted(ops.items()):
        base = ops.get(re.sub(r"_expanded(_ver\d+)?$", "", name), used)
        about = base if len(base) == 1 else used
        text += f"{name} {min(about) if len(about) == 1 else '-'}\n"
    if sys.argv[1:2] == ["--check"]:
        sys.exit(0 if Path(sys.argv[2]).read_text() == text else f"{sys.argv[2]} is not what list_cases.py writes")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
