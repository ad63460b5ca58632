"""The functions that are compared with JAX: name, function, arguments, tolerance.

What a case does not say: values are uniform in -2..2, drawn by NumPy from the name; the tolerance is 1e-5, relative to the
greatest magnitude of a result where that is above 1. No number is subnormal: XLA takes those for zeros on a CPU.
"""
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

CASES = {}
SHAPES = {}


def draw(name, shape, dtype="float32", low=-2.0, high=2.0):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    x = rng.uniform(low, high, shape)
    return x.astype(dtype) if np.dtype(dtype).kind != "b" else x > 0


def case(name, f, *args, tolerance=1e-5):
    """An argument is a shape, (shape, dtype), (shape, dtype, low, high), or an array."""
    values = []
    for i, a in enumerate(args):
        if isinstance(a, np.ndarray):
            values.append(a)
        elif a and isinstance(a[0], tuple):
            values.append(draw(f"{name}.{i}", *a))
        else:
            values.append(draw(f"{name}.{i}", a))
    assert name not in CASES, name
    CASES[name] = (f, values, tolerance)


M = (5, 7)
EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 3e38, 1e-30, 7.25], np.float32)
WORDS = np.array([0, 1, -1, 2, 7, -8, 100, -100, 2**31 - 1, -2**31, 31, 32, 33, -33], np.int32)

# ---- elementwise
for name in ("abs ceil cos exp expm1 floor negative sign sin square tan tanh rint trunc isfinite isnan isinf degrees radians sinc "
             "sinh cosh arcsinh arctan cbrt nan_to_num reciprocal logaddexp.reduce exp2").split():
    if "." not in name:
        case(f"jnp.{name}", getattr(jnp, name), M)
for name in "log log1p log2 log10 sqrt".split():
    case(f"jnp.{name}", getattr(jnp, name), (M, "float32", 0.1, 9))
for name in "arcsin arccos arctanh".split():
    case(f"jnp.{name}", getattr(jnp, name), (M, "float32", -0.9, 0.9))
case("jnp.arccosh", jnp.arccosh, (M, "float32", 1.1, 5))
case("lax.rsqrt", lax.rsqrt, (M, "float32", 0.1, 9))
for name in "add subtract multiply divide maximum minimum arctan2 hypot logaddexp copysign heaviside nextafter fmod remainder floor_divide".split():
    case(f"jnp.{name}", getattr(jnp, name), M, M)
case("jnp.power", jnp.power, (M, "float32", 0.1, 3), M)
case("jnp.float_power", lambda x: x**3, M)
case("edges.arithmetic", lambda x: (x + 1, x * 2, -x, jnp.abs(x), x / 3, jnp.maximum(x, 0), jnp.minimum(x, 1), jnp.sign(x)), EDGES)
case("edges.rounding", lambda x: (jnp.round(x), lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), jnp.floor(x), jnp.ceil(x), jnp.trunc(x)), EDGES)
case("edges.predicates", lambda x: (jnp.isnan(x), jnp.isinf(x), jnp.isfinite(x), x < 1, x == 0, x != x), EDGES)
case("edges.convert", lambda x: (x.astype(jnp.int32), x.astype(jnp.int8), x.astype(jnp.bfloat16).astype(jnp.float32), x.astype(jnp.bool_)),
     np.array([0.0, -0.0, 1.5, -1.5, 0.99, 100.7, -100.7, 2.5], np.float32))
