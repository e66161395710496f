"""Streams the parquet files of this rank once; the rank with fewer files leaves training first.

source: https://github.com/sandyresearch/parcae/issues/12
bug: RS406
ranks: 2
expect: RS406
line: for step, batch in enumerate(train_dataloader):
decidable: yes
shows: error Timed out waiting|Connection (closed|reset) by peer
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


class ParquetStreamPure(IterableDataset):
    def __init__(self, files, rank, world_size, repetitions=1):
        self.parquet_files = sorted(files)[rank::world_size]
        self.repetitions = repetitions

    def rows(self, file):
        generator = torch.Generator().manual_seed(sum(map(ord, file)))
        return torch.randn(8, 4, generator=generator)

    def __iter__(self):
        done = 0
        while self.repetitions is None or done < self.repetitions:
            for file in self.parquet_files:
                yield from self.rows(file)
            done += 1


def main(args):
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    files = [f"train-{i:05d}.parquet" for i in range(args.num_files)]
    dataset = ParquetStreamPure(files, rank, world_size, repetitions=1)
    train_dataloader = DataLoader(dataset, batch_size=4)
    model = DDP(torch.nn.Linear(4, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    for step, batch in enumerate(train_dataloader):
        if step >= args.max_steps:
            break
        loss = model(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"rank {rank}: training complete after {step} steps")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_files", type=int, default=7)
    parser.add_argument("--max_steps", type=int, default=12)
    main(parser.parse_args())
