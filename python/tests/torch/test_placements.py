"""DTensors: their placements as a mesh and shardings, in processes that torchrun would start."""

import os
import subprocess
import sys

import pytest
import torch

BEGIN = """
import os, sys
import numpy as np, torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
import astra, astra.torch
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
x, t = torch.randn(8, 6), torch.randint(0, 4, (8,))
def place(module, name, mesh, *placements):
    setattr(module, name, torch.nn.Parameter(distribute_tensor(getattr(module, name).detach(), mesh, placements)))
loss = torch.nn.CrossEntropyLoss()
"""

TRAIN = """
import copy
theirs = copy.deepcopy(model)
mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("model",))
place(model[0], "weight", mesh, Shard(0))  # columns, then rows
place(model[0], "bias", mesh, Shard(0))
place(model[2], "weight", mesh, Shard(1))
place(model[2], "bias", mesh, Replicate())
step = astra.torch.train_step(model, loss, "sgd(lr=0.1)", (x, t), target="native")
losses = [float(step(x, t)) for _ in range(3)]
trained = step.write_back()
assert trained is model and isinstance(model[0].weight, DTensor) and model[0].weight.placements == (Shard(0),)
optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
for mine in losses:
    value = loss(theirs(x), t)
    assert abs(float(value) - mine) < 1e-5
    optimizer.zero_grad(), value.backward(), optimizer.step()
for ours, other in zip(model.parameters(), theirs.parameters()):
    assert torch.allclose(ours.full_tensor(), other, atol=1e-5)
states = {n: np.asarray(v) for n, v in step.session.state_dict().items()}
if rank == 0:
    step.save(sys.argv[1])
    np.savez(sys.argv[1] + ".npz", x=x.numpy(), t=t.numpy(), **states)
    print(step.session.axes, step.session.local_shards, *(f"{v:.6f}" for v in losses))
dist.destroy_process_group()
"""

REFUSED = """
def refused(sentence, *given):
    try:
        astra.torch.train_step(*given)
    except (astra.Error, ValueError) as error:
        if rank == 0: print("yes" if sentence in str(error) else error)
    else:
        print("nothing")
import copy
plain = copy.deepcopy(model)
mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("data",))
def with_(placement, where=mesh, **more):
    model = copy.deepcopy(plain)
    place(model[0], "weight", where, placement)
    return model
half = with_(Replicate())
half[0].weight = torch.nn.Parameter(DTensor.from_local(plain[0].weight.detach(), mesh, (Partial(),)))
refused("0.weight has the placement Partial(sum) on the axis 'data': Shard(i) and Replicate() are read", half, loss, "sgd(lr=0.1)", (x, t))
refused("the device mesh of 0.weight has no names: give init_device_mesh(..., mesh_dim_names=(...))", with_(Shard(0), init_device_mesh("cpu", (2,))), loss, "sgd(lr=0.1)", (x, t))
one = with_(Shard(0))
refused("an optimizer of torch.optim over a module with DTensors", one, loss, torch.optim.SGD(one.parameters(), lr=0.1), (x, t))
two = with_(Shard(0))
place(two[2], "weight", init_device_mesh("cpu", (2,), mesh_dim_names=("model",)), Shard(0))
refused("are on different device meshes", two, loss, "sgd(lr=0.1)", (x, t))
from torch.distributed.fsdp import fully_shard
refused("is one of fully_shard", fully_shard(copy.deepcopy(plain), mesh=mesh), loss, "sgd(lr=0.1)", (x, t))
dist.destroy_process_group()
"""


def launched(program, *arguments):
    processes = []
    for r in range(2):
        env = os.environ | {"RANK": str(r), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": str(r), "MASTER_ADDR": "127.0.0.1",
                            "MASTER_PORT": str(20000 + os.getpid() % 20000)}  # fmt: skip
        command = [sys.executable, "-c", BEGIN + program, *map(str, arguments)]
        processes.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    said = [p.communicate(timeout=600) for p in processes]
    assert all(p.returncode == 0 for p in processes), "".join(err[-3000:] for _, err in said)
    return said[0][0]


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed")
def test_a_step_of_ranks_is_cut_as_the_placements_say(tmp_path):
    import numpy as np

    from astra_rt import ranks

    said = launched(TRAIN, tmp_path / "step.astra")
    assert said.startswith("model=2 1 ")
    kept = np.load(tmp_path / "step.astra.npz")
    with ranks.init() as world:  # the same bundle by one process has the same bits
        module = world.load(tmp_path / "step.astra")
        losses = [float(module.train_step(x=kept["x"], target=kept["t"]).loss) for _ in range(3)]
        assert said.split()[2:] == [f"{v:.6f}" for v in losses]
        for name, value in module.state_dict().items():
            assert np.asarray(value).tobytes() == kept[name].tobytes()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed")
def test_what_has_no_such_meaning_is_refused_by_its_name():
    assert launched(REFUSED).split("\n") == ["yes"] * 5 + [""]
