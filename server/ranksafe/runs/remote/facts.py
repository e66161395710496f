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
from ranksafe.runs.interpreter import PROBE, Interpreter
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
