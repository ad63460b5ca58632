"""Whom we race.

Gives:    PEERS, the one table of them.
Keeps:    each in the setting that its documentation names as the best for f32 inference on a CPU, with the number of
          threads asked for. No reduced precision. tinygrad does not search (BEAM), which takes minutes a kernel.

A peer is a module of this folder with a class Peer(threads): `load(row, case, path)` takes a row, its values and the ONNX
file of its model; `run()` calls it once; `outputs()` gives the results of the last call, in order. Two more are seen by no
clock, and their memory is not counted: `prepare(row)` imports what is not imported yet; `build(row, case, path)` makes a
file ahead of time, which load then gets in place of the model, in another process, or gives None. A peer that cannot do a
row raises; the sentence goes into the table.
"""

from dataclasses import dataclass, field

KERNELS = {"matmul", "thin", "conv", "layers", "attention", "rows", "mlp"}
MODELS = KERNELS | {"networks", "open"}


@dataclass
class Peer:
    title: str
    package: str  # whose version is printed
    module: str
    families: set
    environment: dict = field(default_factory=dict)  # $THREADS is their number, $CORE what OpenBLAS calls this core
    options: dict = field(default_factory=dict)


CORES = {"x86-64-v4": "SkylakeX", "x86-64-v3": "Haswell"}  # of OpenBLAS, by our level
# Large results stay in the process from call to call, as those of ours, ONNX Runtime's and OpenVINO's do: else the kernel
# clears 64 MB of new pages in each call, which takes longer than what is measured. PyTorch's training takes 2 % more memory so.
KEPT = {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=8589934592"}
OPENMP = KEPT | {"OMP_NUM_THREADS": "$THREADS", "MKL_NUM_THREADS": "$THREADS"}

PEERS = {
    "ort": Peer("ONNX Runtime", "onnxruntime", "ort", MODELS | {"quantized", "trees"}),
    "openvino": Peer("OpenVINO", "openvino", "openvino", MODELS),
    # Its detection of the core does not know new ones, and takes half the width of those with AVX-512.
    "openblas": Peer("OpenBLAS", "scipy-openblas32", "openblas", {"matmul", "thin"},
                     {"OPENBLAS_CORETYPE": "$CORE", "OPENBLAS_NUM_THREADS": "$THREADS"}),  # fmt: skip
    "onednn": Peer("oneDNN", "torch", "onednn", {"matmul", "thin"}, OPENMP),
    "numpy": Peer("NumPy", "numpy", "numpypeer", {"einsum"}, {"OPENBLAS_CORETYPE": "$CORE", "OPENBLAS_NUM_THREADS": "$THREADS"}),
    "torch": Peer("PyTorch", "torch", "pytorch", KERNELS | {"networks", "train", "einsum"}, OPENMP),
    "compile": Peer("torch.compile", "torch", "pytorch", KERNELS | {"networks", "train"}, OPENMP, {"compiled": True}),
    "jax": Peer("JAX", "jax", "jaxpeer", KERNELS | {"train"}, KEPT),
    "ort-optimized": Peer("ONNX Runtime, optimized before", "onnxruntime", "ortoptimized", {"open"}),
    "openvino-cache": Peer("OpenVINO, from its cache", "openvino", "openvinocache", {"open"}),
    "iree": Peer("IREE", "iree-base-compiler", "iree", MODELS, KEPT),
    "tinygrad": Peer("tinygrad", "tinygrad", "tiny", MODELS - {"open"}, KEPT | {"DEV": "CPU", "NUM_CPU_THREADS": "$THREADS"}),
}

# Astra from Python, a contestant of bench/python_speed.py; scripts/bench measures ours from C.
WAYS = {"astra": Peer("@astra", "astra-compiler", "astrapython", {"networks", "train"}, OPENMP)}
