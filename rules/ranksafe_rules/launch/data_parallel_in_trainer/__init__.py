"""RS102 data-parallel-in-trainer."""
