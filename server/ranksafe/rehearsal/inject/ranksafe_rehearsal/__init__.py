"""Simulated CUDA devices inside the user's processes. Standard library and torch only, CPython 3.9 or newer.

``activation`` prepares a process, ``cuda`` is what ``torch.cuda`` finds below it, and the other modules stand in for
what a machine with GPUs has beside them: the driver's tools, the compiler, packages with kernels.
"""
