"""`astra.hash` of networks and of trained weights: one value for each, however it is computed.

Takes:    names of networks (all of NETWORKS); those of torchvision and transformers where these are installed.
Gives:    a table: the network, its digest, the ways that gave it. Exit code 1, and a line for each, where a way gives another.
Keeps:    weights and inputs are uniform numbers of NumPy's PCG64, seeded by the network's name: the same on every machine.
          One bundle of a network has every level and both GPUs. 64 rows are computed on each CPU level of this machine with 1, 2 and 7
          threads; rows in batches of every size from 1 to 64, on the best level; two rows by the emulated kernels of each GPU. A
          training is that of astra.train in this process, then that of astra-train on each level and, of fewer rows, on each GPU.
Does not: ask PyTorch what the numbers should be: tests beside PyTorch do.

    PYTHONPATH=build/python build/venv/bin/python python/tests/astra/bits.py [--networks=mlp,lstm,training] [--no-gpus]
"""

import argparse
import importlib.util
import inspect
import pathlib
import subprocess
import sys
import tempfile
import zlib

import numpy as np

import astra
import astra_rt
from astra import nn, optim

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = pathlib.Path(astra.__file__).parents[2] / "bin"
LEVELS = {"x86-64-v3": "avx2", "x86-64-v4": "avx512vl", "x86-64-v4+avx512vnni": "avx512_vnni"}  # and what a CPU must have
GPUS = ["cuda:sm_90", "hip:gfx942"]
THREADS = [1, 2, 7]
ROWS = 64


def levels():
    """Those of this machine."""
    flags = next((line for line in open("/proc/cpuinfo") if line.startswith("flags")), "").split()
    return [level for level, flag in LEVELS.items() if flag in flags]


def drawn(name, shape, scale=1.0):
    """Numbers within -scale and scale."""
    unit = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode()))).random(shape, np.float32)
    return ((unit * 2 - 1) * np.float32(scale)).astype(np.float32)


def weight(name, shape, own):
    """A tensor of a network: of running variances and of the factors of norms near 1, of matrices as their width asks for."""
    if name.endswith("running_var") or (len(shape) == 1 and name.endswith("weight")):
        return 1 + drawn(f"{own} {name}", shape, 0.25)
    return drawn(f"{own} {name}", shape, np.sqrt(3 / max(1, int(np.prod(shape[1:])))) if len(shape) > 1 else 0.1)


# ---- networks of this package: functions of nothing that give a module and the shape and dtype of a row


class Mlp(nn.Module):
    def __init__(self):
        self.layers = nn.Sequential(nn.Linear(24, 48), astra.gelu, nn.LayerNorm(48), nn.Linear(48, 48), astra.silu, nn.Linear(48, 10))

    def __call__(self, x):
        return astra.softmax(self.layers(x), axis=-1)


class Recurrent(nn.Module):
    def __init__(self):
        self.lstm, self.out = nn.LSTM(8, 16, num_layers=2, bidirectional=True, batch_first=True), nn.Linear(32, 5)

    def __call__(self, x):
        return self.out(self.lstm(x)[0][:, -1])


def own(module, row):
    """The lowered module of one of astra.nn."""

    def make(name):
        net = module()
        net = net.load_state_dict({n: weight(n, t.shape, name) for n, t in net.state_dict().items()})
        n = astra.dim("batch", 1, ROWS)
        return astra.trace(net, astra.spec((n, *row), "float32")).lower(), drawn(f"{name} input", (ROWS, *row))

    return make


# ---- networks of PyTorch, through astra.from_torch


def of_torch(module, row, tokens=0):
    """The same of one of PyTorch's; tokens: inputs are numbers of words."""

    def make(name):
        import torch

        net = module().eval()
        with torch.no_grad():
            for n, t in net.state_dict().items():
                if t.is_floating_point():
                    t.copy_(torch.from_numpy(np.ascontiguousarray(weight(n, tuple(t.shape), name))))
        x = drawn(f"{name} input", (ROWS, *row))
        if tokens:
            x = ((x + 1) * (tokens / 2)).astype(np.int64).clip(0, tokens - 1)
        return astra.from_torch(net, torch.from_numpy(x[:4]), dims={next(iter(inspect.signature(net.forward).parameters)): ("batch", 1, ROWS)}).lower(), x

    return make


