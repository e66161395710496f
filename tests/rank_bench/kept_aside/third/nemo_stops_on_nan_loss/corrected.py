"""Remembers a loss that is not finite, and all ranks end the training at the next evaluation.

source: https://github.com/NVIDIA-NeMo/Speech/pull/578
bug: RS404
ranks: 2
expect: clean
shows: fine
"""

import logging
import math
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Actions:
    def __init__(self, model, lr=0.05):
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.nan_or_inf = False

    def _eval(self, data):
        with torch.no_grad():
            loss = (self.model.module(data) ** 2).mean()
        flags = torch.tensor([loss.item(), float(self.nan_or_inf)])
        dist.all_reduce(flags)
        self.nan_or_inf = bool(flags[1])
        logging.info("evaluation loss %.3f", flags[0].item() / dist.get_world_size())

    def train(self, batches, eval_data, eval_freq=3):
        for step, batch in enumerate(batches, start=1):
            curr_loss = self.model(batch).log().mean().abs()
            if not math.isfinite(curr_loss.item()):
                logging.warning("Loss is NaN or inf at step %d", step)
                self.nan_or_inf = True
            self.optimizer.zero_grad()
            curr_loss.backward()
            self.optimizer.step()
            if step % eval_freq == 0:
                self._eval(eval_data)
                if self.nan_or_inf:
                    logging.warning("stopping after step %d", step)
                    return


class Energies(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, spectrum):
        return (self.scale * spectrum).square().sum(dim=-1)


def main():
    logging.basicConfig(level=logging.INFO)
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(dist.get_rank())
    batches = torch.rand(9, 2, 4)
    if dist.get_rank() == 0:
        batches[4, 1] = 0  # digital silence, whose logarithm is infinite
    Actions(Energies()).train(batches, eval_data=torch.rand(2, 4))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