case("edges.functions", lambda x: (jnp.exp(x), jnp.tanh(x), jnp.log(x), jnp.sqrt(x), jnp.arctan2(x, x[::-1]), nn.sigmoid(x)), EDGES)
case("edges.clamp", lambda x: (jnp.clip(x, -1, 2), lax.clamp(np.float32(-1), x, np.float32(0.5))), EDGES)
case("edges.order", lambda x: (jnp.sort(x), jnp.argsort(x), jnp.argmax(x), jnp.argmin(x), jnp.nanmax(x)), EDGES)
case("int.arithmetic", lambda x, y: (x + y, x - y, x * y, lax.div(x, y), lax.rem(x, y), x & y, x | y, x ^ y, ~x), WORDS, WORDS[::-1].copy())
case("int.floor", lambda x, y: (x // y, x % y), WORDS[1:], np.roll(WORDS[1:], 3))
case("int.shift", lambda x, y: (lax.shift_left(x, y), lax.shift_right_arithmetic(x, y), lax.shift_right_logical(x, y)), WORDS, np.abs(WORDS[::-1]) % 40)
case("int.bits", lambda x: (lax.clz(x), lax.population_count(x), jnp.abs(x), jnp.sign(x)), WORDS)
case("int.unsigned", lambda x, y: (x // y, x % y, x >> 3, x << 2, x > y, jnp.maximum(x, y), x.astype(jnp.float32)), WORDS.view(np.uint32)[1:], np.roll(WORDS.view(np.uint32)[1:], 2))
case("int.power", lambda x: (x**3, lax.integer_pow(x, 5)), ((9,), "int32", -9, 9))
case("int.convert", lambda x: (x.astype(jnp.int8), x.astype(jnp.uint8), x.astype(jnp.int16), x.astype(jnp.float16), x.astype(jnp.bool_)), WORDS)
case("bool.logic", lambda x, y: (x & y, x | y, x ^ y, ~x, x == y, x.sum(), jnp.any(x), jnp.all(y), jnp.cumsum(x)), (M, "bool"), (M, "bool"))
case("lax.reduce_precision", lambda x: (lax.reduce_precision(x, 5, 10), lax.reduce_precision(x, 8, 7), lax.reduce_precision(x, 4, 3)), EDGES)
case("lax.bitcast", lambda x: (lax.bitcast_convert_type(x, jnp.int32), lax.bitcast_convert_type(x, jnp.uint8), lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.uint16), jnp.float32)), M)
case("lax.select_n", lambda p, x, y: (jnp.where(p, x, y), lax.select(p, x, y), jnp.select([x > 1, y > 1], [x, y], 0.0)), (M, "bool"), M, M)
case("jnp.float16", lambda x: (x * x + 1, jnp.exp(x), x.sum(0), jnp.tanh(x)), (M, "float16"), tolerance=4e-3)
case("jnp.bfloat16", lambda x: (x.astype(jnp.bfloat16) * 3 + x.astype(jnp.bfloat16)).astype(jnp.float32), M, tolerance=4e-2)
case("jnp.float8", lambda x: (x.astype(jnp.float8_e4m3fn).astype(jnp.float32), x.astype(jnp.float8_e5m2).astype(jnp.float32)), M)

# ---- special functions
for name in "erf erfc erfinv gammaln digamma i0e i1e i0 i1 expit log_ndtr ndtr xlogy entr zeta".split():
    f = getattr(jax.scipy.special, name)
    if name in ("xlogy",):
        case(f"special.{name}", f, (M, "float32", 0.1, 3), (M, "float32", 0.1, 3))
    elif name == "zeta":
        case(f"special.{name}", f, (M, "float32", 1.5, 4), (M, "float32", 0.5, 3))
    else:
        case(f"special.{name}", f, (M, "float32", -0.9, 0.9) if name == "erfinv" else (M, "float32", 0.2, 3))
case("special.gammainc", jax.scipy.special.gammainc, (M, "float32", 0.5, 3), (M, "float32", 0.5, 3))
case("special.betainc", jax.scipy.special.betainc, (M, "float32", 0.5, 3), (M, "float32", 0.5, 3), (M, "float32", 0.1, 0.9))
case("special.polygamma", lambda x: jax.scipy.special.polygamma(1, x), (M, "float32", 0.5, 3), tolerance=2e-5)
case("special.logsumexp", lambda x: (jax.scipy.special.logsumexp(x), jax.scipy.special.logsumexp(x, axis=1)), M)

# ---- activations
for name in ("relu relu6 elu selu celu gelu silu softplus soft_sign sigmoid log_sigmoid hard_sigmoid hard_swish hard_tanh leaky_relu "
             "mish softmax log_softmax glu squareplus standardize sparse_plus").split():
    case(f"nn.{name}", getattr(nn, name), (5, 8))
case("nn.gelu_exact", lambda x: nn.gelu(x, approximate=False), M)
case("nn.one_hot", lambda x: nn.one_hot(x, 6), ((9,), "int32", -2, 7))
case("nn.logsumexp", lambda x: nn.logsumexp(x, axis=0), M)
case("nn.attention", nn.dot_product_attention, (2, 6, 3, 8), (2, 6, 3, 8), (2, 6, 3, 8))
case("nn.attention_causal", lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True), (2, 6, 4, 8), (2, 6, 2, 8), (2, 6, 2, 8))

# ---- shapes
case("jnp.reshape", lambda x: (x.reshape(7, 5), x.ravel(), x[None], jnp.squeeze(x[:, :1])), M)
case("jnp.transpose", lambda x: (x.T, jnp.moveaxis(x[None], 0, 2), jnp.swapaxes(x, 0, 1)), M)
case("jnp.concatenate", lambda x, y: (jnp.concatenate([x, y]), jnp.stack([x, y], 1), jnp.hstack([x, y]), jnp.vstack([x, y])), M, M)
case("jnp.pad", lambda x: (jnp.pad(x, ((1, 2), (0, 3))), jnp.pad(x, 2, mode="reflect"), jnp.pad(x, 1, mode="edge"), jnp.pad(x, 2, mode="wrap"), jnp.pad(x, 1, constant_values=3)), M)
case("lax.pad", lambda x: (lax.pad(x, 0.5, ((1, 2, 1), (-1, 0, 2))), lax.pad(x, x[0, 0], ((0, 1, 0), (2, -2, 1)))), M)
case("jnp.flip", lambda x: (jnp.flip(x), jnp.fliplr(x), jnp.rot90(x), jnp.roll(x, 2, 1)), M)
case("jnp.tile", lambda x: (jnp.tile(x, (2, 3)), jnp.repeat(x, 3, axis=1), jnp.broadcast_to(x, (2, 5, 7))), M)
case("jnp.slice", lambda x: (x[1:4, ::2], x[::-1, 3], x[-1], x[..., None], lax.slice(x, (1, 2), (5, 7), (2, 3))), M)
case("jnp.split", lambda x: tuple(jnp.split(x, [2, 5], axis=1)), M)
case("jnp.tril", lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.diag(x[:, :5]), jnp.diag(x[0]), jnp.trace(x), jnp.diagonal(x, 1)), M)
case("jnp.arange", lambda x: (x + jnp.arange(7), jnp.linspace(0, 1, 7) * x, jnp.eye(5, 7) + x, jnp.full((5, 7), 2.0) * x, jnp.tri(5, 7) * x), M)
case("jnp.meshgrid", lambda x: tuple(jnp.meshgrid(x[0], x[1])), M)
case("jnp.where", lambda x: jnp.where(x > 0, x, 0.1 * x), M)

