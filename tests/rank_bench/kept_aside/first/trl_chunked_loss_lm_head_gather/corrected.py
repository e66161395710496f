"""A chunked loss gathers the sharded lm_head as often as the rank with most valid tokens needs.

source: https://github.com/huggingface/trl/pull/6698
bug: RS401
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F

HIDDEN, VOCAB, CHUNK = 8, 32, 4


def gather_lm_head(shard):
    parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, shard)
    return torch.cat(parts)


def chunked_nll(hidden, labels, lm_head_shard, chunk_size):
    valid = labels != -100
    hidden, labels = hidden[valid], labels[valid]
    longest = torch.tensor(labels.numel())
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    span = int(longest)
    total = hidden.new_zeros(())
    for start in range(0, span, chunk_size):
        weight = gather_lm_head(lm_head_shard)
        chunk, target = hidden[start : start + chunk_size], labels[start : start + chunk_size]
        if target.numel() > 0:
            total = total + F.cross_entropy(chunk @ weight.T, target, reduction="sum")
    return total / max(labels.numel(), 1)


def load_batch(rank, world_size):
    """Completion-only masking: the prompt's labels are -100 and prompts differ in length."""
    torch.manual_seed(0)
    labels = torch.randint(0, VOCAB, (4, 16))
    for row, prompt_length in enumerate((2, 9, 4, 14)):
        labels[row, :prompt_length] = -100
    hidden = torch.randn(4, 16, HIDDEN)
    return hidden[rank::world_size].flatten(0, 1), labels[rank::world_size].flatten()


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    shard = torch.randn(VOCAB // world_size, HIDDEN)
    hidden, labels = load_batch(rank, world_size)
    loss = chunked_nll(hidden, labels, shard, CHUNK)
    dist.all_reduce(loss)
    if rank == 0:
        print("loss", loss.item() / world_size)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
