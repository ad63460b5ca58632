"""IREE: llvm-cpu with this host's features, the better of with and without data tiling, arguments on its device."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

BIN = Path(sys.executable).parent
HOST = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"]
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

    def load(self, row, case, path):
        ways = []
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            tool(BIN / "iree-import-onnx", path, "-o", folder / "row.mlir", "--opset-version", "23")
            for number, tiling in enumerate(TILING):
                tool(BIN / "iree-compile", folder / "row.mlir", *HOST, tiling, "-o", folder / f"{number}.vmfb")
                ways.append(self.prepare(folder / f"{number}.vmfb", case))
        self.run = min(ways, key=self.time)
        self.run()

    def prepare(self, path, case):
        runtime = self.runtime
        module = runtime.load_vm_module(runtime.VmModule.copy_buffer(self.config.vm_instance, path.read_bytes()), self.config)
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
