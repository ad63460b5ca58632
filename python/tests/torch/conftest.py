"""Tests of astra.torch: where PyTorch is installed (scripts/setup --models)."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
os.environ.setdefault("OMP_NUM_THREADS", "1")
torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
