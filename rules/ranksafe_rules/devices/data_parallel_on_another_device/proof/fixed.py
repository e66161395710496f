"""The model is on the first of the GPUs that DataParallel uses.

runs-on: cuda
ranks: 2
expect: output 4 outputs
"""

import torch
from torch import nn


def main() -> None:
    model = nn.Linear(3, 2).to("cuda:0")
    model = nn.DataParallel(model)
    outputs = model(torch.ones(4, 3, device="cuda:0"))
    print(f"{len(outputs)} outputs")


if __name__ == "__main__":
    main()
