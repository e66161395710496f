"""Splits the batches by tokens so that none is too large, and lets an error end the training.

source: https://github.com/facebookresearch/fairseq/issues/708
bug: RS410
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

MAX_TOKENS_ON_DEVICE = 60


class TransformerModel(nn.Module):
    def __init__(self, vocab=16, dim=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, src_tokens):
        if src_tokens.numel() > MAX_TOKENS_ON_DEVICE:
            raise RuntimeError("CUDA out of memory. Tried to allocate 332.00 MiB")
        return self.out(self.embed(src_tokens))


class Trainer:
    def __init__(self, args, model):
        self.args = args
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=args["lr"])

    def train_step(self, sample):
        self.optimizer.zero_grad()
        loss, oom = 0.0, 0
        logits = self.model(sample[:, :-1])
        criterion = nn.functional.cross_entropy(logits.flatten(0, 1), sample[:, 1:].flatten())
        criterion.backward()
        loss = criterion.item()
        logging_outputs = [None] * dist.get_world_size()
        dist.all_gather_object(logging_outputs, (loss, oom))
        if sum(ooms for _, ooms in logging_outputs) < dist.get_world_size():
            self.optimizer.step()
        return logging_outputs


def get_batches(rank, max_tokens, count=5):
    generator = torch.Generator().manual_seed(rank)
    for number in range(count):
        length = 17 + 8 * ((number + rank) % 3)
        yield torch.randint(16, (max(max_tokens // length, 1), length), generator=generator)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    trainer = Trainer({"lr": 1e-3}, TransformerModel())
    for sample in get_batches(dist.get_rank(), max_tokens=48):
        trainer.train_step(sample)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
