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

    def interpreter(self) -> Interpreter:
        """The Python of the run there. Raises RunNotPossible when it cannot be used."""
        found = self.answer["python"]
        if "error" in found:
            raise RunNotPossible(
                _NO_PYTHON.filled(host=self.host, path=found["path"], reason=found["error"])
            )
        versions = {str(name): str(version) for name, version in found["versions"].items()}
        return Interpreter(Path(found["path"]), found["python"], versions, found["cuda"])

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
    host: Host, settings: HostSettings, interpreter: str | None, candidates: list[str]
) -> HostFacts:
    """Ask ``host`` about everything a run needs.

    ``interpreter``: the one the user chose; ``candidates``: paths there where one may be. Raises HostUnreachable,
    HostLost, ProgramFailed.
    """
    request = {
        "interpreter": interpreter or settings.interpreter,
        "candidates": candidates,
        "base": settings.folder,
        "look": PROBE,
        "distributions": DISTRIBUTIONS,
    }
    text = program("on_host.probe", "on_host.request")
    return HostFacts(host.name, host.ask(text, request, timeout_seconds=_TIMEOUT_SECONDS))


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


_NO_PYTHON = Translated(
    en="The Python interpreter {path} on {host} does not run: {reason}. Name another one: `--python PATH`, or "
    "`interpreter` for this host in hosts.toml.",
    zh_cn="{host} 上的 Python 解释器 {path} 无法运行：{reason}。请另指定一个：`--python PATH`，或在 hosts.toml 中为"
    "该主机设置 `interpreter`。",
)
