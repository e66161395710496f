"""The main process samples sequences; all processes write what was sampled to a file.

source: https://github.com/huggingface/accelerate/issues/133
bug: RS409
ranks: 2
expect: RS409
line: json.dump(results, file)
decidable: yes
shows: error UnboundLocalError.*results
"""

import json
import os
import tempfile
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@torch.no_grad()
def sample_sequences(model, loader, length=4):
    sequences = []
    for (tokens,) in loader:
        for _ in range(length):
            tokens = torch.cat([tokens, model(tokens)[:, -1:].argmax(-1)], dim=1)
        sequences += tokens.tolist()
    return sequences


def get_scores(path):
    with open(path) as file:
        sequences = json.load(file)
    return sum(len(set(sequence)) / len(sequence) for sequence in sequences) / len(sequences)


def main(num_train_epochs=2):
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    path = os.path.join(tempfile.gettempdir(), f"results-{os.environ['MASTER_PORT']}.json")
    torch.manual_seed(0)
    tokens = torch.randint(0, 30, (48, 8))
    test_loader = DataLoader(TensorDataset(tokens[:8, :4]), batch_size=4)
    model = nn.Sequential(nn.Embedding(30, 16), nn.Linear(16, 30))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    train_loader = DataLoader(TensorDataset(tokens), batch_size=4, shuffle=True)
    model, optimizer, train_loader = accelerator.prepare(model, optimizer, train_loader)

    for epoch in range(num_train_epochs):
        for (batch,) in train_loader:
            logits = model(batch[:, :-1]).flatten(0, 1)
            loss = nn.functional.cross_entropy(logits, batch[:, 1:].flatten())
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        if accelerator.is_main_process:
            results = sample_sequences(accelerator.unwrap_model(model), test_loader)
        with open(path, "w") as file:
            json.dump(results, file)
        accelerator.wait_for_everyone()
        accelerator.print(f"epoch {epoch}: {get_scores(path):.2f} distinct tokens")
    accelerator.end_training()


if __name__ == "__main__":
    main()
