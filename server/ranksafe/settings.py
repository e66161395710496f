"""What users set, in TOML files and in editors, read into classes.

The fields of a class whose type says what is `Expected` are its keys, written with hyphens. Reading them, complaining
about them and the JSON schema that ``tools/configuration_schema.py`` writes all follow from the fields.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

from ranksafe.localization import Translated

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Expected:
    """What the value of a key has to be, beside its type: ``Annotated[int, Expected(WORDS, minimum=1)]``."""

    words: Translated
    """The end of the sentence "`key` must be ..."."""
    minimum: int | None = None
    pattern: str | None = None
    """A regular expression for the whole text."""
    check: Callable[[Any], bool] | None = None
    """What a JSON schema cannot say."""
    written: Any = None
    """The type in the file, where it is not that of the field."""
    convert: Callable[[Any], Any] | None = None
    """From the type in the file to that of the field; None for what it cannot be made of."""

    def accepted(self, value: Any) -> Any:
        """A value of the right type as the field holds it; None if it cannot be used."""
        if (
            (self.minimum is not None and value < self.minimum)
            or (self.pattern is not None and not re.fullmatch(self.pattern, value))
            or (self.check is not None and not self.check(value))
        ):
            return None
        return value if self.convert is None else self.convert(value)


Flag = Annotated[bool, Expected(Translated("true or false", "布尔值 true 或 false"))]
Count = Annotated[
    int, Expected(Translated("a whole number of at least 1", "不小于 1 的整数"), minimum=1)
]
Amount = Annotated[
    float,
    Expected(Translated("a number above 0", "大于 0 的数"), check=lambda one: 0 < one < math.inf),
]
Text = Annotated[str, Expected(Translated("text in quotes", "带引号的文本"))]


def keys_of(cls: type) -> dict[str, Any]:
    """The keys of a class as they are written, each with its type."""
    hints = get_type_hints(cls, include_extras=True)
    return {name.replace("_", "-"): hint for name, hint in hints.items() if expected_in(hint)}


def expected_in(hint: Any) -> Expected | None:
    """What is expected by ``Annotated[...]``, or by ``Annotated[...] | None``; None: the field is no key."""
    notes = (getattr(part, "__metadata__", ()) for part in (hint, *get_args(hint)))
    return next((note for part in notes for note in part if isinstance(note, Expected)), None)


def read(cls: type[T], given: Mapping[str, Any], table: str = "") -> tuple[T, list[Translated]]:
    """An object of all in ``given`` that can be used, and a sentence for each key with something that cannot.

    ``given`` was parsed from TOML or JSON; ``table`` is what it is called in its file.
    """
    keys = keys_of(cls) if given else {}
    found: dict[str, Any] = {}
    problems: list[Translated] = []
    for key, value in given.items():
        name = f"[{table}] {key}" if table else f"`{key}`"
        expected = expected_in(keys.get(key))
        if expected is None:
            problems.append(_UNKNOWN_KEY.filled(key=name, known=", ".join(keys)))
            continue
        unusable: list[Any] = []
        usable = _usable(value, keys[key], unusable)
        if unusable:
            problems.append(_WRONG_VALUE.filled(key=name, expected=expected.words))
        if usable is not None:
            found[key.replace("-", "_")] = usable
    return cls(**found), problems


def _usable(value: Any, kind: Any, unusable: list[Any]) -> Any:
    """What of ``value`` is of the type ``kind``, None if nothing is; the rest is added to ``unusable``.

    Of a list or table the items that can be used count.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        own, expected = arguments
        found = _usable(value, expected.written or own, unusable)
        if found is None or (accepted := expected.accepted(found)) is not None:
            return None if found is None else accepted
    elif origin is UnionType or origin is Union:
        return None if value is None else _usable(value, arguments[0], unusable)
    elif origin is tuple and isinstance(value, list):
        items = (_usable(item, arguments[0], unusable) for item in value)
        return tuple(item for item in items if item is not None)
    elif origin is dict and isinstance(value, dict):
        entries = ((key, _usable(item, arguments[1], unusable)) for key, item in value.items())
        return {key: item for key, item in entries if item is not None}
    # True is no 1, and no text is a number; a whole number will do where there may be any.
    elif type(value) is kind or (type(value), kind) == (int, float) or value in arguments:
        return value
    unusable.append(value)
    return None


def parse_toml(text: str) -> dict[str, Any]:
    """What a TOML file says. Raises ValueError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        document: dict[str, Any] = tomllib.loads(text)
    except RecursionError as error:  # tomllib's answer to brackets in brackets in brackets
        raise ValueError(str(error)) from error
    return document


_UNKNOWN_KEY: Final = Translated(
    "unknown key {key} (known: {known})", "未知的配置项 {key}（可用：{known}）"
)
_WRONG_VALUE: Final = Translated("{key} must be {expected}", "{key} 必须是{expected}")
