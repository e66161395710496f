"""Prepares a Python process of a rehearsal: nothing is loaded before the program really imports torch."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from . import importing, journal, settings, state
from .library import DeviceLibrary
from .limits import refuse

_DEVICE_CHECKS = "device-checks.txt"
"""Beside the devices' library: which operators check their devices, of the torch it was made for."""
_EARLY_PARTS = (
    "provenance", "lookups", "node", "outside", "packages", "driver_tools", "uncaught", "profiling", "sharing",
    "shrink", "weightless", "checkpoints", "short_epochs", "terminal", "triton_kernels", "collectives.ending",
    "collectives.one_for_all",
)  # fmt: skip
"""What waits for modules that may be imported before or with torch, or for the end of the process."""


def start() -> None:
    """Called by ``sitecustomize``. Does nothing where this is no process of a rehearsal."""
    chosen = settings.current()
    if chosen is None:
        return
    importing.install()
    importing.before_import("torch", _before_torch)
    importing.after_import("torch._C", _after_torch_c)
    importing.after_import("torch.version", _after_version)
    importing.after_import("torch", _after_torch)
    for name in _EARLY_PARTS:
        _install_part(f".{name}", chosen)


def _install_part(name: str, chosen: settings.Settings) -> None:
    """A part that is absent or fails must not become the user's failure."""
    try:
        import_module(name, __package__).install(chosen)
    except Exception as error:
        journal.problem(f"ranksafe_rehearsal{name}", error)


def _before_torch(spec: ModuleSpec) -> None:
    """Load the devices before torch asks for them: it keeps the first answer."""
    chosen = settings.current()
    if chosen is None or spec.origin is None:
        return
    try:
        for path in chosen.native.stand_ins:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        libraries = os.path.join(os.path.dirname(spec.origin), "lib")
        # The devices need the last two, and one build of them serves every folder that torch may be in.
        for name in ("libtorch_global_deps.so", "libc10.so", "libtorch_cpu.so"):
            path = os.path.join(libraries, name)
            if os.path.exists(path):
                ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        library = DeviceLibrary(chosen.native.devices)
    except OSError as error:
        refuse(
            "activation",
            spec.origin,
            f"the simulated devices cannot be loaded into {spec.origin}: {error}",
            f"无法将模拟设备加载到 {spec.origin}：{error}",
        )
    state.start(chosen, library)
    checks = os.path.join(os.path.dirname(chosen.native.devices), _DEVICE_CHECKS)
    if not library.load_device_checks(checks):
        journal.problem("device checks", OSError(checks))
    if chosen.host_memory_bytes is not None:
        library.limit_host_memory(chosen.host_memory_bytes)


def _after_torch_c(module: ModuleType) -> None:
    from .cuda import bindings

    bindings.install(module)


def _after_version(module: Any) -> None:
    if module.cuda is None:
        from .cuda.runtime import CUDA_VERSION

        module.cuda = CUDA_VERSION


def _after_torch(module: ModuleType) -> None:
    from . import communication, compiler, storages, tensor_types
    from .cuda import runtime

    chosen = settings.current()
    steps: tuple[Callable[[], None], ...] = (
        lambda: communication.install(sys.modules["torch._C"]),
        storages.install,
        lambda: compiler.install(module, notes_calls=chosen is not None and chosen.forecast),
        lambda: tensor_types.install(module),
        lambda: runtime.install_plan_cache(module),
    )
    for step in steps:
        try:
            step()
        except Exception as error:  # another version of torch
            journal.problem("after torch", error)
    if chosen is not None:
        _install_part(".collectives", chosen)
        _arm_stand_ins(chosen)
        if chosen.forecast:
            _install_part(".forecast", chosen)
            _install_part(".flex_attention", chosen)
            _install_part(".custom_operators", chosen)
    state.devices().imported = True


def _arm_stand_ins(chosen: settings.Settings) -> None:
    """torch is imported: from now on a call of a function of the CUDA libraries is a limit."""
    for path in chosen.native.stand_ins[:1]:
        ctypes.CDLL(path).ranksafe_stand_ins_arm()
