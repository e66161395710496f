"""Gathers the features of all ranks for a contrastive loss in a function of its own; speech is of a different length on each rank.

source: https://github.com/Lightning-Universe/lightning-bolts/issues/791
bug: RS407
ranks: 2
expect: RS407
line: torch.distributed.all_gather(gathered_tensor, tensor)
decidable: yes
shows: error op.preamble.length
"""

import os
from datetime import timedelta

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class SyncFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        ctx.batch_size = tensor.shape[0]
        gathered_tensor = [
            torch.zeros_like(tensor) for _ in range(torch.distributed.get_world_size())
        ]
        torch.distributed.all_gather(gathered_tensor, tensor)
        return torch.cat(gathered_tensor, 0)

    @staticmethod
    def backward(ctx, grad_output):
        grad_input = grad_output.clone()
        torch.distributed.all_reduce(grad_input)
        start = torch.distributed.get_rank() * ctx.batch_size
        return grad_input[start : start + ctx.batch_size]


class SpeechEncoder(nn.Module):
    def __init__(self, mels=6, dim=10):
        super().__init__()
        self.proj = nn.Linear(mels, dim)

    def forward(self, frames):
        return torch.tanh(self.proj(frames))


def nt_xent_loss(out_1, out_2, temperature=0.5):
    out_1 = SyncFunction.apply(out_1).flatten(1)
    out_2 = SyncFunction.apply(out_2).flatten(1)
    logits = F.normalize(out_1) @ F.normalize(out_2).T / temperature
    return F.cross_entropy(logits, torch.arange(len(logits)))


def speech_batches(rank, count=4, batch_size=5):
    generator = torch.Generator().manual_seed(rank)
    for _ in range(count):
        frames = int(torch.randint(5, 9, (1,), generator=generator))
        yield torch.randn(batch_size, frames, 6, generator=generator)


def main():
    torch.distributed.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    encoder = DistributedDataParallel(SpeechEncoder())
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
    for frames in speech_batches(torch.distributed.get_rank()):
        both = encoder(torch.cat([frames, frames + 0.1 * torch.randn_like(frames)]))
        out_1, out_2 = both.chunk(2)
        loss = nt_xent_loss(out_1, out_2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
