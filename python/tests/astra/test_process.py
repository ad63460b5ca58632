"""Threads, processes, signals, memory."""

import concurrent.futures
import os
import pickle
import signal
import threading
import time

import memory
import numpy as np
import pytest

import astra

NIGHTLY = bool(os.environ.get("ASTRA_NIGHTLY"))


def test_threads_trace_and_compute_beside_each_other():
    def work(k):
        made = []
        for i in range(6):
            x = astra.asarray(np.arange(4, dtype=np.float32) + k)
            f = astra.jit(lambda x: astra.grad(lambda y: (astra.sin(y) * (k % 2 + 1)).sum())(x))
            made.append(f(x).tobytes())
            made.append(astra.vmap(lambda r: r * k)(x).tobytes())
        return set(made), made[0], made[1]

    alone = [work(k) for k in range(4)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == alone


def test_a_trace_belongs_to_its_thread():
    inside, go = threading.Event(), threading.Event()
    seen = []

    def slow(x):
        inside.set()
        assert go.wait(60)
        return x + 1

    thread = threading.Thread(target=lambda: seen.append(astra.jit(slow)(astra.ones(2)).tolist()))
    thread.start()
    assert inside.wait(60)
    assert (astra.ones(2) * 3).tolist() == [3, 3]
    go.set()
    thread.join()
    assert seen == [[2, 2]]


def test_one_function_and_one_lazy_tensor_in_many_threads():
    f = astra.jit(lambda x: x * 2 + 1)
    y = astra.exp(astra.asarray(np.zeros(5, np.float32))) + 1
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(r == [3, 3] for r in pool.map(lambda _: f(astra.ones(2)).tolist(), range(200)))
        assert all(r == [2] * 5 for r in pool.map(lambda _: y.tolist(), range(20)))


def test_calls_and_compilations_let_other_threads_run():
    n = 900
    f = astra.jit(lambda x: astra.scan(lambda c, _: (c @ x, None), x, None, length=20)[0])
    x = np.zeros((n, n), np.float32)
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    f(x)
    before = counted[0]
    f(x)
    during = counted[0] - before
    stop.set()
    thread.join()
    assert during > 5


def test_forked_processes_load_what_they_need():
    f = astra.jit(lambda x: x * 7)
    compiled = astra.trace(lambda x: x - 1, astra.spec((2,))).lower().compile("native")
    x = astra.ones(2)
    lazy = x + 1
    assert f(x).tolist() == [7, 7] and compiled(x).tolist() == [0, 0]
    big = (astra.ones((1500, 1000)) * 2).sum()
    assert big.item() == 3e6
    child = os.fork()
    if child == 0:
        code = 1
        try:
            again = (astra.ones((1500, 1000)) * 2).sum()
            good = f(x).tolist() == [7, 7] and compiled(x).tolist() == [0, 0] and lazy.tolist() == [2, 2] and again.item() == 3e6
            code = 0 if good else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert f(x).tolist() == [7, 7]


@pytest.mark.parametrize("what", ["compile", "run"])
def test_control_c(what):
    """The exception comes when what runs has ended: a stage of a compilation, or a call. Then everything works on."""

    def deep(x):
        for i in range(15):
            x = astra.tanh(x @ x + i)
        return x

    x = astra.asarray(np.zeros((400, 400), np.float32))
    f = astra.jit(deep)
    if what == "run":
        f(x)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.05 if what == "run" else 0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            end = time.monotonic() + 60
            while time.monotonic() < end:
                (f if what == "run" else astra.jit(lambda x, k=time.monotonic_ns(): deep(x) + k))(x)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert astra.jit(lambda x: x + 1)(astra.ones(2)).tolist() == [2, 2]


@astra.jit
def double(x):
    return x * 2


def test_jitted_functions_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(double)) is double
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(astra.jit(lambda x: x))


def test_long_and_deep_graphs():
    x = astra.ones(3)
    for _ in range(20_000):  # longer than the stack is deep
        x = x + 1
    assert x.tolist() == [20001] * 3

    def deep(x, n=300):
        return x if n == 0 else astra.cond(x.sum() > n, lambda: x * 1.5, lambda: x + n / 8) if n == 1 else deep(astra.sin(x), n - 1)

    assert astra.grad(lambda x: deep(x).sum())(astra.ones(3)).shape == (3,)


@pytest.mark.parametrize("kind, day, night", [("calls", 20_000, 100_000), ("evaluations", 6_000, 50_000), ("compilations", 60, 10_000)])
def test_memory_does_not_grow(kind, day, night, monkeypatch):
    monkeypatch.setenv("ASTRA_CACHE_DIR", "")
    begin, *rest = memory.figures(kind, night if NIGHTLY else day)
    assert rest[-1] - begin <= memory.ALLOWED, rest
