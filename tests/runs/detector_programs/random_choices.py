"""Random choices that differ between ranks although all must choose alike."""

import os
import sys

import torch
from torch.utils.data import DistributedSampler, random_split

kind, rank = sys.argv[1], int(os.environ["RANK"])
torch.manual_seed(rank if kind == "split" else 0)
train, held_out = random_split(range(64), [48, 16])  # split here
sampler = DistributedSampler(train, num_replicas=2, rank=rank, seed=rank if kind == "seed" else 0)
for epoch in range(2):
    if kind != "epoch" or rank == 0:
        sampler.set_epoch(epoch)
    list(sampler)  # ordered here
