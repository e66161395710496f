"""Every layer is used.

runs-on: cpu-ranks
ranks: 2
expect: success
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())


def train() -> int:
    model = DistributedDataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        loss = model(torch.randn(3, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return 2


def main() -> None:
    dist.init_process_group("gloo")
    print(f"{train()} steps")
    dist.barrier()  # Nobody closes the connections that another rank still makes.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
