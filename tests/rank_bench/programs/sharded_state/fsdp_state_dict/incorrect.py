"""Saves an FSDP model; the full state dict is asked for on rank 0 alone, where gathering it needs all ranks.

source: https://github.com/pytorch/pytorch/issues/73383
bug: RS402
ranks: 2
expect: RS402
line: state = model.state_dict()
decidable: yes
shows: hang
"""

import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import StateDictType


def build_model() -> FSDP:
    torch.manual_seed(0)
    blocks = [FSDP(nn.Linear(16, 16), device_id=torch.device("cpu")) for _ in range(2)]
    return FSDP(nn.Sequential(*blocks, nn.Linear(16, 1)), device_id=torch.device("cpu"))


def save_model(model: FSDP, rank: int, path: str) -> None:
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
        if rank == 0:
            state = model.state_dict()
            torch.save(state, path)
    dist.barrier()


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank = dist.get_rank()
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    path = os.path.join(tempfile.gettempdir(), f"fsdp-{os.environ['MASTER_PORT']}.pt")

    for step in range(4):
        loss = model(torch.randn(8, 16)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 1:
            save_model(model, rank, path)
            if rank == 0:
                print(f"saved {os.path.getsize(path) > 0}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
