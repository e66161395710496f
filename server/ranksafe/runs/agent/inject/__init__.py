"""On PYTHONPATH of a run; not imported under this name in the user's processes."""