# ---- indexing
case("jnp.take", lambda x, i: (jnp.take(x, i, axis=0), jnp.take(x, i, axis=1, mode="clip"), jnp.take(x, i, axis=0, mode="wrap")), M, np.array([0, 4, -1, 2, 9, -7], np.int32))
case("jnp.take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1), M, ((5, 3), "int32", 0, 7))
case("jnp.index", lambda x, i, j: (x[i], x[i, j], x[:, j], x[i][:, 1:3], x[i, None, j]), M, np.array([0, 4, 2], np.int32), np.array([6, 1, 3], np.int32))
case("jnp.index3", lambda x, i: (x[:, i], x[i, :, i], x[..., i]), (4, 4, 4), np.array([[0, 3], [1, 2]], np.int32))
case("jnp.at_set", lambda x, i, y: (x.at[i].set(y), x.at[1, 2].set(9.0), x.at[:, i].set(y.T), x.at[i].add(y), x.at[i].mul(y), x.at[i].min(y), x.at[i].max(y)),
     (7, 7), np.array([0, 4, 2], np.int32), (3, 7))
case("jnp.at_add_duplicates", lambda x, i, y: (x.at[i].add(y), x.at[i].subtract(y), x.at[i].add(y, mode="drop")), (5, 3), np.array([0, 4, 0, 9, -1], np.int32), (5, 3))
case("jnp.at_bool", lambda x, i: (x.at[i].set(True), x.at[i].max(True)), ((6,), "bool"), np.array([0, 4], np.int32))
case("lax.dynamic_slice", lambda x, i: (lax.dynamic_slice(x, (i, i), (2, 3)), lax.dynamic_update_slice(x, x[:2, :2] * 2, (i, 3)), lax.dynamic_index_in_dim(x, i)), M, np.array(4, np.int32))
case("lax.gather_batch", lambda x, i: jax.vmap(lambda a, k: a[k])(x, i), (4, 6, 3), ((4, 2), "int32", 0, 6))
case("lax.scatter_batch", lambda x, i, y: jax.vmap(lambda a, k, u: a.at[k].add(u))(x, i, y), (4, 6, 3), ((4, 2), "int32", 0, 6), (4, 2, 3))
case("lax.gather_windows", lambda x, i: jax.vmap(lambda k: lax.dynamic_slice(x, (k, k + 1), (2, 3)))(i), M, np.array([0, 2, 5, -1], np.int32))
case("lax.scatter_windows", lambda x, i, y: lax.scatter_add(x, i[:, None], y, lax.ScatterDimensionNumbers(update_window_dims=(1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,))),
     M, np.array([0, 2, 3, 9], np.int32), (4, 2, 7))
case("jnp.searchsorted", lambda x, v: jnp.searchsorted(jnp.sort(x), v), (9,), (5,))
case("jnp.bincount", lambda x: jnp.bincount(x, length=7), ((20,), "int32", 0, 7))
case("jax.segment_sum", lambda x, i: (jax.ops.segment_sum(x, i, 4), jax.ops.segment_max(x, i, 4), jax.ops.segment_prod(x, i, 4)), (9, 3), ((9,), "int32", 0, 4))

# ---- order
case("jnp.sort", lambda x: (jnp.sort(x), jnp.sort(x, axis=0), jnp.sort(x, descending=True), jnp.argsort(x), jnp.argsort(x, axis=0, descending=True)), M)
case("jnp.sort_ints", lambda x: (jnp.sort(x), jnp.argsort(x), jnp.unique(x, size=5)), ((11,), "int32", -3, 4))
case("jnp.lexsort", lambda x, y: jnp.lexsort((x, y)), ((11,), "int32", 0, 3), ((11,), "int32", 0, 3))
case("lax.sort_several", lambda x, y, z: lax.sort((x, y, z), num_keys=2), ((11,), "int32", 0, 3), (11,), (11,))
case("lax.top_k", lambda x: lax.top_k(x, 3), M)
case("jnp.median", lambda x: (jnp.median(x), jnp.quantile(x, 0.3, axis=1), jnp.percentile(x, 80)), M)
case("jnp.argmax", lambda x: (jnp.argmax(x), jnp.argmin(x, axis=1), jnp.nanargmax(x), jnp.argmax(x, axis=0, keepdims=True)), M)

# ---- reductions
for name in "sum prod mean max min var std ptp nansum nanmean any all count_nonzero".split():
    f = getattr(jnp, name)
    case(f"jnp.{name}", lambda x, f=f: (f(x), f(x, axis=0), f(x, axis=1)), M)
case("jnp.cumsum", lambda x: (jnp.cumsum(x), jnp.cumsum(x, axis=0), jnp.cumprod(x, axis=1), lax.cummax(x, 1), lax.cummin(x, 0, reverse=True), lax.cumsum(x, 0, reverse=True)), M)
case("lax.cumlogsumexp", lambda x: lax.cumlogsumexp(x, 1), M)
case("lax.associative_scan", lambda x: lax.associative_scan(lambda a, b: a * b + b, x), (9, 3))
case("lax.reduce", lambda x: (lax.reduce(x, np.float32(0), lambda a, b: a + b * b, (1,)), lax.reduce(x, np.float32(2), lax.add, (0,)), lax.reduce((x, x * 2), (np.float32(0), np.float32(1)), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,))), M)
case("lax.reduce_ints", lambda x: (jnp.bitwise_and.reduce(x), jnp.bitwise_or.reduce(x), jnp.bitwise_xor.reduce(x)), ((9,), "int32", 0, 99))
case("jnp.average", lambda x, w: jnp.average(x, axis=1, weights=w), M, (M, "float32", 0.1, 1))
case("jnp.histogram", lambda x: jnp.histogram(x, bins=4, range=(-2, 2))[0], M)
case("jnp.diff", lambda x: (jnp.diff(x), jnp.gradient(x[0]), jnp.convolve(x[0], x[1, :3]), jnp.correlate(x[0], x[1, :3]), jnp.interp(x[0], jnp.arange(5.0), x[1, :5]), jnp.polyval(x[0], x[1])), M)

