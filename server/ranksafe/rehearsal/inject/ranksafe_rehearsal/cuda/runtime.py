"""The CUDA runtime, cuDNN, NVTX and the libraries' settings, as far as Python code asks for them."""

from __future__ import annotations

import enum
from types import ModuleType
from typing import Any

from ..limits import refuse_function
from ..state import devices
from .memory import memory_info

CUDA_VERSION = "12.8"
"""What a CPU build says: a version for which torch's wheels have kernels for every device model."""
CUDNN_VERSION = (9, 10, 2)
"""torch 2.13 refuses devices below capability 7.5 from 9.11 on (``torch.backends.cudnn._init``)."""
NCCL_VERSION = (2, 28, 9)
COMPILED_IN = ("_cuda_getCompiledVersion", "_cuda_getArchFlags")
"""Functions of a build with CUDA that say what it was compiled for, and ask no driver."""
ARCHITECTURES = "sm_70 sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120"


cudaError = enum.IntEnum("cudaError", {"success": 0})  # noqa: N816 - the name is CUDA's
"""Codes that ``torch.cuda`` compares with."""


def _success(*_: Any) -> int:
    return cudaError.success


def cudart() -> ModuleType:
    """``torch._C._cudart``."""
    module = ModuleType("torch._C._cudart")
    module.__dict__.update(
        cudaError=cudaError,
        cudaOutputMode=enum.IntEnum("cudaOutputMode", {"KeyValuePair": 0, "CSV": 1}),
        cudaGetErrorString=lambda error: "no error" if int(error) == 0 else "unknown error",
        cudaMemGetInfo=memory_info,
        cudaProfilerStart=_success,
        cudaProfilerStop=_success,
        cudaProfilerInitialize=_success,
        cudaHostRegister=_success,
        cudaHostUnregister=_success,
        cudaStreamCreate=_success,
        cudaStreamDestroy=_success,
    )
    return module


def cudnn() -> ModuleType:
    """``torch._C._cudnn``."""
    major, minor, patch = CUDNN_VERSION
    module = ModuleType("torch._C._cudnn")
    module.__dict__.update(
        is_cuda=True,
        getRuntimeVersion=lambda: CUDNN_VERSION,
        getCompileVersion=lambda: CUDNN_VERSION,
        getVersionInt=lambda: major * 10000 + minor * 100 + patch,
        BatchNormSpatialPersistent=1,
    )
    module.__dict__["RNNMode"] = enum.IntEnum(
        "RNNMode", {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}
    )
    return module


def nvtx() -> ModuleType:
    """``torch._C._nvtx``: marks that no profiler reads."""
    depth = [0]

    def push(message: str) -> int:
        depth[0] += 1
        return depth[0] - 1

    def pop() -> int:
        depth[0] -= 1
        return depth[0]

    module = ModuleType("torch._C._nvtx")
    module.__dict__.update(
        rangePushA=push,
        rangePop=pop,
        rangeStartA=lambda message: 0,
        rangeEnd=lambda handle: None,
        markA=lambda message: None,
        deviceRangeStart=lambda message, stream: None,
        deviceRangeEnd=lambda handle, stream: None,
    )
    return module


class _Settings:
    """Values that a program may set and read back, and that change nothing here."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def pair(self, name: str, default: Any) -> tuple[Any, Any]:
        """A function that reads the value, and one that sets it."""

        def read(*_: Any) -> Any:
            return self.values.get(name, default)

        def write(value: Any, *_: Any) -> None:
            self.values[name] = value

        return read, write


def _tunable() -> dict[str, Any]:
    settings = _Settings()
    prefix = "_cuda_tunableop_"
    table: dict[str, Any] = {}
    for name, default in (
        ("max_tuning_duration", 30),
        ("max_tuning_iterations", 100),
        ("filename", "tunableop_results.csv"),
        ("rotating_buffer_size", 0),
    ):
        table[f"{prefix}get_{name}"], table[f"{prefix}set_{name}"] = settings.pair(name, default)
    for name, reader in (("enable", "is_enabled"), ("tuning_enable", "tuning_is_enabled")):
        table[prefix + reader], table[prefix + name] = settings.pair(name, False)
    read, write = settings.pair("record_untuned", False)
    table["_cuda_record_untuned_is_enabled"], table["_cuda_record_untuned_enable"] = read, write
    table[f"{prefix}get_results"] = table[f"{prefix}get_validators"] = lambda: ()
    table[f"{prefix}read_file"] = lambda *_: True
    table[f"{prefix}set_numerical_check_tolerances"] = lambda *_: None
    return table


def _jiterator(*_: Any, **__: Any) -> None:
    refuse_function("torch.cuda.jiterator")


def bindings(has_cuda_build: bool) -> dict[str, Any]:
    """Names for ``torch._C``; a build with CUDA keeps what it was compiled for."""
    settings = _Settings()
    table = _tunable()
    for getter, setter, default in (
        ("_cuda_get_sync_debug_mode", "_cuda_set_sync_debug_mode", 0),
        ("_cuda_get_cudnn_benchmark_limit", "_cuda_set_cudnn_benchmark_limit", 10),
        ("_cuda_getCublasWorkspaceSize", "_cuda_setCublasWorkspaceSize", 0),
        ("_cuda_getCublasLtWorkspaceSize", "_cuda_setCublasLtWorkspaceSize", 0),
    ):
        table[getter], table[setter] = settings.pair(getter, default)
    major, minor, patch = NCCL_VERSION
    table.update(
        _cudart=cudart(),
        _cudnn=cudnn(),
        _nvtx=nvtx(),
        _has_cuda=True,
        has_cuda=True,
        _has_cudnn=True,
        has_cudnn=True,
        _cuda_getCurrentBlasHandle=lambda: 0,
        _cuda_getCurrentSolverHandle=lambda: 0,
        _cuda_clearCublasWorkspaces=lambda: devices().library.clear_workspaces(),
        _cuda_resetCublasWorkspaceSize=lambda: None,
        _cuda_resetCublasLtWorkspaceSize=lambda: None,
        _cuda_get_conv_benchmark_empty_cache=lambda: False,
        _cuda_jiterator_compile_and_launch_kernel=_jiterator,
        _nccl_version=lambda: major << 32 | minor << 16 | patch,
        _nccl_version_suffix=lambda: b"",
    )
    if not has_cuda_build:
        table["_cuda_getCompiledVersion"] = lambda: 12080
        table["_cuda_getArchFlags"] = lambda: ARCHITECTURES
    return table


def install_plan_cache(torch: Any) -> None:
    """The cache of cuFFT's plans, which is always empty; its largest size can be set and read back."""
    largest: dict[int, int] = {}

    def get_max_size(device: int) -> int:
        return largest.get(int(device), 4096)

    def set_max_size(device: int, size: int) -> None:
        largest[int(device)] = size

    torch._cufft_get_plan_cache_size = lambda device: 0
    torch._cufft_get_plan_cache_max_size = get_max_size
    torch._cufft_set_plan_cache_max_size = set_max_size
    torch._cufft_clear_plan_cache = lambda device: None
