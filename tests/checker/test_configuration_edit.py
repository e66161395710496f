"""A rule left out of a configuration file: everything else in the file stays as its author wrote it."""

from __future__ import annotations

import pytest
from ranksafe.checker.configuration_edit import NotEditable, with_rule_ignored


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[tool.ranksafe]\nignore = ["RS201"]\n'),
        (
            "[tool.ranksafe] # ours\ngpus = 2  # two\n\n[tool.ruff]\nline-length = 100\n",
            '[tool.ranksafe] # ours\ngpus = 2  # two\nignore = ["RS201"]\n\n[tool.ruff]\nline-length = 100\n',
        ),
        ('[tool.ranksafe]\nignore = ["RS3"]\n', '[tool.ranksafe]\nignore = ["RS3", "RS201"]\n'),
        (
            '[tool.ranksafe]\nignore = [\n    "RS3",  # slow\n]\n',
            '[tool.ranksafe]\nignore = [\n    "RS3",  # slow\n    "RS201",\n]\n',
        ),
        ('[tool.ranksafe]\nignore = ["RS201"]\n', '[tool.ranksafe]\nignore = ["RS201"]\n'),
    ],
    ids=["empty", "other keys", "one line", "several lines", "there already"],
)
def test_pyproject(before: str, after: str) -> None:
    assert with_rule_ignored(before, "RS201", in_pyproject=True) == after


def test_own_file() -> None:
    assert with_rule_ignored("gpus = 2\n", "RS201", in_pyproject=False) == (
        'gpus = 2\nignore = ["RS201"]\n'
    )


@pytest.mark.parametrize(
    "text", ["[tool", "tool = 1\n", "[tool]\nranksafe = []\n", "[tool.ranksafe]\nignore = 'RS1'\n"]
)
def test_what_cannot_be_edited(text: str) -> None:
    with pytest.raises(NotEditable):
        with_rule_ignored(text, "RS201", in_pyproject=True)
