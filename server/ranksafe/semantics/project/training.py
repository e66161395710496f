"""Who trains whose models in a project: which of its classes are handed to a Trainer or wrapped in nn.DataParallel.

Only a few files of a project are looked at, told by their text. What such a file uses depends on what other files say;
every question it asked is kept with the answer, so that the result of an earlier session holds exactly as long as the
answers are the same, and no file is parsed to find that out.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ranksafe.pausing import undisturbed
from ranksafe.semantics.cross_file import LaunchCommand
from ranksafe.semantics.facts import DATA_PARALLEL, TRAINER
from ranksafe.semantics.module import Module
from ranksafe.semantics.project.definitions import Definitions
from ranksafe.semantics.project.files import ProjectFiles
from ranksafe.source.recovery import parse_tolerantly
from ranksafe.source.text import SourceText

_KIND: Final = "training"


@dataclass(frozen=True, slots=True)
class Trained:
    """Canonical names of classes, with those of the project that they are put together from."""

    by_trainer: frozenset[str] = frozenset()
    replicated: frozenset[str] = frozenset()

    def differences(self, other: Trained) -> frozenset[str]:
        """The classes of which the two say different things."""
        return (self.by_trainer ^ other.by_trainer) | (self.replicated ^ other.replicated)


@dataclass(frozen=True, slots=True)
class _Uses:
    """What one file hands over, and the files whose summaries were read to find out."""

    trained: Trained
    read: frozenset[Path]


@dataclass(slots=True)
class TrainingUses:
    """Looks at the files that may train, and again at those for which something has changed."""

    files: ProjectFiles
    definitions: Definitions
    _uses: dict[Path, _Uses] = field(default_factory=dict)
    _answer: Trained | None = None
    _read: frozenset[Path] = frozenset()

    @property
    def known(self) -> Trained | None:
        """The last answer, which may be out of date; None: nobody has asked."""
        return self._answer if self._answer is not None else self._outdated

    _outdated: Trained | None = None

    def answer(self) -> Trained:
        """The classes of the whole project."""
        if self._answer is None:
            by_trainer: set[str] = set()
            replicated: set[str] = set()
            for path in self.files.all():
                if self.definitions.texts.may_train(path):
                    uses = self.look_at(path)
                    by_trainer |= uses.trained.by_trainer
                    replicated |= uses.trained.replicated
            with self.definitions.texts.noting_summaries() as read:
                self._answer = Trained(self._with_parts(by_trainer), self._with_parts(replicated))
            self._read = frozenset(read)
        return self._answer

    def text_changed(self, path: Path) -> None:
        """A file has another text."""
        if self._uses.pop(path, None) is not None or self.definitions.texts.may_train(path):
            self._put_off()

    def summary_changed(self, path: Path) -> None:
        """A file says something else to other files."""
        stale = [user for user, uses in self._uses.items() if path in uses.read]
        for user in stale:
            del self._uses[user]
        if stale or path in self._read:
            self._put_off()

    def files_changed(self) -> None:
        """Files came or went, and any name may mean something else."""
        self._uses.clear()
        self._put_off()

    def _put_off(self) -> None:
        self._outdated = self.known
        self._answer = None

    def look_at(self, path: Path) -> _Uses:
        """What one file hands over."""
        uses = self._uses.get(path)
        if uses is None:
            with self.definitions.texts.noting_summaries() as read:
                trained = self._kept(path) or self._found(path)
            uses = self._uses[path] = _Uses(trained, frozenset(read))
        return uses

    def _kept(self, path: Path) -> Trained | None:
        """The kept result, if every question that was asked for it has the same answer today."""
        content_hash = self.definitions.texts.hash_on_disk(path)
        if content_hash is None:
            return None
        text = self.definitions.texts.store.get_extra(_KIND, path, content_hash)
        if text is None:
            return None
        try:
            by_trainer, replicated, asked = json.loads(text)
            project = _AskedProject(self.definitions)
            if any(project.ask(query, *words) != answer for query, words, answer in asked):
                return None
            return Trained(frozenset(by_trainer), frozenset(replicated))
        except (AttributeError, TypeError, ValueError):
            return None

    @undisturbed()
    def _found(self, path: Path) -> Trained:
        text = self.definitions.text_of(path)
        parsed = None if text is None else parse_tolerantly(text)
        if text is None or parsed is None:
            return Trained()
        project = _AskedProject(self.definitions)
        module = Module(SourceText(text), project.module_name(path), str(path), project)
        module.fill(parsed.tree)
        replicated = _models_of(module, module.calls(DATA_PARALLEL), "module")
        by_trainer: set[str] = set()
        facts = module.facts
        if facts.is_entry and not facts.launcher_evidence:
            by_trainer |= _models_of(module, module.calls(TRAINER), "model")
            by_trainer |= {name for name, _ in facts.trainers}
        module.release()
        content_hash = self.definitions.texts.hash_on_disk(path)
        if content_hash is not None:
            asked = [[*question, answer] for question, answer in project.asked.items()]
            kept = json.dumps(
                [sorted(by_trainer), sorted(replicated), asked], separators=(",", ":")
            )
            self.definitions.texts.store.put_extra(_KIND, path, content_hash, kept)
        return Trained(frozenset(by_trainer), frozenset(replicated))

    def _with_parts(self, names: set[str]) -> frozenset[str]:
        """The classes and every project class they are put together from."""
        found: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in found and self.definitions.is_class(name):
                found.add(name)
                pending += self.definitions.parts(name)
                pending += self.definitions.bases(name)
        return frozenset(found)


class _AskedProject:
    """Implements `ranksafe.semantics.cross_file.Project`: another one that remembers what it was asked."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self.asked: dict[tuple[str, tuple[str | None, ...]], Any] = {}

    def ask(self, query: str, *words: str | None) -> Any:
        """The answer as plain data."""
        key = (query, words)
        if key not in self.asked:
            answer: Any
            if query == "constant":
                answer = self._definitions.constant_source(str(words[0]))
            elif query == "text_of":
                answer = self._definitions.texts.hash_of(Path(str(words[0])))
            elif query == "module_name":
                answer = self._definitions.module_name(Path(str(words[0])))
            elif query == "definition_file":
                found = self._definitions.definition_file(str(words[0]))
                answer = None if found is None else [found[0], str(found[1])]
            elif query in _PLAIN:
                answer = getattr(self._definitions, query)(*words)
            else:
                raise ValueError(query)
            self.asked[key] = answer
        return self.asked[key]

    def module_name(self, path: Path) -> str:
        """Dotted name of the module in a file."""
        return str(self.ask("module_name", str(path)))

    def import_name(self, importer: str | None, module: str) -> str:
        """What ``import module`` means in a file."""
        return str(self.ask("import_name", importer, module))

    def resolve(self, name: str) -> str:
        """The name of the definition behind a dotted name."""
        return str(self.ask("resolve", name))

    def export(self, module: str, name: str) -> str | None:
        """What ``from module import *`` brings under ``name``."""
        found: str | None = self.ask("export", module, name)
        return found

    def is_class(self, name: str) -> bool:
        """Whether a dotted name is a class of the project."""
        return bool(self.ask("is_class", name))

    def bases(self, name: str) -> list[str]:
        """Canonical names of a project class's bases."""
        return list(self.ask("bases", name))

    def constant(self, name: str) -> ast.expr | None:
        """The literal that a module-level name of the project is bound to."""
        self.ask("constant", name)
        return self._definitions.constant(name)

    def definition_file(self, name: str) -> tuple[str, Path] | None:
        """The module, and its file, that defines a function or class."""
        self.ask("definition_file", name)
        return self._definitions.definition_file(name)

    def text_of(self, path: Path) -> str | None:
        """The text of a file."""
        self.ask("text_of", str(path))
        return self._definitions.text_of(path)

    def number_of_files(self) -> int:
        """Left out: nobody asks while that is found out."""
        return 0

    def users_mention(self, path: Path, word: str) -> bool:  # noqa: ARG002
        """Left out: nobody asks while that is found out."""
        return False

    def users_saying(self, path: Path, word: str, *, asker: Path) -> list[Path]:  # noqa: ARG002
        """Left out: nobody asks while that is found out."""
        return []

    def files_saying(self, word: str, *, asker: Path) -> list[Path]:  # noqa: ARG002
        """Left out: nobody asks while that is found out."""
        return []

    def imported_saying(self, path: Path, word: str) -> list[Path]:  # noqa: ARG002
        """Left out: nobody asks while that is found out."""
        return []

    def values_given(self, option: str, asker: Path) -> list[str]:  # noqa: ARG002
        """Left out: nobody asks while that is found out."""
        return []

    def launches_of(self, path: Path) -> list[LaunchCommand]:  # noqa: ARG002
        """Left out: nobody asks while that is found out."""
        return []

    def plain_start_of(self, path: Path) -> LaunchCommand | None:  # noqa: ARG002
        """Left out: nobody asks while that is found out."""
        return None

    def runs_on_one_gpu(self, path: Path) -> bool:  # noqa: ARG002
        """Left out: nobody asks while that is found out."""
        return False

    def launches_any(self, asker: Path) -> bool:  # noqa: ARG002
        """Left out: nobody asks while that is found out."""
        return False

    def runs_in_one_process(self, path: Path) -> bool:  # noqa: ARG002
        """Left out: nobody asks while that is found out."""
        return False

    def trains_with_trainer(self, module: str) -> bool:  # noqa: ARG002
        """Left out: it is what is being found out."""
        return False

    def wraps_data_parallel(self, module: str) -> bool:  # noqa: ARG002
        """Left out: it is what is being found out."""
        return False


_PLAIN: Final = frozenset({"import_name", "resolve", "export", "is_class", "bases"})


def _models_of(module: Module, calls: Iterable[ast.Call], keyword: str) -> set[str]:
    found = set()
    for call in calls:
        model = module.argument_node(call, keyword, 0)
        if model is not None and (name := module.type_of(model)) is not None:
            found.add(name)
    return found
