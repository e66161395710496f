"""Another machine that ``ssh HOST`` reaches: the project is sent there, a supervisor there owns the run."""

from __future__ import annotations

import base64
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from ranksafe.localization import Translated
from ranksafe.runs import agent
from ranksafe.runs.directory import KEPT_RUNS
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.explain.remote_paths import write_mapping
from ranksafe.runs.hosts.ssh import SshHost
from ranksafe.runs.interpreter import Interpreter
from ranksafe.runs.launch_plan import Elsewhere, Plan, launch_command, own_config
from ranksafe.runs.model import RunRequest
from ranksafe.runs.on_host import program
from ranksafe.runs.remote.devices import DeviceChoice, choose_devices
from ranksafe.runs.remote.facts import (
    HostFacts,
    described,
    local_versions,
    look_at,
)
from ranksafe.runs.remote.host_settings import HostSettings, settings_of
from ranksafe.runs.remote.listing import Listing, list_project, project_root
from ranksafe.runs.remote.process import LOST_LEASE_SECONDS, RemoteProcess
from ranksafe.runs.remote.record import RemoteRun, sentences, write_record
from ranksafe.runs.remote.sync import remote_folder, send_project
from ranksafe.runs.targets.protocol import Listener
from ranksafe.runs.targets.supervised import GRACE_SECONDS, ride_along

