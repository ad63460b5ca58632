"""Sentences about nodes of com.microsoft and ai.onnx.ml that are wrong, or are not supported.

Takes:    a build folder.
Gives:    a line for each and "N passed, N failed"; exit code 1 if one fails.
Keeps:    each model is refused with the words in the table.
Does not: test what is right (microsoft.py, ml.py).

    build/venv/bin/python test/onnx/refusals.py
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from backend import BUILD, Failed, command
from harness import run
from microsoft import Case, f32, i32, ints
from ml import ml


def u8(*shape):
    return ints(np.uint8, *shape)


TREE = dict(n_targets=1, nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values=[0.5, 0.0, 0.0],
            nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[1.0, 2.0])  # fmt: skip


def nbits(**rest):
    return Case("MatMulNBits", [f32(3, 64), u8(8, 2, 16), f32(8, 2)], **({"K": 64, "N": 8, "bits": 4, "block_size": 32} | rest))


def heads(*inputs, **rest):
    return Case("MultiHeadAttention", list(inputs), **({"num_heads": 2} | rest))


def grouped(*inputs, **rest):
    return Case("GroupQueryAttention", list(inputs), **({"num_heads": 2, "kv_num_heads": 1} | rest))


def tree(**rest):
    return ml("TreeEnsembleRegressor", [f32(3, 2)], **(TREE | rest))


def experts(width=8, rows=2, **attributes):
    return Case("MoE", [f32(2, 8), f32(rows, 4), f32(4, 16, width), None, f32(4, 8, 16)], **attributes)


CASES = [
    (nbits(bits=3), "attribute 'bits' is 3, supported are 2, 4 and 8"),
    (nbits(block_size=24), "attribute 'block_size' is 24, expected a power of two of 16 or more"),
    (nbits(N=9), "the weights have the shape [8, 2, 16], expected [9, 2, 16]"),
    (nbits(K=-1), "attribute 'K' is -1 and attribute 'N' is 8, expected 1 to 2^31"),
    (nbits(weight_prepacked=1), "attribute 'weight_prepacked' is set"),
    (nbits(other=1), "attribute 'other' is not known"),
    (Case("GatherBlockQuantized", [u8(5, 16), np.array([1]), f32(5, 3)], block_size=16), "extents 3 and 2 of the blocks of the quantized axis"),
    (heads(f32(2, 3, 16)), "key and value are needed beside a query that is not packed"),
    (heads(f32(2, 3, 16), f32(2, 3, 16), f32(2, 3, 16), num_heads=3), "3 heads do not divide the hidden size of the query 16"),
    (heads(f32(2, 3, 16), f32(2, 3, 16), f32(2, 3, 16), None, i32(1, 2, 3)), "a mask of shape [3] is not supported for a batch of [2]"),
    (heads(f32(2, 3, 16), f32(2, 3, 16), f32(2, 3, 16), f32(40)), "extents 40 and 48 of the bias and the hidden sizes"),
    (grouped(f32(1, 1, 32), f32(1, 1, 16), f32(1, 1, 16), None, None, i32(0), i32(1), kv_num_heads=3), "2 query heads are not a multiple of 3 key heads"),
    (grouped(f32(1, 1, 32), f32(1, 1, 16), f32(1, 1, 16), f32(1, 1, 4, 16), None, i32(0), i32(1)), "past_key and past_value are used together"),
    (grouped(f32(1, 1, 32), f32(1, 1, 16), f32(1, 1, 16), None, None, i32(0), i32(1), do_rotary=1), "'do_rotary' is set without cos_cache and sin_cache"),
    (grouped(f32(1, 1, 32), f32(1, 1, 16), f32(1, 1, 16), None, None, i32(0), i32(1), k_quant_type="PER_TENSOR"), "a quantized cache is not supported"),
    (Case("SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(7)]), "extents 8 and 7 of the normalized axis and the scale"),
    (Case("BiasSplitGelu", [f32(2, 7), f32(7)]), "the axis that is cut in two has 7 elements"),
    (Case("FusedConv", [f32(1, 1, 4, 4), f32(1, 1, 3, 3)], activation="Swirl"), "activation 'Swirl' is not known: expected one of Clip, Relu"),
    (Case("QLinearConcat", [np.float32(1), u8(), u8(2), np.float32(1), u8(), u8(2)], axis=0), "are not triples of a value, a scale and a zero point"),
    (experts(activation_type="tanh"), "attribute 'activation_type' is 'tanh', expected relu, gelu, silu, identity or swiglu"),
    (experts(k=5), "5 experts of a token are not within 1 and the number of experts"),
    (experts(activation_type="swiglu"), "SwiGLU needs a gate and another factor"),
    (experts(use_sparse_mixer=1, k=2), "a router of a GPU's kernel alone is not supported"),
    (experts(width=7), "extents 8 and 7 of the last axis of what experts are given and of their weights are not equal"),
    (experts(rows=3), "extents 2 and 3 of the rows of the input and of the scores are not equal"),
    (Case("QMoE", [f32(2, 8), f32(2, 4), u8(4, 16, 4), f32(4, 15), None, u8(4, 8, 8), f32(4, 8)]), "the scales have the shape [4, 15, 1], expected [4, 16, 1]"),
    (Case("QMoE", [f32(2, 8), f32(2, 4), u8(4, 16, 4), f32(4, 16), None, u8(4, 8, 8), f32(4, 8)], quant_type="fp4"), "attribute 'quant_type' is 'fp4'"),
    (Case("BeamSearch", [i32(1)]), "a search with a decoder inside of the node"),
    (ml("CategoryMapper", [np.array([1])]), "it takes or gives strings"),
    (ml("LabelEncoder", [np.array([1])], keys_int64s=[1], values_strings=["a"]), "attribute 'values_strings' is given: strings are not supported"),
    (ml("LabelEncoder", [np.array([1])], keys_int64s=[1], values_int64s=[1, 2]), "the numbers of keys and values differ"),
    (ml("LinearClassifier", [f32(2, 3)], 2, coefficients=[1.0] * 6, intercepts=[0.0] * 2, classlabels_strings=["a", "b"]), "labels that are strings are not supported"),
    (ml("LinearRegressor", [f32(2, 3)], coefficients=[1.0] * 4), "4 coefficients do not fit 1 targets and 3 features"),
    (ml("SVMClassifier", [f32(2, 3)], 2, coefficients=[1.0] * 2, support_vectors=[1.0] * 6, vectors_per_class=[1, 1], rho=[0.0], prob_a=[1.0], prob_b=[1.0],
        classlabels_ints=[0, 1]), "attribute 'prob_a' is given: probabilities"),  # fmt: skip
    (tree(nodes_truenodeids=[0, 0, 0]), "the nodes form no trees: no root leads to node 0"),
    (tree(nodes_truenodeids=[0, 0, 0], nodes_falsenodeids=[1, 2, 0], nodes_modes=["BRANCH_LEQ"] * 3), "no node is the root of a tree"),
    (tree(nodes_truenodeids=[7, 0, 0]), "two nodes that no other one leads to"),
    (tree(nodes_falsenodeids=[1, 0, 0]), "two nodes that no other one leads to"),
    (tree(nodes_featureids=[2, 0, 0]), "compares feature 2 of 2"),
    (tree(nodes_values=[0.5]), "attribute 'nodes_values' has 1 elements, expected 3"),
    (tree(target_ids=[0, 1]), "is for target 1 of 1"),
    (tree(nodes_modes=["BRANCH_UP", "LEAF", "LEAF"]), "attribute 'nodes_modes' has 'BRANCH_UP'"),
    (tree(aggregate_function="MODE"), "attribute 'aggregate_function' is 'MODE'"),
]


def check(case, words):
    with tempfile.TemporaryDirectory(prefix="astra-refusals-") as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(case.model(), path)
        done = command(BUILD / "bin/astra-compile", path, "--emit=uop", "-o", Path(folder) / "model.uop", "--quiet")
    if done.returncode == 0:
        raise Failed(f"it is not refused; expected: {words}")
    if words not in done.stderr:
        raise Failed(f"found: {done.stderr.strip()}; expected: {words}")


def main():
    return run((f"{case.op}: {words[:60]}", lambda c=case, w=words: check(c, w)) for case, words in CASES)


if __name__ == "__main__":
    sys.exit(main())
