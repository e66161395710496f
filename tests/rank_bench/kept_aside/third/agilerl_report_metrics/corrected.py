"""All processes report the metrics of a population, and the logger writes on the main one only.

source: https://github.com/AgileRL/AgileRL/pull/586
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class WandbLogger:
    def __init__(self, accelerator):
        self.accelerator = accelerator

    def write(self, metrics):
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            print({name: round(value, 3) for name, value in metrics.items()}, flush=True)
        self.accelerator.wait_for_everyone()


class Population:
    def __init__(self, agents, loggers):
        self.agents = agents
        self.loggers = loggers
        self.history = []

    def add(self, loss):
        self.history.append(loss.item())

    def report_metrics(self):
        mean = sum(self.history) / len(self.history)
        for logger in self.loggers:
            logger.write({"train/loss": mean, "train/agents": len(self.agents)})
        self.history.clear()


def finetune(accelerator, population, dataloader, optimizer, evo_steps=4):
    for step, (prompts, rewards) in enumerate(dataloader, start=1):
        for agent in population.agents:
            loss = (agent(prompts).squeeze(-1) - rewards).pow(2).mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            population.add(loss.detach())
        if step % evo_steps == 0:
            population.report_metrics()


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    torch.manual_seed(0)
    agent = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(agent.parameters(), lr=0.05)
    data = DataLoader(TensorDataset(torch.randn(64, 6), torch.randn(64)), batch_size=4)
    agent, optimizer, data = accelerator.prepare(agent, optimizer, data)
    population = Population([agent], [WandbLogger(accelerator)])
    finetune(accelerator, population, data, optimizer)
    accelerator.end_training()


if __name__ == "__main__":
    main()
