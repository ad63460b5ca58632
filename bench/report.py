"""Tables of what was measured: on a terminal, and docs/benchmarks.md with its picture.

Takes:    records of measure.py.
Gives:    lines, a Markdown page, an SVG. The ratio stands first: the best peer's time over ours, above 1 where ours is
          faster.
Keeps:    losses as visible as wins: every row is there, in its place, whatever it says; a peer without a number is named
          with its sentence. What is known of the losses is bench/shortfalls.md, which is written by hand.
"""

import math
from collections import Counter
from pathlib import Path
from statistics import geometric_mean

import picture
import rows
from peers import PEERS
from wanted import goals

HERE = Path(__file__).resolve().parent
TITLES = {
    "matmul": "f32 matrix products, both operands inputs",
    "thin": "Few rows times a constant matrix",
    "conv": "Convolutions of ResNet-50 and MobileNetV2, batch 1, channels-first in and out (PyTorch's channels-last)",
    "layers": "Transposed convolutions, channels-first in and out (PyTorch's channels-last), and recurrent layers, batch 1",
    "attention": "Parts of transformers",
    "rows": "Rows, columns, permutations",
    "networks": "Whole networks, batch 1",
    "quantized": "Networks in 8 bits, batch 1",
    "mlp": "A small network, one row",
    "open": "From a file to the first result",
    "train": "One training step: forward, backward, AdamW",
    "einsum": "f64 Einstein sums and permutations of strided-rs's suite",
}
ABOVE = """A share above 100 % is no mistake: the limit is what a plain loop reaches (`bench/limits.c`), and a kernel can be faster than it; 67 MB of weights
beside a large last cache are read partly from there."""


def duration(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1 or unit == "us":
            value = seconds * factor
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.1f} {unit}" if value >= 10 else f"{value:.2f} {unit}"


def rate(record):
    row = rows.find(record["family"], record["row"])
    return f"{row.flops / record['ours']['seconds'] * 1e-9:.0f} GFLOP/s" if row.flops else f"{row.bytes / record['ours']['seconds'] * 1e-9:.1f} GB/s" if row.bytes else ""


def percent(share):
    return "" if share is None else f"{100 * share:.0f} %"


def line(record, out):
    """One row as it is measured."""
    colour = lambda text, code: f"\x1b[{code}m{text}\x1b[0m" if out.isatty() else text
    head = f"{record['family']:9} {record['row']:38} {record['threads']}t"
    if "failed" in record:
        print(f"{colour('  FAILED', 31)} {head}  {record['failed']}", file=out, flush=True)
        return
    ratio = record["ratio"]
    shown = "      --" if ratio is None else colour(f"{ratio:7.2f}x", 32 if ratio >= 1 else 31)
    limits = "  ".join(f"{key} {value:.0f}" for key, value in record["limits"].items())
    print(f"{shown} {head}  ours {duration(record['ours']['seconds']):>8} {rate(record):>11} {percent(record['share']):>5}  [{limits}]", file=out)
    said = {}
    for name, peer in sorted(record["peers"].items(), key=lambda pair: pair[1].get("seconds", math.inf)):
        said.setdefault(f"{duration(peer['seconds']):>8}  {peer['ratio']:.2f}x" if "ratio" in peer else peer["absent"], []).append(PEERS[name].title)
    for words, names in said.items():
        print(f"{'':10}{', '.join(names):>16} {words}", file=out)
    out.flush()


def summary(result, out):
    print(f"\n{'family':10} {'threads':>7} {'rows':>5} {'mean ratio':>11} {'least':>6}  won", file=out)
    for family in rows.FAMILIES:
        for threads in sorted({r["threads"] for r in result["rows"]}):
            ratios = [r["ratio"] for r in result["rows"] if r["family"] == family and r["threads"] == threads and r.get("ratio")]
            if ratios:
                won = sum(ratio >= 1 for ratio in ratios)
                print(f"{family:10} {threads:7} {len(ratios):5} {geometric_mean(ratios):10.2f}x {min(ratios):5.2f}x  {won} of {len(ratios)}", file=out)


# ---- docs/benchmarks.md


def ordered(result):
    """Records in the order of the tables, those of one row together."""
    by = {(r["family"], r["row"], r["threads"]): r for r in result["rows"]}
    for family in rows.FAMILIES:
        for row in rows.family(family):
            found = [by[key] for key in sorted(by) if key[:2] == (family, row.name)]
            if found:
                yield family, row, found


