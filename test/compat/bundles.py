"""The bundles of a folder of compat/: what each covers of the format, and how it is made.

Takes:    nothing.
Gives:    CASES, read by scripts/make-compat.
Keeps:    together they hold every kind of section and every feature bit, states, control, data dims, training, narrow types,
          three CPU levels and GPUs, PTX, HSACO and host builds; `check` says what is missing.
Does not: make anything. A folder that was released never changes when this table does.
"""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
V3, V4, ARM = "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64"
LEVELS = (V3, V4, ARM)
NVIDIA, AMD = "cuda:sm_90", "hip:gfx942"
# The seed of a key of RFC 8032: who has this repository can sign with it, which proves nothing but the format.
SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"


@dataclass
class Case:
    name: str  # of test/e2e/cases/NAME.uop, or of a model below
    targets: tuple
    signed: bool = False
    model: str = ""  # instead: arguments of astra-compile that print a module
    calls: str = ""  # of that model: the lines behind "// case:" (test/e2e/run.py)


TRAINING = ("examples/digits/digits.onnx --dim=batch=1..16 --train --predict=probability --loss=mse "
            "--optimizer=adamw(lr=1e-2) --metric=absolute_error")  # fmt: skip
CASES = [
    Case("affine", (*LEVELS, "cpu:x86-64-v4+avx512vnni", NVIDIA, AMD, f"emu:{NVIDIA}", f"emu:{AMD}"), signed=True),
    Case("states", LEVELS),
    Case("decode", (V3, ARM, NVIDIA, f"emu:{NVIDIA}")),
    Case("grow", LEVELS),  # while
    Case("recurrence", LEVELS),  # scan
    Case("branch", LEVELS),  # cond
    Case("compact", (V3, V4, AMD, f"emu:{AMD}")),  # a data dim
    Case("gradient", (V3, V4)),
    Case("entries", LEVELS),
    Case("replace", LEVELS),  # params of the caller, prepared and derived ones
    Case("folded", (V3, ARM)),
    Case("subbyte", LEVELS),
    Case("packed-state", (V4, ARM)),
    Case("weights4", (V3, V4)),
    Case("weights16", (V4, ARM)),
    Case("eights", (V3,)),
    Case("complex", (V3, ARM)),
    Case("words", (V3, V4, "cpu:x86-64-v4+avx512vnni")),
    Case("variants", (V4, ARM)),
    Case("training", LEVELS, model=TRAINING, calls="entry:init seed=5; entry:train_step batch=5; entry:train_step batch=16; "
         "entry:eval batch=3"),  # fmt: skip
]
KINDS = {"Manifest", "Code", "Weights", "Signature", "DeviceCode", "DeviceText"}
