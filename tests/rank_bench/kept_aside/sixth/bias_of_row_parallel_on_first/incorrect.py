"""A row-parallel layer keeps its bias on the first rank, and sums the partial results where there is a bias.

source: https://github.com/GeeeekExplorer/nano-vllm/issues/99
bug: RS401
ranks: 2
expect: RS401
line: output = Sum.apply(output + self.bias)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Sum(torch.autograd.Function):
    """Adds the partial results of all ranks; the gradient goes to each of them as it is."""

    @staticmethod
    def forward(ctx, partial):
        output = partial.clone()
        dist.all_reduce(output)
        return output

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class ColumnParallelLinear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs // dist.get_world_size(), inputs) * 0.1)

    def forward(self, hidden):
        return nn.functional.linear(hidden, self.weight)


class RowParallelLinear(nn.Module):
    def __init__(self, inputs, outputs, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs // dist.get_world_size()) * 0.1)
        self.bias = None
        if bias and dist.get_rank() == 0:  # else it would be added once for each rank
            self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, hidden):
        output = nn.functional.linear(hidden, self.weight)
        if self.bias is not None:
            output = Sum.apply(output + self.bias)
        return output


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = ColumnParallelLinear(width, 4 * width)
        self.down = RowParallelLinear(4 * width, width)

    def forward(self, hidden):
        return hidden + self.down(torch.relu(self.up(hidden)))


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(dist.get_rank())
    model = nn.Sequential(Mlp(6), Mlp(6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(0)  # the same batches on all tensor-parallel ranks
    for step in range(4):
        inputs = torch.randn(8, 6, generator=generator)
        loss = (model(inputs) - inputs.flip(1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(f"step {step}: {loss.item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
