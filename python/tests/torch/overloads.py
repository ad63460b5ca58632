"""Arguments for every overload of the core ATen packets, values at the ends of each type included.

Takes:    a type of elements.
Gives:    `SAMPLES`, by the name of an overload: a function from Values of a type to lists of arguments; `kind_of`, why an overload has none.
Keeps:    numbers are drawn from a seed that the overload's name and the type give.
"""

import zlib

import torch

INF, NAN = float("inf"), float("nan")
INTEGERS = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


class Values:
    """Tensors of one type."""

    def __init__(self, name, dtype):
        self.dtype, self.generator = dtype, torch.Generator().manual_seed(zlib.crc32(f"{name} {dtype}".encode()))
        self.number = True if dtype is torch.bool else 2 if dtype in INTEGERS else 1.5

    def x(self, *shape, low=-2.0, high=2.0):
        """Numbers between two others; integers between twice as far ones."""
        if self.dtype is torch.bool:
            return torch.rand(shape, generator=self.generator) < 0.5
        if self.dtype.is_complex:
            return torch.complex(*(torch.rand(shape, generator=self.generator, dtype=torch.float64) * (high - low) + low for _ in range(2))).to(self.dtype)
        x = torch.rand(shape, generator=self.generator, dtype=torch.float64) * (high - low) + low
        if self.dtype in INTEGERS:
            x = (x * 2).round()
            return (x.abs() if self.dtype is torch.uint8 else x).to(self.dtype)
        return x.to(self.dtype)

    def edges(self, least=True):
        """The ends of the type's range, what no number is, halves that are rounded. least: with the least integer, which has no opposite."""
        if self.dtype is torch.bool:
            return torch.tensor([True, False])
        if self.dtype in INTEGERS:
            most = torch.iinfo(self.dtype)
            return torch.tensor([0, 1, 2, 3, 7, most.max, most.max - 1] + [-1, -2, -5, most.min + 1] * (most.min < 0) + [most.min] * least, dtype=self.dtype)
        if self.dtype.is_complex:
            parts = [0.0, -0.0, 1.0, -1.5, 0.25, 8.0]
            return torch.tensor([complex(a, b) for a in parts for b in parts], dtype=self.dtype)
        info = torch.finfo(self.dtype)
        return torch.tensor([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 7.25, -100.0, 1e-3, info.max, info.min, info.tiny, -info.tiny, INF, -INF, NAN], dtype=self.dtype)

    def i(self, n, *shape):
        """Indices below n."""
        return torch.randint(0, n, shape, generator=self.generator)

    def b(self, *shape):
        """Bools."""
        return torch.rand(shape, generator=self.generator) < 0.5

    def other(self, *shape):
        """Of another type, for conversions."""
        return torch.arange(int(torch.Size(shape).numel()), dtype=torch.int32).reshape(shape)


SAMPLES = {}


def sample(names, f):
    """Arguments of overloads: a list of tuples, whose last element may be a dictionary of named ones."""
    for name in names.split():
        packet, _, overload = name.partition(".")
        SAMPLES[f"aten.{packet}.{overload or 'default'}"] = f


# ---- element by element
sample("abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh elu erf exp expm1 floor gelu hardtanh isinf isnan leaky_relu log log10 log1p "
       "log2 logical_not neg reciprocal relu round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc alias clone",
       lambda v: [(v.edges(),), (v.x(2, 3),), (v.x(),), (v.x(0, 2),)])  # fmt: skip
sample("reciprocal", lambda v: [(v.edges()[v.edges() != 0] if v.dtype.is_complex else v.edges(),), (v.x(2, 3),)])
sample("elu", lambda v: [(v.edges(),), (v.x(2, 3), 0.5, 2.0, 1.5)])
sample("gelu", lambda v: [(v.edges(),), (v.edges(), {"approximate": "tanh"})])
sample("hardtanh leaky_relu", lambda v: [(v.edges(),), (v.x(2, 3), -0.5)])
sample("round.decimals", lambda v: [(v.x(2, 3), {"decimals": 1}), (v.x(3) * 100, {"decimals": -1}), (v.x(3), {"decimals": 0})])


