"""``--shrink work``: large batches are small, what they divide by stays, and what follows from it accuses nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import INJECTED, RehearsalEnvironment, Rehearse

sys.path.insert(0, str(INJECTED))
from ranksafe_rehearsal.shrink.batches import UNIT, small

ROOT = Path(__file__).parents[2]
_LOADERS = """
import json
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset

class Own(BatchSampler):
    pass

class Loader(DataLoader):
    pass

data = TensorDataset(torch.arange(400))
order = SequentialSampler(data)

def told(loader):
    return [loader.batch_size, len(next(iter(loader))[0])]

print(json.dumps({
    "named": told(DataLoader(data, batch_size=256)),
    "placed": told(DataLoader(data, 100, True)),
    "derived": told(Loader(data, batch_size=37)),
    "few": told(DataLoader(data, batch_size=12)),
    "single": DataLoader(data).batch_size,
    "sampler": len(next(iter(DataLoader(data, batch_sampler=BatchSampler(order, 64, False))))[0]),
    "own": len(next(iter(DataLoader(data, batch_sampler=Own(order, 64, False))))[0]),
    "none": DataLoader(data, batch_size=None).batch_size,
}))
"""
_TRAINING = """
import torch
from torch.utils.data import DataLoader, TensorDataset

size = 512
data = TensorDataset(torch.randn(2048, 3, 8, 8))
loader = DataLoader(data, batch_size=size, shuffle=True)
model = torch.nn.DataParallel(torch.nn.Conv2d(3, 8, 3).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, in loader:
    loss = model(images.cuda()).mean()
    loss.backward()
    optimizer.step()
{ending}
print("batch of", len(images))
"""
_OF_ITS_OWN_SIZE = "state = torch.zeros(size) + images.sum((1, 2, 3))"


def test_what_a_batch_divides_by_stays() -> None:
    assert [small(size) for size in range(2 * UNIT + 1)] == list(range(2 * UNIT + 1))
    for size in range(2 * UNIT + 1, 500):
        assert UNIT <= small(size) < 2 * UNIT
        assert (size - small(size)) % UNIT == 0


@pytest.mark.torch
def test_loaders_have_small_batches_and_say_so(rehearse: Rehearse) -> None:
    done = rehearse(_LOADERS, devices=1, shrink="work")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.lines[-1]) == {
        "named": [8, 8],
        "placed": [12, 12],
        "derived": [13, 13],
        "few": [12, 12],
        "single": 1,
        "sampler": 8,
        "own": 64,
        "none": None,
    }
    sentences = [event["message"]["en"] for event in done.events("modified")]
    assert sentences == [
        f"batches of {size} are cut to {small(size)}" for size in (256, 100, 37, 64)
    ]


@pytest.mark.torch
def test_batches_are_left_alone_unless_it_was_chosen(rehearse: Rehearse) -> None:
    done = rehearse(_LOADERS, devices=1, shrink="on")
    assert json.loads(done.lines[-1])["named"] == [256, 256]


@pytest.mark.long
@pytest.mark.torch
def test_a_training_runs_on_small_batches_and_a_size_of_its_own_is_a_limit(
    rehearsal_environment: RehearsalEnvironment, tmp_path: Path
) -> None:
    passed = _rehearsed(rehearsal_environment, tmp_path, _TRAINING.format(ending=""))
    assert passed["outcome"] == "succeeded"
    assert "batches of 512 are cut to 8" in passed["modified"]
    ended = _rehearsed(rehearsal_environment, tmp_path, _TRAINING.format(ending=_OF_ITS_OWN_SIZE))
    assert ended["outcome"] == "simulation-limit"
    assert "Without --shrink work" in ended["simulation_limit"]["explanation"]


def _rehearsed(where: RehearsalEnvironment, folder: Path, source: str) -> dict[str, Any]:
    script = folder / "train.py"
    script.write_text(source, encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ranksafe", "rehearse", str(script), "--shrink", "work"),
            *("--python", str(where.interpreter), "--output-format", "json", "--yes"),
        ],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "server"), str(ROOT / "rules")]),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result