def vision(name):
    def module():
        import torchvision.models as models

        if name == "vit":
            return models.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64, num_classes=10)
        if name == "convnext":
            from torchvision.models.convnext import CNBlockConfig, ConvNeXt

            return ConvNeXt([CNBlockConfig(16, 32, 1), CNBlockConfig(32, None, 2)], num_classes=10)
        return getattr(models, name)(weights=None, num_classes=10)

    return module


def language(name):
    def module():
        import torch
        import transformers as t

        if name == "bert":
            config = t.BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, intermediate_size=64, num_attention_heads=2,
                                  max_position_embeddings=16)  # fmt: skip
            inner, shown = t.BertModel(config), lambda y: y.pooler_output
        else:
            config = t.GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=2, n_positions=16, use_cache=False, bos_token_id=1, eos_token_id=2)
            inner, shown = t.GPT2LMHeadModel(config), lambda y: y.logits

        class Named(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = inner

            def forward(self, ids):
                return shown(self.inner(ids))

        return Named()

    return module


NETWORKS = {
    "mlp": own(Mlp, (24,)),
    "lstm": own(Recurrent, (12, 8)),
    "resnet18": of_torch(vision("resnet18"), (3, 32, 32)),
    "mobilenet_v3": of_torch(vision("mobilenet_v3_small"), (3, 32, 32)),
    "vit": of_torch(vision("vit"), (3, 32, 32)),
    "convnext": of_torch(vision("convnext"), (3, 32, 32)),
    "bert": of_torch(language("bert"), (12,), tokens=100),
    "gpt2": of_torch(language("gpt2"), (12,), tokens=100),
}
NEEDS = {"resnet18": "torchvision", "mobilenet_v3": "torchvision", "vit": "torchvision", "convnext": "torchvision", "bert": "transformers",
         "gpt2": "transformers"}  # fmt: skip


class Ways:
    """The digests of one thing, by the way that gave them."""

    def __init__(self):
        self.digests = {}

    def add(self, way, digest, rows=ROWS):
        self.digests[way, rows] = digest

    def differing(self):
        """Ways whose digest is not that of the first way for the same rows."""
        first = {}
        return [f"{way}, {rows} rows: {digest}" for (way, rows), digest in self.digests.items() if first.setdefault(rows, digest) != digest]

    @property
    def digest(self):
        return next(iter(self.digests.values()))


def emulated(bundle, inputs, gpu, folder, output):
    """The output of the emulated kernels of a GPU."""
    words = [PROGRAMS / "astra-run", bundle, f"--emulate={gpu}", f"--output={output}={folder / 'y.npy'}"]
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        words.append(f"--input={name}={folder / f'{name}.npy'}")
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return np.load(folder / "y.npy")


def targets(gpus):
    return [*(f"cpu:{level}" for level in levels()), *gpus, *(f"emu:{gpu}" for gpu in gpus)]


def network(name, gpus=GPUS, sizes=range(1, ROWS + 1)):
    """The ways of a network."""
    lowered, x = NETWORKS[name](name)
    ways = Ways()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        bundle = folder / "net.astra"
        lowered.compile(targets(gpus)).save(bundle)
        for level in levels():
            for threads in THREADS:
                whole = np.array(astra_rt.load(bundle, level=level, threads=threads)(x))
                assert whole.shape[0] == ROWS and np.isfinite(whole).all() and not (whole[0] == whole[1]).all(), name
                ways.add(f"{level}, {threads} threads", astra.hash(whole))
        best = astra_rt.load(bundle, threads=2)
        for n in sizes:  # each row at another place than in the batch of all
            begins = list(range(0, ROWS, n))
            parts = [np.asarray(best(x[b : b + n])) for b in begins]
            ways.add(f"batches of {n}", astra.hash(np.concatenate(parts)))
        for gpu in gpus:
            two = np.ascontiguousarray(whole[-2:])
            ways.add(f"{level}, rows of the batch", astra.hash(two), 2)
            ways.add(f"emulated {gpu}", astra.hash(emulated(bundle, {best.inputs[0].name: x[-2:]}, gpu, folder, best.outputs[0].name)), 2)
    return ways


# ---- a training


class Digits(nn.Module):
    """The network of examples/digits_train, with weights drawn from a seed."""

    def __init__(self):
        self.features = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), astra.relu, nn.BatchNorm2d(16), nn.MaxPool2d(2),
                                      nn.Conv2d(16, 32, 3, padding=1), astra.relu, nn.MaxPool2d(2), nn.Flatten())  # fmt: skip
        self.classify = nn.Linear(128, 10)

    def __call__(self, image):
        return self.classify(self.features(image.astype("float32") / 16))


