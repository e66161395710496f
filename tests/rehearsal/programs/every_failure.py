"""What goes wrong between two ranks, each in a group of its own, because NCCL's groups are of no use afterwards."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist

Case = Callable[[int, dist.ProcessGroup], object]
CASES: list[tuple[Case, str]] = []


def fails_with(text: str) -> Callable[[Case], Case]:
    def note(case: Case) -> Case:
        CASES.append((case, text))
        return case

    return note


def ones(length: int = 4) -> torch.Tensor:
    return torch.ones(length, device="cuda")


@fails_with(
    "Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=1, OpType=ALLREDUCE, Elements=4, "
    "TensorDtypes=Float, ReduceOp=SUM), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=1, "
    "OpType=BROADCAST, Elements=4, TensorDtypes=Float, Root=0)"
)
def different_collectives(rank: int, group: dist.ProcessGroup) -> object:
    return dist.broadcast(ones(), 0, group=group) if rank else dist.all_reduce(ones(), group=group)


@fails_with(
    "ReduceOp=SUM), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=1, OpType=ALLREDUCE, Elements=5"
)
def different_sizes(rank: int, group: dist.ProcessGroup) -> object:
    return dist.all_reduce(ones(4 + rank), group=group)


@fails_with("OpType=ALLTOALL_BASE, Elements=")
def different_splits(rank: int, group: dist.ProcessGroup) -> object:
    return dist.all_to_all_single(ones(4), ones(4), [2, 2], [1, 3] if rank else [2, 2], group=group)


@fails_with("OpType=SEND, Elements=4, TensorDtypes=Float), but Rank 1 is running collective")
def a_message_of_another_size(rank: int, group: dist.ProcessGroup) -> object:
    if rank == 0:
        dist.send(ones(), 1, group=group)
        return dist.recv(ones(), 1, group=group)
    return dist.recv(ones(3), 0, group=group)


@fails_with("Duplicate GPU detected : rank ")
def one_device_for_two_ranks(rank: int, group: dist.ProcessGroup) -> object:
    with torch.cuda.device(0):
        return dist.all_reduce(ones(), group=group)


@fails_with("OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=2000) ran for 2")
def a_rank_that_comes_too_late(rank: int, group: dist.ProcessGroup) -> object:
    if rank:
        time.sleep(3)
        raise RuntimeError("OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=2000) ran for 2")
    return dist.all_reduce(ones(), group=group)


def failure(action: Callable[[], object]) -> str:
    try:
        action()
    except RuntimeError as error:
        return str(error)
    return "nothing was raised"


def main() -> None:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl")
    rank = dist.get_rank()
    for case, text in CASES:
        group = dist.new_group(backend="nccl", timeout=timedelta(seconds=2))
        message = failure(partial(case, rank, group))
        # Only the receiver of a message sees that it has another size; the sender waits for the answer in vain.
        alone = case is a_message_of_another_size and rank == 0
        assert alone or text in message, (case.__name__, message)
        later = failure(partial(dist.all_reduce, ones(), group=group))
        assert rank or "NCCL communicator was aborted on rank 0" in later, later
        dist.all_reduce(torch.ones(1))
    print(f"rank {rank}: {len(CASES)} failures seen", flush=True)


if __name__ == "__main__":
    main()
