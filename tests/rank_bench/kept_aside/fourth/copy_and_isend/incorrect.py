"""Sends a large tensor without keeping the work or the tensor, and leaves the function that holds both.

source: https://github.com/pytorch/pytorch/issues/143906
bug: RS413
ranks: 2
expect: RS413
line: dist.isend(tensor=cpu_tensor, dst=1)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

SHAPE = (1024, 8192)


def device_to_cpu_and_send(rank):
    device = torch.device("cuda", rank) if torch.cuda.is_available() else torch.device("cpu")
    tensor = torch.randn(SHAPE, device=device)
    print(f"Rank {rank}: created tensor on {device}", flush=True)
    cpu_tensor = torch.zeros(SHAPE)
    cpu_tensor.copy_(tensor, non_blocking=True)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    dist.isend(tensor=cpu_tensor, dst=1)
    print(f"Rank {rank}: data sent to rank 1", flush=True)


def receive_data(rank):
    received_tensor = torch.zeros(SHAPE)
    print(f"Rank {rank}: waiting to receive data", flush=True)
    dist.recv(tensor=received_tensor, src=0)
    print(f"Rank {rank}: received, last {received_tensor[-1][-1].item():.3f}", flush=True)


def compute(rank, steps=20):
    """Computations that go on while the data is on its way."""
    torch.manual_seed(rank)
    x = torch.randn(128, 128)
    for _ in range(steps):
        x = torch.tanh(x @ x.T / 128)
    return x


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank = dist.get_rank()
    if rank == 0:
        device_to_cpu_and_send(rank)
        compute(rank)
    else:
        receive_data(rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
