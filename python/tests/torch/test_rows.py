"""Rows beside PyTorch's own sample inputs: a fixed small sample each day, all of them at night (ASTRA_NIGHTLY=1)."""

import os
import pathlib

import pytest
import torch
from comparing import Compare, computed, difference, run
from torch.testing._internal.common_methods_invocations import op_db

from astra.torch.page import core_packets, page
from astra.torch.rows.registry import REFUSED, ROWS

NIGHTLY = os.environ.get("ASTRA_NIGHTLY", "") not in ("", "0")
# Of these every day: one of each kind of row.
DAILY = {"add", "div", "remainder", "pow", "clamp", "round", "where", "gather", "index_put", "scatter_reduce", "cumsum", "sort", "topk",
         "var", "nn.functional.gelu", "nn.functional.conv2d", "nn.functional.layer_norm", "nn.functional.avg_pool2d",
         "nn.functional.embedding", "as_strided", "slice_scatter", "nn.functional.batch_norm", "nn.functional.group_norm",
         "nn.functional.rms_norm", "nn.functional.softplus", "nn.functional.elu", "nn.functional.adaptive_avg_pool2d", "log_softmax",
         "nn.functional.scaled_dot_product_attention", "floor_divide", "cummax", "searchsorted", "fft.rfft"}  # fmt: skip
TYPES = [torch.float32, torch.float64, torch.int64, torch.bool, torch.float16, torch.bfloat16, torch.complex64]
# What PyTorch gives in a way that no row follows, by type.
HALVES = {"aten.grid_sampler_2d", "aten.grid_sampler_3d"}  # PyTorch computes coordinates in the narrow type


@pytest.mark.parametrize("dtype", TYPES if NIGHTLY else TYPES[:2], ids=str)
def test_rows_give_what_pytorch_gives(dtype):
    mode = Compare(decompose=torch._decomp.core_aten_decompositions())
    for info in op_db:
        if (NIGHTLY or info.name in DAILY) and not info.name.startswith("jiterator"):
            run(info, dtype, mode, most=12 if NIGHTLY else 2, gradients=dtype in (torch.float32, torch.float64))
    print(f"{sum(mode.compared.values())} calls of {len(mode.compared)} packets compared, {len(mode.overloads)} with overloads")
    assert sum(mode.compared.values()) > (3000 if NIGHTLY and dtype.is_floating_point else 50)
    wrong = {name: lines[:2] for name, lines in mode.wrong.items() if not (name in HALVES and dtype.itemsize == 2)}
    assert not wrong, "\n".join(f"{name}: {line}" for name, lines in wrong.items() for line in lines)


def test_every_core_packet_has_a_row_or_a_reason():
    core = core_packets()
    assert len(core) >= 160
    lowered = [name for name in core if name in ROWS]
    assert not [name for name in core if name not in ROWS and name not in REFUSED]
    assert len(lowered) >= 155


def test_the_page_is_that_of_the_rows():
    here = pathlib.Path(__file__).resolve().parents[3] / "docs" / "torch.md"
    assert here.read_text() == page(), "python -m astra.torch.page > docs/torch.md"


# Packets that PyTorch decomposes before anyone sees them when they are called: their rows are called directly.
DIRECT = [
    (torch.ops.aten.avg_pool1d.default, (torch.arange(12.0).reshape(1, 2, 6), [2])),
    (torch.ops.aten.adaptive_avg_pool1d.default, (torch.arange(12.0).reshape(1, 2, 6), [4])),
    (torch.ops.aten.bitwise_or.Tensor, (torch.tensor([5, 3]), torch.tensor([6, 1]))),
    (torch.ops.aten.bitwise_xor.Scalar, (torch.tensor([5, 3]), 6)),
    (torch.ops.aten.copy.default, (torch.ones(2, 3), torch.arange(3))),
    (torch.ops.aten._native_batch_norm_legit_no_training.default,
     (torch.arange(12.0).reshape(2, 3, 2), torch.ones(3), torch.zeros(3), torch.arange(3.0), torch.ones(3), 0.1, 1e-5)),
    (torch.ops.aten._native_batch_norm_legit.default,
     (torch.arange(12.0).reshape(2, 3, 2), torch.ones(3), torch.zeros(3), torch.arange(3.0), torch.ones(3), True, 0.1, 1e-5)),
    (torch.ops.aten.sym_size.int, (torch.ones(2, 3), 1)),
    (torch.ops.aten.sym_numel.default, (torch.ones(2, 3),)),
    (torch.ops.aten.sym_stride.int, (torch.ones(2, 3), 0)),
    (torch.ops.aten.sym_storage_offset.default, (torch.ones(2, 3),)),
]


@pytest.mark.parametrize("op, args", DIRECT, ids=lambda x: str(x) if isinstance(x, torch._ops.OpOverload) else "")
def test_rows_of_composites(op, args):
    mine = computed(op, args, {})
    assert difference(mine, op(*args)) == ""


