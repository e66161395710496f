"""A file is not parsed while nothing in its text, or in the project, lets a rule find something."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.checker.analysis import Analyzer, DocumentAnalysis
from ranksafe.checker.configuration import Configuration
from ranksafe.checker.registry import Registry
from ranksafe.launch.context import LaunchContext
from ranksafe.semantics import facts
from ranksafe.semantics.project.index import ProjectIndex

MODEL = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x.to("cuda:0")


def main():
    return Net()
"""
TRAINING = "import torch\nfrom model import Net\n\nwrapped = torch.nn.DataParallel(Net())\n"


def opened(folder: Path, text: str = MODEL) -> DocumentAnalysis:
    analyzer = Analyzer(Registry.load(), Configuration(), LaunchContext(), ProjectIndex(folder))
    return analyzer.open(folder / "model.py", text)


def codes(analysis: DocumentAnalysis) -> list[str]:
    return [finding.code for finding in analysis.findings]


def test_a_model_that_nobody_trains(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    analysis = opened(tmp_path)
    assert analysis.module is None
    text = MODEL.replace("return Net()", "return nn.DataParallel(Net())")
    analysis.change(text, 10, 10)
    assert codes(analysis) == ["RS210"]
    analysis.change(MODEL, 10, 10)
    analysis.settle()
    assert analysis.module is None


def test_words_that_are_gone_let_no_rule_run(tmp_path: Path) -> None:
    (tmp_path / "tuning.py").write_text(
        "from transformers import Trainer\n\n\nclass Tuner(Trainer):\n    pass\n"
    )
    text = f"from tuning import Tuner\n{MODEL}\n\nnum_items_in_batch = 2\nTuner(Net())\n# "
    last = text.count("\n")
    analysis = opened(tmp_path, text + "Trainer")
    assert codes(analysis) == ["RS210"]
    analysis.change(text, last, last)
    analysis.settle()
    assert analysis.module is not None
    assert codes(analysis) == codes(opened(tmp_path, text)) == []


LICENCE = "# Distributed under a licence, whatever your rank.\n"


def test_comments_mention_nothing(tmp_path: Path) -> None:
    text = LICENCE + MODEL + "\n# torch.distributed.barrier()\n"
    assert opened(tmp_path, text).module is None
    guarded = "import torch.distributed as dist\n\nif dist.get_rank() == 0:\n    dist.barrier()\n"
    commented = LICENCE + guarded.replace("\nif", "\n#if").replace("import", "# import", 1)
    assert opened(tmp_path, commented).module is None


def test_a_line_that_is_no_comment_any_more_counts(tmp_path: Path) -> None:
    guarded = "import torch.distributed as dist\n\nif dist.get_rank() == 0:\n    dist.barrier()\n"
    analysis = opened(tmp_path, "".join(f"# {line}\n" for line in guarded.splitlines()))
    assert analysis.module is None
    analysis.change(guarded, 0, 3)
    analysis.settle()
    assert codes(analysis) == codes(opened(tmp_path, guarded)) == ["RS401"]


def test_a_model_that_another_file_wraps(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "train.py").write_text(TRAINING)
    assert codes(opened(tmp_path)) == ["RS210"]


@pytest.mark.parametrize(
    "name",
    sorted(
        {facts.TRAINER, facts.DATA_PARALLEL, *facts._LAUNCHER_CALLS, *facts._DISTRIBUTED_WRAPS}
        | facts._ACCELERATE
    ),
)
def test_what_shows_several_gpus_has_one_of_the_words(name: str) -> None:
    assert any(word in name for word in facts.SEVERAL_GPUS)
