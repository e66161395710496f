"""What nn.DataParallel promises holds in the emulation: numbers, gradients, buffers, shapes.

runs-on: emulated-dp
ranks: 3
expect: success
"""

import copy
import warnings

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.calls = 0

    def forward(self, x: torch.Tensor, scale: object = 1.0) -> dict[str, torch.Tensor]:
        self.calls += 1
        hidden = self.norm(self.inner(x)) * scale
        return {"hidden": hidden, "mean": hidden.mean()}


def main() -> None:
    torch.manual_seed(0)
    plain = Net()
    parallel = nn.DataParallel(copy.deepcopy(plain))
    x = torch.randn(8, 4)
    assert torch.cuda.device_count() == 3
    assert parallel.device_ids == [0, 1, 2]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        output = parallel(x)
    assert output["hidden"].shape == (8, 6)
    assert output["mean"].shape == (3,)
    assert any("all input tensors were scalars" in str(item.message) for item in caught)

    # Chunks of 3, 3 and 2 rows; only the first replica's statistics reach the module, as on GPUs.
    plain(x[:3])
    assert torch.allclose(plain.norm.running_mean, parallel.module.norm.running_mean)
    assert parallel.module.calls == 0

    plain.eval()
    parallel.eval()
    plain(x)["hidden"].pow(2).sum().backward()
    parallel(x)["hidden"].pow(2).sum().backward()
    for one, other in zip(plain.parameters(), parallel.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, atol=1e-5)

    # A gradient reaches an input through scatter and gather too.
    leaf = x.clone().requires_grad_()
    parallel(leaf)["hidden"].sum().backward()
    assert leaf.grad.shape == x.shape

    with torch.no_grad():
        assert parallel(x)["hidden"].shape == (8, 6)
    # zip stops at the shortest: a tensor of length 1 leaves one replica, and two thirds of the rows are gone.
    assert parallel(x, torch.ones(1))["hidden"].shape == (3, 6)
    assert parallel(x, 2.0)["hidden"].shape == (8, 6)
    assert parallel(x.to("cuda"), scale=torch.ones(8, 1).cuda())["hidden"].shape == (8, 6)


if __name__ == "__main__":
    main()
