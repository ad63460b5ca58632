"""Astra from Python: `@astra` on PyTorch's module, `astra.torch.train_step` for a training. Tensors of PyTorch's go in and come out."""

import numpy as np
import torch

import astra
import astra.torch


def tensor(value):
    return torch.from_numpy(np.ascontiguousarray(value)) if value.ndim else torch.tensor(value[()])


class Peer:
    def __init__(self, threads):
        torch.set_num_threads(threads)

    def prepare(self, row):
        """What a row's module imports, by one without weights; what the first capture imports."""
        from rows import networks, train

        astra.torch.compiled(torch.nn.ReLU())(torch.zeros(1))
        with torch.device("meta"):
            if row.family == "train":
                train.module(torch, row)
            else:
                networks.module(torch, row.path)

    def build(self, row, case, path):
        """A network in a file: to make its weights takes more memory than to run it."""
        if row.family == "train":
            return None
        from rows import networks

        made = path.with_suffix(".pt")
        torch.save(networks.module(torch, row.path), made)
        return made

    def load(self, row, case, path):
        if row.family == "train":
            return self.load_training(row, case)
        from rows import networks

        module = astra.astra(torch.load(path, weights_only=False))
        inputs = networks.call({name: tensor(value) for name, value in case.inputs.items()})

        def run():
            self.result = module(*inputs)

        self.run = torch.no_grad()(run)
        self.run()

    def load_training(self, row, case):
        """The first loss is the result; the weights go on from step to step."""
        from rows import train

        module = train.module(torch, row)
        optimizer = torch.optim.AdamW(module.parameters(), lr=train.RATE, weight_decay=train.DECAY)
        given, target = tensor(train.data(case)[1]), torch.from_numpy(case.inputs["target"])
        step = astra.torch.train_step(module, torch.nn.functional.cross_entropy, optimizer, (given, target), target="native")

        def run():
            self.result = step(given, target)

        self.run = run
        self.run()

    def outputs(self):
        flat = []
        for value in [self.result] if isinstance(self.result, torch.Tensor) else self.result:
            flat += [value] if isinstance(value, torch.Tensor) else value
        return [value.detach().contiguous().numpy() for value in flat]
