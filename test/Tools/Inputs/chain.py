"""A module in text: a chain of so many nodes on f32[8, 8]. usage: chain.py turn|pad|sum NODES"""

import sys

kind, nodes = sys.argv[1], int(sys.argv[2])
STEPS = {
    "turn": ["permute {} perm=[1, 0]", "flip {} axes=[0]"],
    "pad": ["pad {} [1, 0] [0, 0] value=0.0", "shrink {} [0, 0] [8, 8]"],
    "sum": ["reduce {} kind=sum order=lane64 axes=[1]", "reshape {} [8, 1]", "expand {} [8, 8]"],
}[kind]
lines, value = [], "%x"
for i in range(nodes // len(STEPS) * len(STEPS)):
    lines.append(f"    %v{i} = {STEPS[i % len(STEPS)].format(value)}")
    value = f"%v{i}"
print("module @chain {\n  entry @main(%x : f32[8, 8]) -> (%y : f32[8, 8]) {", *lines, f"    %y = neg {value}", "  }\n}", sep="\n")