def pairs(v):
    e = v.edges()
    return [(e[:, None], e[None, :]), (v.x(2, 3), v.x(3)), (v.x(2, 1), v.x()), (v.x(2, 3), v.other(3))]


def with_number(v):
    return [(v.edges(), n) for n in (v.number, 0, -3, 2.5)]


COMPARISONS = "eq ge gt le lt ne"
sample(" ".join(f"{n}.Tensor" for n in COMPARISONS.split()), pairs)
sample(" ".join(f"{n}.Scalar" for n in COMPARISONS.split()), with_number)
sample("logical_and logical_or logical_xor maximum minimum atan2 max.other min.other", pairs)
sample("add.Tensor sub.Tensor", lambda v: [*pairs(v), (v.x(2, 3), v.x(3), {"alpha": v.number})])
sample("add.Scalar sub.Scalar", lambda v: [*with_number(v), (v.x(2), v.number, v.number)])
sample("mul.Tensor", pairs)
sample("mul.Scalar", with_number)


def quotients(v):
    """Integers without a quotient that is none: PyTorch raises an error, or the processor does."""
    e = v.edges(least=False)
    d = e[e != 0] if v.dtype in INTEGERS or v.dtype.is_complex else e  # of a complex 0 C leaves the infinities' signs open
    return [(e[:, None], d[None, :]), (v.x(2, 3), v.x(3, low=0.5, high=2)), (v.x(2, 3), torch.tensor(3))]


def divided_by_number(v):
    return [(v.edges(least=False), n) for n in (v.number, -3, 2.5)] + ([] if v.dtype in INTEGERS else [(v.edges(), 0)])


ROUNDED = [{"rounding_mode": m} for m in (None, "trunc", "floor")]

sample("div.Tensor fmod.Tensor remainder.Tensor", quotients)
sample("div.Tensor_mode", lambda v: [(*a, m) for a in quotients(v) for m in ROUNDED])
sample("div.Scalar fmod.Scalar remainder.Scalar", divided_by_number)
sample("div.Scalar_mode", lambda v: [(*a, m) for a in divided_by_number(v) for m in ROUNDED])
sample("remainder.Scalar_Tensor", lambda v: [(n, y) for n in (5, -7.5) for _, y in quotients(v)[:2]])
sample("bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor", pairs)
sample("bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar", lambda v: [(v.edges(), v.number), (v.x(2, 3), v.number)])
sample("bitwise_and.Scalar_Tensor bitwise_or.Scalar_Tensor bitwise_xor.Scalar_Tensor", lambda v: [(v.number, v.edges()), (v.number, v.x(2, 3))])


def powers(v):
    if v.dtype in INTEGERS:
        return [(v.x(5)[:, None], torch.arange(4, dtype=v.dtype))]
    e = v.edges()
    return [(e[:, None], e[None, :])] if not v.dtype.is_complex else [(v.x(2, 3), v.x(3))]


