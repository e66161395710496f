"""Packs a fixed number of utterances into a batch and gives all ranks the same number of utterances.

source: https://github.com/QwenAudio/CosyVoice/issues/297
bug: RS406
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
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


class DistributedSampler:
    def __init__(self):
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()

    def sample(self, data):
        share = len(data) // self.world_size
        return data[self.rank :: self.world_size][:share]


class DataList(IterableDataset):
    def __init__(self, lists, batch):
        self.lists = lists
        self.sampler = DistributedSampler()
        self.batch = batch

    def __iter__(self):
        samples = self.sampler.sample(self.lists)
        return self.batch(torch.randn(length, 8) for length in samples)


def static_batch(data, batch_size=4):
    buf = []
    for sample in data:
        buf.append(sample)
        if len(buf) >= batch_size:
            yield buf
            buf = []


def dynamic_batch(data, max_frames_in_batch=120):
    buf, frames = [], 0
    for sample in data:
        if buf and frames + len(sample) > max_frames_in_batch:
            yield buf
            buf, frames = [], 0
        buf.append(sample)
        frames += len(sample)
    if buf:
        yield buf


def padding(batch):
    return {"speech_feat": nn.utils.rnn.pad_sequence(batch, batch_first=True)}


class Executor:
    def train_one_epoc(self, model, optimizer, train_data_loader):
        model.train()
        for batch_idx, batch_dict in enumerate(train_data_loader):
            feat = batch_dict["speech_feat"]
            loss = nn.functional.l1_loss(model(feat), feat)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        print(f"rank {dist.get_rank()}: {batch_idx + 1} batches", flush=True)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    lengths = random.Random(1986)
    data = [lengths.randint(10, 30) if i % 2 else lengths.randint(40, 80) for i in range(32)]
    loader = DataLoader(DataList(data, static_batch), batch_size=None, collate_fn=padding)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)))
    executor = Executor()
    for _ in range(2):
        executor.train_one_epoc(model, torch.optim.Adam(model.parameters()), loader)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
