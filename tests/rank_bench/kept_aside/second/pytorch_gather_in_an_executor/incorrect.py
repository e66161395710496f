"""Saves asynchronously: a thread gathers the plans of the ranks while the main thread goes on with the collectives of the training.

source: https://github.com/pytorch/pytorch/issues/115861
bug: RS414
ranks: 2
expect: RS414
line: dist.gather_object(plan, plans)
decidable: yes
shows: error Timed out waiting|Connection (closed|reset) by peer|Received data size doesn't match expected size
"""

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import torch
import torch.distributed as dist


def local_plan(rank, tensors):
    if rank == 0:
        time.sleep(0.3)  # the coordinator also looks up what is stored already
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def gather_plans(rank, tensors):
    plan = local_plan(rank, tensors)
    plans = [None] * dist.get_world_size() if rank == 0 else None
    dist.gather_object(plan, plans)
    return plans


def write(rank, path, tensors, plans):
    torch.save({"plans": plans, "tensors": tensors}, os.path.join(path, f"{rank}.pt"))
    return len(plans or [])


def save(rank, path, tensors):
    return write(rank, path, tensors, gather_plans(rank, tensors))


def async_save(executor, rank, path, tensors):
    copies = {name: tensor.clone() for name, tensor in tensors.items()}
    return executor.submit(save, rank, path, copies)


def main():
    limit = float(os.environ.get("RANK_BENCH_TIMEOUT", "5"))
    dist.init_process_group("gloo", timeout=timedelta(seconds=limit))
    rank = dist.get_rank()
    weights = {"w": torch.zeros(16, 16), "b": torch.zeros(16)}
    executor = ThreadPoolExecutor(max_workers=1)
    with tempfile.TemporaryDirectory() as path:
        future = async_save(executor, rank, path, weights)
        for step in range(20):
            grad = torch.randn(16, 16)
            dist.all_reduce(grad)
            weights["w"] -= 0.1 * grad
            time.sleep(0.05)
        print(f"rank {rank}: {future.result()} plans", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
