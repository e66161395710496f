"""The script makes the process group before it asks for its share of the data.

runs-on: cpu-ranks
ranks: 2
expect: output 4 samples for each rank
"""

import torch
import torch.distributed as dist
from torch.utils.data import TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main() -> None:
    dist.init_process_group("gloo")
    dataset = TensorDataset(torch.arange(8))
    sampler = DistributedSampler(dataset)
    print(f"{len(sampler)} samples for each rank")
    dist.barrier()  # Nobody closes the connections that another rank still makes.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
