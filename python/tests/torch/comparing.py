"""Rows beside PyTorch: every op that PyTorch dispatches is computed by its row too, by the reference evaluator.

Takes:    code of PyTorch's, run under Compare(); sample inputs of PyTorch's own tests (OpInfo).
Gives:    per packet how many calls were compared, which differ and which are refused.
Keeps:    a row is given PyTorch's operands, so that one wrong row does not hide behind another. Random and empty values have
          no values to compare: types and shapes alone.
"""

import collections

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import astra
from astra import _core
from astra._evaluate import evaluate
from astra._graph import current, retire
from astra.torch.lower import _INTERNAL
from astra.torch.rows import random
from astra.torch.rows.registry import find, packet_of

# relative, absolute: of the greatest magnitude of the result
TOLERANCE = {torch.float32: (2e-5, 4e-6), torch.float64: (1e-11, 1e-12), torch.float16: (4e-3, 1e-3), torch.bfloat16: (3e-2, 8e-3),
             torch.complex64: (2e-5, 4e-6), torch.complex128: (1e-11, 1e-12)}  # fmt: skip
NO_VALUES = random.RANDOM | {"aten.empty", "aten.empty_like", "aten.empty_strided", "aten.new_empty", "aten.new_empty_strided",
                             "aten.empty_permuted", "aten.resize"}  # fmt: skip
MOST = 30_000
"""Elements of an operand that is compared."""


def to_torch(value):
    """The values of a tensor of astra_rt's."""
    return torch.from_dlpack(value).clone()


def computed(op, args, named):
    """What the row of an op gives for PyTorch's tensors, as such tensors."""
    tensor = lambda x: astra.asarray(x.detach().resolve_conj().resolve_neg().contiguous()) if isinstance(x, torch.Tensor) else x  # noqa: E731
    args, named = torch.utils._pytree.tree_map(tensor, (tuple(args), dict(named)))
    with random.keyed(astra.asarray(np.uint32(7))):
        out = find(op)(*args, **named)
    leaves, structure = torch.utils._pytree.tree_flatten(out, is_leaf=lambda x: isinstance(x, astra.Tensor))
    wanted = [x for x in leaves if isinstance(x, astra.Tensor) and x._value is None]
    graph = current()
    if wanted:
        for x, value in zip(wanted, evaluate(graph, [x._node for x in wanted], "evaluator")):
            x._value, x._graph, x._node = value, None, None
        retire(graph)
    made = [to_torch(x._realized()) if isinstance(x, astra.Tensor) else x for x in leaves]
    return torch.utils._pytree.tree_unflatten(made, structure)


# Sums that may cancel: their errors are those of the terms.
SUMS = {"aten.sum", "aten.mean", "aten.cumsum", "aten.mm", "aten.bmm", "aten.addmm", "aten.dot", "aten.convolution", "aten.convolution_backward",
        "aten.native_batch_norm_backward", "aten.native_layer_norm_backward", "aten.native_group_norm_backward", "aten._fft_r2c",
        "aten._fft_c2r", "aten._fft_c2c", "aten._softmax_backward_data", "aten._log_softmax_backward_data",
        "aten._scaled_dot_product_flash_attention_for_cpu_backward"}  # fmt: skip


def greatest(xs):
    """The greatest finite magnitude among floats."""
    found = [x[torch.isfinite(x)].abs().max().item() for x in xs if isinstance(x, torch.Tensor) and x.dtype in TOLERANCE and torch.isfinite(x).any()]
    return max(found, default=0.0)


def difference(mine, theirs, values=True, least=0.0):
    """A sentence on how two results differ; "" where they do not."""
    if isinstance(theirs, (tuple, list)):
        if not isinstance(mine, (tuple, list)) or len(mine) != len(theirs):
            return f"{type(mine).__name__} instead of {len(theirs)} results"
        return next((d for m, t in zip(mine, theirs) if (d := difference(m, t, values, least))), "")
    if not isinstance(theirs, torch.Tensor):
        return "" if theirs is None or mine == theirs or values is False else f"{mine} instead of {theirs}"
    if not isinstance(mine, torch.Tensor):
        return f"{mine} instead of a tensor"
    if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
        return f"{mine.dtype}{list(mine.shape)} instead of {theirs.dtype}{list(theirs.shape)}"
    if not values or not theirs.numel():
        return ""
    if theirs.dtype not in TOLERANCE:
        wrong = (mine != theirs).sum().item()
        return f"{wrong} of {theirs.numel()} elements differ" if wrong else ""
    if theirs.is_complex():
        mine, theirs = torch.view_as_real(mine), torch.view_as_real(theirs.resolve_conj())
    relative, absolute = TOLERANCE[theirs.dtype]
    scale = max(greatest([theirs]), least)
    near = torch.isclose(mine.double(), theirs.double(), relative, max(absolute * scale, 1e-45 if scale == 0 else 0), equal_nan=True)
    wrong = (~near).sum().item()
    if not wrong:
        return ""
    where = (~near).reshape(-1).nonzero()[0].item()
    return f"{wrong} of {theirs.numel()} elements differ: {mine.reshape(-1)[where].item()} instead of {theirs.reshape(-1)[where].item()}"


