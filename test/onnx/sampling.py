"""Ops that resize, sample and pool, with what ONNX's own cases leave out: dynamic dims, attributes together, other types.

Takes:    a build folder; ONNX Runtime for what the result should be.
Gives:    a line for each model and "N passed, N failed"; exit code 1 if one fails.
Keeps:    bytes equal on every level of this machine and in the reference evaluator; values within 1e-5 of ONNX Runtime.
Does not: test one node in each of its ways (run.py).

    build/venv/bin/python test/onnx/sampling.py
"""

import sys

import numpy as np
import onnx
from backend import AstraBackend, Failed
from harness import run
from onnx import helper, numpy_helper
from structure import check, f32, i64

X = f32(2, 3, 8, 9)
ROIS = np.array([[1, 1, 6, 5], [0, 2, 3, 8], [-3, -2, 20, 25]], np.float32)
BATCH = i64([0, 1, 1])
SQUARE = f32(3, 4, 4)
SQUARE[1, :, 2] = 0  # singular
CHANNEL = np.array([0.5, 1.5, 2], np.float32)


def scales(*values):
    return np.array(values, np.float32)


# op, opset, inputs (a tuple: array and the shape to declare; `const`: an initializer), attributes, dims, outputs
CONST = "const"
DYN = [2, 3, "h", 9]
TABLE = [
    ("Resize", 19, [(X, DYN), None, (scales(1, 1, 2, 1.5), CONST)], {"mode": "linear"}, ["h=1..64"]),
    ("Resize", 19, [(X, DYN), None, (scales(1, 1, 1.5, 2), CONST)], {"mode": "cubic"}, ["h=1..64"]),
    ("Resize", 19, [(X, DYN), None, (scales(1, 1, 0.5, 2), CONST)],
     {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, ["h=2..64"]),
    ("Resize", 19, [(X, DYN), None, None, (i64([2, 3, 5, 4]), CONST)],
     {"mode": "linear", "coordinate_transformation_mode": "align_corners"}, ["h=2..64"]),
    ("Resize", 10, [X, (scales(1, 1, 0.6, 0.6), CONST)], {"mode": "nearest"}, []),
    ("Upsample", 9, [(X, DYN), (scales(1, 1, 2, 3), CONST)], {"mode": "nearest"}, ["h=1..64"]),
    ("GridSample", 16, [(X, DYN), (f32(2, 4, 6, 2), [2, "a", 6, 2])],
     {"mode": "bicubic", "padding_mode": "border"}, ["h=1..16", "a=1..9"]),
    ("GridSample", 20, [f32(1, 2, 3, 4, 5), 2 * f32(1, 2, 3, 2, 3)], {"padding_mode": "reflection"}, []),
    ("RoiAlign", 16, [(X, [2, 3, "h", "w"]), (ROIS, ["k", 4]), (BATCH, ["k"])],
     {"output_height": 3, "output_width": 2, "spatial_scale": 0.75}, ["h=4..12", "w=4..12", "k=0..9"]),
    ("RoiAlign", 10, [X, ROIS, BATCH], {"sampling_ratio": 2, "output_height": 2, "mode": "avg"}, []),
    ("MaxRoiPool", 21, [(X, DYN), (np.c_[[0, 1, 1], ROIS].astype(np.float32), ["k", 5])],
     {"pooled_shape": [3, 2], "spatial_scale": 0.5}, ["h=4..12", "k=0..9"]),
    ("DeformConv", 19, [X, f32(6, 3, 3, 2), f32(2, 12, 6, 8)], {}, []),
    ("MaxPool", 12, [(X, DYN)], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1], "ceil_mode": 1},
     ["h=3..40"], 2),
    ("MaxPool", 12, [X], {"kernel_shape": [2, 3], "dilations": [2, 2], "storage_order": 1}, [], 2),
    ("AveragePool", 19, [(X, DYN)],
     {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1], "ceil_mode": 1, "count_include_pad": 1},
     ["h=3..40"]),
    ("LpPool", 18, [X], {"kernel_shape": [2, 3], "p": 3, "pads": [1, 1, 0, 1]}, []),
    ("ConvTranspose", 11, [(X, DYN), f32(3, 4, 3, 2)], {"auto_pad": "SAME_LOWER", "strides": [2, 1]}, ["h=1..12"]),
    ("LRN", 13, [(X, [2, "c", 8, 9])], {"size": 3}, ["c=1..5"]),
    ("BatchNormalization", 15, [(X, DYN), CHANNEL, -CHANNEL, CHANNEL, CHANNEL], {"training_mode": 1}, ["h=1..9"], 3),
    ("Det", 11, [(SQUARE, ["b", 4, 4])], {}, ["b=0..5"]),
    ("ScatterElements", 18, [X, np.arange(24).reshape(1, 2, 3, 4) % 8, f32(1, 2, 3, 4)],
     {"axis": 2, "reduction": "add"}, []),
    ("Slice", 13, [(X, DYN), (i64([3]), CONST), (i64([10]), CONST), (i64([2]), CONST)], {}, ["h=1..20"]),
    ("Slice", 13, [(X, DYN), (i64([-1]), CONST), (i64([-(2**63)]), CONST), (i64([2]), CONST), (i64([-3]), CONST)], {},
     ["h=0..20"]),
    ("Slice", 13, [(X[:, :, :0], DYN), (i64([0]), CONST), (i64([99]), CONST), (i64([2]), CONST), (i64([2]), CONST)], {},
     ["h=0..20"]),
    ("Split", 18, [(X[:, :, :7], DYN)], {"axis": 2, "num_outputs": 4}, ["h=0..20"], 4),
    ("Split", 18, [(X, DYN)], {"axis": 2, "num_outputs": 3}, ["h=3..20"], 3),
    # an even extent and a window of its stride: nothing to pad
    ("AveragePool", 19, [X[:, :, :, :8]], {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"}, []),
    # a k that is data, beside an axis that is dynamic; an index of a window of nothing but -inf, pads first
    *(("TopK", 11, [(X[0, 0, :h, 0], ["h"]), i64([k])], {}, [f"h={low}..9"], 2) for h, k, low in ((6, 3, 1), (6, 6, 0), (1, 0, 1))),
    # what is ignored may be of any value
    ("NegativeLogLikelihoodLoss", 13, [np.where([[1, 0]], X[0, 0, :, :2], -np.inf).astype(np.float32), i64([0, 1, 0, 1, 0, 0, 1, 0])],
     {"ignore_index": 1}, []),
    ("MaxPool", 12, [np.full((1, 1, 4, 4), -np.inf, np.float32)], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, [], 2),
    # a stride of a slice whose lower bound is small, in the middle of the axis and from its end
    *(("Slice", 13, [(X[:, :, :h], DYN), (i64([a]), CONST), (i64([b]), CONST), (i64([2]), CONST), (i64([s]), CONST)], {},
       ["h=0..20"]) for h in (2, 7) for a, b, s in ((-3, -1, 2), (2, -2, 3), (1, 99, 5), (-2, 0, -2), (0, -4, 2))),
    ("Resize", 19, [f32(1, 1, 5, 6), None, (scales(1, 1, 0.5, 0.5), CONST)],
     {"mode": "nearest", "coordinate_transformation_mode": "half_pixel_symmetric", "nearest_mode": "floor"}, []),
    # as many places as strides begin in an extent that is dynamic, pads and gaps in between
    *((op, opset, [(X[:, :, :h], DYN), *more], {"auto_pad": pad, "strides": [3, 2], "kernel_shape": kernel, **also}, ["h=1..20"],
       outputs)
      for h, kernel, pad in ((1, [2, 3], "SAME_UPPER"), (7, [2, 3], "SAME_LOWER"), (6, [4, 3], "SAME_UPPER"), (8, [4, 3], "SAME_LOWER"),
                             (6, [2, 3], "SAME_UPPER"))
      for op, opset, more, also, outputs in (
          ("Conv", 11, [f32(4, 3, *kernel)], {}, 1), ("MaxPool", 12, [], {}, 2), ("AveragePool", 11, [], {}, 1),
          ("AveragePool", 11, [], {"count_include_pad": 1}, 1), ("LpPool", 18, [], {"p": 2}, 1))
      if not (op == "AveragePool" and h == 6 and kernel == [2, 3])),  # which ONNX Runtime refuses
    # ceil_mode: a last window that is longer than its input, or none
    *((op, opset, [X[:1, :1, :1, :length]], {"kernel_shape": [1, k], "strides": [1, s], "ceil_mode": 1, "pads": [0, low, 0, high], **more}, [])
      for length, k, s, low, high, more in (
          (4, 3, 2, 0, 0, {"dilations": [1, 2]}), (3, 3, 3, 0, 0, {"dilations": [1, 2]}), (2, 3, 2, 0, 0, {"dilations": [1, 2]}),
          (2, 5, 3, 0, 1, {}), (3, 5, 3, 0, 0, {}), (2, 3, 4, 1, 1, {"dilations": [1, 2]}))
      for op, opset in (("MaxPool", 12), ("AveragePool", 19), ("LpPool", 18))),
    *((op, opset, [(X[:, :, :h], DYN)], {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1, **more}, ["h=0..20"], outputs)
      for h in (1, 2, 3, 8) for op, opset, more, outputs in (
          ("MaxPool", 12, {}, 2), ("AveragePool", 19, {}, 1), ("AveragePool", 19, {"pads": [1, 0, 1, 0], "count_include_pad": 1}, 1),
          ("LpPool", 18, {}, 1))),
    # extents where no window fits: no value, for convolutions and without ceil_mode too
    *(("Conv", 11, [(X[:, :, :h], DYN), f32(4, 3, 3, 1)], {"pads": [1, 0, 1, 0], "strides": [s, 1]}, ["h=0..20"]) for h in (1, 6) for s in (1, 2)),
    *(("AveragePool", 19, [(X[:, :, :h], DYN)], {"kernel_shape": [3, 1], "pads": [1, 0, 1, 0]}, ["h=0..20"]) for h in (1, 6)),
    # a kernel of 1 along an axis that is padded: behind alone, before alone, both; grouped, of a point
    *(("Conv", 11, [(X, DYN), f32(6, 3 // group, *kernel)], {"pads": pads, "group": group}, ["h=1..20"])
      for kernel, pads, group in (([1, 1], [0, 0, 1, 2], 1), ([1, 1], [0, 0, 2, 0], 3), ([3, 1], [1, 0, 1, 1], 1), ([1, 2], [0, 1, 3, 0], 3),
                                  ([1, 1], [2, 1, 0, 0], 1), ([1, 1], [1, 1, 1, 1], 3))),
    *(("Conv", 11, [X[:, :, :1, :1], f32(4, 3, 1, 1)], {"pads": pads, "strides": [s, s]}, []) for pads in ([0, 0, 0, 1], [1, 0, 1, 2]) for s in (1, 2)),
    ("Conv", 11, [X[0], f32(4, 8, 1)], {"pads": [0, 2]}, []),
    ("Mod", 13, [f32(99) * 1e6, f32(99) / 1e6], {"fmod": 1}, []),
]  # fmt: skip


def build(op, opset, inputs, attributes, outputs):
    names, values, constants, calls = [], [], [], []
    for k, given in enumerate(inputs):
        names.append("" if given is None else f"x{k}")
        if given is None:
            continue
        array, shape = given if isinstance(given, tuple) else (given, given.shape)
        if shape is CONST:
            constants.append(numpy_helper.from_array(array, names[-1]))
        else:
            values.append(helper.make_tensor_value_info(names[-1], helper.np_dtype_to_tensor_dtype(array.dtype), shape))
            calls.append(array)
    results = [f"y{k}" for k in range(outputs)]
    types = [onnx.TensorProto.FLOAT, onnx.TensorProto.INT64 if op in ("MaxPool", "TopK") else onnx.TensorProto.FLOAT]
    declared = [helper.make_tensor_value_info(r, types[min(k, 1)], None) for k, r in enumerate(results)]
    graph = helper.make_graph([helper.make_node(op, names, results, **attributes)], "g", values, declared, constants)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)]), [calls]


def one(number, op, opset, inputs, attributes, dims, outputs=1):
    """A name and a test of a line of the table."""
    name = f"{number} {op} {attributes}"

    def test():
        model, calls = build(op, opset, inputs, attributes, outputs)
        check(name, model, calls, [f"--dim={d}" for d in dims])

    return name, test


NAN, INF = np.nan, np.inf
# GridSample at places that are no number, infinite and huge (3e38 overflows), as PyTorch's CPU kernels have it
PLACES = np.array([NAN, INF, -INF, 3e38, -3e38, 1e30, -1e30], np.float32)
FAR = {
    ("linear", "border"): [5, 8, 5, 8, 5, 8, 5], ("linear", "reflection"): [5] * 7, ("linear", "zeros"): [NAN] * 5 + [0] * 2,
    ("nearest", "border"): [5, 8, 5, 8, 5, 8, 5], ("nearest", "reflection"): [5] * 7, ("nearest", "zeros"): [0] * 7,
    ("cubic", "border"): [NAN] * 5 + [8, 5], ("cubic", "reflection"): [NAN] * 5 + [5] * 2, ("cubic", "zeros"): [NAN] * 5 + [0] * 2,
}  # fmt: skip


def far(mode, padding, align):
    """Along an axis, the other one in its middle."""
    name = f"GridSample far away: {mode}, {padding}, align_corners {align}"
    x = np.arange(1, 13, dtype=np.float32).reshape(1, 1, 3, 4)
    grid = np.stack([PLACES, 0 * np.nan_to_num(PLACES, posinf=0, neginf=0)], -1).reshape(1, 1, -1, 2)

    def test():
        attributes = {"mode": mode, "padding_mode": padding, "align_corners": align}
        model, calls = build("GridSample", 20, [x, grid], attributes, 1)
        (found,) = AstraBackend.prepare(model).run(calls[0])
        expected = np.array(FAR[mode, padding], np.float32)
        if not np.array_equal(found.ravel(), expected, equal_nan=True):
            raise Failed(f"found {found.ravel()}, expected {expected}")

    return name, test


def infinite_offsets():
    """torchvision's value: an offset out of the image reads zeros."""
    x, offset = np.ones((1, 1, 1, 4), np.float32), np.zeros((1, 2, 1, 4), np.float32)
    offset[0, :, 0, :3] = [[INF, 0, -INF], [0, -INF, INF]]
    model, calls = build("DeformConv", 19, [x, np.ones((1, 1, 1, 1), np.float32), offset], {}, 1)
    (found,) = AstraBackend.prepare(model).run(calls[0])
    if found.ravel().tolist() != [0, 0, 0, 1]:
        raise Failed(f"found {found.ravel()}")


def main():
    tests = [one(number, *row) for number, row in enumerate(TABLE)]
    return run(tests + [far(*key, align) for key in FAR for align in (0, 1)]
               + [("DeformConv by infinite offsets", infinite_offsets)])


if __name__ == "__main__":
    sys.exit(main())
