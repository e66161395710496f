"""Bring the project's folder on a host up to date: only what has changed, through one connection."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunCancelled, RunNotPossible
from ranksafe.runs.hosts.errors import HostLost
from ranksafe.runs.hosts.protocol import Conversation, Host
from ranksafe.runs.on_host import program
from ranksafe.runs.remote import rsync
from ranksafe.runs.remote.listing import Listing
from ranksafe.runs.targets.protocol import Listener

_ANSWER_SECONDS = 120.0
_POLL_SECONDS = 0.01
_TOLD_EVERY_SECONDS = 1.0
_COMPRESSION = 1


def remote_folder(base: PurePosixPath, root: Path) -> PurePosixPath:
    """The project's folder on the host: one per project, user and machine here; its last part is the project's name."""
    origin = f"{os.uname().nodename}\0{os.getuid()}\0{root}" if hasattr(os, "uname") else str(root)
    key = hashlib.sha256(os.fsencode(origin)).hexdigest()[:12]
    return base / "projects" / key / (re.sub(r"[\x00-\x1f\x7f/]", "_", root.name) or "project")


def send_project(
    host: Host,
    listing: Listing,
    folder: PurePosixPath,
    listener: Listener,
    *,
    settings: str = "hosts.toml",
) -> tuple[int, int]:
    """Make ``folder`` hold what ``listing`` names; the numbers of files sent and deleted.

    ``settings``: the file of the user's that says where it is kept.
    Files that the runs wrote there stay. Raises RunNotPossible when the host cannot keep them (a full disk, a folder
    that is not ours), its kinds HostUnreachable and HostLost, and RunCancelled.
    """
    text = program("on_host.receive", "on_host.request")
    request = {"folder": str(folder.parent), "name": folder.name}
    conversation = host.start(text, request)
    try:
        answers = _Answers(host, conversation, listener, settings)
        return _transfer(answers, listing, folder, listener)
    finally:
        conversation.close()


def _transfer(
    answers: _Answers, listing: Listing, folder: PurePosixPath, listener: Listener
) -> tuple[int, int]:
    state = answers.next()
    have = state["have"]
    changed = [name for name, entry in listing.files.items() if have.get(name) != entry]
    deleted = [name for name in have if name not in listing.files]
    total = sum(int(listing.files[name][0] or 0) for name in changed)
    if changed or deleted:
        size = f"{total / 10**6:.1f}"
        listener.say(_SENDING.filled(count=len(changed), size=size, host=answers.host.name))
    stream = _Stream(answers, listener)
    try:
        stream.write_line({"files": listing.files, "delete": deleted})
        answers.next()
        if total > rsync.WORTH_BYTES and rsync.can_send(answers.host, state["rsync"]):
            rest = [] if rsync.send(answers.host, listing, changed, folder, listener) else changed
        else:
            rest = changed
        stream.write_line({"count": len(rest)})
        if rest:
            _send_archive(stream, listing, rest)
    except HostLost:
        answers.next()  # what it said before it went is the reason
        raise
    answers.next()
    return len(changed), len(deleted)


def _send_archive(stream: _Stream, listing: Listing, names: Sequence[str]) -> None:
    sink = cast("IO[bytes]", stream)
    # tarfile's own compressed streams take no level before Python 3.12, and the default one is slow.
    with (
        gzip.GzipFile(fileobj=sink, mode="wb", compresslevel=_COMPRESSION) as packed,
        tarfile.open(fileobj=packed, mode="w|") as archive,
    ):
        for name in names:
            _add(archive, listing, name)


def _add(archive: tarfile.TarFile, listing: Listing, name: str) -> None:
    """A file as it is now; where it was changed since it was listed, the next run sends it again."""
    _, modified, mode, target = listing.files[name]
    member = tarfile.TarInfo(name)
    member.mtime = int(modified or 0) // 10**9
    if target is not None:
        member.type, member.linkname = tarfile.SYMTYPE, str(target)
        archive.addfile(member)
        return
    member.mode = int(mode or 0)
    try:
        with (listing.root / name).open("rb") as file:
            member.size = os.fstat(file.fileno()).st_size
            archive.addfile(member, file)
    except OSError as error:
        raise RunNotPossible(_CHANGED.filled(name=name, reason=error.strerror)) from error


class _Stream:
    """The conversation as a file to write to; tells of the progress."""

    def __init__(self, answers: _Answers, listener: Listener) -> None:
        self._answers = answers
        self._listener = listener
        self._sent = 0
        self._told_at = time.monotonic()

    def write(self, data: bytes) -> int:
        if self._listener.should_stop():
            raise RunCancelled
        self._answers.conversation.send(data)
        self._sent += len(data)
        now = time.monotonic()
        if now - self._told_at > _TOLD_EVERY_SECONDS:
            self._told_at = now
            sent = f"{self._sent / 10**6:.1f}"
            self._listener.say(_SENT.filled(size=sent, host=self._answers.host.name))
        return len(data)

    def write_line(self, value: object) -> None:
        """A line of JSON."""
        self.write(json.dumps(value).encode() + b"\n")

    def flush(self) -> None:
        """Everything written is sent already."""


class _Answers:
    """The host's answers, a line of JSON each."""

    def __init__(
        self, host: Host, conversation: Conversation, listener: Listener, settings: str
    ) -> None:
        self._settings = settings
        self.host = host
        self.conversation = conversation
        self._listener = listener
        self._rest = b""

    def next(self) -> dict[str, Any]:
        """The next answer. Raises RunNotPossible when it is a complaint, HostLost when none comes."""
        end = time.monotonic() + _ANSWER_SECONDS
        while b"\n" not in self._rest:
            ended = self.conversation.returncode is not None
            data = self.conversation.receive()
            self._rest += data
            if not data and (ended or time.monotonic() > end):
                reason = self.conversation.complaints.strip()[-500:] or "?"
                raise HostLost(_LOST.filled(host=self.host.name, reason=reason))
            if self._listener.should_stop():
                raise RunCancelled
            if not data:
                time.sleep(_POLL_SECONDS)
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        error = answer.get("error")
        if error is not None:
            reason = error.get("refused") or error.get("reason")
            values = {"host": self.host.name, "reason": reason, "settings": self._settings}
            raise RunNotPossible(_REFUSED.filled(**values))
        return answer


_SENDING = Translated(
    en="sending {count} files ({size} MB) to {host}",
    zh_cn="正在向 {host} 发送 {count} 个文件（{size} MB）",
)
_SENT = Translated(en="{size} MB sent to {host}", zh_cn="已向 {host} 发送 {size} MB")
_CHANGED = Translated(
    en="{name} cannot be read while it is sent: {reason}", zh_cn="发送时无法读取 {name}：{reason}"
)
_LOST = Translated(
    en="The connection to {host} was lost while the project was sent: {reason}",
    zh_cn="发送项目时与 {host} 的连接断开：{reason}",
)
_REFUSED = Translated(
    en="{host} cannot keep the project: {reason}. `folder` in {settings} says where it is kept.",
    zh_cn="{host} 无法保存项目：{reason}。保存位置由 {settings} 中的 `folder` 指定。",
)
