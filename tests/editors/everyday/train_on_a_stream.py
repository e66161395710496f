import os

import torch
import torch.distributed as dist
from model import Classifier
from streams import stream_loader
from torch.nn.parallel import DistributedDataParallel


def main(path="lines.txt"):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    model = DistributedDataParallel(Classifier().cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for lines in stream_loader(path):
        loss = model(lines).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
