"""A training whose parts stand in other files, with the mistakes that people make most."""

import torch
import torch.distributed as dist
from engine import train_one_epoch
from files import resume, save
from loaders import training_loader
from model import Classifier
from options import options
from torch.nn.parallel import DistributedDataParallel
from torchvision.datasets import FakeData


def main():
    arguments = options()
    dist.init_process_group("nccl")
    model = DistributedDataParallel(Classifier().cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    resume(model, arguments.output)
    loader = training_loader(FakeData())
    for step in range(arguments.epochs):
        train_one_epoch(model, loader, optimizer, step)
    save(model, arguments.output)


if __name__ == "__main__":
    main()
