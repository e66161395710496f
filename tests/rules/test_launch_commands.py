"""Rules hear of the commands by which a project starts its scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.checker.analysis import Analyzer
from ranksafe.checker.configuration import Configuration
from ranksafe.checker.registry import Registry
from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.project.index import ProjectIndex

from tests.rules.checking import CaseProject

_SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("gpt2", device_map={map})
trainer = Trainer(model=model, args=TrainingArguments("out"), train_dataset=load())
trainer.train()
"""


def _found(
    folder: Path, text: str, name: str = "train.py", launch: LaunchContext | None = None
) -> set[tuple[str, str]]:
    script = folder / name
    script.write_text(text)
    known = LaunchContext() if launch is None else launch
    analyzer = Analyzer(Registry.load(), Configuration(), known, ProjectIndex(folder))
    return {(item.code, item.level.name) for item in analyzer.open(script, text).findings}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python train.py", {("RS101", "WARNING")}),
        ("torchrun --nproc_per_node 4 train.py", set()),
        ("accelerate launch other.py", set()),
        ("accelerate launch other.py\npython train.py", {("RS101", "WARNING")}),
    ],
)
def test_a_script_that_a_command_launches_is_not_run_by_plain_python(
    tmp_path: Path, command: str, expected: set[tuple[str, str]]
) -> None:
    (tmp_path / "other.py").write_text("print()\n")
    (tmp_path / "run.sh").write_text(f"{command}\n")
    assert _found(tmp_path, _SCRIPT.format(map="None")) == expected


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        ("CUDA_VISIBLE_DEVICES=0 python train.py", set()),
        ("CUDA_VISIBLE_DEVICES='3' OMP_NUM_THREADS=1 python -u train.py \\\n  --epochs 3", set()),
        ('export CUDA_VISIBLE_DEVICES="1"\npython train.py', set()),
        ("CUDA_VISIBLE_DEVICES=0,1 python train.py", {("RS101", "WARNING")}),
        ("CUDA_VISIBLE_DEVICES=$1 python train.py", {("RS101", "WARNING")}),
        ("CUDA_VISIBLE_DEVICES=0 python train.py\npython train.py", {("RS101", "WARNING")}),
        (
            "export CUDA_VISIBLE_DEVICES=0\nCUDA_VISIBLE_DEVICES=0,1 python train.py",
            {("RS101", "WARNING")},
        ),
        ("CUDA_VISIBLE_DEVICES=0 python other.py", {("RS101", "WARNING")}),
    ],
)
def test_a_script_that_every_command_gives_one_gpu(
    tmp_path: Path, commands: str, expected: set[tuple[str, str]]
) -> None:
    (tmp_path / "other.py").write_text("print()\n")
    (tmp_path / "run.sh").write_text(f"{commands}\n")
    assert _found(tmp_path, _SCRIPT.format(map="None")) == expected


def test_what_is_said_at_the_start_counts_more_than_a_command(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("CUDA_VISIBLE_DEVICES=0 python train.py\n")
    found = _found(tmp_path, _SCRIPT.format(map="None"), launch=LaunchContext(gpus=2))
    assert found == {("RS101", "WARNING")}
    (tmp_path / "run.sh").write_text("torchrun --nproc-per-node=1 train.py\n")
    found = _found(tmp_path, _LOADED, launch=LaunchContext(gpus=2))
    assert ("RS601", "WARNING") in found


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python train.py", {("RS201", "INFORMATION")}),
        ("accelerate launch train.py", {("RS201", "WARNING")}),
    ],
)
def test_a_launcher_makes_sure_what_was_only_possible(
    tmp_path: Path, command: str, expected: set[tuple[str, str]]
) -> None:
    (tmp_path / "README.md").write_text(f"Train it:\n\n    {command}\n")
    assert _found(tmp_path, _SCRIPT.format(map='"auto"')) == expected


_LOADED = """\
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
model = build()
model.load_state_dict(torch.load("last/model.pth"))
"""


