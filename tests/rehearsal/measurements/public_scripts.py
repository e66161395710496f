"""Rehearses the public scripts of the manifest and prints docs/rehearsal.md's table.

    PYTHONPATH=server:rules:. RANKSAFE_TEST_TORCH_PYTHON=… python tests/rehearsal/measurements/public_scripts.py [NAME…]

Two run at a time. With ``--json FILE`` every result is kept as it comes: a later call with ``--resume`` runs only what
has none, with ``--again`` also what did not end truly. ``--manifest`` names other scripts, ``--fetch`` only gets all
that is needed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "public_scripts"))
from published import (
    MANIFEST,
    NotFetched,
    PublishedScript,
    Rehearsal,
    fetched,
    installed,
    rehearse,
    scripts,
    table,
)

_KEPT = ("status", "result", "stderr")


def main() -> int:
    """Run what is asked for; 0 when at least 15 of 20 ended truly."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--manifest", type=Path, default=MANIFEST)
    parser.add_argument("--again", action="store_true", help="run only what did not end truly")
    parser.add_argument("--resume", action="store_true", help="run only what has no result")
    parser.add_argument("--fetch", action="store_true", help="run nothing")
    parser.add_argument("--parallel", type=int, default=2)
    arguments = parser.parse_args()
    python = Path(os.environ["RANKSAFE_TEST_TORCH_PYTHON"])
    packages = installed(python, arguments.manifest)
    listed = scripts(arguments.manifest)
    kept = _read(arguments.json, listed)
    chosen = [script for script in listed if not arguments.names or script.name in arguments.names]
    if arguments.fetch:
        for script in chosen:
            fetched(script, python)
        return 0
    if arguments.resume:
        chosen = [script for script in chosen if script.name not in kept]
    if arguments.again:
        chosen = [
            script for script in chosen if script.name not in kept or not kept[script.name].is_true
        ]

    def run(script: PublishedScript) -> None:
        try:
            done = rehearse(script, fetched(script, python), python, packages)
        except NotFetched as problem:
            done = Rehearsal(script, 2, None, str(problem))
        kept[script.name] = done
        print(f"{script.name}: {done.outcome} {done.note[:150]}", file=sys.stderr, flush=True)
        _write(arguments.json, kept)

    with ThreadPoolExecutor(arguments.parallel) as pool:
        list(pool.map(run, chosen))
    ordered = [kept[script.name] for script in listed if script.name in kept]
    true = sum(done.is_true for done in ordered)
    print(table(ordered))
    print(f"\n{true} of {len(ordered)} ended in a true pass or a true failure.")
    return 0 if true >= min(15, len(ordered)) else 1


def _read(path: Path | None, listed: Sequence[PublishedScript]) -> dict[str, Rehearsal]:
    if path is None or not path.is_file():
        return {}
    data = json.loads(path.read_text("utf-8"))
    return {
        script.name: Rehearsal(script, *(data[script.name][key] for key in _KEPT))
        for script in listed
        if script.name in data
    }


def _write(path: Path | None, kept: dict[str, Rehearsal]) -> None:
    if path is not None:
        data = {
            name: {
                "outcome": done.outcome,
                "status": done.status,
                "seconds": done.result and done.result["seconds"],
                "note": done.note,
                "places": done.places,
                "limits": done.result and done.result["limits"],
                "result": done.result,
                "stderr": done.stderr[-4000:],
            }
            for name, done in kept.items()
        }
        path.write_text(json.dumps(data), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
