"""The difference of two arrays, a table for a terminal, JSON.

Takes:    what Astra and the reference gave for the same values.
Gives:    per value the largest absolute difference, the same over the largest magnitude of the reference's value, and
          the first place beyond the tolerance.
Keeps:    NaN equals NaN, an infinity itself; a NaN or an infinity beside a number is an infinite difference. Integers and
          bools are equal or they differ.
"""

import json
import math
import os
import sys

import ml_dtypes
import numpy as np

# What one rounding of the type may cost, times what a few nodes may add up.
TOLERANCE = {np.dtype(np.float16): 1e-2, np.dtype(ml_dtypes.bfloat16): 5e-2}
DEFAULT_TOLERANCE = 1e-4


class Refusal(Exception):
    """A sentence for the user. exit code 1, or 3 where it is a thing that is not supported."""

    def __init__(self, sentence, unsupported=False):
        super().__init__(sentence)
        self.unsupported = unsupported


class Usage(Exception):
    """The command line is wrong."""


class Difference:
    def __init__(self, name, ours, theirs, tolerance, node=None):
        self.name, self.node, self.dtype, self.shape = name, node, ours.dtype.name, list(ours.shape)
        self.largest = self.relative = 0.0
        self.first = self.found = self.expected = None
        self.tolerance = 0.0
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            self.largest = self.relative = math.inf
            self.found = f"{ours.dtype.name}{list(ours.shape)}"
            self.expected = f"{theirs.dtype.name}{list(theirs.shape)}"
            return
        exact = ours.dtype.kind in "biu" or "int" in ours.dtype.name
        wide = np.complex128 if ours.dtype.kind == "c" else np.float64
        if not exact:
            self.tolerance = TOLERANCE.get(ours.dtype, DEFAULT_TOLERANCE) if tolerance is None else tolerance
        a, b = (ours, theirs) if exact and ours.dtype.itemsize == 8 else (ours.astype(wide), theirs.astype(wide))
        with np.errstate(all="ignore"):
            equal = (a == b) | ((a != a) & (b != b))
            apart = np.where(equal, 0.0, np.abs(a.astype(wide) - b.astype(wide)))
            if exact:
                apart = np.where(equal, 0.0, np.maximum(apart, 1.0))
            apart = np.where(np.isnan(apart), math.inf, apart)
            sizes = np.abs(b.astype(wide))
        finite = sizes[np.isfinite(sizes)]
        scale = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
        self.largest = float(apart.max()) if apart.size else 0.0
        self.relative = self.largest / scale
        beyond = np.flatnonzero(apart > (0.0 if exact else self.tolerance * scale))
        if beyond.size:
            self.first = [int(i) for i in np.unravel_index(beyond[0], ours.shape)]
            self.found, self.expected = (str(v[tuple(self.first)]) for v in (ours, theirs))

    @property
    def within(self):
        return self.first is None and self.found is None

    def row(self):
        place = "" if self.within else "the type or shape" if self.first is None else str(self.first)
        values = "" if self.within else f"{self.found}, not {self.expected}"
        return [self.name, f"{self.dtype}{self.shape}", f"{self.largest:.3g}", f"{self.relative:.3g}",
                "ok" if self.within else "DIFFERS", place, values]  # fmt: skip

    def as_json(self):
        number = lambda v: v if math.isfinite(v) else "inf"
        fields = {"name": self.name, "dtype": self.dtype, "shape": self.shape, "max_abs": number(self.largest),
                  "max_rel": number(self.relative), "tolerance": self.tolerance, "within": self.within}  # fmt: skip
        if self.node is not None:
            fields["node"] = self.node
        if not self.within:
            fields |= {"first": self.first, "astra": self.found, "reference": self.expected}
        return fields


HEAD = ["output", "type", "largest abs", "largest rel", "", "first beyond", "values there"]


def print_table(rows, out=sys.stdout):
    """Columns as wide as they must be; colour on a terminal only."""
    colour = out.isatty() and not os.environ.get("NO_COLOR")
    shade = {"ok": "\033[32mok\033[0m", "DIFFERS": "\033[31mDIFFERS\033[0m"} if colour else {}
    widths = [max(len(row[i]) for row in [HEAD, *rows]) for i in range(len(HEAD))]
    for number, row in enumerate([HEAD, *rows]):
        cells = [shade.get(cell, cell) + " " * (width - len(cell)) for cell, width in zip(row, widths)]
        line = "  " + "  ".join(cells).rstrip()
        print(f"\033[1m{line}\033[0m" if colour and number == 0 else line, file=out)


def write_json(path, report):
    text = json.dumps(report, indent=1) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as wrong:
        raise Refusal(f"cannot write {path}: {wrong.strerror}") from None
