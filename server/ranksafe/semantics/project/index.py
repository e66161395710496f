"""What the files of a project say to each other, found out when somebody asks and kept for the next session.

Answers never depend on what was asked before, nor on how far `ProjectIndex.build` has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ranksafe.semantics.cross_file import LaunchCommand
from ranksafe.semantics.project.changes import Change
from ranksafe.semantics.project.definitions import Definitions
from ranksafe.semantics.project.dependents import Dependents
from ranksafe.semantics.project.files import ProjectFiles, read_text
from ranksafe.semantics.project.launch_files import LaunchFiles
from ranksafe.semantics.project.mentions import Mentions
from ranksafe.semantics.project.summary import Summary, to_text
from ranksafe.semantics.project.summary_store import SummaryStore
from ranksafe.semantics.project.texts import ProjectTexts
from ranksafe.semantics.project.training import TrainingUses


class ProjectIndex(Definitions):
    """Implements `ranksafe.semantics.cross_file.Project` over one folder.

    ``store_folder``: where to keep what is found out; None: nowhere.
    """

    def __init__(
        self,
        root: Path,
        read: Callable[[Path], str | None] = read_text,
        *,
        store_folder: Path | None = None,
    ) -> None:
        self.root = root.absolute()
        self.store = SummaryStore(store_folder, self.root)
        super().__init__(ProjectFiles(self.root), ProjectTexts(read, self.store))
        self._training = TrainingUses(self.modules, self)
        self._dependents = Dependents(self.modules, self.texts)
        self._mentions = Mentions(self.modules, self.texts, self._dependents)
        self._launch_files = LaunchFiles(self.modules, self._dependents)
        self._asked_of_users: set[Path] = set()
        self._users_read: dict[Path, set[Path]] = {}
        """For a file the users of itself, or of a file that it uses, whose code has a part in what is found in it."""

    # -- keeping up to date

    def update(self, path: Path, text: str | None = None) -> Change:
        """Take over the text of an open file, or (None) look at it on disk again."""
        path = path.absolute()
        texts = self.texts
        before = texts.known_hash(path, opening=text is not None)
        looked_at = before is not None or texts.was_looked_at(path)
        summary_before = None if before is None else texts.known_summary(path, before)
        files = self.modules.note_existence(path)
        followed, dependents = self._dependents.known(path, moved=files)
        trained = self._training.known
        texts.take_over(path, text)
        changed = looked_at and before != texts.hash_of(path)
        summary = mentions = False
        if changed:
            after = texts.load_summary(path)
            summary = None in (summary_before, after) or summary_before != _as_text(after)
        if files or summary:
            self._stars.changed()
        if files:
            self._training.files_changed()
            self._dependents.files_changed()
            self._mentions.files_changed()
            self._launch_files.files_changed()
        if changed:
            self._training.text_changed(path)
            self._dependents.text_changed(path)
            mentions = self._mentions.text_changed(path)
        if summary:
            self._training.summary_changed(path)
        return Change(path, files, changed, summary, mentions, followed, dependents, trained)

    def update_ahead(self, path: Path, text: str) -> None:
        """Do, with pauses, what of `update` takes long where a text is long."""
        self.texts.summarize_ahead(path.absolute(), text)

    def affected(self, changes: Iterable[Change], files: Iterable[Path]) -> set[Path]:
        """Which of some files may have other findings after the changes, those made since `affected` was asked last;
        a changed file itself only where it depends on itself through others."""
        changes = [change for change in changes if change]
        if not changes:
            return set()
        changed = {change.path for change in changes}
        moved = {change.path for change in changes if change.files}
        # An import somewhere on the way makes another file a user.
        told = any(change.files or change.summary or change.mentions for change in changes)
        classes: set[str] = set()
        for before in {change.trained for change in changes}:
            if before is not None:
                classes |= before.differences(self._training.answer())
        found = set()
        for path in files:
            file = path.absolute()
            if (
                any(change.may_have_affected(file) for change in changes)
                or self._dependents.depends(file, changed)
                or (moved and self._dependents.depends(file, moved, moved=True))
                or (classes and _is_of(self.module_name(file), classes))
                or (told and file in self._asked_of_users)
                or any(
                    user in changed or self._dependents.depends(user, changed)
                    for user in self._users_read.get(file, ())
                )
            ):
                found.add(path)
        return found

    def files(self) -> list[Path]:
        """The project's Python files, sorted; folders of environments and caches are left out."""
        return self.modules.all()

    def number_of_files(self) -> int:
        """How many `files` there are."""
        return len(self.modules.all())

    def known_below(self, folder: Path) -> list[Path]:
        """Those of `files` that are in a folder or below it, as far as they are known already."""
        return self.modules.below_folder(folder.absolute())

    def build(self, *, longest: int | None = None) -> Iterator[tuple[int, int]]:
        """Find out everything ahead of the questions, in short steps; gives how many files of how many are done.

        ``longest``: in bytes; longer files are left for when somebody asks about them.
        """
        if not self.modules.is_listed:
            for count in self.modules.listing():
                yield 0, count
        files = list(self.files())
        for done, path in enumerate(files, 1):
            self.texts.prepare(path, longest)
            yield done, len(files)
        for path in files:
            if self.texts.may_train(path):
                self._training.look_at(path)
                yield len(files), len(files)
        self._training.answer()

    def closure_steps(self, path: Path) -> Iterator[int]:
        """Find out in short steps what a file depends on, so that `affected` knows."""
        return self._dependents.following(path.absolute())

    def depends(self, path: Path, on: Path) -> bool:
        """Whether a file is known to depend on another one; False while nobody has asked what it depends on."""
        return self._dependents.knows(path.absolute(), on.absolute())

    def closure(self, path: Path) -> frozenset[Path]:
        """The files that may have a part in a file's findings."""
        return self._dependents.closure(path.absolute())

    def imports_of(self, path: Path) -> Iterator[str]:
        """Absolute dotted names of all that a file imports."""
        return self._dependents.imports_of(path)

    # -- what users of a file say

    def users_mention(self, path: Path, word: str) -> bool:
        """Whether a word stands, outside comments, in a file or in one that imports it, directly or through others."""
        self._asked_of_users.add(path.absolute())
        return self._mentions.by_users(path.absolute(), word)

    def users_saying(self, path: Path, word: str, *, asker: Path) -> list[Path]:
        """The other files that import a file, directly or through others, and in which a word stands outside comments;
        what is found in ``asker`` depends on them from now on."""
        path, asker = path.absolute(), asker.absolute()
        found = sorted(self._mentions.users(path, word) - {path})
        self._asked_of_users.add(asker)
        self._users_read.setdefault(asker, set()).update(found)
        return found

    def files_saying(self, word: str, *, asker: Path) -> list[Path]:
        """All files in which a word stands outside comments; what is found in ``asker`` depends on them from now on."""
        asker = asker.absolute()
        found = sorted(self._mentions.saying(word))
        self._asked_of_users.add(asker)
        self._users_read.setdefault(asker, set()).update(found)
        return found

    def imported_saying(self, path: Path, word: str) -> list[Path]:
        """The files that a file imports, directly or through others, in which a word stands outside comments."""
        return sorted(self._mentions.saying(word) & self.closure(path))

    def launches_of(self, path: Path) -> list[LaunchCommand]:
        """The commands that start a file, or one that imports it, with one process per GPU.

        The files that hold commands are read once: what is written into them meanwhile is seen when a Python file comes
        or goes, or by the next process.
        """
        self._asked_of_users.add(path.absolute())
        return self._launch_files.of(path.absolute())

    def plain_start_of(self, path: Path) -> LaunchCommand | None:
        """A command that starts a file with plain python, if none starts it, or one that imports it, with one process
        per GPU; read as `launches_of` reads."""
        self._asked_of_users.add(path.absolute())
        return self._launch_files.plain_of(path.absolute())

    def runs_on_one_gpu(self, path: Path) -> bool:
        """Whether commands start a file, or one that imports it, with plain python, and every one leaves one GPU
        visible; read as `launches_of` reads."""
        self._asked_of_users.add(path.absolute())
        return self._launch_files.on_one_gpu(path.absolute())

    def launches_any(self, asker: Path) -> bool:
        """Whether a command starts any file of the project with one process per GPU; read as `launches_of` reads."""
        self._asked_of_users.add(asker.absolute())
        return self._launch_files.start_any()

    def runs_in_one_process(self, path: Path) -> bool:
        """Whether launchers start a file, or one that imports it, and every command makes one process; read as
        `launches_of` reads."""
        self._asked_of_users.add(path.absolute())
        return self._launch_files.in_one_process(path.absolute())

    def values_given(self, option: str, asker: Path) -> list[str]:
        """What the project's commands and files of settings give an option, as written; read as `launches_of` reads."""
        self._asked_of_users.add(asker.absolute())
        return self._launch_files.values_given(option)

    # -- who trains whose models

    def trains_with_trainer(self, module: str) -> bool:
        """Whether an entry script of the project hands a model of this module to a Trainer, or builds a Trainer of this
        module, and shows no launcher."""
        return _is_of(module, self._training.answer().by_trainer)

    def wraps_data_parallel(self, module: str) -> bool:
        """Whether a file of the project wraps a model of this module in nn.DataParallel."""
        return _is_of(module, self._training.answer().replicated)


def _is_of(module: str, names: Iterable[str]) -> bool:
    return any(name.startswith(f"{module}.") for name in names)


def _as_text(summary: Summary | None) -> str | None:
    return None if summary is None else to_text(summary)
