"""Waits for the asynchronous all_reduce of a gradient buffer before the buffer is divided.

source: https://github.com/OpenNMT/OpenNMT-py/issues/2295
bug: RS413
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed


def all_reduce_and_rescale_tensors(tensors, rescale_denom, buffer_size=104857600):
    """All-reduce and rescale tensors in chunks of a buffer's size (in bytes)."""
    buffer_t = tensors[0].new(buffer_size // tensors[0].element_size()).zero_()
    buffer = []

    def all_reduce_buffer():
        offset = 0
        for t in buffer:
            numel = t.numel()
            buffer_t[offset : offset + numel].copy_(t.view(-1))
            offset += numel
        torch.distributed.all_reduce(buffer_t[:offset])
        buffer_t.div_(rescale_denom)
        offset = 0
        for t in buffer:
            numel = t.numel()
            t.view(-1).copy_(buffer_t[offset : offset + numel])
            offset += numel

    filled = 0
    for t in tensors:
        size = t.numel() * t.element_size()
        if filled + size > buffer_size:
            all_reduce_buffer()
            buffer, filled = [], 0
        buffer.append(t)
        filled += size
    if buffer:
        all_reduce_buffer()


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    torch.distributed.init_process_group("gloo", timeout=timeout)
    rank, world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    grads = [torch.full((1000, 500), float(rank + 1)) for _ in range(4)]
    all_reduce_and_rescale_tensors(grads, float(world_size))
    expected = sum(range(1, world_size + 1)) / world_size
    right = all(torch.allclose(g, torch.full_like(g, expected)) for g in grads)
    print(f"rank {rank}: {'right' if right else 'wrong'} gradient")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
