"""Plants failures in public scripts that pass, rehearses them, and says what was told of each.

    PYTHONPATH=server:rules:. RANKSAFE_TEST_TORCH_PYTHON=… python tests/rehearsal/measurements/planted_failures.py FOLDER

``FOLDER`` has the scripts, as ``public_scripts.py --fetch`` leaves them (``PACKAGE-VERSION/PATH``; of a repository
``OWNER+NAME-COMMIT/PATH``); nothing of them is fetched here. What is planted, and what must be said of it, is in
``public_scripts/planted.toml``. ``--unchanged`` rehearses the scripts without what is planted; ``--json FILE`` keeps
every answer, and a later call runs only what has none.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.rehearsal.public_scripts.planted import (
    PLANTED,
    Planted,
    patched,
    plants,
    scripts_by_name,
)
from tests.rehearsal.public_scripts.published import (
    NotFetched,
    PublishedScript,
    installed,
    rehearse,
)


@dataclass(frozen=True)
class Answer:
    """What a rehearsal said of one script."""

    status: int
    kind: str
    line: str
    """``file:line`` of the failure that is told first."""
    message: str
    explanation: str
    said: str
    seconds: float

    def agrees(self, planted: Planted, here: Sequence[str]) -> tuple[bool, bool, bool]:
        """Whether status, line and kind are those that must be told."""
        return self.status == 1, self.line in here, self.kind in planted.kinds


def main() -> int:
    """Run what is asked for; 0 when all failures were told as they must be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="of what is planted, or of scripts")
    parser.add_argument("--unchanged", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--parallel", type=int, default=2)
    arguments = parser.parse_args()
    python = Path(os.environ["RANKSAFE_TEST_TORCH_PYTHON"])
    packages = installed(python, PLANTED)
    named = scripts_by_name()
    kept: dict[str, dict[str, Any]] = {}
    if arguments.json and arguments.json.is_file():
        kept = json.loads(arguments.json.read_text("utf-8"))
    listed = {each.name: each for each in plants()}
    everything = (
        sorted({each.script for each in listed.values()}) if arguments.unchanged else listed
    )
    chosen = [name for name in arguments.names or everything if name not in kept]

    def run(name: str) -> None:
        planted = None if arguments.unchanged else listed[name]
        script = named[name if planted is None else planted.script]
        with tempfile.TemporaryDirectory() as folder:
            path, here = _copied(script, arguments.folder, Path(folder), planted)
            done = rehearse(script, path, python, packages)
        answer = _answer(done.status, done.result, done.stderr)
        kept[name] = {**vars(answer), "here": here}
        print(
            f"{name}: {answer.status} {answer.line} {answer.kind} {answer.message[:100]}",
            flush=True,
        )
        if arguments.json:
            arguments.json.write_text(json.dumps(kept, indent=1), encoding="utf-8")

    with ThreadPoolExecutor(arguments.parallel) as pool:
        list(pool.map(run, chosen))
    if arguments.unchanged:
        return int(any(each["status"] for each in kept.values()))
    return _told([each for each in listed.values() if each.name in kept], kept)


def _told(told: list[Planted], kept: Mapping[str, dict[str, Any]]) -> int:
    print(
        "| planted | script | what | status | line | kind | seconds |\n|---|---|---|---|---|---|---|"
    )
    wrong = 0
    for planted in told:
        fields = dict(kept[planted.name])
        here = fields.pop("here")
        answer = Answer(**fields)
        agreed = answer.agrees(planted, here)
        wrong += not all(agreed)
        line, kind = ("" if each else ", not as expected" for each in agreed[1:])
        cells = (planted.name, planted.script, planted.what, str(answer.status))
        told_of = (f"{answer.line or 'none'}{line}", f"{answer.kind}{kind}")
        print(f"| {' | '.join([*cells, *told_of])} | {answer.seconds:.0f} |")
    print(f"\n{len(told) - wrong} of {len(told)} told as they must be.")
    return int(wrong > 0)


def _copied(
    script: PublishedScript, folder: Path, into: Path, planted: Planted | None
) -> tuple[Path, list[str]]:
    """A copy of the script with what surrounds it and what is planted in it, and ``file:line`` where that may show."""
    name = f"{script.package.replace('/', '+')}-{script.version[:12]}"
    copy = into / name
    shutil.copytree(folder / name, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    path = copy / script.path
    if hashlib.sha256(path.read_bytes()).hexdigest() != script.sha256:
        raise NotFetched(f"{path} is not the file that {script.name} means")
    if planted is None:
        return path, []
    file = path.parent / planted.file if planted.file else path
    text, lines = patched(file.read_text("utf-8"), planted)
    file.write_text(text, encoding="utf-8")
    return path, [f"{file.name}:{line}" for line in lines]


def _answer(status: int, result: Mapping[str, Any] | None, stderr: str) -> Answer:
    if result is None:
        return Answer(status, "broken", "", stderr[-2000:], "", stderr[-6000:], 0.0)
    found = [each for each in (*result["failures"], result.get("simulation_limit")) if each]
    found.sort(key=lambda each: not each.get("root_cause"))
    first: Mapping[str, Any] = found[0] if found else {}
    row = (first.get("location") or {}).get("row", 0)
    return Answer(
        status=status,
        kind=str(first.get("kind", "")),
        line=f"{Path(str(first.get('filename') or '')).name}:{row}" if first else "",
        message=str(first.get("message", "")),
        explanation=str(first.get("explanation", "")),
        said=stderr[-6000:],
        seconds=float(result["seconds"]),
    )


if __name__ == "__main__":
    sys.exit(main())
