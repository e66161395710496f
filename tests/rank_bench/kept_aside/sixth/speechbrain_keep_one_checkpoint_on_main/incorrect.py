"""Saves and deletes checkpoints on the main process, where the deletion waits for all.

source: https://github.com/speechbrain/speechbrain/pull/2268
bug: RS401
ranks: 2
expect: RS401
line: self.checkpointer.save_and_keep_only(meta={"epoch": epoch, "loss": stage_loss})
decidable: yes
shows: hang
"""

import os
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def if_main_process():
    return int(os.environ.get("RANK", "0")) == 0


def ddp_barrier():
    if dist.is_initialized():
        dist.barrier()


class Checkpointer:
    def __init__(self, checkpoints_dir, recoverables):
        self.checkpoints_dir = Path(checkpoints_dir)
        self.recoverables = recoverables
        self.kept = []

    def save_checkpoint(self, meta):
        path = self.checkpoints_dir / f"CKPT+{meta['epoch']:02d}"
        if if_main_process():
            path.mkdir()
            for name, part in self.recoverables.items():
                torch.save(part.state_dict(), path / f"{name}.ckpt")
        self.kept.append((meta["loss"], path))

    def delete_checkpoints(self, num_to_keep=1):
        """No process may write while another deletes."""
        self.kept.sort()
        dropped, self.kept = self.kept[num_to_keep:], self.kept[:num_to_keep]
        ddp_barrier()
        if if_main_process():
            for _, path in dropped:
                shutil.rmtree(path)
        ddp_barrier()

    def save_and_keep_only(self, meta):
        self.save_checkpoint(meta)
        self.delete_checkpoints()


class Brain:
    def __init__(self, modules, checkpoints_dir):
        self.modules = DistributedDataParallel(modules)
        self.optimizer = torch.optim.SGD(self.modules.parameters(), lr=0.1)
        self.checkpointer = Checkpointer(
            checkpoints_dir, {"model": modules, "optimizer": self.optimizer}
        )

    def fit_batch(self, feats, targets):
        loss = nn.functional.mse_loss(self.modules(feats), targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def on_stage_end(self, stage_loss, epoch):
        if if_main_process():
            print(f"epoch {epoch}: loss {stage_loss:.3f}", flush=True)
            self.checkpointer.save_and_keep_only(meta={"epoch": epoch, "loss": stage_loss})

    def fit(self, epochs, batches):
        for epoch in range(epochs):
            losses = [self.fit_batch(feats, targets) for feats, targets in batches]
            self.on_stage_end(torch.stack(losses).mean().item(), epoch)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(dist.get_rank())
    batches = [(torch.randn(8, 5), torch.randn(8, 2)) for _ in range(3)]
    with tempfile.TemporaryDirectory() as name:
        Brain(nn.Linear(5, 2), name).fit(3, batches)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