def table(records, threads):
    heads = ["work"] + [head for t in threads for head in (f"ratio, {t}t", "best peer", f"ours, {t}t", "share")]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|---|---:|---:|" * len(threads)]
    for row, found in records:
        cells, by = [row.name], {r["threads"]: r for r in found}
        for t in threads:
            r = by.get(t)
            if r is None:
                cells += ["", "", "", ""]
            elif "failed" in r:
                cells += ["**failed**", "", r["failed"].replace("|", "/"), ""]
            elif r["ratio"] is None:
                cells += ["", "none", duration(r["ours"]["seconds"]), percent(r["share"])]
            else:
                ratio = f"{r['ratio']:.2f}"
                theirs = r["peers"][r["best"]]["seconds"]
                cells += [ratio if r["ratio"] >= 1 else f"**{ratio}**", f"{PEERS[r['best']].title} {duration(theirs)}", duration(r["ours"]["seconds"]), percent(r["share"])]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def absences(records):
    """Who has no number where, each sentence once."""
    places, together = {}, {}
    for row, found in records:
        for r in found:
            for name, peer in r["peers"].items():
                if "absent" in peer:
                    places.setdefault((peer["absent"], name), []).append(f"{row.name}, {r['threads']}t")
    for (sentence, name), where in places.items():
        together.setdefault((sentence, tuple(where)), []).append(PEERS[name].title)
    for (sentence, where), names in together.items():
        yield f"- {', '.join(names)}: {sentence} ({'; '.join(where) if len(where) < 5 else f'{len(where)} times'})"


def all_peers(records, threads):
    """Each peer's time over ours, for the reader who asks about one peer."""
    names = [name for name in PEERS if any(name in r.get("peers", {}) for _, found in records for r in found)]
    lines = ["| work | " + " | ".join(PEERS[name].title for name in names) + " |", "|---|" + "---:|" * len(names)]
    for row, found in records:
        for r in found:
            if r["threads"] == threads and "failed" not in r:
                cells = [r["peers"].get(name, {}) for name in names]
                lines.append(f"| {row.name} | " + " | ".join(f"{c['ratio']:.2f}" if "ratio" in c else "-" for c in cells) + " |")
    return lines


def memory(result):
    """The most memory of a process beyond what it had before it loaded the row: weights, states, values, code made on the way; not libraries or inputs."""
    found = [(family, row, r) for family, row, records in ordered(result) for r in records if r.get("memory") and r["threads"] == 1]
    if not found:
        return []
    names = [name for name in ["ours", *PEERS] if any(name in r["memory"] for _, _, r in found)]
    lines = ["", "## Memory", "", "The most memory of a process beyond what it had before it loaded the row, its libraries imported and the row's inputs made, in MB, one thread; in bold where a peer's is less than ours:", ""]
    lines += ["| work | " + " | ".join("ours" if name == "ours" else PEERS[name].title for name in names) + " |", "|---|" + "---:|" * len(names)]
    for _, row, r in found:
        bytes_of = r["memory"]
        cell = lambda name: "-" if name not in bytes_of else f"**{bytes_of[name] / 1e6:.1f}**" if bytes_of[name] < bytes_of["ours"] else f"{bytes_of[name] / 1e6:.1f}"
        lines.append(f"| {row.name} | " + " | ".join(map(cell, names)) + " |")
    return lines


def errors(result):
    """The largest error of a family's results against f64, over the largest magnitude: ours and the peers'."""
    names = [name for name in ["ours", *PEERS] if any(name in r.get("errors", {}) for _, _, found in ordered(result) for r in found)]
    if not names:
        return []
    lines = ["", "## Errors", "", "Of results against f64 (PyTorch's), over the largest magnitude, the worst of a family:", ""]
    lines += ["| family | " + " | ".join("ours" if name == "ours" else PEERS[name].title for name in names) + " |", "|---|" + "---:|" * len(names)]
    for family in rows.FAMILIES:
        found = [r["errors"] for r in result["rows"] if r["family"] == family and "errors" in r]
        worst = {name: max((e[name] for e in found if name in e), default=None) for name in names}
        if found:
            lines.append(f"| {TITLES[family]} | " + " | ".join("-" if worst[name] is None else f"{worst[name]:.1e}" for name in names) + " |")
    return lines


def states(result):
    """The rows measured at another state of ours than the last, a family's together."""
    last, others = result["machine"]["astra"], {}
    for r in result["rows"]:
        if (state := r.get("astra", "not noted")) != last:
            others.setdefault(state, Counter())[r["family"]] += 1
    told = (f"{state}: " + ", ".join(f"{name} {families[name]}" for name in rows.FAMILIES if name in families) for state, families in others.items())
    return [f"Rows of other states, by family: {'; '.join(told)}."] if others else []


