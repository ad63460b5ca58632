"""Bundles of --strides=any: calls on tensors at any strides give the bytes of calls on row-major ones, and copy none where a
kernel reads or writes the tensor where it is."""

import subprocess

import astra_rt
import numpy as np
import pytest
from conftest import BUILD, HERE, verdicts

ROOT = HERE.parents[2]

TYPES = {"f32": "f4", "f64": "f8", "i64": "i8", "i16": "i2", "u8": "u1", "bool": "?", "c64": "c8", "complex64": "c8"}
# Entries, each with the shapes of its inputs by (m, n, k).
ENTRIES = {
    "add": lambda m, n, k: [(m, n), (m, n), (n,)],
    "narrow": lambda m, n, k: [(m, n), (m, n)],
    "wide": lambda m, n, k: [(m, n, k)],
    "complex": lambda m, n, k: [(m, n), (m, n)],
    "sums": lambda m, n, k: [(m, n)],
    "turn": lambda m, n, k: [(m, n, k)],
    "take": lambda m, n, k: [(m, n), (k,)],
    "count": lambda m, n, k: [(m, n)],
    "product": lambda m, n, k: [(m, 16), (m, 8)],
    "kept": lambda m, n, k: [(m, 4)],
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """The bundle at any strides, and as it is without."""
    folder, made = tmp_path_factory.mktemp("strides"), []
    for kind in ("any", "row-major"):
        made.append(str(folder / f"{kind}.astra"))
        command = [BUILD / "bin/astra-compile", ROOT / "test/abi/strides.uop", "-o", made[-1], "--target=cpu:x86-64-v3", f"--strides={kind}"]
        subprocess.run([*command, *verdicts.compile_flags()], check=True)
    return tuple(made)


class Strided:
    """Memory, and a view of it of this shape: its axes in any order, every second or third element of some, a part of a larger
    array; of an input sometimes one element for all of an axis."""

    def __init__(self, random, shape, dtype, isInput, most=2, negative=False):
        rank = len(shape)
        order, steps, extra = random.permutation(rank), random.choice([1, 1, 2, 3], rank), random.integers(0, 3, rank)
        large = [int(shape[a] * steps[a] + extra[a]) for a in order]
        if np.dtype(dtype).kind in "fc":
            self.memory = random.normal(size=large).astype(dtype)
        else:
            self.memory = random.integers(-1 if dtype == "i8" else 0, most, large).astype(dtype)
        self.memory = np.asarray(self.memory)
        number = np.arange(self.memory.size).reshape(large)
        ends = [(int(extra[a] // 2), int(extra[a] // 2 + shape[a] * steps[a]), int(steps[a])) for a in order]
        at = tuple(slice(*e) for e in ends)
        self.view, number = (v[at].transpose(np.argsort(order)) if rank else v for v in (self.memory, number))
        if negative and rank:
            axis = int(random.integers(rank))
            self.view, number = np.flip(self.view, axis), np.flip(number, axis)
        elif isInput and rank and random.random() < 0.2:
            axis = int(random.integers(rank))
            if shape[axis]:
                self.view = np.broadcast_to(np.take(self.view, [0], axis) * 0 + self.view.take([0], axis), shape)
        self.others = np.ones(self.memory.size, bool)
        self.others[number.reshape(-1)] = False
        self.before = self.memory.reshape(-1)[self.others].tobytes()

    def keepsOthers(self):
        return self.memory.reshape(-1)[self.others].tobytes() == self.before


def run(module, plain, name, random, negative=False):
    """A call on random views, which gives the bytes of the plain one; its copies."""
    m, n, k = (int(random.choice([1, 2, 3, 5, 8, 17, 33, 64])) for _ in range(3))
    m, k = int(random.choice([m] * 9 + [0])), min(k, 16)
    entry = plain.entries[name]
    inputs = [
        Strided(random, s, TYPES[t.dtype], True, m + 1 if t.dtype == "i64" else 100, negative)
        for s, t in zip(ENTRIES[name](m, n, k), entry.inputs)
    ]
    wanted = entry(*[np.ascontiguousarray(x.view) for x in inputs])
    wanted = [np.asarray(w) for w in (wanted if isinstance(wanted, tuple) else (wanted,))]
    outs = [Strided(random, w.shape, w.dtype.str, False, 2, negative) for w in wanted]
    given = {t.name: o.view for t, o in zip(entry.outputs, outs)}
    if name == "kept":
        del given["kept"]  # as long as the data says
    with module.trace() as trace:
        got = module.entries[name](*[x.view for x in inputs], out=given)
    for w, g in zip(wanted, got if isinstance(got, tuple) else (got,)):
        assert np.asarray(g).tobytes() == w.tobytes()
    assert all(o.keepsOthers() for o in outs)
    return [(e.name, e.origins) for e in trace if e.name in ("gather", "scatter")]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ENTRIES)
def test_strided_tensors_give_the_same_bytes(paths, name, threads):
    module, plain = astra_rt.load(paths[0], threads=threads), astra_rt.load(paths[1])
    random = np.random.default_rng(list(ENTRIES).index(name) + 100 * threads)
    for _ in range(60):
        copied = run(module, plain, name, random)
        assert copied == [] or name == "kept"  # a result is as long as the data says: row-major


def test_what_is_copied_is_in_the_trace(paths):
    module, plain = (astra_rt.load(p) for p in paths)
    random = np.random.default_rng(3)
    copied = [run(module, plain, name, random, negative=True) for name in ENTRIES for _ in range(20)]
    assert any(copied) and {kind for list in copied for kind, _ in list} == {"gather", "scatter"}
    x = (np.arange(12, dtype=np.complex64) * (1 + 2j)).reshape(3, 4)
    conjugate = plain.complex(x.conj(), x)
    assert module.complex(x.T.conj().T, x).z.tobytes() == conjugate.z.tobytes()
    # Without the option every tensor at strides is.
    assert any(run(plain, plain, "add", random) for _ in range(20))


def test_shared_elements_cannot_be_written(paths):
    module = astra_rt.load(paths[0])
    x, row = np.ones((4, 4), np.float32), np.ones(4, np.float32)
    one = np.zeros((1, 4), np.float32)
    broadcast = np.lib.stride_tricks.as_strided(one, (4, 4), (0, 4))
    windows = np.lib.stride_tricks.as_strided(np.zeros(20, np.float32), (4, 4), (8, 4))
    for out in (broadcast, windows):
        with pytest.raises(astra_rt.Error, match="cannot be written"):
            module.add(x, x, row, out=out)
    table = np.ones((4, 8), np.float32)
    with pytest.raises(astra_rt.Error, match="overlap"):
        module.add(table[:, ::2], x, row, out=table[:, 2:6])
    module.add(table[:, ::2], x, row, out=table[:, 1::2])  # what is read lies between what is written
    assert (table[:, 1::2] == 2).all() and (table[:, ::2] == 1).all()
