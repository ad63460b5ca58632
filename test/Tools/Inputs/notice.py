"""NOTICE names every library that a program or a shared library of the build links itself.

Takes:    the tree, a build folder.
Gives:    exit code 0; a sentence for each library that NOTICE does not name with its program and 1.
Does not: look into static libraries (FlatBuffers and GoogleTest are compiled in), or at what a library links in turn.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT, BUILD = map(Path, sys.argv[1:3])
NAMES = {  # of sonames, by how they begin; None: the system, or our own
    "libLLVM.": "LLVM", "libMLIR": "MLIR", "libclang-cpp.": "clang", "liblld": "lld", "libprotobuf-lite.": "Protocol Buffers",
    "libsodium.": "libsodium", "libz.": "zlib", "libzstd.": "Zstandard", "libstdc++.": "libstdc++", "libgcc_s.": "libgcc", "libastra_": None,
    "libc.": None, "libm.": None, "libdl.": None, "libpthread.": None, "ld-linux": None,
}  # fmt: skip

# Each part of NOTICE: a line that begins at the margin and names programs, then what stands indented below.
notice = (ROOT / "NOTICE").read_text()
parts = re.findall(r"^(\S.*)\n((?:  .*\n|\n(?=  ))+)", notice, re.M)
files = [BUILD / "bin" / p.name for p in sorted((ROOT / "tools").iterdir()) if (BUILD / "bin" / p.name).is_file()]
files += [BUILD / "lib" / name for name in ("libastra_rt.so", "libastra_text.so", "libastra_verify.so")]
wrong, seen = [], 0
for file in files:
    if file.read_bytes()[:4] != b"\x7fELF":
        continue  # astra-compare is a shell script
    name = file.name.removesuffix(".so")
    below = "".join(text for head, text in parts if re.search(rf"\b{name}\b", head))
    listing = subprocess.run(["readelf", "-dW", file], capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", listing):
        known = [NAMES[begin] for begin in NAMES if library.startswith(begin)]
        seen += 1
        if not known:
            wrong.append(f"{name} links {library}, which test/Tools/Inputs/notice.py does not know")
        elif known[0] and known[0] not in below:
            wrong.append(f"NOTICE: {name} links {library}, and no part about {name} names {known[0]}")
if len(files) < 5 or seen < 15:
    wrong.append(f"looked at {len(files)} files and {seen} libraries")
sys.exit("\n".join(wrong) or 0)
