"""Routes tokens to experts on other ranks, and takes the sizes that it sends for those that it receives.

source: https://github.com/allenai/OLMo-core/pull/743
bug: RS415
ranks: 2
expect: RS415
line: dist.all_to_all_single(received, tokens, counts, counts)
decidable: yes
shows: error op.preamble.length
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Router(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts)

    def forward(self, tokens):
        chosen = self.gate(tokens).argmax(dim=1)
        order = chosen.argsort(stable=True)
        counts = torch.bincount(chosen, minlength=self.gate.out_features).tolist()
        return order, counts


class ExpertParallelLayer(nn.Module):
    """One expert on each rank."""

    def __init__(self, width):
        super().__init__()
        self.router = Router(width, dist.get_world_size())
        self.expert = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def dispatch(self, tokens, counts):
        received = tokens.new_empty(sum(counts), tokens.shape[1])
        dist.all_to_all_single(received, tokens, counts, counts)
        return received, counts

    def combine(self, outputs, sent, came):
        returned = outputs.new_empty(sum(sent), outputs.shape[1])
        dist.all_to_all_single(returned, outputs, sent, came)
        return returned

    @torch.no_grad()
    def forward(self, tokens):
        order, counts = self.router(tokens)
        received, came = self.dispatch(tokens[order], counts)
        returned = self.combine(self.expert(received), counts, came)
        output = torch.empty_like(tokens)
        output[order] = returned
        return output


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    layers = nn.ModuleList(ExpertParallelLayer(4) for _ in range(2))
    head = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(head.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(11 + dist.get_rank())
    for _ in range(4):
        tokens = torch.randn(12, 4, generator=generator)
        hidden = tokens
        for layer in layers:
            hidden = hidden + layer(hidden)
        loss = (head(hidden) - tokens[:, :1]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
