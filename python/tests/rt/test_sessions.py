"""States, params, sessions, loading, closing, pickling, tracing."""

import copy
import gc
import json
import os
import pickle
import subprocess
import sys
import threading

import astra_rt
import numpy as np
import pytest
from conftest import BUILD

X = np.arange(8, dtype=np.float32).reshape(2, 4)


def step(m):
    return m.train_step(X, 0.5)


def test_states_are_kept_saved_and_set(load, tmp_path):
    m = load("steps")
    first = m.state_dict()
    assert first["total"].tolist() == [0.5] * 4 and first["count"].item() == 0
    step(m)
    step(m)
    after = m.state_dict()
    assert first["total"].tolist() == [0.5] * 4  # a copy
    wanted = np.float32(0.5) + X.sum(0) * np.float32(0.5) * 2
    assert after["total"].tolist() == wanted.tolist() and int(m.get_state("count")) == 2
    m.reset()
    assert m.get_state("total").tolist() == [0.5] * 4
    m.load_state_dict(after)
    assert int(step(m).seen) == 3
    m.load_state_dict({"count": 41}, strict=False)
    assert int(step(m).seen) == 42
    m.set_state("total", [1, 2, 3, 4])
    assert m.get_state("total").tolist() == [1, 2, 3, 4]
    m.save_states(tmp_path / "s.safetensors")
    other = load("steps")
    other.load_states(tmp_path / "s.safetensors")
    assert other.state_dict()["count"].item() == 42 and other.get_state("total").tolist() == [1, 2, 3, 4]
    assert os.listdir(tmp_path) == ["s.safetensors"]


def test_files_of_states_are_those_of_astra_run(load, bundle, tmp_path):
    m = load("steps")
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "r.npy", np.float32(0.5))
    command = [BUILD / "bin/astra-run", bundle("steps"), "--entry", "train_step", "--input", f"x={tmp_path}/x.npy",
               "--input", f"rate={tmp_path}/r.npy", "--save-states", tmp_path / "theirs.safetensors"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    step(m)
    m.save_states(tmp_path / "ours.safetensors")
    assert (tmp_path / "ours.safetensors").read_bytes() == (tmp_path / "theirs.safetensors").read_bytes()
    m.reset()
    m.load_states(tmp_path / "theirs.safetensors")
    assert m.get_state("count").item() == 1


@pytest.mark.parametrize(
    ("states", "error", "sentence"),
    [
        ({}, LookupError, "missing 'total', 'count'"),
        ({"total": [0.0] * 4, "count": 0, "more": 1}, LookupError, "unknown 'more'"),
        ({"count": 7, "total": [0.0] * 3}, ValueError, r"state total has shape \(3,\); it must be \(4,\)"),
        ({"count": 7, "total": np.zeros(4)}, TypeError, "state total has dtype f64; it must be f32"),
        ({"count": 7, "total": astra_rt.tensor(np.zeros(4))}, TypeError, "state total has dtype f64; it must be f32"),
        ({"total": astra_rt.tensor(np.ones(4, np.float32)), "count": astra_rt.tensor(3, "i32")}, TypeError, "state count has dtype i32; it must be i64"),
        ({"count": 7.5, "total": [0.0] * 4}, TypeError, "state count has dtype float64"),
    ],
)
def test_states_that_do_not_fit_change_nothing(load, states, error, sentence):
    m = load("steps")
    before = {n: t.tobytes() for n, t in m.state_dict().items()}
    with pytest.raises(error, match=sentence):
        m.load_state_dict(states)
    assert {n: t.tobytes() for n, t in m.state_dict().items()} == before


@pytest.mark.parametrize(
    "data",
    [b"", b"1234567", (99).to_bytes(8, "little") + b"{}", (2).to_bytes(8, "little") + b"[]",
     (1 << 63).to_bytes(8, "little"), (2).to_bytes(8, "little") + b"{]",
     *((len(h)).to_bytes(8, "little") + h + b"\0" * 8 for h in (
         b'{"a":1}', b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,16]}}',
         b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}', b'{"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}}',
         b'{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}', b'{"a":{"dtype":"F32","shape":"2","data_offsets":[0,8]}}',
         b'{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}', b"[" * 100000,
         b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
         b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
         b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
         b'{"a":{"dtype":"F32","shape":[true,2],"data_offsets":[0,8]}}', b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"b":1}}'))],
)  # fmt: skip
def test_files_that_are_broken(load, tmp_path, data):
    path = tmp_path / "broken.safetensors"
    path.write_bytes(data)
    with pytest.raises(astra_rt.BundleError, match="no .safetensors file that can be read"):
        load("steps").load_states(path)


