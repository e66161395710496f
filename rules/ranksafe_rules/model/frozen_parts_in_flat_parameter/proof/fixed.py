"""With its original parameters kept, the model may be frozen in part.

runs-on: cpu-ranks
ranks: 2
expect: output 2 parameters are trained
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(self.backbone(inputs))


def main() -> None:
    dist.init_process_group("gloo")
    model = Classifier()
    model.backbone.requires_grad_(False)
    model = FullyShardedDataParallel(
        model, device_id=torch.device("cpu"), use_orig_params=True
    )
    model(torch.ones(3, 4)).sum().backward()
    trained = [name for name, each in model.named_parameters() if each.requires_grad]
    print(f"{len(trained)} parameters are trained")
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
