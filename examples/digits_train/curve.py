"""The log of astra-train as a picture.

Takes:    a CSV file with the columns step, epoch, loss, rate and, in rows of their own, eval_loss.
Gives:    an SVG file: the loss of every step, its mean over each epoch, and the loss of eval, on a logarithmic scale.
Keeps:    equal bytes for equal logs; Python's standard library is enough.

    python3 examples/digits_train/curve.py run.csv curve.svg
"""

import csv
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 64, 16, 28, 44


def read(path):
    steps, means, evaluations, sums = [], [], [], []
    for row in csv.DictReader(open(path, newline="")):
        if row["loss"]:
            steps.append((int(row["step"]), float(row["loss"])))
            sums.append(float(row["loss"]))
        else:
            means.append((int(row["step"]), sum(sums) / len(sums)))
            evaluations.append((int(row["step"]), float(row["eval_loss"])))
            sums = []
    return steps, means, evaluations


def ticks(low, high):
    """Of a logarithmic scale, in powers of ten: within few decades the digits between too, each with its label where there is room."""
    if high - low > 2:
        return [(10.0**power, f"1e{power}") for power in range(low, high + 1)]
    labelled = (1, 2, 3, 4, 5, 7) if high - low == 1 else (1, 2, 5)
    found = [(digit * 10.0**power, f"{digit * 10.0**power:g}" if digit in labelled else "") for power in range(low, high) for digit in range(1, 10)]
    return [*found, (10.0**high, f"{10.0**high:g}")]


def spacing(last):
    """The least of 1, 2, 5, 10, 20 ... that makes at most ten of `last`."""
    return next(k * 10**power for power in range(20) for k in (1, 2, 5) if k * 10**power * 10 >= last)


def frame(last, low, high):
    """The scales, and where a step and a loss stand in them."""
    x = lambda step: LEFT + (WIDTH - LEFT - RIGHT) * step / last
    y = lambda loss: TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log10(max(loss, 1e-12))) / (high - low)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']  # fmt: skip
    for loss, label in ticks(low, high):
        at = y(loss)
        out.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="{"#ddd" if label else "#f0f0f0"}"/>')
        if label:
            out.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end" fill="#555">{label}</text>')
    for step in range(0, last + 1, spacing(last)):
        out.append(f'<path d="M{x(step):.1f} {HEIGHT - BOTTOM}v4" stroke="#999"/>')
        out.append(f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#555">{step}</text>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle" fill="#555">step</text>')
    out.append(f'<text x="14" y="{middle:.0f}" text-anchor="middle" fill="#555" transform="rotate(-90 14 {middle:.0f})">loss</text>')
    return out, x, y


def draw(steps, means, evaluations):
    losses = [max(v, 1e-12) for _, v in steps + evaluations]
    out, x, y = frame(steps[-1][0], math.floor(math.log10(min(losses))), math.ceil(math.log10(max(losses))))
    lines = [(steps, "#b9cdf0", 1, "loss of a step"), (means, "#2257b8", 2, "mean of an epoch"), (evaluations, "#d1491b", 2, "held out")]
    for k, (points, color, width, name) in enumerate(lines):
        path = "L".join(f"{x(step):.1f} {y(loss):.1f}" for step, loss in points)
        out.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="{width}"/>')
        out.append(f'<path d="M{LEFT + 150 * k} 14h24" stroke="{color}" stroke-width="{max(width, 2)}"/>')
        out.append(f'<text x="{LEFT + 150 * k + 30}" y="18" fill="#333">{name}</text>')
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    picture = draw(*read(sys.argv[1]))
    with open(sys.argv[2], "w") as f:
        f.write(picture)
