"""One rule's folder: the rule itself and everything that stands beside it (documents, cases, fix, proof)."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from ranksafe.checker.rule import Rule, RuleMetadata
from ranksafe.localization import Language

README_NAMES: Final[dict[Language, str]] = {"en": "README.md", "zh-cn": "README.zh-cn.md"}

REPOSITORY = "https://github.com/ranksafe/ranksafe/blob/main"
"""Where the repository's files are read; nothing else says it."""
RULE_PAGES = f"{REPOSITORY}/docs/rules.md"
"""Where a rule's page is found by people who have no checkout; the anchor is the code."""


class RuleFolderError(Exception):
    """A folder that should hold a rule does not; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class RuleFolder:
    """A rule and its folder."""

    rule: Rule
    """The one instance that serves every file; it holds no state."""
    path: Path
    module_name: str
    """Dotted name of the package that is the folder (``ranksafe_rules.launch.implicit_data_parallel``)."""

    @property
    def metadata(self) -> RuleMetadata:
        """What is known of the rule without running it."""
        return self.rule.metadata

    @property
    def area(self) -> str:
        """The folder above: ``launch``, ``devices``, ``data``, ``collectives``, ``model``..."""
        return self.path.parent.name

    @property
    def url(self) -> str:
        """The rule's page on the web."""
        return f"{RULE_PAGES}#{self.metadata.code.lower()}"

    def readme_path(self, language: Language) -> Path:
        """The document in ``language``, or the English one where it is missing."""
        path = self.path / README_NAMES[language]
        return path if path.is_file() else self.path / README_NAMES["en"]

    def readme(self, language: Language) -> str:
        """The rule's document. Raises OSError when the folder has none."""
        return self.readme_path(language).read_text(encoding="utf-8")

    @property
    def cases_path(self) -> Path:
        """The literate test cases."""
        return self.path / "cases.md"

    @property
    def failing_proof(self) -> Path:
        """The program that fails as the rule says; exists only if `has_proof`."""
        return self.path / "proof" / "failing.py"

    @property
    def fixed_proof(self) -> Path:
        """Its fixed twin; exists only if `has_proof`."""
        return self.path / "proof" / "fixed.py"

    @property
    def has_proof(self) -> bool:
        """Whether the failing program and its fixed twin are there."""
        return self.failing_proof.is_file() and self.fixed_proof.is_file()

    def fix_module(self) -> ModuleType | None:
        """The rule's ``fix.py``, imported now if it was not yet; None when the rule has none."""
        if not (self.path / "fix.py").is_file():
            return None
        return importlib.import_module(f"{self.module_name}.fix")


def load_rule_folder(module_name: str, path: Path) -> RuleFolder:
    """Import ``rule.py`` of a folder and make its one rule.

    Raises RuleFolderError when it cannot be imported, or does not define exactly one rule with metadata.
    """
    try:
        module = importlib.import_module(f"{module_name}.rule")
    except Exception as error:  # a plug-in may raise anything
        raise RuleFolderError(f"{module_name}: {type(error).__name__}: {error}") from error
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Rule)
        and not getattr(value, "__abstractmethods__", None)
        and value.__module__ == module.__name__
    ]
    if len(classes) != 1 or not isinstance(getattr(classes[0], "metadata", None), RuleMetadata):
        raise RuleFolderError(
            f"{module_name}: rule.py must define exactly one rule with metadata, found {len(classes)}"
        )
    return RuleFolder(classes[0](), path, module_name)
