"""Evaluates on two nodes; the first process of all, by its rank among all, gives a list to gather into.

source: https://github.com/EvolvingLMMs-Lab/lmms-eval/issues/322
bug: RS408
ranks: 4
expect: clean
shows: fine
"""

import argparse
import os
from collections import defaultdict
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class LlavaModel:
    """Answers requests with scores of its choices; knows its rank and the number of processes."""

    def __init__(self, gpus_per_node):
        self.local_rank = dist.get_rank() % gpus_per_node
        self.rank = dist.get_rank()
        self.process_index = dist.get_rank()
        self.world_size = dist.get_world_size()
        torch.manual_seed(0)
        self.network = nn.Linear(6, 4)

    @torch.no_grad()
    def loglikelihood(self, requests):
        return self.network(requests).log_softmax(-1)


def process_results(scores, targets):
    chosen = scores.argmax(-1)
    metrics = defaultdict(list)
    for choice, target, row in zip(chosen.tolist(), targets.tolist(), scores, strict=True):
        metrics["acc"].append(float(choice == target))
        metrics["likelihood"].append(row[target].item())
    return metrics


def evaluate(lm, requests, targets):
    mine = slice(lm.process_index, None, lm.world_size)
    metrics = process_results(lm.loglikelihood(requests[mine]), targets[mine])
    results = {}
    for name, values in metrics.items():
        gathered = [None] * lm.world_size if lm.rank == 0 else None
        dist.gather_object(values, gathered, dst=0)
        if lm.rank == 0:
            everything = [value for part in gathered for value in part]
            results[name] = sum(everything) / len(everything)
    dist.barrier()
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus_per_node", type=int, default=2)
    args = parser.parse_args()
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    generator = torch.Generator().manual_seed(1)
    requests = torch.randn(24, 6, generator=generator)
    targets = torch.randint(0, 4, (24,), generator=generator)
    results = evaluate(LlavaModel(args.gpus_per_node), requests, targets)
    if dist.get_rank() == 0:
        print(results, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
