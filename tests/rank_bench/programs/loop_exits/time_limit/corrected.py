"""Train until a time limit; rank 0 looks at its clock and broadcasts the decision.

source: https://github.com/microsoft/superbenchmark/pull/347
bug: RS404
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import argparse
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Benchmark:
    def __init__(self, args):
        self.args = args
        self.rank = dist.get_rank()
        self.model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 1)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-2)
        self.shard = self.read_shard()
        self.start = time.monotonic()

    def read_shard(self):
        size = 32 * (1 + self.rank)
        time.sleep(size / 32)
        return torch.randn(size, 16)

    def out_of_time(self):
        return time.monotonic() - self.start >= self.args.duration

    def train_step(self):
        batch = self.shard[torch.randint(len(self.shard), (8,))]
        self.optimizer.zero_grad()
        self.model(batch).pow(2).mean().backward()
        self.optimizer.step()
        time.sleep(0.02)

    def run(self):
        step = 0
        while step < self.args.max_steps:
            finished = torch.tensor(int(self.out_of_time()))
            dist.broadcast(finished, src=0)
            if finished.item():
                break
            self.train_step()
            step += 1
        return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--duration", type=float, default=2.0, help="seconds")
    parser.add_argument("--max-steps", type=int, default=1000)
    args = parser.parse_args()
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    steps = Benchmark(args).run()
    dist.barrier()
    print(f"{steps} steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
