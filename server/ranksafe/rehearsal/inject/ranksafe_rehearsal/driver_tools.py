"""The modules and answers that stand in for the NVIDIA driver's management library."""

from __future__ import annotations

import os
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from typing import Any

from . import importing, node_devices, provenance
from .settings import Settings

_HERE = os.path.dirname(os.path.abspath(__file__))
_STAND_INS = os.path.join(_HERE, "stand_ins")
_TOOLS = os.path.join(os.path.dirname(_HERE), "bin")


_NVML = {
    "en": "pynvml answers for the simulated GPUs, as far as it is simulated",
    "zh_cn": "pynvml 针对模拟 GPU 作答，且只模拟了其中一部分",
}


def _pynvml_spec() -> ModuleSpec:
    provenance.met("library", "pynvml", _NVML)
    spec = spec_from_file_location("pynvml", os.path.join(_STAND_INS, "pynvml.py"))
    if spec is None:
        raise ImportError("pynvml")
    return spec


def install(settings: Settings) -> None:
    """Answer ``import pynvml``, whoever starts ``nvidia-smi``, and torch's own questions to the driver."""
    importing.replace("pynvml", _pynvml_spec)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if _TOOLS not in folders:
        os.environ["PATH"] = os.pathsep.join([_TOOLS, *folders])
    importing.after_import("torch.cuda", _answer_torch)


def _answer_torch(module: Any) -> None:
    """torch 2.13 opens ``libnvidia-ml.so.1`` by itself to count devices without a context.

    Where a real driver is installed it would answer with the real devices.
    """
    module._raw_device_count_nvml = node_devices.count
    module._raw_device_uuid_nvml = lambda: [
        node_devices.uuid(index) for index in range(node_devices.count())
    ]
