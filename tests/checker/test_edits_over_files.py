"""Rules that look into other files, under random edits to any file of a project: every open document keeps the findings of a fresh analysis."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.checker.edited_project import EditedProject

PROGRAMS = Path(__file__).parents[1] / "rank_bench" / "programs"

GUARD = """\
import torch.distributed as dist
from sync import average, is_main


def train(values):
    for value in values:
        if is_main():
            average(value)
    dist.barrier()
"""
SYNC = """\
import torch.distributed as dist


def is_main():
    return dist.get_rank() == 0


def average(tensor):
    dist.all_reduce(tensor)
    return tensor
"""
RE_EXPORTS = {
    "train.py": GUARD.replace("from sync", "from parallel"),
    "parallel/__init__.py": "from .sync import *\nfrom .sync import is_main\n",
    "parallel/sync.py": SYNC,
}
CIRCLE = {
    "first.py": """\
import torch
import torch.distributed as dist
import second

ROOT = 0


def evaluate(model):
    if dist.get_rank() == ROOT:
        return second.score(model)
    return None
""",
    "second.py": """\
import torch
import torch.distributed as dist
from first import ROOT, evaluate


def score(model):
    result = torch.zeros(1)
    dist.reduce(result, ROOT)
    return result


def again(model):
    return evaluate(model)
""",
}
CLASSES = {
    "job.py": """\
import torch.distributed as dist
from model import Net


def main():
    net = Net()
    if net.is_first():
        net.synchronize()
    net.finish()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
""",
    "model.py": """\
from base import Base
from torch import nn


class Net(Base):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def is_first(self):
        return self.rank == 0
""",
    "base.py": """\
import torch.distributed as dist
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.rank = dist.get_rank()

    def synchronize(self):
        for parameter in self.parameters():
            dist.broadcast(parameter, src=0)

    def finish(self):
        dist.barrier()
""",
}
LOADERS = {
    "data.py": """\
from torch.utils.data import DataLoader, DistributedSampler


class Loaders:
    def __init__(self, dataset):
        sampler = DistributedSampler(dataset)
        self.train = DataLoader(dataset, sampler=sampler)


def make(dataset):
    return DataLoader(dataset, sampler=DistributedSampler(dataset))
""",
    "between.py": """\
from data import Loaders, make


def loaders(dataset):
    return Loaders(dataset)
""",
    "train.py": """\
import torch.distributed as dist
from between import loaders, make


def train(model, dataset):
    kept = loaders(dataset)
    other = make(dataset)
    for epoch in range(10):
        for batch in kept.train:
            model(batch).backward()
        for batch in other:
            model(batch).backward()
""",
}
SMALL = {
    "a guard in the caller": {"train.py": GUARD, "sync.py": SYNC},
    "re-exports": RE_EXPORTS,
    "files that import each other": CIRCLE,
    "a base class elsewhere": CLASSES,
    "loaders made elsewhere": LOADERS,
}


def benchmark_projects() -> dict[str, dict[str, str]]:
    """The benchmark's programs of several files."""
    found = {}
    for path in sorted(PROGRAMS.glob("*/*")):
        names = [file.name for file in path.glob("*.py") if "corrected" not in file.name]
        if len(names) > 1:
            found[path.name] = {name: (path / name).read_text("utf-8") for name in sorted(names)}
    return found


PROJECTS = {**SMALL, **benchmark_projects()}


@pytest.mark.parametrize("name", PROJECTS)
def test_every_open_document_has_the_findings_of_a_fresh_analysis(
    name: str, tmp_path: Path
) -> None:
    edit_and_compare(PROJECTS[name], tmp_path, edits=30, seed=len(name))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", PROJECTS)
def test_the_same_under_many_edits(name: str, seed: int, tmp_path: Path) -> None:
    edit_and_compare(PROJECTS[name], tmp_path, edits=120, seed=seed)


def edit_and_compare(files: dict[str, str], root: Path, edits: int, seed: int) -> None:
    project = EditedProject(root, random.Random(seed), files)
    assert project.found() == project.found_afresh()
    for number in range(edits):
        project.step()
        for path, analysis in project.analyses.items():
            assert not analysis.rule_errors, (path.name, project.last, analysis.rule_errors)
        assert project.found() == project.found_afresh(), f"step {number}: {project.last}"


def test_an_edit_in_one_file_changes_what_another_shows(tmp_path: Path) -> None:
    """The comparison says nothing unless findings really cross the files."""
    for number, (name, files) in enumerate(SMALL.items()):
        project = EditedProject(tmp_path / str(number), random.Random(0), files)
        first = project.path(next(iter(files)))
        before = project.found()[first]
        for helper, text in files.items():
            if project.path(helper) != first:
                project.close(helper)
                changed = text.replace("dist.", "nothing.").replace("in other:", "in one:")
                project.disk(helper, changed)
        assert project.found()[first] != before, name
