"""Averages a dictionary of losses over the ranks, filled up with zeros for the losses that only other ranks have.

source: https://github.com/Intellindust-AI-Lab/DEIMv2/pull/136
bug: RS415
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


@torch.no_grad()
def reduce_dict(data, avg=True):
    world_size = dist.get_world_size()
    if world_size < 2:
        return data
    all_keys = [None] * world_size
    dist.all_gather_object(all_keys, list(data))
    keys = sorted({k for ks in all_keys for k in ks})
    values = torch.stack([data.get(k, torch.zeros(())) for k in keys], dim=0)
    dist.all_reduce(values)
    if avg:
        values /= world_size
    return dict(zip(keys, values))


class Criterion(nn.Module):
    """Losses of the matched queries and, where there are objects, of the denoised ones."""

    def forward(self, boxes, dn_boxes, targets):
        matched = targets if len(targets) else boxes.detach()[:1] * 0
        losses = {
            "loss_bbox": F.l1_loss(boxes[: len(matched)], matched),
            "loss_vfl": boxes.sigmoid().mean(),
        }
        if len(targets) > 0:
            losses["loss_bbox_dn"] = F.l1_loss(dn_boxes[: len(targets)], targets)
            losses["loss_fgl_dn"] = (dn_boxes[: len(targets)] - targets).pow(2).mean()
        return losses


def annotated_batch(generator):
    """Features and boxes; some images have nothing in them."""
    count = int(torch.randint(0, 3, (1,), generator=generator))
    return torch.randn(10, 8, generator=generator), torch.rand(count, 4, generator=generator)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    rank = dist.get_rank()
    generator = torch.Generator().manual_seed(rank)
    head, dn_head, criterion = nn.Linear(8, 4), nn.Linear(8, 4), Criterion()
    for step in range(8):
        feats, targets = annotated_batch(generator)
        loss_dict = criterion(head(feats), dn_head(feats), targets)
        sum(loss_dict.values()).backward()
        loss_dict_reduced = reduce_dict(loss_dict)
        total = sum(loss_dict_reduced.values())
        if rank == 0:
            print(f"step {step}: {total.item():.4f} of {len(loss_dict_reduced)} losses", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
