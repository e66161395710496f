"""Sends the calibrated threshold to the ranks that train through their own group.

source: https://github.com/pytorch/pytorch/issues/67600
bug: RS411
ranks: 4
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TRAINERS = [0, 1]
EVALUATORS = [2, 3]


def make_groups():
    """One group that trains, and one that evaluates while the others go on."""
    return dist.new_group(TRAINERS), dist.new_group(EVALUATORS)


def calibrate(model, scores=64):
    """The score that keeps one sample in four."""
    with torch.no_grad():
        logits = model(torch.randn(scores, 6)).flatten()
    return logits.quantile(0.75).reshape(1)


def share_threshold(model, groups):
    threshold = torch.zeros(1)
    if dist.get_rank() in TRAINERS:
        if dist.get_rank() == TRAINERS[0]:
            threshold = calibrate(model)
        dist.broadcast(threshold, src=0, group=groups[0])
    return threshold


def hard_examples(model, inputs, threshold):
    with torch.no_grad():
        return inputs[model(inputs).flatten() > threshold]


def train(model, group, threshold, steps=3):
    net = DistributedDataParallel(model, process_group=group)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(steps):
        inputs = hard_examples(model, torch.randn(32, 6), threshold)
        loss = net(inputs).pow(2).sum() / 32
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(model, group):
    score = model(torch.randn(16, 6)).pow(2).mean().detach()
    dist.all_reduce(score, group=group)
    return score.item() / len(EVALUATORS)


def report(threshold):
    """Compares what the trainers used."""
    everybody = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, threshold)
    if dist.get_rank() == 0:
        used = {round(everybody[rank].item(), 4) for rank in TRAINERS}
        print(f"FINISHED thresholds {'agree' if len(used) == 1 else 'differ'}", flush=True)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(11)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1), nn.Softplus())
    groups = make_groups()
    threshold = share_threshold(model, groups)
    if dist.get_rank() in TRAINERS:
        train(model, groups[0], threshold)
    else:
        evaluate(model, groups[1])
    report(threshold)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
