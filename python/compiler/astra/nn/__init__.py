"""Layers and modules. See `Module`, `apply`, `partition`, `save`, `load`."""

from ._attention import MultiHeadAttention, alibi, attention, rotary, rotary_tables
from ._layers import (
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Dropout,
    Embedding,
    Flatten,
    GlobalAvgPool,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    Linear,
    LoRA,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    PReLU,
    RMSNorm,
    Upsample,
)
from ._module import Function, Module, Sequential, apply, combine, initialize, load, modules_of, parameter, partition, save, watch
from ._recurrent import GRU, LSTM, RNN

__all__ = [
    "AvgPool1d", "AvgPool2d", "AvgPool3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
    "ConvTranspose2d", "ConvTranspose3d", "Dropout", "Embedding", "Flatten", "Function", "GRU", "GlobalAvgPool", "GroupNorm",
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LSTM", "LayerNorm", "Linear", "LoRA", "MaxPool1d", "MaxPool2d", "MaxPool3d",
    "Module", "MultiHeadAttention", "PReLU", "RMSNorm", "RNN", "Sequential", "Upsample", "alibi", "apply", "attention", "combine", "initialize", "load",
    "modules_of", "parameter", "partition", "rotary", "rotary_tables", "save", "watch",
]  # fmt: skip
