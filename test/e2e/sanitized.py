"""The C of astra-compile --emit=c under AddressSanitizer: every argument an allocation of its own, of exactly its bytes.

Takes:    .uop files, or ONNX models with the bounds of their dims behind a colon (model.onnx:b=1..4); where none is given, two
          end-to-end cases, and a sample of them and the small models of build/models where ASTRA_NIGHTLY is set.
Gives:    one line per module: at how many corners of its dims it was called on which levels; what AddressSanitizer found.
          Exit code 1 if it found something.
Keeps:    arguments are functions of their places alone.
Does not: compare values (run.py does), nor separate what lies in the arena (guarded-run does).

    build/venv/bin/python test/e2e/sanitized.py [--build build] [--levels x86-64-v3,x86-64-v4] [CASE.uop | MODEL.onnx[:DIM=LO..HI,...] ...]
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
DAILY = ["short-batch", "affine"]
SAMPLE = 4  # of the end-to-end cases every so manieth, nightly
MODELS = {"bert_small": "batch=1..4,length=1..16", "lstm_tagger": "batch=1..4,length=1..6", "gpt2_small_decode": "batch=1..4,past=0..14",
          "mobilenet_v3_small": "batch=1..4"}  # fmt: skip
EDGES = (4, 6, 8, 14, 16, 32)
MOST = 64  # of a dim, unless its lowest value is more
CORNERS = 12  # of an entry

HEAD = """#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* So many bytes and no more: numbers of small magnitude in every type of them. */
static void *make(int64_t bytes, const char *type) {
  unsigned char *p = malloc(bytes);
  int64_t size = !strcmp(type, "float") ? 4 : !strcmp(type, "double") ? 8 : 1;
  if (!p && bytes) exit(9);
  for (int64_t i = 0; i < bytes / size; i++) {
    double value = (double)(i * 7 % 23 - 11) / 4;
    float narrow = (float)value;
    if (size == 4) memcpy(p + i * 4, &narrow, 4);
    else if (size == 8) memcpy(p + i * 8, &value, 8);
    else p[i] = 0;
  }
  if (!strcmp(type, "int64_t") || !strcmp(type, "int32_t"))
    for (int64_t i = 0, w = type[3] == '6' ? 8 : 4; i < bytes / w; i++) p[i * w] = i * 5 % 7;
  if (!strcmp(type, "uint8_t") || !strcmp(type, "int8_t"))
    for (int64_t i = 0; i < bytes; i++) p[i] = i * 37;
  return p;
}
int main(void) {
"""


class Failure(Exception):
    """A command that did not do what it should."""


def command(*args, fine=(0,)):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    if done.returncode not in fine:
        raise Failure(f"{' '.join(str(a) for a in args)}\n  exit {done.returncode}: {done.stdout[-500:]}{done.stderr[:3000]}")
    return done.stdout


def evaluate(expression, dims):
    dims = dims | {name.rstrip("_"): value for name, value in dims.items()}  # C has words that a dim may not be called
    return eval(expression.replace("floordiv", "//").replace(" mod ", " % "), {"min": min, "max": max}, dims)


def bytes_of(text, dims):
    """Of f32[n, 3], with "stored as [0/16][1][0%16]" behind it where axes are in parts; rows of elements of less than a byte are
    padded to bytes."""
    text, _, layout = text.partition(" stored as ")
    dtype, extents = re.fullmatch(r"(\w+?)(?:\[(.*)\])?", text).groups()
    part = {"complex64": 64, "complex128": 128, "bool": 8, "bf16": 16}.get(dtype)
    bits = part or int(re.match(r"[a-z]+(\d+)", dtype)[1])
    shape = [evaluate(e, dims) for e in split(extents)] if extents else []
    if layout not in ("", "row-major"):
        parts = re.findall(r"\[(\d+)(?:([/%])(\d+))?\]", layout)
        shape = [shape[int(a)] if not how else int(k) if how == "%" else -(-shape[int(a)] // int(k)) for a, how, k in parts]
    rows = 1
    for extent in shape[:-1]:
        rows *= extent
    return rows * -(-(shape[-1] if shape else 1) * bits // 8)


def split(text):
    """At commas outside of parentheses."""
    parts, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def corners(bounds):
    """Values of dims: of each the lowest and the highest, and what lies about tile edges, each beside others of the others."""
    values = {}
    for name, (low, high) in bounds.items():
        high = min(high, max(low, MOST))
        near = {low, low + 1, high, *(e + d for e in EDGES for d in (-1, 0, 1))}
        values[name] = sorted(v for v in near if low <= v <= high)
    most = max((len(v) for v in values.values()), default=1)
    rounds = min(most, CORNERS)
    found = [{n: v[0] for n, v in values.items()}, {n: v[-1] for n, v in values.items()}]
    for r in range(rounds):
        at = r * most // rounds
        found.append({n: v[(at + 5 * i) % len(v)] for i, (n, v) in enumerate(values.items())})
    return [c for i, c in enumerate(found) if c not in found[:i]]


def entries(header):
    """Of each entry its function and its arguments: (C type, name, what it is)."""
    for comment, function in re.findall(r"/\* [^\n]*?(?:computed size|out of bounds|Gives 0).*?\n((?: \*   [^\n]*\n)+) \*/\nint (\w+)\(", header, re.S):
        arguments = []
        for kind, name, what in re.findall(r"^ \*   ([\w ]+?) \*?(\w+): (.*)$", comment, re.M):
            arguments.append((kind.replace("const ", ""), name, what))
        yield function, arguments


def calls(header):
    """The program that calls every entry at its corners, and how many calls it makes."""
    text, count = HEAD, 0
    for function, arguments in entries(header):
        bounds = {name: tuple(map(int, re.findall(r"-?\d+", what)[:2])) for kind, name, what in arguments if re.match(r"-?\d+ to -?\d+$", what)}
        for dims in corners(bounds):
            text += "  {\n    void *arena = 0;\n"
            names = []
            for kind, name, what in arguments:
                if name in bounds:
                    names.append(str(dims[name]))
                elif name == "arena":
                    sizes = re.search(rf"^int64_t {function}_arena\((.*)\);", header, re.M)[1]
                    given = "" if sizes == "void" else ", ".join(str(dims[a.split()[-1]]) for a in sizes.split(", "))
                    text += f"    int64_t size = {function}_arena({given});\n    if (posix_memalign(&arena, 64, size ? size : 1)) exit(9);\n"
                    names.append("arena")
                else:
                    is_extent = what.startswith("out, the actual extent")
                    size = 8 if is_extent else bytes_of(re.sub(r"^(out, room for|state,) ", "", what), dims)
                    text += f'    void *a{len(names)} = make({size}, "{kind}");\n'
                    names.append(f"a{len(names)}")
            where = " ".join(f"{n}={v}" for n, v in dims.items())
            text += f'    fprintf(stderr, "{function} at {where}\\n");\n    {function}({", ".join(names)});\n'
            text += "".join(f"    free({n});\n" for n in names if n == "arena" or n[0] == "a" and n[1:].isdigit()) + "  }\n"
            count += 1
    return text + "  return 0;\n}\n", count


def check(source, dims, programs, levels, folder):
    """How many calls were made on each level."""
    count = 0
    for level in levels:
        bounds = [f"--dim={d}" for d in dims.split(",") if d]
        command(programs / "astra-compile", source, "--emit=c", "-o", folder / "model.c", f"--target=cpu:{level}", *bounds)
        text, count = calls((folder / "model.h").read_text())
        (folder / "main.c").write_text(text)
        command("clang-22", "-std=gnu11", f"-march={level}", "-O1", "-g", "-fsanitize=address", "-ffp-contract=off", "-fno-math-errno",
                "-fno-strict-aliasing", "-w", f"-I{folder}", folder / "model.c", folder / "main.c", "-o", folder / "calls")  # fmt: skip
        command(folder / "calls")
    return count


def sample(build):
    everything = sorted((HERE / "cases").glob("*.uop"))
    if "ASTRA_NIGHTLY" not in os.environ:
        return [(HERE / "cases" / f"{name}.uop", "") for name in DAILY]
    models = [(build / "models" / f"{name}.onnx", dims) for name, dims in MODELS.items()]
    chosen = [path for i, path in enumerate(everything) if i % SAMPLE == 0 or path.stem in DAILY]
    return [(path, "") for path in chosen] + [(path, dims) for path, dims in models if path.exists()]


def main():
    parser = argparse.ArgumentParser(description="emitted C under AddressSanitizer")
    parser.add_argument("--build", type=Path, default=Path("build"))
    flags = Path("/proc/cpuinfo").read_text().split()
    parser.add_argument("--levels", default="x86-64-v3,x86-64-v4" if "avx512vl" in flags else "x86-64-v3")
    parser.add_argument("modules", nargs="*")
    options = parser.parse_args()
    modules = [(Path(word.split(":")[0]), word.partition(":")[2]) for word in options.modules] or sample(options.build)
    passed = failed = 0
    for path, dims in modules:
        with tempfile.TemporaryDirectory(prefix="astra-sanitized-") as folder:
            try:
                count = check(path, dims, options.build / "bin", options.levels.split(","), Path(folder))
                print(f"ok    {path.stem}: {count} corners on {options.levels}", flush=True)
                passed += 1
            except Failure as failure:
                print(f"FAIL  {path.stem}\n{failure}", flush=True)
                failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
