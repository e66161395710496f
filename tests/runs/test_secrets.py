"""Secrets of the user reach no log, no record and no file of a run, unless the script itself writes them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from ranksafe.runs.model import Outcome, RunEvent, RunRequest
from ranksafe.runs.records.redaction import HIDDEN, redacted_command, redacted_text, secret_values
from ranksafe.runs.start import start_run

ARGUMENT = "s3cret-of-the-command-line"
VARIABLE = "s3cret-of-a-variable"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('login(token="abcdef123456")', f'login(token="{HIDDEN}")'),
        ("wandb.login(key='" + "0a" * 20 + "')", f"wandb.login(key='{HIDDEN}')"),
        ('{"api_key": "abc-123456"}', f'{{"api_key": "{HIDDEN}"}}'),
        ("config['secret_key'] = 'abcdefgh'", f"config['secret_key'] = '{HIDDEN}'"),
        ("AWS_SECRET_ACCESS_KEY=abc/def+1", f"AWS_SECRET_ACCESS_KEY={HIDDEN}"),
        ("MY_OWN_TOKEN_2=abc/def+1 next", f"MY_OWN_TOKEN_2={HIDDEN} next"),
        ("https://h/x?access_token=abc123&b=1", f"https://h/x?access_token={HIDDEN}&b=1"),
        ("https://h/x?X-Amz-Signature=abc123", f"https://h/x?X-Amz-Signature={HIDDEN}"),
        ("git+https://" + "a1" * 15 + "@host/x", f"git+https://{HIDDEN}@host/x"),
        ("Authorization: Bearer abcdef123456", f"Authorization: Bearer {HIDDEN}"),
        ("['t.py', '--hub-token', 'abc123']", f"['t.py', '--hub-token', '{HIDDEN}']"),
        ("t.py --hub-token=abc123 --lr 1", f"t.py --hub-token={HIDDEN} --lr 1"),
    ],
)
def test_what_stands_behind_a_telling_name_is_blotted_out(text: str, shown: str) -> None:
    assert redacted_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "use --hub-token instead of --token",
        'tokenizer = AutoTokenizer.from_pretrained("gpt2-medium")',
        '{"token": "understanding"}',
        'pad_token="<|endoftext1|>"',
        "NCCL_DEBUG=INFO OMP_NUM_THREADS=16",
        "basic usage is simple",
        "a bearer of good news",
        "torch.distributed.init_process_group(backend='gloo-2', key='abcdefgh1')",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert redacted_text(text) == text


def test_the_hidden_values_of_a_command_line() -> None:
    words = ["t.py", "--hub-token", "first1", "api_key=second-value", "--lr", "1", "--token", "x"]
    assert secret_values(words, {}) == ("second-value", "first1")
    assert HIDDEN in redacted_command(words)


@pytest.mark.torch
def test_a_runs_folder_has_no_secret_of_the_command_line_or_the_environment(
    tmp_path: Path, torch_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "train.py"
    script.write_text("import time\nprint('up')\ntime.sleep(3)\nraise ValueError('step seven')\n")
    monkeypatch.setenv("WANDB_API_KEY", VARIABLE)
    events: list[RunEvent] = []
    lines: set[bytes] = set()

    def on_event(event: RunEvent) -> None:
        events.append(event)
        if "up" in event.text and Path("/proc/self").is_dir():
            lines.update(_command_lines())

    before = os.umask(0)
    try:
        run = start_run(
            RunRequest(
                script,
                gpus=1,
                cpu_ranks=True,
                arguments=("--hub-token", ARGUMENT),
                environment={"ODDLY_NAMED": VARIABLE},
                interpreter=torch_python,
            ),
            on_event,
        )
        result = run.wait(180)
    finally:
        os.umask(before)
    assert result is not None
    assert result.outcome is Outcome.FAILED
    folder = result.run_directory
    assert folder is not None
    found = [path.name for path in folder.rglob("*") if path.is_file() and _tells(path)]
    assert found == []
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.parent.stat().st_mode) & 0o077 == 0
    # Of the command lines only the script's own, which the user wrote, have its arguments.
    assert not any(VARIABLE.encode() in line for line in lines)
    assert all(b"train.py" in line for line in lines if ARGUMENT.encode() in line)


def _tells(path: Path) -> bool:
    text = path.read_bytes()
    return ARGUMENT.encode() in text or VARIABLE.encode() in text


def _command_lines() -> list[bytes]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.append((entry / "cmdline").read_bytes())
            except OSError:
                continue
    return found