@pytest.mark.parametrize(
    ("commands", "warns"),
    [
        ("torchrun --nproc-per-node=1 train.py", False),
        (
            "GPUS=1\nSCRIPT=/home/me/project/train.py\ntorchrun --nproc-per-node=$GPUS $SCRIPT",
            False,
        ),
        (
            "GPUS=$1\nSCRIPT=/home/me/project/train.py\ntorchrun --nproc-per-node=$GPUS $SCRIPT",
            True,
        ),
        ("torchrun --nproc-per-node=1 train.py\ntorchrun --nproc-per-node=2 train.py", True),
        ("torchrun --nproc-per-node=1 other.py", True),
        ("torchrun --nproc-per-node=1 train.py\npython train.py", True),
        ("torchrun --nproc-per-node=1 --nnodes=1 train.py", False),
        ("torchrun --nproc-per-node=1 --nnodes=2 train.py", True),
        ("NODES=4\ntorchrun --nnodes $NODES --nproc-per-node 1 train.py", True),
        ("torchrun --nnodes $NODES --nproc-per-node 1 train.py", True),
        ('CUDA_VISIBLE_DEVICES="0" torchrun --nproc-per-node=1 train.py', False),
        ('START="torchrun --nproc-per-node=1 train.py"\n$START --more', True),
        ("CUDA_VISIBLE_DEVICES=0 python train.py", False),
        ("CUDA_VISIBLE_DEVICES=0,1 python train.py", True),
        ("CUDA_VISIBLE_DEVICES=0 python train.py\ntorchrun --nproc-per-node=1 train.py", False),
        ("CUDA_VISIBLE_DEVICES=0 python train.py\ntorchrun --nproc-per-node=2 train.py", True),
    ],
)
def test_a_script_that_every_command_starts_as_one_process(
    tmp_path: Path, commands: str, warns: bool
) -> None:
    (tmp_path / "other.py").write_text("print()\n")
    (tmp_path / "run.sh").write_text(f"{commands}\n")
    assert (("RS601", "WARNING") in _found(tmp_path, _LOADED)) is warns


_EVALUATED = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


@torch.no_grad()
def evaluate(model, dataset):
    loader = DataLoader(dataset, sampler=DistributedSampler(dataset, shuffle=False))
    total = 0
    for batch in loader:
        total += model(batch).item()
    print(total / len(loader))


dist.init_process_group("nccl")
evaluate(build(), load())
"""


@pytest.mark.parametrize(
    ("commands", "warns"),
    [
        ("torchrun --nproc-per-node=1 train.py", False),
        ("torchrun --nproc-per-node=2 train.py", True),
        ("", True),
    ],
)
def test_the_one_share_of_a_script_that_is_started_as_one_process(
    tmp_path: Path, commands: str, warns: bool
) -> None:
    (tmp_path / "run.sh").write_text(f"{commands}\n")
    assert (("RS702", "WARNING") in _found(tmp_path, _EVALUATED)) is warns


_CHECKPOINTED = """\
from accelerate import Accelerator, DistributedDataParallelKwargs
from transformers import AutoModelForCausalLM

options = DistributedDataParallelKwargs(find_unused_parameters=True)
accelerator = Accelerator(kwargs_handlers=[options])
model = AutoModelForCausalLM.from_pretrained("gpt2")
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
model = accelerator.prepare(model)
"""

_STEP = """\
from accelerate import Accelerator
from torch import nn


def test_the_weight():
    model = nn.Linear(2, 2)
    model = Accelerator().prepare(model)
    loss = model.weight.sum()
    loss.backward()
