"""Operations on tensors: functions of the module `astra`, many of them methods of Tensor too.

Takes:    tensors, arrays, numbers.
Gives:    tensors.
Keeps:    names and meanings of the Array API 2025.12, aliases of NumPy beside them.
Does not: compute: each function adds nodes to the graph at hand (_building).
"""

from __future__ import annotations

from . import _activations, _aliases, _creation, _elementwise, _indexing, _inspection, _manipulation, _products, _reductions, _sorting
from ._activations import *  # noqa: F403
from ._aliases import *  # noqa: F403
from ._building import *  # noqa: F403
from ._creation import *  # noqa: F403
from ._elementwise import *  # noqa: F403
from ._indexing import *  # noqa: F403
from ._inspection import *  # noqa: F403
from ._manipulation import *  # noqa: F403
from ._products import *  # noqa: F403
from ._reductions import *  # noqa: F403
from ._sorting import *  # noqa: F403
from ._tensor import asarray as asarray

_PARTS = (_activations, _aliases, _creation, _elementwise, _indexing, _inspection, _manipulation, _products, _reductions, _sorting)
__all__ = sorted(name for part in _PARTS for name in part.__all__)
