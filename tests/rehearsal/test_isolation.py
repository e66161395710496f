"""A script in isolation: nothing it does to files, processes or the network is seen outside, and it ends as it would."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from ranksafe.rehearsal.errors import RehearsalNotPossible
from ranksafe.rehearsal.isolation import (
    EVENTS_FILE,
    NOT_ENTERED,
    node_name,
    on_node,
    plan_isolation,
)
from ranksafe.rehearsal.isolation.environment import without_secrets
from ranksafe.rehearsal.isolation.machine import hosts_with
from ranksafe.rehearsal.isolation.mounts import read_mounts
from ranksafe.rehearsal.isolation.specification import (
    SCRATCH_FOLDER,
    SPECIFICATION_FILE,
    read_specification,
)
from ranksafe.rehearsal.settings import Isolation, RehearsalOptions
from ranksafe.runs.model import Outcome, RunRequest
from ranksafe.runs.start import start_run

from .conftest import RehearsalEnvironment, needs_isolation, own_addresses

SERVER = Path(__file__).parents[2] / "server"
SUPERVISOR = SERVER / "ranksafe" / "runs" / "supervisor.py"
SCRIPTS = Path(__file__).parent / "isolation_scripts"
UNKNOWN_USER = 12345
MEBIBYTE = 1 << 20


@dataclass
class Place:
    """A workspace and a home folder with something in them, and a run directory beside."""

    top: Path

    @property
    def workspace(self) -> Path:
        return self.top / "workspace"

    @property
    def home(self) -> Path:
        return self.top / "home"

    @property
    def run_directory(self) -> Path:
        return self.top / "run"

    def environment(self, **more: str) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.home), "PLACE": str(self.top), **more}

    def wrapped(
        self, command: Sequence[str], on_disk: bool = False, **options: object
    ) -> list[str]:
        plan = plan_isolation(
            Isolation.REQUIRED,
            run_directory=self.run_directory,
            working_directory=self.workspace,
            environment=self.environment(),
            folders=[self.workspace],
            **{"disk_bytes": 64 * MEBIBYTE, **options},  # type: ignore[arg-type]
        )
        if on_disk:
            path = self.run_directory / SPECIFICATION_FILE
            replace(read_specification(path), scratch_on_disk=True).write(self.run_directory)
        return list(plan.wrap(command))

    def run(self, command: Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
        wrapped = self.wrapped(command, **options)  # type: ignore[arg-type]
        return subprocess.run(
            wrapped, env=self.environment(), capture_output=True, text=True, timeout=60, check=False
        )

    def hashes(self) -> dict[str, str]:
        """Everything about every entry outside the run directory: type, mode, owner, times, links, content."""
        found = {}
        for path in sorted(self.top.rglob("*")):
            if self.run_directory in (path, *path.parents):
                continue
            status = path.lstat()
            facts = (
                status.st_mode,
                status.st_uid,
                status.st_gid,
                status.st_mtime_ns,
                status.st_ino,
            )
            if stat.S_ISREG(status.st_mode):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                content = os.readlink(path) if path.is_symlink() else ""
            found[str(path.relative_to(self.top))] = f"{facts} {status.st_nlink} {content}"
        return found

    def events(self, kind: str) -> list[dict[str, object]]:
        lines = (self.run_directory / EVENTS_FILE).read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == kind]


def furnished(top: Path) -> Place:
    place = Place(top)
    for folder in ("workspace/outputs/checkpoint-1", "home/.cache/hub", "sibling", "run"):
        (top / folder).mkdir(parents=True)
    for file in (
        "workspace/train.py",
        "workspace/data.txt",
        "workspace/outputs/checkpoint-1/model.bin",
        "home/.bashrc",
        "home/.cache/hub/weights.bin",
        "sibling/notes.txt",
    ):
        (top / file).write_text(f"{file} as it was\n")
    (top / "workspace" / "latest").symlink_to("outputs/checkpoint-1")
    return place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    needs_isolation()
    return furnished(tmp_path)


def alive(marker: str) -> list[int]:
    """Processes that carry ``marker`` in their environment, looked at from outside."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if marker.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def until(condition: Callable[[], object], seconds: float = 15.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return bool(condition())


