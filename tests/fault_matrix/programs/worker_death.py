"""A DataLoader worker of rank 1 is killed, as for its memory. The DataLoader's watch over it may or may not be the
first to see it.

fault: DataLoader worker death
outcome: failed
rank: 1
kind: worker-killed or worker-died
line: [dist.all_reduce(batch) for batch in loader]
"""

import os
import signal

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, rank):
        self.rank = rank

    def __len__(self):
        return 64

    def __getitem__(self, index):
        if self.rank == 1 and index == 21:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.ones(4)


def main():
    dist.init_process_group("gloo")
    loader = DataLoader(Samples(dist.get_rank()), batch_size=2, num_workers=1)
    [dist.all_reduce(batch) for batch in loader]


if __name__ == "__main__":
    main()
