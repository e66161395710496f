"""What a shell script starts: the script or module, its launcher, its arguments. Read, never run.

Understood are assignments (``A=1``, ``export A=1``), ``$A``, ``${A}``, ``${A:-default}``, ``$1`` and ``$@``, and the
launchers of `Style`. What a shell would have to be asked for (loops, functions, command substitution) is left as it
stands; a launch that depends on it is refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.launch_plan import Style

SUFFIXES = frozenset({".sh", ".bash", ".slurm", ".sbatch"})
_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*|\d)(?::?-([^{}]*))?\}|([A-Za-z_]\w*|\d))")
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
_BEFORE = frozenset({"exec", "nohup", "time", "env", "srun", "uv", "poetry", "run", "xvfb-run"})
_OTHERS = re.compile(r"(?:mpirun|mpiexec|horovodrun|jsrun|colossalai|composer|torchx|ray|tune)\Z")
_OF_MODULES = {
    "torch.distributed.run": Style.TORCHRUN,
    "torch.distributed.launch": Style.TORCHRUN,
    "accelerate.commands.launch": Style.ACCELERATE,
    "deepspeed.launcher.runner": Style.DEEPSPEED,
}
_WITHOUT_VALUE = re.compile(
    r"--(standalone|use[_-]env|multi_gpu|use_fsdp|use_deepspeed|no[_-]python|same_network|no_local_rank|cpu|quiet"
    r"|force_multi)\Z|-q\Z"
)
"""Options of the launchers that stand alone (torch 2.13.0, accelerate 1.15.0, deepspeed 0.19.8)."""
_OURS = frozenset({"CUDA_VISIBLE_DEVICES", "MASTER_ADDR", "MASTER_PORT"})
"""A launch of ours decides these."""


@dataclass(frozen=True, slots=True)
class ShellLaunch:
    """One command of a shell script that starts Python."""

    style: Style
    script: str
    """As it is written; empty where a module is started."""
    module: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    command: str


def launch_in(path: Path, given: Sequence[str] = ()) -> ShellLaunch:
    """The one launch of a shell script that is called with ``given``.

    Raises RunNotPossible where it has none, several, or one by a launcher that is not known.
    """
    try:
        text = path.read_text("utf-8", "replace")
    except OSError as error:
        raise RunNotPossible(_UNREAD.filled(path=path, reason=error.strerror)) from error
    found, other = _launches(text, given)
    if len(found) == 1:
        if "$" in found[0].script + found[0].module:
            raise RunNotPossible(_UNKNOWN.filled(path=path, command=found[0].command))
        return found[0]
    if found:
        commands = "; ".join(launch.command for launch in found[:4])
        raise RunNotPossible(_SEVERAL.filled(path=path, commands=commands))
    raise RunNotPossible((_OTHER if other else _NONE).filled(path=path, launcher=other))


def _launches(text: str, given: Sequence[str]) -> tuple[list[ShellLaunch], str]:
    """All of a script's launches, and a launcher that is not known."""
    values = {str(index): word for index, word in enumerate(given, 1)}
    exported: dict[str, str] = {}
    found: list[ShellLaunch] = []
    other = ""
    for line in _commands(text):
        words = _words(line, values, given)
        own: dict[str, str] = {}
        while words and (pair := _ASSIGNMENT.fullmatch(words[0])):
            own[pair[1]] = pair[2]
            words = words[1:]
        if words[:1] == ["export"]:
            pairs = (_ASSIGNMENT.fullmatch(word) for word in words[1:])
            exported.update({pair[1]: pair[2] for pair in pairs if pair})
            values.update(exported)
            continue
        if not words:
            values.update(own)
            continue
        launch = _launch(words, {**exported, **own}, line)
        if launch is not None:
            found.append(launch)
        elif _OTHERS.match(Path(words[0]).name):
            other = Path(words[0]).name
    return found, other


def _commands(text: str) -> Iterator[str]:
    """Lines, those that go on after a backslash as one; ``a && b`` and ``a; b`` are two."""
    joined = re.sub(r"\\\r?\n", " ", text)
    for line in joined.splitlines():
        lexer = shlex.shlex(line, posix=False, punctuation_chars=";&|")
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:
            continue
        command: list[str] = []
        for word in [*words, ";"]:
            if word.strip(";&|"):
                command.append(word)
                continue
            if command:
                yield " ".join(command)
            command = []


