from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(3 * 224 * 224, 10))

    def forward(self, images):
        return self.layers(images)

    def set_step(self, step):
        self.step = step
