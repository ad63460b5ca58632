"""Write the list of ONNX's backend cases, a line "NAME OP" for each, and that of the ops of the default domain.

Takes:    the package onnx.
Gives:    cases.txt and ops.txt, beside this file; --check: exit code 1 if they are not what this would write.
Keeps:    the op that a case is about: the one op of its model (beside Constant), or the one whose expansion into other
          ops it is; "-" for a model of several.
Does not: run anything.

    build/venv/bin/python test/onnx/list_cases.py [--check]
"""

import re
import sys
import warnings
from pathlib import Path

import onnx
from onnx.backend.test.loader import load_model_tests

HERE = Path(__file__).resolve().parent
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
    names = {schema.name for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == ""}
    for path, wanted in ((HERE / "cases.txt", text), (HERE / "ops.txt", "".join(f"{name}\n" for name in sorted(names)))):
        if sys.argv[1:] != ["--check"]:
            path.write_text(wanted)
        elif not path.exists() or path.read_text() != wanted:
            sys.exit(f"{path} is not what list_cases.py writes")


if __name__ == "__main__":
    main()
