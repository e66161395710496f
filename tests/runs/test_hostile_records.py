"""Records and logs that others made: a run's folder from a colleague, a log from anywhere, a host that lies."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ranksafe.cli.main import main
from ranksafe.runs.directory import KEPT_RUNS, is_going_on, new_run_directory, occupy
from ranksafe.runs.explain import explain
from ranksafe.runs.explain.evidence import load_evidence, parse_entry
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.hosts.boot import GREETING
from ranksafe.runs.records.kept_runs import all_runs
from ranksafe.runs.remote.mirror import Garbled, Mirror
from ranksafe.runs.watch.watchdog import Watchdog

DEEP = "[" * 100_000
SECRET = "the user's own key"
Change = Callable[[dict[str, Any]], object]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cache folder for the test, wherever it was started."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def a_record(change: Change = lambda _: None) -> str:
    """A run's record as text, changed."""
    failure = {
        "kind": "exception",
        "message": "ValueError: x",
        "rank": 0,
        "filename": "/project/train.py",
        "location": {"row": 3, "column": 1},
        "root_cause": True,
        "frames": [],
    }
    value: dict[str, Any] = {
        "schema": "ranksafe-record/1",
        "owner": 1,
        "started": 1.7e9,
        "command": ["python", "train.py"],
        "request": {"script": "/project/train.py", "target": "local", "arguments": []},
        "environment": {"packages": {"torch": "2"}},
        "result": {"outcome": "failed", "seconds": 3.0, "failures": [failure], "ranks": []},
        "explanations": [{"en": "e", "zh_cn": "z"}],
    }
    change(value)
    return json.dumps(value)


def kept(tmp_path: Path, text: str) -> Path:
    """A folder among the kept runs, with that text as its record."""
    folder = tmp_path / "cache" / "ranksafe" / "runs" / "20260101-000000-abcdef"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(text)
    return folder


def _changed(where: str, value: object) -> str:
    def change(record: dict[str, Any]) -> None:
        *way, last = where.split(".")
        for key in way:
            record = record[key]
        record[last] = value

    return a_record(change)


def _with_integer(where: str) -> str:
    return _changed(where, 123456789).replace("123456789", "1" + "0" * 4000)


HOSTILE = {
    "nested": '{"request": ' + DEEP,
    "started-huge": _changed("started", 1e300),
    "started-integer": _with_integer("started"),
    "started-nan": _changed("started", float("nan")),
    "seconds-infinite": _changed("result.seconds", float("inf")),
    "seconds-integer": _with_integer("result.seconds"),
    "no-texts": _changed("command", {"a": 1}),
    "request-types": _changed("request", {"script": 5, "target": {"a": 1}, "arguments": "x"}),
    "result-types": _changed("result", {"outcome": ["x"], "failures": {"a": 1}, "ranks": [1]}),
    "failure-types": _changed(
        "result.failures",
        [
            1,
            None,
            {"message": {"a": 1}, "rank": "r", "location": [1], "filename": 5, "frames": {"a": 1}},
            {"frames": [1, {"filename": 3, "line": "x"}], "location": {"row": "a", "column": -5}},
        ],
    ),
    "ranks": _changed("result.ranks", [{"rank": 10**30, "host": "\x1b[31m", "exit_code": "x"}]),
    "surrogates": _changed("result.failures", [{"message": "\udcff\ud800", "rank": 0}]),
    "nul": _changed("request.script", "/project/a\0b.py"),
    "owner": a_record(lambda record: record.update(owner=2**70, result=None)),
    "sentences": a_record(lambda record: record.update(explanations=["x", 3], limits={"a": 1})),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_record_breaks_the_commands(tmp_path: Path, text: str) -> None:
    name = kept(tmp_path, text).name
    for words in (["runs", "--all"], ["report", name], ["compare", name, name], ["attach", name]):
        assert main(words) in (0, 2), words


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("snapshot.json", DEEP),
        ("remote.json", '{"command": ' + DEEP),
        ("rank0.jsonl", DEEP + '\n{"event": "step", "step": {"a": 1}, "time": 1e308}\n1\n'),
        ("progress.jsonl", DEEP + '\n{"time": 1e308, "rank": 0, "steps": 1e999}\n'),
        ("gpus.jsonl", '{"time": 1' + "0" * 400 + ', "devices": [{"index": 0, "used_mib": "x"}]}'),
    ],
)
def test_no_evidence_breaks_the_report(tmp_path: Path, file: str, text: str) -> None:
    folder = kept(tmp_path, a_record())
    (folder / file).write_text(text)
    assert main(["report", folder.name]) == 0


