"""What the user asked to be checked, and what they said of the launch: ``pyproject.toml`` and ``ranksafe.toml``.

A configuration holds analysis keys only: nothing in it can start a process or name an interpreter, so a committed
file is harmless in a workspace that is not trusted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from ranksafe.checker.rule import RuleMetadata, Stability
from ranksafe.launch.context import Launcher
from ranksafe.launch.detect import Statement
from ranksafe.localization import Translated
from ranksafe.settings import Count, Expected, Flag, parse_toml, read
from ranksafe.source.plain_files import read_plain

_MOST_BYTES = 4 << 20
FILE_NAMES = ("ranksafe.toml", "pyproject.toml")
"""In the order in which they win within one folder."""

DEFAULT_EXCLUDE = (
    ".git",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".venv",
    ".vscode",
    "__pycache__",
    "__pypackages__",
    "_build",
    "build",
    "node_modules",
    "site-packages",
    "venv",
)
"""Folders that hold nobody's own code."""


@dataclass(frozen=True, slots=True)
class ConfigurationProblem:
    """Something in a configuration file that could not be used. ``line`` is 1-based, None when unknown."""

    path: Path
    message: Translated
    line: int | None = None


_ASSUMED_VERSION = r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*==\s*(\S+)\s*"
_ASSUMPTIONS = Translated(
    'a list such as `["transformers==4.51.3"]`', '形如 `["transformers==4.51.3"]` 的列表'
)


def parse_assumption(text: str) -> tuple[str, str] | None:
    """``transformers==4.51.3`` as (name, version), or None when it is not of that form."""
    match = re.fullmatch(_ASSUMED_VERSION, text)
    return (normalized_name(match[1]), match[2]) if match else None


def normalized_name(distribution: str) -> str:
    """A distribution's name as PyPI compares them: lower case, runs of ``-_.`` as one dash."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


Texts = Annotated[tuple[str, ...], Expected(Translated("a list of strings", "字符串列表"))]
NamedLauncher = Annotated[
    Launcher,
    Expected(
        Translated(
            "one of `python`, `accelerate`, `torchrun`",
            "以下之一：`python`、`accelerate`、`torchrun`",
        ),
        written=Literal["python", "accelerate", "torchrun"],
        convert=Launcher,
    ),
]
Assumption = Annotated[
    tuple[str, str],
    Expected(_ASSUMPTIONS, pattern=_ASSUMED_VERSION, written=str, convert=parse_assumption),
]
Assumptions = Annotated[
    tuple[Assumption, ...], Expected(_ASSUMPTIONS, convert=lambda pairs: tuple(sorted(pairs)))
]


@dataclass(frozen=True, slots=True)
class AnalysisKeys:
    """What is said of an analysis; None and an empty `assume` say nothing.

    The text below each key is its description in the JSON schema.
    """

    select: Texts | None = None
    """Rules to run: codes (`RS201`), their prefixes (`RS2`), names (`implicit-data-parallel`) or `ALL`. Default: every
    stable rule, and with `preview` every rule."""
    ignore: Texts | None = None
    """Rules not to run, named as in `select`; the longer of two selectors wins."""
    preview: Flag | None = None
    """Run preview rules too."""
    gpus: Count | None = None
    """Number of GPUs the scripts will see."""
    launcher: NamedLauncher | None = None
    """How the scripts are started."""
    assume: Assumptions = ()
    """Versions the scripts will meet, each as `NAME==VERSION`."""

    def statement(self, source: str) -> Statement:
        """What is said of the launch; ``source`` names the file or the settings it came from."""
        return Statement(source, self.gpus, self.launcher, dict(self.assume))

    def selectors(self) -> tuple[str, ...]:
        """Every selector used, for checking them against the rules there are."""
        return (*(self.select or ()), *(self.ignore or ()))


PerFileIgnores = Annotated[
    tuple[tuple[str, tuple[str, ...]], ...],
    Expected(
        Translated("a table from file patterns to lists of rules", "从文件模式到规则列表的表"),
        written=dict[str, tuple[str, ...]],
        convert=lambda table: tuple(table.items()),
    ),
]


@dataclass(frozen=True, slots=True)
class Configuration(AnalysisKeys):
    """What to check and what is said of the launch."""

    per_file_ignores: PerFileIgnores = ()
    """Rules not to run in some files: glob patterns relative to this file, each with a list of rules as in `select`."""
    exclude: Texts = ()
    """Files and folders not to check: glob patterns relative to this file."""
    root: Path | None = None
    """The folder of the configuration file; patterns are relative to it."""

    def enables(self, metadata: RuleMetadata, path: Path | None = None) -> bool:
        """Whether a rule is to run (in the file ``path``, if one is given).

        The longer selector wins between ``select`` and ``ignore``, as in ruff: ``select = ["RS201"]`` with
        ``ignore = ["RS2"]`` runs RS201. A preview rule runs with ``preview``, or when its code or name is selected.
        """
        selected = max((_match(text, metadata) for text in self.select or ()), default=0)
        if not self.select:
            selected = 1
        ignored = max((_match(text, metadata) for text in self.ignore or ()), default=0)
        if selected == 0 or ignored >= selected:
            return False
        if metadata.stability is Stability.PREVIEW and not self.preview and selected < _EXACT:
            return False
        return path is None or not self.ignored_in(path, metadata)

    def ignored_in(self, path: Path, metadata: RuleMetadata) -> bool:
        """Whether ``per-file-ignores`` turn the rule off in ``path``."""
        return any(
            any(_match(text, metadata) for text in selectors) and self._matches(path, pattern)
            for pattern, selectors in self.per_file_ignores
        )

    def excludes(self, path: Path) -> bool:
        """Whether a file or folder found while walking a folder is left out."""
        return path.name in DEFAULT_EXCLUDE or any(
            self._matches(path, pattern) for pattern in self.exclude
        )

    def with_settings(self, said: AnalysisKeys) -> Configuration:
        """A copy in which what an editor's settings or the command line say wins."""
        values = {field.name: getattr(said, field.name) for field in fields(AnalysisKeys)}
        values["assume"] = tuple(sorted({**dict(self.assume), **dict(said.assume)}.items()))
        return replace(self, **{name: value for name, value in values.items() if value is not None})

    def selectors(self) -> tuple[str, ...]:
        """Every selector used anywhere."""
        per_file = (text for _, selectors in self.per_file_ignores for text in selectors)
        return (*AnalysisKeys.selectors(self), *per_file)

    def _matches(self, path: Path, pattern: str) -> bool:
        return _glob_matches(_relative(path, self.root), pattern)


