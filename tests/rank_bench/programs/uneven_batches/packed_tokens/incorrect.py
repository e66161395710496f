"""Pack documents into batches of at most so many tokens; the number of batches depends on the lengths of the rank's own documents.

source: https://github.com/PrimeIntellect-ai/prime-rl/pull/2246
bug: RS406
ranks: 2
expect: RS406
line: for batch in pack(documents, max_tokens):
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def load_documents(rank, world_size, count=40):
    generator = torch.Generator().manual_seed(13)
    lengths = torch.randint(4, 12, (count,), generator=generator)
    lengths[1::2] *= 2
    documents = [torch.randint(100, (int(length),), generator=generator) for length in lengths]
    return documents[rank::world_size]


def pack(documents, max_tokens):
    batch, size = [], 0
    for document in documents:
        if batch and size + len(document) > max_tokens:
            yield torch.cat(batch)
            batch, size = [], 0
        batch.append(document)
        size += len(document)
    if batch:
        yield torch.cat(batch)


class SFTTrainer:
    def __init__(self, model, lr=1e-3):
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.steps = 0

    def step(self, batch):
        self.optimizer.zero_grad()
        logits = self.model(batch[:-1])
        nn.functional.cross_entropy(logits, batch[1:]).backward()
        self.optimizer.step()
        self.steps += 1

    def train(self, documents, max_tokens=48):
        for batch in pack(documents, max_tokens):
            self.step(batch)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank = dist.get_rank()
    trainer = SFTTrainer(nn.Sequential(nn.Embedding(100, 8), nn.Linear(8, 100)))
    trainer.train(load_documents(rank, dist.get_world_size()))
    dist.barrier()
    print(f"rank {rank}: {trainer.steps} steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
