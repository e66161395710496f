"""This machine: a supervisor process, accelerate or torchrun below it, the agent in every rank."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs import agent
from ranksafe.runs.directory import release
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.gpus import GpuChoice, choose_gpus, list_gpus
from ranksafe.runs.interpreter import Interpreter, find_interpreter, inspect_interpreter
from ranksafe.runs.launch_plan import Plan, launch_command
from ranksafe.runs.model import RunRequest
from ranksafe.runs.output import OutputFollower
from ranksafe.runs.targets.protocol import Output

GRACE_SECONDS = 5.0
"""Between SIGTERM and SIGKILL when a run is cancelled."""
_CPU_RANKS = 2
_SUPERVISOR = Path(__file__).parent.parent / "supervisor.py"


class LocalProcess:
    """A run on this machine, seen through its folder; the lease is the supervisor's standard input."""

    def __init__(
        self, supervisor: subprocess.Popen[bytes], directory: Path, choice: GpuChoice
    ) -> None:
        self._supervisor = supervisor
        self._directory = directory
        self._choice = choice
        self._output = OutputFollower(directory)

    def follow(self) -> Sequence[Output]:
        """New lines of every rank, then of the launcher."""
        return self._output.new_lines(final=self.is_over())

    def is_over(self) -> bool:
        """Whether the supervisor has ended, which it does last."""
        return self._supervisor.poll() is not None

    def cancel(self) -> None:
        """Tell the supervisor, which ends its descendants."""
        if self._supervisor.stdin is None:
            return
        with contextlib.suppress(OSError, ValueError):
            self._supervisor.stdin.write(b"cancel\n")
            self._supervisor.stdin.flush()

    def collect(self) -> Path:
        """Give the devices free; the evidence is here already."""
        if self._supervisor.stdin is not None:
            with contextlib.suppress(OSError):
                self._supervisor.stdin.close()
        self._supervisor.wait()
        self._choice.release()
        release(self._directory)
        return self._directory

    @property
    def status(self) -> str:
        """The supervisor's last word."""
        try:
            text = (self._directory / "supervisor.json").read_text(encoding="utf-8")
            status = str(json.loads(text)["status"])
        except (OSError, ValueError, KeyError):
            status = "lost" if self.is_over() else "running"
        return "lost" if status == "running" and self.is_over() else status


class LocalTarget:
    """Runs on the machine ranksafe itself runs on."""

    name = "local"

    def __init__(self) -> None:
        self._choice = GpuChoice()

    def probe(self, request: RunRequest) -> Sequence[Translated]:
        """The interpreter, its packages, the devices and why some are left out."""
        interpreter = self._interpreter(request)
        found = [_FOUND.filled(path=interpreter.path, python=interpreter.python)]
        for name, version in interpreter.versions.items():
            found.append(Translated(f"{name} {version}", f"{name} {version}"))
        gpus = list_gpus()
        choice = choose_gpus(gpus, None, self._environment(request))
        choice.release()
        found += [_free(f"GPU {gpu.index} ({gpu.name})") for gpu in choice.chosen]
        found += [_left_out(gpu.index, reason) for gpu, reason in choice.left_out]
        missing = _no_cuda(interpreter, bool(gpus))
        if missing is not None:
            found.append(missing)
        return found

    def prepare(self, request: RunRequest, directory: Path) -> Plan:
        """Choose interpreter, devices and launcher; reserves the devices."""
        interpreter = self._interpreter(request)
        environment = self._environment(request)
        limits: list[Translated] = []
        ranks = self._devices(request, interpreter, environment, limits)
        command, expected = launch_command(request, interpreter, ranks, directory)
        modified = []
        if request.steps is not None:
            environment[agent.STEPS_VARIABLE] = str(request.steps)
            modified.append(_STEPS.filled(steps=request.steps))
        _inject(environment, directory, request.script)
        working_directory = request.working_directory or Path.cwd()
        return Plan(
            command, environment, working_directory, expected, tuple(modified), tuple(limits)
        )

    def start(self, plan: Plan, directory: Path) -> LocalProcess:
        """Start the supervisor, which starts the launcher."""
        specification = {
            "command": list(plan.command),
            "environment": dict(plan.environment),
            "working_directory": str(plan.working_directory),
            "directory": str(directory),
            "grace_seconds": GRACE_SECONDS,
        }
        try:
            # The supervisor's own complaints, should there be any, belong to the evidence.
            with (directory / "supervisor.stderr").open("ab") as errors:
                supervisor = subprocess.Popen(
                    [sys.executable, "-I", str(_SUPERVISOR)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                )
            assert supervisor.stdin is not None
            supervisor.stdin.write(json.dumps(specification).encode() + b"\n")
            supervisor.stdin.flush()
        except OSError as error:
            raise RunNotPossible(_CANNOT_START.filled(reason=error.strerror)) from error
        choice, self._choice = self._choice, GpuChoice()
        return LocalProcess(supervisor, directory, choice)

    def release(self) -> None:
        """Give reserved devices free."""
        self._choice.release()

    def _interpreter(self, request: RunRequest) -> Interpreter:
        return inspect_interpreter(find_interpreter(request), self._environment(request))

    def _environment(self, request: RunRequest) -> dict[str, str]:
        return {**os.environ, **request.environment}

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
            return request.gpus or _CPU_RANKS
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


def _inject(environment: dict[str, str], directory: Path, script: Path) -> None:
    path = environment.get("PYTHONPATH")
    entries = [str(agent.INJECT_DIRECTORY), *([path] if path else [])]
    environment["PYTHONPATH"] = os.pathsep.join(entries)
    environment[agent.DIRECTORY_VARIABLE] = str(directory)
    environment[agent.SCRIPT_VARIABLE] = str(script.absolute())


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


_FOUND = Translated(en="Python {python}: {path}", zh_cn="Python {python}：{path}")
_STEPS = Translated(
    en="stops after {steps} optimizer steps; what the script does after training is not run",
    zh_cn="在 {steps} 个优化器步之后停止；脚本训练之后的部分不会执行",
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
_CANNOT_START = Translated(en="The run cannot start: {reason}", zh_cn="无法启动运行：{reason}")
