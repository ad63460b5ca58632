"""Write the seeds of the importer's fuzzers.

Takes:    the package onnx; the models of this repository; a folder.
Gives:    FOLDER/structure/*.onnx: the models of ONNX's backend cases, those of up to 16 KiB, and of our cases of
          com.microsoft and ai.onnx.ml; FOLDER/bytes/*.onnx: 20 models as exporters wrote them.
Keeps:    names and bytes.

    build/venv/bin/python test/fuzz/seeds.py build/fuzz-seeds
"""

import sys
import warnings
from pathlib import Path

import onnx
from onnx.backend.test.loader import load_model_tests

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/onnx")]
LARGEST = 1 << 14
# Exports: networks whose weights are made by nodes, classics of PyTorch, and our own.
REAL = ["light/light_bvlc_alexnet.onnx", "light/light_densenet121.onnx", "light/light_inception_v1.onnx",
        "light/light_inception_v2.onnx", "light/light_resnet50.onnx", "light/light_shufflenet.onnx",
        "light/light_squeezenet.onnx", "light/light_vgg19.onnx", "light/light_zfnet512.onnx",
        *(f"pytorch-converted/test_{name}/model.onnx" for name in ("Conv2d", "ConvTranspose2d", "BatchNorm2d_eval", "GLU",
                                                                   "Linear", "PixelShuffle", "Embedding"))]  # fmt: skip
OURS = ["examples/digits/digits.onnx", "test/models/graphs/bert.onnx", "test/models/graphs/resnet50.onnx",
        "test/models/graphs/resnet50-raw.onnx"]  # fmt: skip


def main():
    warnings.filterwarnings("ignore")
    folder = Path(sys.argv[1])
    data = Path(onnx.__file__).parent / "backend/test/data"
    for kind in ("structure", "bytes"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    count = 0
    for kind in ("node", "simple", "pytorch-operator", "pytorch-converted"):
        for case in load_model_tests(kind=kind):
            content = case.model.SerializeToString() if case.model else (Path(case.model_dir) / "model.onnx").read_bytes()
            if len(content) <= LARGEST:
                (folder / "structure" / f"{case.name}.onnx").write_bytes(content)
                count += 1
    import microsoft  # here: they are of the tree's build
    import ml

    for family in (*microsoft.FAMILIES, *ml.FAMILIES):
        for number, case in enumerate(family()):
            content = case.model().SerializeToString()
            if len(content) <= LARGEST:
                (folder / "structure" / f"{family.__name__}-{number}.onnx").write_bytes(content)
                count += 1
    real = [data / name for name in REAL] + [ROOT / name for name in OURS]
    for path in real:
        name = path.parent.name + ".onnx" if path.name == "model.onnx" else path.name
        (folder / "bytes" / name).write_bytes(path.read_bytes())
    print(f"{count} models of cases, {len(real)} exported models")


if __name__ == "__main__":
    main()