# ---- windows
case("lax.reduce_window_max", lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")), (2, 6, 7, 3))
case("lax.reduce_window_sum", lambda x: (lax.reduce_window(x, 0.0, lax.add, (3, 2), (2, 1), ((1, 1), (0, 2))), lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), ((0, 0), (1, 0)), base_dilation=(2, 1), window_dilation=(1, 2))), M)
case("lax.reduce_window_any", lambda x: lax.reduce_window(x, np.float32(0), lambda a, b: a + b * b, (2, 2), (1, 1), "VALID"), M)
case("grad.max_pool", jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME") ** 2).sum()), (2, 5, 7, 3))
case("grad.avg_pool", jax.grad(lambda x: (lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") ** 2).sum()), (2, 5, 7, 3))

# ---- products
case("jnp.matmul", lambda x, y: (x @ y, jnp.dot(x, y), jnp.vdot(x, x), jnp.inner(x, y.T), jnp.tensordot(x, y, 1)), (5, 7), (7, 4))
case("jnp.matmul_batch", lambda x, y: (x @ y, jnp.matvec(x, y[..., 0])), (3, 5, 7), (3, 7, 4))
case("jnp.einsum", lambda x, y: (jnp.einsum("bij,bjk->bik", x, y), jnp.einsum("bij,bjk->kb", x, y), jnp.einsum("bij->ji", x), jnp.einsum("bii->bi", x[:, :, :5])), (3, 5, 7), (3, 7, 4))
case("jnp.outer", lambda x, y: (jnp.outer(x, y), jnp.kron(x, y), jnp.cross(x[:3], y[:3])), (4,), (5,))
case("lax.dot_ints", lambda x, y: (lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)), ((5, 7), "int8", -99, 99), ((7, 4), "int8", -99, 99))
case("lax.dot_bf16", lambda x, y: (x.astype(jnp.bfloat16) @ y.astype(jnp.bfloat16)).astype(jnp.float32), (5, 7), (7, 4), tolerance=2e-2)
DN = ("NHWC", "HWIO", "NHWC")
case("lax.conv", lambda x, w: (lax.conv(x, w, (1, 1), "SAME"), lax.conv(x, w, (2, 1), "VALID")), (2, 3, 8, 7), (4, 3, 3, 3))
case("lax.conv_nhwc", lambda x, w: lax.conv_general_dilated(x, w, (1, 2), "SAME", dimension_numbers=DN), (2, 8, 7, 3), (3, 3, 3, 4))
case("lax.conv_dilated", lambda x, w: (lax.conv_general_dilated(x, w, (2, 1), ((2, 1), (0, 3)), (2, 3), (1, 2), DN), lax.conv_general_dilated(x, w, (1, 1), ((-1, 1), (2, -2)), (1, 2), (2, 1), DN)), (2, 8, 7, 3), (3, 2, 3, 4))
case("lax.conv_groups", lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=DN, feature_group_count=3), (2, 6, 5, 6), (3, 3, 2, 9))
case("lax.conv_depthwise", lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=DN, feature_group_count=6), (2, 6, 5, 6), (3, 3, 1, 6))
case("lax.conv_batch_groups", lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=DN, batch_group_count=2), (4, 6, 5, 3), (3, 3, 3, 8))
case("lax.conv_transpose", lambda x, w: (lax.conv_transpose(x, w, (2, 2), "SAME"), lax.conv_transpose(x, w, (2, 3), "VALID", transpose_kernel=True)), (2, 5, 4, 3), (3, 3, 3, 3))
case("lax.conv_1d", lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")), (2, 9, 3), (4, 3, 5))
case("lax.conv_3d", lambda x, w: lax.conv_general_dilated(x, w, (1, 1, 2), "SAME"), (1, 2, 4, 5, 4), (3, 2, 2, 3, 3))
case("grad.conv", jax.grad(lambda x, w: (lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=DN) ** 2).sum(), (0, 1)), (2, 8, 7, 3), (3, 3, 3, 4), tolerance=2e-5)
case("grad.conv_groups", jax.grad(lambda x, w: (lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=DN, feature_group_count=3) ** 2).sum(), (0, 1)), (2, 6, 5, 6), (3, 3, 2, 9), tolerance=2e-5)

