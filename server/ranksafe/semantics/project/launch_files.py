"""How a project's own files start its scripts: shell and job scripts, makefiles, READMEs.

Commands that start one process per GPU are looked for, and those that start a script with plain python; ``srun`` and
``mpirun`` are left out, because whether they start more than one is said elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ranksafe.semantics.cross_file import LaunchCommand
from ranksafe.semantics.project.dependents import Dependents
from ranksafe.semantics.project.files import ProjectFiles, is_ours
from ranksafe.source.plain_files import read_plain

_SUFFIXES: Final = frozenset(
    {".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".sub", ".job", ".mk", ".md", ".rst", ".yaml", ".yml"}
)  # fmt: skip
_NAMES: Final = frozenset({"Makefile", "makefile", "Dockerfile", "justfile", "Justfile", "README"})
_MOST_FILES: Final = 3_000
_LARGEST_BYTES: Final = 200_000
_LAUNCHER: Final = re.compile(
    r"(?<![\w./-])(?:torchrun|accelerate[ \t-]launch|deepspeed|torch\.distributed\.(?:launch|run))\b"
)
_PLAIN: Final = re.compile(
    r"^[\s$>`]*(?:(?!\w*RANK)\w+=\S*[ \t]+)*(?:(?:nohup|time)[ \t]+)?python[\d.]*(?:[ \t]+-[uOB]+)*(?=[ \t])"
)
_VISIBLE: Final = re.compile(
    r"(?:^|[\s;&])CUDA_VISIBLE_DEVICES=(?:\"([^\"]*)\"|'([^']*)'|([^\s;&]*))"
)
_EXPORTED: Final = re.compile(r"^\s*export[ \t]")
_ONE_DEVICE: Final = re.compile(r"\d+")
_BY_HAND: Final = re.compile(r"RANK|WORLD_SIZE|MASTER_|srun|mpi(?:run|exec)|horovodrun|jsrun")
"""A file with one of these may give plain python the variables of a launcher."""
_READ_BY_USERS: Final = frozenset({".sh", ".bash", ".zsh", ".md", ".rst"})
_PROCESSES: Final = re.compile(
    r"--(?:nproc[_-]per[_-]node|num[_-]processes|num[_-]gpus)[ \t=]+(\S+)"
)
_ONE_CONFIGURED: Final = re.compile(r"^num_processes:[ \t]*1[ \t]*$", re.MULTILINE)
_STRATEGY_ASKED: Final = re.compile(r"--use[_-](?:deepspeed|fsdp|megatron[_-]lm)\b")
_CONFIGURATION: Final = re.compile(r"--config[_-]file[ \t=]+[\"']?([^\s\"']+)")
_STRATEGY_CONFIGURED: Final = re.compile(
    r"^distributed_type:[ \t]*[\"']?(?:DEEPSPEED|FSDP|MEGATRON_LM)\b", re.MULTILINE
)
"""Options of ``accelerate launch``, and its file of options (accelerate 1.15.0, ``DistributedType``)."""
_SEVERAL_NODES: Final = re.compile(r"--(?:nnodes|num_nodes)[ \t=]+(?!1(?!\S))\S")
"""Of each of which the number of processes is told (torch/distributed/run.py, deepspeed/launcher/runner.py)."""
_ASSIGNED: Final = re.compile(r"(?:export[ \t]+)?(\w+)=[\"']?([\w./-]+)[\"']?")
"""A variable that gets a number, a word or a path as it is."""
_VARIABLE: Final = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_TARGET: Final = re.compile(
    r"(?<=[\s\"'])(?:(?:-m|--module)[ \t]+([A-Za-z_][\w.]*)|([^\s\"'=]+\.py)\b)"
)


@dataclass(slots=True)
class LaunchFiles:
    """Looks once at all files that may hold commands."""

    files: ProjectFiles
    dependents: Dependents
    _launches: dict[Path, list[LaunchCommand]] | None = None
    """The scripts with the commands that start them."""
    _alone: set[Path] = field(default_factory=set)
    """Those that a command starts with a launcher as one process."""
    _plain: dict[Path, list[LaunchCommand]] | None = None
    """Those that plain python starts."""
    _values: dict[str, list[str]] = field(default_factory=dict)
    """What is given the options that were asked about."""

    def of(self, path: Path) -> list[LaunchCommand]:
        """The commands that start the file, or one that imports it, with one process per GPU."""
        return [
            launch
            for script, launches in self._all().items()
            if self._runs(script, path)
            for launch in launches
        ]

    def start_any(self) -> bool:
        """Whether a command starts any file of the project with one process per GPU."""
        return bool(self._all())

    def plain_of(self, path: Path) -> LaunchCommand | None:
        """A command that starts the file with plain python, if none starts it, or one that imports it, otherwise."""
        found = self._all_plain().get(path)
        return None if found is None or self.of(path) else found[0]

    def on_one_gpu(self, path: Path) -> bool:
        """Whether commands start the file, or one that imports it, with plain python, and every one of them leaves one
        GPU visible."""
        found = [
            command
            for script, commands in self._all_plain().items()
            if self._runs(script, path)
            for command in commands
        ]
        return bool(found) and all(item.one_gpu for item in found) and not self.of(path)

    def in_one_process(self, path: Path) -> bool:
        """Whether launchers start the file, or one that imports it, and every command makes one process; a script that
        plain python starts as well may make its processes itself."""
        if self.of(path):
            return False
        scripts = [script for script in self._alone if self._runs(script, path)]
        return bool(scripts) and self._all_plain().keys().isdisjoint(scripts)

    def _runs(self, script: Path, path: Path) -> bool:
        """Whether a file is a script, or is loaded with it."""
        return script == path or path in self.dependents.loaded(script)

    def values_given(self, option: str) -> list[str]:
        """What is given an option, or a setting of its name, anywhere in the files, as written."""
        if option not in self._values:
            given = _given(option)
            self._values[option] = [
                found for file in command_files(self.files.root) for found in given(_text_of(file))
            ]
        return self._values[option]

    def files_changed(self) -> None:
        """Files came or went."""
        self._values.clear()
        self._launches = None
        self._plain = None

    def _all(self) -> dict[Path, list[LaunchCommand]]:
        if self._launches is None:
            self._launches = {}
            self._alone.clear()
            for file in command_files(self.files.root):
                for script, launch in self._started_by(file):
                    self._launches.setdefault(script, []).append(launch)
        return self._launches

    def _all_plain(self) -> dict[Path, list[LaunchCommand]]:
        if self._plain is None:
            self._plain = {}
            for file in command_files(self.files.root):
                if file.suffix in _READ_BY_USERS:
                    for script, command in self._started_plainly_by(file):
                        self._plain.setdefault(script, []).append(command)
        return self._plain

    def _started_by(self, file: Path) -> Iterator[tuple[Path, LaunchCommand]]:
        variables: dict[str, str] = {}
        one_gpu = False
        for line, written in _commands(_text_of(file)):
            if _EXPORTED.match(written):
                one_gpu = _leaves_one_gpu(written, otherwise=one_gpu)
            assigned = _ASSIGNED.fullmatch(written.strip())
            if assigned is not None:
                variables[assigned[1]] = assigned[2]
            if _LAUNCHER.search(written) is None:
                continue
            command = _with_values(written, variables)
            found = _LAUNCHER.search(command)
            if found is None:
                continue
            one = _leaves_one_gpu(command[: found.start()], otherwise=one_gpu)
            is_alone = self._makes_one_process(command[found.start() :], file, one_gpu=one)
            for script, launch in self._targets(command, found.end(), file, line):
                if not is_alone:
                    yield script, launch
                elif not _is_quoted(command[: found.start()]):
                    self._alone.add(script)

    def _started_plainly_by(self, file: Path) -> Iterator[tuple[Path, LaunchCommand]]:
        text = _text_of(file)
        if _BY_HAND.search(text):
            return
        one_gpu = False
        for line, command in _commands(text):
            if _EXPORTED.match(command):
                one_gpu = _leaves_one_gpu(command, otherwise=one_gpu)
            found = _PLAIN.match(command)
            if found is not None and _LAUNCHER.search(command) is None:
                one = _leaves_one_gpu(found[0], otherwise=one_gpu)
                yield from self._targets(command, found.end(), file, line, one_gpu=one)

    def _targets(
        self, command: str, start: int, file: Path, line: int, *, one_gpu: bool = False
    ) -> Iterator[tuple[Path, LaunchCommand]]:
        target = _TARGET.search(command, start)
        if target is None:
            return
        other = self._asks_for_other_strategy(command[: target.start()], file)
        for script in self._meant(target[1], target[2], file):
            yield script, LaunchCommand(file, line, command, one_gpu, other)

    def _makes_one_process(self, command: str, file: Path, *, one_gpu: bool) -> bool:
        """Whether a launcher's command makes one process: it says so, or its file of options, or it sees one GPU, of
        which no launcher makes several."""
        if _SEVERAL_NODES.search(command):
            return False
        told = _PROCESSES.search(command)
        if told is not None:
            return told[1] == "1"
        return one_gpu or _ONE_CONFIGURED.search(self._configured(command, file)) is not None

    def _asks_for_other_strategy(self, launcher: str, file: Path) -> bool:
        """Whether what stands before the script asks for it, or a file of options that it names."""
        if _STRATEGY_ASKED.search(launcher):
            return True
        return _STRATEGY_CONFIGURED.search(self._configured(launcher, file)) is not None

    def _configured(self, launcher: str, file: Path) -> str:
        """The text of the file of options that a command names; empty where there is none."""
        named = _CONFIGURATION.search(launcher)
        if named is None:
            return ""
        for folder in (file.parent, self.files.root):
            path = Path(os.path.normpath(folder / named[1]))
            text = _text_of(path) if path.is_relative_to(self.files.root) else ""
            if text:
                return text
        return ""

    def _meant(self, module: str | None, script: str, file: Path) -> Iterator[Path]:
        if module is None:
            found = self._resolved(script, file, shortest=1)
            if found is not None:
                yield found
            return
        path = module.replace(".", "/")
        for written in (f"{path}.py", f"{path}/__main__.py"):
            found = self._resolved(written, file, shortest=written.count("/") + 1)
            if found is not None:
                yield found

    def _resolved(self, written: str, file: Path, *, shortest: int) -> Path | None:
        """The project's file that a command means: from where the command is written, from the root, or the only one
        whose path ends in the most of what is written, at least in ``shortest`` parts of it."""
        parts: list[str] = []
        for part in written.split("/"):
            if "$" in part or "{" in part or "<" in part:
                parts.clear()  # What is before is not known.
            elif part not in ("", ".", ".."):
                parts.append(part)
        if not parts:
            return None
        for folder in (file.parent, self.files.root):
            path = Path(os.path.normpath(folder.joinpath(*parts)))
            if path in self.files:
                return path
        # The project may itself be in a folder that the command names.
        for start in range(len(parts) - shortest + 1):
            ending = tuple(parts[start:])
            fitting = [path for path in self.files.all() if path.parts[-len(ending) :] == ending]
            if fitting:
                return fitting[0] if len(fitting) == 1 else None
        return None


def _given(option: str) -> Callable[[str], list[str]]:
    """Finds the values in ``--grad-steps 4``, ``grad_steps=4`` and ``grad_steps: 4``."""
    name = option.lstrip("-")
    written = re.escape(option) if len(name) == 1 else "[-_]".join(re.split("[-_]", name))
    return re.compile(
        rf"(?<![\w.]){written}(?![\w.-])[\"']?(?:[ \t]*[=:][ \t]*|[ \t]+)[\"']?([^\s\"'`]+)"
    ).findall


def _leaves_one_gpu(command: str, *, otherwise: bool) -> bool:
    """Whether what is written before a command shows it one GPU; ``otherwise``: where nothing is said of GPUs."""
    said = _VISIBLE.findall(command)
    return _ONE_DEVICE.fullmatch("".join(said[-1])) is not None if said else otherwise


def _with_values(command: str, values: dict[str, str]) -> str:
    """A command with the values that the script gave to variables before."""
    return _VARIABLE.sub(lambda found: values.get(found[1] or found[2], found[0]), command)


def _is_quoted(before: str) -> bool:
    """Whether what follows stands in a string: a part of a command that is put together elsewhere."""
    return any(before.count(quote) % 2 for quote in "\"'")


def _text_of(file: Path) -> str:
    try:
        return read_plain(file, _LARGEST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _commands(text: str) -> Iterator[tuple[int, str]]:
    """The lines with the numbers (1-based) of their beginnings, those that go on after a backslash as one."""
    begun: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.endswith("\\"):
            begun.append(line[:-1])
        else:
            yield number - len(begun), " ".join([*begun, line])
            begun.clear()
    if begun:
        yield number - len(begun) + 1, " ".join(begun)


def command_files(root: Path) -> Iterator[Path]:
    """The files below a folder that may hold commands, those of environments and caches left out."""
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if is_ours(name))
        for name in sorted(names):
            if name in _NAMES or Path(name).suffix in _SUFFIXES:
                yield Path(folder) / name
                count += 1
                if count == _MOST_FILES:
                    return