def python(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", str(SCRIPTS / name), *arguments]


@pytest.mark.parametrize("on_disk", [False, True], ids=["scratch-in-memory", "scratch-on-disk"])
def test_what_a_script_does_to_files_is_thrown_away(place: Place, on_disk: bool) -> None:
    before = place.hashes()
    outside = Path(tempfile.gettempdir(), f"ranksafe-{os.getpid()}-absolute.txt")

    ended = place.run(python("touches_everything.py", str(outside)), on_disk=on_disk)

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "saw all of its own changes"
    assert place.hashes() == before
    assert not outside.exists()
    assert not Path("/var/tmp", f"{outside.name}.too").exists()
    assert not (place.run_directory / SCRATCH_FOLDER).exists()
    assert not [each for each in read_mounts().points if each.startswith(str(place.top))]


@pytest.mark.parametrize("on_disk", [False, True], ids=["scratch-in-memory", "scratch-on-disk"])
def test_a_file_says_something_else_inside_only(place: Place, on_disk: bool) -> None:
    script, link = place.workspace / "train.py", place.workspace / "linked.py"
    script.write_text("print('as it is')\n")
    script.chmod(0o444)
    link.symlink_to(script)
    before = place.hashes()
    texts = [(str(script), "print('深', 1)\r\n")]
    ended = place.run([sys.executable, "-I", str(link)], on_disk=on_disk, texts=texts)
    assert (ended.returncode, ended.stdout) == (0, "深 1\n"), ended.stderr
    assert place.hashes() == before


@pytest.mark.torch
def test_a_rehearsal_leaves_no_trace(
    place: Place, rehearsal_environment: RehearsalEnvironment
) -> None:
    """The whole way: simulated GPUs, a checkpoint, a push to the hub, a connection, and everything a script can touch."""
    before = place.hashes()
    outside = Path("/tmp", f"ranksafe-{os.getpid()}-rehearsed.txt")
    output: list[str] = []
    request = RunRequest(
        SCRIPTS / "trains_and_touches.py",
        "simulated:2",
        arguments=(str(outside),),
        interpreter=rehearsal_environment.interpreter,
        working_directory=place.workspace,
        environment={"HOME": str(place.home), "PYTHONPATH": ""},
        launcher="python",
        timeout_seconds=240.0,
        rehearsal=RehearsalOptions(isolation=Isolation.REQUIRED),
    )
    result = start_run(request, lambda event: output.extend(event.text.splitlines())).wait()
    assert result is not None
    assert result.outcome is Outcome.SUCCEEDED, (result.failures, result.simulation_limit, output)
    assert [line for line in output if line in ("saw all of its own changes", "offline True")] == [
        "offline True",
        "saw all of its own changes",
    ]
    assert "pushed " + "0" * 40 in output
    assert any("`upload_folder` (someone/model)" in sentence for sentence in result.modified)
    assert any("192.0.2.1" in sentence for sentence in result.limits)
    assert place.hashes() == before
    assert not outside.exists()


def test_the_run_directory_is_kept(place: Place) -> None:
    evidence = place.run_directory / "rank0.jsonl"
    assert place.run(["sh", "-c", f"echo seen > {evidence}"]).returncode == 0
    assert evidence.read_text() == "seen\n"


def test_no_listener_outside_is_reached(place: Place) -> None:
    """Neither by the addresses of this machine, nor by sockets in the file system or in the abstract name space."""
    heard: list[str] = []
    with OutsideListeners(place.top, heard) as addresses:
        reachable = subprocess.run(
            python("knocks.py", json.dumps(addresses)), capture_output=True, text=True
        )
        assert json.loads(reachable.stdout) == dict.fromkeys(addresses, "connected")
        assert until(lambda: len(heard) == len(addresses))
        heard.clear()

        isolated = place.run(python("knocks.py", json.dumps(addresses)))

        assert isolated.returncode == 0, isolated.stderr
        answers = json.loads(isolated.stdout)
        assert len(addresses) >= 3
        assert not [name for name, answer in answers.items() if answer == "connected"]
    assert not heard


class OutsideListeners:
    """Servers outside of the isolation: at this machine's addresses, at a path, at an abstract name."""

    def __init__(self, folder: Path, heard: list[str]) -> None:
        self._heard = heard
        self._sockets: list[socket.socket] = []
        self._addresses: dict[str, object] = {"path": str(folder / "s"), "abstract": f"\0{folder}"}

    def __enter__(self) -> dict[str, object]:
        for name in ("path", "abstract"):
            self._listen(name, socket.AF_UNIX, self._addresses[name])
        for address in {"127.0.0.1", *own_addresses()}:
            self._listen(address, socket.AF_INET, (address, 0))
        return self._addresses

    def _listen(self, name: str, family: int, address: object) -> None:
        server = socket.socket(family)
        server.bind(address)  # type: ignore[arg-type]
        server.listen()
        self._sockets.append(server)
        if family == socket.AF_INET:
            self._addresses[name] = list(server.getsockname())
        threading.Thread(target=self._serve, args=(server, name), daemon=True).start()

    def _serve(self, server: socket.socket, name: str) -> None:
        while True:
            try:
                server.accept()[0].close()
            except OSError:
                return
            self._heard.append(name)

    def __exit__(self, *_: object) -> None:
        for server in self._sockets:
            server.close()


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_system_call_leaves_loopback(place: Place) -> None:
    """Every connection that the script asks for elsewhere is refused by the kernel at once."""
    trace = place.top / "trace.txt"
    command = ["strace", "-f", "-qq", "-e", "trace=connect,sendto", "-o", str(trace)]
    ended = subprocess.run(
        [*command, *place.wrapped(python("calls_home.py"))],
        env=place.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    asked = [
        line for line in trace.read_text().splitlines() if "sin_addr" in line or "sin6_addr" in line
    ]
    elsewhere = [line for line in asked if '"127.0.0.1"' not in line and '"::1"' not in line]
    assert elsewhere
    assert not [line for line in elsewhere if "ENETUNREACH" not in line and "resumed" not in line]


def test_what_processes_of_one_machine_use_works(place: Place) -> None:
    ended = place.run(python("talks_to_itself.py"))
    assert (ended.returncode, ended.stdout) == (0, "heard hello\n"), ended.stderr


@pytest.mark.parametrize("status", [0, 3, 255])
def test_the_exit_status_is_the_commands(place: Place, status: int) -> None:
    assert place.run(["sh", "-c", f"exit {status}"]).returncode == status


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM])
def test_the_fatal_signal_is_the_commands(place: Place, number: signal.Signals) -> None:
    assert place.run(["sh", "-c", f"kill -{int(number)} $$"]).returncode == -number


