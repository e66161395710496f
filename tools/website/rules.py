"""What the site adds to a rule's own page: what it is in a sentence, its facts, and the messages that lead to it."""

from __future__ import annotations

from functools import cache
from html import escape

from ranksafe.checker.registry import Registry
from ranksafe.checker.rule import Stability
from ranksafe.checker.rule_folder import RuleFolder
from ranksafe.localization import Language, Translated
from rule_pages import AREAS, LEVELS, PREVIEW, SYMPTOMS

from website import errors
from website.pages import digit_of

FIX = Translated("`ranksafe fix` can repair it", "`ranksafe fix` 可以修复")
PROOF = Translated("`ranksafe prove {code}` shows it", "`ranksafe prove {code}` 可以演示")
MESSAGES = Translated("Messages that it may end in", "可能出现的报错")


def page(markdown: str, folder: RuleFolder, registry: Registry, language: Language) -> str:
    """The rule's page as the site shows it."""
    title, _, text = markdown.partition("\n")
    summary = errors.with_code(folder.metadata.summary.in_language(language))
    parts = [title, "", f"<p>{summary}</p>", "", _facts(folder, language), "", text.strip("\n")]
    entries = _entries(registry).get(folder.metadata.code, [])
    if entries:
        parts += ["", f"## {MESSAGES.in_language(language)}", ""]
        parts += [_message(entry) for entry in entries]
    return "\n".join(parts) + "\n"


def _facts(folder: RuleFolder, language: Language) -> str:
    metadata = folder.metadata
    said = [LEVELS[metadata.level.label], SYMPTOMS[metadata.symptom], AREAS[digit_of(folder)]]
    said += [PREVIEW] if metadata.stability is Stability.PREVIEW else []
    said += [FIX] if (folder.path / "fix.py").is_file() else []
    said += [PROOF.filled(code=metadata.code)] if folder.has_proof else []
    shown = (errors.with_code(each.in_language(language)) for each in said)
    return f'<ul class="facts" data-search-exclude>{"".join(f"<li>{each}</li>" for each in shown)}</ul>'


@cache
def _entries(registry: Registry) -> dict[str, list[errors.Entry]]:
    found: dict[str, list[errors.Entry]] = {}
    for _, entries in errors.entries(registry):
        for entry in entries:
            for code in entry.rules:
                found.setdefault(code, []).append(entry)
    return found


def _message(entry: errors.Entry) -> str:
    link = f"../errors.html#{entry.anchor}"
    return f'<p class="message"><a href="{link}"><code>{escape(entry.wordings[0])}</code></a></p>'
