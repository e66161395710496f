"""The files that are measured: Hugging Face's trainer.py at three lengths, and trees of installed libraries."""

from __future__ import annotations

import ast
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

LENGTHS = (200, 1_000, 5_000)


@dataclass(frozen=True)
class SourceFile:
    """A file, and the place in its middle where keys are typed."""

    length: int
    """The nominal number of lines."""
    path: Path
    text: str
    line: int
    column: int


def site_packages(python: Path) -> Path:
    question = "import sysconfig; print(sysconfig.get_path('purelib'))"
    answer = subprocess.run(
        [str(python), "-c", question], capture_output=True, text=True, check=True
    )
    return Path(answer.stdout.strip())


def make_files(packages: Path, folder: Path) -> list[SourceFile]:
    """``trainer.py`` cut between statements; the longest is the whole file (4,760 in 5.23.0)."""
    whole = (packages / "transformers" / "trainer.py").read_text(encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    return [make_file(whole, length, folder / f"trainer_{length}.py") for length in LENGTHS]


def make_file(whole: str, length: int, path: Path) -> SourceFile:
    text = "".join(whole.splitlines(keepends=True)[: last_line_before(whole, length)])
    path.write_text(text, encoding="utf-8")
    line, column = place_to_type(text)
    return SourceFile(length, path, text, line, column)


def last_line_before(text: str, length: int) -> int:
    """The last line up to ``length`` with which a statement of the module or of a class ends."""
    ends = [0]
    for statement in ast.parse(text).body:
        ends.append(statement.end_lineno or 0)
        if isinstance(statement, ast.ClassDef):
            ends += [member.end_lineno or 0 for member in statement.body]
    return max(end for end in ends if end <= length)


def place_to_type(text: str) -> tuple[int, int]:
    """The start of the name of an assignment inside a function, nearest to the middle. 0-based."""
    lines = text.splitlines()
    names = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assign)
        and node.lineno == node.end_lineno
        and node.col_offset >= 4
        and isinstance(node.targets[0], ast.Name)
        and lines[node.lineno - 1].isascii()
    ]
    nearest = min(names, key=lambda node: abs(node.lineno - len(lines) // 2))
    return nearest.lineno - 1, nearest.col_offset


def copy_tree(packages: Path, names: list[str], folder: Path) -> Path:
    """Copies: ruff and ranksafe leave out site-packages."""
    for name in names:
        for file in (packages / name).rglob("*.py"):
            target = folder / file.relative_to(packages)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    return folder


def copy_sample(tree: Path, folder: Path, lines: int) -> int:
    """Files from all parts of a tree with about ``lines`` lines together; the number of lines."""
    files = sorted(tree.rglob("*.py"))
    sizes = {file: len(file.read_bytes().splitlines()) for file in files}
    share = lines / sum(sizes.values())
    passed = total = 0
    for file in files:
        passed += sizes[file]
        if total + sizes[file] / 2 > passed * share:
            continue
        total += sizes[file]
        target = folder / file.relative_to(tree)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    return total


def copy_project(packages: Path, folder: Path, count: int) -> None:
    """A project of ``count`` files from the installed libraries."""
    left = count
    for name in ("transformers", "torch", "accelerate", "trl"):
        for file in sorted((packages / name).rglob("*.py"))[:left]:
            target = folder / file.relative_to(packages)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            left -= 1
    if left:
        raise ValueError(f"only {count - left} files are installed")
