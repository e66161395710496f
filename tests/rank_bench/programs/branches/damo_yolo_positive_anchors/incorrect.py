"""A detection head averages its normaliser over the ranks, but only on ranks whose images have positive anchors.

source: https://github.com/tinyvision/DAMO-YOLO/issues/30
bug: RS401
ranks: 2
expect: RS401
line: norm_factor = reduce_mean(cls_scores[pos_inds].detach().sum()).clamp(min=1.0)
decidable: yes
shows: error Received data size doesn't match expected size
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


def reduce_mean(tensor):
    tensor = tensor.clone()
    dist.all_reduce(tensor.div_(dist.get_world_size()), op=dist.ReduceOp.SUM)
    return tensor


class ZeroHead(nn.Module):
    def __init__(self, in_channels=16, anchors=9):
        super().__init__()
        self.cls = nn.Linear(in_channels, anchors)
        self.reg = nn.Linear(in_channels, anchors)

    def forward(self, feats):
        return self.cls(feats).sigmoid().flatten(), self.reg(feats).flatten()

    def loss(self, cls_scores, bbox_preds, targets):
        labels = targets.flatten()
        pos_inds = torch.nonzero(labels > 0).squeeze(1)
        loss_cls = F.binary_cross_entropy(cls_scores, (labels > 0).float())
        if len(pos_inds) > 0:
            norm_factor = reduce_mean(cls_scores[pos_inds].detach().sum()).clamp(min=1.0)
            loss_bbox = (bbox_preds[pos_inds] - labels[pos_inds]).abs().sum() / norm_factor
        else:
            loss_bbox = bbox_preds.sum() * 0.0
        return loss_cls + loss_bbox


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    rank = dist.get_rank()
    generator = torch.Generator().manual_seed(rank)
    head = ZeroHead()
    model = DistributedDataParallel(head)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for it in range(4):
        feats = torch.randn(4, 16, generator=generator)
        objects = torch.rand(4, 9, generator=generator) > 0.93
        targets = 3.0 * objects if (it + rank) % 2 else torch.zeros(4, 9)  # or background only
        cls_scores, bbox_preds = model(feats)
        loss = head.loss(cls_scores, bbox_preds, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"rank {rank}: loss {loss.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
