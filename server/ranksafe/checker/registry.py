"""Which rules there are: our own, and those of packages in the entry-point group ``ranksafe.rules``."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from ranksafe.checker.configuration import selector_matches
from ranksafe.checker.rule_folder import RuleFolder, RuleFolderError, load_rule_folder

ENTRY_POINT_GROUP = "ranksafe.rules"
BUILT_IN_PACKAGE = "ranksafe_rules"
_SUPPRESSION_RULE = "ranksafe.checker.unused_suppression"


class Registry:
    """The rules, sorted by code. They are imported when one is asked for: a check whose results were all kept does
    without."""

    def __init__(self, packages: Sequence[str] = (), folders: Sequence[RuleFolder] = ()) -> None:
        """The rules in ``folders``, and those in the folders of the named packages; of two rules with one code or name
        the first stays."""
        self._packages = packages
        self._folders = folders

    @classmethod
    def load(cls, entry_points: bool = True) -> Registry:
        """The built-in rules and, with ``entry_points``, those that other installed packages bring.

        Without them (a workspace that is not trusted) only ranksafe's own package is imported. Without an
        installation (a checkout on the path) the built-in package is found by its name.
        """
        packages = [BUILT_IN_PACKAGE]
        if entry_points:
            packages += [name for name in _plug_in_packages() if name not in packages]
        return cls.of_packages(packages)

    @classmethod
    def of_packages(cls, packages: Sequence[str]) -> Registry:
        """The rules of these packages, and the one that lives in the checker."""
        return cls(packages, [_own_rule()])

    @property
    def rules(self) -> tuple[RuleFolder, ...]:
        """All rules."""
        return self._imported[0]

    @property
    def problems(self) -> tuple[str, ...]:
        """Plug-ins and folders that could not be used, each with the reason; for the log."""
        return self._imported[1]

    @property
    def paths(self) -> list[Path]:
        """The folders below which all files of the rules are; nothing is imported to know them."""
        roots = [root for package in self._packages for root in _roots_of(package)]
        return roots + [folder.path for folder in self._folders]

    @cached_property
    def _imported(self) -> tuple[tuple[RuleFolder, ...], tuple[str, ...]]:
        folders = list(self._folders)
        problems: list[str] = []
        for package in self._packages:
            try:
                found = list(_folders_of(package))
            except Exception as error:  # a plug-in may raise anything
                problems.append(f"{package}: {type(error).__name__}: {error}")
                continue
            for module_name, path in found:
                try:
                    folder = load_rule_folder(module_name, path)
                except RuleFolderError as error:
                    problems.append(str(error))
                    continue
                taken = _clash(folder, folders)
                if taken is not None:
                    problems.append(f"{module_name}: its code or name is that of {taken}")
                else:
                    folders.append(folder)
        folders.sort(key=lambda folder: folder.metadata.code)
        return tuple(folders), tuple(problems)

    @cached_property
    def _by_code(self) -> dict[str, RuleFolder]:
        return {folder.metadata.code: folder for folder in self.rules}

    @cached_property
    def _by_name(self) -> dict[str, RuleFolder]:
        return {folder.metadata.name: folder for folder in self.rules}

    def by_code(self, code: str) -> RuleFolder | None:
        """The rule with this code (``RS201``, in any case)."""
        return self._by_code.get(code.upper())

    def by_name(self, name: str) -> RuleFolder | None:
        """The rule with this kebab-case name."""
        return self._by_name.get(name)

    def find(self, code_or_name: str) -> RuleFolder | None:
        """The rule with this code or name."""
        return self.by_code(code_or_name) or self.by_name(code_or_name)

    def names_nothing(self, selector: str) -> bool:
        """Whether a selector (code, prefix, name, ``ALL``) fits no rule at all: a typing error, most likely."""
        return not any(selector_matches(selector, folder.metadata) for folder in self.rules)


def _plug_in_packages() -> list[str]:
    if not any(map(_may_bring_rules, sys.path)):
        return []
    # Imported here: it is a tenth of the start-up time.
    from importlib import metadata

    return sorted({entry.value for entry in metadata.entry_points(group=ENTRY_POINT_GROUP)})


def _may_bring_rules(folder: str) -> bool:
    """Whether a package that is installed in a folder of Python's path names the group; an archive may hold one."""
    try:
        installed = [
            entry.path
            for entry in os.scandir(folder or os.curdir)
            if entry.name.endswith((".dist-info", ".egg-info", "EGG-INFO"))
        ]
    except NotADirectoryError:
        return True
    except OSError:
        return False
    for information in installed:
        try:
            text = Path(information, "entry_points.txt").read_bytes()
        except OSError:
            continue
        if ENTRY_POINT_GROUP.encode() in text:
            return True
    return False


def _own_rule() -> RuleFolder:
    """RS001 lives in the checker itself: it is about our comments, not about GPUs."""
    return load_rule_folder(_SUPPRESSION_RULE, Path(__file__).parent / "unused_suppression")


def _folders_of(package: str) -> Iterator[tuple[str, Path]]:
    """Module names and paths of the folders with a ``rule.py``, one or two levels down."""
    roots = _roots_of(package)
    if not roots:
        raise ModuleNotFoundError(f"no package named {package}")
    for root in roots:
        for pattern in ("*/rule.py", "*/*/rule.py"):
            for file in sorted(root.glob(pattern)):
                parts = file.parent.relative_to(root).parts
                yield ".".join((package, *parts)), file.parent


def _roots_of(package: str) -> list[Path]:
    """The package's folders; none where there is no such package."""
    found = importlib.util.find_spec(package)
    locations = found.submodule_search_locations if found is not None else None
    return [Path(root) for root in locations or ()]


def _clash(folder: RuleFolder, others: list[RuleFolder]) -> str | None:
    for other in others:
        same_code = other.metadata.code == folder.metadata.code
        if same_code or other.metadata.name == folder.metadata.name:
            return other.module_name
    return None
