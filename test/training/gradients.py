"""Gradients of whole networks beside PyTorch's, through the ONNX file.

Takes:    the folder of the programs, a folder for models and bundles, names of networks (all by default); PyTorch
          (scripts/setup --models).
Gives:    for each network the largest difference of a gradient from PyTorch's, in f64, over the largest magnitude in that
          gradient, and how far PyTorch's own f32 is; the times of compilation, of a step and of PyTorch's. "N passed, N
          failed"; exit code 4 where a difference exceeds 1e-4, or a parameter of the network has no gradient.
Keeps:    seeds. Batch norms take the statistics of the batch, nothing is dropped. A gradient that is zero but for
          rounding (the bias of attention's keys) is compared over the largest of all gradients.
Does not: subtract weights: after one step of sgd with momentum, what it keeps of a parameter is the gradient itself.

    scripts/setup --models
    build/venv/bin/python test/training/gradients.py build/bin build/gradients [resnet18] [bert]

scripts/test --only gradients does both; --only pytorch a part.
"""

import copy
import re
import subprocess
import sys
import time
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
import torchvision
from torch import nn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))
from zoo import SMALL_BERT, measured_norms, seeded_norms  # noqa: E402

TOLERANCE = 1e-4
BATCH = 4
FLAGS = next(line for line in Path("/proc/cpuinfo").read_text().split("\n") if line.startswith("flags")).split()
TARGET = "--target=cpu:" + ("x86-64-v4" if "avx512vl" in FLAGS else "x86-64-v3")  # the others have its bits: run.py, chargpt.py
GAIN = 0.9  # of the momentum: what it keeps after one step is the gradient, whatever this is


@dataclass
class Case:
    """A network, the inputs of one batch by name, the classes it predicts: [batch, class, ...]."""

    module: nn.Module
    inputs: dict
    target: torch.Tensor


def image_network(build, size):
    def make():
        image = torch.randn(BATCH, 3, size, size)
        return Case(measured_norms(build(), image), {"image": image}, torch.randint(0, 1000, (BATCH,)))

    return make


def vit_b_16():
    model = torchvision.models.vit_b_16(image_size=64)
    nn.init.normal_(model.heads.head.weight, std=0.05)  # torchvision starts it with zeros
    nn.init.normal_(model.heads.head.bias, std=0.05)
    return model


class MaskedWords(nn.Module):
    """BERT with its head: the words' table is read twice, at the bottom and at the top."""

    def __init__(self):
        from transformers import BertConfig, BertForMaskedLM

        super().__init__()
        self.network = seeded_norms(BertForMaskedLM(BertConfig(**SMALL_BERT, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)))

    def forward(self, input_ids, attention_mask, token_type_ids):
        found = self.network(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        return found.logits.transpose(1, 2)


def bert():
    ids, mask = torch.randint(0, 1000, (BATCH, 24)), torch.ones(BATCH, 24, dtype=torch.int64)
    mask[-1, 17:] = 0
    target = torch.where(torch.rand(BATCH, 24) < 0.5, torch.randint(0, 1000, (BATCH, 24)), -100)  # a half is asked for
    return Case(MaskedWords(), {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.randint(0, 2, (BATCH, 24))}, target)


def chargpt():
    sys.path.insert(0, str(HERE.parent.parent / "examples/chargpt"))
    from export import CharGPT

    token, target = torch.randint(0, 96, (BATCH, 128), dtype=torch.uint8), torch.randint(0, 96, (BATCH, 128))
    return Case(CharGPT(), {"token": token}, target)


NETWORKS = {
    "resnet18": image_network(torchvision.models.resnet18, 64),
    "mobilenet_v2": image_network(torchvision.models.mobilenet_v2, 64),
    "vit_b_16": image_network(vit_b_16, 64),
    "bert": bert,
    "chargpt": chargpt,
}


def export(case, path):
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(case.module.eval(), tuple(case.inputs.values()), dynamo=True, optimize=False,
                                    input_names=list(case.inputs), output_names=["logits"], verbose=False)  # fmt: skip
    path.with_suffix(".weights").unlink(missing_ok=True)
    onnx.save(program.model_proto, path, save_as_external_data=True, location=path.stem + ".weights", size_threshold=1024)


def gradients(case, dtype):
    """Of every parameter by name, as PyTorch has them, and the time of the second step."""
    model = copy.deepcopy(case.module).to(dtype).train()
    values = [v.to(dtype) if v.is_floating_point() else v for v in case.inputs.values()]
    for _ in range(2):
        model.zero_grad()
        start = time.perf_counter()
        nn.functional.cross_entropy(model(*values), case.target).backward()
        seconds = time.perf_counter() - start
    return {n: p.grad.numpy() for n, p in model.named_parameters() if p.grad is not None}, seconds


def names(model):
    """For each parameter all the names that it has; the exporter takes one of them."""
    every = {}
    for n, p in model.named_parameters(remove_duplicate=False):
        every.setdefault(id(p), []).append(n)
    return {n: every[id(p)] for n, p in model.named_parameters()}


def run(*words):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))[:200]}\n{done.stderr}")
    return done.stdout + done.stderr


