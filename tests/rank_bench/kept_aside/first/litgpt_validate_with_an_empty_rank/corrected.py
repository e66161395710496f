"""Validates over a sharded stream in lockstep and returns NaN when no rank had a batch.

source: https://github.com/Lightning-AI/litgpt/pull/2321
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
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class StreamingDataset:
    """The chunks of a stream, dealt out to the ranks in turn."""

    def __init__(self, chunks):
        self.chunks = chunks[dist.get_rank() :: dist.get_world_size()]

    def __iter__(self):
        for seed in self.chunks:
            generator = torch.Generator().manual_seed(seed)
            for _ in range(3):
                yield torch.randint(0, 32, (2, 9), generator=generator)


@torch.no_grad()
def validate(model, val_dataloader, max_iters):
    model.eval()
    losses = []
    val_iter = iter(val_dataloader)
    for _ in range(max_iters):
        batch = next(val_iter, None)
        has_batch = torch.tensor(int(batch is not None))
        dist.all_reduce(has_batch, op=dist.ReduceOp.MIN)
        if not has_batch:
            break
        input_ids, targets = batch[:, :-1], batch[:, 1:]
        logits = model(input_ids)
        losses.append(nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    val_loss = torch.stack(losses).mean() if losses else torch.tensor(float("nan"))
    model.train()
    return val_loss


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(1337)
    model = nn.Sequential(nn.Embedding(32, 16), nn.Linear(16, 32))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in (*model, model):
        fully_shard(layer, mesh=mesh)
    val_dataloader = StreamingDataset(chunks=[11])
    val_loss = validate(model, val_dataloader, max_iters=2)
    print(f"rank {dist.get_rank()} val loss {val_loss:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
