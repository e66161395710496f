"""Which arguments of a script decide how much memory it takes: those given, and those its text declares."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

from ranksafe.source.parsing import parse_python
from ranksafe.source.position import Edit, Range
from ranksafe.source.text import SourceText

_LARGEST_SCRIPT = 2 << 20
_DECLARING_CALLS = frozenset({"add_argument", "option"})
"""Of argparse's parsers; of click."""
_PARSERS_OF_CLASSES = frozenset({"HfArgumentParser", "TrlParser"})
_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})
_OPTION = re.compile(r"(--[A-Za-z][\w.-]*)(?:=(.*))?\Z", re.DOTALL)
_SETTING = re.compile(r"(\+{0,2}[A-Za-z][\w.]*)=(.*)\Z", re.DOTALL)
_BARE = re.compile(r"\d+|True|False")
_MOST_BASES = 20


class What(str, Enum):
    """What an argument decides."""

    MICRO_BATCH = "micro-batch"
    ACCUMULATION = "accumulation"
    WHOLE_BATCH = "whole-batch"
    """From which the script works out the accumulation itself."""
    CHECKPOINTING = "checkpointing"
    PRECISION = "precision"
    LENGTH = "length"


class Form(Enum):
    """How an argument is typed."""

    WORD = "--name value"
    EQUALS = "--name=value"
    SETTING = "name=value"
    SWITCH = "--name"
    """Without a value: there or not."""
    WRITTEN = "in the text"
    """In the script's own text, and nowhere else."""


@dataclass(frozen=True, slots=True)
class Literal:
    """Where a value stands in a script's text, or could stand."""

    file: Path
    range: Range
    quote: str = ""
    """Around it."""
    before: str = ""
    """What has to stand before it, where nothing stands there yet."""

    def set_to(self, value: str) -> Edit:
        """The edit that puts another value there."""
        quote = self.quote or ("" if _BARE.fullmatch(value) else '"')
        return Edit(self.range, f"{self.before}{quote}{value}{quote}")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a script."""

    spelling: str
    """With its dashes, if any."""
    form: Form
    value: str
    """Given, or the declared default."""
    at: int | None = None
    """The last word that gives it, among the script's; None: it is not given."""
    literal: Literal | None = None
    """Of its value, or default, where that is written in the script itself and not given."""

    @property
    def key(self) -> str:
        """Its name, however it is typed."""
        return key_of(self.spelling)

    @property
    def number(self) -> int | None:
        """Its value, where that is a whole number above zero."""
        return int(self.value) if re.fullmatch(r"[1-9]\d{0,6}", self.value) else None

    def set_in(self, words: Sequence[str], value: str) -> list[str]:
        """The script's words with another value; as they are, where it is not one of them."""
        if self.form is Form.WRITTEN:
            return list(words)
        typed = [self.spelling, value] if self.form is Form.WORD else [f"{self.spelling}={value}"]
        if self.form is Form.SWITCH:
            typed = [self.spelling]
        if self.at is None:
            return [*words, *typed]
        last = self.at + len(typed)
        return [*words[: self.at], *typed, *words[last:]]


@dataclass(frozen=True, slots=True)
class Exposed:
    """What can be changed, each argument with the value that would be set where only one comes into question."""

    numbers: Mapping[What, Argument]
    """Batches and lengths."""
    turned_on: Mapping[What, tuple[Argument, str]]
    """Checkpointing and precision, where nothing of the kind is on already."""

    @property
    def keys(self) -> frozenset[str]:
        """The names of all of them."""
        switches = (argument for argument, _ in self.turned_on.values())
        return frozenset(each.key for each in (*self.numbers.values(), *switches))


@dataclass(frozen=True, slots=True)
class _Known:
    what: What
    order: int
    values: Mapping[str, str]


def exposed(script: Path | None, words: Sequence[str], *, written: bool = False) -> Exposed:
    """Of a script (None, or not to be read: only what is given counts) that is called with ``words``.

    ``written``: with what calls in its text are given, and what they could be given.
    """
    found: dict[str, Argument] = {each.key: each for each in _declared_in(script, written)}
    for given in _given(words):
        # A switch that stands alone says nothing of how a value would be typed.
        found[given.key] = given
    known = _known()
    numbers: dict[What, Argument] = {}
    turned_on: dict[What, tuple[Argument, str]] = {}
    is_on: set[What] = set()
    for key in sorted((key for key in found if key in known), key=lambda key: known[key].order):
        argument, of = found[key], known[key]
        if not of.values:
            if argument.number is not None:
                numbers.setdefault(of.what, argument)
            continue
        value = _turned_on(argument.value.lower(), of.values)
        if value is not None:
            turned_on.setdefault(of.what, (argument, value))
        elif argument.value:
            is_on.add(of.what)
    return Exposed(numbers, {key: value for key, value in turned_on.items() if key not in is_on})


