"""An install of the build, and those who consume it: by CMake, by pkg-config, moved, staged, in part, on a full disk.

Takes:    a build folder in which the target programs is built, and a folder to work in.
Gives:    the cases that run.py runs, in order; each raises Failed with a sentence.
Keeps:    the build as it is, but for the list of files that was installed last (install_manifest.txt).
Does not: make packages (packages.py).
"""

import filecmp
import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ABI = ROOT / "test/abi"
# What client.c prints of the runtime's own test bundle, as in test/abi.
HASH = re.search(r"^set\(hash (\w+)\)$", (ABI / "CMakeLists.txt").read_text(), re.M)[1]
# A key of RFC 8032 and its public half.
SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
TOKENIZER = """{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3}, "merges": ["a b"]}}"""
SUMS = ["42", "10", "14", "18"]  # what ops.c prints
PROGRAMS = ["astra-chat", "astra-compile", "astra-inspect", "astra-launch", "astra-opt", "astra-run", "astra-text", "astra-train"]


class Failed(Exception):
    pass


def run(*words, env=None, code=0, cwd=None):
    """What a command prints, stderr too. Fails if it ends with another exit code."""
    words = [str(w) for w in words]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **(env or {})}, cwd=cwd)
    said = done.stdout + done.stderr
    if code is not None and done.returncode != code:
        raise Failed(f"{' '.join(words)}: exit {done.returncode}, expected {code}:\n{said[-2000:]}")
    return said


def expect(what, found, expected):
    if found != expected:
        raise Failed(f"{what}: {found!r}, expected {expected!r}")


def files_in(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_symlink() or not p.is_dir())


