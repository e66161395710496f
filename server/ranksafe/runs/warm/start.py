"""One rehearsal's use of a template: ask it now where it is ready, make one ready for the next time where it is not."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ranksafe.rehearsal.isolation.warm import WARM_FILE
from ranksafe.rehearsal.settings import SETTINGS_VARIABLE, ProcessSettings, Warm
from ranksafe.runs import agent
from ranksafe.runs.interpreter import Interpreter
from ranksafe.runs.model import RunRequest
from ranksafe.runs.warm.first_imports import FirstImports, first_imports
from ranksafe.runs.warm.templates import folder_of, is_alive, start_template

SWITCH_VARIABLE = "RANKSAFE_WARM"
"""``off`` keeps every rehearsal of this environment cold."""
TEMPLATE_VARIABLE = "RANKSAFE_RUN_TEMPLATE"
_OF_ONE_RUN = (agent.DIRECTORY_VARIABLE, agent.SCRIPT_VARIABLE, SETTINGS_VARIABLE)
_HARMLESS = ("_", "SHLVL", "OLDPWD", "PYTEST_CURRENT_TEST")
"""As in ``ranksafe_rehearsal.warm.variables``."""
_NAMESPACES = ("user", "mnt", "pid", "net")
_OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class WarmStart:
    """Everything that a template for this run depends on."""

    folder: Path
    python: Path
    environment: Mapping[str, str]
    imports: FirstImports
    settings: ProcessSettings
    outlives: bool
    """Whether the template may go on when this process ends."""

    @classmethod
    def of(
        cls,
        request: RunRequest,
        interpreter: Interpreter,
        settings: ProcessSettings,
        environment: Mapping[str, str],
    ) -> WarmStart | None:
        """None where the run is to be cold: it was asked for, or nothing is known to be the same when it is warm."""
        if request.rehearsal.warm is Warm.OFF or environment.get(SWITCH_VARIABLE) == Warm.OFF.value:
            return None
        if environment.get("CI") or request.debugging is not None or settings.nodes > 1:
            return None
        version = tuple(int(part) for part in interpreter.python.split(".")[:2])
        if version < _OLDEST_PYTHON or interpreter.command:
            return None
        imports = first_imports(request.script)
        if not imports.statements:
            return None
        left_out = (*_OF_ONE_RUN, *_HARMLESS)
        kept = {name: value for name, value in environment.items() if name not in left_out}
        same = replace(settings, run_directory="", script="", host_memory_bytes=None)
        facts = [
            str(interpreter.path),
            dict(interpreter.versions),
            asdict(same),
            kept,
            imports.statements,
            os.getpriority(os.PRIO_PROCESS, 0),
            _place(),
        ]
        text = json.dumps(facts, sort_keys=True)
        folder = folder_of(hashlib.sha256(text.encode()).hexdigest()[:24])
        outlives = request.rehearsal.warm_afterwards
        return cls(folder, interpreter.path, kept, imports, settings, outlives)

    def offer(self, directory: Path) -> bool:
        """Tell the run in ``directory`` of the template, if there is one; whether there is."""
        if not is_alive(self.folder):
            return False
        fixed = self.environment.get("PYTHONHASHSEED", "random") != "random"
        told = {"folder": str(self.folder), "ranks": fixed or not self.imports.orders_by_hash}
        with contextlib.suppress(OSError):
            (directory / WARM_FILE).write_text(json.dumps(told), encoding="utf-8")
        return True

    def keep_ready(self) -> None:
        """Start the template for the next time unless it is there."""
        if is_alive(self.folder):
            return
        folder = self.folder
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            own = replace(self.settings, run_directory=str(folder), host_memory_bytes=None)
            environment = {
                **self.environment,
                SETTINGS_VARIABLE: str(own.write(folder)),
                TEMPLATE_VARIABLE: "1",
            }
            told = {"imports": self.imports.statements}
            start_template(folder, self.python, environment, told, outlives=self.outlives)


def _place() -> list[str]:
    """Where on this machine we are: what the system counts a process to, and which files and users it sees. A fork of
    the template is where the template is."""
    place = []
    with contextlib.suppress(OSError):
        place = [str(Path("/proc/self/ns", name).readlink()) for name in _NAMESPACES]
        place.append(Path("/proc/self/cgroup").read_text(encoding="utf-8"))
    return place
