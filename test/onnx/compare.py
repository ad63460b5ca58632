"""astra-compare finds what it should: a table of command lines, and an error planted in one node of 300.

Takes:    a build folder.
Gives:    a line for each test that fails; "N passed, M failed"; exit code 1 if any failed.
Keeps:    models are made here, from a seed.

    build/venv/bin/python test/onnx/compare.py build
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tools/astra-compare")]
from report import Difference  # noqa: E402

WIDTH = 24


def network(nodes=300, planted=None):
    """Blocks of five nodes, each with a weight; `planted` names a node whose weight is off by a hundredth."""
    rng = np.random.default_rng(5)
    weights, made, value = [], [], "x"
    for k in range(nodes):
        kind = ("MatMul", "Add", "Tanh", "Mul", "Add")[k % 5]
        name, operands = f"block{k // 5}/{k % 5}_{kind.lower()}", [value]
        if kind != "Tanh":
            shape = (WIDTH, WIDTH) if kind == "MatMul" else (WIDTH,)
            array = (rng.standard_normal(shape) * 0.22 + (kind == "Mul")).astype(np.float32)
            if name == planted:
                array = array * np.float32(1.01)
            weights.append(numpy_helper.from_array(array, name + "/w"))
            operands.append(name + "/w")
        value = "y" if k == nodes - 1 else name + "/out"
        made.append(helper.make_node(kind, operands, [value], name))
    tensor = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", WIDTH])
    graph = helper.make_graph(made, "network", [tensor("x")], [tensor("y")], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def lookup():
    """Integers that look rows up, and an 8-bit operand."""
    table = numpy_helper.from_array(np.random.default_rng(1).standard_normal((1000, 8)).astype(np.float32), "table")
    nodes = [helper.make_node("Gather", ["table", "ids"], ["rows"], "look-up"),
             helper.make_node("Cast", ["bytes"], ["floats"], "widen", to=TensorProto.FLOAT),
             helper.make_node("Add", ["rows", "floats"], ["y"], "sum"),
             helper.make_node("Cast", ["y"], ["h"], "narrow", to=TensorProto.FLOAT16)]  # fmt: skip
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "lookup", [info("ids", TensorProto.INT64, ["n"]), info("bytes", TensorProto.UINT8, [8])],
                              [info("y", TensorProto.FLOAT, ["n", 8]), info("h", TensorProto.FLOAT16, ["n", 8])],
                              [table])  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def halved():
    """An extent that is written as a multiple, and one of which it can be said."""
    tensor = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph([helper.make_node("SpaceToDepth", ["x"], ["y"], "fold", blocksize=2)], "halved",
                              [tensor("x", 1, 1, "2*h", "W")], [tensor("y", 1, 4, "h", None)])  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def one():
    """One node of two inputs that share a dynamic dim."""
    tensor = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4])
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"], "sum")], "one", [tensor("a"), tensor("b")], [tensor("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def refused():
    """An op that no opset has."""
    graph = helper.make_graph([helper.make_node("Unheard", ["x"], ["y"], "odd")], "refused",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


PLANTED = "block37/3_mul"
DIM = "--dim=n=1..9"
# Command line, exit code, what stdout or stderr must have.
RUNS = [
    (["network", DIM], 0, "n=5"),
    (["network", DIM, "--nodes"], 0, "all 300 values of nodes are within the tolerance"),
    (["network", DIM, "--at=n=3,9", "--threads=2", "--level=x86-64-v3"], 0, "n=9"),
    (["network", DIM, "--reference=planted"], 4, "DIFFERS"),
    (["network", DIM, "--reference=planted", "--nodes", "--at=n=4"], 4, f"first node beyond the tolerance: {PLANTED} (Mul)"),
    (["network", DIM, "--reference=planted", "--tolerance=0.5"], 0, "ok"),
    (["network"], 1, "--dim n=1..64"),
    (["network", DIM, "--at=n=10"], 2, "must be in 1 .. 9"),
    (["network", DIM, "--at=n=-4"], 2, "must be in 1 .. 9"),
    (["network", DIM, "--tolerance=nan"], 2, "--tolerance nan"),
    (["network", DIM, "--tolerance=-1"], 2, "--tolerance -1"),
    (["network", DIM, "--tolerance=inf"], 2, "--tolerance inf"),
    (["network", DIM, "--at=n=3", "--tolerance=0"], 4, "DIFFERS"),
    (["network", DIM, "--seed=-1"], 2, "--seed -1"),
    (["network", DIM, "--threads=-3"], 2, "--threads -3"),
    (["network", DIM, "--range=x=nan..1"], 2, "not finite"),
    (["network", DIM, "--range=x=0..inf"], 2, "not finite"),
    (["lookup", DIM, "--range=ids=0..inf"], 2, "not finite"),
    (["lookup", DIM, "--range=ids=0.2..0.7"], 2, "no value of int64"),
    (["one", DIM, "--nodes"], 0, "y       float32[5, 4]"),
    (["one", DIM, "--input=a=five.npy"], 0, "one.onnx at n=5"),
    (["one", DIM, "--input=a=five.npy", "--input=b=five.npy"], 0, "one.onnx at n=5"),
    (["one", DIM, "--input=a=five.npy", "--input=b=six.npy"], 2, "the dim 'n' has the size 6 there, and 5 in --input a"),
    (["one", DIM, "--input=a=five.npy", "--at=n=6"], 2, "--at can give no other"),
    (["one", "--dim=n=1..4", "--input=a=five.npy"], 2, "--dim says 1 .. 4"),
    (["halved", "--dim=h=1..5", "--dim=W=2*w", "--dim=w=2..4"], 0, "y       float32[1, 4, 3, 3]"),
    (["halved", "--dim=h=1..5", "--dim=W=2*w", "--dim=w=2..4", "--input=x=wide.npy"], 0, "float32[1, 4, 5, 2]"),
    (["halved", "--dim=h=1..4", "--dim=W=2*w", "--dim=w=2..4", "--input=x=wide.npy"], 2, "has the size 5 there"),
    (["halved", "--dim=h=1..4", "--dim=W=4..8"], 3, "say so with --dim 'W=2*W_2' --dim W_2=2..4"),
    (["halved", "--dim=W=4"], 1, "--dim h=1..64"),
    (["lookup", DIM, "--input=bytes=nine.npy"], 2, "has the size 9, the model's input 8"),
    (["network", DIM, "--at=m=1"], 2, "--dim m=LO..HI"),
    (["network", DIM, "--range=z=0..1"], 2, "no such input; it has x"),
    (["network", "--dim=n=9..1"], 2, "empty"),
    (["network", "--no-such-flag"], 2, "unrecognized"),
    ([], 2, "no model is given"),
    (["missing"], 1, "missing.onnx"),
    (["lookup", DIM, "--nodes", "--all"], 0, "look-up (Gather): rows"),
    (["lookup", DIM, "--range=ids=998..999"], 0, "float16[5, 8]"),
    (["lookup", DIM, "--reference=refused"], 1, "ONNX Runtime refuses the model"),
    (["refused"], 3, "Unheard"),
]


def difference(a, b, tolerance=None):
    d = Difference("v", np.asarray(a), np.asarray(b), tolerance)
    return d.within, d.first, d.largest


F32 = np.float32
# The difference of two arrays: within, the first place beyond, the largest.
DIFFERENCES = [
    (difference(F32([1, np.nan, np.inf]), F32([1, np.nan, np.inf])), (True, None, 0.0)),
    (difference(F32([1, np.nan]), F32([1, 2])), (False, [1], np.inf)),
    (difference(F32([np.inf, 0]), F32([-np.inf, 0])), (False, [0], np.inf)),
    (difference(F32([[100, 1], [0, 0.009]]), F32([[100, 1], [0, 0]])), (True, None, float(F32(0.009)))),
    (difference(F32([100, 0.02]), F32([100, 0])), (False, [1], float(F32(0.02)))),
    (difference(F32([]), F32([])), (True, None, 0.0)),
    (difference(F32(3), F32(3)), (True, None, 0.0)),
    (difference(F32(3), F32([3])), (False, None, np.inf)),
    (difference(np.int64([2**62 + 1]), np.int64([2**62])), (False, [0], 1.0)),
    (difference(np.uint8([3]), np.int8([3])), (False, None, np.inf)),
    (difference(np.bool_([True, False]), np.bool_([True, True])), (False, [1], 1.0)),
    (difference(np.float16([1]), np.float16([1.005])), (True, None, float(np.float16(1.005)) - 1)),
]


def main():
    build, failed, passed = Path(sys.argv[1]), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        models = {"network": network(), "planted": network(planted=PLANTED), "lookup": lookup(), "refused": refused(),
                  "one": one(), "halved": halved()}  # fmt: skip
        for name, array in {"five": np.ones((5, 4), F32), "six": np.ones((6, 4), F32), "nine": np.ones(9, np.uint8),
                            "wide": np.ones((1, 1, 10, 4), F32)}.items():
            np.save(f"{folder}/{name}.npy", array)
        for name, model in models.items():
            onnx.save(model, f"{folder}/{name}.onnx")
        models["missing"] = None
        for words, code, text in RUNS:
            line = [str(build.resolve() / "bin/astra-compare")]
            for word in words:
                line.append(word if word.startswith("-") else f"{word}.onnx")
                if word.startswith("--reference="):
                    line[-1] += ".onnx"
            done = subprocess.run(line, capture_output=True, text=True, cwd=folder)
            if done.returncode == code and text in done.stdout + done.stderr:
                passed += 1
            else:
                failed += 1
                print(f"{words}: exit {done.returncode}, not {code}, or no '{text}' in:\n{done.stdout}{done.stderr}")
        line = [str(build.resolve() / "bin/astra-compare"), "network.onnx", DIM, "--nodes", "--reference=planted.onnx"]
        found = json.loads(subprocess.run(line + ["--json=-"], capture_output=True, text=True, cwd=folder).stdout)
        firsts = {case["first_node"]["node"] for case in found["cases"]}
        if found["agrees"] or firsts != {f"{PLANTED} (Mul)"} or len(found["cases"]) != 3:
            failed += 1
            print(f"JSON: the first nodes are {firsts}")
        else:
            passed += 1
    for k, (found, expected) in enumerate(DIFFERENCES):
        if found == expected:
            passed += 1
        else:
            failed += 1
            print(f"difference {k}: {found}, expected {expected}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
