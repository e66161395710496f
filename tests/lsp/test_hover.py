"""Hover on a finding and on a call whose meaning depends on the launch."""

from __future__ import annotations

import pytest
from ranksafe.lsp.hover import _escaped

from .conftest import DEVICE_MAP, DEVICE_MAP_LINE, StartEditor

COLUMN = DEVICE_MAP.splitlines()[DEVICE_MAP_LINE].index('"auto"') + 2


async def test_a_finding_tells_its_rule_and_what_is_known_of_the_launch(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(
        options={"settings": {"launcher": "torchrun", "assume": ["transformers==4.51.3"]}}
    )
    editor.write("pyproject.toml", "[tool.ranksafe]\ngpus = 8\n")
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    text = await editor.hover(uri, DEVICE_MAP_LINE, COLUMN)
    assert text is not None
    assert "**RS201** `device-map-in-distributed-training`" in text
    assert "8 GPUs (pyproject.toml)" in text
    assert "started by torchrun (editor settings)" in text
    assert "transformers 4.51.3 (editor settings)" in text
    assert "rs201)" in text


async def test_what_is_assumed_is_said_to_be_assumed_in_chinese_too(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(locale="zh-cn")
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    text = await editor.hover(uri, DEVICE_MAP_LINE, COLUMN)
    assert text is not None
    assert "GPU 数量未知：假定为 2 个" in text


async def test_installed_versions_are_read_with_their_place(start_editor: StartEditor) -> None:
    editor = await start_editor()
    packages = ".venv/lib/python3.11/site-packages"
    editor.write(".venv/pyvenv.cfg", "home = /usr/bin\n")
    editor.write(".venv/bin/python", "")
    editor.write(f"{packages}/trl-0.17.0.dist-info/METADATA", "Name: trl\nVersion: 0.17.0\n")
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    text = await editor.hover(uri, DEVICE_MAP_LINE, COLUMN)
    assert text is not None
    assert "trl 0.17.0" in text
    assert "trl-0.17.0.dist-info" in text


async def test_a_version_made_up_by_a_workspace_brings_no_link_and_no_picture(
    start_editor: StartEditor,
) -> None:
    """An editor loads a picture of a hover from its address as soon as the hover is shown."""
    editor = await start_editor()
    packages = ".venv/lib/python3.11/site-packages"
    editor.write(".venv/pyvenv.cfg", "home = /usr/bin\n")
    editor.write(".venv/bin/python", "")
    for name, version in (
        ("trl", "0.17.0` ![x](http://h/x.png)"),
        ("peft", "0.1``` [x](command:y) `"),
        ("accelerate", "1.0` <img src=http://h/y.png>"),
    ):
        metadata = f"Name: {name}\nVersion: {version}\n"
        editor.write(f"{packages}/{name}-0.17.0.dist-info/METADATA", metadata)
    editor.write("requirements.txt", "transformers==4.51.3` ![x](http://h/z.png)\n")
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    text = await editor.hover(uri, DEVICE_MAP_LINE, COLUMN)
    assert text is not None
    assert "](http://h" not in text
    assert "](command:" not in text
    assert "<img" not in text.replace("\\<img", "")


@pytest.mark.parametrize(
    "text",
    [
        "1.0` ![x](http://h)",
        "0.1``` [x](http://h) `",
        "a `` b` [x](http://h)",
        "` \n` [x](http://h)",
    ],
)
def test_a_stray_backtick_lets_no_link_through(text: str) -> None:
    assert "\\[x\\]" in _escaped(text)


def test_code_in_backticks_stays_as_it_is() -> None:
    assert _escaped("call `a[0]_b` or *b*") == "call `a[0]_b` or \\*b\\*"


async def test_a_call_that_depends_on_the_launch_tells_the_launch(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    on_trainer = await editor.hover(uri, DEVICE_MAP_LINE + 1, 16)
    assert on_trainer is not None
    assert "2 are assumed" in on_trainer
    assert "RS201" not in on_trainer


async def test_nothing_is_said_elsewhere(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    assert await editor.hover(uri, 3, 5) is None
    assert await editor.hover(uri, 99, 0) is None
