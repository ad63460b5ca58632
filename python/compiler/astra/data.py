"""Data: arrays from files, and batches of them.

Takes:    .csv, .npy, .npz, .safetensors, images, text; arrays, tensors, columns of pandas.
Gives:    arrays of NumPy; a Dataset, whose batches come in an order that the seed and the number of the epoch decide, the same as in
          `astra-train`; splits, normalisation, one-hot classes, augmentation.
Keeps:    rows are the first axis of every array. A file is read with limits: what is not as its format says is refused.
"""

from __future__ import annotations

import csv
import os
import queue
import threading
import zipfile
import zlib
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from . import _core
from ._boundary import guard
from ._errors import ArgumentError, ShapeError
from ._random import checked_seed
from ._tensor import Tensor

_MOST_ROWS = 2**32 - 1


def array(values: Any) -> Any:
    """An array of NumPy of what has rows: an array, a tensor, a list, a column or a frame of pandas."""
    if isinstance(values, Tensor):
        return values.numpy()
    if hasattr(values, "to_numpy"):
        return values.to_numpy()
    return np.asarray(values)


class Dataset:
    """Arrays with equally many rows: one, a tuple, or a dict by name. `len`, indexing by rows, `batches`, `split`, `map`."""

    def __init__(self, *arrays: Any, **named: Any) -> None:
        if bool(arrays) == bool(named):
            raise ArgumentError("a Dataset takes arrays, or arrays by name")
        self.names: tuple[str, ...] | None = tuple(named) if named else None
        self.arrays = tuple(array(a) for a in (named.values() if named else arrays))
        for name, a in zip(self.names or map(str, range(len(self.arrays))), self.arrays):
            if a.ndim == 0:
                raise ShapeError(f"array {name} has no rows: it is a number")
            if len(a) != len(self.arrays[0]):
                raise ShapeError(f"array {name} has {len(a)} rows; array {(self.names or ('0',))[0]} has {len(self.arrays[0])}")
            if a.dtype.kind not in "biufcV":
                raise ArgumentError(f"array {name} is of {a.dtype}; numbers are needed")
        if len(self) > _MOST_ROWS:
            raise ArgumentError(f"{len(self)} rows; at most {_MOST_ROWS} are allowed")

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, rows: Any) -> Any:
        found = tuple(a[rows] for a in self.arrays)
        if self.names:
            return dict(zip(self.names, found))
        return found if len(found) > 1 else found[0]

    def __repr__(self) -> str:
        names = self.names or tuple(map(str, range(len(self.arrays))))
        return f"Dataset({', '.join(f'{n}: {a.dtype}{list(a.shape)}' for n, a in zip(names, self.arrays))})"

    def _like(self, arrays: Sequence[Any]) -> Dataset:
        return Dataset(**dict(zip(self.names, arrays))) if self.names else Dataset(*arrays)

    def take(self, rows: Any) -> Dataset:
        """The dataset of some rows, by numbers or a slice."""
        return self._like([a[rows] for a in self.arrays])

    def map(self, f: Callable[[Any], Any]) -> Dataset:
        """f of all rows at once: it takes and gives what a batch is."""
        out = f(self[:])
        if isinstance(out, Mapping):
            return Dataset(**out)
        return Dataset(*(out if isinstance(out, tuple) else (out,)))

    def split(self, *parts: float, seed: int | None = 0) -> list[Dataset]:
        """Datasets of parts of the rows, shuffled by the seed (None: in their order): split(0.8, 0.2). The last takes what is left."""
        if not parts or min(parts) <= 0 or sum(parts) > 1 + 1e-9:
            raise ArgumentError(f"parts are above 0 and together 1 at most, not {parts}")
        order = np.arange(len(self)) if seed is None else order_of(seed, 0, len(self))
        ends = [round(len(self) * sum(parts[: i + 1])) for i in range(len(parts))]
        return [self.take(order[b:e]) for b, e in zip([0, *ends], ends)]

    def batches(self, size: int, *, seed: int | None = 0, epoch: int = 1, drop_last: bool = False, begin: int = 0,
                prefetch: int = 2, augment: Callable[[Any, int], Any] | None = None) -> Iterator[Any]:  # fmt: skip
        """Batches of `size` rows; the last has what is left unless drop_last. seed: of the order, which the number of the epoch
        decides with it; None: in their order. begin: the number of batches that are passed over. prefetch: how many are made ready
        by a thread; 0: none. augment: a function of a batch and its number in the epoch."""
        if size < 1:
            raise ArgumentError(f"a batch has a row at least, not {size}")
        order = np.arange(len(self)) if seed is None else order_of(seed, epoch, len(self))
        count = len(self) // size if drop_last else -(-len(self) // size)

        def make(i: int) -> Any:
            batch = self[order[i * size : (i + 1) * size]]
            return augment(batch, i) if augment else batch

        if prefetch < 1:
            return (make(i) for i in range(begin, count))
        return _prefetched(make, range(begin, count), prefetch)


