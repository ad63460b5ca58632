"""Handwritten digits: a network of JAX, trained by JAX, as one file that a C program serves.

Takes:    examples/digits_train (images and labels as .npy files).
Gives:    digits_jax.astra, for 1 to 8 images of 64 numbers: docs/howto/stablehlo.md has the C program that serves it.

    pip install astra-compiler jax
    python examples/python/digits_jax.py [FOLDER]
"""

import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np

import astra

DATA = pathlib.Path(__file__).parents[1] / "digits_train"


def logits(weights, image):
    x = jax.nn.gelu((image / 16) @ weights["hidden"]["w"] + weights["hidden"]["b"])
    return x @ weights["out"]["w"] + weights["out"]["b"]


def loss(weights, image, label):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits(weights, image)), label[:, None], 1).mean()


@jax.jit
def step(weights, image, label):
    value, gradients = jax.value_and_grad(loss)(weights, image, label)
    return jax.tree.map(lambda w, g: w - 0.3 * g, weights, gradients), value


def train(images, labels, epochs=30, batch=32):
    rng = np.random.default_rng(0)
    layer = lambda n, m: {"w": rng.standard_normal((n, m)).astype(np.float32) / np.sqrt(n), "b": np.zeros(m, np.float32)}  # noqa: E731
    weights = {"hidden": layer(64, 48), "out": layer(48, 10)}
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for i in range(0, len(order) - batch + 1, batch):
            weights, _ = step(weights, images[order[i : i + batch]], labels[order[i : i + batch]])
    return weights


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    read = lambda name: np.load(DATA / name)  # noqa: E731
    images, labels = (read(f"train_{n}.npy") for n in ("images", "labels"))
    tests, answers = (read(f"heldout_{n}.npy") for n in ("images", "labels"))
    images, tests = (x.reshape(len(x), 64).astype(np.float32) for x in (images, tests))  # 0 to 16
    weights = train(images, labels.astype(np.int32))

    def classify(image):
        return jax.nn.softmax(logits(weights, image))  # the weights are constants of the bundle

    model = astra.from_jax(classify, astra.spec((astra.dim("batch", 1, 8), 64)))
    model.compile().save(folder / "digits_jax.astra")

    served = astra.load(folder / "digits_jax.astra")
    given = np.concatenate([served(tests[i : i + 8]).numpy() for i in range(0, len(tests), 8)])
    worst = np.abs(given - np.asarray(classify(tests))).max()
    print(f"{(given.argmax(1) == answers).mean():.4f} of {len(tests)} digits are right; {worst:.1e} from JAX's own numbers")


if __name__ == "__main__":
    main()
