"""Started with plain python, the script goes on as a single process.

runs-on: emulated-dp
ranks: 2
expect: output local rank 0
"""

import os

import torch


def main() -> None:
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    print(f"local rank {local_rank}: {torch.ones(2).sum()}")


if __name__ == "__main__":
    main()
