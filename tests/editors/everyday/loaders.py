from torch.utils.data import DataLoader, DistributedSampler


def training_loader(dataset):
    sampler = DistributedSampler(dataset)
    return DataLoader(dataset, batch_size=8, sampler=sampler)


def shuffled_loader(dataset):
    sampler = DistributedSampler(dataset, shuffle=False)
    return DataLoader(dataset, batch_size=8, shuffle=True, sampler=sampler)
