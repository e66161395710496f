"""A thread that saves a checkpoint has a process group of its own.

source: https://github.com/Tencent-Hunyuan/UniRL/pull/410
bug: RS414
ranks: 2
expect: clean
shows: fine
"""

import functools
import os
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TIMEOUT = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))


@functools.cache
def init_gloo_group():
    """One gloo group for everything that happens on the CPU."""
    return dist.new_group(backend="gloo", timeout=TIMEOUT)


class Backend:
    def __init__(self, model):
        self.save_group = dist.new_group(backend="gloo", timeout=TIMEOUT)
        self.model = DistributedDataParallel(model)
        self.thread = None

    def _save(self, state):
        size = sum(value.numel() for value in state.values())
        time.sleep(0.3 * dist.get_rank())  # the shards do not lie on the same disk
        written = torch.tensor([size])
        dist.all_reduce(written, group=self.save_group)
        print(f"rank {dist.get_rank()}: {written.item()} values written", flush=True)

    def async_save(self):
        state = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.thread = threading.Thread(target=self._save, args=(state,))
        self.thread.start()

    def embed(self, prompts):
        """The text encoder is brought to the device for this, on all ranks at the same time."""
        time.sleep(0.15)
        dist.barrier(group=init_gloo_group())
        return prompts.float().mean(dim=1, keepdim=True)


def main():
    dist.init_process_group("gloo", timeout=TIMEOUT)
    init_gloo_group()
    backend = Backend(nn.Linear(1, 4))
    for step in range(2):
        loss = backend.model(backend.embed(torch.randint(9, (3, 5)))).pow(2).mean()
        loss.backward()
        if step == 0:
            backend.async_save()
    backend.thread.join()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
