"""How many of ranksafe's findings in other people's packages are right.

    make corpus
    python -m tests.corpus.precision [--only NAME...] [--json FILE] [--without-verdict FILE] [--table FILE]

Checks the packages of packages.jsonl with the default rules and compares with verdicts.jsonl. Exit status 1 where a
finding has no verdict or a limit is passed. Installed packages are read from RANKSAFE_TEST_TORCH_PYTHON's environment,
all others are downloaded once into the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.bench.compared_tools import cache_folder
from tests.corpus.findings import Finding, check, judged, read_verdicts, write_findings
from tests.corpus.packages import (
    Package,
    copy_installed,
    count_lines,
    download,
    read_packages,
)

LINES_PER_FALSE = 100_000
"""On average one false finding in so many lines of programs that train, at most."""
LINES_PER_HARMLESS_WARNING = 50_000


@dataclass
class Results:
    """What one run found."""

    packages: list[Package]
    lines: dict[str, int] = field(default_factory=dict)
    """By requirement."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Of checking, by requirement."""
    findings: list[Finding] = field(default_factory=list)
    gone: list[Finding] = field(default_factory=list)
    """Verdicts whose finding was not made."""

    def without_verdict(self) -> list[Finding]:
        """Findings that nobody has judged."""
        return [finding for finding in self.findings if not finding.verdict]

    def of_kind(self, kind: str) -> tuple[int, list[Finding]]:
        """The number of lines of a kind of packages, and the findings in them."""
        names = {package.requirement for package in self.packages if package.kind == kind}
        lines = sum(count for name, count in self.lines.items() if name in names)
        return lines, [finding for finding in self.findings if finding.package in names]


def run(packages: list[Package], downloads: Path, torch_python: Path | None) -> Results:
    """Get and check each package on its own."""
    results = Results(packages)
    verdicts = read_verdicts()
    for package in packages:
        with tempfile.TemporaryDirectory() as name:
            folder = downloads / package.requirement
            if package.installed and torch_python is not None:
                folder = Path(name)
                copy_installed(package, torch_python, folder)
            else:
                download(package, folder)
            start = time.monotonic()
            found = judged(check([package], folder), verdicts)
            results.seconds[package.requirement] = time.monotonic() - start
            results.lines[package.requirement] = count_lines(folder)
        results.findings += found
        print(f"{package.requirement}: {len(found)}", file=sys.stderr, flush=True)
    names = {package.requirement for package in packages}
    places = {finding.place for finding in results.findings if finding.verdict}
    results.gone = [
        verdict for verdict in verdicts if verdict.package in names and verdict.place not in places
    ]
    return results


def table(findings: Iterable[Finding]) -> list[str]:
    """A table in Markdown: for each rule and level, how many findings are right."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for finding in findings:
        counts.setdefault((finding.code, finding.level), Counter())[finding.verdict] += 1
    counts[("all", "")] = sum(counts.values(), Counter())
    rows = [
        "| rule | level | findings | true | harmless | false | not judged |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for (code, level), count in sorted(
        counts.items(), key=lambda item: (item[0][0] == "all", item[0])
    ):
        numbers = " | ".join(str(count[verdict]) for verdict in ("true", "harmless", "false", ""))
        rows.append(f"| {code} | {level} | {count.total()} | {numbers} |")
    return rows


def summary(results: Results) -> list[str]:
    """The sizes and the two rates that have a limit, as sentences."""
    total = sum(results.lines.values())
    seconds = sum(results.seconds.values())
    sizes = f"{len(results.packages)} packages, {total:,} lines, {len(results.findings)} findings"
    text = [f"{sizes}, {seconds:.0f} s of checking."]
    for kind, words in (
        ("trains", "that train on GPUs"),
        ("framework", "that such programs are built on"),
        ("other", "without machine learning"),
    ):
        number = sum(package.kind == kind for package in results.packages)
        lines, findings = results.of_kind(kind)
        verdicts = Counter(finding.verdict for finding in findings)
        text.append(
            f"{number} packages {words}: {lines:,} lines, {len(findings)} findings:"
            f" {verdicts['true']} true, {verdicts['harmless']} harmless, {verdicts['false']} false,"
            f" {verdicts['']} not judged."
        )
    lines, false, harmless = counted(results)
    text.append(
        f"In those that train: {per(false, 100_000, lines)} false findings per 100,000 lines (limit 1),"
        f" {per(harmless, 50_000, lines)} harmless warnings per 50,000 lines (limit 1)."
    )
    return text


def counted(results: Results) -> tuple[int, int, int]:
    """Of the packages that train: the lines, the false findings, the harmless warnings and errors."""
    lines, findings = results.of_kind("trains")
    false = sum(finding.verdict == "false" for finding in findings)
    harmless = sum(
        finding.verdict == "harmless" and finding.level != "information" for finding in findings
    )
    return lines, false, harmless


def per(number: int, of_lines: int, lines: int) -> str:
    """So many in so many lines."""
    return f"{number * of_lines / lines:.2f}" if lines else "0"


def within_limits(results: Results) -> bool:
    """Are there few enough false findings and harmless warnings in programs that train?"""
    lines, false, harmless = counted(results)
    return false * LINES_PER_FALSE <= lines and harmless * LINES_PER_HARMLESS_WARNING <= lines


def report(results: Results) -> str:
    """All of it as text for the terminal."""
    parts = [*table(results.findings), "", *summary(results)]
    for title, findings in (
        ("Findings without a verdict", results.without_verdict()),
        ("Verdicts without a finding", results.gone),
    ):
        if findings:
            parts += ["", f"{title}: {len(findings)}"]
            parts += [
                f"  {item.package} {item.file}:{item.line} {item.code} {item.level}: {item.text}"
                for item in findings
            ]
    return "\n".join(parts)


def main(words: list[str]) -> int:
    """Run, print, and say whether all is well."""
    parser = argparse.ArgumentParser(description="how many findings in real packages are right")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these packages")
    parser.add_argument(
        "--downloads", type=Path, default=cache_folder() / "corpus", help="where packages are kept"
    )
    parser.add_argument("--json", type=Path, help="write sizes and findings to this file")
    parser.add_argument("--without-verdict", type=Path, help="write findings to be judged here")
    parser.add_argument("--table", type=Path, help="write the table in Markdown here")
    chosen = parser.parse_args(words)
    packages = read_packages()
    if chosen.only:
        packages = [item for item in packages if {item.name, item.requirement} & set(chosen.only)]
    torch_python = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    results = run(packages, chosen.downloads, Path(torch_python) if torch_python else None)
    print(report(results))
    if chosen.without_verdict:
        write_findings(results.without_verdict(), chosen.without_verdict)
    if chosen.table:
        lines = [*table(results.findings), "", *summary(results)]
        chosen.table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if chosen.json:
        found = [asdict(finding) for finding in results.findings]
        content = {"lines": results.lines, "seconds": results.seconds, "findings": found}
        chosen.json.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return 0 if not results.without_verdict() and within_limits(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
