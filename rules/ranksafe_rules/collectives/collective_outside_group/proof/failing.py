"""Rank 1 is no member of the group of evaluators: its broadcast there does nothing, and it keeps its zero.

runs-on: cpu-ranks
ranks: 2
expect: output rank 1: threshold 0.0
"""

from datetime import timedelta

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    evaluators = dist.new_group([0])
    samples = torch.tensor([8.0])
    dist.all_reduce(samples)
    threshold = torch.tensor([0.5 if dist.get_rank() == 0 else 0.0])
    dist.broadcast(threshold, src=0, group=evaluators)
    print(f"rank {dist.get_rank()}: threshold {threshold.item()} for {samples.item():.0f} samples")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
