"""What a host told of itself, in one round trip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.gpus import Gpu, parse_gpus, reason_against
from ranksafe.runs.hosts.protocol import Host
from ranksafe.runs.interpreter import PROBE, Interpreter, find_interpreter, inspect_interpreter
from ranksafe.runs.model import RunRequest
from ranksafe.runs.on_host import program
from ranksafe.runs.remote.host_settings import HostSettings

DISTRIBUTIONS: Final = (
    "torch",
    "accelerate",
    "transformers",
    "trl",
    "deepspeed",
    "adapters",
    "peft",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
)
_TIMEOUT_SECONDS = 120.0
_NEEDED_BYTES = 20 * 2**20
_SMALL_SHARED_MEMORY = 1 << 30
_COMPARED = ("torch", "accelerate", "transformers")


@dataclass(frozen=True, slots=True)
class HostFacts:
    """A host as its probe describes it."""

    host: str
    """As the user names it."""
    answer: Mapping[str, Any]

    @property
    def base(self) -> PurePosixPath:
        """ranksafe's folder there."""
        return PurePosixPath(self.answer["base"])

    @property
    def locks(self) -> PurePosixPath:
        """Where all runs of this user there keep the locks of their devices, whoever started them."""
        return PurePosixPath(self.answer["cache"]) / "gpus"

    @property
    def free_bytes(self) -> int | None:
        """Room in the file system of `base`."""
        return _number(self.answer.get("free_bytes"))

    @property
    def free_port(self) -> int:
        """A TCP port nobody listened on."""
        return int(self.answer["free_port"])

    @property
    def accelerate_configured(self) -> bool:
        """Whether accelerate would read a configuration of the user's there."""
        return self.answer.get("accelerate_configured") is True

    def require_room(self, size: int) -> None:
        """Raise RunNotPossible where there is no room for a run; ``size``: bytes of the project."""
        if self.free_bytes is not None and self.free_bytes < _NEEDED_BYTES:
            raise RunNotPossible(
                _NO_ROOM.filled(
                    host=self.host,
                    folder=self.base,
                    free=self.free_bytes >> 20,
                    needed=(_NEEDED_BYTES + size) >> 20,
                )
            )

    def interpreter(self) -> Interpreter:
        """The Python of the run there. Raises RunNotPossible when it cannot be used."""
        found = self.answer["python"]
        if "unseen" in found:
            raise RunNotPossible(
                _UNSEEN.filled(host=self.host, command=found["path"], folder=found["unseen"])
            )
        if "error" in found:
            there = ", ".join(found.get("environments") or ())
            raise RunNotPossible(
                _NO_PYTHON.filled(
                    host=self.host,
                    path=found["path"],
                    reason=found["error"],
                    there=_THERE.filled(names=there) if there else "",
                )
            )
        versions = {str(name): str(version) for name, version in found["versions"].items()}
        command = tuple(map(str, found.get("words") or ()))
        return Interpreter(Path(found["path"]), found["python"], versions, found["cuda"], command)

    def gpus(self) -> list[Gpu]:
        """All devices nvidia-smi shows there."""
        return parse_gpus(self.answer["devices"], self.answer["processes"])

    def reason_against(self, gpu: Gpu) -> Translated | None:
        """Why a run leaves a device alone; None: it may take it."""
        return reason_against(gpu, self.answer.get("visible"), self._owner)

    def _owner(self, pid: int, mib: int | None) -> str:
        user = self.answer["owners"].get(str(pid)) or "?"
        return f"{user} (pid {pid}, {'?' if mib is None else mib} MiB)"


def look_at(
    host: Host,
    settings: HostSettings,
    interpreter: str | None,
    project: PurePosixPath,
    *,
    without_python: bool = False,
) -> HostFacts:
    """Ask ``host`` about everything a run needs.

    ``interpreter``: the one the user chose for once; ``project``: its folder below the host's. Raises HostUnreachable,
    HostLost, ProgramFailed.
    """
    chosen = settings.python if interpreter is None else {"program": interpreter}
    request = {
        "interpreter": chosen,
        "candidates": [str(project / name / "bin" / "python") for name in (".venv", "venv")],
        "project": str(project),
        "without_python": without_python,
        "base": settings.folder,
        "look": PROBE,
        "distributions": DISTRIBUTIONS,
    }
    text = program("on_host.probe", "on_host.request", "on_host.environments")
    return HostFacts(host.name, host.ask(text, request, timeout_seconds=_TIMEOUT_SECONDS))


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