_EVENTS = [
    {
        "event": "start",
        "local_rank": 0,
        "world_size": 2,
        "host": "h",
        "pid": 7,
        "time": 1.0,
        "group": 2,
    },
    {"event": "step", "step": 4, "time": 2.0},
    {
        "event": "silent-failure",
        "kind": "unread",
        "code": "RS101",
        "message": "m",
        "frames": [],
        "time": 2.5,
    },
    {"event": "trained-enough", "steps": 4, "time": 2.6},
    {"event": "stopped", "steps": 4, "time": 2.7},
    {
        "event": "exception",
        "exception": {
            "type": "KeyError",
            "message": "x",
            "frames": [{"file": "/a.py", "line": 3, "function": "f", "source": "s", "column": 1}],
            "notes": ["n"],
            "cause": {"type": "ValueError", "frames": []},
            "context": {"type": "ValueError", "frames": []},
            "group": [{"type": "ValueError", "frames": []}],
        },
        "time": 3.0,
    },
    {"event": "os-exit", "status": 3, "frames": [], "time": 4.0},
    {"event": "exit", "asked": {"status": 3, "frames": []}, "time": 4.0},
]


def _with_each_value_changed(value: Any, other: object) -> Iterator[Any]:
    """Copies of a JSON value, each with one of its parts replaced or left out."""
    yield other
    if isinstance(value, dict):
        for name, part in value.items():
            yield {each: kept for each, kept in value.items() if each != name}
            yield from (
                {**value, name: changed} for changed in _with_each_value_changed(part, other)
            )
    if isinstance(value, list):
        for index, part in enumerate(value):
            for changed in _with_each_value_changed(part, other):
                yield [*value[:index], changed, *value[index + 1 :]]


@pytest.mark.parametrize("other", [None, "x", 1e308, -3, [1], {"a": 1}, True], ids=repr)
def test_what_a_host_tells_of_its_ranks_in_no_known_form_is_left_out(
    tmp_path: Path, other: object
) -> None:
    journal, beat = tmp_path / "rank0.jsonl", tmp_path / "rank0.beat"
    user_code = UserCode([tmp_path], tmp_path)
    whole = json.dumps(_EVENTS[1])
    for number, event in enumerate(_EVENTS):
        for changed in _with_each_value_changed(event, other):
            others = [json.dumps(each) for each in _EVENTS[:number]]
            journal.write_text("\n".join([*others, json.dumps(changed), whole]))
            beat.write_text(json.dumps({"time": other, "frames": other, "group": other}))
            evidence = load_evidence(tmp_path, 2)
            assert evidence.ranks[0].steps >= 4
            explain(evidence, user_code)
            Watchdog(tmp_path, user_code, "en").heard(0, parse_entry(json.dumps(changed)))


def test_a_report_of_a_strangers_folder_reads_and_writes_nothing_behind_links(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "key").write_text(SECRET)
    (tmp_path / "profile").write_text("precious")
    folder = tmp_path / "received"
    folder.mkdir()
    (folder / "result.json").write_text(a_record())
    (folder / "log.txt").symlink_to(tmp_path / "key")
    (folder / "rank0.jsonl").symlink_to(tmp_path / "key")
    (folder / "report.html").symlink_to(tmp_path / "profile")
    assert main(["report", str(folder)]) == 0
    assert (tmp_path / "profile").read_text() == "precious"
    report = folder / "report.html"
    assert not report.is_symlink()
    assert SECRET not in report.read_text(encoding="utf-8")
    assert report.stat().st_mode & 0o077 == 0
    assert "report.html" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
@pytest.mark.parametrize("name", ["log.txt", "snapshot.json", "rank0.jsonl", "remote.json"])
def test_a_pipe_in_a_runs_folder_is_not_waited_for(tmp_path: Path, name: str) -> None:
    folder = kept(tmp_path, a_record())
    os.mkfifo(folder / name)
    assert main(["report", folder.name]) == 0
    assert main(["attach", folder.name]) == 2


COMMANDS = "\x1b]0;title\x07\x9b31m\u202eevil\r\x0e\x1b[2J"


def _commands_in(text: str) -> list[str]:
    return [each for each in text if each in "\x1b\x07\x9b\u202e\r\x0e"]


