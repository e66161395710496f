"""Each of two ranks computes with the one copy that its wrapper was built with.

runs-on: cpu-ranks
ranks: 2
expect: output rank 1 computed with 1 copy of the parameters in 3 steps
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class RecordingLinear(nn.Linear):
    """Keeps the weights that it computed with, so that none of them can take another one's address."""

    used: dict[int, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.used[self.weight.data_ptr()] = self.weight
        return super().forward(x)


def main() -> None:
    cuda = torch.cuda.is_available()
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    model = DistributedDataParallel(RecordingLinear(8, 2).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = model(torch.randn(2, 8, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    copies = len(RecordingLinear.used)
    print(f"rank {dist.get_rank()} computed with {copies} copy of the parameters in 3 steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
