"""A batch that needs more memory than a T4 has."""

import argparse

import torch
from torch import nn

WIDTH = 4096


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=131072)
    parser.add_argument("--gradient-accumulation-steps", type=int, default=1)
    arguments = parser.parse_args()
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(3):
        for _ in range(arguments.gradient_accumulation_steps):
            batch = torch.randn(arguments.batch_size, WIDTH, device="cuda")
            loss = model(batch).square().sum()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
