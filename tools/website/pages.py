"""Which files of the repository are pages of the site, where they stand there, and in what order they are offered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksafe.checker.registry import Registry
from ranksafe.checker.rule_folder import RuleFolder
from ranksafe.localization import Language, Translated
from rule_pages import AREAS, ROOT

RULES = "docs/rules.md"
ERRORS = "docs/errors.md"
"""Made at the build (`website.errors`), as if it stood there."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page, by its English source."""

    source: str
    """Path from the repository's root."""
    address: str
    """Path in the site; the same in both languages."""
    title: Translated | None = None
    """In the navigation; None: its heading."""


@dataclass(frozen=True, slots=True)
class Group:
    """Pages under one title of the navigation."""

    title: Translated
    members: tuple[Page | Group, ...]


def contents(registry: Registry) -> tuple[Page | Group, ...]:
    """The whole site in the order of its navigation."""
    return (
        Page("README.md", "index.html", Translated("Start", "开始")),
        Group(
            Translated("Guide", "指南"),
            (
                Page("docs/guide.md", "guide.html"),
                *(Page(f"docs/guide/{name}.md", f"guide/{name}.html") for name in _guides()),
                Page("client/neovim/README.md", "guide/neovim.html"),
            ),
        ),
        Group(
            Translated("Rules", "规则"),
            (
                Page(RULES, "rules.html", Translated("All rules", "全部规则")),
                *_areas(registry),
            ),
        ),
        Page(ERRORS, "errors.html", Translated("I see this error", "按报错查找")),
        Group(
            Translated("How good it is", "效果如何"),
            (
                Page("docs/rank-bench.md", "rank-bench.html"),
                Page("docs/precision.md", "precision.html"),
                Page("docs/fault-matrix.md", "fault-matrix.html"),
            ),
        ),
        Group(
            Translated("How it works", "工作原理"),
            (
                Page("docs/architecture.md", "architecture.html"),
                Page("docs/rank-flow.md", "rank-flow.html"),
                Page("docs/rehearsal.md", "rehearsal.html"),
                Page("docs/rehearsal/cuda-only-operators.md", "rehearsal/cuda-only-operators.html"),
                Page("docs/rehearsal/unseen-scripts.md", "rehearsal/unseen-scripts.html"),
                Page("docs/rehearsal/planted-failures.md", "rehearsal/planted-failures.html"),
                Page("docs/security.md", "security.html"),
                Page("CONTRIBUTING.md", "contributing.html"),
            ),
        ),
        Page("CHANGELOG.md", "changelog.html", Translated("Changelog", "更新日志")),
    )


def _guides() -> list[str]:
    first = ["hangs", "diagnose", "rehearsal", "fit", "reports", "ssh", "slurm"]
    names = {path.name.partition(".")[0] for path in (ROOT / "docs/guide").glob("*.md")}
    return [*first, *sorted(names - set(first))]


def _areas(registry: Registry) -> Iterator[Group]:
    for digit, name in AREAS.items():
        shown = [folder for folder in registry.rules if digit_of(folder) == digit]
        yield Group(
            Translated(name.en[0].upper() + name.en[1:], name.zh_cn),
            tuple(_rule_page(folder) for folder in shown),
        )


def digit_of(folder: RuleFolder) -> str:
    """The hundreds digit of a rule's code, which is its area."""
    return folder.metadata.code[2]


def _rule_page(folder: RuleFolder) -> Page:
    title = f"{folder.metadata.code} {folder.metadata.name}"
    return Page(source_of(folder), rule_address(folder.metadata.code), Translated(title, title))


def source_of(folder: RuleFolder) -> str:
    """A rule's English page, from the repository's root."""
    return (folder.path / "README.md").relative_to(ROOT).as_posix()


def rule_address(code: str) -> str:
    """Where a rule's page stands in the site."""
    return f"rules/{code.lower()}.html"


def pages(members: tuple[Page | Group, ...]) -> Iterator[Page]:
    """All pages, without their groups."""
    for member in members:
        if isinstance(member, Group):
            yield from pages(member.members)
        else:
            yield member


def in_language(source: str, language: Language) -> str:
    """The file that a page is made of: the Chinese twin where there is one."""
    twin = f"{source.removesuffix('.md')}.zh-cn.md"
    is_there = source == ERRORS or Path(ROOT, twin).is_file()
    return twin if language == "zh-cn" and is_there else source


def navigation(members: tuple[Page | Group, ...], language: Language) -> list[Any]:
    """The contents as mkdocs wants them: titles and paths."""
    entries: list[Any] = []
    for member in members:
        if isinstance(member, Group):
            below = navigation(member.members, language)
            entries.append({member.title.in_language(language): below})
        else:
            path = in_language(member.source, language)
            title = member.title
            entries.append(path if title is None else {title.in_language(language): path})
    return entries
