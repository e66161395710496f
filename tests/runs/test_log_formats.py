"""The same logs as other tools would have delivered them: whatever the wrapping, the answer is the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from ranksafe.runs.diagnosis.diagnose import diagnose_said
from ranksafe.runs.log_text.reader import LogReader

_LOGS = Path(__file__).parent / "logs" / "complete"
_NAMES = (
    "nan_shard",
    "detail_kind",
    "worker_killed",
    "group_download",
    "hub_offline",
    "sft_labels",
)
_RANK = re.compile(r"^\[rank(\d)\]: ?")


def _answer(data: bytes) -> list[tuple[object, ...]]:
    reader = LogReader()
    for start in range(0, len(data), 65_536):
        reader.feed(data[start : start + 65_536])
    reader.finish()
    return [
        (each.kind, each.rank, each.filename, each.line, each.message, each.root_cause)
        for each in diagnose_said(reader.said())
    ]


def _each_line(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(change(line) for line in text.split("\n"))


def _marked(mark: str) -> Callable[[str], str]:
    """``mark`` before every line of a rank, with its number for ``{}``; others' lines stay."""

    def change(line: str) -> str:
        found = _RANK.match(line)
        return mark.replace("{}", found[1]) + line if found else line

    return _each_line(change)


def _colored(line: str) -> str:
    return f"\x1b[31m{line[:7]}\x1b[0m{line[7:]}\x1b[K" if line else line


_TEXT_FORMS: dict[str, Callable[[str], str]] = {
    "colours": _each_line(_colored),
    "visible colours": _each_line(lambda line: f"^[[31m{line}^[[0m" if line else line),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "NUL bytes": lambda text: text.replace("\n", "\n\x00\x00\x00", 40),
    "kubectl --prefix": _each_line(lambda line: f"[pod/train-worker-0/pytorch] {line}"),
    "kubectl --timestamps": _each_line(lambda line: f"2026-11-20T21:14:20.003000123Z {line}"),
    "stern": _each_line(lambda line: f"train-worker-0 pytorch {line}"),
    "docker compose": _each_line(lambda line: f"trainer-1  | {line}"),
    "sky logs, one machine": _each_line(lambda line: f"(train, pid=4711) {line}"),
    "sky logs": _each_line(lambda line: f"(node-0, head, rank=0, pid=4711) {line}"),
    "pdsh": _each_line(lambda line: f"worker-1: {line}"),
    "torchrun --tee": _marked("[default{}]:"),
    "srun --label": _marked("{}: "),
    "ray job logs": _marked("(RayTrainWorker pid=70{}, ip=10.0.0.{}) "),
    "mpirun --tag-output": _marked("[1,{}]<stderr>:"),
    "nested": _marked("[pod/train-0/pytorch] [default{}]:"),
    "a bar before": _marked("\rTraining:  12%|█▏        | 12/100 [00:01<00:10,  8.61it/s]"),
}
_ENCODINGS: dict[str, str] = {
    "UTF-16 of PowerShell": "utf-16",
    "UTF-16 without mark": "utf-16-le",
    "big-endian UTF-16": "utf-16-be",
    "UTF-8 with mark": "utf-8-sig",
}


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("form", _TEXT_FORMS)
def test_wrapping_changes_nothing(name: str, form: str) -> None:
    data = (_LOGS / f"{name}.log").read_bytes()
    wrapped = _TEXT_FORMS[form](data.decode("utf-8")).encode("utf-8")
    assert wrapped != data
    assert _answer(wrapped) == _answer(data)


@pytest.mark.parametrize("name", _NAMES[:2])
@pytest.mark.parametrize("encoding", _ENCODINGS)
def test_an_encoding_changes_nothing(name: str, encoding: str) -> None:
    data = (_LOGS / f"{name}.log").read_bytes()
    assert _answer(data.decode("utf-8").encode(_ENCODINGS[encoding])) == _answer(data)


@pytest.mark.parametrize(
    ("encoding", "folder"), [("latin-1", "/home/josé"), ("gb18030", "/home/训练")]
)
def test_names_in_old_encodings_are_read(encoding: str, folder: str) -> None:
    text = (
        f'Traceback (most recent call last):\n  File "{folder}/train.py", line 3, in <module>\n'
        "    go()\nKeyError: 'x'\n"
    )
    ((_, _, filename, line, *_),) = _answer(text.encode(encoding))
    assert (filename, line) == (f"{folder}/train.py", 3)


def test_a_rank_known_only_by_its_place_among_processes_has_no_number() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/home/user/train.py", line 3, in <module>',
        "    go()",
        "KeyError: 'x'",
    ]
    text = "\n".join(f"(TrainWorker pid=17, ip=10.0.0.4) {line}" for line in lines)
    ((kind, rank, *_),) = _answer(text.encode())
    assert (kind, rank) == ("exception", None)


def test_two_processes_of_ray_are_told_apart() -> None:
    def told(pid: int, line: int, error: str) -> list[str]:
        mark = f"(RayTrainWorker pid={pid}, ip=10.0.0.4) "
        return [
            f"{mark}Traceback (most recent call last):",
            f'{mark}  File "/home/user/train.py", line {line}, in <module>',
            f"{mark}    go()",
            f"{mark}{error}",
        ]

    pairs = zip(
        told(1, 5, "RuntimeError: Connection closed by peer"),
        told(2, 9, "IndexError: too far"),
        strict=True,
    )
    first, second = _answer("\n".join(line for pair in pairs for line in pair).encode())
    assert (first[3], first[-1]) == (9, True)
    assert (second[3], second[-1]) == (5, False)
