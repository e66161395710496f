"""Trains with accelerate and saves each epoch; only the other processes wait for the main one.

source: https://github.com/huggingface/accelerate/issues/2690
bug: RS401
ranks: 2
expect: RS401
line: accelerator.wait_for_everyone()
decidable: yes
shows: hang
"""

import os
import tempfile
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch.utils.data import DataLoader, TensorDataset


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timeout)])
    output_dir = tempfile.mkdtemp()
    torch.manual_seed(0)
    dataset = TensorDataset(torch.randn(32, 8), torch.randn(32, 1))
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, train_dataloader = accelerator.prepare(
        model, optimizer, DataLoader(dataset, batch_size=4)
    )

    for epoch in range(3):
        model.train()
        for inputs, labels in train_dataloader:
            loss = torch.nn.functional.mse_loss(model(inputs), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()

        if accelerator.is_main_process:
            unwrapped_model = accelerator.unwrap_model(model)
            path = os.path.join(output_dir, f"epoch_{epoch}.bin")
            torch.save(unwrapped_model.state_dict(), path)
        else:
            accelerator.wait_for_everyone()

    accelerator.print("saved to", output_dir)


if __name__ == "__main__":
    main()
