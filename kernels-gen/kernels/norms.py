"""Layer norm and RMS norm: a program normalizes a row.

Keeps:    bits: sums of a row are in the order of the ops' (lane64), each other operation is that of the ops.
"""

import astra

from .forms import Form, Row

kernel = astra.kernel


@astra.kernel
def layer_norm(x, epsilon, scale, shift, out, *, DIVIDED):
    row, n = kernel.program_id(0), x.shape[1]
    t = kernel.load(x, (row, 0), (1, n))
    d = t - kernel.sum(t, axis=1, keepdims=True) / n
    deviation = kernel.sqrt(kernel.sum(d * d, axis=1, keepdims=True) / n + kernel.load(epsilon, (0,), (1,)))
    if DIVIDED:
        y = d / deviation
    else:
        y = d * (1.0 / deviation)
    if scale is not None:
        y = y * kernel.load(scale, (0,), (n,))
    if shift is not None:
        y = y + kernel.load(shift, (0,), (n,))
    kernel.store(out, (row, 0), y)


@astra.kernel
def rms_norm(x, epsilon, scale, out):
    row, n = kernel.program_id(0), x.shape[1]
    t = kernel.load(x, (row, 0), (1, n))
    root = kernel.sqrt(kernel.sum(t * t, axis=1, keepdims=True) / n + kernel.load(epsilon, (0,), (1,)))
    kernel.store(out, (row, 0), t * (1.0 / root) * kernel.load(scale, (0,), (n,)))


WIDTH = (1, 65536)  # of a row
ROWS = {2: [(1, 2**31 - 1)], 3: [(1, 65535), (1, 32767)], 4: [(1, 127), (1, 4095), (1, 4095)]}  # of all axes before it: programs are counted in 31 bits


def outer(rank):
    """The axes before the last, by rank, since their bounds are those of the rank."""
    return [f"{letter}{rank}" for letter in "abc"[: rank - 1]]


class Lines:
    """Statements about rows of n elements along the last of `rank` axes."""

    def __init__(self, rank):
        self.lines: list[str] = []
        self.whole = ", ".join([*outer(rank), "n"])
        self.rows = ", ".join([*outer(rank), "1"])
        self.ones = ", ".join(["1"] * rank)
        self.last = ", ".join([*["1"] * (rank - 1), "n"])
        self.axis = rank - 1

    def add(self, *lines):
        self.lines += lines

    def scalar(self, name, value):
        """One value a row."""
        self.add(f"%{name}_1 = reshape {value} [{self.ones}]", f"%{name} = expand %{name}_1 [{self.rows}]")

    def across(self, name, value):
        """A value of a row for each of its elements."""
        self.add(f"%{name} = expand {value} [{self.whole}]")

    def along(self, name, value):
        """A value of each element of a row, for all rows."""
        self.add(f"%{name}_1 = reshape {value} [{self.last}]", f"%{name} = expand %{name}_1 [{self.whole}]")

    def mean(self, name, value):
        self.add(f"%{name}_s = reduce {value} kind=sum order=lane64 axes=[{self.axis}]", f"%{name}_r = reshape %{name}_s [{self.rows}]", f"%{name} = div %{name}_r, %count")

    def text(self):
        return "\n".join(self.lines)


def form(name, rank, body, inputs, call):
    lines = Lines(rank)
    lines.add("%n_0 = from_index [n] : f32")
    lines.scalar("count", "%n_0")
    lines.scalar("eps", "%epsilon")
    body(lines)
    dims = dict(zip(outer(rank), ROWS[rank]), n=WIDTH)
    shape = (*outer(rank), "n")

    def traced(x, epsilon, *rest, rows, n, **_):
        return call(x, epsilon, *rest, out=astra.spec((rows, n)), grid=rows)

    given = {"x": ("f32", shape), "epsilon": ("f32", ()), **{i: ("f32", ("n",)) for i in inputs}}
    flat = {"rows": "*".join(outer(rank))}
    return Form(f"{name}_{rank}", dims, given, lines.text(), shape, traced, flat, {"x": ("rows", "n"), "epsilon": (1,)})


def layer_forms():
    for rank in ROWS:
        for divided, inputs in ((False, ("scale", "shift")), (False, ("scale",)), (False, ()), (True, ("scale", "shift"))):

            def body(o, divided=divided, inputs=inputs):
                o.mean("mean", "%x")
                o.across("middle", "%mean")
                o.add("%d = sub %x, %middle", "%dd = mul %d, %d")
                o.mean("variance", "%dd")
                o.add("%moved = add %variance, %eps", "%deviation = sqrt %moved")
                if divided:
                    o.across("spread", "%deviation")
                else:
                    o.add("%one_0 = const 1.0 : f32")
                    o.scalar("one", "%one_0")
                    o.add("%inverse = div %one, %deviation")
                    o.across("spread", "%inverse")
                names = ["%normed", "%scaled", "%shifted"][: len(inputs)] + ["%y"]
                o.add(f"{names[0]} = {'div' if divided else 'mul'} %d, %spread")
                for i, (name, op) in enumerate(zip(inputs, ("mul", "add"))):
                    o.along(f"{name}_all", f"%{name}")
                    o.add(f"{names[i + 1]} = {op} {names[i]}, %{name}_all")

            def call(x, epsilon, *rest, divided=divided, **given):
                return layer_norm(x, epsilon, *(*rest, None, None)[:2], DIVIDED=divided, **given)

            yield form("_".join(["divided" if divided else "normed", *inputs]), rank, body, inputs, call)


def rms_forms():
    for rank in ROWS:

        def body(o):
            o.add("%xx = mul %x, %x")
            o.mean("squares", "%xx")
            o.add("%moved = add %squares, %eps", "%root = sqrt %moved", "%one_0 = const 1.0 : f32")
            o.scalar("one", "%one_0")
            o.add("%inverse = div %one, %root")
            o.across("spread", "%inverse")
            o.add("%normed = mul %x, %spread")
            o.along("all", "%scale")
            o.add("%y = mul %normed, %all")

        yield form("scaled", rank, body, ("scale",), rms_norm)


ROWS_OF_TABLE = [
    Row("layer-norm", "(x - mean) / sqrt(variance + epsilon) along the last of 2 to 4 axes, with a scale and a shift or without", list(layer_forms())),
    Row("rms-norm", "x / sqrt(mean of squares + epsilon) * scale along the last of 2 to 4 axes", list(rms_forms())),
]
