"""Ops of ai.onnx.ml on numbers: features, labels, linear and kernel machines, trees.

Takes:    a build folder; ONNX Runtime for what the result should be.
Gives:    a line for each model and "N passed, N failed"; exit code 1 if one fails.
Keeps:    bytes equal on every level of this machine and in the reference evaluator; labels equal, scores within 1e-4 of
          the largest magnitude. By default one case in eight of each family; all with --all, and at night.
Does not: test what must be refused (refusals.py).

    build/venv/bin/python test/onnx/ml.py [--all] [--filter=REGEX]
"""

import sys

import numpy as np
from harness import run
from microsoft import RNG, Case, chosen, f32, ints
from onnx import TensorProto, numpy_helper

DOMAIN = "ai.onnx.ml"


def ml(op, inputs, outputs=1, opset=3, **rest):
    return Case(op, inputs, outputs, domain=DOMAIN, opset=opset, **rest)


def features():
    x = f32(5, 4)
    for t in (np.float32, np.float64, np.int64, np.int32):
        y = (x * 3).astype(t)
        yield ml("Scaler", [y], offset=[0.5, -1.0, 0.0, 2.0], scale=[1.0, 2.0, 0.5, 3.0])
        yield ml("Binarizer", [y], threshold=0.5, reference=lambda a: (a > 0.5).astype(a.dtype))
        for norm in ("MAX", "L1", "L2"):
            yield ml("Normalizer", [np.concatenate([np.abs(y), np.zeros((1, 4), t)])], norm=norm)
    yield ml("Scaler", [x], offset=[0.5], scale=[2.0], dims={0: ["n", 4]})
    holes = np.where(RNG.random((5, 4)) < 0.4, np.nan, x).astype(np.float32)
    yield ml("Imputer", [holes], imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=float("nan"))
    yield ml("Imputer", [holes.astype(np.float64)], imputed_value_floats=[7.0], replaced_value_float=float("nan"), reference=lambda y: np.where(np.isnan(y), 7.0, y))
    yield ml("Imputer", [ints(np.int64, 5, 4, high=3)], imputed_value_int64s=[9], replaced_value_int64=1)
    yield ml("OneHotEncoder", [ints(np.int64, 5, 2, high=6)], cats_int64s=[4, 2, 0], zeros=1)
    yield ml("OneHotEncoder", [ints(np.int64, 5, high=6).astype(np.float32)], cats_int64s=[4, 2, 0], zeros=1)
    yield ml("FeatureVectorizer", [f32(3, 2), ints(np.int64, 3, 1, high=9)], kind=TensorProto.FLOAT, inputdimensions=[2, 1],
             reference=lambda a, b: np.concatenate([a, b.astype(np.float32)], 1))  # fmt: skip
    yield ml("ArrayFeatureExtractor", [f32(5, 4), np.array([2, 0, 3])])
    yield ml("ArrayFeatureExtractor", [f32(4), np.array([[2, 0]])])
    yield ml("ArrayFeatureExtractor", [ints(np.int64, 2, 3, 4), np.array([1])])
    keys = np.array([4, -2, 7], np.int64)
    yield ml("LabelEncoder", [ints(np.int64, 3, 4, low=-3, high=9)], keys_int64s=keys, values_floats=[0.5, 1.5, 2.5], default_float=-1.0)
    yield ml("LabelEncoder", [np.array([1.5, np.nan, 2, -0.5], np.float32)], opset=4, keys_floats=[1.5, float("nan"), 2.0], values_int64s=[3, 4, 5], default_int64=-7)
    yield ml("LabelEncoder", [ints(np.int64, 3, 4, low=-3, high=9)], keys_int64s=keys, values_int64s=[1, 2, 3])
    yield ml("LabelEncoder", [np.array([1.5, np.nan, 2, -0.5])], opset=4, keys_tensor=numpy_helper.from_array(np.array([1.5, np.nan, 2.0])),
             values_tensor=numpy_helper.from_array(np.array([3, 4, 5], np.int16)), default_tensor=numpy_helper.from_array(np.array([9], np.int16)), reference=lambda x: np.array([3, 4, 5, 9], np.int16))  # fmt: skip


