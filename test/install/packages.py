"""The Debian packages: made twice, and used in roots that hold nothing but what they depend on.

Takes:    a build folder in which the target programs is built; root, debootstrap, and the mirror that apt of this machine uses.
Gives:    the cases that run.py runs with --packages.
Keeps:    one bare root (build/install-test/bare.tar), made once; every case unpacks its own.
Does not: name a mirror.
"""

import filecmp
import os
import re
import shutil
from pathlib import Path

from tree import ABI, HASH, ROOT, Failed, expect, run, version

SUITE = "bookworm"
COMPONENTS = {"astra-compiler", "libastra-rt1", "libastra-rt-dev", "libastra-verify1", "libastra-lapack1"}


def mirror():
    """Where apt of this machine gets the suite from, as lines of its sources say."""
    for file in sorted(Path("/etc/apt").glob("sources.list.d/*.sources")):
        for paragraph in file.read_text().split("\n\n"):
            fields = dict(re.findall(r"^(\w[\w-]*): *(.*)$", paragraph, re.M))
            if SUITE in fields.get("Suites", "").split():
                return fields["URIs"].split()[0]
    for file in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt").glob("sources.list.d/*.list"))]:
        for line in file.read_text().splitlines() if file.exists() else []:
            if found := re.match(rf"deb +(?:\[.*\] +)?(\S+) +{SUITE} ", line):
                return found[1]
    raise Failed(f"apt's sources name no mirror of {SUITE}")


class Packages:
    def __init__(self, build, work):
        self.build, self.work = build, work
        self.bare = work.parent / "bare.tar"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)

    def root(self, name):
        """A root with Debian's minimum."""
        if not self.bare.exists():
            made = self.work / "bare"
            run("debootstrap", "--variant=minbase", SUITE, made, mirror())
            run("tar", "-C", made, "-cf", f"{self.bare}.new", ".")
            os.rename(f"{self.bare}.new", self.bare)
            shutil.rmtree(made)
        root = self.work / name
        root.mkdir()
        run("tar", "-C", root, "-xf", self.bare)
        return root

    def deb(self, package):
        return next((self.work / "first").glob(f"{package}_*.deb"))

    def field(self, package, name):
        return run("dpkg-deb", "-f", self.deb(package), name).strip()

    def give(self, root, *files):
        for file in files:
            shutil.copy(file, root / "tmp")

    # The cases, in order.

    def two_runs_of_cpack_are_equal(self):
        for folder, umask in ("first", 0o022), ("second", 0o077):
            before = os.umask(umask)
            try:
                run("cpack", "-G", "DEB", "--config", self.build / "CPackConfig.cmake", "-B", self.work / folder)
            finally:
                os.umask(before)
        names = sorted(p.name for p in (self.work / "first").glob("*.deb"))
        expect("the packages", {n.split("_")[0] for n in names}, COMPONENTS)
        for name in names:
            if not filecmp.cmp(self.work / "first" / name, self.work / "second" / name, shallow=False):
                raise Failed(f"{name} has other bytes when it is made again")

    def what_they_say_of_themselves(self):
        for package in COMPONENTS:
            expect(f"the version of {package}", self.field(package, "Version"), f"{version()}-1")
            for file in "copyright", "changelog.Debian.gz":
                if f"./usr/share/doc/{package}/{file}" not in run("dpkg-deb", "-c", self.deb(package)):
                    raise Failed(f"{package} has no {file}")
        expect("what the runtime depends on", re.sub(r" \(.*?\)", "", self.field("libastra-rt1", "Depends")), "libc6")
        own = f"(= {version()}-1)"
        for package in "astra-compiler", "libastra-rt-dev":
            if f"libastra-rt1 {own}" not in self.field(package, "Depends"):
                raise Failed(f"{package} does not depend on its own libastra-rt1")

    def the_runtime_alone_in_a_bare_root(self):
        """dpkg, without apt: the bare root has all that libastra-rt1 needs. The client was linked here."""
        root = self.root("runtime")
        client = self.work / "client"
        run("gcc", "-std=c99", f"-I{ROOT}/include", ABI / "client.c", self.build / "lib/libastra_rt.so.1", "-o", client)
        self.give(root, client, self.build / "test/unit/runtime/standard.astra", self.deb("libastra-rt1"))
        run("chroot", root, "sh", "-c", "dpkg -i /tmp/libastra-rt1_*.deb")
        expect("the hash of the client", run("chroot", root, "/tmp/client", "/tmp/standard.astra", "2", "best").split()[0], HASH)
        run("chroot", root, "dpkg", "--purge", "libastra-rt1")
        left = [p for p in root.rglob("*astra*") if p.parent.name not in ("tmp", "log")]
        expect("what a purge leaves", left, [])

    def the_compiler_in_a_bare_root(self):
        """apt, which brings what the packages depend on and nothing that they only recommend."""
        root = self.root("compiler")
        for part in "sources.list", "sources.list.d", "trusted.gpg", "trusted.gpg.d", "keyrings", "preferences.d", "apt.conf.d":
            if (there := Path("/etc/apt") / part).is_dir():
                shutil.copytree(there, root / "etc/apt" / part, dirs_exist_ok=True)
            elif there.exists():
                shutil.copy(there, root / "etc/apt" / part)
        for file in "resolv.conf", "hosts":
            shutil.copy(f"/etc/{file}", root / "etc" / file)
        keys = [Path(k) for k in re.findall(r"Signed-By: *(/\S+)", "".join(
            p.read_text() for p in Path("/etc/apt/sources.list.d").glob("*.sources")))]  # fmt: skip
        for key in keys:
            (root / key.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            if key.exists():
                shutil.copy(key, root / key.relative_to("/"))
        self.give(root, *(self.deb(p) for p in COMPONENTS), ABI / "client.c", self.build / "test/unit/runtime/standard.astra",
                  ROOT / "examples/affine/affine.uop", ROOT / "examples/affine/x.npy")  # fmt: skip
        quiet = ["apt-get", "-qq", "-y", "-o", "APT::Install-Recommends=0", "-o", "APT::Sandbox::User=root"]
        silent = {"DEBIAN_FRONTEND": "noninteractive"}
        run("chroot", root, *quiet, "update", env=silent)
        packages = [f"/tmp/{self.deb(p).name}" for p in ("astra-compiler", "libastra-rt1")]
        run("chroot", root, *quiet, "install", *packages, env=silent)
        inside = lambda *words: run("chroot", root, *words)
        inside("astra-compile", "/tmp/affine.uop", "-o", "/tmp/affine.astra", "--quiet")
        inside("astra-run", "/tmp/affine.astra", "--input=x=/tmp/x.npy", "--output=y=/tmp/y.npy")
        inside("astra-opt", "/tmp/affine.uop", "--eval", "--input=x=/tmp/x.npy", "--output=y=/tmp/z.npy")
        inside("cmp", "/tmp/y.npy", "/tmp/z.npy")
        run(self.build / "bin/astra-compile", ROOT / "examples/affine/affine.uop", "-o", self.work / "here.astra", "--quiet")
        if not filecmp.cmp(root / "tmp/affine.astra", self.work / "here.astra", shallow=False):
            raise Failed("the compiler of the package makes another bundle than that of the build")
        self.develop(root, quiet, silent)

    def develop(self, root, quiet, silent):
        """libastra-rt-dev in the same root: plain C with pkg-config, as a user's build does it."""
        packages = [f"/tmp/{self.deb(p).name}" for p in ("libastra-rt-dev", "libastra-verify1", "libastra-lapack1")]
        run("chroot", root, *quiet, "install", "gcc", "libc6-dev", "pkg-config", *packages, env=silent)
        for how in "", "-static":
            run("chroot", root, "sh", "-c", f"cd /tmp && gcc -std=c99 {how} client.c "
                f"$(pkg-config {how.replace('-static', '--static')} --cflags --libs astra-rt) -o client")  # fmt: skip
            said = run("chroot", root, "/tmp/client", "/tmp/standard.astra", "1", "best")
            expect(f"the hash of the client {how}", said.split()[0], HASH)


CASES = [Packages.two_runs_of_cpack_are_equal, Packages.what_they_say_of_themselves,
         Packages.the_runtime_alone_in_a_bare_root, Packages.the_compiler_in_a_bare_root]  # fmt: skip
