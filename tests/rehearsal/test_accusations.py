"""``ranksafe rehearse`` of scripts that fail: theirs where they would fail without us, a limit where we are the cause."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ranksafe.rehearsal.settings import Confirm, RehearsalOptions
from ranksafe.runs.model import Outcome, RunEvent, RunRequest
from ranksafe.runs.start import start_run

from .conftest import RehearsalEnvironment

ROOT = Path(__file__).parents[2]
LONGEST_SECONDS = 240
pytestmark = pytest.mark.torch


@dataclass(frozen=True)
class Judged:
    """What the command line said of a script."""

    status: int
    record: dict[str, Any]
    said: str

    @property
    def blamed(self) -> dict[str, Any]:
        """The first failure, or the limit."""
        failures = self.record["failures"]
        limit: dict[str, Any] = self.record["simulation_limit"]
        return limit if self.status == 3 else failures[0]


Judge = Callable[..., Judged]


@pytest.fixture
def judge(rehearsal_environment: RehearsalEnvironment, tmp_path: Path) -> Judge:
    def judge(source: str, *options: str) -> Judged:
        script = tmp_path / "train.py"
        script.write_text(source)
        command = [sys.executable, "-m", "ranksafe", "rehearse", "--output-format", "json", "--yes"]
        command += ["--python", str(rehearsal_environment.interpreter), *options, str(script)]
        paths = [str(ROOT / "server"), str(ROOT / "rules")]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_SECONDS,
        )
        judged = Judged(done.returncode, json.loads(done.stdout), done.stderr)
        line = (judged.blamed["location"] or {}).get("row", 0)
        assert "# here" in source.splitlines()[line - 1], done.stderr
        return judged

    return judge


_ONCE_MORE = "the same once more on one simulated GPU"


def test_a_refused_download_that_became_none_is_a_limit(judge: Judge) -> None:
    judged = judge(
        """
import urllib.request

def text_of(url):
    try:
        return urllib.request.urlopen(url).read().decode()
    except OSError:
        return None

def main():
    text = text_of("https://example.org/input.bin")
    letters = sorted(set(text))  # here

main()
""",
        *("--launcher", "python"),
    )
    assert judged.status == 3
    assert judged.blamed["kind"] == "refused"
    assert "example.org cannot be reached" in judged.blamed["explanation"]
    assert "train.py:6" in judged.blamed["explanation"]
    assert _ONCE_MORE not in judged.said


@pytest.mark.long
def test_a_column_that_a_stand_in_lacks_is_a_limit_after_a_second_look(judge: Judge) -> None:
    judged = judge(
        """
from datasets import load_dataset
rows = load_dataset("stanfordnlp/snli", split="train")
sizes = rows.map(lambda row: {"size": len(row["gloss"])})  # here
""",
        *("--launcher", "python"),
    )
    assert judged.status == 3
    assert judged.blamed["kind"] == "stand-in"
    assert "it does not concern several GPUs" in judged.blamed["explanation"]
    assert "dataset stanfordnlp/snli" in judged.blamed["explanation"]
    assert _ONCE_MORE in judged.said


def test_what_needs_several_ranks_is_the_scripts_although_a_stand_in_is_at_hand(
    judge: Judge,
) -> None:
    judged = judge(
        """
import os
from datasets import load_dataset
rows = load_dataset("imdb", split="train")
shares = [rows.select(range(8))]
mine = shares[int(os.environ["LOCAL_RANK"])]  # here
""",
        *("--launcher", "torchrun"),
    )
    assert judged.status == 1
    assert "it takes several GPUs" in judged.blamed["explanation"]
    assert _ONCE_MORE in judged.said


_PLANTED = {
    "a name": "print(len(rows), lenght)  # here",
    "a column that the real dataset has not, either": """
rows.map(lambda row: {"size": len(row["review"])})  # here
""",
    "a key that no tokenizer gives, in a worker": """
from torch.utils.data import DataLoader
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
def collated(rows):
    return tokenizer([row["text"] for row in rows])["sentence_ids"]  # here
next(iter(DataLoader(rows, batch_size=4, num_workers=1, collate_fn=collated)))
""",
    "devices": """
import torch
batch = torch.tensor(rows[:4]["label"]).to("cuda:0")
batch + torch.ones(4, device="cuda:1")  # here
""",
}


@pytest.mark.parametrize(
    "what",
    [pytest.param(what, marks=pytest.mark.long) if "worker" in what else what for what in _PLANTED],
)
def test_what_cannot_come_of_a_stand_in_is_the_scripts(judge: Judge, what: str) -> None:
    judged = judge(
        f"""
from datasets import load_dataset
rows = load_dataset("imdb", split="train")
{_PLANTED[what]}
""",
        *("--launcher", "python"),
    )
    assert judged.status == 1
    assert _ONCE_MORE not in judged.said


@pytest.mark.long
def test_a_collective_that_one_rank_skips_is_the_scripts(judge: Judge) -> None:
    judged = judge(
        """
import torch
import torch.distributed as dist
from datasets import load_dataset
dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
rows = load_dataset("imdb", split="train")
total = torch.tensor(float(len(rows)), device="cuda")
if dist.get_rank() == 0:
    dist.all_reduce(total)  # here
torch.cuda.synchronize()
dist.destroy_process_group()
""",
        *("--launcher", "torchrun"),
    )
    assert judged.status == 1


@pytest.mark.long
def test_always_tells_what_the_cpu_says(judge: Judge) -> None:
    source = """
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.ones(2, 3, device=device) @ torch.ones(2, 3, device=device)  # here
"""
    judged = judge(source, "--launcher", "python", "--confirm", "always")
    assert judged.status == 1
    assert "on the CPU without simulated GPUs" in judged.blamed["explanation"]


@pytest.mark.long
def test_a_second_run_that_is_cancelled_changes_nothing(
    rehearsal_environment: RehearsalEnvironment, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        """
import os, time
if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
    print("the second begins", flush=True)
    time.sleep(600)
time.sleep(10)
{}["key"]
"""
    )
    events: list[RunEvent] = []
    request = RunRequest(
        script,
        "simulated:2",
        interpreter=rehearsal_environment.interpreter,
        working_directory=tmp_path,
        launcher="python",
        rehearsal=RehearsalOptions(confirm=Confirm.ALWAYS),
    )
    run = start_run(request, events.append, agrees=lambda question: True)
    first = run.log.parent
    while not _has_begun(first.parent, besides=first):
        assert run.wait(0.05) is None, [each.text for each in events]
    begun = time.monotonic()
    run.cancel()
    result = run.wait(LONGEST_SECONDS)
    assert result is not None
    assert result.outcome is Outcome.FAILED
    assert "CPU" not in result.failures[0].explanation.en
    announced = next(each.seconds for each in events if "once more" in each.text)
    assert time.monotonic() - begun < announced
    assert not _has_begun(first.parent, besides=first)


def _has_begun(runs: Path, besides: Path) -> bool:
    logs = [each / "log.txt" for each in runs.iterdir() if each.name > besides.name]
    return any(each.is_file() and "the second begins" in each.read_text() for each in logs)