def order_of(seed: int, epoch: int, rows: int) -> Any:
    """The order of the rows in an epoch, the first being 1: Fisher and Yates' shuffle by the contract's generator, as in astra-train."""
    return np.frombuffer(_core.shuffle(checked_seed(seed), int(epoch), int(rows)), np.uint32)


def _prefetched(make: Callable[[int], Any], numbers: Any, ahead: int) -> Iterator[Any]:
    ready: queue.Queue[Any] = queue.Queue(ahead)
    stop = threading.Event()

    def put(item: Any) -> bool:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for i in numbers:
                if not put((True, make(i))):
                    return
            put((False, None))
        except BaseException as error:  # goes to who asks for the batch
            put((False, error))

    thread = threading.Thread(target=work, name="astra.data", daemon=True)
    thread.start()
    try:
        while True:
            more, item = ready.get()
            if not more:
                if item is not None:
                    raise item
                return
            yield item
    finally:
        stop.set()
        thread.join()


# ---- files


def load(path: str | os.PathLike[str], **options: Any) -> Any:
    """What a file holds: an array of .npy, a dict of arrays of .npz and .safetensors, a dict of columns of .csv."""
    name = os.fspath(path)
    end = os.path.splitext(name)[1].lower()
    readers = {".npy": read_npy, ".npz": read_npz, ".safetensors": read_safetensors, ".csv": read_csv}
    if end not in readers:
        raise ArgumentError(f"'{name}': files of data end in {', '.join(readers)}; see also images and text")
    return readers[end](name, **options)


def read_npy(path: str | os.PathLike[str]) -> Any:
    """The array of a .npy file, mapped into memory."""
    with _readable(path, ".npy"):
        return _an_array(np.load(path, mmap_mode="r", allow_pickle=False))


