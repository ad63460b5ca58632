"""OpenBLAS: sgemm, or sgemv where there is one row."""

import ctypes

import numpy as np
import scipy_openblas32

ROW_MAJOR, AS_IT_IS, TRANSPOSED = 101, 111, 112


class Peer:
    def __init__(self, threads):
        folder = scipy_openblas32.get_lib_dir()
        self.library = ctypes.CDLL(f"{folder}/{scipy_openblas32.get_library(fullname=True)}")

    def load(self, row, case, path):
        values = {**case.inputs, **case.weights}
        a, b = values["a"], values["b"]
        (m, k), n = a.shape, b.shape[1]
        self.c = np.zeros((m, n), np.float32)
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        at = lambda array: ctypes.c_void_p(array.ctypes.data)
        if m == 1:
            words = [ROW_MAJOR, TRANSPOSED, k, n, one, at(b), n, at(a), 1, zero, at(self.c), 1]
            call = self.library.scipy_cblas_sgemv
        else:
            words = [ROW_MAJOR, AS_IT_IS, AS_IT_IS, m, n, k, one, at(a), k, at(b), n, zero, at(self.c), n]
            call = self.library.scipy_cblas_sgemm
        self.kept = a, b
        self.run = lambda: call(*words)
        self.run()

    def outputs(self):
        return [self.c]
