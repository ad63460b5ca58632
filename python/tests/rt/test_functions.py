"""Functions of Python that bundles call: what they see and give, how they fail, threads, forks."""

import gc
import os
import threading

import astra_rt
import numpy as np
import pytest


@pytest.fixture
def path(bundle):
    return bundle("calls")


@pytest.fixture(autouse=True)
def functions():
    def ten(x):
        return x * 10, len(x)

    def half(x, m):
        return x, m.T

    astra_rt.register("test.f", ten, deterministic=True)
    astra_rt.register("test.half", half)
    yield
    astra_rt.unregister("test.f")
    astra_rt.unregister("test.half")


def ramp(n):
    return np.arange(1, n + 1, dtype=np.float32)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_bundle_calls_it_between_its_kernels(path, threads):
    model = astra_rt.load(path, threads=threads)
    for n in (4, 0, 1000):
        y, count = model(ramp(n))
        assert np.array_equal(y, 21 * ramp(n)) and int(count) == n
    assert float(model.get_state("sum")) == 1004


def test_arrays_are_read_only_views(path):
    seen = []

    def look(x):
        seen.append((x.dtype, x.shape, x.flags.writeable, x.flags.c_contiguous))
        with pytest.raises(ValueError):
            x[0] = 1
        return x, np.int64(1)

    astra_rt.register("test.f", look, deterministic=True)
    astra_rt.load(path)(ramp(3))
    assert seen == [(np.float32, (3,), False, True)]


def test_narrow_types_and_bools(path):
    x = astra_rt.tensor(np.array([0x3F80, 0x4000], np.uint16), "bf16")
    m = np.array([[True, False], [True, True]])
    y, k = astra_rt.load(path).half(x, m)
    assert y.dtype == "bf16" and np.array_equal(y._array().view(np.uint16), [0x3F80, 0x4000])
    assert np.array_equal(k, m.T)


@pytest.mark.parametrize("give, sentence", [
    (lambda x: 1 / 0, "function 'test.f' failed: ZeroDivisionError: division by zero"),
    (lambda x: x, "TypeError: it gives 1 results; the bundle wants 2"),
    (lambda x: (x, 1, 2), "TypeError: it gives 3 results; the bundle wants 2"),
    (lambda x: (x[:1], 1), "ShapeError: result 0 has shape (1,); it must be (3,)"),
    (lambda x: (x.astype(np.float64), 1), "DTypeError: result 0 has dtype f64; it must be f32"),
    (lambda x: (x, "two"), "result 1"),
    (lambda x: (x, None), "DTypeError: result 1 is of type NoneType"),
])  # fmt: skip
def test_what_it_gives_wrongly_is_said(path, give, sentence):
    model = astra_rt.load(path)
    astra_rt.register("test.f", give, deterministic=True)
    with pytest.raises(astra_rt.FunctionError, match=None) as e:
        model(ramp(3))
    assert sentence in str(e.value) and e.value.status == "ASTRA_FUNCTION_FAILED"
    with pytest.raises(astra_rt.StateLostError):
        model(ramp(3))


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[1:], lambda x: x.view(np.int32)])
def test_an_array_that_is_kept_is_refused(path, part):
    kept = []

    def keep(x):
        kept.append(part(x))
        return x, 1

    astra_rt.register("test.f", keep, deterministic=True)
    with pytest.raises(astra_rt.FunctionError, match="it keeps an array that it was given"):
        astra_rt.load(path)(ramp(3))


def test_a_name_stands_for_what_was_registered_last(path):
    model = astra_rt.load(path)
    assert model(ramp(2))[0].tolist() == [21, 42]
    astra_rt.register("test.f", lambda x: (-x, 0), deterministic=True)
    assert model(ramp(2))[0].tolist() == [-1, -2]
    astra_rt.unregister("test.f")
    with pytest.raises(astra_rt.FunctionError, match="it is not registered any more"):
        model(ramp(2))
    with pytest.raises(astra_rt.NotFoundError, match="the bundle calls the function 'test.f', which is not registered"):
        astra_rt.load(path)


def test_declarations(path):
    astra_rt.register("test.f", lambda x: (x, 0))
    with pytest.raises(astra_rt.BundleError, match="as a deterministic one, and it is registered without"):
        astra_rt.load(path)
    astra_rt.register("test.f", lambda x: (x, 0), deterministic=True, effects=True)
    with pytest.raises(astra_rt.BundleError, match="'test.f' is registered with effects"):
        astra_rt.load(path)
    astra_rt.register("test.f", lambda x: (x, 0), deterministic=True)
    with pytest.raises(astra_rt.BundleError, match="'test.half', which is not declared deterministic, and strict is demanded"):
        astra_rt.load(path, strict=True)
    for wrong in (1, ""):
        with pytest.raises(TypeError):
            astra_rt.register(wrong, len)
    with pytest.raises(TypeError, match="cannot be called"):
        astra_rt.register("test.f", 3)


def test_threads_call_it_beside_each_other(path):
    def ten(x):
        assert threading.get_ident()
        return x * 10, len(x)

    astra_rt.register("test.f", ten, deterministic=True)
    model = astra_rt.load(path, threads=2)
    wrong = []

    def work(n):
        session = model.session()
        for _ in range(30):
            if session(ramp(n))[0].tolist() != (21 * ramp(n)).tolist():
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (5, 50, 500)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_forked_process_has_its_functions(path):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(write, str(astra_rt.load(path)(ramp(2))[0].tolist()).encode())
        finally:
            os._exit(0)
    os.close(write)
    assert os.read(read, 100) == b"[21.0, 42.0]"
    os.waitpid(child, 0)


def test_nothing_is_kept(path):
    model = astra_rt.load(path)
    for _ in range(3):
        model(ramp(10))
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        model(ramp(10))
    gc.collect()
    assert len(gc.get_objects()) < before + 20
