"""Trains with DDP on a strided subset; the ranks get different numbers of batches.

source: https://github.com/microsoft/PyMarlin/issues/80
bug: RS406
ranks: 2
expect: RS406
line: for global_step, batch in enumerate(self.dataloader):
decidable: yes
shows: error Timed out waiting|Connection (closed|reset) by peer
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset


class ModuleInterface(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(5, 1)

    def forward(self, batch):
        x, y = batch
        return torch.nn.functional.mse_loss(self.net(x), y)


class DDPTrainerBackend:
    def __init__(self, module, epochs=2, batch_size=2):
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.model = DDP(module)
        self.optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
        self.epochs = epochs
        self.batch_size = batch_size

    def get_train_dataloader(self, dataset):
        mine = Subset(dataset, range(self.rank, len(dataset), self.world_size))
        return DataLoader(mine, batch_size=self.batch_size)

    def train(self, dataset):
        self.dataloader = self.get_train_dataloader(dataset)
        for epoch in range(self.epochs):
            self._train_epoch()
            print(f"rank {self.rank}: epoch {epoch} over")

    def _train_epoch(self):
        for global_step, batch in enumerate(self.dataloader):
            self.optimizer.zero_grad()
            loss = self.model(batch)
            loss.backward()
            self.optimizer.step()


if __name__ == "__main__":
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(25, 5), torch.randn(25, 1))
    DDPTrainerBackend(ModuleInterface()).train(data)
    dist.barrier()
    dist.destroy_process_group()
