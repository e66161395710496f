"""Gathers momentum buffers to rank zero and passes a gather_list on that rank only.

source: https://github.com/KellerJordan/Muon/issues/46
bug: RS408
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


class Muon(torch.optim.Optimizer):
    """Each rank updates its own share of the parameters and keeps their momentum."""

    def __init__(self, params, lr=0.02, momentum=0.95):
        super().__init__(list(params), dict(lr=lr, momentum=momentum))
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            params = group["params"]
            for i in range(0, len(params), self.world_size):
                p = params[i + self.rank]
                state = self.state[p]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(p)
                state["momentum_buffer"].lerp_(p.grad, 1 - group["momentum"])
                p.add_(state["momentum_buffer"], alpha=-group["lr"])
                owned = [params[i + r].data for r in range(self.world_size)]
                dist.all_gather(owned, p.data.clone())

    def gather_momentum(self):
        """Brings all momentum buffers to rank zero before a checkpoint is written."""
        for group in self.param_groups:
            params = group["params"]
            for i in range(0, len(params), self.world_size):
                state = self.state[params[i + self.rank]]
                buffers = [torch.empty_like(params[i + r]) for r in range(self.world_size)]
                dist.gather(state["momentum_buffer"], buffers if self.rank == 0 else None, dst=0)
                if self.rank == 0:
                    for r, buf in enumerate(buffers):
                        self.state[params[i + r]]["momentum_buffer"] = buf


if __name__ == "__main__":
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(4, 4)) for _ in range(4)]
    opt = Muon(weights)
    for w in weights:
        w.grad = torch.randn_like(w)
    opt.step()
    opt.gather_momentum()
    print(dist.get_rank(), len(opt.state))
    dist.destroy_process_group()
