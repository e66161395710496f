"""Averages the gradients after each round of graphs, in which ranks take part that have no graph left.

source: https://discuss.pytorch.org/t/synchronization-mechanism-with-different-iteration-counts-of-for-loop/94234/4
bug: RS406
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class GraphModel(nn.Module):
    def __init__(self, size=5):
        super().__init__()
        self.message = nn.Linear(size, size)
        self.readout = nn.Linear(size, 1)

    def forward(self, nodes, edges):
        return self.readout(torch.relu(edges @ self.message(nodes))).mean()


def partition(rank):
    """Graphs are kept where they were made; their number follows from the seed of the rank."""
    generator = torch.Generator().manual_seed(10 + rank)
    count = 4 + 3 * rank
    for _ in range(count):
        size = int(torch.randint(3, 8, (1,), generator=generator))
        nodes = torch.randn(size, 5, generator=generator)
        yield nodes, (torch.rand(size, size, generator=generator) < 0.4).float()


def average_gradients(model, count):
    for param in model.parameters():
        if param.grad is None:
            param.grad = torch.zeros_like(param)
        dist.all_reduce(param.grad)
        param.grad /= count


def run_epoch(model, optimizer, graphs, world_size):
    steps = 0
    while True:
        graph = next(graphs, None)
        active = torch.tensor(float(graph is not None))
        dist.all_reduce(active)
        if active == 0:
            break
        optimizer.zero_grad(set_to_none=False)
        if graph is not None:
            model(*graph).pow(2).backward()
        average_gradients(model, active)
        optimizer.step()
        steps += 1
    return steps


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = GraphModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        steps = run_epoch(model, optimizer, partition(rank), world_size)
        print(f"rank {rank}, epoch {epoch}: {steps} steps", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