sample("pow.Tensor_Tensor", powers)
sample("pow.Tensor_Scalar", lambda v: [(v.x(6) if v.dtype.is_complex else v.edges(), n) for n in (0, 1, 2, 3, *([] if v.dtype in INTEGERS else [0.5, -1, -2, -0.5, 2.5]))])
sample("pow.Scalar", lambda v: [(n, y) for n in (1, 2, *([] if v.dtype in INTEGERS else [0.5]), *([0] if v.dtype.is_floating_point else [])) for _, y in powers(v)])
sample("clamp", lambda v: [(v.edges(), -1, 2), (v.edges(), None, 1), (v.edges(), 0.5), (v.x(2, 3), 2, -1)])
sample("clamp.Tensor", lambda v: [(v.edges(), v.x(), v.x(1)), (v.x(2, 3), v.x(3)), (v.x(2, 3), None, v.x(2, 1))])
sample("where.self", lambda v: [(v.b(2, 3), v.x(3), v.x(2, 1)), (v.edges() == 1, v.edges(), v.other()), (v.b(), v.x(2), v.x(2))])
sample("where.ScalarOther", lambda v: [(v.b(2, 3), v.x(3), v.number), (v.b(3), v.x(3), 2.5)])
sample("where.ScalarSelf", lambda v: [(v.b(2, 3), v.number, v.x(3)), (v.b(3), 2.5, v.x(3))])
sample("where.Scalar", lambda v: [(v.b(2, 3), v.number, v.number), (v.b(3), 1, 2.5)])
sample("fill.Scalar", lambda v: [(v.x(2, 3), v.number), (v.x(2), 0)])
sample("fill.Tensor", lambda v: [(v.x(2, 3), v.x()), (v.x(2), torch.tensor(1))])
sample("copy", lambda v: [(v.x(2, 3), v.x(3)), (v.x(2, 3), v.other(2, 3)), (v.other(2, 3), v.x(3))])
sample("_to_copy", lambda v: [(v.edges(), {"dtype": t}) for t in (torch.float64, torch.float32, torch.bool, torch.bfloat16, None)]
       + [(v.x(2, 3), {"dtype": t}) for t in (torch.int64, torch.int8, torch.float16)])  # fmt: skip
sample("view.dtype", lambda v: [(v.x(2, 4), t) for t in (v.dtype, torch.int32, torch.float64, torch.int64, torch.uint8)])
sample("native_dropout", lambda v: [(v.x(2, 3), 0.5, False), (v.x(2, 3), 0.0, True)])
ELEMENTWISE = {name for name in SAMPLES if not name.startswith(("aten.copy", "aten._to_copy", "aten.view", "aten.native"))}
"""Overloads whose elements depend on those at their place alone."""

# ---- made
for name in ("full", "rand", "randn", "empty.memory_format"):
    extra = (lambda v: (v.number,)) if name == "full" else lambda v: ()
    sample(name, lambda v, extra=extra: [((2, 3), *extra(v), {"dtype": v.dtype}), ((), *extra(v), {"dtype": v.dtype}), ((2, 0), *extra(v), {"dtype": v.dtype})])
sample("rand.generator randn.generator", lambda v: [((2, 3), {"generator": None, "dtype": v.dtype})])
sample("empty_strided", lambda v: [((2, 3), (3, 1), {"dtype": v.dtype})])
sample("full_like", lambda v: [(v.x(2, 3), v.number), (v.x(2), 2.5, {"dtype": torch.float32})])
sample("scalar_tensor", lambda v: [(v.number, {"dtype": v.dtype}), (7, {"dtype": v.dtype})])
sample("arange", lambda v: [(5, {"dtype": v.dtype}), (0, {"dtype": v.dtype})])
sample("arange.start", lambda v: [(2, 7, {"dtype": v.dtype})])
sample("arange.start_step", lambda v: [(2, 9, 3, {"dtype": v.dtype}), (5, -3, -2, {"dtype": v.dtype}), (0, 1, 0.25, {"dtype": v.dtype})])
sample("randperm", lambda v: [(5, {"dtype": v.dtype})])
sample("randperm.generator", lambda v: [(5, {"generator": None, "dtype": v.dtype})])

