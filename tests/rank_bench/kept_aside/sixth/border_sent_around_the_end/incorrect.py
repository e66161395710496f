"""Each rank sends the border of its part of a sequence to its neighbour; the last one's goes to a rank that awaits none.

source: https://github.com/pytorch/PiPPy/issues/969
bug: RS416
ranks: 3
expect: RS416
line: requests.append(dist.isend(border, dst=(self.rank + 1) % self.world))
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class CausalConvolution(nn.Module):
    """A convolution over a sequence of which each rank holds a part, in order."""

    def __init__(self, channels, kernel=3):
        super().__init__()
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.halo = kernel - 1
        self.convolution = nn.Conv1d(channels, channels, kernel)

    def exchange(self, part):
        """What lies just before this part: the end of the neighbour's, or zeros at the beginning."""
        border = part[..., -self.halo :].detach().contiguous()
        before = torch.zeros_like(border)
        requests = []
        requests.append(dist.isend(border, dst=(self.rank + 1) % self.world))
        if self.rank > 0:
            requests.append(dist.irecv(before, src=self.rank - 1))
        for request in requests:
            request.wait()
        return before

    def forward(self, part):
        return self.convolution(torch.cat([self.exchange(part), part], dim=-1))


def my_part(sequence):
    return sequence.chunk(dist.get_world_size(), dim=-1)[dist.get_rank()]


def average_gradients(module):
    for parameter in module.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    net = nn.Sequential(CausalConvolution(2), nn.ReLU(), CausalConvolution(2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(3):
        sequence = my_part(torch.randn(1, 2, 24))
        loss = (net(sequence) - sequence).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        average_gradients(net)
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
