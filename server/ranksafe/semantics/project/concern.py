"""Whether a definition of the project, or what it refers to, can make ranks part; told from the files' texts.

What a file's definitions mention is kept with its text, so that no file is parsed twice to find out.
"""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass, field
from pathlib import Path

from ranksafe.semantics.libraries import canonical
from ranksafe.semantics.mentions import Mentions, RankWords, mentions_of
from ranksafe.semantics.project.definitions import Definitions
from ranksafe.semantics.walking import FUNCTIONS
from ranksafe.source.recovery import parse_tolerantly

_REST = ""
"""The statements of a file that neither define nor import anything."""


@dataclass(slots=True)
class _File:
    """The definitions at the top of a file, a class with all its methods."""

    wrapping: bool
    mentions: dict[str, Mentions] = field(default_factory=dict)
    methods: dict[str, list[str]] = field(default_factory=dict)
    """The classes that have a method of a name."""
    variables: frozenset[str] = frozenset()
    """Names that statements other than definitions and imports give a value."""


class Concern:
    """Answers hold until a text changes."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._files: dict[tuple[Path, str], _File] = {}
        self._answers: dict[tuple[str, str], bool] = {}

    def text_changed(self, path: Path) -> None:
        """A file has another text, came or went."""
        for key in [key for key in self._files if key[0] == path]:
            del self._files[key]
        self._answers.clear()

    def may_concern_ranks(self, name: str, words: RankWords) -> bool:
        """Whether the definition with a dotted name, or one that it refers to, mentions one of the words."""
        answer = self._answers.get((name, words.fingerprint))
        if answer is None:
            answer = self._answers[name, words.fingerprint] = self._find(name, words)
        return answer

    def _find(self, name: str, words: RankWords) -> bool:
        pending = list(self._places(name))
        seen = set(pending)
        while pending:
            path, module, defined = pending.pop()
            file = self._file(path, words)
            mentions = file.mentions.get(defined)
            if mentions is None:
                continue
            if mentions.concern_ranks(file.wrapping):
                return True
            for written in mentions.names:
                if written.startswith("."):
                    found = [(path, module, cls) for cls in file.methods.get(written[1:], ())]
                else:
                    absolute = self._written(path, module, written)
                    if absolute is None:
                        is_variable = written.partition(".")[0] in file.variables
                        found = [(path, module, _REST)] if is_variable else []
                    elif words.include(absolute.rpartition(".")[2], file.wrapping):
                        return True
                    else:
                        found = self._places(absolute)
                new = [place for place in found if place not in seen]
                seen.update(new)
                pending += new
        return False

    def _places(self, name: str) -> list[tuple[Path, str, str]]:
        """The definition with a name, else the statements of the file that may give the name its value."""
        split = self._definitions.modules.split(self._definitions.resolve(name))
        if split is None:
            return []
        module, path, rest = split
        summary = self._definitions.texts.summary(path)
        if summary is None or not rest:
            return []
        is_defined = rest[0] in summary.classes or rest[0] in summary.functions
        return [(path, module, rest[0] if is_defined else _REST)]

    def _written(self, path: Path, module: str, written: str) -> str | None:
        summary = self._definitions.texts.summary(path)
        if summary is None:
            return None
        name = self._definitions.in_file(path, module, summary, written)
        return None if name is None else canonical(name)

    def _file(self, path: Path, words: RankWords) -> _File:
        key = (path, words.fingerprint)
        if key not in self._files:
            self._files[key] = self._kept(path, words) or self._read(path, words)
        return self._files[key]

    def _read(self, path: Path, words: RankWords) -> _File:
        text = self._definitions.text_of(path)
        parsed = None if text is None else parse_tolerantly(text)
        if text is None or parsed is None:
            return _File(False)
        file = _File(words.may_wrap(text))
        rest: list[ast.stmt] = []
        for statement in parsed.tree.body:
            if not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
                if not isinstance(statement, (ast.Import, ast.ImportFrom)):
                    rest.append(statement)
                continue
            file.mentions[statement.name] = mentions_of([statement], words)
            if isinstance(statement, ast.ClassDef):
                for item in statement.body:
                    if isinstance(item, FUNCTIONS):
                        file.methods.setdefault(item.name, []).append(statement.name)
        file.mentions[_REST] = mentions_of(rest, words)
        file.variables = frozenset(
            node.id
            for statement in rest
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
        self._keep(path, words, file)
        return file

    def _keep(self, path: Path, words: RankWords, file: _File) -> None:
        texts = self._definitions.texts
        content_hash = texts.hash_on_disk(path)
        if content_hash is not None:
            mentions = {
                name: [item.always, item.where_wrapped, sorted(item.names)]
                for name, item in file.mentions.items()
            }
            kept = json.dumps(
                [file.wrapping, mentions, file.methods, sorted(file.variables)],
                separators=(",", ":"),
            )
            texts.store.put_extra(f"concern {words.fingerprint}", path, content_hash, kept)

    def _kept(self, path: Path, words: RankWords) -> _File | None:
        texts = self._definitions.texts
        content_hash = texts.hash_on_disk(path)
        kind = f"concern {words.fingerprint}"
        kept = None if content_hash is None else texts.store.get_extra(kind, path, content_hash)
        if kept is None:
            return None
        try:
            wrapping, mentions, methods, variables = json.loads(kept)
            read = {
                name: Mentions(always, where_wrapped, frozenset(names))
                for name, (always, where_wrapped, names) in mentions.items()
            }
            return _File(wrapping, read, dict(methods), frozenset(variables))
        except (AttributeError, TypeError, ValueError):
            return None
