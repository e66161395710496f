"""Puts the compiled process group where torch, and libraries that look for it, expect ``ProcessGroupNCCL``."""

from __future__ import annotations

import ctypes
import sys
import zlib
from collections.abc import Sequence
from datetime import timedelta
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from ..cuda.runtime import NCCL_VERSION
from ..limits import refuse
from ..settings import Settings

_DEFAULT_TIMEOUT = timedelta(minutes=10)
"""``torch.distributed.constants.default_pg_nccl_timeout`` of a CUDA build (torch 2.2 and newer)."""
_SPLIT_NO_COLOR = -1
"""NCCL_SPLIT_NOCOLOR."""
_BLOCK_POLICIES = ("DEFAULT", "EFFICIENCY", "ZERO")
"""NCCL_CTA_POLICY_*, numbered from 0 (nccl.h 2.28)."""

_module: Any = None
groups = [0]
"""How many process groups this process has made."""


def install(settings: Settings) -> None:
    """Make ``nccl`` available in ``torch.distributed``. Raises SimulationLimit where the backend cannot be loaded."""
    global _module
    import torch.distributed as distributed

    if not distributed.is_available():
        return
    from torch.distributed import constants, distributed_c10d

    _module = _load(settings)
    _module.set_version_text(".".join(map(str, NCCL_VERSION)))
    group = _complete(_module)
    compiled: Any = sys.modules["torch._C._distributed_c10d"]
    for place in (compiled, distributed_c10d, distributed):
        place.ProcessGroupNCCL = group
    for place in (constants, distributed_c10d):
        if hasattr(place, "default_pg_nccl_timeout"):
            place.default_pg_nccl_timeout = _DEFAULT_TIMEOUT
    distributed_c10d._NCCL_AVAILABLE = True
    if hasattr(distributed_c10d, "_register_builtin_nccl_as_legacy"):
        # torch 2.15: in a CUDA build "nccl" means ProcessGroupNCCL2 unless somebody asks for the former class.
        distributed_c10d._register_builtin_nccl_as_legacy()
    if "ProcessGroupNCCL" not in distributed_c10d.__all__:
        distributed_c10d.__all__.append("ProcessGroupNCCL")
    _name_flight_recorder(compiled)
    compiled._hash_tensors = _hash_tensors


def one_for_all(rank: int, size: int) -> Any:
    """A group of this process alone, that stands for all."""
    return _module.OneForAll(rank, size)


def carrier(store: Any, rank: int, size: int) -> Any:
    """A group that is not nccl's to the program: no memory of a device, and ranks may share one."""
    nccl, made = _module.ProcessGroupNCCL, groups[0]
    carries = nccl(store, rank, size, nccl.Options())
    groups[0] = made
    if not made:
        # Where nccl is used, too, it has the say on shared devices.
        _module.set_place(-1 - rank, [])
    return carries


def _load(settings: Settings) -> ModuleType:
    path = settings.native.nccl_module
    name = "_ranksafe_nccl"
    spec = spec_from_file_location(name, path, loader=ExtensionFileLoader(name, path))
    try:
        if spec is None or spec.loader is None:
            raise ImportError(f"no loader for {path}")
        loaded = module_from_spec(spec)
        spec.loader.exec_module(loaded)
    except ImportError as error:
        refuse(
            "activation",
            path,
            f"the simulated nccl backend cannot be loaded: {error}",
            f"无法加载模拟的 nccl 后端：{error}",
        )
    sys.modules[name] = loaded
    return loaded


def _complete(loaded: Any) -> Any:
    """Give the class what torch's binding has besides methods."""
    group = loaded.ProcessGroupNCCL
    group.Options = loaded.Options
    group.NCCLConfig = loaded.NCCLConfig
    group.NCCL_SPLIT_NOCOLOR = _SPLIT_NO_COLOR
    for number, policy in enumerate(_BLOCK_POLICIES):
        setattr(group, f"NCCL_CTA_POLICY_{policy}", number)
    group.get_build_nccl_version = staticmethod(lambda: NCCL_VERSION)
    group.get_runtime_nccl_version = staticmethod(lambda: NCCL_VERSION)
    group.__module__ = "torch.distributed.distributed_c10d"
    construct = group.__init__

    def initialise(self: Any, *arguments: Any, **keywords: Any) -> None:
        _tell_place()
        construct(self, *arguments, **keywords)
        groups[0] += 1

    group.__init__ = initialise
    return group


def _tell_place() -> None:
    """Two ranks are on one device only if node and number are equal; CUDA_VISIBLE_DEVICES renumbers for each rank."""
    from .. import state

    devices = state.devices()
    devices.settle()
    _module.set_place(devices.settings.node, list(devices.physical))


def _name_flight_recorder(compiled: Any) -> None:
    """CUDA builds read the flight recorder under another name."""
    for ours, torchs in (
        ("_dump_nccl_trace", "_dump_fr_trace"),
        ("_dump_nccl_trace_json", "_dump_fr_trace_json"),
    ):
        if hasattr(compiled, torchs):
            setattr(compiled, ours, getattr(compiled, torchs))


def _hash_tensors(tensors: Sequence[Any]) -> int:
    """One number for the contents of tensors, as torch's own logging of object collectives wants it under
    TORCH_DISTRIBUTED_DEBUG=DETAIL (torch 2.8 and newer; only builds with NCCL have the function)."""
    value = 0
    for tensor in tensors:
        content = tensor.detach().cpu().contiguous()
        size = content.numel() * content.element_size()
        value = zlib.crc32(ctypes.string_at(content.data_ptr(), size), value)
    return value
