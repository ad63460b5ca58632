"""Every overload of the core ATen packets: compared with PyTorch on values and ends of ranges, its gradient too, or refused by name.

`PYTHONPATH=build/python python python/tests/torch/test_overloads.py` prints the whole table. At night all types are tried, and the gradient of each call.
"""

import collections
import os

import pytest
import torch
from comparing import NO_VALUES, SUMS, UNORDERED, Compare, _named_elements, computed, difference, greatest
from overloads import ELEMENTWISE, MEANING, SAMPLES, Values, kind_of, overloads

import astra
from astra import _core
from astra.torch.lower import _INTERNAL
from astra.torch.page import core_packets
from astra.torch.rows.registry import REFUSED, find, packet_of

NIGHTLY = os.environ.get("ASTRA_NIGHTLY", "") not in ("", "0")
DAILY = [torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64]
ALL = [*DAILY, torch.float16, torch.bfloat16, torch.complex128, torch.int32, torch.int16, torch.int8, torch.uint8]
TYPES = ALL if NIGHTLY else DAILY
REFUSALS = (astra.UnsupportedError, astra.ArgumentError, _core.Unsupported, NotImplementedError)
# Where PyTorch's results are none to follow.
NOT_OF_ALL = {"aten.view.dtype", "aten.mm.default", "aten.bmm.default", "aten.addmm.default", "aten.col2im.default", "aten.embedding_dense_backward.default",
              "aten.convolution_backward.default", "aten.avg_pool2d_backward.default", "aten.upsample_bilinear2d.default", "aten.upsample_bilinear2d.vec"}  # fmt: skip
"""Overloads of which some types that are no floats are refused: a view of another width, products of bools, gradients by integers, bytes between pixels."""
HALVES = {"aten.grid_sampler_2d"}  # it computes coordinates in the narrow type
EACH = {torch.float32: (2e-5, 1e-6), torch.float64: (1e-11, 1e-13), torch.float16: (4e-3, 1e-3), torch.bfloat16: (3e-2, 8e-3)}
SHORT = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.complex64: "c64", torch.complex128: "c128",
         torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool"}  # fmt: skip


class Row:
    """What was seen of an overload."""

    def __init__(self, op):
        self.op, self.kind = op, kind_of(op)
        self.compared, self.gradients = collections.Counter(), collections.Counter()
        self.refused, self.wrong = {}, []

    def __str__(self):
        if self.kind != "tensors":
            return f"{self.op}: {self.kind}"
        if packet_of(self.op) in REFUSED:
            return f"{self.op}: refused: {REFUSED[packet_of(self.op)]}"
        types = " ".join(f"{SHORT[t]}:{n}" for t, n in self.compared.items())
        return "; ".join([f"{self.op}: {types or 'never'}", *([f"gradients {sum(self.gradients.values())}"] if self.gradients else []),
                          *(f"{SHORT[t]} refused: {why}" for t, why in self.refused.items())])  # fmt: skip


def split(args):
    return (args[:-1], args[-1]) if args and isinstance(args[-1], dict) else (args, {})


def alone(op, args, named, at, shape):
    """What PyTorch gives for the operands of one element: its loops over vectors overflow earlier."""
    one = lambda x: x.broadcast_to(shape).reshape(-1)[at].reshape(1) if isinstance(x, torch.Tensor) else x  # noqa: E731
    args, named = torch.utils._pytree.tree_map(one, (args, named))
    return op(*args, **named)[0]


def elements(mine, theirs, op, args, named):
    """As `difference`, but each element by its own magnitude: ends of ranges would hide the others."""
    if not isinstance(theirs, torch.Tensor) or theirs.dtype not in EACH or mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        return difference(mine, theirs)
    relative, absolute = EACH[theirs.dtype]
    near = torch.isclose(mine, theirs, relative, absolute, equal_nan=True)
    for at in (~near).reshape(-1).nonzero()[:, 0].tolist():
        m, t = mine.reshape(-1)[at], theirs.reshape(-1)[at]
        if str(op) not in ELEMENTWISE or not torch.isclose(m, alone(op, args, named, at, theirs.shape), relative, absolute, equal_nan=True):
            return f"{m.item()} instead of {t.item()}"
    return ""


def compare(row, dtype, args, named):
    """One call of the row beside PyTorch's."""
    op, name = row.op, packet_of(row.op)
    try:
        theirs = MEANING.get(str(op), op)(*args, **named)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return  # PyTorch refuses this type
    try:
        mine = computed(op, args, named)
    except REFUSALS as error:
        row.refused.setdefault(dtype, str(error).splitlines()[0])
        return
    internal = name in _INTERNAL
    a, b = (mine[0], theirs[0]) if internal else (mine, theirs)
    summed = name in SUMS or isinstance(b, (tuple, list)) or dtype not in EACH
    known = name not in NO_VALUES
    found = difference(a, b, known, greatest(torch.utils._pytree.tree_leaves((args, named))) if name in SUMS else 0.0) if summed or not known else elements(a, b, op, args, named)
    if found and name in UNORDERED and difference(a[0], b[0]) == "":
        found = _named_elements(op, args, mine)
    row.compared[dtype] += 1
    if found and not (name in HALVES and dtype.itemsize == 2):
        shown = torch.utils._pytree.tree_map(lambda x: f"{x.dtype}{list(x.shape)}" if isinstance(x, torch.Tensor) else x, (*args, named))
        row.wrong.append(f"{op}{shown}: {found}")


