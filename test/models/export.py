"""Export the networks of zoo.py from PyTorch to ONNX.

Takes:    a folder and the names of the networks (all of them by default), or --graphs and names.
Gives:    FOLDER/NAME.onnx with its weights in FOLDER/NAME.weights. With --graphs: graphs/NAME.onnx, in which of every large weight only the mean and the
          deviation stay, as text in the tensor's doc_string; make.py fills them in again without PyTorch. Those files are committed.
Keeps:    the seeds; constants of the graph (shapes, scalars).
Does not: compile or compare: run.py does.

    scripts/setup --models
    build/venv/bin/python test/models/export.py build/zoo [resnet18] [bert_base] ...
    build/venv/bin/python test/models/export.py --graphs bert_small ...
"""

import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from zoo import MODELS

HERE = Path(__file__).resolve().parent
LARGE = 64  # elements from which on a float tensor is a weight


def exported(name):
    torch.manual_seed(zlib.crc32(name.removesuffix("-raw").encode()))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = MODELS[name]()
        program = torch.onnx.export(
            network.module,
            tuple(network.inputs.values()),
            dynamo=True,
            input_names=[name for name, value in network.inputs.items() if isinstance(value, torch.Tensor)],
            output_names=network.outputs,
            dynamic_shapes=tuple(network.axes.values()),
            verbose=False,
            **network.options,
        )
    return without_notes(program.model_proto)


def without_notes(model):
    """The exporter's notes hold paths of this machine."""
    model.ClearField("metadata_props")
    graphs = [model.graph]
    while graphs:
        graph = graphs.pop()
        for noted in (graph, *graph.node, *graph.value_info, *graph.input, *graph.output):
            noted.ClearField("metadata_props")
        graphs += [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return model


def without_weights(model):
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.size >= LARGE:
            tensor.ClearField("raw_data")
            tensor.doc_string = f"{values.mean():.9g} {values.std():.9g}"
    return model


def main():
    graphs = "--graphs" in sys.argv
    words = [word for word in sys.argv[1:] if word != "--graphs"]
    if not graphs and not words:
        sys.exit(__doc__)
    folder = HERE / "graphs" if graphs else Path(words.pop(0))
    folder.mkdir(parents=True, exist_ok=True)
    for name in words or MODELS:
        path, model = folder / f"{name}.onnx", exported(name)
        if graphs:
            onnx.save(without_weights(model), path)
        else:
            (folder / f"{name}.weights").unlink(missing_ok=True)
            onnx.save(model, path, save_as_external_data=True, location=f"{name}.weights", size_threshold=1024)
        print(f"{path}: {len(model.graph.node)} nodes", flush=True)


if __name__ == "__main__":
    main()
