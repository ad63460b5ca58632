"""JAX: one jitted function of arrays that lie on its device. XLA takes its number of threads from the CPUs it may use."""

import os

THREADS_FLAG = "--xla_cpu_multi_thread_eigen={} intra_op_parallelism_threads={}"


class Peer:
    def __init__(self, threads):
        os.environ["XLA_FLAGS"] = THREADS_FLAG.format(str(threads > 1).lower(), threads)
        os.environ["JAX_PLATFORMS"] = "cpu"  # where a GPU is, it would take that
        import jax

        jax.config.update("jax_default_matmul_precision", "highest")
        self.jax = jax
        jax.jit(lambda x: x + 1)(1.0)  # starts its device

    def prepare(self, row):
        """The weights of a training step are those of PyTorch's module."""
        if row.family == "train":
            import torch
            from rows import train

            with torch.device("meta"):
                train.module(torch, row)

    def load(self, row, case, path):
        if row.jax is None:
            raise ValueError("the row has no function for it")
        if row.family == "train":
            return self.load_training(row, case)
        jax = self.jax
        values = {name: jax.device_put(value) for name, value in {**case.inputs, **case.weights}.items()}
        compiled = jax.jit(lambda values: row.jax(jax, values)).lower(values).compile()

        def run():
            self.result = jax.block_until_ready(compiled(values))

        self.run = run
        self.run()

    def load_training(self, row, case):
        """The first loss is the result; the weights go on from step to step."""
        import torch
        from rows import train

        step, self.state, data = train.jax_step(self.jax, torch, row, case)

        def run():
            *self.state, self.result = self.jax.block_until_ready(step(*self.state, *data))

        self.run = run
        self.run()

    def outputs(self):
        import numpy as np

        return [np.asarray(value) for value in self.jax.tree.leaves(self.result)]
