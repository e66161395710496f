"""Validate SBOMs and the provenance with the libraries of their formats; run by the Python of the release environment.

    python tools/release/validate.py FILE...

Prints what is wrong, a line each.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf.json_format import ParseDict
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage


def problem_of(file: Path) -> str | None:
    """Why it is not what its name says; None when it is."""
    text = file.read_text(encoding="utf-8")
    document = json.loads(text)
    if file.name.endswith(".cdx.json"):
        version = SchemaVersion.from_version(document["specVersion"])
        problem = JsonStrictValidator(version).validate_str(text)
        return None if problem is None else str(problem)
    try:
        Statement.copy_from_pb(ParseDict(document, StatementMessage())).validate()
        ParseDict(document["predicate"], Provenance())
    except ValueError as error:
        return str(error)
    return None


if __name__ == "__main__":
    for name in sys.argv[1:]:
        if problem := problem_of(Path(name)):
            print(f"{Path(name).name}: {problem}")
