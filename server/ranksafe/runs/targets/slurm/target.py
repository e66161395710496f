"""A Slurm cluster: the run is a job that Slurm places, starts, ends and cleans up after."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from ranksafe.localization import Language, Translated
from ranksafe.runs.errors import RunCancelled, RunNotPossible
from ranksafe.runs.explain.remote_paths import write_mapping
from ranksafe.runs.hosts.local import LocalHost
from ranksafe.runs.hosts.protocol import Host
from ranksafe.runs.launch_plan import Elsewhere, Node, Plan, launch_command
from ranksafe.runs.model import RunRequest
from ranksafe.runs.on_host import program
from ranksafe.runs.remote.facts import local_versions, version_in_words
from ranksafe.runs.remote.record import RemoteRun, sentences, write_record
from ranksafe.runs.targets.protocol import Listener
from ranksafe.runs.targets.slurm.batch import Size, batch_script, sbatch_options, size_of
from ranksafe.runs.targets.slurm.cluster_facts import (
    ClusterFacts,
    check_partition,
    described_cluster,
    look_at,
)
from ranksafe.runs.targets.slurm.compute_node.node import ADDRESS, NODE, PORT
from ranksafe.runs.targets.slurm.process import Job, SlurmProcess
from ranksafe.runs.targets.slurm.project import Project, in_place, sent_to
from ranksafe.runs.targets.slurm.run_files import CONFIG, files_of, variables_of
from ranksafe.runs.targets.slurm.settings import HERE, Cluster, cluster_named
from ranksafe.runs.targets.supervised import described

STATE_FILE: Final = "target.json"
"""In the run's directory: what `reattached` needs."""
_SUBMIT = "targets.slurm.login_node.submit"
_SUBMISSION_SECONDS = 180.0
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What `SlurmTarget.start` needs besides the plan."""

    request: RunRequest
    facts: ClusterFacts
    project: Project
    job: Job
    """Without a number yet."""
    submission: dict[str, Any]
    listener: Listener


class SlurmTarget:
    """Runs on the cluster of that name in the user's settings.

    Raises RunNotPossible where the user has no such cluster.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster_named(cluster)
        self._host = host_of(self._cluster.login)
        self._prepared: _Prepared | None = None

    @property
    def name(self) -> str:
        """``slurm:NAME``."""
        return f"slurm:{self._cluster.name}"

    def probe(self, request: RunRequest, listener: Listener) -> Sequence[Translated]:  # noqa: ARG002
        """Slurm, its partitions and free GPUs, the interpreter there and its packages."""
        facts = look_at(self._cluster, self._host, request)
        check_partition(facts, self._cluster)
        here = self._cluster.login == HERE
        local = {} if here else local_versions(replace(request, interpreter=None))
        python, *_ = described(facts.interpreter)
        versions = facts.interpreter.versions.items()
        return [
            python,
            *(version_in_words(name, there, local.get(name)) for name, there in versions),
            *described_cluster(facts, self._cluster, self._host),
            *_listed(_why_cpu(request, self._cluster, facts)),
        ]

    def prepare(self, request: RunRequest, directory: Path, listener: Listener) -> Plan:
        """Look at the cluster, write everything that the job reads; nothing is submitted yet."""
        listener.say(_LOOKING.filled(host=self._host.name))
        facts = look_at(self._cluster, self._host, request)
        check_partition(facts, self._cluster)
        if listener.should_stop():
            raise RunCancelled
        size = size_of(request, self._cluster)
        there = f"{facts.folder}/runs/{directory.name}"
        project = self._project(request, facts, there, listener)
        place = Elsewhere(project.script, f"{there}/{CONFIG}", PORT)
        launcher, expected = self._launcher(request, facts, size, directory, place)
        why_cpu = _why_cpu(request, self._cluster, facts)
        variables, modified = variables_of(request, there, project.script, cpu=why_cpu is not None)
        script = batch_script(str(facts.interpreter.path), there)
        (directory / "job.sh").write_text(script, encoding="utf-8", errors="surrogateescape")
        submission = {
            "directory": there,
            "files": files_of(request, there, project, launcher, variables, size.ranks),
            "project": project.tree(),
            "options": sbatch_options(self._cluster, size, directory.name),
            "script": script,
            "environment": dict(request.environment),
            "commands": self._cluster.commands,
        }
        job = Job("", there, self._cluster.poll_seconds, self._cluster.commands)
        self._prepared = _Prepared(request, facts, project, job, submission, listener)
        return Plan(
            command=(*launcher, project.script, *request.arguments),
            environment={},
            working_directory=(request.working_directory or Path.cwd()).absolute(),
            ranks=expected,
            modified=modified,
            limits=(*project.limits, *_listed(why_cpu)),
        )

    def start(self, plan: Plan, directory: Path) -> SlurmProcess:
        """Submit the job."""
        prepared = self._prepared
        assert prepared is not None
        text = program(_SUBMIT, "on_host.request", "targets.slurm.login_node.tree")
        for _ in range(_ATTEMPTS):
            answer = self._host.ask(text, prepared.submission, timeout_seconds=_SUBMISSION_SECONDS)
            if "changed" not in answer:
                break
            prepared = self._sent_again(prepared)
        else:
            raise RunNotPossible(_CHANGES)
        project = prepared.project
        if "unwritable" in answer:
            raise RunNotPossible(_UNWRITABLE.filled(reason=answer["unwritable"]))
        if "refused" in answer:
            raise RunNotPossible(_REFUSED.filled(reason=_tidy(answer["refused"])))
        job = replace(prepared.job, number=str(answer["job"]))
        state = {"login": self._cluster.login, **asdict(job)}
        (directory / STATE_FILE).write_text(json.dumps(state), encoding="utf-8")
        write_record(self._record(plan, prepared), directory)
        if project.folder != str(project.root):
            write_mapping(directory, project.folder, project.root)
        return SlurmProcess(self._host, job, directory, prepared.request.language)

    def release(self) -> None:
        """Nothing is held before the job is submitted."""
        self._prepared = None

    def _project(
        self, request: RunRequest, facts: ClusterFacts, run: str, listener: Listener
    ) -> Project:
        if self._cluster.login == HERE:
            return in_place(request)
        limit = self._cluster.project_limit_mb
        return sent_to(self._host, facts.folder, run, limit, request, listener)

    def _sent_again(self, prepared: _Prepared) -> _Prepared:
        """Another submission changed the project's folder since it was sent."""
        project = self._project(
            prepared.request, prepared.facts, prepared.job.directory, prepared.listener
        )
        submission = {**prepared.submission, "project": project.tree()}
        return replace(prepared, project=project, submission=submission)

    def _record(self, plan: Plan, prepared: _Prepared) -> RemoteRun:
        """As every run that is not on this machine leaves it, to be found again."""
        request, project = prepared.request, prepared.project
        return RemoteRun(
            target=self.name,
            host=self._host.name,
            directory=prepared.job.directory,
            project=project.folder,
            root=str(project.root),
            script=str(request.script.absolute()),
            working_directory=str(plan.working_directory),
            lease_seconds=0.0,
            stop_when_lost=False,
            command=plan.command,
            ranks=plan.ranks,
            steps=request.steps,
            started=time.time(),
            modified=sentences(plan.modified),
            limits=sentences(plan.limits),
            timeout_seconds=request.timeout_seconds,
            on_hang=request.on_hang,
        )

    def _launcher(
        self,
        request: RunRequest,
        facts: ClusterFacts,
        size: Size,
        directory: Path,
        place: Elsewhere,
    ) -> tuple[list[str], int | None]:
        """One node's command without the script and its arguments."""
        node = Node(NODE, size.nodes, PORT, ADDRESS)
        command, expected = launch_command(
            request,
            facts.interpreter,
            size.ranks_per_node,
            directory,
            # Plain python knows nothing of nodes, and with one needs to know nothing.
            node if size.nodes > 1 else None,
            place,
        )
        return list(command[: -1 - len(request.arguments)]), expected


