"""A script's launch in the words of other engines: text for the user to paste, nothing here starts anything.

Forms as documented: SkyPilot (docs.skypilot.co, distributed jobs: SKYPILOT_NODE_IPS, _NODE_RANK, _NUM_NODES,
_NUM_GPUS_PER_NODE), dstack (its "clusters" and TRL examples: DSTACK_MASTER_NODE_IP, _NODE_RANK, _NODES_NUM,
_GPUS_PER_NODE; ``repos`` since 0.19.26), Ray's Jobs CLI reference, Kubeflow Trainer (TrainJob v1alpha1; it hands
torchrun its options as PET_* variables), and the SageMaker Python SDK 2 (``torch_distributed`` runs torchrun). None of
them was started.
"""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ranksafe.localization import Language, Translated
from ranksafe.runs.launch_plan import Style

_PORT = 29500
_OF_ONE_NODE = {
    Style.DEEPSPEED: "deepspeed --num_gpus {gpus}",
    Style.FABRIC: "fabric run --devices {gpus}",
}
"""Launchers that reach other nodes by SSH or by one command each: a form starts the ranks of one."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What is to be started."""

    script: str
    """Relative to the project."""
    arguments: tuple[str, ...]
    style: Style
    gpus: int
    """On each node."""
    nodes: int = 1
    config_file: str | None = None
    """Of accelerate, relative to the project."""


@dataclass(frozen=True, slots=True)
class _Places:
    """What an engine calls the facts of a node."""

    rank: str
    address: str
    nodes: str
    gpus: str
    """On each node."""


def launch_text(form: str, launch: Launch, language: Language = "en") -> str:
    """The launch as ``form``, one of `FORMS`, wants it. Raises KeyError for another."""
    return FORMS[form].write(launch, language)


def _skypilot(launch: Launch, language: Language) -> str:
    places = _Places(
        rank='"$SKYPILOT_NODE_RANK"',
        address='"$(echo "$SKYPILOT_NODE_IPS" | head -n1)"',
        nodes='"$SKYPILOT_NUM_NODES"',
        gpus='"$SKYPILOT_NUM_GPUS_PER_NODE"',
    )
    return "\n".join(
        (
            f"# sky launch -c {_name(launch)} {_name(launch)}.yaml",
            f"# {_CHOOSE_GPU.in_language(language)}",
            f"name: {_name(launch)}",
            "workdir: .",
            "resources:",
            f"  accelerators: H100:{launch.gpus}",
            f"num_nodes: {launch.nodes}",
            "setup: |",
            "  pip install -r requirements.txt",
            "run: |",
            _indented(_command(launch, places), "  "),
            "",
        )
    )


def _dstack(launch: Launch, language: Language) -> str:
    places = _Places(
        rank='"$DSTACK_NODE_RANK"',
        address='"$DSTACK_MASTER_NODE_IP"',
        nodes='"$DSTACK_NODES_NUM"',
        gpus='"$DSTACK_GPUS_PER_NODE"',
    )
    return "\n".join(
        (
            f"# dstack apply -f {_name(launch)}.dstack.yml",
            f"# {_CHOOSE_GPU.in_language(language)}",
            "type: task",
            f"name: {_name(launch)}",
            *([f"nodes: {launch.nodes}"] if launch.nodes > 1 else []),
            "python: '3.12'",
            "repos: [.]",
            "commands:",
            "  - pip install -r requirements.txt",
            "  - |",
            _indented(_command(launch, places), "    "),
            "resources:",
            f"  gpu: H100:{launch.gpus}",
            "  shm_size: 16GB",
            "",
        )
    )


def _ray(launch: Launch, language: Language) -> str:
    """The launcher is one process on one node, which reserves that node's GPUs for its ranks."""
    command = _command(
        Launch(launch.script, launch.arguments, launch.style, launch.gpus, 1, launch.config_file),
        None,
    )
    note = [f"# {_ONE_NODE_OF_RAY.in_language(language)}"] if launch.nodes > 1 else []
    submit = f"ray job submit --working-dir . --entrypoint-num-gpus {launch.gpus} -- {command}"
    return "\n".join((*note, submit, ""))


def _kubernetes(launch: Launch, language: Language) -> str:
    places = _Places(
        rank='"$PET_NODE_RANK"',
        address='"$PET_MASTER_ADDR"',
        nodes='"$PET_NNODES"',
        gpus=str(launch.gpus),
    )
    if launch.style is Style.TORCHRUN:
        words = ["torchrun", _plain(launch.script), *launch.arguments]
    elif launch.style is Style.PYTHON:
        words = ["python", "-u", _plain(launch.script), *launch.arguments]
    else:
        # Unlike torchrun, accelerate does not read PET_* for itself.
        words = ["sh", "-c", "exec " + _command(launch, places)]
    return "\n".join(
        (
            f"# kubectl create -f {_name(launch)}.yaml",
            f"# {_IMAGE.in_language(language)}",
            "apiVersion: trainer.kubeflow.org/v1alpha1",
            "kind: TrainJob",
            "metadata:",
            f"  generateName: {_name(launch)}-",
            "spec:",
            "  runtimeRef:",
            "    name: torch-distributed",
            "  trainer:",
            "    image: YOUR_IMAGE",
            f"    numNodes: {launch.nodes}",
            f"    numProcPerNode: {1 if launch.style is Style.PYTHON else launch.gpus}",
            f"    command: {json.dumps(words, ensure_ascii=False)}",
            "    resourcesPerNode:",
            "      requests:",
            f"        nvidia.com/gpu: {launch.gpus}",
            "      limits:",
            f"        nvidia.com/gpu: {launch.gpus}",
            "",
        )
    )


