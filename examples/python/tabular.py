"""Regression on a table: a csv file, pandas, a plot.

Takes:    a csv file with numbers; by default a table that is made here: the strength of concrete-like mixtures.
Gives:    a network that predicts the last column, predictions.svg, table.astra: the network with the table's means and deviations
          inside, so that whoever calls it gives rows as they are.

    python examples/python/tabular.py [TABLE.csv] [FOLDER]      (pip install astra-compiler pandas matplotlib)
"""

import pathlib
import sys

import numpy as np
import pandas

import astra
from astra import data, nn, optim


class Net(nn.Module):
    def __init__(self, columns):
        self.layers = nn.Sequential(nn.Linear(columns, 32), astra.tanh, nn.Linear(32, 32), astra.tanh, nn.Linear(32, 1))

    def __call__(self, x):
        return self.layers(x)[:, 0]


def make_table(path):
    """900 rows: amounts, age, strength, with noise."""
    rng = np.random.default_rng(0)
    cement, water, ash = rng.uniform(150, 500, 900), rng.uniform(130, 230, 900), rng.uniform(0, 150, 900)
    age = rng.choice([3, 7, 14, 28, 90], 900)
    strength = 25 * np.log1p(age) * (cement + 0.4 * ash) / water / 6 + rng.normal(0, 1.5, 900)
    table = {"cement": cement, "water": water, "ash": ash, "age": age, "strength": strength}
    pandas.DataFrame(table).round(2).to_csv(path, index=False)


def main(table, folder):
    frame = pandas.read_csv(table)
    x, y = frame.iloc[:, :-1].to_numpy(np.float32), frame.iloc[:, -1].to_numpy(np.float32)
    train, test = data.Dataset(x, y).split(0.8, 0.2, seed=0)
    inputs, target = data.Normalizer(train.arrays[0]), data.Normalizer(train.arrays[1])

    def normal(d):
        return data.Dataset(inputs(d.arrays[0]), target(d.arrays[1]))

    result = astra.train(Net(x.shape[1]), astra.losses.mse, optim.adamw(lr=5e-3), normal(train), eval=normal(test), epochs=60, batch=32,
                         early_stop=astra.EarlyStop("eval_loss", patience=15), plot=folder / "loss.svg")  # fmt: skip

    def predict(rows):
        return result.model((rows - inputs.mean) / inputs.deviation) * target.deviation + target.mean

    n = astra.dim("rows", 1, 1000)
    predict = astra.trace(predict, astra.spec((n, x.shape[1]))).lower().compile()
    predict.save(folder / "table.astra")
    found = pandas.DataFrame({"measured": test.arrays[1], "predicted": predict(test.arrays[0]).numpy()})
    rest = ((found.predicted - found.measured) ** 2).sum() / ((found.measured - found.measured.mean()) ** 2).sum()
    print(f"{len(result.history)} epochs; R2 on rows that it has not seen: {1 - rest:.3f}")

    axes = found.plot.scatter("measured", "predicted", figsize=(5, 5), s=8)
    axes.axline((found.measured.mean(),) * 2, slope=1, color="gray", linewidth=1)
    axes.figure.savefig(folder / "predictions.svg")
    return 1 - rest


if __name__ == "__main__":
    arguments = [pathlib.Path(a) for a in sys.argv[1:]]
    csv = next((a for a in arguments if a.suffix == ".csv"), None)
    out = next((a for a in arguments if a.suffix != ".csv"), pathlib.Path("."))
    out.mkdir(parents=True, exist_ok=True)
    if csv is None:
        csv = out / "table.csv"
        make_table(csv)
    main(csv, out)
