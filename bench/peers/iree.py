"""IREE: llvm-cpu with this host's features, the better of with and without data tiling, arguments on its device."""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

BIN = Path(sys.executable).parent
HOST = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3",
        "--iree-llvmcpu-stack-allocation-limit=262144"]  # 32 KiB, its own limit, refuses transformers
TILING = ["--iree-opt-data-tiling=true", "--iree-opt-data-tiling=false"]


def tool(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.splitlines()[-1:] or ["failed"]
        raise RuntimeError(f"{Path(words[0]).name}: {lines[0].split('error:')[-1].strip()[:200]}")


class Peer:
    def __init__(self, threads):
        import iree.runtime as runtime

        if threads > 1:
            runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
        self.runtime, self.config = runtime, runtime.Config("local-task" if threads > 1 else "local-sync")

    def build(self, row, case, path):
        """The faster of the compiled files, which stand beside the model and are made once."""
        folder = path.parent / "iree" / hashlib.sha256(path.read_bytes()).hexdigest()[:24]
        files = [folder / f"{number}.vmfb" for number in range(len(TILING))]
        if not any(file.exists() for file in files):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory() as scratch:
                text = Path(scratch) / "row.mlir"
                tool(BIN / "iree-import-onnx", path, "-o", text, "--opset-version", "23")
                refused = []
                for file, tiling in zip(files, TILING):
                    made = Path(scratch) / file.name
                    try:
                        tool(BIN / "iree-compile", text, *HOST, tiling, "-o", made)
                    except RuntimeError as error:
                        refused.append(error)
                    else:
                        shutil.move(made, file)
                if len(refused) == len(files):
                    raise refused[0]
        return min((file for file in files if file.exists()), key=lambda file: self.time(self.opened(file, case)))

    def load(self, row, case, path):
        self.run = self.opened(path, case)

    def opened(self, path, case):
        runtime = self.runtime
        module = runtime.load_vm_module(runtime.VmModule.mmap(self.config.vm_instance, str(path)), self.config)
        name = next(n for n in module.vm_module.function_names if not n.startswith("__") and not n.endswith("$async"))
        function = getattr(module, name)
        arguments = [runtime.asdevicearray(self.config.device, value) for value in case.inputs.values()]

        def run():
            self.result = function(*arguments)

        run()
        return run

    @staticmethod
    def time(run):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        return min(times)

    def outputs(self):
        found = self.result if isinstance(self.result, (tuple, list)) else [self.result]
        return [np.asarray(value.to_host()) for value in found]
