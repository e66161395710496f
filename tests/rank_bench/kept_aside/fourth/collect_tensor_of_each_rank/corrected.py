"""Pads the tensors to the largest size of each dimension and cuts the padding off again.

source: https://github.com/pytorch/pytorch/issues/70037
bug: RS407
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def collect(tensor):
    """The tensors of all ranks."""
    size = torch.tensor(tensor.shape)
    sizes = [torch.zeros_like(size) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, size)
    padded = torch.zeros(torch.stack(sizes).amax(dim=0).tolist())
    padded[tuple(slice(length) for length in tensor.shape)] = tensor
    tensor_list = [torch.zeros_like(padded) for _ in sizes]
    dist.all_gather(tensor_list, padded)
    return [
        part[tuple(slice(length) for length in shape.tolist())]
        for part, shape in zip(tensor_list, sizes, strict=True)
    ]


class Encoder(nn.Module):
    def __init__(self, dim=10):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        return self.proj(x)


def load_dialogs(rank, steps=3):
    """Batches of dialogs, turns and features."""
    generator = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        dialogs, turns = torch.randint(2, 7, (2,), generator=generator).tolist()
        yield torch.randn(dialogs, turns, 10, generator=generator)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank = dist.get_rank()
    model = DistributedDataParallel(Encoder())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, batch in enumerate(load_dialogs(rank)):
        output = model(batch)
        others = collect(output.detach())
        negatives = torch.cat([part.flatten(0, 1) for part in others])
        loss = -torch.log_softmax(output.flatten(0, 1) @ negatives.T, dim=1).diagonal().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"rank {rank} step {step}: {[tuple(part.shape) for part in others]}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
