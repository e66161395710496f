"""Work that is left at pause points and gone on with."""

from __future__ import annotations

import threading

import pytest
from ranksafe.pausing import Pausable, once, pause_point, undisturbed


def counting(to: int, seen: list[int]) -> None:
    for number in range(to):
        pause_point()
        seen.append(number)


def test_it_goes_on_from_where_it_was() -> None:
    seen: list[int] = []
    others: list[int] = []
    work, other = (Pausable(lambda which=which: counting(3, which)) for which in (seen, others))
    for done in range(3):
        assert not work.go_on(0)
        assert not other.go_on(0)
        assert seen == others == list(range(done))
    assert work.go_on(0)
    assert seen == [0, 1, 2] != others
    assert other.go_on(0)
    assert other.go_on(0), "and that is all"
    assert seen == others


def test_with_time_enough_it_does_not_pause() -> None:
    seen: list[int] = []
    assert Pausable(lambda: counting(3, seen)).go_on(60)
    assert seen == [0, 1, 2]


def test_nobody_comes_between_what_is_shared() -> None:
    seen: list[int] = []

    def work() -> None:
        with undisturbed():
            counting(3, seen)
        pause_point()
        seen.append(-1)

    paused = Pausable(work)
    assert not paused.go_on(0)
    assert seen == [0, 1, 2]
    assert paused.go_on(0)


def test_what_it_raises_comes_to_its_owner() -> None:
    def work() -> None:
        pause_point()
        raise ValueError("told")

    paused = Pausable(work)
    assert not paused.go_on(0)
    with pytest.raises(ValueError, match="told"):
        paused.go_on(0)


def test_abandoned_work_ends_where_it_is() -> None:
    seen: list[str] = []

    def work() -> None:
        try:
            pause_point()
            seen.append("went on")
        finally:
            pause_point()
            seen.append("never comes to the end of its last words either")

    never_started = Pausable(work)
    never_started.abandon()
    paused = Pausable(work)
    paused.go_on(0)
    paused.abandon()
    assert paused.is_finished
    assert seen == []
    assert not never_started.is_finished


def test_no_lock_is_held_over_a_pause() -> None:
    """As that of `functools.cached_property` was, by which all objects of a class wait for one of them."""

    class Words:
        @once
        def found(self) -> list[int]:
            pause_point()
            return [1]

    def owner() -> None:
        assert not works[0].go_on(0)
        assert not works[1].go_on(0)
        assert works[0].go_on(0)
        assert works[1].go_on(0)
        ended.append(True)

    objects, ended = (Words(), Words()), list[bool]()
    works = [Pausable(lambda words=words: words.found) for words in objects]
    thread = threading.Thread(target=owner, daemon=True)
    thread.start()
    thread.join(20)
    assert ended
    assert objects[0].found is objects[0].found


def test_without_a_thread_it_is_done_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_of: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("_thread.start_new_thread", refuse)
    seen: list[int] = []
    assert Pausable(lambda: counting(3, seen)).go_on(0)
    assert seen == [0, 1, 2]
    pause_point()
