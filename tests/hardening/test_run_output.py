"""What a script prints flows whatever happens to ours: a full disk, a folder that is removed, a reader that stops, and
any amount of it, in bounded memory and on a bounded part of the disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hardening.measured import MIB, environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc, mounts")
_PATIENCE_SECONDS = 120.0
_MARK = b"[rank 0] "
_WRITES = """
import hashlib, os, sys, time
from pathlib import Path
while not Path("go").exists(): time.sleep(0.02)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 MiB; where none can be mounted, a folder whose files cannot be longer than 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=32m,mode=0700", "tmpfs", str(folder)]
    if os.getuid() or subprocess.run(command, check=False, capture_output=True).returncode:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, before[1]))
        yield folder
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        return
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def start(
    project: Path, script: str, *options: str, cache: Path | None = None, **streams: object
) -> subprocess.Popen[bytes]:
    (project / "script.py").write_text(script, encoding="utf-8")
    words = ["run", "script.py", "--launcher", "python", "--python", sys.executable]
    more = {} if cache is None else {"XDG_CACHE_HOME": str(cache)}
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.Popen(
        [sys.executable, "-m", "ranksafe", *words, "--cpu-ranks", "--gpus", "1", *options],
        cwd=project,
        env=environment(project.parent / "home", **more),
        stdin=subprocess.DEVNULL,
        **given,  # type: ignore[call-overload]
    )


def wait_for(found: Callable[[], object]) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while not found():
        assert time.monotonic() < end
        time.sleep(0.02)


def run_folder(cache: Path) -> Path:
    (folder,) = (cache / "ranksafe" / "runs").iterdir()
    return folder


def fill(folder: Path) -> None:
    with contextlib.suppress(OSError), (folder / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(MIB))
    with contextlib.suppress(OSError), (folder / "filler").open("ab", buffering=0) as file:
        while True:
            file.write(b"0")


@pytest.mark.parametrize("phase", ["before the ranks", "while they print"])
def test_a_full_disk_costs_evidence_and_nothing_else(
    phase: str, project: Path, small_disk: Path
) -> None:
    script = "import os, time\nfrom pathlib import Path\nprint('begun', flush=True)\n"
    if phase == "while they print":
        script += "while not Path('go').exists(): time.sleep(0.02)\n"
    script += "for number in range(40_000): print(number)\nraise SystemExit(0)\n"
    run = start(project, script, cache=small_disk)
    # Before the ranks: as soon as there is a folder.
    name = "rank0.stdout" if phase == "while they print" else "snapshot.json"
    wait_for(lambda: list(small_disk.glob(f"ranksafe/runs/*/{name}")))
    fill(small_disk)
    (project / "go").touch()
    out, error = run.communicate()
    assert run.returncode == 0, error.decode()
    assert out.replace(_MARK, b"") == b"begun\n" + b"".join(b"%d\n" % n for n in range(40_000))
    assert error.count(b"the run's files cannot be written") == 1


def test_a_run_folder_that_is_removed_costs_evidence_and_nothing_else(project: Path) -> None:
    script = (
        _WRITES + "print('later', flush=True); print('to stderr', file=sys.stderr); sys.exit(0)"
    )
    cache = project.parent / "cache"
    run = start(project, script, cache=cache)
    wait_for(lambda: list(cache.glob("ranksafe/runs/*/rank0.jsonl")))
    subprocess.run(["rm", "-rf", str(cache)], check=True)
    (project / "go").touch()
    out, error = run.communicate()
    assert run.returncode == 0, error.decode()
    assert out == _MARK + b"later\n"
    assert _MARK + b"to stderr\n" in error
    assert error.count(b"was removed") == 1


def test_a_home_that_cannot_be_written_costs_the_record(project: Path) -> None:
    (project.parent / "cache").write_text("no folder")
    run = start(project, "print('here')", cache=project.parent / "cache")
    out, error = run.communicate()
    assert (run.returncode, out) == (0, _MARK + b"here\n")
    assert error.count(b"cannot be written to") == 1


def test_ranks_without_an_agent_are_heard(project: Path) -> None:
    """Whoever shadows our sitecustomize, or starts Python isolated: then the output is the launcher's."""
    script = (
        "import os, sys\n"
        "if not sys.flags.isolated: os.execv(sys.executable, [sys.executable, '-I', __file__])\n"
        "print('out'); print('err', file=sys.stderr)"
    )
    run = start(project, script)
    out, error = run.communicate()
    assert run.returncode == 0
    assert b"out\n" in out
    assert b"err\n" in error


def test_a_reader_that_stops_does_not_hold_the_ranks_up(project: Path) -> None:
    """And once it reads again it is told what it missed, and gets the end."""
    script = (
        "from pathlib import Path\n"
        "for number in range(400): print('x' * 100_000)\n"
        "Path('done').touch(); print('the end')"
    )
    run = start(project, script)
    wait_for((project / "done").exists)
    out, error = run.communicate()
    assert run.returncode == 0
    assert out.endswith(_MARK + b"the end\n")
    assert b"are not shown" in error


def test_a_stopped_command_line_does_not_hold_the_ranks_up(project: Path) -> None:
    script = _WRITES + "for number in range(400): print('x' * 100_000)\nPath('done').touch()"
    run = start(project, script, stdout=subprocess.DEVNULL)
    wait_for(lambda: list((project.parent / "home").glob(".cache/ranksafe/runs/*/rank0.jsonl")))
    run.send_signal(signal.SIGSTOP)
    (project / "go").touch()
    wait_for((project / "done").exists)
    run.send_signal(signal.SIGCONT)
    assert run.wait() == 0


