"""Runs all layers of which each is sharded, and forgets at random what some of them gave.

source: https://github.com/facebookresearch/fairscale/issues/796
bug: RS403
ranks: 2
expect: clean
shows: fine
"""

import os
import random
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


class EncoderLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 2 * dim)
        self.fc2 = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.fc2(torch.relu(self.fc1(self.norm(x))))


class TransformerEncoder(nn.Module):
    def __init__(self, dim=16, num_layers=6, layerdrop=0.3):
        super().__init__()
        cpu = torch.device("cpu")
        self.layers = nn.ModuleList(
            FSDP(EncoderLayer(dim), device_id=cpu) for _ in range(num_layers)
        )
        self.layerdrop = layerdrop

    def forward(self, x):
        for layer in self.layers:
            dropout_probability = random.random()
            keep = not self.training or dropout_probability > self.layerdrop
            x = x + float(keep) * (layer(x) - x)
        return x


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    random.seed(100 + dist.get_rank())
    torch.manual_seed(0)
    model = TransformerEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for update in range(4):
        loss = model(torch.randn(3, 7, 16)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"update {update}: {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
