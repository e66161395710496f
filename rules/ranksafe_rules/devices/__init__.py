"""Rules about which device a model or tensor is on."""
