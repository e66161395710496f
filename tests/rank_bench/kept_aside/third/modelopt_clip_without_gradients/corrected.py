"""Clips gradients of experts spread over the ranks; a rank without gradients adds a zero to the norm.

source: https://github.com/NVIDIA/Model-Optimizer/pull/1621
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


@torch.no_grad()
def clip_grad_norm_(parameters, max_norm, norm_type=2.0):
    """Like torch's, with parameters of which every rank has others."""
    grads = [p.grad for p in parameters if p.grad is not None]
    sharded_norm = torch.zeros(())
    for grad in grads:
        sharded_norm += torch.linalg.vector_norm(grad, norm_type).pow(norm_type)
    dist.all_reduce(sharded_norm)
    total_norm = sharded_norm.pow(1.0 / norm_type)
    for grad in grads:
        grad.mul_((max_norm / (total_norm + 1e-6)).clamp(max=1.0))
    return total_norm


class DraftHead(nn.Module):
    """One expert per rank; tokens name the expert that they belong to."""

    def __init__(self, hidden_size=8):
        super().__init__()
        self.rank = dist.get_rank()
        self.expert = nn.Sequential(nn.Linear(hidden_size, 16), nn.GELU(), nn.Linear(16, 1))

    def loss(self, tokens, expert_ids):
        mine = tokens[expert_ids == self.rank]
        return self.expert(mine).pow(2).sum() if len(mine) else None


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    model = DraftHead()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(3)  # all ranks see the same tokens
    for step in range(12):
        tokens = torch.randn(3, 8, generator=generator)
        expert_ids = torch.randint(dist.get_world_size(), (3,), generator=generator)
        loss = model.loss(tokens, expert_ids)
        if loss is not None:
            loss.backward()
        norm = clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"step {step}: norm {norm.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
