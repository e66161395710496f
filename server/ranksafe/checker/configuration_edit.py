"""Changes of a configuration file that keep everything else as it stands."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any


class NotEditable(ValueError):
    """The file is no TOML, or holds something else where the key would stand."""


def with_rule_ignored(text: str, code: str, *, in_pyproject: bool) -> str:
    """The text of ``pyproject.toml`` or ``ranksafe.toml`` with a rule added to ``ignore``. Raises NotEditable."""
    import tomlkit  # here: nothing that is done at every key needs it
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        table: Any = document
        for name in ("tool", "ranksafe") if in_pyproject else ():
            table = _table_in(table, name, is_super=name == "tool")
        ignored = table.get("ignore")
        if ignored is None:
            table["ignore"] = [code]
        elif isinstance(ignored, list) and code not in ignored:
            ignored.append(code)
        elif not isinstance(ignored, list):
            raise NotEditable("`ignore` is no list")
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise NotEditable(str(error)) from error


def _table_in(parent: MutableMapping[str, Any], name: str, *, is_super: bool) -> Any:
    import tomlkit

    if name not in parent:
        # `[tool]` alone is left out: `[tool.ranksafe]` implies it.
        parent[name] = tomlkit.table(is_super)
    table = parent[name]
    if not isinstance(table, MutableMapping):
        raise NotEditable(f"`{name}` is no table")
    return table