def _turned_on(value: str, values: Mapping[str, str]) -> str | None:
    """What to set in the place of a value; None: it is on, or not known."""
    return values.get(value) or (values.get("false") if value in _FALSE else None)


def key_of(spelling: str) -> str:
    """A name without its dashes, and with underscores in the place of those within."""
    return spelling.lstrip("-+").replace("-", "_")


@lru_cache(maxsize=1)
def _table() -> Any:
    return json.loads(Path(__file__).with_name("fit_arguments.json").read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def _known() -> dict[str, _Known]:
    return {
        name: _Known(What(row["what"]), order, row.get("values", {}))
        for order, row in enumerate(_table()["arguments"])
        for name in row["names"]
    }


def _given(words: Sequence[str]) -> Iterator[Argument]:
    """Of several with the same name the last counts, as for argparse."""
    for at, word in enumerate(words):
        option = _OPTION.match(word)
        if option is None:
            setting = _SETTING.match(word)
            if setting is not None:
                yield Argument(setting[1], Form.SETTING, setting[2], at)
            continue
        name, value = option[1], option[2]
        following = words[at + 1] if at + 1 < len(words) else ""
        if value is not None:
            yield Argument(name, Form.EQUALS, value, at)
        elif _is_value(name, following):
            yield Argument(name, Form.WORD, following, at)
        else:
            yield Argument(name, Form.SWITCH, "true", at)


def _is_value(name: str, word: str) -> bool:
    """Whether a word after an option is its value: after a switch it may be anything else."""
    known = _known().get(key_of(name))
    if known is None or "false" not in known.values:
        return bool(word) and not word.startswith("-")
    return word.lower() in _TRUE | _FALSE


_Declared = tuple[Argument, ast.expr | None]
"""An argument, and the node of its default."""


def _declared_in(script: Path | None, written: bool) -> Iterator[Argument]:
    if script is None:
        return
    try:
        if script.stat().st_size > _LARGEST_SCRIPT:
            return
        text = script.read_text(encoding="utf-8-sig")
        tree = parse_python(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    source = SourceText(text)
    if written:
        yield from _written_in(tree, source, script)
    for argument, default in _declared_by_tree(tree):
        yield replace(argument, literal=_literal(default, source, script))


def _written_in(tree: ast.Module, source: SourceText, file: Path) -> Iterator[Argument]:
    """The arguments of calls that the table knows; of a name that several of them have, none."""
    found: dict[str, list[Argument]] = {}
    classes = _Classes(tree)
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            for argument in _written_by(call, classes, source, file):
                found.setdefault(argument.key, []).append(argument)
    yield from (each[0] for each in found.values() if len(each) == 1)


def _written_by(
    call: ast.Call, classes: _Classes, source: SourceText, file: Path
) -> Iterator[Argument]:
    given = {each.arg: each.value for each in call.keywords}
    defaults = classes.taken_by(call)
    names = [*defaults, *given] if defaults else []
    for name in dict.fromkeys(each for each in names if each is not None):
        if name in given:
            value, literal = _text(given[name]), _literal(given[name], source, file)
        else:
            default = defaults[name]
            value, literal = str(default), _room_for(name, default, call, source, file)
        if literal is not None:
            yield Argument(name, Form.WRITTEN, value, literal=literal)


def _room_for(
    name: str, default: object, call: ast.Call, source: SourceText, file: Path
) -> Literal | None:
    """Behind the last argument of a call; None where the name may be among those that ``**`` gives."""
    last = [*call.args, *(each.value for each in call.keywords)]
    if default is None or not last or any(each.arg is None for each in call.keywords):
        return None
    end = max(source.range_of(each).end for each in last)
    return Literal(file, Range(end, end), '"' if isinstance(default, str) else "", f", {name}=")


def _literal(node: ast.expr | None, source: SourceText, file: Path) -> Literal | None:
    if node is None or not _text(node):
        return None
    place = source.range_of(node)
    written = source.slice(place)
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return Literal(file, place)
    # Anything but one plain literal: a prefix, several in a row, three quotes.
    quote = written[:1]
    return Literal(file, place, quote) if written == f"{quote}{node.value}{quote}" else None


def _declared_by_tree(tree: ast.Module) -> Iterator[_Declared]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if any(_executes_a_file(call) for call in calls):
        yield from _settings_of(tree)
    for call in calls:
        name = _name(call.func)
        if name in _DECLARING_CALLS:
            yield from _declared_by(call)
        elif name in _PARSERS_OF_CLASSES:
            yield from _Classes(tree).fields_of(call)


def _declared_by(call: ast.Call) -> Iterator[_Declared]:
    """`add_argument` of argparse and its like."""
    texts = [each.value for each in call.args if isinstance(each, ast.Constant)]
    spellings = [text for text in texts if isinstance(text, str) and text.startswith("--")]
    if not spellings:
        return
    given = {each.arg: each.value for each in call.keywords}
    action, default = _text(given.get("action")), given.get("default")
    is_flag = isinstance(given.get("is_flag"), ast.Constant)
    for spelling in spellings:
        if (
            action == "store_true"
            or is_flag
            or _name(given.get("action")) == "BooleanOptionalAction"
        ):
            yield Argument(spelling, Form.SWITCH, _text(default) or "false"), default
        elif action in ("", "store"):
            yield Argument(spelling, Form.WORD, _text(default)), default


def _executes_a_file(call: ast.Call) -> bool:
    """``exec(open("configurator.py").read())``: a file that sets globals from ``--name=value``."""
    return (
        isinstance(call.func, ast.Name)
        and call.func.id == "exec"
        and any(isinstance(node, ast.Name) and node.id == "open" for node in ast.walk(call))
    )


def _settings_of(tree: ast.Module) -> Iterator[_Declared]:
    for statement in tree.body:
        if not isinstance(statement, ast.Assign):
            continue
        value = _text(statement.value)
        for target in statement.targets:
            if isinstance(target, ast.Name) and value:
                yield Argument("--" + target.id, Form.EQUALS, value), statement.value


class _Classes:
    """Classes whose fields a parser takes for arguments: the script's own, and libraries' that the table knows."""

    def __init__(self, tree: ast.Module) -> None:
        self.own = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        self.imported = {
            alias.asname or alias.name: (node.module.partition(".")[0], alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }
        self.packages = {
            alias.name.partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }

    def taken_by(self, call: ast.Call) -> dict[str, Any]:
        """What a library's class or function takes that the table knows, with the defaults; None: no default that
        could be replaced."""
        package, name = self.imported.get(_name(call.func), ("", _name(call.func)))
        rows = [*_table()["classes"], *_table()["calls"]]
        known = [row for row in rows if name in row["names"] and package in ("", *_packages(row))]
        fitting = (row["fields"] for row in known if package or self._imports(row))
        return next(fitting, {})

    def _imports(self, row: Mapping[str, Any]) -> bool:
        return not self.packages.isdisjoint(_packages(row))

    def fields_of(self, call: ast.Call) -> Iterator[_Declared]:
        """Of all classes that a parser is made with."""
        listed = [*call.args, *(each.value for each in call.keywords)]
        for given in listed:
            items = given.elts if isinstance(given, ast.Tuple | ast.List) else [given]
            for item in items:
                for field, (value, node) in self._fields(_name(item), _MOST_BASES).items():
                    yield Argument("--" + field, Form.WORD, value), node

    def _fields(self, name: str, most: int) -> dict[str, tuple[str, ast.expr | None]]:
        """With their defaults."""
        node = self.own.get(name)
        if node is None or most == 0:
            known = _fields_of_library(*self.imported.get(name, ("", "")))
            return {field: (value, None) for field, value in known.items()}
        fields: dict[str, tuple[str, ast.expr | None]] = {}
        for base in reversed(node.bases):
            fields |= self._fields(_name(base), most - 1)
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                default = _default(statement.value)
                fields[statement.target.id] = _text(default), default
        return fields


def _packages(row: Mapping[str, Any]) -> list[str]:
    package = row["package"]
    return [package] if isinstance(package, str) else list(package)


def _fields_of_library(package: str, name: str) -> dict[str, str]:
    for row in _table()["classes"]:
        if row["package"] == package and name in row["names"]:
            return {field: str(value) for field, value in row["fields"].items()}
    return {}


def _default(node: ast.expr | None) -> ast.expr | None:
    """Of a dataclass's field."""
    if isinstance(node, ast.Call):
        given = {each.arg: each.value for each in node.keywords}
        return given.get("default")
    return node


def _text(node: ast.expr | None) -> str:
    """A literal as it would be typed; empty where there is none. Products of numbers are worked out."""
    if isinstance(node, ast.Constant):
        return "" if node.value is None else str(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = [_text(node.left), _text(node.right)]
        if all(re.fullmatch(r"\d{1,9}", side) for side in sides):
            return str(int(sides[0]) * int(sides[1]))
    return ""


def _name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
