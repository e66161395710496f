import torch


def resume(model, path):
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["model"])


def save(model, path):
    torch.save({"model": model.state_dict()}, path)
