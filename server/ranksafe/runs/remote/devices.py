"""Which devices of a host a run may take, and how many ranks that makes; the same rules as on this machine."""

from __future__ import annotations

from dataclasses import dataclass

from ranksafe.localization import Translated
from ranksafe.runs.cpu_ranks import cpu_ranks
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.interpreter import Interpreter
from ranksafe.runs.model import RunRequest
from ranksafe.runs.remote.facts import HostFacts


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """The devices that are free, those with most memory first; the supervisor there takes the first `ranks` of them."""

    ranks: int
    candidates: tuple[str, ...]
    """UUIDs: nvidia-smi counts in PCI order, CUDA by default the fastest first. Empty: ranks on the CPU."""
    limits: tuple[Translated, ...]


def choose_devices(facts: HostFacts, interpreter: Interpreter, request: RunRequest) -> DeviceChoice:
    """Free CUDA devices, or CPU ranks where there are none or the user wants them.

    Raises RunNotPossible when fewer are free than asked for.
    """
    gpus = facts.gpus()
    why_not = None
    if request.cpu_ranks:
        why_not = _CHOSEN_CPU
    elif not gpus:
        failed = facts.answer["devices_failed"]
        why_not = _BROKEN_DEVICES.filled(reason=failed) if failed else _NO_DEVICE
    elif interpreter.torch_cuda is None and "torch" in interpreter.versions:
        why_not = _CPU_BUILD.filled(version=interpreter.versions["torch"])
    if why_not is not None:
        limit = _CPU.filled(host=facts.host, why=why_not)
        return DeviceChoice(cpu_ranks(request.gpus), (), (limit,))
    reasons = [(gpu, facts.reason_against(gpu)) for gpu in gpus]
    free = sorted(
        (gpu for gpu, reason in reasons if reason is None),
        key=lambda gpu: gpu.free_mib or 0,
        reverse=True,
    )
    left_out = [
        _LEFT_OUT.filled(index=gpu.index, reason=reason)
        for gpu, reason in reasons
        if reason is not None
    ]
    wanted = request.gpus or max(len(free), 1)
    if len(free) < wanted:
        said = Translated(
            "; ".join(each.en for each in left_out), "；".join(each.zh_cn for each in left_out)
        )
        raise RunNotPossible(
            _TOO_FEW.filled(host=facts.host, wanted=wanted, free=len(free), reasons=said)
        )
    return DeviceChoice(wanted, tuple(gpu.uuid for gpu in free), tuple(left_out))


_CPU = Translated(
    en="ranks on the CPU of {host} (gloo), {why}: nothing that needs CUDA or NCCL is shown",
    zh_cn="使用 {host} 的 CPU rank（gloo），{why}：无法体现依赖 CUDA 或 NCCL 的问题",
)
_CHOSEN_CPU = Translated(en="as chosen", zh_cn="按所选")
_NO_DEVICE = Translated(en="no CUDA device was found there", zh_cn="那里未找到 CUDA 设备")
_BROKEN_DEVICES = Translated(
    en="nvidia-smi fails there: {reason}", zh_cn="那里的 nvidia-smi 报错：{reason}"
)
_CPU_BUILD = Translated(
    en="torch {version} there is built without CUDA", zh_cn="那里的 torch {version} 不带 CUDA 支持"
)
_LEFT_OUT = Translated(en="GPU {index} left out: {reason}", zh_cn="未使用 GPU {index}：{reason}")
_TOO_FEW = Translated(
    en="{wanted} free GPUs are needed on {host}, {free} are free ({reasons}). Ask for fewer, wait, or use CPU ranks.",
    zh_cn="{host} 上需要 {wanted} 个空闲 GPU，目前只有 {free} 个（{reasons}）。请减少数量、等待，或使用 CPU rank。",
)
