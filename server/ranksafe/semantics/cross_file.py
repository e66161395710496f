"""What the files of a project say to each other: module names, classes, constants, who trains whose models."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """A command in one of the project's own files."""

    file: Path
    line: int
    """From 1."""
    text: str
    """The command on one line."""
    one_gpu: bool = False
    """Whether it is certain that the process sees one GPU only (CUDA_VISIBLE_DEVICES)."""
    other_strategy: bool = False
    """Whether it tells Accelerate to use FSDP, DeepSpeed or Megatron-LM, instead of DistributedDataParallel."""


class Project(Protocol):
    """Cross-file questions. Answers are plain data and hold until the project says that it changed."""

    def module_name(self, path: Path) -> str:
        """Dotted name of the module in a file."""

    def import_name(self, importer: str | None, module: str) -> str:
        """What ``import module`` means in the file ``importer``: a project module's name, else the name as it is."""

    def resolve(self, name: str) -> str:
        """The name of the definition behind a dotted name, re-exports followed; the name itself when unknown."""

    def export(self, module: str, name: str) -> str | None:
        """What ``from module import *`` brings under ``name``."""

    def is_class(self, name: str) -> bool:
        """Whether a dotted name is a class of the project."""

    def bases(self, name: str) -> list[str]:
        """Canonical names of a project class's bases."""

    def constant(self, name: str) -> ast.expr | None:
        """The literal that a module-level name of the project is bound to, when there is just one."""

    def definition_file(self, name: str) -> tuple[str, Path] | None:
        """The module, and its file, that defines the function or class with a dotted name (of a method: its class),
        re-exports followed; None when it is no definition of the project."""

    def text_of(self, path: Path) -> str | None:
        """The text of a file: the editor's where it is open, else the disk's; None when it cannot be read."""

    def number_of_files(self) -> int:
        """How many Python files the project has."""

    def users_mention(self, path: Path, word: str) -> bool:
        """Whether a word stands, outside comments, in a file or in one that imports it, directly or through others."""

    def users_saying(self, path: Path, word: str, *, asker: Path) -> list[Path]:
        """The other files that import a file, directly or through others, and in which a word stands outside comments;
        what is found in ``asker`` depends on them from now on."""

    def files_saying(self, word: str, *, asker: Path) -> list[Path]:
        """All files in which a word stands outside comments; what is found in ``asker`` depends on them from now on."""

    def imported_saying(self, path: Path, word: str) -> list[Path]:
        """The files that a file imports, directly or through others, in which a word stands outside comments."""

    def launches_of(self, path: Path) -> list[LaunchCommand]:
        """The commands that start a file, or one that imports it, with one process per GPU."""

    def plain_start_of(self, path: Path) -> LaunchCommand | None:
        """A command that starts a file with plain python, if none starts it, or one that imports it, otherwise."""

    def runs_on_one_gpu(self, path: Path) -> bool:
        """Whether commands start a file, or one that imports it, with plain python, and every one leaves one GPU
        visible."""

    def launches_any(self, asker: Path) -> bool:
        """Whether a command starts any file of the project with one process per GPU."""

    def runs_in_one_process(self, path: Path) -> bool:
        """Whether launchers start a file, or one that imports it, and every command makes one process."""

    def values_given(self, option: str, asker: Path) -> list[str]:
        """What the project's commands and files of settings give an option, as written; what is found in ``asker``
        depends on them from now on."""

    def trains_with_trainer(self, module: str) -> bool:
        """Whether a file that imports the module builds a Trainer and shows no launcher."""

    def wraps_data_parallel(self, module: str) -> bool:
        """Whether a file that imports the module wraps a model in nn.DataParallel."""
