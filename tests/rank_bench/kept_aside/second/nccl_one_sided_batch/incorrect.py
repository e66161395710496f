"""Two phases of batched sends and receives; in the second one rank 0 also expects an answer that rank 1 does not send.

source: https://github.com/NVIDIA/nccl/issues/2130
bug: RS416
ranks: 2
expect: RS416
line: ops.append(dist.P2POp(dist.irecv, answer, peer))
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

COMM_TENSOR_SHAPE = (1,)


def log(rank: int, msg: str) -> None:
    print(f"[rank{rank}] {msg}", flush=True)


def run(ops: list[dist.P2POp]) -> None:
    for work in dist.batch_isend_irecv(ops):
        work.wait()


def phase_one(rank: int, peer: int) -> torch.Tensor:
    """Both ranks swap a number."""
    send = torch.full(COMM_TENSOR_SHAPE, float(rank + 1))
    recv = torch.zeros(COMM_TENSOR_SHAPE)
    run([dist.P2POp(dist.isend, send, peer), dist.P2POp(dist.irecv, recv, peer)])
    return recv


def phase_two(rank: int, peer: int) -> torch.Tensor:
    """Rank 0 asks, rank 1 answers."""
    question = torch.full(COMM_TENSOR_SHAPE, 123.0 if rank == 0 else 0.0)
    answer = torch.full(COMM_TENSOR_SHAPE, 0.0 if rank == 0 else 321.0)
    ops = []
    if rank == 0:
        ops.append(dist.P2POp(dist.isend, question, peer))
        ops.append(dist.P2POp(dist.irecv, answer, peer))
    else:
        ops.append(dist.P2POp(dist.irecv, question, peer))
    run(ops)
    return answer if rank == 0 else question


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank = dist.get_rank()
    log(rank, f"phase1 recv={phase_one(rank, 1 - rank).tolist()}")
    log(rank, f"phase2 recv={phase_two(rank, 1 - rank).tolist()}")
    log(rank, "before barrier")
    dist.barrier()
    log(rank, "after barrier")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
