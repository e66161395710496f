"""What the user asked to be checked, and what they said of the launch: ``pyproject.toml`` and ``ranksafe.toml``.

A configuration holds analysis keys only: nothing in it can start a process or name an interpreter, so a committed
file is harmless in a workspace that is not trusted.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from ranksafe.checker.rule import RuleMetadata, Stability
from ranksafe.launch.context import Launcher
from ranksafe.launch.detect import Statement
from ranksafe.localization import Translated

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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
    "node_modules",
    "site-packages",
    "venv",
)
"""Folders that hold nobody's own code."""

_ASSUMED_VERSION = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*==\s*(\S+)\s*$")


@dataclass(frozen=True, slots=True)
class ConfigurationProblem:
    """Something in a configuration file that could not be used. ``line`` is 1-based, None when unknown."""

    path: Path
    message: Translated
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Configuration:
    """What to check and what is said of the launch.

    Selectors are codes (``RS201``), their prefixes (``RS2``), names (``implicit-data-parallel``) or ``ALL``.
    """

    select: tuple[str, ...] = ()
    """Empty: every stable rule (every rule with ``preview``)."""
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Glob patterns relative to `root`, each with the selectors ignored in the files that match."""
    gpus: int | None = None
    launcher: Launcher | None = None
    assume: tuple[tuple[str, str], ...] = ()
    """Distribution name (lower case) and version, sorted."""
    exclude: tuple[str, ...] = ()
    """Glob patterns relative to `root`, on top of `DEFAULT_EXCLUDE`."""
    preview: bool = False
    root: Path | None = None
    """The folder of the configuration file; patterns are relative to it."""

    def enables(self, metadata: RuleMetadata, path: Path | None = None) -> bool:
        """Whether a rule is to run (in the file ``path``, if one is given).

        The longer selector wins between ``select`` and ``ignore``, as in ruff: ``select = ["RS201"]`` with
        ``ignore = ["RS2"]`` runs RS201. A preview rule runs with ``preview``, or when its code or name is selected.
        """
        selected = max((_match(text, metadata) for text in self.select), default=0)
        if not self.select:
            selected = 1
        ignored = max((_match(text, metadata) for text in self.ignore), default=0)
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

    def with_settings(
        self,
        *,
        select: Iterable[str] | None = None,
        ignore: Iterable[str] | None = None,
        preview: bool | None = None,
        gpus: int | None = None,
        launcher: Launcher | None = None,
        assume: Iterable[tuple[str, str]] = (),
    ) -> Configuration:
        """A copy in which what an editor's settings or the command line say wins. None and () leave a value alone."""
        merged = dict(self.assume)
        merged.update(assume)
        return replace(
            self,
            select=self.select if select is None else tuple(select),
            ignore=self.ignore if ignore is None else tuple(ignore),
            preview=self.preview if preview is None else preview,
            gpus=self.gpus if gpus is None else gpus,
            launcher=self.launcher if launcher is None else launcher,
            assume=tuple(sorted(merged.items())),
        )

    def statement(self, source: str) -> Statement:
        """What the configuration says of the launch; ``source`` names the file or the settings it came from."""
        return Statement(source, self.gpus, self.launcher, dict(self.assume))

    def selectors(self) -> tuple[str, ...]:
        """Every selector used anywhere, for checking them against the rules there are."""
        per_file = (text for _, selectors in self.per_file_ignores for text in selectors)
        return (*self.select, *self.ignore, *per_file)

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
        text = file.read_text(encoding="utf-8-sig")
        document = tomllib.loads(text)
    except OSError as error:
        reason = error.strerror or str(error)
        return _broken(file, _UNREADABLE.filled(reason=reason))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        if is_pyproject and not _mentions_ranksafe(file):
            return None
        # A recursion error is tomllib's answer to brackets in brackets in brackets.
        return _broken(file, _NOT_TOML.filled(reason=str(error)), _line_in(str(error)))
    if not is_pyproject:
        return _interpret(file, document)
    tool = document.get("tool")
    table = tool.get("ranksafe") if isinstance(tool, dict) else None
    if table is None:
        return None
    return _interpret(file, table) if isinstance(table, dict) else _broken(file, _NO_TABLE)