def test_a_stopped_supervisor_goes_on(project: Path) -> None:
    script = _WRITES + "for number in range(40): print('x' * 100_000)\nPath('done').touch()"
    run = start(project, script, stdout=subprocess.DEVNULL)
    wait_for(lambda: list((project.parent / "home").glob(".cache/ranksafe/runs/*/rank0.jsonl")))
    (guard,) = children(run.pid)
    (supervisor,) = children(guard)
    os.kill(supervisor, signal.SIGSTOP)
    (project / "go").touch()
    assert run.wait() == 0
    assert (project / "done").exists()


_DAEMON = (
    "import os, time\nfrom pathlib import Path\n"
    "if os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n"
    "    Path('daemon').write_text(str(os.getpid()))\n"
    "    while not Path('enough').exists(): os.write(1, b'x' * 4096); time.sleep(0.01)\n"
    "    Path('daemon-ended').touch(); os._exit(0)\n"
    "while not Path('daemon').exists(): time.sleep(0.01)\nprint('script ends')"
)


def test_a_daemon_is_ended_with_its_run(project: Path) -> None:
    run = start(project, _DAEMON, stdout=subprocess.DEVNULL)
    assert run.wait() == 0
    assert not Path("/proc", (project / "daemon").read_text()).exists()


def test_a_daemon_that_is_to_be_kept_goes_on_and_may_print(project: Path) -> None:
    run = start(project, _DAEMON, "--keep-detached", stdout=subprocess.DEVNULL)
    assert run.wait() == 0
    daemon = Path("/proc", (project / "daemon").read_text(), "io")
    before = written(daemon)
    wait_for(lambda: written(daemon) > before + MIB // 4)  # more than a pipe holds
    (project / "enough").touch()
    wait_for((project / "daemon-ended").exists)


@pytest.mark.parametrize(
    ("shape", "megabytes"),
    [
        pytest.param("line", 48),
        pytest.param("lines", 48),
        pytest.param("line", 1024, marks=pytest.mark.long),
        pytest.param("lines", 200, marks=pytest.mark.long),
        pytest.param("errors", 200, marks=pytest.mark.long),
    ],
)
def test_any_amount_of_output_flows_in_bounded_memory(
    shape: str, megabytes: int, project: Path
) -> None:
    text = {"line": "b'x' * 1024", "lines": "b'x' * 99 + b'\\n'", "errors": "b'E' * 99 + b'\\n'"}
    piece = eval(text[shape])
    number = megabytes * MIB // len(piece)
    descriptor = 2 if shape == "errors" else 1
    script = (
        f"import os, sys\nfile = open({descriptor}, 'wb', buffering=2**20, closefd=False)\n"
        f"for _ in range({number}): file.write({text[shape]})\nfile.flush()\n"
    )
    other = project.parent / "other"
    streams = {"stdout": subprocess.PIPE, "stderr": other.open("wb")}
    if shape == "errors":
        streams = {"stdout": other.open("wb"), "stderr": subprocess.PIPE}
    run = start(project, script, **streams)
    reader = run.stderr if shape == "errors" else run.stdout
    assert reader is not None
    digest, size, peak = hashlib.sha256(), 0, 0
    rest = b""
    while data := reader.read(2**20):
        if shape == "line":
            rest = data
            data = data.removeprefix(_MARK) if not size else data
        else:
            whole, _, rest = (rest + data).rpartition(b"\n")
            lines = [line for line in whole.split(b"\n") if line.startswith(_MARK)]
            data = b"".join(line[len(_MARK) :] + b"\n" for line in lines)
        digest.update(data.rstrip(b"\n") if shape == "line" else data)
        size += len(data)
        peak = max(peak, memory_of_ours(run.pid))
    assert run.wait() == 0
    expected = hashlib.sha256()
    for _ in range(number):
        expected.update(piece)
    assert digest.hexdigest() == expected.hexdigest()
    assert peak < 150 * MIB
    cache = project.parent / "home" / ".cache"
    kept = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
    assert kept < 24 * MIB


def memory_of_ours(command_line: int) -> int:
    """Of the command line, the supervisor and its guard; pages that two of them share are counted twice."""
    ours = [command_line, *children(command_line)]
    ours += [below for guard in ours[1:] for below in children(guard)]
    return sum(map(memory, ours))


def memory(process: int) -> int:
    try:
        pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * resource.getpagesize()


def children(process: int) -> list[int]:
    try:
        return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))
    except OSError:
        return []


def written(io: Path) -> int:
    return int(io.read_text().partition("wchar: ")[2].split()[0])


def test_what_is_telling_stays_of_what_is_left_out(project: Path) -> None:
    script = (
        "import sys\n"
        "print('x' * 99 + '\\n' * 1, end='')\n"
        "for number in range(60_000): print('y' * 99, file=sys.stderr)\n"
        "print('Traceback (most recent call last):\\n  File \"a.py\", line 7\\nOwnError: telling', file=sys.stderr)\n"
        "for number in range(200_000): print('z' * 99, file=sys.stderr)\n"
    )
    run = start(project, script, stderr=subprocess.DEVNULL)
    run.communicate()
    folder = run_folder(project.parent / "home" / ".cache")
    assert b"OwnError: telling" in (folder / "rank0.stderr.telling").read_bytes()
    assert b"OwnError: telling" in (folder / "log.txt").read_bytes()
    assert json.loads((folder / "result.json").read_text())["result"]["outcome"] == "succeeded"
