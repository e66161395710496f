"""Whatever a user may read is there in both languages, with the same placeholders."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted([*ROOT.glob("server/ranksafe/**/*.py"), *ROOT.glob("rules/ranksafe_rules/**/*.py")])
CHINESE = re.compile(r"[\u4e00-\u9fff]")
PLACEHOLDER = re.compile(r"(?<!\{)\{(\w+)[^{}]*\}(?!\})")
WORD = re.compile(r"[a-z]{3,}")
UNTRANSLATABLE = re.compile(r"`[^`]*`|\{\w*\}|[A-Z]\w*|\b\w+\.\w[\w.]*\b")


def translations(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, English and Chinese of every ``Translated(...)`` with two literal texts."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "Translated":
                texts = [literal(argument) for argument in arguments(node)]
                if len(texts) == 2 and texts[0] is not None and texts[1] is not None:
                    yield node.lineno, texts[0], texts[1]


def arguments(call: ast.Call) -> list[ast.expr]:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    return [*call.args, *(named[name] for name in ("en", "zh_cn") if name in named)]


def literal(node: ast.expr) -> str | None:
    """A string literal's text; an f-string's with ``{}`` for what is put in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
        return "".join(map(str, parts))
    return None


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_both_languages(path: Path) -> None:
    for line, english, chinese in translations(path):
        place = f"{path.relative_to(ROOT)}:{line}"
        assert sorted(set(PLACEHOLDER.findall(english))) == sorted(
            set(PLACEHOLDER.findall(chinese))
        ), place
        if WORD.search(UNTRANSLATABLE.sub("", english)):
            assert CHINESE.search(chinese) or english == chinese, (
                f"{place}: no Chinese in {chinese!r}"
            )
