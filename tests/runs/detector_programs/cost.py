"""Prints the CPU seconds of this rank for steps, collectives and opened files; compare runs with and without detectors."""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(6400, 64), torch.randint(0, 8, (6400,)))
loader = DataLoader(data, batch_size=32, sampler=DistributedSampler(data))
layers = [nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(8)]
model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers, nn.Linear(64, 8)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)


def steps(batches):
    for inputs, labels in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach())


def collectives(number):
    value = torch.ones(1)
    for _ in range(number):
        dist.all_reduce(value)


def files(number):
    for _ in range(number):
        with open(os.devnull, "w"):
            pass


def measured(name, number, action, *arguments):
    start = time.process_time()
    action(*arguments)
    spent = time.process_time() - start
    print(f"{name}: {spent / number * 1e6:.1f} us each", flush=True)


measured("the first steps", 3, steps, list(loader)[:3])
steps(list(loader)[:20])
for _ in range(3):
    measured("step", 100, steps, loader)
    measured("all_reduce", 2000, collectives, 2000)
    measured("open", 5000, files, 5000)
dist.destroy_process_group()