# ---- transforms and complex numbers
case("jnp.fft", lambda x: (jnp.abs(jnp.fft.fft(x)), jnp.fft.ifft(x).real, jnp.fft.fft2(x).imag), (6, 8), tolerance=2e-5)
case("jnp.rfft", lambda x: (jnp.fft.rfft(x), jnp.fft.rfft2(x)), (6, 9), tolerance=2e-5)
case("jnp.irfft", lambda x: (jnp.fft.irfft(x + 0.5j * x), jnp.fft.irfft2(x + 1j * x, s=(6, 7))), (6, 8), tolerance=2e-5)
case("complex.arithmetic", lambda x, y: (lambda z, w: (z + w, z * w, z / w, jnp.conj(z), jnp.abs(z), jnp.angle(z), z.real, z.imag, z == w))(x + 1j * y, y - 0.5j * x), M, M)
case("complex.functions", lambda x, y: (lambda z: (jnp.exp(z), jnp.log(z), jnp.sqrt(z), jnp.sin(z), jnp.cos(z), jnp.tanh(z), z**2, z**(0.5 + 1j), jnp.sign(z)))(x + 1j * y), M, M, tolerance=2e-5)
case("complex.matmul", lambda x, y: ((x + 1j * y) @ (y.T - 1j * x.T), (x + 1j * y).sum(0)), M, M)

# ---- matrices: LAPACK's functions, which JAX calls on a CPU
def definite(n, name="definite", batch=()):
    x = draw(name, (*batch, n, n))
    return x @ np.swapaxes(x, -1, -2) + 2 * np.eye(n, dtype=np.float32)


def signed(q):
    """Vectors in columns, of a sign that their own numbers give."""
    return q * jnp.sign(jnp.take_along_axis(q, jnp.argmax(jnp.abs(q), -2, keepdims=True), -2))


case("linalg.cholesky", lambda x: (jnp.linalg.cholesky(x), jnp.linalg.cholesky(x, upper=True)), definite(5), tolerance=2e-5)
case("linalg.cholesky_batch", jnp.linalg.cholesky, definite(4, batch=(3,)), tolerance=2e-5)
case("linalg.cholesky_not_definite", jnp.linalg.cholesky, -np.eye(3, dtype=np.float32))
case("linalg.solve_triangular", lambda a, y: tuple(jax.scipy.linalg.solve_triangular(a, y, trans=t, lower=low, unit_diagonal=unit)
     for t in (0, 1) for low in (False, True) for unit in (False, True)), definite(4), (4, 3), tolerance=2e-5)