def test_functions_at_the_ends_of_their_range():
    """Those that a plain formula loses: erfc of large numbers, hypot beyond the range, log10 of powers of ten."""
    import torch

    from astra import astra as compiled

    x = torch.tensor([2.0, 3.0, 4.0])
    torch.testing.assert_close(compiled(lambda x: torch.erfc(x))(x), torch.erfc(x), rtol=1e-5, atol=0)
    a = torch.tensor([3e30, 1e-30, float("inf")])
    torch.testing.assert_close(compiled(lambda a: torch.hypot(a, a))(a), torch.hypot(a, a))
    tens = torch.tensor([1e3, 1e15, 1e22], dtype=torch.float64)
    assert compiled(lambda t: torch.log10(t))(tens).tolist() == [3, 15, 22]


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_gradients_of_distances_at_their_corners(p):
    """Points that are one, coordinates that agree, several greatest gaps."""
    x = torch.tensor([[0.5, -1.0, 2.0], [0.5, -1.0, 2.0], [0.5, 1.5, 0.25]], requires_grad=True)
    y = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.0, 3.0]], requires_grad=True)
    mode = Compare()
    with mode:
        for out in (torch.cdist(x, y, p, "donot_use_mm_for_euclid_dist"), torch.nn.functional.pdist(x, p)):
            out.backward(torch.linspace(0.5, 1.5, out.numel()).reshape(out.shape))
    assert mode.compared["aten._cdist_backward"] == 2 and mode.compared["aten._pdist_backward"] == 1
    assert not any(mode.wrong.values()), dict(mode.wrong)
    assert "aten._cdist_backward" not in mode.missing


def beside(f, *xs):
    """Results and gradients beside PyTorch's."""
    from astra import astra as compiled

    mine, theirs = (torch.utils._pytree.tree_leaves(g(*xs)) for g in (compiled(f), f))
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b)
    wanted = [*(x for x in xs if x.requires_grad), *(f.parameters() if isinstance(f, torch.nn.Module) else ())]
    if wanted:
        sums = [torch.autograd.grad(sum((y.abs() ** 2).sum() for y in made), wanted) for made in (mine, theirs)]
        for a, b in zip(*sums, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_rows_that_layers_and_losses_need():
    torch.manual_seed(0)
    r, nn = torch.randn, torch.nn
    beside(lambda a, b: nn.functional.cosine_embedding_loss(a, b, torch.ones(3)), r(3, 4, requires_grad=True), r(3, 4))
    beside(lambda w: torch.view_as_real(torch.view_as_complex(w) * (1 + 2j)), r(3, 2, requires_grad=True))
    beside(lambda x: (torch.tril_indices(3, 4, 1) + x, torch.triu_indices(4, 3, -1) * 2), torch.ones((), dtype=torch.int64))
    beside(torch.polar, r(3).abs(), r(3))
    beside(torch.nextafter, r(3), r(3))
    beside(torch.ldexp, r(3), torch.tensor([1, 2, -3]))
    beside(nn.RReLU().eval(), r(5, requires_grad=True))
    beside(nn.Bilinear(3, 4, 2), r(5, 3, requires_grad=True), r(5, 4))
    for dim in (0, 1):
        beside(nn.utils.parametrizations.weight_norm(nn.Linear(3, 2), dim=dim), r(5, 3))


@pytest.mark.parametrize("f, why", [
    (torch.mode, "aten.mode"), (lambda x: torch.histc(x, 4), "aten.histc"), (torch.unique, "_unique2.*depends on data"), (torch.frexp, "aten.frexp"),
    (lambda x: torch.bincount(x.to(torch.int64)), "aten.bincount.*depends on data"), (lambda x: torch.logcumsumexp(x, 0), "logcumsumexp"),
    (torch.nn.RReLU(), "rrelu.*random"), (lambda x: torch.nn.functional.fractional_max_pool2d(x.reshape(1, 2, 2), 1, output_size=2), "fractional_max_pool2d"),
], ids=["mode", "histc", "unique", "frexp", "bincount", "logcumsumexp", "rrelu", "fractional"])  # fmt: skip
def test_what_has_no_row_is_refused_by_name(f, why):
    import astra

    with pytest.raises(astra.UnsupportedError, match=why) as caught:
        astra.astra(f)(torch.ones(4))
    assert "it has no row;" not in str(caught.value)


def test_factors_of_two_types_are_refused_as_pytorch_does():
    from astra import astra as compiled

    for dtype in (torch.float64, torch.float16, torch.int32):
        for shape in ((3,), (2, 3), (2, 2, 3)):
            layer, x = torch.nn.Linear(3, 2), torch.ones(shape, dtype=dtype)
            with pytest.raises(RuntimeError) as theirs:
                layer(x)
            for gradients in (True, False):
                with torch.set_grad_enabled(gradients), pytest.raises(RuntimeError, match=str(theirs.value)):
                    compiled(layer)(x)
    with torch.no_grad(), pytest.raises(Exception, match="should be the same"):
        compiled(torch.nn.Conv1d(3, 2, 1))(torch.ones(1, 3, 3).double())
