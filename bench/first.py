"""The first figures: a matrix product beside the rate of FMA instructions, ResNet-50 beside ONNX Runtime.

Takes:    the build folder.
Gives:    GFLOP/s of a 1024 x 1024 x 1024 f32 product on one core and its share of the FMA rate measured right before and
          right after it, once with both operands as inputs and once with one as a weight; then a line of
          bench/networks.py for ResNet-50, if build/models and ONNX Runtime are there (scripts/test makes the models).
Keeps:    turns, CPU time and medians: clocks move, and other work on the machine does not count.
Does not: check results.

    build/venv/bin/python bench/first.py build [--rounds=N]
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SIZE = 1024
MODELS = {
    "both operands inputs": "entry @main(%a : f32[N, N], %b : f32[N, N]) -> (%c : f32[N, N]) {\n"
    "    %c = contract %a[i, k], %b[k, j] -> [i, j] sum [k]\n  }",
    "one operand a weight": "param @b : f32[N, N] = splat 0.75\n  entry @main(%a : f32[N, N]) -> (%c : f32[N, N]) {\n"
    "    %c = contract %a[i, k], @b[k, j] -> [i, j] sum [k]\n  }",
}


def level():
    """The best level of this CPU that there is a target for."""
    features = Path("/proc/cpuinfo").read_text().split()
    for name, needs in (("x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl"), ("x86-64-v3", "avx2 fma bmi2")):
        if all(f in features for f in needs.split()):
            return name
    sys.exit("bench/first.py: this CPU has no FMA instructions of x86-64-v3; there is nothing to compare with")


def matmul(build, rounds):
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        program = folder / "matmul"
        subprocess.run(
            ["cc", "-std=gnu11", "-O2", "-ffp-contract=fast", f"-march={level()}", f"-I{root / 'include'}",
             root / "bench/matmul.c", build / "lib/libastra_rt.a", "-pthread", "-o", program], check=True)
        for what, body in MODELS.items():
            model, bundle = folder / "matmul.uop", folder / "matmul.astra"
            model.write_text("module @matmul {\n  " + body.replace("N", str(SIZE)) + "\n}\n")
            subprocess.run([build / "bin/astra-compile", model, "-o", bundle, f"--target=cpu:{level()}"], check=True)
            text = subprocess.run([program, bundle, str(SIZE), str(rounds)], check=True, capture_output=True, text=True)
            lines = [[float(v) for v in line.split()] for line in text.stdout.splitlines()]
            fma = [line[0] for line in lines]
            ours = [line[1] for line in lines[:-1]]
            shares = [rate / ((before + after) / 2) for rate, before, after in zip(ours, fma, fma[1:])]
            print(f"f32 matmul {SIZE}, {what}, one core, {level()}: {statistics.median(ours):.1f} GFLOP/s, "
                  f"{100 * statistics.median(shares):.1f} % of the FMA rate around it "
                  f"(median {statistics.median(fma):.1f} GFLOP/s, {rounds} rounds)")


def resnet(build, rounds):
    try:
        import networks
    except ImportError as missing:
        return print(f"ResNet-50: not measured, {missing.name} is not there (scripts/setup installs it)")
    if not (build / "models/resnet50.onnx").exists():
        return print("ResNet-50: not measured, make the models: build/venv/bin/python test/models/make.py build/models")
    networks.measure("resnet50", build / "models", build / "bin", 1, min(rounds, 7))


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    option = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--") and "=" in word)
    if len(words) != 1 or "--help" in sys.argv:
        print(__doc__)
        sys.exit(0 if "--help" in sys.argv else 2)
    build, rounds = Path(words[0]), int(option.get("rounds", 15))
    matmul(build, rounds)
    resnet(build, rounds)


if __name__ == "__main__":
    main()
