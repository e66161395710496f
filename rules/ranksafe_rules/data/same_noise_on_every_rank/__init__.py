"""RS317 same-noise-on-every-rank."""
