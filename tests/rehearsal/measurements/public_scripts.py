"""Rehearses the public scripts of the manifest and prints docs/rehearsal.md's table.

    PYTHONPATH=server:rules:. RANKSAFE_TEST_TORCH_PYTHON=… python tests/rehearsal/measurements/public_scripts.py [NAME…]

Two run at a time. With ``--json FILE`` every result is kept, so that a later call with ``--again`` runs only the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "public_scripts"))
from published import (
    NotFetched,
    PublishedScript,
    Rehearsal,
    fetched,
    installed,
    rehearse,
    scripts,
    table,
)


def main() -> int:
    """Run what is asked for; 0 when at least 15 of 20 ended truly."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--again", action="store_true", help="run only what did not end truly")
    parser.add_argument("--parallel", type=int, default=2)
    arguments = parser.parse_args()
    python = Path(os.environ["RANKSAFE_TEST_TORCH_PYTHON"])
    packages = installed(python)
    kept = _read(arguments.json)
    chosen = [
        script for script in scripts() if not arguments.names or script.name in arguments.names
    ]
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
    ordered = [kept[script.name] for script in scripts() if script.name in kept]
    true = sum(done.is_true for done in ordered)
    print(table(ordered))
    print(f"\n{true} of {len(ordered)} ended in a true pass or a true failure.")
    return 0 if true >= min(15, len(ordered)) else 1


def _read(path: Path | None) -> dict[str, Rehearsal]:
    if path is None or not path.is_file():
        return {}
    known = {script.name: script for script in scripts()}
    data = json.loads(path.read_text("utf-8"))
    return {
        name: Rehearsal(known[name], **fields) for name, fields in data.items() if name in known
    }


def _write(path: Path | None, kept: dict[str, Rehearsal]) -> None:
    if path is not None:
        data = {
            name: {"status": done.status, "result": done.result, "stderr": done.stderr[-4000:]}
            for name, done in kept.items()
        }
        path.write_text(json.dumps(data), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
