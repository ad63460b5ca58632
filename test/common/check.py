"""What verdicts.py and watch.py promise, and what scripts/times.py reads: a verdict that were found too often would hide a failure.

Gives:    a line for each test and "N passed, N failed"; exit code 1 if one fails.

    python3 test/common/check.py
"""

import os
import stat
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "scripts")]
import times  # noqa: E402
import verdicts  # noqa: E402


def program(folder, text="exit 0", runtime="one"):
    """A program as in a build folder: the runtime's library lies in lib, beside its bin."""
    for name in ("bin", "lib"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "lib/libastra_rt.so").write_text(runtime)
    path = folder / "bin/run"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def key(folder, *, text="exit 0", runtime="one", bundle="b", data="d", second="e", also=b"want", flag="--threads=2"):
    """Of one command, in a folder of its own."""
    run = program(folder, text, runtime)
    for name, content in (("m.astra", bundle), ("x.npy", data), ("y.npy", second)):
        (folder / name).write_text(content)
    words = [run, flag, folder / "m.astra", f"--input=x={folder / 'x.npy'}", f"--data=x={folder / 'x.npy'},y={folder / 'y.npy'}",
             f"--output=y={folder / 'out.npy'}"]  # fmt: skip
    return verdicts.key(words, also=[also], written=[folder / "out.npy"])


def everything_counts():
    changes = [{"text": "exit 1"}, {"runtime": "two"}, {"bundle": "c"}, {"data": "c"}, {"second": "c"}, {"also": b"wont"}, {"flag": "--threads=3"}]
    with tempfile.TemporaryDirectory() as one:
        names = [key(Path(one) / str(i), **change) for i, change in enumerate([{}, *changes])]
    assert len(set(names)) == len(names), names


def folders_do_not():
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        (Path(other) / "out.npy").write_text("of a run before, which the command writes anew")
        assert key(Path(one)) == key(Path(other))


def changes_in_place():
    """A file that was hashed before and has other bytes of the same number now."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_text("one")
        first = verdicts.key(["cat", path])
        path.write_text("two")
        os.utime(path, ns=(1, 1))
        assert verdicts.key(["cat", path]) != first


def only_what_passed():
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "s"
        for text, code in (("exit 3", 3), ("exit 0", 0)):
            script.write_text(text)
            counted = Path(folder) / "count"
            for _ in range(2):
                assert verdicts.run_once([], ["sh", "-c", f". {script}", str(script)]) == code
        assert verdicts.Verdicts().find(verdicts.key(["sh", "-c", f". {script}", str(script)])) is not None
        script.write_text("exit 3")
        assert verdicts.run_once([], ["sh", "-c", f". {script}", str(script)]) == 3, counted


def damaged():
    found = verdicts.Verdicts()
    found.passed("ab12", "a note\nof two lines")
    assert found.find("ab12") == "a note\nof two lines"
    place = verdicts.folder() / "verdicts/ab/ab12"
    place.write_bytes(place.read_bytes()[:-1])
    assert found.find("ab12") is None
    found.passed("ab12", "a note")
    (place.parent / "ab13").write_bytes(place.read_bytes())
    assert found.find("ab13") is None, "another's verdict"
    place.write_bytes(b"\xff\xfe")
    assert found.find("ab12") is None
    assert (found.known, found.run) == (1, 3)


def fresh():
    command = "import sys; sys.path.insert(0, sys.argv[1]); import verdicts; v = verdicts.Verdicts(); v.passed('cd34'); print(v.find('cd34'), verdicts.compile_flags() == [])"
    for environment, said in (({}, " False"), ({"ASTRA_TEST_FRESH": "1"}, "None True")):
        done = subprocess.run([sys.executable, "-c", command, str(HERE)], env={**os.environ, **environment}, capture_output=True, text=True)
        assert done.stdout.rstrip("\n") == said, done


def bounded():
    objects = verdicts.folder() / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    for i in range(10):
        (objects / f"{i}.o").write_bytes(bytes(1000))
        os.utime(objects / f"{i}.o", (i, i))
    left, total = verdicts.prune(4000)
    assert total <= 4000 and left > 0, (left, total)
    assert (objects / "9.o").exists() or total > 3000, "the last used goes first"
    assert not (objects / "0.o").exists()


LOG = """Start testing: Nov 01 00:00 UTC
1/2 Testing: unit-a
Output:
----
[ RUN      ] A.One
a.cpp:3: Skipped
this machine lacks it
[  SKIPPED ] A.One (0 ms)
[ RUN      ] A.Two
[       OK ] A.Two (0 ms)
[ RUN      ] A.Three
x.cpp:9: Skipped
[  SKIPPED ] A.Three (0 ms)
<end of output>
Test time =   3.00 sec
----
Test Passed.
2/2 Testing: unit-b
Output:
<end of output>
Test time =   1.00 sec
Test Passed.
"""


def reports():
    with tempfile.TemporaryDirectory() as folder:
        times.LOGS, times.CTEST = Path(folder), Path(folder) / "LastTest.log"
        times.CTEST.write_text(LOG)
        (times.LOGS / "unit.time").write_text("5.0 7.5 0.5\n")
        (times.LOGS / "gpu.log").write_text("x\nskipped: a GPU: there is none\n")
        rows = times.measured(["unit", "gpu"])
        assert rows == [("unit", 5.0, 8.0), ("unit/unit-a", 3.0, 6.0), ("unit/unit-b", 1.0, 2.0)], rows
        found = times.over(rows, {"unit": 4.9, "unit/unit-a": 4.1, "unit/unit-b": 0.1})
        assert found == [("unit", 8.0)], f"{found}: by half, and by more than 3 seconds"
        left_out = list(times.skipped(["unit", "gpu"]))
        assert left_out == [("gpu", "a GPU: there is none"), ("unit", "unit-a: A.One: this machine lacks it"),
                            ("unit", "unit-a: A.Three: no reason is given")], left_out  # fmt: skip


def hangs():
    """A shell whose program waits for ever is ended with it; one that ends in time is none of the watcher's business."""
    with subprocess.Popen(["bash", "-c", "sleep 98765; true"]) as shell:
        said = subprocess.run([sys.executable, HERE / "watch.py", str(shell.pid), "0.5"], capture_output=True, text=True, check=True).stdout
        assert shell.wait(10) == -9, shell.returncode
    assert "after 0.5 s" in said and "sleep 98765" in said and "waits in" in said, said
    gone = subprocess.run([sys.executable, HERE / "watch.py", str(shell.pid), "0"], capture_output=True, text=True, check=True).stdout
    assert "process" not in gone, gone


def main():
    failed = 0
    tests = [everything_counts, folders_do_not, changes_in_place, only_what_passed, damaged, fresh, bounded, reports, hangs]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ASTRA_TEST_CACHE"] = folder
        os.environ.pop("ASTRA_TEST_FRESH", None)
        verdicts.FRESH = False
        for test in tests:
            try:
                test()
                print(f"ok    {test.__name__}")
            except Exception:
                failed += 1
                print(f"FAIL  {test.__name__}:\n{traceback.format_exc()}")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