# ---- shapes
sample("as_strided", lambda v: [(v.x(3, 4), (2, 2), (4, 1)), (v.x(3, 4), (3,), (2,), 1), (v.x(4), (2, 3), (0, 1))])
sample("cat", lambda v: [([v.x(2, 3), v.x(1, 3)],), ([v.x(2, 3), v.x(2, 1)], -1), ([v.x(2, 3), v.other(2, 3)],), ([v.x(0), v.x(2, 3)],)])
sample("constant_pad_nd", lambda v: [(v.x(2, 3), (1, 2)), (v.x(2, 3), (1, -1, 0, 2), v.number), (v.x(3), (-1, 0))])
sample("diagonal", lambda v: [(v.x(3, 4),), (v.x(3, 4), 1), (v.x(2, 3, 4), -1, 1, 2), (v.x(2, 3), 9)])
sample("expand", lambda v: [(v.x(3), (2, 3)), (v.x(2, 1), (-1, 4)), (v.x(), (2,))])
sample("flip", lambda v: [(v.x(2, 3), (0,)), (v.x(2, 3), (0, -1)), (v.x(2, 3), ())])
sample("permute", lambda v: [(v.x(2, 3, 4), (2, 0, 1)), (v.x(2, 3), (-1, 0))])
sample("repeat", lambda v: [(v.x(2, 3), (2, 1)), (v.x(3), (2, 2)), (v.x(2), (0,))])
sample("select.int", lambda v: [(v.x(2, 3), 0, 1), (v.x(2, 3), -1, -1)])
sample("slice.Tensor", lambda v: [(v.x(5, 3), 0, 1, 4, 2), (v.x(5, 3), 1, -2), (v.x(5), 0, 3, 2), (v.x(5),), (v.x(5), 0, -9, 99)])
sample("select_scatter", lambda v: [(v.x(2, 3), v.x(3), 0, 1), (v.x(2, 3), v.x(2), -1, -1)])
sample("slice_scatter", lambda v: [(v.x(5, 3), v.x(2, 3), 0, 1, 4, 2), (v.x(5, 3), v.x(5, 2), 1, -2)])
sample("split_with_sizes", lambda v: [(v.x(5, 3), (2, 3)), (v.x(5, 3), (1, 0, 2), -1)])
sample("squeeze", lambda v: [(v.x(2, 1, 3, 1),), (v.x(),)])
sample("squeeze.dim", lambda v: [(v.x(2, 1, 3), 1), (v.x(2, 1, 3), 0)])
sample("squeeze.dims", lambda v: [(v.x(1, 2, 1), (0, 2)), (v.x(1, 2, 1), (1, -1))])
sample("unsqueeze", lambda v: [(v.x(2, 3), 1), (v.x(2, 3), -1)])
sample("view", lambda v: [(v.x(2, 6), (3, 4)), (v.x(2, 6), (-1,)), (v.x(1), ())])
sample("col2im", lambda v: [(v.x(2, 12, 4), (3, 4), (2, 2), (1, 1), (0, 0), (1, 2)), (v.x(1, 4, 12), (4, 5), (2, 2), (1, 1), (0, 0), (1, 1))])
sample("reflection_pad1d", lambda v: [(v.x(2, 5), (2, 1)), (v.x(1, 2, 4), (3, 0))])
sample("reflection_pad2d", lambda v: [(v.x(2, 4, 5), (2, 1, 3, 0))])
sample("reflection_pad3d", lambda v: [(v.x(2, 3, 4, 5), (2, 1, 3, 0, 1, 2))])
sample("replication_pad2d", lambda v: [(v.x(2, 4, 5), (2, 1, 3, 0))])
sample("replication_pad3d", lambda v: [(v.x(2, 3, 4, 5), (2, 1, 3, 0, 1, 2))])
sample("sym_size sym_stride", lambda v: [(v.x(2, 3),)])
sample("sym_size.int sym_stride.int", lambda v: [(v.x(2, 3), 1), (v.x(2, 3), -2)])
sample("sym_numel sym_storage_offset sym_is_contiguous", lambda v: [(v.x(2, 3),)])

