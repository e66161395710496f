"""A checkpointer that collects the sharded optimizer state on all ranks and writes it on the first.

source: https://github.com/EleutherAI/bergson/pull/376
bug: RS402
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullOptimStateDictConfig, FullStateDictConfig, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


class Checkpointer:
    def __init__(self, directory: Path, every: int) -> None:
        self.rank = dist.get_rank()
        self.directory = directory
        self.every = every

    def maybe_save(self, model: FSDP, optimizer: torch.optim.Optimizer, step: int) -> None:
        if step == 0 or step % self.every:
            return
        self.save(model, optimizer, step)

    def save(self, model: FSDP, optimizer: torch.optim.Optimizer, step: int) -> None:
        FSDP.set_state_dict_type(
            model,
            StateDictType.FULL_STATE_DICT,
            FullStateDictConfig(rank0_only=True),
            FullOptimStateDictConfig(rank0_only=True),
        )
        state = FSDP.optim_state_dict(model, optimizer)
        if self.rank != 0:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        torch.save(state, self.directory / f"optimizer-{step}.pt")
        print(f"step {step}: {len(state['state'])} entries", flush=True)


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
    model = FSDP(network, device_id=torch.device("cpu"), use_orig_params=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    directory = Path(tempfile.gettempdir()) / f"optim-{os.environ['MASTER_PORT']}"
    checkpointer = Checkpointer(directory, every=2)
    for step in range(5):
        inputs = torch.randn(4, 8)
        loss = nn.functional.mse_loss(model(inputs), inputs)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        checkpointer.maybe_save(model, optimizer, step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
