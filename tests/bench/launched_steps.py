"""A training loop of 200 small steps on the CPU with accelerate, again and again, in turns of 50 steps with another start
of the same script; writes the processor and wall seconds of each loop.

Knows nothing of ranksafe: `launch_cost.py` starts it, with and without. STEPS_NAME and STEPS_OTHER are the names of this
start and of the other, STEPS_FOLDER is where they take turns and where the figures go.
"""

import json
import os
import pathlib
import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LOOPS = 10
STEPS = 200
TURN = 50
BATCH = 64
FOLDER = pathlib.Path(os.environ["STEPS_FOLDER"])
NAME, OTHER = os.environ["STEPS_NAME"], os.environ["STEPS_OTHER"]


class Turns:
    """This start's turns; who comes second in one pair of turns comes first in the next."""

    def __init__(self, accelerator):
        self.accelerator = accelerator
        self.number = 0

    def begin(self):
        """Wait until it is this start's turn; the time at which that was."""
        is_first = (NAME < OTHER) == (self.number % 2 == 0)
        before = self.number - 1 if is_first else self.number
        if self.accelerator.is_main_process:
            while before >= 0 and not (FOLDER / f"{OTHER}.{before}").exists():
                time.sleep(0.002)
        self.accelerator.wait_for_everyone()
        return time.process_time(), time.perf_counter()

    def end(self, began):
        """Let the other start go on; the processor and wall seconds of the turn."""
        spent = time.process_time() - began[0], time.perf_counter() - began[1]
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            (FOLDER / f"{NAME}.{self.number}").touch()
        self.number += 1
        return spent


def main():
    accelerator = Accelerator()
    torch.manual_seed(0)
    samples = STEPS * BATCH * accelerator.num_processes
    inputs, labels = torch.randn(samples, 128), torch.randint(0, 8, (samples,))
    layers = [nn.Sequential(nn.Linear(128, 128), nn.ReLU()) for _ in range(4)]
    model = nn.Sequential(*layers, nn.Linear(128, 8))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=BATCH, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    loops, turns = [], Turns(accelerator)
    for _ in range(LOOPS):
        spent = []
        began = turns.begin()
        for step, (batch, label) in enumerate(loader):
            if step and step % TURN == 0:
                spent.append(turns.end(began))
                began = turns.begin()
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch), label)
            accelerator.backward(loss)
            optimizer.step()
        spent.append(turns.end(began))
        assert len(spent) == STEPS // TURN
        loops.append([sum(each) for each in zip(*spent, strict=True)])
    path = FOLDER / f"{NAME}.rank{accelerator.process_index}.json"
    path.write_text(json.dumps(loops))
    accelerator.end_training()


if __name__ == "__main__":
    main()