def test_no_record_commands_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(record: dict[str, Any]) -> None:
        record["request"]["target"] = COMMANDS
        record["request"]["script"] = f"/project/{COMMANDS}.py"
        record["result"]["outcome"] = COMMANDS
        record["result"]["failures"][0]["message"] = COMMANDS

    name = kept(tmp_path, a_record(change)).name
    other = tmp_path / "other"
    other.mkdir()
    (other / "result.json").write_text(a_record())
    for words in (["runs", "--all"], ["compare", name, str(other)], ["report", COMMANDS]):
        main([*words, "--color", "never"] if words[0] != "report" else words)
        printed = capsys.readouterr()
        assert _commands_in(printed.out + printed.err) == [], words


def test_no_log_commands_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "train.py"
    source.write_text(f"x = 1\nfail()  # {COMMANDS}\n", encoding="utf-8")
    log = tmp_path / "run.log"
    lines = [
        "Traceback (most recent call last):",
        f'  File "{source}", line 2, in main\x9b31m',
        f"ValueError: {COMMANDS} of \x05\u2066this",
    ]
    log.write_text("".join(f"[rank0]: {line}\n" for line in lines), encoding="utf-8", newline="\n")
    assert main(["diagnose", str(log), "--color", "always"]) == 1
    printed = capsys.readouterr().out
    colors = printed.replace("\x1b[1;31m", "").replace("\x1b[0m", "").replace("\x1b[1m", "")
    assert "ValueError" in printed
    assert _commands_in(colors.replace("\x1b[2m", "").replace("\x1b[32m", "")) == []
    assert "\x05" not in printed
    assert "\u2066" not in printed


@pytest.mark.parametrize("kind", ["device", "pipe", "key"])
@pytest.mark.parametrize("with_source", [True, False])
def test_a_log_does_not_choose_what_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, with_source: bool
) -> None:
    named = Path("/dev/zero")
    if kind == "pipe":
        named = tmp_path / "pipe.py"
        os.mkfifo(named)
    elif kind == "key":
        named = tmp_path / "key"
        named.write_text(f"{SECRET}\n" * 5)
    log = tmp_path / "run.log"
    lines = [
        "Traceback (most recent call last):",
        f'  File "{named}", line 3, in main',
        *(["    train()"] if with_source else []),
        "ValueError: boom",
    ]
    log.write_text("".join(f"[rank0]: {line}\n" for line in lines))
    assert main(["diagnose", str(log)]) == 1
    printed = capsys.readouterr().out
    assert "ValueError: boom" in printed
    assert SECRET not in printed


@pytest.mark.parametrize("owner", ["9" * 30, "0", "-1", "", "x", "1 2 3", "\0"])
def test_no_owner_note_breaks_new_runs(tmp_path: Path, owner: str) -> None:
    runs = tmp_path / "cache" / "ranksafe" / "runs"
    for number in range(KEPT_RUNS + 2):
        folder = runs / f"20260101-000000-{number:06}"
        folder.mkdir(parents=True)
        (folder / "in-use").write_text(owner)
    made, _ = new_run_directory(0)
    assert is_going_on(made)
    assert len(list(runs.iterdir())) == KEPT_RUNS + 1


def test_a_number_that_another_process_has_now_is_no_owner(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    occupy(folder)
    assert is_going_on(folder)
    number, _, started = (folder / "in-use").read_text().partition(" ")
    assert number == str(os.getpid())
    if started:
        (folder / "in-use").write_text(f"{number} 12@{started.partition('@')[2]}")
        assert not is_going_on(folder)
        # Of an earlier start of the machine.
        (folder / "in-use").write_text(f"{number} {started.partition('@')[0]}@another")
        assert not is_going_on(folder)


def test_a_thousand_runs_are_listed(tmp_path: Path) -> None:
    runs = tmp_path / "cache" / "ranksafe" / "runs"
    text = a_record()
    for number in range(1000):
        folder = runs / f"20260101-000000-{number:06}"
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(text)
    started = time.monotonic()
    assert len(all_runs()) == 1000
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    "message",
    [
        DEEP[:60_000],
        '{"size": 1' + "0" * 5000 + "}",
        '{"file": "../x", "size": 0}',
        '{"file": "rank0.stdout\\u0000", "size": 0}',
        '{"file": "log.txt", "size": 0}',
        " " * 100_000,
        GREETING.decode(),
    ],
)
def test_a_host_that_lies_is_one_that_is_lost(tmp_path: Path, message: str) -> None:
    mirror = Mirror(tmp_path, "/there", "/here")
    with pytest.raises(Garbled):
        mirror.take(message.encode() + b"\n")
    assert list(tmp_path.iterdir()) == []
