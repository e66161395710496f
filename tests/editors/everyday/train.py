"""A training whose parts stand in other files, with the mistakes that people make most."""

import torch
import torch.distributed as dist
from engine import train_one_epoch
from evaluation import accuracy
from files import resume, save
from loaders import training_loader
from model import Classifier
from options import options
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision.datasets import FakeData


def main():
    arguments = options()
    dist.init_process_group("nccl")
    model = DistributedDataParallel(Classifier().cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    resume(model, arguments.output)
    loader = training_loader(FakeData())
    evaluated = FakeData(100)
    evaluation_loader = DataLoader(evaluated, sampler=DistributedSampler(evaluated, shuffle=False))
    for step in range(arguments.epochs):
        train_one_epoch(model, loader, optimizer, step)
        print(accuracy(model, evaluation_loader))
    save(model, arguments.output)


if __name__ == "__main__":
    main()
