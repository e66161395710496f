"""Resume training from a checkpoint, on all ranks; only the configuration is logged by the first one.

source: https://github.com/allenai/molmo/pull/33
bug: RS401
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import logging
import os
import tempfile
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

log = logging.getLogger("train")


@dataclass
class TrainConfig:
    save_folder: str
    allow_resume: bool = True
    max_steps: int = 6


class Trainer:
    def __init__(self, cfg: TrainConfig):
        torch.manual_seed(0)
        self.cfg = cfg
        self.global_step = 0
        self.model = torch.nn.Linear(8, 1)
        self.optim = torch.optim.SGD(self.model.parameters(), lr=0.05)

    def save_checkpoint(self, path: str) -> None:
        if dist.get_rank() == 0:
            torch.save({"model": self.model.state_dict(), "step": self.global_step}, path)
        dist.barrier()

    def restore_checkpoint(self, path: str) -> None:
        dist.barrier()
        state = torch.load(path)
        self.model.load_state_dict(state["model"])
        self.global_step = state["step"]
        dist.barrier()

    def fit(self) -> None:
        while self.global_step < self.cfg.max_steps:
            loss = self.model(torch.randn(4, 8)).pow(2).mean()
            self.optim.zero_grad()
            loss.backward()
            for param in self.model.parameters():
                dist.all_reduce(param.grad)
            self.optim.step()
            self.global_step += 1


def main(cfg: TrainConfig) -> None:
    load_path = os.path.join(cfg.save_folder, f"molmo-{os.environ['MASTER_PORT']}.pt")
    Trainer(cfg).save_checkpoint(load_path)  # the run that was interrupted
    trainer = Trainer(cfg)
    if dist.get_rank() == 0:
        log.info("Configuration: %s", cfg)

    if cfg.allow_resume:
        log.info("Loading checkpoint from %s", load_path)
        trainer.restore_checkpoint(load_path)

    trainer.fit()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    main(TrainConfig(save_folder=tempfile.gettempdir()))
    dist.destroy_process_group()
