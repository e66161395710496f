"""Every few steps the main process asks for the whole state of a model that FSDP has sharded.

source: https://github.com/ibrahimethemhamamci/CT-CLIP/issues/16
bug: RS402
ranks: 2
expect: RS402
line: state_dict = self.accelerator.get_state_dict(self.CTClip, unwrap=False)
decidable: yes
shows: error Received data size doesn't match expected size
"""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.nn.functional as F
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


class CTCLIP(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.visual_transformer = FSDP(nn.Linear(32, dim), device_id=torch.device("cpu"))
        self.text_transformer = FSDP(nn.Linear(12, dim), device_id=torch.device("cpu"))

    def forward(self, text, image):
        text, image = self.text_transformer(text), self.visual_transformer(image)
        return F.cross_entropy(text @ image.T, torch.arange(text.shape[0]))


class CTClipTrainer:
    def __init__(self, num_train_steps, save_model_every, results_folder):
        limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
        self.accelerator = Accelerator(
            cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)]
        )
        torch.manual_seed(0)
        self.CTClip = FSDP(CTCLIP(), device_id=torch.device("cpu"))
        self.optim = torch.optim.AdamW(self.CTClip.parameters(), lr=1e-4)
        self.num_train_steps, self.save_model_every = num_train_steps, save_model_every
        self.results_folder = Path(results_folder)
        self.steps = 0

    @property
    def is_main(self):
        return self.accelerator.is_main_process

    def train_step(self):
        loss = self.CTClip(torch.randn(4, 12), torch.randn(4, 32))
        self.accelerator.backward(loss)
        self.optim.step()
        self.optim.zero_grad()
        if self.is_main and not (self.steps % self.save_model_every):
            state_dict = self.accelerator.get_state_dict(self.CTClip, unwrap=False)
            self.accelerator.save(state_dict, self.results_folder / f"CTClip.{self.steps}.pt")
            print(f"{self.steps}: saving model", flush=True)
        self.steps += 1

    def train(self):
        while self.steps < self.num_train_steps:
            self.train_step()
        self.accelerator.print("training complete")


if __name__ == "__main__":
    trainer = CTClipTrainer(4, save_model_every=2, results_folder=tempfile.mkdtemp())
    trainer.train()
    trainer.accelerator.end_training()
