"""The nccl backend on simulated devices: every collective, its rules, and what goes wrong between ranks."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from ranksafe.rehearsal import several_nodes

from .conftest import RehearsalEnvironment, Rehearse, run_rehearsal

PROGRAMS = Path(__file__).parent / "programs"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


_START = """
import os, sys, time, datetime, torch, torch.distributed as dist
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=4))
rank = dist.get_rank()
x = torch.ones(4, device="cuda")
"""


def test_every_collective_on_three_devices(rehearse: Rehearse) -> None:
    done = rehearse(PROGRAMS / "every_collective.py", devices=3, launcher="torchrun")
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.count("checks passed") == 3


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        ("sync_batch_norm.py", "rank 1: equal"),
        pytest.param("gradient_accumulation.py", "rank 1: equal", marks=pytest.mark.long),
        pytest.param("fsdp2.py", "tensors 6", marks=pytest.mark.long),
    ],
)
def test_training_programs(rehearse: Rehearse, program: str, printed: str) -> None:
    done = rehearse(PROGRAMS / program, launcher="torchrun")
    assert done.returncode == 0, done.stderr[-4000:]
    assert printed in done.stdout


@pytest.mark.long
def test_losses_equal_those_of_ranks_on_cpus(rehearse: Rehearse) -> None:
    """The same program on plain CPU ranks, whose sums gloo makes."""
    text = (PROGRAMS / "ddp.py").read_text()
    on_cpus = (
        text.replace('"nccl"', '"gloo"')
        .replace(".cuda(non_blocking=True)", "")
        .replace("torch.cuda.set_device(local_rank)", "")
        .replace(".to(local_rank)", "")
        .replace(", device_ids=[local_rank]", "")
        .replace(", pin_memory=True", "")
        .replace("op=dist.ReduceOp.AVG)", "op=dist.ReduceOp.SUM); total /= dist.get_world_size()")
    )
    assert "cuda" not in on_cpus
    simulated = rehearse(text, launcher="torchrun")
    plain = rehearse(on_cpus, launcher="torchrun")
    assert simulated.returncode == plain.returncode == 0, simulated.stderr[-4000:]
    losses = [float(done.stdout.split("loss ")[1]) for done in (simulated, plain)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_failures_between_ranks(rehearse: Rehearse) -> None:
    """Other collectives, sizes and splits, one device for two ranks, a late rank: each with its words, none an abort."""
    done = rehearse(PROGRAMS / "every_failure.py", launcher="torchrun")
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.count("failures seen") == 2


@pytest.mark.long
def test_a_rank_that_leaves_is_not_blamed_on_the_one_that_waits(rehearse: Rehearse) -> None:
    body = _START + "dist.all_reduce(x)\nif rank == 1: sys.exit(3)\ndist.all_reduce(x)"
    done = rehearse(body, launcher="torchrun")
    assert done.returncode == 1
    assert (
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."
        in done.stderr
    )
    assert "terminate called" not in done.stderr


def test_ranks_with_devices_of_their_own_and_two_backends(rehearse: Rehearse) -> None:
    """CUDA_VISIBLE_DEVICES gives each rank another device under the number 0; CPU tensors go through gloo."""
    body = """
import os
os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["LOCAL_RANK"]
import torch, torch.distributed as dist
torch.cuda.set_device(0)
dist.init_process_group("cpu:gloo,cuda:nccl", device_id=torch.device("cuda", 0))
for device in ("cpu", "cuda"):
    x = torch.ones(3, device=device)
    dist.all_reduce(x)
    assert x.tolist() == [2.0] * 3
child = dist.split_group(split_ranks=[[0, 1]])
dist.all_reduce(x, group=child)
assert x.tolist() == [4.0] * 3
dist.destroy_process_group()
print("done", flush=True)
"""
    done = rehearse(body, launcher="torchrun")
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.count("done") == 2


@pytest.mark.long
def test_gloo_carries_tensors_of_a_device_that_ranks_share(rehearse: Rehearse) -> None:
    body = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
assert dist.get_backend() == "gloo"
for device in ("cpu", "cuda:0"):
    x = torch.ones(3, device=device)
    dist.all_reduce(x)
    assert x.tolist() == [2.0] * 3
model = DistributedDataParallel(torch.nn.Linear(4, 4).to("cuda:0"), device_ids=[0])
model(torch.ones(2, 4, device="cuda:0")).sum().backward()
dist.destroy_process_group()
print("done", flush=True)
"""
    done = rehearse(body, launcher="torchrun")
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.count("done") == 2


@pytest.mark.long
def test_detail_mode_names_the_collectives_before_they_meet(rehearse: Rehearse) -> None:
    body = (
        _START
        + "seen = [None, None]\ndist.all_gather_object(seen, rank)\nprint(seen, flush=True)\n"
        + "dist.all_reduce(x) if rank == 0 else dist.broadcast(x, 0)"
    )
    done = rehearse(body, launcher="torchrun", environment={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})
    assert done.returncode == 1
    assert done.stdout.count("[0, 1]") == 2
    assert "Detected mismatch between collectives on ranks" in done.stderr
    assert "TensorShape=[4]" in done.stderr


@pytest.mark.long
def test_two_nodes_of_two_devices_each(
    rehearsal_environment: RehearsalEnvironment, tmp_path: Path
) -> None:
    """Ranks 0 and 2 use device 0 of different nodes: no duplicate. Each node's processes share its host name."""
    script = tmp_path / "script.py"
    script.write_text(
        """
import os, socket, torch, torch.distributed as dist
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
seen = [None] * dist.get_world_size()
mine = (int(os.environ["RANK"]), local, torch.cuda.device_count(), socket.gethostname())
dist.all_gather_object(seen, mine)
if dist.get_rank() == 0:
    print(seen, flush=True)
dist.destroy_process_group()
"""
    )
    port = free_port()
    commands = [
        [
            str(rehearsal_environment.interpreter),
            *("-m", "torch.distributed.run", "--nproc_per_node=2"),
            *several_nodes.torchrun_options(node, 2, port),
            str(script),
        ]
        for node in range(2)
    ]
    settings = tmp_path / "nodes.json"
    settings.write_text(several_nodes.settings_as_text(commands))
    started = f"""
import os, sys
os.execv(sys.executable, [sys.executable, {several_nodes.__file__!r}, {str(settings)!r}])
"""
    done = run_rehearsal(rehearsal_environment, tmp_path, started, nodes=2)
    assert done.returncode == 0, done.stderr[-4000:]
    expected = [
        (0, 0, 2, "node-0"), (1, 1, 2, "node-0"), (2, 0, 2, "node-1"), (3, 1, 2, "node-1"),
    ]  # fmt: skip
    assert str(expected) in done.stdout
