"""The wheels: made, and used in a root that holds nothing but Debian's minimum and python3.

Takes:    root, debootstrap, the mirror that apt of this machine uses, an index of Python packages for what the wheels depend on.
Gives:    the cases that run.py runs with --wheels.
Keeps:    the build of the compiler's wheel (build/wheel), so that it is compiled once.
"""

import hashlib
import os
import shutil
import sys

from packages import SUITE, mirror
from tree import ROOT, Failed, expect, run, version

# What a user does first, in a process that knows no clang: a gradient, a program for this machine, a bundle for all.
FIRST = """
import sys, numpy, astra, astra_rt
assert "torch" not in sys.modules
x = astra.tensor([[1.0, 2.0], [3.0, 4.0]])
assert astra.grad(lambda w: (w * w).sum())(x).tolist() == [[2, 4], [6, 8]]
f = astra.jit(lambda p, x: (x @ p).softmax(axis=-1))
y = f(x, x)
n = astra.dim("n", 1, 8)
astra.trace(lambda a: (a @ x).softmax(axis=-1), astra.spec((n, 2))).lower().compile().save("/tmp/m.astra")
z = astra_rt.load("/tmp/m.astra")(numpy.array([[1, 2], [3, 4]], "f"))
assert y.tobytes() == z.tobytes()
try:
    x @ astra.tensor([1.0, 2.0, 3.0])
except astra.Error as error:
    print(error)
print("equal")
"""


class Wheels:
    def __init__(self, build, work):
        self.build, self.work = build, work
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)

    def make(self, folder, kept):
        run(ROOT / "scripts/make-wheels", "--out", self.work / folder, "--build", kept)
        return sorted((self.work / folder).glob("*.whl"))

    # The cases, in order.

    def they_are_made_and_have_their_size(self):
        made = self.make("first", self.build / "wheel")
        expect("the wheels", [w.name.split("-")[:2] for w in made], [["astra_compiler", version()], ["astra_rt", version()]])
        for wheel in made:
            if "manylinux_2_34" not in wheel.name:
                raise Failed(f"{wheel.name} does not run on systems with glibc 2.34")

    def two_builds_are_equal(self):
        """In another folder, from nothing but the compiler's cache."""
        shutil.rmtree(self.build / "wheel-again", ignore_errors=True)
        again = self.make("second", self.build / "wheel-again")
        shutil.rmtree(self.build / "wheel-again")
        for wheel in again:
            first, second = (hashlib.sha256(p.read_bytes()).hexdigest() for p in (self.work / "first" / wheel.name, wheel))
            expect(f"the bytes of {wheel.name}", second, first)

    def they_work_in_a_bare_root(self):
        root = self.work / "root"
        run("debootstrap", "--variant=minbase", "--include=python3", SUITE, root, mirror())
        site = root / "opt/site"
        run(sys.executable, "-m", "pip", "install", "-q", "--target", site, *sorted((self.work / "first").glob("*.whl")))
        (root / "tmp/first.py").write_text(FIRST)
        # /proc says which CPU this is.
        inside = ["unshare", "-m", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" env -i PATH=/usr/bin:/bin HOME=/tmp '
                  'PYTHONPATH=/opt/site "$@"', root]  # fmt: skip
        for program in "clang", "cc", "ld":
            if (root / "usr/bin" / program).exists():
                raise Failed(f"the bare root has {program}")
        said = run(*inside, "python3", "/tmp/first.py")
        if not said.endswith("equal\n") or "2 and 3" not in said:
            raise Failed(f"the first program says: {said}")
        shutil.copy(ROOT / "examples/affine/affine.uop", root / "tmp")
        run(*inside, "python3", "-m", "astra._programs", "/tmp/affine.uop", "-o", "/tmp/affine.astra")
        said = run(*inside, "python3", "-c", "import sys, astra._programs as p; sys.argv = ['astra-inspect', '/tmp/affine.astra']; p.inspect()")
        if "entry main" not in said:
            raise Failed(f"astra-inspect says: {said}")
        for program in "chat", "run", "text", "train":
            said = run(*inside, "python3", "-c", f"import sys, astra._programs as p; sys.argv = ['', '--version']; p.{program}()")
            if f"astra-{program}" not in said:
                raise Failed(f"astra-{program} --version says: {said}")

    def pip_installs_the_tree(self):
        """`pip install .` in a fresh environment: the runtime comes from the tree too."""
        environment = self.work / "venv"
        run(sys.executable, "-m", "venv", environment)
        run(environment / "bin/pip", "install", "-q", f"-Cbuild-dir={self.build / 'wheel/astra-compiler'}", ROOT)
        said = run(environment / "bin/python", "-c", FIRST, env={**os.environ, "PYTHONPATH": ""})
        expect("what the first program ends with", said.split()[-1], "equal")


CASES = [Wheels.they_are_made_and_have_their_size, Wheels.they_work_in_a_bare_root, Wheels.two_builds_are_equal, Wheels.pip_installs_the_tree]