def test_states_are_of_one_moment(load):
    m = load("steps")
    done = threading.Event()

    def work():
        while not done.is_set():
            m.train_step(X[:1] * 0 + 1, 1.0)  # adds 1 to each of total, and to count

    m.load_state_dict({"total": [0.0] * 4, "count": 0})
    thread = threading.Thread(target=work)
    thread.start()
    try:
        for k in range(300):
            states = m.state_dict()
            assert states["total"].tolist() == [float(states["count"])] * 4
            if k % 10 == 0:
                m.load_state_dict({"count": 0, "total": np.zeros(4, np.float32)})
    finally:
        done.set()
        thread.join()
    assert m.session().state_dict().keys() == {"total", "count"} and load("affine").state_dict() == {}


def test_sessions_have_states_of_their_own(load):
    m = load("steps")
    s = m.session()
    step(s)
    step(s)
    assert int(step(m).seen) == 1 and int(step(s).seen) == 3
    assert s(X).tobytes() == m(X).tobytes()
    assert "Session 'steps'" in repr(s)
    with pytest.raises(pickle.PicklingError, match="pickle its module"):
        pickle.dumps(s)


def test_dims_of_sessions(load):
    with pytest.raises(ValueError, match=r"load needs dims=.* rows in 1\.\.8, ctx in 4\.\.64"):
        load("cache")
    with pytest.raises(ValueError, match=r"dim ctx is 65; it must be in 4 \.\. 64"):
        load("cache", dims={"rows": 1, "ctx": 65})
    with pytest.raises(LookupError, match="there is no dim 'tcx'"):
        load("cache", dims={"tcx": 65})
    m = load("cache", dims={"rows": 2, "ctx": 6})
    assert float(m(1.0)) == 12 and m.get_state("kv").shape == (2, 6)
    s = m.session(rows=6)  # as many columns as m
    assert float(s(0.5)) == 18 and s.get_state("kv").shape == (6, 6)
    s.load_state_dict({"kv": np.ones((6, 6), np.float32)})
    assert float(s(0.0)) == 36
    with pytest.raises(ValueError, match="state kv has shape"):
        s.load_state_dict({"kv": np.ones((9, 4), np.float32)})
    assert pickle.loads(pickle.dumps(m)).get_state("kv").tolist() == m.get_state("kv").tolist()


def test_params(load):
    m = load("steps")
    s = m.session()
    s.set_param("w", [2, 2, 2, 2])
    assert s(X).tolist() == (X * 2).tolist() and m(X).tolist() == (X * [1, 2, 3, 4]).tolist()
    m.set_param("w", np.full(4, 3, np.float32))
    assert m(X).tolist() == (X * 3).tolist() and m.session()(X).tolist() == (X * 3).tolist()
    with pytest.raises(LookupError, match="there is no param 'v'; the params are 'w'"):
        m.set_param("v", [1])
    with pytest.raises(ValueError, match="it must have 4"):
        m.set_param("w", [1, 2])
    with pytest.raises(pickle.PicklingError, match="params of the module were replaced"):
        pickle.dumps(m)


def test_pickles(load, bundle):
    m = load("steps", threads=2)
    step(m)
    for again in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m), copy.copy(m)):
        assert again.path == bundle("steps") and again.threads == 2
        assert int(step(again).seen) == 2
    assert int(step(m).seen) == 2
    data = open(bundle("steps"), "rb").read()
    raw = astra_rt.load(data)
    step(raw)
    assert int(step(pickle.loads(pickle.dumps(raw))).seen) == 2 and raw.path is None


