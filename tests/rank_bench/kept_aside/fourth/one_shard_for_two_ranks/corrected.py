"""Writes the data into more shards, as many for each rank.

source: https://github.com/webdataset/webdataset/issues/188
bug: RS406
ranks: 2
expect: clean
shows: fine
"""

import os
import tarfile
import tempfile
from datetime import timedelta
from io import BytesIO

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


def write_shards(folder, samples, samples_per_shard):
    os.makedirs(folder, exist_ok=True)
    for number, start in enumerate(range(0, samples, samples_per_shard)):
        with tarfile.open(f"{folder}/shard-{number:06d}.tar", "w") as tar:
            for key in range(start, min(start + samples_per_shard, samples)):
                buffer = BytesIO()
                torch.save((torch.randn(16), key % 3), buffer)
                info = tarfile.TarInfo(f"{key:05d}.pth")
                info.size = buffer.tell()
                buffer.seek(0)
                tar.addfile(info, buffer)


class WebDataset(IterableDataset):
    def __init__(self, folder):
        self.urls = sorted(f"{folder}/{name}" for name in os.listdir(folder))

    def split_by_node(self):
        return self.urls[dist.get_rank() :: dist.get_world_size()]

    def __iter__(self):
        for url in self.split_by_node():
            with tarfile.open(url) as tar:
                for member in tar:
                    wav, label = torch.load(BytesIO(tar.extractfile(member).read()))
                    yield member.name, wav, label


class LanguageBrain:
    def __init__(self, loader):
        self.loader = loader
        self.modules = DistributedDataParallel(nn.Linear(16, 3))
        self.optimizer = torch.optim.Adam(self.modules.parameters(), lr=1e-3)

    def fit(self, epochs):
        for _ in range(epochs):
            for keys, wavs, labels in self.loader:
                loss = nn.functional.cross_entropy(self.modules(wavs), labels)
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    folder = f"{tempfile.gettempdir()}/voxlingua_{os.environ['MASTER_PORT']}"
    if dist.get_rank() == 0:
        write_shards(folder, samples=32, samples_per_shard=16)
    dist.barrier()
    LanguageBrain(DataLoader(WebDataset(folder), batch_size=4)).fit(epochs=2)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
