"""Reduces per-parameter metrics to the first rank of every group of a hybrid sharding.

source: https://github.com/allenai/OLMo/pull/551
bug: RS415
ranks: 4
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Optimizer(torch.optim.SGD):
    def collect_metrics(self, process_group):
        """Minimum and maximum of every gradient over the shards of a model replica."""
        names, mins, maxs = [], [], []
        for group in self.param_groups:
            for index, param in enumerate(group["params"]):
                names.append(f"grad/{index}")
                mins.append(param.grad.min())
                maxs.append(param.grad.max())
        all_mins, all_maxs = torch.stack(mins), torch.stack(maxs)
        first = dist.get_global_rank(process_group, 0)
        dist.reduce(all_mins, first, op=dist.ReduceOp.MIN, group=process_group)
        dist.all_reduce(all_maxs, op=dist.ReduceOp.MAX, group=process_group)
        metrics = {}
        for name, low, high in zip(names, all_mins.tolist(), all_maxs.tolist(), strict=True):
            metrics[f"{name}.min"], metrics[f"{name}.max"] = low, high
        return metrics


def hybrid_shard_group(shards):
    replicas = dist.get_world_size() // shards
    groups = [list(range(i * shards, (i + 1) * shards)) for i in range(replicas)]
    group, _ = dist.new_subgroups_by_enumeration(groups)
    return group


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    rank = dist.get_rank()
    process_group = hybrid_shard_group(shards=2)
    torch.manual_seed(rank)
    shard = nn.Linear(6, 3)  # of a larger layer
    optimizer = Optimizer(shard.parameters(), lr=0.1)
    for step in range(2):
        shard(torch.randn(4, 6)).pow(2).mean().backward()
        metrics = optimizer.collect_metrics(process_group)
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(step, {name: round(value, 3) for name, value in metrics.items()}, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
