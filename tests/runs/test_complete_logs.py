"""Complete logs of failed runs on several ranks, labelled before anything here knew their messages.

``logs/complete/labels.jsonl`` has for each log what failed, the kind, the rank (none where all ranks failed alike), the
user's file and line, and whether it is ``plain``: an error that one GPU would show, for which no advice about several
GPUs may be given. ``half``: the signatures were made with the open half at hand; the kept half was scored once before
anything was mended after it (docs/guide/diagnose.md), and is development material since. Later sets: third, fourth (the
mended ones of the third blind set, cut to what tells, with other folders), and fourth development, of public threads
and repositories, cut to what tells, with the names of people taken out of paths; fifth (open and kept), sixth, seventh
(open, kept and development), eighth to thirteenth, runs of the sets after that. ``says``: words that the explanation must
have. Paths were replaced in logs of our own runs; nothing else. Of our own runs those are left that reach a line, a branch
or a signature that no other log reaches.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.diagnosis.diagnose import diagnose, diagnose_said
from ranksafe.runs.log_text.reader import LogReader
from ranksafe.runs.model import Failure

_LOGS = Path(__file__).parent / "logs" / "complete"
_LABELS = [
    json.loads(line) for line in (_LOGS / "labels.jsonl").read_text(encoding="utf-8").splitlines()
]
_ADVICE = (
    *(
        "set_device",
        "find_unused",
        "same collectives",
        "NCCL_",
        "Every rank must",
        "rank-dependent",
    ),
    *("start one process per GPU", "sharded strategy", "device_map", "replica"),
)

_CLAIMS = ("one GPU would show", "nothing to do with several GPUs")


def _diagnosed(name: str, piece: int) -> list[Failure]:
    reader = LogReader()
    data = (_LOGS / f"{name}.log").read_bytes()
    for start in range(0, len(data), piece):
        reader.feed(data[start : start + piece])
    reader.finish()
    return diagnose_said(reader.said())


@pytest.mark.parametrize("label", _LABELS, ids=lambda label: label["log"])
def test_a_complete_log_is_explained(label: dict[str, Any]) -> None:
    failures = _diagnosed(label["log"], 1 << 20)
    if label["kind"] is None:
        assert failures == []
        return
    first, *others = failures
    name = first.filename.replace("\\", "/").split("/")[-1] if first.filename else None
    assert (first.kind, first.rank) == (label["kind"], label["rank"])
    assert (name, first.line) == (label["file"], label["line"])
    assert first.root_cause
    assert not any(other.root_cause for other in others)
    told = first.explanation.en
    for said in label.get("says", ()):
        assert said in told
    if label["rank"] is not None:
        assert not [words for words in _CLAIMS if words in told]
    if label["plain"]:
        assert not [words for words in _ADVICE if words in told]


@pytest.mark.parametrize("label", _LABELS[::7], ids=lambda label: label["log"])
def test_how_a_log_arrives_changes_nothing(label: dict[str, Any]) -> None:
    assert _diagnosed(label["log"], 997) == _diagnosed(label["log"], 1 << 20)


def _with_a_warning(log: str) -> str:
    return (
        "/home/user/job/util.py:7: UserWarning: `on_error` is deprecated, it will be removed\n"
        + log
    )


def _in_colours(log: str) -> str:
    return "\n".join(f"\x1b[32m{line}\x1b[0m" for line in log.split("\n"))


def _from_windows(log: str) -> str:
    return log.replace("\n", "\r\n")


def test_what_tells_nothing_changes_nothing() -> None:
    for label in _LABELS:
        log = (_LOGS / f"{label['log']}.log").read_bytes().decode("utf-8", "surrogateescape")
        plain = log.replace("\r", "")
        before, *after = (
            [(each.kind, each.rank, each.line) for each in diagnose(text)[:1]]
            for text in (plain, _with_a_warning(plain), _in_colours(plain), _from_windows(plain))
        )
        assert after == [before] * 3, label["log"]
