"""RS103 data-parallel-training."""
