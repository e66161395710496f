"""What ranksafe finds in the packages, and what was said about each finding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from tests.corpus.packages import Package

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
VERDICTS = HERE / "verdicts.jsonl"
Verdict = Literal["", "true", "harmless", "false"]


@dataclass(frozen=True)
class Finding:
    """One finding at one place, and whether it is right."""

    package: str
    file: str
    line: int
    code: str
    level: str
    text: str
    """The line of code, to find the place in another version."""
    verdict: Verdict = ""
    """``true``: it goes wrong on several GPUs as the message says. ``harmless``: what the message says is so, but
    nothing goes wrong here. ``false``: the message says something that is not so."""
    reason: str = ""

    @property
    def place(self) -> tuple[str, str, int, str]:
        """What tells it from other findings."""
        return (self.package, self.file, self.line, self.code)


def check(packages: Iterable[Package], folder: Path) -> list[Finding]:
    """What ``ranksafe check`` says about the files of these packages, with nothing known of launch and versions."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ranksafe", "check", "--no-cache", "--exit-zero"),
            *("--output-format", "json", str(folder)),
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'server'}{os.pathsep}{ROOT / 'rules'}"},
        cwd=folder,
    )
    known = list(packages)
    found: list[Finding] = []
    for row in json.loads(done.stdout):
        file, line = Path(row["filename"]), int(row["location"]["row"])
        inside = file.relative_to(folder).as_posix()
        package = next(item for item in known if item.wants(inside))
        text = file.read_text(encoding="utf-8").splitlines()[line - 1].strip()
        found.append(Finding(package.requirement, inside, line, row["code"], row["level"], text))
    return found


def read_verdicts(file: Path = VERDICTS) -> list[Finding]:
    """All findings that were read and judged."""
    return [Finding(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


def write_findings(findings: Iterable[Finding], file: Path) -> None:
    """Write findings one a line, sorted, so that a change shows as few lines."""
    rows = sorted(findings, key=lambda finding: finding.place)
    text = "".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows)
    file.write_text(text, encoding="utf-8")


def judged(found: Iterable[Finding], verdicts: Iterable[Finding]) -> list[Finding]:
    """The findings with the verdicts that are known for their places; empty where none is."""
    known = {verdict.place: verdict for verdict in verdicts}
    result = []
    for finding in found:
        verdict = known.get(finding.place)
        if verdict is not None and verdict.text == finding.text:
            finding = replace(finding, verdict=verdict.verdict, reason=verdict.reason)
        result.append(finding)
    return result
