"""Every safe fix, applied to copies of other people's packages.

    make corpus-fix
    python -m tests.corpus.fixes [--only NAME...] [--launcher NAME] [--diff]

A package with a safe fix is copied and repaired with ``ranksafe fix``. Afterwards its files must parse, only the lines
that the fixes named may have changed, the repaired findings must be gone and no other may have come, and repairing
again must change nothing. Exit status 1 where one of these does not hold.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.compared_tools import cache_folder
from tests.corpus.packages import Package, copy_installed, download, read_packages

ROOT = Path(__file__).parents[2]
Row = dict[str, Any]
"""A finding as ``ranksafe check --output-format json`` writes it."""


@dataclass
class Repaired:
    """One package before and after its safe fixes."""

    before: dict[str, str]
    """The text of each file with a safe fix, by its path."""
    after: dict[str, str]
    found_before: list[Row]
    found_after: list[Row]
    changed_again: list[str] = field(default_factory=list)
    """Files that a second repair changed."""


def ranksafe(command: str, folder: Path, extra: list[str]) -> str:
    """The output of one command over a folder; raises where it broke."""
    options = {"check": ["--no-cache", "--exit-zero", "--output-format", "json"], "fix": []}
    done = subprocess.run(
        [sys.executable, "-m", "ranksafe", command, *options[command], *extra, str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'server'}{os.pathsep}{ROOT / 'rules'}"},
        cwd=folder,
    )
    if done.returncode > 1:
        raise RuntimeError(f"ranksafe {command} {folder}: {done.stderr}")
    return done.stdout


def is_safe(row: Row) -> bool:
    """Does the finding offer a safe fix?"""
    return row["fix"] is not None and row["fix"]["applicability"] == "safe"


def repair(folder: Path, extra: list[str]) -> Repaired | None:
    """Repair the files of a folder where they lie; None where there is nothing to repair."""
    found_before: list[Row] = json.loads(ranksafe("check", folder, extra))
    names = sorted({row["filename"] for row in found_before if is_safe(row)})
    if not names:
        return None
    before = texts(folder)
    ranksafe("fix", folder, extra)
    after = texts(folder)
    found_after: list[Row] = json.loads(ranksafe("check", folder, extra))
    ranksafe("fix", folder, extra)
    again = texts(folder)
    changed_again = [name for name in after if after[name] != again[name]]
    return Repaired(before, after, found_before, found_after, changed_again)


def texts(folder: Path) -> dict[str, str]:
    """The text of every Python file, with its line endings as they are."""
    files = sorted(folder.rglob("*.py"))
    return {str(file): file.read_bytes().decode("utf-8", "replace") for file in files}


def complaints(repaired: Repaired) -> list[str]:
    """What is wrong with a repair."""
    wrong = [f"{name}: changed by a second repair" for name in repaired.changed_again]
    for name, text in repaired.before.items():
        changed = repaired.after[name]
        if changed != text:
            wrong += [f"{name}: {words}" for words in wrong_in_file(name, text, changed, repaired)]
    return wrong + wrong_findings(repaired)


def wrong_in_file(name: str, text: str, changed: str, repaired: Repaired) -> list[str]:
    """Does a repaired file parse, and were only the lines changed that its fixes name?"""
    wrong = []
    try:
        ast.parse(changed)
    except SyntaxError as error:
        wrong.append(f"does not parse any more: {error}")
    allowed = named_lines(row for row in repaired.found_before if row["filename"] == name)
    matcher = difflib.SequenceMatcher(None, text.splitlines(), changed.splitlines(), autojunk=False)
    for tag, first, last, _, _ in matcher.get_opcodes():
        if tag == "insert" and not {first, first + 1} & allowed:
            wrong.append(f"lines were added after line {first}, where no fix says so")
        elif tag in ("replace", "delete") and not set(range(first + 1, last + 1)) <= allowed:
            wrong.append(f"lines {first + 1} to {last} changed, which no fix names")
    return wrong


def named_lines(rows: Iterable[Row]) -> set[int]:
    """The lines, from 1, that safe fixes say they edit."""
    lines: set[int] = set()
    for row in rows:
        if is_safe(row):
            for edit in row["fix"]["edits"]:
                lines |= set(range(edit["location"]["row"], edit["end_location"]["row"] + 1))
    return lines


def wrong_findings(repaired: Repaired) -> list[str]:
    """Repaired findings that are still there, and findings that were not there before."""
    left = [row for row in repaired.found_after if is_safe(row)]
    wrong = [f"{place(row)}: {row['code']} still offers its safe fix" for row in left]
    kept = Counter((row["filename"], row["code"]) for row in repaired.found_before)
    kept -= Counter((row["filename"], row["code"]) for row in repaired.found_before if is_safe(row))
    now = Counter((row["filename"], row["code"]) for row in repaired.found_after)
    wrong += [f"{name}: {count} more {code}" for (name, code), count in (now - kept).items()]
    wrong += [f"{name}: {count} fewer {code}" for (name, code), count in (kept - now).items()]
    return wrong


def changes(repaired: Repaired) -> Iterator[str]:
    """The lines of a unified diff."""
    for name, text in repaired.before.items():
        after = repaired.after[name].splitlines(keepends=True)
        yield from difflib.unified_diff(text.splitlines(keepends=True), after, name, name, n=1)


def place(row: Row) -> str:
    """``file:line`` of a finding."""
    return f"{row['filename']}:{row['location']['row']}"


def gather(package: Package, downloads: Path, torch_python: Path | None, target: Path) -> None:
    """A copy of the package's files in ``target``."""
    if package.installed and torch_python is not None:
        copy_installed(package, torch_python, target)
        return
    download(package, downloads / package.requirement)
    shutil.copytree(downloads / package.requirement, target, dirs_exist_ok=True)


def main(words: list[str]) -> int:
    """Repair, print, and say whether all is well."""
    parser = argparse.ArgumentParser(description="apply every safe fix to real packages")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these packages")
    parser.add_argument("--diff", action="store_true", help="show what was changed")
    parser.add_argument("--launcher", help="check as if started by it, which offers other fixes")
    parser.add_argument(
        "--downloads", type=Path, default=cache_folder() / "corpus", help="where packages are kept"
    )
    chosen = parser.parse_args(words)
    extra = ["--launcher", chosen.launcher] if chosen.launcher else []
    torch_python = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    fixed: Counter[str] = Counter()
    wrong: list[str] = []
    for package in read_packages():
        if chosen.only and not {package.name, package.requirement} & set(chosen.only):
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            gather(package, chosen.downloads, Path(torch_python) if torch_python else None, folder)
            repaired = repair(folder, extra)
            if repaired is None:
                continue
            safe = [row["code"] for row in repaired.found_before if is_safe(row)]
            said = [words.replace(f"{folder}/", "") for words in complaints(repaired)]
            if chosen.diff:
                print("".join(changes(repaired)).replace(f"{folder}/", ""))
        fixed.update(safe)
        wrong += said
        print(f"{package.requirement}: {len(safe)} safe fixes, {len(said)} complaints", flush=True)
        print("".join(f"  {words}\n" for words in said), end="", flush=True)
    for code, count in sorted(fixed.items()):
        print(f"{code}: {count} safe fixes")
    print(f"{fixed.total()} safe fixes, {len(wrong)} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
