"""Forms by which a page shows only some of its rules or messages; ``docs/theme/assets/filter.js`` makes them work."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ranksafe.checker.rule_folder import RuleFolder
from ranksafe.localization import Language, Translated
from rule_pages import AREAS, LEVELS, SYMPTOMS

from website.pages import digit_of

TEXT = Translated("Text", "文字")
PASTED = Translated("Paste a message, or some words of it", "粘贴一条报错，或其中几个词")
FIELDS = {
    "symptom": Translated("What you see", "现象"),
    "area": Translated("Area", "领域"),
    "level": Translated("Level", "级别"),
    "fix": Translated("Fix", "修复"),
    "proof": Translated("Proof", "证明"),
}
ANY = Translated("any", "不限")
YES_NO = {"yes": Translated("yes", "有"), "no": Translated("no", "无")}
NONE = Translated("Nothing fits.", "没有符合的条目。")


def rules_form(language: Language) -> str:
    """The form over the table of rules."""
    choices = {
        "symptom": {
            symptom.value if symptom else "none": name for symptom, name in SYMPTOMS.items()
        },
        "area": AREAS,
        "level": LEVELS,
        "fix": YES_NO,
        "proof": YES_NO,
    }
    fields = [
        _field(title, _select(name, choices[name], language), language)
        for name, title in FIELDS.items()
    ]
    text = '<input type="search" name="text" autocomplete="off" spellcheck="false">'
    return _form([*fields, _field(TEXT, text, language)], language)


def errors_form(language: Language) -> str:
    """The form over the messages."""
    text = '<textarea name="text" rows="3" autocomplete="off" spellcheck="false"></textarea>'
    return _form([_field(PASTED, text, language)], language)


def facts(folder: RuleFolder) -> dict[str, str]:
    """A rule's value in each field of the form."""
    metadata = folder.metadata
    return {
        "symptom": metadata.symptom.value if metadata.symptom else "none",
        "area": digit_of(folder),
        "level": metadata.level.label,
        "fix": "yes" if (folder.path / "fix.py").is_file() else "no",
        "proof": "yes" if folder.has_proof else "no",
    }


def marked(html: str, rules: Iterable[RuleFolder]) -> str:
    """The table of rules, each row with its facts."""
    for folder in rules:
        start = f'<tr>\n<td><a id="{folder.metadata.code.lower()}">'
        if html.count(start) != 1:
            raise ValueError(f"{folder.metadata.code} is not in the table of rules")
        values = "".join(f' data-{name}="{value}"' for name, value in facts(folder).items())
        html = html.replace(start, start.replace("<tr>", f"<tr data-filtered{values}>"))
    # The search has the rules' own pages.
    return html.replace("<table>", "<table data-search-exclude>")


def _form(fields: list[str], language: Language) -> str:
    none = f'<p class="filter-none" data-search-exclude hidden>{escape(NONE.in_language(language))}</p>'
    end = f'<output name="count"></output>\n</form>\n{none}'
    # Hidden until the script shows it: without one it would do nothing.
    return "\n".join(['<form class="filter" data-search-exclude hidden>', *fields, end])


def _field(title: Translated, control: str, language: Language) -> str:
    return f"<label><span>{escape(title.in_language(language))}</span>{control}</label>"


def _select(name: str, choices: dict[str, Translated], language: Language) -> str:
    options = {"": ANY, **choices}
    listed = "".join(
        f'<option value="{value}">{escape(text.in_language(language))}</option>'
        for value, text in options.items()
    )
    return f'<select name="{name}">{listed}</select>'
