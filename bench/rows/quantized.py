"""Networks in 8 bits: those of rows/networks.py, quantized by onnxruntime.quantization; beside ONNX Runtime alone.

ResNet-50 in the form QDQ by static quantization (activations u8, which is ONNX Runtime's fastest on x86, and i8, its default), BERT-base by dynamic
quantization. What the calibration sees is random, as the weights are.
"""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import onnx

from rows import Case, Row, networks, random

NAMES = {
    "resnet50-u8": ("ResNet-50, static, u8", "resnet50"),
    "resnet50-i8": ("ResNet-50, static, i8", "resnet50"),
    "bert_base-dynamic": ("BERT-base, 128 tokens, dynamic", "bert_base"),
}
CALIBRATION = 2  # images
TOLERANCE = 0.1  # of the largest magnitude: few quanta of the last layers


class Reader:
    """What onnxruntime.quantization asks for values to calibrate by."""

    def __init__(self, inputs):
        self.images = iter([{name: random(name, str(i)).standard_normal(v.shape, dtype=np.float32) for name, v in inputs.items()} for i in range(CALIBRATION)])

    def get_next(self):
        return next(self.images, None)


def quantized(name):
    """The quantized file, made if it is not there: in one piece, with the extents of the row."""
    path = networks.ZOO / f"{name}.onnx"
    if path.exists():
        return path
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    source = NAMES[name][1]
    with tempfile.TemporaryDirectory() as scratch:
        fixed, whole, ready, made = (Path(scratch) / f"{word}.onnx" for word in ("fixed", "whole", "ready", "made"))
        networks.fixed(source, fixed)
        onnx.save(onnx.load(fixed), whole)
        quant_pre_process(whole, ready, skip_symbolic_shape=True)
        if name.endswith("dynamic"):
            quantize_dynamic(ready, made)
        else:
            kind = QuantType.QUInt8 if name.endswith("u8") else QuantType.QInt8
            quantize_static(ready, made, Reader(networks.inputs(source)), quant_format=QuantFormat.QDQ, activation_type=kind)
        shutil.move(made, path)
    return path


def row(name):
    title, source = NAMES[name]
    return Row("quantized", title, lambda: Case(networks.inputs(source)), limit="", file=lambda: quantized(name), tolerance=TOLERANCE)


ROWS = [row(name) for name in NAMES]