case("linalg.triangular_solve_right", lambda a, y: lax.linalg.triangular_solve(a, y, lower=True), definite(4), (3, 4), tolerance=2e-5)
case("tpu.cholesky", lambda x: jnp.linalg.cholesky(x), definite(5, batch=(2,)), tolerance=2e-5)
case("tpu.triangular_solve", lambda a, y: tuple(jax.scipy.linalg.solve_triangular(a, y, trans=t, lower=low) for t in (0, 1) for low in (False, True)),
     definite(4), (4, 3), tolerance=2e-5)  # fmt: skip
case("linalg.lu", lambda x: lax.linalg.lu(x), (5, 5), tolerance=2e-5)
case("linalg.lu_wide", lambda x: lax.linalg.lu(x), (3, 5), tolerance=2e-5)
case("linalg.solve", jnp.linalg.solve, definite(6), (6, 2), tolerance=2e-5)
case("linalg.inv", jnp.linalg.inv, definite(4), tolerance=2e-5)
case("linalg.det", lambda x: (jnp.linalg.det(x), *jnp.linalg.slogdet(x)), (5, 5), tolerance=2e-5)
case("linalg.qr", lambda x: tuple(jnp.linalg.qr(x)), (6, 4), tolerance=2e-5)
case("linalg.qr_complete", lambda x: tuple(jnp.linalg.qr(x, mode="complete")), (5, 3), tolerance=2e-5)
case("linalg.qr_panels", lambda x: tuple(jnp.linalg.qr(x)), (20, 18), tolerance=5e-5)
case("linalg.eigh", lambda x: (jnp.linalg.eigh(x)[0], signed(jnp.linalg.eigh(x)[1]), jnp.linalg.eigvalsh(x)), definite(5), tolerance=5e-5)
case("linalg.svd", lambda x: (lambda u, s, vh: (s, (u * s) @ vh, jnp.abs(u)))(*jnp.linalg.svd(x, full_matrices=False)), (5, 3), tolerance=5e-5)
case("linalg.svd_full", lambda x: (lambda u, s, vh: (s, u.T @ u, vh @ vh.T))(*jnp.linalg.svd(x)), (5, 3), tolerance=5e-5)
case("linalg.svdvals", lambda x: (jnp.linalg.svdvals(x), jnp.linalg.matrix_rank(x), jnp.linalg.norm(x, 2)), (4, 6), tolerance=5e-5)
case("linalg.pinv", jnp.linalg.pinv, (5, 3), tolerance=5e-5)
case("linalg.lstsq", lambda a, y: jnp.linalg.lstsq(a, y)[0], (6, 3), (6, 2), tolerance=5e-5)
case("linalg.expm", jax.scipy.linalg.expm, (3, 3), tolerance=5e-5)
case("linalg.matrix_power", lambda x: (jnp.linalg.matrix_power(x, 3), jnp.trace(x), jnp.kron(x, x), jnp.linalg.norm(x), jnp.cross(x[:3, :3], x[1:4, :3])), (4, 4), tolerance=5e-5)
case("grad.cholesky", jax.grad(lambda x: jnp.linalg.cholesky(x).sum()), definite(4), tolerance=5e-5)
case("grad.solve", jax.grad(lambda a, y: jnp.linalg.solve(a, y).sum(), (0, 1)), definite(4), (4, 2), tolerance=5e-5)

# ---- control
case("lax.cond", lambda x: (lax.cond(x.sum() > 0, lambda a: a + 1, lambda a: a * 2, x), lax.cond(x.sum() > 99, lambda a: a + 1, lambda a: a * 2, x)), M)
case("lax.switch", lambda x, i: (lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh, lambda a: a], x), lax.switch(i + 7, [jnp.sin, jnp.cos, jnp.tanh], x)), M, np.array(2, np.int32))
case("lax.while_loop", lambda x: lax.while_loop(lambda s: s[1].sum() < 99, lambda s: (s[0] + 1, s[1] * 1.5 + x), (0, jnp.abs(x))), M)
case("lax.fori_loop", lambda x: lax.fori_loop(0, 5, lambda i, a: a * 0.5 + i + x.sum(), x), M)
case("lax.scan", lambda x: lax.scan(lambda c, a: (c * 0.5 + a, jnp.sin(c)), jnp.zeros(7), x), M)
case("lax.scan_nested", lambda x: lax.scan(lambda c, a: (c + lax.fori_loop(0, 3, lambda i, v: v * 0.5 + a, c), c.sum()), jnp.zeros(7), x), M)
case("lax.map", lambda x: (lax.map(lambda a: a * a.sum(), x), jnp.vectorize(lambda a: a + 1)(x)), M)
case("grad.scan", jax.grad(lambda x: lax.scan(lambda c, a: (jnp.tanh(c + a), c), jnp.zeros(7), x)[0].sum()), M)
case("jax.checkpoint", jax.grad(lambda x: jax.checkpoint(lambda a: jnp.sin(jnp.sin(a)))(x).sum()), M)
case("jax.hessian", jax.hessian(lambda x: (jnp.tanh(x) ** 2).sum() * x[0]), (4,))
case("jax.jacfwd", jax.jacfwd(lambda x: jnp.exp(x) * x.sum()), (4,))