def page(result, path):
    families, threads, written = text(result, path)
    path.write_text(written)
    bars = {family: [(row.name, {r["threads"]: (r["ratio"], PEERS[r["best"]].title) for r in found if r.get("ratio")}) for row, found in records] for family, records in families.items()}
    drawn = picture.draw(bars, threads, TITLES, [*place(result["machine"]), *states(result)], [PEERS[name].title for name in result["machine"]["peers"]])
    path.with_suffix(".svg").write_text(drawn)


def place(machine):
    """The lines that say where and what was measured."""
    return [
        f"Machine: {machine['cpu']} (family {', '.join(map(str, machine['family, model, stepping']))}), {machine['cores']} cores, "
        f"{', '.join(machine['caches'])}, {machine['memory_gib']} GiB; {machine['level']}; Linux {machine['kernel']}.",
        f"Astra {machine['astra']}, {machine['clang']}.",
    ]


def text(result, path):
    """Families, numbers of threads, the page."""
    machine = result["machine"]
    families = {}
    for family, row, found in ordered(result):
        families.setdefault(family, []).append((row, found))
    threads = sorted({r["threads"] for r in result["rows"]})
    loads = [r["load"] for r in result["rows"]]
    rounds = " or ".join(map(str, sorted({len(r["ours"]["rounds"]) for r in result["rows"] if "ours" in r})))
    lines = [
        "# Benchmarks",
        "",
        "Generated by `scripts/bench --docs` from one JSON file. Strict numbers (`astra-num/1`), the same bits as everywhere.",
        "",
        "The ratio is the best peer's time over ours: above 1 ours is faster, **bold** where it is slower. It is the median over",
        f"{rounds} rounds of the ratio within a round, in which ours and all peers run in turn, each in a process of its own that is stopped while",
        "others run. A round's figure is the median of three parts of it, each of at least one call; it is one call where a file is opened, and of a",
        "peer that takes seconds. The times shown are medians too, so their quotient can differ from the ratio. Results are compared to 1e-4 of the",
        "largest magnitude before timing. The share is of the machine's limit, measured right before and right after ours: FMA rate, read or copy",
        "bandwidth, whichever bounds the work; for networks the larger of the two, kernel by kernel. Times of one thread are CPU time where that is",
        "less than wall time.",
        *([ABOVE] if any((r.get("share") or 0) > 1 for r in result["rows"]) else []),
        "",
        *place(machine),
        *states(result),
        "Peers: " + "; ".join(f"{PEERS[name].title} ({PEERS[name].package} {version or 'is not installed'})" for name, version in machine["peers"].items()) + ".",
        "PyTorch's products of f32 matrices are MKL's, with which its wheel is built; oneDNN's are asked for by name (`bench/peers/onednn.py`).",
        f"Load average while measuring: {min(loads):.1f} to {max(loads):.1f}" + (": the machine was shared, so read ratios, not times." if max(loads) > 2.5 else "."),
        f"Threads on this page: {', '.join(map(str, threads))}."
        + (" On a shared machine the wall times of several threads say who had the cores, so they are left to a quiet one." if threads == [1] else ""),
        "",
        f"![ratios]({path.stem}.svg)",
        "",
        "| family | threads | rows | geometric mean | least | won |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for family, records in families.items():
        for t in threads:
            ratios = [r["ratio"] for _, found in records for r in found if r["threads"] == t and r.get("ratio")]
            if ratios:
                lines.append(f"| {TITLES[family]} | {t} | {len(ratios)} | {geometric_mean(ratios):.2f} | {min(ratios):.2f} | {sum(x >= 1 for x in ratios)} |")
    lines += ["", "## Goals", "", "What is wanted, and what is reached; **bold** where it is missed:", "", *goals(result, threads)]
    for family, records in families.items():
        lines += ["", f"## {TITLES[family]}", "", *table(records, threads)]
        missing = list(absences(records))
        if missing:
            lines += ["", "Without a number:", "", *missing]
        lines += ["", "Each peer's time over ours, one thread:", "", *all_peers(records, threads[0])]
    main = path.name == "benchmarks.md"
    lines += ["", (HERE / "shortfalls.md").read_text().rstrip() if main else "`docs/benchmarks.md` says what is known of rows below 1."]
    lines += memory(result)
    lines += errors(result)
    return families, threads, "\n".join(lines) + "\n"
