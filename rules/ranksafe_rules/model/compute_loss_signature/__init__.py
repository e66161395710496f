"""RS504 compute-loss-signature."""
