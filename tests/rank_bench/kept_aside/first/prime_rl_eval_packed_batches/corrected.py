"""Evaluates a sharded model over packed batches as long as all ranks have one.

source: https://github.com/PrimeIntellect-ai/prime-rl/pull/2636
bug: RS406
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

SEQ_LEN = 16


class CatDataset:
    """Joins samples of any length to blocks of SEQ_LEN and drops the rest."""

    def __init__(self, samples):
        self.samples = samples

    def __iter__(self):
        tokens = []
        for sample in self.samples:
            tokens.extend(sample)
            while len(tokens) >= SEQ_LEN:
                yield torch.tensor(tokens[:SEQ_LEN])
                tokens = tokens[SEQ_LEN:]


def setup_dataloader(rank, world_size):
    lengths = [3, 31, 8, 40, 5, 22, 9, 37, 4, 28, 6, 33]
    samples = [[n % 32] * n for n in lengths]
    return CatDataset(samples[rank::world_size])


@torch.no_grad()
def run_eval_loop(model, dataloader):
    loss_sum, batches = torch.zeros(()), torch.zeros(())
    data_iter = iter(dataloader)
    while True:
        batch = next(data_iter, None)
        has_data = torch.tensor(0 if batch is None else 1)
        dist.all_reduce(has_data, op=dist.ReduceOp.MIN)
        if has_data.item() == 0:
            break
        logits = model(batch)
        loss_sum += nn.functional.cross_entropy(logits[:-1], batch[1:])
        batches += 1
    dist.all_reduce(loss_sum)
    dist.all_reduce(batches)
    return (loss_sum / batches).item()


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = nn.Sequential(nn.Embedding(64, 8), nn.Linear(8, 64))
    mesh = init_device_mesh("cpu", (world_size,))
    for layer in (*model, model):
        fully_shard(layer, mesh=mesh)
    val_loss = run_eval_loop(model, setup_dataloader(rank, world_size))
    if rank == 0:
        print(f"Validation loss {val_loss:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
