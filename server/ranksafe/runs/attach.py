"""Come back to a run on another host: one whose connection was lost, or that was left to itself."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ranksafe.localization import Language, Translated
from ranksafe.runs.directory import cache_directory, is_going_on, occupy
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.explain.evidence import load_evidence
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.explain.out_of_sight import last_words
from ranksafe.runs.explain.remote_paths import with_local_files
from ranksafe.runs.hosts.errors import HostUnreachable
from ranksafe.runs.hosts.ssh import SshHost
from ranksafe.runs.remote.process import RemoteProcess
from ranksafe.runs.remote.reconnection import look
from ranksafe.runs.remote.record import RemoteRun, read_record
from ranksafe.runs.start import OnEvent, Run
from ranksafe.runs.targets.protocol import GoesOn, OutOfReach, Process

_CATCH_UP_SECONDS = 20.0
_POLL_SECONDS = 0.05


def attach(run_id: str | None, on_event: OnEvent, language: Language = "en") -> Run:
    """Follow ``run_id`` again, from where its files here end; None: the newest that was not seen to its end.

    Raises RunNotPossible when there is none, when it has ended or is followed by another process, and its kind
    HostUnreachable, with what is known of the run.
    """
    directory, record = _found(run_id)
    if record.finished:
        raise RunNotPossible(_FINISHED.filled(run=directory.name))
    if is_going_on(directory):
        raise RunNotPossible(_FOLLOWED.filled(run=directory.name))
    try:
        process = _process(directory, record, language)
    except HostUnreachable as error:
        known = _known(directory, record)
        message = _UNREACHED.filled(reason=error.message, run=directory.name, known=known)
        raise HostUnreachable(message) from error
    occupy(directory)
    ago = max(time.time() - record.started, 0.0)
    request = record.request(language)
    return Run(request, record.plan(), process, directory, on_event, started_ago=ago)


@contextlib.contextmanager
def seen_for_a_while(
    directory: Path, say: Callable[[str], None], language: Language = "en"
) -> Iterator[None]:
    """Follow a run that nobody follows, for a question to its ranks; its end, should it come, is not counted as seen.

    ``say`` hears of the connection and of a job's state. Raises RunNotPossible when the run has ended, HostUnreachable.
    """
    record = read_record(directory)
    if record is None:
        raise RunNotPossible(_UNKNOWN.filled(run=directory.name))
    process = _process(directory, record, language)
    occupy(directory)
    enough = threading.Event()

    def follow() -> None:
        while not enough.wait(_POLL_SECONDS):
            for line in process.follow():
                if line.stream == "status":
                    say(line.text)

    thread = threading.Thread(target=follow, name="a look at a run", daemon=True)
    thread.start()
    try:
        _catch_up(process, directory)
        if process.is_over():
            raise RunNotPossible(_OVER.filled(run=directory.name))
        yield
    finally:
        enough.set()
        thread.join()
        if isinstance(process, RemoteProcess):
            process.look_away()
        elif isinstance(process, GoesOn):
            process.detach()


def _catch_up(process: Process, directory: Path) -> None:
    end = time.monotonic() + _CATCH_UP_SECONDS
    while not process.is_over() and time.monotonic() < end:
        seen = not isinstance(process, OutOfReach) or process.is_seen_to_go_on
        # A job's files come as they are found, after its state.
        if seen and (isinstance(process, RemoteProcess) or any(directory.glob("rank*.beat"))):
            return
        time.sleep(_POLL_SECONDS)


def _process(directory: Path, record: RemoteRun, language: Language) -> Process:
    if record.target.startswith("slurm:"):
        # Imported here: its settings are of no interest to other runs.
        from ranksafe.runs.targets.slurm.target import reattached

        return reattached(directory, language)
    host = SshHost(record.host)
    return RemoteProcess(host, record, directory, look(host, record, directory), language)


def _known(directory: Path, record: RemoteRun) -> Translated:
    evidence = load_evidence(directory, record.ranks)
    with_local_files(evidence, directory)
    here = Path(record.working_directory)
    return last_words(directory, evidence, UserCode([Path(record.script).parent, here], here))


def waiting_runs() -> list[str]:
    """The ids of the runs on other hosts that nobody follows and whose end was not seen, the newest first."""
    found = []
    for directory in _newest_first():
        record = read_record(directory)
        if record is not None and not record.finished and not is_going_on(directory):
            found.append(directory.name)
    return found


def _found(run_id: str | None) -> tuple[Path, RemoteRun]:
    if run_id is None:
        run_id = next(iter(waiting_runs()), None)
        if run_id is None:
            raise RunNotPossible(_NONE)
    for directory in _newest_first():
        if directory.name == run_id:
            record = read_record(directory)
            if record is not None:
                return directory, record
    raise RunNotPossible(_UNKNOWN.filled(run=run_id))


def _newest_first() -> list[Path]:
    runs = cache_directory() / "runs"
    folders = [entry for entry in runs.iterdir() if entry.is_dir()] if runs.is_dir() else []
    return sorted(folders, reverse=True)


_NONE = Translated(
    en="There is no run on another host to come back to.", zh_cn="没有可重新查看的远程运行。"
)
_UNKNOWN = Translated(
    en="There is no run {run} on another host.", zh_cn="没有名为 {run} 的远程运行。"
)
_FINISHED = Translated(
    en="The run {run} has ended, and its end is known here.",
    zh_cn="运行 {run} 已结束，其结果已保存在本机。",
)
_FOLLOWED = Translated(
    en="The run {run} is followed by another process already.",
    zh_cn="运行 {run} 已由另一个进程查看。",
)
_UNREACHED = Translated(
    en="{reason} What is known here of the run {run}: {known}",
    zh_cn="{reason} 本机所知的运行 {run} 的情况：{known}",
)
_OVER = Translated(
    en="The run {run} has ended: `ranksafe attach {run}` tells how.",
    zh_cn="运行 {run} 已结束：用 `ranksafe attach {run}` 查看结果。",
)
