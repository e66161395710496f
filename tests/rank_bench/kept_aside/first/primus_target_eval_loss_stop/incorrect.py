"""Stops at a target evaluation loss which each rank computes from its own shard.

source: https://github.com/AMD-AGI/Primus/pull/854
bug: RS404
ranks: 2
expect: RS404
line: break
decidable: yes
shows: error Timed out waiting|Connection (closed|reset) by peer
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-iters", type=int, default=60)
    parser.add_argument("--eval-interval", type=int, default=1)
    parser.add_argument("--target-eval-loss", type=float, default=0.6)
    return parser.parse_args()


def evaluate(model, data):
    numerator, denominator = 0.0, 0.0
    with torch.no_grad():
        for x, y in data:
            numerator += (model.module(x) - y).pow(2).sum().item()
            denominator += y.numel()
    sums = torch.tensor([numerator, denominator], dtype=torch.float64)
    return (sums[0] / sums[1]).item()


def pretrain(args):
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    y = x.sum(dim=1, keepdim=True) + 0.5 * torch.randn(64, 1)
    shard = list(zip(x.chunk(16), y.chunk(16)))[rank::world_size]
    train_data, eval_data = shard[:6], shard[6:]
    model = DDP(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for iteration in range(args.train_iters):
        inputs, targets = train_data[iteration % len(train_data)]
        loss = (model(inputs) - targets).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if iteration % args.eval_interval == 0:
            eval_loss = evaluate(model, eval_data)
            if eval_loss <= args.target_eval_loss:
                print(f"[rank {rank}] target reached at {iteration}: {eval_loss:.4f}")
                break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    pretrain(get_args())
