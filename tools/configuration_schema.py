"""Write the JSON schema of what can stand in ``ranksafe.toml`` and ``[tool.ranksafe]`` from the class that it is read
into."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from ranksafe.checker.configuration import Configuration
from ranksafe.checker.registry import Registry
from ranksafe.settings import keys_of

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "server/ranksafe/checker/configuration.schema.json"
TYPES = {bool: "boolean", int: "integer", str: "string"}


def schema() -> str:
    """The schema's text."""
    described = _descriptions(Configuration)
    properties = {
        key: {"description": described[key.replace("-", "_")]} | _schema_of(kind)
        for key, kind in keys_of(Configuration).items()
    }
    rules = Registry.load(entry_points=False).rules
    names = [name for rule in rules for name in (rule.metadata.code, rule.metadata.name)]
    selector = {"$ref": "#/definitions/selector"}
    properties["select"]["items"] = properties["ignore"]["items"] = selector
    properties["per-file-ignores"]["additionalProperties"]["items"] = selector
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "ranksafe",
        "description": "What ranksafe checks, and what it is told of the launch.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        # The names are offered; prefixes and the rules of other packages are right, too.
        "definitions": {"selector": {"anyOf": [{"enum": ["ALL", *names]}, {"type": "string"}]}},
    }
    return json.dumps(document, indent=2) + "\n"


def _schema_of(kind: Any) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        own, expected = arguments
        found = _schema_of(expected.written or own)
        if expected.minimum is not None:
            found["minimum"] = expected.minimum
        if expected.pattern is not None:
            found["pattern"] = f"^{expected.pattern}$"
        return found
    if origin is tuple:
        return {"type": "array", "items": _schema_of(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema_of(arguments[1])}
    if origin is Literal:
        return {"enum": list(arguments)}
    # An alternative to None is left: TOML has no null.
    return {"type": TYPES[kind]} if kind in TYPES else _schema_of(arguments[0])


def _descriptions(cls: type) -> dict[str, str]:
    """The texts below the fields of a class and of those it extends."""
    found = {}
    for one in cls.__mro__[:-1]:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        assert isinstance(definition, ast.ClassDef)
        for field, text in pairwise(definition.body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(ast.Constant(str(words))):
                    found[name] = " ".join(words.split())
    return found


if __name__ == "__main__":
    SCHEMA.write_text(schema(), encoding="utf-8")