_NO_PYTHON = Translated(
    en="The Python interpreter {path} on {host} does not run: {reason}.{there} Name another one: `--python PATH`, or "
    "`interpreter`, `conda` or `command` for this host in hosts.toml.",
    zh_cn="{host} 上的 Python 解释器 {path} 无法运行：{reason}。{there}请另指定一个：`--python PATH`，或在 hosts.toml "
    "中为该主机设置 `interpreter`、`conda` 或 `command`。",
)
_THERE = Translated(en=" Conda environments there: {names}.", zh_cn="那里的 conda 环境：{names}。")
_UNSEEN = Translated(
    en="What `{command}` starts on {host} does not see {folder}, where the project and the run are: bind that folder "
    "into the container, or set `folder` in hosts.toml to one that it sees.",
    zh_cn="{host} 上由 `{command}` 启动的程序看不到 {folder}（项目和运行文件所在之处）：请将该文件夹绑定到容器中，"
    "或在 hosts.toml 中把 `folder` 设为容器可见的文件夹。",
)
_NO_ROOM = Translated(
    en="The disk of {host} that holds {folder} has {free} MB left; {needed} MB are needed. Free some space there, or "
    "name another `folder` in hosts.toml.",
    zh_cn="{host} 上存放 {folder} 的磁盘仅剩 {free} MB，需要 {needed} MB。请在那里释放空间，或在 hosts.toml 中另设 "
    "`folder`。",
)


def described(facts: HostFacts, local: Mapping[str, str] | None = None) -> list[Translated]:
    """One sentence each; ``local``: the versions installed here. Raises RunNotPossible as `HostFacts.interpreter`."""
    interpreter = facts.interpreter()
    answer = facts.answer
    found = [
        _HOST.filled(host=facts.host, name=answer["host"], user=answer["user"] or "?"),
        _PYTHON.filled(python=interpreter.python, path=interpreter.path),
    ]
    for name, version in interpreter.versions.items():
        found.append(version_in_words(name, version, (local or {}).get(name)))
    if "torch" in interpreter.versions:
        cuda = interpreter.torch_cuda
        found.append(_NO_CUDA if cuda is None else _CUDA.filled(cuda=cuda))
    found += _devices(facts)
    found += _room(answer)
    found.append(_RSYNC if answer["rsync"] else _NO_RSYNC)
    found.append(_INTERFACES.filled(names=", ".join(map(_interface, answer["interfaces"])) or "-"))
    if answer["slurm"]["node"]:
        found.append(_SLURM_NODE)
    elif answer["slurm"]["sbatch"]:
        found.append(_SLURM)
    return found


def local_versions(request: RunRequest) -> Mapping[str, str]:
    """What the project's interpreter here has installed; empty where there is none."""
    try:
        path = find_interpreter(request)
        return inspect_interpreter(path, {}).versions
    except RunNotPossible:
        return {}


def version_in_words(name: str, there: str, here: str | None) -> Translated:
    """What is installed there, beside what is here where that is another version of what matters most."""
    plain = Translated(f"{name} {there}", f"{name} {there}")
    if name not in _COMPARED or here is None or here.split("+")[0] == there.split("+")[0]:
        return plain
    return _OTHER_VERSION.filled(name=name, there=there, here=here)


