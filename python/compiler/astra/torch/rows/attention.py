"""Scaled dot product attention.

Keeps:    a query that may attend to no key gives zeros, and the logarithm of its sum is -inf.
"""

from __future__ import annotations

from typing import Any

from ... import _core, _ops
from ..._errors import UnsupportedError
from ..._tensor import Tensor
from .derivatives import gradients
from .reductions import fold
from .registry import row
from .types import as_type, opmath


def _attended(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> tuple[Tensor, Tensor]:
    """What attention gives, and its scores [.., queries, keys], -inf where a query may not attend."""
    rank = q.ndim
    if rank > 4:
        raise UnsupportedError("attention of more than four axes")
    if mask is not None and mask.dtype.kind != "b":
        mask = as_type(mask, q.dtype)
    if mask is not None and mask.ndim < 2:
        mask = _ops.broadcast_to(mask, (q.shape[-2], k.shape[-2]))
    q, k, v = (_ops.reshape(t, (1,) * (4 - rank) + tuple(t.shape)) if rank < 4 else t for t in (q, k, v))
    made, _, _, scores = _ops.make_all(_core.attention, q, k, v, mask, causal, scale, 0.0)
    return _ops.squeeze(made, list(range(4 - rank))), _ops.squeeze(scores, list(range(4 - rank)))


@row("aten.scaled_dot_product_attention")
def _sdpa(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False, *,
          scale: float | None = None, enable_gqa: bool = False) -> Tensor:  # fmt: skip
    if dropout_p:
        raise UnsupportedError("attention with dropout")
    return _attended(q, k, v, attn_mask, is_causal, scale)[0]


@row("aten._scaled_dot_product_flash_attention_for_cpu")
def _sdpa_cpu(q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *, attn_mask: Tensor | None = None,
              scale: float | None = None) -> tuple[Tensor, Tensor]:  # fmt: skip
    if dropout_p:
        raise UnsupportedError("attention with dropout")
    wide = opmath(q.dtype)
    made, scores = _attended(as_type(q, wide), as_type(k, wide), as_type(v, wide), attn_mask, is_causal, scale)
    return as_type(made, q.dtype), fold("logsumexp", scores, [scores.ndim - 1], False)


@row("aten._scaled_dot_product_flash_attention_for_cpu_backward")
def _sdpa_cpu_backward(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, logsumexp: Tensor, dropout_p: float, is_causal: bool, *,
                       attn_mask: Tensor | None = None, scale: float | None = None) -> tuple[Any, ...]:  # fmt: skip
    inner = [as_type(t, opmath(q.dtype)) for t in (q, k, v)]
    made = gradients(lambda q, k, v: _attended(q, k, v, attn_mask, is_causal, scale)[0], inner, as_type(grad, inner[0].dtype))
    return tuple(as_type(g, q.dtype) for g in made)
