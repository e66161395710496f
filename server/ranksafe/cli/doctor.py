"""``ranksafe doctor``: what a run on this machine would find, and what it lacks."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from ranksafe.cli.editors import editors
from ranksafe.cli.terminal import fail, harmless, note
from ranksafe.launch.interpreter import find_interpreter
from ranksafe.localization import Language, Translated
from ranksafe.rehearsal.errors import RehearsalNotPossible
from ranksafe.rehearsal.isolation import outlook
from ranksafe.rehearsal.native.compiler import find_compiler
from ranksafe.runs.directory import cache_directory
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.interpreter import folder_of_torch
from ranksafe.runs.model import RunRequest
from ranksafe.runs.targets import target_named
from ranksafe.runs.targets.protocol import Listener
from ranksafe.runs.warm import LivingTemplate, living_templates

_TARGET_HELP = Translated(
    "target to look at: local, simulated:N, ssh:HOST or slurm:NAME (default: local)",
    "要检查的目标：local、simulated:N、ssh:HOST 或 slurm:NAME（默认：local）",
)
_PYTHON_HELP = Translated(
    "the Python that has torch (default: the active or .venv one)",
    "装有 torch 的 Python（默认：当前激活的环境或 .venv）",
)
_FILES = Translated("files of runs: {path}", "运行文件位置：{path}")
_MISSING = Translated(
    "{name} is missing: python -m pip install {name}", "缺少 {name}：python -m pip install {name}"
)
_TORCH_ELSEWHERE = Translated(
    "torch is in {folder}: --python {python}", "torch 位于 {folder}：--python {python}"
)
_NOT_STARTED = Translated(
    "{python} is of this folder, not of an active environment, and is started only when it is named: "
    "ranksafe doctor --python {python}",
    "{python} 属于此文件夹而非已激活的环境，只有明确指定时才会启动：ranksafe doctor --python {python}",
)
_COMPILER = Translated("C++ compiler: {version}", "C++ 编译器：{version}")
_WARM = Translated(
    "ready for warm rehearsals: process {process} with {packages} imported, {memory} MiB, last used {idle} s ago",
    "已为热启动预演就绪：进程 {process} 已导入 {packages}，占用 {memory} MiB，{idle} 秒前使用过",
)
_NO_EDITOR = Translated(
    "no editor was found on PATH that can show findings", "PATH 中没有找到能显示提示的编辑器"
)
_ON_THIS_MACHINE = ("local", "simulated")


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `doctor`."""
    parser.add_argument(
        "--target", default="local", metavar="T", help=_TARGET_HELP.in_language(language)
    )
    parser.add_argument(
        "--python", type=Path, metavar="PATH", help=_PYTHON_HELP.in_language(language)
    )


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Print what was found; 0 when a run can start, 2 when it cannot."""
    request = RunRequest(
        script=Path.cwd() / "script.py", target=arguments.target, interpreter=arguments.python
    )
    here = Path.cwd()
    own = find_interpreter(here, {})
    if arguments.python is None and arguments.target.partition(":")[0] in _ON_THIS_MACHINE:
        if own is not None and own == find_interpreter(here, os.environ):
            # A folder that was downloaded may have brought it.
            return fail(_NOT_STARTED.filled(python=own).in_language(language), 2)
    try:
        listener = Listener(say=lambda text: note(text.in_language(language)))
        found = target_named(arguments.target).probe(request, listener)
    except RunNotPossible as error:
        return fail(error.message.in_language(language), 2)
    for sentence in found:
        print(harmless(sentence.in_language(language)))
    text = "\n".join(sentence.en for sentence in found)
    missing = [name for name in ("torch", "accelerate") if f"\n{name} " not in f"\n{text}"]
    further = [_FILES.filled(path=cache_directory() / "runs")]
    further += [_MISSING.filled(name=name) for name in missing]
    if arguments.target.partition(":")[0] in _ON_THIS_MACHINE:
        further += _of_this_machine(arguments.target, "torch" in missing)
    for sentence in further:
        print(harmless(sentence.in_language(language)))
    return 2 if missing else 0


def _of_this_machine(target: str, torch_is_missing: bool) -> Iterator[Translated]:
    """What a run there does not ask for, but its user may."""
    if torch_is_missing:
        yield from _torch_elsewhere()
    try:
        yield _COMPILER.filled(version=find_compiler().version)
    except RehearsalNotPossible as error:
        yield error.message
    if target == "local":
        yield outlook()
    yield from (_described(each) for each in living_templates())
    told = tuple(editors(Path.home(), os.environ))
    yield from told or (_NO_EDITOR,)


def _described(template: LivingTemplate) -> Translated:
    return _WARM.filled(
        process=template.process,
        memory=round(template.memory_bytes / 2**20),
        packages=", ".join(dict.fromkeys(name.partition(".")[0] for name in template.imports)),
        idle=round(template.idle_seconds),
    )


def _torch_elsewhere() -> Iterator[Translated]:
    """The first Python at hand that has torch."""
    on_path = [Path(name) for word in ("python3", "python") if (name := shutil.which(word))]
    at_hand = [find_interpreter(Path.cwd(), {}), find_interpreter(Path.cwd(), os.environ), *on_path]
    for python in [*filter(None, at_hand), Path(sys.executable)]:
        folder = folder_of_torch(python)
        if folder is not None:
            yield _TORCH_ELSEWHERE.filled(folder=folder, python=python)
            return
