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


def draw(steps, means, evaluations):
    last = steps[-1][0]
    losses = [max(v, 1e-12) for _, v in steps + evaluations]
    low, high = math.floor(math.log10(min(losses))), math.ceil(math.log10(max(losses)))
    x = lambda step: LEFT + (WIDTH - LEFT - RIGHT) * step / last
    y = lambda loss: TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log10(max(loss, 1e-12))) / (high - low)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']  # fmt: skip
    for power in range(low, high + 1):
        at = y(10.0**power)
        out.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end" fill="#555">1e{power}</text>')
    for k in range(5):
        step = last * k // 4
        out.append(f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#555">{step}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle" fill="#555">step</text>')
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