class Tree:
    def __init__(self, build, work):
        self.build, self.work = build, work
        self.bundle = build / "test/unit/runtime/standard.astra"
        self.prefix = work / "moved"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)

    def install(self, prefix, *words, env=None, code=0):
        return run("cmake", "--install", self.build, "--prefix", prefix, *words, env=env, code=code)

    def check_client(self, program, env=None):
        """A client of test/abi, with one thread and with two."""
        for threads in 1, 2:
            expect(f"the hash of {program}", run(program, self.bundle, threads, "best", env=env).split()[0], HASH)

    def pkg_config(self, *words):
        return run("pkg-config", *words, env={"PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}).split()

    # The cases, in order.

    def every_file_in_its_place(self):
        self.install(self.work / "first")
        expect("the files", files_in(self.work / "first"), (HERE / "files.txt").read_text().split())

    def a_staged_install_is_the_same(self):
        self.install("/opt/astra", env={"DESTDIR": str(self.work / "stage")})
        stage, first = self.work / "stage/opt/astra", self.work / "first"
        expect("the staged files", files_in(stage), files_in(first))
        different = [f for f in files_in(first) if not filecmp.cmp(stage / f, first / f, shallow=False)]
        expect("files that differ from those of another prefix", different, [])

    def parts_make_the_whole(self):
        for part in "runtime", "verify", "lapack", "development", "compiler":
            self.install(self.work / "parts" / part, "--component", part)
        parts = [files_in(self.work / "parts" / p) for p in ("runtime", "verify", "lapack", "development", "compiler")]
        licence = ["share/doc/astra/LICENSE", "share/doc/astra/NOTICE"]
        expect("the runtime's files", parts[0], ["lib/libastra_ops.astra", "lib/libastra_ops.so.1", "lib/libastra_ops.so.1.0.0", "lib/libastra_ranks.so.1", "lib/libastra_ranks.so.1.0.0", "lib/libastra_rt.so.1", "lib/libastra_rt.so.1.0.0", "lib/libastra_text.so.1", "lib/libastra_text.so.1.0.0", *licence])
        expect("the verifier's files", parts[1], ["lib/libastra_verify.so.1", "lib/libastra_verify.so.1.0.0", *licence])
        expect("the files of a LAPACK's functions", parts[2], ["lib/libastra_lapack.so.1", "lib/libastra_lapack.so.1.0.0", *licence])
        expect("all components", sorted(set(sum(parts, []))), files_in(self.work / "first"))

    def a_moved_tree_works(self):
        (self.work / "first").rename(self.prefix)
        programs, affine = self.prefix / "bin", ROOT / "examples/affine"
        for program in PROGRAMS:
            found = re.search(r"R(?:UN)?PATH.*\[(.*)\]", run("readelf", "-dW", programs / program))
            for place in found[1].split(":") if found else []:
                if not place.startswith(("$ORIGIN/", "/usr/lib/")):
                    raise Failed(f"{program} looks for libraries in {place}")
        used = re.search(r"libastra_rt\.so\.1 => (\S+)", run("ldd", programs / "astra-run"))[1]
        expect("the runtime of astra-run", os.path.realpath(used), os.path.realpath(self.prefix / "lib/libastra_rt.so.1"))
        bundle = self.work / "affine.astra"
        run(programs / "astra-compile", affine / "affine.uop", "-o", bundle, "--target=native", "--quiet")
        run(programs / "astra-run", bundle, f"--input=x={affine}/x.npy", f"--output=y={self.work}/y.npy")
        run(programs / "astra-opt", affine / "affine.uop", "--eval", f"--input=x={affine}/x.npy", f"--output=y={self.work}/z.npy")
        if not filecmp.cmp(self.work / "y.npy", self.work / "z.npy", shallow=False):
            raise Failed("astra-run and the evaluator give other bytes")

    def pages_are_what_the_programs_print(self):
        share = self.prefix / "share"
        for program in PROGRAMS:
            pages = {"--man": f"man/man1/{program}.1", "--completion=bash": f"bash-completion/completions/{program}",
                     "--completion=zsh": f"zsh/site-functions/_{program}",
                     "--completion=fish": f"fish/vendor_completions.d/{program}.fish"}  # fmt: skip
            for option, page in pages.items():
                expect(page, (share / page).read_text(), run(self.prefix / "bin" / program, option))
        for option in run(self.prefix / "bin/astra-compare", "--table").splitlines():
            if option.startswith("option\t"):
                name = "\\-\\-" + option.split("\t")[1].replace("-", "\\-")
                if name not in (share / "man/man1/astra-compare.1").read_text():
                    raise Failed(f"the man page of astra-compare has no {name}")

    def plain_c_by_pkg_config(self):
        expect("the version", self.pkg_config("--modversion", "astra-rt", "astra-verify"), [version()] * 2)
        strict = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
        shared, static = self.work / "c-shared", self.work / "c-static"
        run(*strict, ABI / "client.c", *self.pkg_config("--cflags", "--libs", "astra-rt"), "-o", shared)
        if "libastra_rt.so.1" not in run("readelf", "-dW", shared):
            raise Failed("the client does not use the shared library")
        self.check_client(shared, {"LD_LIBRARY_PATH": str(self.prefix / "lib")})
        # The linker warns of dlopen in a static program: a GPU's driver cannot be opened there.
        run(*strict, "-static", ABI / "client.c", *self.pkg_config("--static", "--cflags", "--libs", "astra-rt"), "-o", static)
        if "NEEDED" in run("readelf", "-dW", static):
            raise Failed("the static client needs a library")
        self.check_client(static)
        ops = self.work / "ops-shared"
        run(*strict, HERE / "ops.c", *self.pkg_config("--cflags", "--libs", "astra-ops"), "-o", ops)
        expect("sums", run(ops, env={"LD_LIBRARY_PATH": str(self.prefix / "lib")}).split(), SUMS)
        lapack = self.work / "lapack-shared"
        run(*strict, HERE / "lapack.c", *self.pkg_config("--cflags", "--libs", "astra-lapack"), "-o", lapack)
        self.check_lapack(lapack, {"LD_LIBRARY_PATH": str(self.prefix / "lib")})
        text = self.work / "text-static"
        run(*strict, "-static", HERE / "text.c", *self.pkg_config("--static", "--cflags", "--libs", "astra-text"), "-o", text)
        self.check_tokens(text)
        run(*strict, "-static", HERE / "signed.c", *self.pkg_config("--static", "--cflags", "--libs", "astra-verify", "astra-rt"),
            "-o", self.work / "signed-static")  # fmt: skip
        self.check_signatures(self.work / "signed-static")

    def check_tokens(self, program):
        """A C program and the installed astra-text give the same tokens."""
        model, blob = self.work / "tokenizer.json", self.work / "tokenizer.tok"
        model.write_text(TOKENIZER)
        run(self.prefix / "bin/astra-text", model, "-o", blob)
        expect("tokens", run(program, blob, "abcab").split(), run(self.prefix / "bin/astra-text", blob, "abcab").split())

    def check_lapack(self, program, env=None):
        """Functions of a LAPACK where there is one; a sentence where there is none."""
        said = run(program, env={**(env or {}), "ASTRA_LAPACK": "no-such-library.so"})
        expect("without a LAPACK", said, "the LAPACK 'no-such-library.so' cannot be opened\n")

    def check_signatures(self, program):
        key, bundle = self.work / "key", self.work / "signed.astra"
        key.write_text(SEED + "\n")
        if not bundle.exists():
            run(self.prefix / "bin/astra-compile", ROOT / "examples/affine/affine.uop", "-o", bundle, f"--sign={key}",
                "--target=native", "--quiet")  # fmt: skip
        expect("with the right key", run(program, bundle, PUBLIC).strip(), "signed")
        expect("with another key", run(program, bundle, PUBLIC[::-1]).strip(), "ASTRA_SIGNATURE")
        expect("without a signature", run(program, self.work / "affine.astra", PUBLIC).strip(), "ASTRA_SIGNATURE")

    def a_project_by_find_package(self):
        project = self.work / "project"
        run("cmake", "-S", HERE / "project", "-B", project, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}",
            "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")  # fmt: skip
        run("cmake", "--build", project)
        for client in "c-runtime", "c-runtime_static", "cxx-runtime", "cxx-runtime_static":
            self.check_client(project / client)
            uses = "libastra_rt.so.1" in run("readelf", "-dW", project / client)
            expect(f"{client} uses the shared library", uses, not client.endswith("static"))
        for program in "verify", "verify_static":
            self.check_signatures(project / program)
        for program in "ops", "ops_static":
            words = [self.prefix / "lib/libastra_ops.astra"] if program == "ops_static" else []
            expect("sums", run(project / program, *words).split(), SUMS)
        for program in "ranks", "ranks_static":
            said = run(self.prefix / "bin/astra-launch", "-n", 2, project / program)
            expect("ranks", sorted(said.splitlines()), [f"rank {r} of 2, shm: 2000" for r in range(2)])
        self.check_lapack(project / "lapack")
        for program in "text", "text_static":
            self.check_tokens(project / program)

    def a_newer_version_is_refused(self):
        asks = self.work / "asks"
        asks.mkdir()
        (asks / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(asks C)\nfind_package(Astra 99.0 REQUIRED)\n")
        said = run("cmake", "-S", asks, "-B", asks / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", code=1)
        if f"version: {version()}" not in said:
            raise Failed(f"CMake does not say which version there is:\n{said[-2000:]}")

    def on_a_disk_that_is_full(self):
        """No root is needed: in a name space of its own a process may mount a small file system."""
        full = "No space left on device"
        cases = [("ro", "cannot create directory")] + [(f"size={size}", full) for size in ("400k", "600k", "2m", "10m")]
        for options, sentence in cases:
            what = options.split("=")[-1]
            place = self.work / what
            place.mkdir()
            left = f"find {place} -type f | sed s/^/left:/"
            said = run("unshare", "--mount", "--map-root-user", "sh", "-c",
                       f"mount -t tmpfs -o {options} none {place} && cmake --install {self.build} --prefix {place}/astra; code=$?; {left}; exit $code",
                       code=1)  # fmt: skip
            if "left:" in said:
                raise Failed(f"an install on a file system that is {what} leaves files:\n{said[-2000:]}")
            if sentence not in " ".join(said.split()):
                raise Failed(f"an install on a file system that is {what} does not say so:\n{said[-2000:]}")


def version():
    return re.search(r"set\(ASTRA_VERSION (\S+)\)", (ROOT / "cmake/Version.cmake").read_text())[1]


CASES = [Tree.every_file_in_its_place, Tree.a_staged_install_is_the_same, Tree.parts_make_the_whole, Tree.a_moved_tree_works,
         Tree.pages_are_what_the_programs_print, Tree.plain_c_by_pkg_config, Tree.a_project_by_find_package,
         Tree.a_newer_version_is_refused, Tree.on_a_disk_that_is_full]  # fmt: skip
