"""What is kept on the disk: whole bundles, safe with several processes; frozen."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import astra
from astra import _cache

PROGRAM = textwrap.dedent("""
    import sys, numpy as np, astra
    from astra import _cache
    f = astra.jit(lambda x: astra.sin(x) * 3 + {number})
    print(f(np.ones(3, np.float32)).tobytes().hex(), _cache.compiled)
""")


def run(folder, number=1, **more):
    env = {**os.environ, "ASTRA_CACHE_DIR": str(folder), **more}
    return subprocess.Popen([sys.executable, "-c", PROGRAM.format(number=number)], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    value, compiled = out.split()
    return value, int(compiled)


def test_a_fresh_process_does_not_compile_again(tmp_path):
    several = [ended(p) for p in [run(tmp_path) for _ in range(2)]]  # at once
    assert len({value for value, _ in several}) == 1
    kept = [p for p in os.listdir(tmp_path) if p.endswith(".bundle")]
    assert len(kept) == 1 and not [p for p in os.listdir(tmp_path) if p.endswith(".tmp")]
    assert ended(run(tmp_path, ASTRA_FROZEN="1")) == (several[0][0], 0)  # what is kept may be used
    # A damaged file is not used, and is written again.
    path = tmp_path / kept[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert ended(run(tmp_path)) == (several[0][0], 1)
    assert ended(run(tmp_path)) == (several[0][0], 0)


def small(number):
    return astra.trace(lambda x: x * number, astra.spec((2,))).lower()


def test_the_least_used_go_first(tmp_path, monkeypatch):
    monkeypatch.setenv("ASTRA_CACHE_DIR", str(tmp_path))
    size = len(small(1.0).compile("native").bundle) + 32
    monkeypatch.setenv("ASTRA_CACHE_SIZE", str(3 * size + size // 2))
    bundles = lambda: {p.name: p for p in tmp_path.glob("*.bundle")}  # noqa: E731
    first = bundles()
    for i in range(2, 4):
        small(float(i)).compile("native")
    for i, p in enumerate(sorted(bundles().values(), key=os.path.getmtime)):
        os.utime(p, (1000 + i, 1000 + i))
    before = _cache.compiled
    small(1.0).compile("native")  # used again: the newest now
    assert _cache.compiled == before
    small(4.0).compile("native")
    assert len(bundles()) == 3 and set(first) <= set(bundles())


def test_frozen(tmp_path, monkeypatch):
    monkeypatch.setenv("ASTRA_CACHE_DIR", str(tmp_path))
    x = astra.ones(3)
    with pytest.raises(astra.FrozenError, match="'frozen_one'.*test_cache.py"):
        astra.jit(_named("frozen_one"), frozen=True)(x)
    monkeypatch.setenv("ASTRA_FROZEN", "1")
    with pytest.raises(astra.FrozenError):
        astra.jit(_named("other"))(x)
    with pytest.raises(astra.FrozenError):
        small(9.0).compile("native")
    assert (x + 1).tolist() == [2, 2, 2]  # the evaluator compiles nothing
    big = astra.ones((2000, 1000))
    with pytest.raises(astra.FrozenError, match="a graph of tensors"):
        (astra.exp(big) * 3).sum().tolist()
    monkeypatch.setenv("ASTRA_FROZEN", "0")
    astra.jit(_named("third"))(x)


def _named(name):
    def f(x):
        return x + 5

    f.__name__ = name
    return f


def test_without_a_folder_and_with_one_that_cannot_be_written_to(tmp_path, monkeypatch):
    monkeypatch.setenv("ASTRA_CACHE_DIR", "")
    assert small(2.0).compile("native")(np.ones(2, np.float32)).tolist() == [2, 2]
    assert _cache.folder() == ""
    monkeypatch.delenv("ASTRA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert _cache.folder() == str(tmp_path / "cache" / "astra")


def test_the_line_of_progress(monkeypatch):
    class Terminal:
        text = ""

        def isatty(self):
            return True

        def write(self, s):
            self.text += s

        def flush(self):
            pass

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    progress = _cache._Progress("'f'")
    progress("early")
    progress.begun -= 2
    progress("schedule")
    progress.clear()
    assert "early" not in screen.text and "astra: compiling 'f': schedule" in screen.text and screen.text.endswith("\r\x1b[K")
