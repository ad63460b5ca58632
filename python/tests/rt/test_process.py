"""Threads, processes, signals, memory, time."""

import asyncio
import concurrent.futures
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import threading
import time

import astra_rt
import numpy as np
import pytest
from conftest import ROOT

X = np.arange(8, dtype=np.float32).reshape(2, 4)
HEAVY = np.full((512, 512), 1 / 512, np.float32)


def test_the_gil_is_free_while_a_call_runs(load):
    m = load("heavy")
    m(HEAVY)
    turns, done = [], threading.Event()

    def call():
        for _ in range(3):
            m(HEAVY)
        done.set()

    thread = threading.Thread(target=call)
    thread.start()
    while not done.is_set():
        turns.append(time.perf_counter())
        time.sleep(0.001)
    thread.join()
    # Held, it would be had once a call.
    assert len(turns) > 20


def test_threads_share_a_module(load):
    m = load("steps")

    def work(k):
        for _ in range(200):
            assert m(X + k).tobytes() == ((X + k) * np.array([1, 2, 3, 4], np.float32)).tobytes()
            m.train_step(X, 0.0)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert int(m.get_state("count")) == 800


def test_threads_with_sessions_of_their_own(load):
    m = load("steps", threads=2)

    def work(k):
        with m.session() as s:
            for _ in range(100):
                s.train_step(X, float(k))
            return s.get_state("total").tolist()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, [1, 2, 1, 2]))
    assert results[0] == results[2] and results[1] == results[3] != results[0]


def test_number_of_threads_changes_no_bit(load):
    x = np.random.default_rng(1).standard_normal((512, 512), np.float32)
    assert len({load("heavy", threads=n)(x).tobytes() for n in (1, 2, 3)}) == 1


def test_closing_waits_for_a_call(load):
    m = load("heavy")
    s = m.session()
    results = []
    thread = threading.Thread(target=lambda: results.append(s(HEAVY)))
    thread.start()
    time.sleep(0.01)
    s.close()
    thread.join()
    assert len(results) == 1 or s.closed


def test_async_calls(load):
    m = load("steps")

    async def main():
        first = await m.async_call(X)
        steps = await asyncio.gather(*(m.train_step.async_call(X, rate=0.5) for _ in range(10)))
        with pytest.raises(ValueError, match="it must have 4"):
            await m.async_call(X[:, :3])
        with pytest.raises(TypeError, match="misses input"):
            await m.async_call()
        return first, [int(s.seen) for s in steps]

    first, seen = asyncio.run(main())
    assert first.tobytes() == m(X).tobytes() and seen == list(range(1, 11))
    waiting = [m.async_call(X), m.async_call(X[:, :3])]
    done, _ = concurrent.futures.wait([w.future for w in waiting], timeout=60)
    assert len(done) == 2 and waiting[0].future.exception() is None
    assert isinstance(waiting[1].future.exception(), astra_rt.ShapeError)
    future = m.async_call(X)
    assert future.result(10).shape == (2, 4) and future.done() and future.exception() is None
    ends = []
    future.add_done_callback(ends.append)
    assert ends == [future]
    m.close()
    with pytest.raises(astra_rt.ClosedError):
        m.async_call(X).result()


def test_ctrl_c_during_a_call(load):
    m = load("heavy")
    running = threading.Event()

    def interrupt():
        running.wait()
        time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start tests with SIGINT ignored
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            running.set()
            for _ in range(100):
                m(HEAVY)
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert m(HEAVY).shape == (512, 512)


def test_a_forked_process_refuses_and_can_load(bundle, python):
    out = python(
        """
import os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, astra_rt
m = astra_rt.load(sys.argv[1], threads=2)
x = np.ones((2, 4), np.float32)
y = m(x)
pid = os.fork()
if pid == 0:
    for use in (lambda: m(x), lambda: m.state_dict(), lambda: m.train_step(x, 1.0), lambda: m.session()):
        try:
            use()
        except astra_rt.ForkedError as error:
            print("refused", error.status)
    print("still", y.tolist() == [[1, 2, 3, 4]] * 2)
    m.close()
    again = astra_rt.load(sys.argv[1], threads=2)
    print("old", again(y).tolist() == [[1, 4, 9, 16]] * 2)
    print("again", again(x).tolist() == [[1, 2, 3, 4]] * 2, flush=True)
    del m, y, again
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print("parent", m(x).tolist() == y.tolist())
""",
        bundle("steps"),
    )
    assert out.count("refused ASTRA_FORKED") == 4
    assert "still True" in out and "old True" in out and "again True" in out and "parent True" in out


