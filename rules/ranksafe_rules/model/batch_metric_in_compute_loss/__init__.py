"""RS506 batch-metric-in-compute-loss."""
