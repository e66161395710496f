"""Puts everything that ``torch.cuda`` expects into ``torch._C``."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..limits import refuse_function

_NATIVE = (
    "_cuda_",
    "_nccl_",
    "_gds_",
    "_cudnn_",
    "_cusparselt",
    "_construct_CUDA_Tensor",
    "_StaticCudaLauncher",
    "_FastCudaLauncher",
)
"""How the names begin that, in a build with CUDA, would call into libraries of NVIDIA's that are not there."""


def install(torch_c: ModuleType) -> None:
    """Called right after ``torch._C`` was loaded, before ``torch.cuda`` is."""
    from . import current_device, graphs, memory, properties, runtime, streams

    has_cuda_build = hasattr(torch_c, "_cuda_getDeviceCount")
    table: dict[str, Any] = {}
    for part in (current_device, properties, streams, memory, graphs):
        table.update(part.bindings())
    table.update(runtime.bindings(has_cuda_build))
    if has_cuda_build:
        for name in dir(torch_c):
            if name.startswith(_NATIVE) and name not in table and name not in runtime.COMPILED_IN:
                table[name] = _refusing(name)
    for name, value in table.items():
        setattr(torch_c, name, value)
    current_device.require_initialization_after_fork()


def _refusing(name: str) -> Any:
    def function(*_: Any, **__: Any) -> None:
        refuse_function(f"torch._C.{name}")

    function.__name__ = name
    return function
