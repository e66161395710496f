"""``ranksafe doctor``: what a run on this machine would find, and what it lacks."""

from __future__ import annotations

import argparse
from pathlib import Path

from ranksafe.cli.terminal import fail, harmless, note
from ranksafe.localization import Language, Translated
from ranksafe.runs.directory import cache_directory
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import RunRequest
from ranksafe.runs.targets import target_named
from ranksafe.runs.targets.protocol import Listener

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
    try:
        listener = Listener(say=lambda text: note(text.in_language(language)))
        found = target_named(arguments.target).probe(request, listener)
    except RunNotPossible as error:
        return fail(error.message.in_language(language), 2)
    for sentence in found:
        print(harmless(sentence.in_language(language)))
    print(_FILES.filled(path=cache_directory() / "runs").in_language(language))
    text = "\n".join(sentence.en for sentence in found)
    missing = [name for name in ("torch", "accelerate") if f"\n{name} " not in f"\n{text}"]
    for name in missing:
        print(_MISSING.filled(name=name).in_language(language))
    return 2 if missing else 0
