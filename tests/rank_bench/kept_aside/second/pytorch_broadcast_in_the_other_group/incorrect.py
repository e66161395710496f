"""The first two of four ranks broadcast a weight in the group of the last two, to which they do not belong.

source: https://github.com/pytorch/pytorch/issues/67600
bug: RS411
ranks: 4
expect: RS411
line: dist.broadcast(weight, src=1, group=group)
decidable: yes
shows: error Invalid process group specified
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

TEACHERS = [0, 1]
STUDENTS = [2, 3]


def setup():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)


def exchange(rank, group, weight):
    """The second teacher's weight for both teachers."""
    if rank < len(TEACHERS):
        dist.broadcast(weight, src=1, group=group)
    return weight


def distill(rank, weight, group):
    """The students average what they have learnt."""
    if rank in STUDENTS:
        dist.all_reduce(weight, group=group)
        weight /= len(STUDENTS)
    return weight


def run():
    rank = dist.get_rank()
    teacher_group = dist.new_group(TEACHERS)
    student_group = dist.new_group(STUDENTS)
    weight = torch.tensor([float(rank)])

    weight = exchange(rank, student_group, weight)
    weight = distill(rank, weight, student_group)

    role = "teacher" if rank in TEACHERS else "student"
    print(f"{role} {rank} has weight {weight.item():.1f}", flush=True)
    for group, members in ((teacher_group, TEACHERS), (student_group, STUDENTS)):
        if rank in members:
            dist.barrier(group)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    setup()
    run()