class Check:
    def __init__(self, name, programs, folder):
        self.programs, self.name, self.faults = programs, name, []
        self.model, self.bundle = folder / f"{name}.onnx", folder / f"{name}.astra"
        torch.manual_seed(zlib.crc32(name.encode()))
        case = NETWORKS[name]()
        export(case, self.model)
        self.compile()
        wanted, _ = gradients(case, torch.float64)
        theirs, self.torch_seconds = gradients(case, torch.float32)
        self.compare(wanted, self.step(case, {n: names(case.module)[n] for n in wanted}, folder), theirs)

    def compile(self):
        start = time.monotonic()
        run(self.programs / "astra-compile", self.model, "-o", self.bundle, "-j2", TARGET, "--train", "--predict=logits", "--loss=cross_entropy",
            f"--optimizer=sgd(lr=0.01, momentum={GAIN})")  # fmt: skip
        self.compile_seconds = time.monotonic() - start

    def step(self, case, wanted, folder):
        """The gradients that one step leaves in the optimizer's states."""
        listed = run(self.programs / "astra-inspect", self.bundle)
        states = {line.split()[1] for line in listed.splitlines() if line.startswith("state ")}
        words = []
        for name, value in {**case.inputs, "target": case.target}.items():
            np.save(folder / f"{name}.npy", value.numpy())
            words.append(f"--input={name}={folder / name}.npy")
        kept = {}
        for n, aliases in wanted.items():
            slot = [f"{a}.mean" for a in aliases if f"{a}.mean" in states]
            if len(slot) != 1:
                self.faults.append(f"{n}: no such state")
                continue
            kept[n] = folder / f"gradient{len(kept)}.npy"
            words.append(f"--get-state={slot[0]}={kept[n]}")
        run(self.programs / "astra-run", self.bundle, "--entry=train_step", *words)
        found = {n: np.load(path) for n, path in kept.items()}
        for path in kept.values():
            path.unlink()
        steps = run(self.programs / "astra-run", self.bundle, "--entry=train_step", "--repeat=3", *[w for w in words if w.startswith("--input")])
        self.seconds = float(re.search(r"least ([\d.]+) us", steps)[1]) * 1e-6
        return found

    def compare(self, wanted, found, theirs):
        largest = max(np.abs(w).max() for w in wanted.values())
        errors = {}
        for name, f in found.items():
            w = wanted[name]
            if f.shape != w.shape:
                self.faults.append(f"{name}: {f.shape}, expected {w.shape}")
                continue
            over = np.abs(w).max() if np.abs(w).max() > 1e-10 * largest else largest
            errors[name] = (float(np.abs(f - w).max() / over), float(np.abs(theirs[name] - w).max() / over))
            if not errors[name][0] <= TOLERANCE:
                self.faults.append(f"{name}: {errors[name][0]:.2e} from PyTorch in f64, whose f32 is {errors[name][1]:.2e} from it")
        worst = max(errors, key=lambda n: errors[n][0])
        print(f"{self.name}: {len(errors)} gradients, the worst {errors[worst][0]:.1e} ({worst}; PyTorch's f32 {errors[worst][1]:.1e}, its worst "
              f"{max(e[1] for e in errors.values()):.1e}); compiled in {self.compile_seconds:.0f} s, a step {self.seconds:.3f} s, "
              f"PyTorch's {self.torch_seconds:.3f} s without the update", flush=True)  # fmt: skip
        for fault in self.faults:
            print(f"  {fault}", flush=True)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    programs, folder = map(Path, sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    checks = [Check(name, programs, folder.resolve()) for name in sys.argv[3:] or NETWORKS]
    failed = sum(bool(c.faults) for c in checks)
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(4 if failed else 0)


if __name__ == "__main__":
    main()