def _sagemaker(launch: Launch, language: Language) -> str:
    path = PurePosixPath(launch.script)
    options, rest = _hyperparameters(launch.arguments)
    lines = ["from sagemaker.pytorch import PyTorch", ""]
    if launch.style is Style.ACCELERATE and launch.config_file:
        lines.append(f"# {_NO_CONFIG.in_language(language)}")
    if rest:
        left_out = json.dumps(shlex.join(rest), ensure_ascii=False)
        lines.append(f"# {_NO_POSITIONALS.in_language(language)} {left_out}")
    lines += [
        f"# {_INSTANCE.filled(gpus=launch.gpus).in_language(language)}",
        "PyTorch(",
        f"    entry_point={path.name!r},",
        f"    source_dir={str(path.parent)!r},",
        '    role="YOUR_ROLE",',
        '    image_uri="YOUR_PYTORCH_TRAINING_IMAGE",',
        '    instance_type="YOUR_INSTANCE_TYPE",',
        f"    instance_count={launch.nodes},",
    ]
    if launch.style is not Style.PYTHON:
        lines.append('    distribution={"torch_distributed": {"enabled": True}},')
    if options:
        lines.append(f"    hyperparameters={options!r},")
    return "\n".join((*lines, ").fit()", ""))


def _command(launch: Launch, places: _Places | None) -> str:
    """A POSIX shell's line; ``places``: only looked at for several nodes."""
    script = shlex.join([_plain(launch.script), *launch.arguments])
    several = launch.nodes > 1 and places is not None
    if launch.style is Style.PYTHON:
        return f"python -u {script}"
    if launch.style is Style.TORCHRUN:
        words = [f"torchrun --nproc_per_node={launch.gpus}"]
        if several and places is not None:
            words += [
                f"--nnodes={places.nodes} --node_rank={places.rank}",
                f"--master_addr={places.address} --master_port={_PORT}",
            ]
        return " ".join((*words, script))
    if launch.style in _OF_ONE_NODE:
        return f"{_OF_ONE_NODE[launch.style].format(gpus=launch.gpus)} {script}"
    words = ["accelerate launch"]
    if launch.config_file:
        words.append(f"--config_file {shlex.quote(_plain(launch.config_file))}")
    elif launch.gpus * launch.nodes > 1:
        words.append("--multi_gpu --mixed_precision no --dynamo_backend no")
    words.append(f"--num_processes {launch.gpus * launch.nodes}")
    if several and places is not None:
        words += [
            f"--num_machines {places.nodes} --machine_rank {places.rank}",
            f"--main_process_ip {places.address} --main_process_port {_PORT}",
        ]
    else:
        words.append("--num_machines 1")
    return " ".join((*words, script))


def _hyperparameters(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """What SageMaker passes as ``--name value``, and what it cannot pass."""
    found: dict[str, str] = {}
    rest: list[str] = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if not re.fullmatch(r"--[A-Za-z][\w.-]*", name):
            rest.append(word)
        elif equals:
            found[name[2:]] = value
        elif words and not words[0].startswith("-"):
            found[name[2:]] = words.pop(0)
        else:
            rest.append(word)
    return found, rest


def _plain(path: str) -> str:
    """A file whose name begins with a dash is no option."""
    return f"./{path}" if path.startswith("-") else path


def _name(launch: Launch) -> str:
    """What every engine takes for a name: lower case letters, digits and dashes."""
    name = re.sub(r"[^a-z0-9]+", "-", PurePosixPath(launch.script).stem.lower()).strip("-")
    return name[:40].strip("-") if name[:1].isalpha() else f"train-{name[:30]}".strip("-")


def _indented(text: str, by: str) -> str:
    return textwrap.indent(text, by, lambda _line: True)


_CHOOSE_GPU = Translated(
    "Change the kind of GPU to what you have.", "请将 GPU 型号改为您可用的型号。"
)
_IMAGE = Translated(
    "The image must have the code in its working directory, and the launcher.",
    "镜像的工作目录中须有代码，并装有启动器。",
)
_ONE_NODE_OF_RAY = Translated(
    "Ray starts one process on one node; several nodes need Ray Train (TorchTrainer) in the script.",
    "Ray 只在一个节点上启动一个进程；多节点需要在脚本中使用 Ray Train（TorchTrainer）。",
)
_INSTANCE = Translated(
    "Choose an instance type with {gpus} GPUs; one rank is started for each.",
    "请选择带有 {gpus} 个 GPU 的实例类型；每个 GPU 启动一个 rank。",
)
_NO_CONFIG = Translated(
    "SageMaker starts torchrun: what the accelerate configuration sets is not used.",
    "SageMaker 启动的是 torchrun：不会使用 accelerate 配置中的设置。",
)
_NO_POSITIONALS = Translated(
    "SageMaker passes `--name value` only; left out:",
    "SageMaker 只传递 `--name value` 形式的参数；已省略：",
)


@dataclass(frozen=True, slots=True)
class Form:
    """One engine."""

    name: str
    """As it calls itself."""
    suffix: str
    """Of a file with such text."""
    write: Callable[[Launch, Language], str]


FORMS = {
    "skypilot": Form("SkyPilot", ".yaml", _skypilot),
    "dstack": Form("dstack", ".dstack.yml", _dstack),
    "ray": Form("Ray Jobs", ".sh", _ray),
    "kubernetes": Form("Kubernetes (Kubeflow TrainJob)", ".yaml", _kubernetes),
    "sagemaker": Form("SageMaker", ".py", _sagemaker),
}
