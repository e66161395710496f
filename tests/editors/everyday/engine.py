from torch.nn.functional import cross_entropy


def train_one_epoch(model, loader, optimizer, step):
    model.train()
    model.set_step(step)
    for images, labels in loader:
        loss = cross_entropy(model.module(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
