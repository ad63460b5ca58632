"""NumPy, with the BLAS of its wheel."""

import numpy as np


class Peer:
    def __init__(self, threads):
        pass  # OpenBLAS reads its environment

    def load(self, row, case, path):
        if row.numpy is None:
            raise ValueError("the row has no function for it")

        def run():
            self.result = row.numpy(np, {**case.inputs, **case.weights})

        self.run = run
        self.run()

    def outputs(self):
        return [np.asarray(self.result)]
