"""Modules of other packages that need the NVIDIA driver, answered from the simulated devices."""