def training(gpus=GPUS, rows=None, epochs=2):
    """The ways of the weights that a training of the digits gives."""
    folder = ROOT / "examples/digits_train"
    image, target = (np.load(folder / f"train_{what}.npy")[:rows] for what in ("images", "labels"))
    few = 64  # rows of the training on emulated GPUs: two steps
    recipe = Digits(), astra.losses.cross_entropy, optim.adamw(lr=1e-2, weight_decay=0.01)
    ways = Ways()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        astra.compile_training(*recipe, {"image": image[:1], "target": target[:1]}, batch=32, seed=1, target=targets(gpus)).save(folder / "t.astra")
        for n in {len(image), few}:
            np.save(folder / f"image{n}.npy", image[:n])
            np.save(folder / f"target{n}.npy", target[:n])

        def weights(n, epochs, *options):
            out = folder / "w.safetensors"
            subprocess.run([PROGRAMS / "astra-train", folder / "t.astra", f"--epochs={epochs}", "--batch=32", "--seed=1", f"--out={out}", "--quiet",
                            f"--data=image={folder}/image{n}.npy,target={folder}/target{n}.npy", *options], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
            return astra.data.load(out)

        for n, e, options in ((len(image), epochs, [[f"--level={level}", f"--threads={t}"] for level in levels() for t in THREADS]),
                              (few, 1, [[f"--emulate={gpu}"] for gpu in gpus])):  # fmt: skip
            if not options:
                continue
            names = weights(n, e).keys()
            trained = astra.train(*recipe, {"image": image[:n], "target": target[:n]}, epochs=e, batch=32, seed=1).model.state_dict()
            assert {"classify.weight", "features.2.running_var"} <= names
            ways.add("astra.train", astra.hash({k: trained[k] for k in names}), n)
            for words in options:
                ways.add(f"astra-train {' '.join(words)}", astra.hash(weights(n, e, *words)), n)
    return ways


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=lambda text: text.split(","), default=[*NETWORKS, "training"])
    parser.add_argument("--no-gpus", action="store_true", help="without emulated GPUs")
    options = parser.parse_args()
    gpus, bad = [] if options.no_gpus else GPUS, 0
    unknown = set(options.networks) - {*NETWORKS, "training"}
    if unknown:
        parser.error(f"--networks: {', '.join(sorted(unknown))}: there are {', '.join(NETWORKS)}, training")
    print("| of | astra.hash | ways |\n|---|---|---|")
    for name in options.networks:
        if name in NEEDS and not importlib.util.find_spec(NEEDS[name]):
            print(f"skipped: {name}: {NEEDS[name]} is not installed (scripts/setup --models)")
            continue
        ways = training(gpus) if name == "training" else network(name, gpus)
        print(f"| {name} | {ways.digest} | {len(ways.digests)} |", flush=True)
        for line in ways.differing():
            bad += 1
            print(f"{name}: {line}, which is another", file=sys.stderr)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
