"""Started with plain python, a script for torchrun finds no LOCAL_RANK.

runs-on: emulated-dp
ranks: 2
expect: exception KeyError: 'LOCAL_RANK'
frame: local_rank = int(os.environ["LOCAL_RANK"])
"""

import os

import torch


def main() -> None:
    local_rank = int(os.environ["LOCAL_RANK"])
    print(f"local rank {local_rank}: {torch.ones(2).sum()}")


if __name__ == "__main__":
    main()