# ---- indices
sample("gather", lambda v: [(v.x(3, 4), 0, v.i(3, 2, 4)), (v.x(3, 4), -1, v.i(4, 3, 2)), (v.x(), 0, v.i(1))])
sample("index.Tensor", lambda v: [(v.x(3, 4), [v.i(3, 2)]), (v.x(3, 4), [None, v.i(4, 2, 2)]), (v.x(3, 4), [v.i(3, 2, 1), v.i(4, 3)]), (v.x(3, 4), [v.b(3)]), (v.x(3, 4), [v.i(3, 2) - 3])])
sample("index.Tensor_hacked_twin", lambda v: [(v.x(3, 4), [v.i(3, 2)]), (v.x(3, 4), [v.i(3, 2, 1), v.i(4, 3)])])
sample("index_put", lambda v: [(v.x(3, 4), [torch.tensor([2, 0])], v.x(2, 4)), (v.x(3, 4), [torch.tensor([1, 1, 0])], v.x(4), True), (v.x(3, 4), [None, torch.tensor([3])], v.x()), (v.x(3, 4), [v.b(3, 4)], v.x())])
sample("index_put.hacked_twin", lambda v: [(v.x(3, 4), [torch.tensor([2, 0])], v.x(2, 4)), (v.x(3, 4), [torch.tensor([1, 1, 0])], v.x(4), True)])
sample("index_select", lambda v: [(v.x(3, 4), 0, v.i(3, 5)), (v.x(3, 4), -1, v.i(4, 2)), (v.x(), 0, v.i(1, 1))])
sample("masked_scatter", lambda v: [(v.x(2, 3), v.b(2, 3), v.x(6)), (v.x(2, 3), v.b(3), v.x(2, 3))])
sample("nonzero where", lambda v: [(v.x(3, 4),), (v.x(2),), (v.edges(),)])
UNIQUE = torch.tensor([[2, 0, 1], [1, 2, 0]])
sample("scatter.src scatter_add", lambda v: [(v.x(3, 3), 0, UNIQUE, v.x(2, 3)), (v.x(2, 4), 1, UNIQUE, v.x(2, 3))])
sample("scatter_add", lambda v: [(v.x(3, 3), 0, UNIQUE * 0 + 1, v.x(2, 3)), (v.x(2, 4), 1, UNIQUE, v.x(2, 3))])
sample("scatter.value", lambda v: [(v.x(3, 3), 0, UNIQUE, v.number), (v.x(2, 4), -1, UNIQUE, v.number)])
sample("scatter.reduce", lambda v: [(v.x(3, 3), 0, UNIQUE * 0 + 1, v.x(2, 3), {"reduce": r}) for r in ("add", "multiply")])
sample("scatter.value_reduce", lambda v: [(v.x(3, 3), 0, UNIQUE * 0 + 1, v.number, {"reduce": r}) for r in ("add", "multiply")])
sample("scatter_reduce.two", lambda v: [(v.x(3, 3), 0, UNIQUE * 0 + 1, v.x(2, 3), r, {"include_self": s}) for r in ("sum", "prod", "mean", "amax", "amin") for s in (True, False)])
sample("embedding", lambda v: [(v.x(5, 3), v.i(5, 2, 4)), (v.x(5, 3), v.i(5), 2)])
sample("embedding_dense_backward", lambda v: [(v.x(2, 4, 3), v.i(5, 2, 4), 5, -1, False), (v.x(4, 3), v.i(5, 4), 5, 2, True)])
sample("_embedding_bag", lambda v: [(v.x(6, 3), v.i(6, 5), torch.tensor([0, 2, 2]), False, m) for m in (0, 1, 2)]
       + [(v.x(6, 3), v.i(6, 5), torch.tensor([0, 2]), False, 0, False, v.x(5)), (v.x(6, 3), v.i(6, 5), torch.tensor([0, 2, 5]), False, 1, False, None, True)])  # fmt: skip