def _devices(facts: HostFacts) -> list[Translated]:
    gpus = facts.gpus()
    if not gpus:
        reason = facts.answer["devices_failed"]
        return [_NVIDIA_FAILS.filled(reason=reason)] if reason else [_NO_DEVICES]
    found = [_DRIVER.filled(version=facts.answer["driver"] or "?")]
    for gpu in gpus:
        reason = facts.reason_against(gpu)
        memory = "?" if gpu.free_mib is None else gpu.free_mib
        found.append(
            _DEVICE.filled(
                index=gpu.index,
                name=gpu.name,
                memory=memory,
                state=_FREE if reason is None else reason,
            )
        )
    return found


def _room(answer: Mapping[str, Any]) -> list[Translated]:
    found = [_DISK.filled(folder=answer["base"], free=_gib(answer["free_bytes"]))]
    shared = answer["shared_memory_bytes"]
    found.append(_SHARED.filled(size=_gib(shared)))
    if shared is not None and shared < _SMALL_SHARED_MEMORY:
        found.append(_SMALL_SHARED)
    memory = _gib(answer["available_memory_bytes"])
    found.append(_MEMORY.filled(size=memory, cores=answer["cores"]))
    return found


def _gib(size: int | None) -> str:
    return "?" if size is None else f"{size / 2**30:.1f}"


def _interface(entry: Mapping[str, Any]) -> str:
    speed = entry.get("mbit")
    known = isinstance(speed, str) and speed.isdigit() and int(speed) > 0
    words = [str(entry["name"]), str(entry.get("state") or "?"), f"{speed} Mbit/s" if known else ""]
    return " ".join(word for word in words if word)


_HOST = Translated(en="{host}: {name}, as user {user}", zh_cn="{host}：{name}，用户 {user}")
_PYTHON = Translated(en="Python {python}: {path}", zh_cn="Python {python}：{path}")
_OTHER_VERSION = Translated(
    en="{name} {there} (here: {here})", zh_cn="{name} {there}（本机：{here}）"
)
_CUDA = Translated(en="torch built for CUDA {cuda}", zh_cn="torch 针对 CUDA {cuda} 构建")
_NO_CUDA = Translated(en="torch built without CUDA", zh_cn="torch 不带 CUDA 支持")
_DRIVER = Translated(en="NVIDIA driver {version}", zh_cn="NVIDIA 驱动 {version}")
_DEVICE = Translated(
    en="GPU {index} ({name}, {memory} MiB free): {state}",
    zh_cn="GPU {index}（{name}，空闲显存 {memory} MiB）：{state}",
)
_FREE = Translated(en="free", zh_cn="空闲")
_NO_DEVICES = Translated(en="no CUDA device", zh_cn="没有 CUDA 设备")
_NVIDIA_FAILS = Translated(en="nvidia-smi fails: {reason}", zh_cn="nvidia-smi 报错：{reason}")
_DISK = Translated(
    en="disk at {folder}: {free} GiB free", zh_cn="{folder} 所在磁盘：剩余 {free} GiB"
)
_SHARED = Translated(
    en="shared memory (/dev/shm): {size} GiB", zh_cn="共享内存（/dev/shm）：{size} GiB"
)
_SMALL_SHARED = Translated(
    en="/dev/shm is small: DataLoader workers and NCCL may fail with bus errors",
    zh_cn="/dev/shm 较小：DataLoader worker 和 NCCL 可能因总线错误失败",
)
_MEMORY = Translated(
    en="memory: {size} GiB available, {cores} cores", zh_cn="内存：可用 {size} GiB，{cores} 个核心"
)
_RSYNC = Translated(en="rsync is there", zh_cn="有 rsync")
_NO_RSYNC = Translated(
    en="no rsync there: large files that changed are sent as a whole",
    zh_cn="没有 rsync：有改动的大文件将整个发送",
)
_INTERFACES = Translated(en="network: {names}", zh_cn="网络：{names}")
_SLURM_NODE = Translated(
    en="a node of a Slurm cluster: use the target slurm:NAME",
    zh_cn="Slurm 集群的节点：请使用目标 slurm:NAME",
)
_SLURM = Translated(
    en="Slurm is there: for the GPUs of its nodes use the target slurm:NAME",
    zh_cn="有 Slurm：要使用其节点的 GPU，请使用目标 slurm:NAME",
)
