"""What machine this is, so that figures of two machines are never compared unawares.

Gives:    a dictionary: CPU, caches, cores, memory, kernel, versions of our compiler and of each peer; the best level of
          ours that this CPU has.
"""

import functools
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

LEVELS = (("x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl"), ("x86-64-v3", "avx2 fma bmi2"))
MATTERING = "avx2 fma avx512f avx512bw avx512_vnni avx512_bf16 amx_tile".split()


def cpu_lines():
    pairs = (line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


@functools.cache
def level():
    """The best level of this CPU that there is a target for."""
    flags = cpu_lines().get("flags", "").split()
    for name, needs in LEVELS:
        if all(feature in flags for feature in needs.split()):
            return name
    raise SystemExit("bench: this CPU has no FMA instructions of x86-64-v3; there is nothing to compare with")


def integer_level():
    """The same with the instructions for 8-bit integers, where the CPU has them: a level that is compiled where it is named."""
    return f"{level()}+avx512vnni" if level() == "x86-64-v4" and "avx512_vnni" in cpu_lines()["flags"].split() else level()


def caches():
    found = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind = (index / "type").read_text().strip()
        if kind != "Instruction":
            found.append(f"L{(index / 'level').read_text().strip()} {(index / 'size').read_text().strip()}")
    return found


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def fingerprint(root, build, peers):
    cpu = cpu_lines()
    git = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    memory = next(line.split()[1] for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    flags = cpu.get("flags", "").split()
    return {
        "cpu": cpu.get("model name", platform.processor()),
        "family, model, stepping": [cpu.get(key) for key in ("cpu family", "model", "stepping")],
        "level": level(),
        "features": [feature for feature in MATTERING if feature in flags],
        "cores": len(os.sched_getaffinity(0)),
        "caches": caches(),
        "memory_gib": round(int(memory) / 2**20, 1),
        "kernel": platform.release(),
        "astra": git,
        "clang": subprocess.run(["clang-22", "--version"], capture_output=True, text=True).stdout.split("\n")[0],
        "peers": {name: version(peer.package) for name, peer in peers.items()},
        "load_before": [round(x, 2) for x in os.getloadavg()],
    }