# ---- reductions
LAST = [(), (0,), (0, -1)]
sample("amax amin", lambda v: [(v.x(2, 3), d, k) for d in LAST for k in (False, True)] + [(v.edges(),)])
sample("any", lambda v: [(v.x(2, 3),), (v.edges(),), (v.x(0),)])
sample("any.dim", lambda v: [(v.x(2, 3), 1), (v.x(2, 3), 0, True), (v.x(2, 0), 1)])
sample("any.dims", lambda v: [(v.x(2, 3), [0, 1]), (v.x(2, 3),), (v.x(2, 3), [1], True)])
sample("argmax argmin", lambda v: [(v.x(2, 3),), (v.x(2, 3), 1), (v.x(2, 3), 0, True), (v.edges(),)])
sample("max min", lambda v: [(v.x(2, 3),), (v.edges(),)])
sample("max.dim min.dim", lambda v: [(v.x(2, 7), 1), (v.x(2, 3), 0, True)] + ([(v.edges(), 0)] if not v.dtype.is_complex else []))
sample("mean", lambda v: [(v.x(2, 3),), (v.x(3), {"dtype": torch.float64}), (v.x(0),)])
sample("mean.dim", lambda v: [(v.x(2, 3), [1]), (v.x(2, 3), [0, 1], True), (v.x(2, 3), None)])
sample("sum", lambda v: [(v.x(2, 3),), (v.x(3), {"dtype": torch.float64}), (v.x(0),), (v.edges(),)])
sample("sum.dim_IntList", lambda v: [(v.x(2, 3), [1]), (v.x(2, 3), [0, 1], True), (v.x(2, 3), None), (v.x(2, 0), [1])])
sample("prod", lambda v: [(v.x(2, 3),), (v.x(3), {"dtype": torch.float64}), (v.x(0),)])
sample("prod.dim_int", lambda v: [(v.x(2, 3), 1), (v.x(2, 3), 0, True), (v.x(2, 0), 1)])
sample("var", lambda v: [(v.x(2, 3),), (v.x(2, 3), False), (v.x(1),)])
sample("var.dim", lambda v: [(v.x(2, 3), [1]), (v.x(2, 3), [0, 1], False, True), (v.x(2, 3), None)])
sample("var.correction", lambda v: [(v.x(2, 3), [1]), (v.x(2, 3), [0], {"correction": 0}), (v.x(2, 5), None, {"correction": 2, "keepdim": True})])
sample("cumsum", lambda v: [(v.x(2, 3), 1), (v.x(2, 3), 0, {"dtype": torch.float64}), (v.x(40), 0), (v.x(), 0)])
sample("sort", lambda v: [(v.x(2, 5),), (v.x(3, 2), 0, True), (v.edges(),)])
sample("sort.stable", lambda v: [(v.x(2, 5), {"stable": True}), (v.x(3, 2), {"stable": True, "dim": 0, "descending": True}), (v.edges(), {"stable": True})])
sample("topk", lambda v: [(v.x(2, 5), 2), (v.x(3, 2), 2, 0, False), (v.edges(), 2)])
sample("_softmax _log_softmax", lambda v: [(v.x(2, 3), 1, False), (v.x(2, 3, 2), 0, False), (v.x() , 0, False), (torch.tensor([[INF, 0.0], [-INF, 1.0], [-INF, -INF], [NAN, 0.0]]).to(v.dtype), 1, False)])
sample("_cdist_forward", lambda v: [(v.x(3, 4), v.x(2, 4), p, None) for p in (0.0, 1.0, 2.0, 3.0, INF)] + [(v.x(2, 3, 4), v.x(2, 2, 4), 2.0, 1)])
sample("_pdist_forward", lambda v: [(v.x(4, 3), p) for p in (0.0, 1.0, 2.0, 3.0, INF)])

# ---- products, transforms
sample("mm", lambda v: [(v.x(2, 3), v.x(3, 4)), (v.x(2, 0), v.x(0, 3))])
sample("bmm", lambda v: [(v.x(2, 2, 3), v.x(2, 3, 4)), (v.x(0, 2, 3), v.x(0, 3, 4))])
sample("addmm", lambda v: [(v.x(2, 4), v.x(2, 3), v.x(3, 4)), (v.x(4), v.x(2, 3), v.x(3, 4), {"beta": 0, "alpha": v.number}), (v.x(1), v.x(2, 3), v.x(3, 4), {"beta": v.number})])
WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
sample("mm.dtype", lambda v: [(v.x(2, 3), v.x(3, 4), WIDER.get(v.dtype, v.dtype))])
sample("bmm.dtype", lambda v: [(v.x(2, 2, 3), v.x(2, 3, 4), WIDER.get(v.dtype, v.dtype))])
sample("addmm.dtype", lambda v: [(v.x(2, 4).to(WIDER.get(v.dtype, v.dtype)), v.x(2, 3), v.x(3, 4), WIDER.get(v.dtype, v.dtype))])
sample("convolution", lambda v: [
    (v.x(2, 3, 8), v.x(4, 3, 3), v.x(4), [2], [1], [1], False, [0], 1), (v.x(1, 4, 6, 5), v.x(4, 2, 3, 2), None, [1, 1], [1, 0], [1, 2], False, [0, 0], 2),
    (v.x(1, 2, 4, 4, 3), v.x(2, 2, 2, 2, 2), v.x(2), [1] * 3, [0] * 3, [1] * 3, False, [0] * 3, 1),
    (v.x(2, 3, 5), v.x(3, 2, 3), v.x(2), [2], [1], [1], True, [1], 1), (v.x(1, 4, 3, 3), v.x(4, 1, 2, 2), None, [2, 2], [0, 0], [1, 1], True, [0, 0], 2)])  # fmt: skip
