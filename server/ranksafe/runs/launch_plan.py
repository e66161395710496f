"""The command that starts a script on several ranks of this machine."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ranksafe.localization import Language, Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.interpreter import Interpreter
from ranksafe.runs.model import RunRequest
from ranksafe.source.notebook import is_notebook


class Style(str, Enum):
    """What a script expects to be started by."""

    ACCELERATE = "accelerate"
    TORCHRUN = "torchrun"
    DEEPSPEED = "deepspeed"
    FABRIC = "fabric"
    """Lightning Fabric's ``fabric run``."""
    PYTHON = "python"
    """It starts its ranks itself (``torch.multiprocessing.spawn``, ``notebook_launcher``), or one process uses every
    device (``nn.DataParallel``, JAX), or nothing in it concerns several ranks."""


_STARTS_ITS_RANKS = re.compile(
    r"^[^#\n]*\b(?:mp\.spawn|multiprocessing\.spawn|notebook_launcher|debug_launcher)\s*\(",
    re.MULTILINE,
)
_ONE_FOR_ALL = re.compile(
    r"^[^#\n]*(?<!\w)(?:nn\.)?DataParallel\s*\(|^[ \t]*(?:import|from)[ \t]+jax\b", re.MULTILINE
)
_READS_LAUNCHER = re.compile(
    r"^[^#\n]*\b(?:init_process_group|init_device_mesh|LOCAL_RANK)\b", re.MULTILINE
)
_IS_GIVEN_RANKS = re.compile(
    r"^[^#\n]*\bdeepspeed\.(?:initialize|init_distributed)\s*\(", re.MULTILINE
)
"""DeepSpeed's own engine, which looks for MPI where no launcher has set MASTER_ADDR (deepspeed 0.19,
``comm/comm.py``)."""
_USES_ACCELERATE = re.compile(
    r"^\s*(?:from|import)\s+(?:accelerate|transformers|trl|peft|diffusers|axolotl|setfit)\b",
    re.MULTILINE,
)
_CONCERNS_RANKS = re.compile(
    r"^[^#\n]*(?:\bdistributed\b|\bdist\.|\bDistributed\w+|\bFSDP\b|\bfully_shard\b|RANK\b|\bWORLD_SIZE\b"
    r"|\bworld_size\b|\blocal_rank\b)",
    re.MULTILINE,
)
_IMPORTS = re.compile(r"^[ \t]*(?:from[ \t]+(\S+)|import[ \t]+([^#;\n]+))", re.MULTILINE)
"""What a statement imports from, or the list of what it imports."""
_OF_ONE_PROCESS = re.compile(
    r"(?:torch|torchvision|numpy|scipy|pandas|matplotlib|PIL|tqdm|sklearn|cv2|yaml|tensorboard|tensorboardX)\Z"
)
"""Packages that know nothing of ranks, besides the standard library."""


def style_of(source: str, accelerate_installed: bool, *, may_be_alone: bool = False) -> Style:
    """The launcher the script's text asks for; accelerate where it leaves that open.

    A script that starts its own ranks is started by plain python; with ``may_be_alone`` also one in which nothing
    concerns several of them: who asks for several GPUs means several ranks.
    """
    if _IS_GIVEN_RANKS.search(source):
        return Style.TORCHRUN
    if _STARTS_ITS_RANKS.search(source) or (may_be_alone and _is_of_one_process(source)):
        return Style.PYTHON
    if _ONE_FOR_ALL.search(source) and not _READS_LAUNCHER.search(source):
        if not _USES_ACCELERATE.search(source):
            return Style.PYTHON
    own_group = _READS_LAUNCHER.search(source) and not _USES_ACCELERATE.search(source)
    if own_group or not accelerate_installed:
        return Style.TORCHRUN
    return Style.ACCELERATE


def _is_of_one_process(source: str) -> bool:
    """Whether its text and its imports have nothing that concerns several ranks; imports of its own may have."""
    if _CONCERNS_RANKS.search(source):
        return False
    packages = (
        name.strip().partition(" ")[0].partition(".")[0]
        for found in _IMPORTS.finditer(source)
        for name in (found[1] or found[2]).split(",")
    )
    return all(
        package in sys.stdlib_module_names or _OF_ONE_PROCESS.match(package) for package in packages
    )


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
    prefix: tuple[str, ...] = ()
    """Starts the command: what isolates it."""
    in_background: bool = False
    """At the lowest priority."""
    keep_detached: bool = False
    """Whether processes that go on after the command has ended are left alone."""
    language: Language = "en"
    """Of what is said of the run's output."""
    terminal: bool = False
    """Whether standard input is a terminal where nobody types, and not the null device."""


