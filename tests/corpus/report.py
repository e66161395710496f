"""One run over the packages in figures: what was found, and how much of it is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.corpus.findings import Finding
from tests.corpus.packages import Kind, Package

KINDS: list[tuple[Kind, str]] = [
    ("trains", "that train on GPUs"),
    ("framework", "that such programs are built on"),
    ("other", "without machine learning"),
]
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


def table(findings: Iterable[Finding]) -> list[str]:
    """A table in Markdown: for each rule and level, how many findings are right."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for finding in findings:
        counts.setdefault((finding.code, finding.level), Counter())[finding.verdict] += 1
    counts[("all", "")] = sum(counts.values(), Counter())
    rows = [
        "| rule | level | findings | true | harmless | false | not judged | precision |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (code, level), count in sorted(
        counts.items(), key=lambda item: (item[0][0] == "all", item[0])
    ):
        numbers = " | ".join(str(count[verdict]) for verdict in ("true", "harmless", "false", ""))
        rows.append(f"| {code} | {level} | {count.total()} | {numbers} | {precision(count)} |")
    return rows


def precision(verdicts: Counter[str]) -> str:
    """The share of the judged findings that are true."""
    total = verdicts.total() - verdicts[""]
    return f"{verdicts['true'] / total:.0%}" if total else ""


def summary(results: Results) -> list[str]:
    """The sizes and the two rates that have a limit, as sentences."""
    total = sum(results.lines.values())
    seconds = sum(results.seconds.values())
    sizes = f"{len(results.packages)} packages, {total:,} lines, {len(results.findings)} findings"
    text = [f"{sizes}, {seconds:.0f} s of checking."]
    for kind, words in KINDS:
        number = sum(package.kind == kind for package in results.packages)
        lines, findings = results.of_kind(kind)
        verdicts = Counter(finding.verdict for finding in findings)
        text.append(
            f"Packages {words}: {number}, with {lines:,} lines and {len(findings)} findings:"
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


def page_figures(results: Results) -> str:
    """The figures as Markdown: the table, the sizes, and every package with its version."""
    by_kind = []
    for kind, words in KINDS:
        names = [
            f"{item.requirement.replace('==', ' ')} ({results.lines[item.requirement]:,})"
            for item in results.packages
            if item.kind == kind
        ]
        by_kind.append(f"Packages {words} (lines): {', '.join(names)}.")
    sentences = [f"- {sentence}" for sentence in summary(results)]
    parts = [*table(results.findings), "", *sentences, "", "\n\n".join(by_kind)]
    return "\n" + "\n".join(parts) + "\n\n"
