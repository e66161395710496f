"""A dataset shares its augmentation strength between the ranks in __getitem__, which runs in the loader's workers.

source: https://github.com/meta-pytorch/data/issues/868
bug: RS414
ranks: 2
expect: RS414
line: dist.broadcast(jitter, src=0)
decidable: yes
shows: error DataLoader timed out|process group has not been initialized
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler

TIMEOUT = float(os.environ.get("RANK_BENCH_TIMEOUT", "5"))


class JitteredSamples(Dataset):
    """Samples with the same jitter on all ranks."""

    def __init__(self, size: int) -> None:
        self.samples = torch.randn(size, 8)
        self.strength = torch.rand(1)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> torch.Tensor:
        jitter = self.strength.clone()
        dist.broadcast(jitter, src=0)
        return self.samples[index] * (1 + jitter)


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=TIMEOUT))
    torch.manual_seed(dist.get_rank())
    dataset = JitteredSamples(16)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler, num_workers=1, timeout=TIMEOUT)
    total = torch.zeros(1)
    for batch in loader:
        total += batch.abs().mean()
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        print(f"mean magnitude {total.item() / 4:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
