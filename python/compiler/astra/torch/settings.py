"""Settings of PyTorch that a program's meaning depends on.

Takes:    the state of the calling thread.
Gives:    gradients, autocast, the default type and device, as a key.
Keeps:    what a call checks costs little: where autocast is on, calls go the general way.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _device

# What is in the key of a quick call, the default device apart: autocast must be off.
CHECKED = (torch._C._is_any_autocast_enabled, torch.is_grad_enabled, torch.get_default_dtype)


def settings() -> tuple[Any, ...]:
    """The settings of this thread: first whether gradients are wanted."""
    autocast = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
    return torch.is_grad_enabled(), autocast, torch.get_default_dtype(), _device.CURRENT_DEVICE
