"""A sharded vision tower runs on the ranks whose batch has an image.

source: https://github.com/hiyouga/LlamaFactory/issues/7136
bug: RS403
ranks: 2
expect: RS403
line: image_embeds = self.visual(pixel_values)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class VisionLanguageModel(nn.Module):
    def __init__(self, hidden_size=16):
        super().__init__()
        self.embed_tokens = nn.Embedding(50, hidden_size)
        self.visual = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, hidden_size))
        self.lm_head = nn.Linear(hidden_size, 50)

    def forward(self, input_ids, pixel_values=None):
        hidden = self.embed_tokens(input_ids)
        if pixel_values is not None:
            image_embeds = self.visual(pixel_values)
            hidden = torch.cat([image_embeds.mean(1, keepdim=True), hidden[:, 1:]], dim=1)
        return self.lm_head(hidden)


def collate(samples):
    images = [sample["image"] for sample in samples if "image" in sample]
    batch = {"input_ids": torch.stack([sample["input_ids"] for sample in samples])}
    if images:
        batch["pixel_values"] = torch.stack(images)
    return batch


def load_dataset():
    """Descriptions of pictures, with a few texts about the model's own identity between them."""
    generator = torch.Generator().manual_seed(5)
    for index in range(12):
        sample = {"input_ids": torch.randint(50, (9,), generator=generator)}
        if index not in (3, 8):
            sample["image"] = torch.randn(4, 12, generator=generator)
        yield sample


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = VisionLanguageModel()
    mesh = init_device_mesh("cpu", (world_size,))
    fully_shard(model.visual, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, sample in enumerate(list(load_dataset())[rank::world_size]):
        batch = collate([sample])
        logits = model(**batch)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch["input_ids"].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"rank {rank}, step {step}: loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