@dataclass(frozen=True, slots=True)
class Node:
    """One of several nodes. A text stands for what only the node itself will know."""

    index: int | str
    count: int
    port: int | str
    """Where the nodes meet."""
    address: str = "127.0.0.1"
    """Of the first node."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Where a run's files are on another machine."""

    script: str
    config_file: str
    """Of accelerate, the user's choice or `own_config`: one that lies there would be taken without a word."""
    port: int | str | None = None
    """Where the ranks of a single node meet, free there; None: one that is free here."""


def launch_command(
    request: RunRequest,
    interpreter: Interpreter,
    ranks: int,
    directory: Path,
    node: Node | None = None,
    elsewhere: Elsewhere | None = None,
) -> tuple[tuple[str, ...], int | None]:
    """The argument list, and the number of ranks of all nodes where it is ours to decide.

    ``ranks``: on this machine, or on each node. ``elsewhere``: for a launch on another machine. Raises RunNotPossible
    when the script or the launcher it needs is missing, or the script has none and there are several nodes.
    """
    source = _read(request.script)
    path = elsewhere.script if elsewhere else str(request.script.absolute())
    script = (*(("-m", request.module) if request.module else (path,)), *request.arguments)
    python = interpreter.words
    if request.config_file is not None:
        options = _given_config(request, interpreter, node, elsewhere)
        return (*python, "-m", "accelerate.commands.launch", *options, *script), None
    if request.launcher is not None:
        style = Style(request.launcher)
    else:
        rehearsed = request.target.startswith("simulated")
        style = style_of(source, "accelerate" in interpreter.versions, may_be_alone=rehearsed)
    if style is Style.PYTHON:
        if node is not None:
            raise RunNotPossible(_NODES_NEED_LAUNCHER)
        return (*python, "-u", *script), None
    _require("torch", interpreter)
    everywhere = ranks * (node.count if node else 1)
    if style is Style.ACCELERATE:
        _require("accelerate", interpreter)
        options = _accelerate_options(everywhere, directory, request.environment, elsewhere)
        options += _accelerate_node(node or _only_node(elsewhere))
        return (*python, "-m", "accelerate.commands.launch", *options, *script), everywhere
    if style is Style.TORCHRUN:
        options = (f"--nproc_per_node={ranks}", *_torchrun_node(node or _only_node(elsewhere)))
        return (*python, "-m", "torch.distributed.run", *options, *script), everywhere
    if node is not None:
        raise RunNotPossible(_ONE_NODE.filled(launcher=style.value))
    port = str(_only_node(elsewhere).port)
    start = _deepspeed if style is Style.DEEPSPEED else _fabric
    return (
        *python,
        *start(request, interpreter, ranks, port),
        *script[bool(request.module) :],
    ), ranks


def _deepspeed(
    request: RunRequest, interpreter: Interpreter, ranks: int, port: str
) -> tuple[str, ...]:
    """As ``bin/deepspeed`` does (deepspeed 0.19.8); ``--module`` has no value there."""
    _require("deepspeed", interpreter)
    module = ("--module",) if request.module else ()
    options = ("--num_gpus", str(ranks), "--master_port", port, *module)
    return ("-m", "deepspeed.launcher.runner", *options)


def _fabric(
    request: RunRequest, interpreter: Interpreter, ranks: int, port: str
) -> tuple[str, ...]:
    """As the console script ``fabric`` does (lightning 2.6.6, ``fabric/cli.py``), which starts files only."""
    if request.module:
        raise RunNotPossible(_NO_MODULE.filled(launcher="fabric"))
    package = next(
        (each for each in ("lightning", "lightning-fabric") if each in interpreter.versions), None
    )
    if package is None:
        raise RunNotPossible(_MISSING.filled(name="lightning", path=interpreter.path))
    module = "lightning.fabric.cli" if package == "lightning" else "lightning_fabric.cli"
    options = ("--devices", str(ranks), "--main-port", port)
    return ("-m", module, *options)


def _given_config(
    request: RunRequest, interpreter: Interpreter, node: Node | None, elsewhere: Elsewhere | None
) -> tuple[str, ...]:
    """The options that name the user's own configuration of accelerate."""
    if request.launcher not in (None, Style.ACCELERATE.value):
        raise RunNotPossible(_CONFIG_OF_ACCELERATE.filled(launcher=request.launcher))
    _require("torch", interpreter)
    _require("accelerate", interpreter)
    if request.config_file is None or not request.config_file.is_file():
        raise RunNotPossible(_NO_CONFIG.filled(path=request.config_file))
    config = elsewhere.config_file if elsewhere else str(request.config_file.absolute())
    options = ("--config_file", config, *(_accelerate_node(node) if node else ()))
    if request.rehearsal.stands_for < 2:
        return options
    # It says how many there are; the one that stands for them is to be started alone.
    return (*options, "--num_processes", "1", *_accelerate_node(_only_node(elsewhere)))


def _only_node(elsewhere: Elsewhere | None) -> Node:
    return Node(0, 1, (elsewhere.port if elsewhere else None) or free_port())


