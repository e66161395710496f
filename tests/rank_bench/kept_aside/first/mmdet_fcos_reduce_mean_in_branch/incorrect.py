"""An FCOS head averages its centerness over the ranks only where the rank has positives.

source: https://github.com/open-mmlab/mmdetection/issues/4724
bug: RS401
ranks: 2
expect: RS401
line: centerness_denorm = max(reduce_mean(pos_centerness_targets.sum().detach()), 1e-6)
decidable: yes
shows: error Timed out waiting|Connection (closed|reset) by peer
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn


def reduce_mean(tensor):
    """Mean of a tensor over the processes."""
    if not (dist.is_available() and dist.is_initialized()):
        return tensor
    tensor = tensor.clone()
    dist.all_reduce(tensor.div_(dist.get_world_size()), op=dist.ReduceOp.SUM)
    return tensor


class FCOSHead(nn.Module):
    def __init__(self, num_classes=3):
        super().__init__()
        self.num_classes = num_classes
        self.conv = nn.Linear(8, 1)

    def loss(self, feats, labels):
        centerness = self.conv(feats).flatten()
        pos_inds = ((labels >= 0) & (labels < self.num_classes)).nonzero().reshape(-1)
        num_pos = max(reduce_mean(torch.tensor(float(len(pos_inds)))), 1.0)
        pos_centerness = centerness[pos_inds]
        if len(pos_inds) > 0:
            pos_centerness_targets = feats[pos_inds].mean(dim=-1).sigmoid()
            centerness_denorm = max(reduce_mean(pos_centerness_targets.sum().detach()), 1e-6)
            error = (pos_centerness - pos_centerness_targets).abs().sum()
            loss_centerness = error / centerness_denorm
        else:
            loss_centerness = pos_centerness.sum()
        return loss_centerness / num_pos


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    head = FCOSHead()
    torch.manual_seed(0)
    all_labels = torch.randint(0, 8, (20, 4))
    all_feats = torch.randn(20, 4, 8)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for feats, labels in zip(all_feats[rank::world_size], all_labels[rank::world_size]):
        loss = head.loss(feats, labels)
        loss.backward()
    print("done", loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
