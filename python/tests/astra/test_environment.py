"""What compiled functions read and change beside their arguments: a new value is seen, a change is refused and put back."""

import collections
import contextvars
import random
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import astra

X = np.ones(3, np.float32)
counter, log, scale, table, pair = 0, [], 2.0, {"a": 1.0}, (1.0, 2.0)
weight, array, strided = astra.full((3,), 3.0), np.ones(3, np.float32), np.arange(6, dtype=np.float32)[::2]
settings, seen, queue = SimpleNamespace(factor=4.0), {1}, collections.deque()


class Rates:
    rate = 5.0


class Holder:
    __slots__ = ("slot", "__dict__")
    shift = 2.0

    def __init__(self):
        self.slot, self.calls, self.weight, self.inner = 1.0, 0, astra.full((3,), 2.0), [1.0, {"deep": 2.0}]

    def read(self, x):
        return x * self.weight + self.slot + self.shift + self.helped + self.inner[1]["deep"]

    @property
    def helped(self):
        return helper(0.0)

    def count(self, x):
        self.calls += 1
        return x


def helper(x):
    return x + settings.factor


def test_another_value_from_outside_is_seen():
    global scale, weight, array, table, pair

    @astra.jit
    def f(x):
        return x * scale + weight + array + strided + helper(0.0) + table["a"] + Rates.rate + pair[1]

    def eager():
        return (X * scale + weight.numpy() + array + strided + settings.factor + table["a"] + Rates.rate + pair[1]).tolist()

    def check(traces):
        assert f(X).tolist() == eager() and f.traces == traces
        assert f(X).tolist() == eager() and f.traces == traces  # by the way of calls that were made before

    check(1)
    scale = 3.0
    check(2)
    weight = astra.full((3,), 30.0)  # a tensor like the one before: nothing is traced
    check(2)
    weight = astra.full((3,), 300.0)
    check(2)
    weight = astra.full((1,), 2.0)
    check(3)
    array[0] = 10.0  # the program reads this memory
    check(3)
    strided[1] = 10.0
    check(4)
    array = np.full(3, 7.0, np.float32)
    check(5)
    settings.factor = 40.0
    check(6)
    table["a"] = 100.0
    check(7)
    Rates.rate = 500.0
    check(8)
    pair = (1.0, 2.0)
    check(8)
    scale = float("3.0")
    check(8)


def test_attributes_of_objects_are_seen():
    holder = Holder()
    f = astra.jit(holder.read)

    def check(traces):
        assert f(X).tolist() == holder.read(astra.asarray(X)).tolist() and f.traces == traces

    check(1)
    holder.weight = astra.full((3,), 7.0)
    check(1)
    for n, change in enumerate((lambda: setattr(holder, "slot", 9.0), lambda: setattr(Holder, "shift", 3.0), lambda: setattr(holder, "shift", 4.0),
                                lambda: holder.inner[1].update(deep=5.0), lambda: setattr(settings, "factor", 6.0))):  # fmt: skip
        change()
        check(n + 2)
    Holder.shift = 2.0

    given = Holder()
    g = astra.jit(lambda h, x: x * h.slot, static_argnums=0)
    assert g(given, X).tolist() == [1, 1, 1]
    given.slot = 5.0
    assert g(given, X).tolist() == [5, 5, 5]


def test_layers_and_transforms():
    global scale
    scale = 2.0
    net = astra.nn.Linear(3, 2)
    f = astra.jit(lambda x: net(x))
    assert f(X).tobytes() == net(X).tobytes()
    net.weight = astra.ones((2, 3))
    assert f(X).tobytes() == net(X).tobytes() and f.traces == 1
    g = astra.jit(astra.vmap(astra.grad(lambda x: x * x * scale)))
    assert g(X).tolist() == [4, 4, 4]
    scale = 5.0
    assert g(X).tolist() == [10, 10, 10]

    def closed(n):
        def inner(x):
            return x * n

        def put(to):
            nonlocal n
            n = to

        return astra.jit(inner), put

    h, put = closed(2.0)
    assert h(X).tolist() == [2, 2, 2]
    put(3.0)
    assert h(X).tolist() == [3, 3, 3]


def one_global(x):
    global counter
    counter += 1
    return x


def to_print(x):
    print("x is", x)
    return x


def stored(x):
    array[0] = 5.0
    return x


def defaulted(x, kept=[]):  # noqa: B006
    kept.append(x)
    return x


