"""Settings of PyTorch that a program's meaning depends on.

Takes:    the state of the calling thread.
Gives:    gradients, autocast, the default type and device, as a key; whether they are as before, cheaply.
Keeps:    the check is PyTorch's own (Dynamo's guard of global state), one call in C. It sees more than the key does: where it fails, the key
          is made again and may be the same.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._C._dynamo.guards import GlobalStateGuard
from torch.utils import _device

HOST = "cpu"


def settings() -> tuple[Any, ...]:
    """The settings of this thread: first whether gradients are wanted."""
    autocast = torch.get_autocast_dtype(HOST) if torch.is_autocast_enabled(HOST) else None
    return torch.is_grad_enabled(), autocast, torch.get_default_dtype(), _device.CURRENT_DEVICE


def check_of_settings() -> Any:
    """A function that tells whether the settings are as now, but for the default device."""
    return GlobalStateGuard().check
