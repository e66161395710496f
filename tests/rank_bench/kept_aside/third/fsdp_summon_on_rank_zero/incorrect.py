"""Looks at the full parameters of an FSDP model with rank0_only, and enters the context on rank 0 only.

source: https://github.com/pytorch/pytorch/issues/101294
bug: RS402
ranks: 2
expect: RS402
line: with FSDP.summon_full_params(model, rank0_only=True, writeback=False):
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def log_parameter_norms(model, step, rank):
    """Norms of the whole parameters; the shards of a rank say little."""
    if rank == 0:
        with FSDP.summon_full_params(model, rank0_only=True, writeback=False):
            norms = {name: param.norm().item() for name, param in model.named_parameters()}
        shown = ", ".join(f"{name.split('.')[-1]}={norm:.2f}" for name, norm in norms.items())
        print(f"step {step}: {shown}", flush=True)


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank = dist.get_rank()
    torch.manual_seed(0)
    cpu = torch.device("cpu")
    model = FSDP(
        nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 3)),
        device_id=cpu,
        use_orig_params=True,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(4):
        inputs, targets = torch.randn(6, 12), torch.randint(3, (6,))
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        if step % 2 == 0:
            log_parameter_norms(model, step, rank)
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
