"""Whether a file, or one that uses it, says a word: a question to the whole project that parses nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ranksafe.semantics.project.dependents import Dependents
from ranksafe.semantics.project.files import ProjectFiles
from ranksafe.semantics.project.texts import ProjectTexts
from ranksafe.source.text import stands_in_code

_MOST_KEPT: Final = 8_000_000
"""Characters: what a project of some 500 files has."""


@dataclass(slots=True)
class Mentions:
    """Looks through every file of the project once for each word that is asked about."""

    files: ProjectFiles
    texts: ProjectTexts
    dependents: Dependents
    _by_word: dict[str, set[Path]] = field(default_factory=dict)
    _kept_texts: dict[Path, str] = field(default_factory=dict)
    """Of as many files as may be kept in memory."""
    _characters: int = 0
    """Of those texts together."""

    def by_users(self, path: Path, word: str) -> bool:
        """Whether a word stands, outside comments, in a file or in one that imports it, directly or not."""
        return any(
            user == path or path in self.dependents.closure(user) for user in self.saying(word)
        )

    def users(self, path: Path, word: str) -> set[Path]:
        """The files that import a file, directly or not, and in which a word stands outside comments."""
        return {user for user in self.saying(word) if path in self.dependents.closure(user)}

    def text_changed(self, path: Path) -> bool:
        """A file has another text; whether it says other words of those that were asked about."""
        changed = False
        self._characters -= len(self._kept_texts.pop(path, ""))
        for word, saying in self._by_word.items():
            if path in self.files and self._says(path, word) != (path in saying):
                saying ^= {path}
                changed = True
        return changed

    def files_changed(self) -> None:
        """Files came or went."""
        self._by_word.clear()
        self._kept_texts.clear()
        self._characters = 0

    def saying(self, word: str) -> set[Path]:
        """The files in which a word stands outside comments."""
        if word not in self._by_word:
            self._by_word[word] = {path for path in self.files.all() if self._says(path, word)}
        return self._by_word[word]

    def _says(self, path: Path, word: str) -> bool:
        text = self._kept_texts.get(path)
        if text is None:
            text = self.texts.text_of(path) or ""
            if self._characters + len(text) <= _MOST_KEPT:
                self._kept_texts[path] = text
                self._characters += len(text)
        return stands_in_code(text, word)
