"""The devices' default generators, as Python objects."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from .. import journal
from ..state import devices

_INITIALIZE_DEFAULT = "_Z33THPGenerator_initDefaultGeneratorRKN2at9GeneratorE"
"""``THPGenerator_initDefaultGenerator`` of torch/csrc/Generator.h: a build with CUDA calls it for the same purpose."""


def default_generator(device: int) -> Any:
    """The generator that random kernels on ``device`` use when none is given.

    A Python object for an existing C++ generator can only be had from torch's C++ side.
    """
    torch: Any = sys.modules["torch"]
    function = getattr(ctypes.PyDLL(sys.modules["torch._C"].__file__), _INITIALIZE_DEFAULT, None)
    if function is None:
        journal.problem("default generator", LookupError(_INITIALIZE_DEFAULT))
        return torch._C.Generator(device=f"cuda:{device}")
    function.restype, function.argtypes = ctypes.py_object, [ctypes.c_void_p]
    return function(devices().library.default_generator(device))
