"""Each worker reads its share of the shards; all stop when the first worker has no more data.

source: https://github.com/allenai/allennlp/pull/3781
bug: RS406
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta
from itertools import islice

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class ShardedDatasetReader:
    """Reads the shards whose number belongs to this rank."""

    def __init__(self, num_shards):
        self.shards = [f"shard-{i:02d}" for i in range(num_shards)]

    def read(self):
        rank, world_size = dist.get_rank(), dist.get_world_size()
        for shard in islice(self.shards, rank, None, world_size):
            generator = torch.Generator().manual_seed(int(shard[-2:]))
            for _ in range(4):
                yield torch.randn(2, 6, generator=generator)


class Trainer:
    def __init__(self, model, reader, num_epochs):
        self._distributed = dist.is_initialized()
        self._model = DistributedDataParallel(model)
        self._optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self._reader = reader
        self._num_epochs = num_epochs

    def _train_epoch(self):
        train_loss = 0.0
        batches = self._reader.read()
        done_early = False
        for batch in batches:
            done = torch.tensor(0)
            dist.all_reduce(done)
            if done.item() > 0:
                done_early = True
                break
            self._optimizer.zero_grad()
            loss = self._model(batch).pow(2).mean()
            loss.backward()
            self._optimizer.step()
            train_loss += loss.item()
        if not done_early:
            dist.all_reduce(torch.tensor(1))
        return train_loss

    def train(self):
        for epoch in range(self._num_epochs):
            print(dist.get_rank(), epoch, self._train_epoch())


if __name__ == "__main__":
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    Trainer(torch.nn.Linear(6, 1), ShardedDatasetReader(5), num_epochs=2).train()
    dist.barrier()
    dist.destroy_process_group()
