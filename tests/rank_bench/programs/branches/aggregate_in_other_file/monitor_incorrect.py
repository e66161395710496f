"""Health metrics of the layers of a pipeline, gathered from all stages."""

import torch
import torch.distributed as dist


class LayerMonitor:
    """Collects one number per layer of this stage."""

    def __init__(self, stage: int, num_stages: int) -> None:
        self.stage = stage
        self.num_stages = num_stages
        self.values: dict[str, float] = {}

    def observe(self, name: str, activation: torch.Tensor) -> None:
        """Remember the spread of a layer's output."""
        self.values[name] = activation.std().item()

    def local_metrics(self) -> dict[str, float]:
        """What this stage reports; the head of the last stage is not monitored."""
        return {} if self.stage == self.num_stages - 1 else dict(self.values)

    def gather_and_aggregate(self) -> dict[str, float]:
        """The metrics of all stages, the same on every rank."""
        if self.stage == self.num_stages - 1:
            return {}
        gathered: list[dict[str, float]] = [{} for _ in range(self.num_stages)]
        dist.all_gather_object(gathered, self.local_metrics())
        return {name: value for metrics in gathered for name, value in metrics.items()}
