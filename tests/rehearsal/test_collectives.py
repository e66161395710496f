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


@pytest.mark.parametrize(
    "body, message",
    [
        pytest.param(
            "torch.cuda.set_device(0)\ndist.all_reduce(torch.ones(1, device='cuda'))",
            "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 10000",
            id="one device for two ranks",
        ),
        pytest.param(
            "dist.all_reduce(x) if rank == 0 else dist.broadcast(x, 0)",
            "Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=1, OpType=ALLREDUCE, Elements=4, "
            "TensorDtypes=Float, ReduceOp=SUM), but Rank 1 is running collective: "
            "CollectiveFingerPrint(SequenceNumber=1, OpType=BROADCAST",
            id="different collectives",
        ),
        pytest.param(
            "dist.all_reduce(torch.ones(4 + rank, device='cuda'))",
            "OpType=ALLREDUCE, Elements=4, TensorDtypes=Float, ReduceOp=SUM), but Rank 1 is running collective: "
            "CollectiveFingerPrint(SequenceNumber=1, OpType=ALLREDUCE, Elements=5",
            id="different sizes",
        ),
        pytest.param(
            "dist.all_reduce(x) if rank == 0 else time.sleep(9)",
            "[PG GUID 0(default_pg) Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, "
            "OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=4000) ran for",
            id="a rank that does not come",
        ),
        pytest.param(
            "dist.all_reduce(x)\nif rank == 1: sys.exit(3)\ndist.all_reduce(x)",
            "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
            id="a rank that left",
        ),
        pytest.param(
            "dist.send(x, 1) if rank == 0 else dist.recv(x[:3], 0)",
            "OpType=SEND, Elements=4, TensorDtypes=Float), but Rank 1 is running collective: "
            "CollectiveFingerPrint(SequenceNumber=0, OpType=RECV, Elements=3",
            id="a message of another size",
        ),
        pytest.param(
            "dist.all_reduce(torch.ones(1))",
            "No backend type associated with device type cpu",
            id="a tensor on the CPU",
        ),
    ],
)
def test_failures_between_ranks(rehearse: Rehearse, body: str, message: str) -> None:
    done = rehearse(_START + body, launcher="torchrun")
    assert done.returncode == 1
    # Both ranks write into one pipe; words of one may come between two of the other.
    assert message in done.stderr, done.stderr[-3000:]
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
