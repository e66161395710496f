"""Gathers the log probabilities of the desirable examples, of which every microbatch has another number.

source: https://github.com/huggingface/trl/issues/1342
bug: RS407
ranks: 2
expect: RS407
line: chosen = self.accelerator.gather(chosen_logps.detach())
decidable: yes
shows: error Received data size doesn't match expected size|Connection (closed|reset) by peer|Timed out waiting
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class KTOTrainer:
    def __init__(self, accelerator, model, optimizer):
        self.accelerator = accelerator
        self.model, self.optimizer = model, optimizer
        self.metrics = {}

    def forward(self, completions, labels):
        logps = self.model(completions).squeeze(-1).sigmoid().log()
        chosen_logps = logps[labels == 1]
        rejected_logps = logps[labels == 0]
        # lists can't be empty -- if they are, then accelerate.gather will hang
        if len(chosen_logps) == 0:
            chosen_logps = torch.full((1,), torch.nan)
        return chosen_logps, rejected_logps

    def get_batch_loss_metrics(self, batch):
        chosen_logps, rejected_logps = self.forward(*batch)
        loss = rejected_logps.sum() - torch.nansum(chosen_logps)
        chosen = self.accelerator.gather(chosen_logps.detach())
        self.metrics["logps/chosen"] = chosen.nanmean().item()
        return loss

    def train(self, dataloader):
        for step, batch in enumerate(dataloader):
            loss = self.get_batch_loss_metrics(batch)
            self.accelerator.backward(loss)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.accelerator.print(step, self.metrics)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    torch.manual_seed(9)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    dataset = TensorDataset(torch.randn(32, 8), torch.randint(2, (32,)))
    dataloader = DataLoader(dataset, batch_size=4)
    KTOTrainer(accelerator, *accelerator.prepare(model, optimizer)).train(
        accelerator.prepare(dataloader)
    )
    accelerator.end_training()


if __name__ == "__main__":
    main()
