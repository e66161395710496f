"""A Slurm cluster of two nodes with two fake GPUs each, on this machine, with everything it keeps in one folder.

Its daemons run in the foreground below ranksafe's own supervisor, which ends them and whatever their jobs left, also
when the tests are killed. Needs no systemd and, but for limits on memory, no root.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ranksafe.runs import supervisor

NODES = ("n1", "n2")
GPUS_PER_NODE = 2
MEMORY_MIB = 6000
_MEMORY_CGROUP = Path("/sys/fs/cgroup/memory")
_SEARCHED = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
_READY_SECONDS = 30.0
_DAEMONS = Path(__file__).with_name("slurm_daemons.py")
_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")


def missing_program() -> str | None:
    """What a cluster needs and is not installed here; None: nothing."""
    return next((name for name in _PROGRAMS if shutil.which(name, path=_SEARCHED) is None), None)


@dataclass(frozen=True)
class SlurmCluster:
    """A cluster that runs."""

    folder: Path
    memory_is_limited: bool
    """Whether a job that takes more memory than it asked for is killed."""

    @property
    def configuration(self) -> Path:
        """What ``SLURM_CONF`` must name."""
        return self.folder / "slurm.conf"

    def ask(self, *command: str) -> str:
        """The output of one of Slurm's commands."""
        environment = {**os.environ, "SLURM_CONF": str(self.configuration)}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    def lose_node(self, name: str) -> None:
        """As if its power were cut: its daemon and all that its jobs run are gone at once."""
        self._signal_node(name, signal.SIGKILL)

    def cut_off_node(self, name: str) -> None:
        """As if its network were gone: nothing there answers any more, and no connection ends."""
        self._signal_node(name, signal.SIGSTOP)

    def return_node(self, name: str) -> None:
        """Start a lost node again."""
        self._signal_node(name, signal.SIGKILL)
        (self.folder / f"return.{name}").touch()
        self.wait_until_idle()

    def _signal_node(self, name: str, number: signal.Signals) -> None:
        # Slurm's own first: they would tell the controller of the ends of the others.
        for pid in (*self._daemons_of(name), *self._tasks_of(name)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _daemons_of(self, name: str) -> list[int]:
        """slurmd and the managers of its steps: they write its log."""
        log = str(self.folder / f"slurmd.{name}.log")
        return [pid for pid in _processes() if log in _open_files(pid)]

    def _tasks_of(self, name: str) -> list[int]:
        own = (f"SLURMD_NODENAME={name}", f"SLURM_CONF={self.configuration}")
        told = {pid: _environment(pid).split("\0") for pid in _processes()}
        return [pid for pid, variables in told.items() if all(each in variables for each in own)]

    def wait_until_idle(self) -> None:
        """Until every node has nothing to do."""
        end = time.monotonic() + _READY_SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(subprocess.CalledProcessError):
                states = self.ask("sinfo", "-h", "-N", "-p", "gpu", "-o", "%t").split()
                if states == ["idle"] * len(NODES):
                    return
            time.sleep(0.1)
        said = [*self.folder.glob("*.log"), *self.folder.glob("*.stderr")]
        logs = [f"{path.name}: {path.read_text(errors='replace')[-2000:]}" for path in sorted(said)]
        raise RuntimeError("the nodes are not idle:\n" + "\n".join(logs))

    @contextmanager
    def occupied(self) -> Iterator[str]:
        """Somebody else's job has all GPUs; its id."""
        wanted = ["--nodes=2", f"--gres=gpu:{GPUS_PER_NODE}", "--output=/dev/null"]
        job = self.ask("sbatch", "--parsable", *wanted, "--wrap", "sleep 100").strip()
        try:
            yield job
        finally:
            self.ask("scancel", job)

    def jobs(self) -> list[str]:
        """The ids of the jobs that wait or run."""
        return self.ask("squeue", "-h", "-o", "%i").split()


@contextmanager
def running_cluster() -> Iterator[SlurmCluster]:
    """Start a cluster; its jobs end with it."""
    # Not pytest's folder: the path of a socket has 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="ranksafe-slurm-"))
    limited = os.geteuid() == 0 and os.access(_MEMORY_CGROUP, os.W_OK)
    cluster = SlurmCluster(folder, limited)
    daemons = _prepare(cluster)
    (folder / "daemons.json").write_text(json.dumps(daemons))
    specification = {
        "command": [sys.executable, str(_DAEMONS), str(folder)],
        "environment": {**os.environ, "SLURM_CONF": str(cluster.configuration)},
        "working_directory": str(folder),
        "directory": str(folder),
        "grace_seconds": 2.0,
    }
    owner = subprocess.Popen(
        [sys.executable, "-I", str(supervisor.__file__)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    assert owner.stdin is not None
    try:
        owner.stdin.write(json.dumps(specification).encode() + b"\n")
        owner.stdin.flush()
        cluster.wait_until_idle()
        yield cluster
    finally:
        owner.stdin.close()
        owner.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _open_files(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(str(link.readlink()))
    return found


def _environment(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return ""


def _prepare(cluster: SlurmCluster) -> list[list[str]]:
    """Write every file; returns the daemons' command lines."""
    folder = cluster.folder
    for name in ("state", "spool.n1", "spool.n2", "munge"):
        (folder / name).mkdir(mode=0o700)
    for number in range(GPUS_PER_NODE * len(NODES)):
        (folder / f"gpu{number}").touch()
    key = folder / "munge" / "key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    controller, *nodes = _free_ports(1 + len(NODES))
    cluster.configuration.write_text(_slurm_conf(cluster, controller, nodes))
    (folder / "gres.conf").write_text(
        "AutoDetect=off\n"
        f"NodeName=n1 Name=gpu Type=fake File={folder}/gpu[0-1]\n"
        f"NodeName=n2 Name=gpu Type=fake File={folder}/gpu[2-3]\n"
    )
    (folder / "cgroup.conf").write_text(
        "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nConstrainRAMSpace=yes\n"
        "AllowedRAMSpace=100\n"
        if cluster.memory_is_limited
        else "CgroupPlugin=autodetect\n"
    )
    munge = folder / "munge"
    return [
        [
            *(_program("munged"), "--foreground", "--force", f"--key-file={key}"),
            *(f"--{name}={munge}/{name[:-5]}" for name in ("pid-file", "log-file", "seed-file")),
            f"--socket={munge}/socket",
        ],
        [_program("slurmctld"), "-D", "-f", str(cluster.configuration)],
        *([_program("slurmd"), "-D", "-f", str(cluster.configuration), "-N", n] for n in NODES),
    ]


def _slurm_conf(cluster: SlurmCluster, controller: int, nodes: list[int]) -> str:
    # Control groups are named after node and job: those of another cluster here must not be taken for ours.
    first_job = 1000 + secrets.randbelow(60_000_000)
    folder, host = cluster.folder, socket.gethostname().partition(".")[0]
    limits = (
        "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup"
        if cluster.memory_is_limited
        else "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none"
    )
    lines = [
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 "
        f"RealMemory={MEMORY_MIB} Gres=gpu:fake:{GPUS_PER_NODE}"
        for name, port in zip(NODES, nodes, strict=True)
    ]
    return f"""\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={getpass.getuser()}
SlurmdUser={getpass.getuser()}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPort={controller}
SlurmdParameters=config_overrides
{limits}
FirstJobId={first_job}
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
DefMemPerNode=2000
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
KillWait=3
SlurmdTimeout=15
SchedulerParameters=sched_interval=1,batch_sched_delay=0
{lines[0]}
{lines[1]}
PartitionName=gpu Nodes=ALL Default=YES MaxTime=30 State=UP
PartitionName=short Nodes=ALL MaxTime=1 State=UP
"""


def _free_ports(number: int) -> list[int]:
    """Different TCP ports nobody listens on now.

    Below those that the system hands out (Linux: 32768 and up): the daemons bind theirs a second later, and other
    programs open connections meanwhile.
    """
    found: list[int] = []
    while len(found) < number:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            if port not in found:
                found.append(port)
    return found


def _program(name: str) -> str:
    found = shutil.which(name, path=_SEARCHED)
    assert found is not None, name
    return found