def gradient(row, dtype, args, named):
    """The ops of PyTorch's backward pass beside their rows."""
    wanted = [x for x in torch.utils._pytree.tree_leaves((args, named)) if isinstance(x, torch.Tensor) and x.dtype is dtype]
    args, named = torch.utils._pytree.tree_map(lambda x: x.clone().requires_grad_() if isinstance(x, torch.Tensor) and x.dtype is dtype else x, (args, named))
    try:
        out = row.op(*args, **named)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return
    leaves = [x for x in torch.utils._pytree.tree_leaves(out) if isinstance(x, torch.Tensor) and x.grad_fn is not None]
    if not leaves or not wanted:
        return
    mode = Compare(decompose=torch._decomp.core_aten_decompositions())
    try:
        with mode:
            torch.autograd.backward(leaves, [torch.linspace(0.5, 1.5, x.numel(), dtype=torch.float64).reshape(x.shape).to(x.dtype) for x in leaves])
    except (RuntimeError, NotImplementedError):
        return  # PyTorch has no gradient
    row.gradients[dtype] += sum(mode.compared.values())
    row.wrong += [f"backward of {row.op}: {line}" for lines in mode.wrong.values() for line in lines]
    row.wrong += [f"backward of {row.op}: {name} has no row" for name in mode.missing if dtype is torch.float32 and name != "aten.to"]


def table(types=TYPES, everything=NIGHTLY):
    """A Row for each overload. everything: the gradient of each call, not of the first alone."""
    rows = []
    for op in overloads(core_packets()):
        row = Row(op)
        rows.append(row)
        if row.kind != "tensors" or find(op) is None:
            continue
        for dtype in types:
            for i, args in enumerate(SAMPLES[str(op)](Values(str(op), dtype)) if str(op) in SAMPLES else []):
                args, named = split(args)
                compare(row, dtype, args, named)
                if dtype in (torch.float32, torch.float64) and (everything or i == 0):
                    gradient(row, dtype, args, named)
    return rows


def summary(rows):
    """Counts in a sentence."""
    lowered = [r for r in rows if r.kind == "tensors" and find(r.op) is not None]
    others = collections.Counter(r.kind for r in rows if r.kind != "tensors")
    calls = collections.Counter()
    for r in lowered:
        calls.update({SHORT[t]: n for t, n in r.compared.items()})
    lines = [f"{len(rows)} overloads of {len({packet_of(r.op) for r in rows})} packets; {len(lowered)} on tensors, compared in {sum(calls.values())} calls "
             f"({', '.join(f'{t} {n}' for t, n in calls.items())}), {sum(bool(r.gradients) for r in lowered)} with {sum(sum(r.gradients.values()) for r in lowered)} calls of backward ops"]  # fmt: skip
    return "\n".join([*lines, *(f"{n} {kind}" for kind, n in others.items())])


@pytest.fixture(scope="module")
def rows():
    found = table()
    print(summary(found))
    return found


def test_no_overload_is_missing(rows):
    """Compared in f32 and f64, or in the types that it has; or its packet is refused; or no graph has it."""
    assert len(rows) > 600
    missing = [str(r.op) for r in rows if r.kind == "tensors" and packet_of(r.op) not in REFUSED and not r.compared]
    assert not missing
    floats = [r for r in rows if {torch.float32, torch.float64} <= set(r.compared)]
    others = {str(r.op) for r in rows if r.compared and r not in floats}
    assert all(name.startswith("aten.bitwise") or name == "aten._fft_c2r.default" for name in others), others  # of integers, of complex numbers
    assert len(floats) >= 200


def test_overloads_give_what_pytorch_gives(rows):
    wrong = [line for r in rows for line in r.wrong[:2]]
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong)


def test_real_types_are_not_refused(rows):
    """What is refused is complex: the compiler has no order and no such function of complex numbers."""
    refused = {(str(r.op), SHORT[t]): why for r in rows for t, why in r.refused.items() if not t.is_complex and str(r.op) not in NOT_OF_ALL}
    assert not refused, refused


if __name__ == "__main__":
    found = table(ALL, everything=True)
    print("\n".join(map(str, found)))
    print(summary(found))
    for row in found:
        print(*row.wrong, sep="\n", end="\n" if row.wrong else "")
