"""Every rank hands gather_object a list, but only the destination may.

runs-on: cpu-ranks
ranks: 2
expect: exception ValueError: Argument ``gather_list`` must NOT be specified on
    non-destination ranks.
frame: dist.gather_object(result, results, dst=0)
"""

from datetime import timedelta

import torch.distributed as dist


def evaluate(rank: int) -> dict[str, int]:
    return {"rank": rank, "correct": 10 + rank}


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    result = evaluate(dist.get_rank())
    results = [None for _ in range(dist.get_world_size())]
    dist.gather_object(result, results, dst=0)
    if dist.get_rank() == 0:
        print("correct:", sum(item["correct"] for item in results))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
