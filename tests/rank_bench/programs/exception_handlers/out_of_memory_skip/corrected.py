"""Skip a batch on all ranks if one of them runs out of memory; nothing but local work stands in the try.

source: https://github.com/pytorch/pytorch/issues/44353
bug: RS410
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

MAX_ELEMENTS = 300


class LimitedModel(nn.Module):
    """Raises as CUDA's allocator does when a batch is too large."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(10, 1)

    def forward(self, inputs):
        if inputs.numel() > MAX_ELEMENTS:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return self.layer(inputs)


def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def train_one_epoch(model, batches, optimizer):
    for inputs in batches:
        optimizer.zero_grad()
        out_of_memory = torch.zeros(1)
        try:
            loss = model(inputs).pow(2).mean()
            loss.backward()
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            print("| WARNING: ran out of memory, skipping this batch")
            out_of_memory += 1
        dist.all_reduce(out_of_memory)
        if out_of_memory.item() > 0:
            continue
        average_gradients(model)
        optimizer.step()


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    model = LimitedModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    lengths = [8, 12, 20, 16, 10, 40, 14, 18][dist.get_rank() :: dist.get_world_size()]
    train_one_epoch(model, [torch.randn(length, 10) for length in lengths], optimizer)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
