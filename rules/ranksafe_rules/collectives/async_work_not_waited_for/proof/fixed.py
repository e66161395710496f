"""The work is kept and waited for before the loss is read.

runs-on: cpu-ranks
ranks: 2
expect: output rank 0: mean loss 2.0
"""

import time
from datetime import timedelta

import torch
import torch.distributed as dist


def mean_loss(loss: torch.Tensor) -> float:
    work = dist.all_reduce(loss, async_op=True)
    work.wait()
    return loss.item() / dist.get_world_size()


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    time.sleep(rank)
    loss = torch.tensor(1.0 + 2.0 * rank)
    print(f"rank {rank}: mean loss {mean_loss(loss)}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
