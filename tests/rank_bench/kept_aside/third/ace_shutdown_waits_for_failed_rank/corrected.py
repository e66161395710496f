"""A context shuts the process group down without a barrier, and not where the work failed.

source: https://github.com/ai2cm/ace/pull/1067
bug: RS410
ranks: 2
expect: clean
shows: fine
"""

import contextlib
import logging
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

logger = logging.getLogger("inference")


class ModelTorchDistributed:
    def __init__(self):
        limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
        dist.init_process_group("gloo", timeout=limit)
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()

    def shutdown(self):
        logger.info("shutting down rank %d", self.rank)
        dist.destroy_process_group()


@contextlib.contextmanager
def distributed_context():
    try:
        distributed = ModelTorchDistributed()
        yield distributed
        distributed.shutdown()
    except ValueError:
        # no shutdown: the others may not be there any more
        logger.exception("inference failed")


class Stepper(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 6)

    def predict(self, state, steps):
        for _ in range(steps):
            state = state + 0.1 * torch.tanh(self.net(state))
        if torch.isnan(state).any():
            raise ValueError("the forecast has become NaN")
        return state


def main():
    logging.basicConfig(level=logging.INFO)
    with distributed_context() as distributed:
        torch.manual_seed(0)
        stepper = Stepper()
        initial_conditions = torch.randn(8, 6)
        initial_conditions[5, 2] = float("nan")  # a broken file
        mine = initial_conditions[distributed.rank :: distributed.world_size]
        with torch.no_grad():
            for number, state in enumerate(mine):
                mean = stepper.predict(state, steps=20).mean().item()
                print(f"rank {distributed.rank}: forecast {number}, {mean:.3f}", flush=True)


if __name__ == "__main__":
    main()