"""
_GUARD = '\n\nif __name__ == "__main__":\n    {}\n'


@pytest.mark.parametrize(
    ("name", "text", "command", "warns"),
    [
        ("test_steps.py", _STEP, "", False),
        ("test_steps.py", "import pytest\n" + _STEP + _GUARD.format("pytest.main()"), "", False),
        ("test_steps.py", _STEP + _GUARD.format("test_the_weight()"), "", True),
        ("steps.py", _STEP, "", True),
        ("test_steps.py", _STEP, "torchrun --nproc_per_node 2 test_steps.py", True),
    ],
    ids=["collected", "by itself", "with an entry of its own", "a script", "a launcher starts it"],
)
def test_a_unit_test_is_one_process(
    tmp_path: Path, name: str, text: str, command: str, warns: bool
) -> None:
    (tmp_path / "run.sh").write_text(f"{command}\n")
    assert (("RS520", "WARNING") in _found(tmp_path, text, name)) is warns


@pytest.mark.parametrize(
    ("commands", "warns"),
    [
        ("accelerate launch train.py", True),
        ("accelerate launch --use_deepspeed --zero_stage 3 train.py", False),
        ("accelerate launch --config_file configs/sharded.yaml train.py", False),
        ("accelerate launch --config_file=configs/sharded.yaml \\\n  train.py --epochs 3", False),
        ("accelerate launch --config_file configs/plain.yaml train.py", True),
        ("accelerate launch --config_file $CONFIG train.py", True),
        ("accelerate launch --config_file ../elsewhere.yaml train.py", True),
        ("accelerate launch train.py --config_file configs/sharded.yaml", True),
        ("accelerate launch --use_fsdp train.py\naccelerate launch train.py", True),
    ],
)
def test_what_accelerate_is_told_to_wrap_in(tmp_path: Path, commands: str, warns: bool) -> None:
    project = tmp_path / "project"
    (project / "configs").mkdir(parents=True)
    sharded = "debug: false\ndistributed_type: {}\nnum_processes: 8\n"
    (project / "configs" / "sharded.yaml").write_text(sharded.format("DEEPSPEED"))
    (project / "configs" / "plain.yaml").write_text(sharded.format("MULTI_GPU"))
    (tmp_path / "elsewhere.yaml").write_text(sharded.format("'FSDP'"))
    (project / "run.sh").write_text(f"{commands}\n")
    assert (("RS520", "WARNING") in _found(project, _STEP)) is warns
    assert (("RS526", "WARNING") in _found(project, _CHECKPOINTED)) is warns


_OPTION = """\
import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", default=0, type=int)
args = parser.parse_args()
local_rank = int(os.environ["LOCAL_RANK"])
"""


@pytest.mark.parametrize(
    ("text", "command", "expected"),
    [
        (_OPTION, "python -m torch.distributed.launch --nproc_per_node=2 train.py", True),
        (_OPTION, "python -m torch.distributed.launch --use-env train.py", False),
        (_OPTION, "torchrun --nproc_per_node=2 train.py", False),
        (
            _OPTION.replace('"--local_rank"', '"--local_rank", "--local-rank"'),
            "python -m torch.distributed.launch train.py",
            False,
        ),
        (
            _OPTION.replace("args = parser.parse_args()", "args, _ = parser.parse_known_args()"),
            "python -m torch.distributed.launch train.py",
            False,
        ),
        (
            _OPTION + "if strange:\n    args, _ = parser.parse_known_args()\n",
            "python -m torch.distributed.launch train.py",
            True,
        ),
    ],
    ids=[
        "passes it",
        "sets the variable",
        "torchrun",
        "both spellings",
        "others are dropped",
        "others are dropped sometimes",
    ],
)
def test_a_command_that_passes_the_dashed_option(
    tmp_path: Path, text: str, command: str, *, expected: bool
) -> None:
    (tmp_path / "run.sh").write_text(f"{command}\n")
    assert (("RS110", "WARNING") in _found(tmp_path, text)) is expected


@pytest.mark.parametrize(
    ("command", "levels"),
    [
        ("python train.py", ["INFORMATION"]),
        ("torchrun train.py", ["WARNING"]),
        ("CUDA_VISIBLE_DEVICES=$i python train.py --local_rank $i &", []),
    ],
)
def test_an_option_whose_default_is_right_where_plain_python_starts_the_script(
    tmp_path: Path, command: str, levels: list[str]
) -> None:
    (tmp_path / "run.sh").write_text(f"{command}\n")
    text = _OPTION.replace('os.environ["LOCAL_RANK"]', "args.local_rank")
    found = _found(tmp_path, text)
    assert [level for code, level in found if code == "RS110"] == levels


@pytest.mark.parametrize(
    ("default", "after"),
    [
        ("0", 'int(os.environ.get("LOCAL_RANK", 0))'),
        ('os.getenv("LOCAL_RANK", 0)', 'os.getenv("LOCAL_RANK", 0)'),
        ("local_rank()", "local_rank()"),
    ],
)
def test_a_default_that_is_computed_already_stays(
    tmp_path: Path, registry: Registry, default: str, after: str
) -> None:
    (tmp_path / "run.sh").write_text("python -m torch.distributed.launch train.py\n")
    text = _OPTION.replace("default=0", f"default={default}")
    project = CaseProject(tmp_path, {"train.py": text}, registry, LaunchContext())
    spelled = text.replace('"--local_rank"', '"--local-rank", "--local_rank"')
    expected = spelled.replace(f"default={default}", f"default={after}")
    assert project.fixed("train.py", text, "RS110", "accept-both") == expected


_FOR_A_LAUNCHER = """\
import os