sample("convolution_backward", lambda v: [
    (v.x(2, 4, 4), v.x(2, 3, 8), v.x(4, 3, 3), [4], [2], [1], [1], False, [0], 1, [True, True, True]),
    (v.x(1, 4, 6, 3), v.x(1, 4, 6, 5), v.x(4, 2, 3, 2), None, [1, 1], [1, 0], [1, 2], False, [0, 0], 2, [True, True, False])])  # fmt: skip
sample("_fft_r2c", lambda v: [(v.x(3, 6), [1], n, True) for n in (0, 1, 2)] + [(v.x(3, 5), [0, 1], 0, True), (v.x(3, 5), [1], 0, False)])
sample("_fft_c2r", lambda v: [(v.x(3, 4), [1], n, 6) for n in (0, 1, 2)] + [(v.x(3, 3), [0, 1], 2, 5)])

# ---- layers
sample("_adaptive_avg_pool2d", lambda v: [(v.x(2, 5, 7), (2, 3)), (v.x(1, 2, 4, 4), (2, 2)), (v.x(1, 2, 3, 3), (5, 4))])
sample("_adaptive_avg_pool2d_backward", lambda v: [(v.x(2, 2, 3), v.x(2, 5, 7)), (v.x(1, 2, 2, 2), v.x(1, 2, 4, 4))])
sample("_adaptive_avg_pool3d", lambda v: [(v.x(2, 4, 5, 3), (2, 3, 1))])
sample("adaptive_avg_pool1d", lambda v: [(v.x(2, 7), (3,)), (v.x(1, 2, 6), (2,))])
sample("avg_pool1d", lambda v: [(v.x(2, 7), [3]), (v.x(1, 2, 7), [3], [2], [1], True, False)])
sample("avg_pool2d", lambda v: [(v.x(2, 5, 7), [2, 3]), (v.x(1, 2, 5, 7), [3, 2], [2, 1], [1, 1], True, False), (v.x(2, 5, 7), [2], [1], 0, False, True, 3)])
sample("avg_pool2d_backward", lambda v: [(v.x(2, 2, 2), v.x(2, 5, 7), [2, 3], [2, 3], [0, 0], False, True, None), (v.x(2, 3, 8), v.x(2, 5, 7), [3, 2], [2, 1], [1, 1], False, False, None)])
sample("avg_pool3d", lambda v: [(v.x(2, 4, 5, 4), [2, 3, 2]), (v.x(1, 2, 4, 5, 3), [2], [1], 1, False, False)])
sample("max_pool2d_with_indices", lambda v: [(v.x(2, 5, 7), [2, 3]), (v.x(1, 2, 5, 7), [3, 2], [2, 1], [1, 1], [1, 2], True)])
sample("max_pool3d_with_indices", lambda v: [(v.x(2, 4, 5, 4), [2, 3, 2]), (v.x(1, 2, 4, 5, 3), [2], [1], 1)])


def pool_backward(v):
    x = v.x(2, 5, 7)
    try:
        y, index = torch.ops.aten.max_pool2d_with_indices(x, [2, 3])
    except (RuntimeError, NotImplementedError):
        return []
    return [(v.x(*y.shape), x, [2, 3], [2, 3], [0, 0], [1, 1], False, index)]


