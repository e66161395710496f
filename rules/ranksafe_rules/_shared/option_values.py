"""Whether an option has one value wherever a project starts its program."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.option_defaults import options_named

_MOST_FILES: Final = 10
_PLACEHOLDERS: Final = tuple("$%<{[(")
"""What begins a value that somebody else fills in."""


def stays_at(module: Module, read: ast.expr, value: int) -> bool:
    """Whether ``args.name`` is ``value`` in every start that the project shows: that is the default of its option, and
    no command, setting or file gives it another one."""
    origin = read
    if isinstance(read, ast.Name):
        assigned = module.flow.assigned_values(read)
        origin = assigned[0] if len(assigned) == 1 else read
    if not isinstance(origin, ast.Attribute):
        return False
    files = _files_about(module, origin.attr)
    defaults = [item for file in files for item in _defaults(file, origin.attr)]
    return (
        bool(defaults)
        and all(default == value for default, _ in defaults)
        and not any(_is_set(file, origin.attr, value) for file in files)
        and not any(
            _is_other(given, value)
            for name in {origin.attr, *(name for _, names in defaults for name in names)}
            for given in module.values_given(name)
        )
    )


def _files_about(module: Module, name: str) -> list[Module]:
    """The file, those that it imports and those that use it, as far as they say the name."""
    found = {module.path: module}
    for word in sorted({name, name.replace("_", "-")}):
        for file in (*module.imported_saying(word), *module.users_saying(word, most=_MOST_FILES)):
            found.setdefault(file.path, file)
    return list(found.values())


def _defaults(module: Module, name: str) -> Iterator[tuple[object, list[str]]]:
    """The default of each option and each field of a class with the name, None where it is not known, and the names
    under which commands give it."""
    for call, names in options_named(module, name):
        given = {word.arg: word.value for word in call.keywords}
        default = given.get("default")
        yield None if default is None else module.values(default).only_constant(), names
    for cls in module.nodes(ast.ClassDef):
        for item in cls.body if isinstance(cls, ast.ClassDef) else ():
            if isinstance(item, ast.AnnAssign) and getattr(item.target, "id", None) == name:
                yield _of_field(module, item.value), []


def _of_field(module: Module, default: ast.expr | None) -> object:
    if isinstance(default, ast.Call):
        default = next((word.value for word in default.keywords if word.arg == "default"), None)
    return None if default is None else module.values(default).only_constant()


def _is_set(module: Module, name: str, value: int) -> bool:
    """Whether a file may give the attribute another value than its option's."""
    return (
        any(
            isinstance(node, ast.Attribute)
            and node.attr == name
            and not isinstance(node.ctx, ast.Load)
            and not _is_same(module.assigned_to_attribute(node), name, value)
            for node in module.nodes(ast.Attribute)
        )
        or any(
            isinstance(node, ast.keyword)
            and node.arg == name
            and not _is_same(node.value, name, value)
            for node in module.nodes(ast.keyword)
        )
        or any(
            isinstance(node, ast.Constant) and node.value == name and _is_read_as_name(module, node)
            for node in module.nodes(ast.Constant)
        )
        or _sets_any(module)
    )


def _is_same(given: ast.expr | None, name: str, value: int) -> bool:
    """Whether something is the value, or handed on from something of the same name."""
    if isinstance(given, ast.Constant):
        return given.value == value
    return getattr(given, "attr", getattr(given, "id", None)) == name


def _is_read_as_name(module: Module, node: ast.Constant) -> bool:
    parent = module.parent(node)
    return not (isinstance(parent, ast.keyword) and parent.arg == "dest")


def _sets_any(module: Module) -> bool:
    """Whether a file sets attributes whose names it does not say: ``setattr(args, key, value)``,
    ``vars(args).update(settings)``, ``parser.set_defaults(**settings)``."""
    return (
        any(
            not isinstance(call.args[1], ast.Constant)
            for call in module.calls_written("setattr")
            if len(call.args) > 1
        )
        or any(
            word.arg is None
            for call in module.calls_written("set_defaults")
            for word in call.keywords
        )
        or any(
            isinstance(call.func, ast.Attribute) and _is_dictionary_of_object(call.func.value)
            for call in module.calls_written("update")
        )
    )


def _is_dictionary_of_object(node: ast.expr) -> bool:
    called = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars"
    )
    return called or (isinstance(node, ast.Attribute) and node.attr == "__dict__")


def _is_other(given: str, value: int) -> bool:
    """Whether a value that is written for the option may be another one; a word of a sentence is none."""
    if given.startswith(_PLACEHOLDERS):
        return True
    number = given.rstrip("\\,;.)")
    return number[:1].isdigit() and number != str(value)
