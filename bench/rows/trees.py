"""Ensembles of decision trees: complete ones of depth 8 over 32 features, random splits and weights (ai.onnx.ml TreeEnsembleRegressor)."""

import numpy as np
from onnx import helper

from rows import Case, Row, normal, random

DEPTH, FEATURES = 8, 32


def ensemble(trees):
    """The one node. Nodes of a tree are numbered by levels: below node i are 2 i + 1 and 2 i + 2."""
    inner, count = 2**DEPTH - 1, 2 ** (DEPTH + 1) - 1
    draw = random("trees", str(trees))
    features, values = draw.integers(0, FEATURES, (trees, count)), draw.standard_normal((trees, count), dtype=np.float32)
    features[:, inner:], values[:, inner:] = 0, 0
    yes = [2 * i + 1 if i < inner else 0 for i in range(count)]
    of_tree = lambda n: np.repeat(np.arange(trees), n).tolist()  # noqa: E731
    leaves = list(range(inner, count))
    return helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, nodes_treeids=of_tree(count), nodes_nodeids=list(range(count)) * trees,
        nodes_featureids=features.ravel().tolist(), nodes_values=values.ravel().tolist(),
        nodes_modes=(["BRANCH_LEQ"] * inner + ["LEAF"] * len(leaves)) * trees, nodes_truenodeids=yes * trees,
        nodes_falsenodeids=[i + 1 if i else 0 for i in yes] * trees, target_treeids=of_tree(len(leaves)), target_nodeids=leaves * trees,
        target_ids=[0] * len(leaves) * trees, target_weights=draw.standard_normal(trees * len(leaves), dtype=np.float32).tolist())  # fmt: skip


def row(trees, batch):
    def make():
        return Case({"x": normal("x", (batch, FEATURES))}, {}, [ensemble(trees)])

    return Row("trees", f"{trees:,} trees of depth {DEPTH}, batch {batch:,}", make, limit="")


ROWS = [row(trees, batch) for trees in (100, 1000) for batch in (1, 1000)]
