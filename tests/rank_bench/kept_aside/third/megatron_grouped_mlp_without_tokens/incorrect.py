"""A rank that no tokens were routed to leaves out the sharded linear layers of its experts.

source: https://github.com/NVIDIA/Megatron-LM/pull/4851
bug: RS403
ranks: 2
expect: RS403
line: intermediate = self.linear_fc1(tokens)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

HIDDEN = 8


def dispatch(tokens, owner):
    """Send every token to the rank of its expert; all ranks drew the same routing."""
    counts = [torch.bincount(o, minlength=dist.get_world_size()).tolist() for o in owner]
    rank = dist.get_rank()
    received = torch.empty(sum(count[rank] for count in counts), HIDDEN)
    dist.all_to_all_single(
        received, tokens[owner[rank].argsort()], [c[rank] for c in counts], counts[rank]
    )
    return received


class GroupedMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear_fc1 = nn.Linear(HIDDEN, 4 * HIDDEN)
        self.linear_fc2 = nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, tokens):
        if tokens.numel() == 0:
            return tokens
        intermediate = self.linear_fc1(tokens)
        return self.linear_fc2(torch.relu(intermediate))


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    experts = GroupedMLP()
    mesh = init_device_mesh("cpu", (world_size,))
    for linear in (experts.linear_fc1, experts.linear_fc2):
        fully_shard(linear, mesh=mesh)
    generator = torch.Generator().manual_seed(2)
    for step in range(8):
        owner = torch.randint(world_size, (world_size, 2), generator=generator)
        tokens = dispatch(torch.randn(2, HIDDEN), owner)
        loss = experts(tokens).pow(2).sum()
        if loss.requires_grad:
            loss.backward()
        print(f"rank {rank}, step {step}: {len(tokens)} tokens", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
