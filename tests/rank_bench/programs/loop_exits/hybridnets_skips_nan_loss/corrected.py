"""Skips a batch on all cards when the loss of any card is not a number or zero.

source: https://github.com/datvuthanh/HybridNets/issues/91
bug: RS404
ranks: 2
expect: clean
shows: fine
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class ModelWithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.criterion = nn.MSELoss(reduction="sum")

    def forward(self, imgs, boxes, present):
        regression = self.model(imgs)
        reg_loss = self.criterion(regression * present, boxes * present) / present.sum()
        return reg_loss


def get_batches(rank, count, batch_size):
    generator = torch.Generator().manual_seed(17 + rank)
    for index in range(count):
        imgs = torch.randn(batch_size, 10, generator=generator)
        present = (torch.rand(batch_size, 1, generator=generator) < 0.5).float()
        if (index, rank) == (3, 1):
            present.zero_()  # pictures of an empty road
        yield imgs, torch.rand(batch_size, 4, generator=generator), present


def train(opt):
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(ModelWithLoss(nn.Linear(10, 4)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=opt.lr)
    for epoch in range(opt.num_epochs):
        epoch_loss = []
        for imgs, boxes, present in get_batches(rank, opt.num_batches, opt.batch_size):
            optimizer.zero_grad()
            loss = model(imgs, boxes, present)
            skip = torch.tensor(int(loss == 0 or not torch.isfinite(loss)))
            dist.all_reduce(skip)
            if skip:
                continue
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            epoch_loss.append(float(loss))
        if rank == 0:
            print(f"epoch {epoch}: {sum(epoch_loss) / len(epoch_loss):.4f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--num_epochs", type=int, default=2)
    parser.add_argument("--num_batches", type=int, default=6)
    parser.add_argument("--batch_size", type=int, default=8)
    opt = parser.parse_args()
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    train(opt)
    dist.destroy_process_group()
