#!/usr/bin/env python3
"""Microseconds from the end of a call to the coroutine that awaits it.

usage: PYTHONPATH=build/python build/venv/bin/python bench/await.py [--calls N]
Takes:    build/bin/astra-compile, the module astra_rt.
Gives:    medians and 90th percentiles: from the moment in which the thread that ends the call has marked it (an astra_ready_fn) to the
          resumed coroutine; of the whole call by `await`; of the same call by itself; and what the loop itself takes to resume a
          coroutine for a byte that another thread writes to a descriptor, beside which the first is to be seen.
Keeps:    calls that take about 50 us on a device of two threads, so that each has ended after its coroutine waits.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import astra_rt
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
MODULE = """module @await {
  entry @main(%x : f32[96, 96]) -> (%y : f32[96, 96]) {
    %a = contract %x[i, k], %x[k, j] -> [i, j] sum [k]
    %b = contract %a[i, k], %x[k, j] -> [i, j] sum [k]
    %y = contract %b[i, k], %x[k, j] -> [i, j] sum [k]
  }
}
"""


def told(what, times):
    times = sorted(times)
    print(f"{what:44} {statistics.median(times):8.1f} {times[len(times) * 9 // 10]:8.1f}")


async def awaited(model, x, calls):
    ends, whole = [], []
    for i in range(calls + 50):
        begin = time.monotonic_ns()
        call = model.async_call(x)
        pending = call._pending
        await call
        now = time.monotonic_ns()
        if i >= 50:
            ends.append((now - pending.ended_at) / 1000)
            whole.append((now - begin) / 1000)
    return ends, whole


async def loop_alone(calls):
    loop, times, fd, asked = asyncio.get_running_loop(), [], os.eventfd(0, os.EFD_NONBLOCK), threading.Semaphore(0)
    waiting = []

    def write():
        for _ in range(calls):
            asked.acquire()
            time.sleep(5e-5)
            waiting.append(time.monotonic_ns())
            os.eventfd_write(fd, 1)

    def wake():
        os.eventfd_read(fd)
        future.set_result(None)

    thread = threading.Thread(target=write)
    thread.start()
    loop.add_reader(fd, wake)
    for _ in range(calls):
        future = loop.create_future()
        asked.release()
        await future
        times.append((time.monotonic_ns() - waiting[-1]) / 1000)
    thread.join()
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=5000)
    calls = parser.parse_args().calls
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "m.uop").write_text(MODULE)
        subprocess.run([ROOT / "build/bin/astra-compile", "m.uop", "-o", "m.astra", "--target=native", "--quiet"], cwd=folder, check=True)
        model = astra_rt.load(f"{folder}/m.astra", threads=2)
    x = np.eye(96, dtype=np.float32)
    print(f"{'us':44} {'median':>8} {'90 %':>8}")
    ends, whole = asyncio.run(awaited(model, x, calls))
    told("the end of a call to the resumed coroutine", ends)
    told("a call by await", whole)
    alone = []
    for _ in range(calls):
        begin = time.monotonic_ns()
        model(x)
        alone.append((time.monotonic_ns() - begin) / 1000)
    told("the same call, waited for", alone)
    told("a descriptor to a resumed coroutine, asyncio", asyncio.run(loop_alone(calls)))


if __name__ == "__main__":
    main()
