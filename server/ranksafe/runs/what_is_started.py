"""From what a user named (a module, a shell script) to the file that is started, and how."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.interpreter import find_interpreter
from ranksafe.runs.model import RunRequest
from ranksafe.runs.named_module import module_file
from ranksafe.runs.shell_script import SUFFIXES, launch_in


def with_its_file(request: RunRequest) -> RunRequest:
    """The request with a Python file as `script`. Raises RunNotPossible."""
    if not request.module and request.script.suffix in SUFFIXES:
        request = _of_shell_script(request)
    if not request.module:
        return request
    if request.target.partition(":")[0] not in ("local", "simulated"):
        raise RunNotPossible(_ONLY_HERE.filled(target=request.target))
    working_directory = request.working_directory or Path.cwd()
    python = find_interpreter(replace(request, script=working_directory / "-m"))
    environment = {**os.environ, **request.environment}
    file = module_file(request.module, python, working_directory, environment)
    return replace(request, script=file)


def _of_shell_script(request: RunRequest) -> RunRequest:
    """What it starts, as if it were called in the working directory; a launcher that the user chose remains."""
    launch = launch_in(request.script, request.arguments)
    working_directory = request.working_directory or Path.cwd()
    return replace(
        request,
        script=working_directory / launch.script,
        module=launch.module,
        launcher=request.launcher or launch.style.value,
        arguments=launch.arguments,
        environment={**launch.environment, **request.environment},
    )


_ONLY_HERE = Translated(
    "A module (-m) can be started on this machine only, not on {target}: name its file.",
    "模块（-m）只能在本机启动，不能在 {target} 上启动：请给出它的文件。",
)
