"""Fine-tunes a pretrained image model from timm on CIFAR-10 with DataParallel."""

import timm
import torch
from timm.data import create_transform, resolve_model_data_config
from torch.utils.data import DataLoader
from torchvision.datasets import CIFAR10

model = timm.create_model("resnet18.a1_in1k", pretrained=True, num_classes=10)
transform = create_transform(**resolve_model_data_config(model), is_training=True)
loader = DataLoader(
    CIFAR10("data", train=True, download=True, transform=transform), batch_size=8, shuffle=True
)
model = torch.nn.DataParallel(model).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
criterion = torch.nn.CrossEntropyLoss()
for images, labels in loader:
    optimizer.zero_grad()
    loss = criterion(model(images.cuda()), labels.cuda())
    loss.backward()
    optimizer.step()
