"""Every rank comes to the same line; the sum needs them all."""

import torch
from accelerate import Accelerator


def main() -> None:
    accelerator = Accelerator()
    rank = accelerator.process_index
    value = torch.ones(1, device=accelerator.device)
    total = accelerator.reduce(value)
    print(f"the sum on rank {rank} is {total.item()}", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
