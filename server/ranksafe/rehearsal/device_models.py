"""The device models that a rehearsal can pretend to have.

The figures are what ``torch.cuda.get_device_properties`` reports on such devices; the memory that is left beside the
driver's own differs by some MiB between driver versions.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranksafe.localization import Translated
from ranksafe.rehearsal.errors import RehearsalNotPossible

_MEBIBYTE = 1 << 20
_DRIVER_BYTES = 9_240_576
_CONTEXT_BYTES = 518 * _MEBIBYTE
"""Measured on an H100 80GB HBM3, driver 580.159, torch 2.11, CUDA 13.0 (tests/gpu_check/measured), before a library has
loaded any kernel; nobody measured the other models for us."""
_CODE_BYTES = 240 * _MEBIBYTE
"""What CUDA's libraries load beside the context until the first training steps are over: on an H200, torch 2.11, CUDA
13.0, GPT-2 and Llama in bfloat16 (tests/gpu_check/measured/h200_torch_2.11.jsonl)."""
_GROUP_BYTES = 558 * _MEBIBYTE
"""What NCCL 2.28 takes for a process group: the same, GPT-2 in DDP and FSDP2, with one rank."""
_SMALLEST_DEVICE = 4 << 30
"""Who chooses less wants to see memory run out; a real context would leave nothing of it."""


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """What torch tells of one kind of device."""

    key: str
    """The word for the command line."""
    name: str
    """As the driver names it."""
    capability: tuple[int, int]
    """Compute capability: major, minor."""
    multi_processor_count: int
    memory_mebibytes: int
    """What torch reports, in MiB."""

    @property
    def memory_bytes(self) -> int:
        """Capacity in bytes."""
        return self.memory_mebibytes * _MEBIBYTE


_MODELS = (
    DeviceModel("a100-80g", "NVIDIA A100-SXM4-80GB", (8, 0), 108, 81153),
    DeviceModel("a100-40g", "NVIDIA A100-SXM4-40GB", (8, 0), 108, 40339),
    DeviceModel("h100", "NVIDIA H100 80GB HBM3", (9, 0), 132, 81110),
    DeviceModel("h200", "NVIDIA H200", (9, 0), 132, 143156),
    DeviceModel("b200", "NVIDIA B200", (10, 0), 148, 182642),
    DeviceModel("l4", "NVIDIA L4", (8, 9), 58, 22563),
    DeviceModel("l40s", "NVIDIA L40S", (8, 9), 142, 45589),
    DeviceModel("a10g", "NVIDIA A10G", (8, 6), 80, 22723),
    DeviceModel("a6000", "NVIDIA RTX A6000", (8, 6), 84, 48676),
    DeviceModel("t4", "Tesla T4", (7, 5), 40, 14930),
    DeviceModel("v100-32g", "Tesla V100-SXM2-32GB", (7, 0), 80, 32494),
    DeviceModel("v100-16g", "Tesla V100-SXM2-16GB", (7, 0), 80, 16151),
    DeviceModel("rtx3090", "NVIDIA GeForce RTX 3090", (8, 6), 82, 24257),
    DeviceModel("rtx4090", "NVIDIA GeForce RTX 4090", (8, 9), 128, 24209),
    DeviceModel("rtx5090", "NVIDIA GeForce RTX 5090", (12, 0), 170, 32120),
)
_BY_KEY = {model.key: model for model in _MODELS}


def keys() -> list[str]:
    """The words for all device models."""
    return list(_BY_KEY)


def device_model(key: str) -> DeviceModel:
    """The device model of a word, in any letters' case. Raises RehearsalNotPossible for an unknown one."""
    model = _BY_KEY.get(key.strip().lower())
    if model is None:
        known = ", ".join(keys())
        raise RehearsalNotPossible(
            Translated(
                en=f"There is no device model `{key}`. Known ones: {known}",
                zh_cn=f"没有名为 `{key}` 的设备型号。可选：{known}",
            )
        )
    return model


def beside_context(memory_bytes: int) -> tuple[int, int]:
    """Bytes that a training process takes beside `overhead`: for its libraries' code, and for each NCCL group."""
    return (_CODE_BYTES, _GROUP_BYTES) if memory_bytes >= _SMALLEST_DEVICE else (0, 0)


def overhead(memory_bytes: int) -> tuple[int, int]:
    """Bytes that the driver and CUDA's context take of a device of this capacity."""
    return (_DRIVER_BYTES, _CONTEXT_BYTES) if memory_bytes >= _SMALLEST_DEVICE else (0, 0)
