"""The same bits however a network or a training is computed: two networks a day, all at night (bits.py says which ways)."""

import importlib.util
import os

import bits
import pytest

NIGHTLY = os.environ.get("ASTRA_NIGHTLY", "") not in ("", "0")


@pytest.mark.parametrize("name", bits.NETWORKS if NIGHTLY else ["mlp", "lstm"])
def test_a_network_has_one_digest(name):
    if name in bits.NEEDS and not importlib.util.find_spec(bits.NEEDS[name]):
        pytest.skip(f"{bits.NEEDS[name]} is not installed")
    ways = bits.network(name) if NIGHTLY else bits.network(name, sizes=(1, 2, 7, 33, 64))
    assert len(ways.digests) >= len(bits.levels()) * len(bits.THREADS) + 5 + len(bits.GPUS)
    assert not ways.differing()


def test_trained_weights_have_one_digest():
    ways = bits.training() if NIGHTLY else bits.training(rows=96, epochs=1)
    assert len(ways.digests) == 2 + len(bits.levels()) * len(bits.THREADS) + len(bits.GPUS)
    assert not ways.differing()


def test_another_digest_is_found():
    ways = bits.Ways()
    for way, digest, rows in (("a", "1", 64), ("b", "2", 2), ("c", "1", 64), ("d", "3", 2)):
        ways.add(way, digest, rows)
    assert ways.differing() == ["d, 2 rows: 3"]
