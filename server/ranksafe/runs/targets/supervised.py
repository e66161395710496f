"""A run whose processes are on this machine, below a supervisor of their own: what local targets share."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ranksafe.localization import Language, Translated
from ranksafe.runs import agent
from ranksafe.runs.directory import release
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.interpreter import (
    Interpreter,
    find_interpreter,
    folder_of_torch,
    inspect_interpreter,
)
from ranksafe.runs.launch_plan import Plan
from ranksafe.runs.model import RunRequest
from ranksafe.runs.output import OutputFollower, PassedOn
from ranksafe.runs.targets.protocol import Output

GRACE_SECONDS = 5.0
"""Between SIGTERM and SIGKILL when a run is cancelled."""
_SUPERVISOR = Path(__file__).parent.parent / "supervisor.py"


class SupervisedProcess:
    """A run on this machine, seen through its folder; the lease is the supervisor's standard input."""

    def __init__(
        self,
        supervisor: subprocess.Popen[bytes],
        directory: Path,
        give_back: Callable[[], None],
        language: Language,
    ) -> None:
        assert supervisor.stdout is not None
        self._supervisor = supervisor
        self._directory = directory
        self._give_back = give_back
        self._output = PassedOn(supervisor.stdout.fileno(), language)
        self._journals = OutputFollower(directory, streams=("jsonl",))

    def follow(self) -> Sequence[Output]:
        """New lines of every rank and of the launcher, in the order in which they were printed."""
        over = self.is_over()
        return [*self._journals.new_lines(final=over), *self._output.new_lines(final=over)]

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
        """Give back what the run held; the evidence is here already."""
        if self._supervisor.stdin is not None:
            with contextlib.suppress(OSError):
                self._supervisor.stdin.close()
        self._supervisor.wait()
        self._give_back()
        release(self._directory)
        return self._directory

    @property
    def returncode(self) -> int | None:
        """The launcher's exit status, as the supervisor said it."""
        code = self._output.report.get("returncode")
        return code if isinstance(code, int) else None

    @property
    def status(self) -> str:
        """The supervisor's last word, which needs no file."""
        report = self._output.report
        if not report:
            with contextlib.suppress(OSError, ValueError):
                report = json.loads(
                    (self._directory / "supervisor.json").read_text(encoding="utf-8")
                )
        status = str(report.get("status", "lost" if self.is_over() else "running"))
        return "lost" if status == "running" and self.is_over() else status


def start_supervised(
    plan: Plan, directory: Path, give_back: Callable[[], None]
) -> SupervisedProcess:
    """Start the supervisor, which starts the plan's command.

    ``give_back`` is called once the run is over. Raises RunNotPossible when the operating system refuses.
    """
    specification = {
        "command": [*plan.prefix, *plan.command],
        "environment": dict(plan.environment),
        "working_directory": str(plan.working_directory),
        "directory": str(directory),
        "grace_seconds": GRACE_SECONDS,
        "in_background": plan.in_background,
        "terminal": plan.terminal,
        "keep_detached": plan.keep_detached,
        "is_shown": True,
    }
    try:
        # The supervisor's own complaints, should there be any, belong to the evidence.
        with (directory / "supervisor.stderr").open("ab") as errors:
            supervisor = subprocess.Popen(
                [sys.executable, "-I", str(_SUPERVISOR)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        assert supervisor.stdin is not None
        supervisor.stdin.write(json.dumps(specification).encode() + b"\n")
        supervisor.stdin.flush()
    except OSError as error:
        raise RunNotPossible(_CANNOT_START.filled(reason=error.strerror)) from error
    return SupervisedProcess(supervisor, directory, give_back, plan.language)


def environment_of(request: RunRequest) -> dict[str, str]:
    """What the run inherits: this process's environment, changed as the user asked."""
    return {**os.environ, **request.environment}


def interpreter_of(request: RunRequest) -> Interpreter:
    """The Python of the run. Raises RunNotPossible when there is none or it does not work."""
    return inspect_interpreter(find_interpreter(request), environment_of(request))


def described(interpreter: Interpreter) -> list[Translated]:
    """The interpreter and what matters of its packages, one sentence each."""
    found = [_FOUND.filled(path=interpreter.path, python=interpreter.python)]
    for name, version in interpreter.versions.items():
        found.append(Translated(f"{name} {version}", f"{name} {version}"))
    torch = folder_of_torch(interpreter.path)
    return found if torch is None else [*found, _TORCH.filled(folder=torch)]


def ride_along(
    environment: dict[str, str], request: RunRequest, directory: Path, *, detectors: str
) -> tuple[Translated, ...]:
    """Let the agent start in every rank; returns what that changes about the run, in words.

    ``detectors``: which silent failures it looks for (`agent.DETECTORS_VARIABLE`).
    """
    path = environment.get("PYTHONPATH")
    entries = [str(agent.INJECT_DIRECTORY), *([path] if path else [])]
    environment["PYTHONPATH"] = os.pathsep.join(entries)
    environment[agent.DIRECTORY_VARIABLE] = str(directory)
    environment[agent.SCRIPT_VARIABLE] = str(request.script.absolute())
    environment[agent.MODULE_VARIABLE] = request.module
    environment[agent.DETECTORS_VARIABLE] = detectors
    if request.steps is None:
        return ()
    environment[agent.STEPS_VARIABLE] = str(request.steps)
    return (_STEPS.filled(steps=request.steps),)


_FOUND = Translated(en="Python {python}: {path}", zh_cn="Python {python}：{path}")
_TORCH = Translated(en="torch is in {folder}", zh_cn="torch 位于 {folder}")
_STEPS = Translated(
    en="stops after {steps} optimizer steps; what the script does after training is not run",
    zh_cn="在 {steps} 个优化器步之后停止；脚本训练之后的部分不会执行",
)
_CANNOT_START = Translated(en="The run cannot start: {reason}", zh_cn="无法启动运行：{reason}")
