"""Gathers the token indices of the queries for the negatives of MoCo, cut to the longest one of each rank.

source: https://github.com/pytorch/pytorch/issues/56112
bug: RS407
ranks: 2
expect: RS407
line: dist.all_gather(gathered, tensor)
decidable: yes
shows: error Received data size doesn't match expected size
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


@torch.no_grad()
def concat_all_gather(tensor):
    gathered = [torch.zeros_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, tensor)
    return torch.cat(gathered, dim=0)


class TextMoCo(nn.Module):
    def __init__(self, vocab=100, dim=16, queue=64, momentum=0.99):
        super().__init__()
        self.momentum = momentum
        self.encoder = nn.EmbeddingBag(vocab, dim, mode="mean", padding_idx=0)
        self.register_buffer("queue", torch.randn(queue, dim))

    def forward(self, query_idx, attention_mask):
        valid_len = attention_mask.sum(dim=1)
        max_len = max(valid_len).item()
        query_idx = query_idx[:, :max_len].contiguous()
        keys = concat_all_gather(query_idx)
        with torch.no_grad():
            self.queue = torch.cat([self.encoder(keys), self.queue])[: len(self.queue)]
        q = self.encoder(query_idx)
        return q @ self.queue.t()


def tokenize(batch_size, longest, generator):
    """Token indices with padding behind them, and the mask of what is no padding."""
    lengths = torch.randint(3, longest, (batch_size,), generator=generator)
    mask = torch.arange(longest)[None, :] < lengths[:, None]
    tokens = torch.randint(1, 100, (batch_size, longest), generator=generator)
    return tokens * mask, mask.long()


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    rank = dist.get_rank()
    generator = torch.Generator().manual_seed(rank)
    torch.manual_seed(0)
    model = TextMoCo()
    for step in range(3):
        query_idx, attention_mask = tokenize(4, 40, generator)
        logits = model(query_idx, attention_mask)
        print(f"rank {rank} step {step}: {tuple(logits.shape)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
