"""Text in the languages ranksafe speaks: English and Simplified Chinese.

Every message is written in both languages at the place where it is used, so that neither can be forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Language = Literal["en", "zh-cn"]
LANGUAGES: Final[tuple[Language, ...]] = ("en", "zh-cn")


@dataclass(frozen=True, slots=True)
class Translated:
    """One sentence in both languages."""

    en: str
    zh_cn: str

    def in_language(self, language: Language) -> str:
        """The sentence in ``language``."""
        return self.zh_cn if language == "zh-cn" else self.en

    def filled(self, **values: object) -> Translated:
        """A copy with ``{name}`` placeholders replaced in both languages; a value may itself be Translated.

        Raises KeyError when a placeholder has no value.
        """
        english = {
            name: value.en if isinstance(value, Translated) else value
            for name, value in values.items()
        }
        chinese = {
            name: value.zh_cn if isinstance(value, Translated) else value
            for name, value in values.items()
        }
        return Translated(self.en.format(**english), self.zh_cn.format(**chinese))


def both(one: Translated, other: Translated) -> Translated:
    """Two sentences, one after the other."""
    return Translated(f"{one.en} {other.en}", one.zh_cn + other.zh_cn)


def language_of(locale: str | None) -> Language:
    """The language for an editor's or a shell's locale (``zh-CN``, ``zh_CN.UTF-8``, ``en-US``, None).

    Every Chinese locale gets Simplified Chinese; everything else gets English.
    """
    return "zh-cn" if locale and locale.lower().startswith("zh") else "en"
