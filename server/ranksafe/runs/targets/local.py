"""This machine: a supervisor process, accelerate or torchrun below it, the agent in every rank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.cpu_ranks import cpu_ranks
from ranksafe.runs.debugger import let_debugger_in
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.gpus import GpuChoice, choose_gpus, list_gpus
from ranksafe.runs.interpreter import Interpreter
from ranksafe.runs.launch_plan import Plan, launch_command
from ranksafe.runs.model import RunRequest
from ranksafe.runs.targets.protocol import Listener
from ranksafe.runs.targets.supervised import (
    SupervisedProcess,
    described,
    environment_of,
    interpreter_of,
    ride_along,
    start_supervised,
)


class LocalTarget:
    """Runs on the machine ranksafe itself runs on."""

    name = "local"

    def __init__(self) -> None:
        self._choice = GpuChoice()

    def probe(self, request: RunRequest, listener: Listener) -> Sequence[Translated]:  # noqa: ARG002
        """The interpreter, its packages, the devices and why some are left out."""
        interpreter = interpreter_of(request)
        found = described(interpreter)
        gpus = list_gpus()
        choice = choose_gpus(gpus, None, environment_of(request))
        choice.release()
        found += [_free(f"GPU {gpu.index} ({gpu.name})") for gpu in choice.chosen]
        found += [_left_out(gpu.index, reason) for gpu, reason in choice.left_out]
        missing = _no_cuda(interpreter, bool(gpus))
        if missing is not None:
            found.append(missing)
        return found

    def prepare(self, request: RunRequest, directory: Path, listener: Listener) -> Plan:  # noqa: ARG002
        """Choose interpreter, devices and launcher; reserves the devices."""
        interpreter = interpreter_of(request)
        environment = environment_of(request)
        limits: list[Translated] = []
        ranks = self._devices(request, interpreter, environment, limits)
        command, expected = launch_command(request, interpreter, ranks, directory)
        modified = ride_along(environment, request, directory, detectors="cheap")
        if request.debugging is not None:
            # A script that starts its ranks itself is one process to us.
            known = expected or (None if request.config_file else 1)
            told = let_debugger_in(environment, request.debugging, interpreter, known)
            modified = (*modified, told)
        working_directory = request.working_directory or Path.cwd()
        return Plan(
            command,
            environment,
            working_directory,
            expected,
            modified,
            tuple(limits),
            keep_detached=request.keep_detached,
            language=request.language,
        )

    def start(self, plan: Plan, directory: Path) -> SupervisedProcess:
        """Start the supervisor, which starts the launcher."""
        process = start_supervised(plan, directory, self._choice.release)
        self._choice = GpuChoice()
        return process

    def release(self) -> None:
        """Give reserved devices free."""
        self._choice.release()

    def _devices(
        self,
        request: RunRequest,
        interpreter: Interpreter,
        environment: dict[str, str],
        limits: list[Translated],
    ) -> int:
        """Reserve CUDA devices or settle for the CPU; returns the number of ranks."""
        gpus = [] if request.cpu_ranks else list_gpus()
        missing = None if request.cpu_ranks else _no_cuda(interpreter, bool(gpus))
        if request.cpu_ranks or missing is not None:
            limits.append(missing or _CHOSEN_CPU)
            environment["ACCELERATE_USE_CPU"] = "true"
            environment["CUDA_VISIBLE_DEVICES"] = ""
            return cpu_ranks(request.gpus)
        choice = self._choice = choose_gpus(gpus, request.gpus, environment)
        reasons = [_left_out(gpu.index, reason) for gpu, reason in choice.left_out]
        if not choice.chosen or len(choice.chosen) < (request.gpus or 1):
            choice.release()
            raise RunNotPossible(
                _TOO_FEW.filled(
                    wanted=request.gpus or 1, free=len(choice.chosen), reasons=_joined(reasons)
                )
            )
        limits.extend(reasons)
        # UUIDs: nvidia-smi counts in PCI order, CUDA by default the fastest first.
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpu.uuid for gpu in choice.chosen)
        return len(choice.chosen)


def _no_cuda(interpreter: Interpreter, has_gpus: bool) -> Translated | None:
    if not has_gpus:
        return _NO_DEVICE
    if interpreter.torch_cuda is None:
        return _CPU_BUILD.filled(version=interpreter.versions.get("torch", "?"))
    return None


def _left_out(index: int, reason: Translated) -> Translated:
    return _LEFT_OUT.filled(index=index, reason=reason)


def _free(what: str) -> Translated:
    return Translated(f"{what}: free", f"{what}：空闲")


def _joined(sentences: Sequence[Translated]) -> Translated:
    return Translated(
        "; ".join(each.en for each in sentences), "；".join(each.zh_cn for each in sentences)
    )


_CHOSEN_CPU = Translated(
    en="CPU ranks (gloo) instead of GPUs, as chosen: nothing that needs CUDA or NCCL is shown",
    zh_cn="按选择使用 CPU rank（gloo）代替 GPU：无法体现依赖 CUDA 或 NCCL 的问题",
)
_NO_DEVICE = Translated(
    en="no CUDA device found: gloo ranks on the CPU, nothing that needs CUDA or NCCL is shown",
    zh_cn="未找到 CUDA 设备：改用 CPU 上的 gloo rank，无法体现依赖 CUDA 或 NCCL 的问题",
)
_CPU_BUILD = Translated(
    en="torch {version} is built without CUDA: gloo ranks on the CPU",
    zh_cn="torch {version} 不带 CUDA 支持：改用 CPU 上的 gloo rank",
)
_LEFT_OUT = Translated(en="GPU {index} left out: {reason}", zh_cn="未使用 GPU {index}：{reason}")
_TOO_FEW = Translated(
    en="{wanted} free GPUs are needed, {free} are free ({reasons}). Ask for fewer, wait, or use CPU ranks.",
    zh_cn="需要 {wanted} 个空闲 GPU，目前只有 {free} 个（{reasons}）。请减少数量、等待，或使用 CPU rank。",
)
