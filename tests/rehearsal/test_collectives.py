"""The nccl backend on simulated devices: every collective, its rules, and what goes wrong between ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Rehearse

PROGRAMS = Path(__file__).parent / "programs"
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
    assert sum("checks passed" in line for line in done.lines) == 3


@pytest.mark.parametrize(
    "program, printed",
    [
        ("gradient_accumulation.py", "rank 1: equal"),
        ("sync_batch_norm.py", "rank 1: equal"),
        ("fsdp2.py", "tensors 6"),
    ],
)
def test_training_programs(rehearse: Rehearse, program: str, printed: str) -> None:
    done = rehearse(PROGRAMS / program, launcher="torchrun")
    assert done.returncode == 0, done.stderr[-4000:]
    assert printed in done.stdout


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
    assert sum("failures seen" in line for line in done.lines) == 2


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
    assert done.lines.count("done") == 2


def test_detail_mode_and_the_flight_recorder(rehearse: Rehearse) -> None:
    body = _START + "dist.all_reduce(x) if rank == 0 else dist.broadcast(x, 0)"
    done = rehearse(body, launcher="torchrun", environment={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})
    assert done.returncode == 1
    assert "Detected mismatch between collectives on ranks" in done.stderr
    assert "TensorShape=[4]" in done.stderr
