"""launch.json gets a configuration and keeps everything else."""

from __future__ import annotations

import json
import re

import pytest
from ranksafe.launch.launch_json import (
    LaunchJsonError,
    with_accelerate_configuration,
)

COMMENTED = """{
    // Use IntelliSense to learn about possible attributes.
    "version": "0.2.0",
    "configurations": [
        {
            "name": "Python: current file", // keep "me"
            "type": "debugpy",
            "request": "launch",
            "program": "${file}", /* and [me] */
        },
        // nothing below
    ],
}
"""
EXISTING = [
    None,
    "",
    "// only a comment\n",
    "{}",
    '{"version": "0.2.0"}\n',
    '{\n  "version": "0.2.0",\n}\n',
    '{"configurations": []}',
    '{\n    "configurations": [\n    ]\n}\n',
    '{\n    "configurations": [\n        // none yet\n    ]\n}\n',
    '{"configurations": [{"name": "a"}]}',
    '{"compounds": [{"configurations": ["a"]}], "configurations": [{"name": "a"}]}',
    '{\n  "configurations": [\n    {"name": "a"} // a\n  ]\n}\n',
    COMMENTED,
    COMMENTED.replace("\n", "\r\n"),
]


def read(text: str) -> dict[str, list[dict[str, object]]]:
    """Comments and trailing commas taken out; strings of the examples hold neither `//` nor `/*`."""
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    found: dict[str, list[dict[str, object]]] = json.loads(re.sub(r",(\s*[}\]])", r"\1", plain))
    return found


@pytest.mark.parametrize("existing", EXISTING)
def test_the_configuration_is_added_after_the_others(existing: str | None) -> None:
    text = with_accelerate_configuration(existing, "scripts/train.py")
    configurations = read(text)["configurations"]
    assert configurations[-1]["module"] == "accelerate.commands.launch"
    assert configurations[-1]["args"] == ["${workspaceFolder}/scripts/train.py"]
    before = read(existing) if existing and "{" in existing else {}
    assert configurations[:-1] == before.get("configurations", [])
    assert {k: v for k, v in read(text).items() if k in before and k != "configurations"} == {
        k: v for k, v in before.items() if k != "configurations"
    }


@pytest.mark.parametrize("existing", EXISTING)
def test_adding_it_again_changes_nothing(existing: str | None) -> None:
    text = with_accelerate_configuration(existing, "训练.py")
    assert with_accelerate_configuration(text, "训练.py") == text
    assert len(read(with_accelerate_configuration(text, "other.py"))["configurations"]) >= 2


def test_comments_and_line_ends_stay() -> None:
    text = with_accelerate_configuration(COMMENTED.replace("\n", "\r\n"), "train.py")
    for comment in ('// keep "me"', "/* and [me] */", "// nothing below", "// Use IntelliSense"):
        assert comment in text
    assert "\n" not in text.replace("\r\n", "")


@pytest.mark.parametrize(
    "broken", ["[]", '{"configurations": 3}', '{"configurations": [', '{"a": "']
)
def test_what_cannot_be_read_is_not_touched(broken: str) -> None:
    with pytest.raises(LaunchJsonError):
        with_accelerate_configuration(broken, "train.py")
