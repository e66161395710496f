"""What the user chose for each script, kept between sessions in the user's own state folder, never in the workspace."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

DEFAULT_TARGET: Final = "local"
_FILE_NAME: Final = "scripts.json"


@dataclass(frozen=True, slots=True)
class FitDevices:
    """What a script's memory is forecast for."""

    gpus: int
    model: str
    """A word of `ranksafe.rehearsal.device_models`."""
    memory_gib: float | None = None
    """Of each; None: the model's own."""


@dataclass(frozen=True, slots=True)
class ScriptChoices:
    """How one script is to be run."""

    arguments: tuple[str, ...] = ()
    target: str = DEFAULT_TARGET
    config_file: Path | None = None
    """An accelerate configuration."""
    fit: FitDevices | None = None


class UserState:
    """The choices for every script, in one JSON file."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / _FILE_NAME

    def of(self, script: Path) -> ScriptChoices:
        """What was chosen for a script; the defaults where nothing was, or where the file cannot be read."""
        return _choices(self._read().get(str(script)))

    def remember(
        self,
        script: Path,
        *,
        arguments: tuple[str, ...] | None = None,
        target: str | None = None,
        config_file: Path | None = None,
        without_config_file: bool = False,
        fit: FitDevices | None = None,
    ) -> ScriptChoices:
        """Change what is given, keep the rest. Raises OSError when it cannot be written."""
        choices = self.of(script)
        if arguments is not None:
            choices = replace(choices, arguments=arguments)
        if target is not None:
            choices = replace(choices, target=target)
        if config_file is not None or without_config_file:
            choices = replace(choices, config_file=config_file)
        if fit is not None:
            choices = replace(choices, fit=fit)
        everything = self._read()
        everything[str(script)] = {
            "arguments": list(choices.arguments),
            "target": choices.target,
            "configFile": str(choices.config_file) if choices.config_file else None,
            **({"fit": asdict(choices.fit)} if choices.fit else {}),
        }
        self._write(everything)
        return choices

    def _read(self) -> dict[str, Any]:
        try:
            value = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def _write(self, value: Mapping[str, Any]) -> None:
        """In one step, so that two servers never leave half a file."""
        # Imported here because it takes longer than the rest of this module, at every start.
        import tempfile

        self._file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self._file.parent, prefix=_FILE_NAME)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(value, stream, ensure_ascii=False, indent=1)
        Path(name).replace(self._file)


def _choices(value: object) -> ScriptChoices:
    if not isinstance(value, dict):
        return ScriptChoices()
    arguments, target, config = (value.get(key) for key in ("arguments", "target", "configFile"))
    return ScriptChoices(
        arguments=tuple(item for item in arguments if isinstance(item, str))
        if isinstance(arguments, list)
        else (),
        target=target if isinstance(target, str) and target else DEFAULT_TARGET,
        config_file=Path(config) if isinstance(config, str) and config else None,
        fit=_fit(value.get("fit")),
    )


def _fit(value: object) -> FitDevices | None:
    if not isinstance(value, dict):
        return None
    gpus, model, memory = (value.get(key) for key in ("gpus", "model", "memory_gib"))
    if not isinstance(gpus, int) or gpus < 1 or not isinstance(model, str):
        return None
    return FitDevices(gpus, model, memory if isinstance(memory, float) else None)
