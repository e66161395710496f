"""Gives the output of a stage back to the pool while it is still being sent to the next stage.

source: https://github.com/NVIDIA/Megatron-LM/pull/4047
bug: RS413
ranks: 2
expect: RS413
line: self.send_next = dist.isend(output, dst=self.rank + 1)
decidable: yes
shows: silent microbatch 0: wrong
"""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist

SIZE = 4_000_000


class BufferPool:
    """Keeps the memory of outputs that are not needed any more for the next ones."""

    def __init__(self):
        self.free = []

    def take(self):
        return self.free.pop() if self.free else torch.empty(SIZE)

    def deallocate_output_tensor(self, output):
        self.free.append(output)


class Stage:
    def __init__(self):
        self.rank = dist.get_rank()
        self.pool = BufferPool()
        self.send_next = None

    def forward_step(self, microbatch):
        output = self.pool.take()
        return output.fill_(float(microbatch + 1))

    def warmup(self, num_microbatches):
        for microbatch in range(num_microbatches):
            output = self.forward_step(microbatch)
            if self.send_next is not None:
                self.send_next.wait()
            self.send_next = dist.isend(output, dst=self.rank + 1)
            self.pool.deallocate_output_tensor(output)
        self.send_next.wait()

    def receive(self, num_microbatches):
        time.sleep(0.5)  # its weights are still being loaded
        for microbatch in range(num_microbatches):
            activations = torch.empty(SIZE)
            dist.recv(activations, src=self.rank - 1)
            right = bool((activations == microbatch + 1).all())
            print(f"microbatch {microbatch}: {'right' if right else 'wrong'}", flush=True)


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    stage = Stage()
    if stage.rank == 0:
        stage.warmup(num_microbatches=3)
    else:
        stage.receive(num_microbatches=3)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