HOLDER = Holder()
EFFECTS = {
    "a global": (one_global, r"'one_global' changes 'counter' \(test_environment.py:\d+\)"),
    "a list": (lambda x: log.append(x) or x, "changes 'log'"),
    "a dict": (lambda x: table.update(b=x) or x, r"changes 'table\['b'\]'"),
    "an item": (lambda x: table.__setitem__("a", 3.0) or x, r"changes 'table\['a'\]'"),
    "a set": (lambda x: seen.add(2) or x, "changes 'seen'"),
    "a deque": (lambda x: queue.append(2) or x, "changes 'queue'"),
    "an attribute": (lambda x: setattr(settings, "factor", x) or x, "changes 'settings.factor'"),
    "an attribute that was not there": (lambda x: setattr(settings, "other", x) or x, "changes 'settings.other'"),
    "a method": (HOLDER.count, "changes '.*calls' .test_environment.py"),
    "an array": (stored, "changes 'array'"),
    "a default": (defaulted, r"changes 'a default of defaulted\(\)'"),
    "print": (to_print, r"'to_print' prints \(test_environment.py:\d+\)"),
    "random": (lambda x: x * random.random(), "random numbers of Python's or NumPy's"),
    "numpy.random": (lambda x: x * np.random.rand(), "random numbers of Python's or NumPy's"),
    "in a transform": (astra.grad(lambda x: log.append(1) or x.sum()), "changes 'log'"),
    "in a body": (lambda x: astra.scan(lambda c, r: (log.append(1) or c + r, None), 0.0, x)[0], "changes 'log'"),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_what_a_function_changes_is_refused_and_put_back(name):
    f, sentence = EFFECTS[name]
    before = (counter, list(log), dict(table), set(seen), list(queue), dict(vars(settings)), HOLDER.calls, array.tobytes(), list(defaulted.__defaults__[0]))
    state = random.getstate()
    for way in (astra.jit(f), lambda x: astra.trace(f, x)):
        with pytest.raises(astra.TraceError, match=sentence):
            way(X)
    after = (counter, list(log), dict(table), set(seen), list(queue), dict(vars(settings)), HOLDER.calls, array.tobytes(), list(defaulted.__defaults__[0]))
    assert before == after and random.getstate() == state


def test_a_list_that_is_given_and_changed_is_refused():
    with pytest.raises(astra.TraceError, match="changes a list or dict that it is given"):
        astra.jit(lambda kept, x: kept.append(x) or x)([], X)
    with pytest.raises(astra.TraceError, match="changes a list or dict that it is given"):
        astra.jit(lambda p: p["a"].update(b=1) or p["a"]["b"])({"a": {"b": X}})


def test_prints_of_others_and_of_untraced_code_go_through(capsys):
    def loud(x):
        thread = threading.Thread(target=lambda: print("of another thread"))
        thread.start()
        thread.join()
        return x

    astra.jit(loud)(X)
    astra.grad(lambda x: print("not compiled") or x.sum())(X)
    print("after")
    assert capsys.readouterr().out == "of another thread\nnot compiled\nafter\n"


def test_many_values_from_outside_are_warned_of():
    global scale
    f = astra.jit(lambda x: x * scale)
    with pytest.warns(UserWarning, match="more than 8 values of 'scale'.*which it reads from outside"):
        for i in range(10):
            scale = float(i)
            assert f(X).tolist() == [i] * 3


def test_what_other_threads_write_stays():
    seen, numbers, stop = {}, [], threading.Event()

    def write():
        while not stop.is_set():
            seen[len(seen)] = 1
            numbers.append(random.random())
            time.sleep(0.0005)

    def model(a):
        for i in range(60):
            a = astra.tanh(a @ a + i)
        return a.sum() + (0.0 if seen is None else 1.0)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        before = len(seen)
        astra.jit(model)(np.ones((4, 4), np.float32))
    finally:
        stop.set()
        thread.join()
    assert len(seen) == len(numbers) > before and sorted(seen) == list(range(len(seen)))


def test_random_generators_and_iterators_from_outside():
    x, ones, draws, kept = astra.ones(2), iter([1.0, 2.0, 3.0]), np.random.default_rng(0), random.Random(1)
    for f, what in ((lambda a: a + next(ones), "ones"), (lambda a: a + draws.random(), "draws"), (lambda a: a + kept.random(), "kept")):
        with pytest.raises(astra.TraceError, match=f"changes '{what}'"):
            astra.jit(f)(x)

    def counted(a):
        counted.calls = getattr(counted, "calls", 0) + 1
        return a

    counted.calls = 0
    with pytest.raises(astra.TraceError, match="counted.calls"):
        astra.jit(counted)(x)
    assert counted.calls == 0
    scale = contextvars.ContextVar("scale", default=2.0)
    scaled = astra.jit(lambda a: a * scale.get())
    assert scaled(x).tolist() == [2, 2]
    scale.set(3.0)
    assert scaled(x).tolist() == [3, 3]


def test_what_was_changed_before_an_exception_is_put_back():
    log = []

    def fails(a):
        log.append(1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        astra.jit(fails)(astra.ones(2))
    assert log == []
