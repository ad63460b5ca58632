"""trace, lower, compile, save, load; several entries with states; jit; analysis; ONNX."""

import collections
import dataclasses
import os
import pickle
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import astra

RUN = Path(__file__).resolve().parents[3] / "build/bin/astra-run"
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def test_every_stage_has_a_text(tmp_path):
    traced = astra.trace(lambda x, w: astra.tanh(x @ w["k"]), astra.spec((4, 3)), {"k": astra.spec((3, 2))})
    assert [n for n, _ in traced.inputs] == ["x", "w.k"] and traced.outputs[0][1] == astra.spec((4, 2))
    assert "tanh" in traced.as_text()
    lowered = traced.lower()
    assert "@main(%x" in lowered.as_text()
    for dialect, word in (("schedule", "kernel"), ("plan", "k0"), ("c", "for ("), ("asm", "vmov")):
        assert word in lowered.as_text(dialect, "cpu:x86-64-v3"), dialect
    assert "ptx" in lowered.as_text("ptx", "cuda:sm_90") or ".visible" in lowered.as_text("ptx", "cuda:sm_90")
    compiled = lowered.compile("native")
    assert "test_stages.py:" in compiled.as_text() and "operations" in compiled.as_text()
    assert compiled.as_text("uop") == lowered.as_text()
    paths = lowered.to_c(tmp_path)
    if shutil.which("cc"):
        for path in paths:
            subprocess.run(["cc", "-fsyntax-only", "-march=native", "-w", "-I", tmp_path, path], check=True)


def test_called_saved_loaded_pickled(tmp_path):
    f = lambda p, x, power=2: {"y": (x @ p["w"]) ** power, "n": (x.sum(), p["b"])}  # noqa: E731
    p = {"w": np.ones((3, 2), np.float32), "b": np.float32(2)}
    compiled = astra.trace(f, p, X, power=3).lower().compile("native")
    want = f({k: astra.asarray(v) for k, v in p.items()}, astra.asarray(X), 3)
    for c in (compiled, pickle.loads(pickle.dumps(compiled))):
        made = c(p, X, power=3)
        assert made["y"].tobytes() == want["y"].tobytes() and made["n"][1].item() == 2
    compiled.save(tmp_path / "m.astra")
    model = astra.load(tmp_path / "m.astra")
    assert [i.name for i in model.inputs] == ["p.b", "p.w", "x"] and [o.name for o in model.outputs] == ["n.0", "n.1", "y"]
    with pytest.raises(astra.ArgumentError, match="traced with 3 in place of 4"):
        compiled(p, X, power=4)
    with pytest.raises(astra.ArgumentError, match="p.b: Spec"):
        compiled(X, power=3)
    with pytest.raises(astra.ShapeError, match="input x"):
        compiled(p, X[:2], power=3)
    with pytest.raises(astra.DTypeError, match="input p.w"):
        compiled({**p, "w": np.ones((3, 2))}, X, power=3)
    again = astra.trace(f, p, X, power=3).lower().compile("native")
    assert again.bundle == compiled.bundle


def test_tensors_from_outside_are_constants():
    w = astra.asarray([2.0, 3.0, 4.0])
    compiled = astra.trace(lambda x: x * w, astra.spec((3,))).lower().compile("native")
    assert compiled(astra.ones(3)).tolist() == [2, 3, 4]
    assert astra.trace(lambda x: (x, 5), astra.spec((1,))).lower().compile("native")(astra.ones(1))[1].item() == 5


