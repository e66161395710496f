"""Broadcasts the per-device batch size before the batch, so that the others allocate as much.

source: https://github.com/mlcommons/algorithmic-efficiency/pull/350
bug: RS415
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

N_GPUS = int(os.environ.get("WORLD_SIZE", "1"))
RANK = int(os.environ.get("RANK", "0"))


def pad(batch, n_devices):
    """Fills up the batch until it divides by the number of devices."""
    missing = -len(batch) % n_devices
    return torch.cat([batch, batch.new_zeros(missing, batch.shape[1])])


class WmtWorkload:
    def __init__(self, num_examples, seq_len=8):
        torch.manual_seed(0)
        self.examples = torch.randint(1, 100, (num_examples, seq_len))
        self.seq_len = seq_len

    def build_input_queue(self, global_batch_size):
        """Rank zero reads the data and deals it out to the other ranks."""
        per_device_batch_size = global_batch_size // N_GPUS
        for start in range(0, len(self.examples), global_batch_size):
            if RANK == 0:
                batch = pad(self.examples[start : start + global_batch_size], N_GPUS)
                inputs = batch.view(N_GPUS, -1, self.seq_len).clone()
                per_device_batch_size = inputs.shape[1]
            size = torch.tensor(per_device_batch_size)
            dist.broadcast(size, src=0)
            per_device_batch_size = int(size)
            if RANK != 0:
                shape = (N_GPUS, per_device_batch_size, self.seq_len)
                inputs = torch.zeros(shape, dtype=torch.int64)
            dist.broadcast(inputs, src=0)
            yield inputs[RANK]

    def eval_model(self, global_batch_size):
        tokens = torch.zeros((), dtype=torch.int64)
        for batch in self.build_input_queue(global_batch_size):
            tokens += (batch > 0).sum()
        dist.all_reduce(tokens)
        return tokens.item()


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    workload = WmtWorkload(num_examples=22)
    tokens = workload.eval_model(global_batch_size=8)
    print(f"rank {RANK}: {tokens} of {workload.examples.numel()} tokens")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
