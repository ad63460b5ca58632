"""What scripts/check_clauses.py says of a small tree, which is right, and of that tree with one fault at a time."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(sys.argv[1]) / "scripts"))
import check_clauses  # noqa: E402

N = "N"  # so that this file cites nothing
PAGE = f"""# The contract
## {N}1 Primitives
## {N}4 Order
### {N}4.2 chain512
    entry @zeros() -> ()
## Traps

| trap | tests |
|---|---|
| a | `Suite.Name` (all of `test/a.py`) |
| b | `a-ctest`, `Other.Name` |
| c | `zeros` |
"""
RIGHT = {
    "docs/numerics.md": PAGE.replace("    entry", "entry"),
    "lib/A.cpp": f"// {N}1, {N}4 and {N}4.2. PIN15, N and NaN are no clauses.\n",
    "test/unit/a/T.cpp": "TEST(Suite, Name) {}\nTEST_P(Other, Name) {}\n",
    "test/unit/a/CMakeLists.txt": "add_test(NAME a-ctest COMMAND a)\n",
}
PATHS = {*RIGHT, "test/a.py"}
FAULTS = {  # file, what stands there, what is put there, a part of the only sentence
    "a clause that is not there": ("lib/A.cpp", f"{N}1,", f"{N}3,", f"lib/A.cpp:1: docs/numerics.md has no clause {N}3"),
    "a part of a clause": ("lib/A.cpp", f"{N}4.2", f"{N}4.9", f"no clause {N}4.9"),
    "a number above the last": ("test/unit/a/T.cpp", "{}", "{} // " + f"{N}15", f"test/unit/a/T.cpp:1: docs/numerics.md has no clause {N}15"),
    "a heading that is gone": ("docs/numerics.md", f"## {N}1 Prim", "## Prim", f"lib/A.cpp:1: docs/numerics.md has no clause {N}1"),
    "a GoogleTest that is renamed": ("test/unit/a/T.cpp", "Suite, Name", "Suite, Named", "'Suite.Name', which is no test"),
    "a ctest that is gone": ("test/unit/a/CMakeLists.txt", "a-ctest", "b-ctest", "'a-ctest', which is no test"),
    "a file that is not there": ("docs/numerics.md", "test/a.py", "test/b.py", "'test/b.py', which is no test"),
    "an entry that is not there": ("docs/numerics.md", "entry @zeros", "entry @ones", "'zeros', which is no test"),
    "a trap without a test": ("docs/numerics.md", "`zeros`", "none", "the trap 'c' names no test"),
}

if found := check_clauses.errors(RIGHT, PATHS):
    sys.exit(f"what is right: {found}")
for fault, (path, old, new, sentence) in FAULTS.items():
    texts = dict(RIGHT)
    assert old in texts[path], fault
    texts[path] = texts[path].replace(old, new, 1)
    found = check_clauses.errors(texts, PATHS)
    if len(found) != 1 or sentence not in found[0]:
        sys.exit(f"{fault}: found {found}, expected '{sentence}'")
if not check_clauses.errors({"lib/A.cpp": ""}, set()):
    sys.exit("a tree without the page is taken")
