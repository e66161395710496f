"""Reads every num_processes-th file in an IterableDataset of its own; the files hold different numbers of lines.

source: https://github.com/huggingface/accelerate/issues/221
bug: RS406
ranks: 2
expect: RS406
line: for step, batch in enumerate(train_dataloader):
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

FILES = {"part-0.txt": 24, "part-1.txt": 16, "part-2.txt": 24, "part-3.txt": 12}


def read_lines(name):
    generator = torch.Generator().manual_seed(int(name[5]))
    for _ in range(FILES[name]):
        yield torch.randint(30, (10,), generator=generator)


class TextDataset(IterableDataset):
    def __init__(self, files, process_index, num_processes):
        self.files = files
        self.process_index = process_index
        self.num_processes = num_processes

    def __iter__(self):
        for name in self.files[self.process_index :: self.num_processes]:
            yield from read_lines(name)


class LanguageModel(nn.Module):
    def __init__(self, vocab=30, dim=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, input_ids):
        logits = self.head(self.embed(input_ids[:, :-1]))
        return nn.functional.cross_entropy(logits.flatten(0, 1), input_ids[:, 1:].flatten())


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    dataset = TextDataset(sorted(FILES), accelerator.process_index, accelerator.num_processes)
    # the dataset has taken its share already
    train_dataloader = DataLoader(dataset, batch_size=4)
    model = LanguageModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    model, optimizer = accelerator.prepare(model, optimizer)

    for epoch in range(2):
        model.train()
        for step, batch in enumerate(train_dataloader):
            loss = model(batch)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.print(f"epoch {epoch}: step {step}, loss {loss.item():.3f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
