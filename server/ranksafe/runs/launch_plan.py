"""The command that starts a script on several ranks of this machine."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.interpreter import Interpreter
from ranksafe.runs.model import RunRequest


class Style(str, Enum):
    """What a script expects to be started by."""

    ACCELERATE = "accelerate"
    TORCHRUN = "torchrun"
    PYTHON = "python"
    """It starts its ranks itself (``torch.multiprocessing.spawn``, ``notebook_launcher``), or one process uses every
    device (``nn.DataParallel``, JAX)."""


_STARTS_ITS_RANKS = re.compile(
    r"^[^#\n]*\b(?:mp\.spawn|multiprocessing\.spawn|notebook_launcher|debug_launcher)\s*\(",
    re.MULTILINE,
)
_ONE_FOR_ALL = re.compile(
    r"^[^#\n]*(?<!\w)(?:nn\.)?DataParallel\s*\(|^\s*(?:import|from)\s+jax\b", re.MULTILINE
)
_READS_LAUNCHER = re.compile(
    r"^[^#\n]*\b(?:init_process_group|init_device_mesh|LOCAL_RANK)\b", re.MULTILINE
)
_USES_ACCELERATE = re.compile(
    r"^\s*(?:from|import)\s+(?:accelerate|transformers|trl|peft|diffusers|axolotl|setfit)\b",
    re.MULTILINE,
)


def style_of(source: str, accelerate_installed: bool) -> Style:
    """The launcher the script's text asks for; accelerate where it asks for none."""
    if _STARTS_ITS_RANKS.search(source):
        return Style.PYTHON
    if _ONE_FOR_ALL.search(source) and not _READS_LAUNCHER.search(source):
        if not _USES_ACCELERATE.search(source):
            return Style.PYTHON
    own_group = _READS_LAUNCHER.search(source) and not _USES_ACCELERATE.search(source)
    if own_group or not accelerate_installed:
        return Style.TORCHRUN
    return Style.ACCELERATE


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything needed to start a run."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    working_directory: Path
    ranks: int | None
    """Ranks expected; None where the user's configuration or the script decides."""
    modified: tuple[Translated, ...]
    limits: tuple[Translated, ...]


def launch_command(
    request: RunRequest, interpreter: Interpreter, ranks: int, directory: Path
) -> tuple[tuple[str, ...], int | None]:
    """The argument list, and the number of ranks where it is ours to decide.

    Raises RunNotPossible when the script or the launcher it needs is missing.
    """
    source = _read(request.script)
    script = (str(request.script.absolute()), *request.arguments)
    python = str(interpreter.path)
    if request.config_file is not None:
        _require("torch", interpreter)
        _require("accelerate", interpreter)
        if not request.config_file.is_file():
            raise RunNotPossible(_NO_CONFIG.filled(path=request.config_file))
        config = str(request.config_file.absolute())
        return (python, "-m", "accelerate.commands.launch", "--config_file", config, *script), None
    style = style_of(source, "accelerate" in interpreter.versions)
    if style is Style.PYTHON:
        return (python, "-u", *script), None
    _require("torch", interpreter)
    if style is Style.TORCHRUN:
        return (python, "-m", "torch.distributed.run", *_torchrun_options(ranks), *script), ranks
    options = _accelerate_options(ranks, directory, request.environment)
    return (python, "-m", "accelerate.commands.launch", *options, *script), ranks


def _torchrun_options(ranks: int) -> tuple[str, ...]:
    """Static rendezvous on the loopback address: c10d's asks for the host's name, which may not resolve."""
    return (
        "--nnodes=1",
        f"--nproc_per_node={ranks}",
        "--master_addr=127.0.0.1",
        f"--master_port={free_port()}",
    )


def _accelerate_options(
    ranks: int, directory: Path, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Every choice is made here: an unset one is taken from the user's default_config.yaml without a word."""
    options: list[str] = []
    if _default_config(environment).is_file():
        options += ["--config_file", str(_own_config(ranks, directory))]
    if ranks > 1:
        options.append("--multi_gpu")
    options += ["--num_machines", "1", "--num_processes", str(ranks)]
    options += ["--mixed_precision", "no", "--dynamo_backend", "no"]
    options += ["--main_process_port", str(free_port())]
    return tuple(options)


def _default_config(environment: Mapping[str, str]) -> Path:
    """Where accelerate 1.15.0 looks (``commands/config/config_args.py``)."""
    home = Path(environment.get("HOME") or Path.home())
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    hub = Path(environment.get("HF_HOME") or cache / "huggingface")
    return hub / "accelerate" / "default_config.yaml"


def _own_config(ranks: int, directory: Path) -> Path:
    path = directory / "accelerate.yaml"
    kind = "MULTI_GPU" if ranks > 1 else "NO"
    lines = (
        "compute_environment: LOCAL_MACHINE",
        f"distributed_type: '{kind}'",
        "machine_rank: 0",
        "num_machines: 1",
        f"num_processes: {ranks}",
        "mixed_precision: 'no'",
    )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def free_port() -> int:
    """A TCP port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _read(script: Path) -> str:
    try:
        return script.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise RunNotPossible(_NO_SCRIPT.filled(path=script, reason=error.strerror)) from error


def _require(distribution: str, interpreter: Interpreter) -> None:
    if distribution not in interpreter.versions:
        raise RunNotPossible(_MISSING.filled(name=distribution, path=interpreter.path))


_NO_SCRIPT = Translated(
    en="The script {path} cannot be read: {reason}", zh_cn="无法读取脚本 {path}：{reason}"
)
_NO_CONFIG = Translated(
    en="The accelerate configuration {path} does not exist.",
    zh_cn="accelerate 配置文件 {path} 不存在。",
)
_MISSING = Translated(
    en="{name} is not installed for {path}. Install it there (python -m pip install {name}), "
    "or choose the interpreter of the environment that has it.",
    zh_cn="{path} 的环境中没有安装 {name}。请在该环境中安装（python -m pip install {name}），"
    "或选择已安装它的环境的解释器。",
)
