"""Rank 0 alone loads the optimizer's momentum: after one step the ranks have different weights.

runs-on: cpu-ranks
ranks: 2
expect: output the weights differ: True
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    if dist.get_rank() == 0:
        before = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        net(torch.ones(2, 4)).sum().backward()
        before.step()
        optimizer.load_state_dict(before.state_dict())
    model = DistributedDataParallel(net)
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    weights = [torch.empty_like(net.weight) for _ in range(2)]
    dist.all_gather(weights, net.weight.detach())
    if dist.get_rank() == 0:
        print(f"the weights differ: {not torch.allclose(weights[0], weights[1])}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
