"""jax.sharding's annotations: NamedSharding of arguments, results and values in the middle, as a mesh and shardings."""

import os
import re
import subprocess
import sys

import pytest

# A process of its own: JAX makes its devices once.
PROGRAM = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import astra
mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
on = lambda *axes: NamedSharding(mesh, P(*axes))
def spec(shape, *axes):
    return jax.ShapeDtypeStruct(shape, np.float32, sharding=on(*axes))
def f(x, w, v):
    h = jax.lax.with_sharding_constraint(jnp.tanh(x @ w), on("data", "model"))
    return h @ v
x, w, v = (np.random.default_rng(i).standard_normal(s).astype(np.float32) for i, s in enumerate(((8, 4), (4, 6), (6, 2))))
placed = [jax.device_put(a, on(*axes)) for a, axes in ((x, ("data", None)), (w, (None, "model")), (v, ("model", None)))]
"""


def run(program):
    done = subprocess.run([sys.executable, "-c", PROGRAM + program], capture_output=True, text=True, env=os.environ, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_arguments_and_values_in_the_middle():
    said = run("""
model = astra.from_jax(f, *placed)
print(model.lower().as_text(), model.lower().as_text("sharding"))
assert np.array_equal(model(x, w, v).numpy(), astra.from_jax(f, x, w, v)(x, w, v).numpy())  # a call is of whole tensors
""")
    assert "{ data 2, model 2 }" in said and re.search(r'reshard %\w+ to="\(data, model\)"', said)
    assert "f32[8, 4] shard (data, -)" in said and "f32[4, 6] shard (-, model)" in said and "f32[6, 2] shard (model, -)" in said
    assert 'all_reduce %2 group="data=2,model=2/model" kind=sum' in said  # the sum over h's columns


def test_all_shards_give_the_bytes_of_the_whole():
    run("""
def g(x, w):
    return jnp.tanh(x @ w) * 2
def evaluated(module):
    given = [("f32", list(a.shape), (a.ctypes.data, a.nbytes)) for a in (x, w)]
    return module.evaluate("main", given)[0][0][2]
cut = astra.from_jax(g, *placed[:2]).lower()
assert "all_reduce" not in cut.as_text("sharding") and "f32[4, 4] shard (data, -)" in cut.as_text("sharding")
assert evaluated(astra._core.program_of_shard(cut.module)) == evaluated(astra.from_jax(g, x, w).lower().module)
""")


def test_results_and_specs():
    said = run("""
model = astra.from_jax(jax.jit(lambda x: x * 2, out_shardings=on(("data", "model"), None)), spec((8, 4), ("data", "model"), None))
print(model.lower().as_text("sharding"))
""")
    assert said.count("f32[2, 4] shard (data+model, -)") == 2


def test_one_device_is_no_mesh():
    assert "mesh" not in run("""
print(astra.from_jax(lambda x: x + 1, jax.device_put(x, jax.devices()[1])).lower().as_text())
""")


@pytest.mark.parametrize("program, sentence", [
    ("other = Mesh(np.array(jax.devices()).reshape(4), ('rows',)); astra.from_jax(lambda x, y: x + y, spec((8, 4), 'data', None), "
     "jax.ShapeDtypeStruct((8, 4), np.float32, sharding=NamedSharding(other, P('rows', None))))", "there are two meshes, data=2,model=2 and rows=4; one is supported"),
    ("astra.from_jax(jax.shard_map(lambda x: x + 1, mesh=mesh, in_specs=P('data', None), out_specs=P('data', None)), spec((8, 4), 'data', None))", "manual_computation"),
    ("jax.config.update('jax_use_shardy_partitioner', False); astra.from_jax(lambda x: x + 1, spec((8, 4), 'data', None))", "mhlo"),
    ("placed = type('Placed', (), dict(shape=(8, 4), dtype=np.float32, sharding='by rows'))(); astra.from_jax(lambda x: x + 1, placed)",
     "an argument has the sharding by rows: jax.sharding.NamedSharding is read"),
])  # fmt: skip
def test_what_cannot_be_mapped_is_refused_by_name(program, sentence):
    said = run(f"""
try:
    {program}
    print("nothing is refused")
except Exception as error:
    print("refused", type(error).__name__, error)
""")
    assert said.startswith("refused") and re.search(sentence, said), said
