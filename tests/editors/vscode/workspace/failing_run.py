"""One rank computes a tensor of another shape, and fails."""

import torch
from accelerate import Accelerator


def loss_of(batch: torch.Tensor, rank: int) -> torch.Tensor:
    weights = torch.ones(3 + rank)
    return (batch * weights).sum()


def main() -> None:
    accelerator = Accelerator()
    batch = torch.ones(4, 3, device=accelerator.device)
    print("loss", loss_of(batch, accelerator.process_index).item())
    accelerator.wait_for_everyone()


if __name__ == "__main__":
    main()
