"""Only the destination hands gather_object a list.

runs-on: cpu-ranks
ranks: 2
expect: output ^correct: 21$
"""

from datetime import timedelta

import torch.distributed as dist


def evaluate(rank: int) -> dict[str, int]:
    return {"rank": rank, "correct": 10 + rank}


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    result = evaluate(dist.get_rank())
    is_destination = dist.get_rank() == 0
    results = [None] * dist.get_world_size() if is_destination else None
    dist.gather_object(result, results, dst=0)
    if results is not None:
        print("correct:", sum(item["correct"] for item in results))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
