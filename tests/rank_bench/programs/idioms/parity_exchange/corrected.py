"""Neighbours exchange halos; even ranks send first and odd ranks receive first, and the ends of the line have one peer.

source: https://github.com/pytorch/pytorch/issues/172668
bug: RS416
ranks: 4
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


class HaloExchange:
    """Gives the last row to the next rank; the line of ranks is no ring."""

    def __init__(self, width: int) -> None:
        self.rank = dist.get_rank()
        self.is_first = self.rank == 0
        self.is_last = self.rank == dist.get_world_size() - 1
        self.halo = torch.zeros(width)

    def send_next(self, row: torch.Tensor) -> None:
        if not self.is_last:
            dist.send(row, dst=self.rank + 1)

    def receive_previous(self) -> None:
        if not self.is_first:
            dist.recv(self.halo, src=self.rank - 1)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        last = rows[-1].contiguous()
        if self.rank % 2 == 0:
            self.send_next(last)
            self.receive_previous()
        else:
            self.receive_previous()
            self.send_next(last)
        return torch.cat([self.halo[None], rows])


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    exchange = HaloExchange(width=8)
    rows = torch.full((4, 8), float(dist.get_rank()))
    for _ in range(3):
        rows = exchange(rows)[1:] * 0.5 + exchange.halo * 0.5
    print(f"rank {dist.get_rank()}: {rows.mean().item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