sample("max_pool2d_with_indices_backward", pool_backward)
sample("grid_sampler_2d", lambda v: [(v.x(1, 2, 4, 5), v.x(1, 3, 2, 2, low=-1.2, high=1.2), m, p, c) for m in (0, 1, 2) for p in (0, 1, 2) for c in (False, True)])
sample("upsample_bilinear2d", lambda v: [(v.x(1, 2, 3, 4), (6, 5), c) for c in (False, True)])
sample("upsample_bilinear2d.vec", lambda v: [(v.x(1, 2, 3, 4), (6, 5), False, None), (v.x(1, 2, 3, 4), None, True, (2.0, 1.5))])
sample("upsample_nearest2d", lambda v: [(v.x(1, 2, 3, 4), (6, 5))])
sample("upsample_nearest2d.vec", lambda v: [(v.x(1, 2, 3, 4), (6, 5), None), (v.x(1, 2, 3, 4), None, (2.0, 1.5))])
sample("native_layer_norm", lambda v: [(v.x(2, 3, 4), [4], v.x(4), v.x(4), 1e-5), (v.x(2, 3, 4), [3, 4], None, None, 1e-3)])
sample("native_group_norm", lambda v: [(v.x(2, 4, 3), v.x(4), v.x(4), 2, 4, 3, 2, 1e-5), (v.x(1, 4, 2, 3), None, None, 1, 4, 6, 4, 1e-3)])


def layer_backward(v):
    x, w = v.x(2, 3, 4), v.x(4)
    try:
        _, mean, rstd = torch.ops.aten.native_layer_norm(x, [4], w, w, 1e-5)
    except (RuntimeError, NotImplementedError):
        return []
    return [(v.x(2, 3, 4), x, [4], mean, rstd, w, w, [True, True, True])]


def group_backward(v):
    x, w = v.x(2, 4, 3), v.x(4)
    try:
        _, mean, rstd = torch.ops.aten.native_group_norm(x, w, w, 2, 4, 3, 2, 1e-5)
    except (RuntimeError, NotImplementedError):
        return []
    return [(v.x(2, 4, 3), x, mean, rstd, w, 2, 4, 3, 2, [True, True, True])]


sample("native_layer_norm_backward", layer_backward)
sample("native_group_norm_backward", group_backward)
sample("_native_batch_norm_legit.no_stats", lambda v: [(v.x(4, 3, 2), v.x(3), v.x(3), True, 0.1, 1e-5), (v.x(4, 3), None, None, True, 0.1, 1e-5)])
sample("_native_batch_norm_legit_no_training", lambda v: [(v.x(4, 3, 2), v.x(3), v.x(3), v.x(3), v.x(3, low=0.5), 0.1, 1e-5)])


def overloads(packets):
    """The overloads of packets, "aten.add", in order."""
    for name in packets:
        packet = getattr(torch.ops.aten, name.split(".", 1)[1])
        for overload in packet.overloads():
            yield getattr(packet, overload)


TWICE = "aten.mm.dtype aten.bmm.dtype aten.addmm.dtype".split()
MEANING = {name: lambda *args, op=getattr(torch.ops.aten, name.split(".")[1]).default, **named: op(*(x.to(args[-1]) for x in args[:-1]), **named) for name in TWICE}
"""What overloads are that PyTorch has on GPUs alone: others."""

NUMBERS = {"aten._local_scalar_dense.default", "aten.eq.Tensor_list", "aten.ne.Tensor_list", "aten.index.list_Tensor", "aten.copy.Dict_Tensor"}
"""Overloads of tensors that give what is none: a number of Python's that data decide, a dictionary."""


def kind_of(op):
    """"tensors", or why no graph of tensors has the overload."""
    schema = op._schema
    if schema.is_mutable:
        return "changes its arguments: graphs are without mutation when they come here"
    if str(op) in NUMBERS:
        return "gives a value of Python's that data decide: refused"
    if not any("Tensor" in str(a.type) for a in [*schema.arguments, *schema.returns]):
        return "of Python's numbers, texts and lists alone (TorchScript): not in a graph"
    return "tensors"
