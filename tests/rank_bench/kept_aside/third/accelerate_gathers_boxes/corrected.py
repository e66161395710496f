"""Gathers the boxes of a detector for the metrics as objects, because every picture has another number.

source: https://github.com/huggingface/accelerate/issues/2643
bug: RS407
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Detector(nn.Module):
    """Returns a dictionary of boxes and scores per picture, like torchvision's detectors."""

    def __init__(self, anchors=10):
        super().__init__()
        self.box_head = nn.Linear(6, anchors * 4)
        self.score_head = nn.Linear(6, anchors)

    def forward(self, images):
        boxes = self.box_head(images).view(len(images), -1, 4)
        scores = self.score_head(images).sigmoid()
        detections = []
        for image_boxes, image_scores in zip(boxes, scores, strict=True):
            keep = image_scores > 0.5
            detections.append({"boxes": image_boxes[keep], "scores": image_scores[keep]})
        return detections


class MeanConfidence:
    def __init__(self):
        self.scores = []

    def update(self, detections):
        self.scores += [detection["scores"] for detection in detections]

    def compute(self):
        return torch.cat(self.scores).mean().item()


def evaluate(accelerator, model, loader):
    metric = MeanConfidence()
    model.eval()
    for (images,) in loader:
        with torch.no_grad():
            predictions = model(images)
        predictions = accelerator.gather_for_metrics(predictions, use_gather_object=True)
        metric.update(predictions)
    return metric.compute()


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    torch.manual_seed(1)
    model, images = Detector(), torch.randn(24, 6)
    loader = DataLoader(TensorDataset(images), batch_size=3)
    model, loader = accelerator.prepare(model, loader)
    confidence = evaluate(accelerator, model, loader)
    accelerator.print(f"mean confidence {confidence:.3f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
