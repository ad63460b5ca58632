"""What was released against what is built: old bundles and clients on the new library, the new client on old libraries.

usage: test/compat/run.py [--build FOLDER] [--aarch64 ASTRA_RUN] [--all] [FOLDER...]
Takes:    the folders of compat/ (scripts/make-compat), or those named; a build.
Gives:    a line per folder and pairing; the last line is "N passed, N failed", where a bundle under one pairing is one test.
Keeps:    equality of bytes: what a call writes has the SHA-256 that the reference evaluator's had at the release.
Does not: change a folder: its files are those of SHA256SUMS, and scripts/check_style.py compares that with what was committed.

    pairing                   must
    new client, new library   run every bundle: on each CPU level that this machine has, emulated GPUs, aarch64 under qemu
    old client, new library   run every bundle, not linked again
    old static client         run every bundle, and the bundle of a new compiler, or refuse that one with a status
    new client, old library   run every bundle, or be refused: by a status, or by the loader, which names what is missing
    old ABI, new library      by abidiff: functions and structs of the release are as they were

Without --all each bundle runs on the best level alone, and one emulated GPU.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GROWING = ROOT / "test/compat/growing.abignore"  # structs that have more fields at their end now
# What a refusal of an older library says: statuses of astra.h, or the loader's words.
TYPED = re.compile(r"ASTRA_(NEWER_CLIENT|NEWER_FORMAT|UNKNOWN_FEATURE|UNSUPPORTED)|undefined symbol: astra_|version `ASTRA_\S+' not found")
LEVELS = {"x86-64-v4+avx512vnni": ("avx512f", "avx512_vnni"), "x86-64-v4": ("avx512f", "avx512bw", "avx512dq", "avx512vl"),
          "x86-64-v3": ("avx2", "fma", "bmi2")}  # fmt: skip


class Failed(Exception):
    pass


def levels_here():
    """The levels that this machine runs, the best first."""
    flags = set(Path("/proc/cpuinfo").read_text().split())
    return [name for name, needs in LEVELS.items() if flags.issuperset(needs)]


def machines(bundle, options):
    """Arguments of astra-run, one list for each machine that is here and that the bundle has code for."""
    said = subprocess.run([options.build / "bin/astra-inspect", bundle], capture_output=True, text=True, check=True).stdout
    targets = re.findall(r"^target (\S+?),? ", said, re.M)
    cpu = [[f"--level={name}"] for name in levels_here() if f"cpu:{name}" in targets]
    emulated = [[f"--emulate={t[4:]}"] for t in targets if t.startswith("emu:") and levels_here()]
    if not options.all:
        cpu, emulated = cpu[:1], emulated[:1]
    return cpu, emulated, "cpu:aarch64" in targets


def calls(bundle):
    return sorted(p for p in bundle.parent.iterdir() if p.is_dir())


def call(program, here, machine, env=None):
    """Runs one call; gives "" or what went wrong."""
    arguments = (here / "arguments").read_text().splitlines()
    shutil.rmtree(here / "got", ignore_errors=True)
    (here / "got").mkdir()
    done = subprocess.run([*program, "../bundle.astra", *machine, *arguments], cwd=here, capture_output=True, text=True,
                          env={**os.environ, **(env or {})})  # fmt: skip
    if done.returncode:
        return done.stderr.strip() or f"exit {done.returncode}"
    for line in (here / "golden").read_text().splitlines():
        sha, name = line.split()
        if hashlib.sha256((here / name).read_bytes()).hexdigest() != sha:
            return f"{name} has other bytes than at the release"
    return ""


class Release:
    """One folder of compat/, with its cases unpacked."""

    def __init__(self, folder, options, scratch):
        self.folder, self.options = folder, options
        for line in (folder / "SHA256SUMS").read_text().splitlines():
            sha, name = line.split()
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != sha:
                raise Failed(f"{folder / name} is not what was released")
        self.old = [folder / "astra-run"]
        self.static = [folder / "astra-run-static"]
        self.new = [options.build / "bin/astra-run"]
        self.new_library = {"LD_LIBRARY_PATH": str(options.build / "lib")}
        self.old_library = {"LD_LIBRARY_PATH": str(folder)}
        for program, environment in ((self.new, self.old_library), (self.old, self.new_library)):
            used = subprocess.run(["ldd", *program], capture_output=True, text=True, env={**os.environ, **environment}).stdout
            if f"libastra_rt.so.1 => {environment['LD_LIBRARY_PATH']}/" not in used:
                raise Failed(f"{program[0]} does not use the library of {environment['LD_LIBRARY_PATH']}:\n{used}")
        with tarfile.open(folder / "cases.tar.xz") as tar:
            tar.extractall(scratch)  # its sum is that of the release
        self.bundles = sorted((scratch / "cases").glob("*/bundle.astra"))
        self.machines = {b: machines(b, options) for b in self.bundles}
        idle = [b.parent.name for b, (cpu, emulated, _) in self.machines.items() if not cpu + emulated]
        if idle:
            print(f"skipped: bundles {', '.join(idle)} of {folder.name}: this machine has none of the CPU levels that they are for")
        self.bundles = [b for b in self.bundles if b.parent.name not in idle]

    def every_bundle(self, what, program, env, refusals=False):
        """A pairing: the bundles that run with the bytes of the release, and those that do not, with the reason."""
        passed, wrong, refused = 0, [], 0
        for bundle in self.bundles:
            cpu, emulated, _ = self.machines[bundle]
            said = [call(program, here, machine, env) for machine in cpu + emulated for here in calls(bundle)]
            said = [s for s in said if s]
            if refusals and said and all(TYPED.search(s) for s in said):
                refused += 1
            elif said:
                wrong.append(f"{bundle.parent.name}: {said[0]}")
                continue
            passed += 1
        note = f", {refused} of them refused" if refused else ""
        return self.report(what, passed, len(self.bundles), wrong, note)

    def report(self, what, passed, of, wrong, note=""):
        print(f"{'FAIL' if wrong else 'ok':5} {self.folder.name}: {what}: {passed} of {of} bundles{note}", flush=True)
        for line in wrong:
            print(f"      {line}")
        return passed, len(wrong)

    def on_aarch64(self):
        if not self.options.aarch64:
            return 0, 0
        bundles, wrong = [b for b, (_, _, aarch64) in self.machines.items() if aarch64], []
        for bundle in bundles:
            said = [call(["qemu-aarch64", self.options.aarch64], here, []) for here in calls(bundle)]
            wrong += [f"{bundle.parent.name}: {s}" for s in said if s][:1]
        return self.report("new client and library on aarch64", len(bundles) - len(wrong), len(bundles), wrong)

    def other_bytes_are_noticed(self):
        """Or all else would prove nothing."""
        bundle = self.bundles[0]
        here, (cpu, emulated, _) = calls(bundle)[0], self.machines[bundle]
        golden = here / "golden"
        right = golden.read_text()
        golden.write_text(("1" if right[0] == "0" else "0") + right[1:])
        ok = call(self.new, here, (cpu + emulated)[0], self.new_library).endswith("has other bytes than at the release")
        golden.write_text(right)
        print(f"{'ok' if ok else 'FAIL':5} {self.folder.name}: a result with other bytes is noticed")
        return (1, 0) if ok else (0, 1)

    def new_bundle_in_the_old_static_client(self, scratch):
        """What a new compiler makes, in a program that nobody can link again."""
        affine = ROOT / "examples/affine"
        make = [self.options.build / "bin/astra-compile", affine / "affine.uop", "-o", scratch / "new.astra", "--target=native", "--quiet"]
        subprocess.run(make, check=True)
        results = []
        for program, name in ((self.static, "old.npy"), (self.new, "new.npy")):
            done = subprocess.run([*program, scratch / "new.astra", f"--input=x={affine}/x.npy", f"--output=y={scratch / name}"],
                                  capture_output=True, text=True)  # fmt: skip
            results.append(done)
        old = results[0]
        equal = old.returncode == 0 and (scratch / "old.npy").read_bytes() == (scratch / "new.npy").read_bytes()
        ok = results[1].returncode == 0 and (equal or (old.returncode != 0 and TYPED.search(old.stderr)))
        print(f"{'ok' if ok else 'FAIL':5} {self.folder.name}: the old static client and a new bundle: "
              f"{'equal bytes' if equal else old.stderr.strip()}")  # fmt: skip
        return (1, 0) if ok else (0, 1)

    def abi(self):
        """The library with debug information is the one that test/abi builds; without it the functions alone are compared."""
        library = self.options.build / "test/abi/gcc/libastra_rt.so.1"
        pairs = [(self.folder / "libastra_rt.so.1", self.options.build / "lib/libastra_rt.so.1")]
        if library.exists():
            pairs.append((self.folder / "astra_rt.abi", library))
        failed = 0
        for old, new in pairs:
            done = subprocess.run(["abidiff", "--no-added-syms", "--suppressions", GROWING, old, new], capture_output=True, text=True)
            failed += done.returncode != 0
            print(f"{'FAIL' if done.returncode else 'ok':5} {self.folder.name}: abidiff of {old.name}")
            if done.returncode:
                print(done.stdout + done.stderr)
        return len(pairs) - failed, failed

    def all_pairings(self, scratch):
        yield self.every_bundle("new client, new library", self.new, self.new_library)
        yield self.every_bundle("old client, new library", self.old, self.new_library)
        yield self.every_bundle("old static client", self.static, None)
        yield self.every_bundle("new client, old library", self.new, self.old_library, refusals=True)
        yield self.on_aarch64()
        yield self.other_bytes_are_noticed()
        yield self.new_bundle_in_the_old_static_client(scratch)
        yield self.abi()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--aarch64", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("folders", nargs="*", type=Path)
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.aarch64 = options.aarch64 and options.aarch64.resolve()
    passed = failed = 0
    folders = options.folders or sorted(p.parent for p in (ROOT / "compat").glob("*/SHA256SUMS"))
    if not folders:
        sys.exit("test/compat/run.py: no folder of compat/ has a SHA256SUMS: there is no release to try")
    for folder in folders:
        with tempfile.TemporaryDirectory(prefix="astra-compat-") as scratch:
            try:
                for p, f in Release(folder.resolve(), options, Path(scratch)).all_pairings(Path(scratch)):
                    passed, failed = passed + p, failed + f
            except Failed as wrong:
                print(f"FAIL  {folder.name}: {wrong}")
                failed += 1
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
