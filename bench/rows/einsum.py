"""Einstein sums of the benchmark suite of strided-rs, f64, each with its stored path, and the suite's permutations.

Takes:    the folder of its instances and patterns.json: ASTRA_EINSUM_DATA, or ../shared/data/einsum beside the repository.
Gives:    no rows where the folder is not there.
Keeps:    the path: every contestant contracts the same pairs in the same order. Labels that are neither letters nor beyond
          ASCII get other characters.
"""

import json
import math
import os
from pathlib import Path

import numpy as np

from rows import Case, Row, node, random

FOLDER = Path(os.environ.get("ASTRA_EINSUM_DATA") or Path(__file__).resolve().parents[3] / "shared/data/einsum")
RANK = 16  # of an input, at most


def normal(name, shape):
    """Contractions keep their magnitude by and large."""
    return random("einsum", name).standard_normal(shape) * math.prod(shape) ** -0.25


def labels(equation):
    plain = {c: chr(0x4E00 + ord(c)) for c in set(equation) - set(",->") if c.isascii() and not c.isalpha()}
    return "".join(plain.get(c, c) for c in equation)


def instance(file):
    found = json.loads(file.read_text())
    equation, path = labels(found["format_string"]), [tuple(step) for step in found["paths"]["opt_flops"]["path"]]
    shapes = {f"x{i}": shape for i, shape in enumerate(found["shapes"])}
    is_flat = len(equation.split("->")[1]) > RANK
    text = f"{equation} path=[{', '.join(f'({i}, {k})' for i, k in path)}]"

    def case():
        inputs = {name: normal(f"{found['name']} {name}", shape) for name, shape in shapes.items()}
        nodes, weights = [node("Einsum", " ".join(shapes), "y", equation=text)], {}
        if is_flat:
            nodes, weights = [*nodes, node("Reshape", "y flat", "z")], {"flat": np.array([-1], np.int64)}
        return Case(inputs, weights, nodes)

    def contracted(_, values):
        import opt_einsum

        y = opt_einsum.contract(equation, *(values[name] for name in shapes), optimize=path)
        return y.reshape(-1) if is_flat else y

    flops = 10 ** found["paths"]["opt_flops"]["log10_flops"]
    return Row("einsum", found["name"], case, flops=flops, limit="", torch=contracted, numpy=contracted, tolerance=1e-8)


def permutation(pattern):
    """Column-major axes, from last to first, are row-major ones. Strides say the order of axes in memory too."""
    shape, perm = pattern["shape"], pattern["perm"]
    strides = pattern["src_layout"].get("strides")
    if strides:  # the view as it is, to a dense array
        places = sorted(range(len(shape)), key=strides.__getitem__)
        perm, shape = [places.index(axis) for axis in range(len(shape))], [shape[axis] for axis in places]
    last = len(shape) - 1
    shape, perm = shape[::-1], [last - axis for axis in perm[::-1]]
    size = math.prod(shape)

    def case():
        x = normal(pattern["id"], shape if len(shape) <= RANK else [size])
        if len(shape) <= RANK:
            return Case({"x": x}, nodes=[node("Transpose", "x", "y", perm=perm)])
        nodes = [node("Reshape", "x shape", "a"), node("Transpose", "a", "b", perm=perm), node("Reshape", "b flat", "y")]
        return Case({"x": x}, {"shape": np.array(shape, np.int64), "flat": np.array([size], np.int64)}, nodes)

    def permuted(torch, values):
        y = values["x"].reshape(shape).permute(perm).clone(memory_format=torch.contiguous_format)
        return y if len(shape) <= RANK else y.reshape(-1)

    def copied(_, values):
        y = values["x"].reshape(shape).transpose(perm).copy()
        return y if len(shape) <= RANK else y.reshape(-1)

    return Row("einsum", f"permutation {pattern['id']}", case, bytes=16 * size, limit="copy", torch=permuted, numpy=copied, tolerance=0)


def rows():
    if not FOLDER.is_dir():
        return []
    files = sorted(file for file in FOLDER.glob("*.json") if file.name != "patterns.json")
    patterns = json.loads((FOLDER / "patterns.json").read_text())["patterns"]
    return [*map(instance, files), *map(permutation, patterns)]


ROWS = rows()
