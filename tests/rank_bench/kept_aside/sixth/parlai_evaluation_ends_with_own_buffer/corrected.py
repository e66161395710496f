"""Evaluates until the buffers of dynamic batches of all ranks are empty, and sums up the reports over ranks.

source: https://github.com/facebookresearch/ParlAI/issues/3367
bug: RS404
ranks: 2
expect: clean
shows: fine
"""

import os
from collections import deque
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class ChunkTeacher:
    """Reads every n-th chunk of a corpus into a buffer of episodes."""

    def __init__(self, chunks, rank, world_size):
        self.buffer = deque()
        for chunk in chunks[rank::world_size]:
            self.buffer.extend(chunk)

    def epoch_done(self):
        return not self.buffer

    def next_episode(self):
        return self.buffer.popleft()


class DynamicBatchWorld:
    """Packs as many episodes into a batch as there is room for words."""

    def __init__(self, teacher, max_words=24):
        self.teacher = teacher
        self.max_words = max_words

    def epoch_done(self):
        return self.teacher.epoch_done()

    def parley(self):
        batch, words = [], 0
        while not self.teacher.epoch_done() and words < self.max_words:
            batch.append(self.teacher.next_episode())
            words += len(batch[-1])
        return nn.utils.rnn.pad_sequence(batch, batch_first=True)


class Agent(nn.Module):
    def __init__(self, vocabulary=40):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 8, padding_idx=0)
        self.out = nn.Linear(8, vocabulary)

    def loss(self, text):
        logits = self.out(self.embedding(text[:, :-1]))
        return nn.functional.cross_entropy(
            logits.flatten(0, 1), text[:, 1:].flatten(), ignore_index=0, reduction="sum"
        )


def make_chunks():
    """Chunks of twelve episodes, in which those of even chunks are long."""
    generator = torch.Generator().manual_seed(8)
    lengths = [9 if number % 2 == 0 else 4 for number in range(4)]
    return [
        [torch.randint(1, 40, (length,), generator=generator) for _ in range(12)]
        for length in lengths
    ]


@torch.no_grad()
def run_eval(agent, world):
    totals = torch.zeros(2)
    while True:
        if world.epoch_done():
            break
        text = world.parley()
        report = torch.stack([agent.loss(text), (text[:, 1:] != 0).sum().float()])
        totals += report
    dist.all_reduce(totals)
    return (totals[0] / totals[1]).exp().item()


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(0)
    teacher = ChunkTeacher(make_chunks(), dist.get_rank(), dist.get_world_size())
    perplexity = run_eval(Agent(), DynamicBatchWorld(teacher))
    if dist.get_rank() == 0:
        print(f"perplexity {perplexity:.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
