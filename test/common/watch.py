"""What does not end is ended, and said: which programs ran, and where each thread of them stood.

Takes:    a process, and after how many seconds it has run too long.
Gives:    then, in lines: its descendants, their age, where the system had each thread wait, and, where gdb is there, the calls
          on their stacks. All of them are killed.
Keeps:    what ends in time is not touched; whoever starts this kills it then.
Does not: know why: a program that waits for another is listed beside it.

    python3 test/common/watch.py PID SECONDS
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path


def parents():
    """Of all processes."""
    out = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            out[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:  # it has ended
            pass
    return out


def descendants(pid):
    """Below a process, without this one, the nearest first."""
    of, found = parents(), [pid]
    for process in found:
        found += [p for p in sorted(of) if of[p] == process and p != os.getpid()]
    return found[1:]


def text(path):
    try:
        return path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "?"


def describe(pid):
    folder = Path(f"/proc/{pid}")
    began = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    print(f"process {pid}, {time.clock_gettime(time.CLOCK_BOOTTIME) - began:.0f} s: {text(folder / 'cmdline')[:500]}")
    for task in sorted((folder / "task").glob("*")):
        print(f"  thread {task.name} {text(task / 'comm')}: waits in {text(task / 'wchan')}")
    if shutil.which("gdb") and os.path.basename(os.readlink(folder / "exe")) not in ("bash", "dash", "sleep"):
        try:
            said = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 20"],
                                  capture_output=True, text=True, errors="replace", timeout=60).stdout  # fmt: skip
            print("\n".join("  " + line[:200] for line in said.splitlines() if line.startswith(("Thread", "#"))))
        except subprocess.TimeoutExpired:
            print("  gdb gave no stacks within a minute")


def main():
    pid, limit = int(sys.argv[1]), float(sys.argv[2])
    time.sleep(limit)
    print(f"not at its end after {limit:g} s; what ran:", flush=True)
    below = descendants(pid)
    for process in below:
        try:
            describe(process)
        except OSError:  # it ends just now
            pass
        sys.stdout.flush()
    for process in [pid] + descendants(pid):  # the first would go on where a child ends
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass


if __name__ == "__main__":
    main()
