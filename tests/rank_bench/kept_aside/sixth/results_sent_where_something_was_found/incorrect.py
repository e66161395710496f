"""Workers send results of images on which they have found something; the collector receives one of every image.

source: documented: https://docs.pytorch.org/docs/stable/distributed.html#point-to-point-communication, 2.13
bug: RS416
ranks: 3
expect: RS416
line: dist.recv(result, src=worker)
decidable: yes
shows: hang
"""

import os
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

COLLECTOR = 0


@dataclass
class EvalConfig:
    images_per_rank: int = 6
    channels: int = 3
    size: int = 8
    threshold: float = 0.55


class Detector(nn.Module):
    """The best box of an image and its score."""

    def __init__(self, channels):
        super().__init__()
        self.backbone = nn.Conv2d(channels, 4, 3, padding=1)
        self.box = nn.Linear(4, 4)
        self.score = nn.Linear(4, 1)

    def forward(self, images):
        features = self.backbone(images).mean(dim=(2, 3))
        return torch.cat([self.box(features), self.score(features).sigmoid()], dim=1)


def own_images(config, rank):
    """Images of later ranks are darker, and nothing is to be seen on every second one."""
    generator = torch.Generator().manual_seed(rank)
    images = torch.rand(
        config.images_per_rank, config.channels, config.size, config.size, generator=generator
    )
    images[::2] -= 3.0 * (rank > COLLECTOR)
    return images


@torch.no_grad()
def detect(model, config):
    for image in own_images(config, dist.get_rank()):
        yield model(image.unsqueeze(0))[0]


def work(model, config):
    for result in detect(model, config):
        if result[-1] > config.threshold:
            dist.send(result, dst=COLLECTOR)


def collect(model, config):
    results = list(detect(model, config))
    for worker in range(1, dist.get_world_size()):
        for _ in range(config.images_per_rank):
            result = torch.empty(5)
            dist.recv(result, src=worker)
            results.append(result)
    scores = torch.stack(results)[:, -1]
    found = (scores > config.threshold).sum().item()
    print(f"{found} detections on {len(results)} images", flush=True)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(2)
    config = EvalConfig()
    model = Detector(config.channels).eval()
    if dist.get_rank() == COLLECTOR:
        collect(model, config)
    else:
        work(model, config)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
