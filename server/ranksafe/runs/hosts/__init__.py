"""Machines that commands run on, one module per way to reach them, all behind one protocol."""
