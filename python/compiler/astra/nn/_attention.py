"""Attention."""

from __future__ import annotations

from typing import Any

from .. import _core, _dims, _dtypes, _ops
from .._errors import ArgumentError
from .._graph import current
from .._tensor import Tensor, asarray
from ._layers import Linear
from ._module import Module


def _attended(q: Tensor, k: Tensor, v: Tensor, mask: Any, causal: bool, scale: float | None, softcap: float, past: Any) -> tuple[Tensor, ...]:
    """What the layer gives; keys and values with the past ones before them."""
    if mask is not None:
        mask = asarray(mask)
        if mask.ndim < 4:
            mask = _ops.reshape(mask, (*([1] * (4 - mask.ndim)), *mask.shape))
    return _ops.make_all(_core.attention, q, k, v, mask, causal, scale, softcap, *past)[:3]


def attention(query: Any, key: Any, value: Any, *, mask: Any = None, causal: bool = False, scale: float | None = None,
              softcap: float = 0.0) -> Tensor:  # fmt: skip
    """softmax(query key^T scale + mask) value of [batch, heads, sequence, size]; key and value may have fewer heads, of which the number
    of queries' is a multiple. mask: bool (may attend) or numbers that are added, [batch, heads, query, key] or what broadcasts to it.
    A query that may attend to no key gives zeros."""
    q, k, v = _ops.operands(query, key, value)
    return _attended(q, k, v, mask, causal, scale, float(softcap), (None, None))[0]


def rotary_tables(positions: int, size: int, base: float = 10000.0, dtype: Any = "float32") -> tuple[Tensor, Tensor]:
    """(cosines, sines) [positions, size / 2] of rotary embeddings (Su et al., arXiv 2104.09864): of position p and pair i the angle
    p * base^(-2 i / size)."""
    count = _dims.size_node(current().core, positions)
    cosines, sines = _ops.make_all(_core.rotary_tables, count, size, float(base), _dtypes.dtype(dtype).code)
    return cosines, sines


def rotary(x: Any, cosines: Any, sines: Any, positions: Any, *, interleaved: bool = False) -> Tensor:
    """x [batch, heads, sequence, size], its pairs rotated by the angles of tables at positions [batch, sequence]. Pairs are (i, i + size
    / 2), or neighbours where interleaved."""
    return _ops.make(_core.rotary, asarray(x), asarray(cosines), asarray(sines), asarray(positions), interleaved, 0)


def alibi(heads: int, queries: Any, keys: Any) -> Tensor:
    """What is added to scores [1, heads, queries, keys] by ALiBi (Press et al., arXiv 2108.12409): -slope * distance, slopes 2^(-8 h / heads)
    of heads h = 1 ...; `heads` is a power of two."""
    core = current().core
    return _ops.make(_core.alibi, heads, _dims.size_node(core, queries), _dims.size_node(core, keys))


class MultiHeadAttention(Module):
    """Attention with projections of queries, keys and values [N, T, embed_dim].

    kv_heads: fewer heads of keys and values (grouped). rotary_base: rotary embeddings of queries and keys. causal: no key behind a
    query's own. A cache (keys, values), each [N, kv_heads, past, size], is put before the new ones: `y, cache = layer(x, cache=cache)`."""

    def __init__(self, embed_dim: int, num_heads: int, kv_heads: int | None = None, bias: bool = True, causal: bool = False,
                 rotary_base: float | None = None, dtype: Any = "float32") -> None:  # fmt: skip
        if embed_dim % num_heads:
            raise ArgumentError(f"{num_heads} heads do not divide {embed_dim}")
        self.embed_dim, self.num_heads, self.kv_heads = embed_dim, num_heads, kv_heads or num_heads
        if num_heads % self.kv_heads:
            raise ArgumentError(f"{num_heads} heads are no multiple of {self.kv_heads} heads of keys")
        self.head_dim, self.causal, self.rotary_base = embed_dim // num_heads, causal, rotary_base
        inner = self.kv_heads * self.head_dim
        self.q_proj = Linear(embed_dim, embed_dim, bias, dtype)
        self.k_proj, self.v_proj = Linear(embed_dim, inner, bias, dtype), Linear(embed_dim, inner, bias, dtype)
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype)

    def _split(self, x: Tensor, heads: int) -> Tensor:
        return _ops.swapaxes(_ops.reshape(x, (*x.shape[:2], heads, self.head_dim)), 1, 2)

    def __call__(self, x: Any, memory: Any = None, *, mask: Any = None, cache: Any = None, use_cache: bool = False) -> Any:
        x = asarray(x)
        source = x if memory is None else asarray(memory)
        q = self._split(self.q_proj(x), self.num_heads)
        k, v = self._split(self.k_proj(source), self.kv_heads), self._split(self.v_proj(source), self.kv_heads)
        past = cache[0].shape[2] if cache is not None else 0
        if self.rotary_base is not None:
            steps = x.shape[1]
            cosines, sines = rotary_tables(past + steps, self.head_dim, self.rotary_base, x.dtype)
            positions = _ops.broadcast_to(_ops.expand_dims(_ops.iota(steps) + past, 0), (x.shape[0], steps))
            q, k = rotary(q, cosines, sines, positions), rotary(k, cosines, sines, positions)
        y, k, v = _attended(q, k, v, mask, self.causal, None, 0.0, cache or (None, None))
        y = _ops.swapaxes(y, 1, 2)
        y = self.out_proj(_ops.reshape(y, (*y.shape[:2], self.embed_dim)))
        return (y, (k, v)) if use_cache or cache is not None else y
