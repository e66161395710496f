"""CUDA graphs cannot be simulated: replaying one runs kernels without the Python code that chose them."""

from __future__ import annotations

from typing import Any, NoReturn

from ..limits import refuse


def _refuse() -> NoReturn:
    refuse(
        "cuda-graph",
        "torch.cuda.CUDAGraph",
        "CUDA graphs cannot be captured on simulated GPUs",
        "模拟 GPU 无法捕获 CUDA 图（CUDA graph）",
    )


class _CUDAGraph:
    """``torch._C._CUDAGraph``: can be made, so that a program may prepare one, and refuses to capture."""

    def __new__(cls, keep_graph: bool = False) -> Any:
        """An empty graph."""
        return super().__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None:
        """The arguments say how to keep what is never captured."""

    def capture_begin(self, *_: Any, **__: Any) -> None:
        """Raises SimulationLimit."""
        _refuse()

    def register_generator_state(self, generator: Any) -> None:
        """Nothing to do for a graph that is never captured."""

    capture_end = instantiate = replay = debug_dump = pool = capture_begin
    raw_cuda_graph = raw_cuda_graph_exec = capture_begin

    def reset(self) -> None:
        """Nothing was captured."""

    def enable_debug_mode(self) -> None:
        """Nothing was captured."""


_handles = iter(range(1, 1 << 62))


def bindings() -> dict[str, Any]:
    """Names for ``torch._C``."""
    return {
        "_CUDAGraph": _CUDAGraph,
        "_graph_pool_handle": lambda: (next(_handles), 0),
    }
