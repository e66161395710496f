"""Each rank generates for its shard of the evaluation's prompts with a sharded model; the last shard is shorter.

source: https://github.com/RapidFireAI/rapidfireai/pull/179
bug: RS406
ranks: 2
expect: RS406
line: for index in range(start, end):
decidable: yes
shows: error Received data size doesn't match expected size
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class GenerationMetricsCallback:
    """Generates for a fixed set of prompts, each rank for its shard."""

    def __init__(self, input_ids, max_new_tokens=4):
        self.input_ids, self.max_new_tokens = input_ids, max_new_tokens

    @torch.no_grad()
    def generate(self, model, tokens):
        for _ in range(self.max_new_tokens):
            tokens = torch.cat([tokens, model(tokens)[:, -1:].argmax(-1)], dim=1)
        return tokens

    def on_evaluate(self, model):
        rank, world_size = dist.get_rank(), dist.get_world_size()
        num_samples = self.input_ids.shape[0]
        shard_size = (num_samples + world_size - 1) // world_size
        start = rank * shard_size
        end = min(start + shard_size, num_samples)
        outputs = []
        for index in range(start, end):
            outputs.append(self.generate(model, self.input_ids[index : index + 1]))
        gathered = [None] * world_size
        dist.all_gather_object(gathered, [output[0].tolist() for output in outputs])
        return [output for shard in gathered for output in shard]


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 20))
    fully_shard(model[1], mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    callback = GenerationMetricsCallback(torch.randint(0, 20, (5, 6)))
    for step in range(2):
        batch = torch.randint(0, 20, (4, 8))
        logits = model(batch[:, :-1]).flatten(0, 1)
        nn.functional.cross_entropy(logits, batch[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
        completions = callback.on_evaluate(model)
        if dist.get_rank() == 0:
            print(f"step {step}: {len(completions)} completions", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
