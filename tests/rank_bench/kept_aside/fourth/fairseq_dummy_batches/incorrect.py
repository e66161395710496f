"""Skips the empty batches with which the iterator pads the shards of an epoch to one length.

source: https://github.com/facebookresearch/fairseq/issues/1088
bug: RS404
ranks: 2
expect: RS404
line: continue
decidable: yes
shows: error op.preamble.length
"""

import os
from datetime import timedelta
from itertools import zip_longest

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class ShardedIterator:
    """Every num_shards-th batch, padded with fill_value to the length of the longest shard."""

    def __init__(self, batches, num_shards, shard_id, fill_value=None):
        shards = [batches[shard::num_shards] for shard in range(num_shards)]
        rows = zip_longest(*shards, fillvalue=fill_value)
        self.batches = [row[shard_id] for row in rows]

    def __iter__(self):
        return iter(self.batches)


class Trainer:
    def __init__(self, model, lr=0.1):
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.dummy_batch = None

    def train_step(self, samples):
        """One update with the gradients of the samples of all workers."""
        self.optimizer.zero_grad()
        logging_outputs, sample_size = [], 0
        for sample in samples:
            if not sample:
                continue
            loss, size = self._forward(sample)
            loss.backward()
            logging_outputs.append(loss.item())
            sample_size += size
        total = torch.tensor(float(sample_size))
        dist.all_reduce(total)
        for p in self.model.parameters():
            p.grad /= total / dist.get_world_size()
        self.optimizer.step()
        return sum(logging_outputs) / max(sample_size, 1)

    def _forward(self, sample):
        net_output = self.model(sample["tokens"].float())
        loss = nn.functional.cross_entropy(net_output, sample["target"], reduction="sum")
        return loss, len(sample["target"])


def make_batches(count=5):
    generator = torch.Generator().manual_seed(0)
    return [
        {
            "tokens": torch.randint(9, (4, 6), generator=generator),
            "target": torch.randint(3, (4,), generator=generator),
        }
        for _ in range(count)
    ]


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    trainer = Trainer(nn.Linear(6, 3))
    batches = make_batches()
    trainer.dummy_batch = batches[0]
    for epoch in range(2):
        itr = ShardedIterator(batches, dist.get_world_size(), dist.get_rank(), fill_value={})
        losses = [trainer.train_step([sample]) for sample in itr]
        print(f"| epoch {epoch:03d} | loss {sum(losses):.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
