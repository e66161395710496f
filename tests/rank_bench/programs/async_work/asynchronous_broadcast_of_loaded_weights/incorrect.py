"""Broadcasts the weights that the first rank has loaded without waiting for it, and evaluates at once.

source: documented: https://docs.pytorch.org/docs/stable/distributed.html#synchronous-and-asynchronous-collective-operations, 2.13
bug: RS413
ranks: 2
expect: RS413
line: dist.broadcast(tensor, src=0, async_op=True)
decidable: yes
shows: silent FINISHED scores differ
"""

import os
import tempfile
import time
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn


@contextmanager
def stopwatch(what):
    start = time.perf_counter()
    yield
    print(f"rank {dist.get_rank()}: {what} took {time.perf_counter() - start:.2f} s", flush=True)


class Ranker(nn.Module):
    def __init__(self, features=12, width=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width))
        self.score = nn.Linear(width, 1)

    def forward(self, pairs):
        return self.score(self.body(pairs).relu()).squeeze(-1)


def pretrained(path):
    """What an earlier run has left on a slow disk."""
    torch.manual_seed(99)
    torch.save(Ranker().state_dict(), path)


def read_checkpoint(path):
    time.sleep(1.5)  # the disk
    return torch.load(path, weights_only=True)


def load_everywhere(model, path):
    if dist.get_rank() == 0:
        model.load_state_dict(read_checkpoint(path))
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, src=0, async_op=True)


@torch.no_grad()
def evaluate(model):
    generator = torch.Generator().manual_seed(1)
    return model(torch.randn(32, 12, generator=generator)).mean().reshape(1)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "ranker.pt"
        if dist.get_rank() == 0:
            pretrained(path)
        torch.manual_seed(dist.get_rank())
        model = Ranker()
        dist.barrier()
        with stopwatch("loading"):
            load_everywhere(model, path)
        score = evaluate(model)
    scores = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(scores, score)
    if dist.get_rank() == 0:
        same = all(torch.allclose(scores[0], other) for other in scores)
        print(f"FINISHED scores {'agree' if same else 'differ'}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
