"""Rank 0 alone asks an FSDP model for its state dict: gathering the shards takes every rank.

runs-on: cpu-ranks
ranks: 2
expect: exception RuntimeError: Timed out waiting 5000ms for
frame: state = model.state_dict()
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel


def save(model: nn.Module, path: str) -> None:
    if dist.get_rank() == 0:
        state = model.state_dict()
        torch.save(state, path)
        print("saved", sum(value.numel() for value in state.values()), "parameters")


def main() -> None:
    # Rank 0 gives up first; the end of its peer would hide what it waits for.
    seconds = 5 if os.environ["RANK"] == "0" else 30
    dist.init_process_group("gloo", timeout=timedelta(seconds=seconds))
    model = FullyShardedDataParallel(nn.Linear(8, 4), device_id=torch.device("cpu"))
    save(model, "model.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