def test_a_command_that_is_not_there(place: Place) -> None:
    ended = place.run(["no-such-program"])
    assert ended.returncode == 127
    assert "no-such-program" in ended.stderr


def test_signals_are_passed_on_once(place: Place) -> None:
    """A supervisor signals every process it sees, so the same signal arrives on two ways."""
    enough = place.run_directory / "enough"
    wait = f"until [ -e '{enough}' ]; do sleep 0.05; done"
    script = f'trap "echo asked" TERM; echo ready; {wait}; exit 4'
    process = subprocess.Popen(
        place.wrapped(["sh", "-c", script]),
        env=place.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for each in (child_of(process.pid), process.pid):
        os.kill(each, signal.SIGTERM)
        time.sleep(0.15)
    assert process.stdout.readline() == "asked\n"
    time.sleep(0.5)
    enough.touch()
    assert process.communicate(timeout=20) == ("", None)
    assert process.returncode == 4


def child_of(process: int) -> int:
    return int(Path(f"/proc/{process}/task/{process}/children").read_text().split()[0])


def test_processes_left_behind_end_with_the_command(place: Place) -> None:
    marker = f"MARKER={place.top}"
    ended = place.run(["sh", "-c", f"env {marker} setsid sleep 300 & exit 0"])
    assert ended.returncode == 0
    assert not alive(marker)
    assert [event["leftovers"] for event in place.events("ended")] == [1]


@dataclass
class Supervised:
    """The supervisor of a real run, with an isolated command that spreads over sessions and never ends."""

    process: subprocess.Popen[bytes]
    place: Place
    marker: str

    @property
    def report(self) -> dict[str, object]:
        text = (self.place.run_directory / "supervisor.json").read_text()
        return dict(json.loads(text))

    def processes(self) -> list[int]:
        return alive(self.marker)


@pytest.fixture
def supervised(place: Place) -> Iterator[Supervised]:
    marker = f"MARKER={place.top}"
    environment = place.environment(MARKER=str(place.top))
    process = subprocess.Popen([sys.executable, "-I", str(SUPERVISOR)], stdin=subprocess.PIPE)
    specification = {
        "command": place.wrapped(python("never_ends.py")),
        "environment": environment,
        "working_directory": str(place.workspace),
        "directory": str(place.run_directory),
        "grace_seconds": 1.0,
    }
    assert process.stdin is not None
    process.stdin.write(json.dumps(specification).encode() + b"\n")
    process.stdin.flush()
    found = Supervised(process, place, marker)
    assert until(lambda: (place.run_directory / "started").exists())
    assert len(found.processes()) >= 4
    yield found
    process.kill()
    process.wait()
    process.stdin.close()
    assert until(lambda: not found.processes())


def test_cancelling_leaves_nothing(supervised: Supervised) -> None:
    assert supervised.process.stdin is not None
    supervised.process.stdin.write(b"cancel\n")
    supervised.process.stdin.flush()
    assert supervised.process.wait(20) == 0
    assert supervised.report["status"] == "cancelled"
    assert not supervised.processes()


def test_killing_the_supervisor_leaves_nothing(supervised: Supervised) -> None:
    supervised.process.kill()
    assert until(lambda: not supervised.processes())
    assert not [each for each in read_mounts().points if str(supervised.place.top) in each]


@pytest.mark.parametrize("which", ["outside", "first"])
def test_killing_a_process_in_between_leaves_nothing(supervised: Supervised, which: str) -> None:
    outside = int(str(supervised.report["pid"]))
    os.kill(outside if which == "outside" else child_of(outside), signal.SIGKILL)
    assert supervised.process.wait(20) == 0
    assert supervised.report["returncode"] == -signal.SIGKILL
    assert not supervised.processes()


def test_the_machine_is_out_of_reach(place: Place) -> None:
    """Also for root: its processes, its settings, its devices, its mounts, its shared memory."""
    ended = place.run(python("reaches_out.py", str(os.getpid())))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert set(json.loads(ended.stdout).values()) == {"refused"}, ended.stdout


def test_nodes_have_names_of_their_own(place: Place) -> None:
    code = "import socket; n = socket.gethostname(); print(n, socket.gethostbyname(n))"
    ended = place.run(on_node(1, [sys.executable, "-c", code]), nodes=2)
    assert ended.stdout == f"{node_name(1)} 127.0.0.1\n", ended.stderr


needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to become another user"
)


