"""Gather the predictions on rank 0 after padding the last rank's shorter slice; the padding is cut off again.

source: https://github.com/pytorch/pytorch/pull/128676
bug: RS407
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import math
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

LOCAL_RANK = int(os.environ["LOCAL_RANK"])
WORLD_SIZE = int(os.environ["WORLD_SIZE"])


def load_samples(count=9):
    generator = torch.Generator().manual_seed(6)
    return torch.randn(count, 5, generator=generator)


def slice_of(samples, rank):
    per_rank = math.ceil(len(samples) / WORLD_SIZE)
    return samples[rank * per_rank : (rank + 1) * per_rank]


@torch.no_grad()
def predict(model, samples):
    model.eval()
    return model(samples).argmax(dim=1).float()


def collect(predictions, total):
    missing = math.ceil(total / WORLD_SIZE) - len(predictions)
    predictions = torch.cat([predictions, predictions.new_zeros(missing)])
    slices = None
    if LOCAL_RANK == 0:
        slices = [torch.empty_like(predictions) for _ in range(WORLD_SIZE)]
    dist.gather(predictions, slices, dst=0)
    return torch.cat(slices)[:total] if LOCAL_RANK == 0 else None


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    model = nn.Linear(5, 3)
    samples = load_samples()
    predictions = predict(model, slice_of(samples, LOCAL_RANK))
    collected = collect(predictions, len(samples))
    if LOCAL_RANK == 0:
        print(f"gathered {len(collected)} predictions of {len(samples)} samples")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
