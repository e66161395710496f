"""The ranks gather answers of three and four tokens.

Without the debug level gloo ends a rank with SIGABRT, or fills the tensors wrongly.

runs-on: cpu-ranks
ranks: 2
expect: exception RuntimeError: Detected mismatch between collectives on ranks.
frame: dist.all_gather(gathered, answer)
"""

from datetime import timedelta

import torch
import torch.distributed as dist


def generate(length: int) -> torch.Tensor:
    return torch.arange(length)


def main() -> None:
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    answer = generate(3 + dist.get_rank())
    gathered = [torch.zeros_like(answer) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, answer)
    if dist.get_rank() == 0:
        print("gathered:", [item.tolist() for item in gathered])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
