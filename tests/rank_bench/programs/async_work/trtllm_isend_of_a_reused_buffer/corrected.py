"""Passes requests down a pipeline with send before they are decoded in the same buffer.

source: https://github.com/NVIDIA/TensorRT-LLM/pull/3688
bug: RS413
ranks: 3
expect: clean
decidable: yes
shows: fine
"""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist


class PyExecutor:
    def __init__(self, num_tokens=200_000):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.is_first_pp_rank = self.rank == 0
        self.is_last_pp_rank = self.rank == self.size - 1
        self.prev_pp_rank = self.rank - 1
        self.next_pp_rank = self.rank + 1
        self.num_tokens = num_tokens
        self.send_handle = None

    def _broadcast_new_requests(self, new_requests):
        """Hands new requests from the first stage to the last one."""
        if self.is_first_pp_rank:
            buf = torch.tensor(new_requests)
        else:
            buf = torch.empty(self.num_tokens, dtype=torch.long)
            dist.recv(buf, self.prev_pp_rank)
        if not self.is_last_pp_rank:
            dist.send(buf, self.next_pp_rank)
        return self._decode(buf)

    def _decode(self, buf):
        return buf.neg_().sum().item()

    def run(self):
        requests = [1] * self.num_tokens if self.is_first_pp_rank else None
        if not self.is_first_pp_rank:
            time.sleep(0.5)
        total = self._broadcast_new_requests(requests)
        print(f"stage {self.rank}: decoded {total}", flush=True)


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    PyExecutor().run()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
