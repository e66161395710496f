"""Every rank keeps the weights of the best epoch, judged by a matrix that is summed up on all ranks.

source: https://github.com/catalyst-team/catalyst/pull/717
bug: RS405
ranks: 2
expect: clean
shows: fine
"""

import copy
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CLASSES = 3


class BestWeightsCallback:
    """Keeps a copy of the best weights in memory, and puts it back at the end."""

    def __init__(self):
        self.best_iou = -1.0
        self.best_weights = None

    def is_better(self, iou):
        return iou > self.best_iou

    def on_epoch_end(self, runner, iou):
        if self.is_better(iou):
            self.best_iou = iou
            self.best_weights = copy.deepcopy(runner.core.state_dict())

    def on_stage_end(self, runner):
        runner.core.load_state_dict(self.best_weights)


class ConfusionMatrixCallback:
    def __init__(self, inputs, labels):
        self.inputs = inputs
        self.labels = labels

    @torch.no_grad()
    def compute(self, runner):
        preds = runner.core(self.inputs).argmax(dim=1)
        pairs = CLASSES * self.labels + preds
        matrix = torch.bincount(pairs, minlength=CLASSES**2).reshape(CLASSES, CLASSES).float()
        dist.all_reduce(matrix)
        union = matrix.sum(dim=0) + matrix.sum(dim=1) - matrix.diag()
        return (matrix.diag() / union.clamp(min=1)).mean().item()


class Runner:
    def __init__(self, model, confusion, best):
        self.core = model
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
        self.confusion = confusion
        self.best = best

    def train(self, inputs, labels, num_epochs):
        for _ in range(num_epochs):
            loss = nn.functional.cross_entropy(self.model(inputs), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.best.on_epoch_end(self, self.confusion.compute(self))
        self.best.on_stage_end(self)


def pixels(seed, size=60):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(size, 4, generator=generator)
    noise = torch.randn(size, CLASSES, generator=generator)
    return values, (values[:, :CLASSES] + noise).argmax(dim=1)


def compare_weights(model):
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    gathered = [torch.zeros_like(flat) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, flat)
    same = all(torch.equal(gathered[0], other) for other in gathered)
    if dist.get_rank() == 0:
        print(f"FINISHED weights {'agree' if same else 'differ'}", flush=True)


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(0)
    rank = dist.get_rank()
    model = nn.Linear(4, CLASSES)
    runner = Runner(model, ConfusionMatrixCallback(*pixels(310 + rank, 24)), BestWeightsCallback())
    runner.train(*pixels(rank), num_epochs=12)
    compare_weights(model)
    dist.destroy_process_group()
