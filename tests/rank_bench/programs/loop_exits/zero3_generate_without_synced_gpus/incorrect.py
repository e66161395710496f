"""Generates with a sharded model and leaves the loop when this rank's sequences are finished.

source: https://github.com/huggingface/transformers/pull/22242
bug: RS404
ranks: 2
expect: RS404
line: break
decidable: yes
shows: error Timed out waiting|Connection (closed|reset) by peer
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class TinyLM(nn.Module):
    def __init__(self, vocab=16, dim=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, input_ids):
        return self.head(self.embed(input_ids))

    def generate(self, input_ids, eos_token_id, max_length):
        unfinished = torch.ones(len(input_ids), dtype=torch.long)
        while True:
            next_token_logits = self(input_ids)[:, -1, :]
            next_tokens = torch.argmax(next_token_logits, dim=-1)
            next_tokens = next_tokens * unfinished + eos_token_id * (1 - unfinished)
            input_ids = torch.cat([input_ids, next_tokens[:, None]], dim=-1)
            unfinished = unfinished.mul((next_tokens != eos_token_id).long())
            this_peer_finished = unfinished.max() == 0 or input_ids.shape[-1] >= max_length
            if this_peer_finished:
                break
        return input_ids


def load_prompts(rank):
    prompts = {0: [[1, 2], [3, 4]], 1: [[5, 6, 7, 8, 9, 10], [2, 9, 4, 11, 3, 12]]}
    return torch.tensor(prompts[rank])


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    model = TinyLM()
    for layer in (model.embed, model.head, model):
        fully_shard(layer, mesh=mesh)
    with torch.no_grad():
        output = model.generate(load_prompts(dist.get_rank()), eos_token_id=0, max_length=12)
    print(dist.get_rank(), output.shape)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