_CONFIG = "accelerate.yaml"
_INJECT = "inject"


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What `SshTarget.start` needs besides the plan."""

    request: RunRequest
    listing: Listing
    run_folder: PurePosixPath
    project: PurePosixPath
    working_directory: PurePosixPath
    interpreter: Interpreter
    devices: DeviceChoice
    locks: PurePosixPath
    variables: dict[str, str]
    files: dict[str, str]


class SshTarget:
    """Runs on ``host``. Raises RunNotPossible for what is no name of a host, and where there is no ssh."""

    def __init__(self, host: str) -> None:
        self._host = SshHost(host)
        self._prepared: _Prepared | None = None

    @property
    def name(self) -> str:
        """``ssh:HOST``."""
        return f"ssh:{self._host.name}"

    def probe(self, request: RunRequest, listener: Listener) -> Sequence[Translated]:  # noqa: ARG002
        """Interpreter and versions against those here, devices and who uses them, room, network."""
        facts = self._look(request, settings_of(self._host.name))
        found = described(facts, local_versions(replace(request, interpreter=None)))
        if facts.answer["python"].get("sent") is False:
            found.append(_NOT_YET_SENT.filled(command=facts.interpreter().path))
        return found

    def prepare(self, request: RunRequest, directory: Path, listener: Listener) -> Plan:
        """Look at the host, choose interpreter and devices, send what has changed of the project."""
        settings = settings_of(self._host.name)
        working_directory = (request.working_directory or Path.cwd()).absolute()
        listing = list_project(
            project_root(working_directory, request.script), settings.project_limit_mb * 10**6
        )
        by_command = bool(settings.command) and request.interpreter is None
        facts = self._look(request, settings, without_python=by_command)
        facts.require_room(sum(int(entry[0] or 0) for entry in listing.files.values()))
        if facts.answer["slurm"]["node"] and not settings.despite_slurm:
            raise RunNotPossible(_SLURM_NODE.filled(host=self._host.name))
        limits = [_LINK.filled(name=name) for name in listing.left_out]
        project = remote_folder(facts.base, listing.root)
        script = _there(request.script.absolute(), listing, project)
        if by_command:
            # What it starts may depend on files of the project (uv.lock), and has to see them.
            send_project(self._host, listing, project, listener)
            listener.say(_ASKING.filled(host=self._host.name, command=shlex.join(settings.command)))
            facts = self._look(request, settings)
        interpreter = facts.interpreter()
        devices = choose_devices(facts, interpreter, request)
        limits += devices.limits
        run_folder = facts.base / "runs" / directory.name
        command, expected, files = _launch(
            request, interpreter, facts, devices, script, run_folder, directory
        )
        variables, modified = _variables(request, directory, script, run_folder, devices)
        if not by_command:
            send_project(self._host, listing, project, listener)
        self._prepared = _Prepared(
            request=request,
            listing=listing,
            run_folder=run_folder,
            project=project,
            working_directory=_working_directory(working_directory, script, listing, project),
            interpreter=interpreter,
            devices=devices,
            locks=facts.locks,
            variables=variables,
            files={**files, **_agent_files()},
        )
        return Plan(command, {}, working_directory, expected, modified, tuple(limits))

    def start(self, plan: Plan, directory: Path) -> RemoteProcess:
        """Start the supervisor there, which starts the launcher and outlives the connection."""
        prepared = self._prepared
        assert prepared is not None
        settings = settings_of(self._host.name)
        request = prepared.request
        lease = LOST_LEASE_SECONDS if request.stop_when_lost else settings.lease_hours * 3600
        run = RemoteRun(
            target=self.name,
            host=self._host.name,
            directory=str(prepared.run_folder),
            project=str(prepared.project),
            root=str(prepared.listing.root),
            script=str(request.script.absolute()),
            working_directory=str(plan.working_directory),
            lease_seconds=lease,
            stop_when_lost=request.stop_when_lost,
            command=plan.command,
            ranks=plan.ranks,
            steps=request.steps,
            started=time.time(),
            modified=sentences(plan.modified),
            limits=sentences(plan.limits),
            timeout_seconds=request.timeout_seconds,
            on_hang=request.on_hang,
            patience_seconds=settings.patience_minutes * 60,
        )
        write_record(run, directory)
        write_mapping(directory, run.project, prepared.listing.root)
        text = program(
            "on_host.supervise",
            "on_host.request",
            "on_host.follow",
            "on_host.reserve",
            "kept_output",
            "drain",
            "supervisor",
        )
        try:
            conversation = self._host.start(text, _order(run, prepared))
            process = RemoteProcess(self._host, run, directory, conversation, request.language)
            process.wait_for_start()
        except RunNotPossible:
            # There is nothing to come back to.
            write_record(replace(run, finished=True), directory)
            raise
        return process

    def release(self) -> None:
        """Nothing is held before the supervisor there holds it."""
        self._prepared = None

    def _look(
        self, request: RunRequest, settings: HostSettings, *, without_python: bool = False
    ) -> HostFacts:
        script = request.script.absolute()
        working_directory = (request.working_directory or Path.cwd()).absolute()
        below = remote_folder(PurePosixPath(), project_root(working_directory, script))
        chosen = None if request.interpreter is None else str(request.interpreter)
        return look_at(self._host, settings, chosen, below, without_python=without_python)


def _order(run: RemoteRun, prepared: _Prepared) -> dict[str, object]:
    """What `on_host.supervise` is asked to do. Values of variables travel here, and are written down nowhere."""
    prepend = {"PYTHONPATH": str(prepared.run_folder / _INJECT)}
    if not prepared.interpreter.command:
        prepend["PATH"] = str(PurePosixPath(prepared.interpreter.path).parent)
    devices = prepared.devices
    return {
        "directory": run.directory,
        "files": prepared.files,
        "specification": {
            "command": list(run.command),
            "environment": prepared.variables,
            "working_directory": str(prepared.working_directory),
            "grace_seconds": GRACE_SECONDS,
            "keep_detached": prepared.request.keep_detached,
        },
        "devices": (
            {
                "candidates": list(devices.candidates),
                "count": devices.ranks,
                "locks": str(prepared.locks),
            }
            if devices.candidates
            else None
        ),
        "prepend": prepend,
        "lease_seconds": run.lease_seconds,
        "kept_runs": KEPT_RUNS,
        "have": {},
    }


def _launch(
    request: RunRequest,
    interpreter: Interpreter,
    facts: HostFacts,
    devices: DeviceChoice,
    script: PurePosixPath,
    run_folder: PurePosixPath,
    directory: Path,
) -> tuple[tuple[str, ...], int | None, dict[str, str]]:
    """The command there, the ranks it starts, and the files it reads."""
    place = Elsewhere(str(script), str(run_folder / _CONFIG), facts.free_port)
    command, ranks = launch_command(request, interpreter, devices.ranks, directory, elsewhere=place)
    if request.config_file is not None:
        config = request.config_file.read_bytes()
    else:
        config = own_config(devices.ranks).encode()
    return command, ranks, {_CONFIG: base64.b64encode(config).decode()}


def _variables(
    request: RunRequest,
    directory: Path,
    script: PurePosixPath,
    run_folder: PurePosixPath,
    devices: DeviceChoice,
) -> tuple[dict[str, str], tuple[Translated, ...]]:
    """The variables of the run besides the host's own: the user's, the agent's. Nothing of this process's is sent."""
    variables: dict[str, str] = {}
    modified = ride_along(variables, request, directory, detectors="cheap")
    del variables["PYTHONPATH"]
    variables[agent.DIRECTORY_VARIABLE] = str(run_folder)
    variables[agent.SCRIPT_VARIABLE] = str(script)
    if not devices.candidates:
        variables.update(ACCELERATE_USE_CPU="true", CUDA_VISIBLE_DEVICES="")
    return {**request.environment, **variables}, modified


def _there(path: Path, listing: Listing, project: PurePosixPath) -> PurePosixPath:
    """Where a file of the project lies there. Raises RunNotPossible when it is not sent."""
    name = path.relative_to(listing.root).as_posix() if path.is_relative_to(listing.root) else None
    if name is None or name not in listing.files:
        raise RunNotPossible(_NOT_SENT.filled(path=path, root=listing.root))
    return project / name


def _working_directory(
    here: Path, script: PurePosixPath, listing: Listing, project: PurePosixPath
) -> PurePosixPath:
    if here.is_relative_to(listing.root):
        below = here.relative_to(listing.root).as_posix()
        if any(name.startswith(f"{below}/") for name in listing.files) or below == ".":
            return project / below
    return script.parent


def _agent_files() -> dict[str, str]:
    """The part that rides along in the ranks, as it lies in this installation."""
    return {
        f"{_INJECT}/{path.relative_to(agent.INJECT_DIRECTORY).as_posix()}": base64.b64encode(
            path.read_bytes()
        ).decode()
        for path in sorted(agent.INJECT_DIRECTORY.rglob("*.py"))
    }


_NOT_SENT = Translated(
    en="{path} is not among the files that are sent: it is ignored by git, or lies outside of {root}.",
    zh_cn="{path} 不在要发送的文件之中：它被 git 忽略，或位于 {root} 之外。",
)
_LINK = Translated(
    en="{name} is not sent: the link leads out of the project",
    zh_cn="未发送 {name}：该链接指向项目之外",
)
_ASKING = Translated(
    en="asking `{command}` on {host} for its versions",
    zh_cn="正在询问 {host} 上 `{command}` 的版本",
)
_NOT_YET_SENT = Translated(
    en="the project has not been sent there yet: `{command}` was asked in the home folder",
    zh_cn="项目尚未发送到那里：`{command}` 是在主目录中询问的",
)
_SLURM_NODE = Translated(
    en="{host} is a node of a Slurm cluster, which decides who gets its GPUs: use the target slurm:NAME. "
    "(`despite-slurm = true` in hosts.toml runs past it.)",
    zh_cn="{host} 是 Slurm 集群的节点，GPU 由集群分配：请使用目标 slurm:NAME。"
    "（hosts.toml 中的 `despite-slurm = true` 可绕过。）",
)
