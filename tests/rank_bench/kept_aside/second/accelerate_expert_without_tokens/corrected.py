"""A sharded mixture of experts calls all experts, those without tokens on an empty batch.

source: https://github.com/huggingface/accelerate/pull/2662
bug: RS403
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class SparseMoeBlock(nn.Module):
    def __init__(self, hidden_size=16, num_experts=4):
        super().__init__()
        self.gate = nn.Linear(hidden_size, num_experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Linear(hidden_size, hidden_size) for _ in range(num_experts)
        )

    def forward(self, hidden_states):
        tokens = hidden_states.flatten(0, 1)
        weights, selected = self.gate(tokens).softmax(-1).max(-1)
        output = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            rows = (selected == index).nonzero().squeeze(1)
            output[rows] = expert(tokens[rows])
        return hidden_states + (output * weights.unsqueeze(1)).view_as(hidden_states)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    model = nn.Sequential(SparseMoeBlock(), SparseMoeBlock(), nn.Linear(16, 1))
    for block in model[:2]:
        for expert in block.experts:
            fully_shard(expert, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    generator = torch.Generator().manual_seed(100 + dist.get_rank())
    for step in range(6):
        batch = torch.randn(1, 5, 16, generator=generator)
        loss = (model(batch).squeeze(-1) - batch.mean(-1)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
