"""A checkpointer leaves save early on all ranks but the first and then asks the FSDP2 model for its full state.

source: https://github.com/pytorch/pytorch/issues/73383
bug: RS402
ranks: 2
expect: RS402
line: state = get_model_state_dict(self.model, options=self.options)
decidable: yes
shows: hang
"""

import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Checkpointer:
    """Writes the whole model as one file."""

    def __init__(self, model: nn.Module, folder: str) -> None:
        self.model = model
        self.folder = folder
        self.rank = dist.get_rank()
        self.options = StateDictOptions(full_state_dict=True, cpu_offload=True)

    def save(self, step: int) -> None:
        if self.rank != 0:
            return
        state = get_model_state_dict(self.model, options=self.options)
        torch.save(state, os.path.join(self.folder, f"step_{step}.pt"))
        print(f"saved {len(state)} tensors", flush=True)


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    checkpointer = Checkpointer(model, tempfile.mkdtemp())
    steps = 3
    for _ in range(steps):
        loss = model(torch.randn(4, 8)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    checkpointer.save(steps)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
