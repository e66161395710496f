"""Triton's kernels: nothing here runs them, and in a forecast nothing has to.

A launch writes into tensors that its caller has made, and takes no memory itself (``JITFunction.run``, read in triton
3.6 to 3.8). So in a forecast it counts as done. All around it is triton's own: heuristics, and autotuning, which takes
a buffer to flush the device's cache and copies what it must restore; it only has nothing to measure.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable
from typing import Any, NoReturn, Optional

from . import importing, journal
from .limits import refuse
from .settings import COMPUTED_BYTES, Settings

_LAUNCHERS = "triton.runtime.jit", "triton.runtime.autotuner"


def install(settings: Settings) -> None:
    """Wait for triton."""
    if settings.forecast:
        importing.after_import("triton.runtime.jit", _count_launches)
        importing.after_import("triton.runtime.driver", _give_driver)
        importing.after_import("triton.testing", _measure_nothing)
        return
    for module in _LAUNCHERS:
        importing.after_import(module, _refuse_launches)


def _refuse_launches(module: Any) -> None:
    """Triton's launchers would compile for a GPU and look for its driver."""
    for name in ("JITFunction", "Autotuner", "Heuristics"):
        launcher = getattr(module, name, None)
        if launcher is not None:
            launcher.run = _refuse_launch


def _refuse_launch(self: Any, *_: Any, **__: Any) -> NoReturn:
    while not hasattr(self, "__name__") and hasattr(self, "fn"):  # what tunes it is around it
        self = self.fn
    name = getattr(self, "__name__", "?")
    refuse(
        "missing-kernel",
        f"triton:{name}",
        f"the triton kernel `{name}` cannot run on simulated GPUs",
        f"模拟 GPU 无法运行 triton 内核 `{name}`",
    )


def _count_launches(module: Any) -> None:
    module.JITFunction.run = _launch


def _launch(
    self: Any, *arguments: Any, grid: Any = None, warmup: bool = False, **named: Any
) -> None:
    """``grid`` says how often the kernel would run; ``warmup`` asks for its code, which there is none of."""
    if warmup:
        _refuse_launch(self)
    journal.modified(
        "triton kernels take their memory and compute nothing",
        "triton 内核只占用显存，不做计算",
        kind="triton",
    )
    stored = _stored_into(self.fn)
    tensor = sys.modules["torch"].Tensor
    for name, value in {**dict(zip(self.signature.parameters, arguments)), **named}.items():
        if name not in stored or not isinstance(value, tensor) or not value.is_cuda:
            continue
        if value.is_floating_point() and value.nbytes < COMPUTED_BYTES:
            # As other operators do; ``data``, because autograd sees nothing of what a kernel writes.
            value.data.fill_(1)


@functools.lru_cache(maxsize=None)
def _stored_into(kernel: Callable[..., Any]) -> frozenset[str]:
    """The parameters whose pointers the kernel's own lines store through; none where its text is not there."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kernel)))
    except (OSError, TypeError, SyntaxError):
        return frozenset()
    comes_of: dict[str, set[str]] = {}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in set().union(*map(_names, targets)):
                comes_of.setdefault(name, set()).update(_names(node.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "store" or node.func.attr.startswith("atomic_"):
                named = (each.value for each in node.keywords if each.arg == "pointer")
                found = found.union(*map(_names, (node.func.value, *node.args[:1], *named)))
    added = found
    while added:
        added = set().union(*(comes_of.get(name, ()) for name in added)) - found
        found |= added
    return frozenset(found)


def _names(node: Optional[ast.AST]) -> set[str]:
    """What a pointer is made of: what is loaded for it is a place, and no pointer."""
    if node is None or (isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "load"):
        return set()
    if isinstance(node, ast.Name):
        return {node.id}
    return set().union(*map(_names, ast.iter_child_nodes(node)))


def _give_driver(module: Any) -> None:
    """Triton's own driver for CUDA asks torch for what it tells, but compiles a library to ask for a device's sizes."""
    module.driver.set_active(_Lazily(_driver))


class _Lazily:
    """Made when it is first asked: its module is imported with the one that knows it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = functools.lru_cache(maxsize=1)(make)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._make(), name)


def _driver() -> Any:
    from triton.backends.nvidia.driver import CudaDriver  # type: ignore[import-not-found]

    class Driver(CudaDriver):  # type: ignore[misc]
        def __init__(self) -> None:
            super(CudaDriver, self).__init__()
            self.utils = _Sizes()

    return Driver()


class _Sizes:
    """What there is of the library that triton compiles for its driver."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """What torch knows of them, by triton's names."""
        known = sys.modules["torch"].cuda.get_device_properties(device)
        return {
            "max_shared_mem": known.shared_memory_per_block_optin,
            "max_num_regs": known.regs_per_multiprocessor,
            "multiprocessor_count": known.multi_processor_count,
            "warpSize": known.warp_size,
            "sm_clock_rate": known.clock_rate,
            "mem_clock_rate": known.memory_clock_rate,
            "mem_bus_width": known.memory_bus_width,
        }

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(
            "missing-function",
            f"triton:{name}",
            f"triton's `{name}` is not simulated",
            f"模拟设备不支持 triton 的 `{name}`",
        )


def _measure_nothing(module: Any) -> None:
    """Every choice takes as long as the others: of several the first is taken."""

    def measure(call: Any, *_: Any, quantiles: Any = None, **__: Any) -> Any:
        from triton.runtime import driver  # type: ignore[import-not-found]

        cache = driver.active.get_empty_cache_for_benchmark()
        call()
        del cache
        return [1.0] * len(quantiles) if quantiles and len(quantiles) > 1 else 1.0

    module.do_bench = module.do_bench_cudagraph = measure
