"""Sends batches in the precision that was asked for, and receives them as float32.

source: https://github.com/pytorch/pytorch/issues/81545
bug: RS415
ranks: 2
expect: RS415
line: dist.recv(batch, src=0)
decidable: yes
shows: silent received .*: wrong
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


def make_batch(number, dtype):
    return torch.linspace(0, 1, 16).mul(number + 1).to(dtype).view(4, 4)


class Feeder:
    """Rank 0 reads batches and hands them to the rank that trains."""

    def __init__(self, dtype):
        self.dtype = dtype

    def send(self, number):
        dist.send(make_batch(number, self.dtype), dst=1)

    def receive(self):
        batch = torch.zeros(4, 4)
        dist.recv(batch, src=0)
        return batch


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank = dist.get_rank()
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        feeder = Feeder(dtype)
        for number in range(2):
            if rank == 0:
                feeder.send(number)
            else:
                batch = feeder.receive()
                right = torch.equal(batch.float(), make_batch(number, dtype).float())
                print(f"received {dtype}: {'right' if right else 'wrong'}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
