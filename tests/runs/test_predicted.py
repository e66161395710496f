"""A failure that several rules predict gets the code of the one that has a finding there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ranksafe.localization import Translated
from ranksafe.runs.explain import explain
from ranksafe.runs.explain.evidence import Evidence, Raised, RankEvidence
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.model import Failure, Frame
from ranksafe.runs.predicted import led_by_its_rule, with_predicted_rule

_PROGRAM = """\
import torch
from torch import nn


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.mask = torch.ones(4).cuda()

    def forward(self, x):
        return self.layer(x) * self.mask


model = nn.DataParallel(Masked().cuda())
model(torch.ones(8, 4).cuda())
"""
_MESSAGE = "Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cuda:0!"


def _code(folder: Path, program: str, line: int) -> str | None:
    path = folder / "model.py"
    path.write_text(program, encoding="utf-8")
    rank = RankEvidence(0)
    rank.raised = Raised("RuntimeError", _MESSAGE, (Frame(str(path), line, "forward"),))
    evidence = Evidence({0: rank}, returncode=1)
    (failure,), _ = explain(evidence, UserCode([folder], folder))
    assert failure.code is None
    return with_predicted_rule(failure, 2).code


def test_the_finding_in_the_file_that_failed_names_the_rule(tmp_path: Path) -> None:
    assert _code(tmp_path, _PROGRAM, 12) == "RS513"


def test_without_a_finding_no_rule_is_claimed(tmp_path: Path) -> None:
    harmless = _PROGRAM.replace(
        "self.mask = torch.ones(4).cuda()", 'self.register_buffer("mask", torch.ones(4))'
    )
    assert _code(tmp_path, harmless, 12) is None


_GUARDED = """\
import torch.distributed as dist


def report(loss):
    dist.all_reduce(loss)
    if dist.get_rank() == 0:
        dist.all_reduce(loss)
    dist.barrier()
"""
_MISMATCH = (
    "Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint("
    "SequenceNumber=2, OpType=ALLREDUCE, Elements=1), but Rank 1 is running collective: CollectiveFingerPrint("
    "SequenceNumber=2, OpType=BARRIER)."
)


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is not named as tests are."""
    return tmp_path_factory.mktemp("project")


def _meeting(folder: Path, lines: dict[int, int]) -> list[tuple[int | None, int | None, bool]]:
    """The ranks in the order in which they are told of, each with its line, when they noticed in the given order."""
    path = folder / "report.py"
    path.write_text(_GUARDED, encoding="utf-8")
    ranks = {}
    for moment, (rank, line) in enumerate(lines.items()):
        ranks[rank] = RankEvidence(rank, raised_at=float(moment))
        ranks[rank].raised = Raised(
            "DistBackendError", _MISMATCH, (Frame(str(path), line, "report"),)
        )
    failures, _ = explain(Evidence(ranks, returncode=1), UserCode([folder], folder))
    led = led_by_its_rule(failures, 2)
    return [(each.rank, each.line, each.root_cause) for each in led]


def test_the_rank_on_whose_line_the_rule_is_comes_first(project: Path) -> None:
    told = [(0, 7, True), (1, 8, False)]
    assert _meeting(project, {1: 8, 0: 7}) == told
    assert _meeting(project, {0: 7, 1: 8}) == told


def test_without_a_rule_there_who_noticed_first_stays_first(project: Path) -> None:
    assert _meeting(project, {1: 8, 0: 5}) == [(1, 8, True), (0, 5, False)]


_PARTED = """\
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        print("alone")
        dist.barrier()
    dist.destroy_process_group()


main()
"""


@pytest.mark.parametrize(
    ("kind", "line", "related", "code"),
    [
        ("hang", 8, (), "RS401"),
        ("collective-mismatch", 9, (8,), "RS401"),
        ("peer-lost", 12, (), None),
        ("user-error", 8, (), None),
    ],
)
def test_a_rule_is_joined_to_where_ranks_parted(
    tmp_path: Path, kind: str, line: int, related: tuple[int, ...], code: str | None
) -> None:
    path = tmp_path / "train.py"
    path.write_text(_PARTED, encoding="utf-8")
    nothing = Translated("", "")
    told = Failure.without_place(kind, nothing, nothing, "en")
    failure = replace(
        told, filename=str(path), line=line, related=tuple((str(path), row) for row in related)
    )
    assert with_predicted_rule(failure, 2).code == code
