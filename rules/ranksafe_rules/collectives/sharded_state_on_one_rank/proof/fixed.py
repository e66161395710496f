"""Every rank gathers the state dict, rank 0 writes the file.

runs-on: cpu-ranks
ranks: 2
expect: output ^saved 36 parameters$
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel


def save(model: nn.Module, path: str) -> None:
    state = model.state_dict()
    if dist.get_rank() == 0:
        torch.save(state, path)
        print("saved", sum(value.numel() for value in state.values()), "parameters")


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    model = FullyShardedDataParallel(nn.Linear(8, 4), device_id=torch.device("cpu"))
    save(model, "model.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
