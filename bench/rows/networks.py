"""Six whole networks, batch 1, random weights, exported by PyTorch (test/models/export.py) and given the extents of the row."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnx

from rows import Case, Row

ROOT = Path(__file__).resolve().parent.parent.parent
ZOO = Path(os.environ.get("ASTRA_BENCH_ZOO", ROOT / "build/bench/zoo"))
sys.path.append(str(ROOT / "test/models"))

SIZES = {
    "resnet50": {"batch": 1},
    "mobilenet_v2": {"batch": 1},
    "vit_b_16": {"batch": 1},
    "bert_base": {"batch": 1, "length": 128},
    "gpt2_base_prefill": {"batch": 1, "length": 128},
    "gpt2_base_decode": {"batch": 1, "past": 512},
}
NAMES = ["ResNet-50", "MobileNetV2", "ViT-B/16", "BERT-base, 128 tokens", "GPT-2 small, prefill 128", "GPT-2 small, one step at 512"]


def exported(name):
    """The exporter's file, made if it is not there."""
    path = ZOO / f"{name}.onnx"
    if not path.exists():
        subprocess.run([sys.executable, ROOT / "test/models/export.py", ZOO, name], check=True, stdout=subprocess.DEVNULL)
    return path


def inputs(name):
    import cases

    return cases.inputs(name, onnx.load(exported(name), load_external_data=False).graph, SIZES[name])


def fixed(name, path):
    """Writes the model with the row's extents instead of names; the weights stay in one file for all."""
    import cases

    source = exported(name)
    model = onnx.load(source, load_external_data=False)
    weights = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in weights:
            shape = cases.shape_of(value, SIZES[name])
            for dim, extent in zip(value.type.tensor_type.shape.dim, shape):
                dim.dim_value = extent
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    model.graph.ClearField("value_info")
    weights, copy = source.with_suffix(".weights"), path.parent / f"{name}.weights"  # some peers refuse links
    state = lambda file: (file.stat().st_size, file.stat().st_mtime_ns)
    if not copy.exists() or state(copy) != state(weights):
        shutil.copy2(weights, copy)
    path.write_bytes(model.SerializeToString())


def module(torch, name):
    """The network that was exported: the same seed gives the same weights."""
    import zlib

    import zoo

    torch.manual_seed(zlib.crc32(name.encode()))
    return zoo.MODELS[name]().module.eval()


def call(values):
    """Its arguments: a cache is one list."""
    past = [value for name, value in values.items() if name.startswith("past")]
    return [value for name, value in values.items() if not name.startswith("past")] + ([past] if past else [])


def row(family, name, title):
    return Row(family, title, lambda: Case(inputs(name)), limit="kernels", path=name)


ROWS = [row("networks", *pair) for pair in zip(SIZES, NAMES)]