UNORDERED = {"aten.sort", "aten.topk", "aten.kthvalue", "aten.median", "aten.nanmedian"}


def _named_elements(op, args, made):
    """That the indices name elements that equal the values."""
    x, (values, index) = args[0], made
    dim = next((a for a in args[2 if op._schema.name.endswith(("topk", "kthvalue")) else 1 :] if isinstance(a, int) and not isinstance(a, bool)), -1)
    if values.ndim < x.ndim:
        values, index = values.unsqueeze(dim), index.unsqueeze(dim)
    found = x.gather(dim, index) if x.ndim else x
    return difference(found, values)


class Compare(TorchDispatchMode):
    """Compares each op that is dispatched with its row."""

    def __init__(self, only=None, decompose=None):
        super().__init__()
        self.only, self.decompose = only, decompose or {}
        self.compared = collections.Counter()
        self.overloads = collections.defaultdict(set)
        self.wrong = collections.defaultdict(list)
        self.refused = collections.defaultdict(list)
        self.missing = collections.Counter()

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = packet_of(op)
        has_row = find(op) is not None
        if not has_row and op in self.decompose:
            with self:
                out = self.decompose[op](*args, **kwargs)
            if out is not NotImplemented:
                return out
        kept = torch.utils._pytree.tree_map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, (args, kwargs)) if has_row else None
        out = op(*args, **kwargs)
        if op._schema.is_mutable or (self.only is not None and name not in self.only):
            return out
        if not has_row:
            self.missing[name] += 1
            return out
        if name.startswith("aten.as_strided") and not (args[0].is_contiguous() and args[0].storage_offset() == 0):
            return out  # refused by lower.py: values have no strides
        leaves = torch.utils._pytree.tree_leaves((args, out))
        # Below the dispatcher's level of lazy values these are not what they show; some have no memory.
        strange = lambda x: x.layout is not torch.strided or x.is_quantized or x.is_conj() or x.is_neg() or x._is_zerotensor()  # noqa: E731
        if any(isinstance(x, torch.Tensor) and (x.numel() > MOST or x.dtype is torch.complex32 or strange(x)) for x in leaves):
            return out
        self._compare(op, name, kept, out)
        return out

    def _compare(self, op, name, kept, out):
        shown = lambda x: f"{x.dtype}{list(x.shape)}" if isinstance(x, torch.Tensor) else repr(x)  # noqa: E731
        what = lambda: f"{op}({', '.join(map(str, torch.utils._pytree.tree_map(shown, [*kept[0], *kept[1].items()])))})"  # noqa: E731
        # A view with strides of its own has no values in a graph without strides.
        with torch._C._DisableTorchDispatch() if hasattr(torch._C, "_DisableTorchDispatch") else torch.no_grad():
            try:
                mine = computed(op, *kept)
            except (astra.UnsupportedError, astra.ArgumentError, _core.Unsupported, NotImplementedError) as error:
                self.refused[name].append(f"{what()}: {error}")
                return
            except Exception as error:
                self.wrong[name].append(f"{what()}: {type(error).__name__}: {error}")
                return
            internal = name in _INTERNAL  # what backward ops read: PyTorch leaves some of it empty
            found = difference(mine[0] if internal else mine, out[0] if internal else out, name not in NO_VALUES,
                               greatest(torch.utils._pytree.tree_leaves(kept)) if name in SUMS else 0.0)  # fmt: skip
            if not found or name not in UNORDERED:
                pass
            elif difference(mine[0], out[0]) == "":  # among equal elements PyTorch may name any
                found = _named_elements(op, kept[0], mine)
            self.compared[name] += 1
            self.overloads[name].add(str(op))
            if found:
                self.wrong[name].append(f"{what()}: {found}")


def samples(info, dtype, requires_grad, most):
    """Sample inputs of an OpInfo: at most so many, spread over all."""
    torch.manual_seed(0)
    try:
        found = list(info.sample_inputs("cpu", dtype, requires_grad=requires_grad))
    except Exception:
        return []
    step = max(1, -(-len(found) // most))
    return found[::step]


def run(info, dtype, mode, most=8, gradients=False):
    """An OpInfo's samples under a mode, their gradients too."""
    supported = info.supports_dtype(dtype, "cpu")
    if not supported:
        return
    backward = gradients and info.supports_autograd and dtype in info.supported_backward_dtypes("cpu")
    for sample in samples(info, dtype, backward, most):
        try:
            with mode:
                out = info.op(sample.input, *sample.args, **sample.kwargs)
                if backward:
                    leaves = [x for x in torch.utils._pytree.tree_leaves(out) if isinstance(x, torch.Tensor) and x.requires_grad]
                    loss = sum((x * x.detach().clone().uniform_(0.5, 1)).abs().sum() if x.is_complex() else (x * torch.rand_like(x)).sum() for x in leaves)
                    if leaves:
                        loss.backward()
        except (RuntimeError, NotImplementedError, TypeError, ValueError, AssertionError, IndexError):
            continue  # PyTorch itself refuses