def linear():
    for post in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"):
        weights = (np.abs(f32(12)) / 30 if post == "PROBIT" else f32(12)).tolist()
        x = np.abs(f32(6, 4)) if post == "PROBIT" else f32(6, 4)
        offsets = [0.2, 0.1, 0.3]
        yield ml("LinearRegressor", [x], coefficients=weights, intercepts=offsets, targets=3, post_transform=post)
        yield ml("LinearRegressor", [x], coefficients=weights[:4], intercepts=[0.3], post_transform=post)
        yield ml("LinearClassifier", [x], 2, coefficients=weights, intercepts=offsets, classlabels_ints=[4, 7, 2], post_transform=post)
        yield ml("LinearClassifier", [x], 2, coefficients=weights[:8], intercepts=offsets[:2], classlabels_ints=[4, 7], post_transform=post)
        if post != "PROBIT":
            yield ml("LinearClassifier", [x], 2, coefficients=weights[:4], intercepts=offsets[:1], classlabels_ints=[4, 7], post_transform=post)
    weights = f32(4)
    yield ml("LinearRegressor", [ints(np.int64, 6, 4, high=9)], coefficients=weights.tolist(), reference=lambda x: (x.astype(np.float32) @ weights)[:, None])
    for kernel, numbers in (("LINEAR", [0.3, 0.1, 2]), ("POLY", [0.3, 0.1, 3]), ("RBF", [0.3, 0.1, 2]), ("SIGMOID", [0.3, 0.1, 2])):
        common = dict(kernel_type=kernel, kernel_params=numbers)
        yield ml("SVMRegressor", [f32(6, 4)], coefficients=f32(5).tolist(), support_vectors=f32(20).tolist(), n_supports=5, rho=[0.2], **common)
        yield ml("SVMRegressor", [f32(6, 4)], coefficients=f32(5).tolist(), support_vectors=f32(20).tolist(), n_supports=5, rho=[0.2], one_class=1, **common)
        for post in ("NONE", "LOGISTIC"):
            yield ml("SVMClassifier", [f32(9, 4)], 2, coefficients=f32(14).tolist(), support_vectors=f32(28).tolist(), vectors_per_class=[2, 3, 2],
                     rho=f32(3).tolist(), classlabels_ints=[5, 3, 8], post_transform=post, **common)  # fmt: skip
            yield ml("SVMClassifier", [f32(9, 4)], 2, coefficients=f32(5).tolist(), support_vectors=f32(20).tolist(), vectors_per_class=[2, 3],
                     rho=[0.1], classlabels_ints=[5, 3], post_transform=post, **common)  # fmt: skip
    yield ml("SVMClassifier", [f32(9, 4)], 2, coefficients=f32(12).tolist(), rho=[0.1], classlabels_ints=[5, 3, 8], kernel_params=[0.1, 0.1, 0.1])


MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def forest(trees, depth, targets, prefix, modes=MODES[:1], missing=False, positive=False, dense=False, whole=False):
    """Random trees of at most this depth as the attributes of the older ops."""
    a = {k: [] for k in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    votes = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        number = 0
        grow = [(0, 0)]
        children = {}
        while grow:
            node, level = grow.pop(0)
            inner = level < depth and (level < 1 or RNG.random() < 0.75 or level == depth - 1 and node == number)
            if inner:
                children[node] = (number + 1, number + 2)
                grow += [(number + 1, level + 1), (number + 2, level + 1)]
                number += 2
            yes, no = children.get(node, (0, 0))
            a["treeids"].append(tree)
            a["nodeids"].append(node)
            a["featureids"].append(int(RNG.integers(4)) if inner else 0)
            a["modes"].append(str(RNG.choice(modes)) if inner else "LEAF")
            a["values"].append(float(RNG.integers(-2, 3) if whole else RNG.standard_normal()) if inner else 0.0)
            a["truenodeids"].append(yes)
            a["falsenodeids"].append(no)
            a["missing_value_tracks_true"].append(int(RNG.integers(2)))
            if not inner:
                for target in range(targets) if dense else [tree % targets]:
                    votes["treeids"].append(tree)
                    votes["nodeids"].append(node)
                    votes["ids"].append(target)
                    votes["weights"].append(float(abs(RNG.standard_normal()) / trees if positive else RNG.standard_normal()))
    if not missing:
        del a["missing_value_tracks_true"]
    return {f"nodes_{k}": v for k, v in a.items()} | {f"{prefix}_{k}": v for k, v in votes.items()}


def trees():
    x = f32(9, 4)
    whole = ints(np.int64, 9, 4, low=-3, high=4)
    holes = np.where(RNG.random((9, 4)) < 0.3, np.nan, x).astype(np.float32)
    op = "TreeEnsembleRegressor"
    for fold in ("SUM", "AVERAGE", "MIN", "MAX"):
        yield ml(op, [x], n_targets=1, aggregate_function=fold, **forest(5, 4, 1, "target"))
        yield ml(op, [x], n_targets=3, aggregate_function=fold, base_values=[0.1, 0.2, 0.3], **forest(6, 3, 3, "target"))
    yield ml(op, [x], n_targets=1, base_values=[0.5], **forest(30, 6, 1, "target"))
    yield ml(op, [x], n_targets=1, **forest(3, 20, 1, "target"))
    yield ml(op, [x.astype(np.float64)], n_targets=1, **forest(5, 4, 1, "target"))
    yield ml(op, [whole.astype(np.float32)], n_targets=2, **forest(8, 4, 2, "target", modes=MODES, whole=True))
    yield ml(op, [holes], n_targets=1, **forest(8, 4, 1, "target", missing=True))
    yield ml(op, [x], n_targets=2, post_transform="SOFTMAX", dims={0: ["n", 4]}, **forest(6, 3, 2, "target"))
    op = "TreeEnsembleClassifier"
    for post in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        yield ml(op, [x], 2, classlabels_int64s=[5, 3, 8], post_transform=post, **forest(6, 3, 3, "class"))
        yield ml(op, [x], 2, classlabels_int64s=[5, 3], post_transform=post, **forest(6, 3, 1, "class"))
    yield ml(op, [x], 2, classlabels_int64s=[5, 3, 8], base_values=[0.1, 0.5, -0.2], **forest(6, 3, 3, "class", positive=True, dense=True))
    for post in ("NONE", "LOGISTIC"):
        yield ml(op, [x], 2, classlabels_int64s=[5, 3], post_transform=post, **forest(6, 3, 1, "class", positive=True))
    yield ml(op, [x], 2, classlabels_int64s=[5, 3], look=lambda k, a: a * k, **forest(6, 3, 2, "class", positive=True, dense=True))  # whose labels ONNX Runtime leaves out
    yield ml(op, [x], 2, classlabels_int64s=[5, 3], base_values=[0.3, -0.2], **forest(6, 3, 1, "class"))
    yield ml(op, [x], 2, classlabels_int64s=[5, 3], base_values=[0.3], post_transform="LOGISTIC", **forest(6, 3, 1, "class"))
    yield ml(op, [whole], 2, classlabels_int64s=[0, 1], **forest(6, 3, 1, "class"))
    yield from new_trees()


def tensor(values, t):
    return numpy_helper.from_array(np.asarray(values, t))


def new_trees():
    """The examples of ONNX's specification, and one with sets."""
    common = dict(opset=5, n_targets=2, aggregate_function=1, post_transform=0, tree_roots=[0], nodes_modes=tensor([0, 0, 0], np.uint8), nodes_featureids=[0, 0, 0],
                  nodes_splits=tensor([3.14, 1.2, 4.2], np.float32), nodes_truenodeids=[1, 0, 1], nodes_trueleafs=[0, 1, 1], nodes_falsenodeids=[2, 2, 3], nodes_falseleafs=[0, 1, 1],
                  leaf_targetids=[0, 1, 0, 1], leaf_weights=tensor([5.23, 12.12, -12.23, 7.21], np.float32))  # fmt: skip
    yield ml("TreeEnsemble", [np.array([[1.2, 3.4], [-0.12, 1.66], [4.14, 1.77], [9, 1]], np.float32)], **common)
    sets = dict(opset=5, n_targets=4, aggregate_function=1, post_transform=0, tree_roots=[0], nodes_modes=tensor([0, 6, 6], np.uint8), nodes_featureids=[0, 0, 0],
                nodes_splits=tensor([11, 232344.0, np.nan], np.float32), membership_values=tensor([1.2, 3.7, 8, 9, np.nan, 12, 7, np.nan], np.float32), nodes_truenodeids=[1, 0, 1],
                nodes_trueleafs=[0, 1, 1], nodes_falsenodeids=[2, 2, 3], nodes_falseleafs=[1, 0, 1], leaf_targetids=[0, 1, 2, 3], leaf_weights=tensor([1, 10, 1000, 100], np.float32))  # fmt: skip
    yield ml("TreeEnsemble", [np.array([[1.2], [3.4], [-0.12], [np.nan], [12], [7]], np.float32)], **sets)
    yield ml("TreeEnsemble", [np.array([[1.2, 3.4]], np.float32)], opset=5, n_targets=1, tree_roots=[0], nodes_modes=tensor([0], np.uint8), nodes_featureids=[0], nodes_splits=tensor([0], np.float32),
             nodes_truenodeids=[0], nodes_trueleafs=[1], nodes_falsenodeids=[0], nodes_falseleafs=[1], leaf_targetids=[0], leaf_weights=tensor([5.5], np.float32))  # fmt: skip


FAMILIES = [features, linear, trees]


def main():
    return run(chosen(FAMILIES))


if __name__ == "__main__":
    sys.exit(main())
