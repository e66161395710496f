"""What of a project is sent to a host, and what happens to the folder there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.hosts.local import LocalHost
from ranksafe.runs.hosts.piped import PipedConversation
from ranksafe.runs.hosts.protocol import Conversation
from ranksafe.runs.hosts.ssh import SshHost
from ranksafe.runs.on_host import program
from ranksafe.runs.on_host.receive import Project, Refused
from ranksafe.runs.remote.listing import list_project, project_root
from ranksafe.runs.remote.sync import remote_folder, send_project
from ranksafe.runs.targets.protocol import Listener

from .far_host import Far
from .ssh_server import HOST

_LIMIT = 10.0**7
_NASTY = [
    "a b.py",
    "it's.py",
    'say "x".py',
    "$(touch y).py",
    "-rf",
    "new\nline.py",
    "模型 \U0001f600.py",
    "back\\slash",
    "a/-x/../b.py".replace("../", ""),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "the project"
    folder.mkdir()
    return folder


@pytest.fixture
def there(tmp_path: Path, project: Path) -> Path:
    return Path(remote_folder(PurePosixPath(tmp_path / "far"), project))


def _write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}")


def _send(project: Path, there: Path, limit: float = _LIMIT) -> tuple[int, int]:
    return send_project(LocalHost(), list_project(project, limit), PurePosixPath(there), Listener())


def _files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_every_name_arrives_with_its_content(project: Path, there: Path) -> None:
    _write(project, *_NASTY)
    raw = os.fsencode(project) + b"/not-utf8-\xff"
    with open(raw, "wb") as file:
        file.write(b"\0\xff")
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    _send(project, there)
    assert _files(there) == _files(project)
    assert all(
        (there / name).read_bytes() == (project / name).read_bytes() for name in _files(project)
    )
    assert os.access(there / "run.sh", os.X_OK)
    assert there.stat().st_mode & 0o077 == 0 or there.parent.stat().st_mode & 0o077 == 0


def test_only_what_has_changed_is_sent_and_only_what_was_sent_is_deleted(
    project: Path, there: Path
) -> None:
    _write(project, "train.py", "pkg/old.py", "pkg/same.py")
    assert _send(project, there) == (3, 0)
    assert _send(project, there) == (0, 0)
    _write(there, "checkpoints/step1.bin", "pkg/cache.txt")
    (project / "train.py").write_text("other content")
    (project / "pkg" / "old.py").unlink()
    assert _send(project, there) == (1, 1)
    assert _files(there) == {"train.py", "pkg/same.py", "checkpoints/step1.bin", "pkg/cache.txt"}
    assert (there / "train.py").read_text() == "other content"


def test_what_was_changed_there_is_as_here_again(project: Path, there: Path) -> None:
    _write(project, "train.py")
    _send(project, there)
    (there / "train.py").write_text("edited on the host")
    assert _send(project, there) == (1, 0)
    assert (there / "train.py").read_text() == "content of train.py"


@pytest.mark.parametrize("repository", [True, False])
def test_secrets_and_what_git_ignores_stay_here(
    project: Path, there: Path, repository: bool
) -> None:
    _write(project, "train.py", "data/big.bin", "sub/x.log", ".env", ".env.local", "sub/.envrc")
    _write(
        project,
        ".vscode/settings.json",
        ".venv/lib/x.py",
        "myenv/pyvenv.cfg",
        "myenv/y.py",
        ".ssh/id",
    )
    (project / ".gitignore").write_text("data/\n*.log\n.venv\nmyenv\n")
    if repository:
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        _write(project / "inner", "module.py")
        subprocess.run(["git", "init", "-q", str(project / "inner")], check=True)
    _send(project, there)
    expected = {"train.py", ".gitignore"} | ({"inner/module.py"} if repository else set())
    assert _files(there) == expected


def test_without_git_environments_and_caches_stay_here(
    project: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(
        project,
        "train.py",
        "__pycache__/x.pyc",
        "venv/y.py",
        "other/pyvenv.cfg",
        "other/z.py",
        "node_modules/a.js",
    )
    monkeypatch.setenv("PATH", "/nowhere")
    assert list(list_project(project, _LIMIT).files) == ["train.py"]


def test_a_repository_starts_no_program_when_it_is_listed(project: Path) -> None:
    _write(project, "train.py")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    subprocess.run(
        [
            "git",
            "-C",
            str(project),
            "config",
            "core.fsmonitor",
            f"touch '{project}/started'; false",
        ],
        check=True,
    )
    assert list(list_project(project, _LIMIT).files) == ["train.py"]
    assert not (project / "started").exists()


def test_links_inside_are_links_and_those_that_lead_out_are_left(
    project: Path, there: Path, tmp_path: Path
) -> None:
    _write(project, "pkg/a.py")
    (tmp_path / "secret").write_text("outside")
    (project / "inside.py").symlink_to("pkg/a.py")
    (project / "out.py").symlink_to("../secret")
    (project / "absolute.py").symlink_to(tmp_path / "secret")
    listing = list_project(project, _LIMIT)
    assert sorted(listing.left_out) == ["absolute.py", "out.py"]
    _send(project, there)
    assert (there / "inside.py").readlink() == Path("pkg/a.py")
    assert _files(there) == {"pkg/a.py", "inside.py"}


def test_a_project_that_is_too_large_names_its_largest_files(project: Path) -> None:
    (project / "weights.bin").write_bytes(b"0" * 3_000_000)
    with pytest.raises(RunNotPossible, match=r"weights.bin \(3 MB\)"):
        list_project(project, 2e6)


def test_home_and_the_root_are_no_projects(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in (tmp_path, Path("/")):
        with pytest.raises(RunNotPossible, match="no project"):
            project_root(folder, folder / "train.py")
    inner = tmp_path / "repo" / "sub"
    inner.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    assert project_root(inner, inner / "train.py") == tmp_path / "repo"


def test_a_folder_that_is_not_ours_is_left_alone(project: Path, there: Path) -> None:
    _write(project, "train.py")
    _write(there.parent, "thesis.tex")
    with pytest.raises(RunNotPossible, match="not ranksafe's"):
        _send(project, there)
    assert _files(there.parent) == {"thesis.tex"}


@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("../out.py", None),
        ("a/../../out.py", None),
        ("link/x.py", None),
        ("l", "../../x"),
        ("l", "/etc"),
    ],
)
def test_the_host_refuses_what_would_leave_the_folder(
    project: Path, there: Path, tmp_path: Path, name: str, link: str | None
) -> None:
    _write(project, "train.py")
    _send(project, there)
    (there / "link").symlink_to(tmp_path)
    listing = list_project(project, _LIMIT)
    listing.files[name] = [1, 1, 0o600, link]
    source = Path(os.path.normpath(project / name))
    (project / "a").mkdir()
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text("x")
    with pytest.raises(RunNotPossible, match="cannot keep"):
        send_project(LocalHost(), listing, PurePosixPath(there), Listener())
    source.unlink(missing_ok=True)
    assert not (tmp_path / "x.py").exists()
    assert not (there.parent / "out.py").exists()


@pytest.mark.parametrize("name", ["/etc/x", "a//b", "./a", "", "a/..", ".."])
def test_names_that_are_not_below_the_folder(tmp_path: Path, name: str) -> None:
    folder = Project(str(tmp_path / "far"), "project")
    with pytest.raises(Refused):
        folder.place(name)


def test_progress_is_told(project: Path, there: Path) -> None:
    _write(project, "train.py")
    said: list[Translated] = []
    send_project(
        LocalHost(), list_project(project, _LIMIT), PurePosixPath(there), Listener(say=said.append)
    )
    assert said[0].en == "sending 1 files (0.0 MB) to localhost"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount: sudo")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_named_and_the_next_try_goes_on(project: Path, small_disk: Path) -> None:
    there = Path(remote_folder(PurePosixPath(small_disk), project))
    _write(project, "a.py")
    (project / "big.bin").write_bytes(os.urandom(2_000_000))
    with pytest.raises(RunNotPossible, match="No space left on device"):
        _send(project, there)
    (project / "big.bin").unlink()
    _send(project, there)
    assert _files(there) == {"a.py"}


def test_nothing_else_is_deleted_whoever_asks(tmp_path: Path) -> None:
    folder = Project(str(tmp_path / "far"), "project")
    folder.written = {"ours.py": [1, 1, 0o600, None]}
    _write(Path(folder.root), "ours.py", "checkpoint.bin")
    folder.delete(["ours.py", "checkpoint.bin", "../manifest.json"])
    assert _files(Path(folder.root)) == {"checkpoint.bin"}
    assert Path(folder.manifest).exists()


def _to_the_end(conversation: Conversation) -> bytes:
    """All that it says; what comes between two looks at its status is still there after the second."""
    heard, ended = b"", False
    while not ended:
        ended = conversation.returncode is not None
        heard += conversation.receive()
    return heard


def test_a_run_is_followed_from_where_it_was_left(tmp_path: Path) -> None:
    (tmp_path / "rank0.stdout").write_text("abcdef")
    request = {"directory": str(tmp_path), "lease_seconds": 1, "have": {"rank0.stdout": 4}}
    conversation = LocalHost().start(program("on_host.follow", "on_host.request"), request)
    heard = _to_the_end(conversation)
    first, _, rest = heard.partition(b"\n")
    assert json.loads(first) == {"file": "rank0.stdout", "at": 4, "size": 2}
    assert rest.startswith(b"ef{")


def test_a_program_on_a_host_brings_its_modules() -> None:
    text = program("on_host.follow", "on_host.request")
    host = LocalHost()
    conversation = host.start(
        text, {"directory": "/no/such/folder", "lease_seconds": 1, "have": {}}
    )
    heard = _to_the_end(conversation)
    assert json.loads(heard) == {"missing": True}


def test_the_end_of_an_archive_may_come_late(
    project: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = PipedConversation.send

    def late(conversation: PipedConversation, data: bytes) -> None:
        time.sleep(0.2)
        send(conversation, data)

    monkeypatch.setattr(PipedConversation, "send", late)
    _write(project, "a.py")
    assert _send(project, there) == (1, 0)


class _NoTar:
    """The other way, which must not be needed."""

    def __init__(self, *_: object) -> None:
        raise AssertionError("sent as an archive")


@pytest.mark.long
def test_large_changes_go_through_rsync_alike(
    far: Far, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("rsync") is None:
        pytest.skip("needs rsync: apt-get install rsync")
    there = PurePosixPath(tmp_path / "far side's" / "projects" / "x" / "$(name) of it")
    outside = tmp_path / "outside"
    outside.mkdir()
    _write(project, *_NASTY, "#comment", ";comment", "pkg/old.py")
    (project / "link").symlink_to("a b.py")
    (project / "big.bin").write_bytes(os.urandom(2_000_000))
    monkeypatch.setattr("ranksafe.runs.remote.sync._send_archive", _NoTar)
    host = SshHost(HOST)
    count = len(_files(project))
    assert send_project(host, list_project(project, _LIMIT), there, Listener()) == (count, 0)
    assert _files(Path(there)) == _files(project)
    assert send_project(host, list_project(project, _LIMIT), there, Listener()) == (0, 0)
    _write(Path(there), "checkpoint.bin")
    (project / "pkg" / "old.py").unlink()
    with (project / "big.bin").open("ab") as file:
        file.write(b"more")
    assert send_project(host, list_project(project, _LIMIT), there, Listener()) == (1, 1)
    assert (Path(there) / "big.bin").read_bytes() == (project / "big.bin").read_bytes()
    assert _files(Path(there)) == _files(project) | {"checkpoint.bin"}
    (Path(there) / "sub").symlink_to(outside)
    _write(project, "sub/x.py")
    (project / "big.bin").write_bytes(os.urandom(2_000_000))
    send_project(host, list_project(project, _LIMIT), there, Listener())
    assert not (outside / "x.py").exists()


def test_where_rsync_fails_the_files_come_all_the_same(
    far: Far, project: Path, tmp_path: Path
) -> None:
    there = PurePosixPath(tmp_path / "far" / "projects" / "x" / "name")
    (project / "big.bin").write_bytes(os.urandom(2_000_000))
    broken = far.server.programs / "rsync"
    broken.write_text("#!/bin/sh\nexit 12\n")
    broken.chmod(0o755)
    try:
        send_project(SshHost(HOST), list_project(project, _LIMIT), there, Listener())
    finally:
        broken.unlink()
    assert (Path(there) / "big.bin").read_bytes() == (project / "big.bin").read_bytes()


def test_what_has_come_to_lie_behind_a_link_stays_here(
    project: Path, there: Path, tmp_path: Path
) -> None:
    """git goes on listing a tracked file when its folder has become a link to somewhere else."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    _write(project, "train.py", "keys/id")
    for words in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", "-C", str(project), *words], check=True)
    shutil.rmtree(project / "keys")
    outside = tmp_path / "outside"
    _write(outside, "id")
    (project / "keys").symlink_to(outside)
    listing = list_project(project, _LIMIT)
    assert "keys/id" in listing.left_out
    _send(project, there)
    assert _files(there) == {"train.py"}
