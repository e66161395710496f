"""Promise: in a report all that a run, a host or a colleague wrote is text: no script of theirs runs, no request leaves.

Opened in a real browser, which says what it did.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.records.comparison import compare
from ranksafe.runs.records.kept_runs import KeptRun, run_named
from ranksafe.runs.report.history_page import write_history
from ranksafe.runs.report.page import report

from tests.runs.browser import harmless, opened

ATTACKS = (
    "javascript:owned=1//",
    "</script><script>owned=1</script>",
    "]]></style><style>@import 'http://example.invalid/a.css'; *{background:url(//example.invalid/b)}</style>",
    "</textarea></title></pre></template></noscript></svg></math><script>owned=1</script>",
    '"><svg/onload=owned=1><img src=//example.invalid/c onerror=owned=1>',
    "' onmouseover='owned=1' style='animation:x' onanimationstart='owned=1' '",
    "<!--<script>--><iframe srcdoc='<script>parent.owned=1</script>'></iframe>",
    "<a href=javascript:owned=1 autofocus onfocus=owned=1 ping=//example.invalid/d>link</a>",
    "<meta http-equiv=refresh content='0;url=//example.invalid/e'><base href=//example.invalid/>",
    "<link rel=prefetch href=//example.invalid/f><form action=//example.invalid/g><input autofocus>",
    "&lt;script&gt;owned=1&lt;/script&gt;&#60;script&#62;owned=1&#60;/script&#62;",
    "\x1b]8;;javascript:owned=1\x07link\x1b]8;;\x07\x1b[31mred\x1b[0m<\x1b[0mscript>owned=1</script>",
    "\u202egnp.exe\u2066\u2069\u2028\u2029\x00\x85\ud800\ufffe${owned=1}{{owned=1}}",
)
TEXT = " ".join(ATTACKS)
SHORT = (
    "</script><script>owned=1</script>",
    "javascript:owned=1",
    "<img src=//a.invalid onerror=owned=1>",
)
"""Where only the beginning of a text is shown."""
PLACE = {"row": 1, "column": 1}
FRAME = {
    "filename": "/x.py",
    "location": PLACE,
    "function": "f",
    "source": "s",
    "in_user_code": True,
}
FAILURE = {
    "kind": "exception",
    "code": "RS401",
    "rank": 0,
    "message": "m",
    "filename": "/x.py",
    "location": PLACE,
    "end_location": {"row": 1, "column": 2},
    "frames": [FRAME, FRAME],
    "explanation": "e",
    "root_cause": True,
    "excerpt": ["line"],
}
SAID = {"en": "said", "zh_cn": "said otherwise"}
RECORD = {
    "schema": "ranksafe-record/1",
    "started": 1.7e9,
    "ended": 1.7e9 + 9,
    "command": ["python", "train.py"],
    "request": {
        "script": "/x.py",
        "target": "local",
        "gpus": 2,
        "cpu_ranks": True,
        "steps": 3,
        "arguments": ["a"],
        "config_file": "c",
        "interpreter": "/python",
        "launcher": "l",
        "working_directory": "/w",
        "timeout_seconds": 5,
        "rehearsal": {"memory_bytes": 5},
    },
    "environment": {
        "ranksafe": "1",
        "platform": "p",
        "processors": 2,
        "interpreter": "/python",
        "python": "3",
        "packages": {"torch": "2"},
        "gpus": [{"name": "g", "memory_mib": 5, "driver": "d"}],
        "git": {"commit": "c", "branch": "b", "dirty": True},
        "environment_names": ["NAME"],
        "hosts": ["h"],
    },
    "result": {
        "run_id": "r",
        "outcome": "failed",
        "target": "t",
        "modified": ["m"],
        "limits": ["l"],
        "seconds": 3.0,
        "log": "/log",
        "unreached": [{"filename": "/x.py", "row": 1, "text": "t"}],
        "ranks": [{"rank": 0, "host": "h", "exit": 1, "outcome": "failed"}],
        "failures": [FAILURE, {**FAILURE, "root_cause": False}],
        "simulation_limit": FAILURE,
    },
    "explanations": [SAID, SAID],
    "limit_explanation": [SAID],
    "modified": [SAID],
    "limits": [SAID],
}
EVENTS = [
    {"rank": 0, "host": "h", "event": "start", "time": 1.7e9, "world_size": 2, "pid": 1},
    {"event": "step", "step": 1, "time": 1.7e9 + 1},
    {
        "table": "call",
        "number": 1,
        "value": "barrier",
        "event": "collective-name",
        "time": 1.7e9 + 1,
    },
    {"event": "phase", "phase": "training", "name": "n", "time": 1.7e9 + 2},
    {
        "event": "exception",
        "time": 1.7e9 + 3,
        "thread": None,
        "exception": {
            "type": "E",
            "module": "m",
            "message": "m",
            "notes": ["n"],
            "frames": [FRAME],
        },
    },
]
FORECAST = {
    "fits": "fits",
    "title": SAID,
    "headline": SAID,
    "details": [SAID],
    "capacity": 9,
    "gpu": 0,
    "timeline": {"moments": [1, 2, 3], "parts": {"torch": [1, 2, 3]}, "steps": [[2, 1]]},
}
GPUS = [
    {
        "time": 1.7e9 + second,
        "host": "h",
        "devices": [
            {"index": "0", "name": "n", "used_mib": second, "total_mib": 9, "busy_percent": 5}
        ],
    }
    for second in range(1, 9)
]


def everywhere(value: Any, texts: Callable[[str], str]) -> Any:
    """A JSON value with other texts; the names of what there is stay, those of packages do not."""
    if isinstance(value, str):
        return texts(value)
    if isinstance(value, dict):
        names = value if "torch" not in value else map(texts, value)
        return {
            name: each if name == "event" else everywhere(each, texts)
            for name, each in zip(names, value.values(), strict=True)
        }
    return [everywhere(each, texts) for each in value] if isinstance(value, list) else value


def kept(folder: Path, texts: Callable[[str], str]) -> KeptRun:
    """The record of a run, and its evidence, with these texts in every field."""
    folder.mkdir(parents=True)

    def write(name: str, *values: Any) -> None:
        lines = (json.dumps(everywhere(each, texts)) for each in values)
        (folder / name).write_text("\n".join(lines) + "\n")

    write("result.json", RECORD)
    write("rank0.jsonl", *EVENTS)
    write("gpus.jsonl", *GPUS)
    write("forecast.json", FORECAST)
    write("progress.jsonl", {"rank": 0, "time": 1.7e9, "steps": 1, "call": "c", "place": "p"})
    log = f"[rank 0] {texts('x')}\n[launcher] {texts('x')}\n"
    (folder / "log.txt").write_bytes(log.encode("utf-8", "surrogatepass") + b"\xff\xfe")
    return run_named(str(folder), folder.parent)


def nothing_happened(seen: dict[str, Any]) -> None:
    harmless({**seen, "overflow": 0})
    assert (seen["owned"], seen["handlers"], seen["foreign"]) == (None, 0, 0)
    assert seen["scripts"] <= 1, "ours, which draws the plots"
    ours = ("vscode://file/", "#", "../", "runs/")
    assert [link for link in seen["links"] if not link.startswith(ours)] == []


FORMS: dict[str, Callable[[str], str]] = {
    "all": lambda _: TEXT,
    "paths": lambda old: f"/{TEXT}" if old.startswith("/") else old + TEXT,
    "script": lambda _: SHORT[0],
    "address": lambda _: SHORT[1],
    "image": lambda _: SHORT[2],
}


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_a_report_shows_it_and_does_nothing(tmp_path: Path, form: str) -> None:
    run = kept(tmp_path / "runs" / "received", FORMS[form])
    text = report(run, comparison=compare(run, run))
    assert not any(character in text for character in "\x00\x1b\u202e\u2066\ud800")
    seen = opened(text, tmp_path, f"hostile-{form}")
    nothing_happened(seen)
    shown = {"script": SHORT[0], "address": SHORT[1], "image": SHORT[2]}.get(form, ATTACKS[1])
    assert seen["text"].count(shown) > 10, "it was shown where it belongs"


@pytest.mark.long
def test_a_history_shows_it_and_does_nothing(tmp_path: Path) -> None:
    run = kept(tmp_path / "runs" / "javascript:owned=1 <img src=x onerror=owned=1>", lambda _: TEXT)
    page = write_history([run], tmp_path / SHORT[2].replace("/", ""), tmp_path / "h.html", "en")
    nothing_happened(opened(page.read_text("utf-8"), tmp_path, "hostile-history"))
