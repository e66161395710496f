"""Experiment trackers keep their functions and contact nobody, also where the script asks for their online mode.

The environment already holds the trackers' own switches; arguments win over those, so the functions that start a run
get the switch as an argument. Run with wandb 0.31.0, mlflow-skinny 3.17.2, neptune 1.14.0, clearml 2.1.12, comet_ml
3.58.8, swanlab 0.10.3 and trackio 0.43.0. TensorBoard writes files only.
"""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, Callable

from .. import importing, journal, settings

Change = Callable[[dict[str, Any]], None]
_LOCAL_STORES = ("", "file", "sqlite")


def install() -> None:
    """Replace what starts a run once the tracker is imported."""
    importing.after_import("wandb", _wandb)
    importing.after_import("neptune", _neptune)
    importing.after_import("clearml", _clearml)
    importing.after_import("comet_ml", _comet)
    importing.after_import("swanlab", _swanlab)
    importing.after_import("trackio", _trackio)
    importing.after_import("mlflow", _mlflow)


def _wandb(module: ModuleType) -> None:
    _with(module, "init", "wandb", lambda given: given.update(mode="disabled"))
    _without(module, "login", "wandb", True)


def _neptune(module: ModuleType) -> None:
    for name in ("init_run", "init_project", "init_model", "init_model_version"):
        _with(module, name, "neptune", lambda given: given.update(mode="debug"))


def _clearml(module: Any) -> None:
    before = module.Task.init

    @functools.wraps(before)
    def init(*arguments: Any, **keywords: Any) -> Any:
        _note("clearml")
        if not module.Task._offline_mode:
            module.Task.set_offline(True)
        # Its reporting process is forked while a thread of it starts git: where starting a program takes longer than
        # a switch of threads, as from layered folders, the fork inherits the pipe that the thread then waits at.
        module.Task._report_subprocess_enabled = False
        return before(*arguments, **keywords)

    module.Task.init = init


def _comet(module: Any) -> None:
    _with(module, "start", "comet_ml", lambda given: given.update(online=False))
    _without(module, "login", "comet_ml", None)
    _without(module, "init", "comet_ml", None)
    before = module.Experiment.__init__

    @functools.wraps(before)
    def initialise(self: Any, *arguments: Any, **keywords: Any) -> None:
        _note("comet_ml")
        before(self, *arguments, **{**keywords, "disabled": True})

    module.Experiment.__init__ = initialise


def _swanlab(module: ModuleType) -> None:
    _with(module, "init", "swanlab", lambda given: given.update(mode="disabled"))
    _without(module, "login", "swanlab", None)


def _trackio(module: ModuleType) -> None:
    def stay_local(given: dict[str, Any]) -> None:
        for name in ("space_id", "server_url", "dataset_id", "bucket_id"):
            given.pop(name, None)

    _with(module, "init", "trackio", stay_local)


def _mlflow(module: Any) -> None:
    """Stores on this machine are left as they are; those elsewhere become a folder of the run's."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI"):
        if _is_elsewhere(os.environ.get(name, "")):
            os.environ[name] = _local_store()
            _note("mlflow")
    for name in ("set_tracking_uri", "set_registry_uri"):
        _redirect(module, name)


def _redirect(module: Any, name: str) -> None:
    before = getattr(module, name, None)
    if before is None:
        return

    @functools.wraps(before)
    def instead(uri: Any) -> Any:
        if not _is_elsewhere(str(uri)):
            return before(uri)
        _note("mlflow")
        return before(_local_store())

    setattr(module, name, instead)


def _is_elsewhere(uri: str) -> bool:
    scheme = uri.split(":", 1)[0] if ":" in uri else ("databricks" if uri == "databricks" else "")
    return bool(uri) and scheme not in _LOCAL_STORES and not (len(scheme) == 1 and scheme.isalpha())


def _local_store() -> str:
    chosen = settings.current()
    folder = chosen.run_directory if chosen is not None else tempfile.gettempdir()
    # The store that needs no package beside mlflow's own; 3.17 asks for the consent, older ones do not know it.
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    return (Path(folder) / "mlflow").as_uri()


def _with(module: Any, name: str, tracker: str, change: Change) -> None:
    """Call the tracker's own function with other keywords."""
    before = getattr(module, name, None)
    if before is None:
        return

    @functools.wraps(before)
    def instead(*arguments: Any, **keywords: Any) -> Any:
        _note(tracker)
        change(keywords)
        return before(*arguments, **keywords)

    setattr(module, name, instead)


def _without(module: Any, name: str, tracker: str, result: Any) -> None:
    """Do not call the tracker's function at all."""
    before = getattr(module, name, None)
    if before is None:
        return

    @functools.wraps(before)
    def instead(*_arguments: Any, **_keywords: Any) -> Any:
        _note(tracker)
        return result

    setattr(module, name, instead)


def _note(tracker: str) -> None:
    journal.modified(
        f"{tracker} was told to contact nobody: what the script logs to it is thrown away",
        f"{tracker} 已被设为不联系任何服务器：脚本记录到其中的内容均被丢弃",
        object="tracker",
        name=tracker,
    )
