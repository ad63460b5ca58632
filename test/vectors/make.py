#!/usr/bin/env python3
"""Writes the vectors that hold the reference evaluator: per op and dtype, inputs and expected bytes.

Usage: make.py            writes the files beside this script
       make.py --check    exit code 1, naming the file, if a committed file is not what a fresh run gives
Takes: nothing. Gives: *.vec, the same bytes in every run. Imports nothing of Astra: Python's integers and fractions, NumPy for
the layout of arrays. A .vec file is lines of text:

    tensor NAME DTYPE SHAPE            the elements follow in hexadecimal, most significant digit first, not packed; a complex
                                       element is its real part, then its imaginary part, each a number of its own
    random NAME DTYPE SHAPE SEED       elements from the generator below
    case OP TO INTS INDICES INPUTS DTYPE SHAPE    the expected elements follow; `-` stands for nothing; SHAPE is 2x3, a scalar `-`
    INPUTS are NAME, or NAME:e:t, the elements of NAME in one row, each repeated e times, that row repeated t times.
"""
import sys
from pathlib import Path

from formats import FLOATS, PART, width


class Vectors:
    """One file: named tensors and cases on them."""

    def __init__(self):
        self.lines, self.data, self.shapes = [], {}, {}

    @staticmethod
    def shape_text(shape):
        return "x".join(map(str, shape)) or "-"

    def hexa(self, t, bits):
        digits = max(1, width(t) // 4)
        text = "".join(f"{b:0{digits}x}" for b in bits)
        self.lines += ["  " + text[i:i + 160] for i in range(0, len(text), 160)]

    def tensor(self, name, t, shape, bits):
        self.lines.append(f"tensor {name} {t} {self.shape_text(shape)}")
        self.hexa(t, bits)
        self.data[name], self.shapes[name] = (t, list(bits)), list(shape)
        return name

    def random(self, name, t, shape, seed):
        """Floats of 12 exponents around 1 (sums depend on their order), integers of all bits, bools."""
        count, state, bits = 1 + (t in PART), seed, []
        for d in shape:
            count *= d
        part = PART.get(t, t)
        for _ in range(count):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2 ** 64
            r = state >> 20
            if part in FLOATS:
                f = FLOATS[part]
                exponent = f.bias - 6 + (state >> 56) % 12
                bits.append((r & 1) << f.bits - 1 | exponent << f.man | (state >> 8) % 2 ** f.man)
            else:
                bits.append(r % 2 if t == "bool" else (state >> 8) % 2 ** width(t))
        self.lines.append(f"random {name} {t} {self.shape_text(shape)} {seed}")
        self.data[name], self.shapes[name] = (t, bits), list(shape)
        return name

    def elements(self, operand):
        """The bits of an operand, of a complex one the pairs of its parts."""
        name, each, tile = (operand.split(":") + ["1", "1"])[:3]
        t, bits = self.data[name]
        if t in PART:
            bits = list(zip(bits[::2], bits[1::2]))
        return [b for b in bits for _ in range(int(each))] * int(tile)

    def case(self, op, inputs, t, shape, bits, ints=(), indices=(), to="void"):
        def listed(xs):
            return ",".join(map(str, xs)) or "-"
        self.lines.append(f"case {op} {to} {listed(ints)} {listed(indices)} {listed(inputs)} {t} {self.shape_text(shape)}")
        self.hexa(t, bits)

    def text(self):
        return "\n".join(self.lines) + "\n"


def main():
    import complexes
    import elementwise
    import tensors
    check, stale = sys.argv[1:] == ["--check"], False
    for module in (elementwise, tensors, complexes):
        for name, fill in module.FILES.items():
            path = Path(__file__).parent / f"{name}.vec"
            v = Vectors()
            fill(v)
            if not check:
                path.write_text(v.text())
            elif not path.exists() or path.read_text() != v.text():
                print(f"{path}: not what make.py gives; run it and look at the difference")
                stale = True
    return stale


if __name__ == "__main__":
    sys.exit(main())
