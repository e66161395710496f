"""A writer of predictions waits for the other ranks in close, which main calls while the process group exists.

source: https://github.com/pytorch/pytorch/issues/195500
bug: RS414
ranks: 2
expect: clean
shows: fine
"""

import json
import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


class PredictionWriter:
    """Writes one file per rank; the folder is complete when all of them are flushed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"predictions_{dist.get_rank()}.jsonl"
        self.file = self.path.open("w")

    def write(self, scores: torch.Tensor) -> None:
        self.file.write(json.dumps(scores.tolist()) + "\n")

    def close(self) -> None:
        self.file.close()
        dist.barrier()


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    folder = Path(tempfile.mkdtemp())
    writer = PredictionWriter(folder)
    model = torch.nn.Linear(8, 2)
    for _ in range(4):
        with torch.no_grad():
            writer.write(model(torch.randn(2, 8)))
    writer.close()
    print(f"rank {dist.get_rank()}: wrote {writer.path.name}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
