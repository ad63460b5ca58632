"""Networks of torchvision and transformers through `@astra` and torch.compile's backend, values and gradients beside PyTorch: all at night,
a small one each day. `networks.py` prints the table."""

import os

import pytest
from networks import GRADIENTS, LANGUAGE, VALUES, VISION, figures, line

NIGHTLY = os.environ.get("ASTRA_NIGHTLY", "") not in ("", "0")


@pytest.mark.parametrize("name", LANGUAGE + VISION if NIGHTLY else ["bert"])
def test_networks(name):
    pytest.importorskip("transformers" if name in LANGUAGE else "torchvision")
    found = figures(name)
    print(line(name, found))
    assert found["alone"] <= VALUES
    for values, gradients in (found["@astra"], found["backend"]):
        assert values <= VALUES and gradients <= GRADIENTS