def test_processes_get_modules_by_pickle(bundle, python):
    out = python(
        """
import sys, multiprocessing, numpy as np, astra_rt
def call(m):
    return m(np.ones((1, 4), np.float32)).tolist()
if __name__ == "__main__":
    import pickle, subprocess
    data = pickle.dumps(astra_rt.load(sys.argv[1]))
    child = "import sys, pickle, numpy; print(pickle.load(sys.stdin.buffer)(numpy.ones((1, 4), 'f')).tolist())"
    print(subprocess.run([sys.executable, "-c", child], input=data, stdout=subprocess.PIPE).stdout.decode())
""",
        bundle("steps"),
    )
    assert "[[1.0, 2.0, 3.0, 4.0]]" in out


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_calls_do_not_grow_the_process(load):
    m, big = load("steps"), np.ones((16, 4), np.float32)
    room, loss = np.empty((2, 4), np.float32), np.empty((), np.float32)

    def turn(n):
        for i in range(n):
            m(X, out=room) if i % 2 else m(big).numpy()
            m.train_step(X, 0.0, out={"loss": loss} if i % 2 else None)
            if i % 50 == 0:
                np.from_dlpack(m(x=X))
                m.session().close()
                states = m.state_dict()
                astra_rt.hash([states, m.main(X)])
                m.load_state_dict(states)
                for bad in (big, room.T, None if i else "", X.astype("d"), (room, room), {"z": room}):
                    with pytest.raises((TypeError, ValueError)) if bad is not None else contextlib.nullcontext():
                        m(X, out=bad)
                for wrong in (X[:, :3], None, X.astype("d")):
                    with pytest.raises((TypeError, ValueError)):
                        m(wrong)

    turn(2000)
    before = resident()
    turn(50000)  # 10^5 calls
    assert resident() - before < 1 << 20


def test_loading_does_not_grow_the_process(bundle):
    data = open(bundle("steps"), "rb").read()

    def turn(n):
        for i in range(n):
            m = astra_rt.load(data if i % 2 else bundle("steps"))
            m(X)
            m.async_call(X).result()
            m.close()

    turn(50)
    before = resident()
    turn(300)
    assert resident() - before < 2 << 20


def test_references_are_given_back(load):
    m = load("steps")
    objects = [X, m.main, room := np.empty((2, 4), np.float32), named := {"y": room}]
    m(X), m(x=X)
    before = [sys.getrefcount(o) for o in objects]
    for _ in range(100):
        m(X)
        m(x=X)
        m.train_step(X, 1.0)
        m(X, out=room), m(X, out=named), m(X, out=(room,))
        for wrong in (lambda: m(X, X), lambda: m(X[:, :2]), lambda: m(y=X), lambda: m(room, out=room), lambda: m(X[:1], out=room)):
            with pytest.raises((TypeError, ValueError)):
                wrong()
    del wrong
    assert [sys.getrefcount(o) for o in objects] == before


def test_import_is_quick(python):
    # Time of the processor, which others on the machine do not take.
    program = "import time, numpy; a = time.process_time(); import astra_rt; print(time.process_time() - a)"
    assert min(float(python(program)) for _ in range(3)) < 0.05
    program = "import sys, numpy; before = set(sys.modules); import astra_rt; print(*sorted(set(sys.modules) - before))"
    others = {m.partition(".")[0] for m in python(program).split()} - {"astra_rt"}
    assert others <= {"__future__", "threading"}, others


def test_the_process_ends_with_calls_in_flight(bundle, python):
    python("import sys, astra_rt, numpy; m = astra_rt.load(sys.argv[1], threads=2); x = numpy.ones((512, 512), 'f');"
           "f = [m.async_call(x) for _ in range(3)]", bundle("heavy"))  # fmt: skip


def test_the_wheel_is_a_project_of_its_own(tmp_path):
    """It is configured without the rest of the tree's build: what `pip install ./python/rt` does first."""
    done = subprocess.run(["cmake", "-S", ROOT / "python/rt", "-B", tmp_path, f"-DPython3_EXECUTABLE={sys.executable}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
