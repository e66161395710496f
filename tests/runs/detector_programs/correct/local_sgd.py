"""accelerate's LocalSGD: the ranks' weights differ on purpose between two averagings."""

import torch
from accelerate import Accelerator
from accelerate.local_sgd import LocalSGD
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator()
data = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=4))
with LocalSGD(accelerator=accelerator, model=model, local_sgd_steps=4) as local:
    for inputs, labels in loader:
        optimizer.zero_grad()
        accelerator.backward(nn.functional.cross_entropy(model(inputs), labels))
        optimizer.step()
        local.step()
accelerator.end_training()
