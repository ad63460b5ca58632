"""PyTorch: eager with images channels-last, or torch.compile with frozen weights and its most thorough tuning."""

import functools

import numpy as np
import torch
import torch._dynamo
import torch._inductor.config


def tensor(value):
    found = torch.from_numpy(np.ascontiguousarray(value)) if value.ndim else torch.tensor(value[()])
    return found.contiguous(memory_format=torch.channels_last) if found.ndim == 4 else found


class Function(torch.nn.Module):
    """A row's function of its values; weights belong to the module, so that they can be packed."""

    def __init__(self, row, case):
        super().__init__()
        self.function, self.names = row.torch, list(case.inputs)
        self.weights = list(case.weights)
        for name, value in case.weights.items():
            self.register_buffer(f"weight_{name}", tensor(value))

    def forward(self, *inputs):
        return self.function(torch, {**dict(zip(self.names, inputs)), **{name: getattr(self, f"weight_{name}") for name in self.weights}})


@functools.cache
def import_compiler():
    """Its parts, by a small network."""
    small = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU6(), torch.nn.Flatten(), torch.nn.Linear(32, 8))
    with torch.no_grad(), torch._inductor.config.patch(freezing=True):
        torch.compile(small.eval(), mode="max-autotune", dynamic=False)(torch.zeros(1, 1, 4, 4))


class Peer:
    def __init__(self, threads, compiled=False):
        torch.set_num_threads(threads)
        self.compiled = compiled

    def prepare(self, row):
        """What a row's module imports, by one without weights."""
        from rows import networks, train

        if self.compiled:
            import_compiler()
        with torch.device("meta"):
            if row.family == "train":
                train.module(torch, row)
            elif row.path:
                networks.module(torch, row.path)

    def build(self, row, case, path):
        """A network in a file: to make its weights takes more memory than to run it."""
        if not row.path:
            return None
        from rows import networks

        module = networks.module(torch, row.path)
        if row.path in ("resnet50", "mobilenet_v2"):
            module = module.to(memory_format=torch.channels_last)
        made = path.with_suffix(".pt")
        torch.save(module, made)
        return made

    def load(self, row, case, path):
        torch._dynamo.reset()
        torch._inductor.config.freezing = row.family != "train"
        if row.family == "train":
            return self.load_training(row, case)
        if row.path:
            from rows import networks

            module = torch.load(path, weights_only=False)
            inputs = networks.call({name: tensor(value) if "past" not in name else torch.from_numpy(value) for name, value in case.inputs.items()})
        elif row.torch is None:
            raise ValueError("the row has no function for it")
        else:
            module = Function(row, case)
            image = row.family in ("conv", "layers")
            inputs = [tensor(value) if image else torch.from_numpy(value) for value in case.inputs.values()]
        if self.compiled:
            module = torch.compile(module, mode="max-autotune", dynamic=False)

        def run():
            self.result = module(*inputs)

        self.run = torch.no_grad()(run)
        self.run()

    def load_training(self, row, case):
        """The first loss is the result; the weights go on from step to step."""
        from rows import train

        module = train.module(torch, row).to(memory_format=torch.channels_last)
        optimizer = torch.optim.AdamW(module.parameters(), lr=train.RATE, weight_decay=train.DECAY, fused=True)
        given, target = tensor(train.data(case)[1]), torch.from_numpy(case.inputs["target"])

        def loss():
            return torch.nn.functional.cross_entropy(module(given), target)

        step = torch.compile(loss, mode="max-autotune", dynamic=False) if self.compiled else loss

        def run():
            optimizer.zero_grad(set_to_none=True)
            self.result = step()
            self.result.backward()
            optimizer.step()

        self.run = run
        self.run()

    def outputs(self):
        flat = []
        for value in [self.result] if isinstance(self.result, torch.Tensor) else self.result:
            flat += [value] if isinstance(value, torch.Tensor) else value
        return [value.detach().contiguous().numpy() for value in flat]
