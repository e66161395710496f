"""Answers a failed pickle with a gather of its own, while the peers gather their lengths.

source: https://github.com/NVIDIA/TensorRT-LLM/pull/7507
bug: RS410
ranks: 2
expect: RS410
line: dist.all_gather_object(flags, (False,))
decidable: yes
shows: hang
"""

import os
import pickle
from datetime import timedelta

import torch
import torch.distributed as dist


def safe_gather(obj, root=0):
    """Gathers pickled objects of any size to the root; None on the other ranks."""
    rank, size = dist.get_rank(), dist.get_world_size()
    try:
        payload = pickle.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL)
        my_n = len(payload)
    except Exception as e:
        flags = [None] * size
        dist.all_gather_object(flags, (False,))
        print(f"Rank {rank} serialization failed: {e}")
        return None

    lengths = [torch.zeros(1, dtype=torch.long) for _ in range(size)]
    dist.all_gather(lengths, torch.tensor([my_n]))
    if min(int(n) for n in lengths) < 0:
        return None
    longest = max(int(n) for n in lengths)
    buffer = torch.zeros(longest, dtype=torch.uint8)
    buffer[:my_n] = torch.frombuffer(bytearray(payload), dtype=torch.uint8)
    parts = [torch.empty_like(buffer) for _ in range(size)] if rank == root else None
    dist.gather(buffer, parts, dst=root)
    if rank != root:
        return None
    return [pickle.loads(bytes(p[: int(n)].tolist())) for p, n in zip(parts, lengths)]


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank = dist.get_rank()
    responses = {"request": rank, "tokens": list(range(rank + 3))}
    print(rank, safe_gather(responses))
    if rank == 1:
        responses["callback"] = lambda text: text
    print(rank, safe_gather(responses))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
