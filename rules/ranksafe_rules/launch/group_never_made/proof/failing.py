"""A script asks for its share of the data, and nobody has made the process group.

runs-on: cpu-ranks
ranks: 2
expect: exception ValueError: Default process group has not been initialized
frame: sampler = DistributedSampler(dataset)
"""

import torch
from torch.utils.data import TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main() -> None:
    dataset = TensorDataset(torch.arange(8))
    sampler = DistributedSampler(dataset)
    print(f"{len(sampler)} samples for each rank")


if __name__ == "__main__":
    main()
