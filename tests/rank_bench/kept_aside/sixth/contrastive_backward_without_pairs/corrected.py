"""A contrastive loss gathers with gradients, which stay in the loss of a rank whose batch has no pair.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/6624
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class AllGatherGrad(torch.autograd.Function):
    """Gathers in the forward pass, sums the gradients of all ranks in the backward pass."""

    @staticmethod
    def forward(ctx, tensor):
        gathered = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, tensor.contiguous())
        return torch.stack(gathered)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient[dist.get_rank()]


def pair_loss(local, everyone, labels):
    scores = local @ everyone.flatten(0, 1).t()
    positive = labels[:, None] == labels[None, :]
    positive.fill_diagonal_(False)
    anchors = positive.any(dim=1)
    if not anchors.any():
        return local.pow(2).mean() + 0.0 * everyone.sum()
    return torch.logsumexp(scores[anchors], dim=1).mean()


def average_gradients(module):
    for parameter in module.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def loader(batches, size):
    generator = torch.Generator().manual_seed(7 + dist.get_rank())
    for _ in range(batches):
        yield (
            torch.randn(size, 6, generator=generator),
            torch.randint(8, (size,), generator=generator),
        )


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    encoder = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
    for features, labels in loader(batches=20, size=4):
        local = nn.functional.normalize(encoder(features), dim=1)
        everyone = AllGatherGrad.apply(local)
        loss = pair_loss(local, everyone, labels)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(encoder)
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
