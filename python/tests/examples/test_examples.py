"""The examples, as their heads say to run them."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLES = ROOT / "examples/python"


def run(name, *arguments):
    done = subprocess.run([sys.executable, EXAMPLES / name, *map(str, arguments)], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_digits_have_the_weights_of_astra_train(tmp_path):
    from astra import data

    assert "0.9917" in run("digits.py", tmp_path)
    train = ROOT / "examples/digits_train"
    build = pathlib.Path(os.environ.get("ASTRA_BUILD", ROOT / "build")) / "bin"
    subprocess.run([build / "astra-compile", train / "digits.onnx", "--dim=batch=1..64", "-o", tmp_path / "d.astra", "--target=native", "--train",
                    "--loss=cross_entropy", "--optimizer=adamw(lr=1e-2, weight_decay=0.01)", "--schedule=cosine(steps=900, warmup=45)"], check=True)  # fmt: skip
    subprocess.run([build / "astra-train", tmp_path / "d.astra", "--epochs=20", "--batch=32", "--seed=1", f"--out={tmp_path}/c.safetensors",
                    f"--data=image={train}/train_images.npy,target={train}/train_labels.npy", "--quiet"], check=True)  # fmt: skip
    ours, theirs = data.load(tmp_path / "weights.safetensors"), data.load(tmp_path / "c.safetensors")
    assert len(theirs) == 9 and all(ours[n].tobytes() == t.tobytes() for n, t in theirs.items())


def test_a_table(tmp_path):
    said = run("tabular.py", tmp_path)
    assert float(re.search(r"R2 .*: ([0-9.]+)", said)[1]) > 0.95
    assert (tmp_path / "predictions.svg").exists() and (tmp_path / "loss.svg").exists() and (tmp_path / "table.astra").exists()


def test_a_pole_is_balanced(tmp_path):
    said = run("cartpole.py", tmp_path)
    assert float(re.search(r"100 episodes: ([0-9.]+)", said)[1]) >= 475


def test_sentences_by_their_meaning(tmp_path):
    lines = run("minilm.py", "--out", tmp_path).splitlines()
    assert lines[0].split()[0] == "0.705" and "rice" in lines[0]
    import astra_rt

    model = astra_rt.load(str(tmp_path / "minilm.astra"))
    tokens, mask = np.full((2, 5), 2003), np.ones((2, 5), bool)
    alone, both = model(tokens[:1], mask[:1]).numpy(), model(tokens, mask).numpy()
    assert alone.tobytes() == both[:1].tobytes()


def test_sentences_by_the_module_of_transformers(tmp_path):
    lines = run("minilm_torch.py", "--out", tmp_path).splitlines()
    assert float(lines[0].split()[0]) <= 1e-5
    assert lines[1].split()[0] == "0.705" and "rice" in lines[1]  # as minilm.py
    assert (tmp_path / "minilm_torch.astra").exists()


def test_digits_by_jax_are_served_from_c(tmp_path):
    said = run("digits_jax.py", tmp_path)
    assert float(said.split()[0]) > 0.95 and float(re.search(r"; (\S+) from JAX", said)[1]) <= 1e-5
    page = (ROOT / "docs/howto/stablehlo.md").read_text()
    (tmp_path / "classify.c").write_text(re.search(r"^```c\n(/\* classify.c \*/\n.*?)^```", page, re.M | re.S)[1])
    build = pathlib.Path(os.environ.get("ASTRA_BUILD", ROOT / "build"))
    subprocess.run(["cc", "-O2", tmp_path / "classify.c", f"-I{ROOT}/include", f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", "-lastra_rt", "-o", tmp_path / "classify"], check=True)
    images = np.load(ROOT / "examples/digits_train/heldout_images.npy").reshape(-1, 64).astype(np.float32)[:11]
    served = subprocess.run([tmp_path / "classify", tmp_path / "digits_jax.astra"], input=images.tobytes(), capture_output=True, check=True).stdout
    import astra_rt

    model = astra_rt.load(str(tmp_path / "digits_jax.astra"))
    assert served == b"".join(model(images[i : i + 1]).numpy().tobytes() for i in range(11))


def test_a_language_model_in_pytorch(tmp_path):
    said = run("chargpt_torch.py", "--steps", 200, "--out", tmp_path)
    losses = [float(x) for x in re.findall(r"loss ([0-9.]+)", said)]
    assert len(losses) == 2 and losses[1] < losses[0] < 4