def read_npz(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arrays of a .npz file by their names."""
    with _readable(path, ".npz"), np.load(path, allow_pickle=False) as file:
        return {name: _an_array(file[name]) for name in file.files}


def _an_array(x: Any) -> Any:
    if not isinstance(x, np.ndarray):
        raise ValueError("it holds something else than an array")
    return x


@contextmanager
def _readable(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """What a library says of a damaged file as an exception of this package. A file that is not there stays an OSError."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise
        raise ArgumentError(f"'{os.fspath(path)}' is no {kind} file that can be read: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError, EOFError, SyntaxError, OverflowError, MemoryError, NotImplementedError, RuntimeError,
            zipfile.BadZipFile, zlib.error) as error:  # fmt: skip
        raise ArgumentError(f"'{os.fspath(path)}' is no {kind} file that can be read: {str(error) or type(error).__name__}") from None


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The tensors of a .safetensors file by their names, as arrays."""
    from astra_rt._safetensors import read

    return {name: t.numpy() for name, t in read(os.fspath(path)).items()}


def read_csv(path: str | os.PathLike[str], dtype: Any = np.float32, header: bool | None = None) -> dict[str, Any]:
    """The columns of a .csv file by the names of its first line; "0", "1" ... where it has no names. header: whether the first line has
    names; None: it has where a cell of it is no number. A cell that is no number is refused with its line."""
    name = os.fspath(path)
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, strict=True)
        try:
            rows = [(reader.line_num, row) for row in reader]
        except (csv.Error, UnicodeDecodeError) as error:
            raise ArgumentError(f"'{name}', line {reader.line_num + 1}: it is no text of cells in UTF-8: {error}") from None
    if not rows:
        raise ArgumentError(f"'{name}' is empty")
    first = rows[0][1]
    has_names = not all(map(_is_number, first)) if header is None else header
    names = rows.pop(0)[1] if has_names else [str(i) for i in range(len(first))]
    if not all(n.strip() for n in names):
        raise ArgumentError(f"'{name}': column {next(i for i, n in enumerate(names) if not n.strip())} has no name in the first line")
    if len(set(names)) != len(names):
        raise ArgumentError(f"'{name}': two columns have one name: {', '.join(sorted(n for n in set(names) if names.count(n) > 1))}")
    columns: list[list[float]] = [[] for _ in names]
    for line, row in rows:
        if len(row) != len(names):
            raise ArgumentError(f"'{name}', line {line}: {len(row)} cells; there are {len(names)} columns")
        for column, cell, title in zip(columns, row, names):
            if not _is_number(cell):
                raise ArgumentError(f"'{name}', line {line}, column '{title}': '{cell}' is no number")
            column.append(float(cell))
    return {n: np.asarray(c, np.float64).astype(dtype) for n, c in zip(names, columns)}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def images(paths: Sequence[str | os.PathLike[str]], size: tuple[int, int] | None = None, mode: str = "RGB") -> Any:
    """Images as uint8 [N, C, H, W], by Pillow. size: (height, width) to which each is resized; None: they are of one size."""
    try:
        from PIL import Image
    except ImportError:
        raise ArgumentError("images are read by Pillow: pip install pillow") from None
    out = []
    for p in paths:
        with Image.open(p) as file:
            image = file.convert(mode)
            if size is not None:
                image = image.resize((size[1], size[0]))
            pixels = np.asarray(image, np.uint8)
        out.append(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1))
        if out[-1].shape != out[0].shape:
            raise ShapeError(f"'{os.fspath(p)}' has shape {out[-1].shape}; '{os.fspath(paths[0])}' has {out[0].shape}: give a size")
    return np.stack(out)


class Text:
    """Text as numbers of characters or bytes: `encode`, `decode`, and windows for a language model."""

    def __init__(self, text: str, by: str = "characters") -> None:
        if by not in ("characters", "bytes"):
            raise ArgumentError(f"text goes by 'characters' or 'bytes', not by '{by}'")
        self.by = by
        self.symbols = sorted(set(text)) if by == "characters" else [bytes([i]) for i in range(256)]
        self._number = {s: i for i, s in enumerate(self.symbols)}
        self.numbers = self.encode(text)

    def encode(self, text: str) -> Any:
        """The numbers of a text, int64. A character that there was not is refused."""
        if self.by == "bytes":
            return np.frombuffer(text.encode(), np.uint8).astype(np.int64)
        unknown = sorted(set(text) - set(self.symbols))
        if unknown:
            raise ArgumentError(f"the text has characters that there were not: {unknown[:8]}")
        return np.asarray([self._number[c] for c in text], np.int64)

    def decode(self, numbers: Any) -> str:
        """The text of numbers."""
        found = array(numbers).reshape(-1).tolist()
        if self.by == "bytes":
            return bytes(found).decode(errors="replace")
        return "".join(self.symbols[i] for i in found)

    def windows(self, length: int, stride: int | None = None) -> Dataset:
        """Windows of `length` symbols and, as targets, those one further on."""
        n = len(self.numbers) - length - 1
        if length < 1 or n < 0:
            raise ArgumentError(f"a text of {len(self.numbers)} symbols has no window of {length} and the next one")
        starts = np.arange(0, n + 1, stride or length)[:, None] + np.arange(length)
        return Dataset(self.numbers[starts], self.numbers[starts + 1])


# ---- changes


def one_hot(classes: Any, count: int, dtype: Any = np.float32) -> Any:
    """[..., count]: 1 at the class, else 0."""
    found = array(classes)
    if found.size and (found.min() < 0 or found.max() >= count):
        raise ArgumentError(f"classes are within 0..{count - 1}; there are {found.min()}..{found.max()}")
    return np.eye(count, dtype=dtype)[found]


class Normalizer:
    """(x - mean) / deviation for each column, of the rows that it was made with; a column without deviation is moved only."""

    def __init__(self, x: Any, axis: int | tuple[int, ...] = 0) -> None:
        x = array(x).astype(np.float64)
        self.mean = x.mean(axis, keepdims=True).astype(np.float32)
        deviation = x.std(axis, keepdims=True)
        self.deviation = np.where(deviation > 0, deviation, 1).astype(np.float32)

    def __call__(self, x: Any) -> Any:
        return (array(x).astype(np.float32) - self.mean) / self.deviation

    def inverse(self, x: Any) -> Any:
        """What a normalised x was."""
        return array(x) * self.deviation + self.mean


def random_flip(images: Any, seed: int, number: int) -> Any:
    """Images [N, C, H, W], each mirrored or not by the contract's generator: of one seed and number always the same ones."""
    flips = np.frombuffer(_core.random_words(checked_seed(seed), checked_seed(number, 32, "number"), len(images)), np.uint32) >> 31
    return np.where(flips.reshape(-1, 1, 1, 1) == 1, images[..., ::-1], images)


def random_crop(images: Any, padding: int, seed: int, number: int) -> Any:
    """Images [N, C, H, W] with `padding` zeros around them, cut to their size at a place by the contract's generator."""
    n, _, height, width = images.shape
    words = np.frombuffer(_core.random_words(checked_seed(seed), checked_seed(number, 32, "number"), 2 * n), np.uint32).astype(np.uint64)
    places = (words * np.uint64(2 * padding + 1) >> np.uint64(32)).astype(np.int64).reshape(n, 2)
    around = np.pad(images, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    return np.stack([around[i, :, y : y + height, x : x + width] for i, (y, x) in enumerate(places)])


__all__ = [
    "Dataset", "Normalizer", "Text", "array", "csv", "images", "load", "one_hot", "order_of", "random_crop",
    "random_flip", "read_csv", "read_npy", "read_npz", "read_safetensors",
]  # fmt: skip
guard(globals(), [n for n in __all__ if n not in ("csv", "load")], __name__)
