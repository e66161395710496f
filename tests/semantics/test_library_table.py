"""The table of library names is what the running packages say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ranksafe.semantics.libraries import ancestors_of, canonical, exported_by, is_known_class

GENERATOR = Path(__file__).parents[2] / "tools" / "generate_library_table.py"


@pytest.mark.long
def test_table_is_that_of_the_installed_libraries() -> None:
    python = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    if not python:
        pytest.skip("needs torch: RANKSAFE_TEST_TORCH_PYTHON=$(python tools/environments.py torch)")
    done = subprocess.run(
        [python, str(GENERATOR), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize(
    ("written", "public"),
    [
        ("transformers.trainer.Trainer", "transformers.Trainer"),
        ("torch.nn.modules.linear.Linear", "torch.nn.Linear"),
        ("torch.nn.parallel.DataParallel", "torch.nn.DataParallel"),
        ("accelerate.accelerator.Accelerator.prepare", "accelerate.Accelerator.prepare"),
        ("torch.distributed.distributed_c10d.all_reduce", "torch.distributed.all_reduce"),
        ("mine.Trainer", "mine.Trainer"),
    ],
)
def test_canonical_name(written: str, public: str) -> None:
    assert canonical(written) == public


def test_ancestors_go_through_other_libraries() -> None:
    assert "transformers.Trainer" in ancestors_of("trl.SFTTrainer")
    assert "torch.nn.Module" in ancestors_of("transformers.PreTrainedModel")
    assert is_known_class("torch.nn.BatchNorm1d")


def test_star_imports_bring_public_names() -> None:
    assert exported_by("torch.nn", "DataParallel")
    assert not exported_by("torch.nn", "NoSuchThing")
