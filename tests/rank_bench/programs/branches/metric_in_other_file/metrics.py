"""A metric whose state lives on all ranks."""

import torch
import torch.distributed as dist


class DistributedAccuracy:
    """The share of correct predictions over all ranks."""

    def __init__(self) -> None:
        self.correct = torch.zeros(1)
        self.total = torch.zeros(1)

    def reset(self) -> None:
        """Forget all predictions."""
        self.correct.zero_()
        self.total.zero_()

    def update(self, predictions: torch.Tensor, labels: torch.Tensor) -> None:
        """Count a batch of this rank."""
        self.correct += (predictions == labels).sum()
        self.total += labels.numel()

    def compute(self) -> float:
        """The accuracy over the batches of all ranks."""
        state = torch.cat([self.correct, self.total])
        gathered = [torch.empty_like(state) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, state)
        correct, total = torch.stack(gathered).sum(dim=0)
        return (correct / total).item()
