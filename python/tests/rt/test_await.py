"""await without a thread: what a call in flight gives, raises and keeps; loops that go, calls that nobody wants."""

import asyncio
import concurrent.futures
import gc
import os
import threading
import time

import astra_rt
import numpy as np
import pytest

X = np.arange(8, dtype=np.float32).reshape(2, 4)


def names():
    return sorted(t.name for t in threading.enumerate())


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_many_calls_have_no_thread(load):
    m = load("steps", threads=3)
    sessions = [m.session() for _ in range(300)]
    want, before, kinds = m(X).tobytes(), names(), set()

    async def main():
        for _ in range(3):
            calls = [s.async_call(X) for s in sessions]
            kinds.update(type(c).__name__ for c in calls)
            assert {y.tobytes() for y in await asyncio.gather(*calls)} == {want}
        return names()

    assert asyncio.run(main()) == before and kinds == {"Started"}


def test_calls_of_one_session_keep_their_order(load):
    m = load("steps", threads=3)

    async def main():
        steps = await asyncio.gather(*(m.train_step.async_call(X, rate=0.5) for _ in range(20)))
        again = [(await m.train_step.async_call(X, rate=0.5)).seen for _ in range(5)]
        first = m.async_call(X)
        return [int(s.seen) for s in steps], [int(s) for s in again], (await first) is (await first)

    seen, again, same = asyncio.run(main())
    assert seen == list(range(1, 21)) and again == list(range(21, 26)) and same


def test_what_goes_wrong_reaches_who_awaits(load):
    m = load("steps", threads=3)

    async def main():
        wrong = m.async_call(X[:, :3])  # begins to fail here, and says so there
        with pytest.raises(astra_rt.ShapeError, match="it must have 4"):
            await wrong
        with pytest.raises(TypeError, match="misses input"):
            await m.async_call()
        assert (await m.async_call(X)).shape == (2, 4)
        one = m.async_call(X)
        both = await asyncio.gather(one, one)  # two may await one
        assert both[0] is both[1]
        m.close()
        with pytest.raises(astra_rt.ClosedError):
            await m.async_call(X)

    asyncio.run(main())


def test_a_run_that_fails(load):
    """A function of Python: it runs on a thread of the device while the loop goes on; what it raises reaches who awaits, and its
    session's states are lost."""
    wrong = []

    def f(x):
        if wrong:
            raise RuntimeError("no such thing")
        return x * 10, len(x)

    astra_rt.register("test.f", f, deterministic=True)
    astra_rt.register("test.half", lambda x, m: (x, m.T))
    try:
        m, x = load("calls", threads=3), np.arange(4, dtype=np.float32)

        async def main():
            assert np.array_equal((await m.async_call(x)).y, 21 * x)
            wrong.append(True)
            call = m.async_call(x)
            for ask in (call, call):
                with pytest.raises(astra_rt.FunctionError, match="no such thing"):
                    await ask
            with pytest.raises(astra_rt.FunctionError, match="no such thing"):
                call.result()
            assert isinstance(call.exception(), astra_rt.FunctionError)
            with pytest.raises(astra_rt.StateLostError):
                await m.async_call(x)

        asyncio.run(main())
    finally:
        astra_rt.unregister("test.f")
        astra_rt.unregister("test.half")


def test_results_without_the_loop(load):
    """The loop's thread may block for a result, and a thread may have it; a callback is called."""
    m, ends = load("steps", threads=3), []

    async def main():
        assert m.async_call(X).result(10).shape == (2, 4)
        call = m.async_call(X)
        assert concurrent.futures.wait([call.future], timeout=10).done and call.done() and call.exception() is None
        call = m.async_call(X)
        call.add_done_callback(ends.append)
        y = await asyncio.get_running_loop().run_in_executor(None, call.result)
        assert y.tobytes() == (await call).tobytes()
        with pytest.raises(concurrent.futures.TimeoutError):
            load("heavy", threads=2).async_call(np.ones((512, 512), np.float32)).result(0)
        return call

    call = asyncio.run(main())
    m.close()
    assert ends == [call]


def test_cancel_takes_back_what_has_not_begun(load):
    heavy, ones = load("heavy", threads=2), np.ones((512, 512), np.float32)
    sessions = [heavy.session() for _ in range(8)]

    async def main():
        calls = [s.async_call(ones) for s in sessions]
        tasks = [asyncio.ensure_future(c) for c in map(waiter, calls)]
        await asyncio.sleep(0)
        for t in tasks:
            t.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(e, asyncio.CancelledError) for e in ended)
        gone = [c._cancelled for c in calls]
        for c, was in zip(calls, gone):
            if was:
                with pytest.raises(asyncio.CancelledError):
                    await c
                with pytest.raises(concurrent.futures.CancelledError):
                    c.result()
            else:
                assert (await c).shape == (512, 512)
        assert (await sessions[-1].async_call(ones)).shape == (512, 512)  # a session that was cancelled goes on
        return gone

    async def waiter(call):
        return await call

    assert any(asyncio.run(main()))


def test_a_loop_that_has_gone(load):
    """A loop that is closed with calls in flight: the calls end, and nothing of the loop stays."""
    heavy, ones = load("heavy", threads=2), np.ones((512, 512), np.float32)

    def turn():
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)

        async def begin():
            tasks = [asyncio.ensure_future(waiter(s.async_call(ones))) for s in sessions]
            await asyncio.sleep(0)
            return tasks

        tasks = loop.run_until_complete(begin())
        for t in tasks:
            t._log_destroy_pending = False
        loop.close()
        asyncio.set_event_loop(None)

    async def waiter(call):
        return await call

    sessions = [heavy.session() for _ in range(3)]
    turn()
    gc.collect()
    before = descriptors()
    for _ in range(5):
        turn()
    for s in sessions:
        assert s(ones).shape == (512, 512)  # behind what was in flight
    gc.collect()
    assert descriptors() <= before

    async def main():
        return await sessions[0].async_call(ones)

    assert asyncio.run(main()).tobytes() == sessions[0](ones).tobytes()


def test_calls_that_nobody_wants_give_everything_back(load):
    import sys

    m = load("steps", threads=3)
    room = np.empty((2, 4), np.float32)
    before = [sys.getrefcount(o) for o in (X, room, m.main)]

    async def main():
        for _ in range(200):
            m.async_call(X)
            m.async_call(X, out=room)
            await asyncio.sleep(0)
        await m.async_call(X)

    asyncio.run(main())
    time.sleep(0.05)
    m(X)  # frees what had ended
    gc.collect()
    after = [sys.getrefcount(o) for o in (X, room, m.main)]
    assert after == before


def test_one_thread_has_a_worker(load):
    """Where a submit would run the call, it has a thread of the session, and the loop goes on."""
    m = load("heavy")

    async def main():
        call, turns = m.async_call(np.ones((512, 512), np.float32)), 0
        assert type(call) is astra_rt.Future
        while not call.done():
            await asyncio.sleep(0)
            turns += 1
        return turns

    assert asyncio.run(main()) > 1
