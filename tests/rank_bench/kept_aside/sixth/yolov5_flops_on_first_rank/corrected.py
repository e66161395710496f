"""Counts the operations of the model inside the wrapper in a forward pass on the first rank.

source: https://github.com/ultralytics/yolov5/pull/8398
bug: RS403
ranks: 2
expect: clean
shows: fine
"""

import logging
import os
from datetime import timedelta
from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LOGGER = logging.getLogger("classify")
RANK = int(os.getenv("RANK", -1))


class Conv(nn.Module):
    def __init__(self, c1, c2, k=3, s=2):
        super().__init__()
        self.conv = nn.Conv2d(c1, c2, k, s, k // 2, bias=False)
        self.bn = nn.BatchNorm2d(c2)
        self.act = nn.SiLU()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class ClassificationModel(nn.Module):
    def __init__(self, nc):
        super().__init__()
        self.model = nn.Sequential(Conv(3, 8), Conv(8, 16))
        self.head = nn.Linear(16, nc)

    def forward(self, x):
        return self.head(self.model(x).mean(dim=(2, 3)))


def count_flops(model, imgsz):
    """Operations of the convolutions for an image, counted by hooks."""
    counted = []

    def hook(module, inputs, output):
        counted.append(2 * module.weight.numel() * output[0, 0].numel())

    handles = [m.register_forward_hook(hook) for m in model.modules() if isinstance(m, nn.Conv2d)]
    model(torch.zeros(2, 3, imgsz, imgsz))
    for handle in handles:
        handle.remove()
    return sum(counted)


def train(opt):
    model = DistributedDataParallel(ClassificationModel(opt.nc))
    if RANK in {-1, 0}:
        flops = count_flops(model.module, opt.imgsz)
        LOGGER.info("%d layers, %.1f MFLOPs", len(list(model.modules())), flops / 1e6)
    optimizer = torch.optim.SGD(model.parameters(), lr=opt.lr0, momentum=0.9, nesterov=True)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for epoch in range(opt.epochs):
        tloss = 0.0
        for i in range(opt.batches):
            images = torch.randn(4, 3, opt.imgsz, opt.imgsz)
            labels = torch.randint(opt.nc, (4,))
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            tloss = (tloss * i + loss.item()) / (i + 1)
        if RANK in {-1, 0}:
            LOGGER.info("epoch %d: loss %.3f", epoch, tloss)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO if RANK in {-1, 0} else logging.WARNING)
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(1 + RANK)
    train(SimpleNamespace(nc=5, imgsz=32, lr0=0.01, epochs=2, batches=3))
    dist.destroy_process_group()