def _torchrun_node(node: Node) -> tuple[str, ...]:
    """Static rendezvous at an address: c10d's asks for the host's name, which may not resolve."""
    return (
        f"--nnodes={node.count}",
        f"--node_rank={node.index}",
        f"--master_addr={node.address}",
        f"--master_port={node.port}",
    )


def _accelerate_node(node: Node) -> tuple[str, ...]:
    options = ("--num_machines", str(node.count), "--main_process_port", str(node.port))
    if node.count == 1:
        return options
    return (*options, "--machine_rank", str(node.index), "--main_process_ip", node.address)


def _accelerate_options(
    ranks: int, directory: Path, environment: Mapping[str, str], elsewhere: Elsewhere | None
) -> tuple[str, ...]:
    """Every choice is made here: an unset one is taken from the user's default_config.yaml without a word."""
    options: list[str] = []
    if elsewhere is not None:
        options += ["--config_file", elsewhere.config_file]
    elif _default_config(environment).is_file():
        path = directory / "accelerate.yaml"
        path.write_text(own_config(ranks), encoding="utf-8")
        options += ["--config_file", str(path)]
    if ranks > 1:
        options.append("--multi_gpu")
    options += ["--num_processes", str(ranks)]
    options += ["--mixed_precision", "no", "--dynamo_backend", "no"]
    return tuple(options)


def _default_config(environment: Mapping[str, str]) -> Path:
    """Where accelerate 1.15.0 looks (``commands/config/config_args.py``)."""
    home = Path(environment.get("HOME") or Path.home())
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    hub = Path(environment.get("HF_HOME") or cache / "huggingface")
    return hub / "accelerate" / "default_config.yaml"


def own_config(ranks: int) -> str:
    """An accelerate configuration that leaves everything to the command line."""
    kind = "MULTI_GPU" if ranks > 1 else "NO"
    lines = (
        "compute_environment: LOCAL_MACHINE",
        f"distributed_type: '{kind}'",
        "machine_rank: 0",
        "num_machines: 1",
        f"num_processes: {ranks}",
        "mixed_precision: 'no'",
    )
    return "\n".join(lines) + "\n"


def free_port() -> int:
    """A TCP port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _read(script: Path) -> str:
    if is_notebook(script):
        raise RunNotPossible(_NOTEBOOK.filled(path=script))
    try:
        return script.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise RunNotPossible(_NO_SCRIPT.filled(path=script, reason=error.strerror)) from error


def _require(distribution: str, interpreter: Interpreter) -> None:
    if distribution not in interpreter.versions:
        raise RunNotPossible(_MISSING.filled(name=distribution, path=interpreter.path))


_NOTEBOOK = Translated(
    "{path} is a notebook, which torchrun and accelerate cannot start: convert it "
    "(`jupyter nbconvert --to script {path}`) and run the script, or start the ranks inside of the notebook with "
    "`accelerate.notebook_launcher`",
    "{path} 是笔记本，torchrun 和 accelerate 无法启动它：请先转换（`jupyter nbconvert --to script {path}`）再运行脚本，"
    "或在笔记本中用 `accelerate.notebook_launcher` 启动各个 rank",
)
_NO_SCRIPT = Translated(
    en="The script {path} cannot be read: {reason}", zh_cn="无法读取脚本 {path}：{reason}"
)
_NO_CONFIG = Translated(
    en="The accelerate configuration {path} does not exist.",
    zh_cn="accelerate 配置文件 {path} 不存在。",
)
_CONFIG_OF_ACCELERATE = Translated(
    en="An accelerate configuration can only be used with the launcher accelerate, not {launcher}.",
    zh_cn="accelerate 配置文件只能与启动器 accelerate 一起使用，而不是 {launcher}。",
)
_NODES_NEED_LAUNCHER = Translated(
    en="Several nodes need a launcher (accelerate or torchrun): plain python knows nothing of the other nodes.",
    zh_cn="多个节点需要启动器（accelerate 或 torchrun）：普通的 python 不知道其他节点。",
)
_ONE_NODE = Translated(
    en="{launcher} starts several nodes through SSH: rehearse it on one node, or use torchrun or accelerate.",
    zh_cn="{launcher} 通过 SSH 启动多个节点：请在单个节点上预演，或使用 torchrun 或 accelerate。",
)
_NO_MODULE = Translated(
    en="{launcher} starts files only, no modules (-m): name the file.",
    zh_cn="{launcher} 只能启动文件，不能启动模块（-m）：请给出文件。",
)
_MISSING = Translated(
    en="{name} is not installed for {path}. Install it there (python -m pip install {name}), "
    "or choose the interpreter of the environment that has it.",
    zh_cn="{path} 的环境中没有安装 {name}。请在该环境中安装（python -m pip install {name}），"
    "或选择已安装它的环境的解释器。",
)
