"""The table of collective operations (``collectives.json``): data with sources, read once."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import Any

from ranksafe.rank_flow.tables import methods_that, table
from ranksafe.semantics.libraries import canonical


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of an operation: its keyword and 0-based position (None: keyword only)."""

    keyword: str
    position: int | None

    def of(self, call: ast.Call) -> ast.expr | None:
        """The argument's expression in a call, as written."""
        for item in call.keywords:
            if item.arg == self.keyword:
                return item.value
        if self.position is not None and self.position < len(call.args):
            if not any(isinstance(item, ast.Starred) for item in call.args[: self.position + 1]):
                return call.args[self.position]
        return None


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation that several ranks have to perform together."""

    name: str
    """Canonical dotted name."""
    kind: str
    """``collective``, ``point-to-point``, ``group-construction``, ``wrap``, ``step``."""
    word: str
    """Short name shown to users."""
    group: Parameter | None
    result: Parameter | str | None
    """The argument that is equal on all ranks afterwards, ``return``, or None."""
    root: Parameter | None
    complete_on_root: bool
    root_default: int | None
    """The root when the call names none."""
    asynchronous: Parameter | None
    always_asynchronous: bool
    only: str | None
    """``sharded``: performs collectives only for FSDP or ZeRO-3 models; ``wrapped``: only for wrapped models."""
    output: Parameter | None = None
    """The argument that is written to."""
    tag: Parameter | None = None
    """For point-to-point: what tells messages of one pair of ranks apart."""
    when: Parameter | None = None
    """The argument that turns it on, where it is off by itself."""
    unless: tuple[tuple[Parameter, Any], ...] = ()
    """Argument values with which no other rank has to take part."""
    is_property: bool = False
    """Reading the attribute communicates; there is no call."""

    def is_asynchronous(self, call: ast.Call) -> bool:
        """Whether a call says that it returns before the others have come."""
        given = None if self.asynchronous is None else self.asynchronous.of(call)
        return self.always_asynchronous or (isinstance(given, ast.Constant) and given.value is True)


def _parameter(data: dict[str, Any] | None) -> Parameter | None:
    if not data:
        return None
    return Parameter(data["keyword"], data.get("position", data.get("argument")))


def _operation(data: dict[str, Any]) -> Operation:
    result = data.get("result")
    always = bool(data.get("always_async"))
    return Operation(
        name=data["name"],
        kind=data["kind"],
        word=data["operation"],
        group=_parameter(data.get("group")),
        result=_parameter(result) if isinstance(result, dict) else result,
        root=_parameter(data.get("root")),
        complete_on_root=data.get("complete_on") == "root",
        root_default=(data.get("root") or {}).get("default"),
        asynchronous=None if always else _parameter(data.get("async")),
        always_asynchronous=always,
        only=data.get("only"),
        output=_parameter(data.get("output")),
        tag=_parameter(data.get("tag")),
        when=_parameter(data.get("when")),
        unless=tuple(
            (Parameter(item["keyword"], item.get("position")), item["value"])
            for item in data.get("unless", ())
        ),
        is_property=bool(data.get("property")),
    )


def _table() -> dict[str, Any]:
    return table("collectives")


@cache
def operations() -> dict[str, Operation]:
    """All operations by canonical name."""
    found = {}
    for entry in _table()["operations"]:
        operation = _operation(entry)
        found[operation.name] = operation
        found[canonical(operation.name)] = operation
    return found


@cache
def table_name(name: str) -> str:
    """The name that the table uses for a function, or for a class whose name ends in a dot, under any of its names."""
    prefixes = _table()["prefixes"]
    for _ in range(3):
        known = [prefix for prefix in prefixes if name.startswith(prefix)]
        if not known:
            return name
        longest = max(known, key=len)
        name = prefixes[longest] + name[len(longest) :]
    return name


@cache
def operation_named(name: str) -> Operation | None:
    """The operation of a canonical name, or of another name of the same function."""
    return operations().get(name) or operations().get(table_name(name))


@cache
def owners() -> frozenset[str]:
    """The library classes that the table has methods, properties or attributes of."""
    names = [*_table()["operations"], *({"name": name} for name in attribute_classes())]
    found = {entry["name"].rpartition(".")[0] for entry in names}
    return frozenset(name for name in found if name.rpartition(".")[2][:1].isupper()) | frozenset(
        derived_classes().values()
    )


def attribute_classes() -> dict[str, str]:
    """The classes of the attributes of library objects: ``transformers.Trainer.accelerator``."""
    found: dict[str, str] = _table()["attributes"]
    return found


def derived_classes() -> dict[str, str]:
    """Classes, or packages of classes (``torchmetrics.*``), that derive from a class of the table."""
    found: dict[str, str] = _table()["classes"]
    return found


@cache
def properties() -> frozenset[str]:
    """Names of properties that communicate when they are read."""
    return frozenset(
        name.rpartition(".")[2] for name, operation in operations().items() if operation.is_property
    )


@cache
def words(wrapping: bool) -> frozenset[str]:
    """Last segments of the operations' names: a function without any of them performs no collective.

    ``wrapping``: whether the file may have wrapped models, see `Module.may_wrap_models`.
    """
    found = frozenset(name.rpartition(".")[2] for name in operations())
    return (
        found | methods_that("often otherwise")
        if wrapping
        else found - methods_that("often otherwise")
    )