def _words(line: str, values: dict[str, str], given: Sequence[str]) -> list[str]:
    def value(found: re.Match[str]) -> str:
        name, default = found[1] or found[3], found[2]
        return values.get(name) or (default if default is not None else found[0])

    words: list[str] = []
    for word in line.split(" ") if not re.search(r"[\"']", line) else _split(line):
        if word.strip("\"'") in ("$@", "$*", "${@}"):
            words += given
            continue
        filled = word if word.startswith("'") else _VARIABLE.sub(value, word)
        # An unquoted value is split again, as a shell does.
        words += _split(filled, plain=True) if filled else []
    return words


def _split(text: str, *, plain: bool = False) -> list[str]:
    lexer = shlex.shlex(text, posix=plain)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return text.split()


def _launch(words: list[str], environment: dict[str, str], line: str) -> ShellLaunch | None:
    rest = list(words)
    while rest and rest[0] in _BEFORE:
        rest = rest[1:]
        while rest and rest[0].startswith("-"):
            rest = rest[1:]
    if not rest:
        return None
    head, rest = Path(rest[0]).name, rest[1:]
    style = None
    if head == "torchrun":
        style = Style.TORCHRUN
    elif head == "accelerate" and rest[:1] == ["launch"]:
        style, rest = Style.ACCELERATE, rest[1:]
    elif head == "deepspeed":
        style = Style.DEEPSPEED
    elif head == "fabric" and rest[:1] == ["run"]:
        style, rest = Style.FABRIC, rest[1:]
    elif _PYTHON.fullmatch(head):
        style = Style.PYTHON
        while rest and re.fullmatch(r"-[uOBEsI]+", rest[0]):
            rest = rest[1:]
        if rest[:1] == ["-m"] and rest[1:2] and rest[1] in _OF_MODULES:
            style, rest = _OF_MODULES[rest[1]], rest[2:]
    if style is None:
        return None
    kept = {name: value for name, value in environment.items() if name not in _OURS}
    return _target(style, rest, kept, line)


def _target(
    style: Style, rest: list[str], environment: dict[str, str], line: str
) -> ShellLaunch | None:
    """Pass the launcher's own options over to what it starts."""
    while rest:
        word, rest = rest[0], rest[1:]
        if word in ("-m", "--module"):
            return _made(style, "", rest[0], rest[1:], environment, line) if rest else None
        if not word.startswith("-"):
            is_file = word.endswith(".py") or "$" in word
            return _made(style, word, "", rest, environment, line) if is_file else None
        if style is not Style.PYTHON and "=" not in word and not _WITHOUT_VALUE.match(word):
            rest = rest[1:]
    return None


def _made(
    style: Style,
    script: str,
    module: str,
    arguments: list[str],
    environment: dict[str, str],
    line: str,
) -> ShellLaunch:
    return ShellLaunch(style, script, module, tuple(arguments), environment, line.strip())


_UNREAD = Translated("{path} cannot be read: {reason}", "无法读取 {path}：{reason}")
_NONE = Translated(
    "{path} starts no Python script that can be recognised. Name the script itself.",
    "{path} 没有启动任何可识别的 Python 脚本。请直接给出该脚本。",
)
_OTHER = Translated(
    "{path} starts its script with {launcher}, which cannot be rehearsed. Name the script itself, "
    "with --launcher torchrun if it reads RANK and WORLD_SIZE.",
    "{path} 用 {launcher} 启动脚本，无法预演。请直接给出该脚本；如果它读取 RANK 和 WORLD_SIZE，"
    "请加上 --launcher torchrun。",
)
_SEVERAL = Translated(
    "{path} starts several: {commands}. Name the script that is meant.",
    "{path} 启动了多个脚本：{commands}。请给出所指的脚本。",
)
_UNKNOWN = Translated(
    "What {path} starts depends on variables that are not set in it: {command}",
    "{path} 启动什么取决于其中未设置的变量：{command}",
)