# ---- random numbers
case("random.uniform", lambda: (jax.random.uniform(jax.random.key(3), (4, 5)), jax.random.bits(jax.random.key(1), (3,))))
case("random.normal", lambda: (jax.random.normal(jax.random.key(3), (4, 5)), jax.random.randint(jax.random.key(2), (6,), 0, 10)))
case("random.choice", lambda x: (jax.random.permutation(jax.random.key(0), x), jax.random.categorical(jax.random.key(5), x), jax.random.bernoulli(jax.random.key(1), 0.3, (5,))), M)
case("random.split", lambda k: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(k), 3)), np.array([7, 9], np.uint32))
case("random.gamma", lambda: jax.random.exponential(jax.random.key(3), (4,)) + jax.random.laplace(jax.random.key(4), (4,)))
for t, n in (("uint32", (5, 6)), ("uint32", (3, 5)), ("uint64", (3, 4)), ("uint8", (7,)), ("uint32", ())):
    if t != "uint64":
        case(f"lax.rng_threefry.{t}.{'x'.join(map(str, n)) or 'scalar'}",
             lambda k, t=t, n=n: lax.rng_bit_generator(k, n, jnp.dtype(t), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY), np.array([7, 9, 11, 2**32 - 2], np.uint32))
    if t == "uint32":
        case(f"lax.rng_philox.{t}.{'x'.join(map(str, n)) or 'scalar'}",
             lambda k, t=t, n=n: lax.rng_bit_generator(k, n, jnp.dtype(t), algorithm=lax.RandomAlgorithm.RNG_PHILOX), np.array([7, 9, 2**32 - 2, 2**32 - 1], np.uint32))


# ---- whole networks, in plain JAX
def transformer_weights(name, width=16, heads=2, vocabulary=11, layers=2):
    def w(label, *shape):
        return draw(f"{name}.{label}", shape, "float32", -0.4, 0.4)

    weights = {"table": w("table", vocabulary, width), "places": w("places", 8, width)}
    for i in range(layers):
        weights[f"layer{i}"] = {"qkv": w(f"qkv{i}", width, 3 * width), "out": w(f"out{i}", width, width), "up": w(f"up{i}", width, 4 * width),
                                "down": w(f"down{i}", 4 * width, width), "scale": w(f"scale{i}", width) + 1}
    return weights


def transformer(weights, tokens, heads=2):
    def norm(x, scale):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale

    x = weights["table"][tokens] + weights["places"][: tokens.shape[1]]
    for i in range(len(weights) - 2):
        w = weights[f"layer{i}"]
        b, t, d = x.shape
        q, k, v = jnp.split((norm(x, w["scale"]) @ w["qkv"]).reshape(b, t, heads, -1), 3, axis=-1)
        x = x + nn.dot_product_attention(q, k, v, is_causal=True).reshape(b, t, d) @ w["out"]
        x = x + nn.gelu(norm(x, w["scale"]) @ w["up"]) @ w["down"]
    return x @ weights["table"].T


def transformer_loss(weights, tokens):
    logits = transformer(weights, tokens[:, :-1])
    return -jnp.take_along_axis(nn.log_softmax(logits), tokens[:, 1:, None], -1).mean()


def flat(name):
    """Weights are arguments, in the order of their tree."""
    leaves, tree = jax.tree.flatten(transformer_weights(name))
    return leaves, lambda f: lambda tokens, *w: f(jax.tree.unflatten(tree, w), tokens)


def training_step(weights, tokens):
    loss, grads = jax.value_and_grad(transformer_loss)(weights, tokens)
    return loss, jax.tree.map(lambda w, g: w - 0.1 * g, weights, grads)


TOKENS = np.random.default_rng(5).integers(0, 11, (2, 8)).astype(np.int32)
LEAVES, WITH = flat("transformer")
case("net.transformer", WITH(transformer), TOKENS, *LEAVES)
case("net.training_step", WITH(training_step), TOKENS, *LEAVES)


