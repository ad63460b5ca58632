"""The service of examples/python/serve: batches, forms, refusals, limits, its end. A real server answers each test."""

import asyncio
import concurrent.futures
import contextlib
import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import astra_rt
import numpy as np
import onnx
import pytest
from conftest import ROOT

SERVE = ROOT / "examples/python/serve"
sys.path.append(str(SERVE))
from batching import Batcher, Refused  # noqa: E402
from engines import Astra, OnnxRuntime, Unservable  # noqa: E402

RAW, NPY, JSON = "application/octet-stream", "application/x-npy", "application/json"


class Server:
    """A process that serves a model."""

    def __init__(self, model, *options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, SERVE / "app.py", model, f"--port={self.port}", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError):
                assert self.get("/health")[0] == 200
                return
            time.sleep(0.02)
        self.process.kill()
        raise AssertionError(self.process.communicate()[0].decode())

    def ask(self, method, path, body=None, headers=None, connection=None):
        c = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request(method, path, body, headers or {})
        answer = c.getresponse()
        data = answer.read()
        if not connection:
            c.close()
        return answer.status, json.loads(data) if answer.headers["content-type"] == JSON else data

    def get(self, path):
        return self.ask("GET", path)

    def post(self, body, form=RAW, accept="", connection=None):
        return self.ask("POST", "/predict", body, {"content-type": form, "accept": accept}, connection)

    def stop(self):
        """Ends it as the system does; gives what it said."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=60)[0].decode()


@pytest.fixture(scope="module")
def serve(bundle):
    """serve("digits", "--threads=2") is a server; the same for the same words."""
    servers = {}

    def start(model, *options):
        if (model, options) not in servers:
            servers[model, options] = Server(bundle(model) if "." not in model else model, *options)
        return servers[model, options]

    yield start
    for server in servers.values():
        if server.process.poll() is None:
            assert "Traceback" not in server.stop()


def npy(*arrays):
    stream = io.BytesIO()
    for a in arrays:
        np.save(stream, a)
    return stream.getvalue()


IMAGES = np.load(ROOT / "examples/digits/heldout_images.npy")


def test_each_client_gets_the_bytes_that_it_gets_alone(serve, load):
    module, server = load("digits"), serve("digits", "--max-wait-ms=3")
    alone = np.concatenate([module(IMAGES[i : i + 1]).numpy() for i in range(len(IMAGES))])  # never in a batch
    before = server.get("/health")[1]

    def client(number):
        random, connection = np.random.default_rng(number), http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        for _ in range(12):
            rows = int(random.integers(1, 7))
            begin = int(random.integers(0, len(IMAGES) - rows))
            status, body = server.post(IMAGES[begin : begin + rows].tobytes(), connection=connection)
            assert status == 200 and body == alone[begin : begin + rows].tobytes()
        connection.close()

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(client, range(16)))
    after = server.get("/health")[1]
    assert after["batches"] - before["batches"] < 16 * 12 / 2  # they did go together
    assert after["rows"] - before["rows"] > 16 * 12


def test_every_form_says_the_same(serve, load):
    server, x = serve("digits", "--max-wait-ms=3"), IMAGES[:3]
    wanted = load("digits")(x).numpy()
    bodies = {RAW: x.tobytes(), NPY: npy(x), JSON: json.dumps({"inputs": {"image": x.tolist()}})}
    read = {RAW: lambda b: np.frombuffer(b, np.float32).reshape(3, 10), NPY: lambda b: np.load(io.BytesIO(b)),
            JSON: lambda b: np.array(b["outputs"]["probability"], np.float32)}  # fmt: skip
    for form, body in bodies.items():
        for accept, answer in (("", form), ("*/*", form), ("text/html, application/json;q=0.5", JSON), (NPY, NPY), (RAW, RAW)):
            status, given = server.post(body, form, accept)
            assert status == 200 and read[answer](given).tobytes() == wanted.tobytes()
    assert server.post(bodies[JSON], "Application/JSON; charset=utf-8")[0] == 200
    fortran = np.asfortranarray(x)
    assert np.load(io.BytesIO(server.post(npy(fortran), NPY)[1])).tobytes() == wanted.tobytes()


def test_several_inputs_and_outputs(serve):
    server = serve("rows", "--entry=pair")
    x, n = np.arange(24, dtype=np.float32).reshape(3, 8) / 7, np.array([1, -2, 1 << 40])
    status, body = server.post(npy(x, n), NPY)
    stream = io.BytesIO(body)
    y, m = np.load(stream), np.load(stream)
    assert status == 200 and not stream.read() and y.tobytes() == (x + x).tobytes() and m.tolist() == (n * n).tolist()
    status, body = server.post(json.dumps({"inputs": {"n": n.tolist(), "x": x.tolist()}}), JSON)
    assert status == 200 and body["outputs"] == {"y": y.tolist(), "m": m.tolist()}
    assert server.post(npy(x, n), NPY, RAW) == (200, y.tobytes() + m.tobytes())
    for wrong, form, status, sentence in (
        (npy(x, n[:2]), NPY, 422, "input n has 2 rows and input x has 3"),
        (npy(x), NPY, 400, "that of n is none"),
        (npy(n, x), NPY, 422, "input x has the element type <i8"),
        (x.tobytes(), RAW, 415, "raw bytes say one input"),
        (json.dumps({"inputs": {"n": [0.5], "x": x[:1].tolist()}}), JSON, 422, "input n: the tensor has dtype float64"),
    ):  # fmt: skip
        answer = server.post(wrong, form)
        assert answer[0] == status and sentence in answer[1]["error"], answer


def test_what_it_says_of_itself(serve):
    about = serve("digits", "--max-wait-ms=3").get("/metadata")[1]
    assert about["inputs"] == [{"name": "image", "dtype": "f32", "shape": [[1, 64], 1, 8, 8]}]
    assert about["outputs"] == [{"name": "probability", "dtype": "f32", "shape": [[1, 64], 10]}]
    assert about["batch"] == [1, 64] and about["target"] == "cpu:x86-64-v3" and about["contract"] == "astra-num/1"
    assert about["formats"] == [JSON, NPY, RAW]


ONE = IMAGES[:1]
HEAD = b"\x93NUMPY\1\0"


def header(text):
    data = text.encode() + b"\n"
    return HEAD + len(data).to_bytes(2, "little") + data


@pytest.mark.parametrize(
    ("body", "form", "status", "sentence"),
    [
        (b"", "", 415, "the content type is ''; it must be one of application/json, application/x-npy, application/octet-stream"),
        (b"", "text/plain", 415, "the content type is 'text/plain'"),
        (b"", RAW, 422, "axis 0 of input image has 0 elements; it must have 1 to 64"),
        (b"abc", RAW, 422, "the body has 3 bytes; a row of input image has 256"),
        (ONE.tobytes() * 65, RAW, 422, "axis 0 of input image has 65 elements"),
        (b"{", JSON, 400, "no JSON of the form"),
        (b"\xff\xfe", JSON, 400, "no JSON of the form"),
        (b"[" * 100000, JSON, 400, "no JSON of the form"),
        (b'{"inputs": {"image": [NaN]}}', JSON, 400, "NaN is no number of JSON"),
        (b"[]", JSON, 422, 'must be an object with the keys image'),
        (b'{"inputs": {"image": [], "more": []}}', JSON, 422, "must be an object with the keys image"),
        (b'{"inputs": {"image": 3}}', JSON, 422, "input image must be a list of rows"),
        (b'{"inputs": {"image": ["a"]}}', JSON, 422, "input image: "),
        (b'{"inputs": {"image": [[1], [1, 2]]}}', JSON, 422, "input image: "),
        (b'{"inputs": {"image": [1e99]}}', JSON, 422, "input image: the tensor has numbers outside of f32"),
        (b'{"inputs": {"image": [[1, 2]]}}', JSON, 422, "input image has 2 axes; it must have 4"),
        (b"", NPY, 400, "that of image is none"),
        (b"PK\3\4", NPY, 400, "that of image is none"),
        (npy(ONE)[:-1], NPY, 400, "ends early: 256 bytes should follow"),
        (npy(ONE) + b"x", NPY, 400, "1 bytes follow the last array"),
        (npy(ONE.astype("d")), NPY, 422, "input image has the element type <f8; it must be f32"),
        (npy(ONE.astype(">f4")), NPY, 422, "input image has the element type >f4; it must be f32"),
        (npy(ONE[:, :, :7]), NPY, 422, "axis 2 of input image has 7 elements; it must have 8"),
        (npy(np.array(["a"])), NPY, 422, "must be an array of numbers"),
        (header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") + b"cos\nsystem\n", NPY, 422, "must be an array of numbers"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1024)}"), NPY, 400, "ends early"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 8)}"), NPY, 422, "must be an array of numbers"),
        (header("(" * 3000), NPY, 400, "that of image is none"),
        (header("__import__('os').getpid()"), NPY, 400, "that of image is none"),
    ],
)  # fmt: skip
def test_refusals(serve, body, form, status, sentence):
    server = serve("digits", "--max-wait-ms=3")
    answer = server.post(body, form)
    assert answer[0] == status and sentence in answer[1]["error"], answer
    assert server.post(ONE.tobytes())[0] == 200


def test_paths_and_methods_and_numbers_that_json_lacks(serve, load):
    server = serve("steps", "--max-queue=32", "--max-body-mib=0.001", "--max-wait-ms=0")
    assert server.get("/nothing") == (404, {"error": "GET /nothing: Not Found"})
    assert server.get("/predict") == (405, {"error": "GET /predict: Method Not Allowed"})
    x = np.array([[np.inf, np.nan, -1, 0]], np.float32)
    assert server.post(x.tobytes()) == (200, load("steps")(x).tobytes())
    assert server.post(x.tobytes(), RAW, JSON) == (406, {"error": "an output has a NaN or an infinity, which JSON lacks; ask for it with Accept: application/x-npy"})


def test_bodies_are_bounded(serve):
    server = serve("steps", "--max-queue=32", "--max-body-mib=0.001", "--max-wait-ms=0")
    assert server.post(bytes(1049)) == (413, {"error": "the body has more than 1048 bytes"})
    assert server.post(iter([bytes(1000)] * 2)) == (413, {"error": "the body has more than 1048 bytes"})  # chunks: no length
    assert server.post(bytes(16 * 16))[0] == 200


def test_it_ends_when_its_calls_have(bundle, load):
    server = Server(bundle("rows"), "--max-wait-ms=3000")
    x = np.arange(8, dtype=np.float32).reshape(1, 8)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(server.post, (x + i).tobytes()) for i in range(3)]
        while server.get("/health")[1]["waiting"] < 3 and not any(a.done() for a in answers):
            time.sleep(0.01)
        begin = time.monotonic()
        said = server.stop()
        for i, answer in enumerate(answers):
            assert answer.result(60) == (200, load("rows")(x + i).tobytes())
        assert time.monotonic() - begin < 30 and "Traceback" not in said
    with pytest.raises(OSError):
        server.get("/health")


def test_several_processes(serve, load):
    server = serve("digits", "--workers=2")
    wanted = load("digits")(ONE).tobytes()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: server.post(ONE.tobytes()), range(64)))
    assert set(answers) == {(200, wanted)}
    with open(f"/proc/{server.process.pid}/task/{server.process.pid}/children") as file:
        assert len(file.read().split()) >= 2


def test_onnx_runtime_behind_the_same_service(serve, load):
    server = serve(str(ROOT / "examples/digits/digits.onnx"), "--engine=onnxruntime")
    status, body = server.post(npy(IMAGES[:5]), NPY)
    assert status == 200
    np.testing.assert_allclose(np.load(io.BytesIO(body)), load("digits")(IMAGES[:5]).numpy(), rtol=1e-4, atol=1e-6)  # another framework
    assert server.get("/metadata")[1]["engine"].startswith("onnxruntime ")


def test_what_cannot_be_served(bundle, tmp_path):
    number = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [])
    made = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["x"], ["y"])], "scalar", [number], [made])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), tmp_path / "scalar.onnx")
    with pytest.raises(Unservable, match="axis 0 of x: f32 is not the batch"):
        OnnxRuntime(str(tmp_path / "scalar.onnx"), "main", 1, 0)
    for name, entry, sentence in (
        ("steps", "train_step", r"train_step keeps states \(total, count\), which clients would share"),
        ("steps", "first", r"axis 0 of x: f32\[8\] is not the batch"),
        ("compact", "main", "axis 0 of kept: .* is not the batch|axis 0 of sum: .* is not the batch"),
        ("types", "main", "k: bf16.* is of an element type that is not served|axis 0 of a: .* is not the batch"),
        ("equations", "init", "the entry has no inputs, or no outputs|keeps states"),
    ):
        with pytest.raises(Unservable, match=sentence):
            Astra(bundle(name), entry, 1, 0)
    command = [sys.executable, SERVE / "app.py", bundle("steps"), "--entry=none"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "there is no entry 'none'" in done.stderr and "Traceback" not in done.stderr


# The queue alone.


class Engine:
    """Doubles; keeps what it was called with."""

    def __init__(self):
        self.calls, self.go = [], threading.Event()
        self.go.set()

    def __call__(self, arrays):
        self.go.wait(60)
        self.calls.append([a.shape for a in arrays])
        if any((a < 0).any() for a in arrays):
            raise ValueError("negative")
        return [a * 2 for a in arrays]


def rows(n, width=2, value=1):
    return [np.full((n, width), value, np.float32)]


def test_a_full_batch_does_not_wait_and_others_do():
    async def main():
        engine = Engine()
        patient, batcher = Batcher(engine, most=4, wait=1000, room=100), Batcher(engine, most=4, wait=0.2, room=100)
        results = await asyncio.wait_for(asyncio.gather(*(patient.submit(rows(1, value=i)) for i in range(4))), 60)
        assert engine.calls == [[(4, 2)]]
        assert [r[0].tolist() for r in results] == [[[2 * i] * 2] for i in range(4)]
        begin = time.monotonic()
        await batcher.submit(rows(3))
        assert time.monotonic() - begin >= 0.19 and engine.calls[1:] == [[(3, 2)]]
        await patient.close()
        await batcher.close()

    asyncio.run(main())


def test_what_comes_while_a_batch_runs_goes_together_by_shape():
    async def main():
        engine = Engine()
        batcher = Batcher(engine, most=4, wait=0, room=100)
        engine.go.clear()
        sizes = [(1, 2), (2, 2), (1, 3), (2, 2), (1, 2), (1, 3)]
        tasks = [asyncio.create_task(batcher.submit(rows(*size, value=i))) for i, size in enumerate(sizes)]
        await asyncio.sleep(0.05)
        engine.go.set()
        results = await asyncio.gather(*tasks)
        assert [r[0].shape for r in results] == sizes and [r[0].flat[0] for r in results] == [0, 2, 4, 6, 8, 10]
        # The first went alone; then 2 + 2 rows of width 2 fill a batch, the others of width 3 are next, and the rest.
        assert engine.calls == [[(1, 2)], [(4, 2)], [(2, 3)], [(1, 2)]]
        assert (batcher.batches, batcher.rows) == (4, 8)
        await batcher.close()

    asyncio.run(main())


def test_an_error_is_of_the_request_that_made_it():
    async def main():
        batcher = Batcher(Engine(), most=8, wait=0.01, room=100)
        good, bad, also = await asyncio.gather(*(batcher.submit(rows(1, value=v)) for v in (1, -1, 3)), return_exceptions=True)
        assert good[0].tolist() == [[2, 2]] and also[0].tolist() == [[6, 6]] and isinstance(bad, ValueError)
        await batcher.close()

    asyncio.run(main())


def test_room_clients_that_go_and_the_end():
    async def main():
        engine = Engine()
        batcher = Batcher(engine, most=2, wait=0, room=4)
        engine.go.clear()
        tasks = [asyncio.create_task(batcher.submit(rows(2))) for _ in range(3)]
        await asyncio.sleep(0.05)
        with pytest.raises(Refused, match="4 rows wait already and there is room for 4; try again later"):
            await batcher.submit(rows(1))
        tasks[1].cancel()
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="shutting down"):
            await batcher.submit(rows(1))
        engine.go.set()
        await closing
        assert (await tasks[2])[0].shape == (2, 2) and tasks[1].cancelled() and len(engine.calls) == 2

    asyncio.run(main())