import torch

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)

if __name__ == "__main__":
    train()
"""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python train.py", {("RS117", "WARNING")}),
        ("    $ CUDA_VISIBLE_DEVICES=0,1 python3 -u train.py --epochs 3", {("RS117", "WARNING")}),
        ("python ./train.py \\\n  --epochs 3", {("RS117", "WARNING")}),
        ("python -m train", {("RS117", "WARNING")}),
        ("torchrun --nproc_per_node 4 train.py", set()),
        ("python train.py\ntorchrun --nproc_per_node 4 train.py", set()),
        ("python -m torch.distributed.run --nproc_per_node 4 train.py", set()),
        ("LOCAL_RANK=0 python train.py", set()),
        ("export LOCAL_RANK=$SLURM_LOCALID\npython train.py", set()),
        ("srun python train.py", set()),
        ("python other.py --script train.py", set()),
        ("pip install -r train.py", set()),
    ],
)
def test_a_script_for_a_launcher_that_plain_python_starts(
    tmp_path: Path, command: str, expected: set[tuple[str, str]]
) -> None:
    (tmp_path / "other.py").write_text("print()\n")
    (tmp_path / "README.md").write_text(f"Train it:\n\n{command}\n")
    assert _found(tmp_path, _FOR_A_LAUNCHER) == expected


_ACCUMULATES = """\
import argparse

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(args, net, loader):
    model = DDP(net, device_ids=[args.local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for step, (x, y) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(x), y) / args.grad_steps
        loss.backward()
        if (step + 1) % args.grad_steps == 0:
            optimizer.step()
            optimizer.zero_grad()


parser = argparse.ArgumentParser()
parser.add_argument("--grad-steps", "-g", type=int, default=1)
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--local-rank", type=int)
train(parser.parse_args(), torch.nn.Linear(2, 2), [])
"""


@pytest.mark.parametrize(
    ("name", "text", "given"),
    [
        ("run.sh", "torchrun train.py --lr 2", False),
        ("run.sh", "torchrun train.py \\\n  --grad-steps 1 --lr 2", False),
        ("run.sh", "torchrun train.py --grad-steps=1", False),
        ("run.sh", "torchrun train.py --upgrad-steps 4 --grad-steps-max 4", False),
        ("run.sh", "torchrun train.py --grad-steps 4", True),
        ("run.sh", "torchrun train.py --grad-steps 16", True),
        ("run.sh", 'torchrun train.py --grad-steps="4"', True),
        ("run.sh", "torchrun train.py --grad-steps $STEPS", True),
        ("run.sh", "torchrun train.py -g 2", True),
        ("README.md", "`--grad-steps` says how many backwards", False),
        ("README.md", "More memory: `torchrun train.py --grad-steps 8`.", True),
        ("settings/large.yaml", "grad_steps: 8", True),
        ("settings/large.yaml", "grad_steps: 1", False),
    ],
)
def test_an_option_that_commands_give_another_value(
    tmp_path: Path, name: str, text: str, given: bool
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(f"{text}\n")
    found = ("RS530", "INFORMATION") in _found(tmp_path, _ACCUMULATES)
    assert found == given
