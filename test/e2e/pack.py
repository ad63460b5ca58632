"""A folder of end-to-end cases that a machine with a GPU, or with a CPU that this one lacks, runs without this repository (scripts/pack-gpu-check).

Takes:    calls of astra-run, as test/e2e/run.py makes them.
Gives:    per module its bundle; per call a folder with its inputs, its arguments (one a line, paths inside of the folder) and
          the SHA-256 of each file that it must write.
Keeps:    what is packed was computed by the evaluator.
Does not: run anything (run.sh does, on the other machine).
"""

import hashlib
import re
import shutil

TARGETS = ("cuda:sm_80", "cuda:sm_90", "cuda:sm_100", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:x86-64-v4+avx512vnni")


class Pack:
    def __init__(self, folder):
        self.folder = folder

    def compile_options(self, path):
        """What a module is compiled with."""
        own = [gpu for line in re.findall(r"^// gpus: *(.*)$", path.read_text(), re.M) for gpu in line.split()]
        return ["--target=" + ",".join([*TARGETS, "emu:cuda:sm_90", *own, *(f"emu:{gpu}" for gpu in own)])]

    def add(self, module, call, arguments, bundle, golden):
        """arguments: those of astra-run but for outputs. golden: per option that writes a file, that file."""
        here = self.folder / "cases" / module / call
        here.mkdir(parents=True)
        shutil.copy(bundle, here.parent / "bundle.astra")
        lines, sums = [], []
        for number, argument in enumerate(map(str, arguments)):
            option, _, value = argument.partition("=")
            name, _, path = value.partition("=")
            if path.endswith(".npy"):
                shutil.copy(path, here / f"in{number}.npy")
                argument = f"{option}={name}=in{number}.npy"
            lines.append(argument)
        for number, (option, path) in enumerate(golden):
            lines.append(f"{option}=got/{number}.npy")
            sums.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  got/{number}.npy")
        (here / "arguments").write_text("".join(f"{line}\n" for line in lines))
        (here / "golden").write_text("".join(f"{line}\n" for line in sums))