@pytest.fixture
def strangers_place() -> Iterator[Place]:
    """A place of another user, below folders that are not theirs, with a Python and our code they can read."""
    needs_isolation()
    top = Path(tempfile.mkdtemp(prefix="ranksafe-stranger-", dir="/var/tmp"))
    try:
        top.chmod(0o755)
        (top / "projects").mkdir()
        place = furnished(top / "projects" / "theirs")
        for path in (place.top, *place.top.rglob("*")):
            os.chown(path, UNKNOWN_USER, UNKNOWN_USER, follow_symlinks=False)
        source = SERVER / "ranksafe"
        for folder in (".", "rehearsal", "rehearsal/isolation"):
            (top / "server/ranksafe" / folder).mkdir(parents=True, exist_ok=True)
            for file in (source / folder).glob("*.py"):
                shutil.copy(file, top / "server/ranksafe" / folder / file.name)
        shutil.copytree(SCRIPTS, top / "scripts")
        yield place
    finally:
        shutil.rmtree(top)


@needs_root
@pytest.mark.parametrize("on_disk", [False, True], ids=["scratch-in-memory", "scratch-on-disk"])
def test_it_works_without_root(strangers_place: Place, on_disk: bool) -> None:
    place = strangers_place
    interpreter = python_of_everyone()
    top = place.top.parents[1]
    place.wrapped(["true"], on_disk=on_disk)
    before = place.hashes()
    outside = top.with_name(f"{top.name}.txt")
    ended = subprocess.run(
        [
            interpreter,
            "-I",
            str(top / "server/ranksafe/rehearsal/isolation/enter.py"),
            str(place.run_directory / SPECIFICATION_FILE),
            "--",
            interpreter,
            "-I",
            str(top / "scripts/touches_everything.py"),
            str(outside),
        ],
        env=place.environment(),
        capture_output=True,
        text=True,
        user=UNKNOWN_USER,
        group=UNKNOWN_USER,
        extra_groups=[],
        cwd=place.workspace,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "saw all of its own changes"
    assert place.hashes() == before
    assert not outside.exists()
    assert not Path("/var/tmp", f"{outside.name}.too").exists()
    assert not (place.run_directory / SCRATCH_FOLDER).exists()


def python_of_everyone() -> str:
    """A Python that another user may start."""
    for name in ("python3", "python3.13", "python3.12", "python3.11", "python3.10"):
        found = shutil.which(name, path="/usr/bin:/usr/local/bin")
        if found is None:
            continue
        code = "import sys; sys.exit(sys.version_info < (3, 10))"
        tried = subprocess.run(
            [found, "-I", "-c", code], user=UNKNOWN_USER, extra_groups=[], check=False
        )
        if tried.returncode == 0:
            return found
    pytest.skip("no Python >= 3.10 that other users may start")


@needs_root
def test_mounts_below_the_workspace(place: Place) -> None:
    """A folder that holds a mount point can carry no overlay, and a mounted one may be an overlay itself (containers).

    Both are kept all the same; only the folders directly beside a mount point cannot be renamed or removed.
    """
    mounted = place.workspace / "mounted"
    mounted.mkdir()
    layers = place.top / "layers"
    layers.mkdir()
    before = place.hashes()
    inside = (
        "cat mounted/there && echo changed > mounted/there && rm -r mounted/old && echo changed > data.txt"
        " && rm -r outputs/checkpoint-1 && cat mounted/there data.txt && ls mounted outputs"
    )
    wrapped = place.wrapped(["sh", "-c", inside])
    options = f"lowerdir={layers}/low,upperdir={layers}/up,workdir={layers}/work"
    script = (
        f"mount -t tmpfs tmpfs {layers} && cd {layers} && mkdir -p low/old up work"
        f" && echo real > low/there && mount -t overlay overlay -o {options} {mounted}"
        f" && {shell(wrapped)} && cat {mounted}/there && ls {mounted}"
    )
    ended = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
        env=place.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    seen_inside = "real\nchanged\nchanged\nmounted:\nthere\n\noutputs:\n"
    assert ended.stdout == f"{seen_inside}real\nold\nthere\n", ended.stderr
    assert place.hashes() == before


def shell(command: Sequence[str]) -> str:
    return " ".join("'" + part.replace("'", "'\\''") + "'" for part in command)


def test_what_cannot_be_set_up_starts_nothing(place: Place) -> None:
    wrapped = place.wrapped(["touch", str(place.run_directory / "started")])
    path = place.run_directory / SPECIFICATION_FILE
    broken = replace(read_specification(path), working_directory=str(place.top / "missing"))
    broken.write(place.run_directory)
    ended = subprocess.run(wrapped, capture_output=True, text=True, timeout=60)
    assert ended.returncode == NOT_ENTERED
    assert json.loads(ended.stderr)["errno"] == 2
    assert [event["kind"] for event in place.events("limit")] == ["isolation"]
    assert not (place.run_directory / "started").exists()


def test_a_plan_without_isolation(tmp_path: Path) -> None:
    plan = plan_isolation(
        Isolation.OFF,
        run_directory=tmp_path,
        working_directory=tmp_path,
        environment={"HF_TOKEN": "hf_real"},
    )
    assert not plan.isolated
    assert not plan.offline
    assert len(plan.limits) == 1
    assert plan.changed({"HF_TOKEN": "hf_real"})["HF_TOKEN"] == "hf_real"
    ended = subprocess.run(
        plan.wrap(["sh", "-c", "echo kept > kept.txt"]), cwd=tmp_path, timeout=60
    )
    assert ended.returncode == 0
    assert (tmp_path / "kept.txt").exists()


def test_another_text_is_tried_in_isolation_only(tmp_path: Path) -> None:
    with pytest.raises(RehearsalNotPossible, match="isolation only"):
        plan_isolation(
            Isolation.OFF,
            run_directory=tmp_path,
            working_directory=tmp_path,
            environment={},
            texts=[(str(tmp_path / "train.py"), "")],
        )


def test_a_run_directory_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(RehearsalNotPossible):
        plan_isolation(
            Isolation.OFF,
            run_directory=tmp_path / "missing",
            working_directory=tmp_path,
            environment={},
        )


def test_secrets_become_worthless_and_services_go() -> None:
    changes = without_secrets(
        {
            "HF_TOKEN": "hf_secret",
            "AWS_SECRET_ACCESS_KEY": "abc",
            "OPENAI_API_KEY": "sk-1",
            "DB_PASSWORD": "12",
            "GOOGLE_APPLICATION_CREDENTIALS": "/key.json",
            "SSH_AUTH_SOCK": "/tmp/agent",
            "TOKENIZERS_PARALLELISM": "false",
            "MAX_TOKENS": "5",
            "KEYBOARD": "us",
            "PATH": "/bin",
        }
    )
    assert changes.pop("SSH_AUTH_SOCK") is None
    assert set(changes) == {
        "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "OPENAI_API_KEY",
        "DB_PASSWORD",
        "GOOGLE_APPLICATION_CREDENTIALS",
    }
    assert changes["AWS_SECRET_ACCESS_KEY"] == "xxx"


def test_mount_points_with_odd_names(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 0:21 / / rw - ext4 /dev/a rw\n23 22 0:22 / /data/with\\040space rw shared:1 - xfs /dev/b rw\n"
    )
    mounts = read_mounts(table)
    assert mounts.points == {"/", "/data/with space"}
    assert mounts.any_below("/data")
    assert mounts.any_below("/")
    assert not mounts.any_below("/data/with space")
    assert not mounts.any_below("/dat")


def test_host_names_lead_to_loopback() -> None:
    hosts = "127.0.0.1 localhost\n# comment\n\n10.0.0.5 trainer trainer.lan # its address\n10.0.0.6 store\n"
    assert hosts_with(("trainer", "node0"), hosts) == [
        "127.0.0.1 localhost",
        "10.0.0.5 trainer.lan",
        "10.0.0.6 store",
        "127.0.0.1 trainer",
        "127.0.0.1 node0",
        "::ffff:127.0.0.1 loopback",
    ]
    assert hosts_with((), "")[0] == "127.0.0.1 localhost"


@needs_root
def test_what_a_killed_run_left_on_disk_can_be_cleared(strangers_place: Place) -> None:
    """By the user whose run it was: overlays leave folders there that nobody may open."""
    place, top = strangers_place, strangers_place.top.parents[1]
    place.wrapped(["true"], on_disk=True)
    enter = top / "server/ranksafe/rehearsal/isolation/enter.py"
    specification = str(place.run_directory / SPECIFICATION_FILE)
    interpreter = python_of_everyone()
    script = "touch changed; rm -r outputs; touch ../run/started; sleep 60"
    process = subprocess.Popen(
        [interpreter, "-I", str(enter), specification, "--", "sh", "-c", script],
        env=place.environment(),
        user=UNKNOWN_USER,
        group=UNKNOWN_USER,
        extra_groups=[],
    )
    assert until(lambda: (place.run_directory / "started").exists())
    process.kill()
    process.wait()
    folder = place.run_directory / SCRATCH_FOLDER
    assert folder.exists()
    code = (
        f"import sys; sys.path.insert(0, {str(top / 'server')!r});"
        "from ranksafe.rehearsal.isolation import scratch;"
        f"scratch.clear({str(place.run_directory)!r})"
    )
    clear = [interpreter, "-I", "-c", code]
    assert until(lambda: not alive(f"PLACE={place.top}"))
    subprocess.run(clear, user=UNKNOWN_USER, group=UNKNOWN_USER, extra_groups=[], check=True)
    assert not folder.exists()
