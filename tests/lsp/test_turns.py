"""Long work of the server goes on in turns: what is small is done first, and nothing that becomes of a piece stops it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from ranksafe.lsp.turns import Turns
from ranksafe.pausing import pause_point

from .conftest import DEVICE_MAP, StartEditor

STEPS = 3_000
LARGE = DEVICE_MAP + "".join(
    f"def f{number}(a):\n    if dist.get_rank() == 0:\n        print(a)\n    dist.all_reduce(a)\n"
    for number in range(5_000)
)


def busy(name: str, steps: int, done: list[str]) -> Callable[[], None]:
    """Work of so many pieces, some milliseconds each, that notes its end."""

    def work() -> None:
        for _ in range(steps):
            sum(range(20_000))
            pause_point()
        done.append(name)

    return work


async def until(condition: Callable[[], bool]) -> None:
    """Wait for it, while messages could be read."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it never came to that")


async def test_what_is_small_is_done_first() -> None:
    turns, done = Turns(), list[str]()
    turns.start(iter([busy("large", STEPS, done)]), lambda error: None)
    await asyncio.sleep(0.03)
    turns.start(iter([busy("small", 3, done)]), lambda error: None)
    await until(lambda: len(done) == 2)
    assert done == ["small", "large"]


async def test_of_what_took_the_same_the_last_is_looked_at() -> None:
    turns, done = Turns(), list[str]()
    for name in ("first", "second", "third"):
        turns.start(iter([busy(name, 0, done)]), lambda error: None)
    await until(lambda: len(done) == 3)
    assert done == ["third", "second", "first"]


async def test_messages_are_read_in_between() -> None:
    turns, done, read = Turns(), list[str](), 0
    turns.start(iter([busy("large", STEPS, done)]), lambda error: None)
    while not done:
        await asyncio.sleep(0)
        read += 1
    assert read > 3


async def test_an_error_ends_that_piece_alone() -> None:
    turns, done = Turns(), list[str]()
    errors: list[Exception | None] = []

    def fail() -> None:
        pause_point()
        raise ValueError("no")

    def fail_afterwards(_error: Exception | None) -> None:
        raise KeyError("nor here")

    turns.start(iter([fail, busy("never", 1, done)]), errors.append)
    turns.start(iter([busy("one", 2, done)]), fail_afterwards)
    turns.start(iter([busy("other", 4, done)]), errors.append)
    await until(lambda: len(errors) == 2)
    assert sorted(done) == ["one", "other"]
    assert [type(error) for error in errors if error is not None] == [ValueError]


async def test_abandoned_work_is_never_heard_of_again() -> None:
    turns, done = Turns(), list[str]()
    left = busy("left", STEPS, done)

    def work() -> None:
        try:
            left()
        finally:
            done.append("let go")

    job = turns.start(iter([work]), lambda error: done.append("ended"))
    await asyncio.sleep(0.03)
    turns.abandon(job)
    assert done == ["let go"]
    turns.start(iter([busy("next", 2, done)]), lambda error: None)
    await until(lambda: len(done) > 1)
    await asyncio.sleep(0.05)
    assert done == ["let go", "next"]


async def test_a_request_that_is_cancelled_leaves_its_work() -> None:
    turns, done = Turns(), list[str]()
    waiting = asyncio.create_task(turns.result(busy("left", 60, done)))
    await asyncio.sleep(0)
    waiting.cancel()
    assert await turns.result(lambda: 7) == 7
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(ZeroDivisionError):
        await turns.result(lambda: 1 // 0)
    await turns.result(busy("other", 120, done))
    assert done == ["other"]


async def test_the_end_leaves_nobody_waiting() -> None:
    turns, done = Turns(), list[str]()
    waiting = asyncio.create_task(turns.result(busy("left", STEPS, done)))
    turns.start(iter([busy("large", STEPS, done)]), lambda error: None)
    await asyncio.sleep(0.03)
    turns.end()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0.05)
    assert done == []


async def test_a_small_file_is_shown_before_a_large_one(start_editor: StartEditor) -> None:
    editor = await start_editor(options={"settings": {"launcher": "accelerate", "gpus": 4}})
    large = editor.open("large.py", LARGE)
    small = editor.open("small.py", DEVICE_MAP)
    await editor.shown_with(small, "RS201")
    assert not editor.shown(large)
    # Asking for the large one waits for it, and an edit of the small one goes before it all the same.
    asked = asyncio.create_task(editor.actions(large, 3))
    version = editor.type(small, 0, 0, "# other\n")
    await editor.version_shown(small, version)
    assert not editor.shown(large)
    editor.close(large)
    assert list(await asked) == []
    version = editor.type(small, 0, 0, "# another\n")
    assert [one.code for one in await editor.version_shown(small, version)] == ["RS201"]
