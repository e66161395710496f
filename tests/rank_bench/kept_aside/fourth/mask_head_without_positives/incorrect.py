"""Reduces the losses by name, one of which is missing on the ranks whose batch has no positive sample.

source: https://github.com/open-mmlab/mmdetection/issues/3563
bug: RS406
ranks: 2
expect: RS406
line: for loss_name, loss_value in log_vars.items():
decidable: yes
shows: hang
"""

import os
from collections import OrderedDict
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class StandardRoIHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.bbox_head = nn.Linear(8, 4)
        self.mask_head = nn.Linear(8, 16)

    def _mask_forward_train(self, feats, gt_masks, pos_inds):
        pos_feats = feats[pos_inds]
        if pos_feats.shape[0] == 0:
            return dict(loss_mask=None)
        mask_pred = self.mask_head(pos_feats)
        loss_mask = nn.functional.mse_loss(mask_pred, gt_masks[pos_inds])
        return dict(loss_mask=loss_mask)

    def forward_train(self, feats, gt_bboxes, gt_masks, pos_inds):
        losses = dict(loss_bbox=nn.functional.l1_loss(self.bbox_head(feats), gt_bboxes))
        mask_results = self._mask_forward_train(feats, gt_masks, pos_inds)
        if mask_results["loss_mask"] is not None:
            losses.update(mask_results)
        return losses


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Linear(12, 8)
        self.roi_head = StandardRoIHead()

    def _parse_losses(self, losses):
        log_vars = OrderedDict((name, value.mean()) for name, value in losses.items())
        loss = sum(value for name, value in log_vars.items() if "loss" in name)
        log_vars["loss"] = loss
        for loss_name, loss_value in log_vars.items():
            # average over the processes
            if dist.is_available() and dist.is_initialized():
                loss_value = loss_value.data.clone()
                dist.all_reduce(loss_value.div_(dist.get_world_size()))
            log_vars[loss_name] = loss_value.item()
        return loss, log_vars

    def train_step(self, data):
        feats = self.backbone(data["img"])
        losses = self.roi_head.forward_train(
            feats, data["gt_bboxes"], data["gt_masks"], data["pos_inds"]
        )
        return self._parse_losses(losses)


def get_batch(index):
    generator = torch.Generator().manual_seed(index)
    return dict(
        img=torch.randn(5, 12, generator=generator),
        gt_bboxes=torch.rand(5, 4, generator=generator),
        gt_masks=torch.rand(5, 16, generator=generator),
        pos_inds=torch.rand(5, generator=generator) > (0.4 if index != 5 else 1.0),
    )


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = Detector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for index in range(rank, 8, world_size):
        loss, log_vars = model.train_step(get_batch(index))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(dict(log_vars), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
