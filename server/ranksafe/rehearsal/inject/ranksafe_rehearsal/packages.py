"""Packages with CUDA kernels of their own: they may be imported, but what they would run on a GPU is a limit."""

from __future__ import annotations

import ctypes
import functools
from types import ModuleType
from typing import Any, NoReturn

from . import importing
from .journal import modified
from .limits import note, refuse
from .settings import Settings

PACKAGES = (
    "apex", "auto_gptq", "autoawq", "awq", "bitsandbytes", "causal_conv1d", "cupy", "cuml", "exllamav2", "fbgemm_gpu",
    "flash_attn", "flash_attn_interface", "gptqmodel", "kernels", "liger_kernel", "mamba_ssm", "nvidia", "pycuda",
    "tensorrt", "torch_tensorrt", "transformer_engine", "triton", "unsloth", "vllm", "xformers",
)  # fmt: skip
"""Importable names."""
_COMPILED = {
    "flash_attn_2_cuda": "flash_attn",
    "flash_attn_3": "flash_attn",
    "amp_C": "apex",
    "apex_C": "apex",
    "fused_layer_norm_cuda": "apex",
    "causal_conv1d_cuda": "causal_conv1d",
    "selective_scan_cuda": "mamba_ssm",
    "awq_ext": "awq",
    "xformers._C": "xformers",
}
"""Extension modules, with the package that each belongs to."""
_OTHER_WORDS = {"flashattention": "flash_attn", "transformerengine": "transformer_engine"}
"""How error texts of libraries call some of them."""
_BITSANDBYTES_LIBRARY = "bitsandbytes.cextension"
_DEEPSPEED_BUILDER = "deepspeed.ops.op_builder.builder"


def install(settings: Settings) -> None:
    """Watch the packages' imports."""
    for name in (*PACKAGES, *_COMPILED):
        importing.on_import_error(name, functools.partial(_failed, _COMPILED.get(name, name)))
    replace = _shapes_of_bitsandbytes if settings.forecast else _refuse_bitsandbytes
    importing.after_import(_BITSANDBYTES_LIBRARY, replace)
    importing.after_import(_DEEPSPEED_BUILDER, _refuse_deepspeed)


def named_in(module: str | None, text: str) -> str | None:
    """The package that an ImportError is about: its module, or one that its text names."""
    top = (module or "").partition(".")[0]
    if top in PACKAGES:
        return top
    if module in _COMPILED:
        return _COMPILED[module]
    plain = text.replace("-", "_").lower()
    for word, package in _OTHER_WORDS.items():
        if word in plain:
            return package
    names = sorted(PACKAGES, key=len, reverse=True)
    return next((name for name in names if name != "kernels" and name in plain), None)


def note_missing(package: str) -> None:
    """Write into the journal that a package cannot be used."""
    note(
        "missing-package",
        package,
        f"the package `{package}` needs a real GPU, or is not installed here",
        f"软件包 `{package}` 需要真实的 GPU，或未在此安装",
    )


def _failed(package: str, error: ImportError) -> None:
    note_missing(package)


def refuse_package(package: str, function: str) -> NoReturn:
    """Raise the limit for a kernel of a package."""
    refuse(
        "missing-package",
        package,
        f"`{function}` of the package `{package}` runs only on a real GPU",
        f"软件包 `{package}` 的 `{function}` 只能在真实的 GPU 上运行",
    )


class _NoLibrary:
    """In place of a compiled library: every function refuses."""

    compiled_with_cuda = True

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.startswith("has_"):  # what the processor can do: asked while it is imported
            return lambda *_: False
        return functools.partial(self._refuse, name)

    def __getitem__(self, name: str) -> Any:
        return functools.partial(self._refuse, name)

    def _refuse(self, name: str, *_: Any, **__: Any) -> Any:
        refuse_package(self._package, name)


def _refuse_bitsandbytes(module: Any) -> None:
    """Its library for CUDA cannot be loaded; bitsandbytes 0.49 would tell the user to reinstall it."""
    module.lib = _NoLibrary("bitsandbytes")


class _WithoutValues(_NoLibrary):
    """In a forecast: every function of bitsandbytes writes into tensors that its caller has made (read in 0.50).

    One takes managed memory, which paged optimizers keep on the host.
    """

    def _refuse(self, name: str, *arguments: Any, **_: Any) -> Any:
        if name != "cget_managed_ptr":
            return 0
        take = ctypes.CDLL(None).calloc
        take.restype, take.argtypes = ctypes.c_void_p, [ctypes.c_size_t, ctypes.c_size_t]
        return int(take(arguments[0], 1))


def _shapes_of_bitsandbytes(module: Any) -> None:
    module.lib = _WithoutValues("bitsandbytes")
    modified(
        "bitsandbytes takes its memory and computes nothing",
        "bitsandbytes 只占用显存，不做计算",
    )


def _refuse_deepspeed(module: ModuleType) -> None:
    """Compiling an operator would look for a CUDA toolkit."""
    builder: Any = module.__dict__.get("CUDAOpBuilder")
    if builder is None:
        return

    def load(self: Any, verbose: bool = True) -> None:
        refuse_package("deepspeed", getattr(self, "name", type(self).__name__))

    builder.load = builder.jit_load = load
