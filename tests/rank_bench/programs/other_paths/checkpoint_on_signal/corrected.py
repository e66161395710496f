"""The handler of the preemption signal sets a flag, on which all ranks agree at the end of the step.

source: https://github.com/kyutai-labs/pocket-tts/pull/277
bug: RS414
ranks: 2
expect: clean
shows: fine
"""

import os
import signal
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Preemption:
    """Writes a checkpoint when the scheduler announces the end of the allocation."""

    def __init__(self, model: nn.Module, path: str) -> None:
        self.model = model
        self.path = path
        self.stop = False
        signal.signal(signal.SIGUSR1, self.on_signal)

    def on_signal(self, signum: int, frame: object) -> None:
        self.stop = True

    def save(self) -> None:
        if dist.get_rank() == 0:
            torch.save(self.model.state_dict(), self.path)

    def agreed(self) -> bool:
        """Whether any rank was told to stop."""
        flag = torch.tensor([int(self.stop)])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))
    preemption = Preemption(model.module, os.path.join(tempfile.gettempdir(), "preempted.pt"))
    for step in range(10):
        loss = model(torch.randn(4, 8)).pow(2).mean()
        loss.backward()
        if step == 3 and dist.get_rank() == 0:
            os.kill(os.getpid(), signal.SIGUSR1)  # what the scheduler does, to one rank first
        if preemption.agreed():
            preemption.save()
            dist.barrier()
            break
    print(f"rank {dist.get_rank()}: stopped after step {step}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
