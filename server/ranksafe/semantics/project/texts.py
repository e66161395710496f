"""The texts of a project's files and their summaries: the editor's where a file is open, else the disk's."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ranksafe.pausing import undisturbed
from ranksafe.semantics.project.files import MAXIMUM_SIZE, content_hash
from ranksafe.semantics.project.summary import Summary, from_text, summarize, to_text
from ranksafe.semantics.project.summary_store import Stamp, SummaryStore

_DATA_PARALLEL_CALL = re.compile(r"(?<!\w)DataParallel\(")
_RUNS_BY_ITSELF = re.compile(r"__main__|^\w+\.train\(", re.MULTILINE)


def may_train(text: str) -> bool:
    """Whether a file may hand models to nn.DataParallel, or be a script that builds a Trainer: asked of the text, so
    that only a few files of a project are parsed."""
    if "DataParallel(" in text and _DATA_PARALLEL_CALL.search(text) is not None:
        return True
    return "Trainer(" in text and _RUNS_BY_ITSELF.search(text) is not None


class ProjectTexts:
    """Reads a file when somebody asks about it; a summary comes from the store where it can."""

    def __init__(self, read: Callable[[Path], str | None], store: SummaryStore) -> None:
        self.store = store
        self._read = read
        self._open_texts: dict[Path, str] = {}
        self._open_hashes: dict[Path, str] = {}
        self._stamps: dict[Path, Stamp | None] = {}
        """Files on disk that were looked at in this session; None: they could not be read."""
        self._summaries: dict[Path, Summary | None] = {}
        self._noted: set[Path] | None = None
        self._ahead: dict[Path, tuple[str, Summary]] = {}
        """By the hash of the text."""

    # -- keeping up to date

    def known_hash(self, path: Path, *, opening: bool) -> str | None:
        """The hash of the text that answers were made from; None when there were none, or it could not be read.

        ``opening``: the file is about to be opened, which changes nothing where the editor has the text of the disk.
        """
        if opening or path in self._stamps or path in self._open_hashes:
            return self.hash_of(path)
        return None

    def was_looked_at(self, path: Path) -> bool:
        """Whether any answer was made from a file."""
        return path in self._stamps or path in self._open_hashes

    def known_summary(self, path: Path, known_hash: str) -> str | None:
        """The summary, as text, that answers were made from, if there is one."""
        summary = self._summaries.get(path)
        return self.store.summary(known_hash) if summary is None else to_text(summary)

    def take_over(self, path: Path, text: str | None) -> None:
        """The text of an open file, or (None) the disk's."""
        self._stamps.pop(path, None)
        self._summaries.pop(path, None)
        if text is None or len(text) > MAXIMUM_SIZE:
            self._open_texts.pop(path, None)
            self._open_hashes.pop(path, None)
            self._ahead.pop(path, None)
            if text is not None:
                # As it will be with the file once it is saved.
                self._stamps[path] = None
        else:
            self._open_texts[path] = text
            self._open_hashes[path] = content_hash(text)

    # -- texts

    def text_of(self, path: Path) -> str | None:
        """The text of a file; None when it cannot be read."""
        text = self._open_texts.get(path)
        if text is not None:
            return text
        if path in self._stamps:
            return self._read(path)
        try:
            return self._read_from_disk(path, os.stat(path))  # noqa: PTH116
        except OSError:
            self._stamps[path] = None
            return None

    def hash_of(self, path: Path) -> str | None:
        """The hash of a file's text; None when it cannot be read."""
        if path in self._open_hashes:
            return self._open_hashes[path]
        stamp = self._stamp(path)
        return None if stamp is None else stamp.hash

    def hash_on_disk(self, path: Path) -> str | None:
        """The hash of a file's text; None when it cannot be read, or is open in the editor and not saved."""
        stamp = self._stamp(path)
        if stamp is None or self._open_hashes.get(path, stamp.hash) != stamp.hash:
            return None
        return stamp.hash

    def may_train(self, path: Path) -> bool:
        """What `may_train` says of a file's text."""
        text = self._open_texts.get(path)
        if text is not None:
            return may_train(text)
        stamp = self._stamp(path)
        return stamp is not None and stamp.may_train

    def _stamp(self, path: Path) -> Stamp | None:
        if path not in self._stamps:
            self._look(path)
        return self._stamps[path]

    def _look(self, path: Path) -> str | None:
        """Look at a file on disk; gives its text if that had to be read: it does not look as it did when it was read
        last."""
        try:
            stat = os.stat(path)  # noqa: PTH116 - asked for every file of a project
        except OSError:
            self._stamps[path] = None
            return None
        known = self.store.stamp(path)
        if known is not None and known[:2] == (stat.st_size, stat.st_mtime_ns):
            self._stamps[path] = known
            return None
        return self._read_from_disk(path, stat)

    def _read_from_disk(self, path: Path, stat: os.stat_result) -> str | None:
        text = self._read(path)
        if text is None:
            self._stamps[path] = None
            return None
        stamp = Stamp(stat.st_size, stat.st_mtime_ns, content_hash(text), may_train(text))
        self._stamps[path] = stamp
        self.store.put_stamp(path, stamp)
        return text

    # -- summaries

    def summary(self, path: Path) -> Summary | None:
        """The summary of a file; None when it cannot be read."""
        if self._noted is not None:
            self._noted.add(path)
        if path not in self._summaries:
            self._summaries[path] = self.load_summary(path)
        return self._summaries[path]

    def load_summary(self, path: Path) -> Summary | None:
        """The summary of a file, not kept in memory and not noted."""
        if path in self._summaries:
            return self._summaries[path]
        known = self.hash_of(path)
        if known is None:
            return None
        text = self.store.summary(known)
        summary = None if text is None else from_text(text)
        return self._summarize(path, known, None) if summary is None else summary

    def summarize_ahead(self, path: Path, text: str) -> None:
        """Find out, with pauses, what the summary of a file's next text is, so that to take it over costs little."""
        if len(text) <= MAXIMUM_SIZE:
            known = content_hash(text)
            if known != self.known_hash(path, opening=True):
                self._ahead[path] = (known, summarize(text))

    def prepare(self, path: Path, longest: int | None) -> None:
        """Have a file's summary in the store; a file of more than ``longest`` bytes is left out."""
        if path in self._open_texts:
            return
        text = None if path in self._stamps else self._look(path)
        stamp = self._stamps[path]
        if stamp is None or self.store.has_summary(stamp.hash):
            return
        if longest is None or stamp.size <= longest:
            self._summarize(path, stamp.hash, text)

    def _summarize(self, path: Path, known: str, text: str | None) -> Summary | None:
        text = self.text_of(path) if text is None else text
        if text is None:
            return None
        ahead, found = self._ahead.pop(path, (None, Summary()))
        with undisturbed():
            summary = found if ahead == known else summarize(text)
        if path not in self._open_texts and content_hash(text) == known:
            self.store.put_summary(known, to_text(summary))
        return summary

    def note(self, paths: Iterable[Path]) -> None:
        """An answer that was kept is used again: the summaries of these files have a part in it."""
        if self._noted is not None:
            self._noted.update(paths)

    @contextmanager
    def noting_summaries(self) -> Iterator[set[Path]]:
        """Collect the files whose summaries have a part in the answers given meanwhile."""
        outer = self._noted
        noted: set[Path] = set()
        self._noted = noted
        try:
            yield noted
        finally:
            self._noted = outer
            if outer is not None:
                outer |= noted
