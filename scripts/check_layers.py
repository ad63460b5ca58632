#!/usr/bin/env python3
"""Checks that includes go down the list of layers and never up (docs/architecture.md).

usage: scripts/check_layers.py
A part may include itself and every part of a lower number; parts of one number do not include each other. The runtime
includes only the C ABI's header and the bundle format. Prints each include that breaks this and fails.
"""
import pathlib
import re
import sys

LAYERS = {"Files": -1, "Toolchain": 0, "IR": 0, "Rewrite": 1, "Autograd": 2, "Numerics": 2, "Compose": 3, "Distribute": 3, "Schedule": 3, "NN": 4, "Quantize": 4, "Codegen": 4, "Search": 5,
          "Emulator": 5, "Bundle": 6, "Import": 7, "Pipeline": 7}
TOP = 8  # tools, tests
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)


def part_of(path):
    """The part a file belongs to, or None where no rule holds."""
    p = path.parts
    if p[0] == "lib":
        return p[1]
    if p[:2] == ("include", "astra") and len(p) > 3:
        return p[2]
    return None


def broken(part, path, name, root):
    if part == "Runtime":
        inside = (root / path.parent / name).exists() or (root / "lib/Runtime" / name).exists()
        own = name.startswith(("astra/astra.h", "astra/gpu.h", "astra/tensor.h", "astra/verify.h", "astra/Runtime/", "flatbuffers/")) or "/" not in name or inside
        return None if own or name.startswith(("sys/", "linux/", "asm/")) else f"the runtime includes {name}"
    target = re.match(r"astra/(\w+)/", name)
    if target and target[1] in LAYERS:
        other = target[1]
        if other != part and LAYERS[other] >= LAYERS[part]:
            return f"{part} includes {name}, which lies {'above' if LAYERS[other] > LAYERS[part] else 'beside'} it"
    up = re.match(r"(?:\.\./)+(\w+)/", name)
    if up and up[1] in LAYERS and up[1] != part:
        return f"{part} reaches into the folder of {up[1]}: {name}"
    return None


def main():
    if len(sys.argv) > 1:
        print(__doc__)
        return 0 if sys.argv[1] == "--help" else 2
    root = pathlib.Path(__file__).resolve().parent.parent
    count = errors = 0
    for top in ("lib", "include"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".h", ".cpp", ".c"):
                continue
            path = file.relative_to(root)
            part = part_of(path)
            if part is None or (part not in LAYERS and part != "Runtime"):
                continue
            for match in INCLUDE.finditer(file.read_text(errors="replace")):
                count += 1
                if error := broken(part, path, match[1], root):
                    errors += 1
                    print(f"{path}: {error}")
    print(f"{count} includes, {errors} break the layers")
    return 1 if errors else 0


sys.exit(main())