def training():
    """A line through points, with momentum; the key of the noise is a state."""
    params = {"w": astra.zeros((3, 1)), "b": astra.zeros((1,))}
    states = {"params": params, "momentum": astra.tree.map(astra.zeros_like, params), "key": astra.random.key(1), "step": astra.asarray(0)}

    def predict(states, x):
        p = states["params"]
        return x @ p["w"] + p["b"]

    def train_step(states, x, y):
        key, noise = astra.random.split(states["key"])
        x = x + 0.01 * astra.random.normal(noise, x.shape)
        loss, gradient = astra.value_and_grad(lambda p: ((predict({"params": p}, x) - y) ** 2).mean())(states["params"])
        momentum = astra.tree.map(lambda m, g: 0.9 * m + g, states["momentum"], gradient)
        params = astra.tree.map(lambda p, m: p - 0.05 * m, states["params"], momentum)
        return {"params": params, "momentum": momentum, "key": key, "step": states["step"] + 1}, {"loss": loss}

    return states, predict, train_step


def test_a_training_step_is_an_entry_that_updates_states(tmp_path):
    states, predict, train_step = training()
    y = X @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.25
    exported = astra.export(
        {
            "main": astra.entry(predict, astra.spec((astra.dim("n", 1, 8), 3))),
            "train_step": astra.entry(train_step, astra.spec((4, 3)), astra.spec((4, 1)), updates=True),
        },
        states=states,
        name="line",
    )
    compiled = exported.lower().compile("native")
    losses = []
    for _ in range(30):
        want, result = train_step(states, astra.asarray(X), astra.asarray(y))
        losses.append(compiled.train_step(X, y)["loss"])
        assert losses[-1].tobytes() == result["loss"].tobytes()
        states = astra.tree.map(lambda t: astra.asarray(t.numpy()), want)
    assert losses[-1].item() < losses[0].item() / 10
    for a, b in zip(astra.tree.leaves(compiled.states), astra.tree.leaves(states)):
        assert a.tobytes() == b.tobytes()
    assert compiled(X[:2]).tobytes() == predict(states, astra.asarray(X[:2])).tobytes()

    # As a file: the same states, without this package.
    compiled.save(tmp_path / "line.astra")
    model = astra.load(tmp_path / "line.astra")
    assert [s.name for s in model.states] == ["key", "momentum.b", "momentum.w", "params.b", "params.w", "step"]
    for k in range(3):
        assert model.train_step(X, y).tobytes() == losses[k].tobytes()
    assert int(model.get_state("step")) == 3
    if RUN.exists():  # from C
        for name, array in (("x", X), ("y", y)):
            np.save(tmp_path / f"{name}.npy", array)
        given = [f"--input={n}={tmp_path / n}.npy" for n in "xy"]
        subprocess.run([RUN, tmp_path / "line.astra", "--entry=train_step", "--repeat=3", *given, f"--save-states={tmp_path / 'c.safetensors'}"],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        calls = 3
        other = astra.load(tmp_path / "line.astra")
        other.load_states(tmp_path / "c.safetensors")
        while int(model.get_state("step")) < int(other.get_state("step")):  # --repeat calls once more, to warm up
            model.train_step(X, y)
            calls += 1
        assert calls <= 4
        model.save_states(tmp_path / "python.safetensors")
        assert (tmp_path / "c.safetensors").read_bytes() == (tmp_path / "python.safetensors").read_bytes()
    copy = pickle.loads(pickle.dumps(compiled))
    assert copy.states["step"].item() == 30
    copy.states = training()[0]
    assert copy.train_step(X, y)["loss"].tobytes() == losses[0].tobytes()
    assert len(astra.verify(copy, X, y, entry="train_step", by=exported.lower())) == 64
    assert copy.states["step"].item() == 2


@pytest.mark.skipif(not os.environ.get("ASTRA_NIGHTLY") or not RUN.exists(), reason="ASTRA_NIGHTLY is not set, or there is no astra-run")
def test_a_training_step_on_a_gpu_that_is_emulated(tmp_path):
    states, _, train_step = training()
    y = X @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.25
    exported = astra.export({"train_step": astra.entry(train_step, astra.spec((4, 3)), astra.spec((4, 1)), updates=True)}, states=states)
    exported.lower().compile("cpu:x86-64-v3,cuda:sm_90,emu:cuda:sm_90").save(tmp_path / "line.astra")
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    made = []
    for name, where in (("cpu", ["--level=x86-64-v3"]), ("gpu", ["--emulate=cuda:sm_90", "--seed=3"])):
        given = [f"--input={n}={tmp_path / n}.npy" for n in "xy"]
        path = tmp_path / f"{name}.safetensors"
        subprocess.run([RUN, tmp_path / "line.astra", "--entry=train_step", *given, f"--save-states={path}", *where], check=True, stdout=subprocess.DEVNULL)
        made.append(path.read_bytes())
    assert made[0] == made[1]


def test_params_may_be_replaced(tmp_path):
    exported = astra.export({"main": astra.entry(lambda p, x: x * p["scale"], astra.spec((2,)))}, params={"scale": astra.asarray([2.0, 3.0])})
    exported.lower().compile("native").save(tmp_path / "m.astra")
    model = astra.load(tmp_path / "m.astra")
    x = np.ones(2, np.float32)
    assert model(x).tolist() == [2, 3]
    model.set_param("scale", [5.0, 7.0])
    assert model(x).tolist() == [5, 7]


def test_refusals_of_export():
    s = {"w": astra.zeros(3)}
    with pytest.raises(astra.ArgumentError, match="astra.entry"):
        astra.export({"main": lambda x: x})
    with pytest.raises(astra.ArgumentError, match="none"):
        astra.export({"main": astra.entry(lambda: ({}, 1), updates=True)})
    with pytest.raises(astra.ArgumentError, match="pair"):
        astra.export({"step": astra.entry(lambda s: s, updates=True)}, states=s)
    with pytest.raises(astra.ShapeError, match="entry 'step' gives state 'w' the shape"):
        astra.export({"step": astra.entry(lambda s: ({"w": s["w"][:2]}, 1), updates=True)}, states=s)
    with pytest.raises(astra.DTypeError, match="makes state 'w' int64"):
        astra.export({"step": astra.entry(lambda s: ({"w": s["w"].astype("int64")}, 1), updates=True)}, states=s)


def test_jit_compiles_once_for_each_structure():
    @astra.jit
    def f(x, y=1.0, *, kind="a"):
        return x * y if kind == "a" else {"sum": x + y}

    x = astra.ones(3)
    assert f(x).tolist() == f(x).tolist() == f(np.ones(3, np.float32)).tolist() == [1, 1, 1] and f.traces == 1
    assert f(x, x).tolist() == [1, 1, 1] and f(x, np.full(3, 2, np.float32)).tolist() == [2, 2, 2] and f.traces == 2
    assert f(x, kind="b")["sum"].tolist() == [2, 2, 2] and f.traces == 3
    assert f(astra.ones(4)).shape == (4,) and f(x.astype("float64")).dtype == "float64" and f.traces == 5
    assert f(np.ones((2, 3))[:, 1]).tolist() == [1, 1] and f(np.ones(3, ">f4")).tolist() == [1, 1, 1]
    assert f.lower(astra.spec((3,))).as_text().count("@main") == 1
    outside = astra.asarray([1.0, 2.0])
    g = astra.jit(lambda x: x + outside)
    assert g(outside).tolist() == [2, 4] and g(np.zeros(2, np.float32)).tolist() == [1, 2]

    class Model:
        scale = 3.0

        @astra.jit
        def call(self, x):
            return x * 3

    with pytest.raises(astra.ArgumentError, match="argument 'self' is a Model"):
        Model().call(x)
    static = astra.jit(lambda m, x: x * m.scale, static_argnames="m")
    assert static(Model(), x).tolist() == static(m=Model(), x=x).tolist() == [3, 3, 3]


def test_many_values_of_a_number_are_warned_of():
    f = astra.jit(lambda x, rate: x * rate)
    x = astra.ones(1)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for i in range(10):
            f(x, float(i))
    assert len(seen) == 1 and "8th value of its argument 'rate'" in str(seen[0].message) and "astra.asarray(rate)" in str(seen[0].message)
    assert seen[0].filename == __file__


def test_costs():
    n = astra.dim("n", 1, 100)
    compiled = astra.trace(lambda x, w: astra.scan(lambda c, r: (astra.tanh(c @ w), None), x, None, length=5)[0], astra.spec((n, 8)), astra.spec((8, 8))).lower().compile("native")
    small, large = compiled.cost_analysis(n=10), compiled.cost_analysis()
    assert large.operations == 10 * small.operations and large.operations >= 5 * 2 * 100 * 8 * 8
    assert {k.launches for k in large.kernels} >= {5} and all(k.lines for k in large.kernels if k.launches == 5)
    added = astra.trace(lambda x: (x + 1) * x, astra.spec((5, 3))).lower().cost_analysis()
    assert added.operations >= 30 and added.operations % 15 == 0 and added.bytes == 120  # NaNs are made canonical too
    memory = compiled.memory_analysis(n=10)
    assert memory.inputs == 10 * 32 + 256 and memory.outputs == 320 and memory.peak >= memory.inputs + memory.outputs
    with pytest.raises(astra.ArgumentError, match="within 1..100"):
        compiled.cost_analysis(n=101)
    with pytest.raises(astra.ArgumentError, match="no dim 'm'"):
        compiled.cost_analysis(m=1)


def test_explain_names_the_line_the_kernel_and_its_code():
    x = astra.asarray(X)
    y = astra.exp(x) + 1
    y = (y * y).sum(axis=0)
    told = astra.explain(y)
    assert any("test_stages.py" in line for line in told.lines)
    assert told.kernel is not None and told.kernel.operations > 0 and told.kernel.name in told.c and told.c.rstrip().endswith("}")
    assert told.kernel.name in str(told)
    y.tolist()
    with pytest.raises(astra.ArgumentError, match="has a value already"):
        astra.explain(y)


def test_a_wrong_binary_is_told(monkeypatch):
    lowered = astra.trace(lambda x: x * 2, astra.spec((3,))).lower()
    other = astra.trace(lambda x: x * 3, astra.spec((3,))).lower().compile("native")
    x = np.array([0, 1, 2], np.float32)
    assert len(astra.verify(lowered.compile("native"), x)) == 64
    with pytest.raises(astra.MismatchError, match="2 of 3 elements, the first is element 1: .*3.0.*2.0"):
        astra.verify(other.module, x, by=lowered)
    with pytest.raises(astra.ArgumentError, match="by=lowered"):
        astra.verify(other.module, x)


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in "xy")
    w = onnx.numpy_helper.from_array(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["z"]), helper.make_node("Tanh", ["z"], ["y"])], "one", [x], [y], [w])
    path = tmp_path_factory.mktemp("onnx") / "one.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_models_of_onnx_files(model_file, tmp_path):
    model = astra.from_onnx(model_file, dims={"batch": (1, 8)})
    w = model.params["w"]
    want = astra.tanh(astra.asarray(X) @ w)
    assert model(X).tobytes() == want.tobytes()
    compiled = model.compile("native")
    assert compiled(X).tobytes() == want.tobytes() and len(astra.verify(compiled, X)) == 64
    compiled.save(tmp_path / "m.astra")
    assert astra.load(tmp_path / "m.astra")(X).tobytes() == want.tobytes()
    # A part of other functions.
    both = astra.jit(lambda x: model(x * 2) + x)
    assert both(X).tobytes() == (astra.tanh((astra.asarray(X) * 2) @ w) + X).tobytes()
    gradient = astra.grad(lambda p: (model.apply(p, X) ** 2).sum())(model.params)["w"]
    assert gradient.tobytes() == astra.grad(lambda w: (astra.tanh(astra.asarray(X) @ w) ** 2).sum())(w).tobytes()
    assert astra.vmap(model)(np.stack([X, X])).shape == (2, 4, 3)
    n = astra.dim("n", 1, 4)
    assert astra.trace(lambda x: model(x), astra.spec((n, 3))).lower().compile("native")(X).tobytes() == want.tobytes()
    assert astra.compile_file(model_file, "native", dims={"*": (1, 4)})(X).tobytes() == want.tobytes()
    with pytest.raises(astra.ArgumentError, match=r'dims={"batch": \(1, 64\)}'):
        astra.from_onnx(model_file)
    with pytest.raises(astra.ArgumentError, match="within 1..8"):
        model(np.ones((9, 3), np.float32))
    with pytest.raises(astra.ArgumentError, match="x: f32"):
        model(X, X)
    with pytest.raises(astra.ArgumentError, match="no weight 'v'"):
        model.apply({"v": w}, X)


