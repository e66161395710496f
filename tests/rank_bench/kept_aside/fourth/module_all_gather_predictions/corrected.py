"""Pads the predictions to the length of the longest before gathering them.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/7773
bug: RS407
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from distributed import all_gather
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


class Segmenter:
    def __init__(self):
        self.net = nn.Linear(7, 1)
        self.outputs = []

    def test_step(self, batch):
        (features,) = batch
        keep = features.norm(dim=1) > 1.0
        self.outputs.append(torch.sigmoid(self.net(features[keep])).squeeze(1))

    def test_epoch_end(self):
        predictions = torch.cat(self.outputs)
        lengths = all_gather(torch.tensor(len(predictions)))
        padded = torch.zeros(int(lengths.max()))
        padded[: len(predictions)] = predictions
        rows = zip(all_gather(padded), lengths, strict=True)
        gathered = torch.cat([row[:length] for row, length in rows])
        if dist.get_rank() == 0:
            print(f"{gathered.numel()} predictions, mean {gathered.mean():.3f}", flush=True)


@torch.no_grad()
def test(module, loader):
    for batch in loader:
        module.test_step(batch)
    module.test_epoch_end()


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    dataset = TensorDataset(torch.randn(45, 7, generator=torch.Generator().manual_seed(0)))
    share = Subset(dataset, range(dist.get_rank(), len(dataset), dist.get_world_size()))
    test(Segmenter(), DataLoader(share, batch_size=8))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
