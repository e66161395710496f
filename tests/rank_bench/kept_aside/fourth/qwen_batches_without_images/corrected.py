"""Runs the vision tower on a blank image where the batch holds none, and adds nothing of it to the sequence.

source: https://github.com/huggingface/transformers/issues/37186
bug: RS403
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, Dataset, DistributedSampler

PATCH = 6


class Visual(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.proj = nn.Linear(PATCH, dim)
        self.merger = nn.Linear(dim, dim)

    def forward(self, pixel_values):
        return self.merger(torch.relu(self.proj(pixel_values)))


class ConditionalGeneration(nn.Module):
    def __init__(self, vocab_size=20, dim=8):
        super().__init__()
        self.visual = Visual(dim)
        self.embed_tokens = nn.Embedding(vocab_size, dim)
        self.lm_head = nn.Linear(dim, vocab_size)

    def forward(self, input_ids, pixel_values=None):
        inputs_embeds = self.embed_tokens(input_ids)
        has_images = pixel_values is not None
        if not has_images:
            pixel_values = torch.zeros(1, PATCH)
        image_embeds = self.visual(pixel_values)
        inputs_embeds = inputs_embeds + image_embeds.mean(dim=0) * float(has_images)
        return self.lm_head(inputs_embeds)


class ChatDataset(Dataset):
    """Text only, but for every fourth conversation."""

    def __len__(self):
        return 16

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        sample = {"input_ids": torch.randint(20, (5,), generator=generator)}
        if index % 4 == 0:
            sample["pixel_values"] = torch.randn(3, PATCH, generator=generator)
        return sample


def collate(samples):
    batch = {"input_ids": torch.stack([sample["input_ids"] for sample in samples])}
    images = [sample["pixel_values"] for sample in samples if "pixel_values" in sample]
    if images:
        batch["pixel_values"] = torch.cat(images)
    return batch


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    model = ConditionalGeneration()
    fully_shard(model.visual)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    dataset = ChatDataset()
    sampler = DistributedSampler(dataset, shuffle=False)
    for batch in DataLoader(dataset, batch_size=2, sampler=sampler, collate_fn=collate):
        logits = model(**batch)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch["input_ids"].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