def test_files_in_the_text_form(tmp_path):
    path = tmp_path / "a.uop"
    path.write_text("module @a {\n  entry @main(%x : f32[2]) -> (%y : f32[2]) {\n    %y = neg %x\n  }\n}\n")
    assert astra.compile_file(path, "native")(np.ones(2, np.float32)).tolist() == [-1, -1]


Pair = collections.namedtuple("Pair", "a b")


@astra.tree.dataclass(static="name")
@dataclasses.dataclass(frozen=True)
class Layer:
    weight: object
    bias: object
    name: str = "layer"


def test_what_functions_may_take_and_give():
    x = astra.asarray([1.0, 2.0])
    f = astra.jit(lambda p, d, xs, none, mode: (Pair(p.b, d["k"]), [xs[0], {"n": none, "five": 5}], mode == "m"))
    pair, (first, more), static = f(Pair(x, x * 2), {"k": x * 3}, (x, x), None, "m")
    assert pair.a.tolist() == [2, 4] and pair.b.tolist() == [3, 6] and first.tolist() == [1, 2]
    assert more["n"] is None and more["five"].item() == 5 and static.item() is True
    assert astra.jit(lambda x: None)(x) is None and astra.jit(lambda: astra.ones(2))().tolist() == [1, 1]
    assert [t.tolist() for t in astra.jit(lambda x: (x, x))(x)] == [[1, 2]] * 2
    assert astra.jit(lambda x: x + 1)(np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert astra.jit(lambda *xs: sum(xs[1:], xs[0]))(*[x] * 100).tolist() == [100, 200]
    for t in (np.float16, np.complex64, np.bool_, np.int8, np.uint64, np.float64):
        a = np.ones(3, t)
        assert astra.jit(lambda x: x)(a).tobytes() == a.tobytes()
    layer = Layer(x, astra.asarray(1.0))
    gradient = astra.jit(astra.grad(lambda l: (l.weight * l.weight).sum() * l.bias))(layer)
    assert isinstance(gradient, Layer) and gradient.name == "layer" and gradient.weight.tolist() == [2, 4] and gradient.bias.item() == 5
    assert astra.trace(lambda l: l, layer).inputs[0][0] == "l.weight"
    assert astra.vmap(lambda l: l.weight * 2, in_axes=(0,))(Layer(x, x)).tolist() == [2, 4]


def test_names_of_arguments_and_results_may_be_the_same():
    x = astra.tensor([1.0, 2.0])
    assert astra.jit(lambda result: result * 2)(x).tolist() == [2, 4]
    step = astra.jit(lambda w, b: {"w": w - 1, "b": b, "c": b})(x, x)
    assert [step[k].tolist() for k in "wbc"] == [[0, 1], [1, 2], [1, 2]]
    assert astra.jit(lambda d: d["a.b"] - d["a"]["b"])({"a.b": x, "a": {"b": x * 3}}).tolist() == [-2, -4]
    assert astra.jit(lambda d: {"": d * 2, "a": {"b": d}, "a.b": d + 1})(x)["a.b"].tolist() == [2, 3]
    made = astra.trace(lambda w: {"w": w * 2}, x)
    assert [n for n, _ in made.inputs] == ["w"] and [n for n, _ in made.outputs] == ["result.w"]
    counted = astra.export({"main": astra.entry(lambda params, states, x: ({"n": states["n"] + 1}, {"n": x, "w": params["w"] + x}), x, updates=True)},
                           states={"n": astra.tensor(0)}, params={"w": x})  # fmt: skip
    assert [n for n, _ in counted.outputs] == ["result.n", "result.w"]
    assert [r.tolist() for r in counted.lower().compile()(x).values()] == [[1, 2], [2, 4]]


def test_refusals_of_what_is_traced_have_the_line():
    x, m = astra.tensor([1.0, 2.0, 3.0]), astra.ones((2, 3))
    for f, part in (
        (lambda a: astra.cond(a.sum() > 0, lambda a: a, lambda a: a.sum(), a), "cond"), (lambda a: astra.scan(lambda c, e: (m, e), a.sum(), a), "carry"),
        (lambda a: astra.grad(lambda b: b * 2)(a), "scalar"), (lambda a: astra.vmap(lambda p, q: p + q)(a, m), "vmap"), (lambda a: a[7], "index 7"),
        (lambda a: astra.sum(a, axis=4), "axis 4"), (lambda a: astra.linalg.cholesky(a), "matrices"), (lambda a: "text", "gives a str as 'result'"),
    ):  # fmt: skip
        with pytest.raises((astra.Error, IndexError), match=part) as told:
            astra.jit(f)(x)
        assert f"test_stages.py:{f.__code__.co_firstlineno}" in str(told.value)
    with pytest.raises(KeyError) as own:  # the user's own is as it was
        astra.jit(lambda a: {}["k"])(x)
    assert own.value.args == ("k",)
    with pytest.raises(astra.ArgumentError, match="static and a list, which cannot be hashed"):
        astra.jit(lambda a, k: a, static_argnums=1)(x, [1])
    lowered = astra.trace(lambda a: a * 2, x).lower()
    for dialect in ("mlir", "llvm", "ptx"):
        with pytest.raises(astra.ArgumentError, match="of a GPU"):
            lowered.as_text(dialect)
    with pytest.raises(astra.ArgumentError, match="of CUDA"):
        lowered.as_text("ptx", "hip:gfx942")


def test_refusals_of_stages():
    lowered = astra.trace(lambda x: x * 2, astra.spec((2,))).lower()
    with pytest.raises(astra.ArgumentError, match="no text 'foo'"):
        lowered.as_text("foo")
    with pytest.raises(astra.ArgumentError, match=r"extents 2 and 3 .* are not equal \(test_stages.py:\d+\)$"):
        astra.trace(lambda x, y: x @ y, astra.spec((4, 2)), astra.spec((3, 4)))
    with pytest.raises(astra.ArgumentError, match="no target 'cpu:foo'"):
        lowered.compile("cpu:foo")
    with pytest.raises(astra.ArgumentError, match="does not begin as an Astra bundle"):
        astra._analysis.cost(b"abc", "main", {})
    with pytest.raises(astra.ArgumentError, match="argument 'x' is a set"):
        astra.jit(lambda x: x)({1, 2})
    with pytest.raises(astra.ArgumentError, match="cannot read"):
        astra.from_onnx("/no/such/model.onnx")
    with pytest.raises(astra.DTypeError, match="argument 0, which is differentiated by, is of int64"):
        astra.grad(lambda x: x)(3)
    with pytest.raises(ValueError, match="no field other"):
        astra.tree.dataclass(static="other")(dataclasses.make_dataclass("D", ["x"]))


def test_quantized_weights():
    random = np.random.default_rng(0)
    first, last = (random.standard_normal(s).astype(np.float32) for s in ((64, 128), (128, 8)))
    x = random.standard_normal((5, 64)).astype(np.float32)
    lowered = astra.trace(lambda x: astra.tanh(x @ astra.asarray(first / 8)) @ astra.asarray(last), astra.spec((5, 64))).lower()
    whole = lowered.compile("native")
    plain = whole(x).numpy()
    for formats, activations, most in ((["q8_0"], "float", 0.02), (["int4:32"], "float", 0.2), ([], "dynamic", 0.03)):
        made = lowered.quantize(*formats, activations=activations)
        assert [w.type for w in made.weights] == ["f32[64, 128]", "f32[128, 8]"]
        assert all(w.format and 0 < w.error < 0.1 and w.after < w.before / 3 and w.bytes == (activations == "dynamic") for w in made.weights)
        compiled = made.compile("native")
        found = compiled(x).numpy()
        assert 0 < np.linalg.norm(found - plain) / np.linalg.norm(plain) < most
        assert len(compiled.bundle) < len(whole.bundle)
        astra.verify(compiled, x)
    name = lowered.quantize("q8_0").weights[0].name
    assert [w.format for w in lowered.quantize(f"{name}=float", "q4_0").weights] == ["", "q4_0"]
    with pytest.raises(astra.ArgumentError, match="is not FORMAT or PATTERN=FORMAT"):
        lowered.quantize("q9")
    with pytest.raises(astra.ArgumentError, match="expected float or dynamic"):
        lowered.quantize(activations="static")


def test_products_as_a_matrix_unit_adds_them():
    x = np.random.default_rng(5).standard_normal((7, 40)).astype(np.float32)
    lowered = astra.trace(lambda a: a @ a.T, astra.spec((7, 40))).lower()
    compiled = lowered.with_numerics("device:hopper16").compile("native")
    assert len(astra.verify(compiled, x)) == 64
    assert compiled(x).tobytes() != lowered.compile("native")(x).tobytes()
    assert lowered.with_numerics("strict") is lowered
    with pytest.raises(astra.ArgumentError, match="there is no numeric contract 'sloppy'"):
        lowered.with_numerics("sloppy")
    with pytest.raises(astra.ArgumentError, match="there is no matrix unit 'hopper'; there are hopper16"):
        lowered.with_numerics("device:hopper")


def test_the_numeric_contract_of_what_compiles(tmp_path):
    x = np.random.default_rng(6).standard_normal((7, 40)).astype(np.float32)

    def f(a):
        return (astra.tanh(a @ a.T) @ a).sum()

    plain = astra.jit(f)(x).numpy()
    for contract in ("device:hopper16", "device:hopper16:f16", "device:hopper32-fp8:f8e4m3fn"):
        jitted, gradient = astra.jit(f, numerics=contract), astra.jit(astra.grad(f), numerics=contract)
        lowered = astra.trace(f, astra.spec((7, 40))).lower().with_numerics(contract)
        compiled = lowered.compile("native")
        astra.verify(compiled, x)
        assert jitted(x).numpy().tobytes() == compiled(x).numpy().tobytes() != plain.tobytes()
        assert jitted.lower(x).as_text() == lowered.as_text()
        of_gradient = astra.trace(astra.grad(f), astra.spec((7, 40))).lower().compile("native", numerics=contract)
        astra.verify(of_gradient, x)
        assert gradient(x).numpy().tobytes() == of_gradient(x).numpy().tobytes()
        text = of_gradient._lowered.as_text()
        assert text.count(f'order="{contract.split(":")[1]} ') == text.count(" = contract ") == 5
    (tmp_path / "m.uop").write_text(astra.trace(f, astra.spec((7, 40))).lower().as_text())
    assert astra.compile_file(tmp_path / "m.uop", "native", numerics="device:hopper16")(x).numpy().tobytes() == \
        astra.jit(f, numerics="device:hopper16")(x).numpy().tobytes()  # fmt: skip
    assert astra.astra(f, numerics="device:hopper16")(x).numpy().tobytes() == astra.jit(f, numerics="device:hopper16")(x).numpy().tobytes()
    for make in (lambda c: astra.jit(f, numerics=c), lambda c: lowered.compile("native", numerics=c), lambda c: astra.astra(f, numerics=c)(x)):
        with pytest.raises(astra.ArgumentError, match="there is no matrix unit 'hopper'; there are hopper16"):
            make("device:hopper")
        with pytest.raises(astra.ArgumentError, match="matrix unit amx32 does not take operands of 'f16'"):
            make("device:amx32:f16")