# ---- dynamic shapes: name, function, shapes as jax.export takes them, flags of astra-compile, arguments
POLYMORPHIC = {}


def polymorphic(name, f, shapes, flags, *args, tolerance=1e-5):
    POLYMORPHIC[name] = (f, shapes, flags, [a if isinstance(a, np.ndarray) else draw(f"{name}.{i}", a) for i, a in enumerate(args)], tolerance)


B = ["--dim", "b=1..16"]
BC = [*B, "--dim", "c=1..16"]
polymorphic("poly.mlp", lambda x, w: nn.softmax(nn.relu(x @ w)), ["b, 4", "4, 5"], B, (3, 4), (4, 5))
polymorphic("poly.concatenate", lambda x, y: (jnp.concatenate([x, y]), jnp.concatenate([x, y]).sum(0), x.mean()), ["b, 4", "b, 4"], B, (3, 4), (3, 4))
polymorphic("poly.reshape", lambda x: (x.reshape(-1), x.reshape(2, -1), x.T, jnp.tile(x, (2, 1)), jnp.broadcast_to(x, (3, *x.shape))), ["b, 4"], B, (3, 4))
polymorphic("poly.slice", lambda x: (x[:-1], x[1:, ::2], x[-1], x[::-1], jnp.flip(x, 1)), ["b, 4"], ["--dim", "b=2..16"], (3, 4))
polymorphic("poly.iota", lambda x: (x + jnp.arange(x.shape[0])[:, None], jnp.zeros(x.shape) + x.shape[0], jnp.eye(x.shape[0]) @ x), ["b, 4"], B, (3, 4))
polymorphic("poly.pad", lambda x: (jnp.pad(x, ((1, 2), (0, 1))), jnp.pad(x, ((0, x.shape[0]), (0, 0)))), ["b, 4"], B, (3, 4))
polymorphic("poly.expressions", lambda x, y: (x.sum() + y.sum(), x.shape[0] * y), ["b, c", "2*b, c+1"], BC, (3, 4), (6, 5))
polymorphic("poly.matmul", lambda x, y: (x @ y, jnp.einsum("bc,bd->cd", x, y.T), x.var(0)), ["b, c", "c, b"], BC, (3, 4), (4, 3))
polymorphic("poly.take", lambda x, i: (x[i], jnp.take_along_axis(x, i[:, None] % 4, 1), x.at[i].add(1.0)), ["b, 4", "b"], B, (3, 4), np.array([0, 2, 1], np.int32))
polymorphic("poly.sort", lambda x: (jnp.sort(x, 0), jnp.argmax(x, 0), jnp.cumsum(x, 0), lax.cummax(x, 0, reverse=True)), ["b, 4"], B, (3, 4))
polymorphic("poly.conv", lambda x, w: lax.conv_general_dilated(x, w, (1, 2), "SAME", dimension_numbers=DN), ["b, 8, 7, 3", "3, 3, 3, 4"], B, (2, 8, 7, 3), (3, 3, 3, 4))
polymorphic("poly.attention", lambda q: nn.dot_product_attention(q, q, q, is_causal=True), ["b, c, 2, 4"], BC, (2, 5, 2, 4))
polymorphic("poly.scan", lambda x: lax.fori_loop(0, 3, lambda i, a: a * 0.5 + x, x), ["b, 4"], B, (3, 4))
polymorphic("poly.transformer", WITH(transformer), ["b, 8"] + [None] * len(LEAVES), B, TOKENS, *LEAVES)

# ---- what is committed in sample/, as text and numbers, and runs every day
SAMPLE = """jnp.tanh jnp.nextafter edges.arithmetic edges.convert edges.order int.arithmetic int.shift int.bits int.unsigned bool.logic
lax.reduce_precision lax.bitcast jnp.float8 special.erfinv special.digamma nn.gelu_exact nn.attention jnp.pad lax.pad jnp.slice jnp.index
jnp.at_set jnp.at_add_duplicates lax.gather_windows lax.scatter_windows lax.scatter_batch jnp.lexsort lax.top_k jnp.argmax jnp.cumsum
lax.reduce lax.reduce_window_max lax.reduce_window_sum grad.max_pool jnp.einsum lax.dot_ints lax.conv_dilated lax.conv_batch_groups
lax.conv_transpose jnp.rfft complex.functions lax.switch lax.while_loop lax.scan random.normal lax.rng_threefry.uint32.3x5
lax.rng_philox.uint32.5x6 linalg.solve linalg.qr linalg.eigh linalg.svd tpu.cholesky tpu.triangular_solve net.training_step poly.expressions poly.transformer""".split()
