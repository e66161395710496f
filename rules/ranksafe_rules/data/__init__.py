"""Rules about batches and how they are shared among devices."""
