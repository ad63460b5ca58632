"""Ranks that are processes, for tests: calls between shards go through their parent.

Takes:    a bundle for a mesh, what each rank does with it.
Gives:    what the ranks give.
Keeps:    what docs/distributed.md says of functions, with NumPy; nothing of a real engine.
"""

import multiprocessing
import re

import numpy as np

import astra_rt


def mesh_of(bundle_text):
    """The names of the functions that a schedule calls."""
    return sorted(set(re.findall(r"astra\.mesh\.[\w=,./+-]+", bundle_text)))


def exchange(name, x):
    """What a function gives all shards, of what all shards give."""
    _, op, sizes, over, kind = re.fullmatch(r"(astra\.mesh)\.(\w+)/([^/]*)/([^/]*)/(.*)", name).groups()
    mesh = {k: int(v) for k, v in (a.split("=") for a in sizes.split(","))}
    shape, names = list(mesh.values()), list(mesh)
    inside = [names.index(n) for n in over.split("+")]
    outside = [i for i in range(len(names)) if i not in inside]
    numbers = np.arange(int(np.prod(shape))).reshape(shape).transpose(outside + inside)
    groups = numbers.reshape(-1, int(np.prod([shape[i] for i in inside])))  # members in the order of the mesh
    combine = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}.get(kind.removesuffix(".one"))

    def fold(parts):
        while len(parts) > 1:
            pairs = [combine(a, b) for a, b in zip(parts[::2], parts[1::2])]
            parts = pairs + parts[len(pairs) * 2 :]
        return parts[0]

    def result(members, index):
        if op == "all_reduce":
            return fold([x[m] for m in members])
        if op == "reduce_scatter":
            return fold([x[m][index] for m in members])
        if op == "all_gather":
            return np.stack([x[m] for m in members])
        if op == "all_to_all":
            return np.stack([x[m][index] for m in members])
        if op == "index":
            return np.int64(index)
        assert op == "permute", op
        by = index - int(kind.removesuffix(".wrap"))
        inside = 0 <= by < len(members)
        return x[members[by % len(members)]] if inside or kind.endswith(".wrap") else np.zeros_like(x[members[index]])

    out = {s: result(members, index) for members in groups for index, s in enumerate(members)}
    return out[0] if kind.endswith("one") else np.stack([out[s] for s in range(numbers.size)])


def tupled(made):
    """What a function of so many results returns: calls of several tensors give as many."""
    return made[0] if len(made) == 1 else tuple(made)


def _rank(pipe, bundle, names, rank, work, arguments):
    def function(name):
        def call(*x):
            pipe.send((name, [np.array(v) for v in x]))
            return pipe.recv()

        return call

    try:
        for name in names:
            astra_rt.register(name, function(name), deterministic=True)
        pipe.send((None, work(bundle, rank, *arguments)))
    except BaseException as error:
        pipe.send((None, error))
        raise


def run(bundle, names, shards, ranks, work, *arguments):
    """work(bundle, rank, *arguments) of each rank, in a process of its own; what each gives."""
    start = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for rank in range(ranks):
        mine, theirs = start.Pipe()
        processes.append(start.Process(target=_rank, args=(theirs, bundle, names, rank, work, arguments), daemon=True))
        pipes.append(mine)
        processes[-1].start()
    local = shards // ranks
    while True:
        said = [pipe.recv() for pipe in pipes]
        (name,) = {n for n, _ in said}  # all ranks are at the same call
        values = [v for _, v in said]
        if name is None:
            for p in processes:
                p.join()
            for v in values:
                if isinstance(v, BaseException):
                    raise v
            return values
        made = [exchange(name, np.concatenate(parts)) for parts in zip(*values)]
        for rank, pipe in enumerate(pipes):
            pipe.send(tupled([m if name.endswith("one") else m[rank * local : (rank + 1) * local] for m in made]))
