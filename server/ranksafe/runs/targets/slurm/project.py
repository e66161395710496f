"""Where the nodes find the project: where it is, on a disk they share with this machine, or sent to the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.hosts.protocol import Host
from ranksafe.runs.model import RunRequest
from ranksafe.runs.remote.listing import list_project, project_root
from ranksafe.runs.remote.sync import remote_folder, send_project
from ranksafe.runs.targets.protocol import Listener
from ranksafe.runs.targets.slurm.settings import FILE_NAME


@dataclass(frozen=True, slots=True)
class Project:
    """A project's folder here and there."""

    root: Path
    folder: str
    """There: of a project that was sent, the run's own tree."""
    script: str
    working_directory: str
    limits: tuple[Translated, ...] = ()
    base: str | None = None
    """Where it was sent to; None: it was not."""
    files: Mapping[str, list[int | str | None]] = field(default_factory=dict)
    """What was sent, as `Listing` has it."""

    def tree(self) -> dict[str, object] | None:
        """What the login node needs to make the run's own tree; None where the nodes use the files themselves."""
        if self.base is None:
            return None
        return {"base": self.base, "tree": self.folder, "files": dict(self.files)}


def in_place(request: RunRequest) -> Project:
    """The nodes use the files themselves, under the names they have here."""
    script = request.script.absolute()
    working_directory = (request.working_directory or Path.cwd()).absolute()
    root = working_directory if script.is_relative_to(working_directory) else script.parent
    return Project(root, str(root), str(script), str(working_directory))


def sent_to(
    host: Host, base: str, run: str, limit_mb: float, request: RunRequest, listener: Listener
) -> Project:
    """Send what has changed into a folder below ``base``; ``run``, the run's own, will have a tree of it.

    Raises RunNotPossible where that cannot be, or the script is not among what is sent.
    """
    script = request.script.absolute()
    working_directory = (request.working_directory or Path.cwd()).absolute()
    listing = list_project(project_root(working_directory, script), limit_mb * 10**6)
    root = listing.root
    name = script.relative_to(root).as_posix() if script.is_relative_to(root) else ""
    if name not in listing.files:
        raise RunNotPossible(_NOT_SENT.filled(path=script, root=root))
    folder = remote_folder(PurePosixPath(base), root)
    send_project(host, listing, folder, listener, settings=FILE_NAME)
    below = PurePosixPath(name).parent
    if working_directory.is_relative_to(root):
        wanted = working_directory.relative_to(root).as_posix()
        if wanted == "." or any(each.startswith(f"{wanted}/") for each in listing.files):
            below = PurePosixPath(wanted)
    tree = PurePosixPath(run) / "tree" / folder.name
    return Project(
        root=root,
        folder=str(tree),
        script=str(tree / name),
        working_directory=str(tree / below),
        limits=tuple(_LINK.filled(name=each) for each in listing.left_out),
        base=str(folder),
        files=listing.files,
    )


_NOT_SENT = Translated(
    en="{path} is not among the files that are sent: it is ignored by git, or lies outside of {root}.",
    zh_cn="{path} 不在要发送的文件之中：它被 git 忽略，或位于 {root} 之外。",
)
_LINK = Translated(
    en="{name} is not sent: the link leads out of the project",
    zh_cn="未发送 {name}：该链接指向项目之外",
)
