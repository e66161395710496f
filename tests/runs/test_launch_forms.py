"""Launch commands in other engines' forms: well-formed, and whatever the arguments are they arrive as they were."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ranksafe.runs.launch_forms import FORMS, Launch, launch_text
from ranksafe.runs.launch_plan import Style

HOSTILE = (
    "a b",
    "$(touch owned)",
    "`touch owned`",
    "it's",
    'say "x"',
    "line\nbreak\n\n  deep",
    "# no comment",
    "--flag=训练 🤗",
    "-x",
    "%s ${HOME} \\ !",
    "",
)
NODE = {
    "SKYPILOT_NODE_RANK": "1",
    "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2",
    "SKYPILOT_NUM_NODES": "2",
    "SKYPILOT_NUM_GPUS_PER_NODE": "4",
    "DSTACK_NODE_RANK": "1",
    "DSTACK_MASTER_NODE_IP": "10.0.0.1",
    "DSTACK_NODES_NUM": "2",
    "DSTACK_GPUS_PER_NODE": "4",
    "PET_NODE_RANK": "1",
    "PET_MASTER_ADDR": "10.0.0.1",
    "PET_NNODES": "2",
}


def launch(style: Style, nodes: int = 1, **fields: Any) -> Launch:
    return Launch("src/My Train.py", HOSTILE, style, 4, nodes, **fields)


def started(command: str, folder: Path) -> list[str]:
    """What a shell gives to the launcher: a program that prints its arguments."""
    for name in ("torchrun", "accelerate", "python", "ray", "deepspeed", "fabric"):
        program = folder / name
        program.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv))\n")
        program.chmod(0o755)
    environment = {**NODE, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    answer = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not (folder / "owned").exists()
    name, *arguments = json.loads(answer.stdout)
    return [Path(name).name, *arguments]


def command_of(form: str, text: str) -> str:
    """The line that the engine runs on each node."""
    if form == "ray":
        return "\n".join(line for line in text.splitlines() if not line.startswith("# Ray"))
    value = yaml.safe_load(text)
    if form == "skypilot":
        return str(value["run"])
    return str(value["commands"][-1])


@pytest.mark.parametrize("form", ["skypilot", "dstack"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_torchrun_is_told_its_node(form: str, nodes: int, tmp_path: Path) -> None:
    text = launch_text(form, launch(Style.TORCHRUN, nodes))
    given = started(command_of(form, text), tmp_path)
    where = [*("--nnodes=2", "--node_rank=1", "--master_addr=10.0.0.1", "--master_port=29500")]
    start = ["torchrun", "--nproc_per_node=4", *(where if nodes == 2 else [])]
    assert given == [*start, "src/My Train.py", *HOSTILE]


@pytest.mark.parametrize("form", ["skypilot", "dstack"])
def test_accelerate_counts_the_processes_of_all_nodes(form: str, tmp_path: Path) -> None:
    text = launch_text(form, launch(Style.ACCELERATE, 2, config_file="conf ig.yaml"))
    given = started(command_of(form, text), tmp_path)
    assert given == [
        *("accelerate", "launch", "--config_file", "conf ig.yaml", "--num_processes", "8"),
        *("--num_machines", "2", "--machine_rank", "1"),
        *("--main_process_ip", "10.0.0.1", "--main_process_port", "29500"),
        *("src/My Train.py", *HOSTILE),
    ]


def test_ray_reserves_the_gpus_of_one_node(tmp_path: Path) -> None:
    text = launch_text("ray", launch(Style.TORCHRUN))
    assert started(text, tmp_path) == [
        *("ray", "job", "submit", "--working-dir", ".", "--entrypoint-num-gpus", "4", "--"),
        *("torchrun", "--nproc_per_node=4", "src/My Train.py", *HOSTILE),
    ]
    assert "Ray Train" in launch_text("ray", launch(Style.TORCHRUN, 2))
    assert "--nnodes" not in launch_text("ray", launch(Style.TORCHRUN, 2))


@pytest.mark.parametrize("style", list(Style))
def test_kubernetes_gets_a_train_job(style: Style, tmp_path: Path) -> None:
    value = yaml.safe_load(launch_text("kubernetes", launch(style, 2)))
    assert (value["kind"], value["metadata"]["generateName"]) == ("TrainJob", "my-train-")
    trainer = value["spec"]["trainer"]
    assert trainer["numNodes"] == 2
    assert trainer["numProcPerNode"] == (1 if style is Style.PYTHON else 4)
    assert trainer["resourcesPerNode"]["limits"] == {"nvidia.com/gpu": 4}
    command = trainer["command"]
    if style not in (Style.TORCHRUN, Style.PYTHON):
        assert command[:2] == ["sh", "-c"]
        command = started(command[2], tmp_path)
    if style is Style.ACCELERATE:
        assert command[command.index("--machine_rank") + 1] == "1"
    assert tuple(command[-len(HOSTILE) :]) == HOSTILE


def test_sagemaker_gets_what_it_can_pass() -> None:
    given = ("--epochs", "3", "--name=it's", "--fp16", "--lr", "-1", "data set")
    text = launch_text("sagemaker", Launch("src/train.py", given, Style.ACCELERATE, 8, 2))
    call = ast.parse(text).body[-1]
    assert isinstance(call, ast.Expr)
    keywords = {
        node.arg: ast.literal_eval(node.value)
        for each in ast.walk(call)
        if isinstance(each, ast.Call)
        for node in each.keywords
    }
    assert keywords["entry_point"] == "train.py"
    assert keywords["source_dir"] == "src"
    assert keywords["instance_count"] == 2
    assert keywords["distribution"] == {"torch_distributed": {"enabled": True}}
    assert keywords["hyperparameters"] == {"epochs": "3", "name": "it's"}
    assert "--fp16 --lr -1 'data set'" in text
    assert "distribution" not in launch_text("sagemaker", Launch("t.py", HOSTILE, Style.PYTHON, 8))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_readable_whatever_the_script_is_called(form: str) -> None:
    for name in ("-rf.py", "训练.py", "a'b\n.py", "7.py", "x" * 200 + ".py"):
        for language in ("en", "zh-cn"):
            text = launch_text(form, Launch(name, HOSTILE, Style.TORCHRUN, 1), language)
            if form == "sagemaker":
                ast.parse(text)
            elif form != "ray":
                yaml.safe_load(text)
