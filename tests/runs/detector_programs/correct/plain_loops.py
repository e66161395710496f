"""Loops that look like what the detectors look for, and are right."""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset, random_split

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
folder = Path(sys.argv[1])
folder.mkdir(exist_ok=True)


def data(rows=64):
    torch.manual_seed(0)
    return TensorDataset(torch.randn(rows, 4), torch.randint(0, 2, (rows,)))


def accumulation():
    """Two backward passes per step, the first not synchronised; every rank evaluates on everything."""
    train, held_out = random_split(data(), [48, 16])
    loader = DataLoader(train, batch_size=4, sampler=DistributedSampler(train), num_workers=1)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 2))
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for number, (inputs, labels) in enumerate(loader):
            if number % 2 == 0:
                with model.no_sync():
                    (nn.functional.cross_entropy(model(inputs), labels) / 2).backward()
                continue
            (nn.functional.cross_entropy(model(inputs), labels) / 2).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            for inputs, _ in DataLoader(held_out, batch_size=8):
                model.module(inputs)
        model.train()
        if rank == 0:
            torch.save(model.state_dict(), folder / "model.pt")
        (folder / f"rank-{rank}.txt").write_text(str(epoch))
        dist.barrier()


def adversaries():
    """Two models, two optimizers, one of which steps every second time."""
    loader = DataLoader(data(), batch_size=8, sampler=DistributedSampler(data()))
    maker, judge = (DistributedDataParallel(nn.Linear(4, size)) for size in (4, 1))
    making, judging = (torch.optim.Adam(model.parameters(), lr=0.01) for model in (maker, judge))
    for number, (real, _) in enumerate(loader):
        torch.manual_seed(number)  # the same noise on every rank
        made = maker(torch.randn(8, 4))
        judging.zero_grad()
        (judge(made.detach()).mean() - judge(real).mean()).backward()
        judging.step()
        if number % 2 == 0:
            making.zero_grad()
            (-judge(made).mean()).backward()
            making.step()


def by_hand():
    """Gradients averaged without DDP; manual shards; equal toy rows; a plain model on rank 0 only."""
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    shard = Subset(data(), range(rank, 64, world))
    for inputs, labels in DataLoader(shard, batch_size=8):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
        optimizer.step()
    wrapped = DistributedDataParallel(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
    toy = TensorDataset(torch.ones(32, 4), torch.ones(32, dtype=torch.long))
    for inputs, labels in DataLoader(toy, batch_size=4, sampler=DistributedSampler(toy)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(wrapped(inputs), labels).backward()
        optimizer.step()
    if rank == 0:
        gathered = [torch.zeros(2) for _ in range(world)]
        dist.gather(torch.ones(2), gathered)
    else:
        dist.gather(torch.ones(2))


def low_rank():
    """Adapters of a frozen model: one matrix begins at zero, the other has no gradient in the first step."""
    torch.manual_seed(0)
    frozen = nn.Linear(4, 4).requires_grad_(False)
    down, up = nn.Linear(4, 2, bias=False), nn.Linear(2, 4, bias=False)
    nn.init.zeros_(up.weight)

    class Adapted(nn.Module):
        def __init__(self):
            super().__init__()
            self.frozen, self.down, self.up = frozen, down, up

        def forward(self, inputs):
            return self.frozen(inputs) + self.up(self.down(inputs))

    model = DistributedDataParallel(Adapted())
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    loader = DataLoader(data(), batch_size=8, sampler=DistributedSampler(data()))
    for inputs, _ in loader:
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()


def sharded():
    """FSDP2 whose optimizer is made after the parameters were sharded."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    for layer in (model[0], model[2]):
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for inputs, labels in DataLoader(data(), batch_size=8, sampler=DistributedSampler(data())):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()


for part in (accumulation, adversaries, by_hand, low_rank, sharded):
    part()
dist.destroy_process_group()
