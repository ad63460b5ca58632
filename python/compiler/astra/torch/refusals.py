"""What goes wrong while PyTorch code is captured, as one sentence.

Takes:    an exception of torch.export, of AOTAutograd or of the user's code.
Gives:    the user's own exception as it is; else a TraceError with the user's line, with advice where data decide.
"""

from __future__ import annotations

import re
import traceback

from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from .._errors import Error, TraceError
from .lower import is_users
from .rows.registry import packet_of

_OF_DATA = (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode)
_DATA_WORDS = re.compile(r"data.dependent|torch\.compile|bool\(\) on|item\(\)|unbacked", re.I)
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def user_line(error: BaseException) -> str:
    """The last line of the user's program in a traceback, or in the one that PyTorch wrote into the text."""
    frames = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__) if is_users(f.filename)]
    own = [(name, line) for name, line in _FRAME.findall(str(error)) if is_users(name)]
    found = (own or frames)[-1:]
    return f"{found[0][0]}:{found[0][1]}" if found else ""


def sentence(error: BaseException) -> str:
    """The first line of an error's text; where that announces another, both."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])


def is_users_own(error: BaseException) -> bool:
    """Whether the user's code raised it itself."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and is_users(frames[-1].filename) and not isinstance(error, _OF_DATA) and not _is_of_torch(error)


def _is_of_torch(error: BaseException) -> bool:
    """Functions of PyTorch's in C++ have no frame: their errors seem to come from the line that calls them."""
    return type(error) in (RuntimeError, NotImplementedError, TypeError, IndexError) or type(error).__module__.startswith("torch")


def refused(name: str, error: Exception) -> Exception:
    """What to raise in the place of an exception."""
    if isinstance(error, Error) or is_users_own(error):
        return error
    line = user_line(error)
    where = f"'{name}' cannot be captured as a graph{f' ({line})' if line else ''}: "
    if isinstance(error, (DataDependentOutputException, DynamicOutputShapeException)):
        what = "gives a tensor whose size depends on data" if isinstance(error, DynamicOutputShapeException) else "gives a number that depends on data"
        return TraceError(f"{where}{packet_of(error.func)} {what}; select by torch.where with a mask, or branch by torch.cond")
    text = sentence(error)
    advice = "; what depends on values of tensors is written by torch.where or torch.cond" if isinstance(error, _OF_DATA) or _DATA_WORDS.search(str(error)) else ""
    return TraceError(f"{where}{text}{advice}")