def reattached(directory: Path, language: Language) -> SlurmProcess:
    """The run of ``directory``, seen again. Raises RunNotPossible where it is not a job's, or is damaged."""
    try:
        state = json.loads((directory / STATE_FILE).read_text(encoding="utf-8"))
        job = Job(
            number=str(int(state["number"])),
            directory=str(state["directory"]),
            poll_seconds=float(state["poll_seconds"]),
            commands=str(state["commands"]),
        )
        login = str(state["login"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunNotPossible(_NO_JOB.filled(run=directory.name, reason=error)) from error
    return SlurmProcess(host_of(login), job, directory, language)


def host_of(login: str) -> Host:
    """The machine with the cluster's commands. Raises RunNotPossible for what is no name of a host."""
    if login == HERE:
        return LocalHost()
    from ranksafe.runs.hosts.ssh import SshHost

    return SshHost(login)


def _why_cpu(request: RunRequest, cluster: Cluster, facts: ClusterFacts) -> Translated | None:
    """Why the ranks use gloo on the processors; None: they use CUDA devices."""
    if request.cpu_ranks:
        return _CHOSEN_CPU
    if not cluster.gpus_per_node:
        return _NO_GPUS
    if facts.interpreter.torch_cuda is None:
        return _CPU_BUILD.filled(version=facts.interpreter.versions.get("torch", "?"))
    return None


def _listed(sentence: Translated | None) -> list[Translated]:
    return [] if sentence is None else [sentence]


def _tidy(complaint: str) -> str:
    """sbatch's words without its name before every line."""
    lines = [
        line.removeprefix("sbatch: ").removeprefix("error: ") for line in complaint.splitlines()
    ]
    return " ".join(line.strip() for line in lines if line.strip())[:1000]


_LOOKING = Translated(en="looking at the cluster ({host})", zh_cn="正在检查集群（{host}）")
_UNWRITABLE = Translated(
    en="The run's files cannot be written on the cluster: {reason}. Set folder of the cluster to a disk with room.",
    zh_cn="无法在集群上写入运行文件：{reason}。请将集群的 folder 设置为有剩余空间的磁盘。",
)
_CHANGES = Translated(
    en="Other submissions of this project came between again and again: try once more.",
    zh_cn="此项目的其他提交反复插入其间：请再试一次。",
)
_REFUSED = Translated(en="Slurm refuses the job: {reason}", zh_cn="Slurm 拒绝了作业：{reason}")
_NO_JOB = Translated(
    en="The run {run} cannot be found again: {reason}", zh_cn="无法重新找到运行 {run}：{reason}"
)
_CHOSEN_CPU = Translated(
    en="CPU ranks (gloo) instead of GPUs, as chosen: nothing that needs CUDA or NCCL is shown",
    zh_cn="按选择使用 CPU rank（gloo）代替 GPU：无法体现依赖 CUDA 或 NCCL 的问题",
)
_NO_GPUS = Translated(
    en="the cluster's settings ask for no GPUs: gloo ranks on the CPU, nothing that needs CUDA or NCCL is shown",
    zh_cn="集群设置未申请 GPU：改用 CPU 上的 gloo rank，无法体现依赖 CUDA 或 NCCL 的问题",
)
_CPU_BUILD = Translated(
    en="torch {version} on the cluster is built without CUDA: gloo ranks on the CPU",
    zh_cn="集群上的 torch {version} 不带 CUDA 支持：改用 CPU 上的 gloo rank",
)