def parse_assumption(text: str) -> tuple[str, str] | None:
    """``transformers==4.51.3`` as (name, version), or None when it is not of that form."""
    match = _ASSUMED_VERSION.match(text)
    return (normalized_name(match[1]), match[2]) if match else None


def normalized_name(distribution: str) -> str:
    """A distribution's name as PyPI compares them: lower case, runs of ``-_.`` as one dash."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


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
_UNKNOWN_KEY = Translated(
    "unknown key `{key}` (known: {known})", "未知的配置项 `{key}`（可用：{known}）"
)
_WRONG_TYPE = Translated("`{key}` must be {expected}", "`{key}` 必须是{expected}")
_LIST_OF_TEXT = Translated("a list of strings", "字符串列表")
_TABLE_OF_LISTS = Translated(
    "a table from file patterns to lists of rules", "从文件模式到规则列表的表"
)
_POSITIVE = Translated("a whole number of at least 1", "不小于 1 的整数")
_BOOLEAN = Translated("true or false", "布尔值 true 或 false")
_LAUNCHERS = Translated(
    "one of `python`, `accelerate`, `torchrun`", "以下之一：`python`、`accelerate`、`torchrun`"
)
_ASSUMPTIONS = Translated(
    'a list such as `["transformers==4.51.3"]`', '形如 `["transformers==4.51.3"]` 的列表'
)


def _broken(file: Path, message: Translated, line: int | None = None) -> LoadedConfiguration:
    problem = ConfigurationProblem(file, message, line)
    return LoadedConfiguration(Configuration(root=file.parent.absolute()), file, (problem,))


def _line_in(error: str) -> int | None:
    match = re.search(r"line (\d+)", error)
    return int(match[1]) if match else None


def _mentions_ranksafe(file: Path) -> bool:
    """A broken pyproject.toml is the concern of ranksafe only if ranksafe is configured in it."""
    return b"[tool.ranksafe" in file.read_bytes()


class _Wrong(Exception):
    """A value of the wrong kind; carries what was expected."""

    def __init__(self, expected: Translated) -> None:
        super().__init__(expected.en)
        self.expected = expected


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _Wrong(_LIST_OF_TEXT)
    return tuple(value)


def _per_file(value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, Mapping):
        raise _Wrong(_TABLE_OF_LISTS)
    try:
        return tuple((str(pattern), _texts(selectors)) for pattern, selectors in value.items())
    except _Wrong as error:
        raise _Wrong(_TABLE_OF_LISTS) from error


def _gpus(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _Wrong(_POSITIVE)
    return value


def _launcher(value: Any) -> Launcher:
    known = {launcher.value: launcher for launcher in Launcher if launcher is not Launcher.UNKNOWN}
    if not isinstance(value, str) or value not in known:
        raise _Wrong(_LAUNCHERS)
    return known[value]


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong(_BOOLEAN)
    return value


def _assume(value: Any) -> tuple[tuple[str, str], ...]:
    parsed = [parse_assumption(text) for text in _texts(value)]
    if any(item is None for item in parsed):
        raise _Wrong(_ASSUMPTIONS)
    return tuple(sorted(item for item in parsed if item is not None))


_READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "assume": ("assume", _assume),
    "exclude": ("exclude", _texts),
    "gpus": ("gpus", _gpus),
    "ignore": ("ignore", _texts),
    "launcher": ("launcher", _launcher),
    "per-file-ignores": ("per_file_ignores", _per_file),
    "preview": ("preview", _boolean),
    "select": ("select", _texts),
}
"""Keys of the file, each with the field of `Configuration` and how to read it."""


def _interpret(file: Path, table: Mapping[str, Any]) -> LoadedConfiguration:
    fields: dict[str, Any] = {}
    problems: list[ConfigurationProblem] = []
    for key, value in table.items():
        if key not in _READERS:
            known = ", ".join(sorted(_READERS))
            problems.append(ConfigurationProblem(file, _UNKNOWN_KEY.filled(key=key, known=known)))
            continue
        field, read = _READERS[key]
        try:
            fields[field] = read(value)
        except _Wrong as error:
            message = _WRONG_TYPE.filled(key=key, expected=error.expected)
            problems.append(ConfigurationProblem(file, message))
    configuration = Configuration(root=file.parent.absolute(), **fields)
    return LoadedConfiguration(configuration, file, tuple(problems))