@dataclass(frozen=True, slots=True)
class LoadedConfiguration:
    """A configuration, the file it came from (None: defaults) and what in that file could not be used."""

    configuration: Configuration
    source: Path | None = None
    problems: tuple[ConfigurationProblem, ...] = ()


def load_configuration(path: Path) -> LoadedConfiguration:
    """The configuration for ``path`` (a file or a folder): the nearest ``ranksafe.toml``, or ``pyproject.toml`` with a
    ``[tool.ranksafe]`` table, going up. Never raises: what cannot be used becomes a problem."""
    start = path if path.is_dir() else path.parent
    for folder in (start.absolute(), *start.absolute().parents):
        for name in FILE_NAMES:
            candidate = folder / name
            if candidate.is_file():
                loaded = read_configuration_file(candidate)
                if loaded is not None:
                    return loaded
    return LoadedConfiguration(Configuration())


def read_configuration_file(file: Path) -> LoadedConfiguration | None:
    """The configuration in one file; None for a ``pyproject.toml`` that says nothing about ranksafe."""
    is_pyproject = file.name == "pyproject.toml"
    try:
        content = read_plain(file, _MOST_BYTES)
        if is_pyproject and b"ranksafe" not in content:
            return None
        document = parse_toml(content.decode("utf-8-sig"))
    except OSError as error:
        reason = error.strerror or str(error)
        return _broken(file, _UNREADABLE.filled(reason=reason))
    except ValueError as error:
        if is_pyproject and b"[tool.ranksafe" not in content:
            return None
        return _broken(file, _NOT_TOML.filled(reason=str(error)), _line_in(str(error)))
    if not is_pyproject:
        return _interpret(file, document)
    tool = document.get("tool")
    table = tool.get("ranksafe") if isinstance(tool, dict) else None
    if table is None:
        return None
    return _interpret(file, table) if isinstance(table, dict) else _broken(file, _NO_TABLE)


def selector_matches(selector: str, metadata: RuleMetadata) -> bool:
    """Whether ``selector`` (code, prefix, name or ``ALL``) names the rule."""
    return _match(selector, metadata) > 0


_EXACT = 100


def _match(selector: str, metadata: RuleMetadata) -> int:
    """How specifically a selector names the rule: 0 not at all, more for longer prefixes."""
    if selector == metadata.name or selector.upper() == metadata.code:
        return _EXACT
    if selector.upper() == "ALL":
        return 1
    prefix = selector.upper()
    return len(prefix) if prefix.startswith("RS") and metadata.code.startswith(prefix) else 0


def _relative(path: Path, root: Path | None) -> str:
    absolute = path.absolute()
    if root is None:
        return absolute.as_posix().lstrip("/")
    try:
        return absolute.relative_to(root).as_posix()
    except ValueError:
        return absolute.as_posix().lstrip("/")


@lru_cache(maxsize=4096)
def _glob_matches(relative: str, pattern: str) -> bool:
    """As users of ruff expect: ``tests/*`` covers the tree under tests, a bare name matches at any depth."""
    pattern = pattern.removeprefix("./").rstrip("/")
    parts = relative.split("/")
    if "/" not in pattern:
        return any(fnmatchcase(part, pattern) for part in parts)
    pattern = pattern.lstrip("/")
    prefixes = ("/".join(parts[: end + 1]) for end in range(len(parts)))
    variants = [pattern]
    if pattern.startswith("**/"):
        variants.append(pattern[3:])
    return any(fnmatchcase(prefix, variant) for prefix in prefixes for variant in variants)


_UNREADABLE = Translated("cannot be read: {reason}", "无法读取：{reason}")
_NOT_TOML = Translated("is not valid TOML: {reason}", "不是有效的 TOML：{reason}")
_NO_TABLE = Translated(
    "`tool.ranksafe` must be a table: [tool.ranksafe]", "`tool.ranksafe` 必须是表：[tool.ranksafe]"
)


def _broken(file: Path, message: Translated, line: int | None = None) -> LoadedConfiguration:
    problem = ConfigurationProblem(file, message, line)
    return LoadedConfiguration(Configuration(root=file.parent.absolute()), file, (problem,))


def _line_in(error: str) -> int | None:
    match = re.search(r"line (\d+)", error)
    return int(match[1]) if match else None


def _interpret(file: Path, table: Mapping[str, Any]) -> LoadedConfiguration:
    configuration, problems = read(Configuration, table)
    return LoadedConfiguration(
        replace(configuration, root=file.parent.absolute()),
        file,
        tuple(ConfigurationProblem(file, problem) for problem in problems),
    )
