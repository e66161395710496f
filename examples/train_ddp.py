"""Train a small classifier with DistributedDataParallel, on GPUs or on CPUs. It fails on the last rank only.

The data are one row short of 7 for every rank: the last rank's second batch has a single row, which BatchNorm cannot
normalise. The other ranks see nothing but a lost connection.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ROWS_PER_RANK = 7
BATCH = 5


def load_rows(world_size, device):
    torch.manual_seed(0)
    return torch.randn(world_size * ROWS_PER_RANK - 1, 8, device=device)


def train(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, batch in enumerate(batches):
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: loss {loss.item():.4f}", flush=True)


def main():
    on_gpus = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpus else "gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", rank % torch.cuda.device_count()) if on_gpus else "cpu"
    if on_gpus:
        torch.cuda.set_device(device)
    mine = load_rows(world_size, device).split(ROWS_PER_RANK)[rank]
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    train(DistributedDataParallel(model.to(device)), mine.split(BATCH))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
