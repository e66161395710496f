"""Gather the detected boxes of all ranks: first their numbers, then the boxes padded to the largest of them.

source: https://github.com/pytorch/pytorch/issues/70985
bug: RS407
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Detector(nn.Module):
    def __init__(self, anchors=10):
        super().__init__()
        self.boxes = nn.Linear(8, 4 * anchors)
        self.scores = nn.Linear(8, anchors)

    def forward(self, images, threshold):
        scores = self.scores(images).sigmoid().flatten()
        boxes = self.boxes(images).reshape(-1, 4)
        return boxes[scores > threshold]


def gather_boxes(boxes, world_size):
    count = torch.tensor([len(boxes)])
    counts = [torch.zeros_like(count) for _ in range(world_size)]
    dist.all_gather(counts, count)
    longest = max(int(number) for number in counts)
    boxes = torch.cat([boxes, boxes.new_zeros(longest - len(boxes), 4)])
    gathered = [torch.zeros_like(boxes) for _ in range(world_size)]
    dist.all_gather(gathered, boxes)
    return torch.cat([part[:number] for part, number in zip(gathered, counts, strict=True)])


def local_images(rank, world_size, count=12):
    generator = torch.Generator().manual_seed(9)
    images = torch.randn(count, 8, generator=generator)
    return images[rank::world_size]


def main(args):
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    detector = Detector().eval()
    with torch.no_grad():
        boxes = detector(local_images(rank, world_size), args.threshold)
    boxes = gather_boxes(boxes, world_size)
    if rank == 0:
        print(f"{len(boxes)} boxes")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--threshold", type=float, default=0.6)
    main(parser.parse_args())
