"""Validates a fully sharded model until the validation data ends, which it does earlier on one rank than on the other.

source: https://github.com/pytorch/torchtitan/issues/1618
bug: RS406
ranks: 2
expect: RS406
line: for step, tokens in enumerate(self.dataset):
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.utils.data import IterableDataset

VOCAB = 32


class TextDataset(IterableDataset):
    def __init__(self, dp_rank: int, dp_world_size: int, seq_len: int = 16) -> None:
        generator = torch.Generator().manual_seed(11)
        lengths = torch.randint(4, 60, (21,), generator=generator).tolist()
        documents = [torch.randint(VOCAB, (n,), generator=generator) for n in lengths]
        self.documents = documents[dp_rank::dp_world_size]
        self.seq_len = seq_len

    def __iter__(self):
        buffer: list[int] = []
        for document in self.documents:
            buffer.extend(document.tolist())
            while len(buffer) > self.seq_len:
                yield torch.tensor(buffer[: self.seq_len + 1])
                buffer = buffer[self.seq_len + 1 :]


class Validator:
    def __init__(self, dataset: TextDataset, steps: int) -> None:
        self.dataset = dataset
        self.steps = steps  # -1 consumes all the data

    @torch.no_grad()
    def validate(self, model: nn.Module) -> float:
        losses = []
        for step, tokens in enumerate(self.dataset):
            if self.steps != -1 and step >= self.steps:
                break
            logits = model(tokens[:-1])
            losses.append(F.cross_entropy(logits, tokens[1:]))
        loss = torch.stack(losses).mean()
        dist.all_reduce(loss)
        return loss.item() / dist.get_world_size()


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    model = nn.Sequential(nn.Embedding(VOCAB, 16), nn.Linear(16, 16), nn.Linear(16, VOCAB))
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    dataset = TextDataset(mesh.get_local_rank(), mesh.size())
    loss = Validator(dataset, steps=-1).validate(model)
    if dist.get_rank() == 0:
        print(f"validation loss {loss:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
