"""Tensors: what calls give.

Takes:    memory that C++ holds.
Gives:    NumPy arrays, DLPack capsules, buffers, numbers, a repr with values.
Keeps:    a tensor never changes; arrays and capsules of it share its memory and say that it is read-only.
Does not: compute.
"""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from . import _rt
from ._convert import NARROW, decoded

_CPU = 1


class Tensor(_rt.Tensor):
    """An immutable tensor in host memory; row-major, but for what `from_dlpack` took with strides.

    `numpy()`, `np.asarray(t)`, `memoryview(t)` and `np.from_dlpack(t)` share its memory and are read-only; `np.array(t)`
    copies. `torch.from_dlpack(t)` shares it too: do not write to what it gives."""

    __slots__ = ()

    def numpy(self) -> Any:
        """A read-only array, without a copy unless elements take less than a byte. Types that NumPy lacks are those of
        ml_dtypes; where that is not installed, codes (values of integers)."""
        array = self._array()
        return decoded(array, self.dtype, self.shape) if self.dtype in NARROW else array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        if dtype is not None and array.dtype != np.dtype(dtype):
            if copy is False:
                raise ValueError(f"a tensor of {self.dtype} cannot be an array of {np.dtype(dtype)} without a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:  # fmt: skip
        """A capsule of DLPack. One of version 1 says that it is read-only; an older one cannot, and lends a copy."""
        if stream is not None:
            raise BufferError("a tensor in host memory has no stream: stream must be None")
        if dl_device is not None and tuple(dl_device) != (_CPU, 0):
            raise BufferError(f"the tensor lies in host memory, not on device {tuple(dl_device)}; copy it there")
        versioned = max_version is not None and max_version[0] >= 1
        if copy is False and not versioned:
            raise BufferError("the tensor is read-only, which DLPack says from version 1 on; ask for it with max_version")
        return self._capsule(versioned, bool(copy) or not versioned)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CPU, 0)

    def item(self) -> Any:
        """The one element as a number of Python's."""
        if self.size != 1:
            raise ValueError(f"a tensor of {self.size} elements is not one number; its shape is {self.shape}")
        return self.numpy().reshape(()).item()

    def tolist(self) -> Any:
        """Nested lists of numbers."""
        return self.numpy().tolist()

    def tobytes(self) -> bytes:
        """The elements' bytes, row-major; packed types as they lie in memory."""
        return self._array().tobytes()  # type: ignore[no-any-return]

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __index__(self) -> int:
        if self.dtype[0] not in "iu":
            raise TypeError(f"a tensor of {self.dtype} is no index")
        return int(self.item())

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a tensor without axes has no length")
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        return self.numpy()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numpy())

    def __repr__(self) -> str:
        shape = f"[{', '.join(map(str, self.shape))}]" if self.ndim else ""
        try:
            values = np.array2string(self.numpy(), separator=", ", prefix="Tensor(")
        except Exception:  # a type that NumPy cannot print
            values = "..."
        return f"Tensor({values}, {self.dtype}{shape})"

    def __reduce__(self) -> Any:
        return (_from_bytes, (self.dtype, self.shape, self.tobytes()))


def _from_bytes(dtype: str, shape: tuple[int, ...], data: bytes) -> Any:
    """A tensor as pickle brings it back."""
    array = np.frombuffer(bytearray(data), np.uint8)
    if dtype not in NARROW:
        from ._convert import NUMPY

        array = array.view(NUMPY[dtype])
    elif dtype == "bf16":
        array = array.view(np.uint16)
    return _rt.wrap(array, dtype, shape)
