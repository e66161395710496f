"""What is known of a launch with one process per GPU."""

from __future__ import annotations

import re
from enum import IntEnum
from pathlib import Path
from typing import Final

from ranksafe.launch.context import LaunchContext, Launcher
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.visible_devices import leaves_one_gpu

_COLLECTED: Final = re.compile(r"test_.*|.*_test|conftest")
"""Names of the files that pytest and unittest look into."""
_STARTERS: Final = frozenset({"spawn", "start_processes", "notebook_launcher", "debug_launcher"})
_LAUNCHERS: Final = ("torchrun", "distributed.launch", "accelerate launch", "deepspeed --")
_ONE_SHOWN: Final = re.compile(r"CUDA_VISIBLE_DEVICES[\"']\]\s*=\s*[\"']\d+[\"']")
_MOST_SCRIPTS: Final = 10
"""Of a file that more import, they are not all read."""
_TEST_RUNNERS: Final = ("unittest.main", "pytest.main", "absl.testing.absltest.main")


class Certainty(IntEnum):
    """How sure it is that every GPU gets a process of its own."""

    NEVER = 0
    """Plain python, a unit test, or a single GPU."""
    POSSIBLE = 1
    """Nothing speaks for it or against it."""
    SHOWN = 2
    """The file is written for a launcher, or a command in the project starts it with one."""
    KNOWN = 3
    """A setting, an option or a launch file says so."""


def several_processes(
    module: Module, launch: LaunchContext, *, needs_a_group: bool = False
) -> Certainty:
    """What is known of a launch of this file with one process per GPU.

    ``needs_a_group``: what is asked about does not work without a process group (DistributedDataParallel, a sampler of
    ranks), so something starts the processes: mp.spawn, for one.
    """
    if launch.gpus is not None and launch.gpus < 2:
        return Certainty.NEVER
    if launch.launcher.starts_one_process_per_gpu:
        return Certainty.KNOWN
    if launch.launcher is Launcher.PYTHON and not needs_a_group:
        return Certainty.NEVER
    if launch.gpus is None and _is_started_alone(module):
        return Certainty.NEVER
    if needs_a_group:
        return Certainty.SHOWN
    if _is_kept_to_one_gpu(module) and not _is_said_to_be_launched(module):
        return Certainty.NEVER
    if launchers_shown(module):
        return Certainty.SHOWN
    if is_unit_test(module):
        return Certainty.SHOWN if module.launch_commands() else Certainty.NEVER
    if wrappers_shown(module):
        return Certainty.SHOWN
    return Certainty.SHOWN if module.launch_commands() else Certainty.POSSIBLE


def _is_started_alone(module: Module) -> bool:
    """Whether every command that starts the file makes one process, which starts no others."""
    is_alone = module.runs_in_one_process() or module.runs_on_one_gpu()
    return is_alone and not _starts_others(module)


def _is_kept_to_one_gpu(module: Module) -> bool:
    """Whether the file shows its process one GPU, or every script that imports it does."""
    if leaves_one_gpu(module):
        return True
    # Only what other files say is kept: what is read of this one has to be noted for each that asks.
    kept: bool | None = module.answers.get("scripts show one GPU")
    if kept is None:
        kept = module.answers["scripts show one GPU"] = _scripts_show_one_gpu(module)
    return kept


def _scripts_show_one_gpu(module: Module) -> bool:
    if not any(map(_ONE_SHOWN.search, module.texts_saying("CUDA_VISIBLE_DEVICES"))):
        return False
    scripts = module.users_saying("__main__", most=_MOST_SCRIPTS)
    return bool(scripts) and all(map(leaves_one_gpu, scripts))


def _is_said_to_be_launched(module: Module) -> bool:
    """Whether a command of the project starts the file with a launcher, or a comment in it tells how: the one GPU that
    it shows is left over then."""
    return bool(module.launch_commands()) or module.text_says(_names_a_launcher)


def _names_a_launcher(text: str) -> bool:
    return any(name in text for name in _LAUNCHERS)


def _starts_others(module: Module) -> bool:
    return any(what.rpartition(".")[2] in _STARTERS for what in launchers_shown(module))


def launchers_shown(module: Module) -> list[str]:
    """What in the file shows a launcher, and is no remainder."""
    return [
        what
        for what, _, function in module.facts.launcher_evidence
        if function is None or not module.is_idle(function)
    ]


def wrappers_shown(module: Module) -> bool:
    """Whether the file wraps models for several processes, or builds an Accelerator, where something comes."""
    return any(
        function is None or not module.is_idle(function) for function in module.facts.of_processes
    )


def is_named_as_test(module: Module) -> bool:
    """Whether the file has a name that pytest and unittest look for; a launcher may start it all the same."""
    return module.path is not None and _COLLECTED.fullmatch(Path(module.path).stem) is not None


def is_unit_test(module: Module) -> bool:
    """Whether a test runner collects the file, and nothing else starts it: one process."""
    if not is_named_as_test(module):
        return False
    runs_tests = any(
        module.qualified_name(call.func) in _TEST_RUNNERS for call in module.calls_written("main")
    )
    return runs_tests or not module.facts.is_entry
