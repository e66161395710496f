"""Trains with DDP and logs the mean loss on the main rank; every rank takes part in the reduction.

source: https://github.com/radixark/miles/pull/2684
bug: RS401
ranks: 3
expect: clean
decidable: yes
shows: fine
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def is_main_process() -> bool:
    return not dist.is_initialized() or dist.get_rank() == 0


def reduce_mean(value: torch.Tensor) -> torch.Tensor:
    mean = value.detach().clone()
    dist.all_reduce(mean)
    return mean / dist.get_world_size()


def log_train_step(step: int, loss: torch.Tensor, history: list[str]) -> None:
    mean_loss = reduce_mean(loss)
    if is_main_process():
        history.append(f"step {step}: loss {mean_loss.item():.4f}")
        print(history[-1], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--log-every", type=int, default=2)
    args = parser.parse_args()

    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(dist.get_rank())
    model = DDP(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    history: list[str] = []
    for step in range(args.steps):
        inputs = torch.randn(8, 16)
        loss = (model(inputs).squeeze(1) - inputs.sum(dim=1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % args.log_every == 0:
            log_train_step(step, loss, history)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
