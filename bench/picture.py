"""The picture of a page of figures.

Takes:    families of rows with their ratios, the lines of the page that say where they were measured.
Gives:    an SVG: one bar a row and number of threads, from 1 outwards on a logarithmic scale, right where ours is faster.
Keeps:    to be read without the page: title, machine, peers, unit, legend, and beside each row the ratio and the fastest peer.
"""

import html
import math
import textwrap
from statistics import geometric_mean

LEFT, WIDE, RIGHT, ROW, LINE = 300, 480, 350, 13, 15
DECADES = (0.125, 0.25, 0.5, 1, 2, 4, 8)
WON, LOST = ("#1a7f37", "#7cc48d"), ("#cf222e", "#f0a3a3")
UNIT = "time of the fastest peer / time of Astra, in each row; 2x: Astra takes half of its time; median over the rounds"


def place(ratio):
    low, high = math.log(DECADES[0]), math.log(DECADES[-1])
    return LEFT + WIDE * (min(max(math.log(ratio), low), high) - low) / (high - low)


def text(x, y, words, more=""):
    return f'<text x="{x:g}" y="{y:g}"{more}>{html.escape(words)}</text>'


def threaded(number):
    return f"{number} thread" + "s" * (number > 1)


def beside(found):
    """Ratios of a row, each with its peer; once where it is one peer."""
    pairs = [pair for _, pair in sorted(found.items())]
    if len({peer for _, peer in pairs}) == 1:
        return ", ".join(f"{ratio:.2f}" for ratio, _ in pairs) + " " + pairs[0][1]
    return "; ".join(f"{ratio:.2f} {peer}" for ratio, peer in pairs) or "no peer"


def head(machine, peers, threads):
    """Title, places, legend: the lines and where the plot begins."""
    parts, y = [text(8, 22, "Astra beside other runtimes: the fastest peer's time over ours", ' font-size="16" font-weight="bold"')], 28
    lines = (*machine, "Peers: " + "; ".join(peers) + ".", "Unit: " + UNIT + ".")
    for words in (part for line in lines for part in textwrap.wrap(line, 170)):
        y += LINE
        parts.append(text(8, y, words))
    y += LINE + 4
    x = 8
    for colours, words in ((WON, "Astra is faster"), (LOST, "the peer is faster")):
        for shade, number in enumerate(threads):
            parts.append(f'<rect x="{x}" y="{y - 9}" width="18" height="10" fill="{colours[shade % 2]}"/>')
            parts.append(text(x + 23, y, f"{words}, {threaded(number)}"))
            x += 185
    parts.append(text(LEFT + WIDE + 12, y, "ratio and fastest peer: " + ", ".join(threaded(n) for n in threads), ' font-weight="bold"'))
    return parts, y + 24


def draw(families, threads, titles, machine, peers):
    """`families`: by name, pairs of a row's name and {threads: (ratio, fastest peer)}. `machine`: lines. `peers`: titles."""
    parts, top = head(machine, peers, threads)
    y = top
    for family, records in families.items():
        y += 8
        means = [geometric_mean(found[t][0] for _, found in records if t in found) for t in threads if any(t in found for _, found in records)]
        parts.append(text(8, y + 10, titles[family], ' font-weight="bold"'))
        parts.append(text(LEFT + WIDE + 12, y + 10, "geometric mean " + ", ".join(f"{mean:.2f}" for mean in means), ' font-weight="bold"') if means else "")
        y += 17
        for name, found in records:
            parts.append(text(LEFT - 8, y + 9, name, ' text-anchor="end"'))
            for shade, number in enumerate(threads):
                if number not in found:
                    continue
                ratio, peer = found[number]
                height, end, one = (ROW - 2) / len(threads), place(ratio), place(1)
                colour = (WON if ratio >= 1 else LOST)[shade % 2]
                title = f"{name}, {threaded(number)}: {ratio:.2f} of {peer}"
                parts.append(f'<rect x="{min(end, one):.1f}" y="{y + shade * height:.1f}" width="{max(abs(end - one), 0.8):.1f}" height="{height:.1f}" fill="{colour}"><title>{html.escape(title)}</title></rect>')
            parts.append(text(LEFT + WIDE + 12, y + 9, beside(found)))
            y += ROW
    grid = []
    for value in DECADES:
        x = place(value)
        grid.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{y}" stroke="{"#555" if value == 1 else "#ddd"}"/>')
        grid += [text(round(x, 1), at, f"{value:g}x", ' text-anchor="middle"') for at in (top - 6, y + 12)]
    grid.append(text(place(1), y + 26, "fastest peer's time / Astra's (logarithmic)", ' text-anchor="middle"'))
    size = f'width="{LEFT + WIDE + RIGHT}" height="{y + 36}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="10">', '<rect width="100%" height="100%" fill="white"/>', *grid, *filter(None, parts), "</svg>", ""])
