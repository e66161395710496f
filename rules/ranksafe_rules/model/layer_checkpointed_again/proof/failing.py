"""The gradients of a layer that is checkpointed three times come three times, which is refused.

runs-on: cpu-ranks
ranks: 2
expect: exception RuntimeError: Expected to mark a variable ready only once
frame: model(torch.randn(2, 4)).sum().backward()
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 8)
        self.layer = nn.Linear(8, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        x = self.embed(x)
        for _ in range(3):
            x = checkpoint(self.layer, x, use_reentrant=True)
        return self.head(x)


def train() -> int:
    model = DistributedDataParallel(Shared())
    model(torch.randn(2, 4)).sum().backward()
    return 1


def main() -> None:
    dist.init_process_group("gloo")
    print(f"{train()} step")
    dist.barrier()  # Nobody closes the connections that another rank still makes.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
