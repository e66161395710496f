"""A training step returns when the loss is not finite, before the numbers of frames of all ranks are gathered.

source: https://github.com/pytorch/audio/issues/3749
bug: RS401
ranks: 2
expect: RS401
line: dist.all_gather(num_frames, num_frame)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class HuBERTPreTrainModule(nn.Module):
    def __init__(self, world_size):
        super().__init__()
        self.world_size = world_size
        self.model = nn.Linear(4, 3)
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.01)

    def _step(self, waveforms, masks):
        logits = self.model(waveforms)[masks]
        loss = nn.functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))
        return loss, masks.sum()

    def training_step(self, batch):
        self.optimizer.zero_grad()
        loss, num_frame = self._step(*batch)
        if torch.isinf(loss) or torch.isnan(loss):
            return None
        # normalize the loss by the number of frames of all batches
        num_frames = [torch.zeros_like(num_frame) for _ in range(self.world_size)]
        dist.all_gather(num_frames, num_frame)
        loss = loss * num_frame * self.world_size / sum(num_frames)
        loss.backward()
        for param in self.parameters():
            dist.all_reduce(param.grad)
            param.grad /= self.world_size
        self.optimizer.step()
        return loss.detach()


def batches(rank):
    generator = torch.Generator().manual_seed(rank)
    for index in range(5):
        masks = torch.rand(12, generator=generator) < 0.5
        if rank == 1 and index == 2:
            masks[:] = False  # a recording so short that nothing of it is masked
        yield torch.randn(12, 4, generator=generator), masks


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(0)
    module = HuBERTPreTrainModule(dist.get_world_size())
    losses = [module.training_step(batch) for batch in batches(dist.get_rank())]
    print(dist.get_rank(), sum(loss is not None for loss in losses), "steps", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
