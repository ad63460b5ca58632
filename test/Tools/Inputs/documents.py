"""What the documents show, carried out.

Takes:    the tree, a build folder, an empty folder to work in.
Gives:    exit code 0; a sentence and 1 where a document is not right.
Keeps:    a module of docs/text.md is parsed and compiled; where its comments have a command, the command gives what the
          comments below the module say. The recipes are beside NumPy. The module in README is examples/affine's, and the
          commands there work as they stand, one after the other, in a tree that has been built and nothing else.

    build/venv/bin/python test/Tools/Inputs/documents.py . build FOLDER
"""

import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT, BUILD, WORK = (Path(word).resolve() for word in sys.argv[1:4])


def run(command, **options):
    done = subprocess.run(command, cwd=WORK, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{command if isinstance(command, str) else ' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def blocks(text):
    """What stands indented by four, with the empty lines within."""
    for block in re.findall(r"(?:^    .*\n(?:\n(?=    ))*)+", text, re.M):
        yield "".join(line[4:] if line.strip() else "\n" for line in block.splitlines(keepends=True))


def data_files(module):
    for shape, file, tensor in re.findall(r'param @\w+ : f32\[([\d, ]*)\] = file\("([^"]*)", "([^"]*)"\)', module):
        extents = [int(d) for d in shape.split(",")]
        size = 4 * int(np.prod(extents))
        header = json.dumps({tensor: {"dtype": "F32", "shape": extents, "data_offsets": [0, size]}}).encode()
        (WORK / file).write_bytes(struct.pack("<Q", len(header)) + header + bytes(size))


def modules():
    found = 0
    for block in blocks((ROOT / "docs/text.md").read_text()):
        if not (name := re.search(r"^module @(\w+) {", block, re.M)):
            continue
        found += 1
        file = f"{name[1]}.uop"
        (WORK / file).write_text(block)
        data_files(block)
        run([BUILD / "bin/astra-opt", file, "--standard", "--verify-each", "--round-trip", "-o", "again.uop"])
        run([BUILD / "bin/astra-compile", file, "-o", f"{name[1]}.astra", "--target=cpu:x86-64-v3"])
        before, after = block[: name.start()], block[block.index("\n}\n") + 3 :]
        commands = re.findall(r"^//   (astra-opt .*)$", before, re.M)
        if not commands:
            continue
        said = "".join(run([BUILD / "bin" / word if word == "astra-opt" else word for word in c.split()]) for c in commands)
        expected = "".join(line + "\n" for line in re.findall(r"^//   (.*)$", after, re.M))
        if said != expected:
            sys.exit(f"docs/text.md: {'; '.join(commands)} gives\n{said}and not\n{expected}")
    if found < 4:
        sys.exit(f"docs/text.md: found {found} modules")


def recipes():
    x = np.random.default_rng(1).standard_normal((5, 4)).astype(np.float32) * 3
    np.save(WORK / "x.npy", x)
    wide, scale, shift = x.astype(np.float64), np.array([1, 1, 2, 1]), np.array([0, 0, 0, 3])
    e = np.exp(wide - wide.max(1, keepdims=True))
    centred = wide - wide.mean(1, keepdims=True)
    for entry, wanted in (("relu", np.maximum(wide, 0)), ("softmax", e / e.sum(1, keepdims=True)),
                          ("layer_norm", centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * scale + shift),
                          ("rms_norm", wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-6) * scale)):  # fmt: skip
        run([BUILD / "bin/astra-opt", "recipes.uop", "--eval", f"--entry={entry}", "--input=x=x.npy", "--output=y=y.npy"])
        run([BUILD / "bin/astra-run", "recipes.astra", f"--entry={entry}", "--input=x=x.npy", "--output=y=z.npy"])
        y, z = np.load(WORK / "y.npy"), np.load(WORK / "z.npy")
        if y.tobytes() != z.tobytes():
            sys.exit(f"docs/text.md: {entry} compiled gives other bytes than evaluated")
        if not np.allclose(y, wanted, rtol=1e-5, atol=1e-6):
            sys.exit(f"docs/text.md: {entry} gives\n{y}\nand NumPy\n{wanted}")


def readme():
    text = (ROOT / "README.md").read_text()
    example = (ROOT / "examples/affine/affine.uop").read_text()
    if next(b for b in blocks(text) if b.startswith("module @affine")).strip() != example[example.index("module") :].strip():
        sys.exit("README.md: its module is not that of examples/affine/affine.uop")
    for folder, target in (("build", BUILD), ("examples", ROOT / "examples")):
        (WORK / folder).symlink_to(target)
    commands = re.findall(r"^(?:    |.*`)(build/bin/[^`\n]*)", text, re.M)
    if len(commands) < 5:
        sys.exit(f"README.md: found {len(commands)} commands")
    for command in commands:
        run(command, shell=True)
    y, z = np.load(WORK / "y.npy"), np.load(WORK / "z.npy")
    if y.tobytes() != z.tobytes():
        sys.exit("README.md: the evaluator gives other bytes")


modules()
recipes()
for file in ("y.npy", "z.npy"):
    (WORK / file).unlink()
readme()
