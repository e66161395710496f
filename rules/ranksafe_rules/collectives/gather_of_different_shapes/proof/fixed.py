r"""The ranks agree on the longest answer, pad to it, gather, and cut the padding off.

runs-on: cpu-ranks
ranks: 2
expect: output ^gathered: \[\[0, 1, 2\], \[0, 1, 2, 3\]\]$
"""

from datetime import timedelta

import torch
import torch.distributed as dist


def generate(length: int) -> torch.Tensor:
    return torch.arange(length)


def main() -> None:
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    answer = generate(3 + dist.get_rank())
    length = torch.tensor([len(answer)])
    lengths = [torch.zeros_like(length) for _ in range(dist.get_world_size())]
    dist.all_gather(lengths, length)
    longest = max(item.item() for item in lengths)
    padded = torch.nn.functional.pad(answer, (0, longest - len(answer)))
    gathered = [torch.zeros_like(padded) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, padded)
    if dist.get_rank() == 0:
        answers = [item[:size] for item, size in zip(gathered, lengths, strict=True)]
        print("gathered:", [item.tolist() for item in answers])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
