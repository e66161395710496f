"""Promise: a key given on the command line or in the environment is in no result, record or report."""

from __future__ import annotations

import pytest
from ranksafe.localization import Translated
from ranksafe.runs.model import Failure, Frame
from ranksafe.runs.records.redaction import HIDDEN, redacted_command, secret_values, without

KEY = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    "words",
    [
        ["train.py", f"+model.api_key={KEY}"],
        ["train.py", f"++model.api_key={KEY}"],
        ["train.py", f"logger.wandb.key={KEY}"],
        ["train.py", "--wandb.key", KEY],
        ["train.py", f"--wandb.key={KEY}"],
        ["train.py", "--wandb_key", KEY],
        ["train.py", "-k", KEY],
        ["train.py", f"--set=trainer.hub_token={KEY}"],
    ],
    ids=lambda words: words[1].replace(KEY, "KEY"),
)
def test_a_key_of_the_command_line(words: list[str]) -> None:
    assert KEY not in " ".join(redacted_command(words))
    assert KEY in secret_values(words, {})


@pytest.mark.parametrize(
    "words",
    [
        ["train.py", "--sort.key", "length"],
        ["train.py", "data.key=image_2"],
        ["train.py", "-k", "5"],
        ["train.py", "-n", "4", "-c", "conf/train.yaml"],
        ["python", "-u", "/home/me/projects/gpt-2/examples/train_124M.py"],
        ["python", "-m", "project2.training.pretrain"],
        ["train.py", "-n", "resnet50_imagenet_224_baseline"],
        ["train.py", "+trainer.max_steps=10"],
    ],
    ids=" ".join,
)
def test_what_is_no_key_stays(words: list[str]) -> None:
    assert redacted_command(words) == words
    assert secret_values(words, {}) == ()


def test_a_key_of_the_environment() -> None:
    environment = {
        "DB_PASSWORD": "correct-horse",
        "HUB_TOKEN": KEY,
        "SERVICE_KEY": "abcdefgh1",
        "SSH_AUTH_SOCK": "/tmp/ssh-1/agent.2",
        "TOKENIZERS_PARALLELISM": "false-0001",
        "SORT_KEY": "length",
        "SHORT_TOKEN": "a1",
        "HOME": "/home/user1",
    }
    assert set(secret_values([], environment)) == {"correct-horse", KEY, "abcdefgh1"}


def test_no_failure_quotes_a_key() -> None:
    said = f"401 for {KEY}"
    frame = Frame("train.py", 1, "main", source=f"login({KEY!r})")
    failure = Failure(
        kind="user-error",
        message=said,
        filename="train.py",
        frames=(frame,),
        explanation=Translated(said, said),
        excerpt=(said,),
    )
    shown = without((failure,), [KEY])
    assert KEY not in repr(shown)
    assert repr(shown).count(HIDDEN) == 5
    assert without((failure,), []) == (failure,)
