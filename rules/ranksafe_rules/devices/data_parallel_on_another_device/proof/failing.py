"""The model is on the second GPU, and DataParallel wants it on the first.

runs-on: cuda
ranks: 2
expect: exception RuntimeError: module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found
    one of them on device: cuda:1
frame: outputs = model(torch.ones(4, 3, device="cuda:0"))
"""

import torch
from torch import nn


def main() -> None:
    model = nn.Linear(3, 2).to("cuda:1")
    model = nn.DataParallel(model)
    outputs = model(torch.ones(4, 3, device="cuda:0"))
    print(f"{len(outputs)} outputs")


if __name__ == "__main__":
    main()
