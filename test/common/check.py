"""What verdicts.py and watch.py promise, what scripts/times.py reads, and that no phase of scripts/test hides a failure: a verdict
that were found too often would hide one, too.

Gives:    a line for each test and "N passed, N failed"; exit code 1 if one fails.

    python3 test/common/check.py
"""

import os
import re
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
        (times.LOGS / "gpu.log").write_text("x\nskipped: a GPU: there is none\nSKIPPED [2] a.py:7: no JAX\n")
        rows = times.measured(["unit", "gpu"])
        assert rows == [("unit", 5.0, 8.0), ("unit/unit-a", 3.0, 6.0), ("unit/unit-b", 1.0, 2.0)], rows
        found = times.over(rows, {"unit": 4.9, "unit/unit-a": 4.1, "unit/unit-b": 0.1})
        assert found == [("unit", 8.0)], f"{found}: by half, and by more than 3 seconds"
        left_out = list(times.skipped(["unit", "gpu"]))
        assert left_out == [("gpu", "a GPU: there is none"), ("gpu", "a.py:7: no JAX"), ("unit", "unit-a: A.One: this machine lacks it"),
                            ("unit", "unit-a: A.Three: no reason is given")], left_out  # fmt: skip


def hangs():
    """A shell whose program waits for ever is ended with it; one that ends in time is none of the watcher's business."""
    with subprocess.Popen(["bash", "-c", "sleep 98765; true"]) as shell:
        said = subprocess.run([sys.executable, HERE / "watch.py", str(shell.pid), "0.5"], capture_output=True, text=True, check=True).stdout
        assert shell.wait(10) == -9, shell.returncode
    assert "after 0.5 s" in said and "sleep 98765" in said and "waits in" in said, said
    gone = subprocess.run([sys.executable, HERE / "watch.py", str(shell.pid), "0"], capture_output=True, text=True, check=True).stdout
    assert "process" not in gone, gone


STUB = """#!/bin/bash
case "$1" in -c) exit 0 ;; esac
echo "$0 $*" >>"$CALLS"
[ "$(wc -l <"$CALLS")" != "$FAILS" ]
"""


PROGRAMS = """build/bin/astra-compile build/bin/astra-docs build/gcc/bin/astra-compile build/venv/bin/python build/venv/bin/lit
examples/digits_train/run.sh scripts/build scripts/pack-gpu-check build/gpu-check/run.sh path/ctest path/ptxas path/cmp""".split()


def functions():
    """Those of scripts/test that are phases, or count what a log says: their names, and all of them as text."""
    text = (HERE.parent.parent / "scripts/test").read_text()
    found = re.findall(r"^([a-z0-9_]+)\(\) \{(?: .*\}$|.*\n(?:.*\n)*?\}$)", text, re.M)
    whole = [m[0] for m in re.finditer(r"^[a-z0-9_]+\(\) \{(?: .*\}$|.*\n(?:.*\n)*?\}$)", text, re.M)]
    return found, "\n".join(whole)


def phases_fail():
    """Each program that a phase runs, but for questions (python -c), fails once: so does the phase, in every tier."""
    names, text = functions()
    runs = [n for n in names if n.startswith("run_") and n not in ("run_phase", "run_scripts")]  # no programs of their own
    assert len(runs) > 15, runs
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in PROGRAMS:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(STUB)
            (folder / name).chmod(0o755)
        for file in ("build/python/astra/_core.abi3.so", "build/python/astra_rt/_rt.abi3.so", "build/models/resnet50.onnx",
                     "build/Testing/Temporary/LastTest.log", *(f"docs/{p}.md" for p in re.search(r"for page in ([a-z0-9 ]*);", text)[1].split())):  # fmt: skip
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).touch()
        (folder / "build/Testing/Temporary/LastTest.log").write_text("executed: nothing\n")

        def calls(name, tier, fails):
            """What a phase runs, and its code, where call number `fails` fails."""
            (folder / "calls").write_text("")
            script = f"set -o pipefail; cd {folder}; {text}\n{name} astra/_core.abi3.so x >/dev/null 2>&1"
            environment = {"PATH": f"{folder}/path:/usr/bin:/bin", "CALLS": str(folder / "calls"), "FAILS": str(fails), "root": place, "logs": place, "tier": tier,
                           "jobs": "1", "tests": "x", "timeout": "9", **({"ASTRA_NIGHTLY": "1"} if tier == "nightly" else {})}  # fmt: skip
            code = subprocess.run(["bash", "-c", script], env=environment, check=False).returncode
            return (folder / "calls").read_text().splitlines(), code

        for name in runs:
            for tier in ("quick", "daily", "nightly"):
                ran, code = calls(name, tier, 0)
                assert ran and code == 0, f"{name} ({tier}): {code} of {ran}"
                for i, call in enumerate(ran, 1):
                    assert calls(name, tier, i)[1], f"{name} ({tier}) passes although this fails: {call.replace(place, '')}"


COUNTED = {
    "e2e_count": [("2 passed, 0 failed\nx\n3 passed, 1 failed, 2 skipped (no y)\n", "5 1"), ("no 2 passed, 0 failed\n", ""), ("", "")],
    "ctest_count": [("93% tests passed, 2 tests failed out of 30\n", "28 2"), ("100% tests passed, 0 tests failed out of 3\n", "3 0"), ("", "")],
    "lit_count": [("  Unsupported: 1 (1%)\n  Passed     : 7 (9%)\n  Failed     : 1 (1%)\n  Unresolved : 2\n  Timed Out  : 4\n", "7 7"), ("", "")],
    "pytest_count": [("==== 3 passed in 1s ====\n", "3 0"), ("1 failed, 2 passed, 3 skipped, 4 warnings, 5 errors in 1s\n", "2 6"),
                     ("2 failed, 1 skipped in 9s (0:00:09)\n", "0 2"), ("5 skipped in 1s\n", "0 0"), ("1 error in 1s\n", "0 1"), ("", "")],
}  # fmt: skip


def counts():
    names, text = functions()
    assert {n for n in names if n.endswith("_count")} == set(COUNTED), names
    with tempfile.TemporaryDirectory() as folder:
        for name, logs in COUNTED.items():
            for log, want in logs:
                (Path(folder) / "log").write_text(log)
                done = subprocess.run(["bash", "-c", f"{text}\n{name} {folder}/log"], capture_output=True, text=True, check=False)
                assert done.stdout.strip() == want, (name, log, done.stdout, done.stderr)


def main():
    failed = 0
    tests = [everything_counts, folders_do_not, changes_in_place, only_what_passed, damaged, fresh, bounded, reports, hangs, phases_fail, counts]
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
