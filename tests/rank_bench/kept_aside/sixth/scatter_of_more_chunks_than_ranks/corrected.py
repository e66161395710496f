"""Hands out the documents to be evaluated in as many chunks as there are ranks.

source: documented: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.scatter_object_list, 2.13
bug: RS408
ranks: 3
expect: clean
shows: fine
"""

import math
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def load_documents(count=20):
    generator = torch.Generator().manual_seed(5)
    lengths = torch.randint(3, 12, (count,), generator=generator).tolist()
    return [
        {"doc_id": number, "tokens": torch.randint(50, (length,), generator=generator).tolist()}
        for number, length in enumerate(lengths)
    ]


def chunked(documents, size):
    return [documents[start : start + size] for start in range(0, len(documents), size)]


class LanguageModel(nn.Module):
    def __init__(self, vocabulary=50, width=16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.head = nn.Linear(width, vocabulary)

    def loglikelihood(self, tokens):
        ids = torch.tensor(tokens)
        logits = self.head(self.embedding(ids[:-1]))
        return -nn.functional.cross_entropy(logits, ids[1:], reduction="sum").item()


class Evaluator:
    def __init__(self, model):
        self.model = model
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()

    def distribute(self, documents):
        """The first rank alone reads the documents."""
        chunks = None
        if self.rank == 0:
            chunks = chunked(documents, math.ceil(len(documents) / self.world_size))
        mine = [None]
        dist.scatter_object_list(mine, chunks, src=0)
        return mine[0]

    @torch.no_grad()
    def run(self, documents):
        scores = {
            document["doc_id"]: self.model.loglikelihood(document["tokens"])
            for document in self.distribute(documents)
        }
        merged = [None] * self.world_size if self.rank == 0 else None
        dist.gather_object(scores, merged, dst=0)
        if self.rank == 0:
            results = {key: value for part in merged for key, value in part.items()}
            perplexity = math.exp(-sum(results.values()) / 150)
            print(f"{len(results)} documents, {perplexity:.2f}", flush=True)


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(0)
    evaluator = Evaluator(LanguageModel())
    evaluator.run(load_documents() if dist.get_rank() == 0 else None)
    dist.destroy_process_group()
