"""nn.DataParallel in one process on all devices."""

import torch
from torch import nn


def main() -> None:
    torch.manual_seed(0)
    model = nn.DataParallel(
        nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1)).cuda()
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for _ in range(3):
        inputs, targets = torch.randn(12, 8).cuda(), torch.randn(12, 1).cuda()
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"devices {len(model.device_ids)} finite {torch.isfinite(loss).item()}", flush=True)


if __name__ == "__main__":
    main()
