"""RS101 implicit-data-parallel."""