def test_loading(load, bundle, tmp_path):
    data = open(bundle("steps"), "rb").read()
    wanted = load("steps")(X).tobytes()
    for source in (data, bytearray(data), memoryview(data), bundle("steps"), os.fspath(bundle("steps"))):
        assert astra_rt.load(source)(X).tobytes() == wanted
    odd = tmp_path / os.fsdecode(b"odd \xff name.astra")
    odd.write_bytes(data)
    assert astra_rt.load(odd, verify=True, strict=True, level="x86-64-v3")(X).tobytes() == wanted
    for wrong, error, sentence in (
        (tmp_path / "none.astra", FileNotFoundError, "none.astra"),
        (tmp_path, IsADirectoryError, "is a folder"),
        (b"", astra_rt.BundleError, None),
        (b"nothing", astra_rt.BundleError, None),
        (data[:-1], astra_rt.BundleError, None),
        (data[:5000] + bytes([data[5000] ^ 1]) + data[5001:], astra_rt.BundleError, None),
        (3, TypeError, "load takes a path or the bytes of a bundle, not int"),
        (None, TypeError, "not NoneType"),
    ):
        with pytest.raises(error, match=sentence):
            astra_rt.load(wrong, verify=True)
    for options, error, sentence in (
        ({"threads": 0}, ValueError, r"threads is 0; it must be in 1 \.\. 4096"),
        ({"threads": "2"}, TypeError, "threads must be a number"),
        ({"device": "tpu"}, astra_rt.Error, "tpu"),
        ({"device": "cuda:99"}, astra_rt.Error, None),
        ({"level": "x86-64-v9"}, astra_rt.Error, None),
    ):
        with pytest.raises(error, match=sentence):
            astra_rt.load(data, **options)


def test_a_bundle_is_described(bundle, tmp_path):
    def run(*args):
        return subprocess.run([sys.executable, "-m", "astra_rt", *args], capture_output=True, text=True)

    out = run(bundle("steps")).stdout.split("\n")
    assert out[0].startswith("module steps, astra-num/1 strict, ")
    assert "entry train_step(x: f32[1..16, 4], rate: f32) -> (loss: f32, seen: i64)" in out
    assert {"param w: f32[4]", "state count: i64", "dim n in 1..16 of inputs", "dim k in 1..8 of a call",
            "target cpu:x86-64-v3 runs here"} <= set(out)  # fmt: skip
    (tmp_path / "x").write_bytes(b"nothing")
    for wrong in (tmp_path / "x", tmp_path / "y", tmp_path):
        done = run(str(wrong))
        assert done.returncode == 1 and done.stderr.startswith("astra_rt: ") and "Traceback" not in done.stderr


def test_closing(load):
    m = load("steps")
    entry, kept = m.train_step, m(X)
    with m:
        assert not m.closed
    assert m.closed and "closed" in repr(m)
    for use in (lambda: m(X), lambda: entry(X, 0.5), m.state_dict, m.reset, lambda: pickle.dumps(m), lambda: step(m)):
        with pytest.raises((astra_rt.ClosedError, pickle.PicklingError), match="closed"):
            use()
    m.close()
    assert kept.tolist() == (X * [1, 2, 3, 4]).tolist()
    other = load("steps")
    entry = other.main
    del other
    gc.collect()
    assert entry(X).shape == (2, 4)  # an entry keeps what it needs


def test_traces(load, tmp_path):
    m = load("steps")
    with m.trace() as trace:
        m(X)
        with pytest.raises(astra_rt.BusyError, match="traced already"), m.trace():
            pass
        step(m)
    assert trace and all(e.begin_ns <= e.end_ns and e.name for e in trace)
    assert any(o.startswith("line ") for e in trace for o in e.origins)
    n = len(trace)
    m(X)
    assert len(trace) == n
    trace.save(tmp_path / "trace.json")
    assert len(json.loads((tmp_path / "trace.json").read_text())["traceEvents"]) == n
