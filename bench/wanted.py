"""What each family of rows is to reach, beside what it reaches: a table of docs/benchmarks.md.

Takes:    records of measure.py.
Gives:    lines of Markdown, one a goal: the worst row's figure with each number of threads, and the rows that miss it.
Keeps:    a goal without a measured row is listed as not measured.
"""

import math
import re
from dataclasses import dataclass
from statistics import geometric_mean


@dataclass
class Goal:
    what: str
    family: str  # "": all
    rows: str  # a pattern of their names
    figure: str  # ratio: to the best peer; mean: the ratios' geometric mean; share: of the machine's limit; ort, error, memory:
    # ONNX Runtime's time, error against f64, and the best peer's memory, over ours
    least: float
    or_ratio: float = math.inf  # a row that reaches this ratio to the best peer has reached the goal too


GOALS = [
    Goal("products: the best peer's speed", "matmul", "", "ratio", 1.0),
    Goal("products from 512 up: share of the FMA rate", "matmul", "^(512|1000|1024|2048)$", "share", 0.93),
    Goal("1 row times 4096 x 4096", "thin", "^1 x", "ratio", 1.1),
    Goal("the same: share of the read bandwidth", "thin", "^1 x", "share", 0.9),
    Goal("4, 8, 16 rows", "thin", "^(4|8|16) x", "ratio", 1.4),
    Goal("32 rows", "thin", "^32 x", "ratio", 1.2),
    Goal("convolutions, all", "conv", "", "mean", 1.1),
    Goal("convolutions, each", "conv", "", "ratio", 0.9),
    Goal("attention, feed-forward, norms, gelu", "attention", "", "ratio", 1.0),
    Goal("causal attention of 512", "attention", "^causal attention 512", "ratio", 1.5),
    Goal("layer norm of 4096 rows: share of the bandwidth, or 1.2 of the best peer", "attention", "^layer norm 4096", "share", 0.9, 1.2),
    Goal("rows, columns, permutations: share of the bandwidth, or 1.2 of the best peer", "rows", "", "share", 0.9, 1.2),
    Goal("networks, each", "networks", "", "ratio", 1.0),
    Goal("networks, all", "networks", "", "mean", 1.1),
    Goal("networks in 8 bits: ONNX Runtime's speed", "quantized", "", "ort", 1.0),
    Goal("ResNet-50, BERT, ViT: share of what bounds each kernel", "networks", "ResNet|BERT|ViT", "share", 0.9),
    Goal("from a file to the first result, beside ONNX Runtime", "open", "", "ort", 10),
    Goal("three layers of 64, beside ONNX Runtime", "mlp", r"\b64\b", "ort", 5),
    Goal("three layers of 256, beside ONNX Runtime", "mlp", r"\b256\b", "ort", 3),
    Goal("training: digits, chargpt", "train", "digits|chargpt", "ratio", 2),
    Goal("training: resnet18", "train", "resnet18", "ratio", 1.3),
    Goal("error against f64: ONNX Runtime's over ours", "", "", "error", 1),
    Goal("memory: the best peer's over ours", "", "", "memory", 1),
]


def reached(goal, record):
    """A row's figure, infinite where it has reached the goal another way; None if it was not measured."""
    if record.get("ratio") and record["ratio"] >= goal.or_ratio:
        return math.inf
    if goal.figure == "ort":
        return record.get("peers", {}).get("ort", {}).get("ratio")
    if goal.figure == "error":
        errors = record.get("errors", {})
        return None if "ort" not in errors else errors["ort"] / errors["ours"] if errors["ours"] else math.inf
    if goal.figure == "memory":
        taken = record.get("memory", {})
        theirs = [m for name, m in taken.items() if name != "ours"]
        return min(theirs) / taken["ours"] if theirs else None
    return record.get("share" if goal.figure == "share" else "ratio")


def told(goal, value):
    return f"{100 * value:.0f} %" if goal.figure == "share" else f"{value:.2f}"


def cell(goal, records):
    failed = [(0.0, r["row"]) for r in records if "failed" in r and goal.figure not in ("error", "memory")]
    found = [(value, r["row"]) for r in records if (value := reached(goal, r)) is not None] + failed
    if not found:
        return "not measured"
    if goal.figure == "mean":
        mean = 0.0 if failed else geometric_mean([value for value, _ in found])
        return told(goal, mean) if mean >= goal.least else f"**{told(goal, mean)}**"
    worst = min(value for value, _ in found)
    misses = sorted((value, name) for value, name in found if value < goal.least)
    if not misses:
        return "reached" if math.isinf(worst) else told(goal, worst)
    named = "; ".join(f"{name} {told(goal, value)}" for value, name in misses[:4])
    return f"**{told(goal, worst)}**, {len(misses)} of {len(found)} below: {named}{' ...' if len(misses) > 4 else ''}"


def goals(result, threads):
    lines = ["| goal | at least | " + " | ".join(f"worst, {t}t" for t in threads) + " |", "|---|---:|" + "---|" * len(threads)]
    for goal in GOALS:
        of = [r for r in result["rows"] if goal.family in ("", r["family"]) and re.search(goal.rows, r["row"])]
        cells = [cell(goal, [r for r in of if r["threads"] == t]) for t in threads]
        lines.append(f"| {goal.what} | {told(goal, goal.least)} | " + " | ".join(cells) + " |")
    return lines
