"""A training loop of several ranks in Python, without a compiler in the process.

Takes:    a bundle of layer.uop; a launcher's environment, or none.
Gives:    states.safetensors, from which the next start goes on; the bits of the weights, which do not depend on the number of ranks.

    astra-compile examples/mesh/layer.uop -o layer.astra
    astra-launch -n 2 python examples/mesh/train.py layer.astra [--steps N]      (pip install astra-rt; torchrun, srun and mpirun do, too)
"""

import argparse
import pathlib

import numpy as np

from astra_rt import ranks

ROWS, EVERY = 16, 20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--states", type=pathlib.Path, default=pathlib.Path("states.safetensors"))
    options = parser.parse_args()
    with ranks.init() as world:
        model = world.load(options.bundle)
        begun = options.states.exists()
        world.barrier()  # nobody writes before all have looked
        if begun:
            model.load_states(options.states)
        truth = np.float32([[0.5], [-1], [2], [0.25]])
        for step in range(1, options.steps + 1):
            x = np.random.default_rng(step).standard_normal((ROWS, 4), np.float32)  # the same on every rank, which takes its rows
            loss = model.step(x, x @ truth)
            if step % EVERY == 0:
                model.save_states(options.states)
                if world.rank == 0:
                    print(f"step {step}, loss {float(loss):.6f}", flush=True)
        weights = np.asarray(model.state_dict()["w"])
        if world.rank == 0:
            print("w", *(f"{v:08x}" for v in weights.view(np.uint32).ravel()))


if __name__ == "__main__":
    main()
